//! Why a packet was dropped: the names of `enum reason` in `bpf/maps.h`. A number is never reused.

use weir_graph::DropReason;

/// A drop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The number in the programs.
    pub number: u8,
    /// The name in commands and JSON.
    pub name: &'static str,
    /// What it means.
    pub text: &'static str,
    /// The reason of the router's table that says the same, for sFlow.
    pub reported: DropReason,
}

macro_rules! reasons {
    ($($number:literal $constant:ident $name:literal $reported:ident $text:literal,)*) => {
        $(#[doc = $text] pub const $constant: u8 = $number;)*
        /// All reasons, by number from 1.
        pub const ALL: &[Reason] = &[$(Reason {
            number: $number,
            name: $name,
            text: $text,
            reported: DropReason::$reported,
        },)*];
    };
}

reasons! {
    1 SHORT_FRAME "short-frame" TooShort "The frame is shorter than its Ethernet header and tag.",
    2 SOURCE_MAC_INVALID "source-mac-invalid" BadSourceMac "The source MAC address is a group address.",
    3 TAGGED_FRAME "tagged-frame" VlanUnknown "An access port received a tagged frame.",
    4 VLAN_NOT_ALLOWED "vlan-not-allowed" VlanUnknown "The trunk does not carry the frame's VLAN.",
    5 CONTROL_FRAME "control-frame" ReservedMac "A guest sent a link control frame (01:80:c2:00:00:0x).",
    6 SPOOFED_MAC "spoofed-mac" MacBound "The port may not send from this MAC address.",
    7 SPOOFED_IP "spoofed-ip" Urpf "The port may not send from this IP address.",
    8 DHCP_SERVER "dhcp-server" AclDenied "A guest answered as a DHCP server.",
    9 ROUTER_ADVERTISEMENT "router-advertisement" AclDenied "A guest sent a router advertisement or redirect.",
    10 MALFORMED "malformed" Ip4BadLength "A header is cut short or contradicts itself.",
    11 ACL_IN "acl-in" AclDenied "An ACL denied the received packet.",
    12 POLICED_IN "policed-in" Policed "The port sent more than its policer permits.",
    13 STATIC_MAC_MOVED "static-mac-moved" MacBound "A static MAC address was seen on another port.",
    14 HAIRPIN "hairpin" SameMember "The destination is on the port that the frame came from.",
    15 ISOLATED "isolated" SplitHorizon "Both ports are isolated.",
    16 UNKNOWN_UNICAST "unknown-unicast" FloodOff "The destination is not known and is not to be flooded.",
    17 STORM "storm" StormLimit "The port flooded more than its limit permits.",
    18 NO_FLOOD_PORT "no-flood-port" NoMember "There is no other port to flood to.",
    19 PORT_DOWN "port-down" TxDown "The port of departure is down.",
    20 MTU "mtu" FrameTooLong "The frame is longer than the port of departure takes.",
    21 ACL_OUT "acl-out" AclDenied "An ACL denied the packet on departure.",
    22 POLICED_OUT "policed-out" Policed "The port was sent more than its policer permits.",
    23 NO_ROUTE "no-route" NoRoute "A blackhole, unreachable or prohibit route.",
    24 REDIRECT_ERROR "redirect-error" TxFull "The kernel did not queue the redirected frame.",
    25 TRANSMIT_FULL "transmit-full" TxFull "The device of departure had no room (ring full).",
    26 PORT_REMOVED "port-removed" InterfaceDown "The port of arrival was removed while the frame was queued.",
    27 INTERNAL "internal" NoHeadroom "A table entry is missing, or the driver has no headroom for a tag.",
    28 NOT_A_MEMBER "not-a-member" VlanUnknown "The port of departure does not carry the frame's VLAN.",
}

/// The reason with this number.
#[must_use]
pub fn by_number(number: u8) -> Option<&'static Reason> {
    ALL.iter().find(|reason| reason.number == number)
}
