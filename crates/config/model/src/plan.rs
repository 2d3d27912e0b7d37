//! From the running configuration to the wanted one: which steps, in which order.
//!
//! The order is the whole art, and it is vppcfg's: *prune* what is not wanted, dependants before
//! what they depend on; *create* what is missing, at rest; *sync* everything else, with
//! interfaces coming up last. So no step ever names a thing that is not there, and an address
//! that moves from one interface to another is gone from the old before it comes to the new.
//!
//! Every step is applied to a model as it is planned, and the later phases compare that model
//! with what is wanted. So a plan leads to its goal by construction, and a second plan from
//! there is empty.
//!
//! What did not change is left alone. A route stays as long as the subnet that carries its next
//! hops stays; when that subnet is taken away, even if an equal one is added, the route is taken
//! off first and put back after, because in between it would lead nowhere.
//!
//! `plan` never fails and does not validate: it is asked about configurations that `check`
//! passed, and does something orderly for all others.

mod bridges;
mod pseudowires;
mod report;

use std::collections::{BTreeSet, HashMap};

use ipnet::IpNet;

pub use report::{Plan, PlannedStep};

use crate::access_list::Binding;
use crate::apply::apply_to_model;
use crate::model::{AdminState, Config, Interface, NeighborKey, Path, Police, RouteKey, Via};
use crate::mpls::{DEFAULT_TABLE, LabelEntry};
use crate::step::{RestartChange, Step};
use crate::subnets::Subnets as SubnetsOf;

/// Connected subnets by the names of tables and interfaces.
type Subnets<'a> = SubnetsOf<Option<&'a str>, &'a str>;

/// The steps that turn `running` into `wanted`, in the order prune, create, sync. Empty when
/// they are equal.
#[must_use]
pub fn plan(running: &Config, wanted: &Config) -> Vec<Step> {
    if running == wanted {
        return Vec::new();
    }
    let mut planner = Planner {
        model: running.clone(),
        wanted,
        steps: Vec::new(),
    };
    let gone = gone(running, wanted);
    planner.prune(running, &gone);
    planner.create();
    planner.sync();
    planner.steps
}

/// Interfaces that must be taken away: not wanted, or wanted with another device, which cannot
/// change under a living interface.
fn gone<'a>(running: &'a Config, wanted: &Config) -> BTreeSet<&'a str> {
    let stays = |name: &str, interface: &Interface| {
        wanted
            .interfaces
            .get(name)
            .is_some_and(|other| other.device == interface.device)
    };
    let mut gone: BTreeSet<&str> = running
        .interfaces
        .iter()
        .filter(|(name, it)| !stays(name, it))
        .map(|(name, _)| name.as_str())
        .collect();
    // A sub-interface goes with its parent.
    let with_parent = |it: &Interface| {
        it.sub_interface()
            .is_some_and(|sub| gone.contains(sub.parent.as_str()))
    };
    let more: Vec<&str> = running
        .interfaces
        .iter()
        .filter(|(_, it)| with_parent(it))
        .map(|(name, _)| name.as_str())
        .collect();
    gone.extend(more);
    gone
}

struct Planner<'a> {
    /// The running configuration as far as it is planned.
    model: Config,
    wanted: &'a Config,
    steps: Vec<Step>,
}

/// Plans the step that sets one field of each interface whose field differs.
macro_rules! sync_field {
    ($planner:expr, $field:ident: $step:ident) => {
        let wanted = $planner.wanted;
        for (name, to) in &wanted.interfaces {
            let Some(from) = $planner.model.interfaces.get(name) else {
                continue;
            };
            if from.$field != to.$field {
                let (from, to) = (from.$field.clone(), to.$field.clone());
                $planner.add(Step::$step {
                    interface: name.clone(),
                    from,
                    to,
                });
            }
        }
    };
}

