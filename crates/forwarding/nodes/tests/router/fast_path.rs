//! What eth-input does in one pass for usual packets, and what the nodes do one after the other while packets are
//! followed: the same frames, drops and counters, whatever comes.

use ipnet::Ipv4Net;
use weir_acl::Action;
use weir_fib::Fib4Writer;
use weir_port::interface::{Feature, Input, ReversePath};
use weir_port::sub_interface::SubInterface;
use weir_ring::qsbr::Domain;
use weir_wire::build;

use crate::acl::{bind, from, udp_to};
use crate::forward::alter;
use crate::hostile::{self, finish, mended};
use crate::ip6::udp6;
use crate::mpls::under;
use crate::rig::*;
use crate::vlan::{AD, Q, dot1q, double, loose, tagged};
use crate::{pseudowire, random_mix};

/// Frames of the usual kind go in as a vector; broken in every byte of their headers, one by one, or what a node does later
/// would be in another order.
fn alike(make: impl Fn() -> Router, port: u32, usual: &[Vec<u8>], seeds: &[Vec<u8>]) {
    let [mut straight, mut followed] = [make(), make()];
    followed.graph.set_one_step();
    // The same once more, when flows are known.
    for frames in [&usual[..1], usual, usual] {
        let mut both = [&mut straight, &mut followed].map(|router| router.send_all(port, frames));
        // Which interface sends first says nothing, nor does the order of frames with different tags.
        both.iter_mut().for_each(|sent| {
            sent.sort_by_key(|(interface, frame)| {
                (*interface, frame.get(12..18).map(<[u8]>::to_vec))
            });
        });
        assert!(
            both[0] == both[1],
            "{} frames and {}",
            both[0].len(),
            both[1].len()
        );
    }
    for seed in usual[..1].iter().chain(seeds) {
        for place in 0..seed.len().min(56) {
            for byte in [seed[place] & 1, seed[place] ^ 1, !seed[place]] {
                let mut frame = seed.clone();
                frame[place] = byte;
                for frame in [mended(&frame), frame] {
                    let both =
                        [&mut straight, &mut followed].map(|router| router.send(port, &frame));
                    assert_eq!(both[0], both[1], "{frame:02x?}");
                    let both = [&mut straight, &mut followed].map(|router| router.events());
                    assert_eq!(both[0], both[1], "{frame:02x?}");
                    straight.now += SECOND / 100;
                    followed.now += SECOND / 100;
                }
            }
        }
        for len in 0..seed.len() {
            let both = [&mut straight, &mut followed].map(|router| router.send(port, &seed[..len]));
            assert_eq!(both[0], both[1], "{len} bytes of {seed:02x?}");
        }
    }
    counted_alike(&straight, &followed);
    nodes_alike(&straight, &followed);
    finish(straight);
    finish(followed);
}

/// The same drops, and the same counters of interfaces and access lists.
pub(crate) fn counted_alike(straight: &Router, followed: &Router) {
    assert_eq!(straight.drops(), followed.drops());
    for (one, other) in straight
        .tables
        .interfaces
        .iter()
        .flatten()
        .zip(followed.tables.interfaces.iter().flatten())
    {
        let [one, other] = [one, other].map(|entry| {
            (
                &entry.interface.name,
                entry.interface.counters.rx(),
                entry.interface.counters.tx(),
            )
        });
        assert_eq!(one, other);
    }
    let terms = |router: &Router| {
        let filters = router
            .tables
            .interfaces
            .iter()
            .flatten()
            .filter_map(|entry| entry.acl_input.clone());
        filters
            .flat_map(|filter| (0..=filter.list.terms()).map(move |term| filter.counters.of(term)))
            .collect::<Vec<_>>()
    };
    assert_eq!(terms(straight), terms(followed));
}

/// The same number of packets at each node, whether it did the work itself or an earlier one did. Rewriting and pushing belong to
/// what the lookup nodes count, unless they leave it to the nodes of these names.
fn nodes_alike(straight: &Router, followed: &Router) {
    let packets = |router: &Router| {
        router
            .graph
            .counters()
            .nodes
            .iter()
            .map(|node| node.packets.get())
            .collect::<Vec<_>>()
    };
    for ((spec, one), other) in straight
        .graph
        .specs()
        .iter()
        .zip(packets(straight))
        .zip(packets(followed))
    {
        if !["ip4-rewrite", "ip6-rewrite", "mpls-push"].contains(&spec.name) {
            assert_eq!(one, other, "{}", spec.name);
        }
    }
}

