//! sFlow version 5 of the programs' samples, for the daemon: events in, datagrams out.
//!
//! The programs draw the gap between two samples from a table of quantiles of the geometric distribution, so that
//! each packet has the same chance whatever was sampled before. Sockets never block; what a collector does not
//! take is counted, and lost. Pools are added up over CPUs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use weir_flowfmt::sflow::encode::{DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::{FlowSample, Port, RawHeader, Source};

use crate::abi::{Event, GAPS};
use crate::config::Sflow;
use crate::reason;

/// A datagram is sent when its oldest sample is as old as this.
const PATIENCE: Duration = Duration::from_millis(500);
/// `output` of packets that the host itself takes.
const INTERNAL: u32 = 0x3fff_ffff;

/// The gaps that the programs draw from, for one packet in `rate`.
pub fn gaps(rate: u32) -> impl Iterator<Item = u32> {
    let scale = if rate <= 1 {
        0.0
    } else {
        (-1.0 / f64::from(rate)).ln_1p()
    };
    (0..GAPS).map(move |index| {
        if rate <= 1 {
            return 1;
        }
        let chance = (f64::from(index) + 0.5) / f64::from(GAPS);
        ((-chance).ln_1p() / scale).ceil().max(1.0) as u32
    })
}

/// Makes datagrams of samples, and sends them.
pub struct Exporter {
    rate: u32,
    builder: DatagramBuilder,
    collectors: Vec<(SocketAddr, Option<UdpSocket>)>,
    started: Instant,
    oldest: Option<Instant>,
    datagrams: u32,
    /// Samples by interface of arrival.
    sequences: BTreeMap<u32, u32>,
    /// The last pool that each CPU reported, by interface.
    pools: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// Samples that found the ring full, by interface.
    pub losses: BTreeMap<u32, u64>,
    /// Datagrams that a collector did not take.
    pub errors: u64,
}

impl Exporter {
    /// An exporter for the collectors of a configuration; sockets belong to the caller's namespace.
    #[must_use]
    pub fn new(config: &Sflow, now: Instant) -> Exporter {
        let collectors = config
            .collectors
            .iter()
            .map(|collector| (*collector, socket(collector)))
            .collect();
        Exporter {
            rate: config.rate,
            builder: DatagramBuilder::new(config.agent, 0, Encoding::Expanded),
            collectors,
            started: now,
            oldest: None,
            datagrams: 0,
            sequences: BTreeMap::new(),
            pools: BTreeMap::new(),
            losses: BTreeMap::new(),
            errors: 0,
        }
    }

    /// Takes a sample in.
    pub fn sample(&mut self, event: &Event, now: Instant) {
        self.pools
            .entry(event.in_port)
            .or_default()
            .insert(event.cpu, event.pool);
        let pool: u64 = self
            .pools
            .get(&event.in_port)
            .into_iter()
            .flatten()
            .map(|(_, pool)| *pool)
            .sum();
        let sequence = self.sequences.entry(event.in_port).or_default();
        *sequence = sequence.wrapping_add(1);
        let sample = FlowSample {
            sequence: *sequence,
            source: Source::interface(event.in_port),
            rate: self.rate,
            pool: pool as u32,
            drops: self.losses.get(&event.in_port).copied().unwrap_or(0) as u32,
            input: Port {
                format: 0,
                value: event.in_port,
            },
            output: output(event),
        };
        let record = FlowRecord::RawHeader(RawHeader {
            protocol: RawHeader::ETHERNET,
            // With FCS, which the device took off.
            frame_length: event.length.saturating_add(4),
            stripped: 4,
            header: event
                .header
                .get(..usize::from(event.captured))
                .unwrap_or(&event.header),
        });
        if matches!(self.builder.flow_sample(&sample, &[record]), Ok(Fit::Full)) {
            self.send(now);
            // An empty datagram has room for any sample of a program.
            if !matches!(self.builder.flow_sample(&sample, &[record]), Ok(Fit::Added)) {
                self.errors += 1;
            }
        }
        self.oldest.get_or_insert(now);
    }

    /// Sends what has waited long enough.
    pub fn turn(&mut self, now: Instant) {
        if self
            .oldest
            .is_some_and(|oldest| now.duration_since(oldest) >= PATIENCE)
        {
            self.send(now);
        }
    }

    fn send(&mut self, now: Instant) {
        self.oldest = None;
        if self.builder.is_empty() {
            return;
        }
        self.datagrams = self.datagrams.wrapping_add(1);
        let uptime = now.duration_since(self.started).as_millis() as u32;
        let datagram = self.builder.finish(self.datagrams, uptime);
        for (address, socket) in &mut self.collectors {
            let sent = socket
                .as_ref()
                .is_some_and(|socket| socket.send(datagram).is_ok());
            if !sent {
                self.errors += 1;
                // The next datagram has a new socket: a route may have appeared.
                *socket = self::socket(address);
            }
        }
        self.builder.clear();
    }
}

fn socket(collector: &SocketAddr) -> Option<UdpSocket> {
    let any: IpAddr = if collector.is_ipv4() {
        [0; 4].into()
    } else {
        [0u16; 8].into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect(collector).ok()?;
    Some(socket)
}

/// Where the packet went, in sFlow's terms.
fn output(event: &Event) -> Port {
    if event.reason != 0 {
        let code = match event.reason {
            reason::ACL_IN | reason::ACL_OUT => 258,
            reason::POLICED_IN | reason::POLICED_OUT | reason::STORM => 261,
            reason::MTU => 262,
            _ => 256,
        };
        return Port {
            format: 1,
            value: code,
        };
    }
    match event.out_port {
        // Several interfaces, their number unknown.
        u32::MAX => Port {
            format: 2,
            value: 0,
        },
        0 => Port {
            format: 0,
            value: INTERNAL,
        },
        port => Port {
            format: 0,
            value: port,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_of_the_rate_and_the_spread_of_the_geometric_distribution() {
        for rate in [1, 2, 10, 1000, 100_000] {
            let all: Vec<f64> = gaps(rate).map(f64::from).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let rate = f64::from(rate);
            assert!((mean / rate - 1.0).abs() < 0.001, "{rate}: {mean}");
            let square = all.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / all.len() as f64;
            let right = rate * (rate - 1.0);
            assert!(
                (square - right).abs() <= 0.01 * right,
                "{rate}: {square} {right}"
            );
        }
    }
}
