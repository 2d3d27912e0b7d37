//! FRR's zebra as a source of routes, by the forwarding plane manager protocol (`dplane_fpm_nl`).
//!
//! Zebra connects to this side by TCP and sends netlink messages in frames. A frame is a transaction: FRR 8 sends a change as
//! deletion and addition in one frame, so the messages of a frame are handed over together. After it has connected, zebra
//! sends all that it has (objects, then routes) without a mark of the end. The end is assumed when nothing came for
//! [`FpmSettings::quiet`]. Routes that were not sent again are stale then, but only those of protocols that zebra has sent
//! routes of: a zebra that was restarted has none of BGP before bgpd has learned them again. The others are stale when the
//! session has lasted for [`FpmSettings::hold`].
//!
//! When the session ends, routes stay for [`FpmSettings::hold`] too. One session is served; a new one takes the place of the old.
//! The thread runs in the namespace of the daemons, reads, and hands over through a bounded queue: when that is full,
//! TCP makes zebra wait.

pub mod framing;
pub mod objects;

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::{LabelUpdate, RouteSource, RouteUpdate, Target};
use weir_netlink::netns::{NetNs, listen};
use weir_netlink::{Error, Frames};

use crate::decode::{Decoder, Message};
use crate::feed::FeedMessage;
use crate::protocol::Protocols;
use crate::queue::{Reader, Stopped, Writer, queue};
use framing::Framer;
use objects::Objects;

/// Changes of a batch; a frame is never split.
const BATCH: usize = 1024;
/// Bytes of one read.
const READ: usize = 1 << 16;
/// Reads before others have a turn.
const READS: usize = 64;
/// The longest sleep of the thread.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Where zebra connects to, and for how long its silence is borne.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpmSettings {
    /// The address of this side.
    pub address: SocketAddr,
    /// How long routes stay when the session has ended, and in a new session those that it has not sent.
    pub hold: Duration,
    /// The silence after which zebra has sent all its routes. Its own pauses are a second.
    pub quiet: Duration,
}

/// What the session counts.
#[derive(Debug, Default)]
pub struct FpmCounters {
    /// Whether zebra is connected.
    pub is_connected: AtomicBool,
    /// Sessions that began.
    pub sessions: AtomicU64,
    /// Frames.
    pub frames: AtomicU64,
    /// Netlink messages.
    pub messages: AtomicU64,
    /// Changes of routes that were handed over.
    pub updates: AtomicU64,
    /// Next-hop objects of the session.
    pub objects: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl FpmCounters {
    fn refuse(&self, reason: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(reason).or_default() += 1;
    }

    /// Messages that could not be expressed, by reason.
    #[must_use]
    pub fn refused(&self) -> BTreeMap<&'static str, u64> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone()
    }
}

