//! The third validation: a good file against what the machine has.
//!
//! Whether a device exists, how many queues it has, which MTU it can do, which cores there are and
//! how much memory is for the caller to find out and to put into a `System`; nothing here asks
//! the machine. The findings have their places in the file that was checked, so that "no device
//! `eth7`" points at the word in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::check::Checked;
use crate::device::{Device, Memif, MemifRole};
use crate::diagnostic::{Diagnostic, Place, Severity, Source};
use crate::findings::{Findings, Remark, Segment, at};
use crate::model::{Config, Interface};
use crate::settings::Hugepages;
use crate::suggest::nearest;
use crate::tree::{Limits, Node, place_in, read};

/// What the machine has, as far as a configuration can ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// Linux network devices by name.
    pub devices: BTreeMap<String, SystemDevice>,
    /// The largest MTU that a driver of this build can carry, by the driver's word (`af-xdp`,
    /// `tap`, …); one that is not here has no bound of its own.
    pub driver_mtu: BTreeMap<String, u32>,
    /// Interfaces that the router runs already with the device and the MTU that the file says. What
    /// is wrong with those is a warning: refusing the file would change nothing about it.
    pub unchanged: BTreeSet<String>,
    /// What is in the way of sockets that the configuration wants to listen at, by their paths; those
    /// that can be had are not here.
    pub socket_obstacles: BTreeMap<PathBuf, SocketObstacle>,
    /// Network namespaces that the configuration names and the router cannot enter.
    pub namespace_obstacles: BTreeMap<String, NamespaceObstacle>,
    /// Cores that the router may run on.
    pub cores: BTreeSet<u16>,
    /// Memory that is free or can be freed, in bytes.
    pub memory_available_bytes: u64,
    /// Free hugepages, in bytes.
    pub hugepages_free_bytes: u64,
    /// What one buffer takes, in bytes.
    pub bytes_per_buffer: u64,
    /// Pools of `buffers.per-numa` buffers each that the router makes.
    pub pools: u16,
}

/// A Linux network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemDevice {
    /// What it is.
    pub kind: DeviceKind,
    /// Receive queues it has at most.
    pub max_queues: u16,
    /// The largest MTU it can do, in bytes.
    pub max_mtu: u32,
    /// What this machine uses it for itself.
    pub management: Management,
}

/// What a machine uses a network device for itself. Whoever takes such a device for the router may
/// lose the access to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Management {
    /// Addresses of the machine on it or on a device above it (VLAN, bridge), link-local ones not.
    pub addresses: Vec<IpAddr>,
    /// Whether a default route leads over it.
    pub default_route: bool,
    /// Addresses of SSH clients that are reached over it.
    pub ssh_clients: Vec<IpAddr>,
}

impl Management {
    /// Whether the machine uses the device for itself.
    #[must_use]
    pub fn is_used(&self) -> bool {
        *self != Self::default()
    }
}

impl fmt::Display for Management {
    /// What for: `the address 192.0.2.5, the default route and an SSH session from 192.0.2.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &[IpAddr]| {
            let shown: Vec<String> = all.iter().take(4).map(IpAddr::to_string).collect();
            let more = if all.len() > shown.len() { ", …" } else { "" };
            shown.join(", ") + more
        };
        let mut uses = Vec::new();
        match self.addresses.len() {
            0 => {}
            1 => uses.push(format!("the address {}", list(&self.addresses))),
            _ => uses.push(format!("the addresses {}", list(&self.addresses))),
        }
        if self.default_route {
            uses.push("the default route".to_owned());
        }
        if !self.ssh_clients.is_empty() {
            uses.push(format!("an SSH session from {}", list(&self.ssh_clients)));
        }
        match uses.split_last() {
            Some((last, [])) => f.write_str(last),
            Some((last, before)) => write!(f, "{} and {last}", before.join(", ")),
            None => f.write_str("nothing"),
        }
    }
}

/// What a Linux network device is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// It carries Ethernet frames from and to somewhere.
    Ethernet,
    /// A TAP or TUN.
    Tap,
    /// `lo`.
    Loopback,
    /// Anything else: it carries no Ethernet frames.
    Other,
}

