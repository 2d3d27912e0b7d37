//! A collector behind a stream: a bounded queue, and a thread that connects and writes.
//!
//! Messages are numbered and dated when they are written: numbers begin at 0 with each connection (RFC 7011, 10.4.3).
//! A connection begins with the templates and options of the last refresh. A message counts as sent when the
//! collector's side has acknowledged all of it. Until then it is kept, and when the connection breaks it goes again on the next
//! one, in its place in the order; so a collector that starts anew misses nothing but what it had acknowledged and not
//! read. How much is kept is bounded by what the kernel takes for a connection.

use std::collections::VecDeque;
use std::io::Error;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::wire::{SLICE, Wire};
use super::{CollectorStats, Load, TlsSettings, lock};
use crate::agent::Target;

/// The first rest between two tries, and the longest.
const RESTS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// How long a collector that closes the connection has to take what it was sent, and how often is looked whether it did.
const PARTING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);
/// A smaller queue bounds the kernel's send buffer as well, which grows to megabytes otherwise; what is in it is kept until the
/// collector has acknowledged it.
const SMALL: usize = 1 << 20;

/// A message without its number.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) octets: Vec<u8>,
    pub(super) records: u32,
    pub(super) load: Load,
}

struct Queue {
    messages: VecDeque<Message>,
    octets: usize,
    most: usize,
    preamble: Vec<Message>,
    /// The end, and until when what is left may go out.
    end: Option<Instant>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    stats: Mutex<CollectorStats>,
}

impl Shared {
    fn ended(&self) -> Option<Instant> {
        lock(&self.queue).end
    }

    /// Whether it is over, and what is left is lost.
    fn is_over(&self) -> bool {
        self.ended().is_some_and(|until| Instant::now() >= until)
    }

    fn rest(&self, time: Duration) {
        let queue = lock(&self.queue);
        if queue.end.is_none() {
            drop(
                self.wake
                    .wait_timeout(queue, time)
                    .map_err(PoisonError::into_inner),
            );
        }
    }
}

/// The queue and its thread, from the exporter's side.
pub(super) struct Link {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Link {
    /// Starts the thread; it connects when it has a preamble.
    pub(super) fn start(target: Target, tls: Option<TlsSettings>, most: usize) -> Link {
        let queue = Queue {
            messages: VecDeque::new(),
            octets: 0,
            most,
            preamble: Vec::new(),
            end: None,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            stats: Mutex::new(CollectorStats {
                address: target.known(),
                ..CollectorStats::default()
            }),
        });
        let writer = Writer {
            target,
            buffer: (most < SMALL).then_some(most),
            tls,
            shared: shared.clone(),
        };
        let started = std::thread::Builder::new()
            .name("weir-ipfix-tcp".into())
            .spawn(move || writer.run());
        if let Err(error) = &started {
            lock(&shared.stats).last_error = Some(error.to_string());
        }
        Link {
            shared,
            thread: started.ok(),
        }
    }

    /// Queues a message; `false` if there is no room, then it is not sent.
    pub(super) fn push(&self, message: Message) -> bool {
        let mut queue = lock(&self.shared.queue);
        if queue.octets + message.octets.len() > queue.most || self.thread.is_none() {
            return false;
        }
        queue.octets += message.octets.len();
        queue.messages.push_back(message);
        self.shared.wake.notify_one();
        true
    }

    /// What connections begin with from now on.
    pub(super) fn set_preamble(&self, messages: Vec<Message>) {
        lock(&self.shared.queue).preamble = messages;
        self.shared.wake.notify_one();
    }

    pub(super) fn stats(&self) -> CollectorStats {
        let mut stats = lock(&self.shared.stats).clone();
        stats.queued += lock(&self.shared.queue).octets as u64;
        stats
    }

    /// Nothing more comes: what is queued has until then to go out. Does not wait for it.
    pub(super) fn leave(&self, until: Instant) {
        lock(&self.shared.queue).end = Some(until);
        self.shared.wake.notify_one();
    }

    /// Whether the thread is done.
    pub(super) fn is_done(&self) -> bool {
        self.thread
            .as_ref()
            .is_none_or(std::thread::JoinHandle::is_finished)
    }

