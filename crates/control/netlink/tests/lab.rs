//! Labs on this machine: traffic through the kernel's bridge and router, processes and their ends.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::{can_run, wait_for};
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{FAR, Host, Lab, NEAR, ROUTER, has_program, preflight};
use weir_netlink::netns::{NetNs, spawn_lasting};

const LIMIT: Duration = Duration::from_secs(20);

fn alive(process: u32) -> bool {
    // A zombie has ended too; its state is the letter behind the name in parentheses.
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|status| !status.contains(") Z "))
}

/// Gives the router its addresses and lets the kernel forward.
fn kernel_router(lab: &Lab) -> &Host {
    let router = lab.host(ROUTER).unwrap();
    router.set_parameter("ipv4/ip_forward", "1").unwrap();
    let mut route = router.route().unwrap();
    for (port, address) in [("port-a", "10.1.0.1"), ("port-b", "10.2.0.1")] {
        let index = route.link_by_name(port).unwrap().index;
        route
            .add_address(index, address.parse().unwrap(), 24)
            .unwrap();
    }
    router
}

#[test]
fn the_two_hosts_are_as_described() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().queues(2).mtu(1400).ipv6().build().unwrap();
    let near = lab.host(NEAR).unwrap();
    let link = near.link("eth0").unwrap();
    assert_eq!((link.mac, link.mtu), (Some([2, 0, 0, 0, 0, 0x0a]), 1400));
    assert!(link.running);
    let ethtool = near.ethtool().unwrap();
    assert_eq!(ethtool.channels("eth0").unwrap().receive_queues(), 2);
    assert!(!ethtool.offload("eth0", Offload::TxChecksum).unwrap());
    assert!(!ethtool.offload("eth0", Offload::TcpSegmentation).unwrap());
    assert!(ethtool.offload("eth0", Offload::GenericReceive).unwrap());
    let port = lab.host(ROUTER).unwrap().link("port-b").unwrap();
    assert_eq!(port.mac, Some([2, 0, 0, 0, 0, 0x1b]));
    assert!(lab.host("host-c").is_err());
    // Nothing of it is to be seen from here.
    let mut own = NetNs::current().unwrap().route().unwrap();
    assert!(own.link_by_name("port-a").unwrap_err().is_not_found());
}

#[test]
fn silence_on_a_cable_until_somebody_speaks() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().build().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let statistics = lab.host(ROUTER).unwrap().link("port-a").unwrap().statistics;
    assert_eq!((statistics.rx_packets, statistics.tx_packets), (0, 0));
}

#[test]
fn ping_and_iperf_through_a_bridge() {
    if !can_run() {
        return;
    }
    let description = Lab::two_hosts().switched();
    let lab = description.build().unwrap();
    lab.bridge(ROUTER, "br0", &["port-a", "port-b"]).unwrap();
    let far = description.far_address().to_string();
    let near = lab.host(NEAR).unwrap();
    if !has_program("ping") {
        println!("skipped: no ping command");
        return;
    }
    let ping = near
        .run(
            "ping",
            &["-n", "-c", "3", "-i", "0.05", "-W", "5", &far],
            LIMIT,
        )
        .unwrap();
    assert!(
        ping.success() && ping.stdout.contains(" 0% packet loss"),
        "{ping:?}"
    );
    if !has_program("iperf3") {
        println!("skipped the second part: no iperf3 command");
        return;
    }
    let mut server = lab
        .host(FAR)
        .unwrap()
        .spawn("iperf3", &["-s", "--forceflush"])
        .unwrap();
    server.wait_for_output("Server listening", LIMIT).unwrap();
    let client = near
        .run("iperf3", &["-c", &far, "-n", "1M"], LIMIT)
        .unwrap();
    assert!(
        client.success() && client.stdout.contains("receiver"),
        "{client:?}"
    );
    assert!(!server.stop().unwrap().timed_out);
}

