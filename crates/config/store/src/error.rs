//! Why the store did not do what it was asked to, each in a sentence that says what holds now.

use std::io;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the folder.
    #[error("the configuration store {folder} is in use by {}: two routers need two stores", holder(*.process))]
    Locked {
        /// The folder.
        folder: String,
        /// Who holds it, if known.
        process: Option<u32>,
    },
    /// The folder cannot be made or read.
    #[error("cannot open the configuration store: {doing}: {source}")]
    Open {
        /// What was tried, on which file.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full, read-only or broken. The store is as it was.
    #[error("cannot save the configuration, nothing was changed: {doing}: {source}")]
    Refused {
        /// What was tried, on which file.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The store came to its new state, but the disk did not take it yet.
    #[error(
        "the configuration store could not write down its state, it tries again with the next change: {doing}: {source}"
    )]
    Unrecorded {
        /// What was tried, on which file.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// Text, author or comment is too long.
    #[error("the configuration's {what} has {length} bytes, at most {most} can be kept")]
    TooLong {
        /// Which one.
        what: &'static str,
        /// How long it is.
        length: usize,
        /// How long it may be.
        most: usize,
    },
    /// An unconfirmed revision is in the way.
    #[error("revision {revision} is not confirmed yet: confirm it or roll it back first")]
    Pending {
        /// Which one.
        revision: u64,
    },
    /// Nothing waits to be confirmed.
    #[error("no configuration waits to be confirmed")]
    NothingPending,
    /// There is no such revision, or no longer.
    #[error("there is no revision {revision}: {}", range(*.oldest, *.newest))]
    Unknown {
        /// Which one was asked for.
        revision: u64,
        /// The oldest that is kept; 0 when there is none.
        oldest: u64,
        /// The newest; 0 when there is none.
        newest: u64,
    },
    /// The file of a revision is not what was written.
    #[error("revision {revision} is damaged: {path} is not as it was written")]
    Damaged {
        /// Which one.
        revision: u64,
        /// Its file.
        path: String,
    },
    /// What was prepared was given up since, because something else was prepared.
    #[error(
        "revision {revision} was prepared, but given up since: another one was prepared after it"
    )]
    Stale {
        /// Which one.
        revision: u64,
    },
}

impl StoreError {
    /// What the system said, if it was the system: `StorageFull`, `ReadOnlyFilesystem`, …
    #[must_use]
    pub fn system(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Open { source, .. }
            | Self::Refused { source, .. }
            | Self::Unrecorded { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

fn holder(process: Option<u32>) -> String {
    process.map_or_else(
        || "another process".to_owned(),
        |process| format!("process {process}"),
    )
}

fn range(oldest: u64, newest: u64) -> String {
    match (oldest, newest) {
        (_, 0) => "none is kept yet".to_owned(),
        (oldest, newest) => format!("those from {oldest} to {newest} are kept"),
    }
}
