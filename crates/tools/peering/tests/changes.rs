//! Plans over routes of a table, changes of a running BIRD without sessions, and fetching from a local server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::birdc::TableRoute;
use weir_peering::fetch::{self, Sources};
use weir_peering::model::Peering;
use weir_peering::plan::{Comparison, Plan, SessionChange, Summary};
use weir_peering::policy::Policy;
use weir_peering::snapshot::Snapshot;
use weir_peering::traffic::Traffic;
use weir_peering::{Error, bird, cases};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn text() -> String {
    std::fs::read_to_string(data().join("peering.yaml")).unwrap()
}

fn parse(text: &str) -> (Peering, Snapshot) {
    let peering = Peering::parse("peering.yaml", text).unwrap();
    let snapshot = Snapshot::load(&data(), &peering, 0).unwrap();
    (peering, snapshot)
}

/// A folder that goes away with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-peering-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn route(prefix: &str, protocol: &str, path: &[u32], local_pref: Option<u32>) -> TableRoute {
    TableRoute {
        prefix: prefix.parse().unwrap(),
        protocol: protocol.to_owned(),
        path: path.to_vec(),
        has_as_set: false,
        next_hop: None,
        communities: Vec::new(),
        large: if local_pref.is_none() {
            vec![(8298, 7, 12)]
        } else {
            Vec::new()
        },
        local_pref,
        is_filtered: local_pref.is_none(),
        is_cut: false,
    }
}

#[test]
fn a_plan_counts_the_routes_that_get_another_verdict() {
    let (old, snapshot) = parse(&text());
    let before = Summary::of(&old, &snapshot);
    assert!(Plan::between(Some(&before), &before).is_empty());
    let new = text()
        .replace(
            "  prefixes: [194.1.163.0/24",
            "  prefixes: [82.197.160.0/19",
        )
        .replace("local-pref: 210", "local-pref: 220")
        .replace(
            "limit: {ipv4: 5000, ipv6: 1000}, gtsm: true",
            "limit: {ipv4: 6000}",
        )
        .replace(
            "asn: 25091, description: a transit",
            "asn: 25092, description: a transit",
        );
    let (new, snapshot) = parse(&new);
    let after = Summary::of(&new, &snapshot);
    let mut plan = Plan::between(Some(&before), &after);
    let change = |name: &str| {
        plan.sessions
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.change)
    };
    assert_eq!(change("AS13030_frysix_1"), Some(SessionChange::Reset));
    assert_eq!(change("AS25091_1"), Some(SessionChange::Remove));
    assert_eq!(change("AS25092_1"), Some(SessionChange::Add));
    assert_eq!(change("AS50869_1"), None);

    let folder = Folder::new("traffic");
    let file = folder.0.join("traffic.csv");
    std::fs::write(
        &file,
        "dst,bytes\n82.197.160.7,300\n77.109.128.0/24,600\n1.0.0.1,100\n9.9.9.9,0\n",
    )
    .unwrap();
    let traffic = Traffic::load(&file).unwrap();
    let mut comparison = Comparison::new(&new, &snapshot, Some(&before), Some(&traffic));
    for it in [
        // The own network now.
        route("82.197.160.0/19", "AS13030_frysix_1", &[13030], Some(210)),
        route("77.109.128.0/18", "AS13030_frysix_1", &[13030], Some(210)),
        // Was the own network's, which it is not any more.
        route("194.1.163.0/24", "AS58299_drained_1", &[13335], None),
        route("1.0.0.0/24", "AS25091_1", &[25091, 13335], Some(60)),
        route("194.1.163.0/24", "own_4", &[], None),
    ] {
        comparison.route(&it);
    }
    let diff = comparison.finish();
    assert_eq!(
        (
            diff.routes,
            diff.rejected,
            diff.accepted,
            diff.preference,
            diff.gone
        ),
        (4, 1, 1, 1, 1),
        "{diff:?}"
    );
    assert_eq!(
        diff.sessions["AS13030_frysix_1"].rejected["bogon-prefix"],
        1
    );
    assert_eq!(diff.largest_loss(), Some((50.0, "AS13030_frysix_1")));
    // 300 rejected and 100 gone of 1000.
    assert_eq!(diff.traffic_percent, Some(40.0));
    plan.verdicts = Some(diff);
    assert!(!plan.is_empty());
}

#[test]
fn an_explanation_names_the_data() {
    let (peering, snapshot) = parse(&text());
    let policy = Policy::new(&peering, &snapshot);
    let of = |prefix: &str, path: &[u32]| {
        let route = weir_peering::policy::Route::new(prefix.parse().unwrap(), path.to_vec());
        policy.evidence(0, &route).join("\n")
    };
    let invalid = of("77.109.128.0/24", &[13030]);
    assert!(
        invalid.contains("the origin is invalid: ROA 77.109.128.0/18"),
        "{invalid}"
    );
    let leak = of("82.197.160.0/19", &[13030, 3356]);
    assert!(leak.contains("AS3356 buys no transit"), "{leak}");
    let other = of("9.9.9.0/24", &[13030]);
    assert!(
        other.contains("RIPE::AS-INIT7 does not have the prefix"),
        "{other}"
    );
}

/// A BIRD without sessions.
struct Bird {
    child: Child,
    daemon: Daemon,
    _folder: Folder,
}

