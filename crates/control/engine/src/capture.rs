//! Captures: from the workers' taps to whoever asked for packets.
//!
//! Beginning one makes a ring on each worker, attaches the tap where it has to look, and starts a thread
//! that puts what comes out of the rings in order of time, writes it as pcapng and offers it to the
//! client's stream. When the client is slow the thread waits with one piece in hand, the rings fill, and
//! what finds no room is counted as lost by the taps: no worker waits, and memory is bounded.
//!
//! A capture ends when a limit is reached, when a client ends it, when the client disconnects or when the router
//! stops: the tap is detached, what the workers wrote until then is sent, and the last block says how many
//! packets were lost. A client that takes nothing for [`PATIENCE`] then is left without the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use weir_api::{
    ApiError, Caller, Capture, CaptureRequest, CaptureSink, CaptureStream, ErrorCode, NotTaken,
    Timestamp,
};
use weir_graph::{DropReason, NodeSpec};
use weir_pcap::ng::{Blocks, Direction, Statistics};
use weir_telemetry::capture::{CaptureSource, CaptureTap, Captured, Filter, Reasons, Seen};

use crate::clock::Clock;
use crate::control::Control;
use crate::router::{Inner, Router};
use crate::taps::CAPTURE_TAP;

/// A piece is offered when it has so many octets, or when nothing more is there.
const PIECE: usize = 64 << 10;
/// Packets taken from each ring before they are put in order.
const BATCH: usize = 512;
/// How long the thread rests when nothing came.
const REST: Duration = Duration::from_millis(2);
/// How long it rests when the client has to read first.
const LATER: Duration = Duration::from_millis(1);
/// How long the end of a capture waits for its client, and for workers.
const PATIENCE: Duration = Duration::from_secs(2);
/// More octets than a packet has in a capture beside its data: the block, its options, a comment.
const BESIDE: u64 = 192;
/// Octets of an interface's statistics.
const STATISTICS: u64 = 80;

/// The captures under way.
#[derive(Default)]
pub(crate) struct Captures {
    running: BTreeMap<u64, Running>,
    last: u64,
    threads: Vec<JoinHandle<()>>,
}

struct Running {
    filter: Filter,
    author: String,
    since: Timestamp,
    request: CaptureRequest,
    progress: Arc<Progress>,
}

/// How far a capture has come.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
}

impl Captures {
    /// The taps that an interface's arriving packets are shown to. Who names none captures at ports.
    pub(crate) fn rx_taps(&self, interface: u32, is_port: bool) -> u32 {
        self.taps(|filter| {
            filter.rx
                && filter
                    .interface
                    .map_or(is_port, |wanted| wanted == interface)
        })
    }

    /// The taps that an interface's leaving packets are shown to.
    pub(crate) fn tx_taps(&self, interface: u32, is_port: bool) -> u32 {
        self.taps(|filter| {
            filter.tx
                && filter
                    .interface
                    .map_or(is_port, |wanted| wanted == interface)
        })
    }

    /// The taps that dropped packets are shown to.
    pub(crate) fn drop_taps(&self) -> u32 {
        self.taps(|filter| filter.drop.is_some())
    }

    fn taps(&self, wants: impl Fn(&Filter) -> bool) -> u32 {
        if self.running.values().any(|running| wants(&running.filter)) {
            CAPTURE_TAP
        } else {
            0
        }
    }
}

impl Running {
    fn view(&self, number: u64) -> Capture {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Capture {
            number,
            author: self.author.clone(),
            since: self.since,
            request: self.request.clone(),
            captured_packets: count(&self.progress.packets),
            captured_bytes: count(&self.progress.bytes),
            lost_packets: count(&self.progress.lost),
        }
    }
}

impl Control {
    /// Attaches the capture tap where a capture under way looks, and nowhere else.
    fn attach_captures(&mut self) {
        let names: Vec<String> = self.interfaces.keys().cloned().collect();
        names.iter().for_each(|name| self.refresh(name));
        self.attach_drop_taps();
        self.settle_or_log();
    }

    fn filter(&self, request: &CaptureRequest) -> Result<Filter, ApiError> {
        let interface = match &request.interface {
            Some(name) => {
                let known = self.interfaces.keys().map(String::as_str);
                Some(
                    self.interfaces
                        .get(name)
                        .ok_or_else(|| ApiError::unknown("interface", name, known))?
                        .index,
                )
            }
            None => None,
        };
        let reason = |name: &String| {
            let known = DropReason::ALL.iter().map(|reason| reason.name());
            DropReason::ALL
                .iter()
                .copied()
                .find(|reason| reason.name() == name)
                .ok_or_else(|| ApiError::unknown("drop reason", name, known))
        };
        let reasons = request
            .reasons
            .iter()
            .map(reason)
            .collect::<Result<BTreeSet<_>, _>>()?;
        let reasons = if reasons.is_empty() {
            Reasons::ALL
        } else {
            Reasons::of(reasons)
        };
        Ok(Filter {
            rx: request.rx,
            tx: request.tx,
            drop: request.drop.then_some(reasons),
            interface,
            snap: request.snap_bytes.unwrap_or(CaptureRequest::MOST_SNAP) as usize,
        })
    }

