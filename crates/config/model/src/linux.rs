//! `linux`: the interfaces that Linux has a TAP of, so that its routing daemons and tools use them.
//!
//! A TAP is an interface of its own in the model that the engine works with, under a name that no file can have
//! (`linux/xe0`). [`Config::with_linux_taps`] adds these interfaces; files, dumps and the API never show them as
//! configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weir_config_derive::Section;

use crate::device::Device;
use crate::model::{Config, Interface};

/// The interfaces that Linux has a TAP of, so that its routing daemons and tools use them. What is
/// for this router goes to the TAP, what Linux sends there leaves by the interface, and packets are
/// forwarded by the routes of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{namespace: dataplane}")]
pub struct Linux {
    /// The network namespace of the TAPs and routes, as `ip netns` names it; the router's own when
    /// absent.
    #[key(kind = NamespaceName, example = "dataplane")]
    pub namespace: Option<String>,
    /// Whether TAPs stay in Linux when the router stops: a restart then keeps their indexes, and
    /// addresses and routes that were set there. They go when `linux.interfaces` no longer has their
    /// interface.
    #[key(default = true, example = "false")]
    pub persistent: bool,
    /// Where BGP daemons send their routes by BMP (RFC 7854), in the namespace of the TAPs: AS
    /// paths and communities for sFlow and IPFIX; none when absent. Forwarding does not depend on
    /// it.
    pub bmp: Option<LinuxBmp>,
    /// Where FRR's zebra connects to with its module `dplane_fpm_nl`, in the namespace of the TAPs:
    /// its routes are read from there; none when absent.
    pub fpm: Option<LinuxFpm>,
    /// Interfaces by name.
    #[key(names = Interface, example = "{xe0: {name: e0}}")]
    pub interfaces: BTreeMap<String, LinuxInterface>,
}

/// Where BGP daemons connect to for the BGP Monitoring Protocol (RFC 7854).
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{port: 11019}")]
pub struct LinuxBmp {
    /// The own address to listen on.
    #[key(kind = ListenAddress, default = IpAddr::from([127, 0, 0, 1]), example = "192.0.2.1")]
    pub address: IpAddr,
    /// The TCP port.
    #[key(kind = Whole(1, 65_535), default = 11_019, example = "11020")]
    pub port: u16,
    /// Maximum number of paths that are kept, of all peers together; about 100 bytes each.
    #[key(kind = Whole(1, 16_000_000), default = 4_000_000, example = "1000000")]
    pub paths: u32,
}

/// Where FRR's zebra connects to (`dplane_fpm_nl`).
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{port: 2620}")]
pub struct LinuxFpm {
    /// The own address to listen on.
    #[key(kind = ListenAddress, default = IpAddr::from([127, 0, 0, 1]), example = "192.0.2.1")]
    pub address: IpAddr,
    /// The TCP port.
    #[key(kind = Whole(1, 65_535), default = 2620, example = "2621")]
    pub port: u16,
    /// Seconds for which zebra's routes stay after its connection has ended and it does not
    /// reconnect.
    #[key(kind = Whole(0, 86_400), default = 300, example = "120")]
    pub hold_time: u32,
}

/// How Linux sees an interface.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{name: e0}")]
pub struct LinuxInterface {
    /// The name of its TAP; the interface's own when absent.
    #[key(kind = LinuxName, example = "e0")]
    pub name: Option<String>,
}

/// The TAP that is an interface's other end in Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxTap {
    /// The interface.
    pub interface: String,
    /// The Linux name.
    pub name: String,
    /// The network namespace; the router's own when absent.
    pub namespace: Option<String>,
    /// It outlives the router.
    pub persistent: bool,
}

impl Linux {
    /// Whether Linux has nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// vppcfg's `lcp` of an interface: the same as an entry of `interfaces`, which takes precedence.
    pub(crate) fn add_lcp(&mut self, interface: &str, lcp: Option<String>) {
        if let Some(lcp) = lcp {
            // The TAP has the interface's own name where none is given.
            let name = (lcp != interface).then_some(lcp);
            let entry = self.interfaces.entry(interface.to_owned());
            entry.or_insert(LinuxInterface { name });
        }
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
                persistent: self.linux.persistent,
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
