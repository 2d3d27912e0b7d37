//! The socket of one collector, as both exporters use it: sFlow, and IPFIX over UDP.
//!
//! It never waits. A socket for which a name is looked up or a namespace entered is made on another thread; until it is
//! there, there is none. A name is looked up again while the socket works: once it stands for other addresses, datagrams go to one
//! of those, and as long as it cannot be looked up, they go where they went. A namespace that is no longer the one of its name is
//! left, and tried again until there is one of that name. The path, through the router or the host, is chosen anew several times a
//! second. Who sends decides which errors end a socket: it takes the socket out, and puts it back unless it has failed.

use std::io::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::target::{Opened, Opening, Target};

/// A socket that failed is made anew after this time.
const RETRY: Duration = Duration::from_secs(1);
/// A name that could not be looked up is after this time: whom it costs is a name server.
const RETRY_ELSEWHERE: Duration = Duration::from_secs(3);
/// A name is looked up again after this time.
const FOLLOW: Duration = Duration::from_secs(10);
/// The path, through the router or the host, is chosen anew after this time.
const PATH: Duration = Duration::from_millis(100);

/// How far the socket is.
enum State {
    /// There is none.
    None,
    /// Another thread makes one.
    Opening(Opening<Opened>),
    /// Datagrams go through it.
    Open(Opened),
}

/// The socket of one collector.
pub(crate) struct CollectorSocket {
    target: Target,
    /// The protocol, for the log.
    protocol: &'static str,
    state: State,
    /// Where it was last.
    address: Option<SocketAddr>,
    retry_at: Instant,
    follow_at: Instant,
    /// When to look for another path.
    path_at: Instant,
    /// Another thread looks whether the name still stands for this address.
    following: Option<Opening<Option<Opened>>>,
    /// Whether the last of these lookups failed.
    unfollowed: bool,
}

impl CollectorSocket {
    /// A socket that is made when the first datagram is sent, or by [`CollectorSocket::prepare`].
    pub(crate) fn new(target: Target, protocol: &'static str, now: Instant) -> CollectorSocket {
        CollectorSocket {
            target,
            protocol,
            state: State::None,
            address: None,
            retry_at: now,
            follow_at: now,
            path_at: now,
            following: None,
            unfollowed: false,
        }
    }

    /// The collector.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The collector's address, when it is known.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address.or_else(|| self.target.known())
    }

    /// The socket, when there is one.
    pub(crate) fn open(&self) -> Option<&Opened> {
        match &self.state {
            State::Open(opened) => Some(opened),
            State::None | State::Opening(_) => None,
        }
    }

    /// Whether datagrams can be sent now: there is a socket, or one can be made at once.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        match &self.state {
            State::Open(_) => true,
            State::None => self.target.is_at_hand() && now >= self.retry_at,
            State::Opening(_) => false,
        }
    }

    /// Routes come and go: datagrams take the router's path while there is one.
    pub(crate) fn choose_path(&mut self, now: Instant) {
        if now < self.path_at {
            return;
        }
        self.path_at = now + PATH;
        if let State::Open(opened) = &self.state
            && !opened.is_on_path(&self.target)
        {
            (self.state, self.retry_at) = (State::None, now);
        }
    }

    /// Takes the socket out; `Err(None)` while there is none.
    pub(crate) fn take(&mut self, now: Instant) -> Result<Opened, Option<Error>> {
        let opened = match std::mem::replace(&mut self.state, State::None) {
            State::Open(opened) => return Ok(opened),
            State::Opening(opening) => match opening.outcome() {
                None => {
                    self.state = State::Opening(opening);
                    return Err(None);
                }
                Some(outcome) => outcome.map_err(Some)?,
            },
            State::None if now < self.retry_at => return Err(None),
            State::None if self.target.is_at_hand() => self.target.open().map_err(Some)?,
            State::None => {
                self.state = State::Opening(self.target.open_elsewhere().map_err(Some)?);
                return Err(None);
            }
        };
        self.address = Some(opened.address);
        (self.follow_at, self.following) = (now + FOLLOW, None);
        Ok(opened)
    }

    /// Puts a socket back that works.
    pub(crate) fn put_back(&mut self, opened: Opened) {
        self.state = State::Open(opened);
    }

    /// The socket failed: another one is made after a while.
    pub(crate) fn retry_later(&mut self, now: Instant) {
        self.retry_at = now
            + if self.target.is_at_hand() {
                RETRY
            } else {
                RETRY_ELSEWHERE
            };
    }

    /// Does what is due while nothing is sent: begins what takes its time before there is anything to send, and leaves a
    /// namespace that is another one now.
    ///
    /// # Errors
    /// Why there is no socket now.
    pub(crate) fn prepare(&mut self, now: Instant) -> Result<(), Error> {
        self.follow(now);
        match &self.state {
            State::None if self.target.is_at_hand() => Ok(()),
            State::None | State::Opening(_) => match self.take(now) {
                Ok(opened) => {
                    self.put_back(opened);
                    Ok(())
                }
                Err(None) => Ok(()),
                Err(Some(error)) => {
                    self.retry_at = now + RETRY_ELSEWHERE;
                    Err(error)
                }
            },
            State::Open(opened) if !opened.is_current(&self.target) => {
                (self.state, self.retry_at) = (State::None, now);
                Err(Error::other("its namespace is gone"))
            }
            State::Open(_) => Ok(()),
        }
    }

    /// Goes after a name that stands for other addresses now.
    fn follow(&mut self, now: Instant) {
        let (State::Open(opened), false) = (&self.state, self.target.is_numeric()) else {
            return;
        };
        let Some(following) = &self.following else {
            if now >= self.follow_at {
                self.follow_at = now + FOLLOW;
                // Without a thread there is another time.
                self.following = self.target.follow_elsewhere(opened.address).ok();
            }
            return;
        };
        let Some(outcome) = following.outcome() else {
            return;
        };
        self.following = None;
        let Self {
            protocol, target, ..
        } = self;
        if let Err(error) = &outcome
            && !self.unfollowed
        {
            tracing::warn!(
                "{protocol} collector {target}: {error}; datagrams go to {} as before",
                opened.address
            );
        }
        self.unfollowed = outcome.is_err();
        if let Ok(Some(moved)) = outcome {
            tracing::info!(
                "{protocol} collector {target}: is at {} now, no longer at {}",
                moved.address,
                opened.address
            );
            self.address = Some(moved.address);
            self.state = State::Open(moved);
        }
    }
}
