//! What the router shows of sFlow is what it counted, by interface, worker and reason; by which numbers it tells
//! interfaces; and that an interface made anew begins anew.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::{Config, check};
use weir_engine::{Options, Router};
use weir_flowfmt::sflow::FlowSample;
use weir_flowfmt::sflow::decode::{CounterRecord, Datagram, Sample};

/// Two streams by two ports, of which half has no route.
fn text(collector: &UdpSocket, sflow: &str, ports: &[&str]) -> String {
    let port = |(number, name): (usize, &&str)| {
        let stream = |name: &str, to: &str| {
            format!("{{name: {name}, rate: 4000, source: 10.{number}.0.2, destination: {to}}}")
        };
        let streams = [stream("far", "198.51.100.7"), stream("lost", "203.0.113.1")].join(", ");
        format!(
            "  {name}: {{device: {{driver: generator, streams: [{streams}]}}, addresses: [10.{number}.0.1/24], sflow: true}}\n"
        )
    };
    let ports: String = ports.iter().enumerate().map(port).collect();
    let at = collector.local_addr().unwrap().port();
    format!(
        "interfaces:
{ports}  out: {{device: {{driver: 'null'}}, addresses: [10.9.0.1/24]}}
neighbors: [{{interface: out, address: 10.9.0.2, mac: 02:00:00:00:01:02}}]
routes: [{{prefix: 198.51.0.0/16, via: 10.9.0.2}}]
workers: {{count: 2}}
sflow: {{sampling-rate: 4, polling-interval: 1, {sflow}collectors: [{{address: 127.0.0.1, port: {at}}}]}}
"
    )
}

fn config(text: &str) -> Config {
    check("weir.yaml", text)
        .unwrap_or_else(|findings| panic!("{findings:?}"))
        .0
}

fn collector() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    socket
}

