//! Events: what happens in the router, reported as it happens (`GET /v1/events`).
//!
//! The engine publishes on an [`EventBus`], from any thread, without ever waiting: each topic has
//! one ring of bounded length that all subscribers read. A subscriber that is slower than the
//! ring is long loses the oldest events; it receives their number. Counters are not published: the API
//! asks for them by its own clock, for those who subscribed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::{Timestamp, Traffic, UpDown};

/// How many events of a topic are kept for slow subscribers.
const KEPT: usize = 1024;

/// What events can be about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// Counters of interfaces, again and again.
    Counters,
    /// Lines of the router's log.
    Log,
    /// Changes of the configuration.
    Config,
    /// Links that go up or down.
    Link,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Counters, Self::Log, Self::Config, Self::Link];

    /// Its word in the query and in the stream.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Log => "log",
            Self::Config => "config",
            Self::Link => "link",
        }
    }
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// One event. In the stream, `event:` is its name and `data:` all of it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Counters of interfaces.
    Counters(CountersEvent),
    /// A line of the log.
    Log(LogEvent),
    /// A change of the configuration.
    Config(ConfigEvent),
    /// A link went up or down.
    Link(LinkEvent),
    /// Events that this subscriber was too slow for.
    Lost(LostEvent),
}

impl Event {
    /// Its name in the stream.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Counters(_) => "counters",
            Self::Log(_) => "log",
            Self::Config(_) => "config",
            Self::Link(_) => "link",
            Self::Lost(_) => "lost",
        }
    }
}

/// Counters of interfaces at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountersEvent {
    /// When they were read.
    pub time: Timestamp,
    /// Each interface.
    pub interfaces: Vec<InterfaceCounters>,
}

/// Counters of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// Its name.
    pub name: String,
    /// Its ifIndex.
    pub index: u32,
    /// What it received.
    pub rx: Traffic,
    /// What it sent.
    pub tx: Traffic,
    /// Frames that were lost or broken before the router saw them.
    pub rx_errors: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Packets dropped.
    pub drops: u64,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEvent {
    /// When it was said.
    pub time: Timestamp,
    /// How important it is.
    pub level: EventLevel,
    /// The part of the router that says it.
    pub target: String,
    /// What it says, with its fields as `key=value`.
    pub message: String,
}

/// The last lines of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// Lines, the oldest first.
    pub lines: Vec<LogEvent>,
}

/// How important a line of the log is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EventLevel {
    /// Something is broken.
    Error,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// For those who look for a fault.
    Debug,
    /// Everything.
    Trace,
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEvent {
    /// When it happened.
    pub time: Timestamp,
    /// What happened.
    pub what: ConfigEventKind,
    /// The revision it is about; for a failure, the one that still runs.
    pub revision: u64,
    /// Who changed it.
    pub author: String,
    /// Why, or what failed; may be empty.
    pub comment: String,
    /// When the change is undone unless it is confirmed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_by: Option<Timestamp>,
}

/// What happened to the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigEventKind {
    /// A change was done.
    Applied,
    /// A change that waited was confirmed.
    Confirmed,
    /// An earlier configuration runs again, because somebody asked.
    RolledBack,
    /// A change that nobody confirmed in time was undone.
    Expired,
    /// A change failed, and what ran before runs on.
    Failed,
}

/// A link went up or down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// When it was noticed.
    pub time: Timestamp,
    /// The interface.
    pub interface: String,
    /// Its ifIndex.
    pub index: u32,
    /// How the link is now.
    pub link: UpDown,
    /// Its speed in bits per second; 0 = unknown.
    pub speed: u64,
}

/// Events that a subscriber was too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostEvent {
    /// What they were about.
    pub topic: Topic,
    /// How many.
    pub count: u64,
}

/// Where the engine publishes. A clone is the same bus.
#[derive(Debug, Clone)]
pub struct EventBus {
    log: broadcast::Sender<Arc<Event>>,
    config: broadcast::Sender<Arc<Event>>,
    link: broadcast::Sender<Arc<Event>>,
    /// The last lines of the log, at most [`LINES`].
    lines: Arc<Mutex<VecDeque<Arc<Event>>>>,
}

/// Lines of the log that are kept.
const LINES: usize = 1000;
/// Bytes of a line that are kept.
const LINE_BYTES: usize = 4096;

impl Default for EventBus {
    fn default() -> Self {
        Self::with_capacity(KEPT)
    }
}

impl EventBus {
    /// A bus that keeps the last 1024 events of each topic for slow subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A bus that keeps the last `events` (at least 1) of each topic for slow subscribers.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        let ring = || broadcast::Sender::new(events.max(1));
        Self {
            log: ring(),
            config: ring(),
            link: ring(),
            lines: Arc::default(),
        }
    }

    /// The last lines of the log of this level and above, the oldest first.
    #[must_use]
    pub fn log(&self, most: usize, level: EventLevel) -> Log {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |event: &Arc<Event>| match &**event {
            Event::Log(line) if line.level <= level => Some(line.clone()),
            _ => None,
        };
        let mut lines: Vec<LogEvent> = lines.iter().rev().filter_map(wanted).take(most).collect();
        lines.reverse();
        Log { lines }
    }

    /// Tells all who subscribed. Never waits; costs little when nobody did.
    pub fn publish(&self, mut event: Event) {
        if let Event::Log(line) = &mut event {
            let end = line.message.floor_char_boundary(LINE_BYTES);
            line.message.truncate(end);
        }
        let event = Arc::new(event);
        let ring = match *event {
            Event::Log(_) => {
                let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() == LINES {
                    lines.pop_front();
                }
                lines.push_back(Arc::clone(&event));
                &self.log
            }
            Event::Config(_) => &self.config,
            Event::Link(_) => &self.link,
            // Those are the API's own.
            Event::Counters(_) | Event::Lost(_) => return,
        };
        // Nobody listens: nothing to do.
        let _ = ring.send(event);
    }

    /// Whether anybody listens: events that cost something to make need not be made for nobody.
    #[must_use]
    pub fn has_subscribers(&self, topic: Topic) -> bool {
        self.ring(topic)
            .is_some_and(|ring| ring.receiver_count() > 0)
    }

    pub(crate) fn ring(&self, topic: Topic) -> Option<&broadcast::Sender<Arc<Event>>> {
        match topic {
            Topic::Log => Some(&self.log),
            Topic::Config => Some(&self.config),
            Topic::Link => Some(&self.link),
            Topic::Counters => None,
        }
    }
}
