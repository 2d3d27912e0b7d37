//! Many ports, addresses and rules: all are there, and what they take is printed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use weir_api::{ApplyRequest, Client};
use weir_xdp::show;

use crate::bed::{Bed, can_run, wait_for};

/// A configuration of so many ports with ten addresses each, which share an ACL.
fn text(ports: u32, rules: u32) -> String {
    let mut text = String::from("ports:\n");
    for port in 0..ports {
        let macs: Vec<String> = (0..10)
            .map(|number| {
                format!(
                    "'52:54:00:{:02x}:{:02x}:{number:02x}'",
                    port >> 8,
                    port & 255
                )
            })
            .collect();
        let _ = writeln!(
            text,
            "  t{port}: {{vlan: {}, macs: [{}], addresses: [10.{}.{}.1], acl-in: x}}",
            1 + port % 100,
            macs.join(", "),
            port >> 8,
            port & 255
        );
    }
    text.push_str("acls:\n  x:\n");
    for rule in 0..rules {
        let _ = writeln!(
            text,
            "    - {{action: permit, protocol: udp, source: 10.0.{}.0/24, destination-port: {}-{}}}",
            rule % 100,
            rule / 100 * 10,
            rule / 100 * 10 + 5
        );
    }
    text
}

/// Bytes of memory that the process has.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn many_ports_addresses_and_rules_are_served() {
    if !can_run() {
        return;
    }
    let (ports, rules) = if std::env::var_os("WEIR_LONG").is_some() {
        (1000, 10_000)
    } else {
        (50, 1000)
    };
    let bed = Bed::new();
    let taps: Vec<_> = bed
        .host
        .run(|| {
            (0..ports)
                .map(|number| weir_tap::descriptor(&format!("t{number}")).unwrap())
                .collect()
        })
        .unwrap();
    let folders = bed.pins.folders();
    let text = text(ports, rules);
    let (before, began) = (memory(), Instant::now());
    let running = bed.start(&text);
    let started = began.elapsed();
    let used = memory().saturating_sub(before);
    let views = show::ports(&folders).unwrap();
    assert_eq!(views.len(), ports as usize);
    assert_eq!(show::fdb(&folders).unwrap().len(), 10 * ports as usize);
    assert_eq!(show::acls(&folders).unwrap().len(), rules as usize + 1);
    // One port changes; then all vanish.
    let began = Instant::now();
    let other = text.replace("  t0: {vlan: 1,", "  t0: {vlan: 7,");
    let request = ApplyRequest {
        yaml: other,
        ..ApplyRequest::default()
    };
    let applied = Client::new(folders.socket())
        .config_apply(&request)
        .unwrap();
    let changed = began.elapsed();
    assert_eq!(applied.steps.len(), 1);
    drop(taps);
    wait_for("the end of all ports", || {
        show::ports(&folders).unwrap().is_empty()
    });
    let _ = writeln!(
        std::io::stderr(),
        "{ports} ports, {} addresses, {rules} rules: start {started:.2?}, one change {changed:.2?}, {} MB of the daemon",
        10 * ports,
        used >> 20
    );
    drop(running);
}
