//! Each key's example and default, put through `check`.

use super::*;
use crate::model::Config;

const TOKENS: &str =
    "tokens: [{name: a, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}]";

/// A policer around one of its keys, with the other one.
fn policer(around: &str, row: &Key) -> String {
    let direction = if row.parent().ends_with("input") {
        "input"
    } else {
        "output"
    };
    let other = if row.name() == "rate" {
        "burst: 9000"
    } else {
        "rate: 8000"
    };
    around
        .replace("DIRECTION", direction)
        .replace("KEY", &format!("{other}, KEY"))
}

/// A good file around one key; `KEY` stands where it goes.
fn around(row: &Key) -> String {
    let device = |inner: &str| format!("interfaces: {{xe0: {{device: {{{inner}, KEY}}}}}}");
    let parent = row.parent();
    match parent {
        "" if row.name() == "bridgedomains" => "interfaces: {xe0: {}, xe1: {}}\nKEY".to_owned(),
        "" if row.name() == "pseudowires" => "interfaces: {xe0: {addresses: [192.0.2.1/24]}}\nKEY".to_owned(),
        "" if row.name() == "bondethernets" => "interfaces: {xe0: {}, xe1: {}}\nKEY".to_owned(),
        "bondethernets.*" => "interfaces: {xe0: {}, xe1: {}}\nbondethernets: {BondEthernet0: {KEY}}".to_owned(),
        "" => "KEY".to_owned(),
        "sflow" if row.name() == "interfaces" => "interfaces: {xe0: {sflow: true}}\nsflow: {KEY}".to_owned(),
        "interfaces.*" => {
            "interfaces: {xe0: {KEY}, xe1: {}}\nworkers: {count: 2}\nvrfs: {red: {table: 10}}\nacls: {web: {terms: [{action: permit}]}}"
                .to_owned()
        }
        "interfaces.*.device" if row.name() == "input" => device("driver: pcap, output: x"),
        "interfaces.*.device" if row.name() == "output" => device("driver: pcap, input: x"),
        "interfaces.*.device" if row.name() == "host-mac" => device("driver: tap, name: t0"),
        "interfaces.*.device" if row.drivers == ["memif"] => device("driver: memif, socket: /a, role: slave"),
        "interfaces.*.device" => device("driver: af-xdp, name: e0"),
        "interfaces.*.device.streams[]" => {
            device("driver: generator, streams: [{name: a, source: 10.0.0.1, destination: 10.0.1.1, KEY}]").replace("}], KEY", "}]")
        }
        "interfaces.*.acl" => "interfaces: {xe0: {acl: {KEY}}}\nacls: {web: {terms: [{action: permit}]}}".to_owned(),
        "interfaces.*.police" => "interfaces: {xe0: {police: {KEY}}}".to_owned(),
        "interfaces.*.police.input" | "interfaces.*.police.output" => {
            policer("interfaces: {xe0: {police: {DIRECTION: {KEY}}}}", row)
        }
        "interfaces.*.sub-interfaces.*.police" => {
            "interfaces: {xe0: {sub-interfaces: {100: {police: {KEY}}}}}".to_owned()
        }
        "interfaces.*.sub-interfaces.*.police.input" | "interfaces.*.sub-interfaces.*.police.output" => {
            policer("interfaces: {xe0: {sub-interfaces: {100: {police: {DIRECTION: {KEY}}}}}}", row)
        }
        "prefixlists.*" if row.name() == "members" => "prefixlists: {customers: {KEY}}".to_owned(),
        "prefixlists.*" => "prefixlists: {customers: {members: [192.0.2.0/24], KEY}}".to_owned(),
        "acls.*" if row.name() == "terms" => "acls: {web: {KEY}}\nprefixlists: {customers: {members: [192.0.2.0/24]}}".to_owned(),
        "acls.*" => "acls: {web: {terms: [{action: permit}], KEY}}".to_owned(),
        "acls.*.terms[]" => {
            let protocol = match row.name() {
                "protocol" => "",
                "icmp-type" | "icmp-code" => "protocol: icmp, ",
                _ => "protocol: tcp, ",
            };
            let action = if row.name() == "action" { "" } else { "action: permit, " };
            format!("acls: {{web: {{terms: [{{{action}{protocol}KEY}}]}}}}\nprefixlists: {{customers: {{members: [192.0.2.0/24]}}}}")
        }
        "interfaces.*.sub-interfaces.*" if row.name() == "lcp" => {
            "interfaces: {xe0: {lcp: xe0, sub-interfaces: {100: {KEY}}}}".to_owned()
        }
        "interfaces.*.sub-interfaces.*" => "interfaces: {xe0: {sub-interfaces: {100: {KEY}}}, xe1: {}}\nvrfs: {red: {table: 10}}\n\
                                            acls: {web: {terms: [{action: permit}]}}"
            .to_owned(),
        "interfaces.*.sub-interfaces.*.acl" => {
            "interfaces: {xe0: {sub-interfaces: {100: {acl: {KEY}}}}}\nacls: {web: {terms: [{action: permit}]}}".to_owned()
        }
        "interfaces.*.sub-interfaces.*.encapsulation" => {
            let outer = if row.name().starts_with("dot1") { "" } else { "dot1q: 5, " };
            format!("interfaces: {{xe0: {{sub-interfaces: {{100: {{encapsulation: {{{outer}KEY}}}}}}}}}}")
        }
        "interfaces.*.sub-interfaces.*.tag-rewrite" => {
            let outer = if row.name().starts_with("dot1") { "" } else { ", dot1q: 5" };
            format!("interfaces: {{xe0: {{sub-interfaces: {{100: {{tag-rewrite: {{pop: 1{outer}, KEY}}}}}}}}}}")
        }
        "interfaces.*.router-advertisements" => {
            "interfaces: {xe0: {addresses: ['2001:db8::1/64'], router-advertisements: {interval: 600, KEY}}}".to_owned()
        }
        "interfaces.*.sub-interfaces.*.router-advertisements" => {
            "interfaces: {xe0: {sub-interfaces: {100: {addresses: ['2001:db8::1/64'], router-advertisements: {interval: 600, KEY}}}}}"
                .to_owned()
        }
        "loopbacks.*.router-advertisements" => {
            "loopbacks: {loop0: {addresses: ['2001:db8::1/64'], router-advertisements: {interval: 600, KEY}}}".to_owned()
        }
        "loopbacks.*" => "loopbacks: {loop0: {KEY}}\ninterfaces: {xe1: {addresses: [198.51.100.1/31]}}\nvrfs: {red: {table: 10}}".to_owned(),
        "vxlan_tunnels.*" => "vxlan_tunnels: {vxlan_tunnel1: {local: 192.0.2.1, remote: 192.0.2.2, vni: 7, KEY}}".to_owned(),
        "vrfs.*" => "vrfs: {red: {table: 10, KEY}}".to_owned(),
        "routes[]" if row.name() == "resilient" => {
            "interfaces: {xe0: {addresses: [192.0.2.1/24]}}\nroutes: [{prefix: 10.0.0.0/8, via: 192.0.2.254, KEY}]".to_owned()
        }
        "routes[]" => "vrfs: {red: {table: 10}}\nroutes: [{prefix: 10.0.0.0/8, via: blackhole, KEY}]".to_owned(),
        "bridgedomains.*" => {
            let members = if matches!(row.name(), "mtu" | "interfaces") { "" } else { "interfaces: [xe0, xe1], " };
            format!("interfaces: {{xe0: {{}}, xe1: {{}}}}\nloopbacks: {{loop0: {{}}}}\nbridgedomains: {{bd1: {{{members}KEY}}}}")
        }
        "bridgedomains.*.settings" => "bridgedomains: {bd1: {settings: {KEY}}}".to_owned(),
        "taps.*" if row.name() == "host" => "taps: {tap0: {KEY}}".to_owned(),
        "taps.*" => "taps: {tap0: {host: {name: t0}, KEY}}".to_owned(),
        "taps.*.host" => "taps: {tap0: {host: {name: t0, KEY}}}".to_owned(),
        "api.listen[]" => format!("api: {{{TOKENS}, listen: [{{address: 127.0.0.1, KEY}}]}}"),
        "api.listen[].tls" => {
            format!("api: {{{TOKENS}, listen: [{{address: 127.0.0.1, tls: {{certificate: c, key: k, KEY}}}}]}}")
        }
        "api.tokens[]" => format!("api: {{{TOKENS}}}").replace("}]", ", KEY}]"),
        "api.metrics" => "api: {metrics: {address: 127.0.0.1, KEY}}".to_owned(),
        "api" if row.name() != "tokens" => format!("api: {{{TOKENS}, KEY}}"),
        "sflow.interfaces.*" => {
            "interfaces: {xe0: {sflow: true}}\nsflow: {collectors: [{address: 192.0.2.9}], interfaces: {xe0: {KEY}}}".to_owned()
        }
        // Sections that mean something when they are empty.
        "sflow.dns-sd" | "sflow.psample" => format!("sflow: {{{}: {{KEY}}}}", &row.parent()["sflow.".len()..]),
        "linux" if row.name() == "interfaces" => "interfaces: {xe0: {}}\nlinux: {KEY}".to_owned(),
        "linux.bmp" => "linux: {bmp: {KEY}}".to_owned(),
        "linux.fpm" => "linux: {fpm: {KEY}}".to_owned(),
        "linux.interfaces.*" => "interfaces: {xe0: {}}\nlinux: {interfaces: {xe0: {KEY}}}".to_owned(),
        "ipfix" if row.name() == "interfaces" => "interfaces: {xe0: {}}\nipfix: {KEY}".to_owned(),
        "ipfix.records.*" => "ipfix: {records: {mine: {KEY}}}".to_owned(),
        "ipfix.interfaces.*" => "interfaces: {xe0: {}}\nipfix: {interfaces: {xe0: {KEY}}}".to_owned(),
        "ipfix.collectors[]" if row.name() == "tls" => "ipfix: {collectors: [{address: 192.0.2.9, transport: tls, KEY}]}".to_owned(),
        "ipfix.collectors[]" => "ipfix: {collectors: [{address: 192.0.2.9, KEY}]}".to_owned(),
        "ipfix.collectors[].tls" => {
            let other = if row.name() == "key" { "certificate: c, " } else { "key: k, " };
            let other = if matches!(row.name(), "name" | "ca") { "" } else { other };
            format!("ipfix: {{collectors: [{{address: 192.0.2.9, transport: tls, tls: {{name: a, ca: b, {other}KEY}}}}]}}")
        }
        "sflow.collectors[]" => "sflow: {collectors: [{address: 192.0.2.9, KEY}]}".to_owned(),
        "pseudowires.*" => {
            let more = if row.name() == "vlan" { "type: tagged, " } else { "" };
            let needed = "local-label: 1000, remote-label: 2000, via: 192.0.2.254";
            format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\npseudowires: {{pw0: {{{needed}, {more}KEY}}}}")
        }
        "pseudowires.*.via[]" => {
            let needed = "local-label: 1000, remote-label: 2000, via: [{next-hop: 192.0.2.254, KEY}]";
            format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\npseudowires: {{pw0: {{{needed}}}}}")
        }
        "routes[].via[]" | "mpls.labels[].via[]" => {
            let labels = if matches!(row.name(), "ttl-mode" | "traffic-class" | "entropy-label") { "labels: [16], " } else { "" };
            let via = format!("via: [{{next-hop: 192.0.2.254, {labels}KEY}}]");
            let entry = if row.path.starts_with("routes") {
                format!("routes: [{{prefix: 10.0.0.0/8, {via}}}]")
            } else {
                format!("mpls: {{labels: [{{label: 100, {via}}}]}}")
            };
            format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\n{entry}")
        }
        "mpls.labels[]" if row.name() == "ttl-mode" => "mpls: {labels: [{label: 100, lookup: default, KEY}]}".to_owned(),
        "mpls.labels[]" => {
            "vrfs: {red: {table: 10}}\ninterfaces: {xe0: {addresses: [192.0.2.1/24]}}\nmpls: {labels: [{label: 100, KEY}]}".to_owned()
        }
        section => format!("{section}: {{KEY}}"),
    }
}