/// Plain packets that are routed, and everything that is not plain.
fn routed() -> [Vec<Vec<u8>>; 2] {
    let mut padded = build::udp4(&through("10.0.2.2"), &[3; 12]);
    padded.extend([0; 6]);
    let mut padded6 = udp6("2001:db8:a::1");
    padded6.extend([0; 6]);
    let deep = build::udp4(&through("192.168.7.9"), &[3; 12]);
    let usual =
        (0..200u8).map(|n| build::udp4(&through(&format!("192.168.{}.9", n % 11)), &[n; 12]));
    [
        usual.collect(),
        hostile::seeds()
            .into_iter()
            .chain([padded, padded6, deep])
            .collect(),
    ]
}

#[test]
fn routed_by_a_small_table() {
    let [usual, seeds] = routed();
    alike(hostile::router, WEST, &usual, &seeds);
}

/// A table so large that lookups are made in steps.
fn with_large_table() -> Router {
    let mut router = hostile::router();
    let mut prefixes =
        (0..1 << 16).map(|n: u32| Ipv4Net::new((0x6400_0000 | n << 8).into(), 24).unwrap());
    while router.fib.fib().small().is_some() {
        router.fib.insert(prefixes.next().unwrap(), 1).unwrap();
    }
    // Longer than /24, so that a lookup has a step more.
    let east = router.fib.get("192.168.0.0/16".parse().unwrap()).unwrap();
    router
        .fib
        .insert("192.168.7.8/30".parse().unwrap(), east)
        .unwrap();
    router
}

#[test]
fn routed_by_a_large_table() {
    let [usual, seeds] = routed();
    alike(with_large_table, WEST, &usual, &seeds);
}

/// The same by a table with lines, of which one tells that the trie has to be asked.
#[test]
fn routed_by_a_full_table() {
    let [usual, seeds] = routed();
    let full = || {
        let mut router = hostile::router();
        let mut full = Fib4Writer::large(&Domain::new(1)).unwrap();
        let east = router.fib.get("192.168.0.0/16".parse().unwrap()).unwrap();
        for (prefix, group) in router
            .fib
            .iter()
            .chain([("192.168.7.8/30".parse().unwrap(), east)])
        {
            full.insert(prefix, group).unwrap();
        }
        assert!(full.fib().full().is_some());
        router.tables.fib4[0] = full.fib().clone();
        router.fib = full;
        router
    };
    alike(full, WEST, &usual, &seeds);
}

/// With an access list of IPv4 terms on the interface where packets come in.
fn listed(mut router: Router) -> Router {
    let permit = |destination, ports| udp_to(Action::Permit, destination, ports);
    let terms = vec![
        permit("192.168.0.0/21", 9..=9),
        udp_to(Action::Deny, "192.168.8.0/24", 0..=u16::MAX),
        permit("192.168.0.0/16", 0..=100),
        from(Action::Permit, "10.0.1.0/25"),
    ];
    bind(&mut router, WEST, Feature::AclIn, terms);
    router
}

/// Behind an access list, by flows that are known and flows that are not, in lengths that vary, some padded.
#[test]
fn routed_past_a_list() {
    let [many, seeds] = routed();
    let denied = (0..20u8).map(|n| build::udp4(&through(&format!("192.168.8.{n}")), &[n; 12]));
    let mut usual: Vec<_> = many
        .iter()
        .chain(&many)
        .take(230)
        .cloned()
        .chain(denied)
        .collect();
    for (n, frame) in usual.iter_mut().enumerate().filter(|(n, _)| n % 3 == 1) {
        frame.extend(std::iter::repeat_n(0, n % 7));
    }
    let mut fragment = many[0].clone();
    alter(&mut fragment, |header| header.set_fragment(100, false));
    let mut short = build::udp4(&through("192.168.1.9"), &[]);
    alter(&mut short, |header| header.set_total_len(23));
    let tcp = build::tcp4(&through("192.168.1.9"), 2, &[]);
    let seeds: Vec<_> = seeds.into_iter().chain([fragment, short, tcp]).collect();
    alike(|| listed(hostile::router()), WEST, &usual, &seeds);
    alike(|| listed(with_large_table()), WEST, &usual, &seeds[..4]);
}

/// With a reverse path check, too, or alone.
fn looking_back(mut router: Router, mode: ReversePath) -> Router {
    router.change(WEST, |west| {
        west.urpf = Some(mode);
        west.features = west.features.with(Feature::Urpf);
    });
    router
}

