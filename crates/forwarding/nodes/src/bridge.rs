//! bridge: learns where stations are, and sends each frame to where its receiver is.
//!
//! One pass reads both addresses of all frames and asks the cache for their lines of the table; the second
//! learns senders and finds receivers. A frame for a known station leaves by that station's member. One
//! for a group or an unknown station goes to all other members that can take it, as copies of
//! one list that serves the whole vector. What is for the routed side, or to be seen by it, goes to bvi-input. Never back to the member it came in by, never to another
//! of its split-horizon group.
//!
//! Where nothing lies between receipt and the bridge, eth-input takes frames between known stations across in its own
//! pass ([`Known`]), and only the others come here.
//!
//! Frames of protocols between neighbours (IEEE 802.1Q-2022 table 8-1) are not forwarded by any bridge.

use std::hint::cold_path;

use weir_buf::{Pkt, VECTOR};
use weir_fib::{Heard, Key, MacTable, Station};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Features, Input, Interface};
use weir_wire::EthernetHeader;

use crate::bridge_domain::{BridgeDomain, Exit, Member};
use crate::features::{self, FeatureArc};
use crate::frame::Egress;
use crate::{Tables, vector_loops};

pub(crate) struct Bridge {
    /// Receiver and sender of each frame.
    stations: Box<[(Key, Key); VECTOR]>,
}

impl Default for Bridge {
    fn default() -> Bridge {
        let nobody = MacTable::new(0, 0, [0; 2]).key(NOBODY);
        Bridge {
            stations: Box::new([(nobody, nobody); VECTOR]),
        }
    }
}

const BVI_INPUT: Next = Next(0);
const TAG: usize = 4;
const NOBODY: Station = Station::new([0; 6]);

impl Node<Tables> for Bridge {
    const SPEC: NodeSpec = NodeSpec {
        name: "bridge",
        about: "Learns stations and sends frames to the members of a bridge domain that they are behind.",
        nexts: &["bvi-input"],
        reasons: &[
            DropReason::InterfaceDown,
            DropReason::TooShort,
            DropReason::BadSourceMac,
            DropReason::MacBound,
            DropReason::ReservedMac,
            DropReason::SameMember,
            DropReason::SplitHorizon,
            DropReason::ForwardOff,
            DropReason::FloodOff,
            DropReason::StormLimit,
            DropReason::NoMember,
            DropReason::FrameTooLong,
            DropReason::NoBuffer,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let Some(interface) = packets.first().map(Pkt::interface) else {
            return Outcome::Each;
        };
        // Ports deliver one by one; tags and tunnels mix.
        let differ = packets.iter().fold(0, |differ, packet| {
            differ | (packet.interface() ^ interface)
        });
        if differ != 0 {
            cold_path();
            return self.runs(cx, packets, verdicts);
        }
        self.run(cx, interface, packets, verdicts)
            .map_or(Outcome::Each, Outcome::AllOut)
    }
}

/// The usual case: both stations are known, and the receiver is behind another member that takes the frame.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    stations: &'a MacTable,
    exits: &'a [Exit],
    number: u16,
    /// The split-horizon group that the member does not speak to; none has the number 256.
    shunned: u16,
    second: u16,
}

impl<'a> Known<'a> {
    #[inline(always)]
    fn new(domain: &'a BridgeDomain, member: &Member, number: u16, now: u64) -> Known<'a> {
        Known {
            stations: &domain.stations,
            exits: domain.exits(),
            number,
            shunned: if member.group == 0 {
                256
            } else {
                u16::from(member.group)
            },
            second: (now / 1_000_000_000) as u16,
        }
    }

    /// For frames of an interface that is this member.
    #[inline(always)]
    pub(crate) fn of(
        cx: &Cx<'a, Tables>,
        interface: &Interface,
        domain: u16,
        number: u16,
    ) -> Option<Known<'a>> {
        if cx.is_one_step() || !features::is_open(FeatureArc::Bridge, interface, Features::EMPTY) {
            return None;
        }
        let domain = cx.world.bridge(domain)?;
        Some(Known::new(domain, domain.member(number)?, number, cx.now))
    }

    /// Receiver and sender of a frame. Asks the cache for their lines of the table.
    #[inline(always)]
    pub(crate) fn pair(self, packet: &Pkt) -> (Key, Key) {
        let (to, from) = packet
            .data()
            .first_chunk()
            .map_or((NOBODY, NOBODY), Station::pair);
        let (to, from) = (self.stations.key(to), self.stations.key(from));
        self.stations.prefetch(to);
        self.stations.prefetch(from);
        (to, from)
    }

