//! `weir xdp` on Debian's kernels: the programs load and forward; VLAN devices, VRFs and the kernel's bonds are respected.

use serde_json::Value;
use weir_netlink::lab::{ROUTER, Running};

use super::bed::{Bed, kernel_has, wait, weir};

/// `weir xdp run` on the bed's router, with a BPF file system of its own.
struct Host<'b> {
    bed: &'b Bed,
    daemon: Option<Running>,
}

impl<'b> Host<'b> {
    fn start(bed: &'b Bed, config: &str) -> Host<'b> {
        std::fs::write(bed.file("host.yaml"), config).unwrap();
        std::fs::create_dir_all(bed.file("bpf")).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "bpf", "bpf", &bed.file("bpf")])
            .status()
            .unwrap();
        assert!(mounted.success());
        let mut host = Host { bed, daemon: None };
        host.run();
        host
    }

    fn line(&self, arguments: &str) -> String {
        format!(
            "{} xdp --pins {} --state {} {arguments}",
            weir(),
            self.bed.file("bpf/pins"),
            self.bed.file("state")
        )
    }

    fn run(&mut self) {
        let line = self.line(&format!("run -c {}", self.bed.file("host.yaml")));
        let mut daemon = self.bed.spawn(ROUTER, &line);
        let ready = daemon.wait_for_output("weir xdp runs", std::time::Duration::from_secs(90));
        assert!(ready.is_ok(), "{ready:?}: {}", daemon.stderr_so_far());
        self.daemon = Some(daemon);
    }

    fn ask(&self, arguments: &str) -> Value {
        let said = self
            .bed
            .on(ROUTER, &self.line(&format!("{arguments} --json")));
        serde_json::from_str(&said).unwrap()
    }

    /// A counter of a port.
    fn count(&self, port: &str, counter: &str) -> u64 {
        let all = self.ask("show port");
        let ports = all.as_array().unwrap();
        let one = ports.iter().find(|it| it["name"] == port);
        one.map_or(0, |it| it[counter].as_u64().unwrap())
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        drop(self.daemon.take());
        let _ = std::fs::remove_dir_all(self.bed.file("bpf/pins"));
        let _ = std::process::Command::new("umount")
            .args(["-l", &self.bed.file("bpf")])
            .status();
    }
}

#[test]
fn xdp_guests_and_a_trunk_through_a_crash() {
    if !kernel_has(&["link add link base base.9 type vlan id 9"]) {
        return;
    }
    let bed = Bed::new("xdp", &[("one", 1), ("two", 1), ("far", 1)]);
    for (host, line) in [
        ("one", "ip address add 192.0.2.1/24 dev eth0"),
        ("two", "ip address add 192.0.2.2/24 dev eth0"),
        ("far", "ip link add link eth0 eth0.100 type vlan id 100"),
        ("far", "ip address add 192.0.2.9/24 dev eth0.100"),
        ("far", "ip link set eth0.100 up"),
    ] {
        bed.on(host, line);
    }
    let mut host = Host::start(
        &bed,
        "ports:\n  one-0: {vlan: 100}\n  two-0: {vlan: 100}\n  far-0: {trunk: [100]}\n",
    );
    bed.ping("one", "192.0.2.2", 1000);
    bed.ping("one", "192.0.2.9", 1400);
    bed.ping("far", "192.0.2.2", 56);
    // The daemon is killed and started again in the midst of 200 requests.
    let pings = bed.spawn("one", "ping -i 0.05 -c 200 -W 5 192.0.2.2");
    std::thread::sleep(std::time::Duration::from_secs(1));
    drop(host.daemon.take());
    host.run();
    let done = pings.wait(std::time::Duration::from_secs(90)).unwrap();
    assert!(done.stdout.contains(" 0% packet loss"), "{}", done.stdout);
    assert!(host.count("one-0", "in_packets") > 200);
    wait("every packet is accounted for", || {
        let drops = host.ask("show drops");
        if drops["exact"] == true {
            Ok(())
        } else {
            Err(drops.to_string())
        }
    });
}

