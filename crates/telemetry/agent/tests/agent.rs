//! What the agent puts on the wire, read back from real sockets: numbers, pools, drops, rates, forms.
//! What goes wrong with collectors is in `collectors.rs`, counters are in `reporting.rs`.

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::collector::{Flow, Interfaces, Received, Receiver, config, flows, wait_for};
use common::{OUTPUT, Packets, Rig, packets};
use weir_flowfmt::sflow::encode::Encoding;
use weir_flowfmt::sflow::{DataFormat, Port, Source};
use weir_graph::{DropReason, Marker, PacketOutcome};
use weir_telemetry::agent::{Agent, AgentHandle};

fn start(receiver: &Receiver, workers: &mut [&mut Rig]) -> AgentHandle {
    let sources = workers
        .iter_mut()
        .map(|worker| worker.give_source())
        .collect();
    Agent::start(
        config(&[receiver.address()]),
        sources,
        Interfaces::of(Vec::new()),
    )
    .unwrap()
}

fn numbered_from_one(datagrams: &[Received]) {
    let sequences: Vec<u32> = datagrams.iter().map(|datagram| datagram.sequence).collect();
    assert_eq!(sequences, (1..=datagrams.len() as u32).collect::<Vec<_>>());
}

#[test]
fn one_agent_numbers_the_samples_of_all_workers() {
    let Packets { packets, .. } = packets(64, 90);
    let receiver = Receiver::new();
    let (mut one, mut two) = (Rig::new(3, 1), Rig::new(3, 2).in_worker(1));
    let agent = start(&receiver, &mut [&mut one, &mut two]);
    let mut datagrams = Vec::new();
    for round in 0..30 {
        one.look_on(5, &packets);
        two.look_on(5, &packets[..20]);
        two.look_on(6, &packets[..round]);
        datagrams.extend(receiver.next(Duration::from_millis(5)));
    }
    let stats = agent.stop();
    datagrams.extend(receiver.all());

    numbered_from_one(&datagrams);
    assert_eq!(stats.datagrams, datagrams.len() as u64);
    assert_eq!(
        (stats.collectors[0].sent, stats.collectors[0].errors),
        (stats.datagrams, 0)
    );
    assert_eq!(stats.samples_sent, [one.taken(), two.taken()]);
    assert_eq!((stats.samples_dropped, stats.samples_lost), (0, 0));
    let mut last: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for flow in flows(&datagrams) {
        let interface = flow.sample.source.index;
        let (sequence, pool) = last.entry(interface).or_default();
        assert_eq!(
            (flow.sample.sequence, flow.sample.source.class),
            (*sequence + 1, 0)
        );
        assert!(flow.sample.pool > *pool, "each sample is a packet more");
        (*sequence, *pool) = (flow.sample.sequence, flow.sample.pool);
        assert_eq!((flow.sample.rate, flow.sample.drops), (3, 0));
        assert_eq!(
            (flow.sample.input, flow.sample.output),
            (Port::interface(interface), Port::interface(OUTPUT))
        );
        assert_eq!(
            (
                flow.protocol,
                flow.frame_length,
                flow.stripped,
                flow.header.len()
            ),
            (1, 94, 4, 16)
        );
    }
    assert_eq!(last.len(), 2);
    for interface in stats.interfaces {
        let (sequence, pool) = last[&interface.ifindex];
        assert_eq!(
            (u64::from(sequence), u64::from(pool)),
            (interface.samples, interface.pool)
        );
        // What came after each worker's last sample is not in it, which is a few vectors at most.
        let seen = if interface.ifindex == 5 {
            30 * 84
        } else {
            29 * 30 / 2
        };
        assert!(
            interface.pool <= seen && interface.pool > seen - 200,
            "{interface:?} of {seen}"
        );
    }
}

/// Every packet is sampled, so the pool of the last sample of each worker holds all it saw.
#[test]
fn the_pool_is_the_sum_of_what_the_workers_saw() {
    let Packets { packets, .. } = packets(10, 64);
    let receiver = Receiver::new();
    let (mut one, mut two) = (Rig::new(1, 1), Rig::new(1, 2).in_worker(1));
    one.look(&packets[..4]);
    two.look(&packets[..3]);
    let agent = start(&receiver, &mut [&mut one, &mut two]);
    wait_for("the first samples", || agent.stats().samples_sent == [4, 3]);
    one.look(&packets[..1]);
    wait_for("one more", || agent.stats().samples_sent == [5, 3]);
    // A worker that joins later.
    let mut three = Rig::new(1, 3).in_worker(2);
    three.look(&packets);
    agent.add_sources(vec![three.give_source()]);
    wait_for("the third worker", || {
        agent.stats().samples_sent == [5, 3, 10]
    });
    let stats = agent.stop();
    assert_eq!(stats.interfaces[0].pool, 18);
    let pools: Vec<u32> = flows(&receiver.all())
        .iter()
        .map(|flow| flow.sample.pool)
        .collect();
    assert_eq!(pools, (1..=18).collect::<Vec<_>>());
}

