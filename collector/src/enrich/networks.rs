//! Prefixes with names: the longest one that has an address wins.
//!
//! The table is a map for each prefix length that is used, longest first. It is replaced as a whole and never changed.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::config::NetworkConfig;
use crate::row::{Country, NetworkInfo, address};

/// What the table has of one prefix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// What rows share.
    pub info: Arc<NetworkInfo>,
    /// Its country, used before that of databases.
    pub country: Country,
    /// Its AS number, used where records have none; 0 unknown.
    pub asn: u32,
}

/// The table.
#[derive(Debug, Default)]
pub struct Networks {
    /// By length, longest first.
    lengths: Vec<(u8, HashMap<u128, Network>)>,
}

impl Networks {
    /// A table of several lists; where a prefix is in two of them the first counts.
    pub fn new<'a>(lists: impl Iterator<Item = &'a BTreeMap<IpNet, NetworkConfig>>) -> Networks {
        let mut lengths: BTreeMap<u8, HashMap<u128, Network>> = BTreeMap::new();
        for (net, config) in lists.flatten() {
            // IPv4 is mapped into IPv6, as in the table of flows.
            let (base, length) = match net {
                IpNet::V4(v4) => (address(v4.network().into()), v4.prefix_len() + 96),
                IpNet::V6(v6) => (v6.network(), v6.prefix_len()),
            };
            let text = |text: &str| Arc::from(text);
            lengths
                .entry(length)
                .or_default()
                .entry(base.into())
                .or_insert_with(|| Network {
                    info: Arc::new(NetworkInfo {
                        name: text(&config.name),
                        role: text(&config.role),
                        site: text(&config.site),
                        tenant: text(&config.tenant),
                    }),
                    country: Country::new(&config.country),
                    asn: config.asn,
                });
        }
        Networks {
            lengths: lengths.into_iter().rev().collect(),
        }
    }

    /// The network with the longest prefix that has an address.
    pub fn find(&self, ip: Ipv6Addr) -> Option<&Network> {
        let bits = u128::from(ip);
        self.lengths.iter().find_map(|(length, names)| {
            let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
            names.get(&(bits & mask))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_names_an_address() {
        let list: BTreeMap<IpNet, NetworkConfig> = [
            ("10.0.0.0/8", "all"),
            ("10.1.0.0/16", "site"),
            ("2001:db8::/32", "six"),
            ("::/0", "rest"),
        ]
        .into_iter()
        .filter_map(|(net, name)| Some((net.parse().ok()?, name.into())))
        .collect();
        let second: BTreeMap<IpNet, NetworkConfig> =
            [("10.1.0.0/16", "hidden"), ("10.1.2.0/24", "more")]
                .into_iter()
                .filter_map(|(net, name)| Some((net.parse().ok()?, name.into())))
                .collect();
        let nets = Networks::new([&list, &second].into_iter());
        let find = |ip: &str| {
            let ip = ip.parse().map(address).ok()?;
            nets.find(ip).map(|network| network.info.name.to_string())
        };
        assert_eq!(find("10.1.2.3").as_deref(), Some("more"));
        assert_eq!(find("10.1.3.3").as_deref(), Some("site"));
        assert_eq!(find("10.2.2.3").as_deref(), Some("all"));
        assert_eq!(find("2001:db8::1").as_deref(), Some("six"));
        assert_eq!(find("192.0.2.1").as_deref(), Some("rest"));
    }
}
