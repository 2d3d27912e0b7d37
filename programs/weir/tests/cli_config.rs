//! `weir config`, `set` and `sflow` as a shell sees them, in front of a router that only pretends.
//!
//! What a real router does with a configuration is tested where it lives. Here: which question each
//! command asks, what it prints of the answer, and with which exit code it ends.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use weir_api::*;

/// A directory that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "weir-config-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A router that remembers what it was asked, and refuses what says `refuse` or `locked`.
#[derive(Clone, Default)]
struct Pretender {
    asked: Arc<Mutex<Vec<Value>>>,
    events: EventBus,
}

impl Pretender {
    /// The author is the API's to say: the user who asks.
    fn note(&self, what: &str, request: impl serde::Serialize) {
        let mut request = serde_json::to_value(request).unwrap();
        request.as_object_mut().unwrap().remove("author");
        self.asked.lock().unwrap().push(json!({ what: request }));
    }

    fn last(&self) -> Value {
        self.asked
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

fn step(group: StepGroup, text: &str) -> ConfigStep {
    ConfigStep {
        group,
        kind: "a-kind".to_owned(),
        object: "wan".to_owned(),
        text: text.to_owned(),
        disturbs: None,
    }
}

fn steps() -> Vec<ConfigStep> {
    vec![
        step(StepGroup::Prune, "delete interface old"),
        step(StepGroup::Create, "create interface new"),
        step(StepGroup::Sync, "set mtu of interface wan: 1500 -> 9000"),
        step(StepGroup::Sync, "set interface wan up"),
    ]
}

fn applied(confirm_seconds: Option<u32>) -> Applied {
    let confirm_by = confirm_seconds
        .map(|seconds| (SystemTime::now() + Duration::from_secs(seconds.into())).into());
    Applied {
        revision: 7,
        steps: steps(),
        needs_restart: vec![],
        findings: vec![],
        confirm_by,
    }
}

fn finding() -> Finding {
    Finding {
        severity: FindingSeverity::Error,
        file: "new.yaml".to_owned(),
        line: 2,
        column: 3,
        width: 4,
        path: "interfaces.wan".to_owned(),
        message: "there is no device \"eth9\"".to_owned(),
        help: String::new(),
        rendered: "error: there is no device \"eth9\"\n --> new.yaml:2:3".to_owned(),
    }
}

fn refusal(yaml: &str) -> Result<(), ApiError> {
    if yaml.contains("refuse") {
        return Err(ApiError::invalid(vec![finding()]));
    }
    if yaml.contains("locked") {
        return Err(ApiError::locked(ConfigLock {
            reason: LockReason::ConfirmPending,
            author: "ada".to_owned(),
            since: Timestamp::from_unix_ms(0),
            uid: Some(1000),
            pid: Some(77),
            address: None,
            confirm_by: None,
        }));
    }
    Ok(())
}

fn revision(number: u64, comment: &str) -> Revision {
    Revision {
        revision: number,
        time: Timestamp::from_unix_ms(1_795_255_200_120),
        author: "ada".to_owned(),
        comment: comment.to_owned(),
        confirmed: number == 6,
        running: number == 7,
        lines: 40,
        lines_added: 3,
        lines_removed: 1,
    }
}

fn nothing<T: Default>() -> Result<T, ApiError> {
    Ok(T::default())
}

impl Router for Pretender {
    fn version(&self) -> Result<Version, ApiError> {
        let version = "0.1.0".to_owned();
        Ok(Version {
            version,
            commit: None,
            pid: 7,
            started: 1,
            uptime: 2,
            workers: 1,
            config_file: None,
        })
    }
    fn interfaces(&self) -> Result<Interfaces, ApiError> {
        let wan = json!({
            "name": "wan", "index": 3, "kind": "port", "mtu": 1500, "admin": "up", "link": "up", "speed": 0, "sflow": false,
            "rx": Traffic::default(), "tx": Traffic::default(), "rx_errors": 0, "tx_errors": 0, "drops": 0,
        });
        Ok(Interfaces {
            interfaces: vec![serde_json::from_value(wan).unwrap()],
        })
    }
    fn hardware(&self) -> Result<Hardware, ApiError> {
        nothing()
    }
    fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
        nothing()
    }
    fn runtime(&self) -> Result<Runtime, ApiError> {
        nothing()
    }
    fn errors(&self) -> Result<Errors, ApiError> {
        nothing()
    }
    fn neighbors(&self) -> Result<Neighbors, ApiError> {
        nothing()
    }
    fn routes(&self) -> Result<Routes, ApiError> {
        nothing()
    }
    fn sflow(&self) -> Result<Sflow, ApiError> {
        Err(ApiError::not_available("sflow"))
    }
    fn trace(&self) -> Result<Trace, ApiError> {
        nothing()
    }
    fn trace_add(&self, _request: &TraceRequest) -> Result<(), ApiError> {
        Ok(())
    }
    fn trace_clear(&self) -> Result<(), ApiError> {
        Ok(())
    }
    fn totals(&self) -> Result<Totals, ApiError> {
        nothing()
    }
    fn config(&self) -> Result<Value, ApiError> {
        Ok(json!({}))
    }
    fn clear(&self, _what: Clear) -> Result<(), ApiError> {
        Ok(())
    }
    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Ok(ConfigDump {
            yaml: "# as it runs\ninterfaces: {}\n".to_owned(),
        })
    }
    fn config_check(&self, file: &ConfigText) -> Result<ConfigChecked, ApiError> {
        self.note("check", file);
        Ok(ConfigChecked::new(
            refusal(&file.yaml)
                .err()
                .map_or_else(Vec::new, |refusal| refusal.findings),
        ))
    }
    fn config_plan(&self, file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        self.note("plan", file);
        refusal(&file.yaml)?;
        if file.yaml.contains("same") {
            return nothing();
        }
        let (needs_restart, without_device) = (vec!["workers".to_owned()], vec!["lan".to_owned()]);
        Ok(ConfigPlan {
            findings: vec![],
            steps: steps(),
            without_device,
            needs_restart,
            peering: Vec::new(),
        })
    }
    fn config_diff(&self, request: &DiffRequest) -> Result<ConfigDiff, ApiError> {
        self.note("diff", request);
        Ok(ConfigDiff {
            diff: if request.revision == Some(7) {
                String::new()
            } else {
                "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n".to_owned()
            },
        })
    }
    fn config_apply(&self, request: &ApplyRequest, _caller: &Caller) -> Result<Applied, ApiError> {
        self.note("apply", request);
        refusal(&request.yaml)?;
        Ok(applied(request.confirm_seconds))
    }
    fn config_confirm(&self, _caller: &Caller) -> Result<Confirmed, ApiError> {
        Ok(Confirmed { revision: 7 })
    }
    fn config_rollback(
        &self,
        request: &RollbackRequest,
        _caller: &Caller,
    ) -> Result<Applied, ApiError> {
        self.note("rollback", request);
        Ok(applied(request.confirm_seconds))
    }
    fn config_history(&self, _limit: usize, _before: Option<u64>) -> Result<History, ApiError> {
        Ok(History {
            revisions: vec![
                revision(7, "second uplink"),
                revision(6, ""),
                revision(5, ""),
            ],
            lock: None,
            next: None,
        })
    }
    fn config_revision(&self, number: u64) -> Result<RevisionText, ApiError> {
        Ok(RevisionText {
            revision: revision(number, ""),
            yaml: format!("# revision {number}\n"),
        })
    }
    fn sflow_patch(&self, patch: &SflowPatch, _caller: &Caller) -> Result<Applied, ApiError> {
        self.note("sflow", patch);
        Ok(applied(None))
    }
    fn interface_patch(
        &self,
        name: &str,
        patch: &InterfacePatch,
        _caller: &Caller,
    ) -> Result<Applied, ApiError> {
        self.note(name, patch);
        Ok(applied(None))
    }
    fn events(&self) -> Option<EventBus> {
        Some(self.events.clone())
    }
}