#[test]
fn workers_take_turns() {
    let (long, short) = (packets(256, 300), packets(256, 60));
    let receiver = Receiver::new();
    let (mut busy, mut quiet) = (Rig::new(1, 1), Rig::new(1, 2).in_worker(1));
    busy.look(&long.packets);
    busy.look(&long.packets);
    quiet.look(&short.packets[..9]);
    let _ = start(&receiver, &mut [&mut busy, &mut quiet]).stop();
    let lengths: Vec<u32> = flows(&receiver.all())
        .iter()
        .map(|flow| flow.frame_length)
        .collect();
    assert_eq!(lengths[..18], [304, 64].repeat(9));
    assert_eq!(lengths.len(), 512 + 9);
}

#[test]
fn stop_sends_all_that_is_in_the_rings() {
    let Packets { packets, .. } = packets(250, 64);
    let receiver = Receiver::new();
    let mut rigs = [
        Rig::new(1, 1),
        Rig::new(1, 2).in_worker(1),
        Rig::new(1, 3).in_worker(2),
    ];
    for (vectors, rig) in rigs.iter_mut().enumerate() {
        (0..vectors).for_each(|_| rig.look(&packets));
    }
    let mut iter = rigs.iter_mut();
    let mut workers: Vec<&mut Rig> = std::iter::from_fn(|| iter.next()).collect();
    let stats = start(&receiver, &mut workers).stop();
    assert_eq!(stats.samples_sent, [0, 250, 500]);
    let datagrams = receiver.all();
    numbered_from_one(&datagrams);
    assert_eq!(flows(&datagrams).len(), 750);
}

#[test]
fn each_source_tells_its_own_drops() {
    let Packets { packets, .. } = packets(64, 64);
    let receiver = Receiver::new();
    let (mut one, mut two) = (
        Rig::with_ring(1, 1, 16),
        Rig::with_ring(1, 2, 16).in_worker(1),
    );
    // Of each worker the first interface fills half of the ring, and the second finds room for eight.
    one.look_on(5, &packets[..8]);
    one.look_on(6, &packets[..10]);
    two.look_on(6, &packets[..8]);
    two.look_on(5, &packets[..40]);
    let agent = start(&receiver, &mut [&mut one, &mut two]);
    let stats = agent.stop();
    assert_eq!((stats.samples_dropped, one.lost(), two.lost()), (34, 2, 32));
    let drops: BTreeMap<(u32, u32), usize> =
        flows(&receiver.all())
            .iter()
            .fold(BTreeMap::new(), |mut all, flow| {
                *all.entry((flow.sample.source.index, flow.sample.drops))
                    .or_default() += 1;
                all
            });
    assert_eq!(drops, BTreeMap::from([((5, 32), 16), ((6, 2), 16)]));
}

#[test]
fn samples_that_found_a_ring_full_are_reported_as_drops() {
    let Packets { packets, .. } = packets(100, 64);
    let receiver = Receiver::new();
    let (mut one, mut two) = (
        Rig::with_ring(1, 1, 8),
        Rig::with_ring(1, 2, 16).in_worker(1),
    );
    one.look(&packets);
    two.look(&packets);
    assert_eq!((one.lost(), two.lost()), (92, 84));
    let agent = start(&receiver, &mut [&mut one, &mut two]);
    wait_for("what the rings held", || {
        agent.stats().samples_sent == [8, 16]
    });
    one.look(&packets[..11]);
    let stats = agent.stop();
    let lost = one.lost() + two.lost();
    assert_eq!(stats.samples_dropped, lost);
    assert_eq!(
        stats.samples_sent.iter().sum::<u64>() + lost,
        one.taken() + two.taken()
    );
    let drops: Vec<u32> = flows(&receiver.all())
        .iter()
        .map(|flow| flow.sample.drops)
        .collect();
    assert!(drops[..24].iter().all(|&drops| drops == 176), "{drops:?}");
    assert!(drops.is_sorted() && u64::from(*drops.last().unwrap()) <= lost);
}

