//! `weir peering demo`: a router between two exchanges, a transit provider and a customer, in network namespaces.
//!
//! ```text
//! peer-1 64500 ──┐                        ┌── transit 64510
//! server 64501 ──┤ exchange a ── router ──┤
//!                │               64496    ├── customer 64505
//! peer-2 64502 ──── exchange b ───┘       │
//! ```
//!
//! All of them run Debian's BIRD. The router's configuration is generated, planned, applied and guarded by Weir as
//! `weir peering apply` does it. Numbers are those for documentation and benchmarks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_netlink::lab::{Cable, Lab, Port, Running};
use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::birdc::{Control, Session};
use weir_peering::cases::{self, Case};
use weir_peering::model::Peering;
use weir_peering::plan::{Comparison, Plan, Summary, VerdictDiff};
use weir_peering::snapshot::Snapshot;
use weir_peering::{IpNet, bird};

use super::refused;
use crate::failure::Failure;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Policy cases that are run.
const CASES: u32 = 500;

const PEERING: &str = "peering:
  asn: 64496
  router-id: 203.0.113.1
  prefixes: [203.0.113.0/24, '2001:db8::/48']
  exchanges:
    a: {lan: [192.0.2.0/25, '2001:db8:ffff::/64'], local-pref: 210}
    b: {lan: [192.0.2.128/25]}
  neighbors:
    - {asn: 64500, at: a, addresses: [192.0.2.2, '2001:db8:ffff::2'], as-set: AS-PEER1, limit: {ipv4: 100}}
    - {asn: 64501, at: a, relation: route-server, addresses: [192.0.2.3]}
    - {asn: 64502, at: b, addresses: [192.0.2.130], as-set: AS-PEER2}
    - {asn: 64510, relation: transit, addresses: [100.64.0.2]}
    - {asn: 64505, relation: customer, addresses: [100.64.1.2], prefixes: [198.18.50.0/23]}
";
const DEPEERED: &str = "    - {asn: 64502, at: b, addresses: [192.0.2.130], as-set: AS-PEER2}\n";

/// A route that a neighbour announces: prefix, ASNs behind the neighbour's own.
type Announced = (&'static str, &'static [u32]);

/// Prefixes with the sessions that they came from.
type Routes = BTreeSet<(String, String)>;

/// A neighbour's daemon.
struct Far {
    name: &'static str,
    asn: u32,
    own: &'static str,
    router: &'static str,
    own6: Option<(&'static str, &'static str)>,
    is_server: bool,
    good: &'static [Announced],
    leaks: &'static [Announced],
    hijacks: &'static [Announced],
}

const FAR: [Far; 5] = [
    Far {
        name: "peer-1",
        asn: 64500,
        own: "192.0.2.2",
        router: "192.0.2.1",
        own6: Some(("2001:db8:ffff::2", "2001:db8:ffff::1")),
        is_server: false,
        good: &[
            ("198.18.0.0/24", &[]),
            ("198.18.1.0/24", &[]),
            ("198.18.2.0/24", &[64520]),
            ("2001:db8:100::/48", &[]),
        ],
        // Its transit provider's routes, with and without that provider in its AS-SET's prefixes.
        leaks: &[("198.18.3.0/24", &[3356]), ("198.19.0.0/24", &[64510])],
        hijacks: &[],
    },
    Far {
        name: "server",
        asn: 64501,
        own: "192.0.2.3",
        router: "192.0.2.1",
        own6: None,
        is_server: true,
        good: &[("198.18.20.0/24", &[64530]), ("198.18.21.0/24", &[64531])],
        leaks: &[("198.18.22.0/24", &[64530, 1299])],
        // A part of peer-1's prefix, which has a ROA.
        hijacks: &[("198.18.0.0/24", &[64531])],
    },
    Far {
        name: "peer-2",
        asn: 64502,
        own: "192.0.2.130",
        router: "192.0.2.129",
        own6: None,
        is_server: false,
        good: &[("198.18.30.0/24", &[]), ("198.18.31.0/24", &[])],
        leaks: &[("198.18.40.0/24", &[64510])],
        hijacks: &[("203.0.113.0/24", &[])],
    },
    Far {
        name: "transit",
        asn: 64510,
        own: "100.64.0.2",
        router: "100.64.0.1",
        own6: None,
        is_server: false,
        good: &[
            ("198.18.40.0/24", &[]),
            ("198.18.41.0/24", &[3356]),
            ("198.18.42.0/24", &[3356, 64540]),
        ],
        leaks: &[],
        hijacks: &[("198.18.1.0/24", &[64666])],
    },
    Far {
        name: "customer",
        asn: 64505,
        own: "100.64.1.2",
        router: "100.64.1.1",
        own6: None,
        is_server: false,
        good: &[("198.18.50.0/24", &[]), ("198.18.51.0/24", &[])],
        // Routes of its other provider.
        leaks: &[("198.18.42.0/24", &[3356, 64540]), ("198.18.60.0/24", &[])],
        hijacks: &[],
    },
];

