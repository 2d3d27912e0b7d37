//! `weir bench afxdp`, as short as it can be: the form of what it says, and that packets arrived.
//! How fast is not asked, for the machine may be busy.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn short(rest: &[&str]) -> Output {
    Command::new(WEIR)
        .args(["bench", "afxdp", "--rounds", "1", "--seconds", "1"])
        .args(rest)
        .output()
        .unwrap()
}

fn can_run() -> bool {
    match weir_netlink::lab::preflight() {
        Ok(()) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}

fn number(value: &Value, field: &str) -> f64 {
    value[field]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {field} in {value}"))
}

#[test]
fn the_report_has_its_form_and_packets_arrived() {
    if !can_run() {
        return;
    }
    let began = Instant::now();
    let output = short(&["--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "", "no progress where nobody looks");
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["cpu", "tsc_mhz", "cores", "hugepages", "rustc", "commit"] {
        assert!(!report["machine"][field].is_null(), "{field}: {report}");
    }
    let cases = report["cases"].as_array().unwrap();
    let names: Vec<_> = cases
        .iter()
        .map(|case| case["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "afxdp-udp-50k",
            "afxdp-udp-100k",
            "afxdp-tcp",
            "afxdp-tcp-gso",
            "afxdp-round-trip"
        ]
    );
    for side in ["bridge", "weir"] {
        cases[..2]
            .iter()
            .for_each(|case| assert_datagrams(case, side));
        cases[2..4]
            .iter()
            .for_each(|case| assert_stream(case, side));
        assert!(
            number(&cases[4][side], "round_trips") > 10.0,
            "{}",
            cases[4]
        );
        assert!(
            number(&cases[4][side], "round_trip_us_p99")
                >= number(&cases[4][side], "round_trip_us")
        );
    }
}

fn assert_datagrams(case: &Value, side: &str) {
    let figures = &case[side];
    let (sent, lost) = (
        number(figures, "sent_packets"),
        number(figures, "lost_packets"),
    );
    assert!(
        sent > 1000.0 && sent <= number(case, "offered_packets_per_second"),
        "{case}"
    );
    assert!(lost < sent / 2.0, "most arrive: {case}");
    let whole = number(figures, "cpu_us_per_packet");
    let workers = number(figures, "workers_us_per_packet");
    assert!(
        whole > 0.0 && number(figures, "sender_us_per_packet") + workers < whole * 1.1,
        "{case}"
    );
    assert_eq!(workers > 0.0, side == "weir", "{case}");
    assert!(
        number(case, "cpu_ratio") > 0.0
            && number(case, "cpu_ratio_target") == 1.5
            && case["loss_met"].is_boolean(),
        "{case}"
    );
}

fn assert_stream(case: &Value, side: &str) {
    assert!(number(&case[side], "gigabits_per_second") > 0.01, "{case}");
    let off = case["offloads"] == "off";
    assert_eq!(
        case["throughput_ratio_target"].as_f64(),
        off.then_some(0.6),
        "{case}"
    );
    assert_eq!(case["throughput_ratio_met"].is_boolean(), off, "{case}");
}

#[test]
fn an_interrupt_ends_it_and_its_threads() {
    if !can_run() {
        return;
    }
    let mut bench = Command::new(WEIR)
        .args(["bench", "afxdp"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let process = rustix::process::Pid::from_child(&bench);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while bench.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            bench.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "weir: interrupted; nothing is left of the bench\n"
    );
}

#[test]
fn who_may_not_is_reported_what_to_do() {
    if !rustix::process::geteuid().is_root() || !weir_netlink::lab::has_program("setpriv") {
        println!("skipped: needs root and setpriv, to give rights away");
        return;
    }
    let arguments = [
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--reuid=65534",
        "--clear-groups",
        WEIR,
        "bench",
        "afxdp",
    ];
    let output = Command::new("setpriv").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // The binary may lie where that user cannot see it: then there is nothing to test.
    if said.contains("failed to execute") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("weir: a lab needs root") && said.lines().count() == 1,
        "{said}"
    );
}
