//! The sending side: frames into a capture file, with the time at which they were sent.
//!
//! The file is complete up to the last second, and wholly when the side is dropped. When it cannot be
//! written any more (a full disk) that is said once; what is sent from then on is counted as lost.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use weir_buf::{Pkt, PktCache, Vector};
use weir_port::TxQueue;

use crate::file::Writer;
use crate::port::Counts;

/// How old what was written but not handed to the system may become.
const FLUSH: Duration = Duration::from_secs(1);

/// The sending side.
pub(crate) struct Sender {
    /// `None` without a file, and once writing it failed.
    writer: Option<Writer<BufWriter<File>>>,
    /// Whether there ever was a file.
    writes: bool,
    /// A chained packet in one piece.
    whole: Vec<u8>,
    /// Since when something waits to be handed on.
    since: Option<Instant>,
    name: String,
    counts: Arc<Counts>,
}

impl Sender {
    pub(crate) fn new(
        writer: Option<Writer<BufWriter<File>>>,
        name: String,
        counts: Arc<Counts>,
    ) -> Sender {
        Sender {
            writes: writer.is_some(),
            writer,
            whole: Vec::new(),
            since: None,
            name,
            counts,
        }
    }

    fn write(&mut self, time: u64, packet: &Pkt) -> io::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        if !packet.is_chained() {
            return writer.write(time, packet.len() as u32, packet.data());
        }
        self.whole.clear();
        packet
            .segments()
            .for_each(|segment| self.whole.extend_from_slice(segment));
        writer.write(time, self.whole.len() as u32, &self.whole)
    }

    /// Nothing more is written: half a record would make the rest unreadable.
    fn give_up(&mut self, error: &io::Error) {
        tracing::warn!(
            file = self.name,
            "cannot write the capture: {error}: nothing more is written to it"
        );
        self.writer = None;
    }

    fn hand_on(&mut self) {
        self.since = None;
        if let Some(Err(error)) = self.writer.as_mut().map(Writer::flush) {
            self.give_up(&error);
        }
    }
}

impl TxQueue for Sender {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let sent = from.len();
        if sent == 0 {
            return 0;
        }
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let time = u64::try_from(now.as_nanos()).unwrap_or(0);
        let mut written = 0;
        for packet in from.drain() {
            if let Err(error) = self.write(time, &packet) {
                self.give_up(&error);
            }
            written += u64::from(self.writer.is_some() || !self.writes);
            cache.free(packet);
        }
        self.since.get_or_insert_with(Instant::now);
        self.counts.tx.packets.add(written);
        self.counts.tx.lost.add(sent as u64 - written);
        sent
    }

    fn flush(&mut self, _cache: &mut PktCache) {
        if self.since.is_some_and(|since| since.elapsed() >= FLUSH) {
            self.hand_on();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.hand_on();
    }
}
