//! One collector's socket.
//!
//! It never waits: a datagram that the kernel does not take now is counted and forgotten. It is
//! connected, so that the kernel tells of refusals. Such a refusal is the echo of an earlier
//! datagram and is reported instead of sending the next one; that one is therefore sent again at
//! once, and the earlier one counted as lost. After any other error the socket is thrown away and
//! made anew some time later, since a fresh one takes the source address and route of that moment.
//!
//! Trouble is logged when it begins and when it is over, not for every datagram.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::CollectorStats;

/// A socket that failed is made anew after this time.
const RETRY: Duration = Duration::from_secs(1);
/// Trouble is over when datagrams went out for this long without an error.
const QUIET: Duration = Duration::from_secs(2);

/// What is wrong with a collector.
struct Trouble {
    text: String,
    last: Instant,
}

/// A place that datagrams go to.
pub(super) struct Collector {
    address: SocketAddr,
    socket: Option<UdpSocket>,
    retry_at: Instant,
    sent: u64,
    errors: u64,
    trouble: Option<Trouble>,
}

impl Collector {
    /// A collector whose socket is made when the first datagram goes out.
    pub(super) fn new(address: SocketAddr, now: Instant) -> Collector {
        Collector { address, socket: None, retry_at: now, sent: 0, errors: 0, trouble: None }
    }

    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a datagram, or counts that it did not go.
    pub(super) fn send(&mut self, datagram: &[u8], now: Instant) {
        match self.try_send(datagram, now) {
            Ok(()) => {
                self.sent += 1;
                self.recover(now);
            }
            Err(None) => self.errors += 1,
            Err(Some(error)) => {
                self.retry_at = now + RETRY;
                self.fail(&error, now);
            }
        }
    }

    /// `Err(None)`: not before the next try.
    fn try_send(&mut self, datagram: &[u8], now: Instant) -> Result<(), Option<Error>> {
        if self.socket.is_none() && now < self.retry_at {
            return Err(None);
        }
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => connect(self.address).map_err(Some)?,
        };
        let mut outcome = socket.send(datagram);
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::ConnectionRefused
        {
            self.fail(error, now);
            outcome = socket.send(datagram);
        }
        // A refusal says that the socket works; a full buffer will drain.
        let kind = outcome.as_ref().map_err(Error::kind);
        if matches!(kind, Ok(_) | Err(ErrorKind::ConnectionRefused | ErrorKind::WouldBlock)) {
            self.socket = Some(socket);
        }
        outcome.map(|_| ()).map_err(Some)
    }

    /// Notices a refusal that came back although nothing was sent since.
    pub(super) fn listen(&mut self, now: Instant) {
        if let Some(Ok(Some(error))) = self.socket.as_ref().map(UdpSocket::take_error) {
            self.fail(&error, now);
        }
    }

    /// One datagram was lost.
    fn fail(&mut self, error: &Error, now: Instant) {
        self.errors += 1;
        let text = error.to_string();
        match &mut self.trouble {
            Some(trouble) => *trouble = Trouble { text, last: now },
            None => {
                tracing::warn!("sFlow collector {}: {text}; datagrams are lost until it takes them", self.address);
                self.trouble = Some(Trouble { text, last: now });
            }
        }
    }

    /// One datagram went out.
    fn recover(&mut self, now: Instant) {
        if self.trouble.as_ref().is_some_and(|trouble| now.duration_since(trouble.last) >= QUIET) {
            tracing::info!("sFlow collector {}: takes datagrams again; {} were lost so far", self.address, self.errors);
            self.trouble = None;
        }
    }

    /// What it got so far.
    pub(super) fn stats(&self) -> CollectorStats {
        CollectorStats {
            address: self.address,
            sent: self.sent,
            errors: self.errors,
            last_error: self.trouble.as_ref().map(|trouble| trouble.text.clone()),
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    Ok(socket)
}
