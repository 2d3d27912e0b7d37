//! Pseudowires in a plan: taken off before their interfaces, and while what carries them is exchanged; put on when
//! subnets and interfaces are there. What changes in place keeps its interface, with its counters.

use std::collections::BTreeSet;

use super::{Ground, Planner};
use crate::model::{Config, RouteKey};
use crate::pseudowire::Pseudowire;
use crate::step::Step;

impl Planner<'_> {
    pub(super) fn prune_pseudowires(
        &mut self,
        running: &Config,
        gone: &BTreeSet<&str>,
        ground: &Ground<'_>,
    ) {
        for (name, pseudowire) in &running.pseudowires {
            let wanted = self
                .wanted
                .pseudowires
                .get(name)
                .filter(|_| !gone.contains(name.as_str()));
            if !wanted.is_some_and(|wanted| ground.keeps_pseudowire(pseudowire, wanted)) {
                self.add(Step::RemovePseudowire {
                    name: name.clone(),
                    pseudowire: pseudowire.clone(),
                });
            }
        }
    }

    pub(super) fn sync_pseudowires(&mut self) {
        let wanted = self.wanted;
        for (name, to) in &wanted.pseudowires {
            match self.model.pseudowires.get(name).cloned() {
                None => self.add(Step::AddPseudowire {
                    name: name.clone(),
                    pseudowire: to.clone(),
                }),
                Some(from) if from != *to => self.add(Step::ChangePseudowire {
                    name: name.clone(),
                    from,
                    to: to.clone(),
                }),
                Some(_) => {}
            }
        }
    }
}

impl Ground<'_> {
    /// Whether it may stay, or be changed in place: with another label of its own it is another one, since that
    /// label may be somebody else's until then.
    fn keeps_pseudowire(&self, running: &Pseudowire, wanted: &Pseudowire) -> bool {
        let anywhere = RouteKey {
            vrf: None,
            prefix: ipnet::IpNet::default(),
        };
        let carried = running
            .via
            .paths()
            .iter()
            .all(|path| self.keeps_path(&anywhere, path, wanted.via == running.via));
        carried && running.local_label == wanted.local_label
    }
}
