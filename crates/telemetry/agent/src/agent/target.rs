//! Where a collector is, and the way to a socket for it.
//!
//! A collector has a host by address or by name, and may have a network namespace, a source address, a
//! DSCP and a device (a VRF's) of its own. Datagrams leave through the router's own forwarding when it has a route and an address
//! to send from ([`crate::router_path`]), unless the collector is to be reached through the host.
//! Opening is done on a thread that ends: only a thread can enter a
//! namespace, and looking up a name may take as long as it takes. The agent asks for a socket and goes on;
//! it looks for the answer later. Names mean what they mean to the router: a namespace has no resolver of
//! its own.
//!
//! A socket keeps its namespace alive, also when nobody can find that any more. So whoever sends through
//! one asks now and then whether the namespace of that name is still the same.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use weir_netlink::netns::NetNs;
use weir_netlink::socket::{bind_to_device, send_segments};

use crate::router_path::{RoutedDatagram, RouterPath, RouterPathRef};

/// A collector as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address or its name.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
    /// The network namespace it is reached from, as `ip netns` names it; the router's own when absent.
    pub namespace: Option<String>,
    /// The address that datagrams come from; the kernel's choice when absent.
    pub source: Option<IpAddr>,
    /// The class of the datagrams (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The device that they leave by: a VRF's or any other.
    pub device: Option<String>,
    /// The router's table that routes them; with it they never leave through the host.
    pub table: Option<String>,
    /// Whether they leave through the host, whatever the router's routes say.
    pub through_host: bool,
    /// The router's forwarding.
    pub router: RouterPathRef,
}

impl Target {
    /// One of which no more is known than who it is.
    #[must_use]
    pub fn new(host: String, port: u16) -> Target {
        Target {
            host,
            port,
            namespace: None,
            source: None,
            dscp: 0,
            device: None,
            table: None,
            through_host: false,
            router: RouterPathRef::default(),
        }
    }

