//! The kernel's bonding driver at the far end of the router's bonds.

use super::bed::{Bed, kernel_has, wait};

const BOND: [&str; 1] = ["link add bond9 type bond mode 802.3ad"];

/// The far end's bond of two ports with an address, `ARGUMENTS` as for `ip link add … type bond`.
fn kernel_bond(bed: &Bed, arguments: &str) {
    bed.on(
        "peer",
        &format!("ip link add bond9 type bond miimon 50 {arguments}"),
    );
    for port in ["eth0", "eth1"] {
        bed.on("peer", &format!("ip link set {port} down"));
        bed.on("peer", &format!("ip link set {port} master bond9"));
    }
    bed.on("peer", "ip link set bond9 up");
    for number in 2..10 {
        bed.on(
            "peer",
            &format!("ip address add 10.1.0.{number}/24 dev bond9"),
        );
    }
    bed.on("peer", "ip route add 10.2.0.0/24 via 10.1.0.1");
}

/// The router's bond towards `peer`, and a host beside it.
fn configuration(bond: &str) -> String {
    format!(
        "interfaces:
  xe0: {{device: {{driver: af-xdp, name: peer-0}}}}
  xe1: {{device: {{driver: af-xdp, name: peer-1}}}}
  xe2: {{device: {{driver: af-xdp, name: host-0}}, addresses: [10.2.0.1/24]}}
  BondEthernet0: {{addresses: [10.1.0.1/24]}}
bondethernets:
  BondEthernet0: {{interfaces: [xe0, xe1], {bond}}}
"
    )
}

fn bed(name: &str, kernel: &str, weir: &str) -> Bed {
    let mut bed = Bed::new(name, &[("peer", 2), ("host", 1)]);
    kernel_bond(&bed, kernel);
    bed.on("host", "ip address add 10.2.0.2/24 dev eth0");
    bed.on("host", "ip route add default via 10.2.0.1");
    bed.start(&configuration(weir));
    bed
}

/// The members by which the router sends.
fn sending(bed: &Bed) -> Vec<String> {
    let bonds = bed.ask("show bond");
    let members = bonds["bonds"][0]["members"].as_array().unwrap().clone();
    let uses = members.iter().filter(|it| it["distributing"] == true);
    uses.map(|it| it["interface"].as_str().unwrap().to_owned())
        .collect()
}

fn wait_sending(bed: &Bed, wanted: &[&str]) {
    wait(&format!("the router sends by {wanted:?}"), || {
        let now = sending(bed);
        if now == wanted {
            Ok(())
        } else {
            Err(format!("{now:?}, {}", bed.ask("show lacp")))
        }
    });
}

/// The state octets of actor and partner that the kernel shows for each of its ports: IEEE 802.1AX 6.4.2.3, of which
/// 0x38 are synchronisation, collecting and distributing.
fn kernel_states(bed: &Bed) -> Vec<(u8, u8)> {
    let said = bed.on("peer", "cat /proc/net/bonding/bond9");
    let states: Vec<u8> = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("port state: "))
        .filter_map(|state| state.parse().ok())
        .collect();
    states
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

const IN_USE: u8 = 0x38;

fn wait_kernel(bed: &Bed, in_use: &[bool]) {
    wait(
        &format!("the kernel collects and distributes: {in_use:?}"),
        || {
            let states = kernel_states(bed);
            let now: Vec<bool> = states
                .iter()
                .map(|(actor, partner)| actor & partner & IN_USE == IN_USE)
                .collect();
            if now == in_use {
                Ok(())
            } else {
                Err(bed.on("peer", "cat /proc/net/bonding/bond9"))
            }
        },
    );
}

/// Packets of many flows in both directions; each is answered.
fn many_flows(bed: &Bed) {
    for number in 2..10 {
        bed.ping("host", &format!("10.1.0.{number}"), 56);
    }
    bed.ping("peer", "10.2.0.2", 1472);
    bed.ping("peer", "10.1.0.1", 1472);
}

/// Both ends use both links for flows. The kernel takes a port into use some time after its state says so, and out of it
/// when the machine stood still for longer than LACP waits.
fn assert_spread(bed: &Bed) {
    let before = (bed.packets("xe0"), bed.packets("xe1"));
    wait("both ends spread their flows", || {
        many_flows(bed);
        let after = (bed.packets("xe0"), bed.packets("xe1"));
        let received = after.0.0 > before.0.0 && after.1.0 > before.1.0;
        let sent = after.0.1 > before.0.1 && after.1.1 > before.1.1;
        if received && sent {
            Ok(())
        } else {
            Err(format!(
                "{before:?} {after:?}\n{}",
                bed.on("peer", "cat /proc/net/bonding/bond9")
            ))
        }
    });
}