    /// The interface that a frame of `len` bytes leaves by.
    #[inline(always)]
    pub(crate) fn exit(self, len: usize, to: Key, from: Key) -> Option<u32> {
        if !self.stations.is_known(from, self.number, self.second) {
            return None;
        }
        let number = self.stations.find(to)?;
        let exit = self.exits.get(number as usize)?;
        let fits = (len as u32).wrapping_sub(EthernetHeader::LEN as u32) < exit.room;
        (fits && number != self.number && exit.group != self.shunned).then_some(exit.interface)
    }
}

/// What a run of frames has in common.
struct Way<'a> {
    known: Known<'a>,
    domain: &'a BridgeDomain,
    member: &'a Member,
    /// The list of members for frames to groups and to unknown stations, and the longest frame that all take.
    lists: [Option<(Verdict, usize)>; 2],
}

impl Bridge {
    /// A vector of several interfaces.
    #[inline(never)]
    fn runs(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        vector_loops::each_run(
            packets,
            verdicts,
            Pkt::interface,
            |interface, packets, verdicts| {
                self.run(cx, interface, packets, verdicts);
            },
        );
        Outcome::Each
    }

    /// Frames of one interface. The verdicts are written; returned is the interface that all leave by, if
    /// it is one.
    #[inline(always)]
    fn run(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: u32,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Option<u32> {
        let world = cx.world;
        let place = world
            .interface(interface)
            .and_then(|interface| match interface.input {
                Input::Bridge { domain, member } => Some((domain, member)),
                _ => interface.bvi_of,
            });
        let way = place.and_then(|(domain, member)| {
            world
                .bridge(domain)
                .and_then(|domain| Some((domain, domain.member(member)?, member)))
        });
        let Some((domain, member, number)) = way else {
            verdicts.fill(Verdict::drop(DropReason::InterfaceDown));
            return None;
        };
        let known = Known::new(domain, member, number, cx.now);
        let mut way = Way {
            known,
            domain,
            member,
            lists: [None; 2],
        };
        let stations = &mut self.stations;
        vector_loops::each_packet(packets, |place, packet| {
            stations[place % VECTOR] = known.pair(packet)
        });
        let mut egress = Egress::default();
        verdicts.fill(Verdict::OUT);
        for (place, packet) in packets.iter_mut().enumerate() {
            let (to, from) = stations[place % VECTOR];
            if let Some(out) = known.exit(packet.total_len(), to, from) {
                packet.set_aux(out);
                egress.note(out);
            } else {
                cold_path();
                egress.incomplete = true;
                verdicts[place] = way.odd(cx, packet, to, from);
            }
        }
        egress.only()
    }
}

impl Way<'_> {
    /// Everything else.
    #[inline(never)]
    fn odd(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt, to: Key, from: Key) -> Verdict {
        if packet.len() < EthernetHeader::LEN {
            return Verdict::drop(DropReason::TooShort);
        }
        if !from.station().is_unicast() {
            return Verdict::drop(DropReason::BadSourceMac);
        }
        if !self.hear(cx.worker, from) {
            return Verdict::drop(DropReason::MacBound);
        }
        if is_reserved(to.station()) {
            return Verdict::drop(DropReason::ReservedMac);
        }
        match self.domain.stations.find(to) {
            Some(number) if to.station().is_unicast() => self.forward(packet, number),
            _ if to.station().is_unicast() => self.flood(cx, packet, true),
            _ => self.for_group(cx, packet),
        }
    }

    /// Learns the sender; `false` when it cannot be where it seems to be.
    fn hear(&self, worker: usize, from: Key) -> bool {
        let domain = self.domain;
        if !domain.settings.learn {
            return !domain.stations.is_bound_elsewhere(from, self.known.number);
        }
        let heard = domain
            .stations
            .hear(from, self.known.number, self.known.second);
        if let Some(counters) = domain.counters.get(worker) {
            match heard {
                Heard::Known | Heard::Bound => {}
                Heard::New => counters.learned.add(1),
                Heard::Moved => counters.moved.add(1),
                Heard::Full => counters.not_learned.add(1),
                Heard::Instead => {
                    counters.learned.add(1);
                    counters.displaced.add(1);
                }
            }
        }
        heard != Heard::Bound
    }

    /// To a station that is known.
    fn forward(&self, packet: &mut Pkt, number: u16) -> Verdict {
        let Some(member) = self.domain.member(number) else {
            return Verdict::drop(DropReason::NoMember);
        };
        if !self.domain.settings.forward {
            return Verdict::drop(DropReason::ForwardOff);
        }
        if number == self.known.number {
            return Verdict::drop(DropReason::SameMember);
        }
        if self.is_grouped_with(member) {
            return Verdict::drop(DropReason::SplitHorizon);
        }
        if length(packet) > member.longest as usize {
            return Verdict::drop(DropReason::FrameTooLong);
        }
        packet.set_aux(member.interface);
        verdict_for(member)
    }

