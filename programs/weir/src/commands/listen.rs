//! Receiving datagrams, and messages of streams, until Ctrl-C or SIGTERM.
//!
//! One thread; each message goes to a function of the caller. The socket of all addresses takes IPv4 and IPv6 alike, and IPv4 alone
//! on a machine without IPv6. Streams are IPFIX over TCP (RFC 7011, 10.4): so many at once, the others wait in the kernel, and none is
//! read faster than its messages are taken.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// The largest UDP datagram (RFC 768: a length of 16 bits).
const LARGEST: usize = 65_535;
/// Streams that are read at once.
const MOST_STREAMS: usize = 64;
/// Messages of streams that wait.
const MOST_WAITING: usize = 64;
/// The header of a message, and its version (RFC 7011, 3.1).
const HEADER: u16 = 16;
const VERSION: u16 = 10;
/// What TLS begins with: a handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

const CUT_OFF: &str = "it ended within a message";

/// What is heard.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// A datagram, or a message of a stream, from there.
    Message(SocketAddr, &'a [u8]),
    /// A stream that cannot be read on, and why.
    Broken(SocketAddr, String),
}

/// A message of the stream from there, or why there is none.
type FromStream = (SocketAddr, Result<Vec<u8>, String>);

/// Hands each datagram received at `address` to `each`, until a signal ends it or `each` fails.
/// `ready` hears the address that is really listened on.
pub(crate) fn datagrams(
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
    mut each: impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    hear(address, false, ready, |heard| match heard {
        Heard::Message(from, bytes) => each(from, bytes),
        Heard::Broken(..) => Ok(()),
    })
}

/// The same with the messages of streams to the same port.
pub(crate) fn flow_messages(
    address: SocketAddr,
    ready: impl FnOnce(SocketAddr),
    each: impl FnMut(Heard<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    hear(address, true, ready, each)
}

fn hear(
    address: SocketAddr,
    with_streams: bool,
    ready: impl FnOnce(SocketAddr),
    mut each: impl FnMut(Heard<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::said(format_args!(
            "cannot listen on {address}: {}",
            advice(&error)
        ))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let socket = bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let listener = if with_streams { Some(TcpListener::bind(address).await.map_err(failed)?) } else { None };
        ready(address);
        let (sender, mut messages) = mpsc::channel::<FromStream>(MOST_WAITING);
        let (mut streams, mut buffer) = (JoinSet::new(), vec![0; LARGEST]);
        loop {
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                received = socket.recv_from(&mut buffer) => {
                    let (length, from) = received.map_err(failed)?;
                    each(Heard::Message(canonical(from), buffer.get(..length).unwrap_or_default()))?;
                }
                Some((from, message)) = messages.recv() => each(match &message {
                    Ok(bytes) => Heard::Message(from, bytes),
                    Err(why) => Heard::Broken(from, String::clone(why)),
                })?,
                accepted = accept(listener.as_ref()), if streams.len() < MOST_STREAMS => match accepted {
                    Ok((stream, from)) => {
                        streams.spawn(read_stream(stream, canonical(from), sender.clone()));
                    }
                    // Somebody who went away at once, or no more file descriptors.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = streams.join_next() => {}
            }
        }
    })
}

fn canonical(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), from.port())
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Sends the messages of a stream on until it ends.
async fn read_stream(stream: TcpStream, from: SocketAddr, to: mpsc::Sender<FromStream>) {
    while let Some(message) = read_message(&stream).await.transpose() {
        let is_last = message.is_err();
        if to.send((from, message)).await.is_err() || is_last {
            return;
        }
    }
}

/// The next message of a stream; `None` at its end.
async fn read_message(stream: &TcpStream) -> Result<Option<Vec<u8>>, String> {
    let mut head = [0; 4];
    match fill(stream, &mut head).await? {
        0 => return Ok(None),
        4 => {}
        _ => return Err(CUT_OFF.to_owned()),
    }
    let [first, second, third, fourth] = head;
    let (version, length) = (
        u16::from_be_bytes([first, second]),
        u16::from_be_bytes([third, fourth]),
    );
    if first == HANDSHAKE {
        return Err("it speaks TLS, which is not heard here".to_owned());
    }
    if version != VERSION || length < HEADER {
        return Err(format!(
            "no IPFIX: version {version}, a message of {length} octets"
        ));
    }
    let mut bytes = vec![0; length.into()];
    let (begin, rest) = bytes.split_at_mut(head.len());
    begin.copy_from_slice(&head);
    if fill(stream, rest).await? < rest.len() {
        Err(CUT_OFF.to_owned())
    } else {
        Ok(Some(bytes))
    }
}

/// Reads until `buffer` is full or the stream ends; how much that was.
async fn fill(stream: &TcpStream, buffer: &mut [u8]) -> Result<usize, String> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        stream.readable().await.map_err(|error| error.to_string())?;
        match stream.try_read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(filled)
}

async fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let all_addresses = address.is_ipv6() && address.ip().is_unspecified();
    match UdpSocket::bind(address).await {
        // Whatever a machine without IPv6 says; these two would be said of IPv4 as well.
        Err(error)
            if all_addresses
                && !matches!(
                    error.kind(),
                    ErrorKind::AddrInUse | ErrorKind::PermissionDenied
                ) =>
        {
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        outcome => outcome,
    }
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "the port is in use (by another collector? `ss -tulpn` tells)".to_owned()
        }
        ErrorKind::PermissionDenied => "not allowed (ports below 1024 need root)".to_owned(),
        ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Sender;

    use super::*;

    /// Sends these once the socket is ready; gives what was received of them.
    fn received(
        listen_on: &str,
        send_to: &str,
        sent: &'static [&'static [u8]],
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut heard = Vec::new();
        let send_to: std::net::IpAddr = send_to.parse().unwrap();
        let ready = |address: SocketAddr| {
            let own = if send_to.is_ipv4() {
                "127.0.0.1:0"
            } else {
                "[::1]:0"
            };
            let sender = Sender::bind(own).unwrap();
            for datagram in sent {
                sender.send_to(datagram, (send_to, address.port())).unwrap();
            }
        };
        let outcome = datagrams(listen_on.parse().unwrap(), ready, |from, datagram| {
            heard.push((from, datagram.to_vec()));
            if heard.len() == sent.len() {
                Err(Failure::Reported(9))
            } else {
                Ok(())
            }
        });
        assert!(matches!(outcome, Err(Failure::Reported(9))), "{outcome:?}");
        heard
    }

    #[test]
    fn datagrams_of_both_families_arrive_whole_and_in_order() {
        static DATAGRAMS: &[&[u8]] = &[b"one", b"", &[7; 9000]];
        for (listen_on, send_to) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::]:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
        ] {
            if listen_on == "[::1]:0" && Sender::bind(listen_on).is_err() {
                eprintln!("skipped: this machine has no IPv6");
                continue;
            }
            let heard = received(listen_on, send_to, DATAGRAMS);
            assert!(
                heard
                    .iter()
                    .map(|(_, datagram)| datagram.as_slice())
                    .eq(DATAGRAMS.iter().copied()),
                "{listen_on}"
            );
            assert!(
                heard
                    .iter()
                    .all(|(from, _)| from.ip().to_string() == send_to),
                "{heard:?}"
            );
        }
    }

    #[test]
    fn a_port_in_use_is_reported() {
        let taken = Sender::bind("127.0.0.1:0").unwrap();
        let outcome = datagrams(taken.local_addr().unwrap(), |_| (), |_, _| Ok(()));
        let Err(Failure::Said(sentence)) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            sentence.ends_with("the port is in use (by another collector? `ss -tulpn` tells)"),
            "{sentence}"
        );
    }

    /// Messages of several streams beside datagrams, in pieces; and streams that are not what they should be.
    #[test]
    fn streams_are_cut_into_their_messages() {
        use std::io::Write;
        let message = |filling: u8, length: u16| {
            let mut message = vec![filling; length.into()];
            message[..4].copy_from_slice(&[0, 10, (length >> 8) as u8, length as u8]);
            message
        };
        let (mut whole, mut broken) = (Vec::new(), Vec::new());
        let mut senders = Vec::new();
        let (one, two, three) = (message(1, 16), message(2, 65_535), message(3, 400));
        let expected = [one.clone(), two.clone(), three.clone()];
        let ready = |address: SocketAddr| {
            let connect = || std::net::TcpStream::connect(address).unwrap();
            senders.push(std::thread::spawn({
                let (mut stream, all) = (connect(), [one.as_slice(), &two].concat());
                move || {
                    for piece in [&all[..3], &all[3..19], &all[19..]] {
                        stream.write_all(piece).unwrap();
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }));
            Sender::bind("127.0.0.1:0")
                .unwrap()
                .send_to(&three, address)
                .unwrap();
            let wrong: [&[u8]; 4] = [
                &[22, 3, 1, 2, 0, 1],
                &[0, 9, 0, 20],
                &[0, 10, 0, 15],
                &three[..100],
            ];
            for bytes in wrong {
                connect().write_all(bytes).unwrap();
            }
        };
        let outcome = flow_messages("127.0.0.1:0".parse().unwrap(), ready, |heard| {
            match heard {
                Heard::Message(_, bytes) => whole.push(bytes.to_vec()),
                Heard::Broken(_, why) => broken.push(why),
            }
            if whole.len() + broken.len() == 7 {
                Err(Failure::Reported(9))
            } else {
                Ok(())
            }
        });
        assert!(matches!(outcome, Err(Failure::Reported(9))), "{outcome:?}");
        whole.sort_by_key(|message| message.get(4).copied());
        broken.sort();
        assert!(whole.iter().eq(&expected), "{} messages", whole.len());
        let said = [
            "it ended within a message",
            "it speaks TLS, which is not heard here",
            "no IPFIX: version 10, a message of 15 octets",
            "no IPFIX: version 9, a message of 20 octets",
        ];
        assert_eq!(broken, said);
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
    }
}
