//! `weir lab` and `weir doctor` as a user runs them: without root, bounded in time.

use std::process::{Command, Output};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .output()
        .unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_capture_file_is_the_same_for_a_seed() {
    let folder = std::env::temp_dir().join(format!("weir-lab-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, seed: &str| {
        let file = folder.join(name);
        let done = weir(&[
            "lab",
            "generate",
            "--write",
            file.to_str().unwrap(),
            "--packets",
            "500",
            "--flows",
            "64k",
            "--seed",
            seed,
            "--json",
        ]);
        assert_eq!(json(&done)["written"], 500, "{done:?}");
        std::fs::read(file).unwrap()
    };
    assert_eq!(write("a", "3"), write("b", "3"));
    assert_ne!(write("a", "3"), write("c", "4"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn traffic_into_nothing_is_counted() {
    let done = weir(&[
        "lab",
        "generate",
        "--rate",
        "5kpps",
        "--packets",
        "500",
        "--json",
    ]);
    let found = json(&done);
    assert_eq!(
        (&found["sent"], &found["streams"][0]["sent"]),
        (&500.into(), &500.into()),
        "{done:?}"
    );
}

#[test]
fn impossible_traffic_is_refused() {
    for (arguments, text) in [
        (
            vec!["--rate", "20Mpps", "--line-rate", "10G"],
            "do not fit a line",
        ),
        (vec!["--rate", "50%"], "--line-rate"),
        (vec!["--size", "12"], "need 64 to"),
        (
            vec!["--source", "10.0.0.9-10.0.0.1"],
            "ends before it begins",
        ),
    ] {
        let done = weir(
            &[
                &["lab", "generate", "--duration", "10ms"],
                arguments.as_slice(),
            ]
            .concat(),
        );
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() == Some(4) && error.contains(text),
            "{arguments:?}: {done:?}"
        );
    }
    let done = weir(&[
        "lab",
        "generate",
        "--port",
        "no-such-device",
        "--duration",
        "10ms",
    ]);
    assert!(
        !done.status.success() && !done.stderr.is_empty(),
        "{done:?}"
    );
}

/// A capture is sent as it is, and streams of T-Rex are accepted; words that would change nothing are refused.
#[test]
fn captures_and_streams_of_trex_are_sent() {
    let folder = std::env::temp_dir().join(format!("weir-lab-import-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let made = weir(&[
        "lab",
        "generate",
        "--write",
        &path("a.pcap"),
        "--packets",
        "50",
        "--rate",
        "10kpps",
        "--profile",
        "imix",
    ]);
    assert!(made.status.success(), "{made:?}");
    let again = weir(&[
        "lab",
        "generate",
        "--replay",
        &path("a.pcap"),
        "--write",
        &path("b.pcap"),
        "--json",
    ]);
    assert_eq!(json(&again)["written"], 50, "{again:?}");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read("a.pcap") == read("b.pcap"));
    let twice = weir(&[
        "lab",
        "generate",
        "--replay",
        &path("a.pcap"),
        "--loop",
        "2",
        "--speed",
        "10",
        "--json",
    ]);
    let found = json(&twice);
    assert_eq!(
        (&found["sent"], &found["lost"]),
        (&100.into(), &0.into()),
        "{twice:?}"
    );
    let trex = "- stream:\n    packet: {pcap: a.pcap}\n    mode: {type: single_burst, pps: 10000, total_pkts: 30}\n";
    std::fs::write(folder.join("trex.yaml"), trex).unwrap();
    let done = weir(&["lab", "generate", "--profile", &path("trex.yaml"), "--json"]);
    assert_eq!(json(&done)["sent"], 30, "{done:?}");
    for word in ["--bidirectional", "--flows=3", "--size=100"] {
        let done = weir(&["lab", "generate", "--profile", &path("trex.yaml"), word]);
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() == Some(2) && error.contains("does not apply"),
            "{done:?}"
        );
    }
    std::fs::write(
        folder.join("wrong.yaml"),
        "- {packet: {binary: AA}}\n- {colour: red}\n",
    )
    .unwrap();
    let done = weir(&["lab", "generate", "--profile", &path("wrong.yaml")]);
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.code() == Some(4) && error.contains("line 1") && error.contains("line 2"),
        "{done:?}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// The exit codes of a recorded host, and a change made and undone there.
#[test]
fn the_doctor_reads_a_recorded_host() {
    let root = std::env::temp_dir().join(format!("weir-doctor-cli-{}", std::process::id()));
    let file = root.join("proc/sys/net/core/bpf_jit_enable");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "0\n").unwrap();
    let record = root.join("record.json");
    let (root_text, record) = (root.to_str().unwrap(), record.to_str().unwrap());
    let doctor = |arguments: &[&str]| {
        weir(
            &[
                &["doctor", "--root", root_text, "--record", record],
                arguments,
            ]
            .concat(),
        )
    };
    let found = doctor(&["--json"]);
    assert_eq!(found.status.code(), Some(6), "{found:?}");
    assert_eq!(json(&found)[0]["check"], "bpf-jit");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "0\n");
    assert!(doctor(&["--fix", "bpf-jit"]).status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
    assert_eq!(doctor(&["bpf-jit"]).status.code(), Some(0));
    assert!(doctor(&["--undo", "bpf-jit"]).status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
    assert_eq!(doctor(&["--explain", "nonsense"]).status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&doctor(&["--list"]).stdout)
            .lines()
            .count()
            >= 40
    );
    std::fs::remove_dir_all(root).unwrap();
}

/// Two results of simulated searches become a page with a comparison.
#[test]
fn results_become_a_page() {
    let folder = std::env::temp_dir().join(format!("weir-report-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Two devices, and the first one again later.
    for (name, device, rate) in [("a", "a", 100.0), ("b", "b", 200.0), ("c", "a", 90.0)] {
        let test = serde_json::json!({"device": device, "traffic": "64", "frame": 64.0, "search": null, "repeats": [rate, rate + 1.0]});
        let report =
            serde_json::json!({"title": name, "environment": [["kernel", "x"]], "tests": [test]});
        std::fs::write(folder.join(name), report.to_string()).unwrap();
    }
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let done = weir(&[
        "lab",
        "report",
        &path("a"),
        &path("b"),
        &path("c"),
        "-o",
        &path("page.html"),
        "--json",
    ]);
    let comparisons = json(&done)["comparisons"].clone();
    let verdict = |at: usize| comparisons[at]["verdict"].as_str().unwrap().to_owned();
    assert!(
        verdict(0).contains("b is 99.5") && verdict(0).contains("faster than a"),
        "{comparisons}"
    );
    assert!(verdict(1).contains("a (c) is 10.0"), "{comparisons}");
    assert!(
        std::fs::read_to_string(path("page.html"))
            .unwrap()
            .contains("</html>")
    );
    std::fs::remove_dir_all(folder).unwrap();
}