fn text(row: &Key, key: &str) -> String {
    around(row).replace("KEY", key).replace(", }", "}")
}

fn optional() -> impl Iterator<Item = &'static Key> {
    let optional = |row: &&Key| {
        row.kind != Kind::Unsupported
            && !row.is_required()
            && !row.path.ends_with("[]")
            && !row.path.ends_with(".*")
    };
    KEYS.iter()
        .filter(optional)
        .filter(|row| row.path != "neighbors")
}

/// A good file for the example and for the default of each key, by the key's path.
pub(crate) fn good_files() -> Vec<(String, String)> {
    let values = optional()
        .flat_map(|row| [(row, row.example), (row, row.default)])
        .filter(|(_, value)| !value.is_empty());
    values
        .map(|(row, value)| {
            (
                row.path.to_owned(),
                text(row, &format!("{}: {value}", row.name())),
            )
        })
        .collect()
}

fn read(row: &Key, key: &str) -> Config {
    let text = text(row, key);
    match crate::check("key", &text) {
        Ok((config, _)) => config,
        Err(errors) => panic!("{text}\n{}", errors[0]),
    }
}

#[test]
fn each_key_is_read_and_its_default_is_the_models() {
    for row in optional() {
        if row.path.contains("encapsulation.dot1") || row.path.starts_with("ipfix.collectors[].tls")
        {
            // One of the two is needed, or this itself; `good_files` has them.
            continue;
        }
        let without = read(row, "");
        if !row.default.is_empty() {
            let with_default = read(row, &format!("{}: {}", row.name(), row.default));
            assert_eq!(
                with_default, without,
                "{}: the table's default is not the model's",
                row.path
            );
        }
        if row.name().ends_with("-ring-size") {
            continue; // Read for vppcfg's sake.
        }
        let with_example = read(row, &format!("{}: {}", row.name(), row.example));
        assert_ne!(
            with_example, without,
            "{}: the key changes nothing",
            row.path
        );
    }
}
