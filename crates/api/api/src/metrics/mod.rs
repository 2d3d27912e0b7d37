//! Metrics: every counter of the router as OpenMetrics text (`GET /v1/metrics`, `GET /metrics`).
//!
//! One table (`families.rs`) says each metric's name, type, unit, labels and meaning, and takes
//! its samples from what the router replied; the text and the page `docs/metrics.md` come from it.
//! Reading the replies and writing the text are apart, so that the text is a pure function.
//!
//! Counters are those of the other endpoints: a `clear` sets some of them to 0, which Prometheus
//! takes for a restart. Format: OpenMetrics 1.0.

mod families;
mod page;
pub(crate) mod plain;
mod process;
mod write;

pub use families::{METRICS, Metric, MetricKind};
pub use page::reference;
pub use process::Process;

use crate::{
    AclQuery, Acls, ApiError, Bonds, BridgeDomains, Buffers, ErrorCode, Errors, FibSummary,
    Hardware, History, Interfaces, Neighbors, Router, Runtime, Sflow, System, Totals, Version,
};

/// OpenMetrics 1.0, "Content-Type".
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything that metrics are made of: the router's replies and the process's state.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Who answers.
    pub version: Version,
    /// What is wrong, if the router tells.
    pub system: Option<System>,
    /// All interfaces.
    pub interfaces: Interfaces,
    /// All ports.
    pub hardware: Hardware,
    /// What workers did.
    pub runtime: Runtime,
    /// All drops.
    pub errors: Errors,
    /// The balance of packets.
    pub totals: Totals,
    /// Sampler and agent.
    pub sflow: Sflow,
    /// The flow meter, if the router tells.
    pub ipfix: Option<crate::Ipfix>,
    /// All neighbours.
    pub neighbors: Neighbors,
    /// What interfaces are bound to, if the router tells.
    pub acls: Option<Acls>,
    /// Bridge domains, if the router tells.
    pub bridges: Option<BridgeDomains>,
    /// All bonds, if the router tells.
    pub bonds: Option<Bonds>,
    /// The forwarding tables, if the router tells.
    pub fib: Option<FibSummary>,
    /// Packet memory, if the router tells.
    pub buffers: Option<Buffers>,
    /// The newest revision, if the router keeps a history.
    pub history: Option<History>,
    /// Linux as the control plane, if the router tells.
    pub linux: Option<crate::Linux>,
    /// The process, if the system tells.
    pub process: Option<Process>,
}

impl Snapshot {
    /// Asks the router for everything.
    ///
    /// # Errors
    /// When the router cannot answer; what it does not have is left out.
    pub fn take(router: &dyn Router) -> Result<Self, ApiError> {
        Ok(Self {
            version: router.version()?,
            system: if_available(router.system())?,
            interfaces: router.interfaces()?,
            hardware: router.hardware()?,
            runtime: router.runtime()?,
            errors: router.errors()?,
            totals: router.totals()?,
            sflow: router.sflow()?,
            ipfix: if_available(router.ipfix())?,
            neighbors: router.neighbors()?,
            acls: if_available(router.acls_where(&AclQuery::default()))?,
            bridges: if_available(router.bridge_domains())?,
            bonds: if_available(router.bonds())?,
            fib: if_available(router.fib_summary())?,
            buffers: if_available(router.buffers())?,
            history: if_available(router.config_history(1, None))?,
            linux: if_available(router.linux())?,
            process: Process::read().ok(),
        })
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> String {
        write::text(self)
    }
}

fn if_available<T>(reply: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.code == ErrorCode::NotAvailable => Ok(None),
        Err(error) => Err(error),
    }
}

/// The metrics of a router.
pub(crate) fn of(router: &dyn Router) -> Result<String, ApiError> {
    Snapshot::take(router).map(|snapshot| snapshot.text())
}
