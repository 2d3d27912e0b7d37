//! The thread that follows the kernel's tables and hands updates over in batches.
//!
//! It joins the groups first and reads the tables second, so that nothing falls between. Its socket has a large buffer; what it
//! reads goes into a bounded queue. When the queue is full it waits, and the socket's buffer holds what comes meanwhile. When
//! that overruns, the kernel drops messages: the thread takes what was queued before the loss, reads all tables
//! again, and marks the routes that are not among them as stale ([`FeedMessage::Begin`], [`FeedMessage::End`]).
//!
//! The same is done on request and every [`AUDIT_INTERVAL`]: the kernel does not announce each route that goes (IPv4 routes
//! of a link that goes down vanish silently), so that what is known must be compared from time to time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::{LabelUpdate, RouteSource, RouteUpdate, Target};
use weir_netlink::listen::{Heard, Listener, group};
use weir_netlink::netns::NetNs;
use weir_netlink::route::Route;
use weir_netlink::{Error, Frames};

use crate::decode::{Decoder, Message};
use crate::protocol::Protocols;
use crate::queue::{Reader, Stopped, Writer, queue};

/// Bytes of the socket's buffer: some 160,000 notifications of routes.
pub const BUFFER_BYTES: usize = 128 << 20;
/// How often the kernel's tables are compared with what is known.
pub const AUDIT_INTERVAL: Duration = Duration::from_secs(300);
/// Updates of a batch.
const BATCH: usize = 1024;
/// Datagrams that are read before others have a turn.
const READS: usize = 8192;
/// How often the thread looks whether it shall end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Pause after routes have been handed over. What comes meanwhile is one batch: a daemon that writes a full table would else
/// wake this thread and the control side for each few routes. The first change after a silence does not wait.
const GATHER: Duration = Duration::from_millis(2);
/// How long the kernel may be silent within a dump.
const DUMP_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before a table is read again that changed meanwhile.
const RETRY: Duration = Duration::from_millis(500);

const GROUPS: [u32; 6] = [
    group::LINK,
    group::IPV4_ADDRESS,
    group::IPV6_ADDRESS,
    group::IPV4_ROUTE,
    group::IPV6_ROUTE,
    group::MPLS_ROUTE,
];

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const AF_MPLS: u8 = 28;
/// There while the kernel's MPLS is loaded.
const MPLS_PARAMETERS: &str = "/proc/sys/net/mpls";

/// What the feed hands over, in order.
#[derive(Debug)]
pub enum FeedMessage {
    /// All routes follow, as they are now.
    Begin,
    /// Routes that came, changed or went, and when the first message of them was read; without a time when they were found
    /// by reading a whole table.
    Routes(Vec<RouteUpdate>, Option<Instant>),
    /// Incoming labels that came, changed or went.
    Labels(Vec<LabelUpdate>),
    /// Links and addresses, as they came.
    Others(Vec<Message>),
    /// Next-hop objects that changed, with where they lead; nowhere when they are gone.
    Objects(Vec<(u32, Option<Arc<Target>>)>),
    /// All routes of these protocols have been handed over since [`FeedMessage::Begin`]; all routes at all when `None`.
    End(Option<Protocols>),
}

