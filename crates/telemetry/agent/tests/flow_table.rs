//! The flow table against a model that knows every packet: nothing is lost, nothing counted twice, and flows leave when
//! their time comes, under a clock moved by hand.

use std::collections::HashMap;

use proptest::prelude::*;
use weir_telemetry::flows::key::{Kind, Parts};
use weir_telemetry::flows::record::{FIN, RST, SYN};
use weir_telemetry::flows::{
    EndReason, Facts, FlowRecord, Key, Observation, Records, Settings, Table, VECTOR,
};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

fn settings(flows: usize, ring: usize) -> Settings {
    Settings {
        flows,
        ring,
        ..Settings::default()
    }
}

fn key(flow: u32) -> Key {
    let kind = [Kind::Ip4, Kind::Ip6, Kind::L2][flow as usize % 3];
    let mut parts = Parts {
        kind,
        protocol: 6,
        destination_port: 443,
        ..Parts::default()
    };
    parts.source[12..].copy_from_slice(&flow.to_be_bytes());
    if kind == Kind::Ip6 {
        parts.source[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    }
    Key::new(&parts)
}

fn packet(flow: u32, octets: u32, tcp_flags: u16) -> Observation {
    Observation {
        extra: Default::default(),
        key: key(flow),
        octets,
        tcp_flags,
        ttl: 64,
        fragment: 0,
    }
}

fn none(_: usize) -> Facts {
    Facts::default()
}

fn drain(reader: &mut Records) -> Vec<FlowRecord> {
    std::iter::from_fn(|| reader.pop_with(|record| *record)).collect()
}

/// Time goes on to `end` in steps of a millisecond, with a turn each.
fn go_on(table: &mut Table, from: u64, end: u64) {
    (from / MILLISECOND..=end / MILLISECOND).for_each(|moment| {
        table.expire(moment * MILLISECOND);
    });
}

/// What was metered is what was exported, lost, or is still there.
fn assert_exact(table: &Table, exported: (u64, u64)) {
    let counts = table.counts();
    let resident = table.flows().fold((0, 0), |sum, flow| {
        (sum.0 + flow.sums.packets, sum.1 + flow.sums.octets)
    });
    assert_eq!(
        counts.packets.get(),
        exported.0 + counts.unexported_packets.get() + resident.0,
        "packets"
    );
    assert_eq!(
        counts.octets.get(),
        exported.1 + counts.unexported_octets.get() + resident.1,
        "octets"
    );
    assert_eq!(
        (counts.exported_packets.get(), counts.exported_octets.get()),
        exported
    );
    assert_eq!(table.flows().count(), table.resident());
    let records: u64 = counts
        .exported
        .iter()
        .map(weir_ring::counter::Counter::get)
        .sum();
    assert_eq!(
        counts.flows.get(),
        records + counts.unexported.get() + table.resident() as u64,
        "flows"
    );
}

#[test]
fn a_flow_that_is_quiet_is_reported_within_a_second_of_its_time() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    let start = 100 * SECOND;
    table.meter(
        start,
        &[packet(1, 100, 0), packet(2, 50, 0), packet(1, 40, 0)],
        none,
    );
    let last = start + 3 * SECOND;
    table.meter(last, &[packet(1, 1500, 0x18)], |_| panic!("it is known"));
    // Flow 2 at 15 s after its only packet, flow 1 at 15 s after its last one.
    go_on(&mut table, start, start + 15 * SECOND - 1);
    assert!(reader.is_empty());
    go_on(&mut table, start + 15 * SECOND, start + 16 * SECOND);
    let records = drain(&mut reader);
    assert_eq!(records.len(), 1);
    assert_eq!(
        (
            records[0].key,
            records[0].sums.packets,
            records[0].sums.octets
        ),
        (key(2), 1, 50)
    );
    assert_eq!(records[0].sums.reason, EndReason::Idle);
    go_on(&mut table, start + 16 * SECOND, last + 15 * SECOND - 1);
    assert!(reader.is_empty());
    go_on(&mut table, last + 15 * SECOND, last + 16 * SECOND);
    let records = drain(&mut reader);
    let sums = records[0].sums;
    assert_eq!(
        (
            records.len(),
            sums.packets,
            sums.octets,
            sums.first,
            sums.last
        ),
        (1, 3, 1640, start, last)
    );
    assert_eq!(
        (sums.shortest, sums.longest, sums.tcp_flags, sums.reason),
        (40, 1500, 0x18, EndReason::Idle)
    );
    assert_eq!(table.resident(), 0);
    assert_exact(&table, (4, 1690));
}

