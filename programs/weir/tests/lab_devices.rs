//! `weir lab` over real devices in network namespaces: neighbors, devices that vanish, Ctrl-C, reboots, scenarios.
//!
//! Rates are low, so that a busy machine keeps up; no test asserts a time or that nothing is lost.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::{Cable, Lab, Port, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(120);

/// A namespace `tester` with g0 and g1, cabled to a namespace `device` with p0 and p1.
fn stage() -> Option<Lab> {
    if let Err(why) = preflight() {
        eprintln!("skipped: {why}");
        return None;
    }
    let mut lab = Lab::new();
    lab.add_host("tester").unwrap();
    lab.add_host("device").unwrap();
    for number in 0..2_u8 {
        let near = Port::new("tester", &format!("g{number}"));
        let far = Port::new("device", &format!("p{number}"))
            .address(Ipv4Addr::new(10, number, 0, 1), 24)
            .address(Ipv6Addr::new(0xfd00, number.into(), 0, 0, 0, 0, 0, 1), 64);
        lab.connect(&Cable::new(near, far)).unwrap();
    }
    let device = lab.host("device").unwrap();
    device.set_parameter("ipv4/ip_forward", "1").unwrap();
    device
        .set_parameter("ipv6/conf/all/forwarding", "1")
        .unwrap();
    Some(lab)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The kernel's router resolves the generator's addresses by ARP and by ND, and the generator the
/// router's: packets come through in both families.
#[test]
fn the_kernel_and_the_generator_resolve_each_other() {
    let Some(lab) = stage() else { return };
    for (prefix, length) in [("10.0.0.", 24), ("fd00::", 64)] {
        let other = if length == 24 { "10.1.0." } else { "fd00:1::" };
        let port = |name: &str, net: &str| format!("{name},address={net}2/{length},gateway={net}1");
        let done = lab
            .host("tester")
            .unwrap()
            .run(
                WEIR,
                &[
                    "lab",
                    "generate",
                    "--port",
                    &port("g0", prefix),
                    "--port",
                    &port("g1", other),
                    "--source",
                    &format!("{prefix}2"),
                    "--destination",
                    &format!("{other}2"),
                    "--size",
                    "100",
                    "--rate",
                    "500pps",
                    "--packets",
                    "200",
                    "--drain",
                    "5s",
                    "--json",
                ],
                LIMIT,
            )
            .unwrap();
        assert!(done.success(), "{done:?}");
        let found = json(&done.stdout);
        let stream = &found["streams"][0];
        assert!(stream["received"].as_u64() > Some(0), "{found:#}");
        // The router asked for the destination, and the second port answered.
        assert!(
            found["ports"][1]["answered"].as_u64() > Some(0),
            "{found:#}"
        );
        let address: IpAddr = format!("{other}2").parse().unwrap();
        let table = lab
            .host("device")
            .unwrap()
            .run("ip", &["neigh", "show", "to", &address.to_string()], LIMIT)
            .unwrap();
        assert!(table.stdout.contains("lladdr"), "{table:?}");
    }
}

/// A device that is deleted while traffic runs ends the run with its name; the other one is given back.
#[test]
fn a_device_that_vanishes_ends_the_run() {
    let Some(lab) = stage() else { return };
    let tester = lab.host("tester").unwrap();
    let arguments = [
        "lab",
        "generate",
        "--port",
        "g0",
        "--port",
        "g1",
        "--rate",
        "1kpps",
        "--duration",
        "100s",
    ];
    let running = tester.spawn(WEIR, &arguments).unwrap();
    wait_for_xdp(&lab, "g1");
    let index = tester.link("g1").unwrap().index;
    tester.route().unwrap().delete(index).unwrap();
    let done = running.wait(LIMIT).unwrap();
    assert!(!done.success() && !done.timed_out, "{done:?}");
    assert!(done.stderr.contains("g1"), "{done:?}");
    assert!(!attached(&lab, "g0"));
}

/// Ctrl-C ends a run with its result, and takes programs and settings off the devices.
#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let Some(lab) = stage() else { return };
    let tester = lab.host("tester").unwrap();
    let state = |name: &str| {
        let link = tester.link(name).unwrap();
        let features = tester.run("ethtool", &["-k", name], LIMIT);
        (
            link.promiscuity,
            link.mtu,
            link.up,
            features.map(|done| done.stdout).unwrap_or_default(),
        )
    };
    let before = [state("g0"), state("g1")];
    let arguments = [
        "lab",
        "generate",
        "--port",
        "g0",
        "--port",
        "g1",
        "--rate",
        "1kpps",
        "--duration",
        "100s",
        "--json",
    ];
    let running = tester.spawn(WEIR, &arguments).unwrap();
    wait_for_xdp(&lab, "g1");
    std::thread::sleep(Duration::from_millis(300));
    let done = running.interrupt().unwrap();
    assert!(done.success(), "{done:?}");
    assert!(json(&done.stdout)["seconds"].as_f64() < Some(60.0));
    let after = [state("g0"), state("g1")];
    assert!(after == before, "{after:?} is not {before:?}");
    assert!(!attached(&lab, "g0") && !attached(&lab, "g1"));
}

