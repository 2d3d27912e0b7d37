//! A blocking client of the API.
//!
//! Every call opens a connection of its own, asks once and closes: a client holds nothing in the
//! router between two calls. Long lists are asked for page by page and reported whole. Errors are
//! sentences for the person at the terminal.

mod capture;
mod connect;
mod events;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime as Tokio;
use tokio::time::timeout;

use crate::client::connect::{Target, certificate_problem};
use crate::{
    Acls, Adjacencies, ApiError, Applied, ApplyRequest, Bonds, BridgeDomains, Buffers, Capture,
    CaptureRequest, Captures, Clear, Cleared, ConfigChecked, ConfigDiff, ConfigDump, ConfigPlan,
    ConfigText, Confirmed, DiffRequest, ErrorBody, Errors, Family, Features, FibSummary, Hardware,
    History, InterfacePatch, Interfaces, L2fib, Linux, Log, Memifs, MplsFib, Neighbors, Page,
    Pseudowires, RevisionText, RollbackRequest, RouteChanges, Routes, RoutesChanged, Runtime,
    RxPlacement, Sflow, SflowPatch, System, Totals, Trace, TraceRequest, Version, VxlanTunnels,
    Why, WhyProtocol, WhyRequest,
};
pub use capture::CapturePieces;
pub use events::{EventRequest, Events};

/// Longer than the server takes at most to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same for what looks at or changes a configuration.
const LONG_PATIENCE: Duration = Duration::from_secs(150);

/// The largest reply that is read, in bytes: more than any page has.
const LARGEST_REPLY: usize = 1 << 28;

/// Entries that a page of a long list is asked to have.
const PAGE: u32 = 10_000;

/// Why a router was not asked, or did not answer. `router` is its socket, or its address.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error(
        "no weir answers on {0} (is it running? start it with `weir run -c FILE`, or say --socket)"
    )]
    NotRunning(String),
    /// The socket's permissions.
    #[error(
        "permission denied on the socket {0}: only its owner and its group may use it (try sudo, or join the group)"
    )]
    NotAllowed(String),
    /// It took too long.
    #[error("the weir on {0} does not answer in time")]
    Late(String),
    /// The connection failed otherwise.
    #[error("cannot talk to the weir on {router}: {reason}")]
    Broken {
        /// The router.
        router: String,
        /// What went wrong.
        reason: String,
    },
    /// It answered with an error.
    #[error("{}", sentence(.0))]
    Refused(Box<ApiError>),
    /// It answered with something else than this client understands.
    #[error(
        "the weir on {router} answers what this version does not understand: {reason} (is it of the same version?)"
    )]
    NotUnderstood {
        /// The router.
        router: String,
        /// What was not understood.
        reason: String,
    },
}

impl ClientError {
    /// What the router refused with, if it did.
    #[must_use]
    pub fn refusal(&self) -> Option<&ApiError> {
        if let Self::Refused(error) = self {
            Some(error)
        } else {
            None
        }
    }
}

fn sentence(error: &ApiError) -> String {
    if error.help.is_empty() {
        error.message.clone()
    } else {
        format!("{} ({})", error.message, error.help)
    }
}

/// Asks one router.
#[derive(Debug, Clone)]
pub struct Client {
    target: Target,
}

