//! The configuration over the API: what the client sends is what the router gets, what the router
//! says is what the client reads, and what makes no sense is refused before the router sees it.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Mood, Place, TestRouter, finding, lock, plain, step};
use weir_api::*;

fn running(mood: Mood) -> (Place, Arc<TestRouter>, ServerHandle, Client) {
    let place = Place::new();
    let router = Arc::new(TestRouter::new(mood));
    let server = Server::start(&place.socket(), Arc::clone(&router) as Arc<dyn Router>).unwrap();
    let client = Client::new(place.socket());
    (place, router, server, client)
}

fn text(yaml: &str) -> ConfigText {
    ConfigText {
        yaml: yaml.to_owned(),
        file: Some("w.yaml".to_owned()),
        skip_unsupported: false,
    }
}

#[test]
fn a_file_is_checked_planned_and_compared() {
    let (_place, router, _server, client) = running(Mood::Good);
    assert_eq!(
        client.config_check(&text("a: 1")).unwrap(),
        ConfigChecked {
            ok: true,
            findings: vec![]
        }
    );
    assert_eq!(
        client.config_check(&text("bad")).unwrap(),
        ConfigChecked {
            ok: false,
            findings: vec![finding("w.yaml")]
        }
    );
    assert_eq!(
        client.config_plan(&text("a: 1")).unwrap(),
        router.config_plan(&text("a: 1")).unwrap()
    );
    let refusal = client.config_plan(&text("bad")).unwrap_err();
    let refusal = refusal.refusal().unwrap();
    assert_eq!(
        (refusal.code, &refusal.findings),
        (ErrorCode::Invalid, &vec![finding("w.yaml")])
    );
    let request = DiffRequest {
        revision: Some(3),
        yaml: None,
    };
    assert_eq!(
        client.config_diff(&request).unwrap().diff,
        format!("{request:?}")
    );
    assert_eq!(client.config_dump().unwrap(), router.config_dump().unwrap());
    assert_eq!(
        client.config_schema().unwrap(),
        router.config_schema().unwrap()
    );
    assert!(router.is_untouched());
}

#[test]
fn a_change_is_done_and_says_when_it_is_undone() {
    let (_place, router, _server, client) = running(Mood::Good);
    let request = ApplyRequest {
        yaml: "a: 1\n".to_owned(),
        comment: Some("why – \"quoted\"".to_owned()),
        confirm_seconds: Some(300),
        ..ApplyRequest::default()
    };
    let applied = client.config_apply(&request).unwrap();
    assert_eq!((applied.revision, applied.steps), (17, vec![step()]));
    assert_eq!(
        applied.confirm_by.unwrap().to_string(),
        "1970-01-01T00:05:00.000Z"
    );
    assert_eq!(client.config_confirm().unwrap(), Confirmed { revision: 17 });
    assert_eq!(
        client
            .config_rollback(&RollbackRequest {
                steps_back: Some(2),
                ..RollbackRequest::default()
            })
            .unwrap()
            .revision,
        18
    );
    let changes = router.changes.lock().unwrap();
    // Who names no author is the author.
    let user = changes[0].1.author();
    assert_eq!(
        changes[0].0,
        format!(
            "{:?}",
            ApplyRequest {
                author: Some(user.clone()),
                ..request
            }
        )
    );
    let rollback = RollbackRequest {
        steps_back: Some(2),
        author: Some(user),
        ..RollbackRequest::default()
    };
    assert_eq!(changes[2].0, format!("{rollback:?}"));
}

#[test]
fn without_a_wait_the_reply_says_null() {
    let (place, _router, _server, _client) = running(Mood::Good);
    let (status, reply, _) = plain(
        &place.socket(),
        "POST",
        "/v1/config/apply",
        r#"{"yaml": ""}"#,
    );
    assert_eq!(
        (status, reply.get("confirm_by")),
        (200, Some(&serde_json::Value::Null))
    );
}

