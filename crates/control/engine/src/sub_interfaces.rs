//! Sub-interfaces on the control side: what they have from their parent, and the parent's table of them.
//!
//! A sub-interface is an interface without a port. Its link, its address and whether it can send are its
//! parent's, so they are worked out anew whenever the parent's are. The table by which workers
//! find it is the parent's, made once for all changes that are published together.

use weir_config::TagRewrite;
use weir_port::interface::Interface;
use weir_port::sub_interface::{Encapsulation, SubInterface, SubInterfaces, TagStack};
use weir_wire::EtherType;

use crate::control::Control;

impl Control {
    /// The names of an interface's sub-interfaces that there are.
    pub(crate) fn sub_interfaces_of(&self, parent: &str) -> Vec<String> {
        // All names that begin with the parent's and a dot; a slash is what comes after that.
        let names = self
            .config
            .interfaces
            .range(format!("{parent}.")..format!("{parent}/"));
        let own =
            names.filter(|(_, it)| it.sub_interface().is_some_and(|sub| sub.parent == parent));
        own.map(|(name, _)| name.clone())
            .filter(|name| self.interfaces.contains_key(name))
            .collect()
    }

    /// The state of a sub-interface that workers get.
    pub(crate) fn tagging(&self, sub: &weir_config::SubInterface) -> SubInterface {
        let (parent, encapsulation) = (
            self.index_of(&sub.parent),
            encapsulation(&sub.encapsulation),
        );
        match &sub.tag_rewrite {
            None => SubInterface::new(parent, encapsulation),
            Some(rewrite) => {
                SubInterface::with_rewrite(parent, encapsulation, rewrite.pop, pushed(rewrite))
            }
        }
    }

    /// Whether an interface's parent can send; the interface's own link and queues when it has none.
    pub(crate) fn can_send(&self, name: &str) -> bool {
        let parent = self
            .config
            .interfaces
            .get(name)
            .and_then(weir_config::Interface::sub_interface);
        match parent {
            Some(sub) => self
                .tables
                .interface(self.index_of(&sub.parent))
                .is_some_and(|parent| parent.can_send),
            None => self
                .interfaces
                .get(name)
                .is_some_and(|attached| attached.link.up && attached.tx_queues > 0),
        }
    }

    /// A sub-interface takes over from its parent, and what follows is done.
    pub(crate) fn take_after_parent(&mut self, name: &str) {
        let Some(sub) = self
            .config
            .interfaces
            .get(name)
            .and_then(weir_config::Interface::sub_interface)
        else {
            return;
        };
        let parent = self.index_of(&sub.parent);
        let (Some(link), Some(mac)) = (
            self.interfaces.get(&sub.parent).map(|it| it.link),
            self.tables.interface(parent).map(|parent| parent.mac),
        ) else {
            return;
        };
        let index = self.index_of(name);
        let known = |control: &Control| {
            control
                .tables
                .interface(index)
                .map(|it| (it.can_send, it.mac))
        };
        let before = known(self);
        if let Some(attached) = self.interfaces.get_mut(name) {
            (attached.link, attached.mac) = (link, mac);
        }
        self.refresh_alone(name);
        let (Some((could, was)), Some((can, is))) = (before, known(self)) else {
            return;
        };
        if was != is {
            self.refresh_adjacencies(index);
        }
        if could != can {
            if !can {
                let (now, mut actions) = (self.clock.now(), Vec::new());
                self.neighbors.unlearn(index, now, &mut actions);
                self.carry_out(actions);
            }
            if can {
                self.claims.ask_again(index);
            }
            self.set_paths_up(index, can);
        }
    }

    /// The link of a parent was down for so short a time that nobody saw it: who comes back may be somebody else, behind
    /// its sub-interfaces too.
    pub(crate) fn unlearn_sub_interfaces(&mut self, parent: &str) {
        let (now, mut actions) = (self.clock.now(), Vec::new());
        for sub in self.sub_interfaces_of(parent) {
            let index = self.index_of(&sub);
            self.neighbors.unlearn(index, now, &mut actions);
            self.claims.ask_again(index);
        }
        self.carry_out(actions);
    }

    /// Makes the tables of those parents anew whose sub-interfaces are others than before.
    pub(crate) fn share_out(&mut self) {
        for parent in std::mem::take(&mut self.unshared) {
            let entries: Vec<_> = self
                .sub_interfaces_of(&parent)
                .iter()
                .filter_map(|name| {
                    let sub = self.config.interfaces.get(name)?.sub_interface()?;
                    Some((encapsulation(&sub.encapsulation), self.index_of(name)))
                })
                .collect();
            let shares = (!entries.is_empty()).then(|| SubInterfaces::new(&entries).into());
            self.change_entry(&parent, |interface| interface.sub_interfaces = shares);
        }
    }

    fn change_entry(&mut self, name: &str, change: impl FnOnce(&mut Interface)) {
        let place = self.index_of(name) as usize;
        if let Some(Some(entry)) = self.tables.interfaces.get_mut(place) {
            change(&mut std::sync::Arc::make_mut(entry).interface);
        }
    }
}

fn encapsulation(tags: &weir_config::Encapsulation) -> Encapsulation {
    let (service, outer) = tags.outer().unwrap_or_default();
    Encapsulation {
        service,
        outer,
        inner: tags.inner_dot1q,
        exact: tags.exact_match,
    }
}

fn pushed(rewrite: &TagRewrite) -> TagStack {
    let outer = rewrite
        .dot1ad
        .map(|vlan| (EtherType::QINQ, vlan))
        .or(rewrite.dot1q.map(|vlan| (EtherType::VLAN, vlan)));
    let Some((announced, vlan)) = outer else {
        return TagStack::EMPTY;
    };
    let stack = TagStack::EMPTY.with(announced, vlan);
    rewrite
        .inner_dot1q
        .map_or(stack, |inner| stack.with(EtherType::VLAN, inner))
}
