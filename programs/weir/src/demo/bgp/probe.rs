//! Numbered datagrams from host-a to addresses of the table, and which of them arrived.
//!
//! Each packet carries its number. The sender notes when it sent it, and the receiver that it came. So the loss of any
//! time span is known afterwards, and when the last packet left that a broken link lost.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_netlink::lab::Host;

const PORT: u16 = 7000;
/// Sockets of the sender: each is a flow to each destination.
const SOCKETS: usize = 16;
/// Packets that are noted, at most: half an hour of 2,000 a second.
const MOST: usize = 1 << 22;
const BUFFER: usize = 8 << 20;

/// The sender and the receiver at work.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<Vec<Instant>>,
    receiver: JoinHandle<Vec<u64>>,
    received: Arc<AtomicU64>,
}

/// What was sent and what arrived.
pub(crate) struct Record {
    sent: Vec<Instant>,
    /// A bit for each packet that arrived.
    arrived: Vec<u64>,
}

impl Probe {
    /// Sends `rate` packets a second from one host to another.
    pub(crate) fn start(
        from: &Host,
        to: &Host,
        destinations: Vec<Ipv4Addr>,
        rate: u32,
    ) -> Result<Probe, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let bind = |port| move || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port));
        let inner = to
            .namespace()
            .run(bind(PORT))
            .map_err(|error| text(&error))?;
        let inner = inner.map_err(|error| text(&error))?;
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&inner, BUFFER);
        inner
            .set_read_timeout(Some(Duration::from_millis(50)))
            .map_err(|error| text(&error))?;
        let mut sockets = Vec::new();
        for _ in 0..SOCKETS {
            let socket = from
                .namespace()
                .run(bind(0))
                .map_err(|error| text(&error))?;
            sockets.push(socket.map_err(|error| text(&error))?);
        }
        let (stop, received) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let sender = {
            let stop = stop.clone();
            std::thread::spawn(move || send(&sockets, &destinations, rate, &stop))
        };
        let receiver = {
            let (stop, received) = (stop.clone(), received.clone());
            std::thread::spawn(move || receive(&inner, &stop, &received))
        };
        Ok(Probe {
            stop,
            sender,
            receiver,
            received,
        })
    }

    /// The number of packets that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends both, the receiver when all that is under way had time to arrive.
    pub(crate) fn stop(self) -> Record {
        self.stop.store(true, Ordering::Release);
        Record {
            sent: self.sender.join().unwrap_or_default(),
            arrived: self.receiver.join().unwrap_or_default(),
        }
    }
}

impl Record {
    fn has_arrived(&self, number: usize) -> bool {
        self.arrived
            .get(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn within(&self, from: Instant, until: Instant) -> impl Iterator<Item = (usize, Instant)> + '_ {
        let all = self.sent.iter().copied().enumerate();
        all.filter(move |(_, at)| (from..until).contains(at))
    }

    /// The share of packets sent in a time span that were lost, in percent.
    pub(crate) fn loss_percent(&self, from: Instant, until: Instant) -> f64 {
        let sent = self.within(from, until).count();
        let lost = self
            .within(from, until)
            .filter(|(number, _)| !self.has_arrived(*number))
            .count();
        100.0 * lost as f64 / sent.max(1) as f64
    }

    /// How long after an event the last packet was sent that was lost, within a time span.
    pub(crate) fn last_loss_after(&self, event: Instant, within: Duration) -> Duration {
        let lost = self
            .within(event, event + within)
            .filter(|(number, _)| !self.has_arrived(*number));
        lost.map(|(_, at)| at - event).max().unwrap_or_default()
    }
}

fn send(
    sockets: &[UdpSocket],
    destinations: &[Ipv4Addr],
    rate: u32,
    stop: &AtomicBool,
) -> Vec<Instant> {
    let (began, mut sent) = (Instant::now(), Vec::with_capacity(1 << 18));
    while !stop.load(Ordering::Acquire) && sent.len() < MOST {
        let due = began.elapsed().as_secs_f64() * f64::from(rate);
        while (sent.len() as f64) < due && sent.len() < MOST {
            let number = sent.len();
            let (Some(socket), Some(to)) = (
                sockets.get(number % SOCKETS),
                destinations.get(number % destinations.len().max(1)),
            ) else {
                return sent;
            };
            sent.push(Instant::now());
            let _ = socket.send_to(&(number as u64).to_be_bytes(), SocketAddrV4::new(*to, PORT));
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    sent
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, received: &AtomicU64) -> Vec<u64> {
    let (mut arrived, mut buffer) = (vec![0; MOST / 64], [0; 64]);
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let number = buffer
                    .get(..length)
                    .and_then(|it| it.first_chunk())
                    .map(|it| u64::from_be_bytes(*it));
                if let Some(word) = number.and_then(|number| arrived.get_mut(number as usize / 64))
                {
                    *word |= 1 << (number.unwrap_or(0) % 64);
                    received.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Nothing came for a while.
            Err(_) if stop.load(Ordering::Acquire) => return arrived,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_found_by_time() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        // Number 2 and 5 did not arrive.
        let record = Record {
            sent: (0..10).map(at).collect(),
            arrived: vec![0b11_1101_1011],
        };
        assert_eq!(record.loss_percent(at(0), at(10)), 20.0);
        assert_eq!(record.loss_percent(at(6), at(10)), 0.0);
        assert_eq!(
            record.last_loss_after(at(1), Duration::from_secs(1)),
            Duration::from_millis(4)
        );
        assert_eq!(
            record.last_loss_after(at(6), Duration::from_secs(1)),
            Duration::ZERO
        );
    }
}