    fn end_captures_on_workers(&mut self, number: u64) {
        self.workers
            .iter_mut()
            .for_each(|worker| worker.captures.end(number));
    }
}

impl Router {
    /// Begins a capture.
    pub(crate) fn begin_capture(
        &self,
        request: &CaptureRequest,
        caller: &Caller,
    ) -> Result<CaptureStream, ApiError> {
        let mut control = self.control();
        let control = &mut *control;
        if control.captures.running.len() >= CaptureTap::MOST || self.is_stopping() {
            let message = format!(
                "{} captures are under way already",
                control.captures.running.len()
            );
            return Err(ApiError::new(
                ErrorCode::Conflict,
                message,
                "end one of them first: `weir show pcap` lists them",
            ));
        }
        let filter = control.filter(request)?;
        control.captures.last += 1;
        let number = control.captures.last;
        let mut sources = Vec::with_capacity(control.workers.len());
        for worker in &mut control.workers {
            sources.extend(worker.captures.begin(number, filter));
        }
        if sources.len() < control.workers.len() {
            control.end_captures_on_workers(number);
            return Err(ApiError::new(
                ErrorCode::Conflict,
                "a worker takes no captures any more",
                "is the router stopping?",
            ));
        }
        let (sink, stream) = CaptureStream::new(number);
        let progress = Arc::<Progress>::default();
        let teller = Teller::new(
            control,
            self,
            number,
            request,
            filter,
            sources,
            sink,
            progress.clone(),
        );
        let running = Running {
            filter,
            author: caller.author(),
            since: Timestamp::now(),
            request: request.clone(),
            progress,
        };
        control.captures.running.insert(number, running);
        control.attach_captures();
        control
            .captures
            .threads
            .retain(|thread| !thread.is_finished());
        match std::thread::Builder::new()
            .name(format!("weir-pcap-{number}"))
            .spawn(move || teller.run())
        {
            Ok(thread) => control.captures.threads.push(thread),
            Err(error) => {
                control.captures.running.remove(&number);
                control.attach_captures();
                control.end_captures_on_workers(number);
                return Err(ApiError::new(
                    ErrorCode::Unavailable,
                    format!("no thread for a capture: {error}"),
                    "try again in a moment",
                ));
            }
        }
        tracing::info!("capture {number} by {caller} begins");
        Ok(stream)
    }

    /// The captures under way.
    pub(crate) fn captures_view(&self) -> weir_api::Captures {
        let control = self.control();
        let captures = control
            .captures
            .running
            .iter()
            .map(|(number, running)| running.view(*number))
            .collect();
        weir_api::Captures {
            captures,
            most: CaptureTap::MOST as u32,
        }
    }

    /// Tells a capture to end.
    pub(crate) fn end_capture(&self, number: u64) -> Result<Capture, ApiError> {
        let control = self.control();
        let running = control.captures.running.get(&number);
        let running = running.ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotFound,
                format!("no capture {number}"),
                "`weir show pcap` lists them",
            )
        })?;
        running.progress.stop.store(true, Ordering::Release);
        Ok(running.view(number))
    }

    /// Ends all captures, while workers still run.
    pub(crate) fn end_all_captures(&self) {
        let threads = {
            let mut control = self.control();
            control
                .captures
                .running
                .values()
                .for_each(|running| running.progress.stop.store(true, Ordering::Release));
            std::mem::take(&mut control.captures.threads)
        };
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a capture ended by a panic");
            }
        }
    }
}

/// Tells one capture to its client; a thread of its own.
struct Teller {
    router: Weak<Inner>,
    number: u64,
    sources: Vec<CaptureSource>,
    sink: CaptureSink,
    progress: Arc<Progress>,
    clock: Clock,
    specs: Vec<NodeSpec>,
    snap: u32,
    packets: u64,
    bytes: u64,
    /// The next packet did not fit any more.
    at_limit: bool,
    until: Option<Instant>,
    blocks: Blocks,
    /// By interface: its number in the capture, and packets that were written.
    interfaces: BTreeMap<u32, (u32, u64)>,
    /// A piece that the client had no room for.
    waiting: Option<Vec<u8>>,
}

