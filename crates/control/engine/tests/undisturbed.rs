//! What a change does not touch does not notice it: traffic on other interfaces loses nothing.
//!
//! Two generators forward to a null port at a steady rate, through the hand-off ring when there are
//! two workers, while interfaces come and go, addresses, routes and sampling change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::{Config, check};
use weir_engine::{Options, Router};

/// The traffic that must not notice, and room for what changes.
fn config(workers: usize, rest: &str, routes: &str, sflow: &str) -> Config {
    let stream = |number: usize| {
        format!(
            "{{ name: s, rate: 4000, source: 10.{number}.1.0-10.{number}.9.255, destination: 192.0.2.1{number}, source-port: 1024-2047 }}"
        )
    };
    let text = format!(
        "workers: {{ count: {workers} }}
sflow: {{ sampling-rate: {sflow} }}
interfaces:
  gen0: {{ device: {{ driver: generator, streams: [ {} ] }}, addresses: [ 10.0.0.1/16 ], sflow: true, rx-queue-workers: [ 0 ] }}
  gen1: {{ device: {{ driver: generator, streams: [ {} ] }}, addresses: [ 10.1.0.1/16 ], rx-queue-workers: [ {} ] }}
  out0: {{ device: {{ driver: 'null' }}, addresses: [ 192.0.2.1/24 ], rx-queue-workers: [ 0 ] }}
{rest}
neighbors:
  - {{ interface: out0, address: 192.0.2.10, mac: 02:00:00:00:00:0a }}
  - {{ interface: out0, address: 192.0.2.11, mac: 02:00:00:00:00:0b }}
routes:
  - {{ prefix: 203.0.113.0/24, via: 192.0.2.10 }}
{routes}",
        stream(0),
        stream(1),
        workers - 1
    );
    check("weir.yaml", &text)
        .unwrap_or_else(|findings| panic!("{text}{findings:?}"))
        .0
}

/// Every change once: interfaces, routes, sampling.
fn changes(workers: usize) -> Vec<Config> {
    let more = "  e0: { device: { driver: 'null' }, addresses: [ 198.51.100.1/24 ], mtu: 1400 }\n  e1: { device: { driver: 'null' } }";
    let crossed = "  e0: { device: { driver: 'null' }, l2xc: e1 }\n  e1: { device: { driver: 'null' }, l2xc: e0, state: down }";
    let few = "  - { prefix: 203.0.114.0/24, via: [ { next-hop: 192.0.2.10 }, { next-hop: 192.0.2.11, weight: 3 } ] }\n";
    let many: String = (0..500)
        .map(|number| {
            format!(
                "  - {{ prefix: 172.16.{}.{}/32, via: 192.0.2.11 }}\n",
                number / 250,
                number % 250
            )
        })
        .collect();
    vec![
        config(workers, "", "", "1000"),
        config(workers, more, "", "1000"),
        config(workers, more, few, "10"),
        config(workers, crossed, &many, "10"),
        config(workers, "", &many.replace("192.0.2.11", "192.0.2.10"), "0"),
        config(
            workers,
            "",
            "  - { prefix: 203.0.114.0/24, via: blackhole }\n",
            "100",
        ),
    ]
}

fn drops(router: &Router) -> BTreeMap<String, u64> {
    router.totals().unwrap().drops
}

#[test]
fn changes_elsewhere_lose_no_packet() {
    for workers in [1, 2] {
        let all = changes(workers);
        let router = Router::start(
            &all[0],
            &Options {
                seed: Some(3),
                ..Options::default()
            },
        )
        .unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let (before, began) = (drops(&router), router.totals().unwrap().packets_out);
        for _ in 0..3 {
            for wanted in &all {
                router.apply(wanted).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let waiting = Instant::now();
        while router.totals().unwrap().packets_out < began + 4_000
            && waiting.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(drops(&router), before, "{workers} workers");
        router.stop();
        let totals = router.balance();
        assert!(totals.packets_out > began + 4_000, "{totals:?}");
        let dropped: u64 = totals.drops.values().sum();
        assert_eq!(
            totals.packets_in + totals.originated,
            totals.packets_out + dropped + totals.consumed + totals.held,
            "{totals:?}"
        );
    }
}
