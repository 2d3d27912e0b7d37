//! mpls-glean: labelled packets whose next hop's MAC address is not known yet.
//!
//! As ip4-glean does: the packet is held as it came, the neighbour is asked for at most once a second, the control side
//! is reported, and lets the packets go on to where they came from.

use std::net::IpAddr;

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};

use crate::recent::Recent;
use crate::{Event, Tables, hold_key, ip4_glean, ip6_glean};

pub(crate) struct MplsGlean {
    asked: Recent,
}

impl Default for MplsGlean {
    fn default() -> MplsGlean {
        MplsGlean {
            asked: Recent::new(1_000_000_000),
        }
    }
}

const MPLS_LOOKUP: Next = Next(0);

impl Node<Tables> for MplsGlean {
    const SPEC: NodeSpec = NodeSpec {
        name: "mpls-glean",
        about: "Holds labelled packets whose next hop is not known and asks for it.",
        nexts: &["mpls-lookup"],
        reasons: &[
            DropReason::HoldFull,
            DropReason::HostUnreachable,
            DropReason::NoRoute,
            DropReason::Stopped,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = self.glean(cx, packet);
        }
        Outcome::Each
    }
}

impl MplsGlean {
    fn glean(&mut self, cx: &mut Cx<'_, Tables>, packet: &Pkt) -> Verdict {
        let Some(adjacency) = cx.world.nexthops.adjacency(packet.aux()) else {
            return Verdict::drop(DropReason::NoRoute);
        };
        let (interface, address) = (adjacency.end().interface, adjacency.end().address);
        let key = hold_key(interface, address);
        if self.asked.is_new(crate::recent::key(key), cx.now) {
            cx.event(Event::Wanted { interface, address });
            match address {
                IpAddr::V4(address) => ip4_glean::ask(cx, interface, address.into()),
                IpAddr::V6(address) => ip6_glean::ask(cx, interface, address.into()),
            }
        }
        cx.hold(key, MPLS_LOOKUP)
    }
}
