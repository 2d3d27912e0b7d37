//! `ipfix-…`: what the flow meter costs a packet, by the number of flows, and what the exporter takes a second.
//!
//! Plain forwarding as in `ip4`, with random flows; blocks with the meter's tap on the receiving interface and without it take
//! turns. In the flood every packet begins a flow, in a table that is full, so that each makes another one leave. A thread
//! takes the records out of the ring meanwhile, as the exporter does. Making frames is not measured.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_buf::VECTOR;
use weir_flowfmt::ipfix::Version;
use weir_telemetry::exporter::{
    CollectorConfig, Epoch, Exporter, ExporterConfig, FlowSource, Knows, Named, RecordSet,
    Transport,
};
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Facts, Key, Observation, Records, Selection, Settings, Table};
use weir_telemetry::meter::MeterPlan;

use crate::cases::ip4;
use crate::measure::{BenchError, Effort, quantile, round};
use crate::paired;
use crate::report::Found;
use crate::rig::Rig;
use crate::scene::{Frames, IN, Scene, Telemetry, forwarded4, udp4_flow};

/// Flows that the table holds: what is usual.
const TABLE: usize = 1 << 20;
/// Records that are exported.
const RECORDS: u32 = 1 << 20;

/// What the meter costs; a figure that ends in `_target` is what was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Metered {
    /// The case.
    pub name: &'static str,
    /// Flows that packets are of; 0: every packet begins one.
    pub flows: u64,
    /// Clocks of the whole dataplane a packet, with the meter: the lower quartile of blocks.
    pub clocks_per_packet: f64,
    /// The same without.
    pub clocks_per_packet_off: f64,
    /// Median of the paired differences, of the quarter of pairs whose neighbours were quickest.
    pub tap_clocks: f64,
    /// Median of all pairs, those included in which others had the core.
    pub tap_clocks_in_all: f64,
    /// Lower quartile of the differences.
    pub tap_clocks_low: f64,
    /// Upper quartile of the differences.
    pub tap_clocks_high: f64,
    /// At most.
    pub tap_clocks_target: f64,
    /// Median of paired differences of off to off: the noise.
    pub null: f64,
    /// Flows in the table at the end.
    pub resident: u64,
    /// Records that found the ring full.
    pub unexported: u64,
    /// Turns in which the core was taken away, and which do not count.
    pub left_out: u64,
}

/// What the exporter takes; a figure that ends in `_target` is what was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Exported {
    /// The case.
    pub name: &'static str,
    /// Records a second from the ring to a UDP socket, of the set `5-tuple`.
    pub records_per_second: f64,
    /// At least.
    pub records_per_second_target: f64,
    /// The same of the set `router`.
    pub router_records_per_second: f64,
    /// Records that the kernel refused.
    pub not_sent: u64,
}

/// 1,000 flows.
pub(crate) fn thousand(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    run(name, 1_000, 22.0, effort, progress)
}

/// 100,000 flows.
pub(crate) fn hundred_thousand(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    run(name, 100_000, 30.0, effort, progress)
}

/// A million flows.
pub(crate) fn million(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    run(name, 1_000_000, 45.0, effort, progress)
}

/// Every packet begins a flow.
pub(crate) fn flood(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    run(name, 0, 120.0, effort, progress)
}

fn run(
    name: &'static str,
    flows: u64,
    target: f64,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    progress(&format!("{name}: tables and frames"));
    let mut scene = Scene::new(effort.thinned).map_err(BenchError::Fib)?;
    ip4::set(&mut scene);
    scene.frames = frames(flows);
    scene.check = Box::new(|sent, got| forwarded4(sent, got, 1 + sent[32] / 16 % 4));
    let (mut rig, _samples) = Rig::new(&mut scene, 7).map_err(BenchError::Pool)?;
    progress(&format!("{name}: checking frames and counters"));
    rig.check().map_err(BenchError::Check)?;
    let (table, ring) = table(TABLE / effort.thinned);
    let counts = table.counts().clone();
    rig.meter(plan(), table);
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    let hugepages = rig.hugepages;
    let mut result = std::thread::scope(|scope| {
        scope.spawn(|| drain(ring, &stop, &taken));
        progress(&format!("{name}: filling the table"));
        let full = if flows == 0 { TABLE as u64 } else { flows } / effort.thinned as u64;
        for _ in 0..full.div_ceil(VECTOR as u64) * 16 {
            if counts.resident.get() * 1000 >= full * 999 {
                break;
            }
            rig.turn(true);
        }
        progress(&format!("{name}: measuring"));
        let result = pairs(&mut rig, effort);
        stop.store(true, Ordering::Release);
        result
    });
    (result.name, result.flows, result.tap_clocks_target) = (name, flows, target);
    (result.resident, result.unexported) = (counts.resident.get(), counts.unexported.get());
    Ok((Found::Metered(result), hugepages))
}

