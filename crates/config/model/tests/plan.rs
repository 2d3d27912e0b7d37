//! The plans of a few changes, written out in full. That every plan leads where it should is
//! proved beside the planner, with random configurations.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weir_config::{
    Config, Interface, Phase, Plan, RouteKey, Step, Via, apply_to_model, check, plan,
};

fn good(text: &str) -> Config {
    match check("test", text) {
        Ok((config, _)) => config,
        Err(errors) => panic!("{}", errors[0]),
    }
}

fn lines(running: &str, wanted: &str) -> Vec<String> {
    plan(&good(running), &good(wanted))
        .iter()
        .map(|step| format!("{}: {step}", step.phase()))
        .collect()
}

const ROUTED: &str = "
interfaces:
  xe0: {device: {driver: tap, name: a}, addresses: [192.0.2.1/24], sflow: true}
  xe1: {device: {driver: tap, name: b}, addresses: [198.51.100.1/24]}
routes: [{prefix: 10.0.0.0/8, via: 192.0.2.254}, {prefix: 11.0.0.0/8, via: 198.51.100.254}]
neighbors: [{interface: xe0, address: 192.0.2.254, mac: '02:00:00:00:00:01'}]
sflow: {collectors: [{address: 198.51.100.9}]}
";

#[test]
fn starting_creates_then_fills_and_brings_up_last() {
    let wanted = good(ROUTED);
    let steps: Vec<String> = plan(&Config::start_of(&wanted), &wanted)
        .iter()
        .map(Step::to_string)
        .collect();
    let expected = [
        "create interface xe0: tap a, mtu 1500",
        "create interface xe1: tap b, mtu 1500",
        "add address 192.0.2.1/24 to interface xe0",
        "add address 198.51.100.1/24 to interface xe1",
        "add neighbor 192.0.2.254 02:00:00:00:00:01 on interface xe0",
        "add route 10.0.0.0/8 via 192.0.2.254",
        "add route 11.0.0.0/8 via 198.51.100.254",
        "set sflow: collectors [] -> [{address: 198.51.100.9}]",
        "enable sflow on interface xe0",
        "set interface xe0 up",
        "set interface xe1 up",
    ];
    assert_eq!(steps, expected);
}

#[test]
fn stopping_takes_dependants_off_first() {
    let expected = [
        "prune: set interface xe0 down",
        "prune: set interface xe1 down",
        "prune: remove route 10.0.0.0/8 via 192.0.2.254",
        "prune: remove route 11.0.0.0/8 via 198.51.100.254",
        "prune: remove neighbor 192.0.2.254 02:00:00:00:00:01 from interface xe0",
        "prune: disable sflow on interface xe0",
        "prune: remove address 192.0.2.1/24 from interface xe0",
        "prune: remove address 198.51.100.1/24 from interface xe1",
        "prune: delete interface xe0",
        "prune: delete interface xe1",
        "sync: set sflow: collectors [{address: 198.51.100.9}] -> []",
    ];
    assert_eq!(lines(ROUTED, ""), expected);
}

#[test]
fn another_device_remakes_the_interface_and_leaves_the_others_alone() {
    let expected = [
        "prune: set interface xe0 down",
        "prune: remove route 10.0.0.0/8 via 192.0.2.254",
        "prune: remove neighbor 192.0.2.254 02:00:00:00:00:01 from interface xe0",
        "prune: disable sflow on interface xe0",
        "prune: remove address 192.0.2.1/24 from interface xe0",
        "prune: delete interface xe0",
        "create: create interface xe0: af-xdp eth0, mtu 1500",
        "sync: add address 192.0.2.1/24 to interface xe0",
        "sync: add neighbor 192.0.2.254 02:00:00:00:00:01 on interface xe0",
        "sync: add route 10.0.0.0/8 via 192.0.2.254",
        "sync: enable sflow on interface xe0",
        "sync: set interface xe0 up",
    ];
    assert_eq!(
        lines(
            ROUTED,
            &ROUTED.replace("driver: tap, name: a", "driver: af-xdp, name: eth0")
        ),
        expected
    );
}

