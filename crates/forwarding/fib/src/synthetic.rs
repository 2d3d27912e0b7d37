//! Tables and destinations made from a seed, shaped like the Internet's: for measuring and for tests.
//!
//! The shares of lengths are round figures of today's full tables as seen in public (a million IPv4 and
//! a quarter of a million IPv6 prefixes). IPv4 prefixes lie anywhere in unicast space, which is harder
//! than the truth, where neighbours often share an origin and so a next hop. IPv6 prefixes lie as they are
//! given out: allocations of /29 to /32 in the registries' blocks, more specific ones within these, some
//! allocations with very many and most with none, and mostly at their beginning.

use std::collections::HashSet;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Numbers from a seed (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number: 56 bits.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// A number below `bound` that is mostly small: half of them are in the lowest eighth.
    fn small(&mut self, bound: u64) -> u64 {
        let unit = self.below(1 << 20) as f64 / f64::from(1 << 20);
        ((unit * unit * unit) * bound as f64) as u64
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.number()) << 80
            ^ u128::from(self.number()) << 40
            ^ u128::from(self.number())
    }

    /// A length, as often as its share says.
    fn length(&mut self, shares: &[(u8, u32)]) -> u8 {
        let all: u32 = shares.iter().map(|&(_, share)| share).sum();
        let mut left = self.below(u64::from(all)) as u32;
        for &(len, share) in shares {
            if left < share {
                return len;
            }
            left -= share;
        }
        0
    }
}

/// Shares of IPv4 lengths, in ten thousandths.
const LENGTHS4: [(u8, u32); 17] = [
    (8, 2),
    (9, 1),
    (10, 4),
    (11, 10),
    (12, 30),
    (13, 60),
    (14, 120),
    (15, 210),
    (16, 1360),
    (17, 840),
    (18, 1400),
    (19, 2500),
    (20, 4500),
    (21, 5200),
    (22, 11_000),
    (23, 10_000),
    (24, 60_000),
];

/// Shares of IPv6 lengths.
const LENGTHS6: [(u8, u32); 25] = [
    (20, 1),
    (24, 3),
    (26, 2),
    (27, 2),
    (28, 12),
    (29, 250),
    (30, 40),
    (31, 20),
    (32, 1150),
    (33, 210),
    (34, 160),
    (35, 90),
    (36, 500),
    (37, 50),
    (38, 110),
    (39, 60),
    (40, 1000),
    (41, 60),
    (42, 260),
    (43, 90),
    (44, 1100),
    (45, 120),
    (46, 340),
    (47, 270),
    (48, 4600),
];

/// First sixteen bits of the registries' blocks, in proportion to what is announced of them.
const BLOCKS6: [(u16, u16, u64); 9] = [
    (0x2001, 1, 10),
    (0x2a00, 21, 38),
    (0x2400, 16, 22),
    (0x2600, 8, 9),
    (0x2620, 1, 3),
    (0x2602, 1, 4),
    (0x2803, 2, 8),
    (0x2804, 3, 4),
    (0x2c0f, 1, 2),
];

/// So many different prefixes, each with a group from 1 to `groups`.
#[must_use]
pub fn internet4(seed: u64, count: usize, groups: u32) -> Vec<(Ipv4Net, u32)> {
    let mut random = Random::new(seed);
    collect(seed, count, groups, || {
        let len = random.length(&LENGTHS4);
        let address = random.number() as u32;
        let unicast = (1..224).contains(&(address >> 24)) && !matches!(address >> 24, 10 | 127);
        Ipv4Net::new(Ipv4Addr::from(address), len)
            .ok()
            .filter(|_| unicast)
            .map(|net| net.trunc())
    })
}

