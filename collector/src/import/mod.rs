//! Datagrams of capture files and records of nfcapd's files: into the store of a collector that does not run, or through alert rules (replay).
//!
//! The clock is that of the capture: rows get the time of their datagram. A file is imported once; its SHA-256 is kept.

mod nfcapd;

use std::fs::File;
use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use weir_flowfmt::sflow::capture::UdpReader;
use weir_pcap::file::Reader;

use crate::alerts::{Alert, Alerts};
use crate::config::Config;
use crate::decode::{Decoder, Shared};
use crate::enrich::Enricher;
use crate::enrich::geo::Geo;
use crate::live::Live;
use crate::row::Row;
use crate::store::{Store, StoreError};

/// Rows that are stored at once.
const BATCH: usize = 20_000;
/// Ports of sFlow, IPFIX and NetFlow when none is given.
const PORTS: [u16; 5] = [6343, 4739, 2055, 9995, 9996];
/// The table of imported files.
const IMPORTED: &str = crate::store::state::IMPORTED;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("{path}: {message}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// It was imported before.
    #[error("{0}: was imported before. Use --again to import it a second time")]
    Again(PathBuf),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a file held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames of the capture, or records of nfcapd.
    pub frames: u64,
    /// Datagrams to the ports, or usable records of nfcapd.
    pub datagrams: u64,
    /// Rows.
    pub rows: u64,
    /// Frames that could not be read.
    pub broken: u64,
}

/// Calls `each` with the time (seconds since 1970), sender and payload of each datagram to one of the ports.
///
/// # Errors
/// When the file is no capture.
pub fn datagrams(
    path: &Path,
    port: Option<u16>,
    counts: &mut Counts,
    each: &mut dyn FnMut(i64, SocketAddr, &[u8]),
) -> Result<(), ImportError> {
    let refuse = |message: String| ImportError::File {
        path: path.to_owned(),
        message,
    };
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let reader = Reader::new(BufReader::new(file)).map_err(|error| refuse(error.to_string()))?;
    let wanted = |found: u16| port.map_or(PORTS.contains(&found), |port| port == found);
    let mut udp = UdpReader::new();
    for captured in reader {
        counts.frames += 1;
        let Ok(frame) = captured else {
            counts.broken += 1;
            continue;
        };
        let found = udp.read(counts.frames, frame.linktype, &frame.data);
        if let Some(found) = found.filter(|found| wanted(found.destination.port())) {
            counts.datagrams += 1;
            let time = i64::try_from(frame.timestamp_ns / 1_000_000_000).unwrap_or(0);
            each(time, found.source, found.payload);
        }
    }
    Ok(())
}

