//! `weir xdp demo`: frames from a card to a guest, measured beside the Linux bridge with the same rules, and while
//! the daemon is killed and replaced.
//!
//! ```text
//! generator: g ──veth── card [ host ] tap ──veth── v :guest
//! ```
//!
//! Two such hosts exist at once, one with `weir xdp run`, one with a bridge and nftables; rounds alternate. Frames are
//! tagged (VLAN 100), and leave untagged after an ACL of ten rules. The cost is the CPU time of the kernel thread that
//! receives on the card (threaded NAPI), divided by the frames that the guest got.

use std::io::Write;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port, Running};
use weir_xdp::daemon::{self, Folders};
use weir_xdp::measure::{Generator, LENGTH, NapiThread, Pop, Sink};
use weir_xdp::programs;
use weir_xdp::show::{self, Balance};

use crate::demo::summary::expected_error;
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(30);
const ROUNDS: usize = 5;
/// Frames of a round, and their rate.
const FRAMES: u64 = 80_000;
const RATE: u32 = 200_000;
/// Frames of the tests of loss, and their rate: five seconds.
const LOSS_FRAMES: u64 = 100_000;
const LOSS_RATE: u32 = 20_000;
const SAMPLING_RATE: u32 = 100;
const GUEST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// UDP ports that the ACL denies; its tenth rule permits the rest.
const DENIED: std::ops::RangeInclusive<u16> = 1..=9;

/// A host with a card and a guest.
struct Host {
    /// Names that are unique on this machine.
    card: String,
    tap: String,
    sink: Sink,
    lab: Lab,
}

