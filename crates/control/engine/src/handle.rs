//! The control side's end of a worker: commands in, everything else out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_graph::{TraceStep, WorkerCounters};
use weir_nodes::Event;
use weir_ring::spsc::{Consumer, Producer};
use weir_telemetry::capture::CaptureControl;

use crate::waker::Waker;
use crate::work::{Direction, QueueRow};
use crate::worker::{Command, Returned, Worker, WorkerStats};

/// How long a worker may take to carry a command out before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// One worker as the control side sees it.
pub(crate) struct WorkerHandle {
    pub(crate) commands: Producer<Command>,
    pub(crate) returned: Consumer<Returned>,
    pub(crate) events: Consumer<Event>,
    pub(crate) trace: Consumer<TraceStep>,
    pub(crate) captures: CaptureControl,
    pub(crate) waker: Arc<Waker>,
    pub(crate) stats: Arc<WorkerStats>,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) core: Option<usize>,
    /// The queues that the worker serves.
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) sent: u64,
    pub(crate) thread: Option<std::thread::JoinHandle<()>>,
    /// The worker itself, where no thread runs it.
    pub(crate) by_hand: Option<Box<Worker>>,
}

impl WorkerHandle {
    /// Tells the worker. A full ring is waited for: this is the cold side.
    pub(crate) fn tell(&mut self, command: Command) {
        self.note_queues(&command);
        let mut command = command;
        let began = Instant::now();
        while let Err(back) = self.commands.push(command) {
            if self.commands.is_abandoned() || began.elapsed() > PATIENCE {
                return tracing::error!("a worker takes no commands any more");
            }
            command = back;
            self.wait(Duration::from_micros(50));
        }
        self.sent += 1;
        self.waker.wake();
    }

    /// Keeps what queues cost the worker at hand for `show runtime`.
    fn note_queues(&mut self, command: &Command) {
        let (interface, number, direction, work) = match command {
            Command::AddRx {
                interface,
                number,
                work,
                ..
            } => (*interface, *number, Direction::Rx, work.clone()),
            Command::AddTx {
                interface,
                number,
                work,
                ..
            } => (*interface, *number, Direction::Tx, work.clone()),
            Command::Remove { interface } => {
                return self.queues.retain(|row| row.interface != *interface);
            }
            _ => return,
        };
        self.queues.push(QueueRow {
            interface,
            number,
            direction,
            work,
        });
    }

    /// Waits until the worker has carried out all its commands; `false` when it does not.
    pub(crate) fn sync(&mut self) -> bool {
        let began = Instant::now();
        while self.stats.done.load(Ordering::Acquire) < self.sent {
            if self.commands.is_abandoned() || began.elapsed() > PATIENCE {
                return false;
            }
            self.wait(Duration::from_micros(20));
        }
        true
    }

    /// Lets the worker come further.
    pub(crate) fn wait(&mut self, time: Duration) {
        if self.turn_by_hand().is_none() {
            self.waker.wake();
            std::thread::sleep(time);
        }
    }

    /// One turn of a worker that no thread runs, in packets; `None` when a thread runs it.
    pub(crate) fn turn_by_hand(&mut self) -> Option<usize> {
        self.by_hand.as_deref_mut().map(Worker::turn)
    }

    /// Waits until the worker has passed a whole turn from now, which an unconditional command shows.
    pub(crate) fn pass_a_turn(&mut self) -> bool {
        self.tell(Command::Trace(None));
        self.sync()
    }
}
