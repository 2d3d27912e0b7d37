//! Metrics, read back by the rules of OpenMetrics 1.0, and compared with what the router says.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{Mood, Place, TestRouter};
use weir_api::metrics::{METRICS, MetricKind, Snapshot};
use weir_api::*;

/// A metric as it was read back.
#[derive(Debug, Default)]
struct Read {
    kind: String,
    unit: Option<String>,
    help: String,
    samples: BTreeMap<Vec<(String, String)>, String>,
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Takes an escaped string up to its quote, or to the end.
fn unescaped(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut read = String::new();
    while let Some(character) = text.next_if(|c| *c != '"') {
        match (character, text.peek()) {
            ('\\', Some('n')) => read.push('\n'),
            ('\\', Some('\\')) => read.push('\\'),
            ('\\', Some('"')) => read.push('"'),
            ('\\', other) => panic!("a backslash before {other:?}"),
            (other, _) => {
                read.push(other);
                continue;
            }
        }
        text.next();
    }
    read
}

fn sample(line: &str) -> (String, Vec<(String, String)>, String) {
    let (name, rest) = line.split_at(line.find([' ', '{']).unwrap());
    let mut labels = Vec::new();
    let Some(inside) = rest.strip_prefix('{') else {
        return (name.to_owned(), labels, rest.trim_start().to_owned());
    };
    let mut text = inside.chars().peekable();
    loop {
        let mut label = String::new();
        while let Some(character) = text.next_if(|c| *c != '=') {
            label.push(character);
        }
        assert!(is_name(&label), "{line}");
        assert_eq!((text.next(), text.next()), (Some('='), Some('"')), "{line}");
        labels.push((label, unescaped(&mut text)));
        assert_eq!(text.next(), Some('"'), "{line}");
        match text.next() {
            Some(',') => {}
            Some('}') => break,
            other => panic!("{other:?} in {line}"),
        }
    }
    let value: String = text.collect();
    (
        name.to_owned(),
        labels,
        value.strip_prefix(' ').unwrap().to_owned(),
    )
}

/// Reads the text as OpenMetrics 1.0 has it; anything odd panics.
fn read(text: &str) -> BTreeMap<String, Read> {
    let mut all: BTreeMap<String, Read> = BTreeMap::new();
    let mut current = String::new();
    let body = text.strip_suffix("# EOF\n").expect("no end");
    for line in body.lines() {
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name, rest) = (
                words.next().unwrap(),
                words.next().unwrap(),
                words.next().unwrap(),
            );
            if what == "TYPE" {
                // A family is in one piece, and its type comes first.
                assert!(is_name(name) && !all.contains_key(name), "{line}");
                current = name.to_owned();
            }
            assert_eq!(name, current, "{line}");
            let family = all.entry(current.clone()).or_default();
            match what {
                "TYPE" => family.kind = rest.to_owned(),
                "UNIT" => family.unit = Some(rest.to_owned()),
                "HELP" => family.help = unescaped(&mut rest.chars().peekable()),
                other => panic!("{other} in {line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = all.get_mut(&current).expect("a sample before its type");
        let ending = match family.kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            "gauge" => "",
            other => panic!("{other}"),
        };
        assert_eq!(name, format!("{current}{ending}"), "{line}");
        let distinct: BTreeSet<_> = labels.iter().map(|(label, _)| label).collect();
        assert_eq!(distinct.len(), labels.len(), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(
            family.samples.insert(labels, value).is_none(),
            "twice: {line}"
        );
    }
    all
}

fn value(all: &BTreeMap<String, Read>, name: &str, labels: &[(&str, &str)]) -> String {
    let labels: Vec<_> = labels
        .iter()
        .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
        .collect();
    let samples = &all.get(name).unwrap_or_else(|| panic!("no {name}")).samples;
    samples
        .get(&labels)
        .unwrap_or_else(|| panic!("no {labels:?} in {samples:?}"))
        .clone()
}

#[test]
fn every_metric_is_reported_with_its_type_unit_and_meaning() {
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(TestRouter::new(Mood::Good))).unwrap();
    let text = Client::new(place.socket()).metrics().unwrap();
    let all = read(&text);
    for metric in METRICS {
        let read = all
            .get(metric.name)
            .unwrap_or_else(|| panic!("{} is not reported", metric.name));
        assert_eq!(read.kind, metric.kind.word(), "{}", metric.name);
        assert_eq!(read.unit.as_deref(), metric.unit, "{}", metric.name);
        assert_eq!(read.help, metric.help, "{}", metric.name);
        for labels in read.samples.keys() {
            assert_eq!(
                labels
                    .iter()
                    .map(|(label, _)| label.as_str())
                    .collect::<Vec<_>>(),
                metric.labels,
                "{}",
                metric.name
            );
        }
    }
    assert_eq!(all.len(), METRICS.len());
}

#[test]
fn names_follow_the_rules() {
    let mut samples = BTreeSet::new();
    for metric in METRICS {
        let name = metric.name;
        assert!(
            name.starts_with("weir_") || name.starts_with("process_"),
            "{name}"
        );
        // OpenMetrics 1.0, "Unit": a name ends in its unit. And its endings are reserved.
        assert!(
            metric
                .unit
                .is_none_or(|unit| name.ends_with(&format!("_{unit}"))),
            "{name}"
        );
        // What `promtool check metrics` refuses: types in names, and units that are not base units.
        let words: BTreeSet<&str> = name.split('_').collect();
        for word in [
            "counter",
            "gauge",
            "histogram",
            "summary",
            "info",
            "bits",
            "kilobytes",
            "milliseconds",
            "microseconds",
            "nanoseconds",
            "minutes",
            "percent",
        ] {
            assert!(!words.contains(word), "{name} has the word {word}");
        }
        let reserved = [
            "_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info",
        ];
        assert!(
            !reserved.iter().any(|ending| name.ends_with(ending)),
            "{name}"
        );
        assert!(
            samples.insert(format!("{name}{}", metric.kind.suffix())),
            "{name}"
        );
        assert!(
            metric.help.ends_with('.') || metric.help.contains(';') || metric.help.contains(':'),
            "{name}: {}",
            metric.help
        );
        assert!(
            metric.kind != MetricKind::Info || metric.unit.is_none(),
            "{name}"
        );
    }
}

#[test]
fn samples_are_what_the_router_says() {
    let text = Snapshot::take(&TestRouter::new(Mood::Good)).unwrap().text();
    let all = read(&text);
    let wan = [("interface", "wan")];
    for (name, labels, expected) in [
        (
            "weir_interface_packets",
            &[
                ("interface", "wan"),
                ("direction", "rx"),
                ("cast", "unicast"),
            ][..],
            "98",
        ),
        (
            "weir_interface_packets",
            &[
                ("interface", "lan & co"),
                ("direction", "rx"),
                ("cast", "broadcast"),
            ],
            "1",
        ),
        (
            "weir_interface_bytes",
            &[("interface", "wan"), ("direction", "rx")],
            "6400",
        ),
        (
            "weir_interface_errors",
            &[("interface", "wan"), ("direction", "tx")],
            "3",
        ),
        ("weir_interface_admin_up", &wan, "1"),
        ("weir_interface_link_up", &wan, "0"),
        ("weir_interface_speed_bytes_per_second", &wan, "1250000000"),
        (
            "weir_port_statistics",
            &[
                ("interface", "wan"),
                ("source", "xdp"),
                ("statistic", "rx_dropped"),
            ],
            "5",
        ),
        // Summed over the workers.
        (
            "weir_dropped_packets",
            &[
                ("interface", "wan"),
                ("node", "ip4-input"),
                ("reason", "ttl-expired"),
                ("severity", "info"),
            ],
            "5",
        ),
        ("weir_router_dropped_packets", &[("reason", "tx-full")], "1"),
        (
            "weir_node_vectors",
            &[("worker", "0"), ("node", "eth-input")],
            "4",
        ),
        (
            "weir_node_clocks",
            &[("worker", "0"), ("node", "eth-input")],
            "9000",
        ),
        ("weir_tsc_frequency_hertz", &[], "2600000000"),
        ("weir_sflow_sampling_rate", &[], "1000"),
        ("weir_flow_resident_flows", &[("worker", "0")], "7"),
        (
            "weir_flow_exported_flows",
            &[("worker", "0"), ("reason", "idle")],
            "13",
        ),
        ("weir_flow_exported_bytes", &[("worker", "0")], "5400"),
        ("weir_flow_taken_packets", &[], "54"),
        (
            "weir_flow_collector_up",
            &[("collector", "192.0.2.9:4739%mgmt"), ("transport", "tcp")],
            "1",
        ),
        (
            "weir_flow_collector_not_sent_flows",
            &[("collector", "192.0.2.9:4739%mgmt"), ("transport", "tcp")],
            "1",
        ),
        (
            "weir_flow_collector_not_sent_bytes",
            &[("collector", "192.0.2.9:4739%mgmt"), ("transport", "tcp")],
            "300",
        ),
        (
            "weir_flow_collector_not_sent_flows",
            &[("collector", "192.0.2.9:4739%mgmt"), ("transport", "udp")],
            "0",
        ),
        ("weir_flow_oldest_record_seconds", &[], "0.012"),
        ("weir_sflow_dropped_samples", &[("worker", "0")], "1"),
        (
            "weir_sflow_collector_datagrams",
            &[("collector", "collector.example:6343%mgmt")],
            "7",
        ),
        (
            "weir_sflow_pool_packets",
            &[("interface", "wan"), ("worker", "0")],
            "10000",
        ),
        ("weir_sflow_kernel_messages", &[("kind", "report")], "60"),
        (
            "weir_fib_routes",
            &[("table", "0"), ("family", "ipv4"), ("source", "static")],
            "3",
        ),
        (
            "weir_neighbors",
            &[("interface", "wan"), ("state", "incomplete")],
            "1",
        ),
        (
            "weir_linux_punted_packets",
            &[("interface", "wan"), ("class", "bgp")],
            "71",
        ),
        (
            "weir_linux_policed_packets",
            &[("interface", "wan"), ("class", "bgp")],
            "72",
        ),
        ("weir_linux_route_updates", &[("source", "kernel")], "73"),
        ("weir_linux_route_updates", &[("source", "fpm")], "78"),
        ("weir_linux_overruns", &[], "74"),
        ("weir_linux_resyncs", &[], "75"),
        (
            "weir_linux_refused_updates",
            &[("source", "kernel"), ("reason", "no-interface")],
            "76",
        ),
        ("weir_linux_fpm_connected", &[], "1"),
        ("weir_linux_fpm_sessions", &[], "77"),
        ("weir_linux_fpm_parked_routes", &[], "80"),
        ("weir_linux_bmp_sessions", &[], "1"),
        ("weir_linux_bmp_paths", &[], "86"),
        ("weir_linux_healed_routes", &[], "82"),
        ("weir_linux_stale_routes", &[], "83"),
        (
            "weir_linux_convergence_updates",
            &[("source", "kernel"), ("le", "0.001")],
            "6",
        ),
        (
            "weir_linux_convergence_updates",
            &[("source", "kernel"), ("le", "0.002")],
            "8",
        ),
        (
            "weir_linux_convergence_updates",
            &[("source", "kernel"), ("le", "+Inf")],
            "9",
        ),
        ("weir_buffers_free", &[("pool", "0")], "16000"),
        ("weir_buffer_failures", &[("pool", "0")], "3"),
        ("weir_config_revision", &[], "7"),
        ("weir_config_locked", &[], "0"),
        ("weir_build", &[("version", "0.1.0"), ("commit", "")], "1"),
    ] {
        assert_eq!(value(&all, name, labels), expected, "{name}{labels:?}");
    }
    let memory: u64 = value(&all, "process_resident_memory_bytes", &[])
        .parse()
        .unwrap();
    assert!(memory > 100_000);
}

#[test]
fn odd_names_are_escaped_and_large_numbers_are_exact() {
    let odd = "a\"b\\c\nd{e}=f,ü\\";
    let mut snapshot = Snapshot::take(&TestRouter::new(Mood::Good)).unwrap();
    snapshot.interfaces.interfaces[0].name = odd.to_owned();
    snapshot.interfaces.interfaces[0].rx.bytes = u64::MAX;
    snapshot.runtime.tsc_mhz = f64::NAN;
    let text = snapshot.text();
    let all = read(&text);
    assert_eq!(
        value(
            &all,
            "weir_interface_bytes",
            &[("interface", odd), ("direction", "rx")]
        ),
        "18446744073709551615"
    );
    assert_eq!(value(&all, "weir_tsc_frequency_hertz", &[]), "NaN");
    assert!(
        text.contains(r#"weir_interface_mtu_bytes{interface="a\"b\\c\nd{e}=f,ü\\"} 1500"#),
        "{text}"
    );
}

#[test]
fn ten_thousand_interfaces_are_reported() {
    let place = Place::new();
    let _server = Server::start(
        &place.socket(),
        Arc::new(TestRouter::new(Mood::Large(10_000))),
    )
    .unwrap();
    let all = read(&Client::new(place.socket()).metrics().unwrap());
    assert_eq!(all["weir_interface_packets"].samples.len(), 60_000);
}
