//! Lists and traffic made from a seed, shaped like those that networks have.
//!
//! ClassBench (Taylor and Turner, 2007) showed what matters of real lists for a classifier: how often
//! a field is left out, how specific prefixes are, that they nest within a few networks and repeat,
//! and that ports are exact, wild, or the halves at 1024. Three kinds are made after its families:
//! access lists (specific on both sides), firewalls (much left open) and chains (something of both).
//! The shares here are our own round figures, not ClassBench's files.
//!
//! Traffic is aimed: each key lies in a rule drawn at random, at a random place of it.

use ipnet::{Ipv4Net, Ipv6Net};
use weir_wire::IpProtocol;

use crate::key::{Key4, Key6, Upper};
use crate::rule::{Action, Addresses, Payload, Rule};

/// What a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From some to some: most rules name both sides and a service.
    Access,
    /// Many rules leave a side or the service open.
    Firewall,
    /// Something of both.
    Chain,
}

/// The family of a list's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Numbers from a seed (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    /// Whether something happens that happens so many times of a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn bits(&mut self) -> u128 {
        u128::from(self.number()) << 90
            ^ u128::from(self.number()) << 45
            ^ u128::from(self.number())
    }
}

/// Networks that prefixes are taken from, as bits from the top of 128.
struct Pool {
    networks: Vec<(u128, u8)>,
    family: Family,
}

/// The upper `length` bits.
const fn upper(length: u8) -> u128 {
    match u128::MAX.checked_shr(length as u32) {
        Some(lower) => !lower,
        None => u128::MAX,
    }
}

impl Pool {
    fn new(random: &mut Random, rules: usize, family: Family) -> Pool {
        let lengths: [u8; 4] = if family == Family::V4 {
            [8, 14, 16, 20]
        } else {
            [29, 32, 40, 48]
        };
        let networks = (0..4 + rules / 50).map(|_| {
            let bits = if family == Family::V4 {
                random.bits()
            } else {
                0x2001 << 112 | random.bits() >> 16
            };
            (bits, lengths[random.below(4)])
        });
        Pool {
            networks: networks.collect(),
            family,
        }
    }

    /// A prefix within one of the networks: mostly a host or a subnet, at times the network. Of each
    /// network some 64 subnets are in use, so that rules meet in them.
    fn prefix(&self, random: &mut Random) -> (u128, u8) {
        let (network, length) = self.networks[random.below(self.networks.len())];
        let (host, subnet) = if self.family == Family::V4 {
            (32, 24)
        } else {
            (128, 64)
        };
        let length_here = match random.below(100) {
            0..45 => host,
            45..75 => subnet,
            75..90 => length + random.below(usize::from(subnet - length) + 1) as u8,
            _ => length,
        };
        let in_use = Random::new(network as u64 ^ random.below(64) as u64).bits();
        let bits = network & upper(length)
            | in_use & upper(subnet) & !upper(length)
            | random.bits() & !upper(subnet);
        (bits & upper(length_here), length_here)
    }
}

/// How often of a hundred the source, the destination and the service are left open.
const fn open(kind: Kind) -> [usize; 3] {
    match kind {
        Kind::Access => [25, 3, 10],
        Kind::Firewall => [45, 25, 15],
        Kind::Chain => [15, 15, 25],
    }
}

const SERVICES: [u16; 16] = [
    80, 443, 53, 22, 25, 179, 123, 161, 389, 636, 993, 995, 3306, 5432, 8080, 8443,
];

fn service(random: &mut Random) -> std::ops::RangeInclusive<u16> {
    let port = SERVICES[random.below(SERVICES.len())];
    port..=port
}

fn ports(
    random: &mut Random,
    kind: Kind,
) -> (std::ops::RangeInclusive<u16>, std::ops::RangeInclusive<u16>) {
    let range = |random: &mut Random| match random.below(100) {
        0..50 => service(random),
        50..65 => {
            let port = random.below(65_536) as u16;
            port..=port
        }
        65..75 => 1024..=u16::MAX,
        75..80 => 0..=1023,
        80..88 => {
            let low = random.below(60_000) as u16;
            low..=low + random.below(5000) as u16
        }
        _ => 0..=u16::MAX,
    };
    let named = if kind == Kind::Access { 5 } else { 25 };
    let source = if random.percent(named) {
        range(random)
    } else {
        0..=u16::MAX
    };
    (source, range(random))
}

fn payload(random: &mut Random, kind: Kind, family: Family) -> Payload {
    if random.percent(open(kind)[2]) {
        return Payload::Any;
    }
    let icmp = if family == Family::V4 {
        IpProtocol::ICMP
    } else {
        IpProtocol(58)
    };
    match random.below(100) {
        0..65 => {
            let (source, destination) = ports(random, kind);
            Payload::Ports {
                protocol: IpProtocol::TCP,
                source,
                destination,
            }
        }
        65..88 => {
            let (source, destination) = ports(random, kind);
            Payload::Ports {
                protocol: IpProtocol::UDP,
                source,
                destination,
            }
        }
        88..94 => {
            let message = random.below(16) as u8;
            Payload::Icmp {
                protocol: icmp,
                kind: message..=message,
                code: 0..=u8::MAX,
            }
        }
        _ => Payload::Protocol(IpProtocol([47, 50, 51, 89, 103, 112][random.below(6)])),
    }
}

