//! The server: one thread, its listeners, a bounded number of clients.
//!
//! The thread runs a small runtime of its own; answers come from a few blocking threads beside
//! it. Nothing here is shared with workers, and every resource that a client can hold has a bound
//! ([`Limits`]). Everything that can be wrong with the settings is found before the thread starts.
//!
//! At the end the socket's name goes first, then idle connections are closed, streams of events
//! end, and busy connections are given a moment to finish.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::watch;

use crate::access::{Access, Current};
use crate::http::{Shared, metrics_service, service};
use crate::listen::{CurrentTls, Listener, Served, serve};
use crate::socket::{Opened, ServeError, SocketName, bind};
use crate::{Limits, Router, ServerSettings, TcpListen, tls};

/// Connections that wait in the kernel's queue of a TCP listener.
const BACKLOG: u32 = 1024;

/// Starts servers.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Answers for `router` on a Unix socket at `path`, to root and the router's own user, with
    /// the usual limits.
    ///
    /// # Errors
    /// When another router answers there, or the socket cannot be made.
    pub fn start(path: &Path, router: Arc<dyn Router>) -> Result<ServerHandle, ServeError> {
        Self::serve(&ServerSettings::new(path), router)
    }

    /// Like `start`, with limits.
    ///
    /// # Errors
    /// When another router answers there, or the socket cannot be made.
    pub fn start_with(
        path: &Path,
        router: Arc<dyn Router>,
        limits: Limits,
    ) -> Result<ServerHandle, ServeError> {
        Self::serve(
            &ServerSettings {
                limits,
                ..ServerSettings::new(path)
            },
            router,
        )
    }

    /// Answers for `router` as the settings say.
    ///
    /// # Errors
    /// When another router answers there, when a socket cannot be made, or when the settings are
    /// unsafe or name what does not exist.
    pub fn serve(
        settings: &ServerSettings,
        router: Arc<dyn Router>,
    ) -> Result<ServerHandle, ServeError> {
        let limits = settings.limits;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(limits.answers.max(1))
            .thread_name("weir-api-answer")
            .build()
            .map_err(ServeError::Thread)?;
        let access = Access::new(settings)?;
        let entered = runtime.enter();
        let OverTcp {
            mut listeners,
            addresses,
            tls,
        } = OverTcp::bind(settings)?;
        let opened = Opened {
            group: access.socket_group().map(|group| group.gid),
            everybody: access.is_open_to_readers(),
        };
        let (socket, name) = bind(&settings.socket, opened)?;
        match UnixListener::from_std(socket) {
            Ok(unix) => listeners.push(Listener::Unix(unix)),
            Err(error) => {
                name.remove();
                return Err(ServeError::Thread(error));
            }
        }
        drop(entered);
        let (stop, stopped) = watch::channel(false);
        let access = Arc::new(Current::new(access));
        let control = ServerControl {
            settings: Arc::new(settings.clone()),
            access: Arc::clone(&access),
            tls,
        };
        let shared = Shared::new(router, limits, access, stopped.clone());
        let (all, metrics) = (service(&shared), metrics_service(&shared));
        let serving = listeners.into_iter().map(|listener| {
            let service = if matches!(listener, Listener::Metrics(_)) {
                metrics.clone()
            } else {
                all.clone()
            };
            Served {
                listener,
                service,
                shared: shared.clone(),
            }
        });
        let served: Vec<_> = serving.collect();
        let work = move || {
            runtime.block_on(serve(served, limits, stopped));
            // An answer that hangs must not hang the end.
            runtime.shutdown_timeout(limits.stop_time);
        };
        match std::thread::Builder::new()
            .name("weir-api".to_owned())
            .spawn(work)
        {
            Ok(thread) => {
                tracing::info!(socket = %settings.socket.display(), tcp = ?addresses, "the API answers");
                Ok(ServerHandle {
                    name,
                    addresses,
                    control,
                    stop,
                    thread: Some(thread),
                })
            }
            Err(error) => {
                name.remove();
                Err(ServeError::Thread(error))
            }
        }
    }
}

/// Listeners for TCP, and where they listen.
#[derive(Default)]
struct OverTcp {
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    /// Those of the listeners with TLS, by their place among the listeners of the settings.
    tls: Vec<(usize, Arc<CurrentTls>)>,
}

