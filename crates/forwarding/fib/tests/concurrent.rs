//! Readers look up while the writer changes routes: no address ever has an answer that was never
//! right for it, and blocks go round without being seen in a wrong place. IPv6 has nodes of its own: ranges and forks.

mod long;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::net::Ipv6Addr;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_fib::{Fib4, Fib4Writer, Fib6, Fib6Writer};
use weir_ring::qsbr::{Domain, Reader};

/// Prefixes by group number: each group has one prefix, so that an answer says where it came from.
fn prefixes() -> Vec<Ipv4Net> {
    let mut prefixes = vec!["0.0.0.0/0".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
    for n in 0..400u32 {
        let len = [17, 20, 24, 25, 30, 32][n as usize % 6];
        let address = 0x0a00_0000 | n.wrapping_mul(0x9e37_79b9) >> 8;
        let prefix = Ipv4Net::new(address.into(), len).unwrap().trunc();
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Looks up until instructed to stop; returns how many lookups were made.
fn read(
    fib: &Fib4,
    mut reader: Reader,
    prefixes: &[Ipv4Net],
    stop: &AtomicBool,
    mut seed: u64,
) -> u64 {
    let mut lookups = 0;
    let (mut addresses, mut groups) = ([0u32; 256], [0u32; 256]);
    while !stop.load(Ordering::Relaxed) {
        reader.quiesce();
        for address in &mut addresses {
            let prefix = prefixes[next(&mut seed) as usize % prefixes.len()];
            let span = u64::from(u32::from(prefix.hostmask())) + 1;
            *address = u32::from(prefix.network()).wrapping_add((next(&mut seed) % span) as u32);
        }
        fib.lookup_batch(&addresses, &mut groups);
        for (&address, &group) in addresses.iter().zip(&groups) {
            // 0.0.0.0/0 and 10.0.0.0/8 stay, so there is always an answer, and one that covers.
            assert_ne!(group, 0);
            let from = prefixes[group as usize - 1];
            assert!(
                from.contains(&std::net::Ipv4Addr::from(address)),
                "{} by {from}",
                std::net::Ipv4Addr::from(address)
            );
        }
        lookups += 256;
        if lookups % 25_600 == 0 {
            reader.offline();
        }
    }
    lookups
}

#[test]
fn readers_see_only_answers_that_were_right() {
    let domain = Domain::new(2);
    read_beside(&domain, Fib4Writer::new(&domain).unwrap());
}

/// The same with lines, most of whose answers come without the trie.
#[test]
fn readers_of_lines_see_only_answers_that_were_right() {
    let domain = Domain::new(2);
    let writer = Fib4Writer::large(&domain).unwrap();
    let fib = writer.fib().clone();
    assert!(fib.full().is_some());
    read_beside(&domain, writer);
    assert!(fib.full().is_some());
}

fn read_beside(domain: &Domain, mut writer: Fib4Writer) {
    let prefixes = prefixes();
    for (n, &prefix) in prefixes.iter().enumerate().take(2) {
        writer.insert(prefix, n as u32 + 1).unwrap();
    }
    let fib = writer.fib().clone();
    let (stop, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let reader = domain.register().unwrap();
            let (fib, prefixes, stop, lookups) = (&fib, &prefixes, &stop, &lookups);
            scope.spawn(move || {
                lookups.fetch_add(
                    read(fib, reader, prefixes, stop, seed * 77),
                    Ordering::Relaxed,
                )
            });
        }
        let mut seed = 4711;
        let mut there = vec![false; prefixes.len()];
        for _ in 0..long::times(60_000, 40) {
            let n = 2 + next(&mut seed) as usize % (prefixes.len() - 2);
            if there[n] {
                assert_eq!(writer.remove(prefixes[n]), Some(n as u32 + 1));
            } else {
                assert_eq!(writer.insert(prefixes[n], n as u32 + 1), Ok(None));
            }
            there[n] = !there[n];
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(lookups.load(Ordering::Relaxed) > 0);
    let memory = writer.memory();
    assert!(
        memory.blocks + memory.spare_blocks < 20_000,
        "blocks are used again: {memory:?}"
    );
}

/// Groups of IPv6 prefixes, so few that lines hold marks.
const GROUPS: usize = 200;

/// Prefixes of one allocation, more than a node of ranges holds; the first one covers all.
fn prefixes6() -> Vec<Ipv6Net> {
    let mut prefixes = vec!["2001:d00::/24".parse().unwrap()];
    for n in 0..900u128 {
        let len = [48, 47, 44, 40, 48, 36][n as usize % 6];
        let address = 0x2001_0db8 << 96 | (n.wrapping_mul(0x9e37_79b9) & 0xffff) << 80;
        let prefix = Ipv6Net::new(address.into(), len).unwrap().trunc();
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn group6(n: usize) -> u32 {
    (n % GROUPS) as u32 + 1
}

fn read6(
    fib: &Fib6,
    mut reader: Reader,
    prefixes: &[Ipv6Net],
    stop: &AtomicBool,
    mut seed: u64,
) -> u64 {
    let mut lookups = 0;
    let (mut addresses, mut groups) = ([0u128; 256], [0u32; 256]);
    while !stop.load(Ordering::Relaxed) {
        reader.quiesce();
        for address in &mut addresses {
            let prefix = prefixes[next(&mut seed) as usize % prefixes.len()];
            let random = u128::from(next(&mut seed)) << 64 | u128::from(next(&mut seed));
            *address = u128::from(prefix.network()) | random & u128::from(prefix.hostmask());
        }
        fib.lookup_batch(&addresses, &mut groups);
        for (&address, &group) in addresses.iter().zip(&groups) {
            let covers = |n: usize| prefixes[n].contains(&Ipv6Addr::from(address));
            assert!(
                (0..prefixes.len()).any(|n| group6(n) == group && covers(n)),
                "{} by {group}",
                Ipv6Addr::from(address)
            );
        }
        lookups += 256;
    }
    lookups
}

#[test]
fn readers_of_forks_see_only_answers_that_were_right() {
    let domain = Domain::new(2);
    let mut writer = Fib6Writer::new(&domain).unwrap();
    // So many nodes that the rest are no longer plain.
    let others = (0..400u128).map(|n| {
        (
            Ipv6Net::new(((0x1a00_0000 + (n << 8)) << 96).into(), 48).unwrap(),
            7,
        )
    });
    writer.extend(&others.collect::<Vec<_>>()).unwrap();
    let prefixes = prefixes6();
    for (n, &prefix) in prefixes.iter().enumerate() {
        writer.insert(prefix, group6(n)).unwrap();
    }
    let fib = writer.fib().clone();
    let (stop, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let reader = domain.register().unwrap();
            let (fib, prefixes, stop, lookups) = (&fib, &prefixes, &stop, &lookups);
            scope.spawn(move || {
                lookups.fetch_add(
                    read6(fib, reader, prefixes, stop, seed * 77),
                    Ordering::Relaxed,
                )
            });
        }
        let mut seed = 4711;
        let mut there = vec![true; prefixes.len()];
        for _ in 0..long::times(6_000, 100) {
            let n = 1 + next(&mut seed) as usize % (prefixes.len() - 1);
            if there[n] {
                assert_eq!(writer.remove(prefixes[n]), Some(group6(n)));
            } else {
                assert_eq!(writer.insert(prefixes[n], group6(n)), Ok(None));
            }
            there[n] = !there[n];
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(lookups.load(Ordering::Relaxed) > 0);
    let memory = writer.memory();
    assert!(
        memory.blocks + memory.spare_blocks < 20_000,
        "blocks are used again: {memory:?}"
    );
}

#[test]
fn a_block_waits_for_the_reader_that_may_be_in_it() {
    let domain = Domain::new(1);
    let mut reader = domain.register().unwrap();
    let mut writer = Fib4Writer::new(&domain).unwrap();
    let (one, other): (Ipv4Net, Ipv4Net) = (
        "10.1.1.0/24".parse().unwrap(),
        "10.2.2.0/24".parse().unwrap(),
    );
    reader.quiesce();
    writer.insert(one, 1).unwrap();
    writer.remove(one);
    writer.insert(other, 2).unwrap();
    assert_eq!(
        (writer.memory().blocks, writer.memory().spare_blocks),
        (1, 1)
    );
    writer.remove(other);
    reader.quiesce();
    writer.insert(one, 1).unwrap();
    assert_eq!(
        (writer.memory().blocks, writer.memory().spare_blocks),
        (1, 0)
    );
}
