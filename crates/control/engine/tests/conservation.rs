//! Nothing is lost and nothing overtakes, with one worker, two and four, under load.
//!
//! The whole router in this process, on generators, null ports and capture files: no root needed.
//! Generators run as fast as they can, so that hand-off rings overflow on two cores, and the router is
//! stopped in the middle of it: what came in must be out, dropped with a reason, consumed or held,
//! to the packet. Another run, paced, writes what arrives to a capture file, where each stream's
//! packets must stand in the order in which they were made.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_api::Totals;
use weir_config::{Config, check};
use weir_engine::{Options, Router};

/// Streams of a router with four workers: as many generators.
const GENERATORS: usize = 4;

fn config(text: &str) -> Config {
    check("weir.yaml", text)
        .unwrap_or_else(|findings| panic!("{findings:?}"))
        .0
}

fn start(text: &str) -> Router {
    Router::start(
        &config(text),
        &Options {
            seed: Some(7),
            ..Options::default()
        },
    )
    .unwrap()
}

/// Four generators on workers of their own, and two ports that all of it leaves by: the
/// workers that lack their queue must hand packets over.
fn router_under_load(workers: usize, out: &str, stream: &str) -> String {
    let mut text = format!(
        "workers: {{ count: {workers}, idle: sleep }}\nsflow: {{ sampling-rate: 100 }}\ninterfaces:\n"
    );
    for number in 0..GENERATORS {
        let place = number % workers;
        text += &format!(
            "  gen{number}:
    addresses: [ 10.{number}.0.1/16 ]
    sflow: true
    rx-queue-workers: [ {place} ]
    device:
      driver: generator
      streams:
        - {{ name: known, source: 10.{number}.1.0, source-port: 1-65535, destination: 192.0.2.{host}, {stream} }}
        - {{ name: unresolved, source: 10.{number}.0.9, destination: 192.0.2.200-192.0.2.220, {stream} }}
        - {{ name: nowhere, source: 10.{number}.0.9, destination: 203.0.113.1, {stream} }}
        - {{ name: ours, source: 10.{number}.0.9, destination: 192.0.2.1, protocol: icmp, {stream} }}
",
            host = 10 + number,
        );
    }
    text += &format!("  out0: {{ addresses: [ 192.0.2.1/24 ], device: {out} }}\nneighbors:\n");
    for number in 0..GENERATORS {
        text += &format!(
            "  - {{ interface: out0, address: 192.0.2.{}, mac: 02:00:00:00:00:0{number} }}\n",
            10 + number
        );
        text += &format!(
            "  - {{ interface: gen{number}, address: 10.{number}.0.9, mac: 02:00:00:00:01:0{number} }}\n"
        );
    }
    text
}

#[track_caller]
fn assert_balanced(totals: &Totals) {
    let entered = totals.packets_in + totals.originated + totals.replicated;
    let left =
        totals.packets_out + totals.drops.values().sum::<u64>() + totals.consumed + totals.held;
    assert_eq!(entered, left, "{totals:?}");
}

#[test]
fn stopped_in_full_flight_the_balance_is_exact() {
    for workers in [1, 2, 4] {
        let router = start(&router_under_load(workers, "{ driver: null }", "size: 60"));
        std::thread::sleep(Duration::from_millis(400));
        router.stop();
        let totals = router.balance();
        assert!(
            totals.packets_in > 20_000 && totals.packets_out > 1_000,
            "{workers} workers: {totals:?}"
        );
        assert!(
            totals.drops.get("no-route").is_some_and(|count| *count > 0),
            "{workers} workers: {totals:?}"
        );
        // The packets for unknown neighbours are held, or were dropped when the neighbours had not answered.
        let waited = totals.held + totals.drops.get("host-unreachable").unwrap_or(&0);
        assert!(
            totals.originated > 0 && waited > 0,
            "{workers} workers: {totals:?}"
        );
        assert_balanced(&totals);
    }
}

#[test]
fn removing_ports_in_full_flight_loses_nothing_uncounted() {
    for workers in [2, 4] {
        let text = router_under_load(workers, "{ driver: null }", "size: 60");
        let router = start(&text);
        let (full, empty) = (
            config(&text),
            config(&format!("workers: {{ count: {workers}, idle: sleep }}")),
        );
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(40));
            router.apply(&empty).unwrap();
            router.apply(&full).unwrap();
        }
        router.stop();
        assert_balanced(&router.balance());
    }
}

