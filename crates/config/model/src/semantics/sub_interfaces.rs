//! Rules about sub-interfaces: their tags, and what their parent must be.

use std::collections::{HashMap, HashSet};

use super::Rules;
use crate::build::{Candidate, sub_entries};
use crate::device::Device;
use crate::findings::{Segment, at};
use crate::keys::Names;
use crate::model::{AdminState, Interface};
use crate::sub_interface::{Encapsulation, LAST_VLAN, SubInterface};
use crate::value::LONGEST_NAME;

/// Sub-interfaces with one tag by parent and tag, with name and MTU.
type Middles<'c> = HashMap<(&'c str, Encapsulation), (&'c str, u16)>;

impl<'a> Rules<'a, '_> {
    pub(super) fn sub_interfaces(&mut self) {
        let root = self.root;
        let mut same: HashMap<(&str, Encapsulation), &str> = HashMap::new();
        let tops: HashSet<&str> = root
            .value("interfaces")
            .map(|all| all.entries().iter().map(|entry| &*entry.key).collect())
            .unwrap_or_default();
        let middles = self.middles();
        for (parent, id, node) in sub_entries(root) {
            if self.findings.is_full() {
                return;
            }
            if crate::value::name(Names::SubInterface, id).is_err() {
                continue;
            }
            let name = SubInterface::name_of(parent, id);
            let interfaces = &self.candidate.config.interfaces;
            let path = at!["interfaces", parent, "sub-interfaces", id];
            if tops.contains(name.as_str()) {
                let message = format!("`{name}` is a sub-interface of `{parent}` and an interface");
                self.error(
                    path,
                    message,
                    "the second one",
                    "give the interface another name, or the sub-interface another number".into(),
                );
                continue;
            }
            let (Some(interface), Some(of)) = (interfaces.get(&name), interfaces.get(parent))
            else {
                continue;
            };
            let Some(Device::SubInterface(sub)) = &interface.device else {
                continue;
            };
            if crate::value::interface_name(&name).is_err()
                && crate::value::interface_name(parent).is_ok()
            {
                let message = format!("`{name}` is too long for the name of an interface");
                self.error(
                    path,
                    message,
                    "",
                    format!(
                        "names have at most {LONGEST_NAME} characters; shorten that of the parent"
                    ),
                );
            }
            if of.l2xc.is_some() {
                let message =
                    format!("`{parent}` has sub-interfaces and is cross-connected as a whole");
                let help = "remove its `l2xc`, or its `sub-interfaces`".to_owned();
                self.error(
                    at!["interfaces", parent, "l2xc"],
                    message,
                    "this takes every frame",
                    help,
                );
            }
            let broken = self.findings.is_broken(at![
                "interfaces",
                parent,
                "sub-interfaces",
                id,
                "encapsulation"
            ]) || ["dot1q", "dot1ad", "inner-dot1q", "exact-match"]
                .into_iter()
                .any(|key| {
                    self.findings.is_broken(at![
                        "interfaces",
                        parent,
                        "sub-interfaces",
                        id,
                        "encapsulation",
                        key
                    ])
                });
            if !broken && self.encapsulation(parent, id, sub, node.value("encapsulation").is_some())
            {
                let tags = &sub.encapsulation;
                if let Some(first) = same.insert((parent, *tags), id) {
                    let message =
                        format!("two sub-interfaces of `{parent}` have the encapsulation {tags}");
                    let help = format!("`{}` has it already", SubInterface::name_of(parent, first));
                    self.error(
                        at!["interfaces", parent, "sub-interfaces", id, "encapsulation"],
                        message,
                        "the second one",
                        help,
                    );
                }
                self.exact(parent, id, interface, tags);
                self.tag_rewrite(parent, id, interface, sub);
            }
            self.fits_parent(parent, id, interface, of);
            self.fits_middle(parent, id, interface, sub, &middles);
        }
    }

    /// The tags make sense together.
    fn encapsulation(&mut self, parent: &str, id: &str, sub: &SubInterface, written: bool) -> bool {
        let Encapsulation {
            dot1q,
            dot1ad,
            inner_dot1q,
            ..
        } = sub.encapsulation;
        let path = at!["interfaces", parent, "sub-interfaces", id, "encapsulation"];
        if !written {
            if dot1q.is_none() {
                let message = format!("{id} is no VLAN");
                let help = format!(
                    "add `encapsulation: {{dot1q: …}}`; without it the number is the VLAN, 1 to {LAST_VLAN}"
                );
                self.error(
                    at!["interfaces", parent, "sub-interfaces", id],
                    message,
                    "",
                    help,
                );
            }
            return dot1q.is_some();
        }
        self.tags_together(path, dot1q, dot1ad, inner_dot1q, true)
    }

    fn tags_together(
        &mut self,
        path: &[Segment<'_>],
        dot1q: Option<u16>,
        dot1ad: Option<u16>,
        inner: Option<u16>,
        needed: bool,
    ) -> bool {
        let (message, help) = match (dot1q, dot1ad, inner) {
            (Some(_), Some(_), _) => (
                "an outer tag cannot be both dot1q and dot1ad",
                "keep one of them; the tag behind it is `inner-dot1q`",
            ),
            (None, None, Some(_)) => (
                "there is an inner tag and no outer one",
                "add `dot1q` or `dot1ad`",
            ),
            (None, None, None) if needed => ("no tag is said", "add `dot1q` or `dot1ad`"),
            _ => return true,
        };
        self.error(path, message.into(), "", help.into());
        false
    }

    /// A router must know where the packet starts.
    fn exact(&mut self, parent: &str, id: &str, interface: &Interface, tags: &Encapsulation) {
        if interface.mpls && !tags.exact_match {
            let message = format!(
                "sub-interface `{}` takes labels and has no `exact-match`",
                SubInterface::name_of(parent, id)
            );
            let help = "add `exact-match: true` to its `encapsulation`".to_owned();
            self.error(
                at!["interfaces", parent, "sub-interfaces", id, "encapsulation"],
                message,
                "",
                help,
            );
        }
        if !interface.addresses.is_empty() && !tags.exact_match {
            let message = format!(
                "sub-interface `{}` has addresses and no `exact-match`",
                SubInterface::name_of(parent, id)
            );
            let help = "add `exact-match: true` to its `encapsulation`: what is routed has these tags and no other".to_owned();
            self.error(
                at!["interfaces", parent, "sub-interfaces", id, "encapsulation"],
                message,
                "",
                help,
            );
        }
    }

    fn tag_rewrite(&mut self, parent: &str, id: &str, interface: &Interface, sub: &SubInterface) {
        let Some(rewrite) = &sub.tag_rewrite else {
            return;
        };
        let path = at!["interfaces", parent, "sub-interfaces", id, "tag-rewrite"];
        let key = |key| [&path[..], &[Segment::from(key)]].concat();
        if ["pop", "dot1q", "dot1ad", "inner-dot1q"]
            .into_iter()
            .any(|name| self.findings.is_broken(&key(name)))
        {
            return;
        }
        if !interface.addresses.is_empty() {
            let message = format!(
                "sub-interface `{}` has addresses and a tag rewrite",
                SubInterface::name_of(parent, id)
            );
            return self.error(
                path,
                message,
                "",
                "remove one of them: what is routed loses its tags, and gets others where it leaves".into(),
            );
        }
        let there = sub.encapsulation.tags();
        if rewrite.pop > there {
            let message = format!("{} tags should go, and {there} are there", rewrite.pop);
            self.error(
                &key("pop"),
                message,
                "",
                "no more than the `encapsulation` has".into(),
            );
        }
        self.tags_together(
            path,
            rewrite.dot1q,
            rewrite.dot1ad,
            rewrite.inner_dot1q,
            false,
        );
    }

    /// A sub-interface is not more than its parent.
    fn fits_parent(&mut self, parent: &str, id: &str, interface: &Interface, of: &Interface) {
        let (name, key) = (SubInterface::name_of(parent, id), |key| {
            at_key(parent, id, key)
        });
        if interface.state == AdminState::Up
            && of.state == AdminState::Down
            && !self.findings.is_broken(at!["interfaces", parent, "state"])
        {
            let help = format!("add `state: down`, or take `{parent}` up");
            self.error(
                &key("state"),
                format!("sub-interface `{name}` is up and its parent is down"),
                "",
                help,
            );
        }
        if interface.mtu > of.mtu && !self.findings.is_broken(at!["interfaces", parent, "mtu"]) {
            let message = format!(
                "sub-interface `{name}` has MTU {}, which is larger than that of `{parent}`, {}",
                interface.mtu, of.mtu
            );
            self.error(
                &key("mtu"),
                message,
                "",
                "at most the MTU of its parent".into(),
            );
        }
    }

    /// Sub-interfaces with one tag, by it: the first of each in the order of names, with its MTU.
    fn middles(&self) -> Middles<'a> {
        let mut middles = Middles::new();
        let candidate: &'a Candidate = self.candidate;
        for (name, interface) in &candidate.config.interfaces {
            if let Some(Device::SubInterface(sub)) = &interface.device
                && sub.encapsulation.inner_dot1q.is_none()
                && sub.encapsulation.exact_match
            {
                let key = (sub.parent.as_str(), sub.encapsulation);
                middles.entry(key).or_insert((name, interface.mtu));
            }
        }
        middles
    }

    /// Of two sub-interfaces of which one has the other's tag and one more behind it, the latter is not more.
    fn fits_middle(
        &mut self,
        parent: &str,
        id: &str,
        interface: &Interface,
        sub: &SubInterface,
        middles: &Middles<'_>,
    ) {
        if sub.encapsulation.inner_dot1q.is_none() {
            return;
        }
        let middle = Encapsulation {
            inner_dot1q: None,
            exact_match: true,
            ..sub.encapsulation
        };
        let found = middles.get(&(parent, middle)).copied();
        if let Some((name, mtu)) = found.filter(|(_, mtu)| interface.mtu > *mtu) {
            let own = SubInterface::name_of(parent, id);
            let message = format!(
                "sub-interface `{own}` has MTU {}, which is larger than that of `{name}`, {mtu}",
                interface.mtu
            );
            self.error(
                &at_key(parent, id, "mtu"),
                message,
                "",
                format!("at most the MTU of `{name}`, whose tag is around its own"),
            );
        }
    }
}

fn at_key<'a>(parent: &'a str, id: &'a str, key: &'a str) -> [Segment<'a>; 5] {
    [
        "interfaces".into(),
        parent.into(),
        "sub-interfaces".into(),
        id.into(),
        key.into(),
    ]
}
