//! Verification of AS paths by ASPA objects (draft-ietf-sidrops-aspa-verification).

use std::collections::{BTreeMap, BTreeSet};

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AspaState {
    /// Objects attest the whole path.
    Valid,
    /// Objects contradict it.
    Invalid,
    /// Objects attest a part of it.
    Unknown,
}

/// Whether the second network is a provider of the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hop {
    NoAttestation,
    NotProvider,
    Provider,
}

fn hop(aspas: &BTreeMap<u32, BTreeSet<u32>>, customer: u32, provider: u32) -> Hop {
    match aspas.get(&customer) {
        None => Hop::NoAttestation,
        Some(providers) if providers.contains(&provider) => Hop::Provider,
        Some(_) => Hop::NotProvider,
    }
}

/// Verifies a path, the neighbour first. `is_upstream` = it came from a customer, a peer or a route server.
#[must_use]
pub fn check(
    aspas: &BTreeMap<u32, BTreeSet<u32>>,
    path: &[u32],
    has_as_set: bool,
    is_upstream: bool,
) -> AspaState {
    if has_as_set || path.is_empty() {
        return AspaState::Invalid;
    }
    // The origin first, prepended numbers once.
    let mut asns: Vec<u32> = path.iter().rev().copied().collect();
    asns.dedup();
    let count = asns.len();
    let up: Vec<Hop> = asns
        .windows(2)
        .map(|pair| hop(aspas, pair[0], pair[1]))
        .collect();
    if is_upstream {
        return if up.contains(&Hop::NotProvider) {
            AspaState::Invalid
        } else if up.contains(&Hop::NoAttestation) {
            AspaState::Unknown
        } else {
            AspaState::Valid
        };
    }
    let down: Vec<Hop> = asns
        .windows(2)
        .rev()
        .map(|pair| hop(aspas, pair[1], pair[0]))
        .collect();
    // The number of networks up to the first hop that is one of these.
    let ramp = |hops: &[Hop], ends: &[Hop]| {
        let end = hops.iter().position(|it| ends.contains(it));
        end.map_or(count, |it| it + 1)
    };
    let contradicted = [Hop::NotProvider];
    let not_attested = [Hop::NotProvider, Hop::NoAttestation];
    if ramp(&up, &contradicted) + ramp(&down, &contradicted) < count {
        AspaState::Invalid
    } else if ramp(&up, &not_attested) + ramp(&down, &not_attested) < count {
        AspaState::Unknown
    } else {
        AspaState::Valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 is a customer of 20, 20 of 30; 40 of 30, 50 of 40.
    fn objects() -> BTreeMap<u32, BTreeSet<u32>> {
        [(10, 20), (20, 30), (40, 30), (50, 40)]
            .into_iter()
            .map(|(customer, provider)| (customer, BTreeSet::from([provider])))
            .collect()
    }

    #[test]
    fn paths_go_up_and_then_down() {
        let all = objects();
        let state = |path: &[u32], is_upstream| check(&all, path, false, is_upstream);
        assert_eq!(state(&[30, 20, 10], true), AspaState::Valid);
        assert_eq!(state(&[30, 20, 20, 10], true), AspaState::Valid);
        assert_eq!(state(&[20, 30], true), AspaState::Unknown);
        assert_eq!(state(&[10, 20, 30], true), AspaState::Invalid);
        assert_eq!(state(&[40, 20, 10], true), AspaState::Invalid);
        // Up from 10 to 30, and down to 50.
        assert_eq!(state(&[50, 40, 30, 20, 10], false), AspaState::Valid);
        assert_eq!(state(&[50, 40, 20, 10], false), AspaState::Valid);
        // 20 and 40 have other providers than 99, so that 99 is in a valley.
        assert_eq!(state(&[50, 40, 99, 20, 10], false), AspaState::Invalid);
        assert_eq!(state(&[99, 98, 97], false), AspaState::Unknown);
        assert_eq!(check(&all, &[30], true, true), AspaState::Invalid);
    }
}
