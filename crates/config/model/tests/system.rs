//! A good file against a machine: what it lacks is reported at the place that asks for it.

use weir_config::{
    CheckOptions, Checked, DeviceKind, Diagnostic, Management, NamespaceObstacle, SocketObstacle,
    System, SystemDevice, check_system, check_with,
};

fn machine() -> System {
    let device = |kind, max_queues, max_mtu| SystemDevice {
        kind,
        max_queues,
        max_mtu,
        management: Management::default(),
    };
    let managed = SystemDevice {
        management: Management {
            addresses: vec!["192.0.2.5".parse().unwrap()],
            default_route: true,
            ssh_clients: vec!["198.51.100.7".parse().unwrap()],
        },
        ..device(DeviceKind::Ethernet, 1, 1500)
    };
    System {
        devices: [
            ("eth0".to_owned(), device(DeviceKind::Ethernet, 4, 9000)),
            ("eth1".to_owned(), device(DeviceKind::Ethernet, 1, 1500)),
            ("mgmt0".to_owned(), managed),
            ("lo".to_owned(), device(DeviceKind::Loopback, 1, 65_535)),
            ("wg0".to_owned(), device(DeviceKind::Other, 1, 1420)),
            ("lan0".to_owned(), device(DeviceKind::Tap, 1, 65_521)),
        ]
        .into(),
        unchanged: Default::default(),
        driver_mtu: [("tap".to_owned(), 2222)].into(),
        socket_obstacles: [
            ("/no/a".into(), SocketObstacle::NoFolder),
            ("/etc/b".into(), SocketObstacle::NotASocket),
        ]
        .into(),
        namespace_obstacles: [
            ("later".to_owned(), NamespaceObstacle::Missing),
            ("mgmt".to_owned(), NamespaceObstacle::Forbidden),
        ]
        .into(),
        cores: [0, 1].into(),
        memory_available_bytes: 100 << 20,
        hugepages_free_bytes: 64 << 20,
        bytes_per_buffer: 2496,
        pools: 1,
    }
}

fn file(text: &str) -> Checked {
    match check_with(&CheckOptions::new("weir.yaml"), text.as_bytes()) {
        Ok(checked) => checked,
        Err(errors) => panic!("{}", errors[0]),
    }
}

fn found(text: &str, system: &System) -> Vec<Diagnostic> {
    check_system(&file(text), system)
}

fn lines(text: &str) -> Vec<String> {
    let line = |it: &Diagnostic| {
        format!(
            "{} {}:{} {}: {} ({})",
            it.severity, it.line, it.column, it.path, it.message, it.help
        )
    };
    found(text, &machine()).iter().map(line).collect()
}

const GOOD: &str = "
interfaces:
  xe0: {device: {driver: af-xdp, name: eth0, queues: 4}, mtu: 9000}
  xe1: {device: {driver: af-xdp, name: eth1}}
  lan: {device: {driver: tap, name: lan0}, mtu: 2222}
  new: {device: {driver: tap, name: lan1}}
  sink: {device: {driver: null}, mtu: 9216}
  bare: {mtu: 9216}
workers: {cores: [0, 1]}
buffers: {per-numa: 32768}
";

#[test]
fn what_is_there_is_not_spoken_of() {
    assert_eq!(lines(GOOD), [""; 0]);
}

#[test]
fn a_master_needs_a_place_for_its_socket_and_a_slave_waits_for_it() {
    let text = "
interfaces:
  a: {device: {driver: memif, socket: /no/a, role: master}}
  b: {device: {driver: memif, socket: /etc/b, role: master}}
  c: {device: {driver: memif, socket: /no/a, role: slave}}
  d: {device: {driver: memif, socket: /run/d, role: master}, mtu: 9216}
  e: {device: {driver: memif, socket: '@a', role: master}}
";
    let expected = [
        "error 3:39 interfaces.a.device.socket: the folder of the socket `/no/a` is not there (make it, or name another socket)",
        "error 4:39 interfaces.b.device.socket: `/etc/b` is there, and it is no socket (remove it, or name another socket)",
    ];
    assert_eq!(lines(text), expected);
}

#[test]
fn devices_queues_mtus() {
    let text = "
interfaces:
  a: {device: {driver: af-xdp, name: eht0}}
  b: {device: {driver: af-xdp, name: enp0s31f6}}
  c: {device: {driver: af-xdp, name: wg0}}
  d: {device: {driver: af-xdp, name: eth1, queues: 2}, mtu: 1501}
  e: {device: {driver: tap, name: eth0}, mtu: 2223}
  tap0: {mtu: 3000}
taps:
  tap0: {host: {name: lo}}
  tap1: {host: {name: lan1, mtu: 9000}}
buffers: {per-numa: 16384}
";
    let expected = [
        "error 3:38 interfaces.a.device.name: there is no network device `eht0` (did you mean `eth0`?)",
        "error 4:38 interfaces.b.device.name: there is no network device `enp0s31f6` (there are `eth0`, `eth1`)",
        "error 5:38 interfaces.c.device.name: the device `wg0` carries no Ethernet frames (there are `eth0`, `eth1`)",
        "error 6:52 interfaces.d.device.queues: the device `eth1` has 1 queue, not 2 (at most 1)",
        "error 6:61 interfaces.d.mtu: the device `eth1` cannot do an MTU of 1501 (at most 1500)",
        "error 7:35 interfaces.e.device.name: there is a network device `eth0` already, and it is no TAP (choose another name for the TAP)",
        "error 7:47 interfaces.e.mtu: driver tap cannot carry an MTU of 2223 (at most 2222)",
        "error 8:15 interfaces.tap0.mtu: driver tap cannot carry an MTU of 3000 (at most 2222)",
        "error 10:23 taps.tap0.host.name: there is a network device `lo` already, and it is no TAP (choose another name for the TAP)",
        "error 11:34 taps.tap1.host.mtu: driver tap cannot carry an MTU of 9000 (at most 2222)",
    ];
    assert_eq!(lines(text), expected);
    let shown = found(text, &machine())[0].to_string();
    assert!(shown.contains("3 |   a: {device: {driver: af-xdp, name: eht0}}\n   |                                      ^^^^"), "{shown}");
}