struct Scene {
    place: Place,
    router: Pretender,
    _server: ServerHandle,
}

impl Scene {
    fn new() -> Self {
        let (place, router) = (Place::new(), Pretender::default());
        let server = Server::start(&place.0.join("api.sock"), Arc::new(router.clone())).unwrap();
        Self {
            place,
            router,
            _server: server,
        }
    }

    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let socket = self.place.0.join("api.sock").display().to_string();
        run(&format!("--socket {socket} {line}"))
    }

    /// Standard output of a command that succeeds and says nothing else.
    fn said(&self, line: &str) -> String {
        let (code, said, error) = self.run(line);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{line}");
        said
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.said(&format!("--json {line}"))).unwrap()
    }
}

fn run(line: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command
        .args(line.split_whitespace())
        .env_remove("WEIR_SOCKET")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

const STEPS: &str = "\
prune
  - delete interface old
create
  + create interface new
sync
  ~ set mtu of interface wan: 1500 -> 9000
  ~ set interface wan up
";

#[test]
fn a_plan_is_grouped() {
    let scene = Scene::new();
    let file = scene.place.file("new.yaml", "interfaces: {}\n");
    let said = scene.said(&format!("config plan -c {file}"));
    let end = "4 steps: 1 prune, 1 create, 2 sync\nafter a restart only: workers\nwithout a device, carrying nothing: lan\n";
    assert_eq!(said, format!("{STEPS}{end}"));
    assert_eq!(
        scene.router.last(),
        json!({ "plan": { "yaml": "interfaces: {}\n", "file": file, "skip_unsupported": false } })
    );
    assert_eq!(
        scene.json(&format!("config plan -c {file}"))["steps"][0]["group"],
        "prune"
    );
    let same = scene.place.file("same.yaml", "# same\n");
    assert_eq!(
        scene.said(&format!("con pl -c {same}")),
        "nothing to do: the router is so already\n"
    );
    assert_eq!(
        scene.said(&format!("config check --running -c {same}")),
        format!("{same} is right for this router\n")
    );
    let dry = scene.said(&format!("config apply --dry-run -c {file}"));
    assert!(
        dry.ends_with("a dry run: nothing was changed\n") && dry.starts_with(STEPS),
        "{dry}"
    );
}

#[test]
fn a_change_tells_how_it_is_kept() {
    let scene = Scene::new();
    let file = scene.place.file("new.yaml", "interfaces: {}\n");
    assert_eq!(
        scene.said(&format!("config apply -c {file}")),
        format!("{STEPS}revision 7 runs: 4 steps\n")
    );
    let said = scene.said(&format!(
        "config apply -c {file} --confirm 5m --comment uplink"
    ));
    let socket = scene.place.0.join("api.sock").display().to_string();
    assert!(
        said.contains("it is undone in 5 min 0 s, at ") || said.contains("it is undone in 4 min 5"),
        "{said}"
    );
    assert!(
        said.ends_with(&format!(
            " UTC, unless it is confirmed: weir --socket {socket} config confirm\n"
        )),
        "{said}"
    );
    let asked = &scene.router.last()["apply"];
    assert_eq!(
        (&asked["confirm_seconds"], &asked["comment"]),
        (&json!(300), &json!("uplink"))
    );
    assert_eq!(
        scene.json(&format!("config apply -c {file}"))["revision"],
        7
    );
    assert_eq!(scene.said("config confirm"), "revision 7 stays\n");
    assert_eq!(scene.json("config confirm"), json!({ "revision": 7 }));
    assert!(scene.said("config rollback").starts_with(STEPS));
    assert_eq!(scene.router.last(), json!({ "rollback": {} }));
    scene.said("config rollback 5 --confirm 500ms");
    assert_eq!(
        scene.router.last(),
        json!({ "rollback": { "revision": 5, "confirm_seconds": 1 } })
    );
    scene.said("config rollback --back 2");
    assert_eq!(
        scene.router.last(),
        json!({ "rollback": { "steps_back": 2 } })
    );
    for line in [
        "config rollback 5 --back 2",
        "config rollback x",
        "config apply -c x --confirm 25h",
        "config diff",
        "config diff 1 -c x",
        "config diff --from x",
    ] {
        assert_eq!(scene.run(line).0, Some(2), "{line}");
    }
}

#[test]
fn what_is_refused_has_exit_codes() {
    let scene = Scene::new();
    let file = scene.place.file("refuse.yaml", "# refuse\n");
    for command in ["plan", "apply", "apply --dry-run", "check --running"] {
        let (code, said, error) = scene.run(&format!("config {command} -c {file}"));
        let expected = format!(
            "error: there is no device \"eth9\"\n --> new.yaml:2:3\n\nweir: {file} is refused: 1 error\n"
        );
        assert_eq!(
            (code, said.as_str(), error),
            (Some(4), "", expected),
            "{command}"
        );
        let (code, said, error) = scene.run(&format!("--json config {command} -c {file}"));
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            (
                code,
                error.as_str(),
                &report["valid"],
                &report["findings"][0]["line"]
            ),
            (Some(4), "", &json!(false), &json!(2))
        );
    }
    let file = scene.place.file("locked.yaml", "# locked\n");
    let (code, said, error) = scene.run(&format!("config apply -c {file}"));
    assert!(
        code == Some(5) && said.is_empty() && error.starts_with("weir: a change by ada (pid 77) "),
        "{code:?} {error}"
    );
    assert_eq!(run("--socket /nonexistent.sock config history").0, Some(3));
    assert_eq!(scene.run("config apply -c /nonexistent").0, Some(1));
    let binary = scene.place.0.join("binary");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let (code, _, error) = scene.run(&format!("config apply -c {}", binary.display()));
    assert!(
        code == Some(4) && error.contains("is refused: 1 error"),
        "{code:?} {error}"
    );
}

