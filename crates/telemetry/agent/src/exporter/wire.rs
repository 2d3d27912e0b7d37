//! A connection to a collector: plain or in TLS, with what was written and what the other side has acknowledged.
//!
//! The kernel takes octets long before the collector has them. What it took is therefore not what was sent: TCP says how
//! much of it the other side acknowledged, also after the connection broke, so that whoever writes messages knows which of them
//! have to go again. What a collector acknowledged and did not read before it ended, nobody can know.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_socket_send_buffer_size, socket_error};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use weir_netlink::socket::unacknowledged;

use super::TlsSettings;
use crate::agent::Target;

/// A collector that does not answer is given up after this time.
const CONNECT: Duration = Duration::from_secs(5);
/// Addresses of a name that are tried.
const MOST_ADDRESSES: usize = 4;
/// How long a collector has to say what it thinks of the router's certificate, or of there being none.
const VERDICT: Duration = Duration::from_millis(500);
/// How long a call may keep the thread from seeing that it has to end.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// A socket that counts what was written.
struct Counted {
    socket: TcpStream,
    written: u64,
}

impl Read for Counted {
    fn read(&mut self, to: &mut [u8]) -> Result<usize, Error> {
        self.socket.read(to)
    }
}

impl Write for Counted {
    fn write(&mut self, octets: &[u8]) -> Result<usize, Error> {
        let count = self.socket.write(octets)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.socket.flush()
    }
}

/// A connection.
pub(super) struct Wire(Layer);

enum Layer {
    Plain(Counted),
    Tls(Box<StreamOwned<ClientConnection, Counted>>),
}

