//! What can fail in the lab.

use std::time::Duration;

use crate::profile::ProfileError;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The profile has errors.
    #[error("the profile has {} error(s):\n{}", .0.len(), .0.iter().map(|e| format!("  {e}")).collect::<Vec<_>>().join("\n"))]
    Profile(Vec<ProfileError>),
    /// A stream cannot be run.
    #[error("stream {stream}: {problem}")]
    Stream {
        /// Its name.
        stream: String,
        /// What is wrong.
        problem: String,
    },
    /// A port cannot be opened.
    #[error("{0}")]
    Open(#[from] weir_port::OpenError),
    /// A port has no link.
    #[error("{port}: the link is still down after {after:?}: check the other end")]
    LinkDown {
        /// The port.
        port: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The device went away while traffic ran.
    #[error("{port}: the device disappeared during the run")]
    Vanished {
        /// The port.
        port: String,
    },
    /// A gateway does not answer.
    #[error(
        "{port}: no answer from gateway {gateway}: is the router's interface up, and is the address right?"
    )]
    NoGateway {
        /// The port.
        port: String,
        /// The gateway's address.
        gateway: String,
    },
    /// No packet memory.
    #[error("packet memory: {0}")]
    Pool(#[from] weir_buf::PoolError),
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    File {
        /// Which file, and what was tried.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something else that cannot be done.
    #[error("{0}")]
    Refused(String),
}

impl LabError {
    /// An error of a file.
    pub fn file(what: impl Into<String>, source: std::io::Error) -> LabError {
        LabError::File {
            what: what.into(),
            source,
        }
    }
}