/// Both ends of a memif in one router: what a generator makes leaves by one, comes in by the other, and is
/// swallowed. Packets between the two are sent by the one and not received by the other yet.
#[test]
fn removing_memif_ends_in_full_flight_loses_nothing_uncounted_and_leaks_nothing() {
    let socket = format!("@weir-conservation-{}", std::process::id());
    let text = |role: &str, other: &str, ends: bool| {
        let mut text = "workers: { count: 2, idle: sleep }
interfaces:
  gen:
    rx-queue-workers: [ 0 ]
    device: { driver: generator, streams: [ { name: a, size: 300, source: 10.0.0.1-10.0.9.255, destination: 10.1.0.1 } ] }
  out: { device: { driver: 'null' } }\n"
            .to_owned();
        if ends {
            let device = |role: &str| {
                format!(
                    "{{ driver: memif, socket: '{socket}', role: {role}, queues: 2, ring-size: 256 }}"
                )
            };
            text = text.replace("    rx-queue", "    l2xc: m0\n    rx-queue");
            text += &format!(
                "  m0: {{ device: {} }}\n  m1: {{ device: {}, l2xc: out }}\n",
                device(role),
                device(other)
            );
        }
        text
    };
    for (role, other) in [("slave", "master"), ("master", "slave")] {
        let (full, without) = (text(role, other, true), text(role, other, false));
        let router = start(&full);
        let received = || {
            let interfaces = weir_api::Router::interfaces(&router).unwrap().interfaces;
            interfaces
                .iter()
                .find(|it| it.name == "m1")
                .map_or(0, |it| it.rx.packets)
        };
        for _ in 0..4 {
            let began = Instant::now();
            while received() < 2_000 {
                assert!(
                    began.elapsed() < Duration::from_secs(20),
                    "{role}: {:?}",
                    router.balance()
                );
                std::thread::sleep(Duration::from_millis(5));
            }
            router.apply(&config(&without)).unwrap();
            router.apply(&config(&full)).unwrap();
        }
        router.apply(&config(&without)).unwrap();
        router.stop();
        let totals = router.balance();
        assert_balanced(&totals);
        assert!(totals.packets_out > 10_000, "{totals:?}");
        let pool = &weir_api::Router::buffers(&router).unwrap().pools[0];
        assert_eq!(pool.free, pool.buffers, "{role}: every buffer is home");
    }
}

/// The generator's stream goes on where it was, and the ends of the memif do not part.
#[test]
fn queues_move_between_workers_in_full_flight_and_ports_stay_open() {
    let text = |places: [&str; 3]| {
        let device = |role: &str| {
            format!(
                "{{ driver: memif, socket: '@weir-moving-{}', role: {role}, queues: 2, ring-size: 1024 }}",
                std::process::id()
            )
        };
        format!(
            "workers: {{ count: 2, idle: sleep }}
interfaces:
  gen:
    l2xc: m0
    rx-queue-workers: [ {} ]
    device: {{ driver: generator, streams: [ {{ name: a, limit: 60000, rate: 20000, source: 10.0.0.1, destination: 10.1.0.1 }} ] }}
  m0: {{ device: {}, rx-queue-workers: [ {} ] }}
  m1: {{ device: {}, rx-queue-workers: [ {} ], l2xc: out }}
  out: {{ device: {{ driver: 'null' }} }}
",
            places[0],
            device("master"),
            places[1],
            device("slave"),
            places[2]
        )
    };
    let all = [
        ["0", "0, 1", "1, 0"],
        ["1", "1, 0", "0, 0"],
        ["0", "1, 1", "0, 1"],
        ["1", "0, 0", "1, 1"],
    ]
    .map(|places| config(&text(places)));
    let router = start(&text(["0", "0, 1", "0, 1"]));
    let sent = |name: &str| {
        let interfaces = weir_api::Router::interfaces(&router).unwrap().interfaces;
        interfaces
            .iter()
            .find(|it| it.name == name)
            .map_or(0, |it| it.tx.packets)
    };
    let began = Instant::now();
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        while !done() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{what}: {:?}",
                router.balance()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait("the ends meet", &|| sent("out") > 0);
    for wanted in all.iter().cycle().take(12) {
        router.apply(wanted).unwrap();
        let before = sent("out");
        wait("packets arrive after a move", &|| {
            sent("out") > before + 500
        });
    }
    // Each packet came in once from the generator, which was not made anew, and all that one end sent came in by
    // the other.
    let at_rest = || {
        let totals = router.balance();
        totals.packets_in == 60_000 + sent("m0")
            && totals.packets_in == totals.packets_out + totals.drops.values().sum::<u64>()
    };
    wait(
        "all that was made comes in, and all that was sent arrives",
        &|| {
            at_rest() && {
                // Counters are read one after the other while they move.
                std::thread::sleep(Duration::from_millis(100));
                at_rest()
            }
        },
    );
    let ports = weir_api::Router::memif(&router).unwrap().ports;
    assert!(
        ports
            .iter()
            .all(|port| port.connects == 1 && port.disconnects.is_empty()),
        "{ports:?}"
    );
    router.stop();
    let totals = router.balance();
    assert_balanced(&totals);
    assert_eq!(totals.packets_in, 60_000 + sent("m0"), "{totals:?}");
}

