//! The state database (redb): manifest, templates, learnt names, coverage by minute, users, tokens, saved filters.
//!
//! All values are JSON; keys are texts that sort as they should. Every commit is durable.

use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FileEntry, StoreError};
use crate::account::Minute;

const FILES: &str = "files";
/// Messages that define templates.
pub const TEMPLATES: &str = "templates";
const MINUTES: &str = "minutes";
/// Users by name.
pub const USERS: &str = "users";
/// API tokens by the hash of their secret.
pub const TOKENS: &str = "tokens";
/// Saved filters by name.
pub const FILTERS: &str = "filters";
/// Silences of alerts by their id.
pub const SILENCES: &str = "silences";
/// Imported files by their SHA-256.
pub const IMPORTED: &str = "imported";
/// Single values.
pub const VALUES: &str = "values";

/// The database.
#[derive(Debug)]
pub struct StateDb {
    db: Database,
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::State(error.to_string())
}

fn definition(name: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(name)
}

impl StateDb {
    /// Opens or creates it.
    ///
    /// # Errors
    /// When the file cannot be opened, for example because another collector uses it.
    pub fn open(path: &Path) -> Result<StateDb, StoreError> {
        let db = Database::create(path).map_err(failed)?;
        let write = db.begin_write().map_err(failed)?;
        for name in [
            FILES, TEMPLATES, MINUTES, USERS, TOKENS, FILTERS, SILENCES, IMPORTED, VALUES,
        ] {
            write.open_table(definition(name)).map_err(failed)?;
        }
        write.commit().map_err(failed)?;
        Ok(StateDb { db })
    }

    /// A value.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn get<T: DeserializeOwned>(
        &self,
        table: &str,
        key: &str,
    ) -> Result<Option<T>, StoreError> {
        let read = self.db.begin_read().map_err(failed)?;
        let table = read.open_table(definition(table)).map_err(failed)?;
        match table.get(key).map_err(failed)? {
            Some(value) => serde_json::from_slice(value.value())
                .map(Some)
                .map_err(failed),
            None => Ok(None),
        }
    }

    /// All values of a table whose keys begin in `from..to`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn range<T: DeserializeOwned>(
        &self,
        table: &str,
        from: &str,
        to: &str,
    ) -> Result<Vec<(String, T)>, StoreError> {
        let read = self.db.begin_read().map_err(failed)?;
        let table = read.open_table(definition(table)).map_err(failed)?;
        let mut found = Vec::new();
        for entry in table.range(from..to).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            found.push((
                key.value().to_owned(),
                serde_json::from_slice(value.value()).map_err(failed)?,
            ));
        }
        Ok(found)
    }

    /// All values of a table.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn all<T: DeserializeOwned>(&self, table: &str) -> Result<Vec<(String, T)>, StoreError> {
        self.range(table, "", "\u{10ffff}")
    }

    /// Stores values, and removes those that are `None`, in one commit.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn put<T: Serialize>(
        &self,
        table: &str,
        values: &[(String, Option<T>)],
    ) -> Result<(), StoreError> {
        let write = self.db.begin_write().map_err(failed)?;
        {
            let mut table = write.open_table(definition(table)).map_err(failed)?;
            for (key, value) in values {
                match value {
                    Some(value) => {
                        let json = serde_json::to_vec(value).map_err(failed)?;
                        table
                            .insert(key.as_str(), json.as_slice())
                            .map_err(failed)?;
                    }
                    None => _ = table.remove(key.as_str()).map_err(failed)?,
                }
            }
        }
        write.commit().map_err(failed)
    }

    pub(super) fn files(&self) -> Result<Vec<FileEntry>, StoreError> {
        Ok(self
            .all(FILES)?
            .into_iter()
            .map(|(_, entry)| entry)
            .collect())
    }

    pub(super) fn add_files(&self, entries: &[FileEntry]) -> Result<(), StoreError> {
        let values: Vec<_> = entries
            .iter()
            .map(|entry| (file_key(entry), Some(entry)))
            .collect();
        self.put(FILES, &values)
    }

    /// Takes files out and puts one in, in one commit.
    pub(super) fn replace_files(
        &self,
        old: &[FileEntry],
        new: &FileEntry,
    ) -> Result<(), StoreError> {
        let old = old.iter().map(|entry| (file_key(entry), None));
        let values: Vec<_> = old.chain([(file_key(new), Some(new))]).collect();
        self.put(FILES, &values)
    }

    pub(super) fn remove_file(&self, entry: &FileEntry) -> Result<(), StoreError> {
        self.put::<FileEntry>(FILES, &[(file_key(entry), None)])
    }

    /// Adds to the coverage of minutes, and forgets what is older than `oldest`.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn add_minutes(
        &self,
        minutes: &std::collections::BTreeMap<(i64, String), Minute>,
        oldest: i64,
    ) -> Result<(), StoreError> {
        let write = self.db.begin_write().map_err(failed)?;
        {
            let mut table = write.open_table(definition(MINUTES)).map_err(failed)?;
            for ((minute, exporter), add) in minutes {
                let key = minute_key(*minute, exporter);
                let known: Minute = match table.get(key.as_str()).map_err(failed)? {
                    Some(value) => serde_json::from_slice(value.value()).map_err(failed)?,
                    None => Minute::default(),
                };
                let sum = Minute {
                    received: known.received + add.received,
                    rejected: known.rejected + add.rejected,
                    arrived: known.arrived + add.arrived,
                    lost: known.lost + add.lost,
                };
                let json = serde_json::to_vec(&sum).map_err(failed)?;
                table
                    .insert(key.as_str(), json.as_slice())
                    .map_err(failed)?;
            }
            let end = minute_key(oldest, "");
            table
                .retain_in(..end.as_str(), |_, _| false)
                .map_err(failed)?;
        }
        write.commit().map_err(failed)
    }

    /// Coverage of the minutes of a period: minute, exporter, counts.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn minutes(&self, from: i64, to: i64) -> Result<Vec<(i64, String, Minute)>, StoreError> {
        let found = self.range::<Minute>(
            MINUTES,
            &minute_key(from - from.rem_euclid(60), ""),
            &minute_key(to, ""),
        )?;
        let parse = |(key, minute): (String, Minute)| {
            let (time, exporter) = key.split_once('|')?;
            Some((time.parse().ok()?, exporter.to_owned(), minute))
        };
        Ok(found.into_iter().filter_map(parse).collect())
    }
}

fn minute_key(minute: i64, exporter: &str) -> String {
    format!("{:012}|{exporter}", minute.max(0))
}

fn file_key(entry: &FileEntry) -> String {
    format!("{:?}|{}", entry.table, entry.id)
}
