//! The table of endpoints.
//!
//! One row is one method on one path: its parameters, the types of body and reply, the errors it
//! may tell, the role it needs, and the function that answers it. Routing, access, the OpenAPI
//! document, the reference page and the tests come from this table; nothing is said twice.
//!
//! The functions run on a blocking thread: they read the parameters and the body, ask the
//! [`Router`], and write JSON. They know nothing of sockets.

mod body;
mod change;
mod look;
mod parameters;

use axum::body::Bytes;
use axum::http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::ErrorCode::{Conflict, Invalid, NoRoom, NotAvailable, NotFound, UnsupportedMediaType};
use crate::{
    Acls, Adjacencies, ApiError, Applied, ApplyRequest, Bonds, BridgeDomains, Buffers, Caller,
    Capture, CaptureRequest, CaptureStream, Captures, Cleared, ConfigChecked, ConfigDiff,
    ConfigDump, ConfigPlan, ConfigText, Confirmed, DiffRequest, ErrorCode, Errors, Features,
    FibSummary, Hardware, History, InterfacePatch, Interfaces, L2fib, Linux, Log, Memifs, MplsFib,
    Neighbors, Page, Pseudowires, RevisionText, Role, RollbackRequest, RouteChanges, Router,
    Routes, RoutesChanged, Runtime, RxPlacement, Sflow, SflowPatch, System, Totals, Trace,
    TraceRequest, Version, VxlanTunnels, Why,
};
use crate::{Flows, Ipfix};

pub(crate) use look::summed_over_workers;
pub(crate) use parameters::{EventParameters, event_parameters};
pub use parameters::{Parameter, ParameterKind};

/// One method on one path.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path; a part in braces is a parameter.
    pub path: &'static str,
    /// The parameters in the path.
    pub in_path: &'static [Parameter],
    /// The query's keys, each optional.
    pub query: &'static [Parameter],
    /// Who may ask.
    pub role: Role,
    /// What it is for, in one sentence.
    pub sentence: &'static str,
    /// The type of the request's body, if it has one.
    pub body: Option<TypeOf>,
    /// What the reply is.
    pub reply: Reply,
    /// Errors beyond those of all endpoints.
    pub errors: &'static [ErrorCode],
    /// Whether it carries, or changes, a configuration: larger bodies, more time.
    pub(crate) of_config: bool,
    /// Answers a request.
    pub(crate) answer: Answer,
}

/// Gives the JSON Schema of a type.
pub type TypeOf = fn(&mut SchemaGenerator) -> Schema;

/// What a reply is.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    /// JSON of this type.
    Json(TypeOf),
    /// The metrics, in the text form of OpenMetrics 1.0.
    OpenMetrics,
    /// Server-sent events (HTML 9.2).
    Events,
    /// A capture, as pcapng, piece by piece.
    Pcapng,
}

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// At once, with the reply's text.
    Text(fn(&dyn Router, &Request) -> Result<Vec<u8>, ApiError>),
    /// By a stream of events, which `http.rs` knows how to open.
    Stream,
    /// By a capture, which the router opens.
    Capture(fn(&dyn Router, &Request) -> Result<CaptureStream, ApiError>),
}

/// The parts of a request that an answer may depend on.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) endpoint: &'static Endpoint,
    pub(crate) uri: Uri,
    /// The values of the parameters in the path, in their order.
    pub(crate) in_path: Vec<String>,
    pub(crate) body: Bytes,
    pub(crate) caller: Caller,
}

type TextAnswer = fn(&dyn Router, &Request) -> Result<Vec<u8>, ApiError>;

/// Errors that any endpoint may tell.
pub(crate) const ERRORS_OF_ALL: &[ErrorCode] = &[
    ErrorCode::BadRequest,
    ErrorCode::Unauthorized,
    ErrorCode::Forbidden,
    ErrorCode::RequestTimeout,
    ErrorCode::TooLarge,
    ErrorCode::Internal,
    ErrorCode::Unavailable,
];

fn type_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The running configuration has the keys of the file, whose schema is another document.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

const fn json<T: JsonSchema>(
    method: &'static str,
    path: &'static str,
    role: Role,
    sentence: &'static str,
    answer: TextAnswer,
) -> Endpoint {
    of_type(method, path, role, sentence, type_of::<T>, answer)
}

const fn of_type(
    method: &'static str,
    path: &'static str,
    role: Role,
    sentence: &'static str,
    reply: TypeOf,
    answer: TextAnswer,
) -> Endpoint {
    let (reply, answer) = (Reply::Json(reply), Answer::Text(answer));
    Endpoint {
        method,
        path,
        in_path: &[],
        query: &[],
        role,
        sentence,
        body: None,
        reply,
        errors: &[],
        of_config: false,
        answer,
    }
}

