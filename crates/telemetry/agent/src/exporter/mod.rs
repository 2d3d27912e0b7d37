//! The exporter: from the workers' rings to collectors, as IPFIX or NetFlow version 9.
//!
//! One thread for the whole router takes records from all rings in turn and puts each into a message for each
//! collector. All workers are one observation domain, so one place numbers everything. A UDP collector is sent to
//! at once and never waited for. A TCP or TLS collector has a bounded queue and a thread that does nothing but connect and
//! write: however slow it is, it holds up neither the others nor a worker. What a queue has no room for, and what a
//! socket refuses, is counted as not sent, in flows, packets and octets, and reported in the options.
//!
//! UDP: templates and options go out at the start and every so often. Sequence numbers count the records of messages
//! that were refused as well, so that the collector sees the gap. TCP: templates once a connection, whose numbers
//! begin at 0; what was in the queue when a connection broke goes out on the next one.
//!
//! A collector whose configuration changes gets a new session; the old one has a while to empty its queue, and what it
//! counted goes on in the new one. When no collector is left, the old ones still get what is in tables that are given up.
//!
//! * `run`: the thread.  * `session`: one collector.  * `stream`: queue and thread.  * `wire`: its connection.
//! * `biflow`: both directions in one record.  * `options`: what is reported besides flows.  * [`fields`]: from a record to octets.
//!
//! This file is what others see of it: configuration, numbers, and the handle.

mod biflow;
pub mod fields;
mod options;
mod pace;
pub mod recent;
mod run;
mod session;
mod stream;
mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_flowfmt::ipfix::Version;
use weir_ring::Padded;

pub use fields::{Epoch, RecordSet, RecordSets};
use recent::Recent;
pub use run::Exporter;

use crate::agent::Target;
use crate::flows::{Counts, FlowRecord, Records};

/// How a collector is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A stream in the clear.
    Tcp,
    /// A stream in TLS (RFC 7011, 11).
    Tls(TlsSettings),
}

/// What TLS needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The name, or address, that the collector's certificate has to have.
    pub name: String,
    /// PEM file of the authorities that are trusted.
    pub roots: PathBuf,
    /// PEM files of the router's own certificate chain and key, for collectors that ask for it.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorConfig {
    /// Where: address or name, port, source, DSCP, device, namespace and table.
    pub target: Target,
    /// How.
    pub transport: Transport,
    /// What is spoken: IPFIX, or NetFlow 9 over UDP.
    pub version: Version,
    /// What of each flow: the sets that it wants.
    pub records: RecordSets,
    /// Octets of the longest IP packet on the way.
    pub mtu: u16,
    /// Octets of messages that wait for a stream at most.
    pub queue: usize,
}

impl CollectorConfig {
    /// Octets of a message at most: with all headers it fits the path (RFC 7011, 10.3.3).
    fn message(&self) -> usize {
        // A name may have addresses of both versions; the source decides where there is one.
        let address = self.target.known().map(|it| it.ip()).or(self.target.source);
        let headers = match (&self.transport, address) {
            (Transport::Udp, Some(IpAddr::V4(_))) => 28,
            (Transport::Udp, _) => 48,
            _ => 0,
        };
        usize::from(self.mtu).saturating_sub(headers)
    }
}

/// What is exported, and to whom.
#[derive(Clone, Debug)]
pub struct ExporterConfig {
    /// The observation domain.
    pub domain: u32,
    /// Templates and options are sent again after this time.
    pub refresh: Duration,
    /// One packet in so many is metered; 1 is all.
    pub sampling: u32,
    /// Record sets, by their numbers, whose flows are sampled by another rate than that; each of their records has its rate.
    pub rates: BTreeMap<u8, u32>,
    /// The meter's timeouts.
    pub active: Duration,
    /// The other one.
    pub idle: Duration,
    /// Whether both directions of a conversation become one record, for collectors of IPFIX.
    pub biflow: bool,
    /// Records a second that are taken at most while any collector is reached over UDP; 0 = no limit.
    pub rate: u32,
    /// What times of records are, where [`Knows::clock`] does not say.
    pub epoch: Epoch,
    /// To whom.
    pub collectors: Vec<CollectorConfig>,
}

/// Something with a number and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The number that records have.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// More about it.
    pub description: String,
}

/// Who knows what the options tell.
pub trait Knows: Send + Sync {
    /// The router's clock now, in nanoseconds: with it, times of records follow the wall clock. Without it
    /// ([`ExporterConfig::epoch`] stays as it is configured) they do not.
    fn clock(&self) -> Option<u64> {
        None
    }

    /// All interfaces.
    fn interfaces(&self) -> Vec<Named>;
    /// All tables.
    fn vrfs(&self) -> Vec<Named>;
    /// Packets and octets that the meter saw and did not meter.
    fn ignored(&self) -> (u64, u64);
    /// Does `work` with whoever tells of flows what their records lack: where they were routed.
    fn with_completion(&self, work: &mut dyn FnMut(&dyn Complete)) {
        work(&Nothing);
    }
}