impl Far {
    fn configuration(&self, is_bad: bool) -> String {
        let mut announced: Vec<&Announced> = self.good.iter().collect();
        if is_bad {
            announced.extend(self.leaks.iter().chain(self.hijacks));
        }
        let mut text = format!("router id {};\nprotocol device {{ }}\n", self.own);
        let sessions = [Some((self.own, self.router)), self.own6];
        for ((own, router), family) in sessions.into_iter().flatten().zip(["4", "6"]) {
            let routes: Vec<&&Announced> = announced
                .iter()
                .filter(|it| it.0.contains(':') == (family == "6"))
                .collect();
            let _ = writeln!(text, "protocol static s{family} {{\n  ipv{family};");
            for (prefix, _) in &routes {
                let _ = writeln!(text, "  route {prefix} blackhole;");
            }
            let _ = writeln!(
                text,
                "}}\nfilter out{family} {{\n  if source != RTS_STATIC then reject;"
            );
            for (prefix, path) in routes {
                for asn in path.iter().rev() {
                    let _ = writeln!(text, "  if net = {prefix} then bgp_path.prepend({asn});");
                }
            }
            let server = if self.is_server { "rs client;" } else { "" };
            let _ = writeln!(
                text,
                "  accept;\n}}\nprotocol bgp router{family} {{\n  local {own} as {};\n  neighbor {router} as 64496;\n  \
                 connect delay time 1;\n  connect retry time 1;\n  error wait time 1, 2;\n  {server}\n  \
                 ipv{family} {{ import all; export filter out{family}; }};\n}}",
                self.asn
            );
        }
        text
    }
}

/// A neighbour's BIRD in its namespace.
struct Neighbor {
    _process: Running,
    configuration: PathBuf,
    socket: PathBuf,
}

/// The namespaces with their daemons.
struct Stage {
    far: Vec<Neighbor>,
    router: Daemon,
    _router: Running,
    snapshot: PathBuf,
    folder: PathBuf,
    _lab: Lab,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn lab() -> Result<Lab, Failure> {
    let mut lab = Lab::new();
    for name in ["router", "exchange-a", "exchange-b"]
        .into_iter()
        .chain(FAR.iter().map(|it| it.name))
    {
        lab.add_host(name).map_err(Failure::said)?;
    }
    let address = |text: &str| text.parse::<IpAddr>().map_err(Failure::said);
    let mut connect =
        |one: Port, other: Port| lab.connect(&Cable::new(one, other)).map_err(Failure::said);
    connect(
        Port::new("router", "a")
            .address(address("192.0.2.1")?, 25)
            .address(address("2001:db8:ffff::1")?, 64),
        Port::new("exchange-a", "router"),
    )?;
    connect(
        Port::new("router", "b").address(address("192.0.2.129")?, 25),
        Port::new("exchange-b", "router"),
    )?;
    connect(
        Port::new("peer-1", "a")
            .address(address("192.0.2.2")?, 25)
            .address(address("2001:db8:ffff::2")?, 64),
        Port::new("exchange-a", "peer-1"),
    )?;
    connect(
        Port::new("server", "a").address(address("192.0.2.3")?, 25),
        Port::new("exchange-a", "server"),
    )?;
    connect(
        Port::new("peer-2", "b").address(address("192.0.2.130")?, 25),
        Port::new("exchange-b", "peer-2"),
    )?;
    for (name, network) in [("transit", 0), ("customer", 1)] {
        connect(
            Port::new("router", name).address(address(&format!("100.64.{network}.1"))?, 30),
            Port::new(name, "router").address(address(&format!("100.64.{network}.2"))?, 30),
        )?;
    }
    lab.bridge("exchange-a", "lan", &["router", "peer-1", "server"])
        .map_err(Failure::said)?;
    lab.bridge("exchange-b", "lan", &["router", "peer-2"])
        .map_err(Failure::said)?;
    Ok(lab)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::said(format_args!("{}: {error}", path.display())))
}

