//! ip4-lookup: destination to group, group to adjacency.
//!
//! A table that stays in the cache is asked packet by packet; in a larger one the whole vector is
//! looked up level by level, so that the loads of 256 packets overlap. A group of one
//! path needs nothing more; with several, the flow's hash chooses and is kept in the metadata.
//!
//! A plain packet for a neighbour that is known is rewritten in the same pass and leaves from here:
//! a further pass over 256 frames would cost more than the rewriting. ip4-rewrite gets all else.

use std::hint::cold_path;

use weir_buf::{Flags, Pkt, VECTOR};
use weir_fib::{AdjacencyKind, DROP, NexthopView};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::Ipv4Header;

use crate::frame::Egress;
use crate::icmp4_error::{
    NET_UNREACHABLE, NO_NEXT_HOP, ROUTE_PROHIBITED, ROUTE_UNREACHABLE, TTL_EXPIRED, complain,
};
use crate::{Tables, flow_hash4, ip4_rewrite, mpls, vector_loops};

pub(crate) struct Ip4Lookup {
    destinations: Box<[u32; VECTOR]>,
    groups: Box<[u32; VECTOR]>,
}

impl Default for Ip4Lookup {
    fn default() -> Ip4Lookup {
        Ip4Lookup {
            destinations: Box::new([0; VECTOR]),
            groups: Box::new([0; VECTOR]),
        }
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
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        if cx.is_one_step() {
            // Rewriting is left to ip4-rewrite then.
            for packet in &mut *packets {
                packet.clear_flags(Flags::PLAIN_IP4);
            }
        }
        let nexthops = cx.world.nexthops.view();
        verdicts.fill(Verdict::OUT);
        let mut exits = Egress::default();
        let small = match &cx.world.fib4[..] {
            [only] => only.small(),
            _ => None,
        };
        match small {
            Some(fib) => vector_loops::each_packet(packets, |place, packet| {
                let group = fib.lookup(destination_of(packet));
                pass_on(nexthops, &mut exits, verdicts, place, packet, group);
            }),
            None => {
                self.look_up(cx.world, packets);
                let groups = &self.groups;
                vector_loops::each_packet(packets, |place, packet| {
                    pass_on(
                        nexthops,
                        &mut exits,
                        verdicts,
                        place,
                        packet,
                        groups[place % VECTOR],
                    );
                });
            }
        }
        exits.outcome()
    }
}

/// One packet whose group is known.
#[inline(always)]
fn pass_on(
    nexthops: NexthopView<'_>,
    exits: &mut Egress,
    verdicts: &mut [Verdict],
    place: usize,
    packet: &mut Pkt,
    group: u32,
) {
    if let Some(interface) = forward(nexthops, packet, group) {
        return exits.note(interface);
    }
    cold_path();
    match settle(nexthops, packet, group) {
        Verdict::OUT => exits.note(packet.aux()),
        elsewhere => {
            exits.incomplete = true;
            verdicts[place] = elsewhere;
        }
    }
}

/// The destination: in the handle when eth-input has read it already, else in the packet.
#[inline(always)]
fn destination_of(packet: &Pkt) -> u32 {
    if packet.flags().any(Flags::PLAIN_IP4) {
        packet.aux()
    } else {
        read_destination(packet)
    }
}

#[cold]
fn read_destination(packet: &Pkt) -> u32 {
    Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| header.destination())
}

/// What is plain and goes to a group's only neighbour is rewritten on the spot, while its header is at
/// hand, by ip4-rewrite's own rules. Returns the interface; `None`, and nothing is changed, for all else.
#[inline(always)]
fn forward(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32) -> Option<u32> {
    if !packet.flags().any(Flags::PLAIN_IP4) {
        return None;
    }
    ip4_rewrite::plain(nexthops.only_neighbor(group)?, packet)
}

/// Chooses among several paths, and finds a node for what cannot leave from here.
#[inline(never)]
fn settle(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32) -> Verdict {
    let number = nexthops.choose(group, || hash(packet));
    let adjacency = nexthops.adjacency(number);
    let kind = adjacency.map_or(AdjacencyKind::Drop, |adjacency| adjacency.kind);
    if let Some(adjacency) = adjacency.filter(|_| packet.flags().any(Flags::PLAIN_IP4)) {
        let left = match (kind, adjacency.labelled()) {
            (_, Some(labelled)) => mpls::plain4(labelled, packet),
            (AdjacencyKind::Neighbor, None) => ip4_rewrite::plain(adjacency, packet),
            _ => None,
        };
        if left.is_some() {
            return Verdict::OUT;
        }
    }
    packet.set_aux(number);
    packet.clear_flags(Flags::PLAIN_IP4);
    match kind {
        AdjacencyKind::Neighbor | AdjacencyKind::Labelled => Verdict::to(IP4_REWRITE),
        AdjacencyKind::Local => Verdict::to(IP4_LOCAL),
        // Nobody is asked for on behalf of a packet that may not go on.
        AdjacencyKind::Glean if ip4_rewrite::is_expired(packet) => {
            answer_error(packet, TTL_EXPIRED)
        }
        AdjacencyKind::Glean => Verdict::to(IP4_GLEAN),
        AdjacencyKind::Blackhole => Verdict::drop(DropReason::Blackhole),
        AdjacencyKind::Unreachable => answer_error(packet, ROUTE_UNREACHABLE),
        AdjacencyKind::Prohibit => answer_error(packet, ROUTE_PROHIBITED),
        // A route, but no path of it is usable.
        AdjacencyKind::Drop if group != DROP => answer_error(packet, NO_NEXT_HOP),
        AdjacencyKind::Drop | AdjacencyKind::Lookup | AdjacencyKind::Pseudowire => {
            answer_error(packet, NET_UNREACHABLE)
        }
    }
}

/// Its sender hears why it goes no further.
fn answer_error(packet: &mut Pkt, message: u16) -> Verdict {
    complain(packet, message, 0);
    Verdict::to(ICMP4_ERROR)
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
                for ((packet, &destination), group) in packets.iter().zip(destinations).zip(groups)
                {
                    *group = tables
                        .fib4_for(packet)
                        .map_or(0, |fib| fib.lookup(destination));
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
