//! Sockets: one thread a UDP socket (recvmmsg, kernel drops by SO_RXQ_OVFL), one thread a TCP or TLS connection.
//!
//! Several sockets may share a UDP address (SO_REUSEPORT): the kernel chooses by addresses and ports, so that all datagrams
//! of one source come to the same socket, and templates and sequence numbers need no lock.
//!
//! A thread decodes each batch of datagrams under the shared lock and hands its rows to the storing thread over a bounded
//! channel. When that is full the thread waits: then the kernel drops datagrams, and counts them.

use std::io::{IoSliceMut, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReuseAddr, ReusePort, RxqOvfl};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, MultiHeaders, SockFlag, SockType,
    SockaddrStorage, bind, getsockopt, recvmmsg, setsockopt, socket,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::account::Socket;
use crate::config::TlsConfig;
use crate::decode::{Decoder, Shared};
use crate::row::Row;

/// Datagrams taken in one call.
const BATCH: usize = 64;
/// Bytes of the largest datagram that is taken whole.
const MOST_DATAGRAM: usize = 65_536;
/// TCP connections at the same time.
const MOST_CONNECTIONS: usize = 256;
/// Time in which a connection must send its first message.
const FIRST_MESSAGE: Duration = Duration::from_secs(60);
/// Seconds without a byte after which a connection is closed.
const IDLE: u64 = 1800;

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}. Check that no other program uses the port")]
pub struct ListenError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tls: {0}")]
pub struct TlsError(String);

/// What receiving threads work with.
#[derive(Clone)]
pub struct Context {
    /// Counters and names.
    pub shared: Arc<Mutex<Shared>>,
    /// Where rows go.
    pub rows: SyncSender<Vec<Row>>,
    /// Set when the program ends.
    pub stop: Arc<AtomicBool>,
    /// Stored template messages, read before the first datagram.
    pub templates: Arc<Vec<(SocketAddr, Vec<u8>)>>,
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

impl Context {
    fn decoder(&self) -> Decoder {
        let mut decoder = Decoder::default();
        for (from, message) in self.templates.iter() {
            decoder.restore(*from, message);
        }
        decoder
    }

    fn socket(&self, address: &SocketAddr, buffer: u64) -> usize {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = Socket {
            address: address.to_string(),
            receive_buffer: buffer,
            ..Socket::default()
        };
        shared.accounts.sockets.push(entry);
        shared.accounts.sockets.len() - 1
    }
}

/// Opens UDP sockets of one address and starts a thread for each. Returns the address, whose port is the chosen one if 0
/// was given.
///
/// # Errors
/// When the address cannot be bound.
pub fn listen_udp(
    context: &Context,
    address: SocketAddr,
    buffer: usize,
    threads: usize,
) -> Result<SocketAddr, ListenError> {
    let refuse = |source: std::io::Error| ListenError { address, source };
    let mut bound = address;
    for number in 0..threads.max(1) {
        let socket = udp_socket(bound, threads > 1).map_err(refuse)?;
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .map_err(refuse)?;
        // Beyond net.core.rmem_max only root may go; what was granted is shown on the health page.
        if setsockopt(&socket, RcvBufForce, &buffer).is_err() {
            let _ = setsockopt(&socket, RcvBuf, &buffer);
        }
        setsockopt(&socket, RxqOvfl, &1).map_err(|errno| refuse(errno.into()))?;
        let granted = getsockopt(&socket, RcvBuf).unwrap_or(0) as u64;
        bound = socket.local_addr().map_err(refuse)?;
        let index = context.socket(&bound, granted);
        let context = context.clone();
        std::thread::Builder::new()
            .name(format!("udp-{}-{number}", bound.port()))
            .spawn(move || receive(&context, &socket, index))
            .map_err(refuse)?;
    }
    Ok(bound)
}

fn udp_socket(address: SocketAddr, shared: bool) -> std::io::Result<UdpSocket> {
    if !shared {
        return UdpSocket::bind(address);
    }
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let fd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, ReuseAddr, &true)?;
    setsockopt(&fd, ReusePort, &true)?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(UdpSocket::from(fd))
}

