//! The loop: sends what is due, receives what arrives, answers ARP and ND.
//!
//! One thread runs it for all ports. It ends when every stream has ended and what is on its way has
//! arrived (or the time for that is over), or when it is stopped. Sending never waits: what a port
//! does not take stays in front of the next packets, and what is left at the end counts as unsent.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_buf::{PktCache, Pool, Vector};
use weir_wire::MacAddr;

use crate::answer::{self, Answers};
use crate::clock::Clock;
use crate::error::LabError;
use crate::noise;
use crate::pace::Schedule;
use crate::port::LabPort;
use crate::profile::{Network, Profile, StreamSpec, Values};
use crate::raw;
use crate::result::{Pacing, PortResult, RunResult, StreamResult};
use crate::sequence::Tracker;
use crate::stamp::Stamp;
use crate::stream::Stream;
use crate::units::{LAYER1_OVERHEAD, Rate};

/// Packets that are written before the next look at the receivers.
const BURST: usize = 64;
const RECEIVE: usize = 256;
/// Nanoseconds after the end in which late packets are still sent; at most a 200th of the run.
const GRACE: u64 = 10_000_000;

/// Nanoseconds between two checks that the devices are still there.
const CHECK: u64 = 500_000_000;

/// How a profile is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long packets are due; `None`: until each stream reaches its number of packets.
    pub duration: Option<Duration>,
    /// How long to wait for packets on their way.
    pub drain: Duration,
    /// Bits per second of the line, for rates in percent and for the check of rates.
    pub line_rate: Option<f64>,
    /// The total rate in packets per second; the streams share it as their own rates are.
    pub load: Option<f64>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            duration: None,
            drain: Duration::from_millis(200),
            line_rate: None,
            load: None,
        }
    }
}

impl Plan {
    pub(crate) fn ends_after(&self, time: u64) -> bool {
        self.duration
            .is_none_or(|duration| u128::from(time) < duration.as_nanos())
    }
}

/// Compiles all streams of a profile.
///
/// # Errors
/// When a rate is impossible, or nothing would ever end.
pub fn compile(profile: &Profile, plan: &Plan) -> Result<Vec<Stream>, LabError> {
    let wrong = |stream: &str, problem: String| LabError::Stream {
        stream: stream.to_owned(),
        problem,
    };
    let mut rates = Vec::new();
    for spec in &profile.streams {
        let rate = match &spec.capture {
            Some(capture) if spec.timed => Rate::Packets(capture.average_rate()),
            _ => spec.rate,
        };
        let rate = rate.packets_per_second(spec.average_size(), plan.line_rate);
        rates.push(rate.map_err(|problem| wrong(&spec.name, problem))?);
    }
    if let Some(load) = plan.load {
        let finite = rates.iter().all(|rate| rate.is_finite());
        let total: f64 = if finite {
            rates.iter().sum()
        } else {
            rates.len() as f64
        };
        rates
            .iter_mut()
            .for_each(|rate| *rate = load * if finite { *rate } else { 1.0 } / total);
    }
    let stream = |(number, (spec, rate)): (usize, (&crate::profile::StreamSpec, f64))| {
        // A load that is given replaces the times of a capture.
        let timed = spec.timed && plan.load.is_none();
        let paced = StreamSpec {
            timed,
            ..spec.clone()
        };
        let schedule = Schedule::new(&paced, rate, plan.duration);
        Stream::new(spec, number as u16, profile.seed, schedule)
    };
    Ok(profile
        .streams
        .iter()
        .zip(rates)
        .enumerate()
        .map(stream)
        .collect())
}

/// What the live view shows.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Seconds since the start.
    pub seconds: f64,
    /// By stream: sent, received, lost so far, 50th and 99th percentile of latency in microseconds.
    pub streams: Vec<(u64, u64, u64, f64, f64)>,
}

/// What the loop shares with other threads.
#[derive(Debug, Default)]
pub struct Control {
    /// Ends the run early.
    pub stop: AtomicBool,
    /// The newest picture; skipped when somebody holds the lock.
    pub live: Mutex<Live>,
    /// Whether pictures are wanted.
    pub watched: AtomicBool,
}

