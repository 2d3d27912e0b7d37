//! Why a packet was dropped: the names of `enum reason` in `bpf/maps.h`. A number is never reused.

/// A drop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The number in the programs.
    pub number: u8,
    /// The name in commands and JSON.
    pub name: &'static str,
    /// What it means.
    pub text: &'static str,
}

macro_rules! reasons {
    ($($number:literal $constant:ident $name:literal $text:literal,)*) => {
        $(#[doc = $text] pub const $constant: u8 = $number;)*
        /// All reasons, by number from 1.
        pub const ALL: &[Reason] = &[$(Reason { number: $number, name: $name, text: $text },)*];
    };
}

reasons! {
    1 SHORT_FRAME "short-frame" "The frame is shorter than its Ethernet header and tag.",
    2 SOURCE_MAC_INVALID "source-mac-invalid" "The source MAC address is a group address.",
    3 TAGGED_FRAME "tagged-frame" "An access port received a tagged frame.",
    4 VLAN_NOT_ALLOWED "vlan-not-allowed" "The trunk does not carry the frame's VLAN.",
    5 CONTROL_FRAME "control-frame" "A guest sent a link control frame (01:80:c2:00:00:0x).",
    6 SPOOFED_MAC "spoofed-mac" "The port may not send from this MAC address.",
    7 SPOOFED_IP "spoofed-ip" "The port may not send from this IP address.",
    8 DHCP_SERVER "dhcp-server" "A guest answered as a DHCP server.",
    9 ROUTER_ADVERTISEMENT "router-advertisement" "A guest sent a router advertisement or redirect.",
    10 MALFORMED "malformed" "A header is cut short or contradicts itself.",
    11 ACL_IN "acl-in" "An ACL denied the received packet.",
    12 POLICED_IN "policed-in" "The port sent more than its policer permits.",
    13 STATIC_MAC_MOVED "static-mac-moved" "A static MAC address was seen on another port.",
    14 HAIRPIN "hairpin" "The destination is on the port that the frame came from.",
    15 ISOLATED "isolated" "Both ports are isolated.",
    16 UNKNOWN_UNICAST "unknown-unicast" "The destination is not known and is not to be flooded.",
    17 STORM "storm" "The port flooded more than its limit permits.",
    18 NO_FLOOD_PORT "no-flood-port" "There is no other port to flood to.",
    19 PORT_DOWN "port-down" "The port of departure is down.",
    20 MTU "mtu" "The frame is longer than the port of departure takes.",
    21 ACL_OUT "acl-out" "An ACL denied the packet on departure.",
    22 POLICED_OUT "policed-out" "The port was sent more than its policer permits.",
    23 NO_ROUTE "no-route" "A blackhole, unreachable or prohibit route.",
    24 REDIRECT_ERROR "redirect-error" "The kernel did not queue the redirected frame.",
    25 TRANSMIT_FULL "transmit-full" "The device of departure had no room (ring full).",
    26 PORT_REMOVED "port-removed" "The port of arrival was removed while the frame was queued.",
    27 INTERNAL "internal" "A table entry is missing, or the driver has no headroom for a tag.",
    28 NOT_A_MEMBER "not-a-member" "The port of departure does not carry the frame's VLAN.",
}

/// The reason with this number.
#[must_use]
pub fn by_number(number: u8) -> Option<&'static Reason> {
    ALL.iter().find(|reason| reason.number == number)
}
