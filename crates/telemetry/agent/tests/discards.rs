//! Notifications of discarded packets: what is reported, to whom, and that reported and not reported add up.

mod common;

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::collector::{Interfaces, config};
use common::{Packets, Plain, Rig, packets};
use weir_buf::Pkt;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, FlowRecords, Sample};
use weir_flowfmt::sflow::{DiscardedPacket, RawHeader, Source};
use weir_graph::{DropReason, Look, Marks, Point, Tap};
use weir_telemetry::agent::{Agent, AgentConfig, Destination, InterfaceReport};
use weir_telemetry::discards::{DiscardSettings, DiscardTap};

/// A notification as it was received: sequence, drops, input, reason, records by format with their words.
#[derive(Debug, PartialEq, Eq)]
struct Reported {
    sequence: u32,
    drops: u32,
    input: u32,
    reason: u32,
    records: Vec<(u32, Vec<u8>)>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at * 4..at * 4 + 4].try_into().unwrap())
}

/// A notification as it was decoded, its records as octets again.
fn read(fixed: &DiscardedPacket, records: FlowRecords<'_>) -> Reported {
    assert_eq!(
        (fixed.source, fixed.output),
        (Source::interface(0), 0),
        "one notifier; the output is not known"
    );
    let octets = |record| match record {
        FlowRecord::RawHeader(raw) => {
            let words = [
                raw.protocol,
                raw.frame_length,
                raw.stripped,
                raw.header.len() as u32,
            ];
            (
                1,
                words
                    .iter()
                    .flat_map(|word| word.to_be_bytes())
                    .chain(raw.header.iter().copied())
                    .collect(),
            )
        }
        FlowRecord::Other(other) => (other.format.to_wire(), other.body.to_vec()),
        unread => panic!("{unread:?}"),
    };
    let records = records.map(Result::unwrap).map(octets).collect();
    Reported {
        sequence: fixed.sequence,
        drops: fixed.drops,
        input: fixed.input,
        reason: fixed.reason,
        records,
    }
}

struct Socket(UdpSocket);

impl Socket {
    fn new() -> Socket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(700)))
            .unwrap();
        Socket(socket)
    }

    /// Datagrams until none comes any more: number, notifications, other samples.
    fn all(&self) -> Vec<(u32, Vec<Reported>, usize)> {
        let mut buffer = [0; 9000];
        let datagram = || {
            let length = self.0.recv(&mut buffer).ok()?;
            let datagram = Datagram::decode(&buffer[..length]).unwrap();
            let (mut reported, mut others) = (Vec::new(), 0);
            for sample in datagram.samples().map(Result::unwrap) {
                match sample {
                    Sample::Discard(fixed, records) => reported.push(read(&fixed, records)),
                    _ => others += 1,
                }
            }
            Some((datagram.sequence, reported, others))
        };
        std::iter::from_fn(datagram).collect()
    }
}

fn drop_at(
    tap: &mut DiscardTap,
    now: u64,
    interface: u32,
    node: u16,
    reason: DropReason,
    packets: &[Pkt],
) {
    let point = Point::Drop { node, reason };
    let look = Look {
        world: &Plain,
        worker: 0,
        now,
        point,
        interface,
        inner: false,
        left: 0,
    };
    tap.look(&look, packets, &mut Marks::default());
}

