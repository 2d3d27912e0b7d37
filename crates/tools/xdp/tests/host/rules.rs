//! ACLs in the kernel against a linear search in Rust, with random rules and packets.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;

use weir_xdp::abi::Acl;
use weir_xdp::acl::compile;
use weir_xdp::config::Rule;
use weir_xdp::maps::Maps;

use crate::bed::{can_run, frame, udp};
use crate::programs::Rig;

/// Writes an ACL at a place of its own.
pub(crate) fn write(maps: &mut Maps, number: u32, rules: &[Rule]) {
    let base = (number - 1) * 400_000;
    let compiled = compile(rules, base);
    let acl = Acl {
        side: compiled.sides,
        counters: (number - 1) * 10_001,
        stateful: u32::from(compiled.stateful),
        base,
        length: compiled.words.len() as u32,
        rules: compiled.rules,
        ..Acl::default()
    };
    maps.write_acl(number, &acl, &compiled.words).unwrap();
}

/// A small generator (SplitMix64): the test is the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

/// The first rule that matches a UDP packet; the number of rules when none does.
fn first_match(rules: &[Rule], source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> usize {
    let inside = |net: &Option<weir_xdp::config::IpNet>, address: [u8; 4]| {
        net.is_none_or(|net| net.contains(&IpAddr::from(address)))
    };
    let within = |range: &Option<(u16, u16)>, port: u16| {
        range.is_none_or(|(first, last)| (first..=last).contains(&port))
    };
    rules
        .iter()
        .position(|rule| {
            inside(&rule.source, source)
                && inside(&rule.destination, destination)
                && rule.protocol.is_none_or(|protocol| protocol == 17)
                && within(&rule.source_ports, ports.0)
                && within(&rule.destination_ports, ports.1)
        })
        .unwrap_or(rules.len())
}

fn text_of(random: &mut Random, count: u64) -> String {
    let mut text = String::from(
        "ports:\n  p1: {vlan: 1, acl-in: x, guard: none}\n  p2: {vlan: 1}\nacls:\n  x:\n",
    );
    for _ in 0..count {
        let mut keys = vec![format!(
            "action: {}",
            ["permit", "deny"][random.below(2) as usize]
        )];
        for side in ["source", "destination"] {
            if random.below(3) > 0 {
                let (a, b, length) = (random.below(4), random.below(8), 8 + random.below(25));
                keys.push(format!("{side}: 10.{a}.{b}.{}/{length}", random.below(256)));
            }
        }
        match random.below(4) {
            0 => keys.push("protocol: tcp".into()),
            1 => keys.push("protocol: udp".into()),
            2 => {
                keys.push("protocol: udp".into());
                for side in ["source-port", "destination-port"] {
                    if random.below(2) > 0 {
                        let first = random.below(100);
                        keys.push(format!("{side}: {first}-{}", first + random.below(50)));
                    }
                }
            }
            _ => (),
        }
        let _ = writeln!(text, "    - {{{}}}", keys.join(", "));
    }
    text
}

#[test]
fn random_rules_decide_as_a_linear_search_does() {
    if !can_run() {
        return;
    }
    let long = std::env::var_os("WEIR_LONG").is_some();
    let mut random = Random(25);
    for count in [0, 1, 3, 63, 64, 200, 1000] {
        let text = text_of(&mut random, count);
        let config = weir_xdp::config::check("random", text.as_bytes()).unwrap();
        let rules = &config.acls["x"];
        let mut rig = Rig::new(&text);
        let mut decided = vec![0u64; rules.len() + 1];
        for _ in 0..if long { 100_000 } else { 300 } {
            let mut address = || {
                [
                    10,
                    random.below(5) as u8,
                    random.below(9) as u8,
                    random.below(256) as u8,
                ]
            };
            let (source, destination) = (address(), address());
            let ports = (random.below(160) as u16, random.below(160) as u16);
            let expected = first_match(rules, source, destination, ports);
            let outcome = rig.run(&frame([2; 6], [4; 6], 0, &udp(source, destination, ports)));
            assert_eq!(
                outcome.event.rule as usize,
                expected + 1,
                "{source:?} {destination:?} {ports:?}\n{text}"
            );
            let permitted = rules.get(expected).is_some_and(|rule| rule.permit);
            let reason = weir_xdp::reason::by_number(outcome.event.reason).map(|it| it.name);
            assert_eq!(reason == Some("acl-in"), !permitted, "{outcome:?}");
            decided[expected] += 1;
        }
        for (rule, packets) in decided.iter().enumerate() {
            assert_eq!(
                rig.maps.rule_hits(rule as u32).unwrap().packets,
                *packets,
                "rule {rule}"
            );
        }
    }
}

/// Rules of 100 prefixes and so many port ranges, all for UDP.
fn grid(count: u32) -> String {
    let mut text = String::from(
        "ports:\n  p1: {vlan: 1, acl-in: x, guard: none}\n  p2: {vlan: 1}\nacls:\n  x:\n",
    );
    for number in 0..count {
        let (prefix, port) = (number % 100, number / 100 * 10);
        let _ = writeln!(
            text,
            "    - {{action: permit, protocol: udp, source: 10.0.{prefix}.0/24, destination-port: {port}-{}}}",
            port + 5
        );
    }
    text
}

/// A packet that rule `number` of the grid permits.
fn packet_for(number: u32) -> Vec<u8> {
    let ports = (1, (number / 100 * 10 + 3) as u16);
    frame(
        [2; 6],
        [4; 6],
        0,
        &udp([10, 0, (number % 100) as u8, 9], [10, 9, 9, 9], ports),
    )
}

#[test]
fn ten_thousand_rules_are_searched_and_cost_little_more_than_ten() {
    if !can_run() {
        return;
    }
    let mut ten = Rig::new(&grid(10));
    let mut thousand = Rig::new(&grid(1000));
    let mut most = Rig::new(&grid(10_000));
    for number in [0, 1, 63, 64, 4095, 4096, 7777, 9999] {
        assert_eq!(most.run(&packet_for(number)).event.rule, number + 1);
    }
    if std::env::var_os("WEIR_LONG").is_none() {
        return;
    }
    // Alternating, and the least of each: other load on the machine only adds.
    let mut least = [u64::MAX; 3];
    for _ in 0..20 {
        for (rig, (number, best)) in [&mut ten, &mut thousand, &mut most]
            .into_iter()
            .zip([9, 999, 9999].into_iter().zip(&mut least))
        {
            *best = (*best).min(rig.cost(&packet_for(number), 100_000));
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "ns a packet with 10, 1,000 and 10,000 rules: {least:?}"
    );
    assert!(least[1] * 2 <= least[0] * 3, "{least:?}");
}