/// Why nobody can listen at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketObstacle {
    /// The folder that it would lie in is not there.
    NoFolder,
    /// Something is there, and it is no socket.
    NotASocket,
}

/// Why a network namespace cannot be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceObstacle {
    /// There is none of this name.
    Missing,
    /// The router lacks the right: CAP_SYS_ADMIN, or its service's sandbox forbids it.
    Forbidden,
}

/// The network namespaces that a configuration names, with the places where it does.
fn namespaces(config: &Config) -> Vec<(Vec<Segment<'_>>, &str)> {
    let mut all = Vec::new();
    for (item, it) in config.sflow.collectors.iter().enumerate() {
        let at = at!["sflow", "collectors", item, "namespace"].to_vec();
        all.extend(it.namespace.as_deref().map(|name| (at, name)));
    }
    if let Some(name) = config
        .sflow
        .psample
        .as_ref()
        .and_then(|it| it.namespace.as_deref())
    {
        all.push((at!["sflow", "psample", "namespace"].to_vec(), name));
    }
    if let Some(name) = &config.linux.namespace {
        all.push((at!["linux", "namespace"].to_vec(), name));
    }
    for (item, it) in config.ipfix.collectors.iter().enumerate() {
        let at = at!["ipfix", "collectors", item, "namespace"].to_vec();
        all.extend(it.namespace.as_deref().map(|name| (at, name)));
    }
    all
}

/// The network namespaces that a configuration names.
#[must_use]
pub fn namespaces_of(config: &Config) -> BTreeSet<&str> {
    namespaces(config)
        .into_iter()
        .map(|(_, name)| name)
        .collect()
}

/// What is wrong with a good file on this machine: errors and warnings in the order of the file;
/// nothing when all of it can be had.
#[must_use]
pub fn check_system(checked: &Checked, system: &System) -> Vec<Diagnostic> {
    let mut asked = Asked {
        config: &checked.config,
        system,
        found: Vec::new(),
    };
    asked.interfaces();
    asked.cores();
    asked.memory();
    asked.namespaces();
    if asked.found.is_empty() {
        return Vec::new();
    }
    let mut findings = Findings::new(Source::new(&checked.file_name, &checked.text));
    // The text was read before, under bounds that need not be the usual ones.
    let limits = Limits {
        bytes: usize::MAX,
        separators: usize::MAX,
        nodes: usize::MAX,
        ..Limits::default()
    };
    let tree = read(&checked.text, &limits).ok();
    for (severity, path, remark) in asked.found {
        if findings.is_full() {
            break;
        }
        let Some(root) = tree.as_ref().map(|tree| &tree.root) else {
            findings.error(Place::START, &path, remark);
            continue;
        };
        let path = as_written(root, path);
        let place = place_in(root, &path);
        match severity {
            Severity::Error => findings.error(place, &path, remark),
            Severity::Warning => findings.warning(place, &path, remark),
        }
    }
    findings.finish().unwrap_or_else(|errors| errors)
}

/// The path of a TAP's name or MTU, where the file has it under `taps`.
fn as_written<'a>(root: &Node<'_>, path: Vec<Segment<'a>>) -> Vec<Segment<'a>> {
    let [
        Segment::Key("interfaces"),
        Segment::Key(name),
        ..,
        Segment::Key(last),
    ] = path.as_slice()
    else {
        return path;
    };
    let listed = |section: &str| root.value(section).and_then(|it| it.value(name));
    let elsewhere = *last == "name"
        || listed("interfaces")
            .and_then(|it| it.value("mtu"))
            .is_none();
    if listed("taps").is_some() && matches!(*last, "name" | "mtu") && elsewhere {
        return at!["taps", *name, "host", *last].to_vec();
    }
    path
}

struct Asked<'a> {
    config: &'a Config,
    system: &'a System,
    found: Vec<(Severity, Vec<Segment<'a>>, Remark)>,
}

