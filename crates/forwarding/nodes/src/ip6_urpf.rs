//! ip6-urpf: does a route lead back to where the packet says it comes from? (RFC 3704, RFC 8704)
//!
//! As ip4-urpf, by the same rules. Link-local sources pass: they are of the link that the packet came in by, and
//! ip6-lookup lets them reach this router only. Neighbour discovery and DHCPv6 for groups, from the unspecified
//! address too, never come here: ip6-input takes them to ip6-local.

use weir_buf::{Pkt, VECTOR};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{Ipv6Header, ipv6};

use weir_port::interface::Feature;

use crate::Tables;
use crate::features::{self, FeatureArc, FeatureSpec};
use crate::ip4_urpf::by_interface;

pub(crate) struct Ip6Urpf {
    sources: Box<[u128; VECTOR]>,
    groups: Box<[u32; VECTOR]>,
}

impl Default for Ip6Urpf {
    fn default() -> Ip6Urpf {
        Ip6Urpf {
            sources: Box::new([0; VECTOR]),
            groups: Box::new([0; VECTOR]),
        }
    }
}

pub(crate) const FEATURE: FeatureSpec = FeatureSpec {
    feature: Feature::Urpf,
    node: "ip6-urpf",
    arcs: &[FeatureArc::Ip6],
    runs_before: &[],
};

impl Node<Tables> for Ip6Urpf {
    const SPEC: NodeSpec = NodeSpec {
        name: FEATURE.node,
        about: "Drops IPv6 that comes from where no route leads back.",
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
            (FeatureArc::Ip6, const { features::number(FEATURE.node) }),
            packets,
            verdicts,
            |check, packets, verdicts| {
                let Some(fib) = cx.world.fib6.get(check.table) else {
                    return verdicts.fill(Verdict::drop(DropReason::Urpf));
                };
                let count = packets.len().min(VECTOR);
                for (packet, source) in packets.iter().zip(self.sources.iter_mut()) {
                    *source = Ipv6Header::read(packet.l3())
                        .map_or(0, |(header, _)| u128::from_be_bytes(header.source));
                }
                fib.lookup_batch(&self.sources[..count], &mut self.groups[..count]);
                let found = self.groups.iter().zip(self.sources.iter());
                for (verdict, (&group, source)) in verdicts.iter_mut().zip(found) {
                    if !check.passes(group) && !ipv6::is_link_local(&source.to_be_bytes()) {
                        *verdict = Verdict::drop(DropReason::Urpf);
                    }
                }
            },
        );
        Outcome::Each
    }
}
