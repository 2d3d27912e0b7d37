//! Linux as the control plane with parts that only a full kernel has: VRF devices and incoming MPLS labels.

use super::bed::{Bed, kernel_has, wait};

const NEEDED: [&str; 2] = [
    "link add red type vrf table 10",
    "route add 10.97.0.0/16 encap mpls 100 via inet 10.98.0.1 dev base",
];
const DATAPLANE: &str = "weir-kernel-dataplane";

/// The named namespace of the TAPs.
struct Dataplane;

impl Dataplane {
    fn new() -> Dataplane {
        run("ip", &format!("netns add {DATAPLANE}"));
        Dataplane.ip("link set lo up");
        Dataplane
    }

    fn ip(&self, line: &str) -> String {
        run("ip", &format!("-n {DATAPLANE} {line}"))
    }
}

impl Drop for Dataplane {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip")
            .args(["netns", "del", DATAPLANE])
            .status();
    }
}

#[track_caller]
fn run(program: &str, line: &str) -> String {
    let output = std::process::Command::new(program)
        .args(line.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {line}: {text}{error}");
    text
}

/// Routes of a table that lead over a next hop, as the router has them.
fn has_route(bed: &Bed, vrf: &str, prefix: &str) -> Result<(), String> {
    let all = bed
        .ask(&format!("show route {prefix} --table {vrf}"))
        .to_string();
    if all.contains(prefix) {
        Ok(())
    } else {
        Err(all)
    }
}

#[test]
fn vrf_devices_are_followed_in_both_directions() {
    if !kernel_has(&NEEDED) {
        return;
    }
    let dataplane = Dataplane::new();
    let mut bed = Bed::new("linux-vrf", &[("near", 1), ("far", 1), ("other", 1)]);
    bed.on("near", "ip address add 10.1.0.2/24 dev eth0");
    bed.on("near", "ip route add default via 10.1.0.1");
    // The same subnet in two tables.
    for (host, own) in [("far", "10.9.0.1/32"), ("other", "10.9.0.1/32")] {
        bed.on(host, "ip address add 10.2.0.2/24 dev eth0");
        bed.on(host, &format!("ip address add {own} dev lo"));
        bed.on(host, "ip route add default via 10.2.0.1");
    }
    bed.start(&format!(
        "interfaces:
  near: {{device: {{driver: af-xdp, name: near-0}}, addresses: [10.1.0.1/24], vrf: red}}
  far: {{device: {{driver: af-xdp, name: far-0}}, addresses: [10.2.0.1/24], vrf: red}}
  other: {{device: {{driver: af-xdp, name: other-0}}}}
vrfs: {{red: {{table: 10}}}}
linux:
  namespace: {DATAPLANE}
  interfaces: {{near: {{}}, far: {{}}, other: {{}}}}
"
    ));
    // The VRF of the configuration is there in Linux, with its TAPs.
    wait("the VRF device", || {
        let links = dataplane.ip("link show master red");
        if links.contains(" near:") && links.contains(" far:") {
            Ok(())
        } else {
            Err(links)
        }
    });
    dataplane.ip("route add 10.9.0.0/24 via 10.2.0.2 vrf red");
    wait("the route of the table", || {
        has_route(&bed, "red", "10.9.0.0/24")
    });
    bed.ping("near", "10.9.0.1", 1400);
    // A VRF device of Linux, which the configuration does not have.
    dataplane.ip("link add blue type vrf table 20");
    dataplane.ip("link set blue up");
    dataplane.ip("link set other master blue");
    dataplane.ip("address add 10.2.0.1/24 dev other");
    dataplane.ip("route add 10.9.0.0/24 via 10.2.0.2 vrf blue");
    wait("the route of the other table", || {
        has_route(&bed, "blue", "10.9.0.0/24")
    });
    // From the router itself, in each table: different hosts have the address.
    let vrf =
        |name: &str, to: &str| format!("netns exec {DATAPLANE} ping -c 1 -W 10 -I {name} {to}");
    wait("a ping in the other table", || {
        let done = std::process::Command::new("ip")
            .args(vrf("blue", "10.9.0.1").split_whitespace())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        done.status.success().then_some(()).ok_or(text)
    });
    assert!(bed.sent("other") > 0);
    // Out of it again: the addresses come to the default table, and the table goes.
    dataplane.ip("link set other nomaster");
    wait("the default table", || {
        let all = bed.ask("show route 10.2.0.0/24").to_string();
        if all.contains("\"other\"") {
            Ok(())
        } else {
            Err(all)
        }
    });
    let interfaces = bed.ask("show linux");
    assert!(
        !interfaces.to_string().contains("\"trouble\":\""),
        "{interfaces}"
    );
    bed.stop();
}

#[test]
fn labels_of_the_kernel_are_swapped_popped_and_lead_into_a_vrf() {
    if !kernel_has(&NEEDED) {
        return;
    }
    let dataplane = Dataplane::new();
    let mut bed = Bed::new("linux-labels", &[("near", 1), ("far", 1), ("site", 1)]);
    for (host, address) in [("near", "10.1.0.2/24"), ("far", "10.2.0.2/24")] {
        for (name, value) in [
            ("mpls/platform_labels", "1000"),
            ("mpls/conf/eth0/input", "1"),
            ("mpls/conf/lo/input", "1"),
        ] {
            bed.set(host, name, value);
        }
        bed.on(host, &format!("ip address add {address} dev eth0"));
    }
    bed.on("near", "ip address add 10.9.1.1/32 dev lo");
    bed.on("far", "ip address add 10.9.2.1/32 dev lo");
    bed.on("far", "ip address add 10.9.4.1/32 dev lo");
    bed.on("site", "ip address add 10.3.0.2/24 dev eth0");
    bed.on("site", "ip route add default via 10.3.0.1");
    bed.start(&format!(
        "interfaces:
  near: {{device: {{driver: af-xdp, name: near-0}}, addresses: [10.1.0.1/24], mpls: true}}
  far: {{device: {{driver: af-xdp, name: far-0}}, addresses: [10.2.0.1/24], mpls: true}}
  site: {{device: {{driver: af-xdp, name: site-0}}, addresses: [10.3.0.1/24], vrf: red}}
vrfs: {{red: {{table: 10}}}}
linux:
  namespace: {DATAPLANE}
  interfaces: {{near: {{}}, far: {{}}, site: {{}}}}
"
    ));
    // As FRR and BIRD write them. Swap in both directions, penultimate hop popping, and the end of a label in a VRF.
    for route in [
        "-f mpls route add 100 as 200 via inet 10.2.0.2 dev far",
        "-f mpls route add 101 as 201 via inet 10.1.0.2 dev near",
        "-f mpls route add 102 via inet 10.2.0.2 dev far",
        "-f mpls route add 103 dev red",
        "route add 10.9.1.0/24 encap mpls 201 via inet 10.1.0.2 dev near vrf red",
        "route add 10.9.1.0/24 via 10.1.0.2 dev near",
    ] {
        dataplane.ip(route);
    }
    wait("four labels", || {
        let all = bed.ask("show mpls fib").to_string();
        let found = (100..104).filter(|label| all.contains(&format!("\"label\":{label},")));
        if found.count() == 4 { Ok(()) } else { Err(all) }
    });
    bed.on("far", "ip -f mpls route add 200 dev lo");
    bed.on("near", "ip -f mpls route add 201 dev lo");
    bed.on(
        "near",
        "ip route add 10.9.2.0/24 encap mpls 100 via inet 10.1.0.1 dev eth0 src 10.9.1.1",
    );
    bed.on(
        "far",
        "ip route add 10.9.1.0/24 encap mpls 101 via inet 10.2.0.1 dev eth0 src 10.9.2.1",
    );
    bed.ping("near", "10.9.2.1", 1400);
    bed.ping("far", "10.9.1.1", 56);
    bed.on(
        "near",
        "ip route add 10.9.4.0/24 encap mpls 102 via inet 10.1.0.1 dev eth0 src 10.9.1.1",
    );
    bed.ping("near", "10.9.4.1", 1400);
    // A site behind a VRF: there by a label, back by a route of its table that pushes one.
    bed.on(
        "near",
        "ip route add 10.3.0.0/24 encap mpls 103 via inet 10.1.0.1 dev eth0 src 10.9.1.1",
    );
    bed.ping("near", "10.3.0.2", 1400);
    // Weir's labels go with the kernel's.
    dataplane.ip("-f mpls route del 100");
    wait("the label is gone", || {
        let all = bed.ask("show mpls fib").to_string();
        if all.contains("\"label\":100,") {
            Err(all)
        } else {
            Ok(())
        }
    });
    bed.stop();
}
