//! `weir lab run`: scenarios in network namespaces, each a list of devices and traffics.

use std::io::Write;
use std::sync::Arc;

use weir_lab::profile::{Profile, Simple};
use weir_lab::report::{Report, Test, environment};
use weir_lab::run::Control;

use super::generate::stop_on_signals;
use super::ndr::{Bench, frame, pool, print, traffic_name};
use super::report::save;
use super::stage::{Device, Stage};
use crate::cli::{LabRunArgs, SearchArgs};
use crate::failure::{Failure, USAGE};

struct Scenario {
    name: &'static str,
    about: &'static str,
    routed: bool,
    traffic: fn() -> Simple,
    devices: fn() -> Vec<(String, Device)>,
}

const SCENARIOS: [Scenario; 6] = [
    Scenario {
        name: "seeds/l2xc-sflow",
        about: "cross connect of Weir, with sFlow off and at 1 in 10,000, 1,000 and 100",
        routed: false,
        traffic: plain,
        devices: || sampled("l2xc: xe1", "l2xc: xe0"),
    },
    Scenario {
        name: "seeds/ip4-sflow",
        about: "IPv4 routing of Weir, with sFlow off and at 1 in 10,000, 1,000 and 100",
        routed: true,
        traffic: routed,
        devices: || sampled("addresses: [10.1.0.1/24]", "addresses: [10.2.0.1/24]"),
    },
    Scenario {
        name: "seeds/ipfix-flows",
        about: "IPv4 routing of Weir with 64k flows, without and with the flow meter",
        routed: true,
        traffic: || Simple {
            // 100.64.0.0/16 in one direction as source, in the other as destination.
            flows: Some(65_536),
            source: Some("100.64.0.0".into()),
            ..routed()
        },
        devices: || {
            let weir = |extra: &str| {
                let route = "routes: [{prefix: 100.64.0.0/16, via: 10.1.0.2}]\n";
                Device::Weir(configuration(
                    "addresses: [10.1.0.1/24]",
                    "addresses: [10.2.0.1/24]",
                    &format!("{route}{extra}"),
                ))
            };
            let meter =
                "ipfix: {collectors: [{address: 127.0.0.1}], interfaces: {xe0: {}, xe1: {}}}\n";
            vec![
                ("Weir".into(), weir("")),
                ("Weir, flow meter".into(), weir(meter)),
            ]
        },
    },
    Scenario {
        name: "seeds/xdp-vs-bridge",
        about: "the Linux bridge and Weir's cross connect over AF_XDP, 64 bytes",
        routed: false,
        traffic: plain,
        devices: bridge_and_weir,
    },
    Scenario {
        name: "seeds/imix-bidir",
        about: "the Linux bridge and Weir's cross connect, Internet mix in both directions",
        routed: false,
        traffic: || Simple {
            imix: true,
            bidirectional: true,
            ..Simple::default()
        },
        devices: bridge_and_weir,
    },
    Scenario {
        name: "linux-vs-weir",
        about: "the Linux router and Weir, IPv4, 64 bytes",
        routed: true,
        traffic: routed,
        devices: || {
            let address = |network: u8| format!("addresses: [10.{network}.0.1/24]");
            vec![
                ("Linux router".into(), Device::Linux),
                (
                    "Weir".into(),
                    Device::Weir(configuration(&address(1), &address(2), "")),
                ),
            ]
        },
    },
];

fn plain() -> Simple {
    Simple {
        bidirectional: true,
        ..Simple::default()
    }
}

fn routed() -> Simple {
    Simple {
        source: Some("10.1.0.2".into()),
        destination: Some("10.2.0.2".into()),
        gateway: true,
        bidirectional: true,
        ..Simple::default()
    }
}

fn configuration(a: &str, b: &str, extra: &str) -> String {
    format!(
        "api: {{socket: API}}\nworkers: {{count: 1, idle: sleep}}\ninterfaces:\n  xe0: {{device: {{driver: af-xdp, name: port-a}}, {a}}}\n  xe1: {{device: {{driver: af-xdp, name: port-b}}, {b}}}\n{extra}"
    )
}

fn sampled(a: &str, b: &str) -> Vec<(String, Device)> {
    let with = |end: &str| format!("{end}, sflow: true");
    let one = |rate: u32| {
        let sflow = format!(
            "sflow: {{sampling-rate: {rate}, agent: 127.0.0.1, collectors: [{{address: 127.0.0.1}}]}}\n"
        );
        (
            format!("Weir, 1 in {rate}"),
            Device::Weir(configuration(&with(a), &with(b), &sflow)),
        )
    };
    let mut devices = vec![(
        "Weir, sFlow off".to_owned(),
        Device::Weir(configuration(a, b, "")),
    )];
    devices.extend([10_000, 1000, 100].map(one));
    devices
}

/// The two that the demo compares.
pub(super) fn bridge_and_weir() -> Vec<(String, Device)> {
    let weir = Device::Weir(configuration("l2xc: xe1", "l2xc: xe0", ""));
    vec![
        ("Linux bridge".to_owned(), Device::Bridge),
        ("Weir".to_owned(), weir),
    ]
}

pub(super) fn execute(args: &LabRunArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let Some(name) = &args.scenario else {
        for scenario in &SCENARIOS {
            writeln!(to, "{:<22} {}", scenario.name, scenario.about)?;
        }
        return Ok(());
    };
    let scenario = SCENARIOS
        .iter()
        .find(|scenario| scenario.name == name)
        .ok_or_else(|| {
            Failure::Coded(
                USAGE,
                format!("there is no scenario {name}: weir lab run lists them"),
            )
        })?;
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let profile = Profile::simple(&(scenario.traffic)()).map_err(Failure::said)?;
    let mut report = Report {
        title: scenario.about.to_owned(),
        environment: environment(),
        tests: Vec::new(),
    };
    for (name, device) in (scenario.devices)() {
        report.tests.push(test(
            &name,
            &device,
            scenario.routed,
            &profile,
            &args.search,
            &control,
            !json,
        )?);
        // A page with what is there is worth having when a later device fails.
        save(&args.output, &report)?;
    }
    print(&report, json, to)?;
    if !json {
        writeln!(to, "written: {}", args.output.display())?;
    }
    Ok(())
}

/// Searches one device, and measures its latency at 10, 50 and 90 % of what was found.
pub(super) fn test(
    name: &str,
    device: &Device,
    routed: bool,
    profile: &Profile,
    search: &SearchArgs,
    control: &Control,
    noisy: bool,
) -> Result<Test, Failure> {
    let pool = pool()?;
    let mut stage = Stage::build(device, routed, &pool)?;
    let sources = stage.counters()?;
    let mut bench = Bench {
        profile,
        ports: &mut stage.ports,
        pool: &pool,
        control,
        search,
        noisy,
    };
    let found = bench.search(sources)?;
    let mut test = Test {
        device: name.to_owned(),
        traffic: traffic_name(profile),
        frame: frame(profile),
        search: Some(found),
        ..Test::default()
    };
    test.repeats.extend(test.rate());
    if let Some(rate) = test.rate() {
        test.latency = bench.latency(rate, &[0.1, 0.5, 0.9])?;
    }
    Ok(test)
}
