//! The way through the kernel where it is not there, or not yet: reported in a sentence, and nothing else changes.

mod common;

use std::process::Command;
use std::time::Duration;

use common::collector::{Interfaces, Receiver, config, wait_for};
use common::{Packets, Rig, packets};
use weir_netlink::netns::NetNs;
use weir_telemetry::agent::{
    Agent, AgentConfig, AgentHandle, InterfaceReport, KernelPath, KernelStats,
};

fn start(rig: &mut Rig, receiver: &Receiver, namespace: Option<String>) -> AgentHandle {
    let kernel = Some(KernelPath {
        group: 3,
        egress_group: 4,
        namespace,
    });
    let config = AgentConfig {
        kernel,
        polling_interval: 1,
        ..config(&[receiver.address()])
    };
    let report = InterfaceReport {
        ifindex: 7,
        name: "xe0".into(),
        sampled: true,
        ..InterfaceReport::default()
    };
    Agent::start(
        config,
        vec![rig.give_source()],
        Interfaces::of(vec![report]),
    )
    .unwrap()
}

fn stats(agent: &AgentHandle) -> KernelStats {
    agent.stats().kernel.unwrap()
}

fn samples_come(rig: &mut Rig, receiver: &Receiver) {
    let Packets { packets, .. } = packets(20, 64);
    wait_for("samples", || {
        rig.look(&packets);
        receiver
            .next(Duration::from_millis(20))
            .is_some_and(|datagram| !datagram.flows.is_empty())
    });
}

/// `NET_DM` is in the first namespace only, and few machines have `psample`.
#[test]
fn what_the_kernel_lacks_is_reported_in_a_sentence_and_all_else_goes_on() {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let namespace = NetNs::new().unwrap();
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    // The agent's thread is in the namespace and its collector is not: it gets "no route", and no other error.
    let kernel = Some(KernelPath {
        group: 3,
        egress_group: 4,
        namespace: None,
    });
    let sources = vec![rig.give_source()];
    let agent = namespace.run(|| {
        let config = AgentConfig {
            kernel,
            polling_interval: 1,
            ..config(&[])
        };
        let report = InterfaceReport {
            ifindex: 7,
            name: "xe0".into(),
            sampled: true,
            ..InterfaceReport::default()
        };
        Agent::start(config, sources, Interfaces::of(vec![report])).unwrap()
    });
    let agent = agent.unwrap();
    wait_for("a sentence", || {
        stats(&agent)
            .lacking
            .iter()
            .any(|it| it.contains("NET_DM") && it.contains("modprobe drop_monitor"))
    });
    wait_for("states and counters", || stats(&agent).sent.reports > 3);
    let sentences = stats(&agent).lacking;
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(stats(&agent).lacking, sentences, "reported once each");
    drop(agent);
    // In the router's own namespace the built-in agent goes on, whatever the kernel has.
    let mut rig = Rig::new(1, 1);
    let agent = start(&mut rig, &receiver, None);
    samples_come(&mut rig, &receiver);
    assert_eq!(agent.stop().collectors[0].errors, 0);
}

#[test]
fn a_namespace_of_listeners_that_vanishes_and_returns_is_found_again() {
    if let Err(why) = weir_netlink::lab::preflight() {
        eprintln!("skipped: {why}");
        return;
    }
    let name = format!("weir-hsflowd-{}", std::process::id());
    let ip = |verb: &str| {
        assert!(
            Command::new("ip")
                .args(["netns", verb, &name])
                .status()
                .unwrap()
                .success()
        )
    };
    let receiver = Receiver::new();
    let mut rig = Rig::new(1, 1);
    let agent = start(&mut rig, &receiver, Some(name.clone()));
    wait_for("that it is not there", || {
        stats(&agent).lacking.iter().any(|it| it.contains(&name))
    });
    samples_come(&mut rig, &receiver);
    for _ in 0..2 {
        let before = stats(&agent).sent.reports;
        ip("add");
        wait_for("reports", || stats(&agent).sent.reports > before + 1);
        ip("delete");
        wait_for("that it is gone", || {
            stats(&agent).lacking.iter().any(|it| it.contains(&name))
        });
    }
    samples_come(&mut rig, &receiver);
}
