//! A collector behind a stream: a bounded queue, and a thread that connects and writes.
//!
//! Messages are numbered and dated when they are written: numbers begin at 0 with each connection (RFC 7011, 10.4.3).
//! A connection begins with the templates and options of the last refresh. A message that was not written whole when the
//! connection broke is written again on the next one; what the kernel had taken whole counts as sent.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{CollectorStats, Load, TlsSettings, lock};

/// A collector that does not answer is given up after this time.
const CONNECT: Duration = Duration::from_secs(5);
/// The first rest between two tries, and the longest.
const RESTS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// How long a call may keep the thread from seeing that it has to end.
const SLICE: Duration = Duration::from_millis(100);

/// A message without its number.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) octets: Vec<u8>,
    pub(super) records: u32,
    pub(super) load: Load,
}

struct Queue {
    messages: VecDeque<Message>,
    octets: usize,
    most: usize,
    preamble: Vec<Message>,
    /// The end, and until when what is left may go out.
    end: Option<Instant>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    stats: Mutex<CollectorStats>,
}

impl Shared {
    fn ended(&self) -> Option<Instant> {
        lock(&self.queue).end
    }

    /// Whether it is over, and what is left is lost.
    fn is_over(&self) -> bool {
        self.ended().is_some_and(|until| Instant::now() >= until)
    }

    fn rest(&self, time: Duration) {
        let queue = lock(&self.queue);
        if queue.end.is_none() {
            drop(self.wake.wait_timeout(queue, time).map_err(PoisonError::into_inner));
        }
    }
}

/// The queue and its thread, from the exporter's side.
pub(super) struct Link {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Link {
    /// Starts the thread; it connects when it has a preamble.
    pub(super) fn start(address: SocketAddr, tls: Option<TlsSettings>, most: usize) -> Link {
        let queue = Queue { messages: VecDeque::new(), octets: 0, most, preamble: Vec::new(), end: None };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), wake: Condvar::new(), stats: Mutex::default() });
        let writer = Writer { address, tls, shared: shared.clone() };
        let started = std::thread::Builder::new().name("weir-ipfix-tcp".into()).spawn(move || writer.run());
        if let Err(error) = &started {
            lock(&shared.stats).last_error = Some(error.to_string());
        }
        Link { shared, thread: started.ok() }
    }

    /// Queues a message; `false` if there is no room, then it is not sent.
    pub(super) fn push(&self, message: Message) -> bool {
        let mut queue = lock(&self.shared.queue);
        if queue.octets + message.octets.len() > queue.most || self.thread.is_none() {
            return false;
        }
        queue.octets += message.octets.len();
        queue.messages.push_back(message);
        self.shared.wake.notify_one();
        true
    }

    /// What connections begin with from now on.
    pub(super) fn set_preamble(&self, messages: Vec<Message>) {
        lock(&self.shared.queue).preamble = messages;
        self.shared.wake.notify_one();
    }

    pub(super) fn stats(&self) -> CollectorStats {
        let mut stats = lock(&self.shared.stats).clone();
        stats.queued = lock(&self.shared.queue).octets as u64;
        stats
    }

    /// Waits until the queue is empty or the time is over; what is left then is not sent.
    pub(super) fn end(&mut self, until: Instant) {
        lock(&self.shared.queue).end = Some(until);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut queue = lock(&self.shared.queue);
        let mut stats = lock(&self.shared.stats);
        queue.messages.drain(..).for_each(|message| stats.not_sent.add(message.load));
        (queue.octets, stats.connected) = (0, false);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

/// The thread.
struct Writer {
    address: SocketAddr,
    tls: Option<TlsSettings>,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(self) {
        let (mut rest, mut in_hand) = (RESTS.0, None);
        while !self.shared.is_over() {
            if lock(&self.shared.queue).preamble.is_empty() {
                if self.shared.ended().is_some() {
                    return;
                }
                self.shared.rest(SLICE);
                continue;
            }
            let outcome = self.connect().and_then(|mut wire| {
                let mut stats = lock(&self.shared.stats);
                (stats.connected, stats.connections) = (true, stats.connections + 1);
                drop(stats);
                rest = RESTS.0;
                self.session(&mut wire, &mut in_hand)
            });
            lock(&self.shared.stats).connected = false;
            let Err(error) = outcome else { break };
            self.tell(&error);
            if self.shared.ended().is_some() {
                // Once more at once is not tried: who is gone when the router ends is gone.
                break;
            }
            self.sleep(rest);
            rest = (rest * 2).min(RESTS.1);
        }
        if let Some(message) = in_hand {
            lock(&self.shared.stats).not_sent.add(message.load);
        }
    }

    /// Rests, whatever is queued meanwhile; the end ends it.
    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.shared.ended().is_none() && Instant::now() < until {
            std::thread::sleep(SLICE.min(until.saturating_duration_since(Instant::now())));
        }
    }

    fn tell(&self, error: &Error) {
        let mut stats = lock(&self.shared.stats);
        let text = error.to_string();
        if stats.last_error.as_ref() != Some(&text) {
            tracing::warn!("IPFIX collector {}: {text}; records wait in its queue", self.address);
        }
        (stats.errors, stats.last_error) = (stats.errors + 1, Some(text));
    }

    fn connect(&self) -> Result<Wire, Error> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(SLICE))?;
        stream.set_read_timeout(Some(SLICE))?;
        let Some(tls) = &self.tls else { return Ok(Wire::Plain(stream)) };
        let mut stream = StreamOwned::new(client(tls)?, stream);
        let until = Instant::now() + CONNECT;
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Err(error) if is_wait(&error) && Instant::now() < until && !self.shared.is_over() => {}
                Err(error) if is_wait(&error) => return Err(Error::new(ErrorKind::TimedOut, "no answer to the TLS handshake")),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        Ok(Wire::Tls(Box::new(stream)))
    }

    /// Writes until the connection breaks (an error) or all is done at the end.
    fn session(&self, wire: &mut Wire, in_hand: &mut Option<Message>) -> Result<(), Error> {
        let mut sequence = 0_u32;
        let preamble = lock(&self.shared.queue).preamble.clone();
        for message in preamble {
            self.write(wire, &mut sequence, message.octets, message.records, Load::default())?;
        }
        loop {
            if in_hand.is_none() {
                *in_hand = self.next(wire)?;
            }
            let Some(message) = in_hand.as_ref() else { return Ok(()) };
            wire.check()?;
            self.write(wire, &mut sequence, message.octets.clone(), message.records, message.load)?;
            *in_hand = None;
        }
    }

    /// The next message; `None` at the end. Looks meanwhile whether the collector is still there.
    fn next(&self, wire: &mut Wire) -> Result<Option<Message>, Error> {
        loop {
            let mut queue = lock(&self.shared.queue);
            if let Some(message) = queue.messages.pop_front() {
                queue.octets -= message.octets.len();
                return Ok(Some(message));
            }
            if queue.end.is_some() {
                return Ok(None);
            }
            drop(self.shared.wake.wait_timeout(queue, SLICE).map_err(PoisonError::into_inner));
            wire.check()?;
        }
    }

    fn write(&self, wire: &mut Wire, sequence: &mut u32, mut octets: Vec<u8>, records: u32, load: Load) -> Result<(), Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as u32;
        for (at, word) in [(4, now), (8, *sequence)] {
            if let Some(place) = octets.get_mut(at..at + 4) {
                place.copy_from_slice(&word.to_be_bytes());
            }
        }
        wire.write_all(&octets, || self.shared.is_over())?;
        *sequence = sequence.wrapping_add(records);
        let mut stats = lock(&self.shared.stats);
        stats.messages += 1;
        stats.message_octets += octets.len() as u64;
        stats.records += u64::from(records);
        stats.sent.add(load);
        Ok(())
    }
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

