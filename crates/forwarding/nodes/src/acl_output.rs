//! acl-output: the access lists of what goes out.
//!
//! Stands before the driver of each interface that is bound to a list for what goes out, so that everything
//! passes that leaves there: forwarded, bridged, and made by this router itself.

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Output;

use crate::Tables;
use crate::classify::{Classifier, l3_of};

#[derive(Default)]
pub(crate) struct AclOutput {
    classifier: Classifier,
}

const PORT_TX: Next = Next(0);
const SUB_INTERFACE_OUTPUT: Next = Next(1);
const BVI_OUTPUT: Next = Next(2);
const BOND_OUTPUT: Next = Next(3);
const PSEUDOWIRE_OUTPUT: Next = Next(4);
const VXLAN_OUTPUT: Next = Next(5);

impl Node<Tables> for AclOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "acl-output",
        about: "Holds packets that go out against the access lists of their interface.",
        nexts: &[
            "port-tx",
            "sub-interface-output",
            "bvi-output",
            "bond-output",
            "pseudowire-output",
            "vxlan-output",
        ],
        reasons: &[DropReason::AclDenied, DropReason::TxDown],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let (mut packets, mut verdicts) = (packets, verdicts);
        while let Some(interface) = packets.first().map(Pkt::aux) {
            let run = packets
                .iter()
                .take_while(|packet| packet.aux() == interface)
                .count();
            let (here, later) = packets.split_at_mut(run);
            let (its, others) = verdicts.split_at_mut(run);
            self.pass(cx, interface, here, its);
            (packets, verdicts) = (later, others);
        }
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
        let onward = match entry.interface.output {
            Output::Driver => Verdict::to(PORT_TX),
            Output::SubInterface => Verdict::to(SUB_INTERFACE_OUTPUT),
            Output::Bvi => Verdict::to(BVI_OUTPUT),
            Output::Bond => Verdict::to(BOND_OUTPUT),
            Output::Pseudowire => Verdict::to(PSEUDOWIRE_OUTPUT),
            Output::Vxlan => Verdict::to(VXLAN_OUTPUT),
        };
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
