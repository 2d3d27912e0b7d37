//! Changes of the configuration, through the whole router: applied, confirmed, undone, remembered.
//!
//! Generators and null ports only, so no root is needed. Each router has a folder of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_api::{
    ApplyRequest, Caller, ConfigText, DiffRequest, Edit, ErrorCode, InterfacePatch, LockReason,
    RollbackRequest, Router as _, SflowPatch, UpDown,
};
use weir_config::check;
use weir_engine::{Options, Router, Startup};

const ONE: &str =
    "interfaces: { xe0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ] } }\n";
const TWO: &str = "interfaces:
  xe0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ], mtu: 1400 }
  xe1: { device: { driver: 'null' }, addresses: [ 198.51.100.1/24 ] }
";
/// Passes every check, but the device cannot be opened.
const IMPOSSIBLE: &str = "interfaces:
  xe0: { device: { driver: 'null' }, addresses: [ 192.0.2.1/24 ], mtu: 1300 }
  xe2: { device: { driver: pcap, input: /nonexistent/in.pcap } }
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("weir-changes-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }

    /// A router started with this file, or with what ran last.
    fn start(&self, text: &str) -> Router {
        let config = check("weir.yaml", text).unwrap().0;
        let startup = Startup::choose("weir.yaml", text, config, &self.0, 50).unwrap();
        Router::start_from(startup, &Options::default()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file(text: &str) -> ApplyRequest {
    ApplyRequest {
        yaml: text.to_owned(),
        ..ApplyRequest::default()
    }
}

fn caller() -> Caller {
    Caller::router()
}

fn names(router: &Router) -> Vec<String> {
    router
        .interfaces()
        .unwrap()
        .interfaces
        .into_iter()
        .map(|interface| interface.name)
        .collect()
}

/// The MTU of xe0, which tells the files apart.
fn mtu(router: &Router) -> u64 {
    router.config().unwrap()["interfaces"]["xe0"]["mtu"]
        .as_u64()
        .unwrap_or(1500)
}

fn plan_is_empty(router: &Router, text: &str) -> bool {
    router
        .config_plan(&ConfigText {
            yaml: text.to_owned(),
            ..ConfigText::default()
        })
        .unwrap()
        .steps
        .is_empty()
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(20), "timed out");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_change_is_applied_dumped_and_taken_back() {
    let folder = Folder::new("apply");
    let router = folder.start(ONE);
    let applied = router
        .config_apply(
            &ApplyRequest {
                comment: Some("more".into()),
                ..file(TWO)
            },
            &caller(),
        )
        .unwrap();
    assert!(
        applied.steps.len() >= 3 && applied.confirm_by.is_none(),
        "{applied:?}"
    );
    assert_eq!(
        (names(&router), mtu(&router)),
        (vec!["xe0".to_owned(), "xe1".to_owned()], 1400)
    );
    let dump = router.config_dump().unwrap().yaml;
    assert!(plan_is_empty(&router, &dump), "{dump}");
    let again = router.config_apply(&file(TWO), &caller()).unwrap();
    assert!(again.steps.is_empty() && again.revision == applied.revision);
    let history = router.config_history(10, None).unwrap();
    let received: Vec<_> = history
        .revisions
        .iter()
        .map(|it| (it.comment.as_str(), it.running, it.confirmed))
        .collect();
    assert_eq!(
        received,
        [("more", true, true), ("start with weir.yaml", false, true)]
    );
    assert_eq!(router.config_revision(applied.revision).unwrap().yaml, TWO);
    assert!(
        !router
            .config_diff(&DiffRequest {
                revision: Some(1),
                yaml: None
            })
            .unwrap()
            .diff
            .is_empty()
    );
    let back = router
        .config_rollback(&RollbackRequest::default(), &caller())
        .unwrap();
    assert!(back.revision > applied.revision);
    assert_eq!(
        (names(&router), mtu(&router)),
        (vec!["xe0".to_owned()], 1500)
    );
    assert!(plan_is_empty(&router, ONE));
    let gone = router.config_rollback(
        &RollbackRequest {
            revision: Some(77),
            ..RollbackRequest::default()
        },
        &caller(),
    );
    assert_eq!(gone.unwrap_err().code, ErrorCode::NotFound);
    router.stop();
}

#[test]
fn a_change_that_nobody_confirms_is_undone_and_one_that_is_stays() {
    let folder = Folder::new("confirm");
    let router = folder.start(ONE);
    let wait = |seconds| ApplyRequest {
        confirm_seconds: Some(seconds),
        ..file(TWO)
    };
    assert!(
        router
            .config_apply(&wait(1), &caller())
            .unwrap()
            .confirm_by
            .is_some()
    );
    assert_eq!(mtu(&router), 1400);
    let refused = router.config_apply(&file(ONE), &caller()).unwrap_err();
    assert_eq!(
        refused.lock.map(|lock| lock.reason),
        Some(LockReason::ConfirmPending)
    );
    wait_for(|| mtu(&router) == 1500);
    wait_for(|| router.config_history(10, None).unwrap().lock.is_none());
    assert_eq!(names(&router), ["xe0"]);
    assert_eq!(
        router.config_confirm(&caller()).unwrap_err().code,
        ErrorCode::Conflict
    );

    let applied = router.config_apply(&wait(1), &caller()).unwrap();
    assert_eq!(
        router.config_confirm(&caller()).unwrap().revision,
        applied.revision
    );
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(mtu(&router), 1400);

    router
        .config_apply(
            &ApplyRequest {
                confirm_seconds: Some(3600),
                ..file(ONE)
            },
            &caller(),
        )
        .unwrap();
    assert_eq!(mtu(&router), 1500);
    router
        .config_rollback(&RollbackRequest::default(), &caller())
        .unwrap();
    assert_eq!(mtu(&router), 1400);
    router.stop();
}

#[test]
fn the_history_compares_with_what_was_in_force() {
    let folder = Folder::new("in-force");
    let router = folder.start(ONE);
    let undone = ApplyRequest {
        confirm_seconds: Some(3600),
        ..file(TWO)
    };
    router.config_apply(&undone, &caller()).unwrap();
    router
        .config_rollback(&RollbackRequest::default(), &caller())
        .unwrap();
    // Two lines more than the file, which is in force again.
    let next =
        format!("{ONE}# a comment\nroutes: [{{ prefix: 203.0.113.0/24, via: blackhole }}]\n");
    let applied = router.config_apply(&file(&next), &caller()).unwrap();
    let changed = |revision: u64| {
        let history = router.config_history(10, None).unwrap().revisions;
        let listed = history.iter().find(|it| it.revision == revision).unwrap();
        let alone = router.config_revision(revision).unwrap().revision;
        let lines = (listed.lines_added, listed.lines_removed);
        assert_eq!((alone.lines_added, alone.lines_removed), lines);
        lines
    };
    assert_eq!(changed(applied.revision), (2, 0));
    assert_eq!(changed(applied.revision - 1), (3, 1));
    router.stop();
}

#[test]
fn what_fails_half_way_changes_nothing() {
    let folder = Folder::new("half");
    let router = folder.start(TWO);
    // The numbers that groups and adjacencies happen to have may be others.
    let routes = || {
        let mut all = router.routes().unwrap().routes;
        all.iter_mut().for_each(|route| {
            route.group = None;
            route
                .paths
                .iter_mut()
                .for_each(|path| path.adjacency_number = 0);
        });
        all
    };
    let before = (router.config().unwrap(), routes(), names(&router));
    let error = router
        .config_apply(&file(IMPOSSIBLE), &caller())
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict, "{error:?}");
    assert!(error.message.contains("/nonexistent/in.pcap"), "{error:?}");
    assert_eq!((router.config().unwrap(), routes(), names(&router)), before);
    assert_eq!(router.config_history(10, None).unwrap().revisions.len(), 1);
    let broken = router
        .config_apply(&file("interfaces: { xe0: { mut: 1 }, xe1: 7 }"), &caller())
        .unwrap_err();
    assert_eq!(
        (broken.code, broken.findings.len()),
        (ErrorCode::Invalid, 2),
        "{broken:?}"
    );
    router.stop();
}

#[test]
fn a_restart_takes_what_ran_last_unless_the_file_was_edited() {
    let folder = Folder::new("restart");
    let router = folder.start(ONE);
    router.config_apply(&file(TWO), &caller()).unwrap();
    router.stop();
    drop(router);
    let router = folder.start(ONE);
    assert_eq!(mtu(&router), 1400, "what was applied survives");
    router
        .config_apply(
            &ApplyRequest {
                confirm_seconds: Some(3600),
                ..file(ONE)
            },
            &caller(),
        )
        .unwrap();
    assert_eq!(mtu(&router), 1500);
    // As if killed: the change that waits is neither confirmed nor undone.
    router.stop();
    drop(router);
    let router = folder.start(ONE);
    assert_eq!(
        mtu(&router),
        1400,
        "what was not confirmed does not survive"
    );
    assert!(router.config_history(10, None).unwrap().lock.is_none());
    router.stop();
    drop(router);
    let edited = ONE.replace("192.0.2.1", "192.0.2.2");
    let router = folder.start(&edited);
    assert_eq!(mtu(&router), 1500, "an edited file counts");
    assert!(router.reload("weir.yaml", TWO, false).unwrap().steps.len() >= 3);
    router.stop();
    drop(router);
    assert_eq!(mtu(&folder.start(TWO)), 1400);
}

#[test]
fn short_edits_are_changes_too() {
    let folder = Folder::new("edit");
    let router = folder.start(TWO);
    let patch = SflowPatch {
        sampling_rate: Edit::Set(100),
        header_bytes: Edit::Set(64),
        ..SflowPatch::default()
    };
    router.sflow_patch(&patch, &caller()).unwrap();
    let on = InterfacePatch {
        sflow: Edit::Set(true),
        state: Edit::Set(UpDown::Down),
        ..InterfacePatch::default()
    };
    router.interface_patch("xe1", &on, &caller()).unwrap();
    let (config, sflow) = (router.config().unwrap(), router.sflow().unwrap());
    assert_eq!(
        (sflow.settings.sampling_rate, sflow.settings.header_bytes),
        (100, 64)
    );
    assert_eq!(
        (
            &config["interfaces"]["xe1"]["sflow"],
            &config["interfaces"]["xe1"]["state"]
        ),
        (&true.into(), &"down".into())
    );
    router
        .sflow_patch(
            &SflowPatch {
                sampling_rate: Edit::Unset,
                ..SflowPatch::default()
            },
            &caller(),
        )
        .unwrap();
    assert_eq!(router.sflow().unwrap().settings.sampling_rate, 10_000);
    let wrong = router
        .sflow_patch(
            &SflowPatch {
                header_bytes: Edit::Set(100_000),
                ..SflowPatch::default()
            },
            &caller(),
        )
        .unwrap_err();
    assert_eq!(wrong.code, ErrorCode::Invalid);
    assert_eq!(
        router
            .interface_patch("xe9", &on, &caller())
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
    assert_eq!(router.config_history(10, None).unwrap().revisions.len(), 4);
    router.stop();
}

#[test]
fn settings_that_an_interface_lacks_are_refused() {
    let folder = Folder::new("lacks");
    let text = "interfaces:
  xe0: { device: { driver: 'null' }, sub-interfaces: { 10: { addresses: [ 192.0.2.1/24 ] } } }
loopbacks: { loop0: { addresses: [ 203.0.113.1/32 ] } }
";
    let router = folder.start(text);
    let down = InterfacePatch {
        state: Edit::Set(UpDown::Down),
        ..InterfacePatch::default()
    };
    let sflow = InterfacePatch {
        sflow: Edit::Set(true),
        ..InterfacePatch::default()
    };
    for (name, patch, message) in [
        (
            "loop0",
            &down,
            "loop0 is a loopback: it has no setting `state`",
        ),
        (
            "loop0",
            &sflow,
            "loop0 is a loopback: it has no setting `sflow`",
        ),
        (
            "xe0.10",
            &sflow,
            "xe0.10 is a sub-interface: it has no setting `sflow`",
        ),
    ] {
        let refused = router.interface_patch(name, patch, &caller()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::BadRequest, "{refused:?}");
        assert_eq!(refused.message, message);
    }
    assert_eq!(router.config_history(10, None).unwrap().revisions.len(), 1);
    router.stop();
}

#[test]
fn without_a_history_a_rollback_names_the_key() {
    let config = check("weir.yaml", ONE).unwrap().0;
    let startup = Startup::without_history(config, ONE);
    let router = Router::start_from(startup, &Options::default()).unwrap();
    let request = RollbackRequest::default();
    let refused = router.config_rollback(&request, &caller()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotAvailable);
    assert!(refused.help.contains("`history.directory`"), "{refused:?}");
    router.stop();
}

#[test]
fn two_at_once_are_distinguished_and_none_is_half_done() {
    let folder = Folder::new("two");
    let router = folder.start(ONE);
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let router = router.clone();
            let text = if number % 2 == 0 { ONE } else { TWO };
            std::thread::spawn(move || {
                (0..20)
                    .map(|_| router.config_apply(&file(text), &caller()))
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut refused = 0;
    for result in threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
    {
        if let Err(error) = result {
            assert_eq!(
                (error.code, error.lock.map(|lock| lock.reason)),
                (ErrorCode::Conflict, Some(LockReason::ApplyRunning))
            );
            refused += 1;
        }
    }
    assert!(refused < 160, "somebody got through");
    assert!(plan_is_empty(
        &router,
        if mtu(&router) == 1400 { TWO } else { ONE }
    ));
    router.stop();
}

#[test]
fn a_comment_in_the_file_does_not_drop_a_change_over_the_api() {
    let folder = Folder::new("comment");
    let router = folder.start(ONE);
    let patch = InterfacePatch {
        mtu: Edit::Set(1300),
        ..InterfacePatch::default()
    };
    router.interface_patch("xe0", &patch, &caller()).unwrap();
    router.stop();
    drop(router);
    let router = folder.start(&format!("# a comment\n{ONE}"));
    assert_eq!(mtu(&router), 1300);
    router.stop();
    drop(router);
    // An edit of the file counts.
    let router = folder.start(&ONE.replace("192.0.2.1", "192.0.2.2"));
    assert_eq!(mtu(&router), 1500);
    router.stop();
}

#[test]
fn a_lower_mtu_of_a_parent_is_that_of_its_sub_interfaces() {
    let folder = Folder::new("parent");
    let router = folder.start(
        "interfaces: { xe0: { device: { driver: 'null' }, mtu: 9000, sub-interfaces: {
           7: { encapsulation: { dot1q: 7, exact-match: true } },
           8: { encapsulation: { dot1q: 8, exact-match: true }, mtu: 1280 } } } }\n",
    );
    let patch = InterfacePatch {
        mtu: Edit::Set(1400),
        ..InterfacePatch::default()
    };
    router.interface_patch("xe0", &patch, &caller()).unwrap();
    let dump = router.config_dump().unwrap().yaml;
    assert_eq!(dump.matches("mtu:").count(), 2, "{dump}");
    let mtu_of = |name: &str| {
        let all = router.interfaces().unwrap().interfaces;
        all.iter().find(|it| it.name == name).unwrap().mtu
    };
    assert_eq!((mtu_of("xe0.7"), mtu_of("xe0.8")), (1400, 1280));
    router.stop();
}

#[test]
fn hashes_of_tokens_do_not_leave_the_router_and_a_dump_can_be_applied() {
    let hash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let folder = Folder::new("hashes");
    let api = format!(
        "api: {{ listen: [{{ address: 127.0.0.1 }}], tokens: [{{ name: a, sha256: {hash} }}] }}\n"
    );
    let router = folder.start(&format!("{ONE}{api}"));
    let dump = router.config_dump().unwrap().yaml;
    let config = router.config().unwrap().to_string();
    let diff = router
        .config_diff(&DiffRequest {
            yaml: Some(ONE.to_owned()),
            ..DiffRequest::default()
        })
        .unwrap()
        .diff;
    let edited = dump.replace("192.0.2.1/24", "192.0.2.9/24");
    router.config_apply(&file(&edited), &caller()).unwrap();
    let running = router.config_history(1, None).unwrap().revisions[0].revision;
    let kept = router.config_revision(running).unwrap().yaml;
    for shown in [&dump, &config, &diff, &kept] {
        assert!(shown.contains("hidden") && !shown.contains(hash), "{shown}");
    }
    assert_eq!(router.running().api.tokens[0].sha256.to_string(), hash);
    // The router starts with the hash again.
    router.stop();
    drop(router);
    let router = folder.start(&format!("{ONE}{api}"));
    assert_eq!(router.running().api.tokens[0].sha256.to_string(), hash);
    router.stop();
}

#[test]
fn tokens_change_without_a_restart() {
    let folder = Folder::new("tokens");
    let router = folder.start(ONE);
    let api = |role| {
        let hash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
        format!("{ONE}api: {{ tokens: [{{ name: a, role: {role}, sha256: {hash} }}] }}\n")
    };
    for role in ["admin", "read-only"] {
        let applied = router.config_apply(&file(&api(role)), &caller()).unwrap();
        assert!(applied.needs_restart.is_empty(), "{applied:?}");
        assert!(applied.steps[0].text.contains("set access"), "{applied:?}");
    }
    // Where the API listens needs one.
    let elsewhere = api("admin").replace("api: {", "api: { socket: /run/weir/other.sock,");
    let applied = router.config_apply(&file(&elsewhere), &caller()).unwrap();
    assert_eq!(applied.needs_restart, ["api"]);
    router.stop();
}

const COMMENTED: &str = "# the router of the north
interfaces:
  xe0:  # to the world
    device: { driver: 'null' }
    mtu: 1500  # PPPoE comes later
    addresses: [ 192.0.2.1/24 ]
";

/// The text of the newest revision.
fn newest(router: &Router) -> String {
    let history = router.config_history(1, None).unwrap();
    let revision = history.revisions.first().unwrap().revision;
    router.config_revision(revision).unwrap().yaml
}

#[test]
fn edits_keep_the_comments_of_the_text() {
    let folder = Folder::new("comments");
    let router = folder.start(COMMENTED);
    let patch = InterfacePatch {
        mtu: Edit::Set(1400),
        description: Edit::Set("it's # one".into()),
        ..InterfacePatch::default()
    };
    let applied = router.interface_patch("xe0", &patch, &caller()).unwrap();
    assert!(applied.findings.is_empty(), "{:?}", applied.findings);
    let expected = COMMENTED
        .replace("mtu: 1500", "mtu: 1400")
        .replace("    device:", "    description: 'it''s # one'\n    device:");
    assert_eq!(newest(&router), expected);
    let rate = SflowPatch {
        sampling_rate: Edit::Set(77),
        ..SflowPatch::default()
    };
    router.sflow_patch(&rate, &caller()).unwrap();
    let expected = format!("{expected}sflow:\n  sampling-rate: 77\n");
    assert_eq!(newest(&router), expected);
    router.stop();
    drop(router);
    // The edits and the comments are there after a restart, too.
    let router = folder.start(COMMENTED);
    let state = InterfacePatch {
        state: Edit::Set(UpDown::Down),
        ..InterfacePatch::default()
    };
    router.interface_patch("xe0", &state, &caller()).unwrap();
    assert_eq!(
        newest(&router),
        expected.replace("    description:", "    state: down\n    description:")
    );
    router.stop();
}

#[test]
fn an_edit_that_cannot_be_made_in_place_says_what_is_lost() {
    let folder = Folder::new("lost-comments");
    // Both interfaces share the section: changing it in place would change the other one, too.
    let text = "# why\ninterfaces:\n  xe0: &port { device: { driver: 'null' }, mtu: 1500 }\n  xe1: *port\n";
    let router = folder.start(text);
    let patch = InterfacePatch {
        mtu: Edit::Set(1400),
        ..InterfacePatch::default()
    };
    let applied = router.interface_patch("xe0", &patch, &caller()).unwrap();
    let [finding] = applied.findings.as_slice() else {
        panic!("{:?}", applied.findings)
    };
    assert!(finding.message.contains("without comments"), "{finding:?}");
    assert_eq!(router.running().interfaces["xe0"].mtu, 1400);
    assert_eq!(router.running().interfaces["xe1"].mtu, 1500);
    assert!(!newest(&router).contains('#'));
    let before = router.config_revision(applied.revision - 1).unwrap();
    assert_eq!(before.yaml, text, "the copy with comments");
    router.stop();
}

#[test]
fn a_history_without_a_state_starts_with_the_file() {
    let folder = Folder::new("no-state");
    let router = folder.start(ONE);
    router.config_apply(&file(TWO), &caller()).unwrap();
    router.stop();
    drop(router);
    for state in ["state.a", "state.b"] {
        std::fs::write(folder.0.join(state), "garbled").unwrap();
    }
    let router = folder.start(ONE);
    assert_eq!(router.running().interfaces.len(), 1, "the file counts");
    let history = router.config_history(10, None).unwrap();
    assert!(history.revisions.len() >= 2, "{history:?}");
    assert!(
        history
            .revisions
            .iter()
            .any(|it| router.config_revision(it.revision).unwrap().yaml == TWO),
        "the revisions are kept"
    );
    router.stop();
    drop(router);
    // A folder that cannot be read at all: no history, and the system says so.
    for state in ["state.a", "state.b"] {
        std::fs::remove_file(folder.0.join(state)).unwrap();
        std::fs::create_dir(folder.0.join(state)).unwrap();
    }
    let router = folder.start(ONE);
    assert_eq!(router.running().interfaces.len(), 1);
    let problems = router.system().unwrap().problems;
    assert!(
        problems
            .iter()
            .any(|it| it.message.contains("the history cannot be read")),
        "{problems:?}"
    );
    router.stop();
}