fn receive(context: &Context, socket: &UdpSocket, index: usize) {
    let mut decoder = context.decoder();
    let mut buffers = vec![vec![0_u8; MOST_DATAGRAM]; BATCH];
    let mut received: Vec<(usize, SocketAddr)> = Vec::with_capacity(BATCH);
    while !context.stop.load(Ordering::Relaxed) {
        received.clear();
        let mut dropped = None;
        let result = {
            let mut slices: Vec<[IoSliceMut<'_>; 1]> = buffers
                .iter_mut()
                .map(|buffer| [IoSliceMut::new(buffer)])
                .collect();
            let space = nix::cmsg_space!(u32);
            let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, Some(space));
            match recvmmsg(
                socket.as_raw_fd(),
                &mut headers,
                slices.iter_mut(),
                MsgFlags::MSG_WAITFORONE,
                None,
            ) {
                Ok(messages) => {
                    for message in messages {
                        if let Ok(control) = message.cmsgs() {
                            for control in control {
                                if let ControlMessageOwned::RxqOvfl(count) = control {
                                    dropped = Some(count);
                                }
                            }
                        }
                        received.push((
                            message.bytes,
                            message.address.and_then(socket_address).unwrap_or(UNKNOWN),
                        ));
                    }
                    Ok(())
                }
                Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
                Err(errno) => Err(errno),
            }
        };
        let mut rows = Vec::new();
        {
            let mut shared = context
                .shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let time = now();
            if let Some(entry) = shared.accounts.sockets.get_mut(index) {
                entry.received += received.len() as u64;
                entry.errors += u64::from(result.is_err());
                if let Some(count) = dropped {
                    // The kernel's counter has 32 bits and counts since the socket was opened.
                    let before = entry.kernel_dropped as u32;
                    entry.kernel_dropped += u64::from(count.wrapping_sub(before));
                }
            }
            for ((length, from), buffer) in received.iter().zip(&buffers) {
                let bytes = buffer.get(..*length).unwrap_or(buffer);
                decoder.datagram(*from, bytes, time, &mut shared, &mut rows);
            }
        }
        if let Err(errno) = result {
            tracing::warn!(error = %errno, "receiving failed");
            std::thread::sleep(Duration::from_millis(100));
        }
        if !rows.is_empty() && context.rows.send(rows).is_err() {
            return;
        }
    }
}

const UNKNOWN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

fn socket_address(storage: SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    let v6 = storage.as_sockaddr_in6()?;
    Some(SocketAddr::new(
        std::net::IpAddr::V6(v6.ip()).to_canonical(),
        v6.port(),
    ))
}

/// What a connection is read through.
#[derive(Clone)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// TLS over TCP, with these certificates.
    Tls(Arc<ServerConfig>),
}

impl Transport {
    /// Reads the certificates of a configuration.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub fn tls(config: &TlsConfig) -> Result<Transport, TlsError> {
        let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, TlsError> {
            let refuse = |error| TlsError(format!("{}: {error}", path.display()));
            let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
                .map_err(refuse)?
                .collect();
            let all = all.map_err(refuse)?;
            if all.is_empty() {
                return Err(TlsError(format!("{}: no certificate", path.display())));
            }
            Ok(all)
        };
        let refuse = |error: rustls::Error| TlsError(error.to_string());
        let key = PrivateKeyDer::from_pem_file(&config.key)
            .map_err(|error| TlsError(format!("{}: {error}", config.key.display())))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(refuse)?;
        let builder = match &config.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(refuse)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|error| TlsError(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let server = builder
            .with_single_cert(certificates(&config.certificate)?, key)
            .map_err(refuse)?;
        Ok(Transport::Tls(Arc::new(server)))
    }
}

