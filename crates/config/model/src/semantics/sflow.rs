//! Rules about sFlow: who hears of it, what fits a datagram, and by which numbers interfaces are reported.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use super::Rules;
use crate::findings::at;
use crate::model::Interface;
use crate::scalar::Host;
use crate::sflow::{SflowAgent, SflowEncoding, SflowInterface};

/// Bytes of a datagram around the header of one expanded flow sample, worked out from the sFlow
/// version 5 specification: datagram with an IPv6 agent 40, record tag and length 8, expanded
/// flow sample 44, record tag and length 8, raw header 16; rounded up to leave room for padding
/// of the header to 4 bytes.
const AROUND_HEADER: u32 = 120;

/// Compact samples have so many bits for an interface.
const COMPACT_BITS: u32 = 24;

impl Rules<'_, '_> {
    pub(super) fn sflow(&mut self) {
        self.sflow_use();
        self.sflow_datagrams();
        self.sflow_agent();
        self.sflow_interfaces();
        self.os_indices();
        self.psample();
        self.collectors();
    }

    /// Sampling that nobody hears of, and collectors that hear nothing.
    fn sflow_use(&mut self) {
        let config = &self.candidate.config;
        let sampled = config
            .interfaces
            .iter()
            .find(|(_, interface)| interface.sflow)
            .map(|(name, _)| name.as_str());
        match sampled {
            Some(name)
                if !config.sflow.has_listeners()
                    && !self.findings.any_broken("sflow.collectors") =>
            {
                let message = format!("interface `{name}` is sampled, but there is no collector");
                let help = "add one, as `sflow: {collectors: [{address: 192.0.2.9}]}`".to_owned();
                self.warning(
                    &self.of_interface(name, "sflow"),
                    message,
                    "samples go nowhere",
                    help,
                );
            }
            Some(name) if config.sflow.sampling_rate == 0 => {
                let message = format!("interface `{name}` is sampled, but the sampling rate is 0");
                let help =
                    "set `sflow.sampling-rate` to 1 or more, or remove `sflow: true`".to_owned();
                self.warning(
                    at!["sflow", "sampling-rate"],
                    message,
                    "nothing is sampled",
                    help,
                );
            }
            None if !config.sflow.collectors.is_empty()
                && !self.findings.any_broken("interfaces") =>
            {
                let help = "add `sflow: true` to the interfaces that are to be sampled".to_owned();
                self.warning(
                    at!["sflow", "collectors"],
                    "there are collectors, but no interface is sampled".into(),
                    "",
                    help,
                );
            }
            _ => {}
        }
    }

    /// Settings of an interface that is not sampled have no effect.
    fn sflow_interfaces(&mut self) {
        let config = &self.candidate.config;
        let sampled_bonds = config
            .interfaces
            .values()
            .filter(|it| it.sflow)
            .filter_map(|it| it.bond.as_deref())
            .collect();
        for (name, other) in &config.sflow.interfaces {
            match config.interfaces.get(name) {
                Some(interface) if interface.sflow => {}
                Some(interface)
                    if interface.sub_interface().is_some() || interface.as_bond().is_some() =>
                {
                    self.sflow_of_ports(name, interface, other, &sampled_bonds);
                }
                Some(_) => {
                    let help = format!("set `sflow: true` on `{name}`, or remove this");
                    self.warning(
                        at!["sflow", "interfaces", name.as_str()],
                        format!("interface `{name}` is not sampled"),
                        "",
                        help,
                    );
                }
                None if self.findings.any_broken("interfaces") => {}
                None => {
                    let help = "one of `interfaces`".to_owned();
                    self.error(
                        at!["sflow", "interfaces", name.as_str()],
                        format!("there is no interface `{name}`"),
                        "",
                        help,
                    );
                }
            }
        }
    }

    /// The packets of a sub-interface or a bond are sampled at ports; its counters are reported when some port's are.
    fn sflow_of_ports(
        &mut self,
        name: &str,
        interface: &Interface,
        other: &SflowInterface,
        sampled_bonds: &HashSet<&str>,
    ) {
        let config = &self.candidate.config;
        let (what, ports, sampled) = match interface.sub_interface() {
            Some(sub) => {
                let parent = config.interfaces.get(&sub.parent);
                let sampled = sampled_bonds.contains(sub.parent.as_str())
                    || parent.is_some_and(|it| it.sflow);
                let members = parent.is_some_and(|it| it.as_bond().is_some());
                let ports = if members {
                    format!("the members of `{}`", sub.parent)
                } else {
                    format!("`{}`", sub.parent)
                };
                ("a sub-interface", ports, sampled)
            }
            None => (
                "a bond",
                "its members".to_owned(),
                sampled_bonds.contains(name),
            ),
        };
        let said = [
            ("sampling-rate", other.sampling_rate.is_some()),
            ("header-bytes", other.header_bytes.is_some()),
            ("direction", other.direction.is_some()),
        ];
        for (key, _) in said.into_iter().filter(|(_, is_said)| *is_said) {
            let message = format!("`{key}` is a port's, and `{name}` is {what}");
            let help =
                format!("set it for {ports}: packets are sampled where they come in or leave");
            self.error(at!["sflow", "interfaces", name, key], message, "", help);
        }
        if !sampled && !self.findings.any_broken("interfaces") {
            let help = format!("set `sflow: true` on {ports}, or remove this");
            self.warning(
                at!["sflow", "interfaces", name],
                format!("no port of interface `{name}` is sampled"),
                "",
                help,
            );
        }
    }

