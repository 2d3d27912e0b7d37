//! Policers: what conforms passes, all else is dropped and counted, in both directions and on every arc.

use std::sync::Arc;

use weir_graph::DropReason;
use weir_nodes::{Entry, FeatureArc, Policer, PolicerCounters, PolicerSums, nodes_of, order_of};
use weir_port::interface::{Feature, Features};
use weir_wire::build;

use crate::acl::{bind, from};
use crate::ip6::udp6;
use crate::mpls::under;
use crate::rig::*;

/// Gives an interface a policer, beside its other features.
pub(crate) fn attach(
    router: &mut Router,
    interface: u32,
    feature: Feature,
    rate: u64,
    burst: u32,
) -> Arc<PolicerCounters> {
    let counters = Arc::new(PolicerCounters::new(1));
    let policer = Some(Arc::new(Policer::new(rate, burst, counters.clone())));
    let place = router.tables.interfaces[interface as usize]
        .as_mut()
        .unwrap();
    let mut entry: Entry = (**place).clone();
    entry.interface.features = entry.interface.features.with(feature);
    match feature {
        Feature::PoliceIn => entry.policers.input = policer,
        _ => entry.policers.output = policer,
    }
    *place = Arc::new(entry);
    counters
}

/// Each frame counts 100 bytes behind its Ethernet header.
fn routed() -> Vec<u8> {
    let frame = build::udp4(&through("10.0.2.2"), &[1; 72]);
    assert_eq!(frame.len(), 114);
    frame
}

fn sums(conformed: u64, dropped: u64) -> PolicerSums {
    PolicerSums {
        conformed_packets: conformed,
        conformed_bytes: 100 * conformed,
        dropped_packets: dropped,
        dropped_bytes: 100 * dropped,
    }
}

#[test]
fn a_burst_passes_and_then_the_rate() {
    for (interface, feature) in [(WEST, Feature::PoliceIn), (EAST, Feature::PoliceOut)] {
        let mut router = Router::default();
        // 800 bit/ms: one of these packets.
        let counters = attach(&mut router, interface, feature, 800_000, 1_000);
        let frames = vec![routed(); 100];
        assert_eq!(router.send_all(WEST, &frames).len(), 10, "{feature:?}");
        assert_eq!(counters.sums(), sums(10, 90));
        assert_eq!(router.send_all(WEST, &frames[..3]).len(), 0);
        router.now += SECOND / 1000;
        assert_eq!(router.send_all(WEST, &frames[..3]).len(), 1);
        router.now += SECOND;
        assert_eq!(router.send_all(WEST, &frames[..20]).len(), 10);
        assert_eq!(counters.sums(), sums(21, 105));
        assert_eq!(router.dropped(DropReason::Policed), 105);
        router.balance();
    }
}

#[test]
fn every_arc_of_input_is_policed() {
    let six = udp6("2001:db8:2::2");
    let labelled = under(
        &build::udp4(&through("192.168.9.9"), &[1; 9]),
        &[(100, 0, 9)],
    );
    let across = build::udp4(&through("10.0.2.2"), &[1; 9]);
    for (port, frame) in [
        (WEST, routed()),
        (WEST, six),
        (WEST, labelled),
        (LEFT, across),
    ] {
        let mut router = Router::with_labels(Setup::default());
        assert_eq!(
            router.send_all(port, &[frame.clone(), frame.clone()]).len(),
            2
        );
        let bytes = frame.len() as u32 - 14;
        let counters = attach(&mut router, port, Feature::PoliceIn, 8_000, bytes);
        let frames = vec![frame.clone(); 3];
        assert_eq!(router.send_all(port, &frames).len(), 1, "{frame:02x?}");
        let PolicerSums {
            conformed_packets,
            dropped_packets,
            ..
        } = counters.sums();
        assert_eq!((conformed_packets, dropped_packets), (1, 2));
        router.balance();
    }
}

/// What a policer drops does not reach the access list, and what a list denies takes nothing from the policer of output.
#[test]
fn a_policer_is_first_on_input_and_last_on_output() {
    let deny_all = || vec![from(weir_acl::Action::Deny, "0.0.0.0/0")];
    let mut router = Router::default();
    let terms = bind(&mut router, WEST, Feature::AclIn, deny_all());
    let input = attach(&mut router, WEST, Feature::PoliceIn, 8_000, 250);
    assert!(router.send_all(WEST, &vec![routed(); 5]).is_empty());
    assert_eq!((terms.of(0).0, input.sums()), (2, sums(2, 3)));

    let mut router = Router::default();
    let terms = bind(&mut router, EAST, Feature::AclOut, deny_all());
    let output = attach(&mut router, EAST, Feature::PoliceOut, 8_000, 250);
    assert!(router.send_all(WEST, &vec![routed(); 5]).is_empty());
    assert_eq!((terms.of(0).0, output.sums()), (5, sums(0, 0)));
    router.balance();
}

#[test]
fn arp_is_not_policed() {
    let mut router = Router::default();
    attach(&mut router, WEST, Feature::PoliceIn, 8_000, 128);
    for _ in 0..5 {
        let request = weir_wire::ArpPacket::new(
            weir_wire::ArpPacket::REQUEST,
            their_mac(1, 7),
            ip("10.0.1.7"),
            weir_wire::MacAddr::ZERO,
            ip("10.0.1.1"),
        );
        let frame = build::arp(weir_wire::MacAddr::BROADCAST, &request);
        assert_eq!(router.send(WEST, &frame).len(), 1);
    }
}

#[test]
fn the_order_follows_from_the_declarations() {
    assert_eq!(
        order_of(FeatureArc::Ip4),
        ["policer-input", "acl-input", "ip4-urpf"]
    );
    assert_eq!(
        order_of(FeatureArc::Ip6),
        ["policer-input", "acl-input", "ip6-urpf"]
    );
    for arc in [FeatureArc::Bridge, FeatureArc::CrossConnect] {
        assert_eq!(order_of(arc), ["policer-input", "acl-input"]);
    }
    assert_eq!(order_of(FeatureArc::Mpls), ["policer-input"]);
    assert_eq!(
        order_of(FeatureArc::Output),
        ["acl-output", "policer-output"]
    );
    let features = Features::EMPTY.with(Feature::Urpf).with(Feature::PoliceIn);
    assert_eq!(
        nodes_of(FeatureArc::Ip4, features),
        ["policer-input", "ip4-urpf"]
    );
    assert!(nodes_of(FeatureArc::Output, features).is_empty());
}
