//! Values by prefix, found by a route that they cover: one lookup for each prefix length in use.

use std::collections::{BTreeSet, HashMap};

use ipnet::IpNet;

/// An index of values by prefix.
#[derive(Clone, Debug)]
pub struct PrefixIndex<T> {
    /// Prefix lengths in use, of IPv4 and IPv6.
    lengths: [BTreeSet<u8>; 2],
    values: HashMap<IpNet, Vec<T>>,
}

impl<T> Default for PrefixIndex<T> {
    fn default() -> Self {
        PrefixIndex {
            lengths: [BTreeSet::new(), BTreeSet::new()],
            values: HashMap::new(),
        }
    }
}

impl<T> PrefixIndex<T> {
    /// Adds a value. Host bits of the prefix are ignored.
    pub fn insert(&mut self, prefix: &IpNet, value: T) {
        let prefix = prefix.trunc();
        self.lengths[usize::from(prefix.addr().is_ipv6())].insert(prefix.prefix_len());
        self.values.entry(prefix).or_default().push(value);
    }

    /// The values of all prefixes that contain `route`, the shortest prefix first.
    pub fn covering(&self, route: &IpNet) -> impl DoubleEndedIterator<Item = (IpNet, &T)> + '_ {
        let route = *route;
        self.lengths[usize::from(route.addr().is_ipv6())]
            .range(..=route.prefix_len())
            .filter_map(move |length| {
                let prefix = IpNet::new(route.addr(), *length).ok()?.trunc();
                Some((prefix, self.values.get(&prefix)?))
            })
            .flat_map(|(prefix, values)| values.iter().map(move |value| (prefix, value)))
    }
}

impl<T> FromIterator<(IpNet, T)> for PrefixIndex<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(all: I) -> Self {
        let mut index = PrefixIndex::default();
        for (prefix, value) in all {
            index.insert(&prefix, value);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covering_prefixes_are_found_from_short_to_long() {
        let index: PrefixIndex<u32> = [
            ("0.0.0.0/0", 0),
            ("10.0.0.0/8", 8),
            ("10.1.0.0/16", 16),
            ("10.1.0.0/24", 24),
            ("::/0", 6),
        ]
        .into_iter()
        .map(|(prefix, value)| (prefix.parse().unwrap(), value))
        .collect();
        let found = |route: &str| -> Vec<u32> {
            index
                .covering(&route.parse().unwrap())
                .map(|(_, value)| *value)
                .collect()
        };
        assert_eq!(found("10.1.0.0/20"), [0, 8, 16]);
        assert_eq!(found("10.1.0.7/32"), [0, 8, 16, 24]);
        assert_eq!(found("11.0.0.0/8"), [0]);
        assert_eq!(found("2001:db8::/32"), [6]);
        assert_eq!(
            index
                .covering(&"10.0.0.0/8".parse().unwrap())
                .next_back()
                .unwrap()
                .1,
            &8
        );
    }
}
