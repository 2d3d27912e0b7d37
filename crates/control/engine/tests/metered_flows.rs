//! Flows from a generator through the whole router to a collector on the loopback interface: what became of them is in
//! their records, every packet is in one of them, and the rest is counted.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use weir_api::{FlowGroupBy, FlowGrouping, FlowMeasure, FlowQuery, Flows, Router as _};
use weir_config::{Config, check};
use weir_engine::{Options, Router};
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::ipfix::flow::Flow;

const EACH: u64 = 200;

fn config(port: u16, ipfix: &str) -> Config {
    config_with(port, "{prefix: 198.51.0.0/16, via: 10.1.0.2}", ipfix)
}

fn config_with(port: u16, routes: &str, ipfix: &str) -> Config {
    let stream = |name: &str, protocol: &str, destination: &str| {
        format!(
            "{{name: {name}, limit: {EACH}, rate: 2000, protocol: {protocol}, source: 10.0.0.2, destination: {destination}}}"
        )
    };
    let streams = [
        stream("far", "udp", "198.51.100.7"),
        stream("ping", "icmp", "192.0.2.255"),
        stream("lost", "udp", "203.0.113.1"),
    ]
    .join(", ");
    let text = format!(
        "
interfaces:
  xe0: {{device: {{driver: generator, streams: [{streams}]}}, addresses: [10.0.0.1/24]}}
  xe1: {{device: {{driver: 'null'}}, addresses: [10.1.0.1/24, '2001:db8:1::1/64']}}
loopbacks: {{loop0: {{addresses: [192.0.2.255/32]}}}}
neighbors:
- {{interface: xe0, address: 10.0.0.2, mac: 02:00:00:00:00:02}}
- {{interface: xe1, address: 10.1.0.2, mac: 02:00:00:00:01:02}}
- {{interface: xe1, address: 'fe80::2', mac: 02:00:00:00:01:03}}
routes: [{routes}]
ipfix: {{flows: 1024, {ipfix}, collectors: [{{address: 127.0.0.1, port: {port}}}]}}
"
    );
    check("weir.yaml", &text)
        .unwrap_or_else(|findings| panic!("{findings:?}"))
        .0
}

