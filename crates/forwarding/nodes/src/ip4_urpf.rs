//! ip4-urpf: does a route lead back to where the packet says it comes from? (RFC 3704, RFC 8704)
//!
//! Stands before ip4-lookup, behind the access lists, on interfaces that ask for it; nobody else comes here.
//! *Strict*: one of the paths back leaves by the interface that the packet came in by; all paths of a group count,
//! so that a network behind several links is let in on each (RFC 3704 section 2.2). *Loose*: any route leads back,
//! the default route among them (section 2.4). A route that drops what it gets leads nowhere, and so a blackhole
//! route for a source drops what comes from there (RFC 5635); an own address is nobody else's.
//!
//! Who has no address yet is not in question: what comes from 0.0.0.0 ends at ip4-input.

use weir_buf::{Pkt, VECTOR};
use weir_fib::{AdjacencyKind, NexthopView};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Feature, Interface, ReversePath};
use weir_wire::Ipv4Header;

use crate::features::{self, FeatureArc, FeatureSpec};
use crate::{Tables, vector_loops};

pub(crate) struct Ip4Urpf {
    sources: Box<[u32; VECTOR]>,
    groups: Box<[u32; VECTOR]>,
}

impl Default for Ip4Urpf {
    fn default() -> Ip4Urpf {
        Ip4Urpf {
            sources: Box::new([0; VECTOR]),
            groups: Box::new([0; VECTOR]),
        }
    }
}

pub(crate) const FEATURE: FeatureSpec = FeatureSpec {
    feature: Feature::Urpf,
    node: "ip4-urpf",
    arcs: &[FeatureArc::Ip4],
    runs_before: &[],
};

impl Node<Tables> for Ip4Urpf {
    const SPEC: NodeSpec = NodeSpec {
        name: FEATURE.node,
        about: "Drops what comes from where no route leads back.",
        nexts: &[],
        reasons: &[DropReason::Urpf],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        by_interface(
            cx.world,
            (FeatureArc::Ip4, const { features::number(FEATURE.node) }),
            packets,
            verdicts,
            |check, packets, verdicts| {
                let Some(fib) = cx.world.fib4.get(check.table) else {
                    return verdicts.fill(Verdict::drop(DropReason::Urpf));
                };
                let count = packets.len().min(VECTOR);
                for (packet, source) in packets.iter().zip(self.sources.iter_mut()) {
                    *source =
                        Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| header.source());
                }
                fib.lookup_batch(&self.sources[..count], &mut self.groups[..count]);
                for (verdict, &group) in verdicts.iter_mut().zip(self.groups.iter()) {
                    if !check.passes(group) {
                        *verdict = Verdict::drop(DropReason::Urpf);
                    }
                }
            },
        );
        Outcome::Each
    }
}

/// What the packets of one interface are compared with.
#[derive(Clone, Copy)]
pub(crate) struct ReverseCheck<'a> {
    nexthops: NexthopView<'a>,
    /// The table that has the routes back.
    pub(crate) table: usize,
    /// The interface that one of them must leave by.
    by: Option<u32>,
}

impl<'a> ReverseCheck<'a> {
    /// The check of an interface, if it has one.
    pub(crate) fn of(tables: &'a Tables, interface: &Interface) -> Option<ReverseCheck<'a>> {
        let mode = interface.urpf?;
        let by = (mode == ReversePath::Strict).then_some(interface.index);
        Some(ReverseCheck {
            nexthops: tables.nexthops.view(),
            table: interface.table as usize,
            by,
        })
    }

    /// Whether a group leads back.
    #[inline(always)]
    pub(crate) fn passes(self, group: u32) -> bool {
        match self.nexthops.only_neighbor(group) {
            Some(neighbor) => self.by.is_none_or(|by| neighbor.interface == by),
            None => self.one_of(group),
        }
    }

    #[inline(never)]
    fn one_of(self, group: u32) -> bool {
        self.nexthops
            .buckets(group)
            .iter()
            .filter_map(|&end| self.nexthops.adjacency(end))
            .any(|end| {
                matches!(
                    end.kind,
                    AdjacencyKind::Neighbor | AdjacencyKind::Labelled | AdjacencyKind::Glean
                ) && self.by.is_none_or(|by| end.interface == by)
            })
    }
}

/// Takes a vector apart by interfaces, of which those that ask for a check get it. The packets that pass go to the next feature on
/// the arc, behind the one of this number.
#[inline(always)]
pub(crate) fn by_interface(
    tables: &Tables,
    (arc, number): (FeatureArc, usize),
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
    mut check: impl FnMut(&ReverseCheck<'_>, &[Pkt], &mut [Verdict]),
) {
    vector_loops::each_run(
        packets,
        verdicts,
        Pkt::interface,
        |index, packets, verdicts| {
            let Some(interface) = tables.interface(index) else {
                return verdicts.fill(Verdict::drop(DropReason::Urpf));
            };
            verdicts.fill(features::next(arc, interface, Some(number)));
            if let Some(back) = ReverseCheck::of(tables, interface) {
                check(&back, packets, verdicts);
            }
        },
    );
}