/// Looks at something.
const fn get<T: JsonSchema>(
    path: &'static str,
    sentence: &'static str,
    answer: TextAnswer,
) -> Endpoint {
    json::<T>("GET", path, Role::ReadOnly, sentence, answer)
}

/// Changes something.
const fn change<T: JsonSchema>(
    method: &'static str,
    path: &'static str,
    sentence: &'static str,
    answer: TextAnswer,
) -> Endpoint {
    json::<T>(method, path, Role::Admin, sentence, answer)
}

impl Endpoint {
    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn in_path(self, in_path: &'static [Parameter]) -> Self {
        Self { in_path, ..self }
    }

    const fn body<T: JsonSchema>(self) -> Self {
        Self {
            body: Some(type_of::<T>),
            ..self
        }
    }

    const fn errors(self, errors: &'static [ErrorCode]) -> Self {
        Self { errors, ..self }
    }

    const fn of_config(self) -> Self {
        Self {
            of_config: true,
            ..self
        }
    }

    /// Whoever looks may ask, though the method is that of changes.
    const fn for_all(self) -> Self {
        Self {
            role: Role::ReadOnly,
            ..self
        }
    }

    const fn metrics(self) -> Self {
        Self {
            reply: Reply::OpenMetrics,
            ..self
        }
    }

    const fn events(self) -> Self {
        Self {
            reply: Reply::Events,
            answer: Answer::Stream,
            ..self
        }
    }

    const fn capture(
        self,
        answer: fn(&dyn Router, &Request) -> Result<CaptureStream, ApiError>,
    ) -> Self {
        Self {
            reply: Reply::Pcapng,
            answer: Answer::Capture(answer),
            ..self
        }
    }

    /// The name of the operation in the OpenAPI document: `get_interfaces`, `patch_interface`.
    #[must_use]
    pub fn operation(&self) -> String {
        let words = self
            .path
            .trim_start_matches("/v1")
            .split('/')
            .filter(|word| !word.is_empty());
        let mut name = self.method.to_ascii_lowercase();
        for word in words {
            name.push('_');
            name.extend(
                word.chars()
                    .filter(|c| !matches!(c, '{' | '}'))
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }),
            );
        }
        if self.path == "/metrics" {
            format!("{name}_at_root")
        } else {
            name
        }
    }
}

/// Errors of all changes of the configuration.
const OF_CHANGE: &[ErrorCode] = &[
    NotFound,
    Conflict,
    UnsupportedMediaType,
    Invalid,
    NotAvailable,
    NoRoom,
];
const OF_FILE: &[ErrorCode] = &[NotFound, UnsupportedMediaType, Invalid, NotAvailable];

