//! acl-output: the access lists of what goes out.
//!
//! Stands before the driver of each interface that is bound to a list for what goes out, so that everything
//! passes that leaves there: forwarded, bridged, and made by this router itself.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Feature;

use crate::classify::{Classifier, l3_of};
use crate::features::{self, FeatureArc, FeatureSpec};
use crate::{Tables, vector_loops};

#[derive(Default)]
pub(crate) struct AclOutput {
    classifier: Classifier,
}

pub(crate) const FEATURE: FeatureSpec = FeatureSpec {
    feature: Feature::AclOut,
    node: "acl-output",
    arcs: &[FeatureArc::Output],
    runs_before: &["policer-output"],
};

impl Node<Tables> for AclOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: FEATURE.node,
        about: "Holds packets that go out against the access lists of their interface.",
        nexts: &[],
        reasons: &[DropReason::AclDenied, DropReason::TxDown],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        vector_loops::each_run(
            packets,
            verdicts,
            Pkt::aux,
            |interface, packets, verdicts| self.pass(cx, interface, packets, verdicts),
        );
        Outcome::Each
    }
}

impl AclOutput {
    /// Packets for one interface.
    #[inline(always)]
    fn pass(
        &mut self,
        cx: &Cx<'_, Tables>,
        interface: u32,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) {
        let Some(entry) = cx.world.entry(interface) else {
            return verdicts.fill(Verdict::drop(DropReason::TxDown));
        };
        let onward = features::next(
            FeatureArc::Output,
            &entry.interface,
            Some(const { features::number(FEATURE.node) }),
        );
        let Some(filter) = &entry.acl_output else {
            return verdicts.fill(onward);
        };
        let permitted = self
            .classifier
            .ask(filter, cx.worker, packets, |packet| l3_of(packet.data()));
        for (verdict, &permitted) in verdicts.iter_mut().zip(permitted) {
            *verdict = if permitted {
                onward
            } else {
                Verdict::drop(DropReason::AclDenied)
            };
        }
    }
}
