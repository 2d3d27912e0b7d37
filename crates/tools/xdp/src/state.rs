//! What the maps must hold: a pure function of the configuration, the links of the machine, and the numbers
//! that ports have. The daemon compares it with what the maps hold and writes the difference.
//!
//! Counters, learned addresses and connections are not part of it; they belong to the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use weir_config::IpNet;
use weir_netlink::watch::LinkState;

use crate::abi::{
    AddressKey, FdbEntry, FdbKey, Logical, MEMBERS, MacKey, Neighbor, NeighborKey, POLICERS,
    Policer, Port, SLOTS, VlanKey, fdb_flags, flags,
};
use crate::config::{Carries, Config, Limit, Mac, Port as PortConfig, Unconfigured, Unknown};

/// An interface of the machine, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The kernel's number.
    pub ifindex: u32,
    /// It can send: up, with carrier, not dormant, and not left out by the kernel's bond that it belongs to.
    pub running: bool,
    /// Bytes without Ethernet header.
    pub mtu: u32,
    /// Its own address.
    pub mac: Option<Mac>,
    /// Of a VLAN device: the ifindex of the link below, the VLAN and the tag's EtherType.
    pub vlan: Option<(u32, u16, u16)>,
}

impl From<&LinkState> for Link {
    /// The carrier decides, not the operational state (`IFF_RUNNING`). The kernel updates that state up to a
    /// second later, and sends redirected frames without it.
    fn from(link: &LinkState) -> Link {
        Link {
            ifindex: link.ifindex,
            running: link.up && link.carrier && !link.dormant && link.bond_active != Some(false),
            mtu: link.mtu,
            mac: link.mac,
            vlan: link.vlan.map(|(below, tag)| (below, tag.id, tag.protocol)),
        }
    }
}

/// Numbers of ports and bonds, which stay the same as long as they are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots(pub BTreeMap<String, u32>);

impl Slots {
    /// The number of a port; 0 is not used.
    fn of(&mut self, name: &str) -> Option<u32> {
        if let Some(slot) = self.0.get(name) {
            return Some(*slot);
        }
        let used: BTreeSet<u32> = self.0.values().copied().collect();
        let free = (1..SLOTS).find(|slot| !used.contains(slot))?;
        self.0.insert(name.to_owned(), free);
        Some(free)
    }

    /// Forgets ports that are not configured any more; returns their numbers.
    fn retain(&mut self, names: &BTreeSet<String>) -> Vec<u32> {
        let gone = self
            .0
            .iter()
            .filter(|(name, _)| !names.contains(*name))
            .map(|(_, slot)| *slot)
            .collect();
        self.0.retain(|name, _| names.contains(name));
        gone
    }
}

/// The key of a bond in [`Slots`]: no interface has a colon before its name.
#[must_use]
pub fn bond_key(name: &str) -> String {
    format!("bond:{name}")
}

/// A hash of a bond's name (FNV-1a), to find its number again after a restart.
#[must_use]
pub fn bond_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The content of the maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the maps' names")]
pub struct Tables {
    pub ports: BTreeMap<u32, Port>,
    pub logicals: BTreeMap<u32, Logical>,
    pub statics: BTreeMap<[u8; 8], FdbEntry>,
    pub guard_mac: BTreeMap<[u8; 8], u32>,
    pub guard_ip: BTreeMap<(u32, [u8; 20]), u32>,
    pub neighbors: BTreeMap<[u8; 20], Neighbor>,
    pub policers: BTreeMap<u32, Policer>,
    pub vlan_devices: BTreeMap<[u8; 8], u32>,
    pub vlan_parents: BTreeMap<u32, [u8; 8]>,
    pub transmit: BTreeMap<u32, u32>,
    pub flood: BTreeMap<u32, u32>,
    pub flood_bytes: u32,
}