impl OverTcp {
    /// Binds each listener of the API, then that of the metrics.
    fn bind(settings: &ServerSettings) -> Result<Self, ServeError> {
        let mut bound = Self::default();
        for (item, listen) in settings.listeners.iter().enumerate() {
            let acceptor = vet(listen, !settings.tokens.is_empty())?;
            let listener = bound.tcp(listen.address)?;
            bound.listeners.push(match (acceptor, &listen.tls) {
                (Some(acceptor), Some(tls)) => {
                    let tls = Arc::new(CurrentTls::new(acceptor, tls.client_role));
                    bound.tls.push((item, Arc::clone(&tls)));
                    Listener::Tls { listener, tls }
                }
                _ => Listener::Plain(listener),
            });
        }
        if let Some(address) = settings.metrics {
            let listener = bound.tcp(address)?;
            bound.listeners.push(Listener::Metrics(listener));
        }
        Ok(bound)
    }

    fn tcp(&mut self, address: SocketAddr) -> Result<TcpListener, ServeError> {
        let (listener, bound) =
            tcp(address).map_err(|source| ServeError::Tcp { address, source })?;
        self.addresses.push(bound);
        Ok(listener)
    }
}

/// Refuses listeners that are unsafe, or that could let nobody in.
fn vet(listen: &TcpListen, tokens: bool) -> Result<Option<tokio_rustls::TlsAcceptor>, ServeError> {
    let address = listen.address;
    let has_certificates = listen
        .tls
        .as_ref()
        .is_some_and(|tls| tls.client_ca.is_some());
    match &listen.tls {
        None if !address.ip().is_loopback() => Err(ServeError::PlainTcp(address)),
        _ if !tokens && !has_certificates => Err(ServeError::NobodyMayAsk(address)),
        None => Ok(None),
        Some(settings) => tls::acceptor(settings, tokens).map(Some),
    }
}

fn tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // Connections of the router before this one may still be in TIME-WAIT (RFC 9293 3.3.2).
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Changes who is let in by a running server. Cloning gives another handle.
#[derive(Clone)]
pub struct ServerControl {
    settings: Arc<ServerSettings>,
    access: Arc<Current>,
    tls: Vec<(usize, Arc<CurrentTls>)>,
}

impl std::fmt::Debug for ServerControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerControl")
    }
}

impl ServerControl {
    /// Takes tokens, and certificates and keys, which are read again, from `settings`. Requests are
    /// checked against the new ones from here on, those of open connections included. Addresses,
    /// socket and groups stay those that the server was started with.
    ///
    /// # Errors
    /// When a file cannot be read, or a listener could let nobody in; nothing was changed then.
    pub fn update(&self, settings: &ServerSettings) -> Result<(), ServeError> {
        let access = Access::new(&ServerSettings {
            tokens: settings.tokens.clone(),
            ..(*self.settings).clone()
        })?;
        let has_tokens = !settings.tokens.is_empty();
        let mut acceptors = Vec::new();
        for listen in &self.settings.listeners {
            if listen.tls.is_none() {
                vet(listen, has_tokens)?;
            }
        }
        for (item, current) in &self.tls {
            let same = |listen: &&TcpListen| {
                let before = self.settings.listeners.get(*item);
                before.is_some_and(|before| before.address == listen.address)
            };
            let Some(listen) = settings.listeners.iter().find(same) else {
                continue;
            };
            if let (Some(acceptor), Some(tls)) = (vet(listen, has_tokens)?, &listen.tls) {
                acceptors.push((current, acceptor, tls.client_role));
            }
        }
        for (current, acceptor, role) in acceptors {
            current.set(acceptor, role);
        }
        self.access.set(access);
        Ok(())
    }
}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct ServerHandle {
    name: SocketName,
    addresses: Vec<SocketAddr>,
    control: ServerControl,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl ServerHandle {
    /// Where it listens for TCP: the listeners in the order of the settings, then that of metrics.
    #[must_use]
    pub fn tcp_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Changes who is let in while it runs.
    #[must_use]
    pub fn control(&self) -> ServerControl {
        self.control.clone()
    }

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
