//! port-tx: the stage before the driver.
//!
//! Packets come here sorted by interface. The tx taps look, the driver takes what fits, and what it
//! took is counted as unicast, multicast and broadcast. What does not fit is dropped, and counted.

use weir_buf::{Flags, Pkt, Tally, Vector};
use weir_graph::{DropReason, Env, Graph, NodeSpec};
use weir_port::TxQueue;
use weir_port::interface::WorkerInterfaceCounters;

use crate::Tables;

/// The stage's entry in the catalogue.
pub(crate) const SPEC: NodeSpec = NodeSpec {
    name: "port-tx",
    about: "Hands packets to the driver and counts what it took.",
    nexts: &[],
    reasons: &[
        DropReason::TxFull,
        DropReason::TxDown,
        DropReason::HandoffFull,
        DropReason::Stopped,
    ],
};

/// A transmit queue with the interface that it serves.
pub struct PortTx {
    /// The interface's index.
    pub interface: u32,
    /// The driver's queue.
    pub queue: Box<dyn TxQueue>,
}

/// What a vector amounts to.
#[derive(Clone, Copy, Default)]
struct Sums {
    packets: u64,
    bytes: u64,
    multicast: u64,
    broadcast: u64,
    marked: usize,
    /// That any has.
    flags: Flags,
}

#[inline(always)]
fn sums(packets: &[Pkt]) -> Sums {
    let tally = Tally::of(packets);
    let (marked, flags) = (tally.marked(), tally.flags());
    let mut sums = Sums {
        packets: packets.len() as u64,
        bytes: tally.bytes(),
        marked,
        flags,
        ..Sums::default()
    };
    if flags.any(Flags::MULTICAST | Flags::BROADCAST | Flags::CHAINED) {
        sum_odd(packets, &mut sums);
    }
    sums
}

/// Some packet goes to a group or spans several chunks.
#[cold]
fn sum_odd(packets: &[Pkt], sums: &mut Sums) {
    let count = |flag| {
        packets
            .iter()
            .filter(|packet| packet.flags().any(flag))
            .count() as u64
    };
    (sums.multicast, sums.broadcast) = (count(Flags::MULTICAST), count(Flags::BROADCAST));
    sums.bytes = packets.iter().map(|packet| packet.total_len() as u64).sum();
}

/// Sends a vector; drops what the driver does not take. `stage` is port-tx's number in the graph.
pub fn transmit(
    graph: &mut Graph<Tables>,
    env: &mut Env<'_, Tables>,
    stage: usize,
    worker: usize,
    port: &mut PortTx,
    packets: &mut Vector,
) {
    let interface = env.world.interface(port.interface);
    let Some(interface) = interface.filter(|interface| interface.can_send) else {
        return graph.drop_all(env, stage, DropReason::TxDown, packets);
    };
    let awaited = interface.tx_taps != 0
        && graph.look_before_leaving(env, interface.tx_taps, port.interface, packets);
    if graph.is_tracing() {
        graph.trace_stage(stage, packets);
    }
    let all = sums(packets);
    graph.note_leaving(port.interface, all.flags, packets);
    let waits = awaited | (all.marked != 0 && graph.leaving(port.interface, packets, all.marked));
    port.queue.send(packets, env.cache);
    let left = if packets.is_empty() {
        Sums::default()
    } else {
        sums(packets)
    };
    graph.count_output((all.packets - left.packets) as usize);
    if waits || all.marked != 0 && !packets.is_empty() {
        graph.left(packets, stage, DropReason::TxFull);
    }
    if let Some(counters) = interface.counters.of(worker) {
        count(counters, all, left);
    }
    if !packets.is_empty() {
        graph.drop_all(env, stage, DropReason::TxFull, packets);
    }
}

#[inline(always)]
fn count(counters: &WorkerInterfaceCounters, all: Sums, left: Sums) {
    let sent = all.packets - left.packets;
    counters.tx.add(
        sent,
        all.bytes - left.bytes,
        all.multicast - left.multicast,
        all.broadcast - left.broadcast,
    );
}