    fn is_grouped_with(&self, member: &Member) -> bool {
        member.group != 0 && member.group == self.member.group
    }

    /// A frame for a group: a question that need not be flooded, or to everybody.
    fn for_group(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt) -> Verdict {
        let domain = self.domain;
        let hosts = &domain.hosts;
        let Some(question) = hosts.asked_for(packet) else {
            return self.flood(cx, packet, false);
        };
        if let Some(counters) = domain.counters.get(cx.worker) {
            counters.questions.add(1);
        }
        if hosts.forwards {
            question.address(packet);
            let to = domain.stations.key(Station::new(question.mac.0));
            return match domain.stations.find(to) {
                Some(number) => self.forward(packet, number),
                None => self.flood(cx, packet, true),
            };
        }
        match question.answer(packet) {
            Some(()) => {
                packet.set_aux(self.member.interface);
                verdict_for(self.member)
            }
            None => self.flood(cx, packet, false),
        }
    }

    /// To everybody who may have it.
    fn flood(&mut self, cx: &mut Cx<'_, Tables>, packet: &Pkt, unknown: bool) -> Verdict {
        let (domain, meters) = (self.domain, &self.member.meters);
        let (wanted, limit, meter) = if unknown {
            (
                domain.settings.flood_unknown,
                domain.storms.unknown,
                &meters.unknown,
            )
        } else {
            (
                domain.settings.flood_groups,
                domain.storms.groups,
                &meters.groups,
            )
        };
        if !wanted {
            return Verdict::drop(DropReason::FloodOff);
        }
        if let Some(rate) = limit.filter(|_| !self.member.is_bvi)
            && !meter.takes(rate, cx.now)
        {
            return Verdict::drop(DropReason::StormLimit);
        }
        let verdict = self.list(cx, length(packet), unknown);
        if let (Some(counters), Some(_)) = (domain.counters.get(cx.worker), verdict) {
            let counter = if unknown {
                &counters.flooded_unknown
            } else {
                &counters.flooded_groups
            };
            counter.add(1);
        }
        verdict.unwrap_or(Verdict::drop(DropReason::NoMember))
    }

    /// The list of members for a frame of this length; one list serves all frames that every member takes.
    fn list(&mut self, cx: &mut Cx<'_, Tables>, length: usize, unknown: bool) -> Option<Verdict> {
        if let Some((verdict, longest)) = self.lists[usize::from(unknown)]
            && length <= longest
        {
            return Some(verdict);
        }
        let (world, domain) = (cx.world, self.domain);
        let (mut shortest, mut too_long, mut count) = (usize::MAX, 0, 0);
        let from = self.known.number;
        let targets = domain
            .members
            .iter()
            .enumerate()
            .filter_map(|(number, member)| {
                let member = member.as_ref()?;
                // A BVI has a static entry: what is for an unknown station is not for it.
                if number == from as usize
                    || self.is_grouped_with(member)
                    || (unknown && member.is_bvi)
                {
                    return None;
                }
                world
                    .interface(member.interface)
                    .filter(|interface| interface.can_send)?;
                if length > member.longest as usize {
                    too_long += 1;
                    return None;
                }
                shortest = shortest.min(member.longest as usize);
                count += 1;
                Some((verdict_for(member), member.interface))
            });
        let verdict = cx.replicate(targets);
        if let Some(counters) = domain.counters.get(cx.worker) {
            counters.too_long.add(too_long);
        }
        if count == 0 {
            return None;
        }
        if too_long == 0 {
            self.lists[usize::from(unknown)] = Some((verdict, shortest));
        }
        Some(verdict)
    }
}

/// Out of a member's interface, or in by the BVI.
fn verdict_for(member: &Member) -> Verdict {
    if member.is_bvi {
        Verdict::to(BVI_INPUT)
    } else {
        Verdict::OUT
    }
}

/// The length that counts against an MTU: without one VLAN tag.
fn length(packet: &Pkt) -> usize {
    let tagged =
        EthernetHeader::read(packet.data()).is_some_and(|(header, _)| header.ethertype().is_tag());
    packet
        .total_len()
        .saturating_sub(if tagged { TAG } else { 0 })
}

/// 01:80:c2:00:00:00 to 01:80:c2:00:00:0f.
fn is_reserved(to: Station) -> bool {
    matches!(to.octets(), [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
}