/// An empty table, and the ring into which it exports.
fn table(flows: usize) -> (Table, Records) {
    let settings = Settings {
        flows,
        ..Settings::default()
    };
    Table::new(settings, 42)
}

/// The set `5-tuple` for what the first port receives.
fn plan() -> MeterPlan {
    let elements = RecordSet::new(["5-tuple"]).unwrap_or_else(|error| unreachable!("{error}"));
    MeterPlan {
        rx: [(IN, Selection::new(elements.elements(), 0, false).into())].into(),
        ..MeterPlan::default()
    }
}

/// Starts the sampler and the meter that belong to a case; returns the meter's ring.
pub(crate) fn attach(rig: &mut Rig, telemetry: Telemetry) -> Option<Records> {
    if telemetry.sampling != 0 {
        rig.sample(telemetry.sampling);
    }
    telemetry.metered.then(|| {
        let (table, ring) = table(TABLE);
        rig.meter(plan(), table);
        ring
    })
}

/// Blocks with and without take turns for so many portions of time at least.
const PORTIONS: u32 = 14;

/// Clocks a packet of so many turns, without those that were interrupted; and how many those were. A block of a large table is too long to be
/// played again until nobody interrupts it.
fn block(rig: &mut Rig, turns: usize, metered: bool, interrupted: u64) -> (f64, u64) {
    let (mut sum, mut left_out) = (0, 0);
    for _ in 0..turns {
        match rig.turn(metered) {
            clocks if clocks > interrupted => left_out += 1,
            clocks => sum += clocks,
        }
    }
    (
        sum as f64 / ((turns as u64 - left_out).max(1) * VECTOR as u64) as f64,
        left_out,
    )
}

/// Which of them comes first changes from pair to pair.
fn pairs(rig: &mut Rig, effort: Effort) -> Metered {
    let interrupted = paired::interrupted(rig.block(effort.turns, true));
    let (mut with, mut without, mut took, mut added, mut null) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    let (portions, mut pair, mut left_out) = (effort.portion * PORTIONS, 0, 0);
    let mut block = |turns: usize, metered: bool| {
        let (clocks, interruptions) = block(rig, turns, metered, interrupted);
        left_out += interruptions;
        clocks
    };
    while pair < effort.pairs || begun.elapsed() < portions {
        pair += 1;
        let first = block(effort.turns, pair % 2 == 1);
        let second = block(effort.turns, pair % 2 == 0);
        let (on, off) = if pair % 2 == 1 {
            (first, second)
        } else {
            (second, first)
        };
        with.push(on);
        without.push(off);
        took.push(on + off);
        added.push(on - off);
        let (one, two) = (
            block(effort.turns / 2, false),
            block(effort.turns / 2, false),
        );
        null.push(if pair % 2 == 1 { one - two } else { two - one });
    }
    let found = paired::Estimate::of(&mut paired::quickest(&took, &added));
    Metered {
        name: "",
        flows: 0,
        left_out,
        clocks_per_packet: round(quantile(&mut with, 0.25)),
        clocks_per_packet_off: round(quantile(&mut without, 0.25)),
        tap_clocks: found.median,
        tap_clocks_in_all: round(quantile(&mut added, 0.5)),
        tap_clocks_low: found.low,
        tap_clocks_high: found.high,
        tap_clocks_target: 0.0,
        null: round(quantile(&mut null, 0.5)),
        resident: 0,
        unexported: 0,
    }
}

