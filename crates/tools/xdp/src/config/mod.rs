//! The configuration of the XDP host path: a file of its own kind, in YAML.
//!
//! `parse` reads it with the bounds and findings of the router's files. Everything here is a plain value.

mod parse;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
pub use weir_config::{Diagnostic, IpNet};

pub use parse::{check, show_mac};
pub use plan::plan;

/// A MAC address.
pub type Mac = [u8; 6];

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Where programs run.
    pub mode: Mode,
    /// What becomes of frames of VLANs that are not configured.
    pub unconfigured: Unconfigured,
    /// Seconds after which a learned address is forgotten.
    pub ageing: u32,
    /// Seconds that idle connections of stateful rules are kept: TCP, others.
    pub connections: (u32, u32),
    /// Where metrics are served over plain HTTP, beside the API's socket.
    pub metrics: Option<SocketAddr>,
    /// Sampling, if any.
    pub sflow: Option<Sflow>,
    /// Ports by interface name.
    pub ports: BTreeMap<String, Port>,
    /// Bonds by name.
    pub bonds: BTreeMap<String, Bond>,
    /// ACLs by name.
    pub acls: BTreeMap<String, Vec<Rule>>,
}

/// How programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In the driver.
    #[default]
    Native,
    /// In the network stack, for devices whose driver has no XDP.
    Generic,
}

/// What becomes of frames of VLANs that are not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unconfigured {
    /// They go to the kernel, as if there were no program (fail-open).
    #[default]
    Kernel,
    /// They are dropped and counted (fail-closed).
    Drop,
}

/// Samples for sFlow collectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sflow {
    /// One packet in this many.
    pub rate: u32,
    /// Seconds between two reports of a sampled port's counters; 0 = never.
    pub polling_interval: u32,
    /// Dropped packets that are reported a second at most; 0 = none.
    pub drop_limit: u32,
    /// The agent's address.
    pub agent: IpAddr,
    /// Collectors.
    pub collectors: Vec<SocketAddr>,
}

/// What a port carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carries {
    /// Untagged frames of one VLAN.
    Access {
        /// The VLAN.
        vlan: u16,
        /// Tagged frames are carried inside it (QinQ).
        tunnel: bool,
        /// PCP and DEI are kept in a tag of VLAN 0.
        priority_tags: bool,
    },
    /// Tagged frames.
    Trunk {
        /// The VLANs.
        vlans: BTreeSet<u16>,
        /// The VLAN of untagged frames.
        native: Option<u16>,
        /// The tags' TPID.
        tpid: u16,
    },
    /// Packets are routed by the kernel's tables.
    Routed,
}

/// What becomes of frames whose destination is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Sent to all ports of the VLAN.
    Flood,
    /// Dropped and counted.
    Drop,
    /// Passed to the kernel.
    Kernel,
}

/// A limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Packets a second.
    pub packets: Option<u64>,
    /// Bits a second.
    pub bits: Option<u64>,
    /// Milliseconds at that rate that may come at once.
    pub burst_ms: u32,
}

/// Settings of a port, or of all members of a bond.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// What it carries.
    pub carries: Carries,
    /// The guest's MAC addresses.
    pub macs: Vec<Mac>,
    /// Prefixes that the guest may send from.
    pub addresses: Vec<IpNet>,
    /// Checks of what a guest sends: MAC, IP, DHCP servers and router advertisements.
    pub guard: Guard,
    /// Whether source addresses are learned.
    pub learn: bool,
    /// What becomes of frames to unknown destinations.
    pub unknown: Unknown,
    /// Whether ARP and ND for known addresses are answered.
    pub answer: bool,
    /// Whether isolated ports exchange frames with this one.
    pub isolated: bool,
    /// Whether link control frames (LACP, LLDP) go to the kernel; they are dropped otherwise.
    pub control: bool,
    /// PCP of pushed tags.
    pub priority: u8,
    /// The ACL of packets from the port.
    pub acl_in: Option<String>,
    /// The ACL of packets to the port.
    pub acl_out: Option<String>,
    /// The limit of packets from the port.
    pub police_in: Option<Limit>,
    /// The limit of packets to the port.
    pub police_out: Option<Limit>,
    /// The limit of packets from the port that are flooded.
    pub storm: Option<Limit>,
    /// Whether packets from the port are sampled.
    pub sample: bool,
}

/// Checks of what a guest sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Guard {
    /// The source MAC address is one of `macs`.
    pub mac: bool,
    /// The source address is in `addresses`.
    pub ip: bool,
    /// No DHCP server, no router advertisement.
    pub servers: bool,
}

/// Several interfaces as one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bond {
    /// Interfaces.
    pub members: Vec<String>,
    /// Settings of each.
    pub port: Port,
}

/// A rule of an ACL. All that is given must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Permit or deny.
    pub permit: bool,
    /// Permit the connection's other packets, both directions.
    pub stateful: bool,
    /// The source prefix.
    pub source: Option<IpNet>,
    /// The destination prefix.
    pub destination: Option<IpNet>,
    /// The IP protocol.
    pub protocol: Option<u8>,
    /// First and last source port.
    pub source_ports: Option<(u16, u16)>,
    /// First and last destination port.
    pub destination_ports: Option<(u16, u16)>,
    /// ICMP type, and code.
    pub icmp: Option<(u8, Option<u8>)>,
    /// TCP flags: mask and value.
    pub tcp_flags: Option<(u8, u8)>,
}

impl Rule {
    /// A rule that matches every packet.
    #[must_use]
    pub fn any(permit: bool) -> Rule {
        Rule {
            permit,
            stateful: false,
            source: None,
            destination: None,
            protocol: None,
            source_ports: None,
            destination_ports: None,
            icmp: None,
            tcp_flags: None,
        }
    }
}

impl std::fmt::Display for Rule {
    /// What the rule matches, in the keys of the file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |(first, last): (u16, u16)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        };
        let flags = |(mask, set): (u8, u8)| {
            let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
            let asked = (0..8).filter(|bit| mask >> bit & 1 == 1);
            asked
                .map(|bit| {
                    let not = if set >> bit & 1 == 1 { "" } else { "!" };
                    format!("{not}{}", names[bit])
                })
                .collect::<Vec<_>>()
                .join(",")
        };
        let parts: Vec<String> = [
            self.source.map(|net| format!("source {net}")),
            self.destination.map(|net| format!("destination {net}")),
            self.protocol.map(|number| format!("protocol {number}")),
            self.source_ports
                .map(|ports| format!("source-port {}", range(ports))),
            self.destination_ports
                .map(|ports| format!("destination-port {}", range(ports))),
            self.icmp.map(|(kind, code)| {
                code.map_or_else(
                    || format!("icmp-type {kind}"),
                    |code| format!("icmp-type {kind} icmp-code {code}"),
                )
            }),
            self.tcp_flags.map(|it| format!("tcp-flags {}", flags(it))),
            self.stateful.then(|| "stateful".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            f.write_str("any")
        } else {
            f.write_str(&parts.join(" "))
        }
    }
}

impl Config {
    /// Every interface with its settings and its bond.
    pub fn interfaces(&self) -> impl Iterator<Item = (&str, &Port, Option<&str>)> {
        let ports = self
            .ports
            .iter()
            .map(|(name, port)| (name.as_str(), port, None));
        let members = self.bonds.iter().flat_map(|(name, bond)| {
            bond.members
                .iter()
                .map(move |member| (member.as_str(), &bond.port, Some(name.as_str())))
        });
        ports.chain(members)
    }
}
