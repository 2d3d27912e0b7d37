//! BPF instructions a packet: the committed programs in an interpreter, case by case, compared with `instructions.txt`.
//!
//! A figure that rises by more than 5 %, or one more lookup, fails; `UPDATE_GOLDEN=1` writes the file anew. The figure is
//! that of a packet when the caches of its CPU are filled, as in a flow. The kernel's lookups in hash tables and its other
//! helpers are not instructions of the programs, so they are counted beside them.

mod machine;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_xdp::abi::{Acl, Bytes, Control};
use weir_xdp::acl::compile;
use weir_xdp::config;
use weir_xdp::programs::OBJECT;
use weir_xdp::state::{Link, Slots, tables};

use machine::{Counts, Machine};

const ONE: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const TWO: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const FAR: [u8; 6] = [0x52, 0x54, 0, 0, 0xff, 1];
const REDIRECT: u64 = 4;
const PASS: u64 = 2;

/// The numbers of the interfaces.
const UP: u32 = 2;
const TAP1: u32 = 1001;
const TAP2: u32 = 1002;

/// A machine with the tables of a configuration of `up`, `tap1` and `tap2`.
fn machine(text: &str) -> Machine {
    let config = config::check("test", text.as_bytes()).unwrap();
    let links: BTreeMap<String, Link> = [("up", UP), ("tap1", TAP1), ("tap2", TAP2)]
        .into_iter()
        .map(|(name, ifindex)| {
            let link = Link {
                ifindex,
                running: true,
                mtu: 1500,
                mac: Some([2, 0, 0, 0, 0, ifindex as u8]),
                vlan: None,
            };
            (name.to_owned(), link)
        })
        .collect();
    let mut machine = Machine::new(OBJECT);
    let mut acls = BTreeMap::new();
    let mut base = 0;
    for (number, (name, rules)) in (1..).zip(&config.acls) {
        let compiled = compile(rules, base);
        for (index, word) in (base..).zip(&compiled.words) {
            machine.set("acl_words", index, &word.to_ne_bytes());
        }
        let acl = Acl {
            side: compiled.sides,
            counters: 0,
            stateful: u32::from(compiled.stateful),
            base,
            length: compiled.words.len() as u32,
            rules: compiled.rules,
            ..Acl::default()
        };
        base += acl.length;
        machine.set("acls", number, &acl.to_bytes());
        acls.insert(name.clone(), number);
    }
    let (new, _) = tables(&config, &links, &acls, &mut Slots::default());
    for (ifindex, port) in &new.ports {
        machine.set("ports", port.slot * 2, &port.to_bytes());
        machine.set("near_ports", *ifindex, &(port.slot * 2).to_ne_bytes());
    }
    for (number, logical) in &new.logicals {
        machine.set("logicals", *number, &logical.to_bytes());
    }
    for (number, policer) in &new.policers {
        machine.set("policers", *number, &policer.to_bytes());
    }
    for (key, entry) in &new.statics {
        machine.insert("fdb", key, &entry.to_bytes());
    }
    for (key, value) in &new.guard_mac {
        machine.insert("guard_mac", key, &value.to_ne_bytes());
    }
    for ((length, data), value) in &new.guard_ip {
        machine.insert(
            "guard_ip",
            &[&length.to_ne_bytes()[..], data].concat(),
            &value.to_ne_bytes(),
        );
    }
    for (key, value) in &new.neighbors {
        machine.insert("neighbors", key, &value.to_bytes());
    }
    for (name, entries) in [("transmit", &new.transmit), ("flood", &new.flood)] {
        for ifindex in entries.keys() {
            machine.insert(name, &ifindex.to_ne_bytes(), &[0; 8]);
        }
    }
    let control = Control {
        flood_ports: new.flood.len() as u32,
        flood_bytes: new.flood_bytes,
        conn_tcp: 3600,
        conn_other: 60,
        ..Control::default()
    };
    machine.set("control", 0, &control.to_bytes());
    machine
}

fn frame(to: [u8; 6], from: [u8; 6], tag: Option<u16>, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    if let Some(tci) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(64), 0);
    frame
}

fn udp(source: [u8; 4], destination: [u8; 4], port: u16) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend(source);
    bytes.extend(destination);
    bytes.extend([4, 0]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 26, 0, 0]);
    bytes
}

