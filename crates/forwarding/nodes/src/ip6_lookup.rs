//! ip6-lookup: destination to group, group to adjacency.
//!
//! As ip4-lookup: a plain packet for a neighbour that is known is rewritten in the same pass and leaves
//! from here; ip6-rewrite gets all else. A table that stays in the cache is asked packet by packet; a larger one
//! for the whole vector at once, level by level, so that the loads of 256 packets overlap. With a small table
//! most never come here: eth-input does it all in its own pass (`ip6_steps.rs`).
//!
//! A packet from a link-local address reaches own addresses only: it must not leave its link (RFC 4291
//! section 2.5.6).

use std::hint::cold_path;

use weir_buf::{Flags, Pkt, VECTOR};
use weir_fib::{AdjacencyKind, DROP, NexthopView};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{Ipv6Header, ipv6};

use crate::frame::Egress;
use crate::icmp6_error::{
    BEYOND_SCOPE, HOP_LIMIT, NO_NEXT_HOP, NO_ROUTE, ROUTE_PROHIBITED, ROUTE_UNREACHABLE, complain,
};
use crate::{Tables, flow_hash6, ip6_rewrite, mpls, vector_loops};

pub(crate) struct Ip6Lookup {
    destinations: Box<[u128; VECTOR]>,
    groups: Box<[u32; VECTOR]>,
}

impl Default for Ip6Lookup {
    fn default() -> Ip6Lookup {
        Ip6Lookup {
            destinations: Box::new([0; VECTOR]),
            groups: Box::new([0; VECTOR]),
        }
    }
}

const IP6_REWRITE: Next = Next(0);
const IP6_LOCAL: Next = Next(1);
const IP6_GLEAN: Next = Next(2);
const ICMP6_ERROR: Next = Next(3);

impl Node<Tables> for Ip6Lookup {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-lookup",
        about: "Finds the longest matching IPv6 prefix and chooses among its paths by flow.",
        nexts: &["ip6-rewrite", "ip6-local", "ip6-glean", "icmp6-error"],
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
            // Rewriting is left to ip6-rewrite then.
            for packet in &mut *packets {
                packet.clear_flags(Flags::PLAIN_IP6);
            }
        }
        let nexthops = cx.world.nexthops.view();
        verdicts.fill(Verdict::OUT);
        let mut exits = Egress::default();
        let small = match &cx.world.fib6[..] {
            [only] => only.small(),
            _ => None,
        };
        match small {
            Some(fib) => vector_loops::each_packet(packets, |place, packet| {
                let destination = destination_of(packet);
                let group = fib.lookup((destination >> 64) as u64, destination as u64);
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

#[inline(always)]
fn destination_of(packet: &Pkt) -> u128 {
    Ipv6Header::read(packet.l3()).map_or(0, |(header, _)| u128::from_be_bytes(header.destination))
}

/// What is plain and goes to a group's only neighbour is rewritten on the spot, by ip6-rewrite's own rules.
/// Returns the interface; `None`, and nothing is changed, for all else.
#[inline(always)]
fn forward(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32) -> Option<u32> {
    if !packet.flags().any(Flags::PLAIN_IP6) {
        return None;
    }
    ip6_rewrite::plain(nexthops.only_neighbor(group)?, packet)
}

/// Chooses among several paths, and finds a node for what cannot leave from here.
#[inline(never)]
fn settle(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32) -> Verdict {
    let number = nexthops.choose(group, || hash(packet));
    let adjacency = nexthops.adjacency(number);
    let kind = adjacency.map_or(AdjacencyKind::Drop, |adjacency| adjacency.kind);
    if let Some(adjacency) = adjacency.filter(|_| packet.flags().any(Flags::PLAIN_IP6)) {
        let left = match (kind, adjacency.labelled()) {
            (_, Some(labelled)) => mpls::plain6(labelled, packet),
            (AdjacencyKind::Neighbor, None) => ip6_rewrite::plain(adjacency, packet),
            _ => None,
        };
        if left.is_some() {
            return Verdict::OUT;
        }
    }
    packet.set_aux(number);
    packet.clear_flags(Flags::PLAIN_IP6);
    match kind {
        AdjacencyKind::Local => Verdict::to(IP6_LOCAL),
        AdjacencyKind::Neighbor | AdjacencyKind::Labelled | AdjacencyKind::Glean
            if stays_on_link(packet) =>
        {
            answer_error(packet, BEYOND_SCOPE)
        }
        AdjacencyKind::Neighbor | AdjacencyKind::Labelled => Verdict::to(IP6_REWRITE),
        // Nobody is asked for on behalf of a packet that may not go on.
        AdjacencyKind::Glean if ip6_rewrite::is_expired(packet) => answer_error(packet, HOP_LIMIT),
        AdjacencyKind::Glean => Verdict::to(IP6_GLEAN),
        AdjacencyKind::Blackhole => Verdict::drop(DropReason::Blackhole),
        AdjacencyKind::Unreachable => answer_error(packet, ROUTE_UNREACHABLE),
        AdjacencyKind::Prohibit => answer_error(packet, ROUTE_PROHIBITED),
        // A route, but no path of it is usable.
        AdjacencyKind::Drop if group != DROP => answer_error(packet, NO_NEXT_HOP),
        AdjacencyKind::Drop | AdjacencyKind::Lookup | AdjacencyKind::Pseudowire => {
            answer_error(packet, NO_ROUTE)
        }
    }
}

/// Its sender hears why it goes no further.
fn answer_error(packet: &mut Pkt, message: u16) -> Verdict {
    complain(packet, message, 0);
    Verdict::to(ICMP6_ERROR)
}

/// Whether a packet may not leave the link it came from.
fn stays_on_link(packet: &Pkt) -> bool {
    Ipv6Header::read(packet.l3()).is_some_and(|(header, _)| ipv6::is_link_local(&header.source))
}

impl Ip6Lookup {
    /// The groups of a vector, level by level.
    #[inline(always)]
    fn look_up(&mut self, tables: &Tables, packets: &[Pkt]) {
        let count = packets.len().min(VECTOR);
        for (packet, destination) in packets.iter().zip(self.destinations.iter_mut()) {
            *destination = destination_of(packet);
        }
        let (destinations, groups) = (&self.destinations[..count], &mut self.groups[..count]);
        match &tables.fib6[..] {
            [only] => only.lookup_batch(destinations, groups),
            _ => {
                for ((packet, &destination), group) in packets.iter().zip(destinations).zip(groups)
                {
                    *group = tables
                        .fib6_for(packet)
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
    let hash = flow_hash6(packet.l3());
    packet.meta_mut().flow_hash = hash;
    packet.set_flags(Flags::HASHED);
    hash
}