struct Sender {
    out: Vector,
    streams: Vec<usize>,
    turn: usize,
    answers: Answers,
    result: PortResult,
}

/// Runs a profile over ports.
///
/// # Errors
/// When a stream cannot be compiled or uses a port that is not there, a gateway does not answer, or a
/// device disappears.
pub fn run(
    profile: &Profile,
    plan: &Plan,
    ports: &mut [LabPort],
    pool: &Pool,
    control: &Control,
) -> Result<RunResult, LabError> {
    let mut profile = profile.clone();
    let mut cache = PktCache::new(pool);
    for spec in &mut profile.streams {
        let count = ports.len();
        let port = ports.get_mut(spec.port).ok_or_else(|| LabError::Stream {
            stream: spec.name.clone(),
            problem: format!("port {} is not there: {count} port(s) are given", spec.port),
        })?;
        if let Some(raw) = &mut spec.packet.raw {
            if raw.port_macs && port.spec.gateway.is_some() {
                let to = resolve(port, &mut cache)?;
                raw.set_macs(to, port.mac);
            }
        } else if spec.capture.is_none() && spec.packet.destination_mac.is_none() {
            let mac = resolve(port, &mut cache)?;
            spec.packet.destination_mac = Some(Values::fixed(
                mac.0
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | u128::from(*byte)),
            ));
        }
    }
    let streams = compile(&profile, plan)?;
    let mut lab = Loop::new(&profile, streams, ports, cache);
    lab.run(plan, ports, control)?;
    Ok(lab.finish(&profile, ports))
}

