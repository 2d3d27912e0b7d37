//! Against the naive search: the first rule of the list that the rule itself says matches.

use proptest::prelude::*;
use weir_acl::synthetic::{self, Family, Kind, Random};
use weir_acl::{
    Acl, Action, Addresses, Asker4, Cache4, Cache6, Key4, Key6, Known4, NO_RULE, Payload, Rule,
    Upper, Wire4,
};
use weir_wire::IpProtocol;

fn naive4(rules: &[Rule], key: &Key4) -> Option<u32> {
    rules
        .iter()
        .position(|rule| rule.matches4(key))
        .map(|n| n as u32)
}

fn naive6(rules: &[Rule], key: &Key6) -> Option<u32> {
    rules
        .iter()
        .position(|rule| rule.matches6(key))
        .map(|n| n as u32)
}

fn agree4(acl: &Acl, rules: &[Rule], keys: &[Key4]) {
    let mut found = vec![0; keys.len()];
    acl.classify4_batch(keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let wanted = naive4(rules, key);
        assert_eq!(acl.classify4(key), wanted, "{key:?}");
        assert_eq!(found, wanted.unwrap_or(NO_RULE), "{key:?}");
    }
}

fn agree6(acl: &Acl, rules: &[Rule], keys: &[Key6]) {
    let mut found = vec![0; keys.len()];
    acl.classify6_batch(keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let wanted = naive6(rules, key);
        assert_eq!(acl.classify6(key), wanted, "{key:?}");
        assert_eq!(found, wanted.unwrap_or(NO_RULE), "{key:?}");
    }
}

/// The same key as a later fragment, and cut off before its ports.
fn with_odd4(keys: Vec<Key4>) -> Vec<Key4> {
    let again = |key: &Key4, upper| {
        Key4::new(
            key.source().into(),
            key.destination().into(),
            key.protocol(),
            upper,
        )
    };
    keys.iter()
        .flat_map(|key| {
            [
                *key,
                again(key, Upper::LaterFragment),
                again(key, Upper::Unreadable),
            ]
        })
        .collect()
}

fn with_odd6(keys: Vec<Key6>) -> Vec<Key6> {
    let again = |key: &Key6, upper| {
        Key6::new(
            &key.source().octets(),
            &key.destination().octets(),
            key.protocol(),
            upper,
        )
    };
    keys.iter()
        .flat_map(|key| {
            [
                *key,
                again(key, Upper::LaterFragment),
                again(key, Upper::Unreadable),
            ]
        })
        .collect()
}

#[test]
fn lists_as_networks_have_them() {
    for kind in [Kind::Access, Kind::Firewall, Kind::Chain] {
        for (count, keys) in [(1, 10), (2, 20), (100, 400), (1000, 700)] {
            let rules = synthetic::rules(count as u64, count, kind, Family::V4);
            let acl = Acl::build(&rules).unwrap();
            agree4(&acl, &rules, &with_odd4(synthetic::keys4(1, &rules, keys)));
            agree6(&acl, &rules, &[Key6::default()]);
        }
        for (count, keys) in [(100, 300), (500, 500)] {
            let rules = synthetic::rules(count as u64, count, kind, Family::V6);
            let acl = Acl::build(&rules).unwrap();
            agree6(&acl, &rules, &with_odd6(synthetic::keys6(1, &rules, keys)));
            agree4(&acl, &rules, &[Key4::default()]);
        }
    }
}

#[test]
fn ten_thousand_rules() {
    let rules = synthetic::rules(11, 10_000, Kind::Access, Family::V4);
    let acl = Acl::build(&rules).unwrap();
    agree4(&acl, &rules, &with_odd4(synthetic::keys4(1, &rules, 200)));
}

#[test]
fn an_empty_list_matches_nothing() {
    let acl = Acl::build(&[]).unwrap();
    assert_eq!(
        (
            acl.classify4(&Key4::default()),
            acl.classify6(&Key6::default())
        ),
        (None, None)
    );
    let mut found = [7; 3];
    acl.classify4_batch(&[Key4::default(); 2], &mut found);
    assert_eq!(found, [NO_RULE, NO_RULE, 7]);
    acl.classify6_batch(&[Key6::default(); 5], &mut found);
    assert_eq!(found, [NO_RULE; 3]);
}