/// As [`internet4`], of IPv6.
#[must_use]
pub fn internet6(seed: u64, count: usize, groups: u32) -> Vec<(Ipv6Net, u32)> {
    let mut random = Random::new(seed);
    let allocations: Vec<(u128, u8)> = (0..count / 7 + 1)
        .map(|_| allocation(&mut random))
        .collect();
    collect(seed, count, groups, || {
        let len = random.length(&LENGTHS6);
        let (start, size) = allocations[random.small(allocations.len() as u64) as usize];
        let address = if len <= 32 {
            // The allocation itself, or another.
            if random.below(2) == 0 {
                start
            } else {
                allocation(&mut random).0
            }
        } else {
            let bits = len.saturating_sub(size);
            let subnet = if random.below(2) == 0 {
                random.small(1 << bits)
            } else {
                random.below(1 << bits)
            };
            start | u128::from(subnet) << (128 - u32::from(len))
        };
        Ipv6Net::new(Ipv6Addr::from(address), len)
            .ok()
            .map(|net| net.trunc())
    })
}

/// The beginning and the length of an allocation.
fn allocation(random: &mut Random) -> (u128, u8) {
    let mut left = random.below(100);
    let mut block = BLOCKS6[0];
    for candidate in BLOCKS6 {
        block = candidate;
        if left < candidate.2 {
            break;
        }
        left -= candidate.2;
    }
    let first = u128::from(block.0) + u128::from(random.below(u64::from(block.1)));
    let len = if random.below(4) == 0 { 29 } else { 32 };
    let second = u128::from(random.below(1 << 16)) & !((1 << (32 - len)) - 1);
    (first << 112 | second << 96, len)
}

fn collect<N: Hash + Eq + Copy>(
    seed: u64,
    count: usize,
    groups: u32,
    mut prefix: impl FnMut() -> Option<N>,
) -> Vec<(N, u32)> {
    let mut choice = Random::new(seed ^ 0x5eed);
    let mut seen = HashSet::with_capacity(count);
    let mut routes = Vec::with_capacity(count);
    while routes.len() < count {
        if let Some(prefix) = prefix().filter(|&prefix| seen.insert(prefix)) {
            routes.push((prefix, 1 + choice.below(u64::from(groups)) as u32));
        }
    }
    routes
}

/// So many addresses, each anywhere in one of the prefixes.
#[must_use]
pub fn destinations4(seed: u64, count: usize, routes: &[(Ipv4Net, u32)]) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut one = || {
        let (net, _) = routes
            .get(random.below(routes.len() as u64) as usize)
            .copied()
            .unwrap_or_default();
        u32::from(net.network()) | random.number() as u32 & u32::from(net.hostmask())
    };
    (0..count).map(|_| one()).collect()
}

/// As [`destinations4`], of IPv6.
#[must_use]
pub fn destinations6(seed: u64, count: usize, routes: &[(Ipv6Net, u32)]) -> Vec<u128> {
    let mut random = Random::new(seed);
    let mut one = || {
        let (net, _) = routes
            .get(random.below(routes.len() as u64) as usize)
            .copied()
            .unwrap_or_default();
        u128::from(net.network()) | random.wide() & u128::from(net.hostmask())
    };
    (0..count).map(|_| one()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_table_of_today_s_lengths() {
        let routes = internet4(1, 20_000, 16);
        assert_eq!(routes, internet4(1, 20_000, 16));
        let share = |len: u8| {
            routes
                .iter()
                .filter(|(net, _)| net.prefix_len() == len)
                .count()
                * 100
                / routes.len()
        };
        assert!(
            (57..=65).contains(&share(24)) && (9..=13).contains(&share(22)),
            "{} {}",
            share(24),
            share(22)
        );
        assert!(routes.iter().all(|&(_, group)| (1..=16).contains(&group)));
        let routes6 = internet6(1, 20_000, 16);
        let share = |len: u8| {
            routes6
                .iter()
                .filter(|(net, _)| net.prefix_len() == len)
                .count()
                * 100
                / routes6.len()
        };
        assert!(
            (42..=52).contains(&share(48)) && (8..=14).contains(&share(32)),
            "{} {}",
            share(48),
            share(32)
        );
        let covered = destinations6(2, 100, &routes6);
        assert!(covered.iter().all(|&address| {
            routes6
                .iter()
                .any(|(net, _)| net.contains(&Ipv6Addr::from(address)))
        }));
        assert!(destinations4(2, 100, &routes).iter().all(|&address| {
            routes
                .iter()
                .any(|(net, _)| net.contains(&Ipv4Addr::from(address)))
        }));
    }
}
