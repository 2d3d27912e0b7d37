//! Random mixes of protocols: the fast paths on whole vectors, and the same steps on vectors of one.
//!
//! Two routers get the same frames at the same time: one as vectors of up to 256, which are sorted into classes and run
//! through the fast paths; the other frame by frame. What leaves (but for the order between flows), events, and every drop
//! and interface counter must be equal. Counts by node are not compared: the first packets to a neighbour take
//! ip4-rewrite or ip6-rewrite until one has marked it as used, which is one packet there and a vector here. Frames are drawn with a fixed seed from all protocols, some of
//! them broken or cut: first on plain interfaces, labels and pseudowires among them; then with access lists, reverse path checks,
//! policers and sub-interfaces, by tables of few and of many routes. `WEIR_LONG=1` plays many more.

use ipnet::{Ipv4Net, Ipv6Net};
use weir_acl::{Action, Addresses, Payload, Rule};
use weir_graph::Graph;
use weir_nodes::{IcmpLimit, Tables};
use weir_port::interface::{Feature, Input, ReversePath};
use weir_port::sub_interface::SubInterface;
use weir_wire::IpProtocol;
use weir_wire::build::{self, Ends};

use crate::acl::{bind, from, udp_to};
use crate::fast_path::counted_alike;
use crate::hostile::{self, finish, mended};
use crate::ip6::udp6;
use crate::mpls::under;
use crate::rig::*;
use crate::vlan::{AD, DOUBLE, Q, VLAN, dot1q, double, tagged};
use crate::{policer, pseudowire};

/// Vectors in `make test`, and with `WEIR_LONG`.
const VECTORS: (usize, usize) = (120, 400_000);

fn router() -> Router {
    let mut router = Router::with_labels(Setup {
        mtu: 300,
        chunks: 16_384,
        // Which of many packets gets the last message of a budget is a matter of order.
        icmp: IcmpLimit {
            rate: 1_000_000_000,
            burst: 1_000_000,
        },
        ..Setup::default()
    });
    pseudowire::add(&mut router);
    router
}

/// Draws frames.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    fn frame(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let payload = vec![7; self.below(64)];
        let host = self.below(250) as u8;
        let v4 = |destination: &str, ttl| {
            let ends = Ends {
                ttl,
                source_port: 1000 + u16::from(host),
                ..through(destination)
            };
            build::udp4(&ends, &payload)
        };
        let ttl = [64, 255, 2, 1][self.below(40).saturating_sub(36)];
        let routed = v4(&format!("192.168.{host}.9"), ttl);
        let mut frame = match self.below(12) {
            0..4 => routed,
            4..7 => udp6(&format!("2001:db8:a::{host:x}")),
            7 => v4(&format!("172.16.0.{host}"), ttl),
            8 => udp6(&format!("2001:db8:b::{host:x}")),
            9 => {
                let label = 100 + self.below(14) as u32;
                under(&routed, &[(label, self.below(8) as u8, ttl)])
            }
            10 => under(&routed, &[(600 + self.below(3) as u32, 0, 9)]),
            _ => seeds[self.below(seeds.len())].clone(),
        };
        match self.below(24) {
            0 => {
                let place = self.below(frame.len().min(64));
                frame[place] ^= 1 << self.below(8);
            }
            1 => {
                let place = self.below(frame.len().min(64));
                frame[place] ^= 1 << self.below(8);
                frame = mended(&frame);
            }
            2 => frame.truncate(self.below(frame.len() + 1)),
            3 => frame.extend([0; 9]),
            _ => {}
        }
        frame
    }
}

/// Clears the identification of the router's ICMPv4 errors, which have precedence 6: they are numbered as they are made, and the
/// order between flows is free. In place of the header checksum stands whether it was right.
fn without_identification(sent: &mut Sent) {
    let frame = &mut sent.1;
    // Behind up to five tags or labels.
    for at in (14..=34).step_by(4) {
        if let Some(header) = frame.get_mut(at..at + 20)
            && (header[0], header[1], header[9]) == (0x45, 0xc0, 1)
        {
            let is_right = weir_wire::checksum::internet(header) == 0;
            header[4..6].fill(0);
            header[10..12].fill(u8::from(is_right));
            return;
        }
    }
}