impl Stage {
    fn build() -> Result<Stage, Failure> {
        let folder = std::env::temp_dir().join(format!("weir-ixp-{}", std::process::id()));
        let snapshot = folder.join("data");
        std::fs::create_dir_all(snapshot.join("irr")).map_err(Failure::said)?;
        let lab = lab()?;
        let start = |host: &str, text: &str| -> Result<Neighbor, Failure> {
            let path = |ending: &str| folder.join(format!("{host}.{ending}"));
            write(&path("conf"), text)?;
            let arguments =
                [path("conf"), path("ctl"), path("pid")].map(|it| it.display().to_string());
            let [configuration, socket, pid] = &arguments;
            let process = lab
                .host(host)
                .and_then(|it| {
                    it.spawn(
                        "/usr/sbin/bird",
                        &["-f", "-c", configuration, "-s", socket, "-P", pid],
                    )
                })
                .map_err(Failure::said)?;
            let daemon = Neighbor {
                _process: process,
                configuration: path("conf"),
                socket: path("ctl"),
            };
            wait_for("BIRD's control socket", || {
                Ok(Control::open(&daemon.socket).is_ok())
            })?;
            Ok(daemon)
        };
        let mut far = Vec::new();
        for it in &FAR {
            far.push(start(it.name, &it.configuration(false))?);
        }
        let router = start("router", "router id 203.0.113.1;\nprotocol device { }\n")?;
        Ok(Stage {
            far,
            router: Daemon {
                configuration: router.configuration,
                socket: router.socket,
                state: folder.join("state"),
            },
            _router: router._process,
            snapshot,
            folder,
            _lab: lab,
        })
    }

    /// Writes the public data: IRR prefixes of both peers, and ROAs.
    fn publish(&self, peer2: &[&str], roas: &[(&str, u32)]) -> Result<(), Failure> {
        let list = |prefixes: &[&str]| {
            let all: Vec<_> = prefixes
                .iter()
                .map(|prefix| serde_json::json!({"prefix": prefix, "exact": true}))
                .collect();
            serde_json::json!({"NN": all}).to_string()
        };
        let peer1 = [
            "198.18.0.0/24",
            "198.18.1.0/24",
            "198.18.2.0/24",
            "198.18.3.0/24",
        ];
        for (name, prefixes) in [
            ("AS-PEER1.4", &peer1[..]),
            ("AS-PEER1.6", &["2001:db8:100::/48"]),
            ("AS-PEER2.4", peer2),
            ("AS-PEER2.6", &[]),
        ] {
            write(
                &self.snapshot.join(format!("irr/{name}.json")),
                &list(prefixes),
            )?;
        }
        let all: Vec<_> = roas
            .iter()
            .map(|(prefix, asn)| {
                let length: u32 = prefix
                    .split_once('/')
                    .and_then(|it| it.1.parse().ok())
                    .unwrap_or(24);
                serde_json::json!({"prefix": prefix, "maxLength": length, "asn": asn})
            })
            .collect();
        write(
            &self.snapshot.join("vrps.json"),
            &serde_json::json!({"roas": all}).to_string(),
        )
    }

    fn load(&self, text: &str) -> Result<(Peering, Snapshot), Failure> {
        let peering = Peering::parse("demo", text).map_err(refused)?;
        let snapshot = Snapshot::load(&self.snapshot, &peering, 0).map_err(refused)?;
        Ok((peering, snapshot))
    }

    fn plan(&self, peering: &Peering, snapshot: &Snapshot) -> Result<(Summary, Plan), Failure> {
        let running = self.router.running().map_err(refused)?;
        let summary = Summary::of(peering, snapshot);
        let mut plan = Plan::between(running.as_ref(), &summary);
        let mut comparison = Comparison::new(peering, snapshot, running.as_ref(), None);
        let mut control = self.router.control().map_err(refused)?;
        control
            .each_route(|route| comparison.route(&route))
            .map_err(refused)?;
        plan.verdicts = Some(comparison.finish());
        Ok((summary, plan))
    }

    /// Plans and applies; the plan and how it ended.
    fn apply(&self, text: &str, window: Duration) -> Result<(VerdictDiff, Outcome), Failure> {
        let (peering, snapshot) = self.load(text)?;
        let (summary, plan) = self.plan(&peering, &snapshot)?;
        let guard = Guard::new(window, 20);
        let outcome = self
            .router
            .apply(
                &bird::configuration(&peering, &snapshot),
                &summary,
                &plan,
                guard,
                None,
            )
            .map_err(refused)?;
        Ok((plan.verdicts.unwrap_or_default(), outcome))
    }

    fn sessions(&self) -> Result<Vec<Session>, Failure> {
        let mut control = self.router.control().map_err(refused)?;
        control.sessions().map_err(refused)
    }