/// Reads for as long as it is wanted, ten seconds a time at most.
fn read(socket: &UdpSocket, mut more: impl FnMut(&Datagram<'_>) -> bool) {
    let (until, mut buffer) = (Instant::now() + Duration::from_secs(30), vec![0; 9000]);
    loop {
        assert!(Instant::now() < until, "timed out");
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        if !more(&Datagram::decode(&buffer[..length]).unwrap()) {
            return;
        }
    }
}

fn flows(datagram: &Datagram<'_>) -> Vec<FlowSample> {
    let flow = |sample| {
        if let Ok(Sample::Flow(_, flow, _)) = sample {
            Some(flow)
        } else {
            None
        }
    };
    datagram.samples().filter_map(flow).collect()
}

#[test]
fn every_drop_is_shown_by_kind_and_what_was_reported_of_it() {
    let socket = collector();
    let with = |ports: &[&str]| config(&text(&socket, "drop-limit: 20, ", ports));
    let router = Router::start(&with(&[]), &Options::default()).unwrap();
    // Telling begins when the agent has its settings, before there is anything to drop.
    let until = Instant::now() + Duration::from_secs(20);
    while router.sflow().unwrap().collectors.is_empty() {
        assert!(Instant::now() < until, "the agent has no settings");
        std::thread::sleep(Duration::from_millis(5));
    }
    router.apply(&with(&["a", "b"])).unwrap();
    let mut received = BTreeMap::<(u32, u32), u64>::new();
    read(&socket, |datagram| {
        for sample in datagram.samples().flatten() {
            if let Sample::Discard(discard, _) = sample {
                *received.entry((discard.input, discard.reason)).or_default() += 1;
            }
        }
        // What came while a port was still being set up is of a kind of its own, and soon over.
        received
            .iter()
            .filter(|&(&(_, reason), &count)| reason == 0 && count >= 10)
            .count()
            < 2
    });
    router.stop();
    while let Ok(length) = socket.recv(&mut [0; 9000]) {
        assert!(length > 0);
    }
    let (shown, errors) = (router.sflow().unwrap(), router.errors().unwrap());
    // By interface, node and reason as the nodes count them, to the last packet.
    let mut counted = BTreeMap::<_, u64>::new();
    for it in &errors.errors {
        // A line a worker.
        *counted
            .entry((it.interface.clone(), it.node.clone(), it.reason.clone()))
            .or_default() += it.count;
    }
    let dropped: BTreeMap<_, u64> = shown
        .drops
        .iter()
        .map(|it| {
            (
                (it.interface.clone(), it.node.clone(), it.reason.clone()),
                it.dropped,
            )
        })
        .collect();
    assert_eq!(dropped, counted);
    let (sum_reported, sum): (u64, u64) = (
        shown.drops.iter().map(|it| it.reported).sum(),
        shown.drops.iter().map(|it| it.dropped).sum(),
    );
    assert_eq!(sum_reported, shown.discards_sent);
    assert_eq!(
        shown.discards_sent + shown.discards_dropped,
        sum,
        "{shown:?}"
    );
    assert!(
        shown.drops.iter().all(|it| it.reported <= it.dropped),
        "{shown:?}"
    );
    let lost: Vec<_> = shown
        .drops
        .iter()
        .filter(|it| it.reason == "no-route")
        .collect();
    assert_eq!(lost.len(), 2);
    for row in lost {
        assert_eq!(
            (row.code, row.standard.as_str()),
            (0, "net_unreachable"),
            "{row:?}"
        );
        assert!(row.reported >= 10 && row.dropped > row.reported, "{row:?}");
    }
}

#[test]
fn interfaces_are_shown_by_worker_and_reported_by_linuxs_numbers() {
    let socket = collector();
    let sflow =
        "osIndex: on, ifOffset: 500000000, interfaces: {a: {osIndex: 4321, sampling-rate: 2}}, ";
    let router = Router::start(
        &config(&text(&socket, sflow, &["a", "b"])),
        &Options::default(),
    )
    .unwrap();
    let index = |name: &str| {
        router
            .interfaces()
            .unwrap()
            .interfaces
            .iter()
            .find(|it| it.name == name)
            .unwrap()
            .index
    };
    let (b, out) = (500_000_000 + index("b"), 500_000_000 + index("out"));
    let (mut flows_of, mut counters_of) =
        (BTreeMap::<u32, u32>::new(), BTreeMap::<u32, u32>::new());
    read(&socket, |datagram| {
        for sample in datagram.samples().flatten() {
            match sample {
                Sample::Flow(_, flow, _) => {
                    *flows_of.entry(flow.source.index).or_default() += 1;
                    assert_eq!(
                        (flow.input.format, flow.input.value),
                        (0, flow.source.index)
                    );
                    assert_eq!(flow.rate, if flow.source.index == 4321 { 2 } else { 4 });
                    assert!(
                        flow.output.format == 1 || flow.output.value == out,
                        "{flow:?}"
                    );
                }
                Sample::Counters(_, counters, records) => {
                    for record in records.flatten() {
                        if let CounterRecord::Interface(interface) = record {
                            assert_eq!(interface.index, counters.source.index);
                            *counters_of.entry(interface.index).or_default() += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        flows_of.values().copied().min().unwrap_or(0) < 100
            || flows_of.len() < 2
            || counters_of.len() < 2
    });
    assert_eq!(flows_of.keys().copied().collect::<Vec<_>>(), [4321, b]);
    assert_eq!(counters_of.keys().copied().collect::<Vec<_>>(), [4321, b]);
    router.stop();
    let shown = router.sflow().unwrap();
    assert!(shown.settings.os_index && shown.settings.if_offset == 500_000_000);
    for (interface, received) in shown.interfaces.iter().zip([4321, b]) {
        assert_eq!(interface.reported_index, received);
        assert_eq!(interface.workers.len(), 2);
        assert_eq!(
            interface
                .workers
                .iter()
                .map(|share| share.pool)
                .sum::<u64>(),
            interface.pool
        );
        assert_eq!(
            interface
                .workers
                .iter()
                .map(|share| share.samples)
                .sum::<u64>(),
            interface.samples
        );
    }
    let of_workers: u64 = shown.workers.iter().map(|worker| worker.samples_sent).sum();
    assert_eq!(
        shown
            .interfaces
            .iter()
            .map(|interface| interface.samples)
            .sum::<u64>(),
        of_workers
    );
}

#[test]
fn an_interface_that_is_removed_and_added_begins_pool_and_sequence_again() {
    let socket = collector();
    let with = |ports: &[&str]| config(&text(&socket, "", ports));
    let router = Router::start(&with(&["a", "b"]), &Options::default()).unwrap();
    let index = router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .find(|it| it.name == "a")
        .unwrap()
        .index;
    let mut last = (0, 0);
    read(&socket, |datagram| {
        for flow in flows(datagram)
            .iter()
            .filter(|flow| flow.source.index == index)
        {
            assert_eq!(flow.sequence, last.0 + 1, "gapless");
            last = (flow.sequence, flow.pool);
        }
        last.0 < 500
    });
    router.apply(&with(&["b"])).unwrap();
    let quiet = Instant::now() + Duration::from_millis(800);
    read(&socket, |datagram| {
        for flow in flows(datagram)
            .iter()
            .filter(|flow| flow.source.index == index)
        {
            assert_eq!(flow.sequence, last.0 + 1, "gapless");
            last = (flow.sequence, flow.pool);
        }
        Instant::now() < quiet
    });
    router.apply(&with(&["a", "b"])).unwrap();
    let before = std::mem::take(&mut last);
    read(&socket, |datagram| {
        for flow in flows(datagram)
            .iter()
            .filter(|flow| flow.source.index == index)
        {
            assert_eq!(flow.sequence, last.0 + 1, "from the first one on");
            assert!(
                flow.pool >= last.1 && flow.pool < before.1,
                "{} after {} and {}",
                flow.pool,
                last.1,
                before.1
            );
            last = (flow.sequence, flow.pool);
        }
        last.0 < 100
    });
    router.stop();
}

/// What is lost on the way out is a discard of the interface that it should have left by, and not of the one by which it came.
#[test]
fn what_cannot_leave_is_a_discard_of_where_it_should_have_left() {
    let socket = collector();
    let text = format!(
        "interfaces:
  a: {{device: {{driver: generator, streams: [{{name: s, limit: 500, rate: 5000, source: 10.0.0.2, destination: 10.0.1.2}}]}}, l2xc: gone, sflow: true}}
  gone: {{l2xc: a, sflow: true}}
sflow: {{sampling-rate: 0, polling-interval: 1, collectors: [{{address: 127.0.0.1, port: {}}}]}}
",
        socket.local_addr().unwrap().port()
    );
    let router = Router::start(&config(&text), &Options::default()).unwrap();
    let mut received = BTreeMap::new();
    read(&socket, |datagram| {
        for sample in datagram.samples().flatten() {
            let Sample::Counters(_, _, records) = sample else {
                continue;
            };
            for record in records.flatten() {
                if let CounterRecord::Interface(counters) = record {
                    received.insert(
                        counters.index,
                        (
                            counters.in_unicast,
                            counters.in_discards,
                            counters.out_discards,
                        ),
                    );
                }
            }
        }
        received.get(&2).is_none_or(|gone| gone.2 < 500)
            || received.get(&1).is_none_or(|came| came.0 < 500)
    });
    assert_eq!((received[&1], received[&2]), ((500, 0, 0), (0, 0, 500)));
    let shown = router.interfaces().unwrap().interfaces;
    assert_eq!(
        shown
            .iter()
            .map(|it| (it.name.as_str(), it.tx_errors))
            .collect::<Vec<_>>(),
        [("a", 0), ("gone", 500)]
    );
    router.stop();
}

/// A frame that the driver could not take in is an error of its interface, whichever driver it is.
#[test]
fn what_is_too_long_to_come_in_is_an_error() {
    let socket = collector();
    let file = std::env::temp_dir().join(format!("weir-too-long-{}.pcap", std::process::id()));
    let mut writer = weir_pcap::file::Writer::create(&file, 1).unwrap();
    for length in [60, 20_000, 60] {
        writer.write(0, length, &vec![2; length as usize]).unwrap();
    }
    writer.flush().unwrap();
    let text = format!(
        "interfaces:
  a: {{device: {{driver: pcap, input: {}}}, sflow: true}}
sflow: {{sampling-rate: 0, polling-interval: 1, collectors: [{{address: 127.0.0.1, port: {}}}]}}
",
        file.display(),
        socket.local_addr().unwrap().port()
    );
    let router = Router::start(&config(&text), &Options::default()).unwrap();
    let mut received = (0, 0, 0);
    read(&socket, |datagram| {
        for sample in datagram.samples().flatten() {
            let Sample::Counters(_, _, records) = sample else {
                continue;
            };
            for record in records.flatten() {
                if let CounterRecord::Interface(counters) = record {
                    received = (
                        counters.in_unicast,
                        counters.in_discards,
                        counters.in_errors,
                    );
                }
            }
        }
        received.0 < 2
    });
    assert_eq!(
        received,
        (2, 2, 1),
        "two that nobody takes, and one that did not come in"
    );
    assert_eq!(router.interfaces().unwrap().interfaces[0].rx_errors, 1);
    router.stop();
    std::fs::remove_file(&file).unwrap();
}