/// Everything that a router tells, in an order that is the same for both.
fn results(router: &mut Router, mut sent: Vec<Sent>) -> (Vec<Sent>, Vec<String>) {
    sent.iter_mut().for_each(without_identification);
    sent.sort();
    let mut events: Vec<String> = router
        .events()
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    events.sort();
    (sent, events)
}

/// Where packets of IPv4 and IPv6 come from: hosts with a route back over the interface, over another one, and with none.
const SOURCES4: [&str; 6] = [
    "10.0.1.2",
    "10.0.11.9",
    "10.0.2.2",
    "192.168.7.7",
    "8.8.8.8",
    "198.18.0.1",
];
const SOURCES6: [&str; 5] = [
    "2001:db8:1::2",
    "2001:db8:2::2",
    "2001:db8:a::7",
    "2001:db8:ffff::1",
    "2001:db8:c::1",
];

/// Tags of frames: sub-interfaces that are routed, one that is cross connected, one that does not exist, a priority.
const TAGS: [&[(u16, u16)]; 6] = [
    &[(Q, 100)],
    &[(AD, 7), (Q, 8)],
    &[(Q, 200)],
    &[(Q, 101)],
    &[(Q, 4000)],
    &[(Q, 0)],
];

/// Another source, another port, TCP, or tags.
fn varied(draw: &mut Draw, frame: &mut Vec<u8>) {
    match frame.get(12..14) {
        Some([0x08, 0x00]) if frame.len() >= 42 && frame[14] == 0x45 => {
            if draw.below(2) == 0 {
                let source = ip(SOURCES4[draw.below(SOURCES4.len())]);
                frame[26..30].copy_from_slice(&source.to_be_bytes());
            }
            frame[23] = [17, 17, 17, 6, 1, 47][draw.below(6)];
            frame[37] = [9, 9, 77][draw.below(3)];
            *frame = mended(frame);
        }
        Some([0x86, 0xdd]) if frame.len() >= 58 && frame[20] == 17 => {
            if draw.below(2) == 0 {
                frame[22..38].copy_from_slice(&ip6(SOURCES6[draw.below(SOURCES6.len())]));
            }
            frame[20] = [17, 17, 17, 6, 47][draw.below(5)];
            frame[57] = [9, 9, 77][draw.below(3)];
        }
        _ => {}
    }
    if frame.len() >= 14 && draw.below(2) == 0 {
        *frame = tagged(frame, TAGS[draw.below(TAGS.len())]);
    }
}

/// A router with access lists, reverse path checks, policers and sub-interfaces of all kinds, and labels; with a table of few
/// or of many routes.
fn featured(many_routes: bool) -> Router {
    let mut router = Router::with_labels(Setup {
        mtu: 300,
        chunks: 16_384,
        icmp: IcmpLimit {
            rate: 1_000_000_000,
            burst: 1_000_000,
        },
        ..Setup::default()
    });
    router.add_sub_interfaces(&[
        (SubInterface::new(WEST, dot1q(100)), Input::Routed),
        (SubInterface::new(WEST, double(true, 7, 8)), Input::Routed),
        (
            SubInterface::new(WEST, dot1q(200)),
            Input::CrossConnect(RIGHT),
        ),
        (SubInterface::new(WEST, dot1q(101)), Input::Unused),
    ]);
    router.connect_sub_interface(VLAN, "10.0.20.1/24", "10.0.20.2");
    router.connect_sub_interface(DOUBLE, "10.0.21.1/24", "10.0.21.2");
    for (n, index) in [VLAN, DOUBLE].into_iter().enumerate() {
        let own = u128::from_be_bytes(ip6(&format!("2001:db8:2{n}::1")));
        router.change(index, |it| it.addresses6 = [(own, 64)].into());
    }
    for (interface, mode) in [
        (WEST, ReversePath::Loose),
        (VLAN, ReversePath::Loose),
        (DOUBLE, ReversePath::Strict),
        (SOUTH, ReversePath::Strict),
    ] {
        if interface != SOUTH {
            bind(&mut router, interface, Feature::AclIn, terms());
        }
        router.change(interface, |it| {
            it.urpf = Some(mode);
            it.features = it.features.with(Feature::Urpf);
        });
    }
    bind(&mut router, EAST, Feature::AclOut, terms());
    // Never too much: which packets of a vector are is a matter of order.
    let (rate, burst) = (1_000_000_000_000, 1 << 30);
    policer::attach(&mut router, DOUBLE, Feature::PoliceIn, rate, burst);
    policer::attach(&mut router, SOUTH, Feature::PoliceOut, rate, burst);
    if many_routes {
        let mut nets = (0..1 << 16).map(|n: u32| (0x6400_0000 | n << 8).into());
        while router.fib.fib().small().is_some() {
            let net = Ipv4Net::new(nets.next().unwrap(), 24).unwrap();
            router.fib.insert(net, 1).unwrap();
        }
        let mut nets = (0..1 << 16).map(|n: u128| (0x1a00 << 112 | n << 80).into());
        while router.fib6.fib().small().is_some() {
            let net = Ipv6Net::new(nets.next().unwrap(), 48).unwrap();
            router.fib6.insert(net, 1).unwrap();
        }
    }
    router
}

