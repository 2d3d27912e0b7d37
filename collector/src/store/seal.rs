//! Sealing: the rows of a WAL segment become one sorted Parquet file, and one file of totals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{
    SortColumn, concat_batches, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef, UInt64Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use super::{FileEntry, Store, StoreError, Table, lock};
use crate::query::cubes;
use crate::row::{SCHEMA_VERSION, SORT, schema};

/// Rows of a row group: the unit that filters skip.
const ROW_GROUP: usize = 131_072;

/// Points between which a crash is tried in tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is written yet.
    Begin,
    /// The temporary file is written.
    Written,
    /// It is renamed.
    Renamed,
    /// The folder is durable, the manifest is not.
    Synced,
    /// The manifest is committed.
    Committed,
    /// The WAL segment is deleted.
    Done,
}

/// What became of one segment.
#[derive(Debug)]
pub struct Sealed {
    /// Id of the segment.
    pub id: String,
    /// Rows.
    pub rows: u64,
}

impl Store {
    /// Seals the oldest segment that waits; `None` when none does. `stop` ends at a step as a crash would.
    ///
    /// # Errors
    /// When files or the manifest cannot be written; the segment then waits on.
    pub async fn seal(&self, stop: Option<Step>) -> Result<Option<Sealed>, StoreError> {
        let at = |step| {
            if stop == Some(step) {
                Err(StoreError::Stopped(step))
            } else {
                Ok(())
            }
        };
        let Some(block) = lock(&self.state).sealing.front().cloned() else {
            return Ok(None);
        };
        at(Step::Begin)?;
        let sorted = sort(&block.batches)?;
        let (first, last) = bounds(&sorted);
        let day = day_of(first);
        let folder = self.folder.join("data").join(&day);
        fs::create_dir_all(&folder).map_err(StoreError::io(&folder))?;
        let totals = cubes::totals_of(&block.batches).await?;
        let tops = cubes::tops_of(&block.batches).await?;
        let mut entries = Vec::new();
        for (table, batch, step) in [
            (Table::Flows, &sorted, 0),
            (Table::Totals, &totals, 60),
            (Table::Tops, &tops, 300),
        ] {
            let name = format!("{}-{}.parquet", table.name(), block.id);
            let path = folder.join(&name);
            let temporary = folder.join(format!("{name}.tmp"));
            write(&temporary, batch)?;
            at(Step::Written)?;
            fs::rename(&temporary, &path).map_err(StoreError::io(&path))?;
            at(Step::Renamed)?;
            entries.push(FileEntry {
                id: block.id.clone(),
                table,
                path: format!("data/{day}/{name}"),
                first,
                last,
                rows: batch.num_rows() as u64,
                sum_bytes: sum_bytes(batch),
                size: fs::metadata(&path).map_err(StoreError::io(&path))?.len(),
                schema: SCHEMA_VERSION,
                step,
            });
        }
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(StoreError::io(&folder))?;
        at(Step::Synced)?;
        self.db.add_files(&entries)?;
        {
            let mut state = lock(&self.state);
            state.sealing.pop_front();
            for entry in entries {
                state.files.insert((entry.table, entry.id.clone()), entry);
            }
        }
        at(Step::Committed)?;
        let wal = self.folder.join("wal").join(format!("{}.wal", block.id));
        fs::remove_file(&wal).map_err(StoreError::io(&wal))?;
        at(Step::Done)?;
        Ok(Some(Sealed {
            id: block.id,
            rows: block.rows,
        }))
    }
}

/// All batches as one, in the order of [`SORT`].
pub(crate) fn sort(batches: &[RecordBatch]) -> Result<RecordBatch, StoreError> {
    let all = concat_batches(&schema(), batches)?;
    let columns: Vec<SortColumn> = SORT
        .iter()
        .filter_map(|name| {
            Some(SortColumn {
                values: Arc::clone(all.column_by_name(name)?),
                options: None,
            })
        })
        .collect();
    let order = lexsort_to_indices(&columns, None)?;
    Ok(take_record_batch(&all, &order)?)
}

/// Writes a batch and makes it durable.
pub(crate) fn write(path: &Path, batch: &RecordBatch) -> Result<(), StoreError> {
    let mut writer = Writer::create(path, batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(())
}

/// Columns whose values differ from row to row: bytes of one place stand together, without a dictionary.
const SPLIT: [&str; 9] = [
    "src_hi",
    "src_lo",
    "dst_hi",
    "dst_lo",
    "bytes",
    "packets",
    "l2_bytes",
    "bytes_var",
    "packets_var",
];

/// A Parquet file that is being written.
pub(super) struct Writer {
    path: PathBuf,
    writer: ArrowWriter<File>,
    rows: u64,
    sum_bytes: u64,
}

impl Writer {
    pub(super) fn create(path: &Path, schema: SchemaRef) -> Result<Writer, StoreError> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_created_by("weir-collector".to_owned());
        for name in SPLIT {
            properties = properties
                .set_column_dictionary_enabled(name.into(), false)
                .set_column_encoding(name.into(), Encoding::BYTE_STREAM_SPLIT);
        }
        let file = File::create(path).map_err(StoreError::io(path))?;
        Ok(Writer {
            path: path.to_owned(),
            writer: ArrowWriter::try_new(file, schema, Some(properties.build()))?,
            rows: 0,
            sum_bytes: 0,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        self.rows += batch.num_rows() as u64;
        self.sum_bytes = self.sum_bytes.wrapping_add(sum_bytes(batch));
        Ok(self.writer.write(batch)?)
    }

    /// Makes the file durable; its rows and the sum of their bytes.
    pub(super) fn finish(self) -> Result<(u64, u64), StoreError> {
        let file = self.writer.into_inner()?;
        file.sync_all().map_err(StoreError::io(&self.path))?;
        Ok((self.rows, self.sum_bytes))
    }
}

fn bounds(batch: &RecordBatch) -> (i64, i64) {
    let times = batch
        .column_by_name("time")
        .and_then(|column| column.as_primitive_opt::<Int64Type>());
    let times = times
        .map(|times| times.values().as_ref())
        .unwrap_or_default();
    (
        times.iter().min().copied().unwrap_or(0),
        times.iter().max().copied().unwrap_or(0),
    )
}

fn sum_bytes(batch: &RecordBatch) -> u64 {
    let bytes = batch
        .column_by_name("bytes")
        .and_then(|column| column.as_primitive_opt::<UInt64Type>());
    bytes.map_or(0, |bytes: &UInt64Array| {
        bytes
            .values()
            .iter()
            .fold(0, |sum, value| sum.wrapping_add(*value))
    })
}

/// The day of a time as `2026-11-23`, by the civil calendar.
pub(crate) fn day_of(time: i64) -> String {
    // Days since 1 March of year 0, in 400-year eras of 146 097 days.
    let days = time.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (
        day - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}")
}

/// Sorts and writes batches as sealing does; the size of the file. For measurements.
///
/// # Errors
/// When the file cannot be written.
pub fn bench_write(path: &Path, batches: &[RecordBatch]) -> Result<u64, StoreError> {
    write(path, &sort(batches)?)?;
    Ok(fs::metadata(path).map_err(StoreError::io(path))?.len())
}
