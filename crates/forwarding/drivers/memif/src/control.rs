//! A port's own thread: connects, shakes hands, notices, parts, connects again.
//!
//! It sleeps on the control channel and on a bell. Workers ring the bell when they find nonsense, the
//! listener when a slave came, the port when it is closed.
//!
//! **Disconnect.** The queues are stopped first. The link is then kept until every queue has let
//! go of it and the peer has closed its end, so that chunks which the peer may still write to are not
//! used for something else. A peer that does not close gets a second for that; one that died has
//! closed at once, for the kernel takes a process's memory before its sockets.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::connect;

use crate::bell;
use crate::channel::{Channel, Received};
use crate::handshake::{MasterSide, SlaveSide, Step};
use crate::listen::seqpacket;
use crate::message::Message;
use crate::reason::Reason;
use crate::setup::Role;
use crate::shared::{Incoming, Known, Link, Shared, lock};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a slave waits between two attempts.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a peer that was sent away may take to close its end.
const GRACE: Duration = Duration::from_secs(1);
/// The same when this port is closed.
const LAST_GRACE: Duration = Duration::from_millis(200);
/// How often graves are looked after.
const LOOK: Duration = Duration::from_millis(20);
/// Links that queues have not let go of yet; with more of them, no new peer is wanted.
const MOST_GRAVES: usize = 4;

enum Phase {
    Idle,
    SlaveTalks(Channel, SlaveSide, Instant),
    MasterTalks(Channel, MasterSide, Instant),
    Up(Channel, Arc<Link>),
}

/// A link that is no longer used.
struct Grave {
    /// Until the peer has closed its end.
    channel: Option<Channel>,
    until: Instant,
    link: Option<Arc<Link>>,
}

/// The thread's state.
pub(crate) struct Control {
    shared: Arc<Shared>,
    phase: Phase,
    graves: Vec<Grave>,
    next_attempt: Instant,
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Control {
        Control {
            shared,
            phase: Phase::Idle,
            graves: Vec::new(),
            next_attempt: Instant::now(),
        }
    }

