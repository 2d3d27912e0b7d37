//! From an ordered list of rules to aggregated bit vectors (see `bpf/acl.h` for how they are searched).
//!
//! For each of five dimensions the rules cut the range of values into intervals; every interval has a row with
//! one bit a rule. Equal rows are stored once. Memory grows with the number of different rows times the number
//! of rules / 64: 10,000 rules of different addresses take 25 MB, of 100 different prefixes 1 MB.

use std::collections::HashMap;

use weir_config::IpNet;

use crate::abi::AclSide;
use crate::config::Rule;

/// The key of packets without ports; above all ports.
const NO_PORTS: u128 = 0x1_0000;
const RULE_PERMIT: u64 = 1;
const RULE_STATEFUL: u64 = 2;

/// An ACL as words. Indices count from the base that it was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The words, from the base on.
    pub words: Vec<u64>,
    /// IPv4 and IPv6.
    pub sides: [AclSide; 2],
    /// Rules, that which ends the ACL included.
    pub rules: u32,
    /// Whether a rule is stateful.
    pub stateful: bool,
}

/// Compiles rules for a place at `base` in `acl_words`. A packet that no rule matches is denied.
#[must_use]
pub fn compile(rules: &[Rule], base: u32) -> Compiled {
    let mut rules = rules.to_vec();
    rules.push(Rule::any(false));
    let mut builder = Builder {
        base,
        words: Vec::new(),
        rows: HashMap::new(),
        count: rules.len(),
    };
    let definitions: Vec<u64> = rules.iter().map(definition).collect();
    let start = builder.append(&definitions);
    let sides = [true, false].map(|is_ip4| builder.side(&rules, is_ip4, start));
    Compiled {
        words: builder.words,
        sides,
        rules: rules.len() as u32,
        stateful: rules.iter().any(|rule| rule.stateful),
    }
}

fn definition(rule: &Rule) -> u64 {
    let (mask, value) = rule.tcp_flags.unwrap_or_default();
    (u64::from(rule.permit) * RULE_PERMIT)
        | (u64::from(rule.stateful) * RULE_STATEFUL)
        | (u64::from(mask) << 8)
        | (u64::from(value) << 16)
}

struct Builder {
    base: u32,
    words: Vec<u64>,
    /// Rows that are already stored.
    rows: HashMap<Vec<u64>, u32>,
    count: usize,
}

/// First and last value that a rule matches.
type Span = (u128, u128);

impl Builder {
    fn append(&mut self, words: &[u64]) -> u32 {
        let at = self.base + self.words.len() as u32;
        self.words.extend_from_slice(words);
        at
    }

    /// The index of the row with these bits, its summary before them.
    fn row(&mut self, bits: &[u64]) -> u32 {
        if let Some(at) = self.rows.get(bits) {
            return *at;
        }
        let mut row = vec![0; bits.len().div_ceil(64)];
        for (number, word) in bits.iter().enumerate() {
            row[number / 64] |= u64::from(*word != 0) << (number % 64);
        }
        row.extend_from_slice(bits);
        let at = self.append(&row);
        self.rows.insert(bits.to_vec(), at);
        at
    }

    /// The starts of intervals, ascending from 0, with their rows. `None`: the rule is of the other family.
    fn intervals(&mut self, spans: &[Option<Span>], most: u128) -> Vec<(u128, u32)> {
        let mut changes: Vec<(u128, usize, bool)> = Vec::new();
        for (rule, span) in spans.iter().enumerate() {
            let Some((first, last)) = *span else { continue };
            changes.push((first, rule, true));
            if last < most {
                changes.push((last + 1, rule, false));
            }
        }
        changes.sort_unstable();
        let mut bits = vec![0u64; self.count.div_ceil(64)];
        let mut found: Vec<(u128, u32)> = Vec::new();
        let mut next = changes.iter().peekable();
        let mut start = 0;
        loop {
            while let Some(&&(_, rule, begins)) = next.peek().filter(|change| change.0 <= start) {
                let bit = 1 << (rule % 64);
                if begins {
                    bits[rule / 64] |= bit;
                } else {
                    bits[rule / 64] &= !bit;
                }
                next.next();
            }
            let row = self.row(&bits);
            if found.last().is_none_or(|last| last.1 != row) {
                found.push((start, row));
            }
            match next.peek() {
                Some(change) => start = change.0,
                None => return found,
            }
        }
    }