impl Teller {
    #[expect(
        clippy::too_many_arguments,
        reason = "what a capture consists of, put together once"
    )]
    fn new(
        control: &Control,
        router: &Router,
        number: u64,
        request: &CaptureRequest,
        filter: Filter,
        sources: Vec<CaptureSource>,
        sink: CaptureSink,
        progress: Arc<Progress>,
    ) -> Teller {
        let mut blocks = Blocks::new(concat!("weir ", env!("CARGO_PKG_VERSION")));
        let snap = request.snap_bytes.unwrap_or(CaptureRequest::MOST_SNAP);
        let mut all: Vec<(u32, &str)> = control
            .interfaces
            .iter()
            .map(|(name, attached)| (attached.index, name.as_str()))
            .collect();
        all.retain(|(index, _)| filter.interface.is_none_or(|wanted| wanted == *index));
        all.sort_unstable();
        let interfaces = all
            .into_iter()
            .map(|(index, name)| (index, (blocks.interface(name, snap), 0)))
            .collect();
        Teller {
            router: Arc::downgrade(&router.0),
            number,
            sources,
            sink,
            progress,
            clock: control.clock.clone(),
            specs: control.specs.clone(),
            snap,
            packets: request.packets.unwrap_or(u64::MAX),
            bytes: request.bytes.unwrap_or(u64::MAX),
            at_limit: false,
            until: request
                .milliseconds
                .and_then(|time| Instant::now().checked_add(Duration::from_millis(time))),
            blocks,
            interfaces,
            waiting: None,
        }
    }

    fn run(mut self) {
        while !self.is_over() {
            self.progress.lost.store(self.lost(), Ordering::Relaxed);
            let room = self.deliver();
            let came = room && self.gather();
            if !room {
                std::thread::sleep(LATER);
            } else if !came {
                self.deliver();
                std::thread::sleep(REST);
            }
        }
        self.end();
    }

    fn lost(&self) -> u64 {
        self.sources
            .iter()
            .map(|source| source.counters.lost.get())
            .sum()
    }

    fn is_over(&self) -> bool {
        self.sink.is_gone()
            || self.sink.is_enough()
            || self.progress.stop.load(Ordering::Acquire)
            || self.is_full()
            || self.until.is_some_and(|until| Instant::now() >= until)
            || self.router.strong_count() == 0
    }

    /// Whether what was asked for is there.
    fn is_full(&self) -> bool {
        self.at_limit || self.progress.packets.load(Ordering::Relaxed) >= self.packets
    }

    /// Whether a packet, and the statistics behind it, fit what was asked for.
    fn fits(&self, packet: &Captured) -> bool {
        let written = self.progress.bytes.load(Ordering::Relaxed) + self.blocks.len() as u64;
        let statistics = STATISTICS * (self.interfaces.len() as u64 + 1);
        written + packet.data.len() as u64 + BESIDE + statistics <= self.bytes
    }

    /// Takes what came, a bounded number of packets, in order of time; whether anything did.
    fn gather(&mut self) -> bool {
        let mut batch = Vec::new();
        for source in &mut self.sources {
            batch.extend(std::iter::from_fn(|| source.pop()).take(BATCH));
        }
        batch.sort_by_key(|packet| packet.time);
        // The router's clock has its own beginning, and is not set by anybody.
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let offset = u64::try_from(now.as_nanos())
            .unwrap_or(0)
            .saturating_sub(self.clock.now());
        for packet in &batch {
            if self.is_full() {
                break;
            }
            if !self.fits(packet) {
                self.at_limit = true;
                break;
            }
            self.write(packet, offset);
        }
        !batch.is_empty()
    }

    fn write(&mut self, packet: &Captured, offset: u64) {
        let interface = self.interface(packet.interface);
        let direction = if packet.seen == Seen::Tx {
            Direction::Outbound
        } else {
            Direction::Inbound
        };
        let comment = match packet.seen {
            Seen::Drop { node, reason } => {
                let node = self
                    .specs
                    .get(usize::from(node))
                    .map_or("?", |spec| spec.name);
                Some(format!("dropped at {node}: {}", reason.name()))
            }
            Seen::Rx | Seen::Tx => None,
        };
        self.blocks.packet(
            interface,
            packet.time.saturating_add(offset),
            packet.length,
            &packet.data,
            direction,
            comment.as_deref(),
        );
        self.progress.packets.fetch_add(1, Ordering::Relaxed);
        if self.blocks.len() >= PIECE {
            self.deliver();
        }
    }

    /// An interface's number in the capture; new ones are described when their first packet comes.
    fn interface(&mut self, index: u32) -> u32 {
        if let Some((number, packets)) = self.interfaces.get_mut(&index) {
            *packets += 1;
            return *number;
        }
        let router = self.router.upgrade().map(Router);
        let name = router.and_then(|router| router.control().name_of(index).map(str::to_owned));
        let number = self
            .blocks
            .interface(&name.unwrap_or_else(|| format!("#{index}")), self.snap);
        self.interfaces.insert(index, (number, 1));
        number
    }

    /// Offers what is written; whether there is room for more.
    fn deliver(&mut self) -> bool {
        let piece = match self.waiting.take() {
            Some(waiting) => waiting,
            None if self.blocks.is_empty() => return true,
            None => self.taken(),
        };
        match self.sink.offer(piece) {
            Ok(()) => self.blocks.len() < PIECE,
            Err(NotTaken::Later(piece)) => {
                self.waiting = Some(piece);
                false
            }
            Err(NotTaken::Gone) => false,
        }
    }

    fn taken(&mut self) -> Vec<u8> {
        let piece = self.blocks.take();
        self.progress
            .bytes
            .fetch_add(piece.len() as u64, Ordering::Relaxed);
        piece
    }

    /// Detaches the tap, tells what workers wrote by then, and how many packets were lost.
    fn end(mut self) {
        if let Some(inner) = self.router.upgrade() {
            let router = Router(inner);
            let mut control = router.control();
            control.captures.running.remove(&self.number);
            control.attach_captures();
            control.end_captures_on_workers(self.number);
            control.workers.iter_mut().for_each(|worker| {
                worker.turn_by_hand();
            });
        }
        // A worker that has let go of its counters writes no more.
        let began = Instant::now();
        while self
            .sources
            .iter()
            .any(|source| Arc::strong_count(&source.counters) > 1)
            && began.elapsed() < PATIENCE
        {
            std::thread::sleep(LATER);
        }
        while !self.sink.is_gone() && !self.is_full() && began.elapsed() < PATIENCE {
            if !self.deliver() {
                std::thread::sleep(LATER);
            } else if !self.gather() {
                break;
            }
        }
        let lost = self.lost();
        let time = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let time = u64::try_from(time.as_nanos()).unwrap_or(0);
        for (place, (number, delivered)) in self.interfaces.values().enumerate() {
            // Rings are the workers', not the interfaces': the first one tells for all.
            let lost = if place == 0 { lost } else { 0 };
            self.blocks.statistics(
                *number,
                Statistics {
                    time,
                    delivered: *delivered,
                    lost,
                },
            );
        }
        while began.elapsed() < 2 * PATIENCE && !self.sink.is_gone() {
            if self.deliver() && self.blocks.is_empty() {
                break;
            }
            std::thread::sleep(LATER);
        }
        let packets = self.progress.packets.load(Ordering::Relaxed);
        tracing::info!(
            "capture {} ended: {packets} packets, {lost} lost",
            self.number
        );
    }
}

