//! Starting and changing a router on a machine that does not have what the configuration names, in
//! network namespaces that the test makes. What an edit may do, a restart can do.
//!
//! Skipped with one line where no lab can be made (not root).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_netlink::lab::{Cable, FAR, Lab, Port, ROUTER, Running, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(30);

/// A router in a namespace, with its folder.
struct Bench {
    lab: Lab,
    router: Option<Running>,
    folder: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Option<Bench> {
        if let Err(why) = preflight() {
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Some(Bench {
            lab: Lab::two_hosts().build().unwrap(),
            router: None,
            folder,
        })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A file with these lines, and a history in the folder.
    fn file(&self, name: &str, text: &str) -> String {
        let text = format!("{text}\nhistory: {{directory: {}}}\n", self.path("history"));
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn start(&mut self) {
        let (config, socket) = (self.path("weir.yaml"), self.path("weir.sock"));
        let router = self.lab.host(ROUTER).unwrap();
        let mut running = router
            .spawn(WEIR, &["run", "-c", &config, "--socket", &socket])
            .unwrap();
        running.wait_for_output("runs:", LIMIT).unwrap();
        self.router = Some(running);
    }

    fn stop(&mut self) {
        let done = self.router.take().unwrap().interrupt().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    }

    /// The exit code of a command, and all that it printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = std::process::Command::new(WEIR)
            .args(["--socket", &self.path("weir.sock")])
            .args(arguments)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let (code, text) = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(code, 0, "{arguments:?}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The counters in the form of Prometheus.
    fn metrics(&self) -> String {
        let mut stream = UnixStream::connect(self.path("weir.sock")).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn interface(&self, name: &str) -> Value {
        self.ask(&["show", "interface", name])["interfaces"][0].clone()
    }

    #[track_caller]
    fn wait_for_link(&self, name: &str) {
        let until = Instant::now() + LIMIT;
        while self.interface(name)["link"] != "up" {
            assert!(Instant::now() < until, "{}", self.interface(name));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const TWO: &str = "interfaces:
  xe0: {device: {driver: af-xdp, name: port-a}, addresses: [10.1.0.1/24]}
  xe1: {device: {driver: af-xdp, name: port-b}, addresses: [10.2.0.1/24]}";

#[test]
fn a_router_starts_without_a_device_and_takes_it_when_it_comes() {
    let Some(mut bench) = Bench::new("missing") else {
        return;
    };
    let three = format!("{TWO}\n  xe2: {{device: {{driver: af-xdp, name: port-z}}}}");
    let file = bench.file("weir.yaml", &three);
    bench.start();
    assert_eq!(bench.interface("xe0")["link"], "up");
    assert_eq!(bench.interface("xe2")["link"], "down");
    let (code, said) = bench.run(&["show", "system"]);
    assert_eq!(code, 0);
    assert!(said.contains("degraded") && said.contains("xe2"), "{said}");
    assert!(bench.metrics().contains("\nweir_degraded 1\n"));
    // The file is still accepted, with a warning at the place of the device.
    bench.file("weir.yaml", &three.replace("10.2.0.1", "10.2.0.3"));
    let (code, said) = bench.run(&["config", "apply", "-c", &file]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("there is no network device `port-z`"),
        "{said}"
    );
    // A device that is new in the file and missing is most likely a mistake.
    let typo = bench.file("typo.yaml", &three.replace("port-b", "prot-b"));
    let (code, said) = bench.run(&["config", "apply", "-c", &typo]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("did you mean `port-b`?"), "{said}");
    let cable = Cable::new(Port::new(ROUTER, "port-z"), Port::new(FAR, "z0"));
    bench.lab.connect(&cable).unwrap();
    bench.wait_for_link("xe2");
    assert_eq!(bench.ask(&["show", "system"])["state"], "ok");
    assert!(bench.metrics().contains("\nweir_degraded 0\n"));
    bench.stop();
}

#[test]
fn an_edit_is_checked_against_the_machine_as_a_file_is() {
    let Some(mut bench) = Bench::new("edit") else {
        return;
    };
    bench.file("weir.yaml", &format!("{TWO}\nloopbacks: {{loop0: {{}}}}"));
    bench.start();
    let (code, said) = bench.run(&["set", "interface", "mtu", "1600", "xe0"]);
    assert_eq!(code, 4, "{said}");
    let message = "the device `port-a` cannot do an MTU of 1600";
    assert!(said.contains(message), "{said}");
    let (code, said) = bench.run(&["set", "interface", "mtu", "1600", "xe0", "--json"]);
    let report: Value = serde_json::from_str(said.split("\nweir:").next().unwrap()).unwrap();
    assert_eq!((code, &report["valid"]), (4, &Value::Bool(false)), "{said}");
    assert_eq!(report["findings"][0]["message"], message);
    // The same edit over HTTP.
    let client = weir_api::Client::new(std::path::Path::new(&bench.path("weir.sock")));
    let patch = weir_api::InterfacePatch {
        mtu: weir_api::Edit::Set(1600),
        ..Default::default()
    };
    let refusal = client.interface_patch("xe0", &patch).unwrap_err();
    let findings = &refusal.refusal().unwrap().findings;
    assert_eq!(findings[0].message, message);
    // What an interface of this kind cannot have is refused, not done in name only.
    for edit in [
        &["set", "interface", "state", "loop0", "down"][..],
        &["sflow", "enable-disable", "loop0"],
    ] {
        let (code, said) = bench.run(edit);
        assert!(code != 0 && said.contains("loop0 is a loopback"), "{said}");
    }
    bench.stop();
    bench.start();
    assert_eq!(bench.interface("xe0")["link"], "up");
    bench.stop();
}

#[test]
fn a_device_of_the_machine_is_taken_only_when_the_file_says_so() {
    let Some(mut bench) = Bench::new("management") else {
        return;
    };
    let host = bench.lab.host(ROUTER).unwrap();
    let mut route = host.route().unwrap();
    let port = host.link("port-b").unwrap().index;
    route
        .add_address(port, "192.0.2.5".parse().unwrap(), 24)
        .unwrap();
    bench
        .lab
        .default_route(ROUTER, std::net::Ipv4Addr::new(192, 0, 2, 1))
        .unwrap();
    bench.file("weir.yaml", TWO);
    bench.start();
    assert_eq!(bench.interface("xe0")["link"], "up");
    assert_eq!(bench.interface("xe1")["link"], "down");
    let used = "the address 192.0.2.5 and the default route";
    let (_, said) = bench.run(&["show", "system"]);
    assert!(said.contains(used) && said.contains("xe1"), "{said}");
    // Another interface for the device is refused by the check and by the change.
    let other = bench.file("other.yaml", &TWO.replace("xe1", "wan"));
    for command in [
        &["config", "check", "--running", "-c", &other][..],
        &["config", "plan", "-c", &other],
        &["config", "apply", "-c", &other],
    ] {
        let (code, said) = bench.run(command);
        assert_eq!(code, 4, "{command:?} {said}");
        assert!(
            said.contains(used) && said.contains("allow-management"),
            "{said}"
        );
    }
    let allowed = bench.file(
        "allowed.yaml",
        &TWO.replace("port-b}", "port-b, allow-management: true}"),
    );
    let (code, said) = bench.run(&["config", "apply", "-c", &allowed]);
    assert_eq!(code, 0, "{said}");
    bench.wait_for_link("xe1");
    bench.stop();
}

#[test]
fn after_any_accepted_edits_the_router_starts_again() {
    let Some(mut bench) = Bench::new("edits") else {
        return;
    };
    let start = "interfaces:
  xe0:
    device: {driver: af-xdp, name: port-a}
    sub-interfaces: {7: {encapsulation: {dot1q: 7, exact-match: true}, addresses: [10.7.0.1/24]}}
  xe1: {device: {driver: af-xdp, name: port-b}, addresses: [10.2.0.1/24]}
  sink: {device: {driver: 'null'}}
loopbacks: {loop0: {addresses: [10.9.0.1/32]}}
sflow: {collectors: [{address: 127.0.0.1}]}";
    bench.file("weir.yaml", start);
    // A fixed sequence of numbers, so that a failure can be repeated (xorshift).
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let names = ["xe0", "xe1", "sink", "loop0", "xe0.7", "absent"];
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..4 {
        bench.start();
        let mut done = Vec::new();
        for _ in 0..20 {
            let name = names[draw(names.len())];
            let mtu = ["100", "576", "1400", "1500", "1501", "9000", "70000"][draw(7)];
            let state = ["up", "down"][draw(2)];
            let sampling = ["enable", "disable"][draw(2)];
            let number = ["0", "1", "64", "256", "4000000000"][draw(5)];
            let edit: Vec<&str> = match draw(7) {
                0 | 1 => vec!["set", "interface", "mtu", mtu, name],
                2 => vec!["set", "interface", "state", name, state],
                3 => vec!["set", "interface", "description", name, "some text"],
                4 => vec!["sflow", "sampling-rate", number],
                5 => vec!["sflow", "header-bytes", number],
                _ => vec!["sflow", "enable-disable", name, sampling],
            };
            let (code, said) = bench.run(&edit);
            if code == 0 {
                accepted += 1;
                done.push(edit.join(" "));
            } else {
                refused += 1;
                assert!(said.contains("weir:"), "{edit:?} {said}");
            }
        }
        let before = bench.ask(&["show", "interface"]);
        bench.stop();
        bench.start();
        let after = bench.ask(&["show", "interface"]);
        for (before, after) in before["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .zip(after["interfaces"].as_array().unwrap())
        {
            for key in ["name", "mtu", "admin"] {
                assert_eq!(before[key], after[key], "{done:#?}");
            }
        }
        let system = bench.ask(&["show", "system"]);
        assert_eq!(system["state"], "ok", "{system} {done:#?}");
        bench.stop();
    }
    assert!(accepted > 20 && refused > 10, "{accepted} {refused}");
}

#[test]
fn a_machine_with_one_device_keeps_its_address_behind_the_router() {
    let Some(mut bench) = Bench::new("one-nic") else {
        return;
    };
    if !weir_netlink::lab::has_program("ping") {
        return;
    }
    let text = "interfaces:
  wan: {device: {driver: af-xdp, name: port-b, allow-management: true}}
taps:
  tap0: {host: {name: mgmt}}
bridgedomains:
  bd1: {interfaces: [wan, tap0]}";
    bench.file("weir.yaml", text);
    bench.start();
    let host = bench.lab.host(ROUTER).unwrap();
    let mut route = host.route().unwrap();
    let mgmt = host.link("mgmt").unwrap().index;
    route.set_up(mgmt, true).unwrap();
    // The subnet of the far host, which is directly reached now.
    route
        .add_address(mgmt, "10.2.0.1".parse().unwrap(), 24)
        .unwrap();
    bench.wait_for_link("wan");
    let far = Lab::two_hosts().far_address().to_string();
    let done = host
        .run("ping", &["-c", "5", "-i", "0.2", "-W", "2", &far], LIMIT)
        .unwrap();
    assert!(done.success(), "{} {}", done.stdout, done.stderr);
    bench.stop();
}