/// Rules and keys from so few addresses and ports that everything meets everything.
fn narrow(random: &mut Random) -> Rule {
    let net = |random: &mut Random| {
        let address = [0x0a00_0000u32, 0x0a00_0001, 0x0a80_0000, 0xffff_ffff, 0][random.below(5)];
        ipnet::Ipv4Net::new(address.into(), [0, 1, 8, 9, 24, 31, 32][random.below(7)]).unwrap()
    };
    let port = |random: &mut Random| {
        let (a, b) = (
            PORTS[random.below(PORTS.len())],
            PORTS[random.below(PORTS.len())],
        );
        a.min(b)..=a.max(b)
    };
    let addresses = if random.percent(10) {
        Addresses::Any
    } else {
        Addresses::V4 {
            source: net(random),
            destination: net(random),
        }
    };
    let payload = match random.below(6) {
        0 => Payload::Any,
        1 => Payload::Protocol(IpProtocol(random.below(20) as u8)),
        2 => Payload::Icmp {
            protocol: IpProtocol::ICMP,
            kind: 0..=random.below(256) as u8,
            code: random.below(3) as u8..=255,
        },
        _ => Payload::Ports {
            protocol: IpProtocol(6),
            source: port(random),
            destination: port(random),
        },
    };
    Rule {
        action: Action::Deny,
        addresses,
        payload,
    }
}

const PORTS: [u16; 10] = [0, 1, 2, 79, 80, 81, 1023, 1024, 65_534, 65_535];

fn narrow_key(random: &mut Random) -> Key4 {
    let address = |random: &mut Random| {
        [
            0x0a00_0000u32,
            0x0a00_0001,
            0x0a80_0000,
            0xffff_ffff,
            0,
            0x0a00_00ff,
            0x8000_0000,
        ][random.below(7)]
    };
    let upper = match random.below(8) {
        0 => Upper::LaterFragment,
        1 => Upper::Unreadable,
        _ => Upper::Ports(PORTS[random.below(10)], PORTS[random.below(10)]),
    };
    Key4::new(
        address(random),
        address(random),
        IpProtocol([1, 6, 6, 6, 17, 2][random.below(6)]),
        upper,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_meets_everything(seed in any::<u64>(), count in 0usize..150) {
        let mut random = Random::new(seed);
        let rules: Vec<Rule> = (0..count).map(|_| narrow(&mut random)).collect();
        let acl = Acl::build(&rules).unwrap();
        let keys: Vec<Key4> = (0..300).map(|_| narrow_key(&mut random)).collect();
        agree4(&acl, &rules, &keys);
    }
}

/// Keys again and again, through a cache far too small and one large enough, two lists in turn.
#[test]
fn a_cache_changes_nothing() {
    let lists = [
        synthetic::rules(3, 300, Kind::Chain, Family::V4),
        synthetic::rules(4, 300, Kind::Firewall, Family::V4),
    ];
    let acls = lists.each_ref().map(|rules| Acl::build(rules).unwrap());
    let keys = with_odd4(
        lists
            .iter()
            .flat_map(|rules| synthetic::keys4(1, rules, 300))
            .collect(),
    );
    for flows in [0, 16, 4096] {
        let mut cache = Cache4::new(flows, 99);
        for _ in 0..20 {
            for (acl, rules) in acls.iter().zip(&lists) {
                let mut found = vec![0; keys.len()];
                acl.classify4_cached(&mut cache, &keys, &mut found);
                let wanted: Vec<u32> = keys
                    .iter()
                    .map(|key| acl.classify4(key).unwrap_or(NO_RULE))
                    .collect();
                assert_eq!(found, wanted);
                assert_eq!(found[7], naive4(rules, &keys[7]).unwrap_or(NO_RULE));
            }
        }
    }
    let rules = synthetic::rules(5, 200, Kind::Access, Family::V6);
    let acl = Acl::build(&rules).unwrap();
    let keys = with_odd6(synthetic::keys6(1, &rules, 300));
    for flows in [1, 2000] {
        let mut cache = Cache6::new(flows, 99);
        for _ in 0..20 {
            let mut found = vec![0; keys.len()];
            acl.classify6_cached(&mut cache, &keys, &mut found);
            assert!(
                keys.iter()
                    .zip(&found)
                    .all(|(key, found)| *found == naive6(&rules, key).unwrap_or(NO_RULE))
            );
        }
    }
    assert!(
        Cache4::new(65_536, 1).bytes() <= 4 << 20 && Cache6::new(65_536, 1).bytes() <= 16 << 20
    );
}

/// A list with the same keys, built anew with other rules, is not answered with the old one's answers.
#[test]
fn a_list_that_was_replaced_is_forgotten() {
    let mut cache = Cache4::new(64, 1);
    let key = [Key4::default(); 3];
    for count in 1..50 {
        let mut rules = vec![
            Rule {
                payload: Payload::Protocol(IpProtocol(200)),
                ..Rule::all(Action::Deny)
            };
            count
        ];
        rules.push(Rule::all(Action::Permit));
        let acl = Acl::build(&rules).unwrap();
        for _ in 0..3 {
            let mut found = [0; 3];
            acl.classify4_cached(&mut cache, &key, &mut found);
            assert_eq!(found, [count as u32; 3]);
        }
    }
}

/// As it lies in a packet, beside octets that say nothing.
fn wire(key: &Key4) -> Option<Wire4> {
    let Upper::Ports(source, destination) = key.upper() else {
        return None;
    };
    let addresses = [key.source().octets(), key.destination().octets()].concat();
    let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    let other = key.source().octets()[3];
    let octets: [u8; Wire4::OCTETS] = [
        &[other, key.protocol().0, !other, other][..],
        &addresses,
        &ports,
    ]
    .concat()
    .try_into()
    .unwrap();
    let wire = Wire4::new(&octets);
    assert_eq!(Key4::from(wire), *key);
    Some(wire).filter(|wire| wire.is_usual())
}

#[test]
fn only_the_protocols_of_most_packets_are_usual() {
    let usual = |protocol: &u8| {
        Wire4::new(
            &[[64, *protocol].as_slice(), &[1; 14]]
                .concat()
                .try_into()
                .unwrap(),
        )
        .is_usual()
    };
    assert_eq!((0..=255).filter(usual).collect::<Vec<_>>(), [6, 17]);
}

struct Asking<'a> {
    asker: Asker4<'a>,
    keys: &'a [Key4],
}

