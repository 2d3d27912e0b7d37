//! A blocking client of the API.
//!
//! Every call opens a connection of its own, asks once and closes: a client holds nothing in the
//! router between two calls. Errors are sentences for the person at the terminal.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{
    ApiError, Clear, Cleared, ErrorBody, Errors, Hardware, Interfaces, Neighbors, Routes, Runtime, RxPlacement, Sflow, Totals, Trace,
    TraceRequest, Version,
};

/// Longer than the server takes at most to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The largest reply that is read, in bytes: a full table's routes as JSON stay below.
const LARGEST_REPLY: usize = 1 << 30;

/// Why a router was not asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no weir answers on {} (is it running? start it with `weir run -c FILE`, or say --socket)", .0.display())]
    NotRunning(PathBuf),
    /// The socket's permissions.
    #[error("not allowed to talk to the weir on {} (its owner and group are: try sudo, or join the group)", .0.display())]
    NotAllowed(PathBuf),
    /// It took too long.
    #[error("the weir on {} does not answer within {} s", .0.display(), PATIENCE.as_secs())]
    Late(PathBuf),
    /// The connection failed otherwise.
    #[error("cannot talk to the weir on {}: {reason}", .socket.display())]
    Broken {
        /// The socket.
        socket: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// It answered with an error.
    #[error("{}", sentence(.0))]
    Refused(ApiError),
    /// It answered with something else than this client understands.
    #[error("the weir on {} answers what this version does not understand: {reason} (is it of the same version?)", .socket.display())]
    NotUnderstood {
        /// The socket.
        socket: PathBuf,
        /// What was not understood.
        reason: String,
    },
}

fn sentence(error: &ApiError) -> String {
    if error.help.is_empty() { error.message.clone() } else { format!("{} ({})", error.message, error.help) }
}

/// Asks one router.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// A client of the router at `socket`. Nothing happens before the first call.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Who answers, and since when.
    ///
    /// # Errors
    /// As all calls: see [`ClientError`].
    pub fn version(&self) -> Result<Version, ClientError> {
        self.read("/v1/version", &[])
    }

    /// Interfaces: all, or the one of that name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn interfaces(&self, name: Option<&str>) -> Result<Interfaces, ClientError> {
        self.read("/v1/interfaces", &[("name", name)])
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
        self.read("/v1/errors", &[("interface", interface), ("by_worker", by_worker.then_some("true"))])
    }

    /// Neighbours: all, or those of one interface.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn neighbors(&self, interface: Option<&str>) -> Result<Neighbors, ClientError> {
        self.read("/v1/neighbors", &[("interface", interface)])
    }

    /// Routes: all, the one of a prefix, or the longest match of an address.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn routes(&self, prefix: Option<&str>, table: Option<u32>) -> Result<Routes, ClientError> {
        let table = table.map(|table| table.to_string());
        self.read("/v1/routes", &[("prefix", prefix), ("table", table.as_deref())])
    }

    /// Settings and counters of the sFlow sampler and agent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn sflow(&self) -> Result<Sflow, ClientError> {
        self.read("/v1/sflow", &[])
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
        let body = serde_json::to_string(request).map_err(|error| self.not_understood(&error))?;
        self.ask(Method::POST, "/v1/trace", Some(body))
    }

    /// Disarms all traces and forgets what they recorded.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn trace_clear(&self) -> Result<(), ClientError> {
        self.ask::<serde_json::Value>(Method::DELETE, "/v1/trace", None).map(drop)
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

    fn read<T: DeserializeOwned>(&self, path: &str, query: &[(&str, Option<&str>)]) -> Result<T, ClientError> {
        let given = query.iter().filter_map(|(key, value)| value.map(|value| format!("{key}={}", percent_encoded(value))));
        let query = given.collect::<Vec<_>>().join("&");
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        self.ask(Method::GET, &target, None)
    }

    fn ask<T: DeserializeOwned>(&self, method: Method, target: &str, body: Option<String>) -> Result<T, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| self.broken(&error))?;
        let asked = runtime.block_on(async { timeout(PATIENCE, self.exchange(method, target, body)).await });
        let (status, text) = asked.map_err(|_| ClientError::Late(self.socket.clone()))??;
        if status.is_success() {
            return serde_json::from_slice(&text).map_err(|error| self.not_understood(&error));
        }
        match serde_json::from_slice::<ErrorBody>(&text) {
            Ok(body) => Err(ClientError::Refused(body.error)),
            Err(_) => Err(self.not_understood(&format!("status {status}"))),
        }
    }

    async fn exchange(&self, method: Method, target: &str, body: Option<String>) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.not_connected(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(&error))?;
        let driver = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, "weir")
            .header(header::CONNECTION, "close")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, Body::from))
            .map_err(|error| self.broken(&error))?;
        let response = sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let text = Limited::new(response.into_body(), LARGEST_REPLY).collect().await.map_err(|error| {
            let reason = if error.is::<LengthLimitError>() { "the reply is too large".to_owned() } else { error.to_string() };
            ClientError::Broken { socket: self.socket.clone(), reason }
        })?;
        driver.abort();
        Ok((status, text.to_bytes().to_vec()))
    }

    fn not_connected(&self, error: &io::Error) -> ClientError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => ClientError::NotRunning(self.socket.clone()),
            ErrorKind::PermissionDenied => ClientError::NotAllowed(self.socket.clone()),
            _ => self.broken(error),
        }
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Broken { socket: self.socket.clone(), reason: error.to_string() }
    }

    fn not_understood(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::NotUnderstood { socket: self.socket.clone(), reason: error.to_string() }
    }
}

/// RFC 3986 2.1: everything but the unreserved characters as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