#[test]
fn an_mtu_that_is_nowhere_is_reported_at_its_interface() {
    let mut small = machine();
    small.devices.get_mut("eth1").unwrap().max_mtu = 1400;
    let found = found(
        "interfaces:\n  xe1: {device: {driver: af-xdp, name: eth1}}\n",
        &small,
    );
    assert_eq!(
        (found[0].line, found[0].column, found[0].path.as_str()),
        (2, 3, "interfaces.xe1.mtu")
    );
}

#[test]
fn cores_and_memory() {
    let expected = [
        "error 1:22 workers.cores[1]: there is no core 7 for a worker (the router may run on 0, 1)",
        "error 2:21 buffers.per-numa: 65536 buffers take 156 MiB, and 100 MiB are free (at most 42010, with nothing left for anything else)",
    ];
    assert_eq!(
        lines("workers: {cores: [1, 7]}\nbuffers: {per-numa: 65536}\n"),
        expected
    );
    let expected =
        ["warning 1:18 workers.count: 3 workers share 2 cores (one worker for each core at most)"];
    assert_eq!(lines("workers: {count: 3}\n"), expected);
    let two_pools = System {
        pools: 2,
        ..machine()
    };
    assert_eq!(found("buffers: {per-numa: 32768}\n", &two_pools).len(), 1);
    let huge = System {
        hugepages_free_bytes: 200 << 20,
        ..machine()
    };
    assert!(found("buffers: {per-numa: 65536}\n", &huge).is_empty());
    assert_eq!(
        found("buffers: {per-numa: 65536, hugepages: off}\n", &huge).len(),
        1,
        "hugepages do not count when they are not used"
    );
}

#[test]
fn a_configuration_without_a_file_has_its_places_in_what_it_would_be_written_as() {
    let config = file("interfaces: {xe1: {device: {driver: af-xdp, name: eth7}}}").config;
    let found = check_system(&Checked::of("running configuration", &config), &machine());
    assert_eq!(
        (found[0].file.as_str(), found[0].line, found[0].column),
        ("running configuration", 5, 13)
    );
    assert_eq!(found[0].excerpt.text, "      name: eth7");
}

#[test]
fn thousands_of_missing_devices_are_counted_and_not_kept() {
    let text: String = (0..5_000)
        .map(|n| format!("  xe{n}: {{device: {{driver: af-xdp, name: n{n}}}}}\n"))
        .collect();
    assert_eq!(
        found(&format!("interfaces:\n{text}"), &machine()).len(),
        201
    );
}

#[test]
fn a_device_that_the_machine_uses_is_taken_only_when_the_file_says_so() {
    let taken = "interfaces:\n  wan: {device: {driver: af-xdp, name: mgmt0}}\n";
    let [refusal] = lines(taken).try_into().unwrap();
    for part in [
        "error 2:40 interfaces.wan.device.name",
        "the address 192.0.2.5, the default route and an SSH session from 198.51.100.7",
        "allow-management: true",
        "--confirm",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    let allowed = taken.replace("mgmt0}", "mgmt0, allow-management: true}");
    assert_eq!(lines(&allowed), [""; 0]);
}

#[test]
fn namespaces_that_cannot_be_entered_are_named_where_the_file_has_them() {
    let text = "linux: {namespace: mgmt}
sflow:
  agent: 192.0.2.1
  collectors: [{address: 192.0.2.9, namespace: later}, {address: 192.0.2.8, namespace: fine}]
ipfix:
  collectors: [{address: 192.0.2.9, namespace: mgmt}]
";
    let found = lines(text);
    let starts = [
        "error 1:20 linux.namespace: this router may not enter the network namespace `mgmt`",
        "warning 4:48 sflow.collectors[0].namespace: there is no network namespace `later`",
        "error 6:48 ipfix.collectors[0].namespace: this router may not enter the network namespace `mgmt`",
    ];
    assert_eq!(found.len(), starts.len(), "{found:?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
        assert_eq!(
            found.contains("CAP_SYS_ADMIN"),
            start.starts_with("error"),
            "{found}"
        );
    }
    let [missing] = lines(&text.replace("mgmt", "fine")).try_into().unwrap();
    assert!(
        missing.starts_with(
            "warning 4:48 sflow.collectors[0].namespace: there is no network namespace `later`"
        ),
        "{missing}"
    );
}

#[test]
fn what_is_wrong_with_an_interface_that_runs_already_is_a_warning() {
    let text = "interfaces:\n  a: {device: {driver: af-xdp, name: gone0}}\n  b: {device: {driver: af-xdp, name: gone1}}\n";
    let system = System {
        unchanged: ["a".to_owned()].into(),
        ..machine()
    };
    let found: Vec<(String, String)> = found(text, &system)
        .iter()
        .map(|it| (it.path.clone(), it.severity.to_string()))
        .collect();
    let path = |name| format!("interfaces.{name}.device.name");
    assert_eq!(
        found,
        [
            (path("a"), "warning".to_owned()),
            (path("b"), "error".to_owned())
        ]
    );
}
