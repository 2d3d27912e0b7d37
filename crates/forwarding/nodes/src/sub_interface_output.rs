//! sub-interface-output: what leaves by a sub-interface gets its tags and goes on to its parent.
//!
//! Stands before the drivers: the graph brings here what leaves by an interface whose output is
//! [`weir_port::interface::Output::SubInterface`], from any node. The frame is compared with the
//! sub-interface's MTU (a routed packet fits already), counted with its tags, and leaves by the parent,
//! which may itself have a node before its driver.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Interface;

use crate::eth_input::tag_room;
use crate::frame::ETHERNET;
use crate::tagging::change_tags;
use crate::{Tables, vector_loops};

pub(crate) struct SubInterfaceOutput;

impl Node<Tables> for SubInterfaceOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "sub-interface-output",
        about: "Puts a sub-interface's tags on what leaves by it, and sends it on to the parent.",
        nexts: &[],
        reasons: &[
            DropReason::TxDown,
            DropReason::TooShort,
            DropReason::FrameTooLong,
            DropReason::VlanMissing,
            DropReason::VlanTruncated,
            DropReason::NoHeadroom,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let mut exit = Exit {
            tables: cx.world,
            worker: cx.worker,
            index: 0,
            interface: None,
            sent: Sent::default(),
        };
        let (mut all, mut any, mut odd) = (u32::MAX, 0, false);
        vector_loops::each_packet(packets, |place, packet| {
            verdicts[place] = match exit.leave(packet) {
                Ok(parent) => {
                    (all, any) = (all & parent, any | parent);
                    Verdict::OUT
                }
                Err(reason) => {
                    odd = true;
                    Verdict::drop(reason)
                }
            };
        });
        exit.finish();
        if !odd && all == any {
            Outcome::AllOut(any)
        } else {
            Outcome::Each
        }
    }
}

/// What left by one sub-interface and is not yet in its counters.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    multicast: u64,
    broadcast: u64,
}

/// The sub-interface of the packets at hand.
struct Exit<'a> {
    tables: &'a Tables,
    worker: usize,
    index: u32,
    interface: Option<&'a Interface>,
    sent: Sent,
}

impl Exit<'_> {
    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.finish();
        self.index = index;
        self.interface = self
            .tables
            .interface(index)
            .filter(|interface| interface.can_send);
    }

    fn finish(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if let Some(counters) = self
            .interface
            .and_then(|interface| interface.counters.of(self.worker))
        {
            counters
                .tx
                .add(sent.packets, sent.bytes, sent.multicast, sent.broadcast);
        }
    }

    /// One frame: the parent by which it leaves.
    #[inline(always)]
    fn leave(&mut self, packet: &mut Pkt) -> Result<u32, DropReason> {
        if packet.aux() != self.index {
            self.turn_to(packet.aux());
        }
        let Some(interface) = self.interface else {
            return Err(DropReason::TxDown);
        };
        let Some(sub_interface) = &interface.sub_interface else {
            return Err(DropReason::TxDown);
        };
        let (len, room) = (packet.total_len(), interface.mtu as usize + ETHERNET);
        if len > room && len > room + tag_room(packet.data()) {
            return Err(DropReason::FrameTooLong);
        }
        change_tags(packet, &sub_interface.output)?;
        self.sent.packets += 1;
        self.sent.bytes += packet.total_len() as u64;
        self.sent.multicast += u64::from(packet.flags().any(Flags::MULTICAST));
        self.sent.broadcast += u64::from(packet.flags().any(Flags::BROADCAST));
        packet.set_aux(sub_interface.parent);
        Ok(sub_interface.parent)
    }
}