/// A host with two guests; `rules` are deny rules for other ports.
fn host(rules: u32, guest: &str) -> String {
    let mut text = format!(
        "ports:\n  up: {{trunk: [100]}}\n  \
         tap1: {{vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1]{guest}}}\n  \
         tap2: {{vlan: 100, macs: ['52:54:00:00:00:02'], addresses: [192.0.2.2]}}\nacls:\n  guests:\n"
    );
    for rule in 1..rules {
        let _ = writeln!(
            text,
            "    - {{action: deny, protocol: udp, source: 10.0.{}.0/24, destination-port: {rule}}}",
            rule % 100
        );
    }
    text.push_str("    - {action: permit}\n");
    text
}

/// The counts of the second packet, which finds the caches filled.
fn second(machine: &mut Machine, ingress: u32, frame: &[u8], to: u32) -> Counts {
    machine.run("weir_ingress", ingress, 0, frame);
    let (verdict, counts, _) = machine.run("weir_ingress", ingress, 0, frame);
    assert_eq!((verdict, machine.redirected), (REDIRECT, Some(to)));
    counts
}

#[test]
fn instructions_of_each_case_are_those_of_the_file() {
    let in_tag = frame(
        ONE,
        FAR,
        Some(0xa064),
        &udp([198, 51, 100, 1], [192, 0, 2, 1], 4000),
    );
    let out = frame(
        FAR,
        ONE,
        None,
        &udp([192, 0, 2, 1], [198, 51, 100, 1], 4000),
    );
    let local = frame(TWO, ONE, None, &udp([192, 0, 2, 1], [192, 0, 2, 2], 4000));
    let mut cases: BTreeMap<&str, Counts> = BTreeMap::new();
    let acl = ", acl-in: guests, acl-out: guests";
    for (name, rules, settings, ingress, bytes, to) in [
        ("uplink-guest", 10, "", UP, &in_tag, TAP1),
        ("uplink-guest-acl-10", 10, acl, UP, &in_tag, TAP1),
        ("uplink-guest-acl-1000", 1000, acl, UP, &in_tag, TAP1),
        ("guest-guest", 10, "", TAP1, &local, TAP2),
        ("guest-guest-acl-10", 10, acl, TAP1, &local, TAP2),
        (
            "uplink-guest-policed",
            10,
            ", police-out: {packets: 1000000}",
            UP,
            &in_tag,
            TAP1,
        ),
    ] {
        let mut machine = machine(&host(rules, settings));
        cases.insert(name, second(&mut machine, ingress, bytes, to));
    }
    let mut machine = machine(&host(10, ""));
    // The uplink's side learns where the far end is.
    machine.run("weir_ingress", UP, 0, &in_tag);
    cases.insert("guest-uplink", second(&mut machine, TAP1, &out, UP));
    machine.run("weir_ingress", UP, 0, &in_tag);
    let (_, _, finished) = machine.run("weir_ingress", UP, 0, &in_tag);
    let (verdict, counts, clean) = machine.run("weir_egress_test", UP, TAP1 - 1000, &finished);
    assert_eq!(verdict, PASS);
    assert_eq!(clean[..14], frame(ONE, FAR, None, &[8, 0])[..14]);
    cases.insert("egress-of-finished", counts);
    let group = frame(
        [0xff; 6],
        FAR,
        Some(100),
        &udp([198, 51, 100, 1], [255; 4], 4000),
    );
    machine.run("weir_ingress", UP, 0, &group);
    let (verdict, counts, _) = machine.run("weir_ingress", UP, 0, &group);
    assert_eq!(verdict, REDIRECT);
    cases.insert("flood", counts);
    let (verdict, counts, _) = machine.run("weir_egress_test", UP, TAP1 - 1000, &group);
    assert_eq!(verdict, PASS);
    cases.insert("egress-of-flooded", counts);

    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/instructions/instructions.txt"
    );
    let mut text = String::from(
        "# case, instructions, lookups in arrays, lookups in hash tables, other helpers: of one packet\n",
    );
    for (name, it) in &cases {
        let _ = writeln!(
            text,
            "{name} {} {} {} {}",
            it.instructions, it.arrays, it.hashes, it.helpers
        );
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
        return;
    }
    let reference = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for line in reference.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let counts = cases[words.next().unwrap()];
        let mut next = || words.next().unwrap().parse::<u64>().unwrap();
        let (instructions, arrays, hashes, helpers) = (next(), next(), next(), next());
        assert!(
            counts.instructions * 100 <= instructions * 105
                && counts.arrays <= arrays
                && counts.hashes <= hashes
                && counts.helpers <= helpers,
            "{line}: {counts:?}; UPDATE_GOLDEN=1 accepts it"
        );
        seen += 1;
    }
    assert_eq!(seen, cases.len(), "a case is not in the file");
}