#[test]
fn refusals_say_who_holds_the_lock_what_is_wrong_and_that_nothing_changed() {
    let request = |yaml: &str| ApplyRequest {
        yaml: yaml.to_owned(),
        file: Some("w.yaml".to_owned()),
        ..ApplyRequest::default()
    };
    let (place, router, server, client) = running(Mood::Locked);
    let error = client.config_apply(&request("a: 1")).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code, refusal.lock.as_deref()),
        (ErrorCode::Conflict, Some(&lock()))
    );
    assert!(error.to_string().contains("ana (pid 4711)"), "{error}");
    let (status, reply, _) = plain(
        &place.socket(),
        "POST",
        "/v1/config/apply",
        r#"{"yaml": "a: 1"}"#,
    );
    assert_eq!(
        (
            status,
            &reply["error"]["lock"]["uid"],
            &reply["error"]["lock"]["reason"]
        ),
        (409, &1000.into(), &"confirm-pending".into())
    );
    assert_eq!(
        client.config_history(None, None).unwrap().lock,
        Some(lock())
    );
    assert!(router.is_untouched());
    drop(server);

    let (place, router, _server, _client) = running(Mood::Full);
    let (status, reply, _) = plain(
        &place.socket(),
        "POST",
        "/v1/config/apply",
        r#"{"yaml": "a: 1"}"#,
    );
    assert_eq!((status, &reply["error"]["code"]), (507, &"no-room".into()));
    assert_eq!(
        reply["error"]["message"],
        "the configuration cannot be saved: No space left on device"
    );
    assert!(router.is_untouched());

    let (place, router, _server, _client) = running(Mood::Good);
    let (status, reply, _) = plain(
        &place.socket(),
        "POST",
        "/v1/config/apply",
        r#"{"yaml": "bad", "file": "x.yaml"}"#,
    );
    assert_eq!(
        (status, &reply["error"]["findings"][0]["file"]),
        (422, &"x.yaml".into())
    );
    assert_eq!(reply["error"]["message"], "the configuration has an error");
    assert!(router.is_untouched());
}

#[test]
fn the_history_comes_in_pages() {
    let (_place, router, _server, client) = running(Mood::Good);
    let page = |limit, before| {
        let history = client.config_history(limit, before).unwrap();
        (
            history
                .revisions
                .iter()
                .map(|it| it.revision)
                .collect::<Vec<_>>(),
            history.next,
        )
    };
    assert_eq!(page(Some(3), None), (vec![7, 6, 5], Some(5)));
    assert_eq!(page(Some(3), Some(5)), (vec![4, 3, 2], Some(2)));
    assert_eq!(page(Some(3), Some(2)), (vec![1], None));
    assert_eq!(page(None, None), (vec![7, 6, 5, 4, 3, 2, 1], None));
    assert_eq!(
        client.config_revision(3).unwrap(),
        router.config_revision(3).unwrap()
    );
    assert_eq!(
        client
            .config_revision(99)
            .unwrap_err()
            .refusal()
            .unwrap()
            .code,
        ErrorCode::NotFound
    );
}

#[test]
fn edits_tell_absent_from_null() {
    let (place, router, _server, client) = running(Mood::Good);
    let patch = SflowPatch {
        sampling_rate: 1000.into(),
        header_bytes: Edit::Unset,
        ..SflowPatch::default()
    };
    assert_eq!(client.sflow_patch(&patch).unwrap().revision, 19);
    let edit = InterfacePatch {
        state: UpDown::Down.into(),
        description: Edit::Unset,
        ..InterfacePatch::default()
    };
    assert_eq!(
        client.interface_patch("lan & co", &edit).unwrap().revision,
        20
    );
    {
        let changes = router.changes.lock().unwrap();
        assert_eq!(changes[0].0, format!("{patch:?}"));
        assert_eq!(changes[1].0, format!("{:?}", ("lan & co", &edit)));
    }
    assert_eq!(
        client
            .interface_patch("vlan", &edit)
            .unwrap_err()
            .to_string(),
        "no interface \"vlan\" (known: wan, lan & co)"
    );
    let merge = "PATCH /v1/sflow HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Type: application/merge-patch+json\r\n";
    let reply = common::raw(
        &place.socket(),
        format!("{merge}Content-Length: 19\r\n\r\n{{\"header_bytes\":64}}").as_bytes(),
    );
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
}