/// Computes the tables. `acls` has the numbers of compiled ACLs. Also returns the numbers of ports that are
/// no longer configured; their counters can be set to 0.
#[must_use]
pub fn tables(
    config: &Config,
    links: &BTreeMap<String, Link>,
    acls: &BTreeMap<String, u32>,
    slots: &mut Slots,
) -> (Tables, Vec<u32>) {
    let names: BTreeSet<String> = config
        .interfaces()
        .flat_map(|(name, _, bond)| std::iter::once(name.to_owned()).chain(bond.map(bond_key)))
        .collect();
    let gone = slots.retain(&names);
    let mut builder = Builder {
        config,
        acls,
        tables: Tables::default(),
        longest: u32::MAX,
    };
    let mut designated = BTreeSet::new();
    for (name, settings, bond) in config.interfaces() {
        let Some(slot) = slots.of(name) else { continue };
        let logical = match bond {
            Some(bond) => slots.of(&bond_key(bond)).unwrap_or(slot),
            None => slot,
        };
        add_member(
            &mut builder.tables.logicals,
            logical,
            settings,
            links.get(name),
        );
        if let Some(link) = links.get(name) {
            // One member of a bond gets the copies of flooded frames.
            let floods =
                link.running && settings.carries != Carries::Routed && designated.insert(logical);
            builder.port(name, settings, link, (slot, logical), floods);
            if let Some(bond) = bond
                && let Some(port) = builder.tables.ports.get_mut(&link.ifindex)
            {
                port.bond = bond_hash(bond);
            }
        }
    }
    for link in links.values().filter(|link| link.running) {
        builder.vlan_device(link);
    }
    builder.tables.flood_bytes = builder.longest.saturating_add(18);
    (builder.tables, gone)
}

/// Where frames for ports and bonds go, for ports that have numbers. The same as in [`tables`], without the rest.
#[must_use]
pub fn logicals(
    config: &Config,
    links: &BTreeMap<String, Link>,
    slots: &Slots,
) -> BTreeMap<u32, Logical> {
    let mut logicals = BTreeMap::new();
    for (name, settings, bond) in config.interfaces() {
        let number = match bond {
            Some(bond) => slots.0.get(&bond_key(bond)),
            None => slots.0.get(name),
        };
        if let Some(number) = number {
            add_member(&mut logicals, *number, settings, links.get(name));
        }
    }
    logicals
}

fn add_member(
    logicals: &mut BTreeMap<u32, Logical>,
    number: u32,
    settings: &PortConfig,
    link: Option<&Link>,
) {
    let logical = logicals.entry(number).or_default();
    if settings.isolated {
        logical.flags |= flags::ISOLATE;
    }
    if let Some(link) = link.filter(|link| link.running)
        && (logical.members as usize) < MEMBERS
    {
        logical.ifindex[logical.members as usize] = link.ifindex;
        logical.members += 1;
    }
}

struct Builder<'c> {
    config: &'c Config,
    acls: &'c BTreeMap<String, u32>,
    tables: Tables,
    /// The smallest MTU of a flood port.
    longest: u32,
}

