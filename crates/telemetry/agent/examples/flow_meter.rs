//! What the flow meter costs a packet, in its three parts: `cargo run --release -p weir-telemetry --example flow_meter --
//! [VECTORS [FLOWS [ip6]]]`.
//!
//! The same vectors of 256 plain packets over and over: read on receive, given their outcome on transmit, counted when the turn
//! is over; clocks a packet at best. With 0 flows every packet begins one, and makes another one leave as soon as the table is full. One vector stays in the core's first caches; some hundred are what a router sees.

use std::sync::Arc;

use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, Tally};
use weir_graph::{Destination, DropCounters, Follower, Look, Marks, Point, Tap, World};
use weir_telemetry::exporter::RecordSet;
use weir_telemetry::flows::{Selection, Settings, Table, VECTOR};
use weir_telemetry::meter::{Meter, MeterPlan, MeterSettings};
use weir_telemetry::random::Random;

const ROUNDS: usize = 60;
const TURNS: usize = 256;

/// Nothing is dropped here.
struct Plain;

impl World for Plain {
    type Event = ();
    fn drops(&self, _: u32, _: usize) -> Option<&DropCounters> {
        None
    }
    fn rx_taps(&self, _: u32) -> u32 {
        1
    }
    fn tx_taps(&self, _: u32) -> u32 {
        0
    }
    fn drop_taps(&self) -> u32 {
        0
    }
    fn output(&self, _: u32) -> u8 {
        0
    }
}

fn frame(flow: u32) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0,
    ];
    frame.extend(flow.to_be_bytes());
    frame.extend([198, 51, 100, 1, 0, 9, 0, 53]);
    frame.resize(60, 0);
    frame
}

fn frame6(flow: u32) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64,
    ];
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend(flow.to_be_bytes());
    frame.extend([
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 53,
    ]);
    frame.resize(74, 0);
    frame
}

fn main() {
    let frame = if std::env::args().nth(3).is_some_and(|kind| kind == "ip6") {
        frame6
    } else {
        frame
    };
    let mut words = std::env::args().skip(1).map_while(|word| word.parse().ok());
    let (vectors, flows): (u64, u64) = (words.next().unwrap_or(64), words.next().unwrap_or(1000));
    let pool = Pool::new(PoolConfig {
        chunks: VECTOR * (vectors as usize + 4),
        hugepages: Hugepages::Auto,
    })
    .expect("a pool of so many buffers");
    let (mut cache, mut random) = (PktCache::new(&pool), Random::new(3));
    let mut vector = || -> Vec<Pkt> { (0..VECTOR).filter_map(|_| cache.alloc()).collect() };
    let mut all: Vec<Vec<Pkt>> = (0..vectors).map(|_| vector()).collect();

    let (settings, set) = (
        Arc::new(MeterSettings::default()),
        RecordSet::new(["5-tuple"]).expect("a set of this name"),
    );
    settings.set(MeterPlan {
        rx: [(1, Selection::new(set.elements(), 0, false).into())].into(),
        ..MeterPlan::default()
    });
    let (mut meter, control) = Meter::new(settings, 3);
    let (table, mut records) = Table::new(Settings::default(), 4);
    control.give(Some(Box::new(table)));
    Tap::<Plain>::tick(&mut meter, 1);

    let (mut best, mut now, mut next) = ([f64::MAX; 3], 1000, 0_u32);
    for round in 0..ROUNDS {
        let mut sums = [0; 3];
        for turn in 0..TURNS {
            let packets = &mut all[turn % vectors as usize];
            // Each turn other flows, so that all of them are met.
            packets.iter_mut().for_each(|packet| {
                packet.clear();
                next = next.wrapping_add(1);
                assert!(packet.fill(&frame(if flows == 0 {
                    next
                } else {
                    (random.bits() % flows) as u32
                })));
            });
            now += 10_000;
            let look = Look {
                world: &Plain,
                worker: 0,
                now,
                point: Point::Rx,
                interface: 1,
                inner: false,
                left: 0,
            };
            // The stage before a driver has them anyway.
            let flags = Tally::of(packets).flags();
            let moments = [
                weir_cpu::tsc(),
                (
                    meter.look(&look, packets, &mut Marks::default()),
                    weir_cpu::tsc(),
                )
                    .1,
                {
                    Follower::goes(
                        &mut meter,
                        Destination::Out {
                            interface: 7,
                            flags,
                        },
                        packets,
                    );
                    weir_cpu::tsc()
                },
            ];
            Follower::turn_over(&mut meter, now);
            let end = weir_cpu::tsc();
            for (sum, (from, to)) in sums
                .iter_mut()
                .zip(moments.iter().zip(moments[1..].iter().chain([&end])))
            {
                *sum += to - from;
            }
            while records.pop_with(|_| ()).is_some() {}
        }
        // The table is full by then, if it will ever be.
        if round < ROUNDS / 2 {
            continue;
        }
        for (best, sum) in best.iter_mut().zip(sums) {
            *best = best.min(sum as f64 / (TURNS * VECTOR) as f64);
        }
    }
    let [read, summary, counted] = best;
    println!(
        "{vectors} vectors, {flows} flows: read {read:.1}, reported {summary:.1}, counted {counted:.1} clocks a packet"
    );
}
