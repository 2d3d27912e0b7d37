//! `weir lab run`: scenarios in network namespaces, each a list of devices and traffics.

use std::io::Write;
use std::sync::Arc;

use weir_lab::LabError;
use weir_lab::profile::{FrameSize, Profile, Simple};
use weir_lab::report::{Report, Test, environment};
use weir_lab::run::Control;

use super::generate::stop_on_signals;
use super::ndr::{Bench, frame, pool, print, sized, traffic_name};
use super::report::save;
use super::stage::{Cables, Device, Stage};
use crate::cli::{LabRunArgs, SearchArgs};
use crate::failure::{Failure, USAGE};

struct Scenario {
    name: &'static str,
    about: &'static str,
    traffic: fn() -> Traffic,
    devices: fn() -> Vec<(String, Device)>,
}

/// What a scenario sends.
enum Traffic {
    Simple(Box<Simple>),
    /// A profile file's text.
    File(&'static str),
}

impl Traffic {
    fn profile(&self) -> Result<Profile, Failure> {
        match self {
            Traffic::Simple(simple) => Profile::simple(simple).map_err(Failure::said),
            Traffic::File(text) => {
                Profile::from_yaml(text).map_err(|errors| Failure::from(LabError::Profile(errors)))
            }
        }
    }
}

/// Labelled packets in both directions; the router swaps 100 for 200 and 101 for 201.
const LABELLED: &str = "
streams:
  - {name: forward, port: 0, size: 68, ethernet: {destination: gateway}, mpls: [{label: 100}], ipv4: {}}
  - {name: backward, port: 1, size: 68, ethernet: {destination: gateway}, mpls: [{label: 101}], ipv4: {source: 48.0.0.1, destination: 16.0.0.1}}
";

const SWAPS: &str = "mpls: {labels: [{label: 100, via: [{next-hop: 10.2.0.2, labels: [200]}]}, {label: 101, via: [{next-hop: 10.1.0.2, labels: [201]}]}]}\n";

const SCENARIOS: [Scenario; 8] = [
    Scenario {
        name: "seeds/l2xc-sflow",
        about: "cross connect of Weir, with sFlow off and at 1 in 10,000, 1,000 and 100",
        traffic: plain,
        devices: || sampled("l2xc: xe1", "l2xc: xe0", ""),
    },
    Scenario {
        name: "seeds/ip4-sflow",
        about: "IPv4 routing of Weir, with sFlow off and at 1 in 10,000, 1,000 and 100",
        traffic: routed,
        devices: || sampled("addresses: [10.1.0.1/24]", "addresses: [10.2.0.1/24]", ""),
    },
    Scenario {
        name: "seeds/mpls-sflow",
        about: "label swapping of Weir, with sFlow off and at 1 in 10,000, 1,000 and 100",
        traffic: || Traffic::File(LABELLED),
        devices: || {
            sampled(
                "mpls: true, addresses: [10.1.0.1/24]",
                "mpls: true, addresses: [10.2.0.1/24]",
                SWAPS,
            )
        },
    },
    Scenario {
        name: "seeds/ipfix-flows",
        about: "IPv4 routing of Weir with 64k flows, without and with the flow meter",
        traffic: || {
            // 100.64.0.0/16 in one direction as source, in the other as destination.
            simple(Simple {
                flows: Some(65_536),
                source: Some("100.64.0.0".into()),
                ..routes()
            })
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
        traffic: plain,
        devices: bridge_and_weir,
    },
    Scenario {
        name: "seeds/imix-bidir",
        about: "the Linux bridge and Weir's cross connect, Internet mix in both directions",
        traffic: || {
            simple(Simple {
                imix: true,
                bidirectional: true,
                ..Simple::default()
            })
        },
        devices: bridge_and_weir,
    },
    Scenario {
        name: "all-devices",
        about: "the Linux bridge, the Linux router, Weir's cross connect and Weir's router, IPv4",
        traffic: routed,
        devices: || {
            let mut all = vec![("Linux bridge".into(), Device::Bridge)];
            all.extend(routers());
            all.extend(
                bridge_and_weir()
                    .into_iter()
                    .skip(1)
                    .map(|(_, weir)| ("Weir, cross connect".into(), weir)),
            );
            all
        },
    },
    Scenario {
        name: "linux-vs-weir",
        about: "the Linux router and Weir, IPv4, 64 bytes",
        traffic: routed,
        devices: routers,
    },
];

fn routers() -> Vec<(String, Device)> {
    let address = |network: u8| format!("addresses: [10.{network}.0.1/24]");
    let weir = configuration(&address(1), &address(2), "");
    vec![
        ("Linux router".into(), Device::Linux),
        ("Weir".into(), Device::Weir(weir)),
    ]
}

fn simple(wanted: Simple) -> Traffic {
    Traffic::Simple(Box::new(wanted))
}

fn plain() -> Traffic {
    simple(Simple {
        bidirectional: true,
        ..Simple::default()
    })
}

fn routed() -> Traffic {
    simple(routes())
}

fn routes() -> Simple {
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
        "api: {{socket: API}}\nworkers: {{count: 1, idle: sleep}}\ninterfaces:\n  xe0: {{device: DEVICE-A, {a}}}\n  xe1: {{device: DEVICE-B, {b}}}\n{extra}"
    )
}

fn sampled(a: &str, b: &str, extra: &str) -> Vec<(String, Device)> {
    let with = |end: &str| format!("{end}, sflow: true");
    let one = |rate: u32| {
        let sflow = format!(
            "sflow: {{sampling-rate: {rate}, agent: 127.0.0.1, collectors: [{{address: 127.0.0.1}}]}}\n{extra}"
        );
        (
            format!("Weir, 1 in {rate}"),
            Device::Weir(configuration(&with(a), &with(b), &sflow)),
        )
    };
    let mut devices = vec![(
        "Weir, sFlow off".to_owned(),
        Device::Weir(configuration(a, b, extra)),
    )];
    devices.extend([10_000, 1000, 100].map(one));
    devices
}

/// Weir's configuration as a cross connect.
pub(super) fn switch() -> String {
    configuration("l2xc: xe1", "l2xc: xe0", "")
}

/// The two that the demo compares.
pub(super) fn bridge_and_weir() -> Vec<(String, Device)> {
    let weir = Device::Weir(switch());
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
    let cables = cables(args)?;
    let profile = (scenario.traffic)().profile()?;
    let mut report = Report {
        title: format!("{}: {}", scenario.name, scenario.about),
        environment: environment(),
        tests: Vec::new(),
    };
    report
        .environment
        .push(("cables".to_owned(), format!("{cables:?}")));
    for (name, device) in (scenario.devices)() {
        if matches!(cables, Cables::Memif) && !matches!(device, Device::Weir(_)) {
            eprintln!("skipped: {name}: the kernel has no memif");
            continue;
        }
        // A switch in a scenario of routers gets frames without a gateway.
        let traffic = if device.is_switch() {
            plain().profile()?
        } else {
            profile.clone()
        };
        let profile = if scenario.switched() {
            &profile
        } else {
            &traffic
        };
        let wanted = Wanted {
            search: &args.search,
            sizes: &args.sizes,
            repeat: args.repeat,
            cables: &cables,
            noisy: !json,
        };
        report
            .tests
            .extend(test(&name, &device, profile, &wanted, &control)?);
        // A page with what is there is worth having when a later device fails.
        save(&args.output, &report)?;
    }
    print(&report, json, to)?;
    if !json {
        writeln!(to, "written: {}", args.output.display())?;
    }
    Ok(())
}

impl Scenario {
    /// Whether all devices are switches.
    fn switched(&self) -> bool {
        (self.devices)()
            .iter()
            .all(|(_, device)| device.is_switch())
    }
}

fn cables(args: &LabRunArgs) -> Result<Cables, Failure> {
    let wrong = |text: &str| Err(Failure::Coded(USAGE, text.to_owned()));
    match (
        args.port.as_slice(),
        args.device_port.as_slice(),
        args.memif,
    ) {
        ([], [], false) => Ok(Cables::Veth),
        ([], [], true) => Ok(Cables::Memif),
        (_, _, true) => wrong("network cards have no memif: give --memif or ports"),
        ([a, b], [c, d], false) => {
            let all = [a, b, c, d];
            let twice = (1..4).any(|at| all.iter().take(at).any(|other| *other == all[at]));
            if twice {
                return wrong("the four cards of --port and --device-port must differ");
            }
            Ok(Cables::Cards(
                [a.clone(), b.clone()],
                [c.clone(), d.clone()],
            ))
        }
        _ => wrong(
            "network cards: give --port twice, the generator's, and --device-port twice, the device's in the same order",
        ),
    }
}

/// How a device is tested.
pub(super) struct Wanted<'a> {
    pub(super) search: &'a SearchArgs,
    /// The profile's own sizes when there are none.
    pub(super) sizes: &'a [FrameSize],
    pub(super) repeat: u32,
    pub(super) cables: &'a Cables,
    pub(super) noisy: bool,
}

/// Searches one device for each frame size, and measures its latency at 10, 50 and 90 % of what was found.
pub(super) fn test(
    name: &str,
    device: &Device,
    profile: &Profile,
    wanted: &Wanted<'_>,
    control: &Control,
) -> Result<Vec<Test>, Failure> {
    let pool = pool()?;
    let mut stage = Stage::build(device, !device.is_switch(), wanted.cables, &pool)?;
    let mut tests = Vec::new();
    for profile in sized(profile, wanted.sizes)? {
        let mut test = Test {
            device: name.to_owned(),
            traffic: traffic_name(&profile),
            frame: frame(&profile),
            ..Test::default()
        };
        for _ in 0..wanted.repeat {
            let sources = stage.counters()?;
            let mut bench = Bench {
                profile: &profile,
                ports: &mut stage.ports,
                pool: &pool,
                control,
                search: wanted.search,
                noisy: wanted.noisy,
            };
            test.search = Some(bench.search(sources)?);
            test.repeats.extend(test.rate());
            if let Some(rate) = test.rate()
                && test.latency.is_empty()
            {
                test.latency = bench.latency(rate, &[0.1, 0.5, 0.9])?;
            }
        }
        test.costs();
        tests.push(test);
    }
    Ok(tests)
}
