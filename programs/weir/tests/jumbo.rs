//! Long frames through the program itself: hosts with an MTU of 9216 in network namespaces, real veth, AF_XDP and a TAP.
//!
//! Skipped with one line where no lab can be made (not root), or the kernel has no AF_XDP frames of several pieces.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_netlink::lab::{FAR, Lab, NEAR, ROUTER, Running, has_program, preflight};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const LIMIT: Duration = Duration::from_secs(60);

/// Says in one line why not.
fn possible() -> bool {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let why = match preflight() {
        Err(why) => why,
        Ok(()) if version < (6, 6) => {
            format!("Linux {release} hands over no long frames by AF_XDP, 6.6 does")
        }
        Ok(()) if !has_program("ping") => "no ping".to_owned(),
        Ok(()) => return true,
    };
    eprintln!("skipped: {why}");
    false
}

/// Two hosts, the router between them, and a TAP of the router in its own namespace.
struct Bench {
    lab: Lab,
    router: Option<Running>,
    folder: PathBuf,
}

impl Bench {
    fn start() -> Bench {
        let lab = Lab::two_hosts().ipv6().mtu(9216).build().unwrap();
        let folder = std::env::temp_dir().join(format!("weir-jumbo-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = format!(
            "interfaces:
  xe0: {{ device: {{ driver: af-xdp, name: port-a }}, mtu: 9216, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ], sflow: true }}
  xe1: {{ device: {{ driver: af-xdp, name: port-b }}, mtu: 9216, addresses: [ 10.2.0.1/24, 'fd00:2::1/64' ] }}
  tap0: {{ addresses: [ 10.3.0.1/24 ] }}
taps:
  tap0: {{ host: {{ name: lin0, mtu: 9000 }} }}
sflow: {{ sampling-rate: 10, collectors: [ {{ address: 127.0.0.1 }} ] }}
history: {{ directory: {} }}
",
            folder.join("history").display()
        );
        std::fs::write(folder.join("weir.yaml"), config).unwrap();
        let mut bench = Bench {
            lab,
            router: None,
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

    #[track_caller]
    fn on(&self, host: &str, line: &str) -> String {
        let (program, arguments) = line.split_once(' ').unwrap();
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let done = self
            .lab
            .host(host)
            .unwrap()
            .run(program, &arguments, LIMIT)
            .unwrap();
        assert!(
            done.success(),
            "{host}: {line}: {} {}\n{}",
            done.stdout,
            done.stderr,
            self.ask(&["show", "errors", "--json"])
        );
        done.stdout
    }

    #[track_caller]
    fn ping(&self, host: &str, to: &str, size: usize) {
        let said = self.on(
            host,
            &format!("ping -c 3 -i 0.05 -W 5 -M do -s {size} {to}"),
        );
        assert!(
            said.contains(" 0% packet loss"),
            "{host} to {to}, {size} bytes: {said}"
        );
    }

    /// TCP for two seconds; every packet of it, and of all before, is accounted for.
    fn iperf(&self, from: &str) {
        let mut server = self
            .lab
            .host(FAR)
            .unwrap()
            .spawn("iperf3", &["-s", "-1", "--forceflush"])
            .unwrap();
        server.wait_for_output("listening", LIMIT).unwrap();
        let report: Value =
            serde_json::from_str(&self.on(from, "iperf3 -c 10.2.0.2 -t 2 -J")).unwrap();
        let (sent, segment) = (
            report["end"]["sum_received"]["bytes"].as_u64(),
            report["start"]["tcp_mss_default"].as_u64(),
        );
        assert!(
            sent > Some(50_000_000) && segment > Some(8900),
            "{sent:?} bytes in segments of {segment:?}: {report}"
        );
        server.wait(LIMIT).unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            let totals = self.ask(&["show", "totals", "--json"]);
            let number = |name: &str| totals[name].as_u64().unwrap_or(0);
            let drops: u64 = totals["drops"]
                .as_object()
                .map_or(0, |drops| drops.values().filter_map(Value::as_u64).sum());
            let came = number("packets_in") + number("originated") + number("replicated");
            let went = number("packets_out") + drops + number("consumed") + number("held");
            if came == went && came > 5000 {
                return;
            }
            assert!(Instant::now() < until, "{totals}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn long_frames_pass_from_veth_to_veth_and_tap() {
    if !possible() {
        return;
    }
    let mut bench = Bench::start();
    for size in [56, 2198, 2199, 4500, 8972, 9188] {
        bench.ping(NEAR, "10.2.0.2", size);
        bench.ping(FAR, "10.1.0.1", size);
    }
    for size in [2178, 8952, 9168] {
        bench.ping(NEAR, "fd00:2::2", size);
        bench.ping(NEAR, "fd00:1::1", size);
    }
    // What the router's namespace sends by the TAP.
    bench.on(ROUTER, "ip address add 10.3.0.2/24 dev lin0");
    bench.on(ROUTER, "ip route add default via 10.3.0.1");
    for size in [56, 2199, 8972] {
        bench.ping(ROUTER, "10.2.0.2", size);
        bench.ping(ROUTER, "10.3.0.1", size);
        bench.ping(NEAR, "10.3.0.2", size);
    }
    // Cut where the TAP's MTU is smaller.
    let said = bench.on(NEAR, "ping -c 3 -i 0.05 -W 5 -M dont -s 9188 10.3.0.2");
    assert!(said.contains(" 0% packet loss"), "{said}");
    if has_program("iperf3") {
        bench.iperf(NEAR);
        bench.iperf(ROUTER);
    }
    let interfaces = bench.ask(&["show", "interface", "--json"]);
    let longest = interfaces["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let rx = &it["rx"];
            rx["bytes"].as_u64().unwrap() / rx["packets"].as_u64().unwrap().max(1)
        });
    assert!(longest.max() > Some(1500), "{interfaces}");
    let done = bench.router.take().unwrap().interrupt().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}