impl Client {
    /// A client of the router at `socket`. Nothing happens before the first call.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            target: Target::Unix(socket.into()),
        }
    }

    /// A client of the router at `address` (`host:port`), whose certificate the CA in the file
    /// `ca` vouches for.
    ///
    /// # Errors
    /// When the file has no certificate, or the host is no name.
    pub fn tls(address: &str, ca: &Path, token: Option<&str>) -> Result<Self, ClientError> {
        Target::tls(address, ca, token).map(|target| Self { target })
    }

    /// A client of the router at `address` (`host:port`) without TLS, which routers have on
    /// loopback addresses only.
    #[must_use]
    pub fn tcp(address: impl Into<String>, token: Option<&str>) -> Self {
        Self {
            target: Target::Tcp {
                address: address.into(),
                token: token.map(str::to_owned),
                tls: None,
            },
        }
    }

    /// Who answers, and since when.
    ///
    /// # Errors
    /// As all calls: see [`ClientError`].
    pub fn version(&self) -> Result<Version, ClientError> {
        self.read("/v1/version", &[])
    }

    /// Whether the router does all that its configuration says, and what is wrong.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn system(&self) -> Result<System, ClientError> {
        self.read("/v1/system", &[])
    }

    /// Interfaces: all, or the one of that name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn interfaces(&self, name: Option<&str>) -> Result<Interfaces, ClientError> {
        if name.is_some() {
            return self.read("/v1/interfaces", &[("name", name)]);
        }
        let mut all = Interfaces::default();
        self.pages::<Interfaces>("/v1/interfaces", &[], |mut part| {
            all.interfaces.append(&mut part.interfaces)
        })?;
        Ok(all)
    }

    /// Ports: all, or the one of that interface.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn hardware(&self, interface: Option<&str>) -> Result<Hardware, ClientError> {
        self.read("/v1/hardware", &[("interface", interface)])
    }

    /// Which worker serves which receive queue.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn rx_placement(&self, interface: Option<&str>) -> Result<RxPlacement, ClientError> {
        self.read("/v1/rx-placement", &[("interface", interface)])
    }

    /// Features of interfaces in their order; those of all interfaces when `interface` is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn features(&self, interface: Option<&str>) -> Result<Features, ClientError> {
        self.read("/v1/features", &[("interface", interface)])
    }

    /// Pseudowires, their labels and ways; all of them when `interface` is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn pseudowires(&self, interface: Option<&str>) -> Result<Pseudowires, ClientError> {
        self.read("/v1/pseudowires", &[("interface", interface)])
    }

    /// The TAPs of interfaces in Linux, and what is read from the kernel.
    ///
    /// # Errors
    /// As all calls.
    pub fn linux(&self) -> Result<Linux, ClientError> {
        self.read("/v1/linux", &[])
    }

    /// Bonds, their members, and where LACP stands; all of them when `interface` is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn bonds(&self, interface: Option<&str>) -> Result<Bonds, ClientError> {
        self.read("/v1/bonds", &[("interface", interface)])
    }

    /// VXLAN tunnels, and where they lead; all of them when `interface` is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn vxlan_tunnels(&self, interface: Option<&str>) -> Result<VxlanTunnels, ClientError> {
        self.read("/v1/vxlan-tunnels", &[("interface", interface)])
    }

    /// Shared-memory connections and their peers; all of them when `interface` is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn memif(&self, interface: Option<&str>) -> Result<Memifs, ClientError> {
        self.read("/v1/memif", &[("interface", interface)])
    }

    /// Bridge domains: all, or one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn bridge_domains(&self, bridge: Option<&str>) -> Result<BridgeDomains, ClientError> {
        self.read("/v1/bridge-domains", &[("bridge", bridge)])
    }

    /// Stations of bridge domains: all, or those of one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn l2fib(&self, bridge: Option<&str>) -> Result<L2fib, ClientError> {
        let mut all = L2fib::default();
        self.pages::<L2fib>("/v1/l2fib", &[("bridge", bridge)], |mut part| {
            all.stations.append(&mut part.stations)
        })?;
        Ok(all)
    }

    /// What workers did, node by node.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn runtime(&self) -> Result<Runtime, ClientError> {
        self.read("/v1/runtime", &[])
    }

    /// Drops, summed over the workers or worker by worker.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn errors(&self, interface: Option<&str>, by_worker: bool) -> Result<Errors, ClientError> {
        self.read(
            "/v1/errors",
            &[
                ("interface", interface),
                ("by_worker", by_worker.then_some("true")),
            ],
        )
    }

    /// Neighbours: all, or those of one interface.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn neighbors(&self, interface: Option<&str>) -> Result<Neighbors, ClientError> {
        let mut all = Neighbors::default();
        self.pages::<Neighbors>("/v1/neighbors", &[("interface", interface)], |mut part| {
            all.neighbors.append(&mut part.neighbors);
            // Each page has the sums of all.
            (all.refused, all.evicted) = (part.refused, part.evicted);
        })?;
        Ok(all)
    }

    /// What access lists met: all of them or one, on all interfaces or one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn acls(&self, acl: Option<&str>, interface: Option<&str>) -> Result<Acls, ClientError> {
        let mut all = Acls::default();
        self.pages::<Acls>(
            "/v1/acls",
            &[("acl", acl), ("interface", interface)],
            |mut part| {
                all.bindings.append(&mut part.bindings);
                all.terms.append(&mut part.terms);
            },
        )?;
        Ok(all)
    }

    /// Entries of incoming labels: all, or that of one label.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn mpls_fib(&self, label: Option<u32>) -> Result<MplsFib, ClientError> {
        let (mut all, label) = (MplsFib::default(), label.map(|label| label.to_string()));
        self.pages::<MplsFib>(
            "/v1/mpls-fib",
            &[("label", label.as_deref())],
            |mut part| all.labels.append(&mut part.labels),
        )?;
        Ok(all)
    }

    /// Where paths end: all, or those of an interface.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn adjacencies(&self, interface: Option<&str>) -> Result<Adjacencies, ClientError> {
        let mut all = Adjacencies::default();
        let of = [("interface", interface)];
        self.pages::<Adjacencies>("/v1/adjacencies", &of, |mut part| {
            all.adjacencies.append(&mut part.adjacencies)
        })?;
        Ok(all)
    }

    /// Routes: all, the one of a prefix, or the longest match of an address; of all tables, or of one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn routes(&self, prefix: Option<&str>, table: Option<u32>) -> Result<Routes, ClientError> {
        let mut all = Routes::default();
        self.each_routes(prefix, table, None, |mut part| {
            all.routes.append(&mut part.routes)
        })?;
        Ok(all)
    }

    /// Like `routes`, but page by page, so that a full table need not fit into memory at once.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn each_routes(
        &self,
        prefix: Option<&str>,
        table: Option<u32>,
        family: Option<Family>,
        take: impl FnMut(Routes),
    ) -> Result<(), ClientError> {
        let (table, family) = (
            table.map(|table| table.to_string()),
            family.map(Family::word),
        );
        self.pages(
            "/v1/routes",
            &[
                ("prefix", prefix),
                ("table", table.as_deref()),
                ("family", family),
            ],
            take,
        )
    }

    /// The first routes, at most so many; and whether there are more.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn first_routes(
        &self,
        table: Option<u32>,
        family: Option<Family>,
        most: u32,
    ) -> Result<(Routes, bool), ClientError> {
        let (table, limit) = (table.map(|table| table.to_string()), most.to_string());
        let query = [
            ("table", table.as_deref()),
            ("family", family.map(Family::word)),
            ("limit", Some(limit.as_str())),
        ];
        let Page { part, next } = self.read::<Page<Routes>>("/v1/routes", &query)?;
        Ok((part, next.is_some()))
    }

    /// The size of the forwarding tables.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn fib_summary(&self) -> Result<FibSummary, ClientError> {
        self.read("/v1/fib-summary", &[])
    }

    /// How full packet memory is.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn buffers(&self) -> Result<Buffers, ClientError> {
        self.read("/v1/buffers", &[])
    }

    /// Settings and counters of the sFlow sampler and agent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn sflow(&self) -> Result<Sflow, ClientError> {
        self.read("/v1/sflow", &[])
    }

    /// The last lines of the log: at most so many, of this level and above.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn log(&self, most: u32, level: Option<&str>) -> Result<Log, ClientError> {
        let most = most.to_string();
        self.read("/v1/log", &[("limit", Some(&most)), ("level", level)])
    }

    /// What the router would do with a packet.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn why(&self, request: &WhyRequest) -> Result<Why, ClientError> {
        let protocol = match request.protocol {
            WhyProtocol::Udp => "udp",
            WhyProtocol::Tcp => "tcp",
            WhyProtocol::Icmp => "icmp",
        };
        let numbers = [
            ("source", request.source.to_string()),
            ("destination", request.destination.to_string()),
            ("source_port", request.source_port.to_string()),
            ("destination_port", request.destination_port.to_string()),
            ("length", request.length.to_string()),
            ("ttl", request.ttl.to_string()),
            ("dont_fragment", request.dont_fragment.to_string()),
        ];
        let mut query = vec![
            ("protocol", Some(protocol)),
            ("interface", request.interface.as_deref()),
        ];
        query.extend(
            numbers
                .iter()
                .map(|(key, value)| (*key, Some(value.as_str()))),
        );
        self.read("/v1/why", &query)
    }

    /// What traces recorded.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn trace(&self) -> Result<Trace, ClientError> {
        self.read("/v1/trace", &[])
    }

    /// Arms a trace.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn trace_add(&self, request: &TraceRequest) -> Result<TraceRequest, ClientError> {
        self.send(Method::POST, "/v1/trace", request)
    }

    /// Disarms all traces and forgets what they recorded.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn trace_clear(&self) -> Result<(), ClientError> {
        self.ask::<serde_json::Value>(Method::DELETE, "/v1/trace", None)
            .map(drop)
    }

    /// Begins a capture; its pieces are pcapng. It ends when what is returned is dropped, too.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn capture(&self, request: &CaptureRequest) -> Result<CapturePieces, ClientError> {
        let body = serde_json::to_string(request).map_err(|error| self.not_understood(&error))?;
        let (runtime, head, body) = self.open(Method::POST, "/v1/pcap", Some(body))?;
        let number = head
            .get(crate::http::CAPTURE_NUMBER)
            .and_then(|text| text.to_str().ok())
            .and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.not_understood(&"the capture has no number"))?;
        Ok(CapturePieces {
            number,
            router: self.target.to_string(),
            runtime,
            body: Some(body),
        })
    }

    /// Captures that are under way.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn captures(&self) -> Result<Captures, ClientError> {
        self.read("/v1/pcap", &[])
    }

    /// Ends a capture.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn capture_end(&self, number: u64) -> Result<Capture, ClientError> {
        self.ask(Method::DELETE, &format!("/v1/pcap/{number}"), None)
    }

    /// The balance of packets since start.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn totals(&self) -> Result<Totals, ClientError> {
        self.read("/v1/totals", &[])
    }

    /// The running configuration, with the keys of the file.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config(&self) -> Result<serde_json::Value, ClientError> {
        self.read("/v1/config", &[])
    }

    /// Sets counters to 0.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn clear(&self, what: Clear) -> Result<Cleared, ClientError> {
        self.ask(Method::POST, &format!("/v1/clear/{}", what.word()), None)
    }

    /// The running configuration as a file.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_dump(&self) -> Result<ConfigDump, ClientError> {
        self.read("/v1/config/dump", &[])
    }

    /// The JSON Schema of configuration files.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_schema(&self) -> Result<serde_json::Value, ClientError> {
        self.read("/v1/config/schema", &[])
    }

    /// Everything that is wrong with a file.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_check(&self, file: &ConfigText) -> Result<ConfigChecked, ClientError> {
        self.send(Method::POST, "/v1/config/check", file)
    }

    /// What applying a file would do.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_plan(&self, file: &ConfigText) -> Result<ConfigPlan, ClientError> {
        self.send(Method::POST, "/v1/config/plan", file)
    }

    /// Compares a file, or a revision, with what runs.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_diff(&self, request: &DiffRequest) -> Result<ConfigDiff, ClientError> {
        self.send(Method::POST, "/v1/config/diff", request)
    }

    /// Applies a file as one transaction.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_apply(&self, request: &ApplyRequest) -> Result<Applied, ClientError> {
        self.send(Method::POST, "/v1/config/apply", request)
    }

    /// Keeps the change that waits to be confirmed.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_confirm(&self) -> Result<Confirmed, ClientError> {
        self.ask(Method::POST, "/v1/config/confirm", None)
    }

    /// Goes back to an earlier configuration.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_rollback(&self, request: &RollbackRequest) -> Result<Applied, ClientError> {
        self.send(Method::POST, "/v1/config/rollback", request)
    }

    /// Applied configurations, newest first: at most `limit` (50 when nobody says), older than `before`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_history(
        &self,
        limit: Option<u32>,
        before: Option<u64>,
    ) -> Result<History, ClientError> {
        let (limit, before) = (
            limit.map(|it| it.to_string()),
            before.map(|it| it.to_string()),
        );
        self.read(
            "/v1/config/history",
            &[("limit", limit.as_deref()), ("before", before.as_deref())],
        )
    }

    /// One applied configuration with its text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn config_revision(&self, revision: u64) -> Result<RevisionText, ClientError> {
        self.read(&format!("/v1/config/history/{revision}"), &[])
    }

    /// Settings and counters of the flow meter and its exporter.
    ///
    /// # Errors
    /// As all calls: see [`ClientError`].
    pub fn ipfix(&self) -> Result<crate::Ipfix, ClientError> {
        self.read("/v1/ipfix", &[])
    }

    /// Flows that are under way; the query is that of the endpoint.
    ///
    /// # Errors
    /// As all calls: see [`ClientError`].
    pub fn flows(&self, query: &[(&str, Option<&str>)]) -> Result<crate::Flows, ClientError> {
        self.read("/v1/flows", query)
    }

    /// Sets and deletes routes of the API: one request, of at most [`RouteChanges::MOST`] routes.
    ///
    /// # Errors
    /// See [`ClientError`]. Routes that are refused are in the answer.
    pub fn routes_change(&self, changes: &RouteChanges) -> Result<RoutesChanged, ClientError> {
        self.send(Method::POST, "/v1/routes", changes)
    }

    /// Edits sFlow's settings.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn sflow_patch(&self, patch: &SflowPatch) -> Result<Applied, ClientError> {
        self.send(Method::PATCH, "/v1/sflow", patch)
    }

    /// Edits one interface's settings.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn interface_patch(
        &self,
        name: &str,
        patch: &InterfacePatch,
    ) -> Result<Applied, ClientError> {
        self.send(
            Method::PATCH,
            &format!("/v1/interfaces/{}", percent_encoded(name)),
            patch,
        )
    }

    /// All counters as OpenMetrics text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn metrics(&self) -> Result<String, ClientError> {
        let text = self.text(Method::GET, "/v1/metrics", None)?;
        String::from_utf8(text).map_err(|error| self.not_understood(&error))
    }

    /// This API as an OpenAPI 3.1 document.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn openapi(&self) -> Result<serde_json::Value, ClientError> {
        self.read("/v1/openapi.json", &[])
    }

    /// Events as they happen, from now on.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn events(&self, request: &EventRequest) -> Result<Events, ClientError> {
        let (topics, interval) = (
            request.topics(),
            request.interval_ms.map(|it| it.to_string()),
        );
        let query = [
            ("topics", topics.as_deref()),
            ("interval_ms", interval.as_deref()),
            ("interface", request.interface.as_deref()),
        ];
        self.subscribe(&target("/v1/events", &query))
    }

    fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
    ) -> Result<T, ClientError> {
        self.ask(Method::GET, &target(path, query), None)
    }

    /// Reads a long list to its end.
    fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
        mut take: impl FnMut(T),
    ) -> Result<(), ClientError> {
        let limit = PAGE.to_string();
        let mut after: Option<String> = None;
        loop {
            let mut query = query.to_vec();
            query.extend([("limit", Some(limit.as_str())), ("after", after.as_deref())]);
            let Page { part, next } = self.read::<Page<T>>(path, &query)?;
            take(part);
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }

    fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_string(body).map_err(|error| self.not_understood(&error))?;
        self.ask(method, path, Some(body))
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: Option<String>,
    ) -> Result<T, ClientError> {
        let text = self.text(method, target, body)?;
        serde_json::from_slice(&text).map_err(|error| self.not_understood(&error))
    }

    fn text(
        &self,
        method: Method,
        target: &str,
        body: Option<String>,
    ) -> Result<Vec<u8>, ClientError> {
        let is_long = method == Method::PATCH || target.starts_with("/v1/config/");
        let patience = if is_long { LONG_PATIENCE } else { PATIENCE };
        let runtime = self.tokio()?;
        let exchange = async {
            let response = self.exchange(method, target, body).await?;
            let status = response.status();
            self.read_whole(response.into_body())
                .await
                .map(|text| (status, text))
        };
        let asked = runtime.block_on(async { timeout(patience, exchange).await });
        let (status, text) = asked.map_err(|_| self.late())??;
        if status.is_success() {
            Ok(text)
        } else {
            Err(self.refused(status, &text))
        }
    }

    fn subscribe(&self, target: &str) -> Result<Events, ClientError> {
        let (runtime, _, body) = self.open(Method::GET, target, None)?;
        Ok(Events {
            router: self.target.to_string(),
            runtime,
            body: Some(body),
            rest: Vec::new(),
            searched: 0,
        })
    }

    /// Opens a stream: what reads it, its head and its body.
    fn open(
        &self,
        method: Method,
        target: &str,
        body: Option<String>,
    ) -> Result<(Tokio, header::HeaderMap, Incoming), ClientError> {
        let runtime = self.tokio()?;
        let opened = async {
            let response = self.exchange(method, target, body).await?;
            if response.status().is_success() {
                let (head, body) = response.into_parts();
                return Ok((head.headers, body));
            }
            let status = response.status();
            Err(self.refused(status, &self.read_whole(response.into_body()).await?))
        };
        let (head, body) = runtime
            .block_on(async { timeout(PATIENCE, opened).await })
            .map_err(|_| self.late())??;
        Ok((runtime, head, body))
    }

    fn tokio(&self) -> Result<Tokio, ClientError> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| self.broken(&error))
    }

    async fn exchange(
        &self,
        method: Method,
        target: &str,
        body: Option<String>,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = self
            .target
            .connect()
            .await
            .map_err(|error| self.not_connected(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.broken(&error))?;
        // It ends with the connection, or with the runtime.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, "weir")
            .header(header::CONNECTION, "close")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = self.target.token() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .body(body.map_or_else(Body::empty, Body::from))
            .map_err(|error| self.broken(&error))?;
        sender
            .send_request(request)
            .await
            .map_err(|error| self.broken(&error))
    }

    async fn read_whole(&self, body: Incoming) -> Result<Vec<u8>, ClientError> {
        let collected = Limited::new(body, LARGEST_REPLY)
            .collect()
            .await
            .map_err(|error| {
                let reason = if error.is::<LengthLimitError>() {
                    "the reply is too large".to_owned()
                } else {
                    error.to_string()
                };
                self.broken(&reason)
            })?;
        Ok(collected.to_bytes().to_vec())
    }

    fn refused(&self, status: StatusCode, text: &[u8]) -> ClientError {
        match serde_json::from_slice::<ErrorBody>(text) {
            Ok(body) => ClientError::Refused(Box::new(body.error)),
            Err(_) => self.not_understood(&format!("status {status}")),
        }
    }

    fn late(&self) -> ClientError {
        ClientError::Late(self.target.to_string())
    }

    fn not_connected(&self, error: &io::Error) -> ClientError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => {
                ClientError::NotRunning(self.target.to_string())
            }
            ErrorKind::PermissionDenied => ClientError::NotAllowed(self.target.to_string()),
            _ => match certificate_problem(error) {
                Some(reason) => self.broken(&reason),
                None => self.broken(error),
            },
        }
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Broken {
            router: self.target.to_string(),
            reason: error.to_string(),
        }
    }

    fn not_understood(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::NotUnderstood {
            router: self.target.to_string(),
            reason: error.to_string(),
        }
    }
}

/// Path and query as they stand in the request.
fn target(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let given = query
        .iter()
        .filter_map(|(key, value)| value.map(|value| format!("{key}={}", percent_encoded(value))));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{query}")
    }
}

/// RFC 3986 2.1: everything but the unreserved characters as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
