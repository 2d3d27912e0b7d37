//! What a packet tells ([`Reading`], one cache line) and what is known of a flow: as a packet changes it (`Hot`, one cache
//! line), what only its first packet determines ([`Facts`], another), and both as they leave the table and reach the cold side
//! (`Departed`, [`FlowRecord`]).

use zerocopy::{FromBytes, Immutable, IntoBytes};

use weir_cpu::sum_up;

use super::index::NONE;
use super::key::{Addresses, Extra, ForwardingOutcome, Key, Kind, Parts, Rest, Secret, Short};

/// FIN of TCP (RFC 9293, 3.1).
pub const FIN: u16 = 0x01;
/// SYN.
pub const SYN: u16 = 0x02;
/// RST.
pub const RST: u16 = 0x04;

/// Set in the label of a key when it is an entry of a label stack, and no flow label of IPv6.
pub const MPLS: u32 = 1 << 31;

/// What a packet tells: which flow it is of, and what is summed up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    /// Which flow.
    pub key: Key,
    /// What the record set selects besides, that the key has no field for.
    pub extra: Extra,
    /// Octets from the IP header on; of L2 flows the frame's.
    pub octets: u32,
    /// `tcpControlBits` (IANA 6); zero of what is not TCP.
    pub tcp_flags: u16,
    /// TTL or hop limit, as it came.
    pub ttl: u8,
    /// `fragmentFlags` (IANA 197).
    pub fragment: u8,
}

/// An observation as the table wants it: one cache line, with the hash, and the numbers as they are summed up.
///
/// The addresses of what is not IPv4 lie beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Reading {
    pub(crate) short: Short,
    pub(crate) hash: u64,
    /// See [`sizes_of`].
    pub(crate) sizes: u64,
    pub(crate) octets: u32,
    /// See [`marks_of`].
    pub(crate) marks: u32,
    /// Where its flow's record may be: the table's affair.
    pub(super) place: u32,
}

/// What a plain packet tells, half a cache line. The last word of its key, which those of untagged IPv4 do not have, lies elsewhere; what it shares with others lies elsewhere ([`Share`]), where it goes as
/// well ([`ForwardingOutcome`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Slip {
    /// The first two words of a [`Short`].
    pub(crate) key: [u64; 2],
    /// See [`marks_of`], in the upper half; and [`sizes_of`], the length is all of its octets.
    pub(crate) marks_and_sizes: [u64; 2],
}

impl Slip {
    /// Octets from the IP header on.
    #[inline(always)]
    pub(crate) fn octets(&self) -> u32 {
        length_of(self.sizes())
    }

    /// See [`sizes_of`].
    #[inline(always)]
    pub(crate) fn sizes(&self) -> u64 {
        self.marks_and_sizes[1]
    }

    /// See [`marks_of`].
    #[inline(always)]
    pub(crate) fn marks(&self) -> u32 {
        (self.marks_and_sizes[0] >> 32) as u32
    }
}

/// What plain packets have in common that came by one interface under one record set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The third word of their keys, but for where they go.
    pub(crate) interfaces: u64,
    pub(crate) rest: Rest,
    /// The mark of all of them: whether what only a flow's first packet tells is wanted.
    pub(crate) facts: u32,
}

impl Share {
    /// The key of one.
    #[inline(always)]
    pub(super) fn short(&self, slip: &Slip, tail: u64, outcome: ForwardingOutcome) -> Short {
        Short::of_plain(slip.key, (self.interfaces, tail), outcome)
    }

    /// Whether this is not the key of one; of packets that have a `STATUS`, or never one.
    #[inline(always)]
    pub(super) fn differs<const STATUS: bool>(
        &self,
        key: &Short,
        (slip, tail): (&Slip, u64),
        outcome: ForwardingOutcome,
    ) -> bool {
        debug_assert!(STATUS || !outcome.has_status());
        key.differs(
            &slip.key,
            (self.interfaces, tail),
            if STATUS {
                outcome
            } else {
                outcome.with_status(0)
            },
        )
    }

    /// In full width, with its hash.
    #[inline(always)]
    pub(crate) fn reading(
        &self,
        (slip, tail): (&Slip, u64),
        outcome: ForwardingOutcome,
        hash: u64,
    ) -> Reading {
        Reading {
            short: self.short(slip, tail, outcome),
            hash,
            sizes: slip.sizes(),
            octets: slip.octets(),
            marks: slip.marks() | self.facts,
            place: NONE,
        }
    }
}

/// Length and TTL of a packet, and in the upper half both once more with all bits turned: the lesser ones of several such words tell the
/// least of them and the most.
#[inline(always)]
pub(crate) fn sizes_of(length: u16, ttl: u8) -> u64 {
    (u64::from(length) | u64::from(ttl) << 16 | u64::from(length) << 32 | u64::from(ttl) << 48)
        ^ TURNED
}

