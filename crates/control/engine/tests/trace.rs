//! Traced packets take the path that they would take untraced, and a trace says what each node decided by.

use std::time::{Duration, Instant};

use weir_api::{Router as _, TraceRequest, TraceStep, TracedPacket};
use weir_config::check;
use weir_engine::{Options, Router};

const CONFIG: &str = "
workers: { count: 1, idle: sleep }
acls:
  edge:
    terms:
      - { action: deny, protocol: udp, destination-port: 7 }
      - { action: permit }
interfaces:
  gen0:
    addresses: [ 10.0.0.1/24 ]
    device:
      driver: generator
      streams:
        - { name: on, source: 10.0.0.2, destination: 198.51.100.7, destination-port: 9, rate: 1000 }
        - { name: lost, source: 10.0.0.2, destination: 203.0.113.1, rate: 1000 }
  gen1:
    addresses: [ 10.1.0.1/24 ]
    acl: { input: [ edge ] }
    device:
      driver: generator
      streams:
        - { name: on, source: 10.1.0.2, destination: 198.51.100.7, destination-port: 9, rate: 1000 }
        - { name: denied, source: 10.1.0.2, destination: 198.51.100.7, destination-port: 7, rate: 1000 }
  out0: { addresses: [ 192.0.2.1/24 ], device: { driver: 'null' } }
neighbors:
  - { interface: out0, address: 192.0.2.9, mac: 02:00:00:00:00:09 }
  - { interface: gen0, address: 10.0.0.2, mac: 02:00:00:00:01:02 }
  - { interface: gen1, address: 10.1.0.2, mac: 02:00:00:00:01:03 }
routes:
  - { prefix: 198.51.100.0/24, via: 192.0.2.9 }
";

fn start() -> Router {
    let (config, _) = check("weir.yaml", CONFIG).unwrap_or_else(|findings| panic!("{findings:?}"));
    Router::start(
        &config,
        &Options {
            seed: Some(7),
            ..Options::default()
        },
    )
    .unwrap()
}

/// Twenty packets: those that an interface receives, without the router's own answers.
fn traced(router: &Router, interface: &str) -> Vec<TracedPacket> {
    let request = TraceRequest {
        node: None,
        interface: Some(interface.to_owned()),
        count: 20,
    };
    router.trace_add(&request).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut packets = router.trace().unwrap().packets;
        let all = packets.len();
        packets.retain(|packet| packet.headers.contains(":1024 -> "));
        if all == 20 && packets.iter().all(has_ended) {
            router.trace_clear().unwrap();
            return packets;
        }
        assert!(Instant::now() < until, "{packets:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether all of a packet was recorded and decided.
fn has_ended(packet: &TracedPacket) -> bool {
    let ends = |step: &TraceStep| step.node == "port-tx" || step.verdict.starts_with("drop");
    packet.incomplete.is_none() && packet.steps.last().is_some_and(ends)
}

/// The steps of a packet, a line each.
fn lines(packet: &TracedPacket) -> Vec<String> {
    packet
        .steps
        .iter()
        .map(|step| {
            let made_by = step.made_by.as_deref().map(|node| format!(" (in {node})"));
            let decision = step.decision.as_deref().map(|text| format!(": {text}"));
            format!(
                "{}{} -> {}{}",
                step.node,
                made_by.unwrap_or_default(),
                step.verdict,
                decision.unwrap_or_default()
            )
        })
        .collect()
}

fn is_for<'a>(address: &'a str, port: &'a str) -> impl Fn(&&TracedPacket) -> bool + 'a {
    move |packet| packet.headers.contains(&format!("-> {address}:{port}"))
}

#[test]
fn a_packet_forwarded_in_one_pass_shows_each_step_and_its_route() {
    let router = start();
    // The first packets to a neighbour go through the nodes, which note that it is in use.
    traced(&router, "gen0");
    let packets = traced(&router, "gen0");
    let on = packets.iter().find(is_for("198.51.100.7", "9")).unwrap();
    let steps = lines(on);
    let route = "to ip4-rewrite: route 198.51.100.0/24, adjacency ";
    assert_eq!(steps[0], "eth-input -> to ip4-lookup");
    assert!(
        steps[1].starts_with(&format!("ip4-lookup (in eth-input) -> {route}"))
            && steps[1].ends_with(" to 192.0.2.9 on out0"),
        "{steps:?}"
    );
    assert_eq!(steps[2], "ip4-rewrite (in eth-input) -> out out0");
    assert_eq!(steps[3..], ["port-tx -> out out0"], "{steps:?}");
    let lost = packets.iter().find(is_for("203.0.113.1", "9")).unwrap();
    let steps = lines(lost);
    assert!(
        steps.iter().any(|step| step.contains("-> drop no-route: ")),
        "{steps:?}"
    );
    router.stop();
}

#[test]
fn a_trace_names_the_term_of_an_access_list() {
    let router = start();
    let packets = traced(&router, "gen1");
    let term = |port: &str| {
        let packet = packets.iter().find(is_for("198.51.100.7", port)).unwrap();
        let steps = lines(packet);
        let acl = steps.iter().find(|step| step.starts_with("acl-input"));
        acl.unwrap_or_else(|| panic!("{steps:?}")).clone()
    };
    assert!(term("7").contains("drop acl-denied"), "{}", term("7"));
    assert!(
        term("9").ends_with(": term 1 of edge: permit"),
        "{}",
        term("9")
    );
    router.stop();
}
