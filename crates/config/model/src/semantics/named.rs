//! Rules about the sections that make interfaces beside `interfaces`: `loopbacks` and `taps`.

use std::collections::HashMap;

use super::Rules;
use crate::findings::at;
use crate::keys::Names;
use crate::tree::Node;

impl Rules<'_, '_> {
    pub(super) fn named(&mut self) {
        let (root, none): (&Node<'_>, &[_]) = (self.root, &[]);
        let entries = |section: &str| root.value(section).map_or(none, Node::entries);
        let by_name = |section: &str| {
            entries(section)
                .iter()
                .map(|entry| (entry.key.as_ref(), &entry.value))
                .collect()
        };
        let (interfaces, taps): (HashMap<&str, &Node<'_>>, HashMap<&str, &Node<'_>>) =
            (by_name("interfaces"), by_name("taps"));
        for entry in entries("loopbacks") {
            if interfaces.contains_key(entry.key.as_ref()) {
                self.loopback_apart(&entry.key);
            }
        }
        for entry in entries("taps") {
            if let Some(interface) = interfaces.get(entry.key.as_ref()) {
                self.tap_device(&entry.key, interface);
                self.tap_mtu(&entry.key, &entry.value, interface);
            }
            self.tap_rings(&entry.key, &entry.value);
        }
        for entry in entries("interfaces")
            .iter()
            .filter(|entry| !taps.contains_key(entry.key.as_ref()))
        {
            self.tap_exists(&entry.key, &entry.value);
        }
    }

    /// A loopback has all its keys in one place.
    fn loopback_apart(&mut self, name: &str) {
        let message = format!("`{name}` is a loopback and an interface");
        let help = "keep it under `loopbacks` only, or give the interface another name".to_owned();
        self.error(at!["interfaces", name], message, "the second one", help);
    }

    /// What `taps` makes has its device from there.
    fn tap_device(&mut self, name: &str, interface: &Node<'_>) {
        if interface.value("device").is_some() {
            let message = format!("interface `{name}` has a device here and another under `taps`");
            self.error(
                at!["interfaces", name, "device"],
                message,
                "",
                "keep one of them".into(),
            );
        }
    }

    /// Both ends of a TAP have one MTU.
    fn tap_mtu(&mut self, name: &str, tap: &Node<'_>, interface: &Node<'_>) {
        let host = tap
            .value("host")
            .and_then(|host| host.value("mtu"))
            .and_then(Node::text);
        let own = interface.value("mtu").and_then(Node::text);
        let (Some(host), Some(own)) = (host, own) else {
            return;
        };
        if host != own && !self.findings.is_broken(at!["interfaces", name, "mtu"]) {
            let message =
                format!("the two ends of `{name}` differ in MTU: {own} here, {host} in Linux");
            self.error(
                at!["taps", name, "host", "mtu"],
                message,
                "",
                "give both the same `mtu`, or leave one out".into(),
            );
        }
    }

    fn tap_rings(&mut self, name: &str, tap: &Node<'_>) {
        for key in ["rx-ring-size", "tx-ring-size"] {
            if tap.value(key).is_some() {
                let message =
                    format!("`{key}` has no effect: the kernel's TAP has no ring of descriptors");
                self.warning(at!["taps", name, key], message, "", "leave it out".into());
            }
        }
    }

    /// vppcfg gives the names `tapN` to TAPs alone.
    fn tap_exists(&mut self, name: &str, interface: &Node<'_>) {
        let is_tap = Names::TAPS.numbers(name).is_some();
        if is_tap && interface.value("device").is_none() && !self.findings.is_broken(at!["taps"]) {
            let message = format!("there is no TAP `{name}`");
            let help = format!(
                "add `{name}: {{host: {{name: …}}}}` under `taps`, or give the interface a `device`"
            );
            self.error(at!["interfaces", name], message, "not under `taps`", help);
        }
    }
}
