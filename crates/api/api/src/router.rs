//! What the engine offers to the API.
//!
//! All methods block and are called from threads of the API's own, several at once: they may wait
//! for a lock of the control side, but never for a worker. What they read, workers may be writing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AclQuery, Acls, Adjacencies, AdjacencyQuery, ApiError, Applied, ApplyRequest, Bonds,
    BridgeDomains, Buffers, Caller, Capture, CaptureRequest, CaptureStream, Captures,
    ConfigChecked, ConfigDiff, ConfigDump, ConfigPlan, ConfigText, Confirmed, DiffRequest, Errors,
    EventBus, Features, FibSummary, Hardware, History, InterfacePatch, InterfaceQuery, Interfaces,
    L2fib, L2fibQuery, Linux, Memifs, MplsFib, NeighborQuery, Neighbors, Pseudowires, RevisionText,
    RollbackRequest, RouteChanges, RouteQuery, Routes, RoutesChanged, Runtime, RxPlacement, Sflow,
    SflowPatch, System, Totals, Trace, TraceRequest, Version, VxlanTunnels, Why, WhyRequest,
};

/// A router as the API sees it.
///
/// Filtering by name, summing over workers and checking the bounds of a request are done in
/// front of it: an implementation always tells everything. Methods with a body of their own are
/// those that a router may lack; what it lacks is reported as such (501).
pub trait Router: Send + Sync + 'static {
    /// Who answers, and since when.
    fn version(&self) -> Result<Version, ApiError>;

    /// All interfaces, in the order of their index.
    fn interfaces(&self) -> Result<Interfaces, ApiError>;

    /// Whether the router does all that its configuration says.
    fn system(&self) -> Result<System, ApiError> {
        Err(ApiError::not_available("the state of the system"))
    }

    /// All ports with the counters of driver, kernel and device.
    fn hardware(&self) -> Result<Hardware, ApiError>;

    /// Which worker serves which receive queue.
    fn rx_placement(&self) -> Result<RxPlacement, ApiError>;

    /// What workers did, node by node.
    fn runtime(&self) -> Result<Runtime, ApiError>;

    /// Every drop counter that is not 0, each with its worker; the API sums them up.
    fn errors(&self) -> Result<Errors, ApiError>;

    /// The part of the interfaces that is asked for; what takes less than all of them is better.
    fn interfaces_where(&self, query: &InterfaceQuery) -> Result<Interfaces, ApiError> {
        self.interfaces().map(|all| query.narrow(all))
    }

    /// The part of the neighbours that is asked for.
    fn neighbors_where(&self, query: &NeighborQuery) -> Result<Neighbors, ApiError> {
        self.neighbors().map(|all| query.narrow(all))
    }

    /// The part of the routes that is asked for; with a full table, this is what bounds memory.
    fn routes_where(&self, query: &RouteQuery) -> Result<Routes, ApiError> {
        self.routes().map(|all| query.narrow(all))
    }

    /// Adjacencies that a query asks for.
    fn adjacencies_where(&self, query: &AdjacencyQuery) -> Result<Adjacencies, ApiError> {
        let _ = query;
        Err(ApiError::not_available("adjacencies"))
    }

    /// All bridge domains.
    fn bridge_domains(&self) -> Result<BridgeDomains, ApiError> {
        Err(ApiError::not_available("bridge domains"))
    }

    /// Stations of bridge domains that a query asks for.
    fn l2fib_where(&self, query: &L2fibQuery) -> Result<L2fib, ApiError> {
        let _ = query;
        Err(ApiError::not_available("stations of bridge domains"))
    }

    /// The features of all interfaces.
    fn features(&self) -> Result<Features, ApiError> {
        Err(ApiError::not_available("features"))
    }

    /// All pseudowires.
    fn pseudowires(&self) -> Result<Pseudowires, ApiError> {
        Err(ApiError::not_available("pseudowires"))
    }

    /// All bonds with their members.
    fn bonds(&self) -> Result<Bonds, ApiError> {
        Err(ApiError::not_available("bonds"))
    }

    /// The TAPs of interfaces in Linux, and what is read from the kernel.
    ///
    /// # Errors
    /// When the router has no such thing.
    fn linux(&self) -> Result<Linux, ApiError> {
        Err(ApiError::not_available("linux"))
    }

    /// Entries of incoming labels, in order: of one label, or at most `most` behind `after`.
    fn mpls_fib(
        &self,
        label: Option<u32>,
        after: Option<u32>,
        most: usize,
    ) -> Result<MplsFib, ApiError> {
        let _ = (label, after, most);
        Err(ApiError::not_available("incoming labels"))
    }

    /// All VXLAN tunnels.
    fn vxlan_tunnels(&self) -> Result<VxlanTunnels, ApiError> {
        Err(ApiError::not_available("VXLAN tunnels"))
    }

    /// All ends of shared-memory connections.
    fn memif(&self) -> Result<Memifs, ApiError> {
        Err(ApiError::not_available("shared-memory connections"))
    }

    /// What interfaces' access lists met; the part of the terms that is asked for, and bindings when none come before.
    fn acls_where(&self, _query: &AclQuery) -> Result<Acls, ApiError> {
        Err(ApiError::not_available("access lists"))
    }

    /// How full packet memory is.
    fn buffers(&self) -> Result<Buffers, ApiError> {
        Err(ApiError::not_available("the state of packet memory"))
    }

    /// How large the forwarding tables are.
    fn fib_summary(&self) -> Result<FibSummary, ApiError> {
        Err(ApiError::not_available("the size of forwarding tables"))
    }

    /// All neighbours.
    fn neighbors(&self) -> Result<Neighbors, ApiError>;

    /// All routes of all tables.
    fn routes(&self) -> Result<Routes, ApiError>;

    /// Sets and deletes routes of the API, each by itself; the request is within its bounds.
    fn routes_change(
        &self,
        _changes: &RouteChanges,
        _caller: &Caller,
    ) -> Result<RoutesChanged, ApiError> {
        Err(ApiError::not_available("setting routes"))
    }

    /// Settings and counters of the sFlow sampler and agent.
    fn sflow(&self) -> Result<Sflow, ApiError>;

    /// Settings and counters of the flow meter and its exporter.
    fn ipfix(&self) -> Result<crate::Ipfix, ApiError> {
        Err(ApiError::not_available("the flow meter"))
    }

    /// Flows that are under way. An interface that does not exist is the caller's to refuse.
    fn flows_where(&self, _query: &crate::FlowQuery) -> Result<crate::Flows, ApiError> {
        Err(ApiError::not_available("flows"))
    }

    /// What would become of a packet. Nothing is sent, counted or learnt.
    fn why(&self, request: &WhyRequest) -> Result<Why, ApiError> {
        let _ = request;
        Err(ApiError::not_available("what would become of a packet"))
    }

    /// What traces recorded.
    fn trace(&self) -> Result<Trace, ApiError>;

    /// Arms a trace. `count` is 1 to [`TraceRequest::most_packets`]; a node or interface that does
    /// not exist is the implementation's to refuse ([`ApiError::unknown`]).
    fn trace_add(&self, request: &TraceRequest) -> Result<(), ApiError>;

    /// Disarms all traces and forgets what they recorded.
    fn trace_clear(&self) -> Result<(), ApiError>;

    /// Begins a capture, whose request is within its bounds; a reason or an interface that does not
    /// exist is the implementation's to refuse ([`ApiError::unknown`]). It ends when its limits are
    /// reached, when it is ended, or when the stream is dropped.
    fn capture(
        &self,
        _request: &CaptureRequest,
        _caller: &Caller,
    ) -> Result<CaptureStream, ApiError> {
        Err(ApiError::not_available("capturing packets"))
    }

    /// The captures that are under way.
    fn captures(&self) -> Result<Captures, ApiError> {
        Err(ApiError::not_available("capturing packets"))
    }

    /// Ends a capture: what was captured until then is still sent to its reader.
    fn capture_end(&self, _number: u64) -> Result<Capture, ApiError> {
        Err(ApiError::not_available("capturing packets"))
    }

    /// The balance of packets since start.
    fn totals(&self) -> Result<Totals, ApiError>;

    /// The running configuration, with the keys of the file.
    fn config(&self) -> Result<serde_json::Value, ApiError>;

    /// Sets counters to 0.
    fn clear(&self, what: Clear) -> Result<(), ApiError>;

    /// The running configuration as a file.
    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Err(ApiError::not_available("the configuration as a file"))
    }

    /// The JSON Schema of configuration files.
    fn config_schema(&self) -> Result<serde_json::Value, ApiError> {
        Err(ApiError::not_available("the schema of the configuration"))
    }

    /// Looks at a file: by itself, and against what the machine has. A file with errors is an
    /// answer, not an error.
    fn config_check(&self, _file: &ConfigText) -> Result<ConfigChecked, ApiError> {
        Err(ApiError::not_available("checking a configuration"))
    }

    /// What applying a file would do. A file with errors is [`ApiError::invalid`].
    fn config_plan(&self, _file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        Err(ApiError::not_available("planning a change"))
    }

    /// Compares; exactly one of the request's two keys is set. A file with errors is
    /// [`ApiError::invalid`].
    fn config_diff(&self, _request: &DiffRequest) -> Result<ConfigDiff, ApiError> {
        Err(ApiError::not_available("comparing configurations"))
    }

    /// Applies a file as one transaction. A file with errors is [`ApiError::invalid`], a change
    /// under way or one that waits to be confirmed is [`ApiError::locked`], a store that cannot
    /// be written is [`ApiError::no_room`] before anything changes.
    ///
    /// It goes on to its end even when the client went away or received a timeout.
    fn config_apply(&self, _request: &ApplyRequest, _caller: &Caller) -> Result<Applied, ApiError> {
        Err(ApiError::not_available("applying a configuration"))
    }

    /// Keeps the change that waits; [`ErrorCode::Conflict`](crate::ErrorCode::Conflict) when none does.
    fn config_confirm(&self, _caller: &Caller) -> Result<Confirmed, ApiError> {
        Err(ApiError::not_available("confirming a change"))
    }

    /// Applies an earlier revision; at most one of `revision` and `steps_back` is set. While a
    /// change waits to be confirmed, one step back undoes it.
    fn config_rollback(
        &self,
        _request: &RollbackRequest,
        _caller: &Caller,
    ) -> Result<Applied, ApiError> {
        Err(ApiError::not_available(
            "going back to an earlier configuration",
        ))
    }

    /// At most `limit` revisions below `before`, newest first.
    fn config_history(&self, _limit: usize, _before: Option<u64>) -> Result<History, ApiError> {
        Err(ApiError::not_available("the history of the configuration"))
    }

    /// One revision with its text.
    fn config_revision(&self, _revision: u64) -> Result<RevisionText, ApiError> {
        Err(ApiError::not_available("the history of the configuration"))
    }

    /// Edits sFlow's settings, as a transaction like [`config_apply`](Self::config_apply); the
    /// edit has at least one key.
    fn sflow_patch(&self, _patch: &SflowPatch, _caller: &Caller) -> Result<Applied, ApiError> {
        Err(ApiError::not_available("changing sFlow's settings"))
    }

    /// Edits one interface's settings, as a transaction like [`config_apply`](Self::config_apply);
    /// the edit has at least one key.
    fn interface_patch(
        &self,
        _name: &str,
        _patch: &InterfacePatch,
        _caller: &Caller,
    ) -> Result<Applied, ApiError> {
        Err(ApiError::not_available("changing an interface's settings"))
    }

    /// Where events are published; asked once, when the server starts.
    fn events(&self) -> Option<EventBus> {
        None
    }
}

/// Counters that can be set to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleared {
    /// What was set to 0.
    pub cleared: Clear,
}
