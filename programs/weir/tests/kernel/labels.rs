//! The kernel's MPLS at both ends of the router's label paths: each takes what the other puts on.

use super::bed::{Bed, kernel_has};

const NEEDED: [&str; 1] = ["route add 10.97.0.0/16 encap mpls 100 via inet 10.98.0.1 dev base"];

/// A host that speaks MPLS on its `eth0`, with `address` there and more addresses on its loopback.
fn speaker(bed: &Bed, host: &str, address: &str, own: &[&str]) {
    for (name, value) in [
        ("mpls/platform_labels", "1000"),
        ("mpls/conf/eth0/input", "1"),
        ("mpls/conf/lo/input", "1"),
    ] {
        bed.set(host, name, value);
    }
    bed.on(host, &format!("ip address add {address} dev eth0"));
    own.iter()
        .for_each(|own| drop(bed.on(host, &format!("ip address add {own}/32 dev lo"))));
}

#[test]
fn labels_are_swapped_popped_pushed_and_looked_up() {
    if !kernel_has(&NEEDED) {
        return;
    }
    let mut bed = Bed::new("labels", &[("near", 1), ("far", 1)]);
    speaker(&bed, "near", "10.1.0.2/24", &["10.9.1.1"]);
    speaker(
        &bed,
        "far",
        "10.2.0.2/24",
        &["10.9.2.1", "10.9.3.1", "10.9.4.1", "10.9.5.1"],
    );
    bed.start(
        "interfaces:
  near: {device: {driver: af-xdp, name: near-0}, addresses: [10.1.0.1/24], mpls: true}
  far: {device: {driver: af-xdp, name: far-0}, addresses: [10.2.0.1/24], mpls: true}
routes:
  - {prefix: 10.9.1.0/24, via: 10.1.0.2}
  - {prefix: 10.9.3.0/24, via: [{next-hop: 10.2.0.2, labels: [300]}]}
  - {prefix: 10.9.5.0/24, via: 10.2.0.2}
mpls:
  labels:
    - {label: 100, via: [{next-hop: 10.2.0.2, labels: [200]}]}
    - {label: 101, via: [{next-hop: 10.1.0.2, labels: [201]}]}
    - {label: 102, via: 10.2.0.2}
    - {label: 400, lookup: default}
",
    );
    // Swapped in both directions, and popped by the kernel.
    bed.on(
        "near",
        "ip route add 10.9.2.0/24 encap mpls 100 via inet 10.1.0.1 dev eth0 src 10.9.1.1",
    );
    bed.on("far", "ip -f mpls route add 200 dev lo");
    bed.on(
        "far",
        "ip route add 10.9.1.0/24 encap mpls 101 via inet 10.2.0.1 dev eth0 src 10.9.2.1",
    );
    bed.on("near", "ip -f mpls route add 201 dev lo");
    bed.ping("near", "10.9.2.1", 1400);
    bed.ping("far", "10.9.1.1", 56);
    // Pushed by the router; what comes back ends there, is looked up and forwarded.
    bed.on("near", "ip route add 10.9.3.0/24 via 10.1.0.1");
    bed.on("far", "ip -f mpls route add 300 dev lo");
    bed.on(
        "far",
        "ip route add 10.1.0.0/24 encap mpls 400 via inet 10.2.0.1 dev eth0",
    );
    bed.ping("near", "10.9.3.1", 1400);
    // The router is the hop before the last: what it sends has no label any more. And explicit null.
    bed.on(
        "near",
        "ip route add 10.9.4.0/24 encap mpls 102 via inet 10.1.0.1 dev eth0",
    );
    bed.ping("near", "10.9.4.1", 1400);
    bed.on(
        "near",
        "ip route add 10.9.5.0/24 encap mpls 0 via inet 10.1.0.1 dev eth0",
    );
    bed.ping("near", "10.9.5.1", 1400);
    // The time to live ends at the router, which tells the label that the packet had (RFC 4950).
    let hops = bed.on(
        "near",
        "traceroute -n -e -q 1 -w 10 -m 3 -s 10.9.1.1 10.9.2.1",
    );
    assert!(hops.contains("10.1.0.1 <MPLS:L=100,E=0,S=1,T=1>"), "{hops}");
    let errors = bed.ask("show errors").to_string();
    assert!(
        !errors.contains("mpls-unknown-label") && !errors.contains("mpls-bad"),
        "{errors}"
    );
    bed.stop();
}
