//! What is set in Linux and not in the configuration: addresses of TAPs, and the VRF devices that they belong to.
//!
//! It is laid over the configuration: the router runs `configuration + followed`, planned and applied as any change is, so that
//! an address of `ip address add` has the same effect as one of the file. The configuration itself, its dumps and
//! comparisons do not show it. Where both say something, the configuration wins: it names the VRF of an interface, or an
//! address that would overlap.
//!
//! The comparison is one of states, made whenever a TAP changes, and not a replay of events: the order in which the
//! kernel announces links, addresses and VRFs does not matter.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weir_config::{Config, Device, Vrf};

use crate::control::Control;

/// Addresses that are followed for one interface, at most.
const MOST_ADDRESSES: usize = 256;

/// What is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Addresses by interface.
    pub(crate) addresses: BTreeMap<String, BTreeSet<IpNet>>,
    /// The number of the table that an interface is in, by interface.
    pub(crate) tables: BTreeMap<String, u32>,
    /// Names of VRF devices by their table's number.
    pub(crate) vrfs: BTreeMap<u32, String>,
}

impl Followed {
    /// An address that was found at a TAP, and not put there from here.
    pub(super) fn add_address(&mut self, interface: &str, address: IpNet) {
        if weir_config::is_link_local(address.addr()) || address.addr().is_loopback() {
            return;
        }
        let all = self.addresses.entry(interface.to_owned()).or_default();
        if all.len() < MOST_ADDRESSES {
            all.insert(address);
        }
    }

    /// The configuration with what is followed, and what of it was taken over.
    fn laid_over(&self, mut config: Config) -> (Config, Followed) {
        let mut taken = Followed::default();
        for (name, table) in &self.tables {
            let Some(interface) = config
                .interfaces
                .get_mut(name)
                .filter(|it| it.vrf.is_none())
            else {
                continue;
            };
            let known = config.vrfs.iter().find(|(_, vrf)| vrf.table == *table);
            let vrf = match (known, self.vrfs.get(table)) {
                (Some((known, _)), _) => known.clone(),
                (None, Some(device)) if !config.vrfs.contains_key(device) => {
                    let vrf = Vrf {
                        table: *table,
                        description: None,
                    };
                    config.vrfs.insert(device.clone(), vrf);
                    taken.vrfs.insert(*table, device.clone());
                    device.clone()
                }
                _ => continue,
            };
            interface.vrf = Some(vrf);
            taken.tables.insert(name.clone(), *table);
        }
        for (name, addresses) in &self.addresses {
            for address in addresses {
                if is_free(&config, name, address)
                    && let Some(interface) = config.interfaces.get_mut(name)
                    && interface.addresses.insert(*address)
                {
                    let of = taken.addresses.entry(name.clone()).or_default();
                    of.insert(*address);
                }
            }
        }
        (config, taken)
    }

    /// The configuration without what was taken over.
    fn taken_off(&self, mut config: Config) -> Config {
        for (name, addresses) in &self.addresses {
            if let Some(interface) = config.interfaces.get_mut(name) {
                interface.addresses.retain(|it| !addresses.contains(it));
            }
        }
        for name in self.tables.keys() {
            if let Some(interface) = config.interfaces.get_mut(name) {
                interface.vrf = None;
            }
        }
        for name in self.vrfs.values() {
            config.vrfs.remove(name);
        }
        config
    }

    /// Whether the VRF of an interface was taken over from Linux.
    pub(super) fn has_table(&self, interface: &str) -> bool {
        self.tables.contains_key(interface)
    }

    /// The addresses of an interface that were taken over from Linux.
    pub(crate) fn addresses_of(&self, interface: &str) -> BTreeSet<IpNet> {
        self.addresses.get(interface).cloned().unwrap_or_default()
    }
}

/// Whether an interface may have an address beside what is configured.
fn is_free(config: &Config, name: &str, address: &IpNet) -> bool {
    let Some(own) = config.interfaces.get(name) else {
        return false;
    };
    if own.unnumbered.is_some() || own.l2xc.is_some() || own.bond.is_some() {
        return false;
    }
    let overlaps =
        |other: &IpNet| other.contains(&address.network()) || address.contains(&other.network());
    let mut others = config.interfaces.iter();
    !others
        .any(|(other, it)| other != name && it.vrf == own.vrf && it.addresses.iter().any(overlaps))
}