#[test]
fn a_change_of_one_thing_is_one_step() {
    let cases = [
        (
            "sflow: {coll",
            "sflow: {sampling-rate: 100, coll",
            "sync: set sflow: sampling-rate 10000 -> 100",
        ),
        (
            "via: 192.0.2.254",
            "via: 192.0.2.253",
            "sync: change route 10.0.0.0/8 via 192.0.2.254 -> 192.0.2.253",
        ),
        (
            "00:01'",
            "00:02'",
            "sync: change neighbor 192.0.2.254 on interface xe0: 02:00:00:00:00:01 -> 02:00:00:00:00:02",
        ),
        (
            "sflow: true",
            "sflow: false",
            "prune: disable sflow on interface xe0",
        ),
        (
            "[192.0.2.1/24]",
            "[192.0.2.1/24, 192.0.2.2/24]",
            "sync: add address 192.0.2.2/24 to interface xe0",
        ),
        (
            "name: b}",
            "name: b}, mtu: 9000",
            "sync: set mtu of interface xe1: 1500 -> 9000",
        ),
        (
            "name: b}",
            "name: b}, state: down",
            "prune: set interface xe1 down",
        ),
        (
            "name: b}",
            "name: b}, description: x",
            "sync: describe interface xe1 as \"x\"",
        ),
        (
            "name: b}",
            "name: b}, mac: '02:00:00:00:00:09'",
            "sync: set mac of interface xe1: device's -> 02:00:00:00:00:09",
        ),
        (
            "routes: [",
            "workers: {count: 2}\nroutes: [",
            "sync: restart needed: section workers changes",
        ),
        (
            "routes: [",
            "buffers: {per-numa: 2048}\nroutes: [",
            "sync: restart needed: section buffers changes",
        ),
        (
            "routes: [",
            "history: {keep: 7}\nroutes: [",
            "sync: restart needed: section history changes",
        ),
        (
            "routes: [",
            "logging: {format: json}\nroutes: [",
            "sync: restart needed: section logging changes",
        ),
        (
            "routes: [",
            "api: {socket: /tmp/s}\nroutes: [",
            "sync: restart needed: section api changes",
        ),
        (
            "routes: [",
            "logging: {level: debug}\nroutes: [",
            "sync: set log level: info -> debug",
        ),
    ];
    for (from, to, expected) in cases {
        let wanted = ROUTED.replacen(from, to, 1);
        assert_ne!(wanted, ROUTED, "{from}");
        assert_eq!(lines(ROUTED, &wanted), [expected]);
    }
}

#[test]
fn a_route_leaves_while_its_subnet_is_exchanged() {
    let expected = [
        "prune: remove route 10.0.0.0/8 via 192.0.2.254",
        "prune: remove neighbor 192.0.2.254 02:00:00:00:00:01 from interface xe0",
        "prune: remove address 192.0.2.1/24 from interface xe0",
        "sync: add address 192.0.2.2/24 to interface xe0",
        "sync: add neighbor 192.0.2.254 02:00:00:00:00:01 on interface xe0",
        "sync: add route 10.0.0.0/8 via 192.0.2.254",
    ];
    assert_eq!(
        lines(ROUTED, &ROUTED.replace("192.0.2.1/24", "192.0.2.2/24")),
        expected
    );
}

#[test]
fn an_address_that_moves_is_never_on_two_interfaces() {
    let running = "interfaces: {xe0: {addresses: [192.0.2.1/24]}, xe1: {}}\nroutes: [{prefix: 10.0.0.0/8, via: 192.0.2.9}]";
    let wanted = "interfaces: {xe0: {}, xe1: {addresses: [192.0.2.1/24]}}\nroutes: [{prefix: 10.0.0.0/8, via: 192.0.2.9}]";
    let expected = [
        "prune: remove route 10.0.0.0/8 via 192.0.2.9",
        "prune: remove address 192.0.2.1/24 from interface xe0",
        "sync: add address 192.0.2.1/24 to interface xe1",
        "sync: add route 10.0.0.0/8 via 192.0.2.9",
    ];
    assert_eq!(lines(running, wanted), expected);
}

#[test]
fn a_step_for_another_configuration_changes_nothing() {
    let mut config = good(ROUTED);
    let before = config.clone();
    let key = RouteKey {
        vrf: None,
        prefix: "10.0.0.0/8".parse().unwrap(),
    };
    let misfits = [
        Step::SetMtu {
            interface: "xe0".into(),
            from: 9000,
            to: 1500,
        },
        Step::SetMtu {
            interface: "xe9".into(),
            from: 1500,
            to: 9000,
        },
        Step::AddAddress {
            interface: "xe0".into(),
            address: "192.0.2.1/24".parse().unwrap(),
        },
        Step::RemoveAddress {
            interface: "xe1".into(),
            address: "192.0.2.1/24".parse().unwrap(),
        },
        Step::CreateInterface {
            name: "xe0".into(),
            interface: Interface::default(),
        },
        Step::DeleteInterface {
            name: "xe0".into(),
            interface: Interface::default(),
        },
        Step::AddRoute {
            key: key.clone(),
            via: Via::Blackhole,
        },
        Step::RemoveRoute {
            key: key.clone(),
            via: Via::Blackhole,
        },
    ];
    for step in misfits {
        let error = apply_to_model(&mut config, &step).unwrap_err();
        assert!(error.to_string().contains(&step.to_string()));
        assert_eq!(config, before);
    }
}

