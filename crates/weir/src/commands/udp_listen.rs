//! Receiving datagrams until Ctrl-C or SIGTERM.
//!
//! One thread, one socket; each datagram goes to a function of the caller. The socket of all
//! addresses takes IPv4 and IPv6 alike, and IPv4 alone on a machine without IPv6.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// The largest UDP datagram (RFC 768: a length of 16 bits).
const LARGEST: usize = 65_535;

/// Hands each datagram received at `address` to `each`, until a signal ends it or `each` fails.
/// `ready` hears the address that is really listened on.
pub(crate) fn listen(
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
    mut each: impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::said(format_args!("cannot listen on {address}: {}", advice(&error)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let socket = bind(address).await.map_err(failed)?;
        ready(socket.local_addr().map_err(failed)?);
        let mut buffer = vec![0; LARGEST];
        loop {
            let (length, from) = tokio::select! {
                biased;
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                received = socket.recv_from(&mut buffer) => received.map_err(failed)?,
            };
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            each(from, buffer.get(..length).unwrap_or_default())?;
        }
    })
}

async fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let all_addresses = address.is_ipv6() && address.ip().is_unspecified();
    match UdpSocket::bind(address).await {
        // Whatever a machine without IPv6 says; these two would be said of IPv4 as well.
        Err(error) if all_addresses && !matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) => {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        outcome => outcome,
    }
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "the port is in use (by another collector? `ss -ulpn` tells)".to_owned(),
        ErrorKind::PermissionDenied => "not allowed (ports below 1024 need root)".to_owned(),
        ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Sender;

    use super::*;

    /// Sends `datagrams` once the socket is ready; gives what was received of them.
    fn received(listen_on: &str, send_to: &str, datagrams: &'static [&'static [u8]]) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut heard = Vec::new();
        let send_to: std::net::IpAddr = send_to.parse().unwrap();
        let ready = |address: SocketAddr| {
            let own = if send_to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let sender = Sender::bind(own).unwrap();
            for datagram in datagrams {
                sender.send_to(datagram, (send_to, address.port())).unwrap();
            }
        };
        let outcome = listen(listen_on.parse().unwrap(), ready, |from, datagram| {
            heard.push((from, datagram.to_vec()));
            if heard.len() == datagrams.len() { Err(Failure::Told(9)) } else { Ok(()) }
        });
        assert!(matches!(outcome, Err(Failure::Told(9))), "{outcome:?}");
        heard
    }

    #[test]
    fn datagrams_of_both_families_arrive_whole_and_in_order() {
        static DATAGRAMS: &[&[u8]] = &[b"one", b"", &[7; 9000]];
        for (listen_on, send_to) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            if listen_on == "[::1]:0" && Sender::bind(listen_on).is_err() {
                eprintln!("skipped: this machine has no IPv6");
                continue;
            }
            let heard = received(listen_on, send_to, DATAGRAMS);
            assert!(heard.iter().map(|(_, datagram)| datagram.as_slice()).eq(DATAGRAMS.iter().copied()), "{listen_on}");
            assert!(heard.iter().all(|(from, _)| from.ip().to_string() == send_to), "{heard:?}");
        }
    }

    #[test]
    fn a_port_in_use_is_told() {
        let taken = Sender::bind("127.0.0.1:0").unwrap();
        let outcome = listen(taken.local_addr().unwrap(), |_| (), |_, _| Ok(()));
        let Err(Failure::Said(sentence)) = outcome else { panic!("{outcome:?}") };
        assert!(sentence.ends_with("the port is in use (by another collector? `ss -ulpn` tells)"), "{sentence}");
    }
}