/// A device under test whose links go down and come back, as at a reboot: the run goes on, and what was
/// lost is counted.
#[test]
fn a_device_that_reboots_loses_packets_and_the_run_goes_on() {
    let Some(lab) = stage() else { return };
    lab.bridge("device", "bridge", &["p0", "p1"]).unwrap();
    let tester = lab.host("tester").unwrap();
    let arguments = [
        "lab",
        "generate",
        "--port",
        "g0",
        "--port",
        "g1",
        "--rate",
        "1kpps",
        "--packets",
        "3000",
        "--drain",
        "1s",
        "--json",
    ];
    let running = tester.spawn(WEIR, &arguments).unwrap();
    wait_for_xdp(&lab, "g1");
    let device = lab.host("device").unwrap();
    let mut route = device.route().unwrap();
    for up in [false, true] {
        std::thread::sleep(Duration::from_millis(700));
        for name in ["p0", "p1"] {
            let index = device.link(name).unwrap().index;
            route.set_up(index, up).unwrap();
        }
    }
    let done = running.wait(LIMIT).unwrap();
    assert!(done.success(), "{done:?}");
    let stream = json(&done.stdout)["streams"][0].clone();
    let of = |name: &str| stream[name].as_u64().unwrap();
    assert_eq!(of("sent") + of("unsent"), 3000, "{stream:#}");
    assert!(of("lost") > 0 && of("received") > 0, "{stream:#}");
    assert_eq!(of("lost") + of("received"), of("sent"), "{stream:#}");
}

