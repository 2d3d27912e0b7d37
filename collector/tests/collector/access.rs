//! Who sees what: tenants on every endpoint, the proxy's header, requests of other sites, parquet exports.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use weir_collector::bench::sflow_datagram;

use crate::{Running, send, start};

const CONFIG: &str = "exporters:\n  192.0.2.1: {name: shared1, interfaces: {1: wan, 2: lan}}\n\
                      networks:\n  10.0.0.0/13: {name: secret-a-net, site: secret-a-site, tenant: a}\n  10.8.0.0/13: {name: secret-b-net, site: secret-b-site, tenant: b}\n";

fn token(folder: &std::path::Path, tenant: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-collector"));
    command.args(["token", "--data"]).arg(folder.join("data"));
    if let Some(tenant) = tenant {
        command.args(["--tenant", tenant]);
    }
    let output = command.arg("test").output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let secret = String::from_utf8(output.stdout).expect("text");
    format!("Bearer {}", secret.trim())
}

fn get(running: &Running, path: &str, token: &str) -> (u16, Value) {
    let (status, text) = running.raw(path, &[("authorization", token)]);
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn a_tenant_sees_its_own_rows_only_on_every_endpoint() {
    let folder = tempfile::tempdir().expect("folder");
    let (a, b, all) = (
        token(folder.path(), Some("a")),
        token(folder.path(), Some("b")),
        token(folder.path(), None),
    );
    let running = start(folder.path(), CONFIG);
    send(
        running.udp,
        (1..=60).map(|number| sflow_datagram(number, 7, 10)),
    );
    let begin = std::time::Instant::now();
    loop {
        let (_, health) = get(&running, "/api/v1/health", &all);
        if health["store"]["durable"] == 420 {
            break;
        }
        assert!(begin.elapsed().as_secs() < 60, "{health}");
    }
    let rows = |token: &str, filter: &str| {
        let path = format!("/api/v1/query?from=-1h&points=0&filter={}", escape(filter));
        let (status, answer) = get(&running, &path, token);
        assert_eq!(status, 200, "{filter}: {answer}");
        answer["stored_rows"].as_u64().expect("rows")
    };
    let (own, others, sum) = (rows(&a, ""), rows(&b, ""), rows(&all, ""));
    assert!(
        own > 0 && others > 0 && own + others == sum,
        "{own} {others} {sum}"
    );
    // Whatever the filter is, what tenants see is what the whole has of their rows.
    for filter in [
        "SrcNetTenant = b",
        "NOT SrcNetTenant = a",
        "SrcAddr << 10.8.0.0/13 OR Proto = udp",
        "Proto = udp OR 10 > 3",
        "Proto = udp -- ) OR (",
        "Proto = udp OR NOT Proto = udp",
        "SrcNet LIKE '%' OR SrcNet = ''",
        "ExporterName = 'x'' OR ''1'' = ''1'",
        "SrcPort >= 0 OR SrcNetTenant IN (a, b)",
    ] {
        let path = format!("/api/v1/query?from=-1h&points=0&filter={}", escape(filter));
        let (status, answer) = get(&running, &path, &a);
        if status == 400 {
            continue;
        }
        let whole = rows(&all, &format!("({}\n) AND SrcNetTenant = a", filter));
        assert_eq!(answer["stored_rows"].as_u64(), Some(whole), "{filter}");
    }
    // All paths of the API's description, with parameters that ask for everything.
    let openapi = running.get("/api/v1/openapi.json");
    let paths = openapi["paths"].as_object().expect("paths");
    let mut outcomes: BTreeMap<u16, u32> = BTreeMap::new();
    for path in paths.keys().filter(|path| {
        paths[*path]["get"].is_object() && !path.contains("oidc") && !path.ends_with("stream")
    }) {
        for line in [
            "from=-1h&dimensions=SrcNet,DstNet,SrcNetSite,SrcNetTenant&limit=100&column=SrcNet&filter=",
            "from=-1h&dimensions=SrcNetSite&bidirectional=true&previous=true&column=SrcNetSite&filter=SrcNetTenant%3Db",
            "from=-1h&column=SrcNetTenant&prefix=&seconds=300&dimensions=SrcNet",
        ] {
            let names = paths[path]["get"]["parameters"]
                .as_array()
                .expect("parameters");
            let known: Vec<&str> = line
                .split('&')
                .filter(|pair| {
                    names
                        .iter()
                        .any(|name| pair.split('=').next() == name["name"].as_str())
                })
                .collect();
            let url = format!("{}?{}", path.replace("{id}", "x"), known.join("&"));
            let (status, text) = running.raw(&url, &[("authorization", &a)]);
            *outcomes.entry(status).or_default() += 1;
            assert!(!text.contains("secret-b"), "{url}: {text}");
            assert!(status == 200 || status == 403, "{url}: {status} {text}");
            // The same shows the other tenant to those who may see it: the check above can fail.
            if url.starts_with("/api/v1/complete?column=SrcNet&") {
                let (_, text) = running.raw(&url, &[("authorization", &all)]);
                assert!(text.contains("secret-b-net"), "{text}");
            }
        }
    }
    assert!(outcomes[&200] >= 12 && outcomes[&403] >= 12, "{outcomes:?}");
    let (_, exporters) = get(&running, "/api/v1/exporters", &a);
    assert_eq!(exporters["exporters"].as_array().map(Vec::len), Some(0));
    // A stream is limited, too.
    let (status, _) = running.raw(
        "/api/v1/live/stream?dimensions=Nope",
        &[("authorization", &a)],
    );
    assert_eq!(status, 400);
    for (path, expected) in [
        ("/api/v1/flows?from=-1h&limit=1000000&format=parquet", 200),
        (
            "/api/v1/query?from=-1h&dimensions=SrcNet&format=parquet",
            200,
        ),
        ("/api/v1/query?from=-1h&dimensions=SrcNet&format=csv", 200),
    ] {
        let (status, text) = running.raw(path, &[("authorization", &a)]);
        assert_eq!(status, expected, "{path}");
        assert!(!text.contains("secret-b") && !text.is_empty(), "{path}");
    }
}

#[test]
fn the_header_of_the_proxy_counts_from_the_proxy_only() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "proxy: {from: [127.0.0.1/32]}\n");
    assert_eq!(running.raw("/api/v1/session", &[]).0, 401);
    let (status, text) = running.raw("/api/v1/session", &[("x-remote-user", "ann")]);
    assert!(
        status == 200 && text.contains("\"ann\"") && text.contains("viewer"),
        "{text}"
    );
    drop(running);
    let running = start(folder.path(), "proxy: {from: [192.0.2.1/32]}\n");
    assert_eq!(
        running
            .raw("/api/v1/session", &[("x-remote-user", "ann")])
            .0,
        401
    );
}

