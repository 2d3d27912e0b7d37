//! The table of endpoints, and how each of them is answered.
//!
//! One row is one method on one path, with the function that answers it. The functions run on a
//! blocking thread: they read the query, ask the [`Router`], narrow its reply down to what was
//! asked for, and write JSON. They know nothing of sockets or of HTTP beyond the query and body.

use std::collections::BTreeMap;
use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::Uri;
use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{ApiError, Clear, Cleared, DropCounter, ErrorCode, Errors, Route, Router, TraceRequest};

/// One method on one path.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// The query's keys, each optional.
    pub query: &'static [&'static str],
    /// What it is for, in one sentence.
    pub sentence: &'static str,
    /// Answers a request.
    pub(crate) answer: Answer,
}

pub(crate) type Answer = fn(&dyn Router, &Request) -> Result<Vec<u8>, ApiError>;

/// The parts of a request that an answer may depend on.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) uri: Uri,
    pub(crate) body: Bytes,
}

const fn row(method: &'static str, path: &'static str, query: &'static [&'static str], sentence: &'static str, answer: Answer) -> Endpoint {
    Endpoint { method, path, query, sentence, answer }
}

/// Everything that the API answers.
pub const ENDPOINTS: &[Endpoint] = &[
    row("GET", "/v1/version", &[], "Who answers, and since when.", version),
    row("GET", "/v1/interfaces", &["name"], "Interfaces with their counters.", interfaces),
    row("GET", "/v1/hardware", &["interface"], "Ports with the counters of driver, kernel and device.", hardware),
    row("GET", "/v1/rx-placement", &["interface"], "Which worker serves which receive queue.", rx_placement),
    row("GET", "/v1/runtime", &[], "Calls, packets and clocks of each node on each worker.", runtime),
    row("GET", "/v1/errors", &["interface", "by_worker"], "Drops by node, reason and interface.", errors),
    row("GET", "/v1/neighbors", &["interface"], "Neighbours on the links.", neighbors),
    row("GET", "/v1/routes", &["prefix", "table"], "Routes with their paths; an address as prefix means the longest match.", routes),
    row("GET", "/v1/sflow", &[], "Settings and counters of the sFlow sampler and agent.", sflow),
    row("GET", "/v1/trace", &[], "Armed traces and recorded packets.", trace),
    row("POST", "/v1/trace", &[], "Arms a trace: {\"node\", \"interface\", \"count\"}.", trace_add),
    row("DELETE", "/v1/trace", &[], "Disarms all traces and forgets what they recorded.", trace_clear),
    row("GET", "/v1/totals", &[], "The balance of packets since start.", totals),
    row("GET", "/v1/config", &[], "The running configuration.", config),
    row("POST", "/v1/clear/interfaces", &[], "Sets interface counters to 0.", clear_interfaces),
    row("POST", "/v1/clear/runtime", &[], "Sets node counters to 0.", clear_runtime),
    row("POST", "/v1/clear/errors", &[], "Sets drop counters to 0.", clear_errors),
];

/// The methods that `path` knows; empty when there is no such path.
pub(crate) fn methods_of(path: &str) -> Vec<&'static str> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.path == path).map(|endpoint| endpoint.method).collect()
}

