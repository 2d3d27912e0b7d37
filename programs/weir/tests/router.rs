//! The program itself, in network namespaces that the test makes: real veth, real AF_XDP, real ping.
//!
//! Skipped with one line where no lab can be made (not root).

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::{FAR, Lab, NEAR, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);

/// Whether a lab can be made here; says in one line when not.
fn lab_possible() -> bool {
    match preflight() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("skipped: {why}");
            false
        }
    }
}

/// Two hosts and a running router between them.
struct Bench {
    lab: Lab,
    router: Option<Running>,
    folder: PathBuf,
}

impl Bench {
    fn start(name: &str, workers: &str) -> Bench {
        let lab = Lab::two_hosts().build().unwrap();
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: port-a }}, addresses: [ 10.1.0.1/24 ], sflow: true }}
  xe1: {{ device: {{ driver: af-xdp, name: port-b }}, addresses: [ 10.2.0.1/24 ] }}
{workers}
sflow: {{ sampling-rate: 10, collectors: [ {{ address: 127.0.0.1 }}, {{ address: 127.0.0.1, port: 6344 }} ] }}
"
        );
        std::fs::write(folder.join("weir.yaml"), config).unwrap();
        let mut bench = Bench {
            lab,
            router: None,
            folder,
        };
        bench.router = Some(bench.run());
        bench
            .router
            .as_mut()
            .unwrap()
            .wait_for_output("runs:", LIMIT)
            .unwrap();
        bench
    }

    fn socket(&self) -> String {
        self.folder.join("weir.sock").display().to_string()
    }

    fn run(&self) -> Running {
        let (config, socket) = (
            self.folder.join("weir.yaml").display().to_string(),
            self.socket(),
        );
        self.lab
            .host(ROUTER)
            .unwrap()
            .spawn(WEIR, &["run", "-c", &config, "--socket", &socket])
            .unwrap()
    }

    /// What `weir ARGUMENTS --json` says.
    fn command(&self, arguments: &[&str]) -> std::process::Output {
        std::process::Command::new(WEIR)
            .args(["--socket", &self.socket()])
            .args(arguments)
            .output()
            .unwrap()
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// What it says instead of doing it.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(
            !output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn in_near(&self, program: &str, arguments: &[&str]) -> String {
        let done = self
            .lab
            .host(NEAR)
            .unwrap()
            .run(program, arguments, LIMIT)
            .unwrap();
        assert!(
            done.success(),
            "{program} {arguments:?}: {} {}",
            done.stdout,
            done.stderr
        );
        done.stdout
    }

    /// Ends the router as an operator would; its exit code and what it said.
    fn stop(&mut self) -> (Option<i32>, String) {
        let running = self.router.take().unwrap();
        let done = running.interrupt().unwrap();
        (done.status.code(), done.stderr)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn hosts_reach_each_other_through_the_router_and_it_ends_cleanly() {
    if !lab_possible() || !has_program("ping") {
        return;
    }
    let mut bench = Bench::start("reach", "");
    for size in ["56", "1400", "4000"] {
        let output = bench.in_near(
            "ping",
            &["-c", "5", "-i", "0.05", "-W", "2", "-s", size, "10.2.0.2"],
        );
        assert!(
            output.contains(" 0% packet loss") && output.contains("ttl=63"),
            "{output}"
        );
    }
    assert!(
        bench
            .in_near("ping", &["-c", "2", "-i", "0.05", "-W", "2", "10.1.0.1"])
            .contains(" 0% packet loss")
    );
    if has_program("traceroute") {
        let hops = bench.in_near("traceroute", &["-n", "-q", "1", "-w", "2", "10.2.0.2"]);
        assert!(
            hops.contains(" 1  10.1.0.1 ") && hops.contains(" 2  10.2.0.2 "),
            "{hops}"
        );
    }
    let interfaces = bench.ask(&["show", "interface", "--json"]);
    assert_eq!(interfaces["interfaces"][0]["name"], "xe0");
    assert!(interfaces["interfaces"][0]["rx"]["packets"].as_u64() > Some(15));
    let totals = bench.ask(&["show", "totals", "--json"]);
    assert!(totals["packets_out"].as_u64() > Some(20), "{totals}");
    let sampled = bench.ask(&["show", "sflow", "interface", "xe0", "--json"]);
    assert_eq!(
        (sampled.as_array().map(Vec::len), &sampled[0]["interface"]),
        (Some(1), &"xe0".into()),
        "{sampled:#}"
    );
    for (interface, why) in [("xe1", "interface xe1 is not sampled"), ("xe9", "xe9")] {
        let said = bench.refusal(&["show", "sflow", "interface", interface]);
        assert!(said.contains(why), "{said}");
    }
    let (code, said) = bench.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(!PathBuf::from(bench.socket()).exists());
}

#[test]
fn a_packets_way_is_the_one_in_the_architecture_page() {
    if !lab_possible() || !has_program("ping") {
        return;
    }
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ARCHITECTURE.md"
    ))
    .unwrap();
    let (_, list) = page.split_once("<!-- way:begin -->").unwrap();
    let (list, _) = list.split_once("<!-- way:end -->").unwrap();
    let reported: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    let bench = Bench::start("way", "");
    bench.in_near("ping", &["-c", "2", "-i", "0.05", "-W", "2", "10.2.0.2"]);
    bench.ask(&["trace", "add", "any", "20", "--interface", "xe0"]);
    bench.in_near("ping", &["-c", "2", "-i", "0.05", "-W", "2", "10.2.0.2"]);
    std::thread::sleep(Duration::from_millis(300));
    let trace = bench.ask(&["trace", "show", "--json"]);
    let packets = trace["packets"].as_array().unwrap();
    let way = |packet: &Value| -> Vec<String> {
        packet["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["node"].as_str().unwrap().to_owned())
            .collect()
    };
    let echo = packets
        .iter()
        .find(|packet| packet["headers"].as_str().unwrap().contains("icmp"));
    assert_eq!(way(echo.expect("no traced echo request")), reported);
}

#[test]
fn two_and_four_workers_lose_and_reorder_nothing() {
    if !lab_possible() || !has_program("iperf3") {
        return;
    }
    for workers in ["workers: { count: 2 }", "workers: { count: 4 }"] {
        let mut bench = Bench::start("workers", workers);
        let server = bench
            .lab
            .host(FAR)
            .unwrap()
            .spawn("iperf3", &["-s", "-1"])
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let report = bench.in_near(
            "iperf3",
            &[
                "-c", "10.2.0.2", "-u", "-b", "20M", "-l", "200", "-t", "2", "-J",
            ],
        );
        drop(server);
        let report: Value = serde_json::from_str(&report).unwrap();
        let sum = &report["end"]["sum"];
        assert!(sum["packets"].as_u64() > Some(10_000), "{sum}");
        assert_eq!(sum["out_of_order"].as_u64().unwrap_or(0), 0, "{sum}");
        let placement = bench.ask(&["show", "rx-placement", "--json"]);
        assert_eq!(
            placement["queues"].as_array().map(Vec::len),
            Some(2),
            "{placement}"
        );
        assert_ne!(
            placement["queues"][0]["worker"], placement["queues"][1]["worker"],
            "ports on different workers: packets are handed over"
        );
        let errors = bench.ask(&["show", "errors", "--json"]);
        assert!(!errors.to_string().contains("handoff-full"), "{errors}");
        assert_eq!(bench.stop().0, Some(0));
    }
}

#[test]
fn changes_of_other_interfaces_lose_no_datagram() {
    if !lab_possible() || !has_program("iperf3") {
        return;
    }
    let mut bench = Bench::start("changes", "");
    let _server = bench
        .lab
        .host(FAR)
        .unwrap()
        .spawn("iperf3", &["-s", "-1"])
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let arguments = [
        "-c", "10.2.0.2", "-u", "-b", "4M", "-l", "200", "-t", "3", "-J",
    ];
    let traffic = bench
        .lab
        .host(NEAR)
        .unwrap()
        .spawn("iperf3", &arguments)
        .unwrap();
    let file = bench.folder.join("weir.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let more = before
        .replace(
            "  xe1:",
            "  xe7: { device: { driver: 'null' }, addresses: [ 10.7.0.1/24 ], mtu: 1400 }\n  xe1:",
        )
        .replace("sampling-rate: 10,", "sampling-rate: 3,")
        + "routes: [ { prefix: 10.99.0.0/16, via: 10.7.0.2 } ]\n";
    let other = bench.folder.join("more.yaml").display().to_string();
    std::fs::write(&other, more).unwrap();
    let mut steps = 0;
    for round in 0..8 {
        let wanted = if round % 2 == 0 {
            other.clone()
        } else {
            file.display().to_string()
        };
        let applied = bench.ask(&["config", "apply", "-c", &wanted, "--json"]);
        steps += applied["steps"].as_array().map_or(0, Vec::len);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(steps >= 8 * 3, "{steps}");
    let report: Value = serde_json::from_str(&traffic.wait(LIMIT).unwrap().stdout).unwrap();
    let sum = &report["end"]["sum"];
    assert!(sum["packets"].as_u64() > Some(5000), "{sum}");
    assert_eq!(
        (
            sum["lost_packets"].as_u64(),
            sum["out_of_order"].as_u64().unwrap_or(0)
        ),
        (Some(0), 0),
        "{sum}"
    );
    assert_eq!(bench.stop().0, Some(0));
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    if !lab_possible() {
        return;
    }
    let bench = Bench::start("refused", "");
    let second = bench.run().wait(LIMIT).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(
        second
            .stderr
            .lines()
            .filter(|line| line.starts_with("weir: "))
            .count(),
        1,
        "{}",
        second.stderr
    );
}

#[test]
fn a_device_that_vanishes_and_returns() {
    if !lab_possible() || !has_program("ping") {
        return;
    }
    let mut bench = Bench::start("vanish", "");
    bench.in_near("ping", &["-c", "1", "-W", "2", "10.2.0.2"]);
    let router = bench.lab.host(ROUTER).unwrap();
    let index = router.link("port-b").unwrap().index;
    router.route().unwrap().delete(index).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(
        bench
            .in_near("ping", &["-c", "2", "-i", "0.1", "-W", "2", "10.1.0.1"])
            .contains(" 0% packet loss"),
        "the other port goes on"
    );
    let interfaces = bench.ask(&["show", "interface", "--json"]);
    assert_eq!(interfaces["interfaces"][1]["link"], "down", "{interfaces}");
    let end =
        weir_netlink::lab::Port::new(FAR, "eth0").address(std::net::Ipv4Addr::new(10, 2, 0, 2), 24);
    let end = end
        .offload(weir_netlink::ethtool::Offload::TxChecksum, false)
        .offload(weir_netlink::ethtool::Offload::GenericReceive, true);
    bench
        .lab
        .connect(&weir_netlink::lab::Cable::new(
            end,
            weir_netlink::lab::Port::new(ROUTER, "port-b"),
        ))
        .unwrap();
    bench
        .lab
        .default_route(FAR, std::net::Ipv4Addr::new(10, 2, 0, 1))
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert!(
        bench
            .in_near("ping", &["-c", "3", "-i", "0.2", "-W", "2", "10.2.0.2"])
            .contains(" 0% packet loss")
    );
    let (code, said) = bench.stop();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("link is down").count(), 1, "{said}");
    assert!(said.contains("the device is back"), "{said}");
}

/// Packets that went from near to far, at least, and the bound of four sigma for one in ten of them.
fn send_datagrams(bench: &Bench) -> (u64, f64) {
    let _server = bench
        .lab
        .host(FAR)
        .unwrap()
        .spawn("iperf3", &["-s", "-1"])
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    bench.in_near(
        "iperf3",
        &["-c", "10.2.0.2", "-u", "-b", "16M", "-l", "200", "-t", "3"],
    );
    std::thread::sleep(Duration::from_millis(1500));
    let interfaces = bench.ask(&["show", "interface", "--json"]);
    let packets = interfaces["interfaces"][0]["rx"]["packets"]
        .as_u64()
        .unwrap();
    (packets, 4.0 * 10.0 * (packets as f64 * 0.1 * 0.9).sqrt())
}

#[test]
fn independent_collectors_read_the_agent() {
    if !lab_possible() {
        return;
    }
    for program in ["iperf3", "sfcapd", "sfacctd", "tcpdump", "tshark"] {
        if !has_program(program) {
            return eprintln!("skipped: {program} is not installed");
        }
    }
    let bench = Bench::start("collectors", "");
    let router = bench.lab.host(ROUTER).unwrap();
    let path = |name: &str| bench.folder.join(name).display().to_string();
    std::fs::create_dir_all(bench.folder.join("nf")).unwrap();
    let sfcapd = router
        .spawn(
            "sfcapd",
            &[
                "-t",
                "2",
                "-l",
                &path("nf"),
                "-p",
                "6343",
                "-b",
                "127.0.0.1",
            ],
        )
        .unwrap();
    let pmacct = "plugins: print
aggregate: src_host, dst_host
print_output: csv
print_refresh_time: 60
print_output_file_append: true
sfacctd_renormalize: true
";
    std::fs::write(
        path("pmacct.conf"),
        format!("{pmacct}print_output_file: {}\n", path("pmacct.csv")),
    )
    .unwrap();
    let sfacctd = router
        .spawn(
            "sfacctd",
            &["-f", &path("pmacct.conf"), "-L", "127.0.0.1", "-l", "6344"],
        )
        .unwrap();
    let tcpdump = router
        .spawn(
            "tcpdump",
            &[
                "-i",
                "lo",
                "-U",
                "-w",
                &path("sflow.pcap"),
                "udp",
                "port",
                "6343",
            ],
        )
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let (packets, bound) = send_datagrams(&bench);

    let said = sfcapd.interrupt().unwrap();
    let said = said.stdout + &said.stderr;
    // It sums up at each change of its file, and at its end.
    let sums: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("Sequence Errors:"))
        .collect();
    assert!(
        !sums.is_empty()
            && sums
                .iter()
                .all(|sum| sum.contains("Sequence Errors: 0, Bad Packets: 0")),
        "{said}"
    );
    let packets_of = |sum: &&str| {
        sum.split("Packets: ")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let scaled: f64 = sums.iter().map(packets_of).sum();
    assert!(
        (scaled - packets as f64).abs() <= bound,
        "sfcapd scaled to {scaled}, {packets} were sent"
    );

    sfacctd.interrupt().unwrap();
    let table = std::fs::read_to_string(path("pmacct.csv")).unwrap_or_default();
    // pmacct writes and forgets what it has at every full minute, and once more at its end: a run across one has two rows.
    let rows = table
        .lines()
        .filter(|line| line.starts_with("10.1.0.2,10.2.0.2,"));
    let scaled: f64 = rows
        .map(|row| row.split(',').nth(2).unwrap().parse::<f64>().unwrap())
        .sum();
    assert!(
        (scaled - packets as f64).abs() <= bound + 20.0,
        "sfacctd scaled to {scaled}, {packets} were sent: {table}"
    );

    tcpdump.interrupt().unwrap();
    let read = std::process::Command::new("tshark")
        .args(["-r", &path("sflow.pcap"), "-V"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&read.stdout);
    // Wireshark's dissector does not advance past a counters record whose format it does not know, and reads the next
    // record from inside it. Host records (2000 to 2010) are such, and share a sample, so their datagrams prove nothing.
    // sfcapd and sfacctd, above, read these datagrams.
    let fault = text
        .split("\nFrame ")
        .filter(|frame| frame.to_lowercase().contains("malformed"))
        .find(|frame| !(2000..=2010).any(|format| frame.contains(&format!("({format})"))));
    assert!(
        text.contains("InMon sFlow") && fault.is_none(),
        "tshark finds fault: {}",
        fault.unwrap_or_default()
    );
}

#[test]
fn the_demo_balances_and_estimates() {
    if !lab_possible() {
        return;
    }
    let output = std::process::Command::new(WEIR)
        .args(["demo", "--duration", "10s", "--json"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |key: &str| {
        summary[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {summary}"))
    };
    let drops: u64 = summary["drops"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(
        number("packets_in") + number("originated") + number("replicated"),
        number("packets_out") + drops + number("consumed") + number("held"),
        "{summary}"
    );
    assert!(number("samples_taken") > 0, "{summary}");
    assert_eq!(summary["drops"], summary["drop_reasons"]);
    // Every packet is in one flow record, and the route that is broken on purpose is reported.
    assert_eq!(number("flow_packets"), number("packets_in"), "{summary}");
    assert!(number("flows_metered") > 0, "{summary}");
    assert!(
        summary["drop_reasons"]["host-unreachable"].as_u64() > Some(0),
        "{summary}"
    );
    assert_eq!(
        number("samples_taken"),
        number("samples_sent") + number("samples_dropped")
    );
    assert_eq!(
        number("samples_sent"),
        summary["samples_received"].as_u64().unwrap()
    );
    // Losses of a busy machine are no failure: what the router lost is in the balance above.
    if has_program("ping") {
        assert!(
            summary["ping_loss_percent"].as_f64() < Some(100.0),
            "{summary}"
        );
    }
    // 1.96 sigma is the expected error; real entropy, so the bound is 4 sigma: one failure in 15,000 runs.
    let (error, expected) = (
        summary["error_percent"].as_f64().unwrap(),
        summary["expected_error_percent"].as_f64().unwrap(),
    );
    assert!(error <= expected / 1.96 * 4.0, "{summary}");
}
