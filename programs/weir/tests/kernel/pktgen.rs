//! The rate of `weir lab generate` beside the kernel's packet generator, over veth, in turn.
//!
//! Both send frames of 64 bytes from one core. The rates are printed and not asserted: they are the
//! machine's, and in qemu those of an emulated one. What is asserted is that each sent all its packets.

use std::time::Duration;

use serde_json::Value;
use weir_netlink::lab::{Cable, Host, Lab, Port};

use super::bed::weir;

const LIMIT: Duration = Duration::from_secs(120);
const PACKETS: u64 = 200_000;
const ROUNDS: usize = 3;

#[test]
fn as_many_packets_as_by_pktgen() {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut lab = Lab::new();
    lab.add_host("sender").unwrap();
    lab.add_host("receiver").unwrap();
    lab.connect(&Cable::new(
        Port::new("sender", "g0"),
        Port::new("receiver", "r0"),
    ))
    .unwrap();
    let sender = lab.host("sender").unwrap();
    if !run(sender, "test -w /proc/net/pktgen/pgctrl") {
        assert!(std::env::var_os("WEIR_KERNEL_TEST").is_none());
        eprintln!("skipped: this kernel does no pktgen");
        return;
    }
    for _ in 0..ROUNDS {
        let (kernel, weir) = (by_pktgen(sender), by_weir(sender));
        println!(
            "pktgen {kernel:.0} packets/s, weir {weir:.0} packets/s, ratio {:.2}",
            weir / kernel
        );
        assert!(kernel > 0.0 && weir > 0.0);
    }
}

fn run(host: &Host, script: &str) -> bool {
    host.run("sh", &["-c", script], LIMIT).unwrap().success()
}

/// Packets per second, as pktgen reports them.
fn by_pktgen(host: &Host) -> f64 {
    let mac = "02:00:00:00:00:02";
    let settings: Vec<String> = [
        "clone_skb 0",
        // Without the FCS.
        "pkt_size 60",
        "delay 0",
        &format!("dst_mac {mac}"),
        "dst 10.0.0.2",
        &format!("count {PACKETS}"),
    ]
    .iter()
    .map(|setting| format!("echo '{setting}' > /proc/net/pktgen/g0"))
    .collect();
    let script = format!(
        "set -e; cd /proc/net/pktgen; echo rem_device_all > kpktgend_0; echo 'add_device g0' > kpktgend_0; {}; echo start > pgctrl",
        settings.join("; ")
    );
    assert!(run(host, &script), "{script}");
    let shown = host.run("cat", &["/proc/net/pktgen/g0"], LIMIT).unwrap();
    let text = shown.stdout;
    assert!(
        text.contains("Result: OK") && text.contains(&format!("sofar: {PACKETS} ")),
        "{text}"
    );
    let word = text
        .split_whitespace()
        .find_map(|word| word.strip_suffix("pps"))
        .unwrap_or_else(|| panic!("no rate in {text}"));
    word.parse().unwrap()
}

/// Packets per second of the generator.
fn by_weir(host: &Host) -> f64 {
    let packets = PACKETS.to_string();
    let done = host
        .run(
            &weir(),
            &[
                "lab",
                "generate",
                "--port",
                "g0",
                "--rate",
                "max",
                "--packets",
                &packets,
                "--core",
                "0",
                "--json",
            ],
            LIMIT,
        )
        .unwrap();
    assert!(done.success(), "{done:?}");
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["sent"], PACKETS, "{result}");
    result["sent_pps"].as_f64().unwrap()
}