#[test]
fn reported_and_not_reported_are_all_and_travel_by_themselves() {
    let Packets { packets, .. } = packets(50, 90);
    let (all, samples_only) = (Socket::new(), Socket::new());
    let destination = |socket: &Socket, drops| Destination {
        target: socket.0.local_addr().unwrap().into(),
        drops,
    };
    let collectors = vec![destination(&all, true), destination(&samples_only, false)];
    let settings = std::sync::Arc::new(DiscardSettings::default());
    settings.set(20, 16);
    let (mut tap, ring) = DiscardTap::new(settings);
    let mut rig = Rig::new(1, 1);
    let reports = Interfaces::of(vec![InterfaceReport {
        ifindex: 3,
        ..InterfaceReport::default()
    }]);
    // The counts begin where the agent does.
    reports.1.store(1000, Ordering::Relaxed);
    let agent = Agent::start(
        AgentConfig {
            drop_limit: 20,
            collectors,
            ..config(&[])
        },
        vec![rig.give_source()],
        reports.clone(),
    )
    .unwrap();
    rig.look_on(7, &packets[..5]);
    // It runs when it has sent samples.
    let begun = Instant::now();
    while agent.stats().samples_sent.iter().sum::<u64>() < 5
        && begun.elapsed() < Duration::from_secs(10)
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(agent.stats().discards_dropped, 0);
    agent.add_discards(vec![ring]);
    drop_at(&mut tap, 1, 7, 0, DropReason::TooShort, &packets);
    drop_at(&mut tap, 2, 8, 1, DropReason::TtlExpired, &packets[..3]);
    reports.1.fetch_add(53, Ordering::Relaxed);
    reports.0.lock().unwrap()[0].missed = 11;
    std::thread::sleep(Duration::from_millis(1500));
    let stats = agent.stop();

    let received = all.all();
    assert_eq!(
        received.iter().map(|it| it.0).collect::<Vec<_>>(),
        (1..=received.len() as u32).collect::<Vec<_>>()
    );
    assert!(
        received
            .iter()
            .all(|(_, reported, others)| reported.is_empty() || *others == 0),
        "in datagrams of their own"
    );
    let reported: Vec<&Reported> = received.iter().flat_map(|it| &it.1).collect();
    assert_eq!(
        reported.iter().map(|it| it.sequence).collect::<Vec<_>>(),
        (1..=reported.len() as u32).collect::<Vec<_>>()
    );
    assert_eq!(stats.discards_sent, reported.len() as u64);
    assert_eq!(
        stats.discards_sent + stats.discards_dropped,
        53 + 11,
        "exact, whatever the limit"
    );
    // `drops` counts on, and with what was reported it is all that was lost up to then, also of what is reported last.
    assert!(
        reported.is_sorted_by_key(|it| it.drops),
        "{:?}",
        reported.iter().map(|it| it.drops).collect::<Vec<_>>()
    );
    let last = reported.last().unwrap();
    assert_eq!(
        (
            last.reason,
            u64::from(last.drops) + u64::from(last.sequence)
        ),
        (259, 53 + 11)
    );
    let of = |reason: u32| {
        reported
            .iter()
            .filter(|it| it.reason == reason)
            .collect::<Vec<_>>()
    };
    assert!(
        !of(257).is_empty() && of(259).len() == 1,
        "rare ones are reported in the midst of a flood"
    );
    assert!(
        (1..=17).contains(&of(324).len()),
        "the frequent one within the rest"
    );
    let expired = of(257)[0];
    let words = |text: &str| {
        [
            &(text.len() as u32).to_be_bytes()[..],
            text.as_bytes(),
            &[0; 3][..text.len().wrapping_neg() % 4],
        ]
        .concat()
    };
    assert_eq!(expired.input, 8);
    assert_eq!(
        expired.records[1],
        (1041, [words("ip4-input"), words("ttl-expired")].concat())
    );
    let header = &expired.records[0];
    assert_eq!(
        (
            header.0,
            word(&header.1, 0),
            word(&header.1, 1),
            word(&header.1, 3)
        ),
        (1, RawHeader::ETHERNET, 94, 16)
    );
    assert_eq!(header.1[16..], packets[0].data()[..16]);
    assert_eq!(
        of(259)[0].records,
        [(1041, [words("port-rx"), words("rx-miss")].concat())]
    );

    let received = samples_only.all();
    assert!(
        !received.is_empty()
            && received
                .iter()
                .all(|(_, reported, others)| reported.is_empty() && *others > 0)
    );
    assert_eq!(
        received.iter().map(|it| it.0).collect::<Vec<_>>(),
        (1..=received.len() as u32).collect::<Vec<_>>(),
        "no gap"
    );
}

#[test]
fn what_the_router_made_came_in_nowhere() {
    let socket = Socket::new();
    let settings = std::sync::Arc::new(DiscardSettings::default());
    settings.set(1000, 64);
    let (mut tap, ring) = DiscardTap::new(settings);
    let config = AgentConfig {
        drop_limit: 1000,
        ..config(&[socket.0.local_addr().unwrap()])
    };
    let agent = Agent::start(
        config,
        vec![Rig::new(1, 1).give_source()],
        Interfaces::of(Vec::new()),
    )
    .unwrap();
    // An answer that waits for its neighbour's address has none yet, and one that was addressed has.
    let Packets { mut packets, .. } = packets(2, 90);
    for packet in &mut packets {
        packet.set_flags(weir_buf::Flags::ORIGINATED);
    }
    packets[0].data_mut()[..15].copy_from_slice(b"\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45");
    drop_at(&mut tap, 1, 7, 0, DropReason::HostUnreachable, &packets);
    agent.add_discards(vec![ring]);
    std::thread::sleep(Duration::from_millis(100));
    let stats = agent.stop();
    let reported: Vec<Reported> = socket.all().into_iter().flat_map(|it| it.1).collect();
    let said = |reported: &Reported| {
        (
            reported.input,
            reported.reason,
            (0..4)
                .map(|at| word(&reported.records[0].1, at))
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        reported.iter().map(said).collect::<Vec<_>>(),
        [
            (0x3fff_ffff, 1, vec![11, 94, 18, 50]),
            (0x3fff_ffff, 1, vec![1, 94, 4, 64])
        ]
    );
    assert_eq!(reported[0].records[0].1[16], 0x45);
    // It is shown where the router counted it.
    assert_eq!(
        stats
            .discards
            .iter()
            .map(|it| (it.ifindex, it.reported))
            .collect::<Vec<_>>(),
        [(7, 2)]
    );
}