#[test]
fn a_flow_that_goes_on_is_reported_by_the_active_timeout() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    let (start, mut reports) = (SECOND, Vec::new());
    for second in 0..180 {
        let now = start + second * SECOND;
        table.meter(now, &[packet(7, 100, 0)], none);
        go_on(&mut table, now, now + SECOND - 1);
        for record in drain(&mut reader) {
            assert_eq!(record.sums.reason, EndReason::Active);
            reports.push((now, record.sums));
        }
    }
    // At 60 s; the next one begins with the packet of second 61 at the latest, and is over 60 s after that.
    assert_eq!(reports.len(), 2, "{reports:?}");
    for (reported, sums) in &reports {
        let late = reported + SECOND - (sums.first + 60 * SECOND);
        assert!(late <= 2 * SECOND, "{late}");
        assert!((60..=62).contains(&sums.packets), "{sums:?}");
    }
    assert_exact(
        &table,
        (
            reports.iter().map(|(_, sums)| sums.packets).sum(),
            reports.iter().map(|(_, sums)| sums.octets).sum(),
        ),
    );
}

#[test]
fn fin_and_rst_end_a_flow_and_syn_begins_another() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    let now = SECOND;
    table.meter(
        now,
        &[
            packet(1, 60, SYN),
            packet(2, 60, 0x10),
            packet(1, 60, FIN | 0x10),
            packet(1, 52, 0x10),
        ],
        none,
    );
    go_on(&mut table, now, now + SECOND);
    let records = drain(&mut reader);
    assert_eq!(
        (
            records.len(),
            records[0].sums.packets,
            records[0].sums.reason
        ),
        (1, 3, EndReason::End)
    );
    // In one vector: the end, what follows it, and a new flow of the same key.
    let now = 3 * SECOND;
    table.meter(
        now,
        &[
            packet(2, 40, RST),
            packet(2, 40, 0x10),
            packet(2, 60, SYN),
            packet(2, 61, 0x10),
        ],
        none,
    );
    let records = drain(&mut reader);
    assert_eq!(
        (
            records.len(),
            records[0].sums.packets,
            records[0].sums.octets
        ),
        (1, 3, 140)
    );
    assert_eq!(records[0].sums.reason, EndReason::End);
    let resident: Vec<_> = table
        .flows()
        .map(|flow| (flow.sums.packets, flow.sums.octets, flow.sums.tcp_flags))
        .collect();
    assert_eq!(resident, [(2, 121, SYN | 0x10)]);
    assert_exact(&table, (6, 312));
}

#[test]
fn a_forced_end_empties_the_table_as_the_ring_is_emptied() {
    let (mut table, mut reader) = Table::new(settings(5000, 512), 1);
    for vector in 0..16 {
        let packets: Vec<_> = (0..250)
            .map(|flow| packet(vector * 250 + flow, 100, 0))
            .collect();
        table.meter(SECOND, &packets, none);
    }
    assert_eq!(table.resident(), 4000);
    let (mut records, mut left) = (Vec::new(), table.flush());
    assert_eq!(left, 4000 - 512);
    while left > 0 {
        records.extend(drain(&mut reader));
        left = table.flush();
    }
    records.extend(drain(&mut reader));
    assert_eq!((records.len(), table.resident()), (4000, 0));
    assert!(
        records
            .iter()
            .all(|record| record.sums.reason == EndReason::Forced)
    );
    assert_exact(&table, (4000, 400_000));
}

