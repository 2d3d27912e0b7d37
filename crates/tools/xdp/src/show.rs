//! What commands show: read from the pinned maps, so that it works also while no daemon runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::abi::{Counters, Port, fdb_flags};
use crate::acl::digest;
use crate::config::show_mac;
use crate::daemon::{Folders, monotonic};
use crate::error::{Error, Result};
use crate::maps::Maps;
use crate::reason;

/// A port with its counters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortView {
    /// The interface.
    pub name: String,
    /// The kernel's number of it.
    pub ifindex: u32,
    /// Packets received.
    pub in_packets: u64,
    /// Bytes received.
    pub in_bytes: u64,
    /// Packets sent: taken by the device.
    pub out_packets: u64,
    /// Bytes handed to the device.
    pub out_bytes: u64,
    /// Packets received that were multicast.
    pub in_multicast: u64,
    /// Packets received that were broadcast.
    pub in_broadcast: u64,
    /// Packets sent that were multicast.
    pub out_multicast: u64,
    /// Packets sent that were broadcast.
    pub out_broadcast: u64,
    /// Packets passed to the kernel.
    pub kernel: u64,
    /// Packets that were flooded.
    pub flooded: u64,
    /// Copies made of them beyond the first.
    pub replicated: i64,
    /// Copies of flooded packets that were not for this port.
    pub filtered: u64,
    /// ARP and ND that were answered.
    pub answered: u64,
    /// Addresses learned.
    pub learned: u64,
    /// Addresses that moved here.
    pub moved: u64,
    /// Addresses not learned: the table is full.
    pub learn_full: u64,
    /// Packets sampled.
    pub sampled: u64,
    /// Events lost because the ring was full.
    pub events_lost: u64,
    /// Packets dropped, by reason.
    pub drops: Vec<Drops>,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The reason's name.
    pub reason: &'static str,
    /// Packets.
    pub packets: u64,
}

/// Sums over all ports: `in + replicated = out + drops + kernel + filtered` when no packet is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Packets received.
    pub input: u64,
    /// Copies beyond the first.
    pub replicated: i64,
    /// Packets sent.
    pub output: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets passed to the kernel.
    pub kernel: u64,
    /// Copies that were not for their port.
    pub filtered: u64,
}

impl Balance {
    /// The sums.
    #[must_use]
    pub fn of(ports: &[PortView]) -> Balance {
        let mut sum = Balance::default();
        for port in ports {
            sum.input += port.in_packets;
            sum.replicated += port.replicated;
            sum.output += port.out_packets;
            sum.drops += port.drops.iter().map(|it| it.packets).sum::<u64>();
            sum.kernel += port.kernel;
            sum.filtered += port.filtered;
        }
        sum
    }

    /// Whether every packet is accounted for.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.input as i64 + self.replicated
            == (self.output + self.drops + self.kernel + self.filtered) as i64
    }
}

/// An address of the forwarding database.
#[derive(Clone, Debug, Serialize)]
pub struct FdbView {
    /// The VLAN.
    pub vlan: u16,
    /// The MAC address.
    pub mac: String,
    /// Port or bond; `kernel`.
    pub port: String,
    /// Whether it is configured.
    pub is_static: bool,
    /// Seconds since it was seen, of learned addresses.
    pub age: Option<u64>,
    /// Times that it moved.
    pub moves: u32,
}

