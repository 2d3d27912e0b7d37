//! What can go wrong between the daemon and the kernel.

use std::path::PathBuf;

/// An error, with the object that it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A map could not be opened.
    #[error("open map {name} in {}: {reason}", folder.display())]
    Map {
        /// The map.
        name: &'static str,
        /// The folder of pinned maps.
        folder: PathBuf,
        /// What the kernel says.
        reason: String,
    },
    /// A map entry could not be read or written.
    #[error("{action} an entry of map {name}: {reason}")]
    Entry {
        /// Read, write or delete.
        action: &'static str,
        /// The map.
        name: &'static str,
        /// What the kernel says.
        reason: String,
    },
    /// The programs could not be loaded.
    #[error("load the XDP programs (kernel {kernel}): {reason}")]
    Load {
        /// The kernel's version.
        kernel: String,
        /// What is missing, or what the kernel says.
        reason: String,
    },
    /// A program could not be attached.
    #[error("attach to interface {interface}: {reason}")]
    Attach {
        /// The interface.
        interface: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The folder of pinned maps cannot be used.
    #[error("use {} for pinned maps: {reason}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A table of the programs is full.
    #[error("{table} is full: {reason}")]
    Full {
        /// The table.
        table: &'static str,
        /// What did not fit.
        reason: String,
    },
    /// The history of configurations, the API or the sFlow agent could not be started, or refused.
    #[error("{what}: {reason}")]
    Service {
        /// Which of them.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Netlink failed.
    #[error(transparent)]
    Netlink(#[from] weir_netlink::Error),
    /// A file or socket failed.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Of which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}
