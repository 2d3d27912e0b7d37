//! The trie against a prefix map that knows nothing of it, under changes in any order.

mod long;

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use prefix_trie::PrefixMap;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_fib::{Fib4Writer, FibError, MAX_GROUP};
use weir_ring::qsbr::Domain;

#[derive(Clone, Debug)]
enum Change {
    Insert(Ipv4Net, u32),
    Remove(Ipv4Net),
    RemoveNth(usize),
}

/// Addresses that often share their first octets, so that prefixes nest and blocks are shared.
fn address() -> impl Strategy<Value = u32> {
    let octet =
        || prop_oneof![4 => prop::sample::select(vec![0u8, 1, 127, 128, 255]), 1 => any::<u8>()];
    prop_oneof![
        4 => (prop::sample::select(vec![0u8, 10, 255]), octet(), octet(), octet()).prop_map(|(a, b, c, d)| u32::from_be_bytes([a, b, c, d])),
        1 => any::<u32>(),
    ]
}

fn prefix() -> impl Strategy<Value = Ipv4Net> {
    let len = prop_oneof![2 => prop::sample::select(vec![0u8, 8, 15, 16, 17, 23, 24, 25, 31, 32]), 1 => 0..=32u8];
    (address(), len).prop_map(|(address, len)| Ipv4Net::new(address.into(), len).unwrap())
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (prefix(), prop_oneof![Just(0), 1..50u32, Just(MAX_GROUP)]).prop_map(|(prefix, group)| Change::Insert(prefix, group)),
        1 => prefix().prop_map(Change::Remove),
        4 => any::<usize>().prop_map(Change::RemoveNth),
    ]
}

