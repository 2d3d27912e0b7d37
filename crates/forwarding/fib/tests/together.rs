//! Routes that are added together lead where they lead when they are added one by one.

use ipnet::{Ipv4Net, Ipv6Net};
use weir_fib::synthetic::{Random, destinations4, destinations6, internet4, internet6};
use weir_fib::{Fib4Writer, Fib6Writer};
use weir_ring::qsbr::Domain;

/// Neighbors next to each other in batches, as a kernel's dump has them, or anywhere.
fn batches<T: Copy>(routes: &[T], seed: u64, shuffled: bool) -> Vec<Vec<T>> {
    let (mut random, mut routes) = (Random::new(seed), routes.to_vec());
    if shuffled {
        for place in (1..routes.len()).rev() {
            routes.swap(place, random.below(place as u64 + 1) as usize);
        }
    }
    let (mut rest, mut batches) = (&routes[..], Vec::new());
    while !rest.is_empty() {
        let count = (1 + random.below(3000) as usize).min(rest.len());
        batches.push(rest[..count].to_vec());
        rest = &rest[count..];
    }
    batches
}

#[test]
fn ip4_is_the_same_in_batches_and_one_by_one() {
    for (seed, shuffled) in [(1, false), (2, true)] {
        let domain = Domain::new(4);
        let mut routes = internet4(seed, 34_000, 200);
        routes.sort_unstable();
        // Prefixes that come twice: the last group counts.
        let again: Vec<(Ipv4Net, u32)> = routes[..2000]
            .iter()
            .map(|(net, group)| (*net, group + 1000))
            .collect();
        routes.extend(again);
        let (mut together, mut alone) = (
            Fib4Writer::new(&domain).unwrap(),
            Fib4Writer::new(&domain).unwrap(),
        );
        for batch in batches(&routes, seed, shuffled) {
            together.insert_all(&batch).unwrap();
            for (net, group) in batch {
                alone.insert(net, group).unwrap();
            }
        }
        assert!(together.iter().eq(alone.iter()));
        let addresses = destinations4(seed, 20_000, &routes);
        let groups_of = |writer: &Fib4Writer| {
            let mut groups = vec![0; addresses.len()];
            writer.fib().lookup_batch(&addresses, &mut groups);
            groups
        };
        let groups = groups_of(&alone);
        assert!(groups.iter().any(|group| *group >= 1000));
        assert_eq!(groups_of(&together), groups);
    }
}

#[test]
fn ip6_is_the_same_in_batches_and_one_by_one() {
    for (seed, shuffled) in [(1, false), (2, true)] {
        let domain = Domain::new(4);
        let mut routes = internet6(seed, 8_000, 200);
        routes.sort_unstable();
        let again: Vec<(Ipv6Net, u32)> = routes[..1000]
            .iter()
            .map(|(net, group)| (*net, group + 1000))
            .collect();
        routes.extend(again);
        let (mut together, mut alone) = (
            Fib6Writer::new(&domain).unwrap(),
            Fib6Writer::new(&domain).unwrap(),
        );
        for batch in batches(&routes, seed, shuffled) {
            together.insert_all(&batch).unwrap();
            for (net, group) in batch {
                alone.insert(net, group).unwrap();
            }
        }
        assert!(together.iter().eq(alone.iter()));
        let addresses = destinations6(seed, 20_000, &routes);
        let groups_of = |writer: &Fib6Writer| {
            let mut groups = vec![0; addresses.len()];
            writer.fib().lookup_batch(&addresses, &mut groups);
            groups
        };
        let groups = groups_of(&alone);
        assert!(groups.iter().any(|group| *group >= 1000));
        assert_eq!(groups_of(&together), groups);
    }
}
