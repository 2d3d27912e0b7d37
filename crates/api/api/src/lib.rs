//! The router's API: what can be asked of a running Weir, and what it answers.
//!
//! Everything that looks at a router from outside (the command line, scripts, the Python client)
//! speaks HTTP with JSON under `/v1`, over a Unix socket or over TCP with TLS. This crate has all
//! of it: the typed requests and replies, the trait by which the engine answers, the server and a
//! blocking client.
//!
//! - The types say their units. Keys are snake_case, enumerations kebab-case, every reply is an
//!   object (so that it can grow), an absent key means "has none".
//! - [`Router`] is what the engine implements: blocking methods that read counters and tables,
//!   plan and apply configurations, and never touch a worker's way. On an [`EventBus`] it
//!   publishes what happens.
//! - [`Server`] runs on a thread of its own with a small runtime; clients that stall, send half a
//!   request or come in a crowd are bounded there. It finds out who asks ([`Caller`]) before it
//!   reads what they ask.
//! - [`ENDPOINTS`] is the one table of methods and paths; routing, roles, the OpenAPI document, the
//!   reference page and the tests come from it. [`metrics`] has a table of its own kind.
//!
//! What it does not do: read configurations. A file is a text here, and its findings are the
//! engine's.

#![forbid(unsafe_code)]

mod access;
mod acl;
mod bond;
mod bridge;
mod caller;
mod capture;
mod client;
mod config;
mod encoding;
mod endpoints;
mod error;
mod event;
mod feature;
mod flow;
mod forwarding;
mod guests;
mod hardware;
mod http;
mod interface;
mod linux;
mod listen;
mod memif;
pub mod metrics;
mod mpls;
mod openapi;
mod page;
mod pseudowire;
mod reference;
mod route_change;
mod router;
mod runtime;
mod server;
mod settings;
mod sflow;
mod socket;
mod stall;
mod stream;
mod summary;
mod system;
mod time;
mod tls;
mod trace;
mod version;
mod vxlan;
mod why;

pub use acl::{AclAction, AclBinding, AclDirection, AclQuery, AclTerm, AclTermKey, Acls};
pub use bond::{Bond, BondMember, Bonds, LacpEnd, LacpPort};
pub use bridge::{
    BridgeDomain, BridgeDomains, BridgeMember, L2Station, L2fib, L2fibKey, L2fibQuery,
};
pub use caller::{Caller, Origin, Role};
pub use capture::{Capture, CaptureRequest, CaptureSink, CaptureStream, Captures, NotTaken};
pub use client::{CapturePieces, Client, ClientError, EventRequest, Events};
pub use config::{
    Applied, ApplyRequest, ConfigChecked, ConfigDiff, ConfigDump, ConfigLock, ConfigPlan,
    ConfigStep, ConfigText, Confirmed, DiffRequest, Edit, Finding, FindingSeverity, History,
    InterfacePatch, LockReason, Revision, RevisionText, RollbackRequest, SflowPatch, StepGroup,
};
pub use endpoints::{ENDPOINTS, Endpoint, Parameter, ParameterKind, Reply, TypeOf};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use event::{
    ConfigEvent, ConfigEventKind, CountersEvent, Event, EventBus, EventLevel, InterfaceCounters,
    LinkEvent, Log, LogEvent, LostEvent, Topic,
};
pub use feature::{FeatureArc, Features, InterfaceFeatures, Policer};
pub use flow::{
    FlowEntry, FlowGroup, FlowGroupBy, FlowGrouping, FlowLoad, FlowMeasure, FlowQuery, FlowWorker,
    Flows, Ipfix, IpfixCollector, IpfixInterface, IpfixSettings, IpfixTemplate,
};
pub use forwarding::{
    Adjacencies, Adjacency, AdjacencyKind, AdjacencyReply, LabelPush, Neighbor, NeighborState,
    Neighbors, NextHop, PathReply, PushMode, Route, RouteCandidate, RouteGroup, RouteSource,
    RouteVerdict, Routes, Unresolved,
};
pub use hardware::{
    CounterSource, Hardware, HardwareCounter, HardwarePort, RxPlacement, RxQueuePlacement,
};
pub use interface::{
    Encapsulation, Interface, InterfaceDrop, InterfaceKind, Interfaces, Traffic, UpDown,
};
pub use linux::{
    Linux, LinuxAudit, LinuxBmp, LinuxBmpPeer, LinuxBmpSession, LinuxConvergence, LinuxCount,
    LinuxDelay, LinuxFeed, LinuxFpm, LinuxInterface, LinuxPunt, LinuxRefused,
};
pub use memif::{Memif, MemifDisconnects, MemifRole, Memifs};
pub use mpls::{LabelMeaning, LabelMode, LabelReply, LabelSource, MplsFib};
pub use page::{
    AdjacencyQuery, Destinations, InterfaceQuery, NeighborKey, NeighborQuery, NotAPlace, Page,
    RouteKey, RouteQuery,
};
pub use pseudowire::{Pseudowire, Pseudowires};
pub use reference::reference;
pub use route_change::{
    ApiPath, ApiRoute, ApiRouteKey, Discard, RouteChanges, RouteRefusal, RouteResync, RoutesChanged,
};
pub use router::{Clear, Cleared, Router};
pub use runtime::{
    DropCounter, Errors, IdleMode, NodeRuntime, Runtime, Severity, Totals, WorkerRuntime,
};
pub use server::{Server, ServerControl, ServerHandle};
pub use settings::{Limits, ServerSettings, TcpListen, Tls, Token};
pub use sflow::{
    Sflow, SflowCollector, SflowDirection, SflowDiscovery, SflowDrop, SflowEncoding,
    SflowInterface, SflowKernel, SflowReported, SflowSettings, SflowShare, SflowWorker,
};
pub use socket::ServeError;
pub use summary::{BufferPool, Buffers, Family, FibSummary, FibTable, RouteCount};
pub use system::{Component, Health, Problem, ProblemSeverity, System};
pub use time::{NotATime, Timestamp};
pub use trace::{Trace, TraceFilter, TraceRequest, TraceStep, TracedPacket};
pub use version::Version;
pub use vxlan::{VxlanTunnel, VxlanTunnels};
pub use why::{Why, WhyFrame, WhyOutcome, WhyProtocol, WhyRequest, WhyTerm};