impl Bird {
    fn start(name: &str) -> Bird {
        let folder = Folder::new(name);
        let path = |name: &str| folder.0.join(name);
        std::fs::write(
            path("bird.conf"),
            "router id 192.0.2.1;\nprotocol device { }\n",
        )
        .unwrap();
        let child = Command::new("/usr/sbin/bird")
            .args(["-f", "-c"])
            .arg(path("bird.conf"))
            .arg("-s")
            .arg(path("bird.ctl"))
            .arg("-P")
            .arg(path("bird.pid"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = Daemon {
            configuration: path("bird.conf"),
            socket: path("bird.ctl"),
            state: path("state"),
        };
        let until = Instant::now() + Duration::from_secs(30);
        while daemon.control().is_err() {
            assert!(Instant::now() < until, "BIRD does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Bird {
            child,
            daemon,
            _folder: folder,
        }
    }

    /// Applies a configuration that announces one prefix and has no neighbours.
    fn apply(&self, prefix: &str, wait: Option<Duration>) -> Result<Outcome, Error> {
        let text = format!(
            "peering: {{asn: 64496, router-id: 192.0.2.1, prefixes: [{prefix}], kernel: {{export: false}}}}"
        );
        let peering = Peering::parse("test", &text).unwrap();
        let snapshot = Snapshot::default();
        let summary = Summary::of(&peering, &snapshot);
        let plan = Plan::between(self.daemon.running()?.as_ref(), &summary);
        let guard = Guard::new(Duration::ZERO, 20);
        let text = bird::configuration(&peering, &snapshot);
        self.daemon.apply(&text, &summary, &plan, guard, wait)
    }

    fn announces(&self, prefix: &str) -> bool {
        let mut control = self.daemon.control().unwrap();
        control.ask("show route").unwrap().contains(prefix)
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_change_is_confirmed_undone_or_rolled_back() {
    if !cases::is_available() {
        println!("skipped: bird is not installed");
        return;
    }
    let bird = Bird::start("changes");
    let minute = Some(Duration::from_secs(60));
    assert!(bird.daemon.is_edited().unwrap(), "a file of somebody else");
    assert_eq!(
        bird.apply("192.0.2.0/24", None).unwrap(),
        Outcome::Confirmed
    );
    assert!(bird.announces("192.0.2.0/24") && !bird.daemon.is_edited().unwrap());

    // A change that waits blocks the next, and is undone.
    assert!(matches!(
        bird.apply("198.51.100.0/24", minute).unwrap(),
        Outcome::Waiting { .. }
    ));
    assert!(bird.announces("198.51.100.0/24"));
    assert!(matches!(
        bird.apply("203.0.113.0/24", None),
        Err(Error::Refused(_))
    ));
    assert!(bird.daemon.rollback().unwrap(), "a change waited");
    assert!(bird.announces("192.0.2.0/24") && !bird.announces("198.51.100.0/24"));
    assert!(
        !bird.daemon.is_edited().unwrap(),
        "the earlier file is back"
    );
    assert!(matches!(bird.daemon.confirm(), Err(Error::Refused(_))));

    // A change that waits and is confirmed, then the one before it.
    bird.apply("198.51.100.0/24", minute).unwrap();
    bird.daemon.confirm().unwrap();
    assert!(bird.announces("198.51.100.0/24"));
    assert!(!bird.daemon.rollback().unwrap());
    assert!(bird.announces("192.0.2.0/24") && !bird.announces("198.51.100.0/24"));

    // BIRD reads another file: nothing is changed.
    let mut other = bird.daemon.clone();
    other.configuration = bird.daemon.state.join("other.conf");
    let elsewhere = Bird {
        child: Command::new("true").spawn().unwrap(),
        daemon: other,
        _folder: Folder::new("other"),
    };
    let refused = elsewhere
        .apply("203.0.113.0/24", None)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("BIRD reads another file"), "{refused}");
    assert!(bird.announces("192.0.2.0/24") && !elsewhere.daemon.configuration.exists());
}

#[test]
fn fetched_data_replaces_older_data_only_when_it_is_not_smaller() {
    let folder = Folder::new("fetch");
    let (peering, _) = parse(&text());
    let irr = data().join("irr");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/vrps.json", server.local_addr().unwrap());
    let body = std::fs::read_to_string(data().join("vrps.json")).unwrap();
    let serving = std::thread::spawn(move || {
        // The whole file, then one without ROAs.
        for body in [body.as_str(), "{\"roas\": []}"] {
            let (mut stream, _) = server.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    let sources = Sources {
        vrps: Some(url),
        irr: Some(irr),
        ..Sources::default()
    };
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: curl is not installed");
        return;
    }
    let all = fetch::fetch(&peering, &folder.0, &sources, 20).unwrap();
    assert!(all.iter().all(|it| it.problem.is_none()), "{all:?}");
    let first = Snapshot::load(&folder.0, &peering, fetch::now()).unwrap();
    assert_eq!(
        first.vrps,
        Snapshot::load(&data(), &peering, 0).unwrap().vrps
    );
    assert_eq!(fetch::meta(&folder.0).unwrap().files.len(), 3);

    let all = fetch::fetch(&peering, &folder.0, &sources, 20).unwrap();
    let problem = all.iter().find_map(|it| it.problem.clone()).unwrap();
    assert_eq!(problem, "it is empty");
    assert_eq!(
        Snapshot::load(&folder.0, &peering, fetch::now())
            .unwrap()
            .vrps,
        first.vrps
    );
    serving.join().unwrap();

    // A source that is gone changes nothing, and is reported.
    let gone = Sources {
        irr: Some(folder.0.join("nowhere")),
        ..Sources::default()
    };
    let all = fetch::fetch(&peering, &folder.0, &gone, 20).unwrap();
    assert!(all.iter().all(|it| it.problem.is_some()), "{all:?}");
    assert_eq!(
        Snapshot::load(&folder.0, &peering, fetch::now())
            .unwrap()
            .sets,
        first.sets
    );
}
