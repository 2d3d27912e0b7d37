//! Where the clocks of a worker's turn go: drivers' queues, nodes, and the rest of the loop.
//!
//! A worker reads the time stamp counter at each border between two parts, so that the rows add up to the turn: what a
//! queue took, what the graph's nodes took (they count themselves), and as the last row what is left over: commands,
//! timers, taps' ticks, and the reading of the counter. Time asleep belongs to no turn.
//!
//! Workers write, the control side reads while they run.

use std::sync::Arc;

use weir_api::NodeRuntime;
use weir_ring::counter::Counter;

use crate::control::Control;
use crate::handle::WorkerHandle;

/// What one queue of a driver cost its worker. Written by that worker only.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct QueueWork {
    /// Calls that moved packets.
    calls: Counter,
    /// Calls that moved none.
    empty: Counter,
    packets: Counter,
    clocks: Counter,
}

impl QueueWork {
    /// A call that moved so many packets.
    #[inline]
    pub(crate) fn add(&self, packets: usize, clocks: u64) {
        if packets > 0 {
            self.calls.add(1);
            self.packets.add(packets as u64);
        } else {
            self.empty.add(1);
        }
        self.clocks.add(clocks);
    }

    /// Clocks of a part of a call that is counted elsewhere.
    #[inline]
    pub(crate) fn add_clocks(&self, clocks: u64) {
        self.clocks.add(clocks);
    }

    fn values(&self) -> [u64; 4] {
        [
            self.calls.get(),
            self.packets.get(),
            self.clocks.get(),
            self.empty.get(),
        ]
    }
}

/// The direction of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Rx,
    Tx,
}

/// A queue that a worker has or had, with its counters.
#[derive(Clone, Debug)]
pub(crate) struct QueueRow {
    pub(crate) interface: u32,
    pub(crate) number: usize,
    pub(crate) direction: Direction,
    pub(crate) work: Arc<QueueWork>,
}

/// A queue's key among those of all workers: worker, interface, direction, number.
pub(crate) type QueueKey = (usize, u32, Direction, usize);

/// Counters of queues at the last clear.
pub(crate) type QueueBaselines = std::collections::BTreeMap<QueueKey, [u64; 4]>;

fn key(worker: usize, row: &QueueRow) -> QueueKey {
    (worker, row.interface, row.direction, row.number)
}

/// The counters of all queues now.
pub(crate) fn baselines(workers: &[WorkerHandle]) -> QueueBaselines {
    let of = |(number, handle): (usize, &WorkerHandle)| {
        let rows = handle.queues.iter();
        rows.map(move |row| (key(number, row), row.work.values()))
            .collect::<Vec<_>>()
    };
    workers.iter().enumerate().flat_map(of).collect()
}

impl Control {
    /// A row for each queue of a worker that was called since the last clear.
    pub(crate) fn queue_rows(&self, worker: usize, before: &QueueBaselines) -> Vec<NodeRuntime> {
        let Some(handle) = self.workers.get(worker) else {
            return Vec::new();
        };
        let row = |row: &QueueRow| {
            let name = self.name_of(row.interface)?;
            let driver = self.config.interfaces.get(name)?.device.as_ref()?.driver();
            let before = before.get(&key(worker, row)).copied().unwrap_or_default();
            // A queue that was handed out anew counts from 0 again.
            let now = row.work.values();
            let [calls, packets, clocks, empty] =
                std::array::from_fn(|n| now[n].checked_sub(before[n]).unwrap_or(now[n]));
            let direction = match row.direction {
                Direction::Rx => "rx",
                Direction::Tx => "tx",
            };
            let name = format!("{driver}-{direction} {name} q{}", row.number);
            let mut row = NodeRuntime::new(name, calls, packets, clocks);
            row.empty_calls = empty;
            (calls + empty + clocks > 0).then_some(row)
        };
        let mut rows: Vec<_> = handle.queues.iter().collect();
        rows.sort_by_key(|it| (it.direction, it.interface, it.number));
        rows.into_iter().filter_map(row).collect()
    }
}