#[test]
fn history_differences_and_files() {
    let scene = Scene::new();
    let said = scene.said("config history");
    let expected = "\
Revision  Time (UTC)           Author  State            Lines  Changed  Comment
       7  2026-11-21 10:00:00  ada     to be confirmed     40  +3 -1    second uplink
       6  2026-11-21 10:00:00  ada                         40  +3 -1
       5  2026-11-21 10:00:00  ada     undone              40  +3 -1
";
    assert_eq!(said, expected);
    assert_eq!(scene.json("config history")["revisions"][1]["revision"], 6);
    assert_eq!(scene.said("config dump"), "# as it runs\ninterfaces: {}\n");
    assert_eq!(scene.said("config dump 5"), "# revision 5\n");
    assert_eq!(
        scene.said("config diff 5"),
        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"
    );
    assert_eq!(scene.router.last(), json!({ "diff": { "revision": 5 } }));
    assert_eq!(scene.said("config diff 7"), "no difference\n");
    let file = scene.place.file("new.yaml", "interfaces: {}\n");
    scene.said(&format!("config diff -c {file}"));
    assert_eq!(
        scene.router.last(),
        json!({ "diff": { "yaml": "interfaces: {}\n" } })
    );
    let mut complete = Command::new(env!("CARGO_BIN_EXE_weir"));
    complete
        .env("WEIR_SOCKET", scene.place.0.join("api.sock"))
        .args(["complete", "fish", "--", "config", "rollback", ""]);
    let offered = String::from_utf8(complete.output().unwrap().stdout).unwrap();
    assert_eq!(
        offered,
        "7\t2026-11-21T10:00:00.120Z ada second uplink\n6\t2026-11-21T10:00:00.120Z ada\n5\t2026-11-21T10:00:00.120Z ada\n"
    );
}