/// Everything that the API answers.
pub const ENDPOINTS: &[Endpoint] = &[
    get::<Version>("/v1/version", "Who answers, and since when.", look::version),
    get::<System>(
        "/v1/system",
        "Whether the router does all that its configuration says, and what is wrong.",
        look::system,
    )
    .errors(&[NotAvailable]),
    get::<Log>("/v1/log", "The last lines of the log.", look::log)
        .query(parameters::LOG)
        .errors(&[NotAvailable]),
    get::<Page<Interfaces>>(
        "/v1/interfaces",
        "Interfaces with their counters.",
        look::interfaces,
    )
    .query(parameters::INTERFACES)
    .errors(&[NotFound]),
    change::<Applied>(
        "PATCH",
        "/v1/interfaces/{name}",
        "Edits one interface's settings.",
        change::interface_patch,
    )
    .in_path(parameters::NAME_IN_PATH)
    .body::<InterfacePatch>()
    .errors(OF_CHANGE)
    .of_config(),
    get::<Hardware>(
        "/v1/hardware",
        "Ports with the counters of driver, kernel and device.",
        look::hardware,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound]),
    get::<RxPlacement>(
        "/v1/rx-placement",
        "Which worker serves which receive queue.",
        look::rx_placement,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound]),
    get::<Bonds>(
        "/v1/bonds",
        "Bonds, their members, and where LACP stands.",
        look::bonds,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound, NotAvailable]),
    get::<Linux>(
        "/v1/linux",
        "The TAPs of interfaces in Linux, and what is read from the kernel.",
        look::linux,
    )
    .errors(&[NotAvailable]),
    get::<Features>(
        "/v1/features",
        "Features of interfaces in their order, and what policers counted.",
        look::features,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound, NotAvailable]),
    get::<Pseudowires>(
        "/v1/pseudowires",
        "Pseudowires, their labels and their ways.",
        look::pseudowires,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound, NotAvailable]),
    get::<VxlanTunnels>(
        "/v1/vxlan-tunnels",
        "VXLAN tunnels, and where they lead.",
        look::vxlan_tunnels,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound, NotAvailable]),
    get::<Memifs>(
        "/v1/memif",
        "Shared-memory connections and their peers.",
        look::memif,
    )
    .query(parameters::OF_INTERFACE)
    .errors(&[NotFound, NotAvailable]),
    get::<BridgeDomains>(
        "/v1/bridge-domains",
        "Bridge domains, their members, and what they counted.",
        look::bridge_domains,
    )
    .query(parameters::BRIDGE_DOMAINS)
    .errors(&[NotFound, NotAvailable]),
    get::<Page<L2fib>>("/v1/l2fib", "Stations of bridge domains.", look::l2fib)
        .query(parameters::L2FIB)
        .errors(&[NotFound, NotAvailable]),
    get::<Runtime>(
        "/v1/runtime",
        "Calls, packets and clocks of each node on each worker.",
        look::runtime,
    ),
    get::<Errors>(
        "/v1/errors",
        "Drops by node, reason and interface.",
        look::errors,
    )
    .query(parameters::ERRORS)
    .errors(&[NotFound]),
    get::<Page<Neighbors>>("/v1/neighbors", "Neighbours on the links.", look::neighbors)
        .query(parameters::NEIGHBORS)
        .errors(&[NotFound]),
    get::<Page<Adjacencies>>(
        "/v1/adjacencies",
        "Where paths end: neighbours and all else.",
        look::adjacencies,
    )
    .query(parameters::ADJACENCIES)
    .errors(&[NotFound, NotAvailable]),
    get::<Page<Routes>>("/v1/routes", "Routes with their paths.", look::routes)
        .query(parameters::ROUTES),
    change::<RoutesChanged>(
        "POST",
        "/v1/routes",
        "Sets and deletes routes of the API, until the router restarts.",
        change::routes_change,
    )
    .body::<RouteChanges>()
    .errors(&[UnsupportedMediaType, NotAvailable])
    .of_config(),
    get::<Page<MplsFib>>(
        "/v1/mpls-fib",
        "Incoming MPLS labels: all, or one, a page at a time.",
        look::mpls_fib,
    )
    .query(parameters::MPLS_FIB)
    .errors(&[NotAvailable]),
    get::<FibSummary>(
        "/v1/fib-summary",
        "The size of the forwarding tables.",
        look::fib_summary,
    )
    .errors(&[NotAvailable]),
    get::<Page<Acls>>(
        "/v1/acls",
        "Access lists: what interfaces are bound to, and what each term met.",
        look::acls,
    )
    .query(parameters::ACLS)
    .errors(&[NotFound, NotAvailable]),
    get::<Buffers>("/v1/buffers", "How full packet memory is.", look::buffers)
        .errors(&[NotAvailable]),
    get::<Sflow>(
        "/v1/sflow",
        "Settings and counters of the sFlow sampler and agent.",
        look::sflow,
    ),
    change::<Applied>(
        "PATCH",
        "/v1/sflow",
        "Edits sFlow's settings.",
        change::sflow_patch,
    )
    .body::<SflowPatch>()
    .errors(OF_CHANGE)
    .of_config(),
    get::<Ipfix>(
        "/v1/ipfix",
        "Settings and counters of the flow meter and its exporter.",
        look::ipfix,
    )
    .errors(&[NotAvailable]),
    get::<Flows>("/v1/flows", "Flows that are under way.", look::flows)
        .query(parameters::FLOWS)
        .errors(&[NotFound, NotAvailable]),
    get::<Why>(
        "/v1/why",
        "What the router would do with a packet, and why. Nothing is sent, counted or learnt.",
        look::why,
    )
    .query(parameters::WHY)
    .errors(&[NotFound, NotAvailable]),
    get::<Trace>(
        "/v1/trace",
        "Armed traces and recorded packets.",
        look::trace,
    ),
    change::<TraceRequest>("POST", "/v1/trace", "Arms a trace.", change::trace_add)
        .body::<TraceRequest>()
        .errors(&[NotFound, UnsupportedMediaType]),
    change::<change::TraceCleared>(
        "DELETE",
        "/v1/trace",
        "Disarms all traces and forgets what they recorded.",
        change::trace_clear,
    ),
    get::<Captures>("/v1/pcap", "Captures that are under way.", look::captures)
        .errors(&[NotAvailable]),
    change::<()>(
        "POST",
        "/v1/pcap",
        "Captures packets, until the client goes away or a limit is reached.",
        look::version,
    )
    .body::<CaptureRequest>()
    .errors(&[NotFound, Conflict, UnsupportedMediaType, NotAvailable])
    .capture(change::capture),
    change::<Capture>(
        "DELETE",
        "/v1/pcap/{number}",
        "Ends a capture; its reader receives what was captured until then.",
        change::capture_end,
    )
    .in_path(parameters::CAPTURE_IN_PATH)
    .errors(&[NotFound, NotAvailable]),
    get::<Totals>(
        "/v1/totals",
        "The balance of packets since start.",
        look::totals,
    ),
    of_type(
        "GET",
        "/v1/config",
        Role::ReadOnly,
        "The running configuration, with the keys of the file.",
        any_object,
        look::config,
    ),
    get::<ConfigDump>(
        "/v1/config/dump",
        "The running configuration as a file.",
        look::config_dump,
    )
    .errors(&[NotAvailable]),
    of_type(
        "GET",
        "/v1/config/schema",
        Role::ReadOnly,
        "The JSON Schema of configuration files.",
        any_object,
        look::config_schema,
    )
    .errors(&[NotAvailable]),
    change::<ConfigChecked>(
        "POST",
        "/v1/config/check",
        "Looks at a file, and tells everything that is wrong.",
        change::config_check,
    )
    .body::<ConfigText>()
    .errors(&[UnsupportedMediaType, NotAvailable])
    .of_config()
    .for_all(),
    change::<ConfigPlan>(
        "POST",
        "/v1/config/plan",
        "Tells what applying a file would do.",
        change::config_plan,
    )
    .body::<ConfigText>()
    .errors(OF_FILE)
    .of_config()
    .for_all(),
    change::<ConfigDiff>(
        "POST",
        "/v1/config/diff",
        "Compares a file, or a revision, with what runs.",
        change::config_diff,
    )
    .body::<DiffRequest>()
    .errors(OF_FILE)
    .of_config()
    .for_all(),
    change::<Applied>(
        "POST",
        "/v1/config/apply",
        "Applies a file as one transaction.",
        change::config_apply,
    )
    .body::<ApplyRequest>()
    .errors(OF_CHANGE)
    .of_config(),
    change::<Confirmed>(
        "POST",
        "/v1/config/confirm",
        "Keeps the change that waits to be confirmed.",
        change::config_confirm,
    )
    .errors(&[Conflict, NotAvailable, NoRoom])
    .of_config(),
    change::<Applied>(
        "POST",
        "/v1/config/rollback",
        "Goes back to an earlier configuration.",
        change::config_rollback,
    )
    .body::<RollbackRequest>()
    .errors(OF_CHANGE)
    .of_config(),
    get::<History>(
        "/v1/config/history",
        "Applied configurations, newest first.",
        look::config_history,
    )
    .query(parameters::HISTORY)
    .errors(&[NotAvailable]),
    get::<RevisionText>(
        "/v1/config/history/{revision}",
        "One applied configuration with its text.",
        look::config_revision,
    )
    .in_path(parameters::REVISION_IN_PATH)
    .errors(&[NotFound, NotAvailable]),
    change::<Cleared>(
        "POST",
        "/v1/clear/interfaces",
        "Sets interface counters to 0.",
        change::clear_interfaces,
    ),
    change::<Cleared>(
        "POST",
        "/v1/clear/runtime",
        "Sets node counters to 0.",
        change::clear_runtime,
    ),
    change::<Cleared>(
        "POST",
        "/v1/clear/errors",
        "Sets drop counters to 0.",
        change::clear_errors,
    ),
    get::<()>(
        "/v1/events",
        "Counters, log lines, changes and link events as they happen.",
        look::version,
    )
    .query(parameters::EVENTS)
    .errors(&[NotFound])
    .events(),
    get::<()>("/v1/metrics", "All counters for Prometheus.", look::metrics).metrics(),
    get::<()>(
        "/metrics",
        "All counters for Prometheus, where it looks by itself.",
        look::metrics,
    )
    .metrics(),
    of_type(
        "GET",
        "/v1/openapi.json",
        Role::ReadOnly,
        "This API as an OpenAPI 3.1 document.",
        any_object,
        look::openapi,
    ),
];

/// The methods that a path which fits a row's path knows; empty when there is no such path.
pub(crate) fn methods_of(path: &str) -> Vec<&'static str> {
    ENDPOINTS
        .iter()
        .filter(|endpoint| fits(endpoint.path, path))
        .map(|endpoint| endpoint.method)
        .collect()
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut given = path.split('/');
    let all = pattern.split('/').all(|part| {
        given
            .next()
            .is_some_and(|word| part == word || (part.starts_with('{') && !word.is_empty()))
    });
    all && given.next().is_none()
}

/// All paths, each once.
pub(crate) fn paths() -> Vec<&'static str> {
    let mut paths = Vec::new();
    for endpoint in ENDPOINTS {
        if !paths.contains(&endpoint.path) {
            paths.push(endpoint.path);
        }
    }
    paths
}
