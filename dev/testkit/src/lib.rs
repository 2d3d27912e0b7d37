//! The whole router in a test: scenarios.
//!
//! A scenario is a folder: a configuration, frames that come in, frames that must go out, and every
//! counter that must not be zero afterwards. Frames are written by hand, octet by octet, in
//! `packets.txt` ([`script`]); the captures beside it are made from that text ([`captures`]) for
//! whoever wants to look with other tools, and a test holds the two together.
//!
//! [`run`] starts the real engine through the real configuration path, in the caller's thread and
//! under a clock that the script moves ([`weir_engine::Trial`]): nothing waits for time, so that a
//! minute of ageing costs milliseconds, and what follows from a frame is over when the router says
//! that nothing moves any more. [`judge`] has tshark read what was to go out.
//!
//! Not here: real devices, threads and the system's clock; those have tests of their own.

#![forbid(unsafe_code)]

pub mod captures;
pub mod counters;
pub mod differ;
pub mod judge;
mod port;
pub mod run;
pub mod script;

use std::path::{Path, PathBuf};

/// Where the scenarios lie.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// The names of all scenarios, sorted.
///
/// # Errors
/// When the folder cannot be read.
pub fn names() -> Result<Vec<String>, String> {
    let entries =
        std::fs::read_dir(folder()).map_err(|error| format!("{}: {error}", folder().display()))?;
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}