impl Builder<'_> {
    fn port(
        &mut self,
        name: &str,
        settings: &PortConfig,
        link: &Link,
        (slot, logical): (u32, u32),
        floods: bool,
    ) {
        let mut port = Port {
            slot,
            ifindex: link.ifindex,
            logical,
            mtu: link.mtu,
            priority: u16::from(settings.priority),
            ..Port::default()
        };
        for (to, from) in port.name.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        port.guest_mac = settings.macs.first().copied().unwrap_or_default();
        for net in &settings.addresses {
            match net.addr() {
                IpAddr::V4(ip) if net.prefix_len() == 32 && port.guest_ip4 == [0; 4] => {
                    port.guest_ip4 = ip.octets();
                }
                IpAddr::V6(ip) if net.prefix_len() == 128 && port.guest_ip6 == [0; 16] => {
                    port.guest_ip6 = ip.octets();
                }
                _ => (),
            }
        }
        port.flags = self.flags(settings) | if floods { flags::IN_FLOOD } else { 0 };
        match &settings.carries {
            Carries::Access { vlan, .. } => (port.vlan, port.tpid) = (*vlan, 0x8100),
            Carries::Trunk {
                vlans,
                native,
                tpid,
            } => {
                (port.vlan, port.tpid) = (native.unwrap_or(0), *tpid);
                for vlan in vlans {
                    if let Some(word) = port.vlans.get_mut(usize::from(*vlan / 64)) {
                        *word |= 1 << (vlan % 64);
                    }
                }
            }
            Carries::Routed => port.tpid = 0x8100,
        }
        let number = |acl: &Option<String>| {
            acl.as_ref()
                .and_then(|name| self.acls.get(name))
                .copied()
                .unwrap_or(0)
        };
        (port.acl_in, port.acl_out) = (number(&settings.acl_in), number(&settings.acl_out));
        self.tables.ports.insert(link.ifindex, port);
        if link.running {
            self.tables.transmit.insert(link.ifindex, link.ifindex);
        }
        if floods {
            self.tables.flood.insert(link.ifindex, link.ifindex);
            self.longest = self.longest.min(link.mtu);
        }
        for (kind, limit) in [&settings.police_in, &settings.police_out, &settings.storm]
            .into_iter()
            .enumerate()
        {
            if let Some(limit) = limit {
                self.tables
                    .policers
                    .insert(slot * POLICERS + kind as u32, policer(limit));
            }
        }
        self.guest(settings, link, slot, logical);
    }

    /// A VLAN device above a routed port.
    fn vlan_device(&mut self, link: &Link) {
        let Some((below, vlan, tpid)) = link.vlan else {
            return;
        };
        let is_routed = |port: &Port| port.flags & flags::ROUTED != 0;
        if self.tables.ports.get(&below).is_some_and(is_routed) {
            let key = VlanKey {
                ifindex: below,
                vlan,
                tpid,
            };
            let key = crate::abi::Bytes::to_bytes(&key);
            self.tables.vlan_devices.insert(key, link.ifindex);
            self.tables.vlan_parents.insert(link.ifindex, key);
        }
    }

    fn flags(&self, settings: &PortConfig) -> u32 {
        let mut bits = match settings.carries {
            Carries::Access {
                tunnel,
                priority_tags,
                ..
            } => {
                flags::ACCESS
                    | bit(tunnel, flags::TUNNEL)
                    | bit(priority_tags, flags::PRIORITY_TAGS)
            }
            Carries::Trunk { .. } => 0,
            Carries::Routed => flags::ROUTED | flags::ACCESS,
        };
        bits |= match settings.unknown {
            Unknown::Flood => flags::FLOOD_UNKNOWN,
            Unknown::Kernel => flags::KERNEL_UNKNOWN,
            Unknown::Drop => 0,
        };
        bits | bit(settings.learn, flags::LEARN)
            | bit(settings.guard.mac, flags::GUARD_MAC)
            | bit(settings.guard.ip, flags::GUARD_IP)
            | bit(settings.guard.servers, flags::GUARD_SERVER)
            | bit(
                self.config.unconfigured == Unconfigured::Kernel,
                flags::KERNEL_OTHER,
            )
            | bit(settings.police_in.is_some(), flags::POLICE_IN)
            | bit(settings.police_out.is_some(), flags::POLICE_OUT)
            | bit(settings.storm.is_some(), flags::POLICE_STORM)
            | bit(settings.sample, flags::SAMPLE)
            | bit(settings.control, flags::CONTROL_TO_KERNEL)
            | bit(settings.answer, flags::ANSWER)
            | bit(settings.isolated, flags::ISOLATE)
    }

    /// What is known of the guest behind a port, and the host's own address on an uplink.
    fn guest(&mut self, settings: &PortConfig, link: &Link, slot: u32, logical: u32) {
        let vlans: Vec<u16> = match &settings.carries {
            Carries::Access { vlan, .. } => vec![*vlan],
            Carries::Trunk { vlans, native, .. } => vlans.iter().copied().chain(*native).collect(),
            Carries::Routed => Vec::new(),
        };
        for &vlan in &vlans {
            let mut entry = |mac: Mac, logical, extra| {
                let entry = FdbEntry {
                    logical,
                    flags: fdb_flags::STATIC | extra,
                    ..FdbEntry::default()
                };
                self.tables.statics.insert(key(mac, vlan), entry);
            };
            settings.macs.iter().for_each(|mac| entry(*mac, logical, 0));
            if matches!(settings.carries, Carries::Trunk { .. })
                && let Some(mac) = link.mac
            {
                entry(mac, logical, fdb_flags::TO_KERNEL);
            }
        }
        for mac in &settings.macs {
            self.tables.guard_mac.insert(key(*mac, slot as u16), 1);
        }
        let mut prefixes = settings.addresses.clone();
        if prefixes.iter().any(|net| net.addr().is_ipv6()) {
            prefixes.extend(
                settings
                    .macs
                    .iter()
                    .map(|mac| IpNet::from(IpAddr::V6(link_local(*mac)))),
            );
        }
        for net in &prefixes {
            let (family, length) = if net.addr().is_ipv4() {
                (4, 32)
            } else {
                (6, 128)
            };
            let mut address = [0; 16];
            match net.addr() {
                IpAddr::V4(ip) => address[..4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => address = ip.octets(),
            }
            let guarded = AddressKey {
                slot: slot as u16,
                family,
                address,
            };
            let prefix = 32 + u32::from(net.prefix_len());
            self.tables
                .guard_ip
                .insert((prefix, crate::abi::Bytes::to_bytes(&guarded)), 1);
            if net.prefix_len() != length {
                continue;
            }
            let Some(mac) = settings.macs.first() else {
                continue;
            };
            let address = match net.addr() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            for &vlan in &vlans {
                let key = NeighborKey {
                    vlan: u32::from(vlan),
                    address,
                };
                let answer = Neighbor {
                    mac: *mac,
                    pad: 0,
                    logical,
                };
                self.tables
                    .neighbors
                    .insert(crate::abi::Bytes::to_bytes(&key), answer);
            }
        }
    }
}

