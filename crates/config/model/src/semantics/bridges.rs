//! Rules about bridge domains: who may be in one, and what its entries name.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Rules;
use crate::bridge::Bridge;
use crate::findings::at;
use crate::tree::Node;

impl Rules<'_, '_> {
    pub(super) fn bridges(&mut self) {
        let bridges: &BTreeMap<String, Bridge> = &self.candidate.config.bridges;
        let mut owner: HashMap<&str, &str> = HashMap::new();
        for (name, bridge) in bridges {
            if self.findings.is_full() {
                return;
            }
            if name == "bd0" {
                let help = "number bridge domains from 1, as VPP does".to_owned();
                self.error(
                    at!["bridgedomains", "bd0"],
                    "`bd0` is reserved".into(),
                    "",
                    help,
                );
            }
            self.bridge_bvi(name, bridge, &mut owner);
            self.bridge_members(name, bridge, &mut owner);
            self.bridge_groups(name, bridge);
            self.bridge_statics(name, bridge);
            self.bridge_arp_entries(name, bridge);
        }
    }

    /// A BVI is a loopback with the domain's MTU, and of one domain only.
    fn bridge_bvi<'a>(
        &mut self,
        name: &'a str,
        bridge: &'a Bridge,
        owner: &mut HashMap<&'a str, &'a str>,
    ) {
        let Some(bvi) = &bridge.bvi else { return };
        let at = at!["bridgedomains", name, "bvi"];
        if !self.interface_exists(bvi, at) {
            return;
        }
        let Some(interface) = self.candidate.config.interfaces.get(bvi) else {
            return;
        };
        if !interface.is_loopback() {
            let message = format!("the BVI `{bvi}` is no loopback");
            return self.error(
                at,
                message,
                "",
                "name one of `loopbacks`, which is then the routed side of the domain".into(),
            );
        }
        if let Some(other) = owner.insert(bvi, name) {
            self.error(
                at,
                format!("`{bvi}` is the BVI of two bridge domains"),
                "the second one",
                format!("`{other}` has it already"),
            );
        }
        let broken = self
            .findings
            .is_broken(at!["loopbacks", bvi.as_str(), "mtu"])
            || self.findings.is_broken(at!["bridgedomains", name, "mtu"]);
        if interface.mtu != bridge.mtu && !broken {
            let message = format!(
                "the BVI `{bvi}` has MTU {}, its bridge domain {}",
                interface.mtu, bridge.mtu
            );
            self.error(at, message, "", "give both the same `mtu`".into());
        }
    }

    /// A member is an interface with a device's frames for nobody else: no address, no cross connect, one domain.
    fn bridge_members<'a>(
        &mut self,
        name: &'a str,
        bridge: &'a Bridge,
        owner: &mut HashMap<&'a str, &'a str>,
    ) {
        let root = self.root;
        let list = root
            .value("bridgedomains")
            .and_then(|it| it.value(name))
            .and_then(|it| it.value("interfaces"));
        let mut seen = HashSet::new();
        for (item, node) in list.map_or(&[][..], Node::items).iter().enumerate() {
            // The name as the model has it, whose life is long enough to be kept.
            let Some(member) = node.text().and_then(|text| bridge.interfaces.get(text)) else {
                continue;
            };
            let at = at!["bridgedomains", name, "interfaces", item];
            if !seen.insert(member) {
                self.error(
                    at,
                    format!("`{member}` is listed twice"),
                    "the second one",
                    "leave it out".into(),
                );
                continue;
            }
            if self.interface_exists(member, at) {
                self.bridge_member(name, bridge, member, item, owner);
            }
        }
    }

    fn bridge_member<'a>(
        &mut self,
        name: &'a str,
        bridge: &Bridge,
        member: &'a str,
        item: usize,
        owner: &mut HashMap<&'a str, &'a str>,
    ) {
        let config = &self.candidate.config;
        let Some(interface) = config.interfaces.get(member) else {
            return;
        };
        let at = at!["bridgedomains", name, "interfaces", item];
        if interface.is_loopback() {
            let message = format!("`{member}` is a loopback, behind which is nobody");
            return self.error(
                at,
                message,
                "",
                "write `bvi` to make it the routed side of the domain".into(),
            );
        }
        if let Some(other) = owner.insert(member, name) {
            return self.error(
                at,
                format!("`{member}` is in two bridge domains"),
                "the second one",
                format!("`{other}` has it already"),
            );
        }
        let source = config
            .interfaces
            .iter()
            .find(|(_, it)| it.l2xc.as_deref() == Some(member))
            .map(|(source, _)| source);
        if interface.l2xc.is_some() {
            self.error(
                at,
                format!("`{member}` is in a bridge domain and cross-connected"),
                "",
                "remove its `l2xc`".into(),
            );
        } else if let Some(source) = source {
            let message =
                format!("`{member}` is in a bridge domain and the target of a cross connect");
            self.error(at, message, "", format!("remove the `l2xc` of `{source}`"));
        }
        if !interface.addresses.is_empty() {
            let message = format!("`{member}` is in a bridge domain and has addresses");
            self.error(
                at,
                message,
                "these are never used",
                "give the addresses to a loopback and make it the domain's `bvi`".into(),
            );
        }
        if interface.mpls {
            let message = format!("`{member}` is in a bridge domain and takes labels");
            self.error(
                at,
                message,
                "",
                "remove its `mpls`, or give it to a loopback that is the domain's `bvi`".into(),
            );
        }
        let broken = self.findings.is_broken(at!["interfaces", member, "mtu"])
            || self.findings.is_broken(at!["bridgedomains", name, "mtu"]);
        if interface.mtu != bridge.mtu && !broken {
            let message = format!(
                "`{member}` has MTU {}, its bridge domain {}",
                interface.mtu, bridge.mtu
            );
            self.error(
                at,
                message,
                "",
                "give both the same `mtu`: a bridge cannot fragment".into(),
            );
        }
    }

    fn bridge_groups(&mut self, name: &str, bridge: &Bridge) {
        let root = self.root;
        let list = root
            .value("bridgedomains")
            .and_then(|it| it.value(name))
            .and_then(|it| it.value("split-horizon-groups"));
        let mut seen = HashSet::new();
        for (item, node) in list.map_or(&[][..], Node::items).iter().enumerate() {
            let Some(member) = node.value("interface").and_then(Node::text) else {
                continue;
            };
            let at = at![
                "bridgedomains",
                name,
                "split-horizon-groups",
                item,
                "interface"
            ];
            if !seen.insert(member) {
                self.error(
                    at,
                    format!("`{member}` is in two split-horizon groups"),
                    "the second one",
                    "leave one out".into(),
                );
            } else if !bridge.interfaces.contains(member) {
                self.not_a_member(at, name, member);
            }
        }
    }

    fn bridge_statics(&mut self, name: &str, bridge: &Bridge) {
        let root = self.root;
        let list = root
            .value("bridgedomains")
            .and_then(|it| it.value(name))
            .and_then(|it| it.value("static-macs"));
        let mut seen = HashSet::new();
        for (item, node) in list.map_or(&[][..], Node::items).iter().enumerate() {
            let Some(member) = node.value("interface").and_then(Node::text) else {
                continue;
            };
            if !bridge.interfaces.contains(member) {
                self.not_a_member(
                    at!["bridgedomains", name, "static-macs", item, "interface"],
                    name,
                    member,
                );
            }
            let Some(mac) = node
                .value("mac")
                .and_then(Node::text)
                .and_then(|text| text.parse::<crate::MacAddr>().ok())
            else {
                continue;
            };
            if !seen.insert(mac) {
                let at = at!["bridgedomains", name, "static-macs", item, "mac"];
                self.error(
                    at,
                    format!("a second static entry for {mac}"),
                    "the second one",
                    "a station is in one place".into(),
                );
            }
        }
    }

    /// An address is one station's, and is asked for when somebody wants to know.
    fn bridge_arp_entries(&mut self, name: &str, bridge: &Bridge) {
        let root = self.root;
        let list = root
            .value("bridgedomains")
            .and_then(|it| it.value(name))
            .and_then(|it| it.value("arp-entries"));
        let mut seen = HashSet::new();
        for (item, node) in list.map_or(&[][..], Node::items).iter().enumerate() {
            let Some(address) = node
                .value("address")
                .and_then(Node::text)
                .and_then(|text| text.parse::<std::net::IpAddr>().ok())
            else {
                continue;
            };
            if !seen.insert(address) {
                let at = at!["bridgedomains", name, "arp-entries", item, "address"];
                self.error(
                    at,
                    format!("a second entry for {address}"),
                    "the second one",
                    "an address is one station's".into(),
                );
            }
        }
        let broken = ["arp-termination", "arp-unicast-forward"]
            .into_iter()
            .any(|key| {
                self.findings
                    .is_broken(at!["bridgedomains", name, "settings", key])
            });
        if !(seen.is_empty()
            || bridge.settings.arp_termination
            || bridge.settings.arp_unicast_forward
            || broken)
        {
            let help = "add `settings: {arp-termination: true}`, or remove them".to_owned();
            self.warning(
                at!["bridgedomains", name, "arp-entries"],
                "these are used for nothing".into(),
                "",
                help,
            );
        }
    }

    fn not_a_member(&mut self, at: &[crate::findings::Segment<'_>], name: &str, member: &str) {
        if !self
            .findings
            .is_broken(at!["bridgedomains", name, "interfaces"])
        {
            let message = format!("`{member}` is no member of `{name}`");
            self.error(
                at,
                message,
                "",
                format!("add it to `interfaces` of `{name}`, or name a member"),
            );
        }
    }
}