/// All scenarios run over namespaces, and write their page. Labels need a router, so that one stands
/// for all; the others run in long tests.
#[test]
fn scenarios_write_their_reports() {
    if let Err(why) = preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let list = std::process::Command::new(WEIR)
        .args(["lab", "run"])
        .output()
        .unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for seed in [
        "l2xc-sflow",
        "ip4-sflow",
        "mpls-sflow",
        "ipfix-flows",
        "xdp-vs-bridge",
        "imix-bidir",
    ] {
        assert!(names.contains(&format!("seeds/{seed}").as_str()), "{list}");
    }
    let folder = std::env::temp_dir().join(format!("weir-scenarios-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in names {
        if name != "seeds/mpls-sflow" && std::env::var_os("WEIR_LONG").is_none() {
            continue;
        }
        let page = folder.join(name.replace('/', "-"));
        let done = std::process::Command::new(WEIR)
            .args([
                "lab", "run", name, "--trial", "100ms", "--width", "0.3", "--exceed", "0.5",
            ])
            .args([
                "--noise",
                "1",
                "--min-rate",
                "100pps",
                "--max-rate",
                "3kpps",
                "--json",
                "-o",
            ])
            .arg(&page)
            .output()
            .unwrap();
        assert!(done.status.success(), "{name}: {done:?}");
        let report = json(&String::from_utf8_lossy(&done.stdout));
        assert!(report["tests"].as_array().unwrap().len() >= 2, "{report:#}");
        let received = report["tests"].as_array().unwrap().iter().all(|test| {
            let trials = test["search"]["trials"].as_array().unwrap();
            trials
                .iter()
                .any(|trial| trial["lost"].as_u64() < trial["offered"].as_u64())
        });
        assert!(
            received,
            "{name}: nothing came through a device: {report:#}"
        );
        assert!(
            std::fs::read_to_string(&page)
                .unwrap()
                .ends_with("</html>\n")
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Four cards of this machine: the device's are borrowed and given back as they were.
#[test]
fn cards_are_given_back() {
    let Some(lab) = stage() else { return };
    let tester = lab.host("tester").unwrap();
    let mut more = Lab::new();
    more.add_host("other").unwrap();
    // Both ends of two cables in one namespace.
    for number in 2..4 {
        let (near, far) = (format!("g{number}"), format!("p{number}"));
        let script = format!(
            "ip link add {near} type veth peer name {far} && ip link set {near} up && ip link set {far} up"
        );
        let done = tester.run("sh", &["-c", &script], LIMIT).unwrap();
        assert!(done.success(), "{done:?}");
    }
    let arguments = [
        "lab",
        "run",
        "xdp-vs-bridge",
        "--port",
        "g2",
        "--port",
        "g3",
        "--device-port",
        "p2",
        "--device-port",
        "p3",
        "--trial",
        "100ms",
        "--width",
        "0.3",
        "--exceed",
        "0.5",
        "--noise",
        "1",
        "--min-rate",
        "100pps",
        "--max-rate",
        "2kpps",
        "-o",
        "/dev/null",
    ];
    let refused = tester.run(WEIR, &arguments, LIMIT).unwrap();
    assert!(
        refused
            .stderr
            .contains("there is no scenario xdp-vs-bridge"),
        "{refused:?}"
    );
    let arguments = arguments.map(|word| {
        if word == "xdp-vs-bridge" {
            "seeds/xdp-vs-bridge"
        } else {
            word
        }
    });
    let done = tester.run(WEIR, &arguments, LIMIT).unwrap();
    assert!(
        done.success() && done.stdout.contains("Linux bridge, 64"),
        "{done:?}"
    );
    for name in ["p2", "p3"] {
        let link = tester.link(name).unwrap();
        assert!(link.up && link.controller.is_none(), "{link:?}");
    }
    let done = tester
        .run("ip", &["address", "add", "10.9.9.9/24", "dev", "p2"], LIMIT)
        .unwrap();
    assert!(done.success(), "{done:?}");
    let done = tester.run(WEIR, &arguments, LIMIT).unwrap();
    assert!(
        !done.success() && done.stderr.contains("uses the card p2 itself"),
        "{done:?}"
    );
    assert!(tester.link("p2").unwrap().up);
}

fn attached(lab: &Lab, name: &str) -> bool {
    let show = lab
        .host("tester")
        .unwrap()
        .run("ip", &["link", "show", name], LIMIT)
        .unwrap();
    show.stdout.contains("xdp")
}

fn wait_for_xdp(lab: &Lab, name: &str) {
    let deadline = std::time::Instant::now() + LIMIT;
    while !attached(lab, name) {
        assert!(std::time::Instant::now() < deadline, "{name} is not opened");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The device with the default route is taken only when that is asked for.
#[test]
fn the_device_that_a_machine_is_reached_through_is_spared() {
    let Some(lab) = stage() else { return };
    let tester = lab.host("tester").unwrap();
    for words in [
        ["addr", "add", "10.0.0.2/24", "dev", "g0"].as_slice(),
        &["route", "add", "default", "via", "10.0.0.1"],
    ] {
        assert!(tester.run("ip", words, LIMIT).unwrap().success());
    }
    let generate = |port: &str| {
        let words = [
            "lab",
            "generate",
            "--port",
            port,
            "--packets",
            "5",
            "--rate",
            "100pps",
            "--drain",
            "0s",
        ];
        tester.run(WEIR, &words, LIMIT).unwrap()
    };
    let refused = generate("g0");
    assert!(!refused.success());
    assert!(
        refused.stderr.contains("g0,allow-management"),
        "{refused:?}"
    );
    let done = generate("g0,allow-management");
    assert!(done.success(), "{done:?}");
    // No default route leads over the other one.
    let done = generate("g1");
    assert!(done.success(), "{done:?}");
}