/// Opens a TCP socket for IPFIX and starts its thread.
///
/// # Errors
/// When the address cannot be bound.
pub fn listen_tcp(
    context: &Context,
    address: SocketAddr,
    transport: Transport,
) -> Result<SocketAddr, ListenError> {
    let refuse = |source: std::io::Error| ListenError { address, source };
    let listener = TcpListener::bind(address).map_err(refuse)?;
    listener.set_nonblocking(true).map_err(refuse)?;
    let bound = listener.local_addr().map_err(refuse)?;
    let context = context.clone();
    let open = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        while !context.stop.load(Ordering::Relaxed) {
            let Ok((stream, from)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!(%from, "connection refused: {MOST_CONNECTIONS} are open");
                continue;
            }
            let (context, count, transport) =
                (context.clone(), Arc::clone(&open), transport.clone());
            let spawned = std::thread::Builder::new()
                .name("tcp".to_owned())
                .spawn(move || {
                    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                    if let Err(error) = serve(&context, stream, from, &transport) {
                        tracing::info!(%from, %error, "IPFIX connection ended");
                    }
                    count.fetch_sub(1, Ordering::Relaxed);
                });
            if spawned.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("tcp-{}", bound.port()))
        .spawn(accept)
        .map_err(refuse)?;
    Ok(bound)
}

/// Reads a connection to its end. A failed handshake is counted as a rejected datagram of its sender.
fn serve(
    context: &Context,
    stream: TcpStream,
    from: SocketAddr,
    transport: &Transport,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    match transport {
        Transport::Tcp => connection(context, stream, from),
        Transport::Tls(config) => {
            let tls = ServerConnection::new(Arc::clone(config)).map_err(std::io::Error::other)?;
            let result = connection(context, StreamOwned::new(tls, stream), from);
            let failed = result
                .as_ref()
                .is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidData);
            if failed {
                reject(context, from, 0, "tls-failed");
            }
            result
        }
    }
}

fn reject(context: &Context, from: SocketAddr, bytes: usize, reason: &'static str) {
    let mut shared = context
        .shared
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let name = crate::account::exporter_name(from.ip());
    let outcome = crate::account::Outcome::Rejected(reason);
    shared
        .accounts
        .datagram(&name, "ipfix", bytes, now(), outcome);
}

/// Messages of one connection; each begins with its version and length.
fn connection(context: &Context, mut stream: impl Read, from: SocketAddr) -> std::io::Result<()> {
    let mut decoder = Decoder::default();
    let (begun, mut messages, mut idle) = (Instant::now(), 0_u64, 0);
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    while !context.stop.load(Ordering::Relaxed) && idle < IDLE {
        // Clients that send no message make room for exporters.
        if messages == 0 && begun.elapsed() > FIRST_MESSAGE {
            break;
        }
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                idle = 0;
                buffer.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                idle += 1;
                continue;
            }
            Err(error) => {
                decoder.forget(from);
                return Err(error);
            }
        }
        let (mut rows, mut at) = (Vec::new(), 0);
        let mut broken = false;
        {
            let mut shared = context
                .shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            while let Some(rest) = buffer.get(at..).filter(|rest| rest.len() >= 4) {
                let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
                // A stream that is out of step cannot be followed any further.
                broken = rest[..2] != [0, 10] || length < 16;
                let Some(message) = rest.get(..length).filter(|_| !broken) else {
                    break;
                };
                decoder.datagram(from, message, now(), &mut shared, &mut rows);
                at += length;
                messages += 1;
            }
        }
        if broken {
            reject(context, from, buffer.len() - at, "tcp-no-ipfix-message");
        }
        buffer.drain(..at);
        if !rows.is_empty() && context.rows.send(rows).is_err() {
            break;
        }
        if broken {
            break;
        }
    }
    decoder.forget(from);
    Ok(())
}
