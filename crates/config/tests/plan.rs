//! Plans, proved against the model.
//!
//! Random pairs of good configurations: the plan leads from one to the other, in the order prune,
//! create, sync; a second plan is empty; undoing any number of its first steps leads back; and
//! after no step does anything hang in the air (a route without a subnet for its next hop, a
//! cross connect to nowhere). The same configurations are written, and `check` must take them.
//! Below that, the plans of a few changes are written out in full.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_config::{
    AdminState, Collector, Config, Device, Interface, Ipv4Net, LogLevel, MacAddr, NeighborKey, Path, Phase, Step, Via, apply_to_model,
    check, plan,
};

/// Numbers that a configuration is made of; any of them give a good one.
#[derive(Debug, Clone)]
struct Dice {
    interfaces: Vec<Option<[u8; 6]>>,
    subnets: Vec<Option<(usize, u8)>>,
    routes: Vec<Option<(u8, u8)>>,
    neighbors: Vec<Option<(u8, u8)>>,
    rest: [u8; 5],
}

fn dice() -> impl Strategy<Value = Dice> {
    let interfaces = vec(proptest::option::weighted(0.8, any::<[u8; 6]>()), 6);
    let subnets = vec(proptest::option::of((0usize..6, 0u8..3)), 5);
    let routes = vec(proptest::option::of((any::<u8>(), any::<u8>())), 5);
    let neighbors = vec(proptest::option::of((any::<u8>(), any::<u8>())), 4);
    (interfaces, subnets, routes, neighbors, any::<[u8; 5]>()).prop_map(|(interfaces, subnets, routes, neighbors, rest)| Dice {
        interfaces,
        subnets,
        routes,
        neighbors,
        rest,
    })
}

/// Two configurations that mostly agree: what is alike in both is where a plan goes wrong.
fn pair() -> impl Strategy<Value = (Dice, Dice)> {
    (dice(), dice(), any::<u32>(), any::<u32>()).prop_map(|(a, other, one, two)| {
        // Each part of the second is the first's, but where both masks say so.
        let mut mask = one & two;
        let mut changes = || {
            mask = mask.rotate_right(1);
            mask & 1 == 1
        };
        let mut b = a.clone();
        b.interfaces.iter_mut().zip(other.interfaces).filter(|_| changes()).for_each(|(mine, its)| *mine = its);
        b.subnets.iter_mut().zip(other.subnets).filter(|_| changes()).for_each(|(mine, its)| *mine = its);
        b.routes.iter_mut().zip(other.routes).filter(|_| changes()).for_each(|(mine, its)| *mine = its);
        b.neighbors.iter_mut().zip(other.neighbors).filter(|_| changes()).for_each(|(mine, its)| *mine = its);
        b.rest.iter_mut().zip(other.rest).filter(|_| changes()).for_each(|(mine, its)| *mine = its);
        (a, b)
    })
}

fn name(index: usize) -> String {
    format!("xe{index}")
}

fn interface(index: usize, dice: [u8; 6]) -> Interface {
    let [device, mtu, state, sflow, text, mac] = dice;
    let device = match device % 5 {
        0 => None,
        1 => Some(Device::Null),
        2 => Some(Device::Tap { name: format!("tap{index}"), host_mac: None }),
        _ => Some(Device::AfXdp { name: format!("eth{index}"), queues: u16::from(device % 2 + 1), mode: Default::default() }),
    };
    Interface {
        device,
        mtu: if mtu.is_multiple_of(2) { 1500 } else { 9000 },
        state: if state.is_multiple_of(3) { AdminState::Down } else { AdminState::Up },
        sflow: sflow.is_multiple_of(2),
        description: text.is_multiple_of(2).then(|| format!("port {}", text % 4)),
        mac: mac.is_multiple_of(3).then_some(MacAddr([2, 0, 0, 0, index as u8, mac])),
        rx_queue_workers: if text.is_multiple_of(3) { vec![0] } else { Vec::new() },
        ..Interface::default()
    }
}