/// What the feed counts.
#[derive(Debug, Default)]
pub struct FeedCounters {
    /// Messages of the kernel.
    pub messages: AtomicU64,
    /// Updates of routes that were handed over.
    pub updates: AtomicU64,
    /// Times that the kernel dropped messages.
    pub overruns: AtomicU64,
    /// Times that all tables were read.
    pub resyncs: AtomicU64,
    /// Times that a table changed while it was read, so that it was read again.
    pub interrupted: AtomicU64,
    /// Bytes of the socket's buffer.
    pub buffer_bytes: AtomicUsize,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl FeedCounters {
    fn refuse(&self, reason: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(reason).or_default() += 1;
    }

    /// Messages that could not be expressed, by reason.
    #[must_use]
    pub fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// What both sides share.
#[derive(Debug, Default)]
struct Shared {
    counters: FeedCounters,
    resync: AtomicBool,
}

/// The feed of one network namespace. Dropping it ends the thread.
#[derive(Debug)]
pub struct Feed {
    reader: Reader,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Feed {
    /// Starts to follow a namespace; the calling thread's when `None`. `wake` is called when something waits.
    ///
    /// # Errors
    /// When the kernel refuses the sockets, or the thread cannot be started.
    pub fn start(
        namespace: Option<&NetNs>,
        buffer_bytes: usize,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Feed, Error> {
        let open = move || {
            let has_mpls = std::path::Path::new(MPLS_PARAMETERS).exists();
            let listener = Listener::open(&GROUPS, buffer_bytes)?;
            Ok((listener, Route::open()?, has_mpls))
        };
        let (listener, mut route, has_mpls) = match namespace {
            None => open(),
            Some(namespace) => namespace.run(open)?,
        }?;
        route.set_timeout(DUMP_TIMEOUT);
        let shared = Arc::new(Shared::default());
        let bytes = listener.buffer_bytes();
        shared.counters.buffer_bytes.store(bytes, Ordering::Relaxed);
        let (writer, reader) = queue(wake);
        let follower = Follower {
            listener,
            route,
            decoder: Decoder::new(RouteSource::Kernel),
            writer,
            shared: shared.clone(),
            has_mpls,
            gathered: Gathered::default(),
            received: None,
        };
        let thread = std::thread::Builder::new()
            .name("weir-netlink".into())
            .spawn(move || follower.run())
            .map_err(|source| Error::system("start the thread that follows the kernel", source))?;
        Ok(Feed {
            reader,
            shared,
            thread: Some(thread),
        })
    }

    /// The next message, if one waits.
    pub fn next(&self) -> Option<FeedMessage> {
        self.reader.next()
    }

    /// The number of messages that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.reader.waiting()
    }

    /// Asks for all tables again.
    pub fn resync(&self) {
        self.shared.resync.store(true, Ordering::Release);
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &FeedCounters {
        &self.shared.counters
    }

    /// Whether the thread has ended, by an error.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.reader.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Follower {
    listener: Listener,
    route: Route,
    decoder: Decoder,
    writer: Writer,
    shared: Arc<Shared>,
    /// A dump of MPLS routes from a kernel without them would be one of all routes.
    has_mpls: bool,
    gathered: Gathered,
    /// When the first of the gathered routes was read, if it was not found by reading a table.
    received: Option<Instant>,
}

/// What waits to be handed over.
#[derive(Default)]
struct Gathered {
    routes: Vec<RouteUpdate>,
    labels: Vec<LabelUpdate>,
    others: Vec<Message>,
}

/// The thread ends: it was stopped, or a socket failed.
struct End;

impl Follower {
    fn run(mut self) {
        let mut due = Instant::now();
        let mut lost = false;
        while !self.writer.is_stopped() {
            let before = self.shared.counters.updates.load(Ordering::Relaxed);
            let read = self.read();
            let Ok(overrun) = read else { return };
            let has_routes = self.shared.counters.updates.load(Ordering::Relaxed) != before;
            lost |= overrun;
            let wanted = self.shared.resync.swap(false, Ordering::AcqRel);
            if lost || wanted || Instant::now() >= due {
                match self.read_tables() {
                    Ok(true) => {
                        (lost, due) = (false, Instant::now() + AUDIT_INTERVAL);
                    }
                    Ok(false) => {
                        lost = false;
                        due = Instant::now() + RETRY;
                    }
                    Err(End) => return,
                }
            }
            if has_routes {
                std::thread::sleep(GATHER);
            }
            let mut waiting = [PollFd::new(&self.listener, PollFlags::IN)];
            let _ = poll(&mut waiting, Some(&LOOK));
        }
    }

    /// Takes what waits; whether messages were lost.
    fn read(&mut self) -> Result<bool, End> {
        let mut lost = false;
        for _ in 0..READS {
            let heard = match self.listener.receive() {
                Ok(heard) => heard,
                Err(error) => {
                    tracing::error!(%error, "the kernel's routes cannot be followed any more");
                    return Err(End);
                }
            };
            match heard {
                Heard::Nothing => break,
                Heard::Overrun => {
                    self.shared
                        .counters
                        .overruns
                        .fetch_add(1, Ordering::Relaxed);
                    lost = true;
                }
                Heard::Datagram(datagram) => {
                    let (decoder, shared) = (&mut self.decoder, &*self.shared);
                    for frame in Frames::new(datagram) {
                        match frame {
                            Ok(frame) => take(decoder.read(&frame), shared, &mut self.gathered),
                            Err(()) => shared.counters.refuse("malformed"),
                        }
                    }
                }
            }
            let gathered = &self.gathered;
            if self.received.is_none() && !gathered.routes.is_empty() {
                self.received = Some(Instant::now());
            }
            if gathered.routes.len() >= BATCH
                || gathered.labels.len() >= BATCH
                || !gathered.others.is_empty()
            {
                self.hand_over()?;
            }
        }
        self.hand_over()?;
        Ok(lost)
    }

    /// Reads all tables; whether they stayed as they were meanwhile.
    fn read_tables(&mut self) -> Result<bool, End> {
        self.shared.counters.resyncs.fetch_add(1, Ordering::Relaxed);
        self.dump(RTM_GETLINK, &[0; 16])?;
        self.dump(RTM_GETADDR, &[0; 8])?;
        self.send(FeedMessage::Begin)?;
        let mut whole = true;
        let families = [AF_INET, AF_INET6, AF_MPLS];
        for family in families.into_iter().take(2 + usize::from(self.has_mpls)) {
            let mut header = [0; 12];
            header[0] = family;
            whole &= self.dump(RTM_GETROUTE, &header)?;
        }
        if whole {
            self.send(FeedMessage::End(None))?;
        } else {
            let interrupted = &self.shared.counters.interrupted;
            interrupted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(whole)
    }

    fn dump(&mut self, kind: u16, header: &[u8]) -> Result<bool, End> {
        let mut ended = false;
        let Follower {
            route,
            decoder,
            shared,
            gathered,
            writer,
            ..
        } = self;
        let result = route.dump_each(kind, header, &mut |frame| {
            take(decoder.read(frame), shared, gathered);
            if gathered.routes.len() >= BATCH && !ended {
                let batch = std::mem::take(&mut gathered.routes);
                ended = send(writer, shared, FeedMessage::Routes(batch, None)).is_err();
            }
            if gathered.labels.len() >= BATCH && !ended {
                let batch = std::mem::take(&mut gathered.labels);
                ended = send(writer, shared, FeedMessage::Labels(batch)).is_err();
            }
        });
        if ended {
            return Err(End);
        }
        self.hand_over()?;
        match result {
            Ok(whole) => Ok(whole),
            Err(error) => {
                tracing::warn!(%error, "a table of the kernel could not be read; it is tried again");
                Ok(false)
            }
        }
    }

    /// Hands over what has been gathered. Links come before routes: these need them.
    fn hand_over(&mut self) -> Result<(), End> {
        let gathered = std::mem::take(&mut self.gathered);
        if !gathered.others.is_empty() {
            self.send(FeedMessage::Others(gathered.others))?;
        }
        if !gathered.routes.is_empty() {
            let received = self.received.take();
            self.send(FeedMessage::Routes(gathered.routes, received))?;
        }
        if !gathered.labels.is_empty() {
            self.has_mpls = true;
            self.send(FeedMessage::Labels(gathered.labels))?;
        }
        Ok(())
    }

    fn send(&mut self, message: FeedMessage) -> Result<(), End> {
        send(&self.writer, &self.shared, message)
    }
}

fn take(message: Message, shared: &Shared, gathered: &mut Gathered) {
    shared.counters.messages.fetch_add(1, Ordering::Relaxed);
    match message {
        Message::Route(update) => gathered.routes.push(update),
        Message::Label(update) => gathered.labels.push(update),
        Message::Ignored => {}
        Message::Refused(reason) => shared.counters.refuse(reason),
        other => gathered.others.push(other),
    }
}

fn send(writer: &Writer, shared: &Shared, message: FeedMessage) -> Result<(), End> {
    if let FeedMessage::Routes(routes, _) = &message {
        let updates = &shared.counters.updates;
        updates.fetch_add(routes.len() as u64, Ordering::Relaxed);
    }
    writer.send(message).map_err(|Stopped| End)
}
