//! Why packets are discarded, in sFlow's numbers.
//!
//! The table is that of the specification's extension for dropped packets: 0 to 15 are the codes of ICMP's
//! destination unreachable (RFC 792, RFC 1812), those from 256 on its own. Several reasons may share a
//! number; the name of the node and of the reason travel beside it. The match is complete, so that a new
//! reason cannot be forgotten.

use weir_graph::DropReason;
use weir_wire::EtherType;
use weir_wire::vlan::Outer;

/// The number of a reason; 256, unknown, where the table has nothing that fits.
#[must_use]
pub const fn discard_code(reason: DropReason) -> u16 {
    use DropReason as R;
    match reason {
        // ICMP codes: network, host, protocol, port, fragmentation needed, administratively prohibited.
        R::NoRoute => 0,
        R::HostUnreachable | R::RouteUnreachable => 1,
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
        R::StormLimit | R::LacpFlood | R::PuntPoliced | R::PuntGone => 261,
        R::FrameTooLong | R::PacketTooBig => 262,
        R::BadSourceMac => 263,
        R::VlanMissing => 264,
        R::VlanUnknown => 265,
        R::NoMember => 267,
        R::SameMember => 268,
        R::Blackhole => 269,
        R::UnknownEthertype => 270,
        R::Ip6GroupFrame => 271,
        R::Ip4MartianDestination | R::Ip6MartianDestination => 272,
        R::Ip4MartianSource | R::Ip6MartianSource => 274,
        R::Ip4BadVersion
        | R::Ip4BadHeaderLength
        | R::Ip4BadLength
        | R::Ip4BadChecksum
        | R::Ip6BadVersion
        | R::Ip6BadLength => 275,
        // What too many wait for is a neighbour's address.
        R::HoldFull => 279,
        R::NotRouted | R::Ip4Multicast | R::Ip6Multicast | R::Ip4Broadcast => 281,
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
        R::IcmpTruncated | R::IcmpBadChecksum | R::UdpBadChecksum => 289,
        R::NdTruncated | R::NdHopLimit | R::NdMalformed | R::NdMartian | R::NdRedirect => 323,
        R::LacpMalformed | R::LacpOwnSystem => 323,
        R::LoopLimit | R::Stopped => 256,
    }
}

/// The number of a discarded packet: that of its reason, and where the table has several for the reason, by the address
/// in the packet's first bytes.
#[must_use]
pub fn discard_code_of(reason: DropReason, start: &[u8]) -> u16 {
    match reason {
        DropReason::Ip4MartianSource | DropReason::Ip6MartianSource => {
            martian_source(start).unwrap_or(discard_code(reason))
        }
        DropReason::Ip4MartianDestination | DropReason::Ip6MartianDestination => {
            martian_destination(start).unwrap_or(discard_code(reason))
        }
        _ => discard_code(reason),
    }
}

/// Destinations that are no loopback address: "local network" (0.0.0.0/8), and what has no number of its own, "not routable".
fn martian_destination(frame: &[u8]) -> Option<u16> {
    let tags = Outer::read(frame).ok()?;
    let packet = frame.get(tags.payload_at..)?;
    match tags.ethertype {
        EtherType::IPV4 => match packet.get(16..20)? {
            [127, ..] => None,
            [0, ..] => Some(298),
            _ => Some(281),
        },
        EtherType::IPV6 => {
            let [rest @ .., last] = packet.get(24..40)? else {
                return None;
            };
            let is_loopback = *last == 1 && rest.iter().all(|octet| *octet == 0);
            (!is_loopback).then_some(281)
        }
        _ => None,
    }
}

/// Group, limited broadcast, unspecified, class E; `None` of what is none of these, or lies under something else than tags.
fn martian_source(frame: &[u8]) -> Option<u16> {
    let tags = Outer::read(frame).ok()?;
    let packet = frame.get(tags.payload_at..)?;
    match tags.ethertype {
        EtherType::IPV4 => match packet.get(12..16)? {
            [255, 255, 255, 255] => Some(276),
            [0, ..] => Some(290),
            [224..=239, ..] => Some(273),
            [240..=255, ..] => Some(295),
            _ => None,
        },
        EtherType::IPV6 => match packet.get(8..24)? {
            [0xff, ..] => Some(273),
            source if source.iter().all(|octet| *octet == 0) => Some(290),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_are_nobodys_are_told_apart() {
        let frame = |tags: usize, source: &[u8]| {
            let (ethertype, before): (&[u8], usize) = if source.len() == 4 {
                (&[8, 0], 12)
            } else {
                (&[0x86, 0xdd], 8)
            };
            [
                &[0; 12],
                &[0x81, 0, 0, 1].repeat(tags)[..],
                ethertype,
                &vec![0; before],
                source,
            ]
            .concat()
        };
        let of4 = |tags, source: [u8; 4]| {
            discard_code_of(DropReason::Ip4MartianSource, &frame(tags, &source))
        };
        assert_eq!(
            [[224, 0, 0, 1], [239, 1, 2, 3], [255; 4]].map(|source| of4(0, source)),
            [273, 273, 276]
        );
        assert_eq!(
            [[127, 0, 0, 1], [0, 0, 0, 0], [240, 0, 0, 1]].map(|source| of4(2, source)),
            [274, 290, 295]
        );
        let mut loopback = [0; 16];
        loopback[15] = 1;
        let of6 =
            |source: [u8; 16]| discard_code_of(DropReason::Ip6MartianSource, &frame(1, &source));
        assert_eq!([[0; 16], [0xff; 16], loopback].map(of6), [290, 273, 274]);
        // What is cut off, or anything else, has the number of its reason.
        let whole = frame(1, &[224, 0, 0, 1]);
        assert!(
            (0..whole.len())
                .all(
                    |length| discard_code_of(DropReason::Ip4MartianSource, &whole[..length]) == 274
                )
        );
        assert_eq!(discard_code_of(DropReason::NoRoute, &whole), 0);
    }

    #[test]
    fn destinations_that_are_nobodys_are_told_apart() {
        let frame = |ethertype: &[u8], before: usize, destination: &[u8]| {
            [&[0; 12], ethertype, &vec![0; before], destination].concat()
        };
        let of4 = |destination: [u8; 4]| {
            let frame = frame(&[8, 0], 16, &destination);
            discard_code_of(DropReason::Ip4MartianDestination, &frame)
        };
        let destinations = [[127, 0, 0, 1], [0, 0, 0, 0], [0, 1, 2, 3], [241, 0, 0, 1]];
        assert_eq!(destinations.map(of4), [272, 298, 298, 281]);
        let of6 = |destination: [u8; 16]| {
            let frame = frame(&[0x86, 0xdd], 24, &destination);
            discard_code_of(DropReason::Ip6MartianDestination, &frame)
        };
        let mut loopback = [0; 16];
        loopback[15] = 1;
        assert_eq!([loopback, [0; 16]].map(of6), [272, 281]);
        let cut = &frame(&[8, 0], 16, &[0; 4])[..33];
        assert_eq!(discard_code_of(DropReason::Ip4MartianDestination, cut), 272);
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