    /// Until the port is closed.
    pub(crate) fn run(mut self) {
        loop {
            // The bell first: whoever stops us says so before ringing, so that a ring that is heard here is not
            // lost with what it was for.
            bell::quiet(self.shared.event().as_fd());
            if self.shared.stop.load(Ordering::Acquire) {
                break;
            }
            self.turn();
            self.sleep();
        }
        if !matches!(self.phase, Phase::Idle) {
            self.part(Reason::Closed);
        }
        let end = Instant::now() + LAST_GRACE;
        while !self.graves.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
            self.look_after_graves();
        }
    }

    fn turn(&mut self) {
        self.look_after_graves();
        self.begin();
        if let Phase::Up(_, link) = &self.phase
            && let Some(reason) = link.failure()
        {
            return self.part(reason);
        }
        if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return self.part(Reason::Timeout);
        }
        let Some(channel) = self.channel() else {
            return;
        };
        match channel.receive() {
            Received::Nothing => (),
            Received::End => self.part(Reason::Gone),
            Received::Bad(reason) => self.part(reason),
            Received::Message(Message::Disconnect { text, .. }, _) => {
                self.part(Reason::Left);
                if !text.is_empty() {
                    lock(&self.shared.known).parted =
                        Some(format!("{}: {text}", Reason::Left.sentence()));
                }
            }
            Received::Message(message, descriptor) => {
                let shared = self.shared.clone();
                let step = match &mut self.phase {
                    Phase::SlaveTalks(channel, side, _) => side.message(&shared, channel, message),
                    Phase::MasterTalks(channel, side, _) => {
                        side.message(&shared, channel, message, descriptor)
                    }
                    _ => Err(Reason::Unexpected),
                };
                match step {
                    Ok(Step::More) => (),
                    Ok(Step::Done(link, interface)) => self.connected(link, interface),
                    Err(reason) => self.part(reason),
                }
            }
        }
    }

    fn channel(&self) -> Option<&Channel> {
        match &self.phase {
            Phase::Idle => None,
            Phase::SlaveTalks(channel, ..)
            | Phase::MasterTalks(channel, ..)
            | Phase::Up(channel, _) => Some(channel),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::SlaveTalks(.., until) | Phase::MasterTalks(.., until) => Some(*until),
            _ => None,
        }
    }

    /// Waits for the channel, the bell, or the next thing to do.
    fn sleep(&self) {
        let now = Instant::now();
        let mut until = self.deadline();
        if matches!(self.phase, Phase::Idle) && self.shared.config.role == Role::Slave {
            until = Some(self.next_attempt);
        }
        if !self.graves.is_empty() {
            until = Some(until.map_or(now + LOOK, |until| until.min(now + LOOK)));
        }
        let mut polled = vec![PollFd::new(self.shared.event(), PollFlags::IN)];
        polled.extend(
            self.channel()
                .map(|channel| PollFd::new(&channel.0, PollFlags::IN)),
        );
        let timeout = until.map(|until| {
            // Rounded up, so as not to come too early and ask again.
            let left = until.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let _ = poll(&mut polled, timeout.as_ref());
    }

    /// Starts a handshake when there is somebody to shake hands with.
    fn begin(&mut self) {
        if !matches!(self.phase, Phase::Idle) || self.graves.len() >= MOST_GRAVES {
            return;
        }
        let until = Instant::now() + HANDSHAKE;
        match self.shared.config.role {
            Role::Slave if Instant::now() >= self.next_attempt => {
                self.next_attempt = Instant::now() + AGAIN;
                let Ok(address) = self.shared.config.socket.address() else {
                    return;
                };
                let Ok(socket) = seqpacket() else { return };
                if connect(&socket, &address).is_ok() {
                    self.phase = Phase::SlaveTalks(Channel(socket), SlaveSide::new(), until);
                }
            }
            Role::Slave => (),
            Role::Master => {
                let Some(Incoming { channel, init }) = lock(&self.shared.incoming).take() else {
                    return;
                };
                let side = MasterSide::new(&self.shared, &channel);
                lock(&self.shared.known).peer = init.name;
                match side {
                    Ok(side) => self.phase = Phase::MasterTalks(channel, side, until),
                    Err(reason) => {
                        self.shared.reasons.count(reason);
                        self.shared.busy.store(false, Ordering::Release);
                    }
                }
            }
        }
    }

    fn connected(&mut self, link: Link, interface: String) {
        let link = Arc::new(link);
        let mut known = lock(&self.shared.known);
        known.interface = interface;
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::SlaveTalks(channel, side, _) => {
                side.peer().clone_into(&mut known.peer);
                self.phase = Phase::Up(channel, link.clone());
            }
            Phase::MasterTalks(channel, ..) => self.phase = Phase::Up(channel, link.clone()),
            _ => return,
        }
        tracing::debug!(
            port = self.shared.config.name(),
            peer = known.peer,
            interface = known.interface,
            "memif connected"
        );
        drop(known);
        self.shared.connects.fetch_add(1, Ordering::Relaxed);
        self.shared.offer(Some(link));
    }

    /// Ends what there is, with a reason.
    fn part(&mut self, reason: Reason) {
        let (channel, link) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => return,
            Phase::SlaveTalks(channel, ..) | Phase::MasterTalks(channel, ..) => (channel, None),
            Phase::Up(channel, link) => (channel, Some(link)),
        };
        if link.is_some() {
            self.shared.offer(None);
        }
        self.shared.reasons.count(reason);
        {
            let mut known = lock(&self.shared.known);
            let Known {
                peer, interface, ..
            } = std::mem::take(&mut *known);
            known.parted = Some(reason.sentence().to_owned());
            let port = self.shared.config.name();
            tracing::debug!(
                port,
                peer,
                interface,
                reason = reason.name(),
                "memif disconnected: {}",
                reason.sentence()
            );
        }
        let closed = matches!(reason, Reason::Gone);
        if !closed && reason != Reason::Left {
            channel.part(reason);
        }
        if !closed {
            let _ = rustix::net::shutdown(&channel.0, rustix::net::Shutdown::Write);
        }
        self.next_attempt = Instant::now() + AGAIN;
        self.graves.push(Grave {
            channel: (!closed).then_some(channel),
            until: Instant::now() + GRACE,
            link,
        });
        self.shared.busy.store(false, Ordering::Release);
        self.look_after_graves();
    }

    fn look_after_graves(&mut self) {
        let now = Instant::now();
        self.graves.retain_mut(|grave| {
            if let Some(channel) = &grave.channel {
                // Whatever it still says is of no interest; a few messages at a time.
                let ended = (0..16)
                    .map(|_| channel.receive())
                    .find(|received| !matches!(received, Received::Message(..)));
                if matches!(ended, Some(Received::End | Received::Bad(_))) || now >= grave.until {
                    grave.channel = None;
                }
            }
            let held = grave
                .link
                .as_ref()
                .is_some_and(|link| Arc::strong_count(link) > 1);
            grave.channel.is_some() || held
        });
    }
}