impl Control {
    /// The running configuration as it was given: without TAPs, and without what is followed of Linux.
    pub(crate) fn configured(&self) -> Config {
        let mut config = self.linux.followed.taken_off(self.config.clone());
        config
            .interfaces
            .retain(|_, it| !matches!(it.device, Some(Device::LinuxTap(_))));
        config
    }

    /// A wanted configuration as it is to run, and what of it is followed.
    pub(crate) fn as_it_runs(&self, wanted: &Config) -> (Config, Followed) {
        self.linux.wanted.laid_over(wanted.with_linux_taps())
    }

    /// Something else is to be followed.
    pub(super) fn want_followed(&mut self, wanted: Followed) {
        if self.linux.wanted != wanted {
            self.linux.wanted = wanted;
            self.linux.is_follow_due = true;
        }
    }

    /// Takes over what changed in Linux since the last time.
    pub(crate) fn follow_linux(&mut self) {
        if !std::mem::take(&mut self.linux.is_follow_due) {
            return;
        }
        let configured = self.configured();
        let result = self.apply(&configured).map(drop);
        let result = result.map_err(|error| error.to_string());
        // A table that is new has routes that were refused before.
        self.linux_trouble("follow", result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "interfaces:
  e0: { device: { driver: null }, addresses: [ 192.0.2.1/24 ] }
  e1: { device: { driver: null } }
  e2: { device: { driver: null }, vrf: blue, addresses: [ 192.0.2.1/24 ] }
vrfs: { blue: { table: 20 } }
linux: { interfaces: { e0: {}, e1: {} } }
";

    fn config() -> Config {
        weir_config::check("test.yaml", FILE).unwrap().0
    }

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_laid_over_and_taken_off() {
        let mut followed = Followed::default();
        for address in ["10.1.0.1/24", "fe80::1/64", "127.0.0.2/8", "2001:db8::1/64"] {
            followed.add_address("e1", net(address));
        }
        // It would overlap with that of e0, which is configured.
        followed.add_address("e1", net("192.0.2.9/25"));
        // That of the file is none of Linux's.
        followed.add_address("e0", net("192.0.2.1/24"));
        followed.add_address("gone", net("10.9.0.1/24"));
        let (runs, taken) = followed.laid_over(config());
        let own: Vec<String> = runs.interfaces["e1"]
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(own, ["10.1.0.1/24", "2001:db8::1/64"]);
        assert_eq!(taken.addresses.len(), 1);
        assert_eq!(taken.taken_off(runs), config());
    }

    #[test]
    fn vrf_devices_are_matched_by_the_number_of_their_table() {
        let mut followed = Followed::default();
        followed.tables.insert("e0".into(), 20);
        followed.tables.insert("e1".into(), 10);
        // The configuration says where e2 is.
        followed.tables.insert("e2".into(), 10);
        followed.vrfs.insert(20, "blue-device".into());
        followed.vrfs.insert(10, "red".into());
        let (runs, taken) = followed.laid_over(config());
        let vrf = |name: &str| runs.interfaces[name].vrf.clone();
        assert_eq!(vrf("e0").as_deref(), Some("blue"));
        assert_eq!(vrf("e1").as_deref(), Some("red"));
        assert_eq!(vrf("e2").as_deref(), Some("blue"));
        assert_eq!(runs.vrfs["red"].table, 10);
        assert!(taken.has_table("e0") && !taken.has_table("e2"));
        assert_eq!(taken.taken_off(runs), config());
        // A name that the configuration has for another table is not used.
        followed.vrfs.insert(10, "blue".into());
        let (runs, taken) = followed.laid_over(config());
        assert_eq!(runs.interfaces["e1"].vrf, None);
        assert!(!taken.has_table("e1"));
    }

    #[test]
    fn addresses_of_one_interface_are_bounded() {
        let mut followed = Followed::default();
        for number in 0..2 * MOST_ADDRESSES as u32 {
            let address = std::net::Ipv4Addr::from(0x0a00_0001 + (number << 8));
            followed.add_address("e1", IpNet::new(address.into(), 24).unwrap());
        }
        assert_eq!(followed.addresses["e1"].len(), MOST_ADDRESSES);
    }
}
