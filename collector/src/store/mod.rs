//! Storage: rows in, a write-ahead log until they are in sorted Parquet files, a manifest of the files.
//!
//! One thread appends ([`Store::append`], [`Store::tick`]); one thread seals ([`seal`]); queries take a [`Snapshot`].
//! Order of sealing, so that a crash at any point loses and doubles nothing: write `x.parquet.tmp`, fsync, rename, fsync the
//! folder, commit the manifest, delete the WAL segment. A segment whose id is in the manifest is a leftover and is deleted
//! on start; any other is read back and sealed.
//!
//! A query sees each row once: rows move from memory to a file in one step under the state's lock.

mod compact;
mod seal;
pub mod state;
mod wal;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

pub use compact::Compacted;
pub(crate) use seal::day_of;
pub use seal::{Sealed, Step, bench_write};
use state::StateDb;
use wal::Segment;

use crate::config::Retention;
use crate::query::cubes;
use crate::row::{self, Row};

/// Seconds of one file.
pub const SLOT: i64 = 300;
/// Rows that are kept in memory while they cannot be stored; more are dropped and counted.
const MOST_IN_MEMORY: u64 = 20_000_000;
/// Rows after which a segment is sealed before its time, to bound memory.
const MOST_IN_SEGMENT: u64 = 3_000_000;
/// Seconds between taking a file out of the manifest and deleting it, for queries that still read it.
const GRACE: i64 = 60;

/// Why storage failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("{}: {source}. Check space and permissions", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Arrow refused.
    #[error("Arrow: {0}")]
    Arrow(#[from] ArrowError),
    /// Parquet refused.
    #[error("Parquet: {0}")]
    Parquet(#[from] datafusion::parquet::errors::ParquetError),
    /// The state database refused.
    #[error("state database: {0}")]
    State(String),
    /// A query for a roll-up failed.
    #[error("totals: {0}")]
    Totals(#[from] datafusion::error::DataFusionError),
    /// A batch that no frame can hold.
    #[error("a batch of {0} bytes is too large for the write-ahead log")]
    FrameTooLarge(usize),
    /// A simulated crash.
    #[error("stopped for a test at {0:?}")]
    Stopped(Step),
}

impl StoreError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
        move |source| StoreError::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// Which table a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// Every row.
    Flows,
    /// One row a minute (later an hour) and combination of columns, see [`crate::query::cubes`].
    Totals,
    /// The largest keys of sets of columns.
    Tops,
}

impl Table {
    /// The beginning of its files' names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Flows => "flows",
            Table::Totals => "totals",
            Table::Tops => "tops",
        }
    }

    /// Its schema.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Flows => row::schema(),
            Table::Totals => cubes::totals_schema(),
            Table::Tops => cubes::tops_schema(),
        }
    }
}

fn minute() -> u32 {
    60
}

/// A file of the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Id; also that of the WAL segment it was made of.
    pub id: String,
    /// Which table.
    pub table: Table,
    /// Path relative to the data folder.
    pub path: String,
    /// Lowest time.
    pub first: i64,
    /// Highest time.
    pub last: i64,
    /// Rows.
    pub rows: u64,
    /// Sum of `bytes`.
    pub sum_bytes: u64,
    /// Size of the file.
    pub size: u64,
    /// [`row::SCHEMA_VERSION`] when it was written.
    pub schema: u32,
    /// Seconds that a row of totals or tops stands for.
    #[serde(default = "minute")]
    pub step: u32,
}

/// What a query reads.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Parquet files with all rows.
    pub flows: Vec<PathBuf>,
    /// Parquet files of totals.
    pub totals: Vec<PathBuf>,
    /// Seconds of their coarsest row.
    pub totals_step: u32,
    /// Parquet files of tops.
    pub tops: Vec<PathBuf>,
    /// Whether tops have at least all rows that `flows` has: older releases wrote none.
    pub tops_complete: bool,
    /// Rows that are in no file yet.
    pub memory: Vec<RecordBatch>,
    /// Rows of `flows` and `memory`.
    pub rows: u64,
    /// The oldest schema of these files; 0 without files.
    pub oldest_schema: u32,
}

