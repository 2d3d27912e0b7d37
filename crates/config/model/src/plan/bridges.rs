//! Bridge domains in a plan.
//!
//! What leaves a domain leaves before interfaces and domains are deleted, static entries before the members
//! that they name; what joins comes when all interfaces are there. A member whose split-horizon group changes
//! leaves and joins again; what does not change is not touched.

use std::collections::BTreeSet;

use super::Planner;
use crate::bridge::{Bridge, BridgeRole, StaticMac};
use crate::model::Config;
use crate::step::Step;

impl Planner<'_> {
    /// Members, static entries and domains that are not wanted. An interface that is made anew leaves, too.
    pub(super) fn prune_bridges(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        for (name, bridge) in &running.bridges {
            let wanted = self.wanted.bridges.get(name);
            let leaves = |interface: &str, role: BridgeRole| {
                gone.contains(interface)
                    || wanted.and_then(|it| it.role_of(interface)) != Some(role)
            };
            let goes = |entry: &StaticMac| {
                let stays = wanted.is_some_and(|it| it.static_macs.contains(entry));
                !stays
                    || bridge
                        .role_of(&entry.interface)
                        .is_none_or(|role| leaves(&entry.interface, role))
            };
            let bridge_name = || name.clone();
            let entries = bridge.static_macs.iter().filter(|entry| goes(entry));
            let mut steps: Vec<Step> = entries
                .map(|entry| Step::RemoveStaticMac {
                    bridge: bridge_name(),
                    entry: entry.clone(),
                })
                .collect();
            let members = bridge
                .roles()
                .filter(|&(interface, role)| leaves(interface, role));
            steps.extend(members.map(|(interface, role)| Step::LeaveBridge {
                bridge: bridge_name(),
                interface: interface.into(),
                role,
            }));
            if wanted.is_none() {
                steps.push(Step::DeleteBridge {
                    name: bridge_name(),
                    bridge: bridge.at_rest(),
                });
            }
            steps.into_iter().for_each(|step| self.add(step));
        }
    }

    pub(super) fn create_bridges(&mut self) {
        let wanted = self.wanted;
        for (name, bridge) in &wanted.bridges {
            if !self.model.bridges.contains_key(name) {
                self.add(Step::CreateBridge {
                    name: name.clone(),
                    bridge: bridge.at_rest(),
                });
            }
        }
    }

    pub(super) fn sync_bridges(&mut self) {
        let wanted = self.wanted;
        for (name, to) in &wanted.bridges {
            let Some(from) = self.model.bridges.get(name) else {
                continue;
            };
            let mut steps = Vec::new();
            let (rest, wanted_rest) = (from.at_rest(), to.at_rest());
            if rest != wanted_rest {
                steps.push(Step::SetBridge {
                    name: name.clone(),
                    from: rest,
                    to: wanted_rest,
                });
            }
            let missing = |it: &Bridge, interface: &str| it.role_of(interface).is_none();
            let joining = to.roles().filter(|(interface, _)| missing(from, interface));
            steps.extend(joining.map(|(interface, role)| Step::JoinBridge {
                bridge: name.clone(),
                interface: interface.into(),
                role,
            }));
            let entries = to.static_macs.difference(&from.static_macs);
            steps.extend(entries.map(|entry| Step::AddStaticMac {
                bridge: name.clone(),
                entry: entry.clone(),
            }));
            steps.into_iter().for_each(|step| self.add(step));
        }
    }
}
