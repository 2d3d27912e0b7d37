//! Session features between two BIRDs in network namespaces: what the generated configuration does on the wire.
//!
//! One namespace has the router's BIRD, the other one a BIRD for each session, each with an address of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_netlink::lab::{Cable, Lab, Port, Running, preflight};
use weir_peering::birdc::{Control, TableRoute};
use weir_peering::model::Peering;
use weir_peering::policy::Reason;
use weir_peering::resolve;
use weir_peering::{bird, cases, plan};

const PATIENCE: Duration = Duration::from_secs(90);

const SECTION: &str = "peering:
  asn: 64496
  router-id: 192.0.2.1
  prefixes: [203.0.113.0/24]
  exchanges: {a: {lan: [192.0.2.0/24]}}
  neighbors:
    - {asn: 64501, at: a, addresses: [192.0.2.11], prefixes: [198.18.1.0/24], gtsm: true}
    - {asn: 64502, at: a, addresses: [192.0.2.12], prefixes: [198.18.2.0/24], gtsm: true}
    - {asn: 64503, at: a, addresses: [192.0.2.13], prefixes: [198.18.3.0/24], password-file: FOLDER/password}
    - {asn: 64504, at: a, addresses: [192.0.2.14], prefixes: [198.18.4.0/24], password-file: FOLDER/password}
    - {asn: 64505, at: a, addresses: [192.0.2.15], prefixes: [198.18.5.0/24]}
    - {asn: 64506, at: a, relation: customer, addresses: [192.0.2.16], prefixes: [198.18.6.0/23], blackhole: true}
    - {asn: 64507, at: a, addresses: [192.0.2.17], prefixes: [198.18.8.0/22], limit: {ipv4: 2}}
    - {asn: 64508, at: a, addresses: [192.0.2.18], prefixes: [198.18.12.0/23]}
    - {asn: 64509, at: a, addresses: [192.0.2.19], prefixes: [198.18.14.0/24], mode: drain}
    - {asn: 64510, at: a, relation: route-server, addresses: [192.0.2.20]}
    - {asn: 64511, at: a, addresses: [192.0.2.21], prefixes: [198.18.16.0/24], role: false}
";

/// A session of the other side.
struct Far {
    asn: u32,
    /// Statements of the protocol.
    options: &'static str,
    /// Prefixes with statements of the export filter.
    routes: &'static [(&'static str, &'static str)],
}

const FAR: [Far; 11] = [
    Far {
        asn: 64501,
        options: "ttl security yes;",
        routes: &[("198.18.1.0/24", "")],
    },
    Far {
        asn: 64502,
        options: "",
        routes: &[("198.18.2.0/24", "")],
    },
    Far {
        asn: 64503,
        options: "password \"right\";",
        routes: &[("198.18.3.0/24", "")],
    },
    Far {
        asn: 64504,
        options: "password \"wrong\";",
        routes: &[("198.18.4.0/24", "")],
    },
    Far {
        asn: 64505,
        options: "local role customer;",
        routes: &[("198.18.5.0/24", "")],
    },
    Far {
        asn: 64506,
        options: "local role customer;",
        routes: &[
            ("198.18.6.0/24", ""),
            ("198.18.7.0/24", "bgp_community.add((65535, 0));"),
            ("198.18.6.66/32", "bgp_community.add((65535, 666));"),
            ("198.18.6.67/32", ""),
            ("198.18.99.1/32", "bgp_community.add((65535, 666));"),
        ],
    },
    Far {
        asn: 64507,
        options: "",
        routes: &[
            ("198.18.8.0/24", ""),
            ("198.18.9.0/24", ""),
            ("198.18.10.0/24", ""),
        ],
    },
    Far {
        asn: 64508,
        options: "",
        routes: &[
            ("198.18.12.0/24", ""),
            ("198.18.13.0/24", "bgp_next_hop = 192.0.2.99;"),
        ],
    },
    Far {
        asn: 64509,
        options: "",
        routes: &[("198.18.14.0/24", "")],
    },
    Far {
        asn: 64510,
        options: "rs client; local role rs_server;",
        routes: &[(
            "198.18.15.0/24",
            "bgp_path.prepend(64600); bgp_next_hop = 192.0.2.18;",
        )],
    },
    Far {
        asn: 64511,
        options: "local role peer;",
        routes: &[("198.18.16.0/24", "")],
    },
];

