//! Rules about pseudowires: their labels, their ways, and what their interfaces cannot be.

use std::collections::HashMap;

use super::Rules;
use super::routing::Ground;
use crate::device::Device;
use crate::findings::{Segment, at};
use crate::keys::Names;
use crate::model::Via;
use crate::pseudowire::PseudowireType;
use crate::tree::Node;

impl Rules<'_, '_> {
    pub(super) fn pseudowires(&mut self, ground: &Ground<'_>) {
        let candidate = self.candidate;
        let entries: HashMap<u32, usize> = candidate
            .labels
            .iter()
            .map(|entry| (entry.label, entry.route.item))
            .collect();
        let mut owner: HashMap<u32, &str> = HashMap::new();
        for (name, pseudowire) in &candidate.config.pseudowires {
            if self.findings.is_full() {
                return;
            }
            let (name, label) = (name.as_str(), pseudowire.local_label);
            let at = at!["pseudowires", name, "local-label"];
            if let Some(first) = owner.insert(label, name) {
                let help = format!("`{first}` has it already; give each a label of its own");
                self.error(
                    at,
                    format!("the label {label} is that of two pseudowires"),
                    "the second one",
                    help,
                );
            } else if let Some(item) = entries.get(&label) {
                let help = format!("it stands in `mpls.labels[{item}]`; choose another label");
                self.error(
                    at,
                    format!("the label {label} of `{name}` has an entry of its own"),
                    "",
                    help,
                );
            }
            if pseudowire.kind == PseudowireType::Raw && pseudowire.vlan != 0 {
                let message = format!("`{name}` has a VLAN and is not of type `tagged`");
                self.error(
                    at!["pseudowires", name, "vlan"],
                    message,
                    "",
                    "add `type: tagged`, or leave it out".into(),
                );
            }
        }
        for (name, route) in &candidate.pseudowires {
            let base: &[Segment<'_>] = at!["pseudowires", name.as_str()];
            if let Some(word) = route.nowhere.as_ref().filter(|via| **via != Via::Blackhole) {
                let help = "a frame has no sender to be notified; write `blackhole`".to_owned();
                self.error(
                    &[base, at!["via"]].concat(),
                    format!("`{name}` leads to `{word}`"),
                    "",
                    help,
                );
            }
            self.paths(base, route, true, ground);
            for (item, path) in &route.paths {
                let found = ground
                    .subnets
                    .find(None, path.next_hop, path.interface.as_deref());
                let carrier = found
                    .and_then(|(carrier, _)| candidate.config.interfaces.get_key_value(carrier));
                if let Some((carrier, _)) =
                    carrier.filter(|(_, it)| it.device == Some(Device::Pseudowire))
                {
                    let at = item.map_or_else(
                        || [base, at!["via"]].concat(),
                        |item| [base, at!["via", item, "next-hop"]].concat(),
                    );
                    let message = format!(
                        "the next hop {} of `{name}` is behind the pseudowire `{carrier}`",
                        path.next_hop
                    );
                    self.error(
                        &at,
                        message,
                        "",
                        "name one behind another kind of interface".into(),
                    );
                }
            }
        }
        self.pseudowire_interfaces();
    }

    fn pseudowire_interfaces(&mut self) {
        let (root, none): (&Node<'_>, &[_]) = (self.root, &[]);
        let named = root.value("pseudowires");
        for entry in root.value("interfaces").map_or(none, Node::entries) {
            let (name, keys) = (entry.key.as_ref(), &entry.value);
            if named.is_some_and(|named| named.value(name).is_some()) {
                self.pseudowire_interface(name, keys);
            } else if Names::PSEUDOWIRES.numbers(name).is_some()
                && keys.value("device").is_none()
                && !self.findings.is_broken(at!["pseudowires"])
            {
                let help = format!(
                    "add `{name}: {{local-label: …, remote-label: …, via: …}}` under `pseudowires`, or give the interface a `device`"
                );
                self.error(
                    at!["interfaces", name],
                    format!("there is no pseudowire `{name}`"),
                    "not under `pseudowires`",
                    help,
                );
            }
        }
    }

    /// What a pseudowire has under `interfaces`.
    fn pseudowire_interface(&mut self, name: &str, keys: &Node<'_>) {
        let odd = [
            (
                "device",
                "is a pseudowire and has a device",
                "remove one of them",
            ),
            (
                "rx-queue-workers",
                "is a pseudowire, which has no queues of its own",
                "place those of the interfaces that carry it",
            ),
            (
                "sub-interfaces",
                "is a pseudowire, which has no sub-interfaces",
                "make a pseudowire for each",
            ),
        ];
        for (key, what, help) in odd {
            if keys.value(key).is_some() {
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
                "`{name}` is a pseudowire; packets are sampled where they come in, at the interfaces that carry it"
            );
            self.error(
                at!["interfaces", name, "sflow"],
                message,
                "",
                "set `sflow` there".into(),
            );
        }
    }
}
