//! The capture tap: copies packets that come, leave or are dropped, for `weir pcap capture`.
//!
//! Each worker has one. While nobody captures, no interface names it in its taps and no vector comes
//! by: it costs nothing but a look at an empty channel a few times a second. What is to be captured
//! comes from the control side through that channel ([`CaptureControl`]), with a ring made for it;
//! before that, the control side attaches the tap where it has to look.
//!
//! A packet is copied into the ring in cells of [`CELL`] octets, whole or cut to the snap length. When
//! it does not fit, it is counted as lost and gone: whoever reads may be slow, stuck or dead, and no
//! packet waits. Several captures each have rings of their own and know nothing of each other.
//!
//! The tap sees a packet before the driver takes it: at tx, what the driver then refuses was seen.

use std::sync::Arc;

use weir_buf::Pkt;
use weir_graph::{DropReason, Look, Marks, Point, Tap, World};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_ring::spsc::slots::{self, Reader, Writer};
use weir_ring::spsc::{self, Consumer, Producer};

/// Octets of a packet in one cell.
pub const CELL: usize = 464;
/// Cells of a ring: two thousand packets of 1,500 octets, or eight thousand short ones; 4 MiB.
const CELLS: usize = 8192;
/// Changes on their way to a tap.
const CHANGES: usize = 64;

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// Coming in.
    #[default]
    Rx,
    /// Leaving.
    Tx,
    /// Dropped at a node, for a reason.
    Drop {
        /// The node's number in the graph.
        node: u16,
        /// The reason.
        reason: DropReason,
    },
}

/// A set of drop reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons([u64; 4]);

impl Reasons {
    /// Every reason.
    pub const ALL: Reasons = Reasons([u64::MAX; 4]);

    /// These reasons.
    #[must_use]
    pub fn of(reasons: impl IntoIterator<Item = DropReason>) -> Reasons {
        let mut set = [0; 4];
        for reason in reasons {
            set[reason as usize / 64] |= 1 << (reason as usize % 64);
        }
        Reasons(set)
    }

    /// Whether a reason is among them.
    #[must_use]
    pub fn has(self, reason: DropReason) -> bool {
        self.0[reason as usize / 64] & 1 << (reason as usize % 64) != 0
    }
}

/// What is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What comes in.
    pub rx: bool,
    /// What leaves.
    pub tx: bool,
    /// What is dropped for one of these reasons.
    pub drop: Option<Reasons>,
    /// On this interface only: of arrival, or of departure at tx. At all ports when absent.
    pub interface: Option<u32>,
    /// Octets kept of a packet.
    pub snap: usize,
}

impl Filter {
    /// How packets at a point of an interface are seen, if they are; `inner` says that it is no port.
    fn takes(&self, point: Point, interface: u32, inner: bool) -> Option<Seen> {
        if self.interface.map_or(inner, |wanted| wanted != interface) {
            return None;
        }
        match point {
            Point::Rx => self.rx.then_some(Seen::Rx),
            Point::Tx => self.tx.then_some(Seen::Tx),
            Point::Drop { node, reason } => self
                .drop
                .filter(|reasons| reasons.has(reason))
                .map(|_| Seen::Drop { node, reason }),
        }
    }
}

/// A part of a captured packet; the first has the facts.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Cell {
    /// Octets of the whole packet on the wire.
    length: u32,
    /// Octets that were kept of it, in this cell and those behind it.
    kept: u32,
    interface: u32,
    time: u64,
    seen: Seen,
    data: [u8; CELL],
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            length: 0,
            kept: 0,
            interface: 0,
            time: 0,
            seen: Seen::Rx,
            data: [0; CELL],
        }
    }
}

/// A captured packet as it comes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Octets of the whole packet on the wire.
    pub length: u32,
    /// The interface: of arrival, or of departure at tx; 0 = nobody's.
    pub interface: u32,
    /// Nanoseconds of the router's clock, of the turn.
    pub time: u64,
    /// Where it was seen.
    pub seen: Seen,
    /// What was kept of it.
    pub data: Vec<u8>,
}

/// What one worker counts of one capture.
#[derive(Debug, Default)]
pub struct CaptureCounters {
    /// Packets that the filter took, those that found no room included.
    pub taken: Counter,
    /// Packets that found no room in the ring.
    pub lost: Counter,
}

/// The cold end of one worker's share of a capture.
#[derive(Debug)]
pub struct CaptureSource {
    ring: Reader<Cell>,
    /// What the worker counts.
    pub counters: Arc<Padded<CaptureCounters>>,
}