fn config(dice: &Dice) -> Config {
    let mut config = Config::default();
    for (index, dice) in dice.interfaces.iter().enumerate() {
        if let Some(dice) = dice {
            config.interfaces.insert(name(index), interface(index, *dice));
        }
    }
    let mut reachable = Vec::new();
    for (subnet, owner) in dice.subnets.iter().enumerate() {
        let Some((owner, host)) = owner else { continue };
        let Some(interface) = config.interfaces.get_mut(&name(*owner)) else { continue };
        let network = |last: u8| Ipv4Addr::new(10, 0, subnet as u8, last);
        interface.addresses.insert(Ipv4Net::new(network(host + 1), 24).unwrap());
        if *host == 0 {
            interface.addresses.insert(Ipv4Net::new(network(9), 24).unwrap());
        }
        reachable.extend([(name(*owner), network(101)), (name(*owner), network(102))]);
    }
    cross_connect(&mut config, dice.rest[0]);
    for (index, route) in dice.routes.iter().enumerate() {
        let Some((first, second)) = *route else { continue };
        let prefix = Ipv4Net::new(Ipv4Addr::new(100, index as u8, 0, 0), 16).unwrap();
        config.routes.insert(prefix, via(&reachable, first, second));
    }
    for (index, neighbor) in dice.neighbors.iter().enumerate() {
        let (Some((which, mac)), false) = (neighbor, reachable.is_empty()) else { continue };
        let (interface, address) = reachable[usize::from(*which) % reachable.len()].clone();
        config.neighbors.insert(NeighborKey { interface, address }, MacAddr([2, 0, 0, 0, index as u8, *mac % 2]));
    }
    config.sflow.sampling_rate = 1000 + u32::from(dice.rest[1] % 2);
    config.sflow.collectors = vec![Collector { address: Ipv4Addr::new(10, 9, 9, 9).into(), port: 6343 }];
    config.logging.level = if dice.rest[2].is_multiple_of(2) { LogLevel::Info } else { LogLevel::Debug };
    config.workers.count = 1 + u16::from(dice.rest[3] % 2);
    config.buffers.per_numa = if dice.rest[4].is_multiple_of(2) { 16_384 } else { 32_768 };
    config
}

/// Connect what has no addresses, in a ring, to neighbours of the same MTU.
fn cross_connect(config: &mut Config, dice: u8) {
    let free: Vec<(String, u16)> =
        config.interfaces.iter().filter(|(_, it)| it.addresses.is_empty()).map(|(name, it)| (name.clone(), it.mtu)).collect();
    for mtu in [1500, 9000] {
        let ring: Vec<&String> = free.iter().filter(|(_, it)| *it == mtu).map(|(name, _)| name).collect();
        let step = usize::from(dice) % ring.len().max(1);
        for (index, source) in ring.iter().enumerate().filter(|_| step != 0) {
            let target = ring[(index + step) % ring.len()].clone();
            config.interfaces.get_mut(*source).unwrap().l2xc = Some(target);
        }
    }
}

fn via(reachable: &[(String, Ipv4Addr)], first: u8, second: u8) -> Via {
    if reachable.is_empty() || first.is_multiple_of(5) {
        return Via::Blackhole;
    }
    let path = |dice: u8| {
        let (interface, next_hop) = reachable[usize::from(dice) % reachable.len()].clone();
        Path { next_hop, interface: dice.is_multiple_of(2).then_some(interface), weight: 1 + dice % 2 }
    };
    let by_hop: BTreeMap<Ipv4Addr, Path> = [path(first), path(second)].into_iter().map(|path| (path.next_hop, path)).collect();
    Via::Paths(by_hop.into_values().collect())
}

fn run(config: &mut Config, steps: impl IntoIterator<Item = Step>) {
    for step in steps {
        apply_to_model(config, &step).unwrap();
    }
}

