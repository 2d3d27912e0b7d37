//! Nothing is left behind: not after a drop, and not after `kill -9`.
//!
//! A namespace that the kernel has deleted cannot be asked. So each test ties a veth pair between
//! the namespace that shall vanish and a witness which stays: the kernel deletes the witness's end
//! when, and only when, the other namespace is deleted.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use common::{can_run, wait_for};
use weir_netlink::lab::{Lab, NEAR, ROUTER, has_program};
use weir_netlink::netns::NetNs;
use weir_netlink::route::VethPair;

/// Set for the process that is to be killed.
const VICTIM: &str = "WEIR_NETLINK_VICTIM";

/// Ties `namespace` to the witness by the link `name`.
fn tie(witness: &NetNs, name: &str, namespace: &NetNs) {
    let pair = VethPair {
        name,
        peer_name: "tie",
        peer_namespace: Some(namespace),
        ..VethPair::default()
    };
    witness.route().unwrap().create_veth(&pair).unwrap();
}

fn tied(witness: &NetNs, name: &str) -> bool {
    match witness.route().unwrap().link_by_name(name) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => panic!("{error}"),
    }
}

/// The processes of this machine which are in the namespace.
fn inhabitants(inode: u64) -> Vec<String> {
    let wanted = format!("net:[{inode}]");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let link = std::fs::read_link(entry.path().join("ns/net"));
        if link.is_ok_and(|link| link.to_str() == Some(&wanted)) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn a_namespace_goes_with_its_last_holder() {
    if !can_run() {
        return;
    }
    let witness = NetNs::new().unwrap();
    let namespace = NetNs::new().unwrap();
    tie(&witness, "w0", &namespace);
    let clone = namespace.clone();
    drop(namespace);
    std::thread::sleep(Duration::from_millis(300));
    assert!(tied(&witness, "w0"), "a clone holds it");
    drop(clone);
    wait_for("the end of the namespace", || !tied(&witness, "w0"));
}

#[test]
fn a_lab_goes_with_its_processes() {
    if !can_run() {
        return;
    }
    let witness = NetNs::new().unwrap();
    let lab = Lab::two_hosts().build().unwrap();
    let (near, router) = (lab.host(NEAR).unwrap(), lab.host(ROUTER).unwrap());
    tie(&witness, "w0", near.namespace());
    tie(&witness, "w1", router.namespace());
    let inode = near.namespace().inode().unwrap();
    let sleeper = near.spawn("sleep", &["1000"]).unwrap();
    assert_eq!(inhabitants(inode), [sleeper.id().to_string()]);
    drop(lab);
    wait_for("the end of the router", || !tied(&witness, "w1"));
    assert!(tied(&witness, "w0"), "a process holds its namespace");
    drop(sleeper);
    wait_for("the end of the host", || !tied(&witness, "w0"));
    assert_eq!(inhabitants(inode), [""; 0]);
}

#[test]
fn kill_nine_leaves_nothing() {
    if !can_run() {
        return;
    }
    let witness = NetNs::new().unwrap();
    // This very program, as the `victim` below; its own namespace is the witness.
    let mut victim = witness
        .command(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env(VICTIM, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).find_map(|line| {
        line.split_once("ready ")
            .map(|(_, inodes)| inodes.to_owned())
    });
    let inodes: Vec<u64> = ready
        .unwrap()
        .split_whitespace()
        .map(|inode| inode.parse().unwrap())
        .collect();
    assert!(tied(&witness, "w0") && tied(&witness, "w1"));
    let before = inhabitants(inodes[0]).len();
    assert_eq!(before, if has_program("ping") { 2 } else { 1 });

    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_for("the end of the host", || !tied(&witness, "w0"));
    wait_for("the end of the router", || !tied(&witness, "w1"));
    for inode in inodes {
        assert_eq!(inhabitants(inode), [""; 0]);
    }
}

/// Not a test: what `kill_nine_leaves_nothing` starts and kills.
#[test]
#[ignore = "it waits to be killed by another test"]
fn victim() {
    // Run by hand it would tie cables to the caller's own namespace.
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let witness = NetNs::current().unwrap();
    let lab = Lab::two_hosts().build().unwrap();
    let (near, router) = (lab.host(NEAR).unwrap(), lab.host(ROUTER).unwrap());
    tie(&witness, "w0", near.namespace());
    tie(&witness, "w1", router.namespace());
    let _sleeper = near.spawn("sleep", &["1000"]).unwrap();
    // A program with a file capability, for which some kernels clear the parent death signal.
    let _ping = near.spawn("ping", &["-i", "0.5", "127.0.0.1"]);
    let inodes = [near, router].map(|host| host.namespace().inode().unwrap().to_string());
    println!("ready {}", inodes.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}
