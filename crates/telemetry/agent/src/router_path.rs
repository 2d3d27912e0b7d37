//! The router's own forwarding as a path for datagrams to collectors.
//!
//! A collector is often reached through the router's own ports, of which the kernel knows nothing. Datagrams for such a
//! collector leave from an address of the router and are routed by one of its tables, as packets that the router makes. The agent's and
//! the exporter's threads hand them over and never wait: what the bounded queue to the worker has no room for is refused, counted
//! by the caller.
//!
//! Which path a datagram takes is decided by [`RouterPath::source`], again and again, since routes come and go: through the
//! router if it has an address to send from and a route, else through the host. This file has the interface only; the assembly
//! of the router implements it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A datagram that the router is to forward.
#[derive(Clone, Copy, Debug)]
pub struct RoutedDatagram<'a> {
    /// The table that routes it; the default one when absent.
    pub table: Option<&'a str>,
    /// Where it comes from: an address of the router, and a port.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Its class (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Its payload.
    pub payload: &'a [u8],
}

/// The router's forwarding, for those who send datagrams.
pub trait RouterPath: Send + Sync {
    /// The address from which the router would send to `destination` by a table: `wanted` if it is the router's own there.
    ///
    /// # Errors
    /// Why it would not: no such table, no route, no such address.
    fn source(
        &self,
        table: Option<&str>,
        wanted: Option<IpAddr>,
        destination: IpAddr,
    ) -> Result<IpAddr, String>;

    /// Hands a datagram over.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the queue is full; others when it cannot be sent at all.
    fn send(&self, datagram: &RoutedDatagram<'_>) -> io::Result<()>;
}

/// A router's path, or none: then all datagrams leave through the host.
#[derive(Clone, Default)]
pub struct RouterPathRef(pub Option<Arc<dyn RouterPath>>);

impl fmt::Debug for RouterPathRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "RouterPath"
        } else {
            "None"
        })
    }
}

/// A router has one path, so that it does not tell one collector from another.
impl PartialEq for RouterPathRef {
    fn eq(&self, _other: &RouterPathRef) -> bool {
        true
    }
}

impl Eq for RouterPathRef {}