#[test]
fn what_makes_no_sense_never_reaches_the_router() {
    let (place, router, _server, _client) = running(Mood::Good);
    let long = "x".repeat(1001);
    for (method, path, body, sentence) in [
        (
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "", "confirm_seconds": 0}"#.to_owned(),
            "cannot wait 0 s",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "", "confirm_seconds": 86401}"#.to_owned(),
            "cannot wait 86401 s",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "", "author": "a\u001b[31m"}"#.to_owned(),
            "`author` has control characters",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "", "file": "a\nb"}"#.to_owned(),
            "`file` has control characters",
        ),
        (
            "POST",
            "/v1/config/apply",
            format!(r#"{{"yaml": "", "comment": "{long}"}}"#),
            "`comment` is longer than 1000 characters",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#"{"comment": "no file"}"#.to_owned(),
            "missing field `yaml`",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "", "confirm": 5}"#.to_owned(),
            "unknown field `confirm`",
        ),
        (
            "POST",
            "/v1/config/apply",
            r#" ["a: 1"]"#.to_owned(),
            "it is a list",
        ),
        (
            "POST",
            "/v1/config/rollback",
            "[null, null]".to_owned(),
            "it is a list",
        ),
        (
            "POST",
            "/v1/config/apply",
            "[".repeat(100_000),
            "the body is not a configuration to apply",
        ),
        (
            "POST",
            "/v1/config/check",
            r#"{"yaml": 7}"#.to_owned(),
            "invalid type",
        ),
        (
            "POST",
            "/v1/config/diff",
            "{}".to_owned(),
            "has one of `yaml` and `revision`",
        ),
        (
            "POST",
            "/v1/config/diff",
            r#"{"yaml": "", "revision": 1}"#.to_owned(),
            "has one of `yaml` and `revision`",
        ),
        (
            "POST",
            "/v1/config/rollback",
            r#"{"steps_back": 1, "revision": 1}"#.to_owned(),
            "at most one of",
        ),
        (
            "POST",
            "/v1/config/rollback",
            r#"{"steps_back": 0}"#.to_owned(),
            "no steps back",
        ),
        ("PATCH", "/v1/sflow", "{}".to_owned(), "the edit has no key"),
        (
            "PATCH",
            "/v1/sflow",
            r#"{"sampling_rate": -1}"#.to_owned(),
            "the body is not an edit of sFlow",
        ),
        (
            "PATCH",
            "/v1/sflow",
            r#"{"sampling_rate": 4294967296}"#.to_owned(),
            "the body is not an edit of sFlow",
        ),
        (
            "PATCH",
            "/v1/interfaces/wan",
            r#"{"state": "sideways"}"#.to_owned(),
            "the body is not an edit of an interface",
        ),
        (
            "PATCH",
            "/v1/interfaces/wan",
            "null".to_owned(),
            "the body is not an edit of an interface",
        ),
        (
            "GET",
            "/v1/config/history/x",
            String::new(),
            "is not the number of a revision",
        ),
        (
            "GET",
            "/v1/config/history?before=9007199254740992",
            String::new(),
            "before cannot be 9007199254740992",
        ),
        (
            "GET",
            "/v1/config/history?limit=0",
            String::new(),
            "limit cannot be 0",
        ),
        (
            "GET",
            "/v1/mpls-fib?label=1048576",
            String::new(),
            "label cannot be 1048576",
        ),
    ] {
        let (status, reply, _) = plain(&place.socket(), method, path, &body);
        assert_eq!(
            (status, &reply["error"]["code"]),
            (400, &"bad-request".into()),
            "{method} {path} {reply}"
        );
        assert!(
            reply["error"]["message"]
                .as_str()
                .unwrap()
                .contains(sentence),
            "{reply}"
        );
    }
    assert!(router.is_untouched());
}

#[test]
fn a_body_that_is_no_json_by_its_own_word_is_refused() {
    let (place, router, _server, _client) = running(Mood::Good);
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "\u{ff}",
    ] {
        let head = format!(
            "POST /v1/config/apply HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Type: {kind}\r\n"
        );
        let reply = common::raw(
            &place.socket(),
            format!("{head}Content-Length: 12\r\n\r\n{{\"yaml\": \"\"}}").as_bytes(),
        );
        assert!(reply.starts_with("HTTP/1.1 415 "), "{reply}");
    }
    assert!(router.is_untouched());
}

