//! Packet captures: `GET` and `POST /v1/pcap`, `DELETE /v1/pcap/{number}`.
//!
//! A capture lives as long as its stream: the reply to the request that begins it is the capture
//! itself, as pcapng, until its limits are reached, somebody ends it, or the client goes away. The
//! engine fills a [`CaptureSink`] with whole blocks; what the client does not take in time waits in a
//! bounded channel, and behind that is lost and counted where packets pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::Timestamp;

/// Pieces of a capture that wait for the client: with pieces of some 64 kB, a megabyte.
const WAITING: usize = 16;

/// What to capture. Of `rx`, `tx` and `drop`, at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// Packets as they come in.
    #[serde(default)]
    pub rx: bool,
    /// Packets as they are about to go out.
    #[serde(default)]
    pub tx: bool,
    /// Packets that are dropped, each with its node and its reason as a comment.
    #[serde(default)]
    pub drop: bool,
    /// Only packets that came in by this interface, or at `tx` go out by it; absent = any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Only drops for these reasons; empty = any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// End after so many packets; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub packets: Option<u64>,
    /// End before the capture is longer than this, in bytes; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4096))]
    pub bytes: Option<u64>,
    /// End after this time; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub milliseconds: Option<u64>,
    /// Keep so many bytes of each packet; absent = all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 14, max = 262_144))]
    pub snap_bytes: Option<u32>,
}

impl CaptureRequest {
    /// The least that may be kept of a packet: an Ethernet header.
    pub const LEAST_SNAP: u32 = 14;
    /// The most that may be kept of a packet: all of any.
    pub const MOST_SNAP: u32 = 262_144;
    /// The shortest capture that can be asked for.
    pub const LEAST_BYTES: u64 = 4096;
}

/// Captures that are under way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Captures {
    /// Each of them, oldest first.
    pub captures: Vec<Capture>,
    /// How many there may be at once.
    pub most: u32,
}

/// One capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// Its number, by which it can be ended.
    pub number: u64,
    /// Who asked for it.
    pub author: String,
    /// Since when it runs.
    pub since: Timestamp,
    /// What was asked for.
    #[serde(flatten)]
    pub request: CaptureRequest,
    /// Packets captured so far.
    pub captured_packets: u64,
    /// Bytes of the capture so far.
    pub captured_bytes: u64,
    /// Packets that were lost, since the reader was too slow.
    pub lost_packets: u64,
}

/// The engine's end of a capture's stream.
#[derive(Debug)]
pub struct CaptureSink {
    pieces: mpsc::Sender<Vec<u8>>,
    enough: Arc<AtomicBool>,
}

/// A piece that was not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// The client has not read enough yet: try again with this.
    Later(Vec<u8>),
    /// The client went away.
    Gone,
}

/// The client's end of a capture's stream.
#[derive(Debug)]
pub struct CaptureStream {
    /// The capture's number.
    pub number: u64,
    pieces: mpsc::Receiver<Vec<u8>>,
    enough: Arc<AtomicBool>,
}

impl CaptureSink {
    /// Hands a piece on; never waits.
    ///
    /// # Errors
    /// The piece, when there is no room for it yet; or that nobody reads any more.
    pub fn offer(&self, piece: Vec<u8>) -> Result<(), NotTaken> {
        self.pieces.try_send(piece).map_err(|error| match error {
            TrySendError::Full(piece) => NotTaken::Later(piece),
            TrySendError::Closed(_) => NotTaken::Gone,
        })
    }

    /// Whether the client went away.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.pieces.is_closed()
    }

    /// Whether the capture is to be brought to its end.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Acquire)
    }
}

impl CaptureStream {
    /// Both ends of a stream.
    #[must_use]
    pub fn new(number: u64) -> (CaptureSink, CaptureStream) {
        let (sender, pieces) = mpsc::channel(WAITING);
        let enough = Arc::<AtomicBool>::default();
        (
            CaptureSink {
                pieces: sender,
                enough: enough.clone(),
            },
            CaptureStream {
                number,
                pieces,
                enough,
            },
        )
    }

    /// Asks for the end: what was captured by now still comes.
    pub fn ask_to_end(&self) {
        self.enough.store(true, Ordering::Release);
    }

    /// Waits for the next piece; nothing at the end. For threads without a runtime.
    pub fn wait(&mut self) -> Option<Vec<u8>> {
        self.pieces.blocking_recv()
    }

    pub(crate) fn poll(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Vec<u8>>> {
        self.pieces.poll_recv(context)
    }
}
