//! Import and replay of captures, the check of the machine, the dashboard.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_collector::bench::sflow_datagram;

use crate::{send, start};

/// A capture (little endian, link type raw IP) of UDP datagrams to port 6343, a second apart.
fn capture(path: &Path, begin: u32, datagrams: &[Vec<u8>]) {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    for (number, payload) in datagrams.iter().enumerate() {
        let mut packet = vec![0x45, 0];
        packet.extend((28 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2]);
        packet.extend(5000_u16.to_be_bytes());
        packet.extend(6343_u16.to_be_bytes());
        packet.extend((8 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        let length = packet.len() as u32;
        for word in [begin + number as u32, 0, length, length] {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    // 4.2 in the order of this byte order: major, then minor.
    out[4..8].copy_from_slice(&[2, 0, 4, 0]);
    std::fs::write(path, out).expect("written");
}

fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-collector"))
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.success(), text)
}

#[test]
fn a_capture_is_imported_once_with_its_own_times() {
    let folder = tempfile::tempdir().expect("folder");
    let (file, data) = (folder.path().join("old.pcap"), folder.path().join("data"));
    // Ten minutes: three files of five minutes.
    let datagrams: Vec<Vec<u8>> = (1..=600)
        .map(|number| sflow_datagram(number, 7, 100))
        .collect();
    capture(&file, 1_700_000_000, &datagrams);
    let (file, data) = (file.display().to_string(), data.display().to_string());
    let (good, text) = run(&["import", "--data", &data, &file]);
    assert!(good && text.contains("600 datagrams, 4200 rows"), "{text}");
    let (good, text) = run(&["import", "--data", &data, &file]);
    assert!(!good && text.contains("imported before"), "{text}");
    let running = start(folder.path(), "");
    let answer = running
        .get("/api/v1/query?from=1700000000&to=1700000600&dimensions=&metric=packets&points=10");
    assert_eq!(answer["rows"][0]["total"], 420_000.0, "{answer}");
    assert_eq!(answer["stored_rows"], 4200);
    let points = answer["rows"][0]["points"]
        .as_array()
        .expect("points")
        .len();
    assert!(points >= 10, "{answer}");
    assert!(running.get("/api/v1/health")["store"]["files"].as_u64() >= Some(2));
}

#[test]
fn a_replay_says_which_alerts_a_capture_would_have_raised() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("attack.pcap");
    // 7 samples a second are 7,000 packets a second; in the middle there are ten times as many.
    let mut datagrams = Vec::new();
    for second in 0..60 {
        let samples = if (20..40).contains(&second) { 70 } else { 7 };
        datagrams.push(sflow_datagram(1 + second, samples, 1000));
    }
    capture(&file, 1_700_000_000, &datagrams);
    let config = folder.path().join("rules.yaml");
    std::fs::write(
        &config,
        "alerts: {flood: {by: [Proto], metric: packets, above: 30000, window: 3, hold: 5}}\n",
    )
    .expect("written");
    let (good, text) = run(&[
        "replay",
        "--config",
        &config.display().to_string(),
        &file.display().to_string(),
    ]);
    assert!(good && text.contains("1 alerts"), "{text}");
    let line = text
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("an alert");
    let alert: Value = serde_json::from_str(line).expect("JSON");
    let began = alert["began"].as_i64().expect("begin") - 1_700_000_000;
    assert!((21..=24).contains(&began), "{alert}");
    assert_eq!(alert["status"], "ended");
}

#[test]
fn stored_rows_are_replayed_through_a_rule_over_the_api() {
    let folder = tempfile::tempdir().expect("folder");
    let (file, data) = (
        folder.path().join("attack.pcap"),
        folder.path().join("data"),
    );
    let mut datagrams = Vec::new();
    for second in 0..60 {
        datagrams.push(sflow_datagram(
            1 + second,
            if (20..40).contains(&second) { 70 } else { 7 },
            1000,
        ));
    }
    capture(&file, 1_700_000_000, &datagrams);
    assert!(
        run(&[
            "import",
            "--data",
            &data.display().to_string(),
            &file.display().to_string()
        ])
        .0
    );
    let running = start(folder.path(), "");
    let replay = |above: u32| {
        let body = format!(
            r#"{{"from":1700000000,"to":1700000100,"rule":{{"by":["Proto"],"metric":"packets","above":{above},"hold":5}}}}"#
        );
        let text = ureq::post(format!("{}/api/v1/replay", running.url))
            .header("content-type", "application/json")
            .header("x-weir", "1")
            .send(body.as_str())
            .expect("an answer")
            .body_mut()
            .read_to_string()
            .expect("a body");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let answer = replay(30_000);
    assert_eq!(
        answer["alerts"].as_array().map(Vec::len),
        Some(1),
        "{answer}"
    );
    assert_eq!(answer["rows"], 40 * 7 + 20 * 70);
    assert_eq!(replay(300_000)["alerts"].as_array().map(Vec::len), Some(0));
}

#[test]
fn doctor_and_check_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("folder");
    let config = folder.path().join("c.yaml");
    let path = config.display().to_string();
    let data = folder.path().join("data").display().to_string();
    std::fs::write(&config, format!("listen: ['127.0.0.1:0']\nlisten_tcp: []\nhttp: '127.0.0.1:0'\nreceive_buffer: 4096\nretention: {{gigabytes: 0.001}}\ndata: '{data}'\n")).expect("written");
    let (good, text) = run(&["doctor", "--config", &path]);
    assert!(good, "{text}");
    std::fs::write(
        &config,
        "interface_rules: [{name: '('}]\nsources: {x: {}}\n",
    )
    .expect("written");
    let (good, text) = run(&["check", &path]);
    assert!(
        !good && text.contains("interface_rules[0]") && text.contains("sources.x"),
        "{text}"
    );
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "");
    send(
        running.udp,
        [sflow_datagram(1, 7, 10), vec![1, 2, 3]].into_iter(),
    );
    running.wait("/datagrams/received", 2);
    let (_, metrics) = running.raw("/metrics", &[]);
    let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/weir-collector.json");
    let dashboard = std::fs::read_to_string(dashboard).expect("dashboard");
    let names: std::collections::BTreeSet<&str> = dashboard
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("weir_collector_"))
        .collect();
    assert!(names.len() > 10);
    for name in names {
        assert!(
            metrics.contains(&format!("\n# TYPE {name} ")),
            "{name} is no metric"
        );
    }
}

