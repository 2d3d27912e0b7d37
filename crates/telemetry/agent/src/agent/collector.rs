//! One collector's socket.
//!
//! It never waits: a datagram that the kernel does not take now is counted and forgotten. It is
//! connected, so that the kernel tells of refusals. Such a refusal is the echo of an earlier
//! datagram and is reported instead of sending the next one; that one is therefore sent again at
//! once, and the earlier one counted as lost. After any other error the socket is thrown away and
//! made anew some time later, since a fresh one takes the source address and route of that moment.
//!
//! A datagram counts as sent when no refusal came back within [`CONFIRM`]. A refusal that comes later is charged to the next
//! datagram. So each datagram is counted once, as sent or as an error, and neither count ever goes back.
//!
//! Names, namespaces and paths are the affair of [`CollectorSocket`]; while it has no socket, datagrams are counted as lost.
//!
//! Trouble is logged when it begins and when it is over, not for every datagram. It is over when some went out one after the
//! other and none came back: that one went says nothing, since whoever refuses is heard of after it.

use std::io::{Error, ErrorKind};
use std::time::{Duration, Instant};

use super::CollectorStats;
use super::outbox::Outbox;
use super::socket::CollectorSocket;
use super::target::{Opened, Target};

/// A datagram counts as sent when it was not refused within this time.
const CONFIRM: Duration = Duration::from_millis(100);
/// Trouble is over when datagrams went out this often, and for this long, without an error.
const QUIET: (u32, Duration) = (4, Duration::from_secs(4));

/// What is wrong with a collector.
struct Trouble {
    text: String,
    last: Instant,
    /// How often datagrams went out since, and none was heard to be lost.
    went: u32,
}

/// A place that datagrams go to.
pub(super) struct Collector {
    socket: CollectorSocket,
    sent: u64,
    errors: u64,
    /// Datagrams that the kernel took since `sent_at`, of which no refusal came back. That is the time of the oldest one, so that
    /// they are counted in time however often more are sent.
    unconfirmed: u64,
    sent_at: Instant,
    /// Refusals of datagrams that count as sent already.
    late_refusals: u64,
    trouble: Option<Trouble>,
}

impl Collector {
    /// A collector whose socket is made when the first datagram goes out.
    pub(super) fn new(target: Target, now: Instant) -> Collector {
        Collector {
            socket: CollectorSocket::new(target, "sFlow", now),
            sent: 0,
            errors: 0,
            unconfirmed: 0,
            sent_at: now,
            late_refusals: 0,
            trouble: None,
        }
    }

    /// Where it is.
    pub(super) fn target(&self) -> &Target {
        self.socket.target()
    }

    /// Sends all that is in an outbox; what does not go is counted.
    pub(super) fn send(&mut self, outbox: &Outbox, now: Instant) {
        let errors = self.errors + self.late_refusals;
        self.confirm(now);
        self.socket.choose_path(now);
        for piece in outbox.pieces() {
            let mut rest = outbox.octets(&piece);
            let outcome = self.try_send(&mut rest, piece.length, now);
            let left = rest.len().div_ceil(piece.length.max(1)) as u64;
            match outcome {
                Ok(()) => {}
                // Not before the next try.
                Err(None) => self.errors += left,
                Err(Some(error)) => {
                    self.socket.retry_later(now);
                    self.fail(&error, left, now);
                }
            }
        }
        if !outbox.is_empty() {
            self.recover(errors, now);
        }
    }

    /// Sends datagrams of one length; what is left did not go. `Err(None)`: there is no socket now.
    fn try_send(
        &mut self,
        rest: &mut &[u8],
        length: usize,
        now: Instant,
    ) -> Result<(), Option<Error>> {
        let mut opened = self.socket.take(now)?;
        if self.unconfirmed == 0 {
            self.sent_at = now;
        }
        let mut outcome = self.pass_on(&mut opened, rest, length);
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::ConnectionRefused
        {
            self.refused(error, now);
            outcome = self.pass_on(&mut opened, rest, length);
        }
        // A refusal says that the socket works; a full buffer will drain.
        let kind = outcome.as_ref().map_err(Error::kind);
        if matches!(
            kind,
            Ok(()) | Err(ErrorKind::ConnectionRefused | ErrorKind::WouldBlock)
        ) {
            self.socket.put_back(opened);
        }
        outcome.map_err(Some)
    }