/// The addresses at and beside both ends of a prefix.
fn edges(prefix: Ipv4Net) -> [u32; 4] {
    let (first, last) = (u32::from(prefix.network()), u32::from(prefix.broadcast()));
    [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
}

fn expected(oracle: &PrefixMap<Ipv4Net, u32>, address: u32) -> u32 {
    oracle
        .get_lpm(&Ipv4Net::from(Ipv4Addr::from(address)))
        .map_or(0, |(_, &group)| group)
}

fn check(
    writer: &Fib4Writer,
    oracle: &PrefixMap<Ipv4Net, u32>,
    addresses: &[u32],
) -> Result<(), TestCaseError> {
    let mut groups = vec![u32::MAX; addresses.len()];
    writer.fib().lookup_batch(addresses, &mut groups);
    for (&address, group) in addresses.iter().zip(groups) {
        let wanted = expected(oracle, address);
        prop_assert_eq!(
            writer.fib().lookup(address),
            wanted,
            "lookup of {}",
            Ipv4Addr::from(address)
        );
        prop_assert_eq!(group, wanted, "batch lookup of {}", Ipv4Addr::from(address));
        let exact = writer
            .longest_match(address.into())
            .map_or(0, |(_, group)| group);
        prop_assert_eq!(exact, wanted);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long::times(96, 40), rng_seed: RngSeed::Fixed(96), ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_prefix_map(
        large in any::<bool>(),
        changes in prop::collection::vec(change(), 1..120),
        others in prop::collection::vec(address(), 0..300),
    ) {
        let domain = Domain::new(1);
        let mut writer = if large { Fib4Writer::large(&domain) } else { Fib4Writer::new(&domain) }.unwrap();
        let mut oracle = PrefixMap::<Ipv4Net, u32>::new();
        for change in changes {
            let touched = match change {
                Change::Insert(prefix, group) => {
                    prop_assert_eq!(writer.insert(prefix, group), Ok(oracle.insert(prefix.trunc(), group)));
                    prefix.trunc()
                }
                Change::Remove(prefix) => {
                    prop_assert_eq!(writer.remove(prefix), oracle.remove(&prefix.trunc()));
                    prefix.trunc()
                }
                Change::RemoveNth(n) if !oracle.is_empty() => {
                    let prefix = oracle.iter().nth(n % oracle.len()).map(|(prefix, _)| prefix).unwrap();
                    prop_assert_eq!(writer.remove(prefix), oracle.remove(&prefix));
                    prefix
                }
                Change::RemoveNth(_) => continue,
            };
            check(&writer, &oracle, &edges(touched))?;
        }
        check(&writer, &oracle, &others)?;
        for (prefix, _) in oracle.iter() {
            check(&writer, &oracle, &edges(prefix))?;
        }
        prop_assert_eq!(writer.iter().collect::<Vec<_>>(), oracle.iter().map(|(prefix, &group)| (prefix, group)).collect::<Vec<_>>());

        // Emptied, the table needs no block any more and knows no route.
        let all: Vec<Ipv4Net> = oracle.iter().map(|(prefix, _)| prefix).collect();
        for prefix in &all {
            prop_assert!(writer.remove(*prefix).is_some());
        }
        prop_assert!(writer.is_empty());
        prop_assert_eq!(writer.memory().blocks, 0);
        oracle.clear();
        for prefix in all {
            check(&writer, &oracle, &edges(prefix))?;
        }
    }
}

fn net(text: &str) -> Ipv4Net {
    text.parse().unwrap()
}

#[test]
fn a_removal_gives_the_covering_route_back() {
    let mut writer = Fib4Writer::new(&Domain::new(1)).unwrap();
    for (prefix, group) in [
        ("0.0.0.0/0", 1),
        ("10.0.0.0/8", 2),
        ("10.1.0.0/16", 3),
        ("10.1.2.0/24", 4),
        ("10.1.2.3/32", 5),
    ] {
        assert_eq!(writer.insert(net(prefix), group), Ok(None));
    }
    let fib = writer.fib().clone();
    let at = |text: &str| fib.lookup(text.parse::<Ipv4Addr>().unwrap().into());
    assert_eq!(
        [
            at("9.9.9.9"),
            at("10.9.9.9"),
            at("10.1.9.9"),
            at("10.1.2.9"),
            at("10.1.2.3")
        ],
        [1, 2, 3, 4, 5]
    );
    assert_eq!(writer.remove(net("10.1.2.0/24")), Some(4));
    assert_eq!([at("10.1.2.9"), at("10.1.2.3")], [3, 5]);
    assert_eq!(writer.insert(net("10.0.0.0/8"), 7), Ok(Some(2)));
    assert_eq!([at("10.9.9.9"), at("10.1.2.9"), at("10.1.2.3")], [7, 3, 5]);
    assert_eq!(writer.remove(net("10.1.2.3/32")), Some(5));
    assert_eq!(writer.remove(net("10.1.2.3/32")), None);
    assert_eq!([at("10.1.2.3"), writer.memory().blocks as u32], [3, 0]);
    assert_eq!(writer.remove(net("0.0.0.0/0")), Some(1));
    assert_eq!([at("9.9.9.9"), at("10.1.2.3")], [0, 3]);
}

#[test]
fn host_bits_do_not_matter_and_groups_have_a_bound() {
    let mut writer = Fib4Writer::new(&Domain::new(1)).unwrap();
    assert_eq!(writer.insert(net("10.1.2.3/24"), 9), Ok(None));
    assert_eq!(
        (
            writer.get(net("10.1.2.0/24")),
            writer.fib().lookup(0x0a01_0201)
        ),
        (Some(9), 9)
    );
    assert_eq!(
        writer.insert(net("10.0.0.0/8"), MAX_GROUP + 1),
        Err(FibError::GroupTooHigh(MAX_GROUP + 1))
    );
    assert_eq!((writer.len(), writer.fib().lookup(0x0a09_0909)), (1, 0));
    assert_eq!(writer.remove(net("10.1.2.99/24")), Some(9));
}

#[test]
fn batches_of_any_length() {
    let mut writer = Fib4Writer::new(&Domain::new(1)).unwrap();
    for (n, prefix) in ["10.0.0.0/8", "10.1.0.0/17", "10.1.2.0/25", "10.1.2.128/32"]
        .into_iter()
        .enumerate()
    {
        writer.insert(net(prefix), n as u32 + 1).unwrap();
    }
    for len in [0, 1, 2, 255, 256, 257, 700] {
        let addresses: Vec<u32> = (0..len)
            .map(|n| 0x0a01_0200 + (n % 3) * 64 + (n % 5) * 0x8000)
            .collect();
        let mut groups = vec![7; len as usize + 1];
        writer.fib().lookup_batch(&addresses, &mut groups);
        assert_eq!(
            groups.pop(),
            Some(7),
            "nothing behind the addresses is touched"
        );
        assert!(
            addresses
                .iter()
                .zip(&groups)
                .all(|(&address, &group)| group == writer.fib().lookup(address))
        );
    }
}

#[test]
fn a_small_table_is_small() {
    let mut writer = Fib4Writer::new(&Domain::new(1)).unwrap();
    writer.insert(net("0.0.0.0/0"), 1).unwrap();
    writer.insert(net("192.0.2.0/24"), 2).unwrap();
    let memory = writer.memory();
    assert_eq!((memory.blocks, memory.spare_blocks), (1, 0));
    assert!(memory.table < 300 << 10, "{memory:?}");
    let fib = writer.fib().clone();
    let small = fib.small().unwrap();
    writer.insert(net("192.0.2.128/25"), 3).unwrap();
    for block in 0..2000u32 {
        writer
            .insert(
                Ipv4Net::new((0x0a00_0000 + block * 0x1_0000).into(), 17).unwrap(),
                4 + block,
            )
            .unwrap();
    }
    assert!(fib.small().is_none());
    for address in [
        1,
        0xc000_0201,
        0xc000_02ff,
        0xc000_0300,
        0x0a00_0001,
        0x0a00_ffff,
        0x0fff_0000,
    ] {
        assert_eq!(small.lookup(address), fib.lookup(address), "{address:#x}");
    }
}

/// Sixteen prefixes of 1,500 slots of the root are in before the table is large and as many of 6,500 after: the lines
/// are written little by little, with the changes that follow.
#[test]
fn a_table_that_becomes_large_is_made_anew_little_by_little() {
    let domain = Domain::new(1);
    let mut writer = Fib4Writer::new(&domain).unwrap();
    let route = |n: u32| {
        (
            Ipv4Net::new(((n / 16) << 16 | (n % 16) << 12).into(), 20).unwrap(),
            1 + n % 200,
        )
    };
    let few: Vec<_> = (0..24_000).map(route).collect();
    writer.extend(&few).unwrap();
    let dense = writer.memory().table;
    let many: Vec<_> = (24_000..128_000).map(route).collect();
    writer.extend(&many).unwrap();
    let fib = writer.fib().clone();
    let agree = |writer: &Fib4Writer| {
        let addresses: Vec<u32> = (0..9_000u32)
            .map(|n| n.wrapping_mul(59_652_323) % (8_100 << 16))
            .collect();
        let mut groups = vec![0; addresses.len()];
        fib.lookup_batch(&addresses, &mut groups);
        addresses.iter().zip(groups).all(|(&address, group)| {
            Some(group)
                == writer
                    .longest_match(address.into())
                    .map(|(_, group)| group)
                    .or(Some(0))
        })
    };
    assert!(agree(&writer));
    let before = writer.memory().table;
    assert!(fib.full().is_none(), "not all lines tell yet");
    // A group too great for a line, and a route that is longer: these are asked of the trie.
    writer.insert(net("0.5.0.0/20"), 70_000).unwrap();
    writer.insert(net("0.6.1.1/32"), 9).unwrap();
    for n in 0..17_000 {
        let (prefix, group) = route(n * 7 % 128_000);
        writer.insert(prefix, group + n % 2).unwrap();
        assert!(n % 4_000 != 0 || agree(&writer));
    }
    assert!(agree(&writer));
    let after = writer.memory();
    assert!(fib.full().is_some());
    assert!(
        before > dense + (7 << 20) && after.table < before + (1 << 20) && after.blocks == 8_001,
        "{dense} {before} {after:?}"
    );
    // Groups too great for lines, in nearly all of them: the trie is asked at once again.
    for n in 0..128_000 {
        writer.insert(route(n).0, 300).unwrap();
    }
    assert!(agree(&writer));
    let all: Vec<Ipv4Net> = writer.iter().map(|(prefix, _)| prefix).collect();
    assert!(
        all.into_iter()
            .all(|prefix| writer.remove(prefix).is_some())
    );
    assert_eq!(writer.memory().blocks, 0);
}