#[test]
fn lacp_agrees_with_the_kernels_and_leaves_a_link_that_goes() {
    if !kernel_has(&BOND) {
        return;
    }
    for (name, rate, weir) in [
        ("lacp-fast", "fast", "mode: lacp, lacp-rate: fast"),
        ("lacp-slow", "slow", "mode: lacp"),
    ] {
        let kernel = format!("mode 802.3ad lacp_rate {rate} xmit_hash_policy layer3+4");
        let bed = bed(name, &kernel, weir);
        wait_sending(&bed, &["xe0", "xe1"]);
        wait_kernel(&bed, &[true, true]);
        let lacp = bed.ask("show lacp");
        for member in lacp["bonds"][0]["members"].as_array().unwrap() {
            let machines = (&member["lacp"]["receive"], &member["lacp"]["mux"]);
            assert_eq!(
                machines,
                (&"current".into(), &"distributing".into()),
                "{lacp}"
            );
        }
        // Each end calls the other what that calls itself.
        let system = lacp["bonds"][0]["members"][0]["lacp"]["actor"]["system"]
            .as_str()
            .unwrap()
            .to_owned();
        let said = bed.on("peer", "cat /proc/net/bonding/bond9");
        let reported = said.lines().find_map(|line| {
            line.trim()
                .strip_prefix("Partner Mac Address: ")
                .map(str::to_owned)
        });
        assert!(
            system.contains(&reported.clone().unwrap()),
            "{system}, {reported:?}"
        );
        assert_spread(&bed);

        bed.on("peer", "ip link set eth0 down");
        wait_sending(&bed, &["xe1"]);
        many_flows(&bed);
        bed.on("peer", "ip link set eth0 up");
        wait_sending(&bed, &["xe0", "xe1"]);
        wait_kernel(&bed, &[true, true]);
        many_flows(&bed);
        bed.stop();
    }
}

#[test]
fn a_far_end_that_speaks_no_lacp_is_not_used() {
    if !kernel_has(&BOND) {
        return;
    }
    let bed = bed(
        "wrong-mode",
        "mode balance-xor",
        "mode: lacp, lacp-rate: fast",
    );
    // The kernel sends by both, whatever the router says; the router has sent several PDUs to nobody.
    wait("PDUs are sent", || {
        let sent = bed.sent("xe0").min(bed.sent("xe1"));
        if sent >= 4 {
            Ok(())
        } else {
            Err(format!("{sent}"))
        }
    });
    assert_eq!(sending(&bed), [""; 0]);
    bed.no_ping("peer", "10.1.0.1");
    bed.stop();
}

#[test]
fn flows_spread_without_a_protocol() {
    if !kernel_has(&BOND) {
        return;
    }
    for (name, policy, layers) in [
        ("xor-l34", "layer3+4", "l34"),
        ("xor-l23", "layer2+3", "l23"),
    ] {
        let bed = bed(
            name,
            &format!("mode balance-xor xmit_hash_policy {policy}"),
            &format!("mode: xor, load-balance: {layers}"),
        );
        wait_sending(&bed, &["xe0", "xe1"]);
        assert_spread(&bed);
        bed.on("peer", "ip link set eth1 down");
        wait_sending(&bed, &["xe0"]);
        many_flows(&bed);
        bed.on("peer", "ip link set eth1 up");
        wait_sending(&bed, &["xe0", "xe1"]);
        many_flows(&bed);
        bed.stop();
    }
}

#[test]
fn both_ends_keep_one_active_and_change_to_the_other() {
    if !kernel_has(&BOND) {
        return;
    }
    let bed = bed(
        "backup",
        "mode active-backup primary eth0",
        "mode: active-backup",
    );
    wait_sending(&bed, &["xe0"]);
    many_flows(&bed);
    bed.on("peer", "ip link set eth0 down");
    wait_sending(&bed, &["xe1"]);
    many_flows(&bed);
    bed.on("peer", "ip link set eth0 up");
    wait_sending(&bed, &["xe0"]);
    many_flows(&bed);
    bed.stop();
}