impl CaptureSource {
    /// Takes the oldest packet.
    pub fn pop(&mut self) -> Option<Captured> {
        let mut packet = Captured::default();
        let mut kept = self.ring.pop_with(|cell| {
            (packet.length, packet.interface, packet.time, packet.seen) =
                (cell.length, cell.interface, cell.time, cell.seen);
            take_cell(cell, cell.kept as usize, &mut packet.data)
        })?;
        // The last cells may be a moment behind the first; of a worker that died they never come.
        let mut patience = 1_000_000;
        while kept > 0 && patience > 0 {
            match self
                .ring
                .pop_with(|cell| take_cell(cell, kept, &mut packet.data))
            {
                Some(left) => kept = left,
                None => {
                    patience -= 1;
                    std::hint::spin_loop();
                }
            }
        }
        Some(packet)
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}

fn take_cell(cell: &Cell, kept: usize, to: &mut Vec<u8>) -> usize {
    let here = kept.min(CELL);
    to.extend_from_slice(cell.data.get(..here).unwrap_or(&[]));
    kept - here
}

/// What the control side tells a tap.
enum Change {
    Begin(Box<Capturing>),
    End(u64),
}

/// One capture on one worker.
struct Capturing {
    number: u64,
    filter: Filter,
    ring: Writer<Cell>,
    counters: Arc<Padded<CaptureCounters>>,
}

impl Capturing {
    fn record(&mut self, interface: u32, time: u64, seen: Seen, packet: &Pkt) {
        let length = packet.total_len();
        let kept = length.min(self.filter.snap);
        let cells = kept.div_ceil(CELL).max(1);
        self.counters.taken.add(1);
        if self.ring.room(cells) < cells {
            return self.counters.lost.add(1);
        }
        for place in 0..cells {
            let from = place * CELL;
            self.ring.push_with(|cell| {
                (cell.length, cell.kept, cell.interface, cell.time, cell.seen) =
                    (length as u32, kept as u32, interface, time, seen);
                let here = (kept - from).min(CELL);
                packet.copy_out(from, cell.data.get_mut(..here).unwrap_or(&mut []));
            });
        }
    }
}

/// The tap of one worker.
pub struct CaptureTap {
    changes: Consumer<Change>,
    running: Vec<Capturing>,
}

/// The control side's end of a worker's tap.
pub struct CaptureControl(Producer<Change>);

impl CaptureTap {
    /// The most captures at once.
    pub const MOST: usize = 8;

    /// A tap and what tells it what to capture.
    #[must_use]
    pub fn new() -> (CaptureTap, CaptureControl) {
        let (producer, changes) = spsc::ring(CHANGES);
        (
            CaptureTap {
                changes,
                running: Vec::with_capacity(CaptureTap::MOST),
            },
            CaptureControl(producer),
        )
    }

    #[cold]
    fn change(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                // The room was made at the start: nothing is allocated here.
                Change::Begin(capturing) if self.running.len() < CaptureTap::MOST => {
                    self.running.push(*capturing)
                }
                Change::Begin(_) => {}
                Change::End(number) => self.running.retain(|capturing| capturing.number != number),
            }
        }
    }
}

impl CaptureControl {
    /// Begins a capture; returns where its packets come out. The tap must be attached where they pass.
    /// `None` when the worker does not take changes any more.
    pub fn begin(&mut self, number: u64, filter: Filter) -> Option<CaptureSource> {
        let (ring, reader) = slots::ring(CELLS);
        let counters = Arc::new(Padded::<CaptureCounters>::default());
        let capturing = Capturing {
            number,
            filter,
            ring,
            counters: counters.clone(),
        };
        self.0.push(Change::Begin(Box::new(capturing))).ok()?;
        Some(CaptureSource {
            ring: reader,
            counters,
        })
    }

    /// Ends a capture; with the tap's next look or tick it writes no more.
    pub fn end(&mut self, number: u64) {
        // A full channel belongs to a worker that does not run.
        let _ = self.0.push(Change::End(number));
    }
}

impl<W: World> Tap<W> for CaptureTap {
    fn name(&self) -> &'static str {
        "pcap"
    }

    fn look(&mut self, look: &Look<'_, W>, packets: &[Pkt], _marks: &mut Marks) -> u64 {
        if !self.changes.is_empty() {
            self.change();
        }
        for capturing in &mut self.running {
            if let Some(seen) = capturing
                .filter
                .takes(look.point, look.interface, look.inner)
            {
                packets
                    .iter()
                    .for_each(|packet| capturing.record(look.interface, look.now, seen, packet));
            }
        }
        0
    }

    fn tick(&mut self, _now: u64) -> bool {
        if !self.changes.is_empty() {
            self.change();
        }
        false
    }
}
