//! Connected subnets, searched by address.
//!
//! Who reaches a next hop is asked once for each path of each route: by `check`, by `plan`, and by the
//! engine while it carries out the plan. So it is answered from a table for each prefix length, the
//! longest first, and a million routes over ten thousand subnets cost a few lookups each.
//!
//! A subnet belongs to a routing table and to an interface; both are named as the asker likes. Every
//! interface with IPv6 also has the subnet fe80::/64 (RFC 4291 section 2.5.6), which is the same on all of
//! them, so that a link-local address is only found on an interface that is named.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use crate::model::{Config, is_link_local};

/// Subnets by routing table `T`, each of an interface `N`.
#[derive(Debug, Clone)]
pub struct Subnets<T, N> {
    four: Lengths<T, N>,
    six: Lengths<T, N>,
}

/// For each prefix length, what is connected under it; the interfaces of a subnet in the order in which
/// they came.
type Lengths<T, N> = BTreeMap<u8, HashMap<(T, IpAddr), Vec<N>>>;

impl<T, N> Default for Subnets<T, N> {
    fn default() -> Self {
        Self {
            four: BTreeMap::new(),
            six: BTreeMap::new(),
        }
    }
}

/// The subnet that each interface with IPv6 has.
#[must_use]
pub fn link_local_subnet() -> IpNet {
    let first = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    IpNet::V6(Ipv6Net::new_assert(first, 64))
}

impl<'a> Subnets<Option<&'a str>, &'a str> {
    pub(crate) fn of(config: &'a Config) -> Self {
        Self::of_those(config, |_, _| true)
    }

    /// Those of the addresses for which `wanted` holds.
    pub(crate) fn of_those(config: &'a Config, wanted: impl Fn(&str, &IpNet) -> bool) -> Self {
        let mut subnets = Self::default();
        for (name, interface) in &config.interfaces {
            let vrf = interface.vrf.as_deref();
            let mut six = false;
            for net in interface.addresses.iter().filter(|net| wanted(name, net)) {
                six |= net.addr().is_ipv6();
                subnets.insert(vrf, name, net);
            }
            if six {
                subnets.insert(vrf, name, &link_local_subnet());
            }
        }
        subnets
    }
}

impl<T: Copy + Eq + Hash, N: Copy + Eq> Subnets<T, N> {
    /// The subnet of an own address is there; once, however many addresses it has.
    pub fn insert(&mut self, table: T, interface: N, net: &IpNet) {
        let interfaces = self
            .lengths(net.addr())
            .entry(net.prefix_len())
            .or_default()
            .entry((table, net.network()))
            .or_default();
        if !interfaces.contains(&interface) {
            interfaces.push(interface);
        }
    }

    /// The subnet of an own address is there no more.
    pub fn remove(&mut self, table: T, interface: N, net: &IpNet) {
        let lengths = self.lengths(net.addr());
        let Some(subnets) = lengths.get_mut(&net.prefix_len()) else {
            return;
        };
        let Some(interfaces) = subnets.get_mut(&(table, net.network())) else {
            return;
        };
        interfaces.retain(|other| *other != interface);
        if interfaces.is_empty() {
            subnets.remove(&(table, net.network()));
        }
        if subnets.is_empty() {
            lengths.remove(&net.prefix_len());
        }
    }

    fn lengths(&mut self, address: IpAddr) -> &mut Lengths<T, N> {
        if address.is_ipv4() {
            &mut self.four
        } else {
            &mut self.six
        }
    }

    /// The longest subnet of a table that holds `address`, on `interface` if one is named.
    #[must_use]
    pub fn find(&self, table: T, address: IpAddr, interface: Option<N>) -> Option<(N, IpNet)> {
        if interface.is_none() && is_link_local(address) {
            return None;
        }
        let lengths = if address.is_ipv4() {
            &self.four
        } else {
            &self.six
        };
        lengths.iter().rev().find_map(|(length, subnets)| {
            let net = IpNet::new(address, *length).ok()?.trunc();
            let interfaces = subnets.get(&(table, net.addr()))?;
            let found = match interface {
                Some(wanted) => interfaces.iter().find(|interface| **interface == wanted)?,
                None => interfaces.first()?,
            };
            Some((*found, net))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_the_table_is_found() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut subnets = Subnets::<u32, u32>::default();
        for (table, interface, text) in [
            (0, 1, "10.0.0.1/8"),
            (0, 2, "10.1.0.1/16"),
            (7, 3, "10.1.0.1/24"),
            (0, 4, "2001:db8::1/32"),
        ] {
            subnets.insert(table, interface, &net(text));
        }
        assert_eq!(
            subnets.find(0, address("10.1.0.9"), None),
            Some((2, net("10.1.0.0/16")))
        );
        assert_eq!(
            subnets.find(0, address("10.1.0.9"), Some(1)),
            Some((1, net("10.0.0.0/8")))
        );
        assert_eq!(
            subnets.find(7, address("10.1.0.9"), None),
            Some((3, net("10.1.0.0/24")))
        );
        assert_eq!(subnets.find(7, address("10.2.0.9"), None), None);
        assert_eq!(
            subnets.find(0, address("2001:db8:1::1"), None),
            Some((4, net("2001:db8::/32")))
        );
        subnets.remove(0, 2, &net("10.1.0.9/16"));
        assert_eq!(
            subnets.find(0, address("10.1.0.9"), None),
            Some((1, net("10.0.0.0/8")))
        );
    }

    #[test]
    fn link_local_addresses_are_found_on_a_named_interface_only() {
        let mut subnets = Subnets::<u32, u32>::default();
        let address: IpAddr = "fe80::9".parse().unwrap();
        for interface in [1, 2] {
            subnets.insert(0, interface, &link_local_subnet());
        }
        assert_eq!(subnets.find(0, address, None), None);
        assert_eq!(
            subnets.find(0, address, Some(2)),
            Some((2, link_local_subnet()))
        );
        assert_eq!(subnets.find(0, address, Some(3)), None);
    }
}
