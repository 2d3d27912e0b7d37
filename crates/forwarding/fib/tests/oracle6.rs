//! The IPv6 trie against a prefix map that knows nothing of it, under changes in any order: small tables of plain
//! nodes, larger ones of coded nodes, and those that change from one to the other. And great allocations, whose nodes fork.

mod long;

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;
use prefix_trie::PrefixMap;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_fib::Fib6Writer;
use weir_ring::qsbr::Domain;

/// Addresses that often share their first octets, so that prefixes nest and nodes are shared.
fn address() -> impl Strategy<Value = u128> {
    let octet = || prop_oneof![4 => prop::sample::select(vec![0u8, 1, 128, 255]), 1 => any::<u8>()];
    let first = prop::sample::select(vec![[0x20u8, 1], [0xfc, 0], [0, 0], [255, 255]]);
    prop_oneof![
        4 => (first, prop::array::uniform14(octet())).prop_map(|(first, rest)| {
            let mut octets = [0; 16];
            octets[..2].copy_from_slice(&first);
            octets[2..].copy_from_slice(&rest);
            u128::from_be_bytes(octets)
        }),
        1 => any::<u128>(),
    ]
}

fn prefix() -> impl Strategy<Value = Ipv6Net> {
    let len = prop_oneof![3 => prop::sample::select(vec![0u8, 16, 29, 32, 44, 48, 56, 63, 64, 65, 127, 128]), 1 => 0..=128u8];
    (address(), len).prop_map(|(address, len)| Ipv6Net::new(address.into(), len).unwrap().trunc())
}

