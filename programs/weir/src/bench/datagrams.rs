//! Paced datagrams: frames of 64 bytes from one host to the other, counted on both sides.
//!
//! The sender keeps to absolute times: what is due is sent, one system call each, then it sleeps until
//! the next is due. Linux wakes it some ten microseconds late (its timer slack), so that a few
//! datagrams leave together, as with any program that paces itself; what it could not send for more than
//! 10 ms is left out, not made up for in one burst. The receiver is one blocking call
//! a datagram, with a socket buffer large enough that what is missing was lost on the way.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use weir_netlink::lab::{FAR, NEAR};

use super::cpu::{self, CpuTime};
use super::rounds::Interrupt;
use super::sentence;
use super::stage::Stage;

/// Where datagrams go.
const PORT: u16 = 5000;
/// 14 bytes of Ethernet, 20 of IPv4, 8 of UDP, these, and 4 of FCS that veth does not have: 64.
const PAYLOAD: usize = 18;
/// Bytes of a frame as a wire counts them.
pub(super) const FRAME_BYTES: u32 = 64;
/// Holds some hundred thousand small datagrams.
const RECEIVE_BUFFER: usize = 256 << 20;
/// Before the counting: tables learn, caches fill.
const WARM_UP: Duration = Duration::from_millis(200);
/// A sender that the machine kept from running makes up for so much, and leaves out the rest: a burst
/// of thousands is not the pace that was asked for.
const MOST_MADE_UP: Duration = Duration::from_millis(10);
/// Nothing has come for this long: nothing comes any more.
const SILENCE: Duration = Duration::from_millis(200);

/// One round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Datagrams that the socket took.
    pub(super) sent: u64,
    /// Datagrams that came.
    pub(super) received: u64,
    /// Sleeps of the sender.
    pub(super) bursts: u64,
    /// How long it took to send them.
    pub(super) elapsed: Duration,
    /// CPU time from the first to the last.
    pub(super) cpu: CpuTime,
    /// CPU microseconds of the sending thread.
    pub(super) sender_us: f64,
    /// CPU microseconds of the receiving thread.
    pub(super) receiver_us: f64,
}

/// Sends at `rate` a second for some time through whatever joins the hosts.
pub(super) fn fly(
    stage: &Stage,
    rate: u32,
    lasting: Duration,
    interrupt: &Interrupt,
) -> Result<Flight, String> {
    let sink = stage.in_host(FAR, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
    set_socket_recv_buffer_size_force(&sink, RECEIVE_BUFFER).map_err(sentence)?;
    sink.set_read_timeout(Some(SILENCE)).map_err(sentence)?;
    let source = stage.in_host(NEAR, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    source
        .connect(SocketAddr::from((stage.far_address(), PORT)))
        .map_err(sentence)?;
    leg(&source, &sink, rate, WARM_UP, interrupt);
    Ok(leg(&source, &sink, rate, lasting, interrupt))
}

fn leg(
    source: &UdpSocket,
    sink: &UdpSocket,
    rate: u32,
    lasting: Duration,
    interrupt: &Interrupt,
) -> Flight {
    let (landed, all_sent) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(sink, &landed, &all_sent));
        let before = CpuTime::now();
        let mut flight = scope
            .spawn(|| send(source, rate, lasting, interrupt))
            .join()
            .unwrap_or_default();
        wait_for(&landed, flight.sent);
        flight.cpu = CpuTime::now().since(before);
        all_sent.store(true, Ordering::Release);
        flight.receiver_us = receiver.join().unwrap_or_default();
        flight.received = landed.load(Ordering::Acquire);
        flight
    })
}

fn send(socket: &UdpSocket, rate: u32, lasting: Duration, interrupt: &Interrupt) -> Flight {
    let (mut flight, began, own) = (Flight::default(), Instant::now(), cpu::own_thread());
    let packets = |time: Duration| (time.as_secs_f64() * f64::from(rate)) as u64;
    let (all, most) = (packets(lasting), packets(MOST_MADE_UP));
    let mut number = 0;
    while number < all && !interrupt.came() {
        let due = (packets(began.elapsed()) + 1).min(all);
        number = number.max(due.saturating_sub(most));
        while number < due {
            let mut payload = [0; PAYLOAD];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            // What the socket does not take was never under way.
            flight.sent += u64::from(socket.send(&payload).is_ok());
            number += 1;
        }
        let next = Duration::from_secs_f64(number as f64 / f64::from(rate));
        std::thread::sleep(next.saturating_sub(began.elapsed()));
        flight.bursts += 1;
    }
    flight.elapsed = began.elapsed();
    flight.sender_us = (cpu::own_thread() - own) as f64 / 1e3;
    flight
}

/// Counts until all are sent and no more arrive; returns microseconds of CPU time.
fn receive(socket: &UdpSocket, landed: &AtomicU64, all_sent: &AtomicBool) -> f64 {
    let (own, mut bytes) = (cpu::own_thread(), [0; 100]);
    loop {
        match socket.recv(&mut bytes) {
            Ok(PAYLOAD) => {
                landed.fetch_add(1, Ordering::Release);
            }
            // Not ours.
            Ok(_) => (),
            Err(_) if all_sent.load(Ordering::Acquire) => {
                return (cpu::own_thread() - own) as f64 / 1e3;
            }
            Err(_) => (),
        }
    }
}

/// Waits until that many have landed, or no more come.
fn wait_for(landed: &AtomicU64, sent: u64) {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let now = landed.load(Ordering::Acquire);
        if now >= sent {
            return;
        }
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > SILENCE {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
