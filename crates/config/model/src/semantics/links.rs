//! Rules about interfaces, their devices, queues and cross connects.

use std::collections::{HashMap, HashSet};

use super::Rules;
use crate::device::{Device, MemifRole};
use crate::findings::at;
use crate::model::Interface;

/// The largest MTU of a generator: what leaves by it lies in one buffer.
pub const GENERATOR_MTU: u16 = 2222;

impl Rules<'_, '_> {
    pub(super) fn links(&mut self) {
        self.l2xc();
        self.device_names();
        self.capture_files();
        self.memif_ends();
        self.streams();
        self.placement();
    }

    /// Cross connects: the target exists, is another interface and nobody else's target; both
    /// ends carry no addresses and have one MTU, because a cross connect cannot fragment.
    fn l2xc(&mut self) {
        let interfaces = &self.candidate.config.interfaces;
        let mut source_of: HashMap<&str, &str> = HashMap::new();
        let mut ends: HashSet<&str> = HashSet::new();
        for (name, interface) in interfaces {
            let Some(target) = &interface.l2xc else {
                continue;
            };
            let at = &self.of_interface(name, "l2xc");
            if target == name {
                self.error(
                    at,
                    format!("interface `{name}` is cross-connected to itself"),
                    "",
                    "name another interface".into(),
                );
                continue;
            }
            if !self.interface_exists(target, at) {
                continue;
            }
            if interfaces.get(target).is_some_and(Interface::is_loopback) {
                let message = format!("`{target}` is a loopback, which nothing can leave by");
                self.error(at, message, "", "name an interface with a device".into());
                continue;
            }
            if let Some(first) = source_of.insert(target, name) {
                let message = format!("interface `{target}` is the target of two cross connects");
                self.error(
                    at,
                    message,
                    "the second one",
                    format!("`{first}` is connected to it already"),
                );
            }
            if let Some(other) = interfaces.get(target) {
                self.l2xc_mtu(name, interface, target, other);
                for (end, settings, role) in
                    [(name, interface, "source"), (target, other, "target")]
                {
                    if ends.insert(end) && !settings.addresses.is_empty() {
                        self.l2xc_addresses(end, role, name);
                    }
                }
            }
        }
    }

    fn l2xc_mtu(&mut self, name: &str, interface: &Interface, target: &str, other: &Interface) {
        let broken = self.findings.is_broken(&self.of_interface(name, "mtu"))
            || self.findings.is_broken(&self.of_interface(target, "mtu"));
        if interface.mtu != other.mtu && !broken {
            let message = format!(
                "the two ends of a cross connect differ in MTU: `{name}` has {}, `{target}` has {}",
                interface.mtu, other.mtu
            );
            self.error(
                &self.of_interface(name, "l2xc"),
                message,
                "",
                "give both the same `mtu`".into(),
            );
        }
    }

    fn l2xc_addresses(&mut self, end: &str, role: &str, source: &str) {
        let message =
            format!("interface `{end}` is the {role} of a cross connect and has addresses");
        let help = format!("remove its `addresses`, or the `l2xc` of `{source}`");
        self.error(
            &self.of_interface(end, "addresses"),
            message,
            "these are never used",
            help,
        );
    }

    /// A Linux device belongs to one interface.
    fn device_names(&mut self) {
        let mut owner: HashMap<&str, &str> = HashMap::new();
        for (name, interface) in &self.candidate.config.interfaces {
            let Some(device) = interface.device.as_ref().and_then(Device::linux_name) else {
                continue;
            };
            if let Some(first) = owner.insert(device, name)
                && !self.findings.is_full()
            {
                let message = format!("the device `{device}` is used twice");
                let help = format!("interface `{first}` has it already");
                let in_taps = self
                    .root
                    .value("taps")
                    .and_then(|taps| taps.value(name))
                    .is_some();
                let taps = at!["taps", name.as_str(), "host", "name"];
                let at = if in_taps {
                    taps
                } else {
                    at!["interfaces", name.as_str(), "device", "name"]
                };
                self.error(at, message, "the second use", help);
            }
        }
    }

    /// A capture is read or written, and written by one interface only.
    fn capture_files(&mut self) {
        let captures = || {
            self.candidate
                .config
                .interfaces
                .iter()
                .filter_map(|(name, interface)| match &interface.device {
                    Some(Device::Pcap { input, output }) => {
                        Some((name.as_str(), input.as_deref(), output.as_deref()))
                    }
                    _ => None,
                })
        };
        let mut writer: HashMap<&std::path::Path, &str> = HashMap::new();
        let mut found = Vec::new();
        for (name, input, output) in captures() {
            if input.is_none() && output.is_none() {
                let help = "add `input: FILE`, `output: FILE` or both; a device without either is `driver: null`";
                found.push((
                    name,
                    None,
                    "this pcap device has neither input nor output".to_owned(),
                    help.to_owned(),
                ));
            }
            if let Some(file) = output
                && let Some(first) = writer.insert(file, name)
            {
                found.push((
                    name,
                    Some("output"),
                    format!("`{}` is written twice", file.display()),
                    format!("interface `{first}` writes it already"),
                ));
            }
        }
        for (name, input, _) in captures() {
            if let Some(file) = input
                && let Some(first) = writer.get(file)
            {
                let help = format!("interface `{first}` writes it; name another file");
                found.push((
                    name,
                    Some("input"),
                    format!("`{}` is read and written", file.display()),
                    help,
                ));
            }
        }
        for (name, key, message, help) in found {
            match key {
                Some(key) => self.error(at!["interfaces", name, "device", key], message, "", help),
                None => self.capture_without_files(name, message, help),
            }
        }
    }