#[test]
fn paths_and_other_sites_reach_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "");
    for path in [
        "/../state.redb",
        "/%2e%2e/state.redb",
        "/..%2fstate.redb",
        "/console.js/../../x",
        "/data/state.redb",
        "//etc/passwd",
    ] {
        let (status, text) = running.raw(path, &[]);
        assert!(status == 404 || status == 400, "{path}: {status}");
        assert!(!text.contains("redb"), "{path}");
    }
    // A form of another site can neither send the header nor JSON; without a login only loopback names count.
    let post = |path: &str, headers: &[(&str, &str)]| {
        let agent = ureq::Agent::new_with_config(
            ureq::Agent::config_builder()
                .http_status_as_error(false)
                .build(),
        );
        let mut request = agent.post(format!("{}{path}", running.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request
            .send(r#"{"minutes":5}"#)
            .expect("an answer")
            .status()
            .as_u16()
    };
    let json = ("content-type", "application/json");
    assert_eq!(post("/api/v1/silences", &[json]), 403);
    assert_eq!(
        post(
            "/api/v1/silences",
            &[("content-type", "text/plain"), ("x-weir", "1")]
        ),
        415
    );
    assert_eq!(
        post(
            "/api/v1/silences",
            &[json, ("x-weir", "1"), ("host", "evil.example")]
        ),
        401
    );
    assert_eq!(post("/api/v1/silences", &[json, ("x-weir", "1")]), 200);
    let silences = running.get("/api/v1/silences");
    assert_eq!(silences["silences"].as_array().map(Vec::len), Some(1));
    assert_eq!(running.raw("/api/v1/oidc/login", &[]).0, 404);
}