/// The configuration of the other side of one session. BIRD has one session with an address, so that each is a process.
fn far_configuration(it: &Far, address: usize) -> String {
    let asn = it.asn;
    let mut text =
        format!("router id 192.0.2.{address};\nprotocol device {{ }}\nprotocol static {{ ipv4;\n");
    for (prefix, _) in it.routes {
        let _ = writeln!(text, "  route {prefix} blackhole;");
    }
    let _ = writeln!(
        text,
        "}}\nfilter announced {{ if source != RTS_STATIC then reject;"
    );
    for (prefix, statements) in it.routes {
        if !statements.is_empty() {
            let _ = writeln!(text, "  if net = {prefix} then {{ {statements} }}");
        }
    }
    let _ = writeln!(
        text,
        "  accept;\n}}\nprotocol bgp weir {{\n  local 192.0.2.{address} as {asn};\n  strict bind yes;\n  \
         neighbor 192.0.2.1 as 64496;\n  connect delay time 1;\n  connect retry time 2;\n  error wait time 1, 2;\n  {}\n  \
         ipv4 {{ import all; export filter announced; }};\n}}",
        it.options
    );
    text
}

/// A folder that goes away with the value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(lab: &Lab, folder: &Path, host: &str, name: &str, text: &str) -> (Running, PathBuf) {
    let path = |ending: &str| {
        folder
            .join(format!("{name}.{ending}"))
            .display()
            .to_string()
    };
    let (configuration, socket, pid) = (path("conf"), path("ctl"), path("pid"));
    std::fs::write(&configuration, text).unwrap();
    let program = cases::program().display().to_string();
    let arguments = ["-f", "-c", &configuration, "-s", &socket, "-P", &pid];
    let running = lab.host(host).unwrap().spawn(&program, &arguments).unwrap();
    let socket = PathBuf::from(socket);
    wait_for("BIRD's control socket", || Control::open(&socket).is_ok());
    (running, socket)
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn routes(socket: &Path) -> Vec<TableRoute> {
    let mut all = Vec::new();
    Control::open(socket)
        .unwrap()
        .each_route(|route| all.push(route))
        .unwrap();
    all
}