#[cfg(test)]
mod tests {
    use weir_config::check;

    use super::*;
    use crate::{Options, Trial};

    /// What the graph asks before each vector and each drop.
    fn attached(router: &Router) -> Vec<(u32, u32, u32)> {
        let control = router.control();
        let of = |attached: &crate::control::Attached| {
            let interface = control.tables.interface(attached.index).unwrap();
            (
                interface.rx_taps,
                interface.tx_taps,
                control.tables.drop_taps,
            )
        };
        control.interfaces.values().map(of).collect()
    }

    #[test]
    fn the_tap_is_attached_only_where_a_capture_looks_and_only_while_it_does() {
        let text = "interfaces:\n  a: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ], sflow: true }\n  b: { device: { driver: 'null' } }\n";
        let router = Router::start(
            &check("weir.yaml", text).unwrap().0,
            &Options::on_trial(&Trial::new(|_| None)),
        )
        .unwrap();
        let off = attached(&router);
        assert_eq!(off, [(1, 0, 0), (0, 0, 0)], "sFlow alone");
        let begin =
            |request: CaptureRequest| router.begin_capture(&request, &Caller::router()).unwrap();
        let one = begin(CaptureRequest {
            tx: true,
            interface: Some("b".to_owned()),
            ..CaptureRequest::default()
        });
        assert_eq!(attached(&router), [(1, 0, 0), (0, CAPTURE_TAP, 0)]);
        let two = begin(CaptureRequest {
            rx: true,
            drop: true,
            ..CaptureRequest::default()
        });
        assert_eq!(
            attached(&router),
            [
                (1 | CAPTURE_TAP, 0, CAPTURE_TAP),
                (CAPTURE_TAP, CAPTURE_TAP, CAPTURE_TAP)
            ]
        );
        drop((one, two));
        let began = Instant::now();
        while attached(&router) != off {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{:?}",
                attached(&router)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        router.stop();
    }
}
