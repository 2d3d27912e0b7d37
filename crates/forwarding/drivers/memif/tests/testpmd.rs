//! DPDK's testpmd as the other end, in both roles. Needs root and Debian's package dpdk-dev.

mod common;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{End, frame, pool, wait_for};
use weir_buf::Pkt;
use weir_memif::{MemifConfig, Role, Socket};

const PROGRAM: &str = "dpdk-testpmd";

/// Whether there is a testpmd; says in one line that there is none.
fn testpmd_is_there() -> bool {
    let there = rustix::process::geteuid().is_root()
        && std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).exists())
        });
    if !there {
        let _ = writeln!(
            io::stderr(),
            "skipped: needs root and {PROGRAM} (Debian: dpdk-dev)"
        );
    }
    there
}

/// A running testpmd; killed at the end.
struct Testpmd {
    child: Child,
    runtime: PathBuf,
}

impl Testpmd {
    /// `device` is what follows the device's name, `arguments` are testpmd's own.
    fn start(device: &str, arguments: &[&str]) -> Testpmd {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!(
            "weir-memif-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // It polls, so a limit of processor time ends it whatever happens here.
        let child = Command::new("prlimit")
            .args([
                "--cpu=60",
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
            .args(["--vdev", &format!("net_memif0,id=0,{device}")])
            // Otherwise it throws away what comes before it begins to forward.
            .args([
                "--",
                "--auto-start",
                "--no-flush-rx",
                "--total-num-mbufs=4096",
            ])
            .args(arguments)
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

/// A socket path; the file is removed at the end.
struct Meeting(PathBuf);

impl Meeting {
    fn new(name: &str) -> Meeting {
        Meeting(
            std::env::temp_dir().join(format!("weir-testpmd-{name}-{}.sock", std::process::id())),
        )
    }

    fn device(&self, role: &str) -> String {
        format!("role={role},socket={},socket-abstract=no", self.0.display())
    }

    fn config(&self, role: Role) -> MemifConfig {
        MemifConfig::new(role, Socket::Path(self.0.clone()), 0)
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn come_up(end: &mut End) {
    wait_for("testpmd is there", || {
        end.idle();
        end.is_up()
    });
}

/// As testpmd's macswap sends it back.
fn swapped(mut bytes: Vec<u8>) -> Vec<u8> {
    let (destination, rest) = bytes.split_at_mut(6);
    destination.swap_with_slice(&mut rest[..6]);
    bytes
}

/// Sends frames and checks that each comes back with its addresses swapped, in order.
fn ask(end: &mut End, queue: usize, count: u32, length: impl Fn(u32) -> usize) {
    let (mut next, mut expected) = (0, 0);
    wait_for("all frames came back", || {
        // So many under way that testpmd never has to drop.
        let limit = count.min(expected + 128).min(next + 32);
        let packets: Vec<_> = (next..limit)
            .map(|number| end.packet(&frame(number, length(number))))
            .collect();
        if !packets.is_empty() {
            next += end.send(queue, packets) as u32;
        }
        end.tx[queue].flush(&mut end.cache);
        for bytes in end.receive(queue) {
            assert!(
                bytes == swapped(frame(expected, length(expected))),
                "frame {expected}: {} bytes, {:x?}",
                bytes.len(),
                &bytes[..14]
            );
            expected += 1;
        }
        expected == count
    });
}

fn sizes(number: u32) -> usize {
    60 + (number as usize * 31) % 1455
}

#[test]
fn testpmd_as_server_sends_back_what_we_lend_it() {
    if !testpmd_is_there() {
        return;
    }
    let meeting = Meeting::new("server");
    let mut slave = End::open(&meeting.config(Role::Slave), &pool(8192));
    let server = Testpmd::start(&meeting.device("server"), &["--forward-mode=macswap"]);
    come_up(&mut slave);
    ask(&mut slave, 0, 20_000, sizes);
    assert!(slave.port.watch().status().peer.contains("DPDK"));
    let said = server.end();
    assert!(
        said.contains("RX-packets: 20000") && said.contains("TX-packets: 20000"),
        "{said}"
    );
    wait_for("the slave notices", || !slave.is_up());
    slave.close();
}

#[test]
fn testpmd_as_client_gets_back_what_it_lends_us() {
    if !testpmd_is_there() {
        return;
    }
    let meeting = Meeting::new("client");
    let mut master = End::open(&meeting.config(Role::Master), &pool(8192));
    let client = Testpmd::start(&meeting.device("client"), &["--forward-mode=macswap"]);
    come_up(&mut master);
    ask(&mut master, 0, 20_000, sizes);
    let status = master.port.watch().status();
    assert!(
        status.peer.contains("DPDK") && status.interface == "net_memif0",
        "{status:?}"
    );
    let said = client.end();
    assert!(
        said.contains("RX-packets: 20000") && said.contains("TX-packets: 20000"),
        "{said}"
    );
    wait_for("the master notices", || !master.is_up());
    master.close();
}

#[test]
fn queues_rings_and_secrets_agree_with_testpmd() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [(Role::Slave, "server"), (Role::Master, "client")] {
        let meeting = Meeting::new(&format!("queues-{theirs}"));
        let mut secret = [0; 24];
        secret[..7].copy_from_slice(b"sesame!");
        let config = MemifConfig {
            queues: 2,
            ring_size: 512,
            secret: Some(secret),
            ..meeting.config(role)
        };
        let mut end = End::open(&config, &pool(8192));
        let device = format!("{},secret=sesame!,rsize=8", meeting.device(theirs));
        let testpmd = Testpmd::start(&device, &["--forward-mode=macswap", "--rxq=2", "--txq=2"]);
        come_up(&mut end);
        // Our size as slave, theirs as slave.
        assert_eq!(
            end.port.watch().status().ring_size,
            if role == Role::Slave { 512 } else { 256 }
        );
        for queue in [1, 0] {
            ask(&mut end, queue, 2000, sizes);
        }
        drop(testpmd);
        end.close();
    }
}

#[test]
fn a_testpmd_that_is_killed_comes_back_by_itself() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [(Role::Slave, "server"), (Role::Master, "client")] {
        let meeting = Meeting::new(&format!("killed-{theirs}"));
        let mut end = End::open(&meeting.config(role), &pool(8192));
        for round in 1..=2 {
            let testpmd = Testpmd::start(&meeting.device(theirs), &["--forward-mode=macswap"]);
            come_up(&mut end);
            ask(&mut end, 0, 1000, sizes);
            // Frames under way while it dies.
            let packets: Vec<_> = (0..32)
                .map(|number| end.packet(&frame(number, 100)))
                .collect();
            end.send(0, packets);
            drop(testpmd);
            wait_for("its death is noticed", || !end.is_up());
            assert_eq!(
                (end.counter("connects"), end.counter("disconnect_peer_gone")),
                (round, round)
            );
            if role == Role::Slave {
                let _ = std::fs::remove_file(&meeting.0);
            }
        }
        end.close();
    }
}

#[test]
fn a_flood_from_testpmd_is_taken_and_lost_only_where_it_is_counted() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [(Role::Slave, "server"), (Role::Master, "client")] {
        let meeting = Meeting::new(&format!("flood-{theirs}"));
        let mut end = End::open(&meeting.config(role), &pool(8192));
        let testpmd = Testpmd::start(
            &meeting.device(theirs),
            &["--forward-mode=txonly", "--txpkts=64"],
        );
        let mut received = 0;
        wait_for("frames arrive", || {
            let frames = end.receive(0);
            assert!(frames.iter().all(|bytes| bytes.len() == 64));
            received += frames.len();
            received > 50_000
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(end.counter("rx_packets_q0"), received as u64);
        drop(testpmd);
        end.close();
    }
}

/// A chain of chunks with these bytes.
fn chained(end: &mut End, bytes: &[u8]) -> Pkt {
    let (first, rest) = bytes.split_at(bytes.len().min(2200));
    let mut whole = end.packet(first);
    for part in rest.chunks(2200) {
        let piece = end.packet(part);
        whole.append(piece).unwrap();
    }
    whole
}

#[test]
fn jumbo_frames_are_chains_on_their_way_to_testpmd_and_back() {
    if !testpmd_is_there() {
        return;
    }
    for (role, theirs) in [(Role::Slave, "server"), (Role::Master, "client")] {
        let meeting = Meeting::new(&format!("jumbo-{theirs}"));
        let mut end = End::open(&meeting.config(role), &pool(8192));
        let testpmd = Testpmd::start(&meeting.device(theirs), &["--forward-mode=macswap"]);
        come_up(&mut end);
        for number in 0..200 {
            let bytes = frame(number, 2300 + (number as usize * 37) % 6700);
            let mut back = Vec::new();
            let mut sent = false;
            wait_for("the frame came back", || {
                // Until testpmd has offered buffers, nothing fits.
                if !sent {
                    let packet = chained(&mut end, &bytes);
                    sent = end.send(0, [packet]) == 1;
                }
                end.tx[0].flush(&mut end.cache);
                back.extend(end.receive(0));
                !back.is_empty()
            });
            assert!(
                back == [swapped(bytes.clone())],
                "{theirs}: frame {number} of {} bytes came back as {}",
                bytes.len(),
                back[0].len()
            );
        }
        drop(testpmd);
        end.close();
    }
}
