//! What is known of a flow: as a packet changes it (`Hot`, one cache line), what only its first packet told, and both
//! together as they leave the table ([`FlowRecord`]).

use super::key::{Key, Kind, Parts};

/// FIN of TCP (RFC 9293, 3.1).
pub const FIN: u16 = 0x01;
/// SYN.
pub const SYN: u16 = 0x02;
/// RST.
pub const RST: u16 = 0x04;

/// Set in the label of a key when it is an entry of a label stack, and no flow label of IPv6.
pub const MPLS: u32 = 1 << 31;

/// A packet as the table is told of it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Observation {
    /// Which flow.
    pub key: Key,
    /// Octets from the IP header on; of L2 flows the frame's.
    pub octets: u32,
    /// `tcpControlBits` (IANA 6); zero of what is not TCP.
    pub tcp_flags: u16,
    /// TTL or hop limit, as it came.
    pub ttl: u8,
    /// `fragmentFlags` (IANA 197).
    pub fragment: u8,
}

/// Why a flow's record was made: `flowEndReason` (IANA 136).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// No packet for the idle timeout.
    #[default]
    Idle = 1,
    /// It went on for the active timeout.
    Active = 2,
    /// Its end was seen: FIN or RST.
    End = 3,
    /// The meter was asked to.
    Forced = 4,
    /// It had to make room for another one.
    Resources = 5,
}

/// What the first packet of a flow tells, and does not tell flows apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Facts {
    /// Addresses of the frame as it came.
    pub source_mac: [u8; 6],
    /// The other one.
    pub destination_mac: [u8; 6],
    /// Next hop: IPv4 in the last four octets; zero for none.
    pub next_hop: [u8; 16],
    /// The route's next hop when it is not a neighbour.
    pub bgp_next_hop: [u8; 16],
    /// Entries of the label stack below the top one, without TTL.
    pub labels: [u32; 4],
    /// Bits of the source's prefix.
    pub source_prefix: u8,
    /// Bits of the destination's prefix.
    pub destination_prefix: u8,
    /// Table of arrival.
    pub vrf: u16,
}

impl Facts {
    /// The frame's source address: of L2 flows it is part of the key.
    #[must_use]
    pub fn source_mac_of(&self, parts: &Parts) -> [u8; 6] {
        if parts.kind == Kind::L2 { last_six(parts.source) } else { self.source_mac }
    }

    /// The frame's destination address, likewise.
    #[must_use]
    pub fn destination_mac_of(&self, parts: &Parts) -> [u8; 6] {
        if parts.kind == Kind::L2 { last_six(parts.destination) } else { self.destination_mac }
    }
}

fn last_six(octets: [u8; 16]) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = octets;
    [a, b, c, d, e, f]
}

/// What all packets of a flow told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Packets.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
    /// Nanoseconds of the router's clock at the first packet.
    pub first: u64,
    /// And at the last.
    pub last: u64,
    /// Octets of the shortest packet.
    pub shortest: u32,
    /// And of the longest.
    pub longest: u32,
    /// All bits that were set in any packet.
    pub tcp_flags: u16,
    /// Lowest TTL.
    pub ttl_low: u8,
    /// Highest TTL.
    pub ttl_high: u8,
    /// All bits that were set in any packet.
    pub fragment: u8,
    /// Why the record was made.
    pub reason: EndReason,
}

/// A flow's record, as it leaves the table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct FlowRecord {
    /// Which flow.
    pub key: Key,
    /// What all of its packets told.
    pub sums: Sums,
    /// What the first one told.
    pub facts: Facts,
}

/// The one line that a packet of a known flow touches: what is compared, and what is summed up.
///
/// Of IPv4, `short` is the whole key. Of the others it has the hash in place of the addresses, which are compared in
/// `Cold`. Times are milliseconds that wrap after 49 days; a flow is looked at every ten seconds, so they never
/// lie so far back, and no flow has 2^32 packets by then.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Hot {
    pub(super) short: [u64; 4],
    octets: u64,
    pub(super) packets: u32,
    first: u32,
    last: u32,
    shortest: u16,
    longest: u16,
    tcp_flags: u16,
    ttl_low: u8,
    ttl_high: u8,
    fragment: u8,
}

/// What is needed when a flow begins and ends, and to compare the addresses of what is not IPv4.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Cold {
    pub(super) key: Key,
    /// The key's hash, so that its bucket is found again.
    pub(super) hash: u64,
    pub(super) facts: Facts,
}

const _: () = assert!(size_of::<Hot>() == 64 && size_of::<Cold>() == 128 && size_of::<Observation>() == 64);

/// Milliseconds that wrap.
#[inline(always)]
pub(super) fn milliseconds(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

impl Hot {
    /// Whether it is the flow with this short key. Word by word: the words were made a moment ago, and a load of all
    /// of them at once would have to wait until they are in the cache.
    #[inline(always)]
    pub(super) fn is(&self, short: [u64; 4]) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.short, short);
        a == e && b == f && c == g && d == h
    }

    #[inline(always)]
    pub(super) fn begin(short: [u64; 4], packet: &Observation, moment: u32) -> Hot {
        let length = packet.octets.min(u32::from(u16::MAX)) as u16;
        Hot {
            short,
            octets: packet.octets.into(),
            packets: 1,
            first: moment,
            last: moment,
            shortest: length,
            longest: length,
            tcp_flags: packet.tcp_flags,
            ttl_low: packet.ttl,
            ttl_high: packet.ttl,
            fragment: packet.fragment,
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, packet: &Observation, moment: u32) {
        let length = packet.octets.min(u32::from(u16::MAX)) as u16;
        self.packets = self.packets.wrapping_add(1);
        self.octets += u64::from(packet.octets);
        self.last = moment;
        self.shortest = self.shortest.min(length);
        self.longest = self.longest.max(length);
        self.tcp_flags |= packet.tcp_flags;
        self.ttl_low = self.ttl_low.min(packet.ttl);
        self.ttl_high = self.ttl_high.max(packet.ttl);
        self.fragment |= packet.fragment;
    }

    /// Whether its end was seen.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.tcp_flags & (FIN | RST) != 0
    }

    /// Nanoseconds of the router's clock at the first and the last packet.
    pub(super) fn times(&self, now: u64) -> (u64, u64) {
        let at = |moment| (now / 1_000_000).saturating_sub(milliseconds(now).wrapping_sub(moment).into()) * 1_000_000;
        (at(self.first), at(self.last))
    }

    /// All of it, in full width.
    pub(super) fn sums(&self, now: u64, reason: EndReason) -> Sums {
        let (first, last) = self.times(now);
        Sums {
            packets: self.packets.into(),
            octets: self.octets,
            first,
            last,
            shortest: self.shortest.into(),
            longest: self.longest.into(),
            tcp_flags: self.tcp_flags,
            ttl_low: self.ttl_low,
            ttl_high: self.ttl_high,
            fragment: self.fragment,
            reason,
        }
    }
}