#[test]
fn vpps_words_edit_single_settings() {
    let scene = Scene::new();
    for (line, asked) in [
        (
            "set interface state wan down",
            json!({ "wan": { "state": "down" } }),
        ),
        ("set int mtu 9000 wan", json!({ "wan": { "mtu": 9000 } })),
        (
            "set interface description wan uplink",
            json!({ "wan": { "description": "uplink" } }),
        ),
        (
            "set interface description wan",
            json!({ "wan": { "description": null } }),
        ),
        (
            "sflow sampling-rate 1000",
            json!({ "sflow": { "sampling_rate": 1000 } }),
        ),
        (
            "sflow polling-interval 5",
            json!({ "sflow": { "polling_interval_seconds": 5 } }),
        ),
        (
            "sflow header-bytes 64",
            json!({ "sflow": { "header_bytes": 64 } }),
        ),
        (
            "sflow enable-disable wan",
            json!({ "wan": { "sflow": true } }),
        ),
        (
            "sflow enable-disable wan disable",
            json!({ "wan": { "sflow": false } }),
        ),
    ] {
        assert_eq!(
            scene.said(line),
            format!("{STEPS}revision 7 runs: 4 steps\n"),
            "{line}"
        );
        assert_eq!(scene.router.last(), asked, "{line}");
        assert_eq!(scene.json(line)["revision"], 7, "{line}");
    }
    for line in [
        "set interface state wan sideways",
        "sflow sampling-rate many",
        "sflow enable-disable",
        "set interface mtu wan",
    ] {
        assert_eq!(scene.run(line).0, Some(2), "{line}");
    }
}

