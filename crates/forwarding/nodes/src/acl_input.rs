//! acl-input: the access lists of what comes in.
//!
//! Stands between the node that has validated a packet and the one that finds its way, on a routed interface;
//! between the interface and its peer on a cross connect; before the bridge on a member of a domain. Only interfaces that are bound to a list send
//! packets here.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Feature, Input};

use crate::classify::{Classifier, l3_of};
use crate::features::{self, FeatureArc, FeatureSpec};
use crate::{Tables, vector_loops};

#[derive(Default)]
pub(crate) struct AclInput {
    classifier: Classifier,
}

/// What is denied is not looked up for its source.
pub(crate) const FEATURE: FeatureSpec = FeatureSpec {
    feature: Feature::AclIn,
    node: "acl-input",
    arcs: &[
        FeatureArc::Ip4,
        FeatureArc::Ip6,
        FeatureArc::Bridge,
        FeatureArc::CrossConnect,
    ],
    runs_before: &["ip4-urpf", "ip6-urpf"],
};

impl Node<Tables> for AclInput {
    const SPEC: NodeSpec = NodeSpec {
        name: FEATURE.node,
        about: "Holds packets that came in against the access lists of their interface.",
        nexts: &[],
        reasons: &[DropReason::AclDenied, DropReason::InterfaceDown],
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
            Pkt::interface,
            |interface, packets, verdicts| self.pass(cx, interface, packets, verdicts),
        );
        Outcome::Each
    }
}

impl AclInput {
    /// Packets of one interface.
    #[inline(always)]
    fn pass(
        &mut self,
        cx: &Cx<'_, Tables>,
        interface: u32,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) {
        let Some(entry) = cx.world.entry(interface) else {
            return verdicts.fill(Verdict::drop(DropReason::InterfaceDown));
        };
        let interface = &entry.interface;
        let arc = match interface.input {
            Input::CrossConnect(out) => {
                packets.iter_mut().for_each(|packet| packet.set_aux(out));
                FeatureArc::CrossConnect
            }
            Input::Routed => FeatureArc::Ip4,
            Input::Bridge { .. } => FeatureArc::Bridge,
            // Such an interface sends nothing here.
            Input::Closed | Input::Unused | Input::Member { .. } => {
                return verdicts.fill(Verdict::drop(DropReason::InterfaceDown));
            }
        };
        let onward = |arc| {
            features::next(
                arc,
                interface,
                Some(const { features::number(FEATURE.node) }),
            )
        };
        let (onward, onward6) = (onward(arc), onward(FeatureArc::Ip6));
        let Some(filter) = &entry.acl_input else {
            return verdicts.fill(onward);
        };
        let is_routed = interface.input == Input::Routed;
        let permitted = self.classifier.ask(filter, cx.worker, packets, |packet| {
            if is_routed {
                Some(packet.l3_offset())
            } else {
                l3_of(packet.data())
            }
        });
        for (verdict, &permitted) in verdicts.iter_mut().zip(permitted) {
            *verdict = if permitted {
                onward
            } else {
                Verdict::drop(DropReason::AclDenied)
            };
        }
        if is_routed {
            let six = |packet: &Pkt| packet.l3().first().is_some_and(|first| first >> 4 == 6);
            let permitted = verdicts
                .iter_mut()
                .zip(packets)
                .filter(|(verdict, packet)| **verdict == onward && six(packet));
            permitted.for_each(|(verdict, _)| *verdict = onward6);
        }
    }
}
