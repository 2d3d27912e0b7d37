//! Why packets are not forwarded, in IPFIX's numbers: `forwardingStatus` (IANA 89, RFC 7270).
//!
//! Two bits say what became of a packet (64 forwarded, 128 dropped, 192 consumed), six say why, as far as the registry
//! has a word for it. The match is complete, so that a new reason cannot be forgotten.

use weir_graph::DropReason;

/// Forwarded, nothing more is known.
pub(crate) const FORWARDED: u8 = 64;
/// Consumed: it waits for the next hop's address.
pub(crate) const INCOMPLETE_ADJACENCY: u8 = 194;
/// Consumed: it was for this router.
pub(crate) const FOR_US: u8 = 195;

/// The number of a reason; 128, dropped for an unknown one, where the registry has nothing that fits.
#[must_use]
pub const fn forwarding_status(reason: DropReason) -> u8 {
    use DropReason as R;
    match reason {
        R::AclDenied => 129,
        R::NoRoute | R::Blackhole | R::RouteUnreachable | R::RouteProhibited => 131,
        R::MplsUnknownLabel
        | R::VxlanUnknownVni
        | R::VxlanUnknownPeer
        | R::VlanUnknown
        | R::NotRouted => 131,
        R::Ip6LinkLocal
        | R::Ip6BeyondScope
        | R::Ip4Multicast
        | R::Ip6Multicast
        | R::Ip4Broadcast => 131,
        // The next hop has no address, or none that answers.
        R::HostUnreachable | R::HoldFull | R::NoNextHop => 132,
        R::FragmentationNeeded | R::PacketTooBig | R::FrameTooLong => 133,
        R::Ip4BadChecksum | R::IcmpBadChecksum | R::TcpBadChecksum | R::UdpBadChecksum => 134,
        R::Ip4BadLength
        | R::Ip6BadLength
        | R::TooShort
        | R::VlanTruncated
        | R::IcmpTruncated
        | R::LocalTruncated
        | R::ArpTruncated
        | R::NdTruncated => 135,
        R::VxlanTruncated => 135,
        R::Ip4BadOption => 136,
        R::Ip4SourceRoute => 128,
        R::Ip4BadHeaderLength | R::Ip4Truncated | R::Ip6Truncated | R::Ip6BadExtension => 136,
        R::TtlExpired => 137,
        R::Policed | R::StormLimit | R::LacpFlood | R::PuntPoliced | R::PuntGone => 138,
        // As early detection (WRED) would have done where it met congestion.
        R::TunnelCongested => 139,
        R::Urpf => 140,
        // For this router, which has no use for it.
        R::LocalFragment
        | R::LocalProtocol
        | R::LocalPort
        | R::IcmpUnsupported
        | R::MplsRouterAlert => 141,
        R::ArpUnsupported | R::ArpForeign | R::ArpMartian => 141,
        R::NdHopLimit
        | R::NdMalformed
        | R::NdForeign
        | R::NdMartian
        | R::NdRedirect
        | R::NdRouter => 141,
        R::ReservedMac
        | R::SlowProtocol
        | R::LacpOff
        | R::LacpMalformed
        | R::LacpOwnSystem
        | R::PseudowireChannel => 141,
        R::InterfaceDown
        | R::TxDown
        | R::MemberInactive
        | R::ForwardOff
        | R::FloodOff
        | R::NoMember => 142,
        R::SameMember | R::SplitHorizon => 142,
        R::NoBuffer | R::NoHeadroom | R::TxFull | R::HandoffFull => 143,
        R::WrongMac | R::UnknownEthertype | R::BadSourceMac | R::MacBound => 128,
        R::Ip4BadVersion | R::Ip4DestinationLoopback | R::Ip4DestinationReserved => 128,
        R::Ip4DestinationUnspecified => 128,
        R::Ip4SourceLoopback
        | R::Ip4SourceUnspecified
        | R::Ip4SourceMulticast
        | R::Ip4SourceBroadcast
        | R::Ip4SourceReserved
        | R::Ip4SourceOwn => 128,
        R::Ip6NotEnabled
        | R::Ip6BadVersion
        | R::Ip6SourceLoopback
        | R::Ip6SourceUnspecified
        | R::Ip6SourceMulticast
        | R::Ip6SourceOwn
        | R::Ip6MartianSource
        | R::Ip6DestinationLoopback
        | R::Ip6MartianDestination
        | R::Ip6GroupFrame => 128,
        R::Ip6RoutingHeader | R::Ip6Option => 128,
        R::MplsNotEnabled
        | R::MplsBadStack
        | R::MplsReservedLabel
        | R::MplsNotBottom
        | R::MplsBadPayload => 128,
        R::VlanMissing
        | R::PseudowireControlWord
        | R::VxlanNoVni
        | R::TunnelLoop
        | R::LoopLimit
        | R::Stopped => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the registry has them (IANA, IPFIX, `forwardingStatus`), written down here once more.
    #[test]
    fn reasons_have_the_registrys_numbers() {
        use DropReason as R;
        for (reason, status) in [
            (R::WrongMac, 128),
            (R::Ip4SourceLoopback, 128),
            (R::AclDenied, 129),
            (R::NoRoute, 131),
            (R::Blackhole, 131),
            (R::HostUnreachable, 132),
            (R::FragmentationNeeded, 133),
            (R::PacketTooBig, 133),
            (R::Ip4BadChecksum, 134),
            (R::Ip4BadLength, 135),
            (R::Ip4BadHeaderLength, 136),
            (R::TtlExpired, 137),
            (R::Policed, 138),
            (R::StormLimit, 138),
            (R::TunnelCongested, 139),
            (R::Urpf, 140),
            (R::LocalPort, 141),
            (R::TxDown, 142),
            (R::TxFull, 143),
        ] {
            assert_eq!(forwarding_status(reason), status, "{reason:?}");
        }
        assert_eq!((FORWARDED, INCOMPLETE_ADJACENCY, FOR_US), (64, 194, 195));
    }

    #[test]
    fn every_reason_is_a_dropped_one() {
        assert!(
            DropReason::ALL
                .iter()
                .all(|&reason| (128..=143).contains(&forwarding_status(reason)))
        );
    }
}