/// A rule with its counters.
#[derive(Clone, Debug, Serialize)]
pub struct RuleView {
    /// The ACL.
    pub acl: String,
    /// The number from 0; the last one denies what no rule matches.
    pub rule: u32,
    /// The rule as it is configured; `None` = the end.
    pub text: Option<crate::config::Rule>,
    /// Packets that it decided.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All ports.
///
/// # Errors
/// When the maps cannot be read.
pub fn ports(folders: &Folders) -> Result<Vec<PortView>> {
    let maps = Maps::open(&folders.tables())?;
    let ports = maps.ports()?;
    views(&maps, &ports)
}

/// The views of ports with their entries.
pub(crate) fn views(maps: &Maps, ports: &BTreeMap<u32, Port>) -> Result<Vec<PortView>> {
    let mut views = Vec::new();
    for (ifindex, port) in ports {
        views.push(view(
            name_of(&port.name),
            *ifindex,
            &maps.counters(port.slot)?,
        ));
    }
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

/// A port of its counters. Frames that the device did not take were counted as sent before: they are
/// taken off, and become drops.
fn view(name: String, ifindex: u32, counters: &Counters) -> PortView {
    let full = counters.transmit_lost.saturating_sub(counters.egress_drops);
    let mut drops: Vec<Drops> = Vec::new();
    for known in reason::ALL {
        let packets = match known.number {
            reason::TRANSMIT_FULL => full,
            reason::REDIRECT_ERROR => counters.redirect_lost,
            number => counters
                .drops
                .get(usize::from(number))
                .copied()
                .unwrap_or(0),
        };
        if packets > 0 {
            drops.push(Drops {
                reason: known.name,
                packets,
            });
        }
    }
    PortView {
        name,
        ifindex,
        in_packets: counters.in_packets,
        in_bytes: counters.in_bytes,
        out_packets: counters.out_packets.saturating_sub(full),
        out_bytes: counters.out_bytes,
        in_multicast: counters.in_multicast,
        in_broadcast: counters.in_broadcast,
        out_multicast: counters.out_multicast,
        out_broadcast: counters.out_broadcast,
        kernel: counters.kernel,
        flooded: counters.flooded,
        replicated: counters.replicated as i64,
        filtered: counters.filtered,
        answered: counters.answered,
        learned: counters.learned,
        moved: counters.moved,
        learn_full: counters.learn_full,
        sampled: counters.sampled,
        events_lost: counters.events_lost,
        drops,
    }
}

fn name_of(bytes: &[u8; 16]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// The forwarding database, by VLAN and address.
///
/// # Errors
/// When the maps cannot be read.
pub fn fdb(folders: &Folders) -> Result<Vec<FdbView>> {
    let maps = Maps::open(&folders.tables())?;
    let mut names = BTreeMap::new();
    for port in maps.ports()?.values() {
        // Of a bond's members any is as good as another.
        names
            .entry(port.logical)
            .or_insert_with(|| name_of(&port.name));
    }
    let now = monotonic();
    let mut views: Vec<FdbView> = maps
        .fdb()?
        .into_iter()
        .map(|(key, entry)| {
            let is_static = entry.flags & fdb_flags::STATIC != 0;
            let port = match entry.flags & fdb_flags::TO_KERNEL {
                0 => names
                    .get(&entry.logical)
                    .cloned()
                    .unwrap_or_else(|| "(absent)".to_owned()),
                _ => "kernel".to_owned(),
            };
            FdbView {
                vlan: key.vlan,
                mac: show_mac(&key.mac),
                port,
                is_static,
                age: (!is_static).then(|| now.saturating_sub(entry.seen) / 1_000_000_000),
                moves: entry.moves,
            }
        })
        .collect();
    views.sort_by(|one, other| (one.vlan, &one.mac).cmp(&(other.vlan, &other.mac)));
    Ok(views)
}

/// The rules of all ACLs of the running configuration.
///
/// # Errors
/// When the running configuration or the maps cannot be read.
pub fn acls(folders: &Folders) -> Result<Vec<RuleView>> {
    let maps = Maps::open(&folders.tables())?;
    let path = folders.running();
    let text = std::fs::read(&path).map_err(|source| Error::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    let config = crate::config::check("running", &text).map_err(|_| Error::File {
        action: "read",
        path,
        source: std::io::Error::other("it is damaged"),
    })?;
    let (numbers, _, _) = maps.acl_sizes();
    let mut headers = BTreeMap::new();
    for number in 1..numbers {
        let acl = maps.acl(number)?;
        if acl.length > 0 {
            headers.insert(acl.digest, acl);
        }
    }
    let mut views = Vec::new();
    for (name, rules) in &config.acls {
        let Some(acl) = headers.get(&digest(name, rules)) else {
            continue;
        };
        for rule in 0..acl.rules {
            let hits = maps.rule_hits(acl.counters + rule)?;
            views.push(RuleView {
                acl: name.clone(),
                rule,
                text: rules.get(rule as usize).cloned(),
                packets: hits.packets,
                bytes: hits.bytes,
            });
        }
    }
    Ok(views)
}
