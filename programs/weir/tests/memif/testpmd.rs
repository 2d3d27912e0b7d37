//! DPDK's testpmd as the other end of a whole router's port, in both roles.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::router::{AT_HAND, Folder, Weir, wait_for};

const PROGRAM: &str = "dpdk-testpmd";
const PACKETS: u64 = 20_000;

/// Whether there is a testpmd; says in one line that there is none.
fn testpmd_is_there() -> bool {
    let there = rustix::process::geteuid().is_root()
        && std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).exists())
        });
    if !there {
        eprintln!("skipped: needs root and {PROGRAM} (Debian: dpdk-dev)");
    }
    there
}

/// A running testpmd that sends every frame back with its addresses swapped; killed at the end.
struct Testpmd {
    child: Child,
    runtime: PathBuf,
}

impl Testpmd {
    fn start(role: &str, socket: &str) -> Testpmd {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!(
            "weir-router-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let device = format!(
            "net_memif0,id=7,role={role},socket={socket},socket-abstract=no,secret=sesame,rsize=11"
        );
        // It polls, so a limit of processor time ends it whatever happens here.
        let child = Command::new("prlimit")
            .args([
                "--cpu=90",
                PROGRAM,
                "--lcores",
                &format!("(0,1)@(0-{})", cores - 1),
            ])
            .args([
                "--no-huge",
                "-m",
                "256",
                "--no-pci",
                "--no-telemetry",
                "--file-prefix",
                &prefix,
            ])
            .args(["--vdev", &device])
            // Otherwise it throws away what comes before it begins to forward.
            .args([
                "--",
                "--auto-start",
                "--no-flush-rx",
                "--forward-mode=macswap",
                "--total-num-mbufs=8192",
                "--rxq=2",
                "--txq=2",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Testpmd {
            child,
            runtime: Path::new("/var/run/dpdk").join(prefix),
        }
    }

    /// Lets it end and say what it counted.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        said
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.runtime);
    }
}

/// What a generator makes goes to testpmd, and what comes back is swallowed. Two queues.
fn around(socket: &str, role: &str) -> String {
    format!(
        "interfaces:
  m0:
    device: {{ driver: memif, socket: {socket}, id: 7, role: {role}, secret: sesame, queues: 2, ring-size: 2048 }}
    l2xc: back
  back: {{ device: {{ driver: 'null' }} }}
buffers: {{ hugepages: off }}
"
    )
}

fn generator(limit: u64) -> String {
    format!(
        "interfaces:
  out:
    device: {{ driver: generator, streams: [ {{ name: a, limit: {limit}, rate: 10000, size: 500, source: 172.16.0.2-172.16.3.255, destination: 10.0.0.2 }} ] }}
    l2xc: m0
"
    )
}

#[test]
fn frames_through_testpmd_and_back_without_loss() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [("slave", "server"), ("master", "client")] {
        let folder = Folder::new();
        let socket = folder.file("memif.sock");
        let weir = Weir::start(&folder, role, &around(&socket, role));
        let testpmd = Testpmd::start(theirs, &socket);
        wait_for("testpmd is there", || weir.link_is_up("m0"));
        let port = weir.memif("m0");
        assert!(port["peer"].as_str().unwrap().contains("DPDK"), "{port}");
        assert_eq!(
            (
                port["rx_rings"].as_u64(),
                port["tx_rings"].as_u64(),
                port["ring_size"].as_u64()
            ),
            (Some(2), Some(2), Some(2048))
        );
        weir.change("interfaces:\n", &generator(PACKETS));
        wait_for("all frames are sent", || weir.has_sent("m0", PACKETS));
        let sent = weir.packets("m0").1;
        wait_for("all frames came back", || weir.packets("back").1 == sent);
        assert_eq!(weir.packets("m0"), (sent, sent));
        let said = testpmd.end();
        let all = said
            .split("Accumulated forward statistics")
            .nth(1)
            .unwrap_or_default();
        assert!(
            all.contains(&format!("RX-packets: {sent}"))
                && all.contains(&format!("TX-packets: {sent}")),
            "{said}"
        );
        wait_for("its end is noticed", || !weir.link_is_up("m0"));
        let log = weir.stop();
        assert!(
            log.contains("m0: the peer is \"DPDK") && !log.contains("sesame"),
            "{log}"
        );
        println!("as {role}: {sent} frames to testpmd and back, 0 lost");
    }
}

#[test]
fn a_testpmd_that_is_killed_and_returns_is_served_again() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [("slave", "server"), ("master", "client")] {
        let folder = Folder::new();
        let socket = folder.file("memif.sock");
        let weir = Weir::start(&folder, role, &around(&socket, role));
        weir.change("interfaces:\n", &generator(0));
        for round in 1..=2 {
            let testpmd = Testpmd::start(theirs, &socket);
            wait_for("testpmd is there", || weir.link_is_up("m0"));
            let before = weir.packets("back").1;
            wait_for("frames come back", || {
                weir.packets("back").1 > before + 1000
            });
            // In the middle of it.
            drop(testpmd);
            wait_for("its death is noticed", || !weir.link_is_up("m0"));
            assert_eq!(
                (
                    weir.memif("m0")["connects"].as_u64(),
                    weir.disconnects("m0", "peer_gone")
                ),
                (Some(round), round)
            );
            if theirs == "server" {
                let _ = std::fs::remove_file(&socket);
            }
        }
        let reasons = weir.drops();
        assert!(
            reasons.as_object().unwrap().keys().all(|reason| [
                "tx-down",
                "tx-full",
                "interface-down"
            ]
            .contains(&reason.as_str())),
            "{reasons}"
        );
        weir.change("limit: 0", "limit: 1");
        // Each peer had more than this.
        wait_for("what the peers had is home", || {
            weir.buffers_in_use() <= AT_HAND
        });
        weir.stop();
    }
}