/// Each worker sends on a queue of the memif that is its own, and what one end sends on a queue the other end's worker of that
/// queue takes in: nothing is handed from worker to worker.
#[test]
fn each_worker_sends_on_its_own_queue_of_a_memif() {
    const EACH: u64 = 5_000;
    let device = |role: &str| {
        format!(
            "{{ driver: memif, socket: '@weir-queues-{}', role: {role}, queues: 3, ring-size: 8192 }}",
            std::process::id()
        )
    };
    let generator = |worker: usize| {
        format!(
            "  gen{worker}:
    addresses: [ 10.0.{worker}.1/24 ]
    rx-queue-workers: [ {worker} ]
    device: {{ driver: generator, streams: [ {{ name: a, limit: {EACH}, rate: 10000, source: 10.0.{worker}.2, destination: 203.0.113.7 }} ] }}\n"
        )
    };
    let text = |generators: &str| {
        format!(
            "workers: {{ count: 3, idle: sleep }}
interfaces:
{generators}  m0: {{ device: {}, addresses: [ 192.0.2.1/24 ], rx-queue-workers: [ 0, 1, 2 ] }}
  m1: {{ device: {}, rx-queue-workers: [ 2, 0, 1 ], l2xc: out }}
  out: {{ device: {{ driver: 'null' }} }}
neighbors: [ {{ interface: m0, address: 192.0.2.2, mac: 02:00:00:00:00:02 }} ]
routes: [ {{ prefix: 203.0.113.0/24, via: 192.0.2.2 }} ]
",
            device("master"),
            device("slave")
        )
    };
    let router = start(&text(""));
    let began = Instant::now();
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        while !done() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{what}: {:?}",
                router.balance()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let connected = || {
        weir_api::Router::memif(&router)
            .unwrap()
            .ports
            .iter()
            .all(|port| port.tx_rings == 3)
    };
    wait("the ends meet", &connected);
    router
        .apply(&config(&text(&(0..3).map(generator).collect::<String>())))
        .unwrap();
    let counters = |name: &str| {
        let ports = weir_api::Router::hardware(&router).unwrap().ports;
        let port = ports
            .into_iter()
            .find(|port| port.interface == name)
            .unwrap();
        let of = |what: &str| -> Vec<u64> {
            (0..3)
                .map(|queue| {
                    port.counters
                        .iter()
                        .find(|it| it.name == format!("{what}_packets_q{queue}"))
                        .map_or(0, |it| it.value)
                })
                .collect()
        };
        (of("rx"), of("tx"))
    };
    let sum = |queues: Vec<u64>| queues.iter().sum::<u64>();
    let made = || {
        router
            .balance()
            .packets_in
            .saturating_sub(sum(counters("m1").0))
    };
    wait("all is made", &|| made() == 3 * EACH);
    wait("what is sent arrives", &|| {
        sum(counters("m0").1) == sum(counters("m1").0)
    });
    // Generators begin before the routes are there; and a few packets more are the router's own.
    for queues in [counters("m0").1, counters("m1").0] {
        assert!(
            queues
                .iter()
                .all(|packets| (EACH / 2..EACH + 100).contains(packets)),
            "{queues:?}"
        );
    }
    assert_eq!(counters("m0").0, [0; 3]);
    router.stop();
    assert_balanced(&router.balance());
}

/// What the capture holds: of each known stream, the source ports in the order of arrival.
fn arrivals(capture: &Path) -> BTreeMap<u8, Vec<u16>> {
    let bytes = std::fs::read(capture).unwrap();
    let mut streams: BTreeMap<u8, Vec<u16>> = BTreeMap::new();
    let mut rest = &bytes[24..];
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let frame = &rest[16..16 + length];
        rest = &rest[16 + length..];
        if frame[12..14] == [8, 0] && frame[30..33] == [192, 0, 2] && (10..14).contains(&frame[33])
        {
            streams
                .entry(frame[33])
                .or_default()
                .push(u16::from_be_bytes(frame[34..36].try_into().unwrap()));
        }
    }
    streams
}

#[test]
fn each_flow_keeps_its_order_through_the_hand_off() {
    for workers in [1, 2, 4] {
        let folder =
            std::env::temp_dir().join(format!("weir-order-{workers}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let capture = folder.join("out.pcap");
        let out = format!("{{ driver: pcap, output: {} }}", capture.display());
        let router = start(&router_under_load(workers, &out, "size: 60, rate: 20000"));
        let began = Instant::now();
        while router.balance().packets_out < 20_000 && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        router.stop();
        let totals = router.balance();
        assert_balanced(&totals);
        let streams = arrivals(&capture);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(streams.len(), GENERATORS, "{workers} workers: {totals:?}");
        let mut arrived = 0;
        for (stream, ports) in &streams {
            arrived += ports.len();
            for pair in ports.windows(2) {
                // The range of ports begins again behind its last one.
                let wrapped = pair[1] == 1;
                assert!(
                    pair[1] > pair[0] || wrapped,
                    "{workers} workers, stream {stream}: {:x} after {:x}",
                    pair[1],
                    pair[0]
                );
            }
        }
        assert!(arrived > 5_000, "{workers} workers: {arrived}");
    }
}