/// Counters for the health page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// Rows appended since the start, those read back from the log included.
    pub appended: u64,
    /// Rows that are safe from a power failure.
    pub durable: u64,
    /// Rows that could not be kept: disk failing and memory full.
    pub lost: u64,
    /// Rows in files.
    pub file_rows: u64,
    /// Files of flows.
    pub files: u64,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// Rows in memory.
    pub memory_rows: u64,
    /// Bytes of the write-ahead log that is being written.
    pub wal_bytes: u64,
    /// Rows read back from the log when the collector started.
    pub recovered: u64,
    /// Bytes at the end of log segments that were no whole batch.
    pub torn_bytes: u64,
    /// Files moved to `quarantine/`, with the reason.
    pub quarantined: BTreeMap<String, String>,
    /// Files deleted by retention.
    pub expired: u64,
    /// Hours whose files became one.
    pub compacted: u64,
    /// The last failure, with its time; empty while all is well.
    pub failure: Option<(i64, String)>,
}

/// Rows of one WAL segment.
#[derive(Clone, Debug, Default)]
struct Block {
    id: String,
    batches: Vec<RecordBatch>,
    rows: u64,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<(Table, String), FileEntry>,
    /// The segment that is being written.
    hot: Block,
    /// Segments that wait for sealing, oldest first.
    sealing: VecDeque<Block>,
    /// Files out of the manifest, and when to delete them.
    doomed: Vec<(i64, PathBuf)>,
    status: Status,
}

#[derive(Debug)]
struct Writer {
    segment: Segment,
    slot: i64,
    number: u64,
    pending: u64,
}