#[test]
fn files_of_nfcapd_are_imported() {
    let folder = tempfile::tempdir().expect("folder");
    let (flows, data) = (folder.path().join("flows"), folder.path().join("data"));
    std::fs::create_dir(&flows).expect("folder");
    // A port that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("port")
        .port();
    let mut nfcapd = Command::new("nfcapd")
        .args([
            "-b",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-w",
            &flows.display().to_string(),
        ])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("nfcapd (package nfdump)");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("socket");
    // Octets that wait in the receive queue of its socket, once there is one.
    let waiting = || {
        let text = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.contains(&format!(":{port:04X} ")))?;
        let queues = line.split_whitespace().nth(4)?;
        u64::from_str_radix(queues.split(':').nth(1)?, 16).ok()
    };
    let begin = std::time::Instant::now();
    while waiting().is_none() {
        assert!(begin.elapsed().as_secs() < 60, "nfcapd does not listen");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for number in 0..4 {
        socket
            .send_to(
                &weir_collector::bench::ipfix_message(number * 24, 24, number == 0),
                ("127.0.0.1", port),
            )
            .expect("sent");
    }
    while waiting() != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // It writes its file when it ends.
    assert!(
        Command::new("kill")
            .arg(nfcapd.id().to_string())
            .status()
            .expect("kill")
            .success()
    );
    nfcapd.wait().expect("ended");
    let file = std::fs::read_dir(&flows)
        .expect("folder")
        .flatten()
        .map(|file| file.path())
        .find(|path| path.display().to_string().contains("nfcapd.2"));
    let file = file.expect("a file").display().to_string();
    let (good, text) = run(&["import", "--data", &data.display().to_string(), &file]);
    assert!(good && text.contains("96 rows"), "{text}");
    let running = start(folder.path(), "");
    let answer = running.get("/api/v1/query?from=-1h&points=0&dimensions=Exporter,DstAS,Proto&metric=packets&filter=SrcPort%20%3E%3D%200");
    assert_eq!(
        answer["rows"][0]["key"],
        serde_json::json!(["127.0.0.1", "AS15169", "tcp"]),
        "{answer}"
    );
    assert_eq!(
        (&answer["rows"][0]["total"], &answer["stored_rows"]),
        (&serde_json::json!(288.0), &serde_json::json!(96)),
        "{answer}"
    );
}