    /// Whose address the agent goes by.
    fn sflow_agent(&mut self) {
        let config = &self.candidate.config;
        if let Some(SflowAgent::Address(address)) = config.sflow.agent
            && is_of_many(address)
        {
            let help = "an address of one machine".to_owned();
            self.error(
                at!["sflow", "agent"],
                format!("`{address}` is no one's address"),
                "",
                help,
            );
        }
        match &config.sflow.agent {
            Some(SflowAgent::Address(address)) if !config.sflow.agent_cidr.is_empty() => {
                let message = format!("the agent goes by {address}, so that no address is elected");
                let help = "remove `agent` or this".to_owned();
                self.warning(at!["sflow", "agent.cidr"], message, "without effect", help);
            }
            Some(SflowAgent::Interface(_)) if self.findings.any_broken("interfaces") => {}
            Some(SflowAgent::Interface(name)) => match config.interfaces.get(name) {
                Some(interface) if interface.addresses.is_empty() => {
                    let help = format!(
                        "give it one, or name another; meanwhile one is elected as without `{name}`"
                    );
                    self.warning(
                        at!["sflow", "agent"],
                        format!("interface `{name}` has no address"),
                        "",
                        help,
                    );
                }
                Some(_) => {}
                None => {
                    let help = "one of `interfaces`, or an address".to_owned();
                    self.error(
                        at!["sflow", "agent"],
                        format!("there is no interface `{name}`"),
                        "",
                        help,
                    );
                }
            },
            _ => {}
        }
    }

    fn sflow_datagrams(&mut self) {
        let sflow = &self.candidate.config.sflow;
        let longest = sflow
            .interfaces
            .values()
            .filter_map(|other| other.header_bytes)
            .fold(sflow.header_bytes, u16::max);
        let needed = u32::from(longest).saturating_add(AROUND_HEADER);
        let header_broken = self.findings.is_broken(at!["sflow", "header-bytes"]);
        if u32::from(sflow.datagram_bytes) < needed && !header_broken {
            let message = format!(
                "a sample with {longest} header bytes does not fit a datagram of {}",
                sflow.datagram_bytes
            );
            self.error(
                at!["sflow", "datagram-bytes"],
                message,
                "",
                format!("at least {needed}, or fewer `header-bytes`"),
            );
        }
    }