impl<'a> Asked<'a> {
    fn error(&mut self, path: &[Segment<'a>], message: String, label: &str, help: String) {
        let unchanged = matches!(
            path,
            [Segment::Key("interfaces"), Segment::Key(name), ..]
                if self.system.unchanged.contains(*name)
        );
        self.found.push((
            if unchanged {
                Severity::Warning
            } else {
                Severity::Error
            },
            path.to_vec(),
            Remark::new(message, label, help),
        ));
    }

    fn interfaces(&mut self) {
        let config = self.config;
        for (name, interface) in &config.interfaces {
            // More than are shown.
            if self.found.len() > Findings::SHOWN {
                return;
            }
            match &interface.device {
                Some(Device::AfXdp {
                    name: device,
                    queues,
                    allow_management,
                    ..
                }) => {
                    self.ethernet(name, interface, device, *queues);
                    if !allow_management {
                        self.management(name, device);
                    }
                }
                Some(Device::Tap { name: device, .. }) => self.tap(name, device),
                Some(Device::Memif(memif)) => self.memif(name, memif),
                _ => {}
            }
            self.driver_mtu(name, interface);
        }
    }

    /// A device that the machine itself uses is taken only when the file says so.
    fn management(&mut self, name: &'a str, wanted: &str) {
        let system = self.system;
        let Some(used) = system.devices.get(wanted).map(|device| &device.management) else {
            return;
        };
        if used.is_used() {
            self.error(
                at!["interfaces", name, "device", "name"],
                format!("this machine uses the device `{wanted}` itself: it has {used}"),
                "Linux receives nothing from a device that the router takes",
                "choose another device; or set `allow-management: true` in this `device` and apply \
                 with `--confirm`, so that the change is undone if you lose access"
                    .into(),
            );
        }
    }

    /// A device that is to be served through AF_XDP.
    fn ethernet(&mut self, name: &'a str, interface: &Interface, wanted: &str, queues: u16) {
        let system = self.system;
        let at = at!["interfaces", name, "device", "name"];
        let Some(device) = system.devices.get(wanted) else {
            let near = nearest(wanted, system.devices.keys().map(String::as_str));
            let help = near.map_or_else(
                || self.devices_there(),
                |near| format!("did you mean `{near}`?"),
            );
            return self.error(
                at,
                format!("there is no network device `{wanted}`"),
                "not on this machine",
                help,
            );
        };
        if matches!(device.kind, DeviceKind::Loopback | DeviceKind::Other) {
            let help = self.devices_there();
            return self.error(
                at,
                format!("the device `{wanted}` carries no Ethernet frames"),
                "",
                help,
            );
        }
        if queues > device.max_queues {
            let message = format!(
                "the device `{wanted}` has {}, not {queues}",
                count(u64::from(device.max_queues), "queue")
            );
            self.error(
                at!["interfaces", name, "device", "queues"],
                message,
                "",
                format!("at most {}", device.max_queues),
            );
        }
        if u32::from(interface.mtu) > device.max_mtu {
            let message = format!(
                "the device `{wanted}` cannot do an MTU of {}",
                interface.mtu
            );
            self.error(
                at!["interfaces", name, "mtu"],
                message,
                "",
                format!("at most {}", device.max_mtu),
            );
        }
    }

    fn devices_there(&self) -> String {
        let usable = self.system.devices.iter().filter(|(_, device)| {
            device.kind == DeviceKind::Ethernet && !device.management.is_used()
        });
        let names: Vec<String> = usable
            .take(8)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if names.is_empty() {
            "this machine has no Ethernet device".into()
        } else {
            format!("there are {}", names.join(", "))
        }
    }

    /// A TAP is made, or one that is there is taken; anything else is in its way.
    fn tap(&mut self, name: &'a str, wanted: &str) {
        if self
            .system
            .devices
            .get(wanted)
            .is_some_and(|device| device.kind != DeviceKind::Tap)
        {
            let message = format!("there is a network device `{wanted}` already, and it is no TAP");
            let at = at!["interfaces", name, "device", "name"];
            self.error(at, message, "", "choose another name for the TAP".into());
        }
    }

    /// A namespace may be made later; a right that is missing stays missing.
    fn namespaces(&mut self) {
        for (at, name) in namespaces(self.config) {
            match self.system.namespace_obstacles.get(name) {
                None => {}
                Some(NamespaceObstacle::Missing) => {
                    let message = format!("there is no network namespace `{name}` (yet)");
                    let help = format!("make it with `ip netns add {name}`");
                    let remark = Remark::new(message, "", help);
                    self.found.push((Severity::Warning, at, remark));
                }
                Some(NamespaceObstacle::Forbidden) => {
                    let message =
                        format!("this router may not enter the network namespace `{name}`");
                    let help =
                        "it needs CAP_SYS_ADMIN; docs/security.md shows the lines for the service";
                    self.error(&at, message, "", help.into());
                }
            }
        }
    }

    /// A master makes its socket; a slave waits until there is one.
    fn memif(&mut self, name: &'a str, memif: &Memif) {
        let Some(obstacle) = self
            .system
            .socket_obstacles
            .get(&memif.socket)
            .filter(|_| memif.role == MemifRole::Master)
        else {
            return;
        };
        let (socket, at) = (
            memif.socket.display(),
            at!["interfaces", name, "device", "socket"],
        );
        match obstacle {
            SocketObstacle::NoFolder => {
                let message = format!("the folder of the socket `{socket}` is not there");
                self.error(at, message, "", "make it, or name another socket".into());
            }
            SocketObstacle::NotASocket => {
                self.error(
                    at,
                    format!("`{socket}` is there, and it is no socket"),
                    "",
                    "remove it, or name another socket".into(),
                );
            }
        }
    }

    fn driver_mtu(&mut self, name: &'a str, interface: &Interface) {
        let Some(device) = &interface.device else {
            return;
        };
        let most = self.system.driver_mtu.get(device.driver()).copied();
        if let Some(most) = most.filter(|most| u32::from(interface.mtu) > *most) {
            let message = format!(
                "driver {} cannot carry an MTU of {}",
                device.driver(),
                interface.mtu
            );
            // What AF_XDP carries depends on the kernel.
            let newer = if device.driver() == "af-xdp" {
                ", or use Linux 6.6, which hands over longer frames"
            } else {
                ""
            };
            self.error(
                at!["interfaces", name, "mtu"],
                message,
                "",
                format!("at most {most}{newer}"),
            );
        }
    }

    fn cores(&mut self) {
        let (workers, there) = (&self.config.workers, &self.system.cores);
        for (item, core) in workers
            .cores
            .iter()
            .enumerate()
            .filter(|(_, core)| !there.contains(core))
        {
            let numbers: Vec<String> = there.iter().take(64).map(u16::to_string).collect();
            let help = format!("the router may run on {}", numbers.join(", "));
            self.error(
                at!["workers", "cores", item],
                format!("there is no core {core} for a worker"),
                "",
                help,
            );
        }
        if usize::from(workers.count) > there.len() && workers.cores.is_empty() {
            let (workers, cores) = (
                count(u64::from(workers.count), "worker"),
                count(there.len() as u64, "core"),
            );
            let remark = Remark::new(
                format!("{workers} share {cores}"),
                "they wait for each other",
                "one worker for each core at most",
            );
            self.found
                .push((Severity::Warning, at!["workers", "count"].to_vec(), remark));
        }
    }

    /// The pool lies in hugepages wholly, or in ordinary memory.
    fn memory(&mut self) {
        let (buffers, system) = (&self.config.buffers, self.system);
        let each = system
            .bytes_per_buffer
            .saturating_mul(u64::from(system.pools.max(1)));
        let wanted = self.config.buffer_plan().chunks;
        let needed = each.saturating_mul(u64::from(wanted));
        let huge = if buffers.hugepages == Hugepages::Auto {
            system.hugepages_free_bytes
        } else {
            0
        };
        let most = system.memory_available_bytes.max(huge);
        if needed > most {
            let message = format!(
                "{} buffers take {} MiB, and {} MiB are free",
                wanted,
                needed >> 20,
                most >> 20
            );
            let help = format!(
                "at most {}, with nothing left for anything else",
                most.checked_div(each).unwrap_or(0)
            );
            self.error(at!["buffers", "per-numa"], message, "", help);
        }
    }
}

fn count(number: u64, what: &str) -> String {
    if number == 1 {
        format!("{number} {what}")
    } else {
        format!("{number} {what}s")
    }
}
