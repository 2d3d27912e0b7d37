//! A host with a card and a guest in network namespaces, for `weir xdp demo` and `weir bench xdp`.
//!
//! ```text
//! generator: g ──veth── card [ host ] tap ──veth── v :guest          (a container)
//! generator: g ──veth── card [ host ] tap: read by a thread          (a virtual machine)
//! ```
//!
//! The host forwards by `weir xdp run`, or by the Linux bridge with the same rules in nftables. Frames are tagged
//! (VLAN 100), and leave untagged behind an ACL. The cost is the CPU time of the kernel thread that receives on the card
//! (threaded NAPI), divided by the frames that the guest got.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port, Running};
use weir_xdp::daemon::Folders;
use weir_xdp::measure::{Generator, LENGTH, NapiThread, Pop, Sink, TapGuest};
use weir_xdp::programs;

use crate::failure::Failure;

pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const GUEST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];

/// What the guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guest {
    /// A container behind a veth pair.
    Veth,
    /// A virtual machine's TAP device.
    Tap,
}

/// Where frames end.
enum End {
    Veth(Sink),
    Tap(TapGuest),
}

/// A host with a card and a guest.
pub(super) struct Host {
    /// Names that are unique on this machine.
    pub(super) card: String,
    pub(super) tap: String,
    end: End,
    pub(super) lab: Lab,
}

/// The tagged frame of the measurement.
pub(super) fn frame(port: u16) -> [u8; LENGTH] {
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

pub(super) fn run(command: &mut Command) -> Result<(), Failure> {
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

pub(super) fn wait_for(what: &str, mut done: impl FnMut() -> bool) -> Result<(), Failure> {
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
    pub(super) fn build(kind: Guest) -> Result<Host, Failure> {
        static HOSTS: AtomicU32 = AtomicU32::new(0);
        let number = HOSTS.fetch_add(1, Ordering::Relaxed);
        let number = format!("{}{number}", std::process::id());
        let (card, tap) = (format!("wc{number}"), format!("wt{number}"));
        let guest = format!("wv{number}");
        let mut lab = Lab::new();
        for name in ["generator", "host", "guest"] {
            lab.add_host(name).map_err(Failure::said)?;
        }
        lab.connect(&Cable::new(
            Port::new("generator", "g"),
            Port::new("host", &card),
        ))
        .map_err(Failure::said)?;
        if kind == Guest::Veth {
            lab.connect(&Cable::new(
                Port::new("host", &tap),
                Port::new("guest", &guest),
            ))
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
        let end = match kind {
            Guest::Tap => End::Tap(
                machine
                    .namespace()
                    .run(|| TapGuest::start(&tap))
                    .map_err(Failure::said)?
                    .map_err(Failure::said)?,
            ),
            Guest::Veth => {
                let host = lab.host("guest").map_err(Failure::said)?;
                let index = host.link(&guest).map_err(Failure::said)?.index;
                End::Veth(
                    host.namespace()
                        .run(|| Sink::attach(index))
                        .map_err(Failure::said)?
                        .map_err(Failure::said)?,
                )
            }
        };
        let built = Host {
            card,
            tap,
            end,
            lab,
        };
        match &built.end {
            End::Veth(_) => {
                built.thread("guest", &guest, 51)?;
            }
            // On another CPU than the card's thread, ahead of ordinary threads, as a guest's CPU that is its own.
            End::Tap(guest) => {
                let id = guest.thread_id.to_string();
                run(Command::new("taskset").args(["-pc", "0", &id]))?;
                run(Command::new("chrt").args(["-f", "-p", "40", &id]))?;
            }
        }
        Ok(built)
    }

    /// The kernel thread that receives on the card.
    pub(super) fn card_thread(&self) -> Result<NapiThread, Failure> {
        self.thread("host", &self.card, 50)
    }

    /// Frames that the guest got.
    fn received(&mut self) -> Result<u64, Failure> {
        match &mut self.end {
            End::Veth(sink) => sink.packets().map_err(Failure::said),
            End::Tap(guest) => Ok(guest.packets()),
        }
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
    pub(super) fn send(
        &mut self,
        generator: &mut Generator,
        rate: u32,
        frames: u64,
    ) -> Result<(u64, u64), Failure> {
        let before = self.received()?;
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
            let now = self.received()?;
            if now == last {
                return Ok((sent, now - before));
            }
            last = now;
        }
    }

    /// Nanoseconds of the card's thread for a frame that reaches the guest.
    pub(super) fn cost(
        &mut self,
        generator: &mut Generator,
        thread: &NapiThread,
        (rate, frames): (u32, u64),
    ) -> Result<f64, Failure> {
        let before = thread.run_time().map_err(Failure::said)?;
        let (_, received) = self.send(generator, rate, frames)?;
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
pub(super) fn bridge(kind: Guest, denied: u16) -> Result<(Host, Option<Pop>), Failure> {
    let host = Host::build(kind)?;
    let (card, tap) = (&host.card, &host.tap);
    let mut rules = String::new();
    for port in 1..=denied {
        let _ = writeln!(rules, "    oifname {tap} udp dport {port} drop");
    }
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

/// The configuration of a host: frames to UDP ports 1 to `denied` are dropped. `sflow`: a collector and the rate.
pub(super) fn configuration(host: &Host, denied: u16, sflow: Option<(&str, u32)>) -> String {
    let mut text = format!(
        "ports:\n  {}: {{trunk: [100], sample: {}}}\n  \
         {}: {{vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.10], acl-out: guests}}\n\
         acls:\n  guests:\n",
        host.card,
        sflow.is_some(),
        host.tap
    );
    for port in 1..=denied {
        let _ = writeln!(
            text,
            "    - {{action: deny, protocol: udp, destination-port: {port}}}"
        );
    }
    text.push_str("    - {action: permit}\n");
    if let Some((collector, rate)) = sflow {
        let _ = writeln!(
            text,
            "sflow: {{sampling-rate: {rate}, agent: 192.0.2.254, collectors: ['{collector}']}}"
        );
    }
    text
}

/// The daemon's folders, with a BPF file system of their own.
pub(super) struct Files {
    root: PathBuf,
    pub(super) folders: Folders,
}

impl Files {
    pub(super) fn new() -> Result<Files, Failure> {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let root =
            std::env::temp_dir().join(format!("weir-xdp-demo-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("bpf")).map_err(Failure::said)?;
        run(Command::new("mount")
            .args(["-t", "bpf", "bpf"])
            .arg(root.join("bpf")))?;
        Ok(Files {
            folders: Folders {
                pins: root.join("bpf/pins"),
                state: root.join("state"),
                layout: weir_xdp::abi::LAYOUT,
            },
            root,
        })
    }

    /// Writes the configuration that the daemon starts with.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        std::fs::write(self.root.join("host.yaml"), text).map_err(Failure::said)
    }

    /// Starts the daemon in a namespace.
    pub(super) fn start(&self, host: &weir_netlink::lab::Host) -> Result<Running, Failure> {
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

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
