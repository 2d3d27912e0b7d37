//! The listening socket of masters.
//!
//! Masters of several ids may share a socket, so there is one [`Listener`] a socket in the process,
//! with a thread of its own: it accepts, says HELLO, waits for INIT, and hands the channel to the port
//! that the slave asked for. What a slave can occupy before it said whom it wants is bounded: eight at
//! a time, two seconds each.
//!
//! A socket file that nobody listens on any more is replaced; one that somebody listens on is not.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use weir_port::OpenError;

use crate::bell;
use crate::channel::{Channel, Received};
use crate::message::{ETHERNET, Hello, Init, Message, VERSION};
use crate::reason::{Reason, Reasons};
use crate::setup::Socket;
use crate::shared::{Incoming, Shared, lock};
use crate::sys::MOST_LOG2;

/// The most slaves that have not said yet whom they want.
const MOST_PENDING: usize = 8;
/// How long a slave may take to say so, and how long it waits for a port that is just parting.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a slave that waits for a port is looked after.
const RETRY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// The most regions that a slave may share, less one.
pub(crate) const LAST_REGION: u16 = 15;

static LISTENERS: Mutex<Vec<(Socket, Weak<Listener>)>> = Mutex::new(Vec::new());

/// What the thread works on.
#[derive(Debug)]
struct Table {
    socket: OwnedFd,
    event: OwnedFd,
    stop: AtomicBool,
    members: Mutex<Vec<Arc<Shared>>>,
    reasons: Reasons,
}

/// One listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    table: Arc<Table>,
    thread: Option<JoinHandle<()>>,
    /// The socket's file and its inode, to be removed at the end.
    file: Option<(PathBuf, u64)>,
}

/// One port's share of a listener.
#[derive(Debug)]
pub(crate) struct Membership {
    /// `None` only while it is being dropped.
    listener: Option<Arc<Listener>>,
    id: u32,
}

impl Membership {
    /// Makes the port known at its socket, and the socket if it is the first there.
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Membership, OpenError> {
        let (socket, id) = (&shared.config.socket, shared.config.id);
        let mut listeners = lock(&LISTENERS);
        listeners.retain(|(_, listener)| listener.strong_count() > 0);
        let there = listeners
            .iter()
            .find(|(other, _)| other == socket)
            .and_then(|(_, listener)| listener.upgrade());
        let listener = match there {
            Some(listener) => listener,
            None => {
                let listener = Arc::new(Listener::new(socket)?);
                listeners.push((socket.clone(), Arc::downgrade(&listener)));
                listener
            }
        };
        let mut members = lock(&listener.table.members);
        if members.iter().any(|member| member.config.id == id) {
            return Err(OpenError(format!(
                "{}: there is a master of this id already: use another id",
                shared.config.name()
            )));
        }
        members.push(shared.clone());
        drop(members);
        Ok(Membership {
            listener: Some(listener),
            id,
        })
    }

    /// How many slaves were sent away for this reason before they had said whom they want.
    pub(crate) fn sent_away(&self, reason: Reason) -> u64 {
        self.listener
            .as_ref()
            .map_or(0, |listener| listener.table.reasons.of(reason))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // Under the lock of the list, so that nobody joins a listener that is about to end, or comes
        // to the socket while the last one still sits there.
        let _list = lock(&LISTENERS);
        if let Some(listener) = self.listener.take() {
            lock(&listener.table.members).retain(|member| member.config.id != self.id);
        }
    }
}