    /// Its address, unless it has a name.
    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Where it is, unless it has a name.
    pub(crate) fn known(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.address()?, self.port))
    }

    /// Whether it can be opened at once, by the calling thread: nothing to look up, nowhere to go.
    pub(super) fn is_at_hand(&self) -> bool {
        self.namespace.is_none() && self.is_numeric()
    }

    /// Whether there is no name to be looked up.
    pub(super) fn is_numeric(&self) -> bool {
        self.address().is_some()
    }

    /// The router's path to an address, and the source address there; `None` for the host's.
    ///
    /// # Errors
    /// When a table is wanted that has no route or no address to send from.
    fn routed(&self, address: IpAddr) -> io::Result<Option<(Arc<dyn RouterPath>, IpAddr)>> {
        let is_host_only = self.through_host
            || self.namespace.is_some()
            || self.device.is_some()
            || address.is_loopback();
        let Some(router) = self.router.0.as_ref().filter(|_| !is_host_only) else {
            return Ok(None);
        };
        match router.source(self.table.as_deref(), self.source, address) {
            Ok(source) => Ok(Some((router.clone(), source))),
            Err(_) if self.table.is_none() => Ok(None),
            Err(reason) => Err(io::Error::other(reason)),
        }
    }

    /// Looks its addresses up, on a thread of its own if it has a name.
    pub(crate) fn look_up(&self) -> io::Result<Opening<Vec<SocketAddr>>> {
        if let Some(address) = self.known() {
            let (answer, opening) = channel();
            let _ = answer.send(Ok(vec![address]));
            return Ok(Opening(opening));
        }
        let target = self.clone();
        elsewhere(move || {
            let found = target.addresses()?;
            match found.is_empty() {
                true => Err(target.nowhere()),
                false => Ok(found),
            }
        })
    }

    fn nowhere(&self) -> io::Error {
        let host = &self.host;
        io::Error::other(format!("{host} has no address of the source's IP version"))
    }

    /// Opens a socket on a thread of its own.
    pub(super) fn open_elsewhere(&self) -> io::Result<Opening<Opened>> {
        let target = self.clone();
        elsewhere(move || target.open())
    }

    /// Looks the name up again, on a thread of its own, and opens a socket if `known` is none of its addresses any more.
    pub(super) fn follow_elsewhere(
        &self,
        known: SocketAddr,
    ) -> io::Result<Opening<Option<Opened>>> {
        let target = self.clone();
        elsewhere(move || {
            let found = target.addresses()?;
            // Name servers tell several addresses in turn: the one that is known is as good as the first.
            if found.contains(&known) {
                Ok(None)
            } else {
                target.open_one_of(&found).map(Some)
            }
        })
    }

    /// Opens a socket.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        self.open_one_of(&self.addresses()?)
    }

    /// Its addresses now, of the version that goes with the source.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| describe(&self.host, "cannot be looked up", &error))?;
        Ok(found
            .filter(|address| {
                self.source
                    .is_none_or(|source| source.is_ipv4() == address.is_ipv4())
            })
            .collect())
    }

    fn open_one_of(&self, found: &[SocketAddr]) -> io::Result<Opened> {
        let address = *found.first().ok_or_else(|| self.nowhere())?;
        if let Some((router, source)) = self.routed(address.ip())? {
            return Ok(Opened {
                channel: Channel::Router { router, source },
                address,
                cuts: false,
                namespace: None,
            });
        }
        let Some(name) = &self.namespace else {
            return Ok(Opened {
                channel: Channel::Socket(self.connected(address)?),
                address,
                cuts: true,
                namespace: None,
            });
        };
        let gone = |error: weir_netlink::Error| io::Error::other(error.to_string());
        let namespace = NetNs::open_named(name).map_err(gone)?;
        let socket = namespace.run(|| self.connected(address)).map_err(gone)??;
        Ok(Opened {
            channel: Channel::Socket(socket),
            address,
            cuts: true,
            namespace: Some(namespace.inode().map_err(gone)?),
        })
    }

    /// A stream socket for an address, which is not connected yet. Streams leave through the host.
    pub(crate) fn stream(&self, address: &SocketAddr) -> io::Result<OwnedFd> {
        let Some(name) = &self.namespace else {
            return self.bound(*address, SocketType::STREAM);
        };
        let gone = |error: weir_netlink::Error| io::Error::other(error.to_string());
        let namespace = NetNs::open_named(name).map_err(gone)?;
        namespace
            .run(|| self.bound(*address, SocketType::STREAM))
            .map_err(gone)?
    }

    /// A datagram socket of the calling thread's namespace.
    fn connected(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        let socket = self.bound(address, SocketType::DGRAM)?;
        connect(&socket, &address)?;
        Ok(socket.into())
    }

    /// A socket of the calling thread's namespace. The device comes first: an address may be one only there.
    fn bound(&self, address: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
        let (family, any) = match address {
            SocketAddr::V4(_) => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        };
        let socket = socket_with(
            family,
            kind,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        if let Some(device) = &self.device {
            bind_to_device(&socket, device)
                .map_err(|error| describe(device, "cannot be sent through", &error))?;
        }
        let source = SocketAddr::new(self.source.unwrap_or(any), 0);
        bind(&socket, &source).map_err(|error| {
            describe(
                &source.ip().to_string(),
                "cannot be sent from",
                &error.into(),
            )
        })?;
        if self.dscp != 0 {
            // The upper six bits of the octet (RFC 2474 section 3).
            let class = (self.dscp & 0x3f) << 2;
            if address.is_ipv4() {
                sockopt::set_ip_tos(&socket, class)?
            } else {
                sockopt::set_ipv6_tclass(&socket, class.into())?
            }
        }
        Ok(socket)
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Target {
        Target::new(address.ip().to_string(), address.port())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Some(address) => write!(f, "{}", SocketAddr::new(address, self.port))?,
            None => write!(f, "{}:{}", self.host, self.port)?,
        }
        self.namespace
            .as_ref()
            .map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

/// What datagrams go through.
enum Channel {
    /// The host: a socket that is connected.
    Socket(UdpSocket),
    /// The router's own forwarding, from this address.
    Router {
        router: Arc<dyn RouterPath>,
        source: IpAddr,
    },
}

/// The port that routed datagrams come from: one of those that nobody registers (RFC 6335, 6).
const SOURCE_PORT: u16 = 49_343;

/// A channel to a collector, and what tells whether it is still the right one.
pub(crate) struct Opened {
    channel: Channel,
    pub(crate) address: SocketAddr,
    /// Whether the kernel cuts pieces into datagrams on this way.
    cuts: bool,
    /// Which namespace it is in. It cannot be another's number as long as the socket lives.
    namespace: Option<u64>,
}

impl Opened {
    /// Sends datagrams of one length, but for the last, which may be shorter: all in one call where that goes, else the
    /// first. Returns how many octets the kernel took.
    pub(crate) fn send(
        &mut self,
        target: &Target,
        octets: &[u8],
        length: usize,
    ) -> io::Result<usize> {
        let socket = match &self.channel {
            Channel::Socket(socket) => socket,
            Channel::Router { router, source } => {
                let payload = octets.get(..length).unwrap_or(octets);
                router.send(&RoutedDatagram {
                    table: target.table.as_deref(),
                    source: SocketAddr::new(*source, SOURCE_PORT),
                    destination: self.address,
                    dscp: target.dscp,
                    payload,
                })?;
                return Ok(payload.len());
            }
        };
        // There are devices, and paths with a small MTU, for which the kernel cuts nothing.
        const CANNOT: [Errno; 4] = [Errno::IO, Errno::INVAL, Errno::MSGSIZE, Errno::OPNOTSUPP];
        if octets.len() > length && self.cuts {
            match send_segments(socket, octets, length) {
                Err(error)
                    if CANNOT
                        .iter()
                        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) =>
                {
                    self.cuts = false
                }
                outcome => return outcome.map(|()| octets.len()),
            }
        }
        let first = octets.get(..length).unwrap_or(octets);
        socket.send(first).map(|_| first.len())
    }

    /// An error that came back for an earlier datagram.
    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.channel {
            Channel::Socket(socket) => socket.take_error(),
            Channel::Router { .. } => Ok(None),
        }
    }

    /// Whether it is still the path, and the source, that datagrams should take.
    pub(crate) fn is_on_path(&self, target: &Target) -> bool {
        match (target.routed(self.address.ip()), &self.channel) {
            (Ok(None), Channel::Socket(_)) => true,
            (Ok(Some((_, now))), Channel::Router { source, .. }) => now == *source,
            _ => false,
        }
    }

    /// Whether its namespace is still the one that the name stands for.
    pub(crate) fn is_current(&self, target: &Target) -> bool {
        match &target.namespace {
            None => true,
            Some(name) => {
                NetNs::open_named(name)
                    .and_then(|namespace| namespace.inode())
                    .ok()
                    == self.namespace
            }
        }
    }
}

/// Does it on a thread of its own, which ends with the answer; nobody may want that any more.
fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<Opening<T>> {
    let (answer, opening) = channel();
    std::thread::Builder::new()
        .name("weir-collector".into())
        .spawn(move || {
            let _ = answer.send(work());
        })?;
    Ok(Opening(opening))
}

/// A socket that is being opened.
#[derive(Debug)]
pub(crate) struct Opening<T>(Receiver<io::Result<T>>);

impl<T> Opening<T> {
    /// What became of it, once that is known.
    pub(super) fn outcome(&self) -> Option<io::Result<T>> {
        match self.0.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(ended())),
        }
    }

    /// The same for those who may wait so long.
    pub(crate) fn wait(&self, time: Duration) -> Option<io::Result<T>> {
        match self.0.recv_timeout(time) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(ended())),
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that opens sockets ended")
}

fn describe(whom: &str, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{whom} {what}: {error}"))
}
