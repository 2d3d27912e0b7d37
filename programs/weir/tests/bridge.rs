//! A bridge domain for real: three hosts in network namespaces of their own, AF_XDP on veth, and a routed side.
//!
//! Skipped with one line where no lab can be made (not root).

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::{Cable, Lab, Port, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);
const HOSTS: [&str; 3] = ["one", "two", "three"];

/// Three hosts, 10.9.0.11 to .13, on a running router's bridge domain; its routed side is 10.9.0.1.
struct Bench {
    router: Option<Running>,
    lab: Lab,
    folder: PathBuf,
}

impl Bench {
    fn start(domain: &str) -> Bench {
        let mut lab = Lab::new();
        lab.add_host(ROUTER).unwrap();
        let mut interfaces = String::new();
        for (number, host) in HOSTS.iter().enumerate() {
            lab.add_host(host).unwrap();
            let address = Ipv4Addr::new(10, 9, 0, 11 + number as u8);
            let (near, far) = (
                Port::new(ROUTER, &format!("port-{number}")),
                Port::new(host, "eth0").address(address, 24),
            );
            lab.connect(&Cable::new(near, far)).unwrap();
            interfaces +=
                &format!("  xe{number}: {{device: {{driver: af-xdp, name: port-{number}}}}}\n");
        }
        let folder = std::env::temp_dir().join(format!("weir-bridge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let history = folder.join("history").display().to_string();
        let config = format!(
            "interfaces:\n{interfaces}loopbacks: {{loop0: {{addresses: [10.9.0.1/24]}}}}\n\
             bridgedomains: {{bd1: {{interfaces: [xe0, xe1, xe2], bvi: loop0, {domain}}}}}\nhistory: {{directory: {history}}}\n"
        );
        std::fs::write(folder.join("weir.yaml"), config).unwrap();
        let mut bench = Bench {
            router: None,
            lab,
            folder,
        };
        let (config, socket) = (
            bench.folder.join("weir.yaml").display().to_string(),
            bench.socket(),
        );
        let router = bench
            .lab
            .host(ROUTER)
            .unwrap()
            .spawn(WEIR, &["run", "-c", &config, "--socket", &socket])
            .unwrap();
        bench
            .router
            .insert(router)
            .wait_for_output("runs:", LIMIT)
            .unwrap();
        bench
    }

    fn socket(&self) -> String {
        self.folder.join("weir.sock").display().to_string()
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &self.socket()])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What ping says of two requests.
    fn ping(&self, from: &str, to: &str) -> String {
        let done = self
            .lab
            .host(from)
            .unwrap()
            .run("ping", &["-c", "2", "-i", "0.1", "-W", "2", to], LIMIT)
            .unwrap();
        done.stdout
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn three_hosts_reach_one_another_and_the_routed_side() {
    if let Err(why) = preflight() {
        return eprintln!("skipped: {why}");
    }
    if !has_program("ping") {
        return;
    }
    let mut bench = Bench::start(
        "split-horizon-groups: [{interface: xe1, group: 1}, {interface: xe2, group: 1}]",
    );
    for (from, to) in [
        ("one", "10.9.0.12"),
        ("one", "10.9.0.13"),
        ("two", "10.9.0.11"),
        ("two", "10.9.0.1"),
        ("three", "10.9.0.1"),
    ] {
        let said = bench.ping(from, to);
        assert!(
            said.contains(" 0% packet loss") && said.contains("ttl=64"),
            "{from} to {to}: {said}"
        );
    }
    let said = bench.ping("two", "10.9.0.13");
    assert!(
        said.contains(" 100% packet loss"),
        "two and three are in one split-horizon group: {said}"
    );

    let domains = bench.ask(&["show", "bridge-domain", "--json"]);
    let domain = &domains["bridges"][0];
    assert_eq!(
        (&domain["name"], &domain["stations"], &domain["moved"]),
        (&"bd1".into(), &3.into(), &0.into()),
        "{domains}"
    );
    assert_eq!(domain["members"].as_array().unwrap().len(), 4);
    assert!(domain["flooded"].as_u64() > Some(0), "{domains}");
    let l2fib = bench.ask(&["show", "l2fib", "bd1", "--json"]);
    let stations = l2fib["stations"].as_array().unwrap();
    let mut behind: Vec<_> = stations
        .iter()
        .map(|it| (it["interface"].as_str().unwrap(), it["static"] == true))
        .collect();
    behind.sort();
    assert_eq!(
        behind,
        [
            ("loop0", true),
            ("xe0", false),
            ("xe1", false),
            ("xe2", false)
        ],
        "{l2fib}"
    );

    let done = bench.router.take().unwrap().interrupt().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}
