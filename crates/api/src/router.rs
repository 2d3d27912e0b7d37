//! What the engine offers to the API.
//!
//! All methods block and are called from threads of the API's own, several at once: they may wait
//! for a lock of the control side, but never for a worker. What they read, workers may be writing.

use serde::{Deserialize, Serialize};

use crate::{ApiError, Errors, Hardware, Interfaces, Neighbors, Routes, Runtime, RxPlacement, Sflow, Totals, Trace, TraceRequest, Version};

/// A router as the API sees it.
///
/// Filtering by name, summing over workers and checking the bounds of a request are done in
/// front of it: an implementation always tells everything.
pub trait Router: Send + Sync + 'static {
    /// Who answers, and since when.
    fn version(&self) -> Result<Version, ApiError>;

    /// All interfaces, in the order of their index.
    fn interfaces(&self) -> Result<Interfaces, ApiError>;

    /// All ports with the counters of driver, kernel and device.
    fn hardware(&self) -> Result<Hardware, ApiError>;

    /// Which worker serves which receive queue.
    fn rx_placement(&self) -> Result<RxPlacement, ApiError>;

    /// What workers did, node by node.
    fn runtime(&self) -> Result<Runtime, ApiError>;

    /// Every drop counter that is not 0, each with its worker; the API sums them up.
    fn errors(&self) -> Result<Errors, ApiError>;

    /// All neighbours.
    fn neighbors(&self) -> Result<Neighbors, ApiError>;

    /// All routes of all tables.
    fn routes(&self) -> Result<Routes, ApiError>;

    /// Settings and counters of the sFlow sampler and agent.
    fn sflow(&self) -> Result<Sflow, ApiError>;

    /// What traces recorded.
    fn trace(&self) -> Result<Trace, ApiError>;

    /// Arms a trace. `count` is 1 to [`TraceRequest::most_packets`]; a node or interface that does
    /// not exist is the implementation's to refuse ([`ApiError::unknown`]).
    fn trace_add(&self, request: &TraceRequest) -> Result<(), ApiError>;

    /// Disarms all traces and forgets what they recorded.
    fn trace_clear(&self) -> Result<(), ApiError>;

    /// The balance of packets since start.
    fn totals(&self) -> Result<Totals, ApiError>;

    /// The running configuration, with the keys of the file.
    fn config(&self) -> Result<serde_json::Value, ApiError>;

    /// Sets counters to 0.
    fn clear(&self, what: Clear) -> Result<(), ApiError>;
}

/// Counters that can be set to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clear {
    /// The counters of interfaces, their drops included.
    Interfaces,
    /// Calls, packets and clocks of nodes, turns of workers.
    Runtime,
    /// Drop counters.
    Errors,
}

impl Clear {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Interfaces, Self::Runtime, Self::Errors];

    /// Its word in the path: `/v1/clear/WORD`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interfaces => "interfaces",
            Self::Runtime => "runtime",
            Self::Errors => "errors",
        }
    }
}

/// The answer to `POST /v1/clear/WORD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// What was set to 0.
    pub cleared: Clear,
}