/// The store. Share it behind an [`Arc`].
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Settings, templates, coverage, users.
    pub db: StateDb,
    state: Mutex<State>,
    writer: Mutex<Writer>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock means a bug elsewhere; the data under it is still consistent after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Opens a data folder, reads back what was not sealed, and begins a new segment at `now`.
    ///
    /// # Errors
    /// When folders or the state database cannot be opened.
    pub fn open(folder: &Path, now: i64) -> Result<Arc<Store>, StoreError> {
        for name in ["wal", "data", "quarantine"] {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(StoreError::io(&path))?;
        }
        let db = StateDb::open(&folder.join("state.redb"))?;
        let mut state = State::default();
        for entry in db.files()? {
            match check_file(folder, &entry) {
                Ok(()) => _ = state.files.insert((entry.table, entry.id.clone()), entry),
                Err(why) => {
                    quarantine(folder, &entry, &why)?;
                    db.remove_file(&entry)?;
                    state.status.quarantined.insert(entry.path.clone(), why);
                }
            }
        }
        delete_orphans(folder, &state);
        recover(folder, &mut state)?;
        let number = state
            .sealing
            .iter()
            .map(|block| number_of(&block.id))
            .chain(state.files.keys().map(|(_, id)| number_of(id)))
            .max();
        let number = number.map_or(0, |number| number + 1);
        let slot = now - now.rem_euclid(SLOT);
        let id = segment_id(slot, number);
        let segment = Segment::create(&folder.join("wal"), &id)?;
        state.hot.id = id;
        Ok(Arc::new(Store {
            folder: folder.to_owned(),
            db,
            state: Mutex::new(state),
            writer: Mutex::new(Writer {
                segment,
                slot,
                number,
                pending: 0,
            }),
        }))
    }

    /// Appends rows: to the log and to the rows that queries see. Returns the number of rows kept.
    pub fn append(&self, rows: &[Row], now: i64) -> u64 {
        if rows.is_empty() {
            return 0;
        }
        let batch = match row::batch(rows) {
            Ok(batch) => batch,
            Err(error) => {
                self.fail(now, &error.to_string());
                lock(&self.state).status.lost += rows.len() as u64;
                return 0;
            }
        };
        let count = rows.len() as u64;
        let mut writer = lock(&self.writer);
        let written = writer.segment.append(&batch);
        let mut state = lock(&self.state);
        if let Err(error) = written {
            state.status.failure = Some((now, error.to_string()));
            if state.hot.rows >= MOST_IN_MEMORY {
                state.status.lost += count;
                return 0;
            }
        } else {
            writer.pending += count;
            state.status.wal_bytes = writer.segment.bytes();
        }
        state.hot.batches.push(batch);
        state.hot.rows += count;
        state.status.appended += count;
        count
    }

    /// To be called each second: makes rows durable, and begins a new segment when the slot is over.
    /// Returns whether there is something to seal.
    pub fn tick(&self, now: i64) -> bool {
        let mut writer = lock(&self.writer);
        match writer.segment.sync() {
            Ok(()) => {
                let mut state = lock(&self.state);
                state.status.durable += std::mem::take(&mut writer.pending);
                if state
                    .status
                    .failure
                    .as_ref()
                    .is_some_and(|(at, _)| now - at > 60)
                {
                    state.status.failure = None;
                }
            }
            Err(error) => self.fail(now, &error.to_string()),
        }
        let slot = now - now.rem_euclid(SLOT);
        // Clocks may jump: any other slot begins a new segment.
        let full = lock(&self.state).hot.rows >= MOST_IN_SEGMENT;
        if slot != writer.slot || full {
            self.rotate(&mut writer, slot, now);
        }
        !lock(&self.state).sealing.is_empty()
    }

    /// Begins a new segment now, so that everything stored so far can be sealed.
    pub fn flush(&self, now: i64) {
        let mut writer = lock(&self.writer);
        if let Err(error) = writer.segment.sync() {
            self.fail(now, &error.to_string());
        }
        let pending = std::mem::take(&mut writer.pending);
        lock(&self.state).status.durable += pending;
        let slot = now - now.rem_euclid(SLOT);
        self.rotate(&mut writer, slot, now);
    }

    fn rotate(&self, writer: &mut Writer, slot: i64, now: i64) {
        if writer.segment.is_empty() && lock(&self.state).hot.rows == 0 {
            writer.slot = slot;
            return;
        }
        let number = writer.number + 1;
        let id = segment_id(slot, number);
        match Segment::create(&self.folder.join("wal"), &id) {
            Ok(segment) => {
                writer.segment = segment;
                (writer.slot, writer.number) = (slot, number);
                let mut state = lock(&self.state);
                let block = std::mem::replace(
                    &mut state.hot,
                    Block {
                        id,
                        ..Block::default()
                    },
                );
                state.sealing.push_back(block);
            }
            // The old segment goes on; the next tick tries again.
            Err(error) => self.fail(now, &error.to_string()),
        }
    }

    fn fail(&self, now: i64, message: &str) {
        tracing::error!(error = message, "storage failed; rows stay in memory");
        lock(&self.state).status.failure = Some((now, message.to_owned()));
    }

    /// What a query over `from..to` reads.
    #[must_use]
    pub fn snapshot(&self, from: i64, to: i64) -> Snapshot {
        let state = lock(&self.state);
        let mut snapshot = Snapshot::default();
        let (mut flows_bytes, mut tops_bytes) = (0_u64, 0_u64);
        for entry in state
            .files
            .values()
            .filter(|entry| entry.last >= from && entry.first < to)
        {
            let path = self.folder.join(&entry.path);
            if snapshot.oldest_schema == 0 || entry.schema < snapshot.oldest_schema {
                snapshot.oldest_schema = entry.schema;
            }
            match entry.table {
                Table::Flows => {
                    snapshot.rows += entry.rows;
                    flows_bytes = flows_bytes.wrapping_add(entry.sum_bytes);
                    snapshot.flows.push(path);
                }
                Table::Totals => {
                    snapshot.totals_step = snapshot.totals_step.max(entry.step);
                    snapshot.totals.push(path);
                }
                Table::Tops => {
                    tops_bytes = tops_bytes.wrapping_add(entry.sum_bytes);
                    snapshot.tops.push(path);
                }
            }
        }
        // Each set of columns has the whole sum.
        snapshot.tops_complete = tops_bytes / cubes::SETS.len() as u64 >= flows_bytes;
        for block in state.sealing.iter().chain([&state.hot]) {
            snapshot.rows += block.rows;
            snapshot.memory.extend(block.batches.iter().cloned());
        }
        snapshot
    }

    /// Says of a file that an older release wrote it. For tests of old files.
    ///
    /// # Errors
    /// When there is no such file.
    #[doc(hidden)]
    pub fn set_schema_for_test(&self, path: &Path, schema: u32) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let entry = state
            .files
            .values_mut()
            .find(|entry| self.folder.join(&entry.path) == path);
        let entry =
            entry.ok_or_else(|| StoreError::State(format!("no file {}", path.display())))?;
        entry.schema = schema;
        entry.size = fs::metadata(path).map_err(StoreError::io(path))?.len();
        self.db.add_files(&[entry.clone()])
    }

    /// Counters.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = lock(&self.state);
        let mut status = state.status.clone();
        for entry in state.files.values() {
            status.file_bytes += entry.size;
            if entry.table == Table::Flows {
                status.files += 1;
                status.file_rows += entry.rows;
            }
        }
        status.memory_rows =
            state.hot.rows + state.sealing.iter().map(|block| block.rows).sum::<u64>();
        status
    }

    /// Takes files out of the manifest that are too old or too many, and deletes those taken out a minute ago.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn expire(&self, retention: &Retention, now: i64) -> Result<(), StoreError> {
        let day = 86_400;
        let mut gone = Vec::new();
        {
            let state = lock(&self.state);
            let mut size: u64 = state.files.values().map(|entry| entry.size).sum();
            let limit = (retention.gigabytes * 1e9) as u64;
            let mut oldest: Vec<&FileEntry> = state.files.values().collect();
            oldest.sort_by_key(|entry| (entry.table, entry.first));
            for entry in oldest {
                let days = match entry.table {
                    Table::Flows => retention.days,
                    Table::Totals | Table::Tops => retention.totals_days,
                };
                if entry.last < now - i64::from(days) * day || size > limit {
                    size -= entry.size;
                    gone.push(entry.clone());
                }
            }
        }
        for entry in gone {
            self.db.remove_file(&entry)?;
            let mut state = lock(&self.state);
            state.files.remove(&(entry.table, entry.id.clone()));
            state
                .doomed
                .push((now + GRACE, self.folder.join(&entry.path)));
            state.status.expired += 1;
        }
        let mut state = lock(&self.state);
        let (due, later) = std::mem::take(&mut state.doomed)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        state.doomed = later;
        drop(state);
        let due: Vec<(i64, PathBuf)> = due;
        for (_, path) in due {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(file = %path.display(), %error, "expired file could not be deleted");
            }
        }
        Ok(())
    }
}