impl Planner<'_> {
    fn add(&mut self, step: Step) {
        let applied = apply_to_model(&mut self.model, &step);
        debug_assert!(applied.is_ok(), "planned a step that does not fit: {step}");
        self.steps.push(step);
    }

    fn prune(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        self.prune_state(running, gone);
        let ground = Ground::between(running, self.wanted, gone);
        for (key, via) in &running.routes {
            if !ground.keeps_route(key, via, self.wanted.routes.get(key)) {
                self.add(Step::RemoveRoute {
                    key: key.clone(),
                    via: via.clone(),
                });
            }
        }
        for (label, entry) in &running.mpls.labels {
            if !ground.keeps_label(entry, self.wanted.mpls.labels.get(label), self.wanted) {
                self.add(Step::RemoveLabel {
                    label: *label,
                    entry: entry.clone(),
                });
            }
        }
        self.prune_pseudowires(running, gone, &ground);
        for (key, mac) in &running.neighbors {
            if !(self.wanted.neighbors.contains_key(key) && ground.keeps_neighbor(key)) {
                self.add(Step::RemoveNeighbor {
                    interface: key.interface.clone(),
                    address: key.address,
                    mac: *mac,
                });
            }
        }
        self.prune_attachments(running, gone);
        self.prune_bridges(running, gone);
        self.prune_lists(running);
        self.prune_addresses(running, gone);
        self.prune_vrfs(running, gone);
        // Sub-interfaces before their parents.
        let (below, above): (Vec<&str>, Vec<&str>) = gone.iter().partition(|name| {
            self.model
                .interfaces
                .get(**name)
                .is_some_and(|it| it.sub_interface().is_some())
        });
        for name in below.into_iter().chain(above) {
            if let Some(interface) = self.model.interfaces.get(name).cloned() {
                self.add(Step::DeleteInterface {
                    name: name.to_owned(),
                    interface,
                });
            }
        }
    }

    /// Interfaces that change their table leave the old one before it goes; by way of the default table, since
    /// the new one may not be there yet.
    fn prune_vrfs(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        for (name, interface) in &running.interfaces {
            let wanted = self
                .wanted
                .interfaces
                .get(name)
                .and_then(|it| it.vrf.as_ref());
            let leaves = gone.contains(name.as_str()) || wanted != interface.vrf.as_ref();
            if let (Some(vrf), true) = (&interface.vrf, leaves) {
                self.add(Step::SetVrf {
                    interface: name.clone(),
                    from: Some(vrf.clone()),
                    to: None,
                });
            }
        }
        for (name, vrf) in running
            .vrfs
            .iter()
            .filter(|(name, _)| !self.wanted.vrfs.contains_key(*name))
        {
            self.add(Step::DeleteVrf {
                name: name.clone(),
                vrf: vrf.clone(),
            });
        }
    }

    /// First of all, what must not carry packets any more stops, so that nothing passes while it
    /// is half taken apart.
    fn prune_state(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        for (name, interface) in &running.interfaces {
            let wanted_up = self
                .wanted
                .interfaces
                .get(name)
                .is_some_and(|it| it.state == AdminState::Up);
            if interface.state == AdminState::Up && (gone.contains(name.as_str()) || !wanted_up) {
                let (from, to) = (AdminState::Up, AdminState::Down);
                self.add(Step::SetState {
                    interface: name.clone(),
                    from,
                    to,
                });
            }
        }
    }

    fn prune_attachments(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        for (name, interface) in &running.interfaces {
            let is_gone = gone.contains(name.as_str());
            let wanted = self.wanted.interfaces.get(name);
            if let Some(target) = &interface.l2xc {
                let unwanted = wanted.is_none_or(|it| it.l2xc.is_none());
                if is_gone || unwanted || gone.contains(target.as_str()) {
                    self.add(Step::SetL2xc {
                        interface: name.clone(),
                        from: Some(target.clone()),
                        to: None,
                    });
                }
            }
            if let Some(lender) = &interface.unnumbered {
                // It does not change its table while it borrows, and the lender may not.
                let stays = wanted.is_some_and(|it| {
                    it.unnumbered.as_ref() == Some(lender) && it.vrf == interface.vrf
                });
                if is_gone || !stays || gone.contains(lender.as_str()) {
                    self.add(Step::SetUnnumbered {
                        interface: name.clone(),
                        from: Some(lender.clone()),
                        to: None,
                    });
                }
            }
            let lasts = |name: &String| self.wanted.access_lists.contains_key(name);
            let acl = &interface.acl;
            let stays = wanted
                .filter(|_| !is_gone)
                .is_some_and(|it| !it.acl.is_empty());
            let lasts = stays && acl.input.iter().chain(&acl.output).all(lasts);
            if !acl.is_empty() && !lasts {
                self.add(Step::SetAcl {
                    interface: name.clone(),
                    from: acl.clone(),
                    to: Binding::default(),
                });
            }
            if let Some(bond) = &interface.bond {
                let unwanted = wanted.is_none_or(|it| it.bond.as_ref() != Some(bond));
                if is_gone || unwanted || gone.contains(bond.as_str()) {
                    self.add(Step::SetBond {
                        interface: name.clone(),
                        from: Some(bond.clone()),
                        to: None,
                    });
                }
            }
            let wanted = wanted.filter(|_| !is_gone);
            let mut clear = |is_set: bool, stays: bool, step: Step| {
                if is_set && !stays {
                    self.add(step);
                }
            };
            clear(
                !interface.police.is_empty(),
                wanted.is_some_and(|it| !it.police.is_empty()),
                Step::SetPolice {
                    interface: name.clone(),
                    from: interface.police,
                    to: Police::default(),
                },
            );
            clear(
                interface.urpf.is_some(),
                wanted.is_some_and(|it| it.urpf.is_some()),
                Step::SetUrpf {
                    interface: name.clone(),
                    from: interface.urpf,
                    to: None,
                },
            );
            clear(
                interface.mpls,
                wanted.is_some_and(|it| it.mpls),
                Step::SetMpls {
                    interface: name.clone(),
                    from: true,
                    to: false,
                },
            );
            clear(
                interface.sflow,
                wanted.is_some_and(|it| it.sflow),
                Step::SetSflow {
                    interface: name.clone(),
                    from: true,
                    to: false,
                },
            );
        }
    }

    fn prune_addresses(&mut self, running: &Config, gone: &BTreeSet<&str>) {
        for (name, interface) in &running.interfaces {
            let wanted = self
                .wanted
                .interfaces
                .get(name)
                .filter(|it| !gone.contains(name.as_str()) && it.vrf == interface.vrf);
            for address in &interface.addresses {
                if wanted.is_none_or(|it| !it.addresses.contains(address)) {
                    self.add(Step::RemoveAddress {
                        interface: name.clone(),
                        address: *address,
                    });
                }
            }
        }
    }

    /// Lists that are not wanted. No packet passes a list between steps, so that one which still names another
    /// that is gone is no matter until its own step comes.
    fn prune_lists(&mut self, running: &Config) {
        for (name, list) in running
            .access_lists
            .iter()
            .filter(|(name, _)| !self.wanted.access_lists.contains_key(*name))
        {
            self.add(Step::SetAccessList {
                name: name.clone(),
                from: Some(list.clone()),
                to: None,
            });
        }
        for (name, list) in running
            .prefix_lists
            .iter()
            .filter(|(name, _)| !self.wanted.prefix_lists.contains_key(*name))
        {
            self.add(Step::SetPrefixList {
                name: name.clone(),
                from: Some(list.clone()),
                to: None,
            });
        }
    }

    /// New lists, or those that changed.
    fn set_lists(&mut self, is_new: bool) {
        let wanted = self.wanted;
        for (name, to) in &wanted.prefix_lists {
            let from = self.model.prefix_lists.get(name).cloned();
            if from.is_none() == is_new && from.as_ref() != Some(to) {
                self.add(Step::SetPrefixList {
                    name: name.clone(),
                    from,
                    to: Some(to.clone()),
                });
            }
        }
        for (name, to) in &wanted.access_lists {
            let from = self.model.access_lists.get(name).cloned();
            if from.is_none() == is_new && from.as_ref() != Some(to) {
                self.add(Step::SetAccessList {
                    name: name.clone(),
                    from,
                    to: Some(to.clone()),
                });
            }
        }
    }

    fn create(&mut self) {
        self.set_lists(true);
        let wanted = self.wanted;
        for (name, vrf) in &wanted.vrfs {
            if !self.model.vrfs.contains_key(name) {
                self.add(Step::CreateVrf {
                    name: name.clone(),
                    vrf: vrf.clone(),
                });
            }
        }
        for (name, interface) in &wanted.interfaces {
            // In the order of the alphabet, a parent comes before its sub-interfaces.
            if !self.model.interfaces.contains_key(name) {
                self.add(Step::CreateInterface {
                    name: name.clone(),
                    interface: interface.at_rest(),
                });
            }
        }
        self.create_bridges();
    }

    fn sync(&mut self) {
        self.sync_vrfs();
        self.sync_link();
        // Members before addresses, so that what comes over the bond finds it whole.
        sync_field!(self, bond: SetBond);
        self.sync_addresses();
        sync_field!(self, unnumbered: SetUnnumbered);
        self.sync_neighbors();
        self.sync_routes();
        self.sync_labels();
        self.sync_pseudowires();
        sync_field!(self, l2xc: SetL2xc);
        self.sync_bridges();
        self.set_lists(false);
        sync_field!(self, acl: SetAcl);
        sync_field!(self, urpf: SetUrpf);
        sync_field!(self, police: SetPolice);
        self.sync_shared();
        self.sync_sflow_and_state();
        self.sync_restart();
    }

    fn sync_vrfs(&mut self) {
        let wanted = self.wanted;
        for (name, to) in &wanted.vrfs {
            if let Some(from) = self
                .model
                .vrfs
                .get(name)
                .filter(|from| *from != to)
                .cloned()
            {
                self.add(Step::ChangeVrf {
                    name: name.clone(),
                    from,
                    to: to.clone(),
                });
            }
        }
        sync_field!(self, vrf: SetVrf);
    }

    fn sync_link(&mut self) {
        sync_field!(self, description: SetDescription);
        sync_field!(self, mac: SetMac);
        sync_field!(self, mtu: SetMtu);
        sync_field!(self, router_advertisements: SetRouterAdvertisements);
        sync_field!(self, rx_queue_workers: SetPlacement);
    }

    fn sync_addresses(&mut self) {
        let wanted = self.wanted;
        for (name, to) in &wanted.interfaces {
            let Some(from) = self.model.interfaces.get(name) else {
                continue;
            };
            let missing: Vec<IpNet> = to.addresses.difference(&from.addresses).copied().collect();
            for address in missing {
                self.add(Step::AddAddress {
                    interface: name.clone(),
                    address,
                });
            }
        }
    }

    fn sync_neighbors(&mut self) {
        let wanted = self.wanted;
        for (key, to) in &wanted.neighbors {
            let (interface, address) = (key.interface.clone(), key.address);
            match self.model.neighbors.get(key).copied() {
                None => self.add(Step::AddNeighbor {
                    interface,
                    address,
                    mac: *to,
                }),
                Some(from) if from != *to => self.add(Step::ChangeNeighbor {
                    interface,
                    address,
                    from,
                    to: *to,
                }),
                Some(_) => {}
            }
        }
    }

    fn sync_routes(&mut self) {
        let wanted = self.wanted;
        for (key, to) in &wanted.routes {
            match self.model.routes.get(key).cloned() {
                None => self.add(Step::AddRoute {
                    key: key.clone(),
                    via: to.clone(),
                }),
                Some(from) if from != *to => self.add(Step::ChangeRoute {
                    key: key.clone(),
                    from,
                    to: to.clone(),
                }),
                Some(_) => {}
            }
        }
    }

    fn sync_labels(&mut self) {
        let wanted = self.wanted;
        for (&label, to) in &wanted.mpls.labels {
            match self.model.mpls.labels.get(&label).cloned() {
                None => self.add(Step::AddLabel {
                    label,
                    entry: to.clone(),
                }),
                Some(from) if from != *to => self.add(Step::ChangeLabel {
                    label,
                    from,
                    to: to.clone(),
                }),
                Some(_) => {}
            }
        }
        sync_field!(self, mpls: SetMpls);
    }

    fn sync_shared(&mut self) {
        if self.model.sflow != self.wanted.sflow {
            let (from, to) = (self.model.sflow.clone(), self.wanted.sflow.clone());
            self.add(Step::SetSflowSettings { from, to });
        }
        if self.model.ipfix != self.wanted.ipfix {
            let (from, to) = (
                Box::new(self.model.ipfix.clone()),
                Box::new(self.wanted.ipfix.clone()),
            );
            self.add(Step::SetIpfix { from, to });
        }
        if self.model.linux != self.wanted.linux {
            let (from, to) = (
                Box::new(self.model.linux.clone()),
                Box::new(self.wanted.linux.clone()),
            );
            self.add(Step::SetLinux { from, to });
        }
        if self.model.ip4 != self.wanted.ip4 {
            let (from, to) = (self.model.ip4, self.wanted.ip4);
            self.add(Step::SetIp4 { from, to });
        }
        if self.model.peering != self.wanted.peering {
            let (from, to) = (self.model.peering.clone(), self.wanted.peering.clone());
            self.add(Step::SetPeering { from, to });
        }
        let (from, to) = (self.model.logging.level, self.wanted.logging.level);
        if from != to {
            self.add(Step::SetLogLevel { from, to });
        }
    }

    /// Sampling after its settings, and up at the very end, when everything is in place.
    fn sync_sflow_and_state(&mut self) {
        sync_field!(self, sflow: SetSflow);
        sync_field!(self, state: SetState);
    }

    fn sync_restart(&mut self) {
        if self.model.workers != self.wanted.workers {
            let (from, to) = (self.model.workers.clone(), self.wanted.workers.clone());
            self.add(Step::NeedsRestart {
                change: RestartChange::Workers { from, to },
            });
        }
        if self.model.buffers != self.wanted.buffers {
            let (from, to) = (self.model.buffers, self.wanted.buffers);
            self.add(Step::NeedsRestart {
                change: RestartChange::Buffers { from, to },
            });
        }
        if self.model.api != self.wanted.api {
            let from = Box::new(self.model.api.clone());
            let to = Box::new(self.wanted.api.clone());
            // Who is let in changes at once; where the API listens waits for a restart.
            let now = Box::new(from.with_access_of(&to));
            if now != from {
                let to = now.clone();
                self.add(Step::SetAccess { from, to });
            }
            if now != to {
                self.add(Step::NeedsRestart {
                    change: RestartChange::Api { from: now, to },
                });
            }
        }
        if self.model.logging.format != self.wanted.logging.format {
            let (from, to) = (self.model.logging.format, self.wanted.logging.format);
            self.add(Step::NeedsRestart {
                change: RestartChange::LogFormat { from, to },
            });
        }
        if self.model.history != self.wanted.history {
            let (from, to) = (self.model.history.clone(), self.wanted.history.clone());
            self.add(Step::NeedsRestart {
                change: RestartChange::History { from, to },
            });
        }
    }
}