/// The bits of [`sizes_of`] that are turned.
pub(crate) const TURNED: u64 = !0 << 32;

/// Of the lower half.
fn length_of(sizes: u64) -> u32 {
    sizes as u32 & 0xffff
}

fn ttl_of(sizes: u64) -> u8 {
    (sizes >> 16) as u8
}

/// As the lower half has them.
fn upper_half(sizes: u64) -> u64 {
    (sizes ^ TURNED) >> 32
}

/// Milliseconds: more than three ticks in which records are looked at.
const LIVELY: u32 = 250;

/// In `marks`: the flags of TCP in the lower half, as they are on the wire, those of fragments in the next octet, and in the
/// highest two bits what a flow has beside its line. In a record that leaves, the reason stands between them.
pub(crate) const FRAGMENT_AT: u32 = 16;
const REASON_AT: u32 = 24;
/// A flag of TCP that may end a flow, or begin another one.
pub(crate) const TURNS: u32 = ENDS | BEGINS;
pub(crate) const BEGINS: u32 = SYN.swap_bytes() as u32;
const ENDS: u32 = (FIN | RST).swap_bytes() as u32;
const REASON: u32 = 7 << REASON_AT;
/// It is not IPv4: addresses are compared as well.
pub(crate) const WIDE: u32 = 1 << 30;
/// The record set wants what only a flow's first packet tells.
pub(crate) const FACTS: u32 = 1 << 31;

/// The flags of a packet; those of TCP as they are on the wire.
#[inline(always)]
pub(crate) fn marks_of(tcp_flags: u16, fragment: u8) -> u32 {
    u32::from(tcp_flags) | u32::from(fragment) << FRAGMENT_AT
}

impl Reading {
    /// The observation of a packet, on the slow path.
    #[must_use]
    pub fn new(observation: &Observation, secret: &Secret) -> (Reading, Addresses) {
        let Observation {
            key,
            extra,
            octets,
            tcp_flags,
            ttl,
            fragment,
        } = *observation;
        let (short, addresses) = key.split(secret, &extra);
        let reading = Reading {
            short,
            hash: secret.hash(&short),
            sizes: sizes_of(octets.min(u32::from(u16::MAX)) as u16, ttl),
            octets,
            marks: marks_of(tcp_flags.swap_bytes(), fragment)
                | if short.is_ip4() { FACTS } else { FACTS | WIDE },
            place: NONE,
        };
        (reading, addresses)
    }

    /// Whether a flow that it begins is a line and nothing else, and goes on.
    #[inline(always)]
    pub(super) fn is_simple(&self) -> bool {
        self.marks & (WIDE | FACTS | ENDS) == 0
    }

    /// Whether its addresses lie elsewhere.
    #[cfg(test)]
    pub(super) fn is_wide(&self) -> bool {
        self.marks & WIDE != 0
    }

    /// Whether it ends its flow.
    #[inline(always)]
    pub(super) fn ends(&self) -> bool {
        self.marks & ENDS != 0
    }

    /// Its flow's record may be here.
    pub(crate) fn guess_is(&mut self, place: u32) {
        self.place = place;
    }

    /// It is not known any more where its flow's record may be.
    pub(crate) fn forget_place(&mut self) {
        self.place = NONE;
    }
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
#[repr(C, align(64))]
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
}

impl Facts {
    /// Nothing is known.
    pub(super) const NONE: Facts = Facts {
        source_mac: [0; 6],
        destination_mac: [0; 6],
        next_hop: [0; 16],
        bgp_next_hop: [0; 16],
        labels: [0; 4],
        source_prefix: 0,
        destination_prefix: 0,
    };

    /// The frame's source address: of L2 flows it is part of the key.
    #[must_use]
    pub fn source_mac_of(&self, parts: &Parts) -> [u8; 6] {
        if parts.kind == Kind::L2 {
            last_six(parts.source)
        } else {
            self.source_mac
        }
    }

    /// The frame's destination address, likewise.
    #[must_use]
    pub fn destination_mac_of(&self, parts: &Parts) -> [u8; 6] {
        if parts.kind == Kind::L2 {
            last_six(parts.destination)
        } else {
            self.destination_mac
        }
    }
}

fn last_six(octets: [u8; 16]) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = octets;
    [a, b, c, d, e, f]
}

/// The sums over all packets of a flow.
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
    /// When in the millisecond of `first` the first packet came, in 1/256 of it.
    pub first_fraction: u8,
    /// What the first packet was of a TCP connection.
    pub opening: Opening,
    /// Why the record was made.
    pub reason: EndReason,
}

/// What the first packet of a flow was of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Neither of the following, or not TCP.
    #[default]
    None,
    /// SYN without ACK: from the initiator.
    Syn,
    /// SYN with ACK: from the responder.
    SynAck,
}