/// Behind an access list for both families and a reverse path check: IPv6 by flows that are cached and flows that are not.
#[test]
fn routed_past_a_list_and_a_way_back() {
    let [many, seeds] = routed();
    let six = |n: u8| udp6(&format!("2001:db8:a::{n:x}"));
    let mut usual: Vec<_> = (0..200).map(six).chain(many.into_iter().take(50)).collect();
    for (n, frame) in usual.iter_mut().enumerate().filter(|(n, _)| n % 3 == 1) {
        frame.extend(std::iter::repeat_n(0, n % 7));
    }
    let from6 = |source: &str| {
        let mut frame = six(1);
        frame[22..38].copy_from_slice(&ip6(source));
        frame
    };
    let nowhere = build::udp4(
        &build::Ends {
            source: ip("8.8.8.8"),
            ..through("192.168.1.9")
        },
        &[3; 12],
    );
    let others = ["2001:db8:ffff::1", "2001:db8:a::7", "2001:db8:c::1"].map(from6);
    let others = others.into_iter().chain([udp6("2001:db8:b::1"), nowhere]);
    let seeds: Vec<_> = others.chain(seeds).collect();
    for mode in [ReversePath::Loose, ReversePath::Strict] {
        alike(
            || looking_back(random_mix::listed(hostile::router()), mode),
            WEST,
            &usual,
            if mode == ReversePath::Loose {
                &seeds
            } else {
                &seeds[..5]
            },
        );
        alike(
            || looking_back(hostile::router(), mode),
            WEST,
            &usual,
            &seeds[..5],
        );
    }
    alike(
        || looking_back(random_mix::listed(with_large_table()), ReversePath::Loose),
        WEST,
        &usual,
        &seeds[..5],
    );
}

/// What a list permits is not forwarded for that, neither when it comes first nor when its flow was met: from or to no host, to another
/// station, later fragments, with wrong checksums, on their last hop.
#[test]
fn a_known_flow_is_validated_as_any_other() {
    let mut router = Router::default();
    let counters = bind(
        &mut router,
        WEST,
        Feature::AclIn,
        vec![from(Action::Permit, "0.0.0.0/0")],
    );
    let good = build::udp4(&through("10.0.2.2"), &[3; 12]);
    let altered = |change: fn(&mut weir_wire::Ipv4Header)| {
        let mut frame = good.clone();
        alter(&mut frame, change);
        frame
    };
    let broken = |place: usize| {
        let mut frame = good.clone();
        frame[place] ^= 1;
        frame
    };
    let odd = [
        altered(|header| header.set_source(ip("127.0.0.1"))),
        altered(|header| header.set_destination(ip("127.0.0.1"))),
        altered(|header| header.set_source(ip("240.0.0.1"))),
        altered(|header| header.set_total_len(19)),
        altered(|header| header.set_total_len(60)),
        broken(5),
        broken(24),
    ];
    for round in 1..=3 {
        assert_eq!(
            router.send_all(WEST, &[good.clone(), good.clone()]).len(),
            2
        );
        for frame in &odd {
            assert!(router.send(WEST, frame).is_empty(), "{frame:02x?}");
        }
        assert_eq!(router.send_all(WEST, &odd).len(), 0);
        assert_eq!(counters.of(0), (2 * round, 2 * round * good.len() as u64));
    }
    router.balance();
}

/// A trunk of cross-connected sub-interfaces among others.
#[test]
fn across_from_tag_to_tag() {
    let subs = [
        (WEST, dot1q(100), Some(1)),
        (EAST, dot1q(200), Some(0)),
        (WEST, dot1q(101), Some(3)),
        (SOUTH, loose(double(true, 7, 8)), Some(2)),
        (WEST, dot1q(108), Some(5)),
        (SOUTH, dot1q(9), Some(4)),
        (WEST, loose(dot1q(102)), Some(7)),
        (EAST, dot1q(4000), Some(6)),
        (WEST, double(false, 102, 5), Some(1)),
        (WEST, dot1q(103), None),
    ];
    let trunk = || {
        let mut router = hostile::router();
        let first = router.tables.interfaces.len().max(20) as u32;
        let input =
            |far: Option<u32>| far.map_or(Input::Unused, |far| Input::CrossConnect(first + far));
        let subs = subs.map(|(parent, encapsulation, far)| {
            (SubInterface::new(parent, encapsulation), input(far))
        });
        router.add_sub_interfaces(&subs);
        router.change(first + 5, |far| far.mtu = 60);
        router
    };
    let frame = |payload: usize| build::udp4(&through("10.0.2.2"), &vec![7; payload]);
    let usual: Vec<_> = (0..250)
        .map(|n| tagged(&frame(n % 40), &[(Q, [100, 102, 108, 100, 103][n % 5])]))
        .collect();
    let tags: [&[_]; 7] = [
        &[(Q, 100)],
        &[(Q, 101)],
        &[(Q, 108)],
        &[(Q, 102)],
        &[(Q, 102), (Q, 5)],
        &[(Q, 102), (Q, 6)],
        &[(AD, 100)],
    ];
    let seeds = tags
        .map(|tags| tagged(&frame(12), tags))
        .into_iter()
        .chain([frame(12), tagged(&frame(280), &[(Q, 100)])]);
    alike(trunk, WEST, &usual, &seeds.collect::<Vec<_>>());
}