    /// Prefix and session of all routes that the router accepts or rejects.
    fn table(&self) -> Result<(Routes, Routes), Failure> {
        let (mut accepted, mut rejected) = (BTreeSet::new(), BTreeSet::new());
        let mut control = self.router.control().map_err(refused)?;
        control
            .each_route(|route| {
                let of = (route.prefix.to_string(), route.protocol.clone());
                if route.is_filtered {
                    rejected.insert(of);
                } else {
                    accepted.insert(of);
                }
            })
            .map_err(refused)?;
        Ok((accepted, rejected))
    }
}

fn wait_for(what: &str, mut done: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    while !done()? {
        if Instant::now() > until {
            return Err(Failure::said(format_args!(
                "{what} did not happen within {} s",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The session of a neighbour for a prefix.
fn session_of(far: &Far, prefix: &str) -> String {
    let at = match far.name {
        "peer-1" | "server" => "_a",
        "peer-2" => "_b",
        _ => "",
    };
    let number = if prefix.contains(':') { 2 } else { 1 };
    format!("AS{}{at}_{number}", far.asn)
}

fn policy_cases() -> Result<Vec<Case>, Failure> {
    (0..CASES)
        .map(|number| {
            let byte = number / 5 % 200;
            let (from, route, path, expect) = match number % 5 {
                0 => (64500, "198.18.1.0/24".to_owned(), vec![64500], "accept"),
                1 => (
                    64500,
                    format!("198.19.{byte}.0/24"),
                    vec![64500],
                    "not-in-irr",
                ),
                2 => (
                    64501,
                    format!("198.19.{byte}.0/24"),
                    vec![64530, 1299],
                    "transit-free-asn",
                ),
                3 => (
                    64510,
                    "198.18.1.0/24".to_owned(),
                    vec![64510, 64600 + byte],
                    "rpki-invalid",
                ),
                _ => (
                    64505,
                    "203.0.113.0/24".to_owned(),
                    vec![64505],
                    "bogon-prefix",
                ),
            };
            Ok(Case {
                from,
                route: route.parse::<IpNet>().map_err(Failure::said)?,
                path,
                communities: Vec::new(),
                large_communities: Vec::new(),
                expect: expect.to_owned(),
                local_pref: None,
                has: Vec::new(),
                lacks: Vec::new(),
                at: None,
            })
        })
        .collect()
}

pub(super) fn execute(json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    if !cases::is_available() {
        return Err(Failure::said("bird is missing: install the package bird2"));
    }
    let mut say = |text: String| -> Result<(), Failure> {
        if !json {
            writeln!(to, "{text}")?;
            to.flush()?;
        }
        Ok(())
    };
    let stage = Stage::build()?;
    let roas = [("198.18.0.0/24", 64500), ("198.18.1.0/24", 64500)];
    stage.publish(&["198.18.30.0/24", "198.18.31.0/24"], &roas)?;
    stage.apply(PEERING, Duration::from_secs(1))?;
    let good: usize = FAR.iter().map(|it| it.good.len()).sum();
    wait_for("the sessions' start", || {
        let up = stage.sessions()?.iter().filter(|it| it.is_up).count();
        Ok(up == 6 && stage.table()?.0.len() >= good)
    })?;
    let sessions = stage.sessions()?;
    let up = sessions.iter().filter(|it| it.is_up).count();
    say(format!(
        "{up} of {} sessions are up, {good} routes accepted",
        sessions.len()
    ))?;

    let all = policy_cases()?;
    let (peering, snapshot) = stage.load(PEERING)?;
    let since = Instant::now();
    let failed = cases::run(&peering, &snapshot, &all).map_err(refused)?;
    let policy_seconds = since.elapsed().as_secs_f64();
    say(format!(
        "{} policy cases in {policy_seconds:.2} s, {} failed",
        all.len(),
        failed.len()
    ))?;

    // Leaks and hijacks.
    for (far, daemon) in FAR.iter().zip(&stage.far) {
        write(&daemon.configuration, &far.configuration(true))?;
        let mut control = Control::open(&daemon.socket).map_err(refused)?;
        control.ask("configure").map_err(refused)?;
    }
    let of = |select: fn(&Far) -> &'static [Announced]| -> Vec<(String, String)> {
        FAR.iter()
            .flat_map(|far| {
                select(far)
                    .iter()
                    .map(move |(prefix, _)| ((*prefix).to_owned(), session_of(far, prefix)))
            })
            .collect()
    };
    let (leaks, hijacks) = (of(|it| it.leaks), of(|it| it.hijacks));
    wait_for("the announcement of leaks and hijacks", || {
        let (accepted, rejected) = stage.table()?;
        Ok(leaks
            .iter()
            .chain(&hijacks)
            .all(|it| accepted.contains(it) || rejected.contains(it)))
    })?;
    let (_, rejected) = stage.table()?;
    let count = |made: &[(String, String)]| made.iter().filter(|it| rejected.contains(it)).count();
    let (leaks_rejected, hijacks_rejected) = (count(&leaks), count(&hijacks));
    say(format!(
        "{} leaks made, {leaks_rejected} rejected; {} hijacks made, {hijacks_rejected} rejected",
        leaks.len(),
        hijacks.len()
    ))?;

    // New public data: peer-2 loses one prefix and gains the one that it leaked; a route of the transit provider becomes invalid.
    let mut more = roas.to_vec();
    more.push(("198.18.42.0/24", 64999));
    stage.publish(&["198.18.30.0/24", "198.18.40.0/24"], &more)?;
    let before = stage.table()?;
    let (predicted, outcome) = stage.apply(PEERING, Duration::from_secs(3))?;
    let mut after = before.clone();
    let flips = |after: &(Routes, Routes)| -> Routes {
        let rejected = before.0.intersection(&after.1);
        rejected
            .chain(before.1.intersection(&after.0))
            .cloned()
            .collect()
    };
    let expected: Routes = predicted
        .examples
        .iter()
        .map(|it| (it.prefix.clone(), it.session.clone()))
        .collect();
    wait_for("the routes' second verdict", || {
        after = stage.table()?;
        Ok(flips(&after) == expected)
    })
    .ok();
    for (prefix, session) in flips(&after).symmetric_difference(&expected) {
        say(format!(
            "predicted or happened, not both: {prefix} from {session}"
        ))?;
    }
    let mut diff_right =
        flips(&after) == expected && !expected.is_empty() && outcome == Outcome::Confirmed;
    say(format!(
        "new data: the plan predicts {} routes rejected and {} accepted; right: {diff_right}",
        predicted.rejected, predicted.accepted
    ))?;

    // A change that a guard undoes: the limit is below what peer-1 announces.
    let bad = PEERING.replace("limit: {ipv4: 100}", "limit: {ipv4: 1}");
    let since = Instant::now();
    let (_, outcome) = stage.apply(&bad, Duration::from_secs(20))?;
    let Outcome::Undone {
        reason,
        milliseconds,
    } = outcome
    else {
        return Err(Failure::said("the limit of 1 route was not undone"));
    };
    let undo = Instant::now();
    wait_for("the return of the sessions", || {
        Ok(stage.sessions()?.iter().filter(|it| it.is_up).count() == up)
    })?;
    let undo_seconds = undo.elapsed().as_secs_f64() + milliseconds as f64 / 1000.0;
    say(format!(
        "a limit below the routes of peer-1: undone ({reason}); sessions are up again {undo_seconds:.2} s after the guard failed, \
         {:.1} s after the change",
        since.elapsed().as_secs_f64()
    ))?;

    // De-peering.
    let (predicted, outcome) =
        stage.apply(&PEERING.replace(DEPEERED, ""), Duration::from_secs(2))?;
    let left = stage.table()?;
    let gone = routes_of(&after.0, "AS64502_b_1");
    diff_right &= predicted.gone == gone
        && outcome == Outcome::Confirmed
        && routes_of(&left.0, "AS64502_b_1") == 0;
    say(format!(
        "peer-2 is removed: the plan predicts {} routes gone, {gone} went",
        predicted.gone
    ))?;

    if json {
        let summary = serde_json::json!({
            "sessions": sessions.len(),
            "sessions_up": up,
            "leaks_made": leaks.len(),
            "leaks_rejected": leaks_rejected,
            "hijacks_made": hijacks.len(),
            "hijacks_rejected": hijacks_rejected,
            "undo_seconds": undo_seconds,
            "verdict_diff_right": diff_right,
            "policy_cases": all.len(),
            "policy_cases_failed": failed.len(),
            "policy_seconds": policy_seconds,
        });
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&summary).map_err(Failure::said)?
        )?;
    }
    let is_right = up == sessions.len()
        && leaks_rejected == leaks.len()
        && hijacks_rejected == hijacks.len()
        && diff_right
        && failed.is_empty();
    if is_right {
        Ok(())
    } else {
        Err(Failure::said("not all of this is as it must be"))
    }
}

fn routes_of(table: &Routes, session: &str) -> u64 {
    table.iter().filter(|it| it.1 == session).count() as u64
}