#[test]
fn a_sample_is_sent_within_a_second() {
    let Packets { packets, .. } = packets(1, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    let agent = start(&receiver, &mut [&mut rig]);
    for _ in 0..3 {
        let taken = Instant::now();
        rig.look(&packets);
        let datagram = receiver.next(Duration::from_secs(10)).expect("a datagram");
        assert!(
            taken.elapsed() < Duration::from_secs(1),
            "{:?}",
            taken.elapsed()
        );
        assert_eq!(datagram.flows.len(), 1);
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(agent.stop().datagrams, 3);
}

/// Worked out from the specification: 28 octets of header (agent over IPv4) and 76 + 128 for each
/// sample are 1252 octets with six of them, and more than 1400 with seven.
#[test]
fn datagrams_are_filled_to_their_limit_and_not_beyond() {
    let Packets { packets, .. } = packets(120, 128);
    for (limit, each) in [(1400, 6), (1456, 7), (1455, 6), (232, 1)] {
        let receiver = Receiver::new();
        let mut rig = Rig::new(1, 1);
        rig.settings.set(1, 128);
        rig.look(&packets);
        let config = weir_telemetry::agent::AgentConfig {
            datagram_bytes: limit,
            ..config(&[receiver.address()])
        };
        let _ = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new()))
            .unwrap()
            .stop();
        let datagrams = receiver.all();
        numbered_from_one(&datagrams);
        let (last, full) = datagrams.split_last().unwrap();
        assert!(
            full.iter()
                .all(|datagram| datagram.flows.len() == each
                    && datagram.bytes.len() == 28 + each * 204),
            "limit {limit}"
        );
        assert_eq!(full.len() * each + last.flows.len(), 120);
    }
}

