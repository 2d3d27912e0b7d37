//! Rules about bonds and their members, vppcfg's and those of this router.

use std::collections::{HashMap, HashSet};

use super::Rules;
use crate::bond::{BondMode, LacpRate, LoadBalance};
use crate::device::Device;
use crate::findings::at;
use crate::keys::Names;
use crate::tree::Node;

impl Rules<'_, '_> {
    pub(super) fn bonds(&mut self) {
        let (root, none): (&Node<'_>, &[_]) = (self.root, &[]);
        let bonds = root.value("bondethernets").map_or(none, Node::entries);
        let interfaces = root.value("interfaces").map_or(none, Node::entries);
        let sources: HashMap<&str, &str> = self
            .candidate
            .config
            .interfaces
            .iter()
            .filter_map(|(name, interface)| Some((interface.l2xc.as_deref()?, name.as_str())))
            .collect();
        let mut bond_of: HashMap<&str, &str> = HashMap::new();
        for entry in bonds {
            let name = entry.key.as_ref();
            self.bond_keys(name, &entry.value);
            for (item, member) in entry
                .value
                .value("interfaces")
                .map_or(&[][..], Node::items)
                .iter()
                .enumerate()
            {
                let Some(member) = member.text() else {
                    continue;
                };
                self.bond_member(name, item, member, &mut bond_of, &sources);
            }
        }
        let named: HashSet<&str> = bonds.iter().map(|entry| entry.key.as_ref()).collect();
        for entry in interfaces {
            if named.contains(entry.key.as_ref()) {
                self.bond_interface(&entry.key, &entry.value);
            } else {
                self.bond_exists(&entry.key, &entry.value);
            }
        }
    }

    /// Keys that mean something in some modes only.
    fn bond_keys(&mut self, name: &str, node: &Node<'_>) {
        let Some(Device::Bond(bond)) = self
            .candidate
            .config
            .interfaces
            .get(name)
            .and_then(|it| it.device.clone())
        else {
            return;
        };
        if self.findings.is_broken(at!["bondethernets", name, "mode"]) {
            return;
        }
        if !bond.balances()
            && bond.load_balance != LoadBalance::default()
            && node.value("load-balance").is_some()
        {
            let message = format!(
                "a bond in mode `{}` does not balance by flow",
                bond.mode.word()
            );
            let help = "remove `load-balance`, or choose mode `lacp` or `xor`".to_owned();
            self.error(
                at!["bondethernets", name, "load-balance"],
                message,
                "",
                help,
            );
        }
        if bond.mode != BondMode::Lacp && bond.lacp_rate != LacpRate::default() {
            let message = format!("a bond in mode `{}` does not speak LACP", bond.mode.word());
            self.error(
                at!["bondethernets", name, "lacp-rate"],
                message,
                "",
                "remove `lacp-rate`, or choose mode `lacp`".into(),
            );
        }
    }

    /// A member is a port that nothing else is done with, and that takes what the bond takes.
    fn bond_member<'a>(
        &mut self,
        bond: &'a str,
        item: usize,
        member: &'a str,
        bond_of: &mut HashMap<&'a str, &'a str>,
        sources: &HashMap<&str, &str>,
    ) {
        let at = at!["bondethernets", bond, "interfaces", item];
        if !self.interface_exists(member, at) {
            return;
        }
        let interfaces = &self.candidate.config.interfaces;
        let (Some(interface), Some(of)) = (interfaces.get(member), interfaces.get(bond)) else {
            return;
        };
        if let Some(first) = bond_of.insert(member, bond) {
            let message = format!("interface `{member}` is a member twice");
            self.error(
                at,
                message,
                "the second time",
                format!("it is in `{first}` already"),
            );
            return;
        }
        let wrong = match &interface.device {
            Some(Device::Bond(_)) => {
                Some(("is a bond itself", "name the ports that carry its frames"))
            }
            Some(Device::Loopback) => Some((
                "is a loopback, which carries no frames",
                "name an interface with a device",
            )),
            Some(Device::Pseudowire) => Some((
                "is a pseudowire",
                "name the ports that carry the bond's frames",
            )),
            Some(Device::Vxlan(_)) => Some((
                "is a VXLAN tunnel",
                "name the ports that carry the bond's frames",
            )),
            Some(Device::SubInterface(_)) => Some((
                "is a sub-interface",
                "name the ports that carry the bond's frames",
            )),
            _ if interfaces
                .values()
                .any(|it| it.sub_interface().is_some_and(|sub| sub.parent == member)) =>
            {
                Some((
                    "is a member of a bond and has sub-interfaces",
                    "give them to the bond",
                ))
            }
            _ if !interface.addresses.is_empty() => Some((
                "is a member of a bond and has addresses",
                "give the addresses to the bond",
            )),
            _ if self
                .candidate
                .config
                .bridges
                .values()
                .any(|bridge| bridge.role_of(member).is_some()) =>
            {
                Some((
                    "is a member of a bond and of a bridge domain",
                    "let the bond be the domain's member",
                ))
            }
            _ if !interface.acl.is_empty() => Some((
                "is a member of a bond and has access lists",
                "bind them to the bond",
            )),
            _ if !interface.police.is_empty() => Some((
                "is a member of a bond and has policers",
                "give them to the bond",
            )),
            _ if interface.mpls => Some((
                "is a member of a bond and takes labels",
                "let the bond take them",
            )),
            _ if interface.l2xc.is_some() => Some((
                "is a member of a bond and cross-connected",
                "connect the bond",
            )),
            _ => None,
        };
        if let Some((what, help)) = wrong {
            self.error(at, format!("interface `{member}` {what}"), "", help.into());
        } else if let Some(source) = sources.get(member) {
            let help = format!("let `{source}` be connected to the bond");
            self.error(
                at,
                format!(
                    "interface `{member}` is a member of a bond and the target of a cross connect"
                ),
                "",
                help,
            );
        }
        let broken = |name: &str| self.findings.is_broken(at!["interfaces", name, "mtu"]);
        if interface.mtu != of.mtu && !broken(member) && !broken(bond) {
            let message = format!(
                "`{member}` and its bond differ in MTU: {} and {}",
                interface.mtu, of.mtu
            );
            self.error(
                at,
                message,
                "",
                format!("give `{member}` and `{bond}` the same `mtu` under `interfaces`"),
            );
        }
    }