/// Terms of both families, of which some deny.
fn terms() -> Vec<(Action, Vec<Rule>)> {
    let six = |action, source: &str, destination: &str| {
        let addresses = Addresses::V6 {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let payload = Payload::Ports {
            protocol: IpProtocol::UDP,
            source: 0..=u16::MAX,
            destination: 9..=9,
        };
        (
            action,
            vec![Rule {
                action,
                addresses,
                payload,
            }],
        )
    };
    vec![
        udp_to(Action::Permit, "192.168.0.0/17", 9..=9),
        udp_to(Action::Deny, "192.168.128.0/18", 0..=u16::MAX),
        from(Action::Deny, "192.168.0.0/16"),
        from(Action::Permit, "0.0.0.0/0"),
        six(Action::Deny, "::/0", "2001:db8:a::80/121"),
        six(Action::Permit, "2001:db8::/32", "::/0"),
    ]
}

/// With these terms on the interface where packets come in.
pub(crate) fn listed(mut router: Router) -> Router {
    bind(&mut router, WEST, Feature::AclIn, terms());
    router
}

fn vectors() -> usize {
    if std::env::var_os("WEIR_LONG").is_some() {
        VECTORS.1
    } else {
        VECTORS.0
    }
}

/// Plays random frames to two such routers and compares what they do.
fn play(make: impl Fn() -> Router, vary: impl Fn(&mut Draw, &mut Vec<u8>), ports: &[u32]) {
    let (mut whole, mut single) = (make(), make());
    let (mut draw, seeds) = (Draw(0x9e37_79b9_7f4a_7c15), hostile::seeds());
    for number in 0..vectors() {
        let port = ports[draw.below(ports.len())];
        // Small vectors, which the workers mostly have, and full ones.
        let most = [4, 32, 256][draw.below(3)];
        let len = 1 + draw.below(most);
        let frames: Vec<_> = (0..len)
            .map(|_| {
                let mut frame = draw.frame(&seeds);
                vary(&mut draw, &mut frame);
                if let Some(last) = frame.get_mut(5).filter(|last| **last == WEST as u8) {
                    *last = port as u8;
                }
                frame
            })
            .collect();
        let together = whole.send_all(port, &frames);
        let mut apart = Vec::new();
        for frame in &frames {
            apart.extend(single.send(port, frame));
        }
        let both = [results(&mut whole, together), results(&mut single, apart)];
        assert!(both[0].0 == both[1].0, "vector {number} on {port}: frames");
        assert_eq!(both[0].1, both[1].1, "vector {number} on {port}: events");
        assert_eq!(whole.drops(), single.drops(), "vector {number} on {port}");
        let held = |graph: &Graph<Tables>| graph.held();
        assert_eq!(held(&whole.graph), held(&single.graph), "vector {number}");
        whole.now += SECOND / 100;
        single.now += SECOND / 100;
    }
    counted_alike(&whole, &single);
    finish(whole);
    finish(single);
}

#[test]
fn vectors_do_what_single_packets_do() {
    play(
        router,
        |_, _| {},
        &[WEST, WEST, WEST, EAST, SOUTH, LEFT, BARE],
    );
}

#[test]
fn vectors_do_so_with_all_features() {
    for many_routes in [false, true] {
        play(
            || featured(many_routes),
            varied,
            &[WEST, WEST, WEST, WEST, EAST, SOUTH],
        );
    }
}