/// AS numbers around a flow, from BGP; 0 where they are not known, and of what begins or ends in this AS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsNumbers {
    /// `bgpSourceAsNumber` (IANA 16): the AS that the source is in.
    pub source: u32,
    /// `bgpDestinationAsNumber` (17): the one that the destination is in.
    pub destination: u32,
    /// `bgpNextAdjacentAsNumber` (128): the next one on the path to the destination.
    pub next: u32,
    /// `bgpPrevAdjacentAsNumber` (129): the next one on the path to the source.
    pub previous: u32,
}

/// A flow's record, as it leaves the table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct FlowRecord {
    /// Which flow.
    pub key: Key,
    /// The sums over all of its packets.
    pub sums: Sums,
    /// Number of the table of arrival: nobody knows before it is looked up.
    pub vrf: u32,
    /// AS numbers of its routes, likewise.
    pub numbers: AsNumbers,
    /// The facts of the first one.
    pub facts: Facts,
}

/// The one line that a packet of a known flow touches: what is compared, and what is summed up.
///
/// Times are milliseconds that wrap after 49 days; a flow is looked at every ten seconds, so they never
/// lie so far back, and no flow has 2^32 packets by then.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(64))]
pub(super) struct Hot {
    pub(super) short: Short,
    /// Octets in the lower 54 bits, above them the fraction of the first one's millisecond and its flags SYN and ACK (65,535 seconds
    /// at 2 Tbit/s stay below 2^54 octets); packets, and in the upper half the first one's time; the last one's, and in the upper half their marks; and their sizes, as
    /// [`sizes_of`] has them.
    sums: [u64; 4],
}

/// A record on its way to the cold side, as it lay in the table: there it becomes a [`FlowRecord`].
///
/// Facts and addresses are those of another flow when its marks do not speak of any.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Departed {
    hot: Hot,
    facts: Facts,
    addresses: Addresses,
}

const _: () =
    assert!(size_of::<Hot>() == 64 && size_of::<Facts>() == 64 && size_of::<Reading>() == 64);

impl Departed {
    /// `short` is the flow's as it leaves.
    #[inline(always)]
    pub(super) fn fill(
        &mut self,
        (hot, short): (&Hot, Short),
        reason: EndReason,
        (facts, addresses): (&Facts, &Addresses),
    ) {
        self.hot = *hot;
        self.hot.short = short;
        self.hot.sums[2] =
            hot.sums[2] & !(u64::from(REASON) << 32) | (reason as u64) << (32 + REASON_AT);
        if hot.marks() & FACTS != 0 {
            self.facts = *facts;
        }
        if hot.marks() & WIDE != 0 {
            self.addresses = *addresses;
        }
    }

    /// In full width; the packets came before `now`, by the router's clock.
    pub(super) fn record(&self, now: u64) -> FlowRecord {
        let reason = match (self.hot.marks() & REASON) >> REASON_AT {
            2 => EndReason::Active,
            3 => EndReason::End,
            4 => EndReason::Forced,
            5 => EndReason::Resources,
            _ => EndReason::Idle,
        };
        let key = Key::join(&self.hot.short, &self.addresses);
        let facts = if self.hot.marks() & FACTS == 0 {
            Facts::NONE
        } else {
            self.facts
        };
        FlowRecord {
            key,
            sums: self.hot.sums(now, reason),
            vrf: 0,
            numbers: AsNumbers::default(),
            facts,
        }
    }
}

/// Bits of the first sum of a [`Hot`].
const FRACTION_AT: u32 = 54;
const OPENING_AT: u32 = 62;
const OCTETS: u64 = (1 << FRACTION_AT) - 1;
/// Bits of the marks: the flags of TCP as they are on the wire.
const SYN_AT: u32 = SYN.swap_bytes().trailing_zeros();
const ACK_AT: u32 = 0x10_u16.swap_bytes().trailing_zeros();

/// When in its millisecond a moment is, as the first sum of a [`Hot`] has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fraction(u64);

impl Fraction {
    #[inline(always)]
    pub(super) fn of(now: u64) -> Fraction {
        Fraction((now % 1_000_000 * 256 / 1_000_000) << FRACTION_AT)
    }
}