impl weir_cpu::CodedTask for Asking<'_> {
    type Output = Vec<Option<u32>>;

    #[inline(always)]
    fn run<C: weir_cpu::Code>(self, code: C) -> Self::Output {
        let Asking { asker, keys } = self;
        keys.iter()
            .filter_map(wire)
            .map(|key| asker.known(code, asker.ask(code, key)))
            .collect()
    }
}

/// What is known of keys of usual protocols, found the same by the code for any machine as by the one for this one.
fn known(acl: &Acl, cache: &mut Known4, keys: &[Key4]) -> Vec<Option<u32>> {
    use weir_cpu::CodedTask;
    let asker = acl.asker4(cache);
    let here = weir_cpu::apart_coded(Asking { asker, keys });
    assert_eq!(here, Asking { asker, keys }.run(weir_cpu::AnyMachine));
    here
}

/// What was learned is known in two steps, but for a few that take longer to look for; none of it is another's; and another list of the same
/// rules has answers of its own.
#[test]
fn what_was_answered_is_known_in_two_steps() {
    let rules = synthetic::rules(6, 200, Kind::Access, Family::V4);
    let acl = Acl::build(&rules).unwrap();
    let keys: Vec<Key4> = synthetic::keys4(7, &rules, 120_000)
        .into_iter()
        .filter(|key| wire(key).is_some())
        .take(65_536)
        .collect();
    let mut cache = Known4::new(4);
    let mut found = vec![0; keys.len()];
    for _ in 0..2 {
        acl.learn4(&mut cache, &keys, &mut found);
    }
    assert!(
        keys.iter()
            .zip(&found)
            .all(|(key, found)| *found == acl.classify4(key).unwrap_or(NO_RULE))
    );
    let answers = known(&acl, &mut cache, &keys);
    assert!(
        answers
            .iter()
            .zip(&found)
            .all(|(answer, found)| answer.is_none_or(|answer| answer == *found))
    );
    let there = answers.iter().flatten().count();
    assert!(
        keys.len() > 60_000 && there * 100 >= keys.len() * 95,
        "{there} of {}",
        keys.len()
    );
    let again = Acl::build(&rules).unwrap();
    assert!(known(&again, &mut cache, &keys).iter().all(Option::is_none));
    // What lacks its ports is another key, whatever else is the same.
    let odd: Vec<Key4> = keys
        .iter()
        .map(|key| {
            Key4::new(
                key.source().to_bits(),
                key.destination().to_bits(),
                key.protocol(),
                Upper::LaterFragment,
            )
        })
        .collect();
    let mut found_odd = vec![0; odd.len()];
    acl.learn4(&mut cache, &odd, &mut found_odd);
    assert!(
        odd.iter()
            .zip(&found_odd)
            .all(|(key, found)| *found == acl.classify4(key).unwrap_or(NO_RULE))
    );
}