/// Sends all there is to send, and stops.
fn run_with(wanted: &Config, mut heard: Heard) -> (Heard, weir_api::Totals, BTreeMap<String, u32>) {
    let router = Router::start(wanted, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let done = |it: &weir_api::Totals| {
        it.packets_out + it.consumed + it.drops.values().sum::<u64>() >= 3 * EACH
    };
    while !done(&router.balance()) && Instant::now() < until {
        heard.listen();
    }
    let indexes = router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .map(|it| (it.name.clone(), it.index))
        .collect();
    router.stop();
    heard.listen();
    (heard, router.balance(), indexes)
}

/// Flows by destination, direction and status, with those that are in several records summed.
type Received = BTreeMap<(String, u8, u8), Flow>;

struct Heard {
    socket: UdpSocket,
    collector: Collector,
    received: Received,
    records: u64,
    /// Packets by the rate in their records (0: none there) and by destination.
    rates: BTreeMap<(u64, String), u64>,
}

impl Heard {
    fn new() -> Heard {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        Heard {
            socket,
            collector: Collector::default(),
            received: Received::new(),
            records: 0,
            rates: BTreeMap::new(),
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Takes what is there.
    fn listen(&mut self) {
        let mut buffer = vec![0; 9000];
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let (received, records, rates) =
                (&mut self.received, &mut self.records, &mut self.rates);
            self.collector
                .read(from, &buffer[..length], &mut |item| match item {
                    Item::Record(record) if !record.template.is_options() => {
                        let flow = Flow::of(&record);
                        *records += 1;
                        let rate = record.number(34).unwrap_or(0);
                        *rates
                            .entry((rate, flow.destination_address().to_string()))
                            .or_default() += flow.packets;
                        let key = (
                            flow.destination_address().to_string(),
                            flow.direction,
                            flow.forwarding_status,
                        );
                        match received.get_mut(&key) {
                            Some(known) => {
                                (known.packets, known.octets) =
                                    (known.packets + flow.packets, known.octets + flow.octets)
                            }
                            None => drop(received.insert(key, flow)),
                        }
                    }
                    Item::Sequence(_, gap) => panic!("a gap: {gap:?}"),
                    Item::Undecoded(what) => panic!("{what:?}"),
                    _ => {}
                });
        }
    }

    fn packets(&self) -> u64 {
        self.received.values().map(|flow| flow.packets).sum()
    }
}

fn run(ipfix: &str) -> (Heard, weir_api::Totals, BTreeMap<String, u32>) {
    let heard = Heard::new();
    let wanted = config(heard.port(), ipfix);
    run_with(&wanted, heard)
}

/// A route whose next hop is looked up, twice in a row: the neighbour, and the next hop as the route has it.
#[test]
fn the_next_hop_of_a_recursive_route_is_reported() {
    let heard = Heard::new();
    let routes = "{prefix: 10.255.0.0/24, via: 10.1.0.2}, {prefix: 10.254.0.0/24, via: [{next-hop: 10.255.0.1, next-hop-table: default}]}, \
                  {prefix: 198.51.0.0/16, via: [{next-hop: 10.254.0.9, next-hop-table: default}]}, \
                  {prefix: 203.0.113.0/24, via: [{next-hop: 10.255.0.1, next-hop-table: default}, {next-hop: 10.255.0.7, next-hop-table: default}]}";
    let wanted = config_with(heard.port(), routes, "interfaces: {xe0: {records: router}}");
    let (heard, ..) = run_with(&wanted, heard);
    let hops = |destination: &str, status| {
        let flow = heard
            .received
            .get(&(destination.to_owned(), 0, status))
            .unwrap_or_else(|| panic!("{:?}", heard.received));
        [flow.next_hop, flow.bgp_next_hop].map(|hop| hop.unwrap().to_string())
    };
    assert_eq!(hops("198.51.100.7", 64), ["10.1.0.2", "10.254.0.9"]);
    // By the same neighbour for one or the other: nobody knows for which.
    assert_eq!(hops("203.0.113.1", 64), ["10.1.0.2", "0.0.0.0"]);
    assert_eq!(hops("192.0.2.255", 195), ["0.0.0.0", "0.0.0.0"]);
}

/// RFC 8950: IPv4 that goes to a neighbour of IPv6.
#[test]
fn the_next_hop_of_ip4_may_be_one_of_ip6() {
    let heard = Heard::new();
    let routes = "{prefix: 198.51.0.0/16, via: [{next-hop: 'fe80::2', interface: xe1}]}, {prefix: 203.0.113.0/24, via: 10.1.0.2}";
    let wanted = config_with(heard.port(), routes, "interfaces: {xe0: {records: router}}");
    let (heard, _, indexes) = run_with(&wanted, heard);
    for (destination, next_hop) in [("198.51.100.7", "fe80::2"), ("203.0.113.1", "10.1.0.2")] {
        let flow = heard
            .received
            .get(&(destination.to_owned(), 0, 64))
            .unwrap_or_else(|| panic!("{:?}", heard.received));
        let hops = [flow.next_hop, flow.bgp_next_hop].map(|hop| hop.unwrap());
        assert_eq!(
            (flow.output, hops[0].to_string(), hops[1].is_unspecified()),
            (indexes["xe1"], next_hop.to_owned(), true)
        );
        assert_eq!(flow.source_address().to_string(), "10.0.0.2");
    }
}

#[test]
fn a_record_says_what_became_of_its_packets() {
    let (heard, totals, indexes) = run("interfaces: {xe0: {records: router}}");
    let drops = |reason: &str| totals.drops.get(reason).copied().unwrap_or(0);
    assert_eq!(
        heard.packets(),
        totals.packets_in,
        "{:?} {totals:?}",
        heard.received
    );
    let of = |destination: &str, status| {
        heard
            .received
            .get(&(destination.to_owned(), 0, status))
            .unwrap_or_else(|| panic!("{:?}", heard.received))
    };
    let far = of("198.51.100.7", 64);
    assert_eq!((far.input, far.output), (indexes["xe0"], indexes["xe1"]));
    assert_eq!(
        far.next_hop.map(|hop| hop.to_string()),
        Some("10.1.0.2".to_owned())
    );
    assert_eq!((far.source_prefix, far.destination_prefix), (24, 16));
    let lost = of("203.0.113.1", 131);
    assert_eq!((lost.output, lost.packets), (0, drops("no-route")));
    let ping = of("192.0.2.255", 195);
    assert_eq!((ping.input, ping.output), (indexes["xe0"], 0));
    assert_eq!(
        far.packets + ping.packets,
        totals.packets_out - totals.originated,
        "{totals:?}"
    );
    assert_eq!(heard.received.len(), 3, "{:?}", heard.received);
    for flow in heard.received.values() {
        assert!(flow.packets > EACH / 2, "{flow:?}");
        assert_eq!(flow.end_reason, 4, "forced");
    }
}

#[test]
fn what_leaves_is_metered_where_it_leaves() {
    let (heard, totals, indexes) = run(
        "records: {mine: {elements: [5-tuple, flowDirection, forwardingStatus, minimumTTL]}}, \
                                        interfaces: {xe0: {direction: both, records: mine}, xe1: {direction: tx, records: mine}}",
    );
    let of = |destination: &str, direction, status| {
        heard
            .received
            .get(&(destination.to_owned(), direction, status))
    };
    let (came, left) = (
        of("198.51.100.7", 0, 64).unwrap(),
        of("198.51.100.7", 1, 64).unwrap(),
    );
    // In and out by the same interfaces, one hop later.
    assert_eq!(
        (came.packets, came.octets, came.input, came.output),
        (left.packets, left.octets, indexes["xe0"], left.output)
    );
    assert_eq!(left.output, indexes["xe1"]);
    // The answers of the router itself are seen leaving only.
    let answers = of("10.0.0.2", 1, 64).unwrap();
    assert_eq!(answers.output, indexes["xe0"]);
    assert_eq!(
        answers.packets + left.packets,
        totals.packets_out,
        "{totals:?} {:?}",
        heard.received
    );
}

#[test]
fn one_packet_in_some_is_metered() {
    let (heard, totals, _) = run("sampling-rate: 4, interfaces: {xe0: {}}");
    let metered = heard.packets();
    // 600 packets at 1 in 4: 150, with a deviation of 11.
    assert!((80..230).contains(&metered), "{metered} of {totals:?}");
}

/// One record set, two rates: each interface is metered by its own, and its records have that.
#[test]
fn interfaces_have_rates_of_their_own() {
    let (heard, totals, _) = run("sampling-rate: 1000000, \
                 interfaces: {xe0: {sampling-rate: 1}, xe1: {direction: tx, sampling-rate: 4}}");
    let by = |rate: u64, destination: &str| {
        let key = (rate, destination.to_owned());
        heard.rates.get(&key).copied().unwrap_or(0)
    };
    let came: u64 = heard
        .rates
        .iter()
        .filter(|((rate, _), _)| *rate == 1)
        .map(|(_, it)| it)
        .sum();
    assert_eq!(came, totals.packets_in, "{:?} {totals:?}", heard.rates);
    // A quarter of those that left by xe1: binomial, five standard deviations.
    let left = by(1, "198.51.100.7") as f64;
    let metered = by(4, "198.51.100.7") as f64;
    let bound = 5.0 * (left * 0.25 * 0.75).sqrt();
    assert!((metered - left / 4.0).abs() <= bound, "{metered} of {left}");
    assert!(heard.rates.keys().all(|(rate, _)| matches!(rate, 1 | 4)));
}

/// Templates are shown as they are sent; of both directions where there are such records.
#[test]
fn templates_of_both_directions_are_shown() {
    for (biflow, kinds) in [
        (false, &["ipv4", "ipv6", "l2"][..]),
        (true, &["ipv4", "ipv4-biflow", "ipv6", "ipv6-biflow", "l2"]),
    ] {
        let records = "records: {mine: {elements: [sourceIPv4Address, packetDeltaCount]}}, interfaces: {xe0: {records: mine}}";
        let router = Router::start(
            &config(9, &format!("biflow: {biflow}, {records}")),
            &Options::default(),
        )
        .unwrap();
        let templates = router.ipfix().unwrap().templates;
        assert_eq!(
            templates
                .iter()
                .map(|it| it.kind.as_str())
                .collect::<Vec<_>>(),
            kinds
        );
        let has_reverse = templates.iter().any(|it| {
            it.elements
                .iter()
                .any(|element| element == "reversePacketDeltaCount")
        });
        assert_eq!(has_reverse, biflow);
        router.stop();
    }
}

/// Metering comes and goes while packets pass; nothing that was metered is lost.
#[test]
fn metering_is_changed_while_packets_pass() {
    let mut heard = Heard::new();
    let port = heard.port();
    let router = Router::start(&config(port, "active-timeout: 1"), &Options::default()).unwrap();
    let settings = [
        "interfaces: {xe0: {}}",
        "interfaces: {xe0: {records: router}}",
        "interfaces: {xe0: {direction: both, records: router}}",
        "idle-timeout: 1, interfaces: {xe0: {records: l2}}",
        "active-timeout: 2",
    ];
    for (round, ipfix) in settings.iter().cycle().take(10).enumerate() {
        let ipfix = ipfix.replace("flows", "").to_string();
        let mut wanted = config(port, &ipfix);
        wanted.ipfix.flows = 1024 << (round % 2);
        router.apply(&wanted).unwrap();
        if round == 0 {
            let end = Instant::now() + Duration::from_secs(30);
            let metered = || {
                let workers = router.ipfix().unwrap().workers;
                workers.iter().map(|it| it.metered_packets).sum::<u64>()
            };
            while metered() == 0 {
                assert!(Instant::now() < end, "no packet was metered");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        heard.listen();
    }
    router.stop();
    heard.listen();
    assert!(heard.records > 0);
}

/// Sends all there is to send; the router, and what it shows of flows.
fn shown(ipfix: &str) -> (Router, impl Fn(&Router, FlowQuery) -> Flows) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wanted = config(socket.local_addr().unwrap().port(), ipfix);
    let router = Router::start(&wanted, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while router.ipfix().unwrap().workers[0].metered_packets < 3 * EACH {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    (router, |router, query| {
        let query = FlowQuery { most: 100, ..query };
        router.flows_where(&query).unwrap()
    })
}

/// Rates, names of outcomes, a filter by protocol, and sums.
#[test]
fn flows_are_shown_with_rates_and_summed_up() {
    let (router, ask) = shown(
        "records: {mine: {elements: [5-tuple, forwardingStatus]}}, interfaces: {xe0: {records: mine}}",
    );
    for top in [FlowMeasure::Octets, FlowMeasure::Packets] {
        let query = FlowQuery {
            top: Some(top),
            ..FlowQuery::default()
        };
        let shown = ask(&router, query);
        let mut names: Vec<_> = shown
            .flows
            .iter()
            .map(|flow| (flow.forwarding_status_name.as_str(), flow.packets))
            .collect();
        names.sort_unstable();
        let expected = [
            ("consumed: for this router", EACH),
            ("dropped: unroutable", EACH),
            ("forwarded", EACH),
        ];
        assert_eq!(names, expected, "{shown:?}");
        for flow in &shown.flows {
            assert!(
                flow.packets_per_second > 0
                    && flow.packets_per_second <= EACH
                    && flow.octets_per_second > flow.packets_per_second,
                "{flow:?}"
            );
            assert_eq!(flow.source.as_deref(), Some("10.0.0.2"));
        }
    }
    let of_protocol = |protocol: u8| {
        let query = FlowQuery {
            protocol: Some(protocol),
            ..FlowQuery::default()
        };
        ask(&router, query).matched
    };
    assert_eq!([1, 17, 6].map(of_protocol), [1, 2, 0]);
    let groups = |by: FlowGroupBy, lengths: (u8, u8)| {
        let query = FlowQuery {
            group: Some(FlowGrouping { by, lengths }),
            ..FlowQuery::default()
        };
        let mut groups: Vec<_> = ask(&router, query)
            .groups
            .into_iter()
            .map(|it| (it.group.unwrap_or_default(), it.flows, it.packets))
            .collect();
        groups.sort_unstable();
        groups
    };
    let named = |name: &str, flows: u64| (name.to_owned(), flows, flows * EACH);
    assert_eq!(
        groups(FlowGroupBy::Source, (32, 128)),
        [named("10.0.0.2", 3)]
    );
    assert_eq!(
        groups(FlowGroupBy::Destination, (8, 64)),
        [
            named("192.0.0.0/8", 1),
            named("198.0.0.0/8", 1),
            named("203.0.0.0/8", 1)
        ]
    );
    assert_eq!(
        groups(FlowGroupBy::Protocol, (32, 128)),
        [named("icmp", 1), named("udp", 2)]
    );
    assert_eq!(groups(FlowGroupBy::Input, (32, 128)), [named("xe0", 3)]);
    assert_eq!(groups(FlowGroupBy::Host, (32, 128)).len(), 4);
    assert_eq!(
        groups(FlowGroupBy::Status, (32, 128)),
        [
            named("consumed: for this router", 1),
            named("dropped: unroutable", 1),
            named("forwarded", 1)
        ]
    );
    router.stop();
}

/// What a record set does not select is absent, and no address of zeros.
#[test]
fn what_a_record_set_does_not_select_is_absent() {
    let (router, ask) = shown(
        "records: {class: {elements: [ipClassOfService, packetDeltaCount]}}, interfaces: {xe0: {records: class}}",
    );
    let shown = ask(&router, FlowQuery::default());
    let [flow] = shown.flows.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (&flow.source, &flow.destination, flow.protocol, flow.packets),
        (&None, &None, None, 3 * EACH)
    );
    let by = FlowGroupBy::Source;
    let query = FlowQuery {
        group: Some(FlowGrouping {
            by,
            lengths: (32, 128),
        }),
        ..FlowQuery::default()
    };
    let groups = ask(&router, query).groups;
    assert_eq!((groups.len(), &groups[0].group), (1, &None));
    router.stop();
}

/// A flow that goes on is shown also after its active timeout, with the rate that it has, whatever its record counts.
#[test]
fn rates_go_on_over_the_active_timeout() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "
interfaces:
  xe0: {{device: {{driver: generator, streams: [{{name: s, rate: 500, source: 10.0.0.2, destination: 198.51.100.7}}]}}, addresses: [10.0.0.1/24]}}
  xe1: {{device: {{driver: 'null'}}, addresses: [10.1.0.1/24]}}
neighbors: [{{interface: xe1, address: 10.1.0.2, mac: 02:00:00:00:01:02}}]
routes: [{{prefix: 198.51.0.0/16, via: 10.1.0.2}}]
ipfix: {{flows: 1024, active-timeout: 2, interfaces: {{xe0: {{}}}}, collectors: [{{address: 127.0.0.1, port: {}}}]}}
",
        socket.local_addr().unwrap().port()
    );
    let config = check("weir.yaml", &text)
        .unwrap_or_else(|findings| panic!("{findings:?}"))
        .0;
    let router = Router::start(&config, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    // By its own packets alone, a record that began less than a second ago has as high a rate as it has packets.
    loop {
        assert!(Instant::now() < until);
        let query = FlowQuery {
            top: Some(FlowMeasure::Packets),
            most: 10,
            ..FlowQuery::default()
        };
        let shown = router.flows_where(&query).unwrap();
        assert!(shown.flows.len() <= 1, "{shown:?}");
        let is_more = |flow: &weir_api::FlowEntry| flow.packets_per_second > flow.packets;
        if shown.flows.first().is_some_and(is_more) {
            break;
        }
    }
    router.stop();
}
