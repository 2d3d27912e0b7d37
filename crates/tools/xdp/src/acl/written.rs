//! The compiled ACLs in the maps: an ACL of other rules is written beside the earlier one, before ports refer to it.

use std::collections::BTreeMap;

use super::{Regions, Space, compile};
use crate::abi::{Acl, Bytes};
use crate::config::Rule;
use crate::error::{Error, Result};
use crate::maps::Maps;
use crate::state::bond_hash;

/// The compiled ACLs in the maps.
pub(crate) struct Acls {
    /// Number and header by digest of name and rules.
    known: BTreeMap<u64, (u32, Acl)>,
    words: Regions,
    hits: Regions,
    numbers: u32,
}

impl Acls {
    pub(crate) fn of(maps: &Maps) -> Result<Acls> {
        let (numbers, words, hits) = maps.acl_sizes();
        let mut acls = Acls {
            known: BTreeMap::new(),
            words: Regions::new(words),
            hits: Regions::new(hits),
            numbers,
        };
        for number in 1..numbers {
            let acl = maps.acl(number)?;
            if acl.length > 0 {
                acls.words.mark(Space {
                    base: acl.base,
                    length: acl.length,
                });
                acls.hits.mark(Space {
                    base: acl.counters,
                    length: acl.rules,
                });
                acls.known.insert(acl.digest, (number, acl));
            }
        }
        Ok(acls)
    }

    /// Writes ACLs that are not there yet, beside those that are; returns the number of each.
    pub(crate) fn write(
        &mut self,
        wanted: &BTreeMap<String, Vec<Rule>>,
        maps: &mut Maps,
    ) -> Result<BTreeMap<String, u32>> {
        let mut numbers = BTreeMap::new();
        for (name, rules) in wanted {
            let digest = digest(name, rules);
            let number = match self.known.get(&digest) {
                Some((number, _)) => *number,
                None => self.write_one(name, rules, digest, maps)?,
            };
            numbers.insert(name.clone(), number);
        }
        Ok(numbers)
    }

    fn write_one(
        &mut self,
        name: &str,
        rules: &[Rule],
        digest: u64,
        maps: &mut Maps,
    ) -> Result<u32> {
        let full = |table| Error::Full {
            table,
            reason: format!("ACL {name} with {} rules does not fit", rules.len()),
        };
        let length = compile(rules, 0).words.len() as u32;
        let words = self.words.take(length).ok_or_else(|| full("acl_words"))?;
        let Some(hits) = self.hits.take(rules.len() as u32 + 1) else {
            self.words.free(words);
            return Err(full("acl_hits"));
        };
        let used: Vec<u32> = self.known.values().map(|known| known.0).collect();
        let number = (1..self.numbers)
            .find(|number| !used.contains(number))
            .ok_or_else(|| full("acls"))?;
        let compiled = compile(rules, words.base);
        let acl = Acl {
            side: compiled.sides,
            counters: hits.base,
            stateful: u32::from(compiled.stateful),
            base: words.base,
            length,
            rules: compiled.rules,
            pad: 0,
            digest,
        };
        maps.write_acl(number, &acl, &compiled.words)?;
        self.known.insert(digest, (number, acl));
        Ok(number)
    }

    /// Frees ACLs that no port refers to any more.
    pub(crate) fn free_unused(
        &mut self,
        used: &BTreeMap<String, u32>,
        maps: &mut Maps,
    ) -> Result<()> {
        let unused: Vec<u64> = self
            .known
            .iter()
            .filter(|(_, (number, _))| !used.values().any(|it| it == number))
            .map(|(digest, _)| *digest)
            .collect();
        for digest in unused {
            if let Some((number, acl)) = self.known.remove(&digest) {
                maps.write_acl(number, &Acl::of_bytes(&[0; 128]), &[])?;
                self.words.free(Space {
                    base: acl.base,
                    length: acl.length,
                });
                self.hits.free(Space {
                    base: acl.counters,
                    length: acl.rules,
                });
            }
        }
        Ok(())
    }
}

/// A hash of an ACL's name and rules (FNV-1a).
#[must_use]
pub fn digest(name: &str, rules: &[Rule]) -> u64 {
    bond_hash(&format!("{name}\0{rules:?}"))
}