#[test]
fn session_features_work_between_two_daemons() {
    if let Err(why) = preflight() {
        println!("skipped: {why}");
        return;
    }
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let folder = Folder(std::env::temp_dir().join(format!("weir-wire-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("password"), "password \"right\";\n").unwrap();
    std::fs::write(
        folder.0.join("vrps.json"),
        "{\"roas\": [{\"prefix\": \"198.19.0.0/24\", \"maxLength\": 24, \"asn\": 64500}]}",
    )
    .unwrap();
    let mut lab = Lab::new();
    lab.add_host("router").unwrap();
    lab.add_host("far").unwrap();
    let address = |last: usize| format!("192.0.2.{last}").parse::<IpAddr>().unwrap();
    let mut far = Port::new("far", "router");
    for last in 11..11 + FAR.len() {
        far = far.address(address(last), 24);
    }
    lab.connect(&Cable::new(
        Port::new("router", "far").address(address(1), 24),
        far,
    ))
    .unwrap();

    let text = SECTION.replace("FOLDER", &folder.0.display().to_string());
    let peering = Peering::parse("test", &text).unwrap();
    let of = resolve::load(peering, &folder.0, 0).unwrap();
    let configuration = bird::configuration(&of.peering, &of.snapshot);
    let (_router, socket) = start(&lab, &folder.0, "router", "router", &configuration);
    let far: BTreeMap<u32, (Running, PathBuf)> = FAR
        .iter()
        .enumerate()
        .map(|(index, it)| {
            let (name, text) = (format!("far{}", it.asn), far_configuration(it, 11 + index));
            (it.asn, start(&lab, &folder.0, "far", &name, &text))
        })
        .collect();

    let session = |asn: u32| {
        let all = Control::open(&socket).unwrap().sessions().unwrap();
        all.into_iter().find(|it| it.asn == Some(asn)).unwrap()
    };
    let up = [64501, 64503, 64506, 64508, 64509, 64510, 64511];
    wait_for("the start of the sessions", || {
        up.iter().all(|asn| session(*asn).is_up)
    });
    // The limit of two routes shut the session.
    wait_for("the limit", || session(64507).is_disabled);
    // Another role than that of a peer is refused by name.
    wait_for("the refusal of the role", || {
        session(64505)
            .last_error
            .is_some_and(|it| it.to_lowercase().contains("role"))
    });

    let find = |prefix: &str| {
        let wanted = prefix.parse().unwrap();
        routes(&socket).into_iter().find(|it| it.prefix == wanted)
    };
    wait_for("the routes", || {
        find("198.18.15.0/24").is_some()
            && find("198.18.99.1/32").is_some()
            && find("198.18.13.0/24").is_some()
    });
    let route = |prefix: &str| find(prefix).unwrap_or_else(|| panic!("{prefix} is missing"));
    let reason = |prefix: &str| plan::rejection(64496, &route(prefix));

    // GTSM and TCP-MD5: without the same on the other side there is no session, and no route.
    for asn in [64502, 64504] {
        assert!(!session(asn).is_up, "AS{asn}");
    }
    assert!(find("198.18.2.0/24").is_none() && find("198.18.4.0/24").is_none());
    // GRACEFUL_SHUTDOWN in.
    assert_eq!(route("198.18.6.0/24").local_pref, Some(500));
    assert_eq!(route("198.18.7.0/24").local_pref, Some(0));
    // BLACKHOLE: own space of the customer, never passed on; not others' space, and no long prefix without it.
    let blackhole = route("198.18.6.66/32");
    assert!(
        !blackhole.is_filtered && blackhole.communities.contains(&(65535, 65281)),
        "{blackhole:?}"
    );
    assert_eq!(reason("198.18.6.67/32"), Some(Reason::PrefixLength));
    assert_eq!(reason("198.18.99.1/32"), Some(Reason::PrefixLength));
    let all = Control::open(&socket)
        .unwrap()
        .ask("show route 198.18.6.66/32")
        .unwrap();
    assert!(all.contains("blackhole"), "{all}");
    // Next hops: a peer's own, a route server's of the LAN.
    assert!(!route("198.18.12.0/24").is_filtered);
    assert_eq!(reason("198.18.13.0/24"), Some(Reason::NextHop));
    assert!(!route("198.18.15.0/24").is_filtered);
    // What others get: own and customers' routes, nothing else, without own communities.
    let table = |asn: u32| {
        let mut control = Control::open(&far[&asn].1).unwrap();
        control.ask("show route protocol weir all").unwrap()
    };
    // Next hops of others on the LAN are local addresses on the other side here, so that it takes only own routes.
    let sent = |asn: u32| {
        let mut control = Control::open(&socket).unwrap();
        control
            .ask(&format!("show route export AS{asn}_a_1 all"))
            .unwrap()
    };
    wait_for("the announcement", || {
        sent(64501).contains("198.18.6.0/24") && table(64501).contains("203.0.113.0/24")
    });
    let peer = sent(64501);
    assert!(peer.contains("203.0.113.0/24"), "{peer}");
    for foreign in [
        "198.18.6.66/32",
        "198.18.12.0/24",
        "198.18.15.0/24",
        "(64496",
    ] {
        assert!(
            !peer.contains(foreign),
            "{foreign} is announced to a peer: {peer}"
        );
    }
    let customer = sent(64506);
    assert!(
        customer.contains("198.18.12.0/24") && customer.contains("198.18.15.0/24"),
        "{customer}"
    );
    // GRACEFUL_SHUTDOWN out, while the neighbour is drained, and preference 0 in.
    wait_for("GRACEFUL_SHUTDOWN", || table(64509).contains("(65535,0)"));
    assert!(!table(64501).contains("(65535,0)"));
    assert_eq!(route("198.18.14.0/24").local_pref, Some(0));
    // A shutdown message reaches the other side (RFC 9003).
    let mut control = Control::open(&socket).unwrap();
    control
        .ask("disable AS64501_a_1 \"card is replaced\"")
        .unwrap();
    wait_for("the shutdown message", || {
        let mut control = Control::open(&far[&64501].1).unwrap();
        let all = control.ask("show protocols all weir").unwrap();
        all.contains("Administrative shutdown")
    });
}