/// A list of `count` rules from a seed; the last one denies all.
#[must_use]
pub fn rules(seed: u64, count: usize, kind: Kind, family: Family) -> Vec<Rule> {
    let mut random = Random::new(seed);
    let (sources, destinations) = (
        Pool::new(&mut random, count, family),
        Pool::new(&mut random, count, family),
    );
    let mut rules: Vec<Rule> = (1..count)
        .map(|_| rule(&mut random, kind, family, &sources, &destinations))
        .collect();
    if count > 0 {
        rules.push(Rule::all(Action::Deny));
    }
    rules
}

fn rule(
    random: &mut Random,
    kind: Kind,
    family: Family,
    sources: &Pool,
    destinations: &Pool,
) -> Rule {
    let [source_open, destination_open, _] = open(kind);
    let side = |random: &mut Random, pool: &Pool, open: usize| {
        if random.percent(open) {
            (0, 0)
        } else {
            pool.prefix(random)
        }
    };
    let (source, mut destination) = (
        side(random, sources, source_open),
        side(random, destinations, destination_open),
    );
    let mut payload = payload(random, kind, family);
    // Both sides open is rare, and then it is a service; else one rule would end the list.
    if source.1 == 0 && destination.1 == 0 {
        match random.below(4) {
            0 => {
                payload = Payload::Ports {
                    protocol: IpProtocol::TCP,
                    source: 0..=u16::MAX,
                    destination: service(random),
                }
            }
            _ => destination = destinations.prefix(random),
        }
    }
    let addresses = match family {
        Family::V4 => {
            let net = |(bits, length): (u128, u8)| {
                Ipv4Net::new(((bits >> 96) as u32).into(), length).unwrap_or_default()
            };
            Addresses::V4 {
                source: net(source),
                destination: net(destination),
            }
        }
        Family::V6 => {
            let net =
                |(bits, length): (u128, u8)| Ipv6Net::new(bits.into(), length).unwrap_or_default();
            Addresses::V6 {
                source: net(source),
                destination: net(destination),
            }
        }
    };
    let action = if random.percent(70) {
        Action::Permit
    } else {
        Action::Deny
    };
    Rule {
        action,
        addresses,
        payload,
    }
}

/// Protocol and ports within a rule's demands.
fn aimed_payload(random: &mut Random, rule: &Rule) -> (IpProtocol, Upper) {
    let Some(demands) = rule.payload.demands() else {
        return (IpProtocol::TCP, Upper::Ports(0, 0));
    };
    let protocol = demands
        .protocol
        .unwrap_or(if random.percent(70) { 6 } else { 17 });
    let most = if matches!(protocol, 1 | 58) {
        255
    } else {
        u16::MAX
    };
    let [first, second] = demands.ports.unwrap_or([(0, most); 2]);
    let mut port = |(low, high): (u16, u16)| low + random.below(usize::from(high - low) + 1) as u16;
    let upper = if matches!(protocol, 1 | 6 | 17 | 58) {
        Upper::Ports(port(first), port(second))
    } else {
        Upper::Ports(0, 0)
    };
    (IpProtocol(protocol), upper)
}

/// Keys of IPv4 packets, each within one of the rules. Without rules, none.
#[must_use]
pub fn keys4(seed: u64, rules: &[Rule], count: usize) -> Vec<Key4> {
    let mut random = Random::new(seed);
    let mut key = || {
        let rule = rules.get(random.below(rules.len()))?;
        let mut inside = |net: &Ipv4Net| {
            net.network().to_bits() | random.number() as u32 & net.hostmask().to_bits()
        };
        let (source, destination) = match &rule.addresses {
            Addresses::V4 {
                source,
                destination,
            } => (inside(source), inside(destination)),
            _ => (inside(&Ipv4Net::default()), inside(&Ipv4Net::default())),
        };
        let (protocol, upper) = aimed_payload(&mut random, rule);
        Some(Key4::new(source, destination, protocol, upper))
    };
    (0..count).filter_map(|_| key()).collect()
}

/// Keys of IPv6 packets, each within one of the rules. Without rules, none.
#[must_use]
pub fn keys6(seed: u64, rules: &[Rule], count: usize) -> Vec<Key6> {
    let mut random = Random::new(seed);
    let mut key = || {
        let rule = rules.get(random.below(rules.len()))?;
        let mut inside = |net: &Ipv6Net| {
            (net.network().to_bits() | random.bits() & net.hostmask().to_bits()).to_be_bytes()
        };
        let (source, destination) = match &rule.addresses {
            Addresses::V6 {
                source,
                destination,
            } => (inside(source), inside(destination)),
            _ => (inside(&Ipv6Net::default()), inside(&Ipv6Net::default())),
        };
        let (protocol, upper) = aimed_payload(&mut random, rule);
        Some(Key6::new(&source, &destination, protocol, upper))
    };
    (0..count).filter_map(|_| key()).collect()
}
