//! A test device of known behaviour: forwards between two ports, and drops, delays, duplicates and
//! reorders exactly as instructed. Measurements are checked against it.
//!
//! Runs on one thread. Its capacity is that of a server with a short queue, in packets or bytes per
//! second. Packets received in one poll are taken as spread over the time since the poll before,
//! so that the capacity is right even when the thread has to wait for a core.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use weir_buf::{Pkt, PktCache, Pool, Vector};

use crate::clock::Clock;
use crate::port::LabPort;

/// What the device does to packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceConfig {
    /// Packets per second that it can forward, both directions together; `None`: no limit.
    pub packets_per_second: Option<f64>,
    /// Bits per second of layer 2 that it can forward; `None`: no limit.
    pub bits_per_second: Option<f64>,
    /// Packets that wait when it is busy.
    pub queue: u32,
    /// How long each packet takes.
    pub delay: Duration,
    /// Loses one packet of this many; 0: none.
    pub lose_every: u64,
    /// Sends one packet of this many twice; 0: none.
    pub duplicate_every: u64,
    /// Exchanges one packet of this many with the next one; 0: none.
    pub swap_every: u64,
}

/// What the device did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCounts {
    /// Packets received.
    pub received: u64,
    /// Packets sent, duplicates included.
    pub forwarded: u64,
    /// Packets beyond its capacity.
    pub over_capacity: u64,
    /// Packets lost on purpose.
    pub lost: u64,
    /// Packets sent twice.
    pub duplicated: u64,
    /// Packets sent after their successor.
    pub swapped: u64,
    /// Packets that no buffer or no room was left for.
    pub no_room: u64,
}

const RECEIVE: usize = 256;
/// Nanoseconds that a packet waits for the one that it is exchanged with.
const HOLD: u64 = 100_000_000;
/// Packets under way at most.
const MOST: usize = 65_536;

struct Direction {
    waiting: VecDeque<(u64, Pkt)>,
    held: Option<(u64, Pkt)>,
    number: u64,
    out: Vector,
}

/// Forwards until `stop` is set.
pub fn run(
    config: &DeviceConfig,
    ports: &mut [LabPort; 2],
    pool: &Pool,
    stop: &AtomicBool,
) -> DeviceCounts {
    let clock = Clock::new();
    let mut cache = PktCache::new(pool);
    let mut counts = DeviceCounts::default();
    let mut got = Vector::with_capacity(RECEIVE);
    let direction = || Direction {
        waiting: VecDeque::new(),
        held: None,
        number: 0,
        out: Vector::with_capacity(RECEIVE),
    };
    let mut directions = [direction(), direction()];
    let mut server = Server {
        free: 0.0,
        last: clock.now() as f64,
    };
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let mut busy = false;
        for (from, direction) in directions.iter_mut().enumerate() {
            for rx in ports
                .get_mut(from)
                .into_iter()
                .flat_map(|port| &mut port.rx)
            {
                busy |= rx.recv(&mut got, &mut cache, RECEIVE) > 0;
                let drained: Vec<Pkt> = got.drain().collect();
                for packet in drained {
                    counts.received += 1;
                    direction.take(packet, now, config, &mut server, &mut counts, &mut cache);
                }
            }
            if let Some(tx) = ports.get_mut(1 - from).and_then(|port| port.tx.first_mut()) {
                direction.release(now);
                if !direction.out.is_empty() {
                    counts.forwarded += tx.send(&mut direction.out, &mut cache) as u64;
                    busy = true;
                }
                tx.flush(&mut cache);
            }
        }
        server.last = now as f64;
        if !busy {
            std::thread::yield_now();
        }
    }
    counts
}

/// Says which packets are within the capacity.
struct Server {
    /// When it has served all packets that it accepted.
    free: f64,
    /// When the ports were polled before.
    last: f64,
}

impl Server {
    fn accepts(&mut self, now: f64, len: usize, config: &DeviceConfig) -> bool {
        let by_packets = config.packets_per_second.map_or(0.0, |rate| 1e9 / rate);
        let by_bits = config
            .bits_per_second
            .map_or(0.0, |rate| (len + 4) as f64 * 8e9 / rate);
        let cost = f64::max(by_packets, by_bits);
        let start = f64::max(self.free, self.last);
        if cost > 0.0 && start - now > f64::from(config.queue) * cost {
            return false;
        }
        self.free = start + cost;
        true
    }
}

impl Direction {
    fn take(
        &mut self,
        packet: Pkt,
        now: u64,
        config: &DeviceConfig,
        server: &mut Server,
        counts: &mut DeviceCounts,
        cache: &mut PktCache,
    ) {
        if !server.accepts(now as f64, packet.total_len(), config) {
            counts.over_capacity += 1;
            return cache.free(packet);
        }
        self.number += 1;
        let every = |count: u64| count > 0 && self.number.is_multiple_of(count);
        if every(config.lose_every) {
            counts.lost += 1;
            return cache.free(packet);
        }
        if self.waiting.len() >= MOST {
            counts.no_room += 1;
            return cache.free(packet);
        }
        let due = now + u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX);
        if every(config.swap_every) && self.held.is_none() {
            self.held = Some((due, packet));
            return;
        }
        if every(config.duplicate_every) {
            match copy(&packet, cache) {
                Some(twin) => {
                    counts.duplicated += 1;
                    self.waiting.push_back((due, twin));
                }
                None => counts.no_room += 1,
            }
        }
        self.waiting.push_back((due, packet));
        if let Some((_, held)) = self.held.take() {
            counts.swapped += 1;
            self.waiting.push_back((due, held));
        }
    }

    fn release(&mut self, now: u64) {
        // A held packet without a successor goes on by itself.
        if self.held.as_ref().is_some_and(|(due, _)| *due + HOLD < now) {
            self.waiting.extend(self.held.take());
        }
        while self.out.len() < RECEIVE {
            match self.waiting.pop_front() {
                Some((due, packet)) if due <= now => self.out.push(packet),
                Some(early) => return self.waiting.push_front(early),
                None => return,
            }
        }
    }
}

fn copy(packet: &Pkt, cache: &mut PktCache) -> Option<Pkt> {
    let mut twin = cache.alloc()?;
    twin.fill(packet.data()).then_some(twin)
}