/// The connected subnets before and after, and which of them stay throughout.
struct Ground<'a> {
    before: Subnets<'a>,
    after: Subnets<'a>,
    /// Subnets that keep at least one of their addresses.
    kept: Subnets<'a>,
    gone: &'a BTreeSet<&'a str>,
    /// Interfaces that cease to borrow addresses, or borrow others'.
    returned: BTreeSet<&'a str>,
    /// Tables that stay.
    tables: BTreeSet<&'a str>,
    /// The tables of the running interfaces.
    vrfs: HashMap<&'a str, Option<&'a str>>,
}

impl<'a> Ground<'a> {
    fn between(running: &'a Config, wanted: &'a Config, gone: &'a BTreeSet<&'a str>) -> Self {
        let vrf = |name: &str| running.interfaces.get(name).and_then(|it| it.vrf.as_ref());
        let stays = |name: &str, it: &Interface, net: &IpNet| {
            it.vrf.as_ref() == vrf(name) && it.addresses.contains(net)
        };
        let kept = |name: &str, net: &IpNet| {
            !gone.contains(name)
                && wanted
                    .interfaces
                    .get(name)
                    .is_some_and(|it| stays(name, it, net))
        };
        let vrfs = running
            .interfaces
            .iter()
            .map(|(name, it)| (name.as_str(), it.vrf.as_deref()))
            .collect();
        let keeps = |name: &str, it: &Interface, lender: &str| {
            wanted.interfaces.get(name).is_some_and(|wanted| {
                wanted.unnumbered.as_deref() == Some(lender) && wanted.vrf == it.vrf
            }) && !gone.contains(lender)
                && wanted.interfaces.get(lender).is_some_and(|it| {
                    running
                        .interfaces
                        .get(lender)
                        .is_some_and(|was| was.addresses == it.addresses)
                })
        };
        let returned = running.interfaces.iter().filter(|(name, it)| {
            it.unnumbered
                .as_deref()
                .is_some_and(|lender| !keeps(name, it, lender))
        });
        let returned = returned.map(|(name, _)| name.as_str()).collect();
        let tables = running
            .vrfs
            .keys()
            .filter(|name| wanted.vrfs.contains_key(*name))
            .map(String::as_str)
            .collect();
        Self {
            before: Subnets::of(running),
            after: Subnets::of(wanted),
            kept: Subnets::of_those(running, kept),
            gone,
            returned,
            tables,
            vrfs,
        }
    }