    /// Gives the kernel as much as it takes.
    fn pass_on(
        &mut self,
        opened: &mut Opened,
        rest: &mut &[u8],
        length: usize,
    ) -> Result<(), Error> {
        while !rest.is_empty() {
            let taken = opened.send(self.socket.target(), rest, length)?;
            self.unconfirmed += taken.div_ceil(length.max(1)) as u64;
            *rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Notices what happened although nothing was sent since: a refusal that came back, a socket that is ready, a
    /// namespace that is another one now.
    pub(super) fn listen(&mut self, now: Instant) {
        self.confirm(now);
        if let Err(error) = self.socket.prepare(now) {
            self.complain(&error, now);
        }
        if let Some(Ok(Some(error))) = self.socket.open().map(Opened::take_error) {
            self.refused(&error, now);
        }
    }

    /// Datagrams that were not refused in time count as sent.
    fn confirm(&mut self, now: Instant) {
        if self.unconfirmed == 0 || now.duration_since(self.sent_at) < CONFIRM {
            return;
        }
        if let Some(Ok(Some(error))) = self.socket.open().map(Opened::take_error) {
            self.refused(&error, now);
        }
        self.confirm_all();
    }

    /// All datagrams count now: the agent ends, and hears of no further refusal.
    pub(super) fn confirm_all(&mut self) {
        let refused = self.late_refusals.min(self.unconfirmed);
        self.late_refusals -= refused;
        self.errors += refused;
        self.sent += std::mem::take(&mut self.unconfirmed) - refused;
    }

    /// A datagram that the kernel took was refused.
    fn refused(&mut self, error: &Error, now: Instant) {
        if self.unconfirmed > 0 {
            self.unconfirmed -= 1;
            self.errors += 1;
        } else {
            self.late_refusals += 1;
        }
        self.complain(error, now);
    }

    /// So many datagrams were lost.
    fn fail(&mut self, error: &Error, datagrams: u64, now: Instant) {
        self.errors += datagrams;
        self.complain(error, now);
    }

    /// Something is wrong.
    fn complain(&mut self, error: &Error, now: Instant) {
        let text = error.to_string();
        if self.trouble.is_none() {
            tracing::warn!(
                "sFlow collector {}: {text}; datagrams are lost until it takes them",
                self.target()
            );
        }
        self.trouble = Some(Trouble {
            text,
            last: now,
            went: 0,
        });
    }

    /// Datagrams were sent, before which there were so many errors. Once no more goes wrong, trouble is over.
    fn recover(&mut self, errors: u64, now: Instant) {
        // Without a socket nothing is tried that could go wrong.
        let went = self.errors + self.late_refusals == errors && self.socket.open().is_some();
        let Some(trouble) = self.trouble.as_mut().filter(|_| went) else {
            return;
        };
        trouble.went = trouble.went.saturating_add(1);
        if trouble.went >= QUIET.0 && now.duration_since(trouble.last) >= QUIET.1 {
            tracing::info!(
                "sFlow collector {}: takes datagrams again; {} were lost so far",
                self.socket.target(),
                self.errors
            );
            self.trouble = None;
        }
    }

    /// What it got so far.
    pub(super) fn stats(&self) -> CollectorStats {
        CollectorStats {
            target: self.target().clone(),
            address: self.socket.address(),
            drops: true,
            sent: self.sent,
            errors: self.errors,
            last_error: self.trouble.as_ref().map(|trouble| trouble.text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    /// Sends one datagram at a time, `apart` from each other; whether there was trouble after each.
    fn troubled(
        collector: &mut Collector,
        now: &mut Instant,
        apart: Duration,
        count: usize,
    ) -> Vec<bool> {
        let mut outbox = Outbox::default();
        outbox.push(&[1; 100]);
        let mut send = || {
            *now += apart;
            collector.send(&outbox, *now);
            // A refusal takes its way.
            std::thread::sleep(Duration::from_millis(20));
            *now += Duration::from_millis(500);
            collector.listen(*now);
            collector.stats().last_error.is_some()
        };
        (0..count).map(|_| send()).collect()
    }

    #[test]
    fn who_refuses_is_in_trouble_until_several_went_whatever_lies_between_them() {
        for apart in [1, 3, 20].map(Duration::from_secs) {
            let place = UdpSocket::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap();
            let mut now = Instant::now();
            let mut collector = Collector::new(place.into(), now);
            assert_eq!(
                troubled(&mut collector, &mut now, apart, 12),
                [true; 12],
                "{apart:?}"
            );
            assert_eq!(collector.stats().errors, 12);
            let socket = UdpSocket::bind(place).unwrap();
            let after = troubled(&mut collector, &mut now, apart, 8);
            assert_eq!(
                (&after[..3], &after[4..]),
                (&[true; 3][..], &[false; 4][..]),
                "{apart:?}"
            );
            assert_eq!(collector.stats().errors, 12);
            assert_eq!(collector.stats().sent, 8);
            drop(socket);
        }
    }

    #[test]
    fn each_datagram_counts_once_as_sent_or_as_refused() {
        let place = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut now = Instant::now();
        let mut collector = Collector::new(place.into(), now);
        let (mut outbox, refused) = (Outbox::default(), Error::other("refused"));
        outbox.push(&[1; 100]);
        let counts = |it: &Collector| (it.stats().sent, it.stats().errors);
        // Of a collector that takes datagrams: they count when no refusal came.
        let socket = UdpSocket::bind(place).unwrap();
        collector.send(&outbox, now);
        assert_eq!(counts(&collector), (0, 0));
        now += CONFIRM;
        collector.listen(now);
        assert_eq!(counts(&collector), (1, 0));
        // The next ones are sent before that time is over, again and again.
        for _ in 0..4 {
            now += CONFIRM * 2 / 3;
            collector.send(&outbox, now);
        }
        assert_eq!(counts(&collector), (5 - 2, 0));
        now += CONFIRM;
        collector.listen(now);
        assert_eq!(counts(&collector), (5, 0));
        // A refusal in time, and one that comes when all were counted: the next datagram pays for it.
        collector.send(&outbox, now);
        collector.refused(&refused, now);
        assert_eq!(counts(&collector), (5, 1));
        collector.refused(&refused, now);
        assert_eq!(counts(&collector), (5, 1));
        collector.send(&outbox, now);
        now += CONFIRM;
        collector.listen(now);
        assert_eq!(counts(&collector), (5, 2));
        drop(socket);
    }
}