/// Who tells where flows were routed, as of one moment.
pub trait Complete {
    /// Puts next hops, prefix lengths and the table into a record.
    fn complete(&self, record: &mut FlowRecord);
}

/// Nobody knows more.
struct Nothing;

impl Complete for Nothing {
    fn complete(&self, _record: &mut FlowRecord) {}
}

/// The cold end of a worker's table.
#[derive(Debug)]
pub struct FlowSource {
    /// Where records come out.
    pub ring: Records,
    /// What the table counts.
    pub counts: Arc<Padded<Counts>>,
}

impl FlowSource {
    /// Flows that had to make room in the table while the ring was full.
    fn unexported(&self) -> Load {
        let Counts {
            unexported,
            unexported_packets,
            unexported_octets,
            ..
        } = &**self.counts;
        Load {
            flows: unexported.get(),
            packets: unexported_packets.get(),
            octets: unexported_octets.get(),
        }
    }
}

/// Flows, and what was in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Flow records.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
}

impl Load {
    pub(crate) fn add(&mut self, other: Load) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// What a collector got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectorStats {
    /// Its address; `None` while its name is not looked up.
    pub address: Option<SocketAddr>,
    /// Whether a stream is connected, or datagrams have a socket.
    pub connected: bool,
    /// Connections that were made.
    pub connections: u64,
    /// Messages that the kernel took.
    pub messages: u64,
    /// Octets of them.
    pub message_octets: u64,
    /// Data records in them, options included.
    pub records: u64,
    /// Flows in them.
    pub sent: Load,
    /// Flows that did not go out.
    pub not_sent: Load,
    /// Flows of record sets that it does not want, or of a kind that the set has no field for.
    pub left_out: Load,
    /// Octets that wait in the queue.
    pub queued: u64,
    /// Errors.
    pub errors: u64,
    /// The last one.
    pub last_error: Option<String>,
}

impl CollectorStats {
    /// Adds what an earlier session with the collector counted.
    fn add(&mut self, past: CollectorStats) {
        self.connections += past.connections;
        self.messages += past.messages;
        self.message_octets += past.message_octets;
        self.records += past.records;
        self.sent.add(past.sent);
        self.not_sent.add(past.not_sent);
        self.left_out.add(past.left_out);
        self.queued += past.queued;
        self.errors += past.errors;
        self.last_error = self.last_error.take().or(past.last_error);
    }
}

/// What the exporter did so far.
#[derive(Clone, Debug, Default)]
pub struct ExporterStats {
    /// What was taken from the rings.
    pub taken: Load,
    /// Tables that it takes records from.
    pub sources: usize,
    /// By collector.
    pub collectors: Vec<(Target, CollectorStats)>,
    /// Nanoseconds that the oldest record waits which is in no message that went out yet.
    pub oldest: u64,
}

/// What the exporter's thread and its handle share.
#[derive(Default)]
struct Shared {
    wishes: Mutex<Wishes>,
    stats: Mutex<ExporterStats>,
    recent: Mutex<Recent>,
    stop: AtomicBool,
    /// Records a second that are taken at least, whatever the configured limit.
    least_rate: AtomicU32,
}

/// What the thread is to take over at its next turn.
#[derive(Default)]
struct Wishes {
    config: Option<ExporterConfig>,
    sources: Vec<FlowSource>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exporter's thread from outside. Dropping it stops the exporter.
pub struct ExporterHandle {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ExporterHandle {
    /// Takes another configuration. Collectors that stay as they are keep their sessions, and receive at once what is new.
    pub fn reconfigure(&self, config: ExporterConfig) {
        lock(&self.shared.wishes).config = Some(config);
        self.wake();
    }

    /// Takes records of more workers.
    pub fn add_sources(&self, sources: Vec<FlowSource>) {
        lock(&self.shared.wishes).sources.extend(sources);
        self.wake();
    }

    /// So many records have to go out within this time: raises the limit of [`ExporterConfig::rate`] as far as that needs.
    pub fn hurry(&self, records: u64, time: Duration) {
        let rate = u128::from(records) * 1000 / time.as_millis().max(1) + 1;
        let rate = u32::try_from(rate).unwrap_or(u32::MAX);
        self.shared.least_rate.store(rate, Ordering::Relaxed);
        self.wake();
    }

    /// Does `work` with the records that left because of the active timeout. The exporter waits meanwhile.
    pub fn with_recent<T>(&self, work: impl FnOnce(&Recent) -> T) -> T {
        work(&lock(&self.shared.recent))
    }

    /// What it did so far, as of a moment ago.
    #[must_use]
    pub fn stats(&self) -> ExporterStats {
        lock(&self.shared.stats).clone()
    }

    /// Sends what is still in the rings and the queues, ends, and says what it did in all. A stream that does not
    /// take its queue within two seconds loses it, counted.
    #[must_use]
    pub fn stop(mut self) -> ExporterStats {
        self.end();
        self.stats()
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the flow exporter ended by a panic");
        }
    }
}

impl Drop for ExporterHandle {
    fn drop(&mut self) {
        self.end();
    }
}
