//! The collector from outside: the real program, its sockets, its files, its API; and the store at each step of sealing.

mod access;
mod names;
mod offline;
mod storage;
mod transport;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_collector::bench::{ipfix_message, sflow_datagram};
use weir_collector::config::QueryConfig;
use weir_collector::decode::{Decoder, Shared};
use weir_collector::query::engine::Engine;
use weir_collector::query::{Metric, Query, Scope};
use weir_collector::row::Row;
use weir_collector::store::{Step, Store};

/// A running collector; killed when it goes out of scope.
struct Running {
    child: Child,
    udp: SocketAddr,
    tcp: SocketAddr,
    /// What it printed before the console's address.
    lines: Vec<String>,
    url: String,
    _output: BufReader<std::process::ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(folder: &Path, more: &str) -> Running {
    let config = folder.join("collector.yaml");
    let data = folder.join("data");
    let text = format!(
        "listen: ['127.0.0.1:0']\nlisten_tcp: ['127.0.0.1:0']\nhttp: '127.0.0.1:0'\ndata: '{}'\n{more}",
        data.display()
    );
    std::fs::write(&config, text).expect("configuration");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir-collector"))
        .arg("run")
        .arg("--config")
        .arg(&config)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = BufReader::new(child.stdout.take().expect("output"));
    let (mut udp, mut tcp, mut lines) = (None, None, Vec::new());
    loop {
        let mut line = String::new();
        assert!(
            output.read_line(&mut line).expect("a line") > 0,
            "the program ended at its start"
        );
        if let Some(address) = line.strip_prefix("listening on udp ") {
            udp = address.trim().parse().ok();
        } else if let Some(address) = line.strip_prefix("listening on tcp ") {
            tcp = address.trim().parse().ok();
        } else if let Some(url) = line.strip_prefix("console at ") {
            let url = url.trim().trim_end_matches('/').to_owned();
            return Running {
                child,
                udp: udp.expect("udp"),
                tcp: tcp.expect("tcp"),
                lines,
                url,
                _output: output,
            };
        }
        lines.push(line.trim().to_owned());
    }
}

impl Running {
    fn try_get(&self, path: &str) -> Result<Value, String> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let mut response = agent
            .get(format!("{}{path}", self.url))
            .call()
            .map_err(|error| error.to_string())?;
        let text = response
            .body_mut()
            .read_to_string()
            .map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    /// Status and text of a request with headers.
    fn raw(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let mut request = agent.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = request.call().expect("an answer");
        let bytes = response.body_mut().read_to_vec().expect("a body");
        (
            response.status().as_u16(),
            String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    fn get(&self, path: &str) -> Value {
        self.try_get(path).expect("an answer")
    }

    /// Waits until a number of the health page has a value; the bound only ends a test that would fail anyway.
    fn wait(&self, pointer: &str, expected: u64) -> Value {
        let begin = Instant::now();
        loop {
            let health = self.get("/api/v1/health");
            let found = health.pointer(pointer).and_then(Value::as_u64);
            if found == Some(expected) {
                return health;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "{pointer} is {found:?}, not {expected}: {health}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn total(&self, parameters: &str) -> (f64, u64) {
        let answer = self.get(&format!(
            "/api/v1/query?from=-1h&points=0&dimensions=&{parameters}"
        ));
        let total = answer.pointer("/rows/0/total").and_then(Value::as_f64);
        (
            total.unwrap_or_else(|| panic!("{answer}")),
            answer["stored_rows"].as_u64().unwrap_or(0),
        )
    }
}

/// Sends datagrams slowly enough for a receive buffer of any size.
fn send(to: SocketAddr, datagrams: impl Iterator<Item = Vec<u8>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
    for (number, datagram) in datagrams.enumerate() {
        socket.send_to(&datagram, to).expect("sent");
        if number % 20 == 19 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn rows_survive_kill_9_and_losses_are_shown() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "");
    // 200 datagrams with 10 missing in the middle; 7 samples each, 1 in 1000.
    send(
        running.udp,
        (1..=210)
            .filter(|number| !(100..110).contains(number))
            .map(|number| sflow_datagram(number, 7, 1000)),
    );
    send(
        running.udp,
        (0..50).map(|number| ipfix_message(number * 24, 24, number == 0)),
    );
    // The same over TCP, cut at odd places.
    let mut stream = TcpStream::connect(running.tcp).expect("connected");
    let bytes: Vec<u8> = (0..10)
        .flat_map(|number| ipfix_message(number * 24, 24, number == 0))
        .collect();
    for part in bytes.chunks(777) {
        stream.write_all(part).expect("sent");
    }
    let (sflow, ipfix) = (200 * 7, 60 * 24);
    let health = running.wait("/store/durable", sflow + ipfix);
    assert_eq!(health["datagrams"]["balance"], true, "{health}");
    assert_eq!(health["datagrams"]["received"], 260);
    assert_eq!(health["datagrams"]["decoded"], 260);
    assert_eq!(health["datagrams"]["lost"], 10);
    let check = |running: &Running| {
        let (packets, rows) = running.total("metric=packets&filter=Format%3Dsflow");
        assert_eq!((packets, rows), (1000.0 * sflow as f64, sflow));
        // Records of a rate nobody announced are not scaled, and counted.
        let (packets, rows) = running.total("metric=packets&filter=Format%3Dipfix");
        assert_eq!((packets, rows), (3.0 * ipfix as f64, ipfix));
        let answer = running.get("/api/v1/query?from=-1h&points=0&dimensions=Format");
        assert_eq!(answer["unknown_rate_rows"], ipfix);
    };
    check(&running);
    drop(running);
    for round in 0..2 {
        let running = start(folder.path(), "");
        let health = running.get("/api/v1/health");
        let recovered = if round == 0 { sflow + ipfix } else { 0 };
        assert_eq!(health["store"]["recovered"], recovered, "{health}");
        running.wait("/store/file_rows", sflow + ipfix);
        check(&running);
    }
}

#[test]
fn templates_and_names_survive_a_restart() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
    let running = start(folder.path(), "");
    socket
        .send_to(&ipfix_message(0, 5, true), running.udp)
        .expect("sent");
    running.wait("/rows", 5);
    // A clean end stores everything.
    let status = Command::new("kill")
        .arg(running.child.id().to_string())
        .status()
        .expect("kill");
    assert!(status.success());
    let mut running = running;
    assert!(running.child.wait().expect("ended").success());
    drop(running);
    let running = start(folder.path(), "");
    socket
        .send_to(&ipfix_message(5, 7, false), running.udp)
        .expect("sent");
    let health = running.wait("/rows", 7);
    assert_eq!(
        (
            &health["datagrams"]["decoded"],
            &health["datagrams"]["waiting"]
        ),
        (&json!(1), &json!(0))
    );
}

#[test]
fn hostile_datagrams_are_counted_and_bounded() {
    let (mut decoder, mut shared, mut rows) = (Decoder::default(), Shared::default(), Vec::new());
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let good = [sflow_datagram(1, 7, 100), ipfix_message(0, 24, true)];
    let mut sent = 0;
    for number in 0..20_000_u32 {
        let from = SocketAddr::from((
            [10, (number >> 16) as u8, (number >> 8) as u8, number as u8],
            1000,
        ));
        let mut datagram = good[number as usize % 2].clone();
        match number % 4 {
            0 => datagram.truncate(random() as usize % datagram.len()),
            1 => {
                for _ in 0..8 {
                    let at = random() as usize % datagram.len();
                    datagram[at] = random() as u8;
                }
            }
            // A template for each of many domains.
            2 => datagram[12..16].copy_from_slice(&number.to_be_bytes()),
            _ => datagram = (0..random() % 100).map(|_| random() as u8).collect(),
        }
        decoder.datagram(from, &datagram, 1000, &mut shared, &mut rows);
        sent += 1;
        rows.clear();
    }
    let all = || shared.accounts.exporters.values();
    assert_eq!(all().map(|e| e.received).sum::<u64>(), sent);
    assert_eq!(
        all()
            .map(|e| e.decoded + e.partly + e.waiting + e.rejected)
            .sum::<u64>(),
        sent
    );
    assert!(all().map(|e| e.rejected).sum::<u64>() > 1000);
    assert!(
        shared.accounts.exporters.len() <= 4097,
        "{}",
        shared.accounts.exporters.len()
    );
    assert!(shared.templates.take().len() <= 8192);
}

fn rows(seed: u32, count: u32) -> Vec<Row> {
    let (mut decoder, mut shared, mut rows) = (Decoder::default(), Shared::default(), Vec::new());
    let from = SocketAddr::from(([192, 0, 2, 7], 1000));
    for number in 0..count {
        let time = 1_700_000_000 + i64::from(number % 600);
        decoder.datagram(
            from,
            &sflow_datagram(seed + number, 7, 1 + number % 100),
            time,
            &mut shared,
            &mut rows,
        );
        decoder.datagram(
            from,
            &ipfix_message((seed + number) * 24, 24, number == 0),
            time,
            &mut shared,
            &mut rows,
        );
    }
    rows
}

fn query(dimensions: &[&str], filter: &str, metric: Metric, points: u32) -> Query {
    Query {
        from: 1_700_000_000 - 1_700_000_000 % 3600,
        to: 1_700_000_000 + 7200,
        dimensions: dimensions.iter().map(|name| (*name).to_owned()).collect(),
        filter: filter.to_owned(),
        metric,
        limit: 5,
        points,
        bidirectional: false,
        previous: false,
        exact: false,
    }
}

#[tokio::test]
async fn a_crash_at_each_step_of_sealing_loses_and_doubles_nothing() {
    let rows = rows(0, 20);
    let expected: u64 = rows.iter().map(|row| row.bytes).sum();
    for step in [
        Step::Begin,
        Step::Written,
        Step::Renamed,
        Step::Synced,
        Step::Committed,
        Step::Done,
    ] {
        let folder = tempfile::tempdir().expect("folder");
        {
            let store = Store::open(folder.path(), 1_700_000_000).expect("store");
            assert_eq!(store.append(&rows[..100], 1_700_000_000), 100);
            store.append(&rows[100..], 1_700_000_000);
            store.flush(1_700_000_001);
            assert!(store.seal(Some(step)).await.is_err(), "{step:?}");
        }
        let store = Store::open(folder.path(), 1_700_000_400).expect("store");
        let engine = Engine::new(Arc::clone(&store), &QueryConfig::default()).expect("engine");
        let check = async |filter: &str, when: &str| {
            let answer = engine
                .answer(&query(&[], filter, Metric::Bits, 1), &Scope::default())
                .await
                .expect("answer");
            let total = (answer.rows[0].total as u64, answer.stored_rows);
            assert_eq!(
                total,
                (expected, rows.len() as u64),
                "{step:?} {when} {filter:?}"
            );
        };
        // The second filter needs a column that only the table of all rows has.
        check("SrcPort >= 0", "before sealing").await;
        while store.seal(None).await.expect("sealed").is_some() {}
        check("", "after sealing").await;
        check("SrcPort >= 0", "after sealing").await;
        drop(engine);
        drop(store);
        let status = Store::open(folder.path(), 1_700_000_800)
            .expect("store")
            .status();
        assert_eq!(
            (status.file_rows, status.memory_rows),
            (rows.len() as u64, 0),
            "{step:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_file_is_named_and_put_aside() {
    let folder = tempfile::tempdir().expect("folder");
    let path = {
        let store = Store::open(folder.path(), 1_700_000_000).expect("store");
        store.append(&rows(0, 2), 1_700_000_000);
        store.flush(1_700_000_001);
        store.seal(None).await.expect("sealed").expect("a segment");
        store.snapshot(0, i64::MAX).flows[0].clone()
    };
    let bytes = std::fs::read(&path).expect("file");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("cut");
    let store = Store::open(folder.path(), 1_700_000_400).expect("store");
    assert_eq!(store.status().quarantined.len(), 1);
    assert!(!path.exists() && store.snapshot(0, i64::MAX).flows.is_empty());
}

/// The statements of console queries, with their answers, for other engines to compare.
#[tokio::test]
async fn other_engines_give_the_same_answers() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::open(folder.path(), 1_700_000_000).expect("store");
    for part in 0..3 {
        store.append(&rows(part * 1000, 60), 1_700_000_000);
        store.flush(1_700_000_001);
        store.seal(None).await.expect("sealed").expect("a segment");
    }
    let snapshot = store.snapshot(0, i64::MAX);
    let engine = Engine::new(Arc::clone(&store), &QueryConfig::default()).expect("engine");
    let mut cases = Vec::new();
    for (dimensions, filter, metric) in [
        (&[][..], "", Metric::Bits),
        (&["SrcAddr"], "", Metric::Bits),
        (&["SrcAddr", "DstAddr"], "Proto = udp", Metric::Packets),
        (
            &["DstPort", "InIf"],
            "NOT SrcAddr << 10.0.0.0/10",
            Metric::Bits,
        ),
        (
            &["SrcAS"],
            "SrcAS IN (AS64500, 64501, AS64502)",
            Metric::Packets,
        ),
        (
            &["Outcome", "Format"],
            "ExporterName LIKE 192% AND EType = IPv4",
            Metric::Flows,
        ),
        (
            &["InIf", "OutIf"],
            "InIf != OutIf AND (InIf <= 2 OR OutIf = 4)",
            Metric::L2bits,
        ),
        (
            &["TCPFlags", "SrcPort"],
            "Port >= 2000 AND Format ILIKE IPF%",
            Metric::Bits,
        ),
    ] {
        let query = query(dimensions, filter, metric, 10);
        let answer = engine
            .answer(&query, &Scope::default())
            .await
            .expect("answer");
        let top: Vec<Value> = answer
            .rows
            .iter()
            .filter(|row| row.role == "row")
            .map(|row| json!(row.total))
            .collect();
        let total = answer
            .rows
            .iter()
            .find(|row| row.role == "total")
            .map(|row| row.total);
        // The answer of the totals table must be that of all rows, which the other engines read.
        cases.push(json!({ "filter": filter, "sql": answer.sql, "top": top, "total": total, "rows": answer.stored_rows }));
        // "Other" is exact: rows and "Other" are everything.
        let parts: f64 = answer
            .rows
            .iter()
            .filter(|row| row.role != "total")
            .map(|row| row.total)
            .sum();
        assert!(
            dimensions.is_empty() || (parts - total.unwrap_or(0.0)).abs() < 1.0,
            "{filter}"
        );
    }
    let input = folder.path().join("cases.json");
    let files: Vec<String> = snapshot
        .flows
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    std::fs::write(
        &input,
        json!({ "files": files, "cases": cases }).to_string(),
    )
    .expect("written");
    let python = std::env::var("WEIR_COLLECTOR_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collector/engines.py");
    let output = Command::new(python)
        .arg(script)
        .arg(&input)
        .output()
        .expect("python3");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    eprintln!("{text}");
}

#[test]
fn the_api_refuses_what_it_should() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "");
    for (path, part) in [
        ("/api/v1/query?from=x", "is no time"),
        ("/api/v1/query?dimensions=Nope", "unknown dimension"),
        ("/api/v1/query?filter=SrcAS%20%3D", "filter: at character"),
        ("/api/v1/query?from=now&to=-1h", "before"),
        ("/api/v1/query?points=99999", "at most"),
        ("/api/v1/query?format=xml", "unknown format"),
    ] {
        let answer = running.get(path);
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|error| error.contains(part)),
            "{path}: {answer}"
        );
    }
    let openapi = running.get("/api/v1/openapi.json");
    assert!(
        openapi["paths"]
            .as_object()
            .is_some_and(|paths| paths.len() >= 14)
    );
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build(),
    );
    let status = |response: Result<ureq::http::Response<ureq::Body>, ureq::Error>| {
        response.expect("answer").status().as_u16()
    };
    let url = |path: &str| format!("{}{path}", running.url);
    // Another site's page cannot send the header; another site's name is not this machine's.
    assert_eq!(
        status(
            agent
                .post(url("/api/v1/login"))
                .header("content-type", "application/json")
                .send("{}")
        ),
        403
    );
    assert_eq!(
        status(
            agent
                .get(url("/api/v1/health"))
                .header("host", "evil.example")
                .call()
        ),
        401
    );
    assert_eq!(status(agent.get(url("/../../etc/passwd")).call()), 404);
    assert_eq!(status(agent.get(url("/")).call()), 200);
    let console = agent
        .get(url("/console.js"))
        .call()
        .expect("console")
        .body_mut()
        .read_to_vec()
        .expect("bytes");
    assert!(
        console.len() > 10_000,
        "the console is built: {} bytes",
        console.len()
    );
}