/// An answer that has no room beside its key is not stored here, only that there is one; a lookup in the list finds it.
#[test]
fn answers_without_room_are_known_to_be_others() {
    let keys: Vec<Key4> = (0..6)
        .map(|n| Key4::new(1, 2, IpProtocol::TCP, Upper::Ports(3, n)))
        .collect();
    let rule = |port: u16| {
        let payload = Payload::Ports {
            protocol: IpProtocol::TCP,
            source: 0..=u16::MAX,
            destination: port..=port,
        };
        let any = Addresses::V4 {
            source: "0.0.0.0/0".parse().unwrap(),
            destination: "0.0.0.0/0".parse().unwrap(),
        };
        Rule {
            addresses: any,
            payload,
            ..Rule::all(Action::Permit)
        }
    };
    let answers = [
        0,
        Asker4::OTHER - 1,
        Asker4::OTHER,
        Asker4::OTHER + 1,
        NO_RULE,
    ];
    let acl = Acl::build(&(0..5).map(rule).collect::<Vec<_>>())
        .unwrap()
        .with_answers(answers, 1 << 31);
    let mut cache = Known4::new(2);
    for _ in 0..2 {
        let mut found = [7; 6];
        acl.learn4(&mut cache, &keys, &mut found);
        assert_eq!(
            found,
            [
                0,
                Asker4::OTHER - 1,
                Asker4::OTHER,
                Asker4::OTHER + 1,
                NO_RULE,
                1 << 31
            ]
        );
        let known = known(&acl, &mut cache, &keys);
        assert_eq!(known[..2], [Some(0), Some(Asker4::OTHER - 1)]);
        assert!(
            known[2..]
                .iter()
                .all(|answer| answer.is_some_and(|answer| answer >= Asker4::OTHER)),
            "{known:?}"
        );
    }
}

/// Flows of one pair of hosts spread over all sets, whichever port it is that counts up.
#[test]
fn flows_that_count_up_are_spread() {
    let acl = Acl::build(&[Rule::all(Action::Permit)]).unwrap();
    let flow = |n: u16| -> [Key4; 4] {
        let key = |source, destination, ports: (u16, u16)| {
            Key4::new(
                source,
                destination,
                IpProtocol::UDP,
                Upper::Ports(ports.0, ports.1),
            )
        };
        let (n32, far) = (u32::from(n), 0xc000_0201);
        [
            key(1, far, (n, 53)),
            key(1, far, (53, n)),
            key(n32 << 8, far, (53, 53)),
            key(1, n32 << 16, (53, 53)),
        ]
    };
    for way in 0..4 {
        let keys: Vec<Key4> = (0..=u16::MAX).map(|n| flow(n)[way]).collect();
        let mut cache = Known4::new(way as u64);
        acl.learn4(&mut cache, &keys, &mut vec![0; keys.len()]);
        let there = known(&acl, &mut cache, &keys).iter().flatten().count();
        assert!(there * 100 >= keys.len() * 95, "{way}: {there}");
    }
}

/// Keys that differ in one field, or in one bit of one: each has a rule of its own, and so an answer that no other may get.
#[test]
fn keys_that_are_nearly_alike_are_distinguished() {
    let key = |n: u32| {
        let (bit, protocol) = (
            1u32 << (n % 32),
            if n & 32 == 0 {
                IpProtocol::TCP
            } else {
                IpProtocol::UDP
            },
        );
        let fields = [[bit, 0, 0], [0, bit, 0], [0, 0, bit], [bit, bit, bit]][n as usize / 64 % 4];
        Key4::new(
            0x0a00_0001 ^ fields[0],
            0xc000_0201 ^ fields[1],
            protocol,
            Upper::Ports((fields[2] >> 16) as u16, fields[2] as u16),
        )
    };
    let keys: Vec<Key4> = (0..256).map(key).collect();
    let rule = |key: &Key4| {
        let Upper::Ports(source, destination) = key.upper() else {
            unreachable!()
        };
        let (source, destination) = (source..=source, destination..=destination);
        let payload = Payload::Ports {
            protocol: key.protocol(),
            source,
            destination,
        };
        let addresses = Addresses::V4 {
            source: key.source().into(),
            destination: key.destination().into(),
        };
        Rule {
            addresses,
            payload,
            ..Rule::all(Action::Permit)
        }
    };
    let acl = Acl::build(&keys.iter().map(rule).collect::<Vec<_>>()).unwrap();
    let mut cache = Known4::new(9);
    for asked in keys.chunks(7) {
        acl.learn4(&mut cache, asked, &mut vec![0; asked.len()]);
    }
    let wanted: Vec<Option<u32>> = keys.iter().map(|key| acl.classify4(key)).collect();
    assert!(wanted.iter().all(Option::is_some));
    let answers = known(&acl, &mut cache, &keys);
    assert!(
        answers
            .iter()
            .zip(&wanted)
            .all(|(answer, wanted)| answer == wanted || answer.is_none())
    );
    assert!(answers.iter().flatten().count() > 250);
}

