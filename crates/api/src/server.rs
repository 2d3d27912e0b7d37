//! The server: one thread, one socket, a bounded number of clients.
//!
//! The thread runs a small runtime of its own; answers come from a few blocking threads beside
//! it. Nothing here is shared with workers, and every resource that a client can hold has a bound
//! ([`Limits`]): connections beyond the bound wait in the kernel's queue until one ends, and every
//! connection ends, because heads, bodies, answers and writes are each bounded in time.
//!
//! At the end the socket's name goes first, then idle connections are closed and busy ones are
//! given a moment to finish.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::Router;
use crate::http::{Shared, service};
use crate::socket::{ServeError, SocketName, bind};
use crate::stall::NoStall;

/// What clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Requests that are being answered at once.
    pub answers: usize,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// How long a client may take to send a request's head; an idle connection ends after it.
    pub head_time: Duration,
    /// How long a client may take to send a request's body.
    pub body_time: Duration,
    /// How long the router may take to answer.
    pub answer_time: Duration,
    /// How long a client may take to read the next part of a reply.
    pub write_time: Duration,
    /// How long requests under way may take when the server stops.
    pub stop_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            answers: 4,
            body_bytes: 1 << 20,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(5),
            answer_time: Duration::from_secs(10),
            write_time: Duration::from_secs(5),
            stop_time: Duration::from_secs(1),
        }
    }
}

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Answers for `router` on a Unix socket at `path`, with the usual limits.
    ///
    /// # Errors
    /// When another router answers there, or the socket cannot be made.
    pub fn start(path: &Path, router: Arc<dyn Router>) -> Result<ServerHandle, ServeError> {
        Self::start_with(path, router, Limits::default())
    }

    /// Answers for `router` on a Unix socket at `path`.
    ///
    /// # Errors
    /// When another router answers there, or the socket cannot be made.
    pub fn start_with(path: &Path, router: Arc<dyn Router>, limits: Limits) -> Result<ServerHandle, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(limits.answers.max(1))
            .thread_name("weir-api-answer")
            .build()
            .map_err(ServeError::Thread)?;
        let (listener, name) = bind(path)?;
        let listener = {
            let _inside = runtime.enter();
            UnixListener::from_std(listener).map_err(ServeError::Thread)
        };
        let (stop, stopped) = watch::channel(false);
        let shared = Shared::new(router, limits);
        let work = move |listener| {
            runtime.block_on(serve(listener, shared, limits, stopped));
            end(runtime, limits);
        };
        let thread = listener.and_then(|listener| {
            let named = std::thread::Builder::new().name("weir-api".to_owned());
            named.spawn(move || work(listener)).map_err(ServeError::Thread)
        });
        match thread {
            Ok(thread) => {
                tracing::info!(socket = %path.display(), "the API answers");
                Ok(ServerHandle { name, stop, thread: Some(thread) })
            }
            Err(error) => {
                name.remove();
                Err(error)
            }
        }
    }
}

/// An answer that hangs must not hang the end.
fn end(runtime: Runtime, limits: Limits) {
    runtime.shutdown_timeout(limits.stop_time);
}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct ServerHandle {
    name: SocketName,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl ServerHandle {
    /// Removes the socket, lets requests under way finish for a moment, and ends the thread.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.name.remove();
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the API's thread panicked");
        }
    }
}

async fn serve(listener: UnixListener, shared: Shared, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let service = service(&shared);
    let free = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        // A place first, then a connection: clients beyond the bound wait in the kernel's queue.
        let next = async {
            let place = Arc::clone(&free).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = is_true(&mut stopped) => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match (place, accepted) {
            (Ok(place), Ok((stream, _))) => {
                let (service, stopped) = (service.clone(), stopped.clone());
                connections.spawn(async move {
                    converse(stream, service, limits, stopped).await;
                    drop(place);
                });
            }
            (_, Err(error)) => {
                // Out of descriptors, most likely: try again when some connections have ended.
                tracing::warn!(%error, "the API cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (Err(_), Ok(_)) => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.stop_time, all_ended).await.is_err() {
        tracing::warn!("the API ends with requests under way");
    }
}

async fn is_true(stopped: &mut watch::Receiver<bool>) {
    // An error means that the handle is gone, which is also an end.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// One connection, from its first byte to its end.
async fn converse(stream: UnixStream, service: axum::Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    match stream.peer_cred() {
        Ok(peer) => tracing::debug!(uid = peer.uid(), gid = peer.gid(), pid = peer.pid(), "API client"),
        Err(error) => tracing::debug!(%error, "API client without credentials"),
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let stream = TokioIo::new(NoStall::new(stream, limits.write_time));
    let mut connection = pin!(http.serve_connection(stream, TowerToHyperService::new(service)));
    let mut stopping = pin!(is_true(&mut stopped));
    let mut told = false;
    let ended = poll_fn(|context| {
        if !told && stopping.as_mut().poll(context).is_ready() {
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an API connection broke off");
    }
}