    /// A collector has an address of one host or of a group; what is an address of any link needs a device.
    pub(super) fn collector_address(
        &mut self,
        section: &'static str,
        item: usize,
        host: &Host,
        device: Option<&String>,
    ) {
        let Host::Address(address) = *host else {
            return;
        };
        let path = at![section, "collectors", item, "address"];
        if address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            let help = "the address of a collector, or a group's".to_owned();
            let message = "nothing is sent to every station of a link".to_owned();
            self.error(path, message, "", help);
        } else if is_of_a_link(address) && device.is_none() {
            let help = "add `dev`: the device whose link it is on".to_owned();
            self.error(
                path,
                format!("{address} is an address of any link"),
                "",
                help,
            );
        }
    }

    /// Packets to a collector come from one address, which has the collector's IP version.
    pub(super) fn collector_source(
        &mut self,
        section: &'static str,
        item: usize,
        host: &Host,
        source: Option<IpAddr>,
    ) {
        let Some(source) = source else { return };
        let path = at![section, "collectors", item, "source"];
        if let Host::Address(address) = host
            && address.is_ipv4() != source.is_ipv4()
        {
            let message = format!("nothing can be sent from {source} to {address}");
            let help = format!("a source of the same IP version as {address}");
            self.error(path, message, "another IP version", help);
        } else if is_of_many(source) {
            let help = "an address of one machine".to_owned();
            self.error(path, format!("`{source}` is no one's address"), "", help);
        }
    }

    /// A collector that is reached by a table of the router leaves neither through the host nor by anything of the host.
    pub(super) fn collector_path(
        &mut self,
        section: &'static str,
        item: usize,
        table: Option<&str>,
        (namespace, dev, host): (&Option<String>, &Option<String>, bool),
    ) {
        let Some(table) = table else { return };
        if table != crate::DEFAULT_TABLE && !self.candidate.config.vrfs.contains_key(table) {
            self.error(
                at![section, "collectors", item, "table"],
                format!("there is no VRF `{table}`"),
                "",
                "a VRF of `vrfs`, or `default`".to_owned(),
            );
        }
        let other = [
            ("host", host),
            ("namespace", namespace.is_some()),
            ("dev", dev.is_some()),
        ];
        for (key, _) in other.iter().filter(|(_, is_there)| *is_there) {
            self.error(
                at![section, "collectors", item, *key],
                format!("`{key}` is of the host, `table` of the router: a collector is reached by one of them"),
                "",
                format!("leave out `table`, or `{key}`"),
            );
        }
    }

    fn collectors(&mut self) {
        let mut first = HashMap::new();
        let root = self.root;
        let written = root
            .value("sflow")
            .and_then(|sflow| sflow.value("collectors"))
            .map_or(0, |list| list.items().len());
        let collectors = &self.candidate.config.sflow.collectors;
        if written != collectors.len() {
            return; // One is broken, and indices do not match.
        }
        for (item, collector) in collectors.iter().enumerate() {
            let place = (
                &collector.address,
                collector.port,
                &collector.namespace,
                &collector.dev,
            );
            if let Some(earlier) = first.insert(place, item) {
                let message = format!(
                    "the collector {} port {} is listed twice",
                    collector.address, collector.port
                );
                let help = format!("the first is `sflow.collectors[{earlier}]`; keep one of them");
                self.error(
                    at!["sflow", "collectors", item],
                    message,
                    "the second one",
                    help,
                );
            }
            self.collector_source("sflow", item, &collector.address, collector.source);
            let conflicts = (&collector.namespace, &collector.dev, collector.host);
            self.collector_path("sflow", item, collector.table.as_deref(), conflicts);
            self.collector_address("sflow", item, &collector.address, collector.dev.as_ref());
        }
    }

    /// Whoever listens tells the two directions apart by their groups.
    fn psample(&mut self) {
        let Some(wanted) = &self.candidate.config.sflow.psample else {
            return;
        };
        if wanted.group == wanted.egress_group && !self.findings.any_broken("sflow.psample") {
            let message = format!("samples of both directions in group {}", wanted.group);
            let written = |key| {
                self.root
                    .value("sflow")
                    .and_then(|sflow| sflow.value("psample")?.value(key))
                    .is_some()
            };
            let (key, label) = match (written("group"), written("egress-group")) {
                (_, false) => ("group", "the default of `egress-group`"),
                (false, true) => ("egress-group", "the default of `group`"),
                (true, true) => ("egress-group", "the same as `group`"),
            };
            let help = "take another number for one of them; write both `group` and `egress-group`"
                .to_owned();
            self.error(at!["sflow", "psample", key], message, label, help);
        }
    }

    /// Numbers by which interfaces are reported: each one's own, and within what the encoding holds.
    fn os_indices(&mut self) {
        let sflow = &self.candidate.config.sflow;
        let mut first = HashMap::new();
        for (name, other) in &sflow.interfaces {
            let Some(index) = other.os_index else {
                continue;
            };
            if let Some(earlier) = first.insert(index, name) {
                let message =
                    format!("the interfaces `{earlier}` and `{name}` are both reported as {index}");
                let help = "a Linux interface is paired with one interface".to_owned();
                self.error(
                    at!["sflow", "interfaces", name.as_str(), "osIndex"],
                    message,
                    "the second one",
                    help,
                );
            }
        }
        let highest = first
            .keys()
            .copied()
            .chain([sflow.if_offset])
            .max()
            .unwrap_or(0);
        if sflow.os_index
            && sflow.encoding == SflowEncoding::Compact
            && highest >> COMPACT_BITS != 0
        {
            let message = format!(
                "compact samples have {COMPACT_BITS} bits for an interface, too few for {highest}"
            );
            let help = format!(
                "`encoding: expanded`, or numbers below {}",
                1_u32 << COMPACT_BITS
            );
            self.error(at!["sflow", "encoding"], message, "", help);
        }
    }
}

/// Whether an address is a group's or that of all stations, so that nothing comes from there.
fn is_of_many(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Whether an address says nothing without its link (RFC 4007).
fn is_of_a_link(address: IpAddr) -> bool {
    const MULTICAST_LINK_SCOPE: u16 = 0xff02;
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local() || address.segments()[0] == MULTICAST_LINK_SCOPE)
}
