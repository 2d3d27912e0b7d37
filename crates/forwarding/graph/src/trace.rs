//! Following single packets through the graph.
//!
//! A worker that was asked to trace marks the next packets that enter the named node. It records each as it came, and pushes one
//! [`TraceStep`] for each node that the packet passes into a bounded ring. A traced packet takes the path that it would take
//! untraced: a node that forwards packets in one pass is one step. What the pass did is found out and described on the cold side.
//! While nobody traces this costs one comparison a node.

use weir_buf::{Flags, Pkt};
use weir_ring::spsc::Producer;

use crate::Verdict;

/// How many bytes of the packet a step keeps: the headers of a tunnelled packet.
pub const TRACE_BYTES: usize = 128;

/// What to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Number of the node where following begins; `None` for any.
    pub node: Option<u16>,
    /// Only packets that came in on this interface.
    pub interface: Option<u32>,
    /// Whether they are chosen where ports receive them. Else the interface has no frames of its own, and they are chosen at
    /// the first node that has them as its packets.
    pub received: bool,
    /// How many packets.
    pub count: u32,
}

/// What happened to one packet at one node.
#[derive(Clone, Copy, Debug)]
pub struct TraceStep {
    /// Number of the packet within its worker's traces.
    pub packet: u32,
    /// Number of the node.
    pub node: u16,
    /// Whether this is the packet as it entered the first node: there is no verdict yet.
    pub entered: bool,
    /// The verdict's bits.
    pub verdict: u32,
    /// Interface of arrival.
    pub interface: u32,
    /// The word for the next node.
    pub aux: u32,
    /// Time stamp counter.
    pub tsc: u64,
    /// Bytes of the whole packet.
    pub len: u32,
    /// Offset of the network header.
    pub l3: u16,
    /// How many of `bytes` are the packet's.
    pub kept: u16,
    /// The first bytes as they were when the node was done.
    pub bytes: [u8; TRACE_BYTES],
}

impl Default for TraceStep {
    fn default() -> TraceStep {
        TraceStep {
            packet: 0,
            node: 0,
            entered: false,
            verdict: 0,
            interface: 0,
            aux: 0,
            tsc: 0,
            len: 0,
            l3: 0,
            kept: 0,
            bytes: [0; TRACE_BYTES],
        }
    }
}

/// One worker's side of the trace.
pub(crate) struct Tracer {
    ring: Producer<TraceStep>,
    wanted: Option<TraceRequest>,
    next: u32,
    /// Whether marked packets may be inside: while false, nobody looks for them.
    active: bool,
    /// Whether one was seen since the last rest, and when that was.
    seen: (bool, u64),
}

/// Nanoseconds after which no traced packet is inside any more: longer than anything is held.
const REST: u64 = 10_000_000_000;

impl Tracer {
    pub(crate) fn new(ring: Producer<TraceStep>) -> Tracer {
        Tracer {
            ring,
            wanted: None,
            next: 0,
            active: false,
            seen: (false, 0),
        }
    }

    pub(crate) fn request(&mut self, request: Option<TraceRequest>) {
        self.wanted = request;
    }

    /// Once a turn while active: ends that when nothing was seen for long.
    #[cold]
    pub(crate) fn rest(&mut self, now: u64) {
        if std::mem::take(&mut self.seen.0) {
            self.seen.1 = now;
        } else if now.saturating_sub(self.seen.1) > REST {
            self.active = false;
        }
    }

    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Whether packets are wanted that an interface receives.
    #[inline(always)]
    pub(crate) fn wants_received(&self, interface: u32) -> bool {
        self.wanted.is_some_and(|wanted| {
            wanted.received && wanted.interface.is_none_or(|asked| asked == interface)
        })
    }

    /// Whether packets are wanted that enter a node.
    #[inline(always)]
    pub(crate) fn wants_at(&self, node: u16) -> bool {
        self.wanted
            .is_some_and(|wanted| !wanted.received && wanted.node.is_none_or(|asked| asked == node))
    }

    /// Marks packets that are about to enter `node`, and records them; returns how many did not fit the ring.
    #[cold]
    pub(crate) fn choose(&mut self, node: u16, packets: &mut [Pkt]) -> u64 {
        let mut lost = 0;
        let Some(wanted) = &mut self.wanted else {
            return lost;
        };
        for packet in packets {
            if wanted.count == 0 {
                self.wanted = None;
                return lost;
            }
            let other = wanted
                .interface
                .is_some_and(|asked| asked != packet.interface());
            if other || packet.flags().any(Flags::TRACED) {
                continue;
            }
            self.active = true;
            self.seen.0 = true;
            packet.set_flags(Flags::TRACED);
            packet.meta_mut().trace = self.next;
            self.next = self.next.wrapping_add(1);
            wanted.count -= 1;
            let entered = TraceStep {
                entered: true,
                ..step(node, packet)
            };
            lost += u64::from(self.ring.push(entered).is_err());
        }
        lost
    }

    /// Records a step for each traced packet; returns how many did not fit the ring.
    #[cold]
    pub(crate) fn record(
        &mut self,
        node: u16,
        packets: &[Pkt],
        verdict: impl Fn(usize) -> (Verdict, u32),
    ) -> u64 {
        let mut lost = 0;
        for (place, packet) in packets
            .iter()
            .enumerate()
            .filter(|(_, packet)| packet.flags().any(Flags::TRACED))
        {
            let (verdict, aux) = verdict(place);
            let step = TraceStep {
                verdict: verdict.bits(),
                aux,
                ..step(node, packet)
            };
            self.seen.0 = true;
            lost += u64::from(self.ring.push(step).is_err());
        }
        lost
    }
}

/// A packet as it is at a node.
fn step(node: u16, packet: &Pkt) -> TraceStep {
    let kept = packet.len().min(TRACE_BYTES);
    let mut step = TraceStep {
        packet: packet.meta().trace,
        node,
        interface: packet.interface(),
        aux: packet.aux(),
        tsc: weir_cpu::tsc(),
        len: packet.total_len() as u32,
        l3: packet.l3_offset() as u16,
        kept: kept as u16,
        ..TraceStep::default()
    };
    step.bytes[..kept].copy_from_slice(&packet.data()[..kept]);
    step
}
