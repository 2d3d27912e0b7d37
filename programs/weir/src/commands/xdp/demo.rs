//! `weir xdp demo`: frames from a card to a guest, measured beside the Linux bridge with the same rules, and while
//! the daemon is killed and replaced. `host` has what it builds; rounds of both sides alternate.

use std::io::Write;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_flowfmt::sflow::decode::{Datagram, Sample};
use weir_netlink::lab::Running;
use weir_xdp::daemon;
use weir_xdp::measure::Generator;
use weir_xdp::show::{self, Balance};

use super::host::{Files, Guest, Host, bridge, configuration, frame, median};
use crate::demo::summary::expected_error;
use crate::failure::Failure;

const ROUNDS: usize = 5;
/// Frames of a round, and their rate.
const FRAMES: u64 = 80_000;
const RATE: u32 = 200_000;
/// Frames of the tests of loss, and their rate: five seconds.
const LOSS_FRAMES: u64 = 100_000;
const LOSS_RATE: u32 = 20_000;
const SAMPLING_RATE: u32 = 100;
/// UDP ports that the ACL denies; its tenth rule permits the rest.
const DENIED: u16 = 9;

/// What a frame costs the bridge and `weir xdp`, in nanoseconds.
struct Costs {
    bridge: f64,
    xdp: f64,
    /// Whether the bridge filters VLANs itself.
    filters: bool,
}

/// Measures both sides with a guest of this kind, in alternating rounds. The host that runs `weir xdp` goes on.
fn measure(
    kind: Guest,
    files: &Files,
    generator: &mut Generator,
) -> Result<(Costs, Host, Running), Failure> {
    let (mut bridge, pop) = bridge(kind, DENIED)?;
    let mut host = Host::build(kind)?;
    files.write(&configuration(&host, DENIED, None))?;
    let machine = host.lab.host("host").map_err(Failure::said)?.clone();
    let running = files.start(&machine)?;
    let threads = [bridge.card_thread()?, host.card_thread()?];
    // The first round fills caches and tables, and does not count.
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        let both = [
            bridge.cost(generator, &threads[0], (RATE, FRAMES))?,
            host.cost(generator, &threads[1], (RATE, FRAMES))?,
        ];
        if round > 0 {
            for (list, cost) in costs.iter_mut().zip(both) {
                list.push(cost);
            }
        }
    }
    let [of_bridge, of_xdp] = costs.map(median);
    let costs = Costs {
        bridge: of_bridge,
        xdp: of_xdp,
        filters: pop.is_none(),
    };
    Ok((costs, host, running))
}

/// Frames that were lost, and where.
#[derive(Clone, Copy, Default)]
struct Lost {
    all: u64,
    /// In the card's receive ring: the generator's frames that never came to the programs.
    card_ring: u64,
    /// In the guest's ring, which was full.
    guest_ring: u64,
}

impl Lost {
    fn text(self) -> String {
        format!(
            "{} of {LOSS_FRAMES} frames lost ({} in the card's ring, {} in the guest's ring, {} elsewhere)",
            self.all,
            self.card_ring,
            self.guest_ring,
            self.elsewhere()
        )
    }

    fn elsewhere(self) -> u64 {
        self.all
            .saturating_sub(self.card_ring)
            .saturating_sub(self.guest_ring)
    }

    fn json(self) -> serde_json::Value {
        serde_json::json!({
            "card_ring": self.card_ring,
            "guest_ring": self.guest_ring,
            "elsewhere": self.elsewhere(),
        })
    }
}

/// Frames that the card's port received, and those that the guest's ring had no room for.
fn counted(files: &Files, host: &Host) -> Result<(u64, u64), Failure> {
    let ports = show::ports(&files.folders).map_err(Failure::said)?;
    let find = |name: &str| ports.iter().find(|it| it.name == name);
    let full = find(&host.tap).map_or(0, |it| {
        it.drops
            .iter()
            .filter(|it| it.reason == "transmit-full")
            .map(|it| it.packets)
            .sum()
    });
    Ok((find(&host.card).map_or(0, |it| it.in_packets), full))
}

/// Frames that are lost while `change` happens to the daemon.
fn lost(
    files: &Files,
    host: &mut Host,
    generator: &mut Generator,
    change: impl FnOnce() -> Result<Running, Failure> + Send,
) -> Result<(Lost, Running), Failure> {
    std::thread::scope(|scope| {
        let changed = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            change()
        });
        let before = counted(files, host)?;
        let (sent, received) = host.send(generator, LOSS_RATE, LOSS_FRAMES)?;
        let running = changed
            .join()
            .map_err(|_| Failure::said("the daemon's restart panicked"))??;
        let after = counted(files, host)?;
        let lost = Lost {
            all: sent.saturating_sub(received),
            card_ring: sent.saturating_sub(after.0 - before.0),
            guest_ring: after.1 - before.1,
        };
        Ok((lost, running))
    })
}

/// Counts the flow samples of datagrams in a thread until it is stopped.
fn collect(socket: UdpSocket, stop: Arc<AtomicBool>, samples: Arc<AtomicU64>) {
    let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
    let mut bytes = [0; 2000];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut bytes)
            && let Ok(datagram) = Datagram::decode(bytes.get(..length).unwrap_or(&[]))
        {
            let flows = datagram
                .samples()
                .filter(|sample| matches!(sample, Ok(Sample::Flow(..))));
            samples.fetch_add(flows.count() as u64, Ordering::Relaxed);
        }
    }
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
    let tell = |guest: &str, costs: &Costs| {
        format!(
            "a frame from card to {guest}, median of {ROUNDS} rounds at {RATE} frames/s: bridge {:.0} ns, XDP {:.0} ns, \
             ratio {:.2}",
            costs.bridge,
            costs.xdp,
            costs.xdp / costs.bridge
        )
    };
    let veth = {
        let files = Files::new()?;
        measure(Guest::Veth, &files, &mut generator)?.0
    };
    say(tell("a veth guest", &veth))?;
    let (tap, mut host, running) = measure(Guest::Tap, &files, &mut generator)?;
    say(tell("a TAP guest", &tap))?;
    let machine = host.lab.host("host").map_err(Failure::said)?.clone();
    let card = host.card.clone();

    let (lost_on_restart, running) = lost(&files, &mut host, &mut generator, || {
        // Killed, not stopped.
        drop(running);
        files.start(&machine)
    })?;
    say(format!(
        "daemon killed and started again: {}",
        lost_on_restart.text()
    ))?;
    let (lost_on_upgrade, _running) = lost(&files, &mut host, &mut generator, || {
        running.interrupt().map_err(Failure::said)?;
        files.start(&machine)
    })?;
    say(format!("programs replaced: {}", lost_on_upgrade.text()))?;

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
    daemon::send(
        &files.folders,
        &configuration(&host, DENIED, Some((&address, SAMPLING_RATE))),
    )
    .map_err(Failure::said)?;
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
            "ns_per_packet_bridge": round(tap.bridge),
            "ns_per_packet_xdp": round(tap.xdp),
            "ratio": round(tap.xdp / tap.bridge),
            "veth": {
                "ns_per_packet_bridge": round(veth.bridge),
                "ns_per_packet_xdp": round(veth.xdp),
                "ratio": round(veth.xdp / veth.bridge),
            },
            "bridge_vlan": if tap.filters { "vlan_filtering" } else { "tc" },
            "lost_on_restart": lost_on_restart.all,
            "lost_on_restart_in": lost_on_restart.json(),
            "lost_on_upgrade": lost_on_upgrade.all,
            "lost_on_upgrade_in": lost_on_upgrade.json(),
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