fn is_wait(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Wire {
    /// Writes all of it, however slowly the other side reads; gives up when `is_over`.
    fn write_all(&mut self, mut octets: &[u8], is_over: impl Fn() -> bool) -> Result<(), Error> {
        let given_up = || Error::new(ErrorKind::TimedOut, "the collector does not read");
        while !octets.is_empty() {
            let written = match self {
                Wire::Plain(stream) => stream.write(octets),
                Wire::Tls(stream) => stream.write(octets),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => octets = octets.get(count..).unwrap_or(&[]),
                Err(error) if is_wait(&error) && is_over() => return Err(given_up()),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Wire::Tls(stream) = self else { return Ok(()) };
        while let Err(error) = stream.flush() {
            match is_wait(&error) {
                true if is_over() => return Err(given_up()),
                true => {}
                false => return Err(error),
            }
        }
        Ok(())
    }

    /// An error if the collector closed the connection. It has nothing to say otherwise, and is not listened to.
    fn check(&mut self) -> Result<(), Error> {
        let gone = || Error::new(ErrorKind::ConnectionAborted, "the collector closed the connection");
        let mut octets = [0; 512];
        let socket = match self {
            Wire::Plain(stream) => &*stream,
            Wire::Tls(stream) => &stream.sock,
        };
        socket.set_nonblocking(true)?;
        let read = match self {
            Wire::Plain(stream) => stream.read(&mut octets),
            Wire::Tls(stream) => stream.read(&mut octets),
        };
        match self {
            Wire::Plain(stream) => stream.set_nonblocking(false)?,
            Wire::Tls(stream) => stream.sock.set_nonblocking(false)?,
        }
        match read {
            Ok(0) => Err(gone()),
            Ok(_) => Ok(()),
            Err(error) if is_wait(&error) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(gone()),
            Err(error) => Err(error),
        }
    }
}

/// The router's side of TLS.
fn client(settings: &TlsSettings) -> Result<ClientConnection, Error> {
    let said = |what: &str, error: &dyn std::fmt::Display| Error::other(format!("{what}: {error}"));
    let mut roots = RootCertStore::empty();
    let path = settings.roots.display();
    for certificate in CertificateDer::pem_file_iter(&settings.roots).map_err(|error| said(&path.to_string(), &error))? {
        let certificate = certificate.map_err(|error| said(&path.to_string(), &error))?;
        roots.add(certificate).map_err(|error| said(&path.to_string(), &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(Error::other)?;
    let builder = builder.with_root_certificates(roots);
    let config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let read = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certificates = read.map_err(|error| said(&chain.display().to_string(), &error))?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| said(&key.display().to_string(), &error))?;
            builder.with_client_auth_cert(certificates, key).map_err(Error::other)?
        }
    };
    let name = ServerName::try_from(settings.name.clone()).map_err(|error| said(&settings.name, &error))?;
    ClientConnection::new(Arc::new(config), name).map_err(Error::other)
}