/// The tagged frame of the measurement.
fn frame(port: u16) -> [u8; LENGTH] {
    let mut frame = [0x55; LENGTH];
    let header = [
        &GUEST[..],
        &[0x52, 0x54, 0, 0, 0xff, 1, 0x81, 0, 0xa0, 100, 8, 0],
        &[
            0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1, 192, 0, 2, 10,
        ],
        &[4, 0, (port >> 8) as u8, port as u8, 0, 26, 0, 0],
    ]
    .concat();
    frame[..header.len()].copy_from_slice(&header);
    let sum: u32 = frame[18..38]
        .chunks(2)
        .map(|pair| u32::from(pair[0]) * 256 + u32::from(pair[1]))
        .sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[28..30].copy_from_slice(&checksum.to_be_bytes());
    frame
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command
        .output()
        .map_err(|error| Failure::said(format_args!("{command:?}: {error}")))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::said(format_args!("{command:?}: {}", said.trim())))
    }
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > until {
            return Err(Failure::said(format_args!("{what} did not happen")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Host {
    fn build(letter: char) -> Result<Host, Failure> {
        let number = std::process::id();
        let (card, tap) = (format!("c{letter}{number}"), format!("t{letter}{number}"));
        let guest = format!("v{letter}{number}");
        let mut lab = Lab::new();
        for name in ["generator", "host", "guest"] {
            lab.add_host(name).map_err(Failure::said)?;
        }
        for (one, other) in [
            (Port::new("generator", "g"), Port::new("host", &card)),
            (Port::new("host", &tap), Port::new("guest", &guest)),
        ] {
            lab.connect(&Cable::new(one, other))
                .map_err(Failure::said)?;
        }
        // A veth end takes frames from XDP while its peer receives by NAPI. The kernel notices GRO only when it is
        // switched on while the device is up.
        let machine = lab.host("host").map_err(Failure::said)?;
        let ethtool = machine.ethtool().map_err(Failure::said)?;
        for on in [false, true] {
            ethtool
                .set_offload(&card, Offload::GenericReceive, on)
                .map_err(Failure::said)?;
        }
        let host = lab.host("guest").map_err(Failure::said)?;
        let index = host.link(&guest).map_err(Failure::said)?.index;
        let sink = host
            .namespace()
            .run(|| Sink::attach(index))
            .map_err(Failure::said)?
            .map_err(Failure::said)?;
        let built = Host {
            card,
            tap,
            sink,
            lab,
        };
        built.thread("guest", &guest, 51)?;
        Ok(built)
    }

    fn command(&self, host: &str, program: &str) -> Result<Command, Failure> {
        let host = self.lab.host(host).map_err(Failure::said)?;
        Ok(host.namespace().command(program))
    }

    /// Gives a device's receive processing a thread of its own, on the last CPU and ahead of ordinary threads.
    fn thread(&self, host: &str, device: &str, priority: u32) -> Result<NapiThread, Failure> {
        // /sys shows the devices of the namespace in which it was mounted.
        let script =
            format!("mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{device}/threaded");
        run(self
            .command(host, "unshare")?
            .args(["-m", "sh", "-c", &script]))?;
        let mut found = None;
        wait_for("the device's NAPI thread", || {
            found = NapiThread::of(device);
            found.is_some()
        })?;
        let thread = found.ok_or_else(|| Failure::said("the device has no NAPI thread"))?;
        let cpu = std::thread::available_parallelism().map_or(0, |it| it.get() - 1);
        let (id, priority) = (thread.id.to_string(), priority.to_string());
        run(Command::new("taskset").args(["-pc", &cpu.to_string(), &id]))?;
        run(Command::new("chrt").args(["-f", "-p", &priority, &id]))?;
        Ok(thread)
    }

    /// Sends frames, and waits until those that arrive have arrived; frames sent and received.
    fn send(
        &mut self,
        generator: &mut Generator,
        rate: u32,
        frames: u64,
    ) -> Result<(u64, u64), Failure> {
        let before = self.sink.packets().map_err(Failure::said)?;
        let host = self.lab.host("generator").map_err(Failure::said)?;
        let index = host.link("g").map_err(Failure::said)?.index;
        let sent = host
            .namespace()
            .run(|| generator.send(index, rate, frames, PATIENCE))
            .map_err(Failure::said)?
            .map_err(Failure::said)?;
        let mut last = before;
        // Nothing arrives for 50 ms: a thread that receives has priority and is not slower.
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.sink.packets().map_err(Failure::said)?;
            if now == last {
                return Ok((sent, now - before));
            }
            last = now;
        }
    }

    /// Nanoseconds of the card's thread for a frame that reaches the guest.
    fn cost(&mut self, generator: &mut Generator, thread: &NapiThread) -> Result<f64, Failure> {
        let before = thread.run_time().map_err(Failure::said)?;
        let (_, received) = self.send(generator, RATE, FRAMES)?;
        let took = thread
            .run_time()
            .map_err(Failure::said)?
            .saturating_sub(before);
        if received == 0 {
            return Err(Failure::said("no frame reached the guest"));
        }
        Ok(took.as_nanos() as f64 / received as f64)
    }
}

/// The bridge, with VLANs and rules like those of [`configuration`]. `Pop` takes the tag off where the kernel's bridge
/// cannot filter VLANs.
fn bridge() -> Result<(Host, Option<Pop>), Failure> {
    let host = Host::build('b')?;
    let (card, tap) = (&host.card, &host.tap);
    let rules: String = DENIED
        .map(|port| format!("    oifname {tap} udp dport {port} drop\n"))
        .collect();
    let script = format!(
        "set -e
ip link add br0 type bridge
ip link set {card} master br0
ip link set {tap} master br0
ip link set br0 up
sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || true
nft -f - <<RULES
table bridge filter {{
  chain forward {{
    type filter hook forward priority 0; policy drop;
{rules}    oifname {tap} accept
    iifname {tap} accept
  }}
}}
RULES
"
    );
    run(host.command("host", "sh")?.args(["-c", &script]))?;
    let mac = "52:54:00:00:00:01";
    let vlans = format!(
        "set -e
ip link set br0 type bridge vlan_filtering 1 vlan_default_pvid 0
bridge vlan add dev {card} vid 100
bridge vlan add dev {tap} vid 100 pvid untagged
bridge fdb add {mac} dev {tap} master static vlan 100
"
    );
    if run(host.command("host", "sh")?.args(["-c", &vlans])).is_ok() {
        return Ok((host, None));
    }
    run(host
        .command("host", "bridge")?
        .args(["fdb", "add", mac, "dev", tap, "master", "static"]))?;
    let machine = host.lab.host("host").map_err(Failure::said)?;
    let pop = machine
        .namespace()
        .run(|| Pop::attach(card))
        .map_err(Failure::said)?
        .map_err(Failure::said)?;
    Ok((host, Some(pop)))
}

fn configuration(host: &Host, sflow: Option<&str>) -> String {
    let denied: String = DENIED
        .map(|port| format!("    - {{action: deny, protocol: udp, destination-port: {port}}}\n"))
        .collect();
    let sampled = sflow.map_or_else(String::new, |collector| {
        format!("sflow: {{sampling-rate: {SAMPLING_RATE}, agent: 192.0.2.254, collectors: ['{collector}']}}\n")
    });
    format!(
        "ports:\n  {}: {{trunk: [100], sample: {}}}\n  \
         {}: {{vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.10], acl-out: guests}}\n\
         acls:\n  guests:\n{denied}    - {{action: permit}}\n{sampled}",
        host.card,
        sflow.is_some(),
        host.tap
    )
}

/// The daemon's folders, with a BPF file system of their own.
struct Files {
    root: PathBuf,
    folders: Folders,
}

impl Files {
    fn new() -> Result<Files, Failure> {
        let root = std::env::temp_dir().join(format!("weir-xdp-demo-{}", std::process::id()));
        std::fs::create_dir_all(root.join("bpf")).map_err(Failure::said)?;
        run(Command::new("mount")
            .args(["-t", "bpf", "bpf"])
            .arg(root.join("bpf")))?;
        Ok(Files {
            folders: Folders {
                pins: root.join("bpf/pins"),
                state: root.join("state"),
            },
            root,
        })
    }

    /// Starts the daemon in a namespace.
    fn start(&self, host: &weir_netlink::lab::Host) -> Result<Running, Failure> {
        let program = std::env::current_exe().map_err(Failure::said)?;
        let text = |path: &PathBuf| path.display().to_string();
        let arguments = [
            "xdp".to_owned(),
            "--pins".to_owned(),
            text(&self.folders.pins),
            "--state".to_owned(),
            text(&self.folders.state),
            "run".to_owned(),
            "-c".to_owned(),
            text(&self.root.join("host.yaml")),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut running = host
            .spawn(&program.display().to_string(), &arguments)
            .map_err(Failure::said)?;
        running
            .wait_for_output("weir xdp runs", PATIENCE)
            .map_err(Failure::said)?;
        Ok(running)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = programs::remove(&self.folders.pins);
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.root.join("bpf"))
            .status();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Frames that are lost while `change` happens to the daemon.
fn lost(
    host: &mut Host,
    generator: &mut Generator,
    change: impl FnOnce() -> Result<Running, Failure> + Send,
) -> Result<(u64, Running), Failure> {
    std::thread::scope(|scope| {
        let changed = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            change()
        });
        let (sent, received) = host.send(generator, LOSS_RATE, LOSS_FRAMES)?;
        let running = changed
            .join()
            .map_err(|_| Failure::said("the daemon's restart panicked"))??;
        Ok((sent.saturating_sub(received), running))
    })
}

/// Counts the samples of datagrams in a thread until it is stopped.
fn collect(socket: UdpSocket, stop: Arc<AtomicBool>, samples: Arc<AtomicU64>) {
    let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
    let mut bytes = [0; 2000];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut bytes)
            && let Some(word) = bytes.get(..length).and_then(|it| it.get(24..28))
            && let Ok(word) = word.try_into()
        {
            samples.fetch_add(u64::from(u32::from_be_bytes(word)), Ordering::Relaxed);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

pub(super) fn execute(json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let mut say = |text: String| -> Result<(), Failure> {
        if !json {
            writeln!(to, "{text}")?;
            to.flush()?;
        }
        Ok(())
    };
    let files = Files::new()?;
    let mut generator = Generator::new(&frame(4000), 1000).map_err(Failure::said)?;
    let (mut bridge, pop) = bridge()?;
    let mut host = Host::build('x')?;
    std::fs::write(files.root.join("host.yaml"), configuration(&host, None))
        .map_err(Failure::said)?;
    let machine = host.lab.host("host").map_err(Failure::said)?.clone();
    let running = files.start(&machine)?;
    let card = host.card.clone();
    let threads = [
        bridge.thread("host", &bridge.card.clone(), 50)?,
        host.thread("host", &card, 50)?,
    ];

    // The first round fills caches and tables, and does not count.
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        let both = [
            bridge.cost(&mut generator, &threads[0])?,
            host.cost(&mut generator, &threads[1])?,
        ];
        if round > 0 {
            for (list, cost) in costs.iter_mut().zip(both) {
                list.push(cost);
            }
        }
    }
    let [of_bridge, of_xdp] = costs.map(median);
    let ratio = of_xdp / of_bridge;
    say(format!(
        "a frame from card to guest, median of {ROUNDS} rounds at {RATE} frames/s: bridge {of_bridge:.0} ns, XDP {of_xdp:.0} ns, \
         ratio {ratio:.2}"
    ))?;

    let (lost_on_restart, running) = lost(&mut host, &mut generator, || {
        // Killed, not stopped.
        drop(running);
        files.start(&machine)
    })?;
    say(format!(
        "daemon killed and started again: {lost_on_restart} of {LOSS_FRAMES} frames lost"
    ))?;
    let (lost_on_upgrade, _running) = lost(&mut host, &mut generator, || {
        running.interrupt().map_err(Failure::said)?;
        files.start(&machine)
    })?;
    say(format!(
        "programs replaced: {lost_on_upgrade} of {LOSS_FRAMES} frames lost"
    ))?;

    // Frames that the ACL denies, so that the balance has drops.
    let mut denied = Generator::new(&frame(9), 1000).map_err(Failure::said)?;
    host.send(&mut denied, LOSS_RATE, 1000)?;

    let collector = host
        .lab
        .host("host")
        .and_then(|it| it.namespace().run(|| UdpSocket::bind("127.0.0.1:0")))
        .map_err(Failure::said)?
        .map_err(Failure::said)?;
    let address = collector.local_addr().map_err(Failure::said)?.to_string();
    let reply = daemon::send(&files.folders, &configuration(&host, Some(&address)))
        .map_err(Failure::said)?;
    if let Some(error) = reply.error {
        return Err(Failure::said(error));
    }
    let received = |files: &Files, name: &str| -> Result<u64, Failure> {
        let ports = show::ports(&files.folders).map_err(Failure::said)?;
        Ok(ports
            .iter()
            .find(|it| it.name == name)
            .map_or(0, |it| it.in_packets))
    };
    let (stop, samples) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let before = received(&files, &card)?;
    let (own_stop, own_samples) = (stop.clone(), samples.clone());
    let thread = std::thread::spawn(move || collect(collector, own_stop, own_samples));
    host.send(&mut generator, RATE, 4 * FRAMES)?;
    let packets = received(&files, &card)? - before;
    // The agent sends what it has after half a second.
    std::thread::sleep(Duration::from_secs(2));
    stop.store(true, Ordering::Relaxed);
    let _ = thread.join();
    let samples = samples.load(Ordering::Relaxed);
    let estimate = samples * u64::from(SAMPLING_RATE);
    let error = 100.0 * (estimate as f64 - packets as f64).abs() / packets.max(1) as f64;
    say(format!(
        "sFlow 1 in {SAMPLING_RATE}: {packets} frames, {samples} samples, error {error:.2} %, expected within {:.2} %",
        expected_error(samples)
    ))?;

    let balance = Balance::of(&show::ports(&files.folders).map_err(Failure::said)?);
    say(format!(
        "in {} + replicated {} = out {} + drops {} + kernel {} + filtered {}",
        balance.input,
        balance.replicated,
        balance.output,
        balance.drops,
        balance.kernel,
        balance.filtered
    ))?;
    if json {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let summary = serde_json::json!({
            "ns_per_packet_bridge": round(of_bridge),
            "ns_per_packet_xdp": round(of_xdp),
            "ratio": round(ratio),
            "bridge_vlan": if pop.is_some() { "tc" } else { "vlan_filtering" },
            "lost_on_restart": lost_on_restart,
            "lost_on_upgrade": lost_on_upgrade,
            "in": balance.input,
            "out": balance.output,
            "drops": balance.drops,
            "kernel": balance.kernel,
            "balance_exact": balance.is_exact(),
            "samples_error_percent": round(error),
            "samples_expected_error_percent": round(expected_error(samples)),
        });
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&summary).map_err(Failure::said)?
        )?;
    }
    if balance.is_exact() {
        Ok(())
    } else {
        Err(Failure::said("not every packet is accounted for"))
    }
}
