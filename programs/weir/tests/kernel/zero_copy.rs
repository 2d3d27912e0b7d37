//! Zero-copy AF_XDP on virtio-net: a router between two hosts, whose ports are those of the emulated machine.
//!
//! `make test-kernel` gives the machine four ports, 52:54:00:77:00:00 to 03, joined in pairs; the third can be
//! unplugged. virtio-net receives in zero-copy from Linux 6.11 on, and sends from 6.13 on.

use std::io::Write;

use weir_netlink::lab::ROUTER;

use super::bed::{Bed, wait};

const MAC: &str = "52:54:00:77:00:0";

/// The Linux interface with the MAC address of a port, if it is there.
fn port(number: usize) -> Option<String> {
    let wanted = format!("{MAC}{number}");
    std::fs::read_dir("/sys/class/net")
        .ok()?
        .flatten()
        .find(|it| {
            let address = std::fs::read_to_string(it.path().join("address"));
            address.is_ok_and(|address| address.trim() == wanted)
        })
        .map(|it| it.file_name().to_string_lossy().into_owned())
}

/// Major and minor version of the kernel.
fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The four ports; says so where there are none.
fn four_ports() -> Option<Vec<String>> {
    let ports: Vec<String> = (0..4).filter_map(port).collect();
    if ports.len() < 4 {
        eprintln!("skipped: no virtio ports for zero-copy (make test-kernel has them)");
        return None;
    }
    Some(ports)
}

/// Whether this kernel has zero-copy on virtio-net; says so where it has not.
fn has_zero_copy() -> bool {
    let has = kernel() >= (6, 13);
    if !has {
        eprintln!("skipped: this kernel does no zero-copy on virtio-net (Linux 6.13 and later do)");
    }
    has
}

/// Two hosts, each joined to a port of the router.
fn bed(name: &str, ports: &[String]) -> Bed {
    let bed = Bed::new(name, &[("near", 0), ("far", 0)]);
    for (host, port, name) in [
        ("near", &ports[0], "eth0"),
        (ROUTER, &ports[1], "wire0"),
        (ROUTER, &ports[2], "wire1"),
        ("far", &ports[3], "eth0"),
    ] {
        bed.take(host, port, name);
    }
    for (host, address, gateway) in [
        ("near", "10.1.0.2/24", "10.1.0.1"),
        ("far", "10.2.0.2/24", "10.2.0.1"),
    ] {
        bed.on(host, &format!("ip address add {address} dev eth0"));
        bed.on(host, "ip link set eth0 up");
        bed.on(host, &format!("ip route add default via {gateway}"));
        bed.on(host, "ethtool -K eth0 tx off");
    }
    bed
}

#[test]
fn virtio_ports_forward_in_zero_copy() {
    let Some(ports) = four_ports() else { return };
    if !has_zero_copy() {
        return;
    }
    let mut bed = bed("zero-copy", &ports);
    bed.start(
        "interfaces:
  a: { device: { driver: af-xdp, name: wire0, mode: zero-copy }, addresses: [ 10.1.0.1/24 ] }
  b: { device: { driver: af-xdp, name: wire1, mode: zero-copy }, addresses: [ 10.2.0.1/24 ] }
",
    );
    bed.ping("near", "10.2.0.2", 56);
    bed.ping("near", "10.2.0.2", 1472);
    let before = bed.sent("b");
    let said = bed.on("near", "ping -c 200 -i 0.01 -W 10 10.2.0.2");
    assert!(said.contains(" 0% packet loss"), "{said}\n{}", bed.story());
    assert!(bed.sent("b") >= before + 200, "{}", bed.story());
    let hardware = bed.ask("show hardware");
    let modes = hardware.to_string();
    assert_eq!(modes.matches("zero-copy").count(), 2, "{hardware}");
    // A device that is unplugged under zero-copy takes nothing else along: qemu's monitor does it.
    let mut unplug = std::fs::File::create("/run/test/unplug").unwrap();
    unplug.write_all(b"port2").unwrap();
    unplug.sync_all().unwrap();
    wait("the lost device is reported", || {
        let text = bed.ask("show interface").to_string();
        if text.contains(r#""link":"down""#) {
            Ok(())
        } else {
            Err(text)
        }
    });
    bed.ping("near", "10.1.0.1", 56);
    bed.stop();
}
