//! Who answers: `GET /v1/version`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that answers, and since when it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// Its version, as `0.1.0`.
    pub version: String,
    /// The commit it was built from, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its process.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started: u64,
    /// For how many seconds it has been running.
    pub uptime: u64,
    /// How many workers it has.
    pub workers: u32,
    /// The configuration file it was started with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_file: Option<String>,
}