#[test]
fn a_configuration_may_be_large_but_not_larger() {
    let place = Place::new();
    let limits = Limits {
        body_bytes: 1000,
        config_bytes: 100_000,
        ..Limits::default()
    };
    let router = Arc::new(TestRouter::new(Mood::Good));
    let _server = Server::start_with(
        &place.socket(),
        Arc::clone(&router) as Arc<dyn Router>,
        limits,
    )
    .unwrap();
    let body = |bytes: usize| format!(r#"{{"yaml": "{}"}}"#, "x".repeat(bytes - 12));
    assert_eq!(
        plain(&place.socket(), "POST", "/v1/config/apply", &body(100_000)).0,
        200
    );
    assert_eq!(
        plain(&place.socket(), "POST", "/v1/config/apply", &body(100_001)).0,
        413
    );
    assert_eq!(
        plain(
            &place.socket(),
            "PATCH",
            "/v1/sflow",
            &format!("{}{{}}", " ".repeat(99_998))
        )
        .0,
        400
    );
    assert_eq!(
        plain(
            &place.socket(),
            "POST",
            "/v1/trace",
            &format!("{}{{}}", " ".repeat(999))
        )
        .0,
        413
    );
    assert_eq!(router.changes.lock().unwrap().len(), 1);
}

#[test]
fn large_bodies_wait_for_each_other_and_small_ones_do_not() {
    let place = Place::new();
    let limits = Limits {
        body_bytes: 1000,
        configs: 1,
        answer_time: Duration::from_millis(300),
        body_time: Duration::from_secs(10),
        ..Limits::default()
    };
    let _server = Server::start_with(
        &place.socket(),
        Arc::new(TestRouter::new(Mood::Good)),
        limits,
    )
    .unwrap();
    // It holds the only place for a large body, and does not send it.
    let mut slow = std::os::unix::net::UnixStream::connect(place.socket()).unwrap();
    std::io::Write::write_all(
        &mut slow,
        b"POST /v1/config/check HTTP/1.1\r\nHost: weir\r\nContent-Length: 2000\r\n\r\n{",
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let large = format!(r#"{{"yaml": "{}"}}"#, "x".repeat(2000));
    let (status, reply, _) = plain(&place.socket(), "POST", "/v1/config/check", &large);
    assert_eq!(
        (status, &reply["error"]["code"]),
        (503, &"unavailable".into())
    );
    assert_eq!(
        plain(
            &place.socket(),
            "POST",
            "/v1/config/check",
            r#"{"yaml": ""}"#
        )
        .0,
        200
    );
    drop(slow);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(
        plain(&place.socket(), "POST", "/v1/config/check", &large).0,
        200
    );
}

#[test]
fn what_a_router_lacks_is_reported_as_such() {
    /// It has what it must have, and that is little.
    struct Bare;
    impl Router for Bare {
        fn version(&self) -> Result<Version, ApiError> {
            TestRouter::new(Mood::Good).version()
        }
        fn interfaces(&self) -> Result<Interfaces, ApiError> {
            Ok(Interfaces {
                interfaces: vec![common::interface("wan", 1)],
            })
        }
        fn hardware(&self) -> Result<Hardware, ApiError> {
            Ok(Hardware::default())
        }
        fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
            Ok(RxPlacement::default())
        }
        fn runtime(&self) -> Result<Runtime, ApiError> {
            Ok(Runtime::default())
        }
        fn errors(&self) -> Result<Errors, ApiError> {
            Ok(Errors::default())
        }
        fn neighbors(&self) -> Result<Neighbors, ApiError> {
            Ok(Neighbors::default())
        }
        fn routes(&self) -> Result<Routes, ApiError> {
            Ok(Routes::default())
        }
        fn sflow(&self) -> Result<Sflow, ApiError> {
            Ok(common::sflow())
        }
        fn trace(&self) -> Result<Trace, ApiError> {
            Ok(Trace::default())
        }
        fn trace_add(&self, _: &TraceRequest) -> Result<(), ApiError> {
            Ok(())
        }
        fn trace_clear(&self) -> Result<(), ApiError> {
            Ok(())
        }
        fn totals(&self) -> Result<Totals, ApiError> {
            Ok(Totals::default())
        }
        fn config(&self) -> Result<serde_json::Value, ApiError> {
            Ok(serde_json::json!({}))
        }
        fn clear(&self, _: Clear) -> Result<(), ApiError> {
            Ok(())
        }
    }
    let place = Place::new();
    let _server = Server::start(&place.socket(), Arc::new(Bare)).unwrap();
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.errors.contains(&ErrorCode::NotAvailable))
    {
        let (mut path, body) = common::fitting(endpoint);
        path = path.replace("lan%20%26%20co", "wan");
        let (status, reply, _) = plain(&place.socket(), endpoint.method, &path, body);
        assert_eq!(
            (status, &reply["error"]["code"]),
            (501, &"not-available".into()),
            "{} {path}",
            endpoint.method
        );
    }
    // Metrics tell what there is.
    let text = Client::new(place.socket()).metrics().unwrap();
    assert!(
        text.contains("weir_interface_mtu_bytes{interface=\"wan\"} 1500")
            && !text.contains("weir_buffers"),
        "{text}"
    );
}
