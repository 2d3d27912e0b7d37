//! What is known of a flow: a line with its key, a line that every packet changes, a line of facts that its first
//! packet told.

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

/// What every packet changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
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

/// A flow's record: three cache lines, of which a packet of a known flow touches two.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct FlowRecord {
    /// Which flow.
    pub key: Key,
    /// The key's hash, so that its bucket is found again.
    pub(super) hash: u64,
    /// What every packet changes.
    pub sums: Sums,
    /// What the first one told.
    pub facts: Facts,
}

const _: () = assert!(size_of::<FlowRecord>() == 192 && size_of::<Observation>() == 64);

impl Sums {
    #[inline(always)]
    pub(super) fn first(packet: &Observation, now: u64) -> Sums {
        Sums {
            packets: 1,
            octets: packet.octets.into(),
            first: now,
            last: now,
            shortest: packet.octets,
            longest: packet.octets,
            tcp_flags: packet.tcp_flags,
            ttl_low: packet.ttl,
            ttl_high: packet.ttl,
            fragment: packet.fragment,
            reason: EndReason::Idle,
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, packet: &Observation, now: u64) {
        self.packets += 1;
        self.octets += u64::from(packet.octets);
        self.last = now;
        self.shortest = self.shortest.min(packet.octets);
        self.longest = self.longest.max(packet.octets);
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
}