impl Listener {
    fn new(socket: &Socket) -> Result<Listener, OpenError> {
        let address = socket.address()?;
        let failed = |what: &str, errno: Errno| {
            OpenError(format!("{socket}: {what}: {}", std::io::Error::from(errno)))
        };
        if let Socket::Path(path) = socket {
            remove_stale(path, &address)?;
        }
        let descriptor = seqpacket().map_err(|errno| failed("no socket can be made", errno))?;
        bind(&descriptor, &address).map_err(|errno| match errno {
            Errno::ADDRINUSE => OpenError(format!(
                "{socket}: another program listens there: stop it, or use another socket"
            )),
            Errno::NOENT => OpenError(format!("{socket}: there is no such folder: make it")),
            errno => failed("the socket cannot be bound", errno),
        })?;
        listen(&descriptor, MOST_PENDING as i32)
            .map_err(|errno| failed("nobody can be listened to", errno))?;
        let file = match socket {
            Socket::Path(path) => std::fs::symlink_metadata(path)
                .ok()
                .map(|metadata| (path.clone(), metadata.ino())),
            Socket::Abstract(_) => None,
        };
        let event =
            bell::event().map_err(|errno| failed("no event descriptor can be made", errno))?;
        let table = Arc::new(Table {
            socket: descriptor,
            event,
            stop: AtomicBool::new(false),
            members: Mutex::default(),
            reasons: Reasons::default(),
        });
        let work = table.clone();
        let thread = std::thread::Builder::new()
            .name("memif-listen".into())
            .spawn(move || work.run());
        let thread = thread
            .map_err(|error| OpenError(format!("{socket}: no thread can be made: {error}")))?;
        Ok(Listener {
            table,
            thread: Some(thread),
            file,
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.table.stop.store(true, Ordering::Release);
        bell::ring(self.table.event.as_fd());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some((path, inode)) = &self.file
            && std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.ino() == *inode)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A fresh socket of the control channel's kind.
pub(crate) fn seqpacket() -> Result<OwnedFd, Errno> {
    socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// Removes a socket file that nobody listens on.
fn remove_stale(path: &std::path::Path, address: &SocketAddrUnix) -> Result<(), OpenError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(OpenError(format!(
            "{}: is there and is no socket: remove it, or use another path",
            path.display()
        )));
    }
    if seqpacket().is_ok_and(|probe| connect(&probe, address) == Err(Errno::CONNREFUSED)) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// A slave that is not handed over yet.
struct Pending {
    channel: Channel,
    init: Option<Init>,
    until: Instant,
}

impl Table {
    fn run(&self) {
        let mut pending: Vec<Pending> = Vec::new();
        while !self.stop.load(Ordering::Acquire) {
            self.wait(&pending);
            bell::quiet(self.event.as_fd());
            pending = pending
                .into_iter()
                .filter_map(|slave| self.hear(slave))
                .collect();
            while pending.len() < MOST_PENDING {
                let Ok(descriptor) =
                    accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
                else {
                    break;
                };
                let channel = Channel(descriptor);
                if channel.send(&self.hello(), None).is_ok() {
                    pending.push(Pending {
                        channel,
                        init: None,
                        until: Instant::now() + PATIENCE,
                    });
                }
            }
        }
    }

    fn wait(&self, pending: &[Pending]) {
        let mut polled = vec![PollFd::new(&self.event, PollFlags::IN)];
        if pending.len() < MOST_PENDING {
            polled.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        polled.extend(
            pending
                .iter()
                .map(|slave| PollFd::new(&slave.channel.0, PollFlags::IN)),
        );
        let waiting = pending.iter().any(|slave| slave.init.is_some());
        let long = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let _ = poll(
            &mut polled,
            (!pending.is_empty()).then_some(if waiting { &RETRY } else { &long }),
        );
    }

    /// What is announced to all peers: the limits of the widest port here.
    fn hello(&self) -> Message {
        let queues = lock(&self.members)
            .iter()
            .map(|member| member.config.queues)
            .max()
            .unwrap_or(1);
        Message::Hello(Hello {
            name: crate::OWN_NAME.into(),
            min_version: VERSION,
            max_version: VERSION,
            max_region: LAST_REGION,
            max_to_slave: queues as u16 - 1,
            max_to_master: queues as u16 - 1,
            max_log2_ring_size: MOST_LOG2,
        })
    }

    /// Hears what a slave has to say; gives it back while it is not settled.
    fn hear(&self, mut slave: Pending) -> Option<Pending> {
        if slave.init.is_none() {
            match slave.channel.receive() {
                Received::Message(Message::Init(init), _) => slave.init = Some(init),
                Received::Message(..) => return self.send_away(&slave.channel, Reason::Unexpected),
                Received::End => return self.send_away(&slave.channel, Reason::Gone),
                Received::Bad(reason) => return self.send_away(&slave.channel, reason),
                Received::Nothing => (),
            }
        }
        let late = Instant::now() >= slave.until;
        let Some(init) = &slave.init else {
            return if late {
                self.send_away(&slave.channel, Reason::Timeout)
            } else {
                Some(slave)
            };
        };
        if init.version != VERSION {
            return self.send_away(&slave.channel, Reason::Version);
        }
        let members = lock(&self.members);
        let Some(port) = members.iter().find(|member| member.config.id == init.id) else {
            return self.send_away(&slave.channel, Reason::Identity);
        };
        let refused = match refusal(port, init) {
            None if port.busy.swap(true, Ordering::AcqRel) => Some(Reason::Busy),
            other => other,
        };
        match refused {
            // The port may just be parting from a slave that died.
            Some(Reason::Busy) if !late => {
                drop(members);
                return Some(slave);
            }
            Some(reason) => {
                port.reasons.count(reason);
                slave.channel.part(reason);
            }
            None => {
                let Pending {
                    channel,
                    init: Some(init),
                    ..
                } = slave
                else {
                    return None;
                };
                *lock(&port.incoming) = Some(Incoming { channel, init });
                port.ring();
            }
        }
        None
    }

    fn send_away(&self, channel: &Channel, reason: Reason) -> Option<Pending> {
        self.reasons.count(reason);
        if reason != Reason::Gone {
            channel.part(reason);
        }
        None
    }
}

/// Why this port does not want this slave.
fn refusal(port: &Shared, init: &Init) -> Option<Reason> {
    if init.mode != ETHERNET {
        return Some(Reason::Mode);
    }
    let secret = port.config.secret?;
    // All bytes are compared, so that the time says nothing about them.
    let differing = secret
        .iter()
        .zip(&init.secret)
        .fold(0, |differing, (a, b)| differing | (a ^ b));
    (differing != 0).then_some(Reason::Secret)
}