/// The side of zebra's sessions that listens. Dropping it ends the thread.
#[derive(Debug)]
pub struct Fpm {
    reader: Reader,
    counters: Arc<FpmCounters>,
    resync: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fpm {
    /// Listens in a namespace; in the calling thread's when `None`. `wake` is called when something waits.
    ///
    /// # Errors
    /// When the address cannot be used, or the thread cannot be started.
    pub fn start(
        namespace: Option<&NetNs>,
        settings: FpmSettings,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Fpm, Error> {
        let asked = || format!("listen to zebra on {}", settings.address);
        let listener =
            listen(namespace, settings.address).map_err(|source| Error::system(asked(), source))?;
        let (writer, reader) = queue(wake);
        let counters = Arc::new(FpmCounters::default());
        let resync = Arc::new(AtomicBool::new(false));
        let server = Server {
            listener,
            resync: resync.clone(),
            settings,
            writer,
            counters: counters.clone(),
            decoder: Decoder::new(RouteSource::Fpm),
            objects: Objects::default(),
            session: None,
            ended: None,
            routes: Vec::new(),
            labels: Vec::new(),
            received: None,
            changed: Changed::new(),
        };
        let thread = std::thread::Builder::new()
            .name("weir-fpm".into())
            .spawn(move || {
                let _ = server.run();
            })
            .map_err(|source| Error::system(asked(), source))?;
        Ok(Fpm {
            reader,
            counters,
            resync,
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

    /// Asks zebra for all its routes again: it sends them when it has connected anew, three seconds later.
    pub fn resync(&self) {
        self.resync.store(true, Ordering::Release);
    }

    /// What it counts.
    #[must_use]
    pub fn counters(&self) -> &FpmCounters {
        &self.counters
    }

    /// Whether the thread has ended, by an error.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        self.reader.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection of zebra.
struct Session {
    stream: TcpStream,
    framer: Framer,
    /// When something came last.
    heard: Instant,
    began: Instant,
    /// Routes of earlier sessions may be left.
    is_replaying: bool,
    /// The protocols that zebra has sent routes of, and whether one came since stale routes were searched last.
    seen: Protocols,
    is_new_seen: bool,
}

/// The thread's side.
struct Server {
    listener: TcpListener,
    resync: Arc<AtomicBool>,
    settings: FpmSettings,
    writer: Writer,
    counters: Arc<FpmCounters>,
    decoder: Decoder,
    objects: Objects,
    session: Option<Session>,
    /// When the last session ended, if its routes still wait for the next.
    ended: Option<Instant>,
    routes: Vec<RouteUpdate>,
    labels: Vec<LabelUpdate>,
    /// When the first of `routes` was read.
    received: Option<Instant>,
    changed: Changed,
}

/// Objects that changed since they were handed over last, each once, with where they lead; nowhere when they are gone.
type Changed = BTreeMap<u32, Option<Arc<Target>>>;

impl Server {
    fn run(mut self) -> Result<(), Stopped> {
        while !self.writer.is_stopped() {
            {
                let mut waiting = vec![PollFd::new(&self.listener, PollFlags::IN)];
                if let Some(session) = &self.session {
                    waiting.push(PollFd::new(&session.stream, PollFlags::IN));
                }
                let _ = poll(&mut waiting, Some(&LOOK));
            }
            if self.resync.swap(false, Ordering::AcqRel) && self.session.is_some() {
                tracing::info!(
                    "zebra's connection is closed, so that it sends all its routes again"
                );
                self.end_session();
            }
            self.accept()?;
            self.read()?;
            self.pass_time()?;
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Stopped> {
        let Ok((stream, peer)) = self.listener.accept() else {
            return Ok(());
        };
        if let Err(error) = stream.set_nonblocking(true) {
            tracing::warn!(%error, "zebra's connection cannot be used");
            return Ok(());
        }
        tracing::info!(%peer, "zebra is connected");
        self.counters.sessions.fetch_add(1, Ordering::Relaxed);
        self.counters.is_connected.store(true, Ordering::Relaxed);
        self.objects.clear();
        self.ended = None;
        self.session = Some(Session {
            stream,
            framer: Framer::default(),
            heard: Instant::now(),
            began: Instant::now(),
            is_replaying: true,
            seen: Protocols::default(),
            is_new_seen: false,
        });
        self.writer.send(FeedMessage::Begin)
    }

    /// Takes what waits.
    fn read(&mut self) -> Result<(), Stopped> {
        let mut buffer = vec![0; READ];
        for _ in 0..READS {
            let Some(session) = &mut self.session else {
                return Ok(());
            };
            match session.stream.read(&mut buffer) {
                Ok(0) => {
                    tracing::warn!("zebra has closed its connection; its routes stay for now");
                    self.end_session();
                }
                Ok(length) => {
                    session.heard = Instant::now();
                    session.framer.add(buffer.get(..length).unwrap_or_default());
                    self.take_frames()?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!(%error, "zebra's connection is lost; its routes stay for now");
                    self.end_session();
                }
            }
        }
        self.hand_over()
    }

    fn end_session(&mut self) {
        self.session = None;
        self.ended = Some(Instant::now());
        self.counters.is_connected.store(false, Ordering::Relaxed);
    }

    fn take_frames(&mut self) -> Result<(), Stopped> {
        loop {
            let Some(session) = &mut self.session else {
                return Ok(());
            };
            let frame = match session.framer.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "zebra's stream cannot be read; the connection is closed");
                    self.counters.refuse("framing");
                    self.end_session();
                    return Ok(());
                }
            };
            self.counters.frames.fetch_add(1, Ordering::Relaxed);
            for message in Frames::new(frame) {
                self.counters.messages.fetch_add(1, Ordering::Relaxed);
                let read = match &message {
                    Ok(frame) => self.decoder.read(frame),
                    Err(()) => Message::Refused("malformed"),
                };
                match read {
                    Message::Route(update) => {
                        if let RouteUpdate::Set(route) = &update {
                            session.is_new_seen |= session.seen.add(route.protocol);
                        }
                        self.received.get_or_insert(session.heard);
                        self.routes.push(update);
                    }
                    Message::Label(update) => {
                        if let LabelUpdate::Set(route) = &update {
                            session.is_new_seen |= session.seen.add(route.protocol);
                        }
                        self.labels.push(update);
                    }
                    Message::Object { id, object } => {
                        // Routes that came before it mean the objects as they were.
                        if !self.routes.is_empty() {
                            flush(
                                &self.writer,
                                &self.counters,
                                &mut self.changed,
                                &mut self.routes,
                                &mut self.received,
                            )?;
                        }
                        match object {
                            None => {
                                self.objects.remove(id);
                                self.changed.insert(id, None);
                            }
                            Some(object) => match self.objects.set(id, object) {
                                Some(all) => self
                                    .changed
                                    .extend(all.into_iter().map(|(id, target)| (id, Some(target)))),
                                None => self.counters.refuse("too-many-next-hops"),
                            },
                        }
                        let objects = self.objects.len() as u64;
                        self.counters.objects.store(objects, Ordering::Relaxed);
                    }
                    Message::Refused(reason) => self.counters.refuse(reason),
                    Message::Ignored
                    | Message::Link(_)
                    | Message::LinkGone(_)
                    | Message::Address { .. } => {}
                }
                if message.is_err() {
                    break;
                }
            }
            if self.routes.len() + self.labels.len() + self.changed.len() >= BATCH {
                self.hand_over()?;
            }
        }
    }

    fn hand_over(&mut self) -> Result<(), Stopped> {
        flush(
            &self.writer,
            &self.counters,
            &mut self.changed,
            &mut self.routes,
            &mut self.received,
        )?;
        if !self.labels.is_empty() {
            let labels = std::mem::take(&mut self.labels);
            self.writer.send(FeedMessage::Labels(labels))?;
        }
        Ok(())
    }

    /// The end of a replay, and routes that nobody sent again.
    fn pass_time(&mut self) -> Result<(), Stopped> {
        if let Some(session) = self.session.as_mut().filter(|it| it.is_replaying) {
            let is_quiet = session.heard.elapsed() >= self.settings.quiet;
            if session.began.elapsed() >= self.settings.hold.max(self.settings.quiet) {
                session.is_replaying = false;
                self.writer.send(FeedMessage::End(None))?;
            } else if is_quiet && std::mem::take(&mut session.is_new_seen) {
                self.writer.send(FeedMessage::End(Some(session.seen)))?;
            }
        }
        if self
            .ended
            .is_some_and(|ended| ended.elapsed() >= self.settings.hold)
        {
            tracing::warn!("zebra has not come back; its routes are removed");
            self.ended = None;
            self.writer.send(FeedMessage::Begin)?;
            self.writer.send(FeedMessage::End(None))?;
        }
        Ok(())
    }
}

/// Hands over objects, then the routes that name them.
fn flush(
    writer: &Writer,
    counters: &FpmCounters,
    changed: &mut Changed,
    routes: &mut Vec<RouteUpdate>,
    received: &mut Option<Instant>,
) -> Result<(), Stopped> {
    if !changed.is_empty() {
        let changed = std::mem::take(changed);
        writer.send(FeedMessage::Objects(changed.into_iter().collect()))?;
    }
    if !routes.is_empty() {
        counters
            .updates
            .fetch_add(routes.len() as u64, Ordering::Relaxed);
        let routes = std::mem::take(routes);
        writer.send(FeedMessage::Routes(routes, received.take()))?;
    }
    Ok(())
}
