//! Listeners and connections: from the kernel's queue to the end of a conversation.
//!
//! Each listener has places of its own, so that a crowd on TCP does not shut out the Unix socket.
//! Clients beyond the bound wait in the kernel's queue; every connection ends, because
//! handshakes, heads, bodies, answers and writes are each bounded in time. Runs on the server's
//! thread.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::access::{Peer, certificate_name};
use crate::guests::{Guest, Guests};
use crate::http::{Shared, conversation};
use crate::stall::NoStall;
use crate::{Caller, Limits, Origin, Role};

/// Where connections come from.
pub(crate) enum Listener {
    Unix(UnixListener),
    Plain(TcpListener),
    Tls {
        listener: TcpListener,
        tls: Arc<CurrentTls>,
    },
    Metrics(TcpListener),
}

/// The certificate of a listener, and what its clients may do: they change while it listens.
pub(crate) struct CurrentTls(RwLock<(TlsAcceptor, Role)>);

impl CurrentTls {
    pub(crate) fn new(acceptor: TlsAcceptor, client_role: Role) -> Self {
        Self(RwLock::new((acceptor, client_role)))
    }

    fn get(&self) -> (TlsAcceptor, Role) {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set(&self, acceptor: TlsAcceptor, client_role: Role) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = (acceptor, client_role);
    }
}

/// A listener and what answers there.
pub(crate) struct Served {
    pub(crate) listener: Listener,
    pub(crate) service: axum::Router,
    pub(crate) shared: Shared,
}

/// A connection before anybody has spoken on it.
enum Accepted {
    Unix(UnixStream),
    Plain(TcpStream, SocketAddr),
    Tls(TcpStream, SocketAddr, TlsAcceptor, Role),
    Metrics(TcpStream, SocketAddr),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Unix(listener) => listener
                .accept()
                .await
                .map(|(stream, _)| Accepted::Unix(stream)),
            Self::Plain(listener) => listener
                .accept()
                .await
                .map(|(stream, address)| Accepted::Plain(stream, address)),
            Self::Tls { listener, tls } => {
                let (stream, address) = listener.accept().await?;
                let (acceptor, client_role) = tls.get();
                Ok(Accepted::Tls(stream, address, acceptor, client_role))
            }
            Self::Metrics(listener) => listener
                .accept()
                .await
                .map(|(stream, address)| Accepted::Metrics(stream, address)),
        }
    }
}

/// Serves all listeners until `stopped`, then waits a moment for what is under way.
pub(crate) async fn serve(all: Vec<Served>, limits: Limits, stopped: watch::Receiver<bool>) {
    let mut listeners = JoinSet::new();
    for served in all {
        listeners.spawn(serve_one(served, limits, stopped.clone()));
    }
    while listeners.join_next().await.is_some() {}
}

async fn serve_one(served: Served, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let Served {
        listener,
        service,
        shared,
    } = served;
    let mut guests = Guests::new(limits.connections);
    let mut connections = JoinSet::new();
    loop {
        // At most one connection is without a place; others wait in the kernel's queue.
        let next = async {
            match listener.accept().await {
                Ok(accepted) => Ok((accepted, guests.seat().await)),
                Err(error) => Err(error),
            }
        };
        let next = tokio::select! {
            () = is_true(&mut stopped) => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match next {
            Ok((accepted, Some((guest, place)))) => {
                let (service, shared, stopped) = (service.clone(), shared.clone(), stopped.clone());
                connections.spawn(async move {
                    let leaving = Arc::clone(&guest);
                    tokio::select! {
                        () = welcome(accepted, service, shared, stopped, guest) => {}
                        () = leaving.must_leave() => {
                            tracing::debug!("an API client without a request makes room");
                        }
                    }
                    drop(place);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: try again when some connections have ended.
                tracing::warn!(%error, "the API cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok((_, None)) => break,
        }
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.stop_time, all_ended).await.is_err() {
        tracing::warn!("the API ends with requests under way");
    }
}

pub(crate) async fn is_true(stopped: &mut watch::Receiver<bool>) {
    // An error means that the handle is gone, which is also an end.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Finds out who comes, and talks.
async fn welcome(
    accepted: Accepted,
    service: axum::Router,
    shared: Shared,
    stopped: watch::Receiver<bool>,
    guest: Arc<Guest>,
) {
    match accepted {
        Accepted::Unix(stream) => match stream.peer_cred() {
            Ok(peer) => {
                let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
                tracing::debug!(uid = peer.uid(), gid = peer.gid(), pid, "API client");
                let peer = shared.access().of_unix(peer.uid(), peer.gid(), pid);
                // The kernel has said who it is.
                guest.prove();
                // Where everybody may connect, those who may do nothing shall not take all places.
                let is_stranger = matches!(peer, Peer::Refused(..));
                let place = if is_stranger { shared.stranger() } else { None };
                if !is_stranger || place.is_some() {
                    converse(stream, peer, service, shared, stopped, guest).await;
                }
                drop(place);
            }
            Err(error) => {
                tracing::warn!(%error, "the kernel does not tell who an API client is; it is refused")
            }
        },
        Accepted::Plain(stream, address) => {
            converse(stream, Peer::Tcp(address), service, shared, stopped, guest).await
        }
        Accepted::Metrics(stream, address) => {
            converse(
                stream,
                Peer::Anybody(address),
                service,
                shared,
                stopped,
                guest,
            )
            .await
        }
        Accepted::Tls(stream, address, acceptor, role) => {
            // A client that stalls in its handshake is one that stalls in its head.
            match timeout(shared.limits().head_time, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let certificate = stream
                        .get_ref()
                        .1
                        .peer_certificates()
                        .and_then(|chain| chain.first());
                    let peer = match certificate {
                        Some(certificate) => Peer::Known(Caller {
                            role,
                            origin: Origin::Tcp {
                                address,
                                name: certificate_name(certificate),
                            },
                        }),
                        None => Peer::Tcp(address),
                    };
                    converse(stream, peer, service, shared, stopped, guest).await;
                }
                Ok(Err(error)) => {
                    tracing::debug!(%address, %error, "an API client's TLS handshake failed")
                }
                Err(_) => tracing::debug!(%address, "an API client's TLS handshake takes too long"),
            }
        }
    }
}

/// One connection, from its first byte to its end.
async fn converse<S>(
    stream: S,
    peer: Peer,
    service: axum::Router,
    shared: Shared,
    mut stopped: watch::Receiver<bool>,
    guest: Arc<Guest>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_time);
    let stream = TokioIo::new(NoStall::new(stream, limits.write_time));
    let mut connection =
        pin!(http.serve_connection(stream, conversation(shared, service, peer, guest)));
    let mut stopping = pin!(is_true(&mut stopped));
    let mut is_stopping = false;
    let ended = poll_fn(|context| {
        if !is_stopping && stopping.as_mut().poll(context).is_ready() {
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an API connection broke off");
    }
}
