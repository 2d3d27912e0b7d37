//! Compaction: the files of an hour become one, so that a month has hundreds of files and not thousands.
//!
//! Files of one table and hour are merged in their order, batch by batch, into `x.parquet.tmp`; then fsync, rename, fsync of the
//! folder, and one commit of the manifest that takes the old ones out and the new one in. A crash leaves either the old files
//! or the new one in the manifest; the rest is deleted on start. Old files are deleted after queries that read them have
//! ended. Totals older than `totals_minutes_days` become sums of hours at the same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use futures_util::StreamExt as _;

use super::seal::{Step, Writer};
use super::{FileEntry, GRACE, Store, StoreError, Table, lock};
use crate::query::cubes;
use crate::row::SCHEMA_VERSION;

/// Seconds of a compacted file.
const HOUR: i64 = 3600;
/// Seconds after the end of an hour before its files are merged: late segments are sealed by then.
const SETTLED: i64 = 900;
/// Files that are merged at once.
const MOST_FILES: usize = 64;

/// What became of one hour.
#[derive(Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Which table.
    pub table: Table,
    /// Files that were merged.
    pub files: usize,
    /// Rows of the new file.
    pub rows: u64,
}

/// Files that become one, and the seconds of a row of totals in it.
struct Job {
    files: Vec<FileEntry>,
    step: u32,
}

impl Store {
    /// The next files to merge.
    fn next_job(&self, now: i64, minutes_days: u32) -> Option<Job> {
        let state = lock(&self.state);
        let mut hours: BTreeMap<(Table, i64), Vec<&FileEntry>> = BTreeMap::new();
        for entry in state.files.values() {
            let hour = entry.first.div_euclid(HOUR);
            if (hour + 1) * HOUR + SETTLED <= now && hour == entry.last.div_euclid(HOUR) {
                hours.entry((entry.table, hour)).or_default().push(entry);
            }
        }
        hours.into_iter().find_map(|((table, hour), files)| {
            let old = hour * HOUR < now - i64::from(minutes_days) * 86_400;
            let step = match table {
                Table::Flows => 0,
                Table::Totals if !old => files.iter().map(|file| file.step).max()?,
                Table::Totals | Table::Tops => 3600,
            };
            let coarser = files.iter().any(|file| file.step < step);
            (files.len() > 1 || coarser).then(|| Job {
                files: files.into_iter().take(MOST_FILES).cloned().collect(),
                step,
            })
        })
    }

    /// Merges the files of one hour; `None` when there is nothing to merge. `stop` ends at a step as a crash would.
    ///
    /// # Errors
    /// When files or the manifest cannot be read or written; everything stays as it was then.
    pub async fn compact(
        &self,
        now: i64,
        minutes_days: u32,
        stop: Option<Step>,
    ) -> Result<Option<Compacted>, StoreError> {
        let at = |step| match stop {
            Some(stop) if stop == step => Err(StoreError::Stopped(step)),
            _ => Ok(()),
        };
        let Some(job) = self.next_job(now, minutes_days) else {
            return Ok(None);
        };
        let Some(first) = job.files.first() else {
            return Ok(None);
        };
        let table = first.table;
        let day = super::day_of(first.first);
        let folder = self.folder.join("data").join(&day);
        // The id of the newest file, so that ids stay unique and numbers go on.
        let newest = job
            .files
            .iter()
            .map(|file| file.id.as_str())
            .max()
            .unwrap_or("");
        let id = format!("{newest}-h{}", job.step);
        let name = format!("{}-{id}.parquet", table.name());
        let (path, temporary) = (folder.join(&name), folder.join(format!("{name}.tmp")));
        let paths: Vec<PathBuf> = job
            .files
            .iter()
            .map(|file| self.folder.join(&file.path))
            .collect();
        let oldest = job
            .files
            .iter()
            .map(|file| file.schema)
            .min()
            .unwrap_or(SCHEMA_VERSION);
        let mut batches = cubes::merge(table, &paths, job.step, oldest).await?;
        let mut writer = Writer::create(&temporary, table.schema())?;
        while let Some(batch) = batches.next().await {
            writer.write(&batch?)?;
        }
        let (rows, sum_bytes) = writer.finish()?;
        at(Step::Written)?;
        if table == Table::Flows {
            let expected: u64 = job.files.iter().map(|file| file.rows).sum();
            if rows != expected {
                let _ = fs::remove_file(&temporary);
                return Err(StoreError::State(format!(
                    "{rows} rows were merged out of {expected}"
                )));
            }
        }
        fs::rename(&temporary, &path).map_err(StoreError::io(&path))?;
        at(Step::Renamed)?;
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(StoreError::io(&folder))?;
        at(Step::Synced)?;
        let entry = FileEntry {
            id,
            table,
            path: format!("data/{day}/{name}"),
            first: job.files.iter().map(|file| file.first).min().unwrap_or(0),
            last: job.files.iter().map(|file| file.last).max().unwrap_or(0),
            rows,
            sum_bytes,
            size: fs::metadata(&path).map_err(StoreError::io(&path))?.len(),
            schema: SCHEMA_VERSION,
            step: job.step,
        };
        // A file that was expired in the meantime is gone with its rows.
        {
            let state = lock(&self.state);
            let all = job
                .files
                .iter()
                .all(|file| state.files.contains_key(&(table, file.id.clone())));
            if !all {
                let _ = fs::remove_file(&path);
                return Ok(None);
            }
        }
        self.db.replace_files(&job.files, &entry)?;
        {
            let mut state = lock(&self.state);
            for (file, path) in job.files.iter().zip(paths) {
                state.files.remove(&(table, file.id.clone()));
                state.doomed.push((now + GRACE, path));
            }
            state.files.insert((table, entry.id.clone()), entry);
            state.status.compacted += 1;
        }
        at(Step::Committed)?;
        Ok(Some(Compacted {
            table,
            files: job.files.len(),
            rows,
        }))
    }
}