#[test]
fn users_log_in() {
    let folder = tempfile::tempdir().expect("folder");
    let data = folder.path().join("data");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir-collector"))
        .args(["user", "--role", "viewer", "--data"])
        .arg(&data)
        .arg("ann")
        .stdin(Stdio::piped())
        .spawn()
        .expect("starts");
    child
        .stdin
        .take()
        .expect("input")
        .write_all(b"correct horse\n")
        .expect("written");
    assert!(child.wait().expect("ended").success());
    let running = start(folder.path(), "");
    assert!(running.get("/api/v1/health")["error"].is_string());
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build(),
    );
    let login = |password: &str| {
        let body = json!({ "name": "ann", "password": password }).to_string();
        let request = agent
            .post(format!("{}/api/v1/login", running.url))
            .header("x-weir", "1");
        request
            .header("content-type", "application/json")
            .send(body.as_str())
            .expect("answer")
    };
    assert_eq!(login("wrong").status().as_u16(), 401);
    let response = login("correct horse");
    assert_eq!(response.status().as_u16(), 200);
    let cookie = response.headers()["set-cookie"]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let session = cookie.split(';').next().expect("session").to_owned();
    let health = agent
        .get(format!("{}/api/v1/health", running.url))
        .header("cookie", &session)
        .call()
        .expect("answer");
    assert_eq!(health.status().as_u16(), 200);
    // A viewer acknowledges nothing.
    let url = format!("{}/api/v1/alerts/x/acknowledge", running.url);
    let response = agent
        .post(url)
        .header("cookie", &session)
        .header("x-weir", "1")
        .send("{}")
        .expect("answer");
    assert_eq!(response.status().as_u16(), 403);
}
