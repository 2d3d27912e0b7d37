//! Sessions of BGP daemons, and the thread that reads them.
//!
//! The thread listens in the namespace of the daemons. It reads, and writes [`Routes`]; nobody waits for it. A session
//! that sends what cannot be read is closed, and its routes go; those of others stay.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::{Buf, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_netlink::Error;
use weir_netlink::netns::{NetNs, listen};

use crate::message::{Monitor, Taken, length_of};
use crate::routes::Routes;

/// Bytes of one read, and reads of a session before others have a turn.
const READ: usize = 1 << 16;
const READS: usize = 16;
/// The longest sleep of the thread.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Sessions at a time.
const MOST_SESSIONS: usize = 16;

/// Where daemons connect to, and how much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BmpSettings {
    /// The address of this side.
    pub address: SocketAddr,
    /// Paths that are kept at most, of all peers together.
    pub most_paths: usize,
}

/// A daemon that is connected.
#[derive(Clone, Debug, Default)]
pub struct SessionStatus {
    /// The name that it gives itself.
    pub name: String,
    /// The numbers of its peers.
    pub peers: Vec<u32>,
    /// Messages that were read.
    pub messages: u64,
}

/// What the thread counts.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Sessions that are open.
    pub sessions: BTreeMap<SocketAddr, SessionStatus>,
    /// Sessions that began.
    pub begun: u64,
    /// Messages that were read.
    pub messages: u64,
    /// Routes that were announced, and withdrawn.
    pub announced: u64,
    /// Routes that were withdrawn.
    pub withdrawn: u64,
    /// Messages that could not be used, by reason; of `too-many-routes`, routes.
    pub refused: BTreeMap<&'static str, u64>,
}

/// The side that listens. Dropping it ends the thread.
#[derive(Debug)]
pub struct Bmp {
    routes: Arc<Routes>,
    status: Arc<Mutex<Status>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Bmp {
    /// Listens in a namespace; in the calling thread's when `None`.
    ///
    /// # Errors
    /// When the address cannot be used, or the thread cannot be started.
    pub fn start(namespace: Option<&NetNs>, settings: BmpSettings) -> Result<Bmp, Error> {
        let asked = || format!("listen for BMP on {}", settings.address);
        let listener =
            listen(namespace, settings.address).map_err(|source| Error::system(asked(), source))?;
        let address = listener
            .local_addr()
            .map_err(|source| Error::system(asked(), source))?;
        let routes = Arc::new(Routes::new(settings.most_paths));
        let status = Arc::new(Mutex::new(Status::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server {
            listener,
            sessions: Vec::new(),
            routes: routes.clone(),
            status: status.clone(),
            next_peer: 1,
            buffer: vec![0; READ],
        };
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("weir-bmp".into())
            .spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    server.turn();
                }
            })
            .map_err(|source| Error::system(asked(), source))?;
        Ok(Bmp {
            routes,
            status,
            stop,
            thread: Some(thread),
            address,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The routes, for those who report flows.
    #[must_use]
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// What it counts.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the thread has ended, by an error.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Bmp {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One daemon.
struct Session {
    stream: TcpStream,
    from: SocketAddr,
    bytes: BytesMut,
    monitor: Monitor,
    /// A message of it could be used.
    has_spoken: bool,
}

/// The thread's side.
struct Server {
    listener: TcpListener,
    sessions: Vec<Session>,
    routes: Arc<Routes>,
    status: Arc<Mutex<Status>>,
    next_peer: u32,
    buffer: Vec<u8>,
}

impl Server {
    fn turn(&mut self) {
        {
            let mut waiting = vec![PollFd::new(&self.listener, PollFlags::IN)];
            let streams = self.sessions.iter().map(|it| &it.stream);
            waiting.extend(streams.map(|stream| PollFd::new(stream, PollFlags::IN)));
            let _ = poll(&mut waiting, Some(&LOOK));
        }
        self.accept();
        let mut sessions = std::mem::take(&mut self.sessions);
        sessions.retain_mut(|session| match self.read(session) {
            Ok(()) => true,
            Err(why) => {
                tracing::warn!(from = %session.from, why, "a BMP session has ended; its routes are removed");
                std::mem::take(&mut session.monitor).end(&self.routes);
                self.with(|status| drop(status.sessions.remove(&session.from)));
                false
            }
        });
        self.sessions = sessions;
    }

    fn with(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn accept(&mut self) {
        let Ok((stream, from)) = self.listener.accept() else {
            return;
        };
        // A client that has sent no message makes room: anybody can connect.
        if self.sessions.len() >= MOST_SESSIONS
            && let Some(silent) = self.sessions.iter().position(|it| !it.has_spoken)
        {
            let silent = self.sessions.remove(silent);
            self.with(|status| drop(status.sessions.remove(&silent.from)));
        }
        if self.sessions.len() >= MOST_SESSIONS || stream.set_nonblocking(true).is_err() {
            return self
                .with(|status| *status.refused.entry("too-many-sessions").or_default() += 1);
        }
        tracing::info!(%from, "a BGP daemon sends its routes by BMP");
        self.with(|status| {
            status.begun += 1;
            status.sessions.insert(from, SessionStatus::default());
        });
        self.sessions.push(Session {
            stream,
            from,
            bytes: BytesMut::new(),
            monitor: Monitor::default(),
            has_spoken: false,
        });
    }

    /// Takes what waits; why the session ends, if it does.
    fn read(&mut self, session: &mut Session) -> Result<(), String> {
        for _ in 0..READS {
            match session.stream.read(&mut self.buffer) {
                Ok(0) => return Err("the connection is closed".into()),
                Ok(length) => {
                    session
                        .bytes
                        .extend_from_slice(self.buffer.get(..length).unwrap_or_default());
                    self.take(session)?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn take(&mut self, session: &mut Session) -> Result<(), String> {
        loop {
            let length = length_of(session.bytes.chunk()).map_err(|broken| {
                self.with(|status| *status.refused.entry("framing").or_default() += 1);
                broken.to_string()
            })?;
            let Some(length) = length.filter(|length| *length <= session.bytes.len()) else {
                return Ok(());
            };
            let message = session.bytes.split_to(length).freeze();
            let before = self.next_peer;
            let taken = session
                .monitor
                .take(message, &self.routes, &mut self.next_peer);
            let is_changed = self.next_peer != before || !matches!(taken, Taken::Routes { .. });
            session.has_spoken |= !matches!(taken, Taken::Refused(_));
            let monitor = &session.monitor;
            self.with(|status| {
                status.messages += 1;
                match taken {
                    Taken::Routes {
                        announced,
                        withdrawn,
                        refused,
                    } => {
                        status.announced += announced as u64;
                        status.withdrawn += withdrawn as u64;
                        if refused > 0 {
                            *status.refused.entry("too-many-routes").or_default() += refused as u64;
                        }
                    }
                    Taken::Refused(reason) => *status.refused.entry(reason).or_default() += 1,
                    Taken::Known | Taken::Ended => {}
                }
                let shown = status.sessions.entry(session.from).or_default();
                shown.messages += 1;
                if shown.name != monitor.name {
                    shown.name.clone_from(&monitor.name);
                }
                if is_changed {
                    shown.peers = monitor.peers().collect();
                }
            });
            if taken == Taken::Ended {
                return Err("the daemon has ended the session".into());
            }
        }
    }
}