#[test]
fn a_sample_larger_than_any_datagram_is_lost_and_counted() {
    let (long, short) = (packets(3, 300), packets(4, 64));
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    rig.settings.set(1, 256);
    let config = weir_telemetry::agent::AgentConfig {
        datagram_bytes: 250,
        ..config(&[receiver.address()])
    };
    rig.look(&short.packets);
    rig.look(&long.packets);
    rig.look(&short.packets);
    let stats = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new()))
        .unwrap()
        .stop();
    assert_eq!((stats.samples_sent, stats.samples_lost), (vec![8], 3));
    let sequences: Vec<u32> = flows(&receiver.all())
        .iter()
        .map(|flow| flow.sample.sequence)
        .collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_changed_rate_is_reported_sample_by_sample() {
    let Packets { packets, .. } = packets(100, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    rig.look(&packets);
    rig.settings.set(2, 16);
    rig.look(&packets);
    let _ = start(&receiver, &mut [&mut rig]).stop();
    let rates: Vec<u32> = flows(&receiver.all())
        .iter()
        .map(|flow| flow.sample.rate)
        .collect();
    assert!(
        rates[..100].iter().all(|&rate| rate == 1) && rates[100..].iter().all(|&rate| rate == 2)
    );
    assert!((20..80).contains(&(rates.len() - 100)));
}

#[test]
fn a_changed_encoding_mixes_in_no_datagram_and_keeps_the_numbers() {
    let Packets { packets, .. } = packets(50, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    let expanded = config(&[receiver.address()]);
    let compact = weir_telemetry::agent::AgentConfig {
        encoding: Encoding::Compact,
        ..expanded.clone()
    };
    let agent = Agent::start(
        expanded.clone(),
        vec![rig.give_source()],
        Interfaces::of(Vec::new()),
    )
    .unwrap();
    for turn in 1..=4 {
        rig.look(&packets);
        wait_for("the samples", || agent.stats().samples_sent == [50 * turn]);
        agent.reconfigure(if turn % 2 == 1 {
            compact.clone()
        } else {
            expanded.clone()
        });
        std::thread::sleep(Duration::from_millis(40));
    }
    let _ = agent.stop();
    let datagrams = receiver.all();
    numbered_from_one(&datagrams);
    let forms: Vec<Vec<DataFormat>> = datagrams
        .iter()
        .map(|it| it.flows.iter().map(|flow| flow.format).collect())
        .collect();
    assert!(
        forms
            .iter()
            .all(|forms| forms.iter().all(|form| *form == forms[0]))
    );
    let flows = flows(&datagrams);
    let expected = [DataFormat::FLOW_SAMPLE_EXPANDED, DataFormat::FLOW_SAMPLE].repeat(2);
    for (turn, flows) in flows.chunks(50).enumerate() {
        assert!(
            flows.iter().all(|flow| flow.format == expected[turn]),
            "turn {turn}"
        );
    }
    assert!(
        flows
            .iter()
            .zip(1..)
            .all(|(flow, sequence): (&Flow, u32)| flow.sample.sequence == sequence)
    );
}

/// Byte by byte from the specification, section 5, without the encoder's or the decoder's help.
#[test]
fn the_bytes_are_those_of_the_specification() {
    let Packets { packets, .. } = packets(1, 61);
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect::<Vec<u8>>()
    };
    for encoding in [Encoding::Expanded, Encoding::Compact] {
        let receiver = Receiver::new();
        let mut rig = Rig::new(1, 1);
        rig.settings.set(1, 15);
        rig.look(&packets);
        let config = weir_telemetry::agent::AgentConfig {
            sub_id: 3,
            encoding,
            ..config(&[receiver.address()])
        };
        let _ = Agent::start(config, vec![rig.give_source()], Interfaces::of(Vec::new()))
            .unwrap()
            .stop();
        let mut bytes = receiver.next(Duration::from_secs(10)).unwrap().bytes;
        assert!(
            bytes[20..24] < *1_000_000_u32.to_be_bytes().as_slice(),
            "milliseconds since the start"
        );
        bytes[20..24].fill(0);
        // Version, IPv4, address, sub-agent, sequence, uptime, one sample.
        let mut expected = words(&[5, 1, 0xc000_0201, 3, 1, 0, 1]);
        // Format, length; sequence, source 0:7, rate, pool, drops, input 0:7, output 0:9, one record.
        expected.extend(match encoding {
            Encoding::Expanded => words(&[3, 84, 1, 0, 7, 1, 1, 0, 0, 7, 0, 9, 1]),
            Encoding::Compact => words(&[1, 72, 1, 7, 1, 1, 0, 7, 9, 1]),
        });
        // Raw header: format, length; Ethernet, frame with FCS, FCS stripped, 15 octets and one of padding.
        expected.extend(words(&[1, 32, 1, 65, 4, 15]));
        expected.extend([0, 0]);
        expected.extend([0xee; 13]);
        expected.push(0);
        assert_eq!(bytes, expected, "{encoding:?}");
    }
}

/// Format 0 is an interface, 0x3FFFFFFF of it the router itself; format 1 the reason of a discard (257: TTL exceeded, 0: network
/// unreachable); format 2 how many copies left.
#[test]
fn each_fate_has_its_form_of_output() {
    let Packets { packets, .. } = packets(5, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    assert_eq!(rig.only_look(&packets), [0, 1, 2, 3, 4]);
    let dropped = |reason| PacketOutcome::Dropped { node: 1, reason };
    let outcomes = [
        PacketOutcome::Sent(OUTPUT),
        PacketOutcome::Kept,
        PacketOutcome::Copied(3),
        dropped(DropReason::TtlExpired),
        dropped(DropReason::NoRoute),
    ];
    for (packet, outcome) in packets.iter().zip(outcomes) {
        Marker::outcome(&mut rig.sampler, packet, outcome);
    }
    let _ = start(&receiver, &mut [&mut rig]).stop();
    let outputs: Vec<(u32, u32)> = flows(&receiver.all())
        .iter()
        .map(|flow| (flow.sample.output.format, flow.sample.output.value))
        .collect();
    assert_eq!(
        outputs,
        [(0, OUTPUT), (0, 0x3fff_ffff), (2, 3), (1, 257), (1, 0)]
    );
}

#[test]
fn sources_are_interfaces() {
    let Packets { packets, .. } = packets(1, 64);
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    // The compact form has 24 bits for it.
    rig.look_on((1 << 24) - 1, &packets);
    let compact = weir_telemetry::agent::AgentConfig {
        encoding: Encoding::Compact,
        ..config(&[receiver.address()])
    };
    let _ = Agent::start(compact, vec![rig.give_source()], Interfaces::of(Vec::new()))
        .unwrap()
        .stop();
    assert_eq!(
        flows(&receiver.all())[0].sample.source,
        Source {
            class: 0,
            index: 0xff_ffff
        }
    );
}