    /// What a bond has under `interfaces`.
    fn bond_interface(&mut self, name: &str, interface: &Node<'_>) {
        let odd = [
            (
                "device",
                "is a bond and has a device",
                "remove the device, or the bond",
            ),
            (
                "mac",
                "is a bond, whose MAC address stands under `bondethernets`",
                "move it there",
            ),
            (
                "rx-queue-workers",
                "is a bond, which has no queues of its own",
                "place those of its members",
            ),
        ];
        for (key, what, help) in odd {
            if interface.value(key).is_some() {
                self.error(
                    at!["interfaces", name, key],
                    format!("`{name}` {what}"),
                    "",
                    help.into(),
                );
            }
        }
        if self
            .candidate
            .config
            .interfaces
            .get(name)
            .is_some_and(|it| it.sflow)
        {
            let message = format!(
                "`{name}` is a bond; frames are sampled where they come in, at its members"
            );
            self.error(
                at!["interfaces", name, "sflow"],
                message,
                "",
                "set `sflow` on the members".into(),
            );
        }
    }

    /// vppcfg gives the names `BondEthernetN` to bonds alone.
    fn bond_exists(&mut self, name: &str, interface: &Node<'_>) {
        let is_bond = Names::BONDS.numbers(name).is_some();
        if is_bond
            && interface.value("device").is_none()
            && !self.findings.is_broken(at!["bondethernets"])
        {
            let message = format!("there is no bond `{name}`");
            let help = format!(
                "add `{name}: {{interfaces: […]}}` under `bondethernets`, or give the interface a `device`"
            );
            self.error(
                at!["interfaces", name],
                message,
                "not under `bondethernets`",
                help,
            );
        }
    }
}