    fn side(&mut self, rules: &[Rule], is_ip4: bool, definitions: u32) -> AclSide {
        let fits = |net: Option<IpNet>| net.is_none_or(|net| net.addr().is_ipv4() == is_ip4);
        let applies: Vec<bool> = rules
            .iter()
            .map(|rule| fits(rule.source) && fits(rule.destination))
            .collect();
        let most = if is_ip4 {
            u128::from(u32::MAX)
        } else {
            u128::MAX
        };
        let spans = |span: &dyn Fn(&Rule) -> Span| -> Vec<Option<Span>> {
            rules
                .iter()
                .zip(&applies)
                .map(|(rule, applies)| applies.then(|| span(rule)))
                .collect()
        };
        let address = |net: Option<IpNet>| net.map_or((0, most), |net| addresses(&net));
        let ports = |range: Option<(u16, u16)>| {
            range.map_or((0, NO_PORTS), |(first, last)| {
                (u128::from(first), u128::from(last))
            })
        };
        let source = self.intervals(&spans(&|rule| address(rule.source)), most);
        let destination = self.intervals(&spans(&|rule| address(rule.destination)), most);
        let source_port = self.intervals(
            &spans(&|rule| rule.icmp.map_or_else(|| ports(rule.source_ports), icmp)),
            NO_PORTS,
        );
        let destination_port =
            self.intervals(&spans(&|rule| ports(rule.destination_ports)), NO_PORTS);
        let protocols = self.intervals(
            &spans(&|rule| {
                rule.protocol
                    .map_or((0, 255), |it| (u128::from(it), u128::from(it)))
            }),
            255,
        );
        let table: Vec<u64> = (0..256u128)
            .map(|protocol| {
                let at = protocols.partition_point(|entry| entry.0 <= protocol);
                u64::from(protocols[at - 1].1)
            })
            .collect();
        let words = self.count.div_ceil(64);
        let list = |builder: &mut Builder, intervals: &[(u128, u32)], wide: bool| {
            let entries: Vec<u64> = intervals
                .iter()
                .flat_map(|&(start, row)| {
                    let entry = if wide {
                        vec![(start >> 64) as u64, start as u64, u64::from(row)]
                    } else {
                        vec![((start as u64) << 32) | u64::from(row)]
                    };
                    entry.into_iter()
                })
                .collect();
            (builder.append(&entries), intervals.len() as u32)
        };
        let (source, sources) = list(self, &source, !is_ip4);
        let (destination, destinations) = list(self, &destination, !is_ip4);
        let (source_port, source_ports) = list(self, &source_port, false);
        let (destination_port, destination_ports) = list(self, &destination_port, false);
        AclSide {
            source,
            sources,
            destination,
            destinations,
            source_port,
            source_ports,
            destination_port,
            destination_ports,
            protocol: self.append(&table),
            words: words as u32,
            summaries: words.div_ceil(64) as u32,
            rules: definitions,
        }
    }
}

fn icmp((kind, code): (u8, Option<u8>)) -> Span {
    let first = u128::from(kind) << 8;
    code.map_or((first, first | 255), |code| {
        (first | u128::from(code), first | u128::from(code))
    })
}

fn addresses(net: &IpNet) -> Span {
    match net {
        IpNet::V4(net) => (
            u128::from(u32::from(net.network())),
            u128::from(u32::from(net.broadcast())),
        ),
        IpNet::V6(net) => (u128::from(net.network()), u128::from(net.broadcast())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_and_intervals_ascend() {
        let mut rules = Vec::new();
        for number in 0..100u8 {
            rules.push(Rule {
                source: Some(format!("10.0.{number}.0/24").parse().unwrap()),
                ..Rule::any(number % 2 == 0)
            });
        }
        let compiled = compile(&rules, 1000);
        assert_eq!(compiled.rules, 101);
        let side = &compiled.sides[0];
        assert_eq!((side.words, side.summaries), (2, 1));
        // Below, 100 prefixes that follow each other, above.
        assert_eq!(side.sources, 102);
        assert_eq!((side.destinations, compiled.sides[1].sources), (1, 1));
        let at = (side.source - 1000) as usize;
        let starts: Vec<u64> = compiled.words[at..at + 102]
            .iter()
            .map(|word| word >> 32)
            .collect();
        assert!(starts.is_sorted() && starts[0] == 0);
    }

    #[test]
    fn ten_thousand_rules_of_a_hundred_prefixes_take_few_words() {
        let rules: Vec<_> = (0..10_000u32)
            .map(|number| Rule {
                source: Some(format!("10.0.{}.0/24", number % 100).parse().unwrap()),
                protocol: Some(6),
                destination_ports: Some((
                    (number / 100) as u16 * 10,
                    (number / 100) as u16 * 10 + 5,
                )),
                ..Rule::any(true)
            })
            .collect();
        let compiled = compile(&rules, 0);
        assert!(compiled.words.len() < 150_000, "{}", compiled.words.len());
        assert_eq!(compiled.sides[0].summaries, 3);
    }
}
