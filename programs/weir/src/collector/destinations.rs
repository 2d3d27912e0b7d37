//! Hosts that datagrams are passed on to.
//!
//! Each has a socket of its own, connected, so that a refusal is that host's alone. What cannot be sent is
//! counted and reported once at the end: a collector that is down must not stop those that are not.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use crate::failure::Failure;

/// All of them.
#[derive(Clone)]
pub(crate) struct Destinations(Vec<Destination>);

#[derive(Clone)]
struct Destination {
    address: SocketAddr,
    socket: Arc<UdpSocket>,
    sent: u64,
    failed: u64,
}

impl Destinations {
    /// Finds the hosts.
    pub(crate) fn new(hosts: &[(String, u16)]) -> Result<Destinations, Failure> {
        let connected = |(host, port): &(String, u16)| {
            let failed =
                |error: std::io::Error| Failure::said(format_args!("{host}/{port}: {error}"));
            let found = (host.as_str(), *port)
                .to_socket_addrs()
                .map_err(failed)?
                .next();
            let address =
                found.ok_or_else(|| Failure::said(format_args!("{host} has no address")))?;
            let any: SocketAddr = if address.is_ipv4() {
                (Ipv4Addr::UNSPECIFIED, 0).into()
            } else {
                (Ipv6Addr::UNSPECIFIED, 0).into()
            };
            let socket = UdpSocket::bind(any).map_err(failed)?;
            socket.connect(address).map_err(failed)?;
            Ok(Destination {
                address,
                socket: Arc::new(socket),
                sent: 0,
                failed: 0,
            })
        };
        Ok(Destinations(
            hosts
                .iter()
                .map(connected)
                .collect::<Result<_, Failure>>()?,
        ))
    }

    /// Sends something to all of them.
    pub(crate) fn send(&mut self, datagram: &[u8]) {
        for destination in &mut self.0 {
            // A refusal is the echo of an earlier datagram, and is reported instead of sending this one.
            let outcome = destination.socket.send(datagram).or_else(|_| {
                destination.failed += 1;
                destination.socket.send(datagram)
            });
            match outcome {
                Ok(_) => destination.sent += 1,
                Err(_) => destination.failed += 1,
            }
        }
    }

    /// Says what did not arrive.
    pub(crate) fn tell(&self, what: &str) {
        for Destination {
            address,
            sent,
            failed,
            ..
        } in self.0.iter().filter(|destination| destination.failed > 0)
        {
            let _ = writeln!(
                std::io::stderr(),
                "weir: {address}: {failed} of {} {what} were refused",
                sent + failed
            );
        }
    }
}
