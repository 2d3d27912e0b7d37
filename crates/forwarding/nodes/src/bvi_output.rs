//! bvi-output: what is routed out of a BVI goes into its bridge domain.
//!
//! Stands before the drivers: the graph brings here what leaves by an interface whose output is
//! [`weir_port::interface::Output::Bvi`], from any node. Each frame is counted as sent by the BVI and then is, for
//! the bridge, one that came in by it.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};

use crate::Tables;

pub(crate) struct BviOutput;

const BRIDGE: Next = Next(0);

impl Node<Tables> for BviOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "bvi-output",
        about: "Puts what is routed out of a BVI into its bridge domain.",
        nexts: &["bridge"],
        reasons: &[DropReason::TxDown],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            let index = packet.aux();
            let bvi = cx.world.interface(index).filter(|bvi| bvi.can_send);
            *verdict = match bvi {
                Some(bvi) => {
                    if let Some(counters) = bvi.counters.of(cx.worker) {
                        let (multicast, broadcast) = (
                            packet.flags().any(Flags::MULTICAST),
                            packet.flags().any(Flags::BROADCAST),
                        );
                        counters.tx.add(
                            1,
                            packet.total_len() as u64,
                            u64::from(multicast),
                            u64::from(broadcast),
                        );
                    }
                    packet.set_interface(index);
                    packet.clear_flags(Flags::PLAIN_IP4);
                    Verdict::to(BRIDGE)
                }
                None => Verdict::drop(DropReason::TxDown),
            };
        }
        Outcome::Each
    }
}