/// Labels that come off, change, or lead to a pseudowire.
#[test]
fn under_labels() {
    let path = || {
        let mut router = Router::with_labels(Setup {
            mtu: 300,
            chunks: 16_384,
            ..Setup::default()
        });
        pseudowire::add(&mut router);
        router
    };
    let packet = |ttl, payload: usize| {
        build::udp4(
            &build::Ends {
                ttl,
                ..through("192.168.9.9")
            },
            &vec![7; payload],
        )
    };
    let vector = |kinds: &[&[(u32, u8, u8)]]| -> Vec<_> {
        (0..250)
            .map(|n| under(&packet(64, n % 30), kinds[n % kinds.len()]))
            .collect()
    };
    let looked_up = vector(&[
        &[(104, 0, 60)],
        &[(105, 0, 9)],
        &[(104, 0, 255)],
        &[(107, 0, 64)],
    ]);
    let swapped = vector(&[&[(100, 3, 60)], &[(100, 0, 60), (9, 0, 3)], &[(100, 0, 2)]]);
    // Penultimate hop popping, uniform and pipe.
    let taken_off = vector(&[&[(102, 0, 60)], &[(103, 0, 9)], &[(102, 3, 2)]]);
    let mut marked = packet(64, 9);
    alter(&mut marked, |header| header.tos = 0xa3);
    let six = udp6("2001:db8:a::1");
    let wire =
        |label, word: &[u8], frame: &[u8]| pseudowire::from_west(&[(label, 0, 9)], &[word, frame]);
    let customer = pseudowire::frame();
    let seeds = [
        under(&packet(64, 9), &[(104, 5, 60)]),
        under(&marked, &[(104, 5, 60)]),
        under(&packet(2, 9), &[(105, 0, 2)]),
        under(&packet(1, 9), &[(104, 0, 9)]),
        under(&packet(64, 9), &[(104, 0, 1)]),
        under(&packet(64, 290), &[(104, 0, 9)]),
        under(&packet(64, 9), &[(0, 0, 9)]),
        under(&packet(64, 9), &[(113, 0, 9)]),
        under(&packet(64, 9), &[(102, 0, 9)]),
        under(&packet(64, 9), &[(106, 0, 9)]),
        under(&packet(64, 9), &[(104, 0, 9), (7, 0, 9), (77, 0, 0)]),
        under(&six, &[(104, 0, 9)]),
        under(&six, &[(107, 0, 9)]),
        [under(&packet(64, 9), &[(105, 0, 9)]), vec![0; 5]].concat(),
        wire(600, &[0; 4], &customer),
        wire(600, &[0; 4], &[&[0xff; 6], &customer[6..]].concat()),
        wire(600, &[0; 4], &[&customer[..], &[3; 1600]].concat()),
        wire(600, &[0x10, 0, 0, 0], &customer),
        wire(601, &[], &tagged(&customer, &[(Q, 7)])),
        wire(602, &[0; 4], &customer),
    ];
    alike(path, WEST, &looked_up, &seeds);
    alike(path, WEST, &swapped, &[]);
    let under_103 =
        [packet(64, 9), marked, six, packet(64, 290)].map(|it| under(&it, &[(103, 0, 9)]));
    alike(path, WEST, &taken_off, &under_103);
}

/// Frames of pseudowires alone, which all leave by one port.
#[test]
fn out_of_pseudowires() {
    let path = || {
        let mut router = hostile::router();
        pseudowire::add(&mut router);
        router
    };
    let frame = |n: usize| [&pseudowire::frame()[..], &vec![9; n]].concat();
    let usual: Vec<_> = (0..250)
        .map(|n| pseudowire::from_west(&[(600, (n % 8) as u8, 9)], &[&[0; 4], &frame(n)]))
        .collect();
    alike(path, WEST, &usual, &[]);
}

/// Packets that get labels: one, several, one of two ways, none yet.
#[test]
fn labels_put_on() {
    let path = || {
        Router::with_labels(Setup {
            mtu: 300,
            chunks: 16_384,
            ..Setup::default()
        })
    };
    let to =
        |destination: &str, payload: usize| build::udp4(&through(destination), &vec![7; payload]);
    let usual: Vec<_> = (0..250)
        .map(|n| to(&format!("10.50.0.{n}"), n % 30))
        .collect();
    let mut marked = to("10.50.1.1", 9);
    alter(&mut marked, |header| header.tos = 0xa3);
    let padded = [to("10.50.1.1", 9), vec![0; 5]].concat();
    let others =
        ["10.51.0.1", "10.52.0.1", "10.53.0.1", "10.54.0.1"].map(|destination| to(destination, 12));
    let seeds: Vec<_> = others
        .into_iter()
        .chain([marked, padded, to("10.50.1.1", 270)])
        .collect();
    alike(path, WEST, &usual, &seeds);
}
