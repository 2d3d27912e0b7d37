//! Packets from outside with a source address of this router: dropped on every path, and nothing else with them.

use ipnet::Ipv4Net;
use weir_acl::Action;
use weir_graph::DropReason;
use weir_port::interface::{Feature, ReversePath};
use weir_port::own_addresses::OwnAddresses;
use weir_wire::build::{self, Ends, Ends6};

use crate::acl::{bind, from};
use crate::mpls::under;
use crate::rig::*;
use crate::urpf;

fn from4(source: u32) -> Vec<u8> {
    let ends = Ends {
        source,
        ..through("10.0.2.2")
    };
    build::udp4(&ends, &[1; 40])
}

fn from6(source: [u8; 16]) -> Vec<u8> {
    let ends = Ends6 {
        source,
        ..through6("2001:db8:2::2")
    };
    build::udp6(&ends, &[1; 40])
}

/// Addresses of the interface, of another one, and broadcast addresses of both.
const OWN4: [&str; 4] = ["10.0.1.1", "10.0.3.1", "10.0.1.255", "10.0.2.255"];
const OWN6: [&str; 2] = ["2001:db8:1::1", "2001:db8:3::1"];

type Make = (&'static str, fn() -> Router);

/// A large table of routes, so that lookups take several steps.
fn with_large_table() -> Router {
    let mut router = Router::default();
    let east = router.adjacency_of("10.0.2.2");
    for number in 0..70_000_u32 {
        let prefix = Ipv4Net::new((0x0b00_0000 + (number << 8)).into(), 24).unwrap();
        router.route(prefix, &[(east, 1)]);
    }
    router
}

fn one_step() -> Router {
    let mut router = Router::default();
    router.graph.set_one_step();
    router
}

fn listed() -> Router {
    let mut router = Router::default();
    bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![from(Action::Permit, "0.0.0.0/0")],
    );
    router
}

const PATHS: [Make; 5] = [
    ("fast path", Router::default),
    ("large table", with_large_table),
    ("nodes", one_step),
    ("access list", listed),
    ("reverse path", || urpf::looking(ReversePath::Loose)),
];

#[test]
fn own_sources_are_dropped_on_every_path() {
    for (name, make) in PATHS {
        let mut router = make();
        // Twice: access lists know the flow then.
        for _ in 0..2 {
            for source in OWN4 {
                assert!(
                    router.send(WEST, &from4(ip(source))).is_empty(),
                    "{name} {source}"
                );
            }
            for source in OWN6 {
                assert!(
                    router.send(WEST, &from6(ip6(source))).is_empty(),
                    "{name} {source}"
                );
            }
        }
        let dropped =
            [DropReason::Ip4SourceOwn, DropReason::Ip6SourceOwn].map(|it| router.dropped(it));
        assert_eq!(dropped, [8, 4], "{name}: {:?}", router.drops());
        // To this router itself, too.
        let ends = Ends {
            source: ip("10.0.3.1"),
            ..through("10.0.1.1")
        };
        router.send(WEST, &build::udp4(&ends, &[]));
        assert_eq!(router.dropped(DropReason::Ip4SourceOwn), 9, "{name}");
    }
}

#[test]
fn own_sources_under_a_label_are_dropped() {
    let mut router = Router::with_labels(Setup::default());
    for label in [104, 105, 107] {
        let before = router.dropped(DropReason::Ip4SourceOwn);
        let plain = router.send(WEST, &under(&from4(ip("10.0.1.9")), &[(label, 0, 9)]));
        let own = router.send(WEST, &under(&from4(ip("10.0.3.1")), &[(label, 0, 9)]));
        assert_eq!((plain.len(), own.len()), (1, 0), "label {label}");
        assert_eq!(router.dropped(DropReason::Ip4SourceOwn), before + 1);
    }
}

/// The filter says "may be" of some foreign addresses: these are looked up, and pass.
#[test]
fn foreign_sources_pass_whatever_the_filter_says() {
    for (name, make) in PATHS {
        let mut router = make();
        router.turn();
        let is_taken = |own: &OwnAddresses, source: u32| own.may_have4(source.swap_bytes());
        let (taken, others): (Vec<u32>, Vec<u32>) =
            (0xac10_0000..0xac11_0000_u32).partition(|&source| is_taken(&router.own, source));
        assert!(!taken.is_empty() && taken.len() < 200, "{}", taken.len());
        let sources: Vec<u32> = taken
            .iter()
            .take(20)
            .chain(others.iter().take(20))
            .copied()
            .collect();
        let frames: Vec<_> = sources.iter().map(|&source| from4(source)).collect();
        assert_eq!(router.send_all(WEST, &frames).len(), frames.len(), "{name}");
        assert_eq!(router.dropped(DropReason::Ip4SourceOwn), 0, "{name}");
    }
}

#[test]
fn an_address_that_becomes_own_ends_flows_that_lists_know() {
    let mut router = listed();
    let frame = from4(ip("192.168.5.5"));
    for _ in 0..3 {
        assert_eq!(router.send(WEST, &frame).len(), 1);
    }
    router.change(SOUTH, |it| it.addresses = [(ip("192.168.5.5"), 32)].into());
    let own: Ipv4Net = "192.168.5.5/32".parse().unwrap();
    router.connect(SOUTH, 1500, &[own]);
    router.publish();
    assert!(router.send(WEST, &frame).is_empty());
    assert_eq!(router.dropped(DropReason::Ip4SourceOwn), 1);
}