/// A million records are over in the same moment; each turn does a bounded part of them.
#[test]
fn what_is_over_at_once_leaves_within_a_second_and_a_bounded_part_a_turn() {
    let (mut table, mut reader) = Table::new(settings(100_000, 1 << 17), 1);
    for vector in 0..400 {
        let packets: Vec<_> = (0..250)
            .map(|flow| packet(vector * 250 + flow, 100, 0))
            .collect();
        table.meter(SECOND, &packets, none);
    }
    let over = 16 * SECOND;
    go_on(&mut table, SECOND, over - 1);
    assert_eq!(table.resident(), 100_000);
    let (mut most, mut before) = (0, 0);
    for turn in 0..1000 {
        table.expire(over + turn * MILLISECOND);
        let count = table.counts().exported[1].get();
        most = most.max(count - before);
        before = count;
    }
    assert_eq!((table.resident(), drain(&mut reader).len()), (0, 100_000));
    assert!(most <= 256, "{most}");
}

/// A full ring holds nothing up: what is over stays until there is room, and what must make room is counted.
#[test]
fn a_cold_side_that_is_gone_costs_counted_flows_only() {
    let (mut table, mut reader) = Table::new(settings(2048, 256), 1);
    for vector in 0..100 {
        let packets: Vec<_> = (0..VECTOR as u32)
            .map(|flow| packet(vector * 256 + flow, 100, 0))
            .collect();
        table.meter(SECOND + u64::from(vector) * MILLISECOND, &packets, none);
    }
    let counts = table.counts().clone();
    assert!(table.resident() <= 2048 + VECTOR, "{}", table.resident());
    assert_eq!(counts.exported[EndReason::Resources as usize].get(), 256);
    assert_eq!(
        counts.unexported.get(),
        25_600 - 256 - table.resident() as u64
    );
    go_on(&mut table, SECOND, 30 * SECOND);
    assert!(counts.waited.get() > 0 && table.resident() > 1500);
    assert_eq!(drain(&mut reader).len(), 256);
    // Now somebody reads.
    let mut late = Vec::new();
    for turn in 0..1000 {
        table.expire(31 * SECOND + turn * MILLISECOND);
        late.extend(drain(&mut reader));
    }
    assert_eq!(table.resident(), 0);
    assert_exact(
        &table,
        (256 + late.len() as u64, (256 + late.len() as u64) * 100),
    );
}

/// Flows that go on stay in the table when a flood of single packets comes.
#[test]
fn a_flood_does_not_drive_out_flows_that_go_on() {
    (1..9).for_each(flood_beside_flows_that_go_on);
}

fn flood_beside_flows_that_go_on(seed: u64) {
    let (mut table, mut reader) = Table::new(settings(4096, 1 << 14), seed);
    let (mut number, mut driven_out) = (1_000_000, 0);
    for round in 0..400_u64 {
        let now = SECOND + round * 50 * MILLISECOND;
        // 128 elephants, and as many that come once.
        let elephants = (0..128).map(|flow| packet(flow, 1500, 0));
        let packets: Vec<_> = elephants
            .chain((number..number + 128).map(|flow| packet(flow, 60, 0)))
            .collect();
        number += 128;
        table.meter(now, &packets, none);
        table.expire(now);
        let is_elephant = |record: &FlowRecord| record.sums.longest == 1500;
        driven_out += drain(&mut reader)
            .iter()
            .filter(|record| record.sums.reason == EndReason::Resources && is_elephant(record))
            .count();
    }
    assert!(table.counts().exported[EndReason::Resources as usize].get() > 10_000);
    assert_eq!(driven_out, 0, "seed {seed}");
}

#[test]
fn other_timeouts_hold_for_flows_that_are_there() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    table.meter(SECOND, &[packet(1, 100, 0)], none);
    table.set_timeouts(60 * SECOND, SECOND);
    go_on(&mut table, SECOND, 2 * SECOND - 1);
    assert!(reader.is_empty());
    go_on(&mut table, 2 * SECOND, 3 * SECOND);
    assert_eq!(drain(&mut reader).len(), 1);
}