fn bit(on: bool, bit: u32) -> u32 {
    if on { bit } else { 0 }
}

/// The key of a MAC address in a VLAN, or of a port.
fn key(mac: Mac, number: u16) -> [u8; 8] {
    const _: () = assert!(size_of::<FdbKey>() == 8 && size_of::<MacKey>() == 8);
    let mut key = [0; 8];
    key[..6].copy_from_slice(&mac);
    key[6..].copy_from_slice(&number.to_ne_bytes());
    key
}

/// The link-local address that a host forms of its MAC address (RFC 4291, appendix A).
fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(octets)
}

/// Times in nanoseconds << 8, as the programs have them.
fn policer(limit: &Limit) -> Policer {
    let second = 1_000_000_000u64 << 8;
    let burst = (u64::from(limit.burst_ms) * 1_000_000) << 8;
    let packet_cost = limit
        .packets
        .map_or(0, |rate| (second / rate.max(1)).max(1));
    let byte_cost = limit
        .bits
        .map_or(0, |rate| (second.saturating_mul(8) / rate.max(1)).max(1));
    Policer {
        packet_cost,
        // One packet must always fit into an empty bucket.
        packet_burst: burst.max(packet_cost),
        byte_cost,
        byte_burst: burst.max(byte_cost.saturating_mul(65_536)),
        ..Policer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_the_bond_of_the_kernel_leaves_out_is_not_used() {
        let link = |bond_active| {
            Link::from(&LinkState {
                bond_active,
                ..state(true, true, false)
            })
            .running
        };
        assert!(link(None) && link(Some(true)) && !link(Some(false)));
    }

    fn state(up: bool, carrier: bool, dormant: bool) -> LinkState {
        LinkState {
            ifindex: 1,
            name: "tap0".to_owned(),
            up,
            running: up,
            carrier,
            dormant,
            carrier_losses: 0,
            mtu: 1500,
            mac: None,
            vlan: None,
            bond_active: None,
        }
    }

    #[test]
    fn a_link_with_carrier_can_send_before_its_operational_state_says_so() {
        let link = |up, carrier, running, dormant| {
            Link::from(&LinkState {
                running,
                ..state(up, carrier, dormant)
            })
            .running
        };
        assert!(link(true, true, false, false));
        assert!(!link(true, false, true, false), "the carrier is lost");
        assert!(!link(true, true, false, true), "802.1X is not done");
        assert!(!link(false, true, true, false));
    }
}
