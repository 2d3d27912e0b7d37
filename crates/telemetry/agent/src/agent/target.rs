//! Where a collector is, and the way to a socket for it.
//!
//! A collector has a host by address or by name, and may have a network namespace, a source address, a
//! DSCP and a device (a VRF's) of its own. Opening is done on a thread that ends: only a thread can enter a
//! namespace, and looking up a name may take as long as it takes. The agent asks for a socket and goes on;
//! it looks for the answer later. Names mean what they mean to the router: a namespace has no resolver of
//! its own.
//!
//! A socket keeps its namespace alive, also when nobody can find that any more. So whoever sends through
//! one asks now and then whether the namespace of that name is still the same.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use weir_netlink::netns::NetNs;
use weir_netlink::socket::{bind_to_device, send_segments};

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
        }
    }

    /// Its address, unless it has a name.
    fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Where it is, unless it has a name.
    pub(super) fn known(&self) -> Option<SocketAddr> {
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
    pub(super) fn open(&self) -> io::Result<Opened> {
        self.open_one_of(&self.addresses()?)
    }

    /// Its addresses now, of the version that goes with the source.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| told(&self.host, "cannot be looked up", &error))?;
        Ok(found
            .filter(|address| {
                self.source
                    .is_none_or(|source| source.is_ipv4() == address.is_ipv4())
            })
            .collect())
    }

    fn open_one_of(&self, found: &[SocketAddr]) -> io::Result<Opened> {
        let nowhere = || {
            io::Error::other(format!(
                "{} has no address of the source's IP version",
                self.host
            ))
        };
        let address = *found.first().ok_or_else(nowhere)?;
        let Some(name) = &self.namespace else {
            return Ok(Opened {
                socket: self.connected(address)?,
                address,
                cuts: true,
                namespace: None,
            });
        };
        let gone = |error: weir_netlink::Error| io::Error::other(error.to_string());
        let namespace = NetNs::open_named(name).map_err(gone)?;
        let socket = namespace.run(|| self.connected(address)).map_err(gone)??;
        Ok(Opened {
            socket,
            address,
            cuts: true,
            namespace: Some(namespace.inode().map_err(gone)?),
        })
    }

    /// A socket of the calling thread's namespace. The device comes first: an address may be one only there.
    fn connected(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        let (family, any) = match address {
            SocketAddr::V4(_) => (AddressFamily::INET, IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (AddressFamily::INET6, IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        };
        let socket = socket_with(
            family,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        if let Some(device) = &self.device {
            bind_to_device(&socket, device)
                .map_err(|error| told(device, "cannot be sent through", &error))?;
        }
        let source = SocketAddr::new(self.source.unwrap_or(any), 0);
        bind(&socket, &source).map_err(|error| {
            told(
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
        connect(&socket, &address)?;
        Ok(socket.into())
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

/// A socket that is connected, and what tells whether it is still the right one.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
    /// Whether the kernel cuts pieces into datagrams on this way.
    cuts: bool,
    /// Which namespace it is in. It cannot be another's number as long as the socket lives.
    namespace: Option<u64>,
}

impl Opened {
    /// Sends datagrams of one length, but for the last, which may be shorter: all in one call where that goes, else the
    /// first. Returns how many octets the kernel took.
    pub(super) fn send(&mut self, octets: &[u8], length: usize) -> io::Result<usize> {
        // There are devices, and paths with a small MTU, for which the kernel cuts nothing.
        const CANNOT: [Errno; 4] = [Errno::IO, Errno::INVAL, Errno::MSGSIZE, Errno::OPNOTSUPP];
        if octets.len() > length && self.cuts {
            match send_segments(&self.socket, octets, length) {
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
        self.socket.send(first).map(|_| first.len())
    }

    /// Whether its namespace is still the one that the name stands for.
    pub(super) fn is_current(&self, target: &Target) -> bool {
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
pub(super) struct Opening<T>(Receiver<io::Result<T>>);

impl<T> Opening<T> {
    /// What became of it, once that is known.
    pub(super) fn outcome(&self) -> Option<io::Result<T>> {
        match self.0.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(io::Error::other("the thread that opens sockets ended")))
            }
        }
    }
}

fn told(whom: &str, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{whom} {what}: {error}"))
}