#[test]
fn facts_are_those_of_the_first_packet() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    let facts = |place: usize| Facts {
        source_prefix: place as u8 + 1,
        ..Facts::default()
    };
    table.meter(
        SECOND,
        &[packet(9, 1, 0), packet(8, 1, 0), packet(9, 1, 0)],
        facts,
    );
    table.meter(SECOND, &[packet(8, 1, 0), packet(9, 1, 0)], facts);
    assert_eq!(table.flush(), 0);
    let mut prefixes: Vec<_> = drain(&mut reader)
        .iter()
        .map(|record| (record.facts.source_prefix, record.sums.packets))
        .collect();
    prefixes.sort_unstable();
    assert_eq!(prefixes, [(1, 3), (2, 2)]);
}

/// Records move when the table grows; each takes along what is its own.
#[test]
fn every_flow_keeps_its_own_while_the_table_grows() {
    const FLOWS: u32 = 30_000;
    let (mut table, mut reader) = Table::new(settings(40_000, 1 << 16), 3);
    for first in (0..FLOWS).step_by(250) {
        let packets: Vec<_> = (first..first + 250)
            .map(|flow| packet(flow, 60 + flow % 1000, 0))
            .collect();
        table.meter(SECOND, &packets, |place| Facts {
            labels: [first + place as u32; 4],
            ..Facts::default()
        });
        // Those of before are found again, wherever they are by now.
        let known: Vec<_> = (0..first)
            .step_by(first.max(200) as usize / 200)
            .take(VECTOR)
            .map(|flow| packet(flow, 1, 0))
            .collect();
        table.meter(SECOND, &known, |_| panic!("it is known"));
    }
    assert_eq!(
        (table.resident(), table.flows().count()),
        (FLOWS as usize, FLOWS as usize)
    );
    assert_eq!(table.flush(), 0);
    let records: HashMap<Key, FlowRecord> = drain(&mut reader)
        .into_iter()
        .map(|record| (record.key, record))
        .collect();
    for flow in 0..FLOWS {
        let record = &records[&key(flow)];
        assert_eq!(
            (record.facts.labels[3], record.sums.longest),
            (flow, 60 + flow % 1000),
            "{flow}"
        );
    }
}

/// A router that stood still for longer than ticks last reports what is over, and nothing before its time.
#[test]
fn a_long_pause_confuses_nobody() {
    let (mut table, mut reader) = Table::new(settings(1000, 1024), 1);
    table.meter(SECOND, &[packet(1, 100, 0)], none);
    table.expire(SECOND);
    // 65,536 ticks of 67 ms, less half a minute.
    let later = SECOND + (1 << (26 + 16)) - 30 * SECOND;
    table.meter(later, &[packet(2, 100, 0)], none);
    go_on(&mut table, later, later + SECOND);
    assert_eq!(
        drain(&mut reader)
            .iter()
            .map(|record| record.key)
            .collect::<Vec<_>>(),
        [key(1)]
    );
    go_on(&mut table, later + SECOND, later + 16 * SECOND);
    assert_eq!(
        drain(&mut reader)
            .iter()
            .map(|record| record.key)
            .collect::<Vec<_>>(),
        [key(2)]
    );
}