/// Bytes of all files in a folder and in those below it.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => folder_bytes(&entry.path()),
            Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |data| data.len()),
            _ => 0,
        })
        .sum()
}

fn segment_id(slot: i64, number: u64) -> String {
    format!("{slot:012}-{number:08}")
}

fn number_of(id: &str) -> u64 {
    id.split('-')
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Whether a file is as long as the manifest says and ends as Parquet does.
fn check_file(folder: &Path, entry: &FileEntry) -> Result<(), String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let path = folder.join(&entry.path);
    let mut file = fs::File::open(&path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if size != entry.size {
        return Err(format!("{size} bytes instead of {}", entry.size));
    }
    let mut magic = [0; 4];
    file.seek(SeekFrom::End(-4))
        .and_then(|_| file.read_exact(&mut magic))
        .map_err(|error| error.to_string())?;
    if magic == *b"PAR1" {
        Ok(())
    } else {
        Err("does not end as a Parquet file".to_owned())
    }
}

fn quarantine(folder: &Path, entry: &FileEntry, why: &str) -> Result<(), StoreError> {
    let path = folder.join(&entry.path);
    tracing::error!(file = %path.display(), error = why, "file is damaged and moved to quarantine/");
    if path.exists() {
        let name = entry.path.replace('/', "_");
        fs::rename(&path, folder.join("quarantine").join(name)).map_err(StoreError::io(&path))?;
    }
    Ok(())
}

/// Deletes what sealing or merging left behind when the program was killed: files of ours that the manifest does not have.
fn delete_orphans(folder: &Path, state: &State) {
    let known: std::collections::HashSet<&str> = state
        .files
        .values()
        .map(|entry| entry.path.as_str())
        .collect();
    let days = fs::read_dir(folder.join("data"))
        .into_iter()
        .flatten()
        .flatten();
    for day in days {
        let day_name = day.file_name();
        for file in fs::read_dir(day.path()).into_iter().flatten().flatten() {
            let name = file.file_name();
            let (Some(day), Some(name)) = (day_name.to_str(), name.to_str()) else {
                continue;
            };
            let is_ours = ["flows-", "totals-", "tops-"]
                .iter()
                .any(|start| name.starts_with(start))
                && (name.ends_with(".parquet") || name.ends_with(".parquet.tmp"));
            if is_ours && !known.contains(format!("data/{day}/{name}").as_str()) {
                tracing::info!(file = name, "a file that was not finished is deleted");
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// Reads back segments that are not in the manifest; deletes those that are, and unfinished files.
fn recover(folder: &Path, state: &mut State) -> Result<(), StoreError> {
    let wal = folder.join("wal");
    let mut names: Vec<PathBuf> = fs::read_dir(&wal)
        .map_err(StoreError::io(&wal))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    names.sort();
    for path in names {
        let Some(id) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".wal"))
        else {
            continue;
        };
        if state.files.contains_key(&(Table::Flows, id.to_owned())) {
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
            continue;
        }
        let recovered = wal::read(&path)?;
        let rows: u64 = recovered
            .batches
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum();
        state.status.torn_bytes += recovered.torn;
        if rows == 0 {
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
            continue;
        }
        state.status.recovered += rows;
        state.status.appended += rows;
        state.status.durable += rows;
        state.sealing.push_back(Block {
            id: id.to_owned(),
            batches: recovered.batches,
            rows,
        });
    }
    Ok(())
}