/// The addresses at and beside both ends of a prefix.
fn edges(prefix: Ipv6Net) -> [u128; 4] {
    let (first, last) = (u128::from(prefix.network()), u128::from(prefix.broadcast()));
    [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
}

fn check(
    writer: &Fib6Writer,
    oracle: &PrefixMap<Ipv6Net, u32>,
    addresses: &[u128],
) -> Result<(), TestCaseError> {
    // Batches are compared with the instructions of this machine from then on.
    let _ = weir_cpu::level();
    let mut groups = vec![u32::MAX; addresses.len()];
    writer.fib().lookup_batch(addresses, &mut groups);
    let small = writer.fib().small();
    for (&address, group) in addresses.iter().zip(groups) {
        let name = Ipv6Addr::from(address);
        let wanted = oracle
            .get_lpm(&Ipv6Net::from(name))
            .map_or(0, |(_, &group)| group);
        prop_assert_eq!(writer.fib().lookup(address), wanted, "lookup of {}", name);
        prop_assert_eq!(group, wanted, "batch lookup of {}", name);
        prop_assert_eq!(
            writer.longest_match(name).map_or(0, |(_, group)| group),
            wanted
        );
        if let Some(small) = small {
            prop_assert_eq!(
                small.lookup((address >> 64) as u64, address as u64),
                wanted,
                "small lookup of {}",
                name
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long::times(64, 40), rng_seed: RngSeed::Fixed(64), ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_prefix_map(
        changes in prop::collection::vec((prefix(), prop_oneof![Just(0), 1..50u32, Just(70_000)], 0..10u8, any::<usize>()), 1..80),
        others in prop::collection::vec(address(), 0..300),
    ) {
        let mut writer = Fib6Writer::new(&Domain::new(1)).unwrap();
        let mut oracle = PrefixMap::<Ipv6Net, u32>::new();
        for (prefix, group, what, nth) in changes {
            let touched = match what {
                0..=6 => {
                    prop_assert_eq!(writer.insert(prefix, group), Ok(oracle.insert(prefix, group)));
                    prefix
                }
                _ if oracle.is_empty() => continue,
                _ => {
                    let prefix = oracle.iter().nth(nth % oracle.len()).map(|(prefix, _)| prefix).unwrap();
                    prop_assert_eq!(writer.remove(prefix), oracle.remove(&prefix));
                    prefix
                }
            };
            check(&writer, &oracle, &edges(touched))?;
        }
        check(&writer, &oracle, &others)?;
        for (prefix, _) in oracle.iter() {
            check(&writer, &oracle, &edges(prefix))?;
        }
        let all: Vec<Ipv6Net> = oracle.iter().map(|(prefix, _)| prefix).collect();
        for prefix in &all {
            prop_assert!(writer.remove(*prefix).is_some());
        }
        prop_assert!(writer.is_empty() && writer.memory().blocks == 0);
    }
}

#[test]
fn a_small_table_is_small_until_it_is_not() {
    let mut writer = Fib6Writer::new(&Domain::new(1)).unwrap();
    let mut oracle = PrefixMap::<Ipv6Net, u32>::new();
    let nets = (0..400u128).map(|n| {
        Ipv6Net::new(
            (0x2001_0db8 << 96 | n << 84 | (n % 7) << 40).into(),
            48 + (n % 5 * 16) as u8,
        )
        .unwrap()
        .trunc()
    });
    let nets: Vec<Ipv6Net> = nets.collect();
    let fib = writer.fib().clone();
    let mut was_small = fib.small();
    for (n, &net) in nets.iter().enumerate() {
        assert_eq!(
            writer.insert(net, n as u32 + 1),
            Ok(oracle.insert(net, n as u32 + 1))
        );
        check(&writer, &oracle, &edges(net)).unwrap();
        was_small = fib.small().or(was_small);
    }
    assert!(fib.small().is_none(), "400 routes are no longer few");
    // Whoever still holds the table as it was finds what it is now.
    let held = was_small.unwrap();
    for address in nets.iter().flat_map(|&net| edges(net)) {
        assert_eq!(
            held.lookup((address >> 64) as u64, address as u64),
            fib.lookup(address)
        );
    }
}

#[test]
fn crowded_subtrees_become_nodes_of_ranges_and_plain_ones_again() {
    let mut writer = Fib6Writer::new(&Domain::new(1)).unwrap();
    let mut oracle = PrefixMap::<Ipv6Net, u32>::new();
    // Many allocations, some with a few routes and some with hundreds, at all depths.
    let mut nets = Vec::new();
    for allocation in 0..120u128 {
        let start = (0x2a00 + allocation % 3) << 112 | ((allocation * 0x0123_4567) & 0xffff) << 96;
        nets.push((start, 32));
        for n in 0..[0, 3, 12, 90, 400][allocation as usize % 5] {
            let len = 33 + (n * 7 % 32) as u32;
            nets.push((
                start | ((n * 0x9e37_79b9_7f4a_7c15) & 0xffff_ffff) << 64,
                len as u8,
            ));
        }
    }
    let nets: Vec<Ipv6Net> = nets
        .into_iter()
        .map(|(start, len)| Ipv6Net::new(start.into(), len).unwrap().trunc())
        .collect();
    for (n, &net) in nets.iter().enumerate() {
        let group = n as u32 % 300 + 1;
        assert_eq!(writer.insert(net, group), Ok(oracle.insert(net, group)));
        if n % 16 == 0 {
            check(&writer, &oracle, &edges(net)).unwrap();
        }
    }
    let addresses: Vec<u128> = nets.iter().flat_map(|&net| edges(net)).collect();
    check(&writer, &oracle, &addresses).unwrap();
    let mut at_once = Fib6Writer::new(&Domain::new(1)).unwrap();
    at_once
        .extend(
            &oracle
                .iter()
                .map(|(net, &group)| (net, group))
                .collect::<Vec<_>>(),
        )
        .unwrap();
    check(&at_once, &oracle, &addresses).unwrap();
    for (n, net) in nets.iter().enumerate().filter(|(n, _)| n % 4 != 0) {
        assert_eq!(writer.remove(*net), oracle.remove(net));
        if n % 61 == 0 {
            check(&writer, &oracle, &edges(*net)).unwrap();
        }
    }
    check(&writer, &oracle, &addresses).unwrap();
}

/// Routes of one allocation in any order: few, more than one node of ranges holds, more than a fork holds, and back.
#[test]
fn great_allocations_fork_and_find_together() {
    let mut writer = Fib6Writer::new(&Domain::new(1)).unwrap();
    let mut oracle = PrefixMap::<Ipv6Net, u32>::new();
    let mut random = weir_fib::synthetic::Random::new(7);
    // So many nodes that the rest are no longer plain.
    let others: Vec<(Ipv6Net, u32)> = (0..400u128)
        .map(|n| {
            (
                Ipv6Net::new(((0x1a00_0000 + (n << 8)) << 96).into(), 48).unwrap(),
                7,
            )
        })
        .collect();
    writer.extend(&others).unwrap();
    for &(net, group) in &others {
        oracle.insert(net, group);
    }
    let mut nets: Vec<Ipv6Net> = Vec::new();
    let net = |random: &mut weir_fib::synthetic::Random| {
        let (len, address) = (
            24 + random.below(25) as u8,
            0x2001_0db8 << 96 | u128::from(random.below(1 << 16)) << 80,
        );
        // Two of three are as long as a fork takes.
        let len = if random.below(3) > 0 { 48 } else { len };
        let address = if random.below(50) == 0 {
            address ^ u128::from(random.below(256)) << 96
        } else {
            address
        };
        Ipv6Net::new(address.into(), len).unwrap().trunc()
    };
    for (target, group_most) in [
        (40, 254),
        (900, 254),
        (300, 254),
        (5000, 254),
        (2000, 254),
        (150, 254),
        (600, 300),
        (500, 254),
        (0, 254),
    ] {
        while nets.len() != target {
            let group = random.below(group_most) as u32 + 1;
            let touched = if nets.len() < target {
                let net = net(&mut random);
                assert_eq!(writer.insert(net, group), Ok(oracle.insert(net, group)));
                if !nets.contains(&net) {
                    nets.push(net);
                }
                net
            } else {
                let net = nets.swap_remove(random.below(nets.len() as u64) as usize);
                assert_eq!(writer.remove(net), oracle.remove(&net));
                net
            };
            check(&writer, &oracle, &edges(touched)).unwrap();
        }
        let addresses: Vec<u128> = nets.iter().flat_map(|&net| edges(net)).collect();
        check(&writer, &oracle, &addresses).unwrap();
        // One route longer than marks can tell, and one with a greater group, for a while.
        for (len, group) in [(64, 3), (48, 300), (128, 70_000)] {
            let odd = Ipv6Net::new((0x2001_0db8_00ff << 80 | 5 << 64).into(), len)
                .unwrap()
                .trunc();
            let before = oracle.insert(odd, group);
            assert_eq!(writer.insert(odd, group), Ok(before));
            check(&writer, &oracle, &edges(odd)).unwrap();
            check(&writer, &oracle, &addresses).unwrap();
            match before {
                Some(before) => assert_eq!(
                    (writer.insert(odd, before), oracle.insert(odd, before)),
                    (Ok(Some(group)), Some(group))
                ),
                None => assert_eq!(writer.remove(odd), oracle.remove(&odd)),
            }
        }
        let mut at_once = Fib6Writer::new(&Domain::new(1)).unwrap();
        at_once
            .extend(
                &oracle
                    .iter()
                    .map(|(net, &group)| (net, group))
                    .collect::<Vec<_>>(),
            )
            .unwrap();
        check(&at_once, &oracle, &addresses).unwrap();
    }
    for (net, _) in others {
        assert!(writer.remove(net).is_some());
    }
    assert!(writer.is_empty() && writer.memory().blocks == 0);
}