/// What happens to a table.
#[derive(Clone, Debug)]
enum Event {
    Packets(Vec<(u16, u16, u8)>),
    Wait(u32),
    Drain,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    // Few flows that come again, and many that do not.
    let flow = prop_oneof![0_u16..40, any::<u16>()];
    let packets = proptest::collection::vec(
        (
            flow,
            40_u16..1500,
            prop_oneof![6 => Just(0_u8), 1 => any::<u8>()],
        ),
        0..VECTOR,
    );
    let event = prop_oneof![6 => packets.prop_map(Event::Packets), 3 => (0_u32..20_000).prop_map(Event::Wait), 1 => Just(Event::Drain)];
    proptest::collection::vec(event, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every packet is in exactly one record, or in a flow that was lost and counted, or in one that is still there.
    #[test]
    fn nothing_is_lost_and_nothing_counted_twice(events in events(), seed in any::<u64>()) {
        let (mut table, mut reader) = Table::new(settings(512, 256), seed);
        let (mut now, mut sent, mut got) = (SECOND, HashMap::<Key, (u64, u64)>::new(), HashMap::<Key, (u64, u64)>::new());
        let mut exported = (0, 0);
        let mut take = |reader: &mut Records, got: &mut HashMap<Key, (u64, u64)>| {
            for record in drain(reader) {
                let sums = record.sums;
                assert!(sums.packets > 0 && sums.first <= sums.last && sums.shortest <= sums.longest);
                exported = (exported.0 + sums.packets, exported.1 + sums.octets);
                let sum = got.entry(record.key).or_default();
                *sum = (sum.0 + sums.packets, sum.1 + sums.octets);
            }
            exported
        };
        for event in events {
            match event {
                Event::Packets(packets) => {
                    let packets: Vec<_> = packets.iter().map(|(flow, octets, flags)| packet((*flow).into(), (*octets).into(), (*flags).into())).collect();
                    for packet in &packets {
                        let sum = sent.entry(packet.key).or_default();
                        *sum = (sum.0 + 1, sum.1 + u64::from(packet.octets));
                    }
                    table.meter(now, &packets, none);
                }
                Event::Wait(milliseconds) => {
                    now += u64::from(milliseconds) * MILLISECOND;
                    table.expire(now);
                }
                Event::Drain => _ = take(&mut reader, &mut got),
            }
            prop_assert!(table.resident() <= 512 + VECTOR);
        }
        let taken = take(&mut reader, &mut got);
        assert_exact(&table, taken);
        while table.flush() > 0 {
            take(&mut reader, &mut got);
        }
        let taken = take(&mut reader, &mut got);
        assert_exact(&table, taken);
        prop_assert_eq!(table.resident(), 0);
        // No flow has more than it was sent; without losses each has exactly that.
        for (key, sums) in &got {
            let sent = sent[key];
            prop_assert!(sums.0 <= sent.0 && sums.1 <= sent.1);
        }
        if table.counts().unexported.get() == 0 {
            prop_assert_eq!(got, sent);
        }
    }
}

/// Ten million flows offered to a table of a million, with a reader that is too slow: exact, and bounded.
#[test]

fn ten_million_flows_through_a_table_of_a_million() {
    if std::env::var_os("WEIR_LONG").is_none() {
        eprintln!("skipped: takes long without optimisation; make test-long runs it");
        return;
    }
    let (mut table, mut reader) = Table::new(settings(1 << 20, 1 << 14), 5);
    let (mut exported, mut now) = ((0, 0), SECOND);
    for vector in 0..40_000_u32 {
        let packets: Vec<_> = (0..250)
            .map(|flow| packet(vector * 250 + flow, 60 + flow, 0))
            .collect();
        table.meter(now, &packets, none);
        now += 100_000;
        table.expire(now);
        // Two of three.
        for _ in 0..170 {
            let Some(sums) = reader.pop_with(|record| record.sums) else {
                break;
            };
            exported = (exported.0 + sums.packets, exported.1 + sums.octets);
        }
    }
    assert!(table.resident() <= (1 << 20) + VECTOR);
    let counts = table.counts().clone();
    assert_eq!(
        (counts.packets.get(), counts.flows.get()),
        (10_000_000, 10_000_000)
    );
    assert!(counts.unexported.get() > 1_000_000, "the ring was full");
    loop {
        let left = table.flush();
        for record in drain(&mut reader) {
            exported = (
                exported.0 + record.sums.packets,
                exported.1 + record.sums.octets,
            );
        }
        if left == 0 {
            break;
        }
    }
    assert_exact(&table, exported);
    assert_eq!(exported.0 + counts.unexported_packets.get(), 10_000_000);
}
