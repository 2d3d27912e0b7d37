//! What the flow table costs a packet, by the number of flows: `cargo run --release -p weir-telemetry --example flow_table`.
//!
//! Vectors of 256 observations of random flows of a set, made beforehand; the clocks of `meter` alone, in the median over
//! the rounds. `flood`: every packet is a new flow, into a table that is full, with a reader on the same thread whose time
//! is not counted.

use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::{Addresses, Facts, Key, Observation, Reading, Settings, Table, VECTOR};
use weir_telemetry::random::Random;

/// Packets of a round.
const ROUND: usize = VECTOR * 512;
const ROUNDS: usize = 21;

fn observation(flow: u32) -> Observation {
    let mut parts = Parts {
        kind: Kind::Ip4,
        protocol: 17,
        input: 1,
        output: 2,
        destination_port: 443,
        ..Parts::default()
    };
    parts.source[12..].copy_from_slice(&flow.to_be_bytes());
    parts.source_port = flow as u16;
    Observation {
        extra: Default::default(),
        key: Key::new(&parts),
        octets: 100,
        tcp_flags: 0,
        ttl: 64,
        fragment: 0,
    }
}

/// Lowest and median.
fn summary(mut clocks: Vec<f64>) -> String {
    clocks.sort_by(f64::total_cmp);
    format!(
        "{:6.1} clocks a packet, at best {:6.1}",
        clocks[clocks.len() / 2],
        clocks[0]
    )
}

/// Clocks a packet of a round of vectors that `next` makes; `after` each of them is not counted.
fn round(table: &mut Table, mut next: impl FnMut() -> Observation, mut after: impl FnMut()) -> f64 {
    let mut sum = 0;
    for _ in 0..ROUND / VECTOR {
        let mut packets: Vec<Reading> = (0..VECTOR)
            .map(|_| Reading::new(&next(), table.secret()).0)
            .collect();
        let start = weir_cpu::tsc();
        table.find(&mut packets);
        table.count(1, &packets, &[Addresses::default(); VECTOR], |_| {
            Facts::default()
        });
        sum += weir_cpu::tsc() - start;
        after();
    }
    sum as f64 / ROUND as f64
}

fn known(flows: u32) {
    let (mut table, _reader) = Table::new(Settings::default(), 42);
    let mut random = Random::new(7);
    let all: Vec<Observation> = (0..flows).map(observation).collect();
    all.chunks(VECTOR)
        .for_each(|vector| table.meter(1, vector, |_| Facts::default()));
    drop(all);
    let mut next = || observation((random.bits() % u64::from(flows)) as u32);
    let clocks = (0..ROUNDS)
        .map(|_| round(&mut table, &mut next, || ()))
        .collect();
    println!("{flows:>9} flows: {}", summary(clocks));
}

fn flood(flows: usize) {
    let (mut table, mut reader) = Table::new(
        Settings {
            flows,
            ..Settings::default()
        },
        42,
    );
    let mut number = 0;
    let mut next = || {
        number += 1;
        observation(number)
    };
    let mut drain = || while reader.pop_with(|_| ()).is_some() {};
    for _ in 0..flows / ROUND + 1 {
        round(&mut table, &mut next, &mut drain);
    }
    let clocks = (0..ROUNDS)
        .map(|_| round(&mut table, &mut next, &mut drain))
        .collect();
    println!(
        "flood, {flows:>9} in the table: {}, {} unexported",
        summary(clocks),
        table.counts().unexported.get()
    );
}

/// What this machine takes at this moment for lines of memory that were asked for 256 at a time: two of them a packet are
/// what no table of that size can do without.
fn floor(lines: usize) {
    let memory: Vec<[u64; 8]> = vec![[1; 8]; lines];
    weir_cpu::prefer_hugepages(&memory, true);
    let mut random = Random::new(3);
    let clocks = (0..ROUNDS).map(|_| {
        let mut sum = 0;
        for _ in 0..ROUND / VECTOR {
            let places: Vec<usize> = (0..VECTOR)
                .map(|_| (random.bits() % lines as u64) as usize)
                .collect();
            let start = weir_cpu::tsc();
            places
                .iter()
                .for_each(|place| weir_cpu::prefetch(&memory[*place]));
            let read: u64 = places.iter().map(|place| memory[*place][0]).sum();
            sum += weir_cpu::tsc() - start + u64::from(read == 0);
        }
        sum as f64 / ROUND as f64
    });
    println!(
        "{lines:>9} lines: {}",
        summary(clocks.collect()).replace("packet", "line")
    );
}

fn main() {
    for lines in [1_000, 100_000, 1_000_000] {
        floor(lines);
    }
    for flows in [1_000, 100_000, 1_000_000] {
        known(flows);
    }
    for flows in [1 << 17, 1 << 20] {
        flood(flows);
    }
}