#[test]
fn a_plan_needs_no_router() {
    let place = Place::new();
    let old = place.file("old.yaml", "interfaces:\n  wan: { mtu: 1500 }\n  old: {}\n");
    let new = place.file("new.yaml", "interfaces:\n  wan: { mtu: 9000 }\n  new: {}\n");
    let (code, said, _) = run(&format!("config plan -c {new} --from {old}"));
    assert_eq!(code, Some(0));
    assert!(
        said.starts_with("prune\n")
            && said.contains("  - delete interface old\n")
            && said.contains("1500 -> 9000"),
        "{said}"
    );
    let (code, said, _) = run(&format!("--json config plan -c {new} --from {old}"));
    let plan: ConfigPlan = serde_json::from_str(&said).unwrap();
    assert_eq!(code, Some(0));
    assert!(
        plan.steps
            .iter()
            .any(|step| step.kind == "delete-interface" && step.object.ends_with("old")),
        "{said}"
    );
    let (code, said, _) = run(&format!("config plan -c {new} --offline"));
    assert!(
        code == Some(0)
            && said.contains("create interface new")
            && said.contains("without a device, carrying nothing: new, wan"),
        "{said}"
    );
    assert_eq!(
        run(&format!("config plan -c {new} --from {new}"))
            .1
            .lines()
            .next(),
        Some("nothing to do: the router is so already")
    );
    let (code, said, _) = run(&format!("config diff -c {new} --from {old}"));
    assert!(
        code == Some(0)
            && said.starts_with(&format!("--- {old}\n+++ {new}\n"))
            && said.contains("\n-"),
        "{said}"
    );
    assert_eq!(
        run(&format!("config diff -c {new} --from {new}")).1,
        "no difference\n"
    );
    let made_anew = place.file(
        "anew.yaml",
        "interfaces:\n  wan: { mtu: 1500, device: { driver: \"null\" } }\n  old: {}\n",
    );
    let said = run(&format!("config plan -c {made_anew} --from {old}")).1;
    assert!(
        said.contains("  - delete interface wan (its device changes"),
        "{said}"
    );
    let bad = place.file("bad.yaml", "interfaces: 7\n");
    for line in [
        format!("config plan -c {bad} --offline"),
        format!("config plan -c {new} --from {bad}"),
    ] {
        let (code, _, error) = run(&line);
        assert!(
            code == Some(4) && error.contains(&format!("weir: {bad} is refused")),
            "{error}"
        );
    }
}

#[test]
fn unsupported_keys_may_be_left_out() {
    let place = Place::new();
    let file = place.file(
        "vppcfg.yaml",
        "interfaces:\n  wan: { mtu: 1500, device-type: dpdk }\n",
    );
    assert_eq!(run(&format!("config check -c {file}")).0, Some(4));
    let (code, said, error) = run(&format!("config check -c {file} --skip-unsupported"));
    assert!(
        code == Some(0)
            && said.contains("1 warning\n")
            && said.ends_with("has no `device`, so no packets come in or leave there: wan\n")
            && error.contains("device-type"),
        "{code:?} {said} {error}"
    );
}