#[test]
fn ping_through_the_kernels_router_with_right_checksums() {
    if !can_run() || !has_program("ping") {
        return;
    }
    let lab = Lab::two_hosts().build().unwrap();
    let router = kernel_router(&lab);
    let capture = if has_program("tcpdump") {
        let mut capture = router
            .spawn("tcpdump", &["-i", "port-a", "-n", "-vv", "-l", "udp"])
            .unwrap();
        capture.wait_for_output("listening on", LIMIT).unwrap();
        Some(capture)
    } else {
        println!("skipped the checksums: no tcpdump command");
        None
    };
    let near = lab.host(NEAR).unwrap();
    let ping = near.run(
        "ping",
        &["-n", "-c", "2", "-i", "0.05", "-W", "5", "10.2.0.2"],
        LIMIT,
    );
    let ping = ping.unwrap();
    assert!(ping.success() && ping.stdout.contains("ttl=63"), "{ping:?}");
    near.namespace()
        .run(|| {
            let socket = std::net::UdpSocket::bind("10.1.0.2:4000").unwrap();
            socket.send_to(b"checksummed", "10.2.0.2:4001").unwrap();
        })
        .unwrap();
    if let Some(mut capture) = capture {
        capture.wait_for_output("4001", LIMIT).unwrap();
        let seen = capture.interrupt().unwrap().stdout;
        assert!(
            seen.contains("udp sum ok") && !seen.contains("bad udp"),
            "{seen}"
        );
    }
}

#[test]
fn a_process_that_takes_too_long_is_killed_with_its_children() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().build().unwrap();
    let near = lab.host(NEAR).unwrap();
    let script = "sleep 1000 & echo $!; wait";
    let finished = near
        .run("sh", &["-c", script], Duration::from_millis(300))
        .unwrap();
    assert!(finished.timed_out && !finished.success());
    // The shell waits for its child, which ends in 1,000 seconds: without the kill this would not be reached.
    let grandchild: u32 = finished.stdout.trim().parse().unwrap();
    wait_for("the end of the grandchild", || !alive(grandchild));
    // What a program leaves behind when it ends by itself goes too.
    let finished = near
        .run("sh", &["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], LIMIT)
        .unwrap();
    assert!(finished.success(), "{finished:?}");
    let orphan: u32 = finished.stdout.trim().parse().unwrap();
    wait_for("the end of the orphan", || !alive(orphan));
    let refused = near.run("no-such-program", &[], LIMIT).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("run no-such-program: No such file"),
        "{refused}"
    );
}

#[test]
fn dropping_a_process_kills_it() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().build().unwrap();
    let mut sleeper = lab.host(NEAR).unwrap().spawn("sleep", &["1000"]).unwrap();
    let process = sleeper.id();
    assert!(sleeper.is_running().unwrap() && alive(process));
    drop(sleeper);
    assert!(!alive(process));
}

#[test]
fn a_child_lives_as_long_as_the_thread_which_spawned_it() {
    if !can_run() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    let sleeper = || {
        let mut command = namespace.command("sleep");
        command.arg("1000");
        command
    };
    // The trap: the parent death signal is about the thread.
    let spawned = std::thread::scope(|scope| scope.spawn(|| sleeper().spawn()).join());
    let mut short = spawned.unwrap().unwrap();
    assert!(!short.wait().unwrap().success());
    // The way around it.
    let spawned = std::thread::scope(|scope| scope.spawn(|| spawn_lasting(sleeper())).join());
    let mut lasting = spawned.unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(lasting.try_wait().unwrap().is_none());
    let namespace_of = |process: u32| -> PathBuf {
        std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap()
    };
    let wanted = format!("net:[{}]", namespace.inode().unwrap());
    assert_eq!(namespace_of(lasting.id()).to_str(), Some(wanted.as_str()));
    lasting.kill().unwrap();
    lasting.wait().unwrap();
}

#[test]
fn a_panic_inside_comes_out_and_the_caller_stays_where_it_was() {
    if !can_run() {
        return;
    }
    let namespace = NetNs::new().unwrap();
    let before = NetNs::current().unwrap().inode().unwrap();
    let inside = namespace
        .run(|| NetNs::current().unwrap().inode().unwrap())
        .unwrap();
    assert_eq!(inside, namespace.inode().unwrap());
    let caught = std::panic::catch_unwind(|| namespace.run(|| panic!("on purpose")));
    assert_eq!(
        caught.unwrap_err().downcast_ref::<&str>(),
        Some(&"on purpose")
    );
    assert_eq!(NetNs::current().unwrap().inode().unwrap(), before);
    namespace.run(|| ()).unwrap();
}

#[test]
fn preflight_says_who_may() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let without_rights = std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets {
                effective: none,
                permitted: none,
                inheritable: none,
            },
        )
        .unwrap();
        preflight()
    });
    let sentence = without_rights.join().unwrap().unwrap_err();
    assert_eq!(
        sentence,
        "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run it with sudo"
    );
}