/// All paths, each once.
pub(crate) fn paths() -> Vec<&'static str> {
    let mut paths: Vec<_> = ENDPOINTS.iter().map(|endpoint| endpoint.path).collect();
    paths.dedup();
    paths
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoQuery {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameQuery {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceQuery {
    interface: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorsQuery {
    interface: Option<String>,
    #[serde(default)]
    by_worker: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutesQuery {
    prefix: Option<String>,
    table: Option<u32>,
}

fn query<T: DeserializeOwned>(request: &Request) -> Result<T, ApiError> {
    let help = || match ENDPOINTS.iter().find(|endpoint| endpoint.path == request.uri.path()).map(|endpoint| endpoint.query) {
        None | Some([]) => "this path takes no query".to_owned(),
        Some(keys) => format!("this path's query may have: {}", keys.join(", ")),
    };
    let refused = |error: axum::extract::rejection::QueryRejection| ApiError::new(ErrorCode::BadRequest, error.body_text(), help());
    Query::<T>::try_from_uri(&request.uri).map(|Query(value)| value).map_err(refused)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut text = serde_json::to_vec(value)
        .map_err(|error| ApiError::new(ErrorCode::Internal, format!("the reply cannot be written as JSON: {error}"), ""))?;
    text.push(b'\n');
    Ok(text)
}

/// Refuses names that no interface has, so that a typing error is not answered by an empty list.
fn must_exist(router: &dyn Router, name: Option<&str>) -> Result<(), ApiError> {
    let Some(name) = name else { return Ok(()) };
    let all = router.interfaces()?.interfaces;
    if all.iter().any(|interface| interface.name == name) {
        return Ok(());
    }
    Err(ApiError::unknown("interface", name, all.iter().map(|interface| interface.name.as_str())))
}

fn version(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.version()?)
}

fn interfaces(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let NameQuery { name } = query(request)?;
    let mut reply = router.interfaces()?;
    if let Some(name) = name {
        let found = reply.interfaces.iter().position(|interface| interface.name == name);
        let known = || reply.interfaces.iter().map(|interface| interface.name.as_str());
        let place = found.ok_or_else(|| ApiError::unknown("interface", &name, known()))?;
        reply.interfaces = vec![reply.interfaces.swap_remove(place)];
    }
    json(&reply)
}

fn hardware(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let InterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.hardware()?;
    reply.ports.retain(|port| interface.as_ref().is_none_or(|name| *name == port.interface));
    json(&reply)
}

fn rx_placement(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let InterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.rx_placement()?;
    reply.queues.retain(|queue| interface.as_ref().is_none_or(|name| *name == queue.interface));
    json(&reply)
}

fn runtime(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.runtime()?)
}

fn errors(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let ErrorsQuery { interface, by_worker } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.errors()?;
    reply.errors.retain(|error| interface.is_none() || error.interface == interface);
    if !by_worker {
        reply = summed_over_workers(reply);
    }
    json(&reply)
}

fn summed_over_workers(errors: Errors) -> Errors {
    let mut sums: BTreeMap<_, DropCounter> = BTreeMap::new();
    for error in errors.errors {
        let place = (error.node.clone(), error.reason.clone(), error.interface.clone());
        match sums.get_mut(&place) {
            Some(sum) => sum.count = sum.count.saturating_add(error.count),
            None => {
                sums.insert(place, DropCounter { worker: None, ..error });
            }
        }
    }
    Errors { errors: sums.into_values().collect() }
}

fn neighbors(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let InterfaceQuery { interface } = query(request)?;
    must_exist(router, interface.as_deref())?;
    let mut reply = router.neighbors()?;
    reply.neighbors.retain(|neighbor| interface.as_ref().is_none_or(|name| *name == neighbor.interface));
    json(&reply)
}

fn routes(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    let RoutesQuery { prefix, table } = query(request)?;
    let wanted = prefix.map(|text| RoutesWanted::read(&text)).transpose()?;
    let mut reply = router.routes()?;
    reply.routes.retain(|route| table.is_none_or(|table| table == route.table));
    match wanted {
        None => {}
        Some(RoutesWanted::Exactly(prefix)) => reply.routes.retain(|route| route.prefix == prefix),
        Some(RoutesWanted::LongestMatch(address)) => keep_longest_match(&mut reply.routes, address),
    }
    json(&reply)
}

enum RoutesWanted {
    Exactly(IpNet),
    LongestMatch(IpAddr),
}

impl RoutesWanted {
    fn read(text: &str) -> Result<Self, ApiError> {
        let exactly = || text.parse::<IpNet>().map(|prefix| Self::Exactly(prefix.trunc()));
        text.parse().map(Self::LongestMatch).or_else(|_| exactly()).map_err(|_| {
            let message = format!("\"{text}\" is neither a prefix nor an address");
            ApiError::new(ErrorCode::BadRequest, message, "a prefix is written as 192.0.2.0/24, an address as 192.0.2.7")
        })
    }
}

/// Keeps of each table the route that packets to `address` take.
fn keep_longest_match(routes: &mut Vec<Route>, address: IpAddr) {
    routes.retain(|route| route.prefix.contains(&address));
    let mut longest: BTreeMap<u32, u8> = BTreeMap::new();
    for route in routes.iter() {
        let length = longest.entry(route.table).or_default();
        *length = (*length).max(route.prefix.prefix_len());
    }
    routes.retain(|route| longest.get(&route.table) == Some(&route.prefix.prefix_len()));
}

fn sflow(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.sflow()?)
}

fn trace(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.trace()?)
}

fn trace_add(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    let wanted: TraceRequest = serde_json::from_slice(&request.body).map_err(|error| {
        let help = r#"a trace request looks like {"node": "ip4-input", "interface": "wan", "count": 10}; all keys are optional"#;
        ApiError::new(ErrorCode::BadRequest, format!("the body is not a trace request: {error}"), help)
    })?;
    if wanted.count == 0 || wanted.count > TraceRequest::most_packets() {
        let message = format!("{} packets cannot be traced", wanted.count);
        return Err(ApiError::new(ErrorCode::BadRequest, message, format!("count may be 1 to {}", TraceRequest::most_packets())));
    }
    must_exist(router, wanted.interface.as_deref())?;
    router.trace_add(&wanted)?;
    json(&wanted)
}

fn trace_clear(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    router.trace_clear()?;
    json(&serde_json::json!({ "cleared": "trace" }))
}

fn totals(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.totals()?)
}

fn config(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    json(&router.config()?)
}

fn clear(router: &dyn Router, request: &Request, what: Clear) -> Result<Vec<u8>, ApiError> {
    query::<NoQuery>(request)?;
    router.clear(what)?;
    json(&Cleared { cleared: what })
}

fn clear_interfaces(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    clear(router, request, Clear::Interfaces)
}

fn clear_runtime(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    clear(router, request, Clear::Runtime)
}

fn clear_errors(router: &dyn Router, request: &Request) -> Result<Vec<u8>, ApiError> {
    clear(router, request, Clear::Errors)
}