/// Nothing names what is not there.
fn hangs_in_the_air(config: &Config) -> Option<String> {
    for (prefix, via) in &config.routes {
        let Via::Paths(paths) = via else { continue };
        for path in paths {
            let carrier = config.interface_reaching(path.next_hop);
            if carrier.is_none() || path.interface.as_deref().is_some_and(|name| carrier != Some(name)) {
                return Some(format!("route {prefix} via {path}"));
            }
        }
    }
    let neighbor = config.neighbors.keys().find(|key| config.interface_reaching(key.address) != Some(key.interface.as_str()));
    let target = config.interfaces.values().filter_map(|it| it.l2xc.as_ref()).find(|target| !config.interfaces.contains_key(*target));
    neighbor.map(|key| format!("neighbor {key:?}")).or_else(|| target.map(|target| format!("l2xc to {target}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn a_plan_leads_there_and_back((a, b) in pair()) {
        let (a, b) = (config(&a), config(&b));
        let steps = plan(&a, &b);
        prop_assert!(steps.windows(2).all(|pair| pair[0].phase() <= pair[1].phase()), "{steps:#?}");

        let mut states = vec![a.clone()];
        for step in &steps {
            let mut next = states.last().unwrap().clone();
            apply_to_model(&mut next, step).unwrap();
            prop_assert_eq!(hangs_in_the_air(&next), None, "after {}", step);
            states.push(next);
        }
        prop_assert_eq!(states.last().unwrap(), &b);
        prop_assert!(plan(&b, &b).is_empty());
        prop_assert!(plan(states.last().unwrap(), &b).is_empty());

        for done in 0..=steps.len() {
            let mut undone = states[done].clone();
            run(&mut undone, steps[..done].iter().rev().map(Step::inverse));
            prop_assert_eq!(&undone, &a);
        }
        for step in &steps {
            prop_assert_eq!(&step.inverse().inverse(), step);
            prop_assert!(!step.to_string().contains('\n'));
            let written = serde_json::to_string(step).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Step>(&written).unwrap(), step);
        }
    }

    #[test]
    fn a_written_configuration_is_a_good_file(dice in dice()) {
        let config = config(&dice);
        let written = serde_json::to_string_pretty(&config).unwrap();
        match check("written", &written) {
            Ok((read, _)) => prop_assert_eq!(read, config),
            Err(errors) => prop_assert!(false, "{}\n{}", written, errors[0]),
        }
    }
}

fn good(text: &str) -> Config {
    match check("test", text) {
        Ok((config, _)) => config,
        Err(errors) => panic!("{}", errors[0]),
    }
}

fn lines(running: &str, wanted: &str) -> Vec<String> {
    plan(&good(running), &good(wanted)).iter().map(|step| format!("{}: {step}", step.phase())).collect()
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
    let steps: Vec<String> = plan(&Config::start_of(&wanted), &wanted).iter().map(Step::to_string).collect();
    let expected = [
        "create interface xe0: tap a, mtu 1500",
        "create interface xe1: tap b, mtu 1500",
        "add address 192.0.2.1/24 to interface xe0",
        "add address 198.51.100.1/24 to interface xe1",
        "add neighbor 192.0.2.254 02:00:00:00:00:01 on interface xe0",
        "add route 10.0.0.0/8 via 192.0.2.254",
        "add route 11.0.0.0/8 via 198.51.100.254",
        "set sflow: collectors [] -> [198.51.100.9:6343]",
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
        "sync: set sflow: collectors [198.51.100.9:6343] -> []",
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
    assert_eq!(lines(ROUTED, &ROUTED.replace("driver: tap, name: a", "driver: af-xdp, name: eth0")), expected);
}

#[test]
fn a_change_of_one_thing_is_one_step() {
    let cases = [
        ("sflow: {coll", "sflow: {sampling-rate: 100, coll", "sync: set sflow: sampling-rate 10000 -> 100"),
        ("via: 192.0.2.254", "via: 192.0.2.253", "sync: change route 10.0.0.0/8 via 192.0.2.254 -> 192.0.2.253"),
        ("00:01'", "00:02'", "sync: change neighbor 192.0.2.254 on interface xe0: 02:00:00:00:00:01 -> 02:00:00:00:00:02"),
        ("sflow: true", "sflow: false", "prune: disable sflow on interface xe0"),
        ("[192.0.2.1/24]", "[192.0.2.1/24, 192.0.2.2/24]", "sync: add address 192.0.2.2/24 to interface xe0"),
        ("name: b}", "name: b}, mtu: 9000", "sync: set mtu of interface xe1: 1500 -> 9000"),
        ("name: b}", "name: b}, state: down", "prune: set interface xe1 down"),
        ("name: b}", "name: b}, description: x", "sync: describe interface xe1 as \"x\""),
        ("name: b}", "name: b}, mac: '02:00:00:00:00:09'", "sync: set mac of interface xe1: device's -> 02:00:00:00:00:09"),
        ("routes: [", "workers: {count: 2}\nroutes: [", "sync: restart needed: section workers changes"),
        ("routes: [", "buffers: {per-numa: 2048}\nroutes: [", "sync: restart needed: section buffers changes"),
        ("routes: [", "api: {socket: /tmp/s}\nroutes: [", "sync: restart needed: section api changes"),
        ("routes: [", "logging: {level: debug}\nroutes: [", "sync: set log level: info -> debug"),
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
    assert_eq!(lines(ROUTED, &ROUTED.replace("192.0.2.1/24", "192.0.2.2/24")), expected);
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
    let misfits = [
        Step::SetMtu { interface: "xe0".into(), from: 9000, to: 1500 },
        Step::SetMtu { interface: "xe9".into(), from: 1500, to: 9000 },
        Step::AddAddress { interface: "xe0".into(), address: "192.0.2.1/24".parse().unwrap() },
        Step::RemoveAddress { interface: "xe1".into(), address: "192.0.2.1/24".parse().unwrap() },
        Step::CreateInterface { name: "xe0".into(), interface: Interface::default() },
        Step::DeleteInterface { name: "xe0".into(), interface: Interface::default() },
        Step::AddRoute { prefix: "10.0.0.0/8".parse().unwrap(), via: Via::Blackhole },
        Step::RemoveRoute { prefix: "10.0.0.0/8".parse().unwrap(), via: Via::Blackhole },
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
    assert_eq!(config.interface_reaching(Ipv4Addr::new(198, 51, 100, 77)), Some("xe1"));
    assert_eq!(config.interface_reaching(Ipv4Addr::new(203, 0, 113, 1)), None);
    assert_eq!(config.sflow_agent(), Some(Ipv4Addr::new(192, 0, 2, 1).into()));
    assert_eq!(config.without_device().count(), 0);
    let bare = good("interfaces: {a: {}, b: {device: {driver: null}}}");
    assert_eq!(bare.without_device().collect::<BTreeSet<_>>(), BTreeSet::from(["a"]));
    assert_eq!(Phase::Prune.to_string(), "prune");
}