/// Flows that differ in their source ports only, more than sets have room for, with answers by that port: also where full sets let
/// others help out, none gets what another one was answered.
#[test]
fn flows_of_two_hosts_are_distinguished_by_their_source_ports() {
    let rule = |part: u16| {
        let source = part << 8..=part << 8 | 0xff;
        let payload = Payload::Ports {
            protocol: IpProtocol::UDP,
            source,
            destination: 0..=u16::MAX,
        };
        let any = Addresses::V4 {
            source: "0.0.0.0/0".parse().unwrap(),
            destination: "0.0.0.0/0".parse().unwrap(),
        };
        Rule {
            addresses: any,
            payload,
            ..Rule::all(Action::Permit)
        }
    };
    let acl = Acl::build(&(0..256).map(rule).collect::<Vec<_>>()).unwrap();
    let mut cache = Known4::new(3);
    for destination in 1..=6 {
        let key = |source| {
            Key4::new(
                0x0a00_0001,
                0xc000_0201,
                IpProtocol::UDP,
                Upper::Ports(source, destination),
            )
        };
        let keys: Vec<Key4> = (0..=u16::MAX).map(key).collect();
        let mut found = vec![0; keys.len()];
        for _ in 0..2 {
            acl.learn4(&mut cache, &keys, &mut found);
            let wrong = found
                .iter()
                .enumerate()
                .filter(|(port, answer)| **answer as usize != port >> 8)
                .count();
            assert_eq!(wrong, 0, "to port {destination}");
        }
    }
}

/// Many more flows than there is room for, of two lists: answers stay right, and many are kept.
#[test]
fn a_flood_of_flows_leaves_answers_right() {
    let lists = [10, 11].map(|seed| synthetic::rules(seed, 200, Kind::Access, Family::V4));
    let acls = lists.each_ref().map(|rules| Acl::build(rules).unwrap());
    let keys: Vec<Key4> = synthetic::keys4(7, &lists[0], 250_000)
        .into_iter()
        .filter(|key| wire(key).is_some())
        .collect();
    let mut cache = Known4::new(5);
    let mut found = vec![0; keys.len()];
    for acl in acls.iter().chain(&acls) {
        acl.learn4(&mut cache, &keys, &mut found);
        let wanted: Vec<Option<u32>> = keys
            .iter()
            .map(|key| Some(acl.classify4(key).unwrap_or(NO_RULE)))
            .collect();
        assert!(
            found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| Some(*found) == *wanted)
        );
        let answers = known(acl, &mut cache, &keys);
        assert!(
            answers
                .iter()
                .zip(&wanted)
                .all(|(answer, wanted)| answer.is_none() || answer == wanted)
        );
        assert!(
            answers.iter().flatten().count() > 10_000,
            "{}",
            answers.iter().flatten().count()
        );
    }
    assert!(cache.bytes() <= 17 << 17);
}

#[test]
fn answers_stand_for_rules() {
    let mut rules = synthetic::rules(8, 300, Kind::Chain, Family::V4);
    // Without the last one, which is for all, some keys match nothing.
    rules.pop();
    let plain = Acl::build(&rules).unwrap();
    let acl = Acl::build(&rules)
        .unwrap()
        .with_answers((0..rules.len() as u32).map(|rule| 3 * rule + 1), 2);
    let keys = with_odd4(synthetic::keys4(
        2,
        &synthetic::rules(8, 300, Kind::Chain, Family::V4),
        500,
    ));
    let wanted: Vec<u32> = keys
        .iter()
        .map(|key| plain.classify4(key).map_or(2, |rule| 3 * rule + 1))
        .collect();
    assert!(wanted.contains(&2));
    let mut cache = Cache4::new(100, 5);
    for _ in 0..3 {
        let mut found = vec![0; keys.len()];
        acl.classify4_cached(&mut cache, &keys, &mut found);
        assert_eq!(found, wanted);
    }
    // A list without rules has an answer, too.
    let mut found = [0; 2];
    Acl::build(&[])
        .unwrap()
        .with_answers([], 9)
        .classify4_cached(&mut cache, &keys[..2], &mut found);
    assert_eq!(found, [9; 2]);
}