fn hash(path: &Path) -> Result<String, ImportError> {
    let refuse = |error: std::io::Error| ImportError::File {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let mut file = File::open(path).map_err(refuse)?;
    let (mut digest, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut chunk).map_err(refuse)?;
        if count == 0 {
            break;
        }
        digest.update(chunk.get(..count).unwrap_or(&[]));
    }
    let bytes = digest.finalize();
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn shared(config: &Config) -> Shared {
    let mut shared = Shared {
        enricher: Enricher::new(config),
        ..Shared::default()
    };
    shared
        .enricher
        .set_geo(Arc::new(Geo::new(&config.databases)));
    shared
}

/// Imports a capture; all its rows are in files when this returns.
///
/// # Errors
/// When the file cannot be read, was imported before, or the store fails. Rows that were stored before a failure stay.
pub async fn import(
    config: &Config,
    store: &Arc<Store>,
    path: &Path,
    port: Option<u16>,
    again: bool,
) -> Result<Counts, ImportError> {
    let key = hash(path)?;
    if !again && store.db.get::<String>(IMPORTED, &key)?.is_some() {
        return Err(ImportError::Again(path.to_owned()));
    }
    let (mut shared, mut decoder) = (shared(config), Decoder::default());
    let (mut rows, mut counts, mut newest) = (Vec::new(), Counts::default(), 0);
    let mut stored = 0;
    let slot = |time: i64| time.div_euclid(crate::store::SLOT);
    if nfcapd::is_nfcapd(path) {
        nfcapd::records(path, &mut shared, &mut counts, &mut |time, row| {
            if !rows.is_empty() && (rows.len() >= BATCH || slot(time) != slot(newest)) {
                stored += store.append(&rows, newest);
                rows.clear();
                store.tick(time);
            }
            newest = time;
            rows.push(row);
        })?;
    } else {
        datagrams(path, port, &mut counts, &mut |time, from, payload| {
            // The store begins a file for each five minutes; a capture that goes back in time gives more of them.
            if !rows.is_empty() && (rows.len() >= BATCH || slot(time) != slot(newest)) {
                stored += store.append(&rows, newest);
                rows.clear();
                store.tick(time);
            }
            newest = time;
            decoder.datagram(from, payload, time, &mut shared, &mut rows);
        })?;
    }
    stored += store.append(&rows, newest);
    store.flush(newest);
    while store.seal(None).await?.is_some() {}
    store.db.add_minutes(&shared.accounts.minutes, 0)?;
    let name = path.display().to_string();
    store.db.put(IMPORTED, &[(key, Some(name))])?;
    counts.rows = stored;
    Ok(counts)
}

/// Rows through the rules of a configuration, by the rows' own clock.
#[derive(Debug)]
pub struct Replay {
    live: Live,
    alerts: Alerts,
    second: i64,
    waiting: Vec<Row>,
}

impl Replay {
    /// The rules of a configuration; nothing is delivered anywhere.
    #[must_use]
    pub fn new(config: &Config) -> Replay {
        let rules = Config {
            alerts: config.alerts.clone(),
            ..Config::default()
        };
        Replay {
            live: Live::default(),
            alerts: Alerts::new(&rules),
            second: 0,
            waiting: Vec::new(),
        }
    }

    /// Enters rows, which come in the order of time.
    pub fn add(&mut self, rows: Vec<Row>) {
        for row in rows {
            if row.time > self.second {
                self.advance(row.time);
            }
            self.waiting.push(row);
        }
    }

    /// All seconds up to `to` are over.
    fn advance(&mut self, to: i64) {
        self.live.add(&self.waiting);
        self.waiting.clear();
        let begin = if self.second == 0 {
            to
        } else {
            self.second + 1
        };
        // Beyond the live window there is nothing to compare.
        let begin = begin.max(to - crate::live::SECONDS);
        for second in begin..=to {
            self.alerts.evaluate(&self.live, second);
        }
        self.second = to;
    }

    /// The alerts that these rows would have raised, in the order of their begin.
    #[must_use]
    pub fn finish(mut self) -> Vec<Alert> {
        let last = self.second;
        self.advance(last + 1);
        self.advance(last + 1 + crate::live::SECONDS);
        let mut all = self.alerts.list();
        all.sort_by_key(|alert| alert.began);
        all
    }
}

/// The alerts that captures would have raised.
///
/// # Errors
/// When a file cannot be read.
pub fn replay(
    config: &Config,
    paths: &[PathBuf],
    port: Option<u16>,
) -> Result<(Counts, Vec<Alert>), ImportError> {
    let (mut shared, mut decoder, mut replay) =
        (shared(config), Decoder::default(), Replay::new(config));
    let mut counts = Counts::default();
    for path in paths {
        let mut rows_seen = 0;
        datagrams(path, port, &mut counts, &mut |time, from, payload| {
            let mut rows = Vec::new();
            decoder.datagram(from, payload, time, &mut shared, &mut rows);
            rows_seen += rows.len() as u64;
            replay.add(rows);
        })?;
        counts.rows += rows_seen;
    }
    Ok((counts, replay.finish()))
}