#[test]
fn events_are_reported_as_they_happen() {
    let scene = Scene::new();
    let events = scene.router.events.clone();
    let publish = std::thread::spawn(move || {
        let began = std::time::Instant::now();
        while !events.has_subscribers(Topic::Link) && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let link = |up: bool| {
            let time = Timestamp::from_unix_ms(0);
            Event::Link(LinkEvent {
                time,
                interface: "wan".to_owned(),
                index: 3,
                link: up.into(),
                speed: 10_000_000_000,
            })
        };
        events.publish(link(false));
        events.publish(link(true));
    });
    let said = scene.said("monitor events link -n 2");
    publish.join().unwrap();
    let expected = "1970-01-01T00:00:00.000Z  link      wan is down\n1970-01-01T00:00:00.000Z  link      wan is up, 10 Gbit/s\n";
    assert_eq!(said, expected);
    let counters = scene.json("show events counters -n 1");
    assert_eq!(counters["event"], "counters");
}

/// A router elsewhere: over TLS with a token from a file or the environment.
#[test]
fn a_router_elsewhere_is_asked_over_tls() {
    let place = Place::new();
    let pair = rcgen::KeyPair::generate().unwrap();
    let paper = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .self_signed(&pair)
        .unwrap();
    let ca = place.file("router.pem", &paper.pem());
    let tls = Tls {
        certificate: ca.clone().into(),
        key: place.file("router.key", &pair.serialize_pem()).into(),
        client_ca: None,
        client_role: Role::ReadOnly,
    };
    let mut settings = ServerSettings::new(place.0.join("api.sock"));
    let loopback = "127.0.0.1:0".parse().unwrap();
    settings.listeners = vec![
        TcpListen {
            address: loopback,
            tls: Some(tls),
        },
        TcpListen {
            address: loopback,
            tls: None,
        },
    ];
    settings.tokens = vec![
        Token::of("ada", "do", Role::Admin),
        Token::of("eve", "look", Role::ReadOnly),
    ];
    let server = Server::serve(&settings, Arc::new(Pretender::default())).unwrap();
    let [encrypted, plain] = server.tcp_addresses() else {
        panic!("two addresses")
    };
    let router = format!("--router localhost:{} --ca {ca}", encrypted.port());
    let token = place.file("token", "do\n");
    let ask = |token: &str, line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .args(line.split_whitespace())
            .env("WEIR_TOKEN", token)
            .env_remove("WEIR_SOCKET")
            .env_remove("WEIR_CA");
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    assert_eq!(
        ask("look", &format!("{router} config dump")).1,
        "# as it runs\ninterfaces: {}\n"
    );
    let (code, said, error) = ask("look", &format!("{router} set interface state wan down"));
    assert!(
        code == Some(1) && said.is_empty() && error.starts_with("weir: "),
        "{code:?} {error}"
    );
    let file = place.file("new.yaml", "interfaces: {}\n");
    let (code, said, _) = ask(
        "",
        &format!("{router} --token-file {token} config apply -c {file} --confirm 60s"),
    );
    assert!(
        code == Some(0)
            && said.ends_with(&format!(
                "weir {router} --token-file {token} config confirm\n"
            )),
        "{said}"
    );
    assert_eq!(
        ask("do", &format!("{router} complete fish -- show interface w")).1,
        "wan\t\n"
    );
    assert_eq!(
        ask("do", &format!("complete fish -- {router} show interface w")).1,
        "wan\t\n"
    );
    assert_eq!(
        ask("look", &format!("--router {plain} config dump")).0,
        Some(0)
    );
    for (token, line) in [
        ("", format!("{router} config dump")),
        ("wrong", format!("--router {plain} config dump")),
    ] {
        assert_eq!(ask(token, &line).0, Some(1), "{line}");
    }
    let unasked = ask(
        "look",
        &format!("--router localhost:{} config dump", encrypted.port()),
    );
    assert_eq!(
        unasked.0,
        Some(3),
        "without the CA it is not TLS: {unasked:?}"
    );
    let (code, _, error) = ask(
        "do",
        &format!(
            "{router} --token-file {}/none config dump",
            place.0.display()
        ),
    );
    assert!(code == Some(1) && error.contains("cannot read"), "{error}");
}
