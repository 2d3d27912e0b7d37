//! `linux`: the interfaces that Linux has a TAP of, so that its routing daemons and tools use them.
//!
//! A TAP is an interface of its own in the model that the engine works with, under a name that no file can have
//! (`linux/xe0`). [`Config::with_linux_taps`] adds these interfaces; files, dumps and the API never show them as
//! configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::build::{named, number, parsed, text};
use crate::device::Device;
use crate::model::{Config, Interface};
use crate::tree::Node;

/// Which interfaces Linux has a TAP of, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Linux {
    /// The network namespace of the TAPs and routes; the router's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Interfaces by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, LinuxInterface>,
    /// Where FRR's zebra connects to, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpm: Option<LinuxFpm>,
    /// Where BGP daemons send their routes by BMP, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmp: Option<LinuxBmp>,
}

/// Where BGP daemons connect to for the BGP Monitoring Protocol (RFC 7854), in the namespace of the TAPs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct LinuxBmp {
    /// The own address.
    pub address: IpAddr,
    /// The TCP port.
    pub port: u16,
    /// Paths that are kept at most.
    pub paths: u32,
}

impl Default for LinuxBmp {
    fn default() -> Self {
        Self {
            address: IpAddr::from([127, 0, 0, 1]),
            port: 11_019,
            paths: 4_000_000,
        }
    }
}

/// Where FRR's zebra connects to (`dplane_fpm_nl`), in the namespace of the TAPs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct LinuxFpm {
    /// The own address.
    pub address: IpAddr,
    /// The TCP port.
    pub port: u16,
    /// Seconds for which routes stay when zebra has gone.
    pub hold_time: u32,
}

impl Default for LinuxFpm {
    fn default() -> Self {
        Self {
            address: IpAddr::from([127, 0, 0, 1]),
            port: 2620,
            hold_time: 300,
        }
    }
}

/// How Linux sees an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct LinuxInterface {
    /// The name of the TAP; the interface's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The TAP that is an interface's other end in Linux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinuxTap {
    /// The interface.
    pub interface: String,
    /// The Linux name.
    pub name: String,
    /// The network namespace; the router's own when absent.
    pub namespace: Option<String>,
}

impl Linux {
    /// Whether Linux has nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The Linux name of an interface, if Linux has it.
    #[must_use]
    pub fn name_of<'a>(&'a self, interface: &'a str) -> Option<&'a str> {
        let wanted = self.interfaces.get(interface)?;
        Some(wanted.name.as_deref().unwrap_or(interface))
    }
}

impl Config {
    /// The name of the TAP of an interface, as the engine has it.
    #[must_use]
    pub fn linux_tap_of(interface: &str) -> String {
        format!("linux/{interface}")
    }

    /// This configuration with the TAPs of `linux` as interfaces.
    #[must_use]
    pub fn with_linux_taps(&self) -> Self {
        let mut config = self.clone();
        config
            .interfaces
            .retain(|_, it| !matches!(it.device, Some(Device::LinuxTap(_))));
        for interface in self.linux.interfaces.keys() {
            let (Some(paired), Some(name)) = (
                self.interfaces.get(interface),
                self.linux.name_of(interface),
            ) else {
                continue;
            };
            let tap = LinuxTap {
                interface: interface.clone(),
                name: name.to_owned(),
                namespace: self.linux.namespace.clone(),
            };
            let added = Interface {
                device: Some(Device::LinuxTap(tap)),
                mtu: paired.mtu,
                ..Interface::default()
            };
            config
                .interfaces
                .insert(Self::linux_tap_of(interface), added);
        }
        config
    }
}

pub(crate) fn build(node: &Node<'_>) -> Linux {
    Linux {
        namespace: text(node, "namespace"),
        interfaces: named(node, "interfaces", |node| LinuxInterface {
            name: text(node, "name"),
        }),
        fpm: node.value("fpm").map(fpm),
        bmp: node.value("bmp").map(bmp),
    }
}

fn bmp(node: &Node<'_>) -> LinuxBmp {
    let default = LinuxBmp::default();
    LinuxBmp {
        address: parsed(node, "address").unwrap_or(default.address),
        port: number(node, "port").unwrap_or(default.port),
        paths: number(node, "paths").unwrap_or(default.paths),
    }
}

fn fpm(node: &Node<'_>) -> LinuxFpm {
    let default = LinuxFpm::default();
    LinuxFpm {
        address: parsed(node, "address").unwrap_or(default.address),
        port: number(node, "port").unwrap_or(default.port),
        hold_time: number(node, "hold-time").unwrap_or(default.hold_time),
    }
}
