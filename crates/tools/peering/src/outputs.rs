//! Files for other programs from the same section and data: host firewall, resolver, SNMP, VRRP, reverse DNS, registry
//! objects, backups, and access lists of the router itself.
//!
//! Writing is pure here; [`files`] checks with the program itself where it is installed, compares, replaces and
//! restores files.

pub mod files;
mod registry;
mod services;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;
use weir_config::Config;

use crate::model::Peering;
use crate::snapshot::Snapshot;

/// The `outputs` key: each part is written when it is there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Outputs {
    /// The name of this router in the DNS.
    pub host_name: Option<String>,
    /// Networks from which the router is managed.
    pub management: Vec<IpNet>,
    /// Rules of nftables for the host.
    pub nftables: Option<Nftables>,
    /// Unbound.
    pub unbound: Option<Unbound>,
    /// snmpd.
    pub snmpd: Option<Snmpd>,
    /// keepalived.
    pub keepalived: Option<Keepalived>,
    /// OSPF and BFD of BIRD.
    pub ospf: Option<Ospf>,
    /// Fragments of reverse zones, a file for each zone in a folder.
    pub reverse_dns: Option<ReverseDns>,
    /// Text of RIPE's aut-num and AS-set objects, and of MANRS.
    pub registry: Option<Registry>,
    /// borgmatic.
    pub borgmatic: Option<Borgmatic>,
    /// Access lists and uRPF of peering ports, as a part of the router's own file.
    pub access_lists: Option<AccessLists>,
}

/// Rules of nftables.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nftables {
    /// The file.
    pub file: PathBuf,
    /// Further TCP ports that management networks reach, besides SSH.
    #[serde(default)]
    pub management_ports: Vec<u16>,
}

/// Unbound's part of a configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Unbound {
    /// The file.
    pub file: PathBuf,
    /// Where it listens.
    #[serde(default)]
    pub listen: Vec<IpAddr>,
    /// Networks that may ask, besides the own prefixes.
    #[serde(default)]
    pub allow: Vec<IpNet>,
}

/// snmpd.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snmpd {
    /// The file.
    pub file: PathBuf,
    /// Where the router is.
    #[serde(default)]
    pub location: String,
    /// Whom to ask.
    #[serde(default)]
    pub contact: String,
    /// A file with the line `rocommunity …` or `createUser …`, included.
    pub credentials_file: Option<PathBuf>,
}

/// keepalived.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Keepalived {
    /// The file.
    pub file: PathBuf,
    /// Instances of VRRP by name.
    pub instances: BTreeMap<String, Vrrp>,
}

/// An instance of VRRP.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vrrp {
    /// The Linux interface.
    pub interface: String,
    /// The virtual router.
    pub id: u8,
    /// The priority.
    pub priority: u8,
    /// Virtual addresses of one family.
    pub addresses: Vec<IpNet>,
}

/// OSPF and BFD of BIRD.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ospf {
    /// The file, for an `include` of the section.
    pub file: PathBuf,
    /// Costs of interfaces by name.
    pub interfaces: BTreeMap<String, OspfInterface>,
}

/// An interface of OSPF.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OspfInterface {
    /// Its cost.
    #[serde(default = "cost")]
    pub cost: u16,
    /// Whether BFD watches it.
    #[serde(default)]
    pub bfd: bool,
    /// No neighbours, only the subnet.
    #[serde(default)]
    pub stub: bool,
    /// Traffic is moved away: the highest cost.
    #[serde(default)]
    pub maintenance: bool,
}

const fn cost() -> u16 {
    10
}

/// Fragments of reverse zones.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReverseDns {
    /// The folder.
    pub folder: PathBuf,
}

/// Text for registries.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Registry {
    /// The file.
    pub file: PathBuf,
    /// The AS-set whose members are customers.
    pub as_set: String,
    /// The mail address of the network operations centre.
    #[serde(default)]
    pub contact: String,
}

/// borgmatic.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Borgmatic {
    /// The file.
    pub file: PathBuf,
    /// Repositories.
    pub repositories: Vec<String>,
    /// Folders besides those of Weir and its outputs.
    #[serde(default)]
    pub directories: Vec<PathBuf>,
    /// Daily archives that are kept.
    #[serde(default = "week")]
    pub keep_daily: u16,
}

const fn week() -> u16 {
    7
}

/// Access lists of peering ports.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AccessLists {
    /// The file, a part of the router's.
    pub file: PathBuf,
}

/// A file that should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// What it is for, as the key names it.
    pub name: &'static str,
    /// The file.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// A program and its arguments that check it; `{}` is the file.
    pub check: &'static [&'static str],
}

/// All files that the section asks for.
///
/// # Errors
/// What cannot be written.
pub fn all(
    peering: &Peering,
    snapshot: &Snapshot,
    config: &Config,
) -> Result<Vec<Output>, crate::Error> {
    let of = &peering.outputs;
    let mut findings = services::findings(of);
    let mut all = Vec::new();
    let mut add = |name, file: &PathBuf, text: String, check| {
        all.push(Output {
            name,
            file: file.clone(),
            text,
            check,
        });
    };
    if let Some(it) = &of.nftables {
        let text = services::nftables(it, peering, config);
        add(
            "nftables",
            &it.file,
            text,
            &["nft", "--check", "--file", "{}"][..],
        );
    }
    if let Some(it) = &of.unbound {
        let text = services::unbound(it, peering);
        add("unbound", &it.file, text, &["unbound-checkconf", "{}"]);
    }
    if let Some(it) = &of.snmpd {
        add("snmpd", &it.file, services::snmpd(it, of), &[]);
    }
    if let Some(it) = &of.keepalived {
        let text = services::keepalived(it);
        add(
            "keepalived",
            &it.file,
            text,
            &["keepalived", "--config-test", "--use-file", "{}"],
        );
    }
    if let Some(it) = &of.ospf {
        add("ospf", &it.file, services::ospf(it), &[]);
    }
    if let Some(it) = &of.reverse_dns {
        match (&of.host_name, registry::reverse_zones(peering, config)) {
            (Some(host), zones) => {
                for (zone, text) in zones(host) {
                    add(
                        "reverse-dns",
                        &it.folder.join(format!("{zone}.zone")),
                        text,
                        &[],
                    );
                }
            }
            (None, _) => findings.push("outputs: reverse-dns: name the host-name".to_owned()),
        }
    }
    if let Some(it) = &of.registry {
        add("registry", &it.file, registry::registry(it, peering), &[]);
    }
    if let Some(it) = &of.borgmatic {
        let text = services::borgmatic(it, peering);
        add(
            "borgmatic",
            &it.file,
            text,
            &["borgmatic", "config", "validate", "--config", "{}"],
        );
    }
    if let Some(it) = &of.access_lists {
        match registry::access_lists(peering, snapshot, config) {
            Ok(text) => add("access-lists", &it.file, text, &[]),
            Err(mut more) => findings.append(&mut more),
        }
    }
    if findings.is_empty() {
        Ok(all)
    } else {
        Err(crate::Error::Findings(findings))
    }
}
