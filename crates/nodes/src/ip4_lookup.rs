//! ip4-lookup: destination to group, group to adjacency.
//!
//! A table that stays in the cache is asked packet by packet; in a larger one the whole vector is
//! looked up level by level, so that the loads of 256 packets overlap. A group of one
//! path needs nothing more; with several, the flow's hash chooses and is kept in the metadata.

use weir_buf::{Flags, Pkt, VECTOR};
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::Ipv4Header;

use crate::icmp4_error::{NET_UNREACHABLE, complain};
use crate::{Tables, flow_hash4};

pub(crate) struct Ip4Lookup {
    destinations: Box<[u32; VECTOR]>,
    groups: Box<[u32; VECTOR]>,
}

impl Default for Ip4Lookup {
    fn default() -> Ip4Lookup {
        Ip4Lookup { destinations: Box::new([0; VECTOR]), groups: Box::new([0; VECTOR]) }
    }
}

const IP4_REWRITE: Next = Next(0);
const IP4_LOCAL: Next = Next(1);
const IP4_GLEAN: Next = Next(2);
const ICMP4_ERROR: Next = Next(3);

impl Node<Tables> for Ip4Lookup {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-lookup",
        about: "Finds the longest matching prefix and chooses among its paths by flow.",
        nexts: &["ip4-rewrite", "ip4-local", "ip4-glean", "icmp4-error"],
        reasons: &[DropReason::Blackhole],
    };

    #[inline(always)]
    fn process(&mut self, cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
        let nexthops = cx.world.nexthops.view();
        verdicts.fill(Verdict::to(IP4_REWRITE));
        let mut odd = false;
        let mut decide = |packet: &mut Pkt, group: u32, verdict: &mut Verdict| {
            let (adjacency, neighbor) = nexthops.choose_neighbor(group, || hash(packet));
            packet.set_aux(adjacency);
            packet.clear_flags(Flags::PLAIN_IP4);
            if !neighbor {
                odd = true;
                *verdict = elsewhere(nexthops.kind(adjacency), packet);
            }
        };
        match &cx.world.fib4[..] {
            [only] if only.is_small() => {
                let fib = &**only;
                for (packet, verdict) in packets.iter_mut().zip(verdicts) {
                    let group = fib.lookup(destination_of(packet));
                    decide(packet, group, verdict);
                }
            }
            _ => {
                self.look_up(cx.world, packets);
                for ((packet, &group), verdict) in packets.iter_mut().zip(self.groups.iter()).zip(verdicts) {
                    decide(packet, group, verdict);
                }
            }
        }
        if odd { Outcome::Each } else { Outcome::All(Verdict::to(IP4_REWRITE)) }
    }
}

/// The destination: in the handle when eth-input has read it already, else in the packet.
#[inline(always)]
fn destination_of(packet: &Pkt) -> u32 {
    if packet.flags().any(Flags::PLAIN_IP4) {
        return packet.aux();
    }
    Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| header.destination())
}

/// What does not end at a neighbour.
#[inline(never)]
fn elsewhere(kind: AdjacencyKind, packet: &mut Pkt) -> Verdict {
    match kind {
        AdjacencyKind::Neighbor => Verdict::to(IP4_REWRITE),
        AdjacencyKind::Local => Verdict::to(IP4_LOCAL),
        AdjacencyKind::Glean => Verdict::to(IP4_GLEAN),
        AdjacencyKind::Blackhole => Verdict::drop(DropReason::Blackhole),
        AdjacencyKind::Drop => {
            complain(packet, NET_UNREACHABLE, 0);
            Verdict::to(ICMP4_ERROR)
        }
    }
}

impl Ip4Lookup {
    /// The groups of a vector, level by level.
    #[inline(always)]
    fn look_up(&mut self, tables: &Tables, packets: &[Pkt]) {
        let count = packets.len().min(VECTOR);
        for (packet, destination) in packets.iter().zip(self.destinations.iter_mut()) {
            *destination = destination_of(packet);
        }
        let (destinations, groups) = (&self.destinations[..count], &mut self.groups[..count]);
        match &tables.fib4[..] {
            [only] => only.lookup_batch(destinations, groups),
            _ => {
                for ((packet, &destination), group) in packets.iter().zip(destinations).zip(groups) {
                    *group = tables.fib4_of(packet.interface()).map_or(0, |fib| fib.lookup(destination));
                }
            }
        }
    }
}

/// The flow's hash, computed once.
#[inline(never)]
fn hash(packet: &mut Pkt) -> u32 {
    if packet.flags().any(Flags::HASHED) {
        return packet.meta().flow_hash;
    }
    let hash = Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| {
        let payload = packet.l3().get(header.header_len()..).unwrap_or(&[]);
        flow_hash4(header, payload)
    });
    packet.meta_mut().flow_hash = hash;
    packet.set_flags(Flags::HASHED);
    hash
}