    /// Whether a running route may stay, or be changed in place, throughout the plan.
    fn keeps_route(&self, key: &RouteKey, via: &Via, wanted: Option<&Via>) -> bool {
        let Some(wanted) = wanted else { return false };
        via.paths()
            .iter()
            .all(|path| self.keeps_path(key, path, wanted == via))
    }

    fn keeps_path(&self, key: &RouteKey, path: &Path, unchanged: bool) -> bool {
        // What it resolves to follows the table that it is looked up in, as long as there is one.
        if let Some(table) = path.next_hop_table.as_deref() {
            return table == DEFAULT_TABLE || self.tables.contains(table);
        }
        if path
            .interface
            .as_deref()
            .is_some_and(|name| self.gone.contains(name) || self.returned.contains(name))
        {
            return false;
        }
        let before = carrier(&self.before, key, path);
        let stands = before.is_none() || carrier(&self.kept, key, path) == before;
        // An unchanged route is not resolved again, so it must resolve as it did.
        stands && (!unchanged || carrier(&self.after, key, path) == before)
    }

    /// The same for an entry of a label. Its table stays as long as its name does.
    fn keeps_label(&self, entry: &LabelEntry, wanted: Option<&LabelEntry>, goal: &Config) -> bool {
        let Some(wanted) = wanted else { return false };
        if let Some(Some(vrf)) = entry.lookup_vrf()
            && !goal.vrfs.contains_key(vrf)
        {
            return false;
        }
        let Some(via) = &entry.via else { return true };
        // Another mode or table is written in one go with the paths; a path that moves is not.
        let goes_to = wanted.via.as_ref().unwrap_or(&Via::Blackhole);
        let anywhere = RouteKey {
            vrf: None,
            prefix: IpNet::default(),
        };
        via.paths()
            .iter()
            .all(|path| self.keeps_path(&anywhere, path, goes_to == via))
    }

    fn keeps_neighbor(&self, key: &NeighborKey) -> bool {
        let (name, vrf) = (
            key.interface.as_str(),
            self.vrfs.get(key.interface.as_str()).copied().flatten(),
        );
        let carrier = |subnets: &Subnets<'a>| {
            subnets
                .find(vrf, key.address, Some(name))
                .map(|(_, net)| net)
        };
        !self.gone.contains(name)
            && !self.returned.contains(name)
            && carrier(&self.before) == carrier(&self.kept)
    }
}

/// The interface, and its subnet, that a path of a route leads over.
fn carrier<'a>(
    subnets: &'a Subnets<'a>,
    key: &'a RouteKey,
    path: &'a Path,
) -> Option<(&'a str, IpNet)> {
    subnets.find(key.vrf.as_deref(), path.next_hop, path.interface.as_deref())
}

#[cfg(test)]
mod tests;