/// Milliseconds that wrap.
#[inline(always)]
pub(super) fn milliseconds(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

impl Hot {
    /// Of no flow.
    pub(super) const NONE: Hot = Hot {
        short: Short::NONE,
        sums: [0; 4],
    };

    #[inline(always)]
    pub(super) fn begin(packet: &Reading, moment: u32, fraction: Fraction) -> Hot {
        let moment = u64::from(moment);
        // SYN, and ACK if both are set.
        let syn = packet.marks >> SYN_AT & 1;
        let opening = u64::from(syn | (packet.marks >> ACK_AT & syn) << 1);
        let marks = u64::from(packet.marks) << 32;
        Hot {
            short: packet.short,
            sums: [
                u64::from(packet.octets) | fraction.0 | opening << OPENING_AT,
                1 | moment << 32,
                moment | marks,
                packet.sizes,
            ],
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, packet: &Reading, moment: u32) {
        // What it has beside its line is of its first packet.
        let marks = u64::from(packet.marks & !(WIDE | FACTS)) << 32;
        sum_up(
            &mut self.sums,
            [packet.octets.into(), 1],
            &[marks, packet.sizes],
            moment,
        );
    }

    /// As [`Hot::add`], of a flow whose key is the packet's.
    #[inline(always)]
    pub(super) fn add_plain(&mut self, packet: &Slip, moment: u32) {
        sum_up(
            &mut self.sums,
            [packet.octets().into(), 1],
            &packet.marks_and_sizes,
            moment,
        );
    }

    /// Whether its addresses lie elsewhere.
    #[inline(always)]
    pub(super) fn is_wide(&self) -> bool {
        self.marks() & WIDE != 0
    }

    #[inline(always)]
    pub(super) fn octets(&self) -> u64 {
        self.sums[0] & OCTETS
    }

    #[inline(always)]
    pub(super) fn packets(&self) -> u32 {
        self.sums[1] as u32
    }

    #[inline(always)]
    fn first(&self) -> u32 {
        (self.sums[1] >> 32) as u32
    }

    #[inline(always)]
    fn last(&self) -> u32 {
        self.sums[2] as u32
    }

    #[inline(always)]
    fn marks(&self) -> u32 {
        (self.sums[2] >> 32) as u32
    }

    #[inline(always)]
    fn sizes(&self) -> u64 {
        self.sums[3]
    }

    /// Whether something of it lies beside its line.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        self.marks() & (WIDE | FACTS) != 0
    }

    /// Whether the facts of its first packet do.
    #[inline(always)]
    pub(super) fn has_facts(&self) -> bool {
        self.marks() & FACTS != 0
    }

    /// Whether it had several packets, the last one within the time that a tick may be late.
    #[inline(always)]
    pub(super) fn is_lively(&self, moment: u32) -> bool {
        self.packets() > 1 && self.quiet_for(moment) < LIVELY
    }

    /// Milliseconds since its last packet.
    #[inline(always)]
    pub(super) fn quiet_for(&self, moment: u32) -> u32 {
        moment.wrapping_sub(self.last())
    }

    /// Whether its end was seen.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.marks() & ENDS != 0
    }

    /// Nanoseconds of the router's clock at the first and the last packet.
    pub(super) fn times(&self, now: u64) -> (u64, u64) {
        let at = |moment| {
            (now / 1_000_000).saturating_sub(milliseconds(now).wrapping_sub(moment).into())
                * 1_000_000
        };
        (at(self.first()), at(self.last()))
    }

    /// All of it, in full width.
    pub(super) fn sums(&self, now: u64, reason: EndReason) -> Sums {
        let (first, last) = self.times(now);
        Sums {
            packets: self.packets().into(),
            octets: self.octets(),
            first,
            last,
            shortest: length_of(self.sizes()),
            longest: length_of(upper_half(self.sizes())),
            tcp_flags: (self.marks() as u16).swap_bytes(),
            ttl_low: ttl_of(self.sizes()),
            ttl_high: ttl_of(upper_half(self.sizes())),
            fragment: (self.marks() >> FRAGMENT_AT) as u8,
            first_fraction: (self.sums[0] >> FRACTION_AT) as u8,
            opening: match self.sums[0] >> OPENING_AT {
                1 => Opening::Syn,
                3 => Opening::SynAck,
                _ => Opening::None,
            },
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the first packet was, and when it came, is kept beside the octets, whatever is added.
    #[test]
    fn the_first_packet_is_kept() {
        for (flags, opening) in [
            (0x02, Opening::Syn),
            (0xc2, Opening::Syn),
            (0x12, Opening::SynAck),
            (0x10, Opening::None),
            (0, Opening::None),
        ] {
            let packet = |tcp_flags: u16| Reading {
                octets: 1500,
                marks: marks_of(tcp_flags.swap_bytes(), 0),
                ..Reading::default()
            };
            let now = 7_000_000_000 + 999_999;
            let mut hot = Hot::begin(&packet(flags), milliseconds(now), Fraction::of(now));
            for _ in 0..1_000_000 {
                hot.add(&packet(0x12), milliseconds(now));
            }
            let sums = hot.sums(now, EndReason::Idle);
            assert_eq!((sums.opening, sums.first_fraction), (opening, 255));
            assert_eq!((sums.octets, sums.packets), (1_000_001 * 1500, 1_000_001));
            assert_eq!((sums.first, hot.octets()), (7_000_000_000, sums.octets));
        }
    }
}