#[test]
fn xdp_routes_between_a_vlan_and_a_port_of_a_vrf() {
    if !kernel_has(&[
        "link add link base base.9 type vlan id 9",
        "link add red type vrf table 10",
    ]) {
        return;
    }
    let bed = Bed::new("xdp-routed", &[("a", 1), ("b", 1)]);
    for (host, line) in [
        (ROUTER, "ip link add red type vrf table 10"),
        (ROUTER, "ip link set red up"),
        (ROUTER, "ip link add link a-0 a-0.10 type vlan id 10"),
        (ROUTER, "ip link set a-0.10 master red"),
        (ROUTER, "ip link set b-0 master red"),
        (ROUTER, "ip link set a-0.10 up"),
        (ROUTER, "ip address add 10.1.0.1/24 dev a-0.10"),
        (ROUTER, "ip address add 10.2.0.1/24 dev b-0"),
        ("a", "ip link add link eth0 eth0.10 type vlan id 10"),
        ("a", "ip link set eth0.10 up"),
        ("a", "ip address add 10.1.0.2/24 dev eth0.10"),
        ("a", "ip route add default via 10.1.0.1"),
        ("b", "ip address add 10.2.0.2/24 dev eth0"),
        ("b", "ip route add default via 10.2.0.1"),
    ] {
        bed.on(host, line);
    }
    bed.set(ROUTER, "ipv4/ip_forward", "1");
    let host = Host::start(
        &bed,
        "ports:\n  a-0: {routed: true}\n  b-0: {routed: true}\n",
    );
    bed.ping("a", "10.2.0.2", 56);
    // The kernel knows both neighbours now: the programs forward, both ways.
    for _ in 0..3 {
        bed.ping("a", "10.2.0.2", 1400);
    }
    assert!(
        host.count("b-0", "out_packets") >= 3 && host.count("a-0", "out_packets") >= 3,
        "{}",
        host.ask("show port")
    );
    // Exceptions are the kernel's: it answers for itself, and says that a TTL ended.
    bed.ping("a", "10.2.0.1", 56);
    let (said, _) = bed.try_on("a", "ping -c 1 -W 5 -t 1 10.2.0.2");
    assert!(said.contains("Time to live exceeded"), "{said}");
}

#[test]
fn xdp_uses_the_members_that_lacp_selected() {
    if !kernel_has(&[
        "link add link base base.9 type vlan id 9",
        "link add bond9 type bond mode 802.3ad",
    ]) {
        return;
    }
    let bed = Bed::new("xdp-lacp", &[("guest", 1), ("far", 2)]);
    let bond = |host: &str, ports: [&str; 2]| {
        bed.on(
            host,
            "ip link add bond9 type bond mode 802.3ad miimon 50 lacp_rate fast xmit_hash_policy layer3+4",
        );
        for port in ports {
            bed.on(host, &format!("ip link set {port} down"));
            bed.on(host, &format!("ip link set {port} master bond9"));
        }
        bed.on(host, "ip link set bond9 up");
    };
    bond(ROUTER, ["far-0", "far-1"]);
    bond("far", ["eth0", "eth1"]);
    for line in [
        "ip link add link bond9 bond9.100 type vlan id 100",
        "ip link set bond9.100 up",
        "ip address add 192.0.2.9/24 dev bond9.100",
    ] {
        bed.on("far", line);
    }
    bed.on("guest", "ip address add 192.0.2.1/24 dev eth0");
    let host = Host::start(
        &bed,
        "ports:\n  guest-0: {vlan: 100}\nbonds:\n  up: {members: [far-0, far-1], trunk: [100]}\n",
    );
    let pings = || {
        let _ = bed.try_on("guest", "ping -c 1 -W 2 192.0.2.9");
    };
    wait("LACP has selected a member", || {
        pings();
        let out = host.count("far-0", "out_packets") + host.count("far-1", "out_packets");
        if out > 0 {
            Ok(())
        } else {
            Err(host.ask("show port").to_string())
        }
    });
    // A member that the far end gives up keeps its carrier; LACP alone leaves it.
    bed.on("far", "ip link set eth0 nomaster");
    bed.on("far", "ip link set eth0 up");
    wait("the bond of the kernel leaves the member", || {
        let said = bed.on(ROUTER, "ip -d link show far-0");
        if said.contains("state BACKUP") {
            Ok(())
        } else {
            Err(said)
        }
    });
    wait("the other member carries all", || {
        let before = host.count("far-0", "out_packets");
        let other = host.count("far-1", "out_packets");
        pings();
        let now = (
            host.count("far-0", "out_packets"),
            host.count("far-1", "out_packets"),
        );
        if now.0 == before && now.1 > other {
            Ok(())
        } else {
            Err(format!("{before} {other} {now:?}"))
        }
    });
    bed.ping("guest", "192.0.2.9", 56);
}
