//! bond-output: what leaves by a bond gets a member to leave by.
//!
//! Stands before the drivers: the graph brings here what leaves by an interface whose output is
//! [`weir_port::interface::Output::Bond`], from any node. Frames are counted on the bond; each goes on to
//! the member of its flow, to the next one in turn, or to all. Which members there are is the control side's to
//! say; where there is none, nothing leaves.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::bond::{Bond, Spread};
use weir_port::interface::Interface;

use crate::bond_hash::bond_hash;
use crate::{Tables, vector_loops};

#[derive(Default)]
pub(crate) struct BondOutput {
    /// Whose turn it is, where members take turns.
    turn: u32,
}

impl Node<Tables> for BondOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "bond-output",
        about: "Chooses the member by which a frame leaves a bond.",
        nexts: &[],
        reasons: &[DropReason::TxDown],
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
            bond: None,
            sent: Sent::default(),
        };
        vector_loops::each_packet(packets, |place, packet| {
            verdicts[place] = match exit.of(packet) {
                None => Verdict::drop(DropReason::TxDown),
                Some(bond) if bond.spread == Spread::All && bond.members.len() > 1 => {
                    cx.replicate(bond.members.iter().map(|&member| (Verdict::OUT, member)))
                }
                Some(bond) => match choose(bond, &mut self.turn, packet) {
                    Some(member) => {
                        packet.set_aux(member);
                        Verdict::OUT
                    }
                    None => Verdict::drop(DropReason::TxDown),
                },
            };
        });
        exit.finish();
        Outcome::Each
    }
}

#[inline(always)]
fn choose(bond: &Bond, turn: &mut u32, packet: &Pkt) -> Option<u32> {
    match (bond.spread, &*bond.members) {
        (_, [only]) => Some(*only),
        (Spread::Flows(layers), _) => bond.member(bond_hash(layers, packet.data())),
        (Spread::Turns | Spread::All, members) => {
            *turn = turn.wrapping_add(1);
            members
                .get((*turn as usize).checked_rem(members.len())?)
                .copied()
        }
    }
}

/// What left by one bond and is not yet in its counters.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    multicast: u64,
    broadcast: u64,
}

/// The bond of the packets at hand.
struct Exit<'a> {
    tables: &'a Tables,
    worker: usize,
    index: u32,
    bond: Option<(&'a Interface, &'a Bond)>,
    sent: Sent,
}

impl<'a> Exit<'a> {
    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.finish();
        self.index = index;
        let interface = self
            .tables
            .interface(index)
            .filter(|interface| interface.can_send);
        self.bond = interface.and_then(|interface| Some((interface, &**interface.bond.as_ref()?)));
        self.bond = self.bond.filter(|(_, bond)| !bond.members.is_empty());
    }

    fn finish(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if let Some(counters) = self
            .bond
            .and_then(|(interface, _)| interface.counters.of(self.worker))
        {
            counters
                .tx
                .add(sent.packets, sent.bytes, sent.multicast, sent.broadcast);
        }
    }

    /// The bond that a frame leaves by, on which it is counted.
    #[inline(always)]
    fn of(&mut self, packet: &Pkt) -> Option<&'a Bond> {
        if packet.aux() != self.index {
            self.turn_to(packet.aux());
        }
        let (_, bond) = self.bond?;
        self.sent.packets += 1;
        self.sent.bytes += packet.total_len() as u64;
        self.sent.multicast += u64::from(packet.flags().any(Flags::MULTICAST));
        self.sent.broadcast += u64::from(packet.flags().any(Flags::BROADCAST));
        Some(bond)
    }
}