#[test]
fn helpers_know_the_ground() {
    let config = good(ROUTED);
    assert_eq!(
        config.sflow_agent(|_| None),
        Some(Ipv4Addr::new(192, 0, 2, 1).into())
    );
    assert_eq!(config.without_device().count(), 0);
    let bare = good("interfaces: {a: {}, b: {device: {driver: null}}}");
    assert_eq!(
        bare.without_device().collect::<BTreeSet<_>>(),
        BTreeSet::from(["a"])
    );
    assert_eq!(Phase::Prune.to_string(), "prune");
}

#[test]
fn a_loopback_comes_and_goes_like_an_interface() {
    let with = format!("{ROUTED}loopbacks: {{loop0: {{addresses: [203.0.113.1/32]}}}}\n");
    let expected = [
        "create: create interface loop0: loopback, mtu 1500",
        "sync: add address 203.0.113.1/32 to interface loop0",
        "sync: set interface loop0 up",
    ];
    assert_eq!(lines(ROUTED, &with), expected);
    let expected = [
        "prune: set interface loop0 down",
        "prune: remove address 203.0.113.1/32 from interface loop0",
        "prune: delete interface loop0",
    ];
    assert_eq!(lines(&with, ROUTED), expected);
}

#[test]
fn both_spellings_of_a_tap_are_one() {
    let one = "interfaces: {tap0: {device: {driver: tap, name: lan0, host-mac: '02:00:00:00:00:0a'}, mtu: 9000, description: x}}";
    let other = "taps: {tap0: {description: x, host: {name: lan0, mac: '02:00:00:00:00:0a', mtu: 9000}, rx-ring-size: 8}}";
    assert_eq!(good(one), good(other));
}

#[test]
fn a_plan_is_shown_in_groups_with_what_it_disturbs() {
    let wanted = ROUTED
        .replace(
            "name: a}, addresses",
            "name: c}, rx-queue-workers: [0], addresses",
        )
        .replace("name: b}", "name: b}, rx-queue-workers: [0]")
        + "workers: {idle: poll}\nloopbacks: {loop0: {}}\n";
    let wanted = wanted.replace("  xe1:", "  spare: {mtu: 9000}\n  xe1:");
    let plan = Plan::between(&good(ROUTED), &good(&wanted));
    let expected = "\
prune
  set interface xe0 down
  remove route 10.0.0.0/8 via 192.0.2.254
    ! the subnet of its next hop changes; the route is missing until that is there again
  remove neighbor 192.0.2.254 02:00:00:00:00:01 from interface xe0
    ! its subnet changes; the entry is missing until that is there again
  disable sflow on interface xe0
  remove address 192.0.2.1/24 from interface xe0
  delete interface xe0
    ! its device changes, so it is made anew; what it carries stops meanwhile
create
  create interface loop0: loopback, mtu 1500
  create interface spare: no device, mtu 9000
  create interface xe0: tap c, mtu 1500
sync
  place rx queues of interface xe1 on workers: [] -> [0]
    ! its queues are opened anew; packets under way are lost
  add address 192.0.2.1/24 to interface xe0
  add neighbor 192.0.2.254 02:00:00:00:00:01 on interface xe0
  add route 10.0.0.0/8 via 192.0.2.254
  enable sflow on interface xe0
  set interface loop0 up
  set interface spare up
  set interface xe0 up
  restart needed: section workers changes
    ! it takes effect when the router is started again
without a device: spare
";
    assert_eq!(plan.to_string(), expected);
    assert_eq!(plan.needs_restart().collect::<Vec<_>>(), ["workers"]);
    let step = &plan.steps[5];
    assert_eq!(step.group, weir_config::Phase::Prune);
    assert_eq!(step.kind, "delete-interface");
    assert_eq!(step.object, "interface xe0");
    assert_eq!(step.text, "delete interface xe0");
    assert!(step.disturbs.as_deref().unwrap().contains("made anew"));
    let nothing = Plan::between(&good(ROUTED), &good(ROUTED));
    assert!(nothing.is_empty());
    assert_eq!(nothing.to_string(), "nothing to do\n");
}