    fn capture_without_files(&mut self, name: &str, message: String, help: String) {
        let broken = |key: &str| {
            self.findings
                .is_broken(at!["interfaces", name, "device", key])
        };
        if !broken("input") && !broken("output") {
            self.error(
                at!["interfaces", name, "device", "driver"],
                message,
                "",
                help,
            );
        }
    }

    /// At a socket, each id has one end of a role here: a second master would find it taken, a second
    /// slave would find the master taken. Both ends may be in one router. The API has its socket alone.
    fn memif_ends(&mut self) {
        let mut owner: HashMap<(&std::path::Path, u32, MemifRole), &str> = HashMap::new();
        for (name, interface) in &self.candidate.config.interfaces {
            let Some(Device::Memif(memif)) = &interface.device else {
                continue;
            };
            let socket = memif.socket.as_path();
            if socket == self.candidate.config.api.socket {
                let message = format!("the API listens at `{}`", socket.display());
                let at = at!["interfaces", name.as_str(), "device", "socket"];
                self.error(
                    at,
                    message,
                    "",
                    "name another socket, or change `api.socket`".into(),
                );
                continue;
            }
            let at = at!["interfaces", name.as_str(), "device", "id"];
            if self.findings.is_broken(at) {
                continue;
            }
            if let Some(first) = owner.insert((socket, memif.id, memif.role), name) {
                let message = format!(
                    "there are two {}s of memif {} at `{}`",
                    memif.role.word(),
                    memif.id,
                    socket.display()
                );
                let help = format!(
                    "interface `{first}` is the first; give each pair of ends an `id` of its own"
                );
                self.error(at, message, "the second one", help);
            }
        }
    }

    /// Generators carry what they can; names tell the streams of a device apart.
    fn streams(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            let Some(Device::Generator { streams }) = &interface.device else {
                continue;
            };
            if interface.mtu > GENERATOR_MTU {
                let message = format!("a generator cannot carry an MTU of {}", interface.mtu);
                self.error(
                    at!["interfaces", name.as_str(), "mtu"],
                    message,
                    "",
                    format!("at most {GENERATOR_MTU}"),
                );
            }
            let mut first: HashMap<&str, usize> = HashMap::new();
            for (item, stream) in streams.iter().enumerate() {
                if let Some(earlier) = first.insert(&stream.name, item) {
                    let at = at![
                        "interfaces",
                        name.as_str(),
                        "device",
                        "streams",
                        item,
                        "name"
                    ];
                    let help = format!("stream {earlier} has this name already; give each its own");
                    self.error(
                        at,
                        format!("two streams are called `{}`", stream.name),
                        "the second one",
                        help,
                    );
                }
            }
        }
    }

    /// Placement names queues that the device serves and workers that run.
    fn placement(&mut self) {
        let config = &self.candidate.config;
        let workers_broken = ["workers.cores", "workers.count"]
            .iter()
            .any(|key| self.findings.any_broken(key))
            || self.findings.is_broken(at!["workers"]);
        for (name, interface) in &config.interfaces {
            let placed = &interface.rx_queue_workers;
            let queues = interface.device.as_ref().map(Device::queues);
            if let Some(queues) = queues.filter(|queues| placed.len() > usize::from(*queues)) {
                let at = at!["interfaces", name.as_str(), "rx-queue-workers"];
                let broken =
                    self.findings
                        .is_broken(at!["interfaces", name.as_str(), "device", "queues"]);
                if !broken {
                    let message = format!(
                        "{} queues are placed, but the device of `{name}` serves {queues}",
                        placed.len()
                    );
                    self.error(
                        at,
                        message,
                        "",
                        "shorten the list, or raise `device.queues`".into(),
                    );
                }
            }
            for (item, worker) in placed
                .iter()
                .enumerate()
                .filter(|(_, worker)| **worker >= config.workers.count && !workers_broken)
            {
                let at = at!["interfaces", name.as_str(), "rx-queue-workers", item];
                let help = match config.workers.count {
                    1 => "the only worker is 0; more are made by `workers`".to_owned(),
                    count => format!("workers are 0 to {}; more are made by `workers`", count - 1),
                };
                self.error(at, format!("there is no worker {worker}"), "", help);
            }
        }
    }
}