fn is_wait(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

impl Wire {
    /// Connects; in TLS, if there are settings for it. `is_over` ends the wait for an answer. The kernel holds as many octets as
    /// `buffer` says, and as it does by itself without.
    pub(super) fn connect(
        (target, buffer): (&Target, Option<usize>),
        tls: Option<&TlsSettings>,
        is_over: impl Fn() -> bool,
    ) -> Result<Wire, Error> {
        // What is wrong with the router's own files is reported whether the collector is there or not.
        let tls = tls.map(client).transpose()?;
        let socket = dial_any((target, buffer), &is_over)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(SLICE))?;
        socket.set_read_timeout(Some(SLICE))?;
        let socket = Counted { socket, written: 0 };
        let Some(tls) = tls else {
            return Ok(Wire(Layer::Plain(socket)));
        };
        let mut stream = StreamOwned::new(tls, socket);
        let until = Instant::now() + CONNECT;
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Err(error) if is_wait(&error) && Instant::now() < until && !is_over() => {}
                Err(error) if is_wait(&error) => {
                    return Err(Error::new(
                        ErrorKind::TimedOut,
                        "no answer to the TLS handshake",
                    ));
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        let mut wire = Wire(Layer::Tls(Box::new(stream)));
        wire.wait_for_verdict(is_over)?;
        Ok(wire)
    }

    /// The router's part of TLS 1.3 is done before the collector has seen its certificate. One that refuses it says so, and most of
    /// those that do not send a ticket: who is silent for a while is taken to be content. So no record goes to one that refuses.
    fn wait_for_verdict(&mut self, is_over: impl Fn() -> bool) -> Result<(), Error> {
        let until = Instant::now() + VERDICT;
        let slice = Timespec {
            tv_sec: 0,
            tv_nsec: SLICE.as_nanos() as i64,
        };
        while Instant::now() < until && !is_over() {
            match poll(
                &mut [PollFd::new(&self.counted().socket, PollFlags::IN)],
                Some(&slice),
            ) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.check(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn counted(&self) -> &Counted {
        match &self.0 {
            Layer::Plain(socket) => socket,
            Layer::Tls(stream) => &stream.sock,
        }
    }

    /// The collector's address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.counted().socket.peer_addr().ok()
    }

    /// Octets that were written to the socket so far.
    pub(super) fn written(&self) -> u64 {
        self.counted().written
    }

    /// Octets of them that the other side acknowledged; also when the connection is over.
    pub(super) fn acknowledged(&self) -> u64 {
        let Counted { socket, written } = self.counted();
        // Where the kernel does not tell, what it took counts.
        written.saturating_sub(unacknowledged(socket).unwrap_or(0) as u64)
    }

    /// Writes all of it, however slowly the other side reads; gives up when `is_over`.
    pub(super) fn write_all(
        &mut self,
        mut octets: &[u8],
        is_over: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let given_up = || Error::new(ErrorKind::TimedOut, "the collector does not read");
        while !octets.is_empty() {
            let written = match &mut self.0 {
                Layer::Plain(stream) => stream.write(octets),
                Layer::Tls(stream) => stream.write(octets),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => octets = octets.get(count..).unwrap_or(&[]),
                Err(error) if is_wait(&error) && is_over() => return Err(given_up()),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Layer::Tls(stream) = &mut self.0 else {
            return Ok(());
        };
        while let Err(error) = stream.flush() {
            match is_wait(&error) {
                true if is_over() => return Err(given_up()),
                true => {}
                false => return Err(error),
            }
        }
        Ok(())
    }

    /// Says that nothing more comes; what was written still goes out.
    pub(super) fn close(&mut self) {
        if let Layer::Tls(stream) = &mut self.0 {
            stream.conn.send_close_notify();
            // If it does not go out, the other side sees the end without it.
            let _ = stream.flush();
        }
        let _ = self.counted().socket.shutdown(Shutdown::Write);
    }

    /// Whether the connection is over in both directions: nothing more will be acknowledged.
    pub(super) fn is_reset(&self) -> bool {
        let Counted { socket, .. } = self.counted();
        socket.take_error().is_ok_and(|error| error.is_some()) || socket.peer_addr().is_err()
    }

    /// Ends the connection so that what is not acknowledged by now never arrives.
    pub(super) fn abort(self) {
        let _ = set_socket_linger(&self.counted().socket, Some(Duration::ZERO));
    }

    /// An error if the collector closed the connection. It has nothing to say otherwise, and is not listened to.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let gone = || {
            Error::new(
                ErrorKind::ConnectionAborted,
                "the collector closed the connection",
            )
        };
        let mut octets = [0; 512];
        self.counted().socket.set_nonblocking(true)?;
        let read = match &mut self.0 {
            Layer::Plain(stream) => stream.read(&mut octets),
            Layer::Tls(stream) => stream.read(&mut octets),
        };
        self.counted().socket.set_nonblocking(false)?;
        match read {
            Ok(0) => Err(gone()),
            Ok(_) => Ok(()),
            Err(error) if is_wait(&error) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(gone()),
            Err(error) => Err(error),
        }
    }
}

/// A socket that is connected to one of the collector's addresses, which are tried one after the other. Names are looked up for
/// each connection.
fn dial_any(
    (target, buffer): (&Target, Option<usize>),
    is_over: impl Fn() -> bool,
) -> Result<TcpStream, Error> {
    let opening = target.look_up()?;
    let addresses = loop {
        if let Some(found) = opening.wait(SLICE) {
            break found?;
        }
        if is_over() {
            return Err(Error::new(
                ErrorKind::TimedOut,
                "its name is being looked up",
            ));
        }
    };
    let mut last = Error::other("it has no address");
    for address in addresses.iter().take(MOST_ADDRESSES) {
        match dial((address, target, buffer), &is_over) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A socket that is connected. Whoever ends this need not wait for a collector that does not answer.
fn dial(
    (address, target, buffer): (&SocketAddr, &Target, Option<usize>),
    is_over: impl Fn() -> bool,
) -> Result<TcpStream, Error> {
    let socket = target.stream(address)?;
    if let Some(octets) = buffer {
        // The kernel doubles it, for its own bookkeeping (socket(7)).
        set_socket_send_buffer_size(&socket, octets / 2)?;
    }
    let until = Instant::now() + CONNECT;
    let mut outcome = rustix::net::connect(&socket, address);
    while outcome == Err(Errno::INPROGRESS) {
        if is_over() || Instant::now() >= until {
            return Err(Error::new(ErrorKind::TimedOut, "connection timed out"));
        }
        let slice = Timespec {
            tv_sec: 0,
            tv_nsec: SLICE.as_nanos() as i64,
        };
        match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&slice)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => outcome = socket_error(&socket)?,
            Err(error) => return Err(error.into()),
        }
    }
    outcome?;
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// The router's side of TLS.
fn client(settings: &TlsSettings) -> Result<ClientConnection, Error> {
    let said = |what: &str, error: &dyn std::fmt::Display| Error::other(format!("{what}: {error}"));
    let mut roots = RootCertStore::empty();
    let path = settings.roots.display();
    for certificate in CertificateDer::pem_file_iter(&settings.roots)
        .map_err(|error| said(&path.to_string(), &error))?
    {
        let certificate = certificate.map_err(|error| said(&path.to_string(), &error))?;
        roots
            .add(certificate)
            .map_err(|error| said(&path.to_string(), &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::other)?;
    let builder = builder.with_root_certificates(roots);
    let config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let read = CertificateDer::pem_file_iter(chain)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = read.map_err(|error| said(&chain.display().to_string(), &error))?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| said(&key.display().to_string(), &error))?;
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(Error::other)?
        }
    };
    let name = ServerName::try_from(settings.name.clone())
        .map_err(|error| said(&settings.name, &error))?;
    ClientConnection::new(Arc::new(config), name).map_err(Error::other)
}
