//! The one table of reasons for which a packet can be dropped.
//!
//! A reason has a name, a severity and a sentence; `show errors`, the API and the documentation are
//! made from this table. A reason that no node declares cannot be given (`NodeSpec::reasons`).

/// How much an operator should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Happens in any healthy network.
    Info,
    /// Something in the neighbourhood is wrong: malformed or misdirected packets.
    Warning,
    /// This router lacks something: memory, ring space, a worker that keeps up.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

macro_rules! reasons {
    ($($variant:ident $name:literal $severity:ident $sentence:literal;)*) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $sentence] $variant,)*
        }

        impl DropReason {
            /// All reasons, in the table's order.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)*];

            /// The name under which the reason is counted.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name,)* }
            }

            /// How much an operator should care.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(DropReason::$variant => Severity::$severity,)* }
            }

            /// What happened, in a sentence.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(DropReason::$variant => $sentence,)* }
            }
        }
    };
}

reasons! {
    InterfaceDown "interface-down" Info "The interface is administratively down.";
    TooShort "too-short" Warning "The frame is shorter than an Ethernet header.";
    WrongMac "wrong-mac" Info "The frame is addressed to another station's MAC address.";
    VlanUnknown "vlan-unknown" Info "The frame carries a VLAN tag that no sub-interface takes.";
    VlanMissing "vlan-missing" Info "The frame lacks a VLAN tag that should come off.";
    VlanTruncated "vlan-truncated" Warning "The frame ends within its VLAN tags.";
    UnknownEthertype "unknown-ethertype" Info "No node takes this ethertype.";
    NotRouted "not-routed" Info "The interface has neither an address nor a cross connect.";
    BadSourceMac "bad-source-mac" Warning "The source MAC address is a group's or zero.";
    MacBound "mac-bound" Warning "The source MAC address belongs to another member of the bridge domain: a static entry or the BVI.";
    ReservedMac "reserved-mac" Info "A frame of a protocol between neighbours (01:80:c2:00:00:0x), which no bridge forwards.";
    SameMember "same-member" Info "The station is behind the member of the bridge domain that the frame came in by.";
    SplitHorizon "split-horizon" Info "The station is behind a member of the same split-horizon group.";
    ForwardOff "forward-off" Info "The bridge domain does not forward to single stations.";
    FloodOff "flood-off" Info "The bridge domain does not flood such frames.";
    StormLimit "storm-limit" Warning "The member sends more frames to flood than it may.";
    NoMember "no-member" Info "No other member of the bridge domain can take the frame.";
    MemberInactive "member-inactive" Info "The bond takes no frames from this member now.";
    LacpOff "lacp-off" Info "A frame of LACP or its marker protocol for a bond that does not speak it.";
    LacpMalformed "lacp-malformed" Warning "The frame of LACP or its marker protocol is cut off or not in form.";
    LacpOwnSystem "lacp-own-system" Warning "A LACP frame that the bond itself sent came back: a loop.";
    PuntPoliced "punt-policed" Warning "More packets of this class came for services of Linux than the limit allows.";
    PuntGone "punt-gone" Info "The packet is for a service of Linux, and its interface has no TAP there any more.";
    LacpFlood "lacp-flood" Warning "More than ten frames of slow protocols came in by the member within a second.";
    SlowProtocol "slow-protocol" Info "A frame of a slow protocol that this router does not speak.";
    FrameTooLong "frame-too-long" Warning "The frame is longer than the MTU of the interface that it should leave by.";
    Ip4Truncated "ip4-truncated" Warning "The IPv4 header is cut off.";
    Ip4BadVersion "ip4-bad-version" Warning "The version field of an IPv4 packet is not 4.";
    Ip4BadHeaderLength "ip4-bad-header-length" Warning "The IPv4 header length is below 20 bytes or beyond the packet.";
    Ip4BadLength "ip4-bad-length" Warning "The IPv4 total length is below the header's or beyond the frame's.";
    Ip4BadChecksum "ip4-bad-checksum" Warning "The IPv4 header checksum is wrong.";
    Ip4SourceLoopback "ip4-source-loopback" Warning "The IPv4 source address is a loopback address (127.0.0.0/8).";
    Ip4SourceUnspecified "ip4-source-unspecified" Warning "The IPv4 source address is in 0.0.0.0/8, which names no host.";
    Ip4SourceMulticast "ip4-source-multicast" Warning "The IPv4 source address is a multicast address (224.0.0.0/4).";
    Ip4SourceBroadcast "ip4-source-broadcast" Warning "The IPv4 source address is the limited broadcast address.";
    Ip4SourceReserved "ip4-source-reserved" Warning "The IPv4 source address is of class E (240.0.0.0/4).";
    Ip4SourceOwn "ip4-source-own" Warning "The packet came from outside with an IPv4 source address of this router, or the broadcast address of one of its subnets.";
    Ip4DestinationLoopback "ip4-destination-loopback" Warning "The IPv4 destination address is a loopback address (127.0.0.0/8).";
    Ip4DestinationUnspecified "ip4-destination-unspecified" Warning "The IPv4 destination address is in 0.0.0.0/8, which names no host.";
    Ip4DestinationReserved "ip4-destination-reserved" Warning "The IPv4 destination address is of class E (240.0.0.0/4).";
    Ip4BadOption "ip4-bad-option" Warning "An IPv4 option is cut off, or its length or pointer is wrong.";
    Ip4SourceRoute "ip4-source-route" Warning "The IPv4 packet has a source route option (RFC 7126).";
    Ip4Multicast "ip4-multicast" Info "The packet is IPv4 multicast, which is not routed.";
    Ip4Broadcast "ip4-broadcast" Info "The packet is a broadcast that this router has no use for.";
    Ip6NotEnabled "ip6-not-enabled" Info "The interface has no IPv6 address and takes no IPv6.";
    Ip6Truncated "ip6-truncated" Warning "The IPv6 header is cut off.";
    Ip6BadVersion "ip6-bad-version" Warning "The version field of an IPv6 packet is not 6.";
    Ip6BadLength "ip6-bad-length" Warning "The IPv6 payload length is beyond the frame's, or that of a jumbogram.";
    Ip6SourceLoopback "ip6-source-loopback" Warning "The IPv6 source address is the loopback address.";
    Ip6SourceUnspecified "ip6-source-unspecified" Warning "The IPv6 source address is unspecified, which only neighbour discovery may use.";
    Ip6SourceMulticast "ip6-source-multicast" Warning "The IPv6 source address is a multicast address.";
    Ip6SourceOwn "ip6-source-own" Warning "The packet came from outside with an IPv6 source address of this router.";
    Ip6MartianSource "ip6-martian-source" Warning "The IPv6 source address is IPv4-mapped, or link-local under a label.";
    Ip6DestinationLoopback "ip6-destination-loopback" Warning "The IPv6 destination address is the loopback address.";
    Ip6MartianDestination "ip6-martian-destination" Warning "The IPv6 destination address is unspecified, IPv4-mapped, or a group that never leaves a node.";
    Ip6Multicast "ip6-multicast" Info "The packet is for an IPv6 group that this router is not in; multicast is not routed.";
    Ip6GroupFrame "ip6-group-frame" Warning "The IPv6 packet is for one station, but its frame is for a group.";
    Ip6LinkLocal "ip6-link-local" Info "The packet is for another station's link-local address, which is never forwarded.";
    Ip6BeyondScope "ip6-beyond-scope" Info "The packet comes from a link-local address and would have to leave its link.";
    Ip6BadExtension "ip6-bad-extension" Warning "The IPv6 extension headers are cut off, too many, too long or out of order.";
    Ip6RoutingHeader "ip6-routing-header" Warning "An IPv6 routing header has segments left and is of no type that this router follows.";
    Ip6Option "ip6-option" Info "An IPv6 option that is not known says that the packet shall be discarded.";
    PacketTooBig "packet-too-big" Info "The IPv6 packet exceeds the MTU of its way on; routers do not fragment IPv6.";
    TtlExpired "ttl-expired" Info "The packet's time to live ended here.";
    NoRoute "no-route" Info "No route covers the destination.";
    NoNextHop "no-next-hop" Info "A route covers the destination, but none of its next hops can be used: their links are down, or no route leads to them.";
    Blackhole "blackhole" Info "The route says to drop.";
    RouteUnreachable "route-unreachable" Info "Dropped by a route to `unreachable`; the sender is notified.";
    RouteProhibited "route-prohibited" Info "Dropped by a route to `prohibit`; the sender is notified.";
    Urpf "urpf" Warning "No route leads back to the source address, or (strict) none by the interface that the packet came in by.";
    HostUnreachable "host-unreachable" Info "The next hop did not answer.";
    FragmentationNeeded "fragmentation-needed" Info "The packet exceeds the MTU and may not be fragmented.";
    LocalFragment "local-fragment" Info "A fragment for this router itself; they are not reassembled.";
    LocalProtocol "local-protocol" Info "A packet for this router itself whose protocol it does not speak.";
    LocalPort "local-port" Info "A TCP or UDP packet for this router itself, of which nothing listens at the port.";
    LocalTruncated "local-truncated" Warning "A TCP or UDP packet for this router itself ends within its header, or its UDP length is wrong.";
    IcmpTruncated "icmp-truncated" Warning "The ICMP header is cut off.";
    IcmpBadChecksum "icmp-bad-checksum" Warning "The ICMP checksum is wrong.";
    IcmpUnsupported "icmp-unsupported" Info "An ICMP message for this router itself that it does not answer.";
    ArpTruncated "arp-truncated" Warning "The ARP packet is cut off.";
    ArpUnsupported "arp-unsupported" Warning "The ARP packet is not for Ethernet and IPv4, or neither request nor reply.";
    ArpForeign "arp-foreign" Info "The ARP packet asks for or comes from an address outside the interface's subnets.";
    ArpMartian "arp-martian" Warning "The ARP sender's hardware or protocol address is impossible or our own.";
    NdTruncated "nd-truncated" Warning "The neighbour discovery message is cut off.";
    NdHopLimit "nd-hop-limit" Warning "The neighbour discovery message came through a router.";
    NdMalformed "nd-malformed" Warning "The neighbour discovery message has a wrong code, options, or addresses that do not go together.";
    NdForeign "nd-foreign" Info "The neighbour discovery message asks for or tells of an address outside the interface's subnets.";
    NdMartian "nd-martian" Warning "The neighbour discovery sender's hardware or protocol address is impossible or our own.";
    NdRedirect "nd-redirect" Info "A redirect, which a router does not follow.";
    NdRouter "nd-router" Info "A router advertisement, or a router solicitation where this router does not advertise itself.";
    Policed "policed" Info "The interface received more, or should send more, than its policer's rate and burst.";
    AclDenied "acl-denied" Info "An access list denies the packet, or no term of it matches.";
    HoldFull "hold-full" Warning "Too many packets wait already for the MAC address of this next hop, or too many next hops are waited for.";
    HandoffFull "handoff-full" Error "The ring to the worker that owns the transmit queue is full.";
    TxFull "tx-full" Error "The transmit queue is full.";
    TxDown "tx-down" Warning "The port that the packet should leave by is down or cannot send.";
    NoHeadroom "no-headroom" Error "The packet's buffer has no room in front for what should be put there.";
    NoBuffer "no-buffer" Error "The packet pool is empty.";
    MplsNotEnabled "mpls-not-enabled" Info "A labelled packet on an interface without MPLS, or to a group.";
    MplsBadStack "mpls-bad-stack" Warning "The label stack is cut off, has no bottom or is too deep.";
    MplsReservedLabel "mpls-reserved-label" Warning "The top label is a special one that may not be there or that this router does not speak.";
    MplsRouterAlert "mpls-router-alert" Info "A router alert label at the bottom of the stack, where it may not be.";
    MplsUnknownLabel "mpls-unknown-label" Info "No entry has the packet's top label.";
    MplsNotBottom "mpls-not-bottom" Warning "The label that ends here has others below it.";
    PseudowireControlWord "pseudowire-control-word" Warning "What came out of the pseudowire does not begin with a control word, which both ends should use.";
    PseudowireChannel "pseudowire-channel" Info "A message between the ends of a pseudowire, which this router does not speak.";
    MplsBadPayload "mpls-bad-payload" Warning "What lies under the last label is not what it stands for.";
    TcpBadChecksum "tcp-bad-checksum" Warning "The TCP checksum is wrong.";
    UdpBadChecksum "udp-bad-checksum" Warning "The UDP checksum is wrong.";
    VxlanTruncated "vxlan-truncated" Warning "The VXLAN packet is cut off, or its UDP length is not the packet's.";
    VxlanNoVni "vxlan-no-vni" Warning "The VXLAN header names no segment: its I flag is not set.";
    VxlanUnknownVni "vxlan-unknown-vni" Info "No VXLAN tunnel has the packet's segment.";
    VxlanUnknownPeer "vxlan-unknown-peer" Info "There are VXLAN tunnels of the packet's segment, but none between these two addresses.";
    TunnelCongested "tunnel-congested" Info "A router on the tunnel's way met congestion and marked the packet, but the ends of what is inside do not know such marks.";
    TunnelLoop "tunnel-loop" Error "The packet has been in a tunnel already when it should go into one: the way to a far end leads back into a tunnel.";
    LoopLimit "loop-limit" Error "The packet went through more nodes than any path has.";
    Stopped "stopped" Info "The router stopped while the packet was inside.";
}

/// How many reasons there are.
pub(crate) const COUNT: usize = DropReason::ALL.len();

const _: () = assert!(COUNT < 255);

impl DropReason {
    /// The reason with this number in the table.
    #[must_use]
    pub fn from_index(index: usize) -> Option<DropReason> {
        DropReason::ALL.get(index).copied()
    }
}