/// Random flows among so many, or each frame its own; made when its turn comes.
fn frames(flows: u64) -> Frames {
    let own = move |number: usize, frame: &mut [u8]| {
        let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let flow = if flows == 0 {
            number as u64
        } else {
            (mixed ^ mixed >> 32) % flows
        };
        frame.copy_from_slice(&udp4_flow(flow));
    };
    Frames::made(&udp4_flow(0), 1 << 40, own)
}

/// How long the reader rests, as the exporter does.
const REST: Duration = Duration::from_millis(1);

pub(crate) fn drain(mut ring: Records, stop: &AtomicBool, taken: &AtomicU64) {
    loop {
        let ended = stop.load(Ordering::Acquire);
        let mut count = 0;
        while ring
            .pop_with(|record| std::hint::black_box(record.sums.packets))
            .is_some()
        {
            count += 1;
        }
        taken.fetch_add(count, Ordering::Relaxed);
        match count {
            0 if ended => return,
            0..4096 => std::thread::sleep(REST),
            _ => {}
        }
    }
}

/// The exporter alone: a million records in a ring, and a socket that nobody reads.
pub(crate) fn export(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    let records = RECORDS / effort.thinned as u32;
    let mut not_sent = 0;
    let mut best = |set: &str| {
        progress(&format!("{name}: {set}"));
        let mut rates: Vec<f64> = Vec::new();
        for _ in 0..effort.pairs.clamp(1, 5) {
            let (rate, refused) = export_once(set, records)?;
            rates.push(rate);
            not_sent += refused;
        }
        Ok(quantile(&mut rates, 0.5))
    };
    let system = |error: std::io::Error| {
        BenchError::Check(crate::CheckError(format!("the exporter: {error}")))
    };
    let found = Exported {
        name,
        records_per_second: best("5-tuple").map_err(system)?.round(),
        records_per_second_target: 1e6,
        router_records_per_second: best("router").map_err(system)?.round(),
        not_sent: 0,
    };
    Ok((Found::Exported(Exported { not_sent, ..found }), false))
}

struct Nobody;

impl Knows for Nobody {
    fn interfaces(&self) -> Vec<Named> {
        Vec::new()
    }

    fn vrfs(&self) -> Vec<Named> {
        Vec::new()
    }

    fn ignored(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Records a second, and how many were refused.
fn export_once(set: &str, records: u32) -> std::io::Result<(f64, u64)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let (mut table, ring) = Table::new(
        Settings {
            flows: records as usize,
            ring: records as usize,
            ..Settings::default()
        },
        1,
    );
    for first in (0..records).step_by(VECTOR) {
        let packets: Vec<Observation> = (first..(first + VECTOR as u32).min(records))
            .map(|flow| {
                let mut parts = Parts {
                    kind: Kind::Ip4,
                    protocol: 17,
                    destination_port: 53,
                    ..Parts::default()
                };
                parts.source[12..].copy_from_slice(&flow.to_be_bytes());
                Observation {
                    extra: Default::default(),
                    key: Key::new(&parts),
                    octets: 100,
                    tcp_flags: 0,
                    ttl: 64,
                    fragment: 0,
                }
            })
            .collect();
        table.meter(1, &packets, |_| Facts::default());
    }
    table.flush();
    let collector = CollectorConfig {
        target: (socket.local_addr()?).into(),
        transport: Transport::Udp,
        version: Version::Ipfix,
        records: RecordSet::new([set])
            .unwrap_or_else(|error| unreachable!("{error}"))
            .into(),
        mtu: 1500,
        queue: 0,
    };
    let config = ExporterConfig {
        domain: 1,
        refresh: Duration::from_secs(30),
        sampling: 1,
        rates: Default::default(),
        active: Duration::from_secs(60),
        idle: Duration::from_secs(15),
        biflow: false,
        rate: 0,
        epoch: Epoch::default(),
        collectors: vec![collector],
    };
    let source = FlowSource {
        ring,
        counts: table.counts().clone(),
    };
    let began = Instant::now();
    let exporter = Exporter::start(config, vec![source], Arc::new(Nobody))?;
    while exporter.stats().taken.flows < u64::from(records)
        && began.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stats = exporter.stop();
    let seconds = began.elapsed().as_secs_f64();
    let refused = stats
        .collectors
        .first()
        .map_or(0, |(_, stats)| stats.not_sent.flows);
    Ok((stats.taken.flows as f64 / seconds, refused))
}
