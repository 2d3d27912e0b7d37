//! Events as an iterator: reads the stream of `GET /v1/events` piece by piece.

use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::client::ClientError;
use crate::{Event, Topic};

/// A stream that says nothing at all for so long has lost its router, which gives a sign of life
/// every 15 s.
const SILENCE: Duration = Duration::from_secs(60);

/// No event is longer, in bytes: counters of 10,000 interfaces have 5 MB.
const LONGEST: usize = 64 << 20;

/// What a subscriber asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventRequest {
    /// What to tell; empty = everything.
    pub topics: Vec<Topic>,
    /// Milliseconds between two counters, 100 to 3,600,000; 1000 when nobody says.
    pub interval_ms: Option<u32>,
    /// Counters and links of this interface only.
    pub interface: Option<String>,
}

impl EventRequest {
    pub(super) fn topics(&self) -> Option<String> {
        (!self.topics.is_empty()).then(|| {
            self.topics
                .iter()
                .map(|topic| topic.word())
                .collect::<Vec<_>>()
                .join(",")
        })
    }
}

/// The events of a router, as they happen. Ends when the router stops; after an error, too.
#[derive(Debug)]
pub struct Events {
    pub(super) router: String,
    pub(super) runtime: Runtime,
    /// Nothing after the end.
    pub(super) body: Option<Incoming>,
    /// What came in and is no whole event yet.
    pub(super) rest: Vec<u8>,
    /// So much of it has no end of a block.
    pub(super) searched: usize,
}

impl Iterator for Events {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(block) = self.block() {
                match data(&block).map(|data| serde_json::from_str(&data)) {
                    // A comment.
                    None => continue,
                    Some(Ok(event)) => return Some(Ok(event)),
                    Some(Err(error)) => {
                        self.body = None;
                        return Some(Err(ClientError::NotUnderstood {
                            router: self.router.clone(),
                            reason: error.to_string(),
                        }));
                    }
                }
            }
            match self.read()? {
                Ok(piece) => self.rest.extend_from_slice(&piece),
                Err(error) => {
                    self.body = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Events {
    /// Takes the first whole block: what stands before an empty line.
    fn block(&mut self) -> Option<Vec<u8>> {
        let unsearched = self.rest.get(self.searched..).unwrap_or_default();
        let Some(end) = unsearched.windows(2).position(|pair| pair == b"\n\n") else {
            self.searched = self.rest.len().saturating_sub(1);
            return None;
        };
        let after = self.rest.split_off(self.searched + end + 2);
        self.searched = 0;
        Some(std::mem::replace(&mut self.rest, after))
    }

    fn read(&mut self) -> Option<Result<Bytes, ClientError>> {
        let body = self.body.as_mut()?;
        let broken = |reason: String| {
            Some(Err(ClientError::Broken {
                router: self.router.clone(),
                reason,
            }))
        };
        if self.rest.len() > LONGEST {
            return broken("an event is too long".to_owned());
        }
        match self
            .runtime
            .block_on(async { timeout(SILENCE, body.frame()).await })
        {
            Err(_) => broken(format!("it says nothing for {} s", SILENCE.as_secs())),
            Ok(None) => {
                self.body = None;
                None
            }
            Ok(Some(Err(error))) => broken(error.to_string()),
            Ok(Some(Ok(frame))) => Some(Ok(frame.into_data().unwrap_or_default())),
        }
    }
}

/// The lines of a block that begin with `data:` (HTML 9.2.6).
fn data(block: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(block);
    let lines: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