/// Asks for the gateway's MAC address, up to three seconds.
fn resolve(port: &mut LabPort, cache: &mut PktCache) -> Result<MacAddr, LabError> {
    let name = port.port.device().to_owned();
    let missing = || {
        LabError::Refused(format!(
            "{name}: packets for the gateway need gateway= and address= of the same family"
        ))
    };
    let gateway = port.spec.gateway.ok_or_else(missing)?;
    let source = match gateway {
        IpAddr::V4(_) => port.spec.address.map(|(address, _)| IpAddr::V4(address)),
        IpAddr::V6(_) => port.spec.address6.map(|(address, _)| IpAddr::V6(address)),
    };
    let request = source
        .and_then(|source| answer::request(port.mac, source, gateway))
        .ok_or_else(missing)?;
    let (mut out, mut got) = (
        Vector::with_capacity(RECEIVE),
        Vector::with_capacity(RECEIVE),
    );
    let answers = answers(port, std::iter::empty());
    for turn in 0..600 {
        if turn % 60 == 0 {
            push(&mut out, cache, &request);
        }
        for rx in &mut port.rx {
            rx.recv(&mut got, cache, RECEIVE);
        }
        let mut found = None;
        for packet in got.iter() {
            found = found.or(answer::learned(packet.data(), gateway));
            if let Some(reply) = answers.reply(packet.data()) {
                push(&mut out, cache, &reply);
            }
        }
        cache.free_vector(&mut got);
        if let Some(tx) = port.tx.first_mut() {
            tx.send(&mut out, cache);
            tx.flush(cache);
        }
        if let Some(mac) = found {
            cache.free_vector(&mut out);
            return Ok(mac);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(LabError::NoGateway {
        port: name,
        gateway: gateway.to_string(),
    })
}

fn push(to: &mut Vector, cache: &mut PktCache, bytes: &[u8]) -> bool {
    let Some(mut packet) = cache.alloc() else {
        return false;
    };
    let filled = packet.fill(bytes);
    packet.set_aux(u32::MAX);
    if filled && to.len() < to.capacity() {
        to.push(packet);
        return true;
    }
    cache.free(packet);
    false
}

/// What a port answers for: its own addresses and the source addresses of its streams.
fn answers<'a>(port: &LabPort, streams: impl Iterator<Item = &'a StreamSpec>) -> Answers {
    let mut answers = Answers {
        mac: Some(port.mac),
        ..Answers::default()
    };
    answers.v4.extend(
        port.spec
            .address
            .map(|(address, _)| (u32::from(address), u32::from(address))),
    );
    answers.v6.extend(
        port.spec
            .address6
            .map(|(address, _)| (u128::from(address), u128::from(address))),
    );
    for spec in streams {
        if spec.capture.is_some() {
            continue;
        }
        if let Some(raw) = &spec.packet.raw {
            match raw::source(raw) {
                Some((first, last, false)) => answers.v4.push((first as u32, last as u32)),
                Some((first, last, true)) => answers.v6.push((first, last)),
                None => {}
            }
            continue;
        }
        match &spec.packet.network {
            Network::V4 { source, .. } => {
                answers.v4.push((source.first as u32, source.last() as u32))
            }
            Network::V6 { source, .. } => answers.v6.push((source.first, source.last())),
            Network::None(_) => {}
        }
    }
    answers
}

struct Loop {
    clock: Clock,
    start: u64,
    cache: PktCache,
    streams: Vec<Stream>,
    trackers: Vec<Tracker>,
    sent: Vec<u64>,
    senders: Vec<Sender>,
    got: Vector,
    fresh: Vector,
    clocks: u64,
    /// Delays of the first packet of each batch against its schedule.
    delays: Histogram<u64>,
    noise: crate::result::Noise,
    seconds: f64,
}

impl Loop {
    fn new(profile: &Profile, streams: Vec<Stream>, ports: &[LabPort], cache: PktCache) -> Loop {
        let senders = ports.iter().enumerate().map(|(number, port)| {
            let mine = profile
                .streams
                .iter()
                .enumerate()
                .filter(|(_, spec)| spec.port == number);
            Sender {
                out: Vector::with_capacity(RECEIVE),
                answers: answers(port, mine.clone().map(|(_, spec)| spec)),
                streams: mine.map(|(index, _)| index).collect(),
                turn: 0,
                result: PortResult {
                    name: port.describe(),
                    ..PortResult::default()
                },
            }
        });
        Loop {
            clock: Clock::new(),
            start: 0,
            cache,
            trackers: streams.iter().map(|_| Tracker::new()).collect(),
            sent: vec![0; streams.len()],
            streams,
            senders: senders.collect(),
            got: Vector::with_capacity(RECEIVE),
            fresh: Vector::with_capacity(BURST),
            clocks: 0,
            delays: Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits are valid")),
            noise: crate::result::Noise::default(),
            seconds: 0.0,
        }
    }

    fn run(
        &mut self,
        plan: &Plan,
        ports: &mut [LabPort],
        control: &Control,
    ) -> Result<(), LabError> {
        let drain = u64::try_from(plan.drain.as_nanos()).unwrap_or(u64::MAX);
        let before = noise::sample();
        self.start = self.clock.now();
        let (mut last_picture, mut last_check) = (0, 0);
        let mut ended = None;
        loop {
            let now = self.clock.now() - self.start;
            let mut busy = false;
            for (port, number) in ports.iter_mut().zip(0..) {
                busy |= self.receive(number, port)?;
                busy |= self.send(number, port, now, ended.is_none());
            }
            // What is late by more than the grace at the end is not sent: the load would be another one.
            let over = self.streams.iter().all(|stream| {
                let schedule = &stream.schedule;
                let sent = stream.written() >= schedule.due(now);
                schedule.is_over(now)
                    && (sent
                        || now
                            >= schedule
                                .end()
                                .saturating_add(GRACE.min(schedule.end() / 200)))
            });
            let stopped = control.stop.load(Ordering::Relaxed);
            if ended.is_none() && (over || stopped) {
                ended = Some(now);
                self.seconds = now as f64 * 1e-9;
                self.noise = noise::between(before, noise::sample(), self.seconds);
            }
            if let Some(ended) = ended
                && (now - ended > drain
                    || stopped && now - ended > drain.min(50_000_000)
                    || self.all_arrived())
            {
                break;
            }
            if control.watched.load(Ordering::Relaxed) && now - last_picture > 100_000_000 {
                last_picture = now;
                self.picture(now, control);
            }
            if now - last_check > CHECK {
                last_check = now;
                if let Some(port) = ports.iter().find(|port| port.is_gone()) {
                    return Err(LabError::Vanished {
                        port: port.port.device().to_owned(),
                    });
                }
            }
            if !busy {
                std::thread::yield_now();
            }
        }
        for (port, sender) in ports.iter_mut().zip(&mut self.senders) {
            self.cache.free_vector(&mut sender.out);
            port.tx.iter_mut().for_each(|tx| tx.flush(&mut self.cache));
        }
        Ok(())
    }

    /// Nothing is on its way any more, as far as stamps show it.
    fn all_arrived(&self) -> bool {
        self.senders.iter().all(|sender| sender.out.is_empty())
            && self.trackers.iter().any(|tracker| tracker.received > 0)
            && self
                .trackers
                .iter()
                .zip(&self.sent)
                .all(|(tracker, sent)| tracker.received >= *sent)
    }

    fn receive(&mut self, number: usize, port: &mut LabPort) -> Result<bool, LabError> {
        let Some(sender) = self.senders.get_mut(number) else {
            return Ok(false);
        };
        let mut busy = false;
        for rx in &mut port.rx {
            if rx.recv(&mut self.got, &mut self.cache, RECEIVE) == 0 {
                if rx.is_dead() {
                    return Err(LabError::Vanished {
                        port: port.port.device().to_owned(),
                    });
                }
                continue;
            }
            busy = true;
            // Read again: packets sent in this turn may already be back.
            let arrived = self.clock.now();
            for packet in self.got.iter() {
                let len = packet.total_len();
                sender.result.received += 1;
                sender.result.received_bytes += len as u64;
                let stamp = if packet.is_chained() {
                    let mut end = [0; 64];
                    let copied = packet.copy_out(len.saturating_sub(64), &mut end);
                    Stamp::find(end.get(..copied).unwrap_or(&[]))
                } else {
                    Stamp::find(packet.data())
                };
                match stamp.and_then(|stamp| {
                    Some((stamp, self.trackers.get_mut(usize::from(stamp.stream))?))
                }) {
                    Some((stamp, tracker)) if stamp.time >= self.start => {
                        tracker.record(stamp.sequence, len, arrived.saturating_sub(stamp.time));
                    }
                    _ => {
                        sender.result.foreign += 1;
                        if let Some(reply) = sender.answers.reply(packet.data())
                            && push(&mut sender.out, &mut self.cache, &reply)
                        {
                            sender.result.answered += 1;
                        }
                    }
                }
            }
            self.cache.free_vector(&mut self.got);
        }
        Ok(busy)
    }

    fn send(&mut self, number: usize, port: &mut LabPort, now: u64, open: bool) -> bool {
        let (Some(sender), Some(tx)) = (self.senders.get_mut(number), port.tx.first_mut()) else {
            return false;
        };
        let count = sender.streams.len();
        for step in 0..count {
            let room = BURST.saturating_sub(sender.out.len());
            if room == 0 || !open {
                break;
            }
            let Some(index) = sender.streams.get((sender.turn + step) % count).copied() else {
                continue;
            };
            let Some(stream) = self.streams.get_mut(index) else {
                continue;
            };
            let due = stream.schedule.due(now).saturating_sub(stream.written());
            let wanted = usize::try_from(due).unwrap_or(usize::MAX).min(room);
            if wanted == 0 || self.cache.alloc_into(wanted, &mut self.fresh) == 0 {
                continue;
            }
            // Receiving took time since `now`.
            let time = self.clock.now();
            if !stream.schedule.is_max() {
                let _ = self.delays.record_n(
                    (time - self.start).saturating_sub(stream.schedule.time_of(stream.written())),
                    self.fresh.len() as u64,
                );
            }
            let began = weir_cpu::tsc();
            for packet in self.fresh.iter_mut() {
                let _ = packet.set_len(stream.next_len());
                packet.set_aux(index as u32);
                stream.write(packet.data_mut(), time);
            }
            self.clocks += weir_cpu::tsc().wrapping_sub(began);
            sender.out.take_all(&mut self.fresh);
        }
        sender.turn = if sender.turn + 1 >= count.max(1) {
            0
        } else {
            sender.turn + 1
        };
        if sender.out.is_empty() {
            if tx.pending() > 0 {
                tx.flush(&mut self.cache);
            }
            return false;
        }
        let (mut bytes, before) = (0, sender.out.len());
        let mut lens = [(0_u32, 0_u32); RECEIVE];
        for (place, packet) in lens.iter_mut().zip(sender.out.iter()) {
            *place = (packet.aux(), packet.len() as u32);
        }
        let taken = tx.send(&mut sender.out, &mut self.cache);
        for (aux, len) in lens.iter().take(taken.min(before)) {
            bytes += u64::from(*len);
            if let Some(sent) = self.sent.get_mut(*aux as usize) {
                *sent += 1;
            }
        }
        sender.result.sent += taken as u64;
        sender.result.sent_bytes += bytes;
        tx.flush(&mut self.cache);
        taken > 0
    }

    fn picture(&self, now: u64, control: &Control) {
        let Ok(mut live) = control.live.try_lock() else {
            return;
        };
        live.seconds = now as f64 * 1e-9;
        live.streams = self
            .trackers
            .iter()
            .zip(&self.sent)
            .map(|(tracker, sent)| {
                let (p50, p99) = tracker.quick();
                (
                    *sent,
                    tracker.received,
                    sent.saturating_sub(tracker.received),
                    p50,
                    p99,
                )
            })
            .collect();
    }

    fn finish(self, profile: &Profile, ports: &[LabPort]) -> RunResult {
        let seconds = self.seconds.max(1e-9);
        let now = (self.seconds * 1e9) as u64;
        let mut result = RunResult {
            seconds: self.seconds,
            noise: self.noise,
            ..RunResult::default()
        };
        let (mut bits, mut written) = (0.0, 0);
        let receives = ports
            .iter()
            .any(|port| !port.rx.is_empty() && port.port.capabilities().driver != "null");
        for (((spec, stream), tracker), sent) in profile
            .streams
            .iter()
            .zip(&self.streams)
            .zip(&self.trackers)
            .zip(&self.sent)
        {
            let measured = spec.stamped && receives;
            let lost = if measured {
                sent.saturating_sub(tracker.received)
            } else {
                0
            };
            let due = if stream.schedule.is_max() {
                stream.written()
            } else {
                stream.schedule.due(now)
            };
            result.sent += sent;
            result.received += tracker.received;
            result.lost += lost;
            written += stream.written();
            bits += *sent as f64 * (spec.average_size() + LAYER1_OVERHEAD) * 8.0;
            result.streams.push(StreamResult {
                name: spec.name.clone(),
                sent: *sent,
                unsent: due.saturating_sub(*sent),
                received: tracker.received,
                lost,
                duplicated: tracker.duplicated,
                reordered: tracker.reordered,
                late: tracker.late,
                sent_pps: *sent as f64 / seconds,
                received_pps: tracker.received as f64 / seconds,
                latency: tracker.latency(),
            });
        }
        result.sent_pps = result.sent as f64 / seconds;
        result.sent_bps_l1 = bits / seconds;
        result.clocks_per_packet = self.clocks as f64 / (written.max(1)) as f64;
        let micro = |ns: u64| ns as f64 / 1000.0;
        result.pacing = (!self.delays.is_empty()).then(|| Pacing {
            within_2us: self.delays.percentile_below(2000) / 100.0,
            p50_us: micro(self.delays.value_at_quantile(0.5)),
            p99_us: micro(self.delays.value_at_quantile(0.99)),
            max_us: micro(self.delays.max()),
        });
        result.ports = self
            .senders
            .into_iter()
            .map(|sender| sender.result)
            .collect();
        result
    }
}