    /// Waits until the queue is empty or the time is over; what is left then is not sent.
    pub(super) fn end(&mut self, until: Instant) {
        self.leave(until);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut queue = lock(&self.shared.queue);
        let mut stats = lock(&self.shared.stats);
        queue
            .messages
            .drain(..)
            .for_each(|message| stats.not_sent.add(message.load));
        (queue.octets, stats.queued, stats.connected) = (0, 0, false);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

/// The thread.
struct Writer {
    target: Target,
    /// Octets that the kernel holds, where a small queue says so.
    buffer: Option<usize>,
    tls: Option<TlsSettings>,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(self) {
        let (mut rest, mut kept) = (RESTS.0, Kept::default());
        while !self.shared.is_over() {
            if lock(&self.shared.queue).preamble.is_empty() {
                if self.shared.ended().is_some() {
                    return;
                }
                self.shared.rest(SLICE);
                continue;
            }
            let outcome = Wire::connect((&self.target, self.buffer), self.tls.as_ref(), || {
                self.shared.is_over()
            })
            .and_then(|mut wire| {
                let mut stats = lock(&self.shared.stats);
                (stats.connected, stats.connections) = (true, stats.connections + 1);
                stats.address = wire.address().or(stats.address);
                drop(stats);
                rest = RESTS.0;
                let outcome = self.session(&mut wire, &mut kept);
                wire.close();
                self.wait_for_acknowledgements(&wire, &mut kept);
                if outcome.is_err() {
                    wire.abort();
                }
                outcome
            });
            kept.take_back();
            lock(&self.shared.stats).connected = false;
            let Err(error) = outcome else { break };
            self.tell(&error);
            if self.shared.ended().is_some() {
                // Once more at once is not tried: who is gone when the router ends is gone.
                break;
            }
            self.sleep(rest);
            rest = (rest * 2).min(RESTS.1);
        }
        let mut stats = lock(&self.shared.stats);
        kept.again
            .drain(..)
            .for_each(|message| stats.not_sent.add(message.load));
        stats.queued = 0;
    }

    /// Rests, whatever is queued meanwhile; the end ends it.
    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.shared.ended().is_none() && Instant::now() < until {
            std::thread::sleep(SLICE.min(until.saturating_duration_since(Instant::now())));
        }
    }

    fn tell(&self, error: &Error) {
        let mut stats = lock(&self.shared.stats);
        let text = error.to_string();
        if stats.last_error.as_ref() != Some(&text) {
            tracing::warn!(
                "IPFIX collector {}: {text}; records wait in its queue",
                self.target
            );
        }
        (stats.errors, stats.last_error) = (stats.errors + 1, Some(text));
    }

    /// Writes until the connection breaks (an error) or all is done at the end.
    fn session(&self, wire: &mut Wire, kept: &mut Kept) -> Result<(), Error> {
        let mut sequence = 0_u32;
        let preamble = lock(&self.shared.queue).preamble.clone();
        for message in preamble {
            self.write(wire, &mut sequence, message, Again::Never, kept)?;
        }
        while let Some(message) = self.next(wire, kept)? {
            // The other side may be gone; then it goes on the next connection.
            if let Err(error) = wire.check() {
                kept.again.push_front(message);
                return Err(error);
            }
            self.write(wire, &mut sequence, message, Again::Yes, kept)?;
        }
        Ok(())
    }

    /// The next message; `None` at the end. Looks meanwhile whether the collector is still there.
    fn next(&self, wire: &mut Wire, kept: &mut Kept) -> Result<Option<Message>, Error> {
        loop {
            self.settle(wire, kept);
            if let Some(message) = kept.again.pop_front() {
                return Ok(Some(message));
            }
            let mut queue = lock(&self.shared.queue);
            if let Some(message) = queue.messages.pop_front() {
                queue.octets -= message.octets.len();
                return Ok(Some(message));
            }
            if queue.end.is_some() {
                return Ok(None);
            }
            // The first acknowledgements are not long in coming.
            let wait = if kept.written.is_empty() {
                SLICE
            } else {
                SLICE / 10
            };
            drop(
                self.shared
                    .wake
                    .wait_timeout(queue, wait)
                    .map_err(PoisonError::into_inner),
            );
            wire.check()?;
        }
    }

    fn write(
        &self,
        wire: &mut Wire,
        sequence: &mut u32,
        mut message: Message,
        again: Again,
        kept: &mut Kept,
    ) -> Result<(), Error> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs() as u32;
        for (at, word) in [(4, now), (8, *sequence)] {
            if let Some(place) = message.octets.get_mut(at..at + 4) {
                place.copy_from_slice(&word.to_be_bytes());
            }
        }
        *sequence = sequence.wrapping_add(message.records);
        let outcome = wire.write_all(&message.octets, || self.shared.is_over());
        // What was not written whole ends behind all that can be acknowledged.
        let end = if outcome.is_ok() {
            wire.written()
        } else {
            u64::MAX
        };
        kept.written.push_back((end, again, message));
        outcome
    }

    /// What is acknowledged is sent.
    fn settle(&self, wire: &Wire, kept: &mut Kept) {
        let acknowledged = wire.acknowledged();
        let mut stats = lock(&self.shared.stats);
        while let Some((_, _, message)) =
            kept.written.pop_front_if(|(end, ..)| *end <= acknowledged)
        {
            stats.messages += 1;
            stats.message_octets += message.octets.len() as u64;
            stats.records += u64::from(message.records);
            stats.sent.add(message.load);
        }
        stats.queued = wire.written().saturating_sub(acknowledged) + kept.octets_again();
    }

    /// Nothing more is written. A collector that said it goes may still read what it was sent, and so does one at the end;
    /// what it has not acknowledged after a while it will not get by this connection.
    fn wait_for_acknowledgements(&self, wire: &Wire, kept: &mut Kept) {
        let until = Instant::now() + PARTING;
        loop {
            // In this order: what came before a reset was acknowledged before it.
            let is_reset = wire.is_reset();
            self.settle(wire, kept);
            if kept.written.is_empty()
                || is_reset
                || Instant::now() >= until
                || self.shared.is_over()
            {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether a message goes on the next connection, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    /// The templates that each connection begins with.
    Never,
}

/// Messages that are in nobody else's hands.
#[derive(Default)]
struct Kept {
    /// Written to this connection: up to which octet of it.
    written: VecDeque<(u64, Again, Message)>,
    /// To be written first, on the next one.
    again: VecDeque<Message>,
}

impl Kept {
    /// The connection is over: what was not acknowledged goes again, before what would have come next.
    fn take_back(&mut self) {
        while let Some((_, again, message)) = self.written.pop_back() {
            if again == Again::Yes {
                self.again.push_front(message);
            }
        }
    }

    fn octets_again(&self) -> u64 {
        self.again
            .iter()
            .map(|message| message.octets.len() as u64)
            .sum()
    }
}
