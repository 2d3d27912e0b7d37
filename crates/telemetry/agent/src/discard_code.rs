//! Why packets are discarded, in sFlow's numbers.
//!
//! The table is that of the specification's extension for dropped packets: 0 to 15 are the codes of ICMP's
//! destination unreachable (RFC 792, RFC 1812), those from 256 on its own. Several reasons may share a
//! number; the name of the node and of the reason travel beside it. The match is complete, so that a new
//! reason cannot be forgotten.

use weir_graph::DropReason;

/// The number of a reason; 256, unknown, where the table has nothing that fits.
#[must_use]
pub const fn discard_code(reason: DropReason) -> u16 {
    use DropReason as R;
    match reason {
        // ICMP codes: network, host, protocol, port, fragmentation needed, administratively prohibited.
        R::NoRoute | R::NoNextHop => 0,
        R::HostUnreachable | R::RouteUnreachable => 1,
        // Source route failed.
        R::Ip4SourceRoute => 5,
        R::LocalProtocol | R::IcmpUnsupported => 2,
        R::LocalPort => 3,
        R::FragmentationNeeded => 4,
        R::RouteProhibited => 13,
        R::Ip6BeyondScope => 9,
        R::TtlExpired => 257,
        R::AclDenied => 258,
        R::NoBuffer | R::TxFull | R::HandoffFull | R::NoHeadroom => 259,
        // As early detection would have done where it met congestion.
        R::TunnelCongested => 260,
        R::Policed | R::StormLimit | R::LacpFlood | R::PuntPoliced | R::PuntGone => 261,
        R::FrameTooLong | R::PacketTooBig => 262,
        R::BadSourceMac => 263,
        R::VlanMissing => 264,
        R::VlanUnknown => 265,
        R::NoMember => 267,
        R::SameMember => 268,
        R::Blackhole => 269,
        R::UnknownEthertype => 270,
        R::Ip6GroupFrame => 271,
        R::Ip4DestinationLoopback | R::Ip6DestinationLoopback => 272,
        R::Ip4SourceMulticast | R::Ip6SourceMulticast => 273,
        R::Ip4SourceLoopback | R::Ip6SourceLoopback => 274,
        R::Ip4SourceBroadcast => 276,
        R::Ip4SourceUnspecified | R::Ip6SourceUnspecified => 290,
        R::Ip4SourceReserved => 295,
        // "Local network".
        R::Ip4DestinationUnspecified => 298,
        R::Ip4BadVersion
        | R::Ip4BadHeaderLength
        | R::Ip4BadLength
        | R::Ip4BadChecksum
        | R::Ip4BadOption
        | R::Ip6BadVersion
        | R::Ip6BadLength => 275,
        // What too many wait for is a neighbour's address.
        R::HoldFull => 279,
        R::NotRouted | R::Ip4Multicast | R::Ip6Multicast | R::Ip4Broadcast => 281,
        R::Ip4DestinationReserved | R::Ip6MartianDestination => 281,
        // In form, but of no use to this router, and never sent on: what a link floods.
        R::ArpForeign | R::NdForeign | R::NdRouter => 281,
        R::MplsUnknownLabel
        | R::MplsNotBottom
        | R::MplsBadPayload
        | R::MplsReservedLabel
        | R::MplsRouterAlert => 282,
        // What is under the label is not what the two ends agreed on.
        R::PseudowireControlWord | R::PseudowireChannel => 282,
        R::VxlanTruncated | R::VxlanNoVni => 282,
        R::VxlanUnknownVni | R::VxlanUnknownPeer | R::TunnelLoop => 288,
        R::InterfaceDown | R::TxDown | R::MemberInactive | R::ForwardOff | R::FloodOff => 284,
        R::Ip6RoutingHeader | R::Ip6Option | R::LocalFragment | R::MplsNotEnabled => 285,
        R::Ip4SourceOwn | R::Ip6SourceOwn | R::Ip6MartianSource => 285,
        R::ReservedMac | R::SlowProtocol | R::LacpOff => 294,
        R::Ip6LinkLocal => 299,
        R::Urpf => 302,
        R::SplitHorizon => 303,
        R::MacBound => 304,
        R::WrongMac => 305,
        R::VlanTruncated => 309,
        R::MplsBadStack => 311,
        R::ArpTruncated | R::ArpUnsupported | R::ArpMartian => 312,
        R::Ip4Truncated | R::Ip6Truncated | R::Ip6BadExtension => 313,
        R::TooShort => 324,
        R::Ip6NotEnabled => 326,
        R::IcmpTruncated | R::IcmpBadChecksum | R::LocalTruncated => 289,
        R::TcpBadChecksum | R::UdpBadChecksum => 289,
        R::NdTruncated | R::NdHopLimit | R::NdMalformed | R::NdMartian | R::NdRedirect => 323,
        R::LacpMalformed | R::LacpOwnSystem => 323,
        R::LoopLimit | R::Stopped => 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_never_forwarded_have_their_own_numbers() {
        use DropReason as R;
        for (reason, code) in [
            (R::Ip4SourceMulticast, 273),
            (R::Ip4SourceBroadcast, 276),
            (R::Ip4SourceLoopback, 274),
            (R::Ip4SourceUnspecified, 290),
            (R::Ip4SourceReserved, 295),
            (R::Ip6SourceMulticast, 273),
            (R::Ip6SourceLoopback, 274),
            (R::Ip6SourceUnspecified, 290),
            (R::Ip4DestinationLoopback, 272),
            (R::Ip6DestinationLoopback, 272),
            // The table has no word for these: not routable, and unknown of layer 3.
            (R::Ip4DestinationUnspecified, 298),
            (R::Ip4DestinationReserved, 281),
            (R::Ip6MartianDestination, 281),
            (R::Ip4SourceOwn, 285),
            (R::Ip6SourceOwn, 285),
        ] {
            assert_eq!(discard_code(reason), code, "{reason:?}");
        }
    }

    #[test]
    fn what_is_in_form_is_not_called_broken() {
        use DropReason as R;
        let reasons = [
            R::LocalProtocol,
            R::LocalPort,
            R::HoldFull,
            R::NoBuffer,
            R::ArpForeign,
            R::NdForeign,
            R::NdRouter,
            R::ArpMartian,
        ];
        assert_eq!(
            reasons.map(discard_code),
            [2, 3, 279, 259, 281, 281, 281, 312]
        );
    }

    /// The table ends at 324 for parsers, 326 for what else this router can say.
    #[test]
    fn every_number_is_in_the_table() {
        for &reason in DropReason::ALL {
            let code = discard_code(reason);
            assert!(
                code <= 15 || (256..=326).contains(&code),
                "{}: {code}",
                reason.name()
            );
        }
        let unknown = DropReason::ALL
            .iter()
            .filter(|&&reason| discard_code(reason) == 256)
            .count();
        assert!(
            unknown <= 2,
            "{unknown} reasons have no number of their own"
        );
    }
}
