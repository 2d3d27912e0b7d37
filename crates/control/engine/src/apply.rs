//! Carrying out plan steps, each with its inverse at hand.
//!
//! `apply` is a transaction: when a step fails, the inverses of those before it are played
//! backwards, and the router is as it was. A step changes the model (`weir_config::apply_to_model`),
//! the master tables, and what workers hold; workers see it when the step publishes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net};
use weir_config::{AdminState, RouteKey, Step, Via, apply_to_model, link_local_subnet, plan};
use weir_fib::{Adjacency, Group, Path};
use weir_port::interface::{InterfaceCounters, subnet_anycast6};
use weir_port::{LinkState, OpenError, Port, QueuePair};
use weir_wire::MacAddr;

use crate::control::{Arriving, Attached, Control, Fault, Peer};
use crate::filters::Bindings;
use crate::management;
use crate::neighbors::Place;
use crate::policers::AttachedPolicers;
use crate::ports;
use crate::worker::{Command, Returned};
use weir_control::RouteSource;

/// Why a configuration could not be applied: the step and one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
pub struct ApplyError {
    /// The step that failed, as `plan` prints it.
    pub step: String,
    /// Why, and what to do.
    pub reason: String,
}

/// What an apply did.
#[derive(Debug, Default)]
pub struct Applied {
    /// Steps carried out.
    pub steps: usize,
    /// Sections whose change waits for a restart.
    pub needs_restart: Vec<String>,
}

impl Control {
    /// Brings the router to `wanted`, or leaves it as it was.
    pub(crate) fn apply(&mut self, wanted: &weir_config::Config) -> Result<Applied, ApplyError> {
        let result = self.apply_steps(wanted);
        self.fail_at = None;
        result
    }

    fn apply_steps(&mut self, wanted: &weir_config::Config) -> Result<Applied, ApplyError> {
        let (wanted, followed) = self.as_it_runs(wanted);
        let steps = plan(&self.config, &wanted);
        let before = std::mem::replace(&mut self.linux.followed, followed);
        let mut applied = Applied::default();
        for (number, step) in steps.iter().enumerate() {
            if let Step::NeedsRestart { change } = step {
                applied.needs_restart.push(change.section().to_owned());
                continue;
            }
            let result = if self.fail_at == Some(number) {
                Err("a test wants it so".to_owned())
            } else {
                self.carry_out_step(step)
            };
            if let Err(reason) = result {
                self.linux.followed = before;
                self.undo(steps.get(..number).unwrap_or(&[]));
                return Err(ApplyError {
                    step: step.to_string(),
                    reason,
                });
            }
            applied.steps += 1;
        }
        if let Err(reason) = self.finish() {
            self.linux.followed = before;
            self.undo(&steps);
            return Err(ApplyError {
                step: "publish the tables".into(),
                reason,
            });
        }
        Ok(applied)
    }

    fn undo(&mut self, done: &[Step]) {
        let before = std::mem::replace(&mut self.tolerant, true);
        for step in done
            .iter()
            .rev()
            .filter(|step| !matches!(step, Step::NeedsRestart { .. }))
        {
            if let Err(reason) = self.carry_out_step(&step.inverse()) {
                tracing::error!("while undoing \"{step}\": {reason}");
            }
        }
        if let Err(reason) = self.finish() {
            tracing::error!("while undoing: {reason}");
        }
        self.tolerant = before;
    }

    /// What is done once for all steps of a change.
    fn finish(&mut self) -> Result<(), String> {
        self.bind_lists()?;
        self.restore_api_routes();
        self.recursion.interfaces_changed();
        self.measure_prefixes()?;
        let Control {
            sflow,
            ipfix,
            interfaces,
            config,
            routing,
            ..
        } = self;
        let index_of = |name: &str| Some(interfaces.get(name)?.index);
        sflow.number(index_of);
        sflow.agent_may_change(config.sflow_agent(index_of));
        ipfix.name_tables(routing);
        ipfix.number(config, index_of);
        // Nothing comes in before there is all that it needs.
        self.publication.begin_receiving = true;
        self.sync_linux();
        self.settle()?;
        self.indexes.keep();
        Ok(())
    }

    /// One step: the model first, since what follows is worked out from it.
    fn carry_out_step(&mut self, step: &Step) -> Result<(), String> {
        if step.changes_borrowers() {
            self.borrowers = None;
        }
        apply_to_model(&mut self.config, step).map_err(|misfit| format!("{misfit:?}"))?;
        let result = self.do_step(step);
        if result.is_err()
            && let Err(misfit) = apply_to_model(&mut self.config, &step.inverse())
        {
            tracing::error!("the model cannot go back over \"{step}\": {misfit:?}");
        }
        result
    }

    fn do_step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::CreateInterface { name, interface } => {
                self.create_interface(name, interface)?;
                self.pair_with_linux(name);
                Ok(())
            }
            Step::DeleteInterface { name, interface } => {
                self.delete_interface(name);
                self.tunnels_changed |= interface.as_vxlan().is_some();
                let tap = crate::linux::tap_of(interface);
                self.pair_with_linux(tap.map_or(name, |tap| &tap.interface));
                if let Some(tap) = tap {
                    self.remove_tap(tap);
                }
                self.unshared
                    .extend(interface.sub_interface().map(|sub| sub.parent.clone()));
                Ok(())
            }
            // Lists are bound when all steps are done.
            Step::SetDescription { .. }
            | Step::SetAcl { .. }
            | Step::SetPrefixList { .. }
            | Step::SetAccessList { .. } => Ok(()),
            Step::SetMac { interface, .. } | Step::SetMtu { interface, .. } => {
                self.refresh(interface);
                self.refresh_adjacencies(self.index_of(interface));
                Ok(())
            }
            Step::SetState { interface, to, .. } => {
                if *to == AdminState::Down {
                    let with_it = self.sub_interfaces_of(interface);
                    with_it
                        .iter()
                        .chain([interface])
                        .for_each(|name| self.cease_advertising(self.index_of(name)));
                }
                self.refresh(interface);
                let index = self.index_of(interface);
                let up = *to == AdminState::Up
                    && self
                        .interfaces
                        .get(interface)
                        .is_some_and(|attached| attached.link.up);
                self.set_paths_up(index, up);
                Ok(())
            }
            Step::CreateVrf { name, vrf } => self.create_vrf(name, vrf),
            Step::DeleteVrf { name, .. } => {
                self.delete_vrf(name);
                Ok(())
            }
            Step::ChangeVrf { name, to, .. } => {
                self.change_vrf(name, to);
                Ok(())
            }
            Step::SetVrf { interface, .. }
            | Step::SetL2xc { interface, .. }
            | Step::SetSflow { interface, .. }
            | Step::SetUrpf { interface, .. } => {
                self.refresh(interface);
                Ok(())
            }
            Step::SetPolice { interface, to, .. } => {
                self.police(interface, to);
                Ok(())
            }
            Step::SetRouterAdvertisements { interface, to, .. } => {
                if to.is_none() {
                    self.cease_advertising(self.index_of(interface));
                }
                self.refresh(interface);
                Ok(())
            }
            Step::SetUnnumbered { interface, to, .. } => {
                self.refresh(interface);
                if to.is_none() {
                    let (index, mut actions) = (self.index_of(interface), Vec::new());
                    self.neighbors
                        .forget(|place| place.interface == index, &mut actions);
                    self.carry_out(actions);
                }
                Ok(())
            }
            Step::SetBond {
                interface, from, ..
            } => {
                self.refresh(interface);
                if let Some(bond) = from {
                    self.refresh_bond(bond);
                }
                Ok(())
            }
            Step::SetPlacement { interface, .. } => self.place_again(interface),
            Step::AddAddress { interface, address } => self.add_address(interface, *address),
            Step::RemoveAddress { interface, address } => {
                self.remove_address(interface, *address);
                Ok(())
            }
            Step::AddNeighbor {
                interface,
                address,
                mac,
            } => {
                self.set_static(interface, *address, Some(MacAddr(mac.0)));
                Ok(())
            }
            Step::ChangeNeighbor {
                interface,
                address,
                to,
                ..
            } => {
                self.set_static(interface, *address, Some(MacAddr(to.0)));
                Ok(())
            }
            Step::RemoveNeighbor {
                interface, address, ..
            } => {
                self.set_static(interface, *address, None);
                Ok(())
            }
            Step::CreateBridge { name, bridge } => self.create_bridge(name, bridge),
            Step::DeleteBridge { name, .. } => {
                self.delete_bridge(name);
                Ok(())
            }
            Step::SetBridge { name, to, .. } => self.set_bridge(name, to),
            Step::JoinBridge {
                bridge,
                interface,
                role,
            } => self.join_bridge(bridge, interface, *role),
            Step::LeaveBridge {
                bridge, interface, ..
            } => self.leave_bridge(bridge, interface),
            Step::AddStaticMac { bridge, .. } | Step::RemoveStaticMac { bridge, .. } => {
                self.bind_all(bridge)
            }
            Step::AddRoute { key, via } => self.add_route(key, via),
            Step::ChangeRoute { key, from, to } => {
                self.add_route(key, to)?;
                self.let_go(key.vrf.as_deref(), from);
                Ok(())
            }
            Step::RemoveRoute { key, via } => {
                let table = self.place_of_vrf(key.vrf.as_deref()).unwrap_or(0);
                self.unset_route(table, key.prefix, RouteSource::Static);
                self.let_go(key.vrf.as_deref(), via);
                Ok(())
            }
            Step::SetMpls { interface, .. } => {
                self.refresh(interface);
                Ok(())
            }
            Step::AddPseudowire { name, pseudowire } => self.add_pseudowire(name, pseudowire),
            Step::ChangePseudowire { name, from, to } => self.change_pseudowire(name, from, to),
            Step::RemovePseudowire { name, pseudowire } => {
                self.remove_pseudowire(name, pseudowire);
                Ok(())
            }
            Step::AddLabel { label, entry } => self.add_label(*label, entry),
            Step::ChangeLabel { label, from, to } => {
                self.add_label(*label, to)?;
                self.let_go_of_label(from);
                Ok(())
            }
            Step::RemoveLabel { label, entry } => {
                self.remove_label(*label);
                self.let_go_of_label(entry);
                Ok(())
            }
            Step::SetSflowSettings { to, .. } => {
                let agent = self
                    .config
                    .sflow_agent(|name| Some(self.interfaces.get(name)?.index));
                self.sflow
                    .configure(to, agent, |name| Some(self.interfaces.get(name)?.index));
                self.attach_sampling();
                Ok(())
            }
            Step::SetIpfix { from, to } => {
                self.ipfix.configure(to)?;
                self.attach_meters(from);
                Ok(())
            }
            // The TAPs are interfaces of their own.
            Step::SetLinux { .. } => Ok(()),
            // Its daemon is changed when all steps are done (`changes/companion.rs`).
            Step::SetPeering { .. } => Ok(()),
            Step::SetIp4 { to, .. } => {
                self.tables.source_routes = to.source_routes;
                self.stale = true;
                Ok(())
            }
            Step::SetAccess { to, .. } => match &self.access {
                Some(access) => access.set(to),
                None => Ok(()),
            },
            Step::SetLogLevel { to, .. } => {
                if let Some(log) = &self.log {
                    log.set(*to);
                }
                Ok(())
            }
            Step::NeedsRestart { .. } => Ok(()),
        }
    }

    fn create_interface(
        &mut self,
        name: &str,
        wanted: &weir_config::Interface,
    ) -> Result<(), String> {
        let index = self.indexes.of(name);
        // The new port may want what one that goes still has: a name, a queue, a socket.
        if !self.leaving.is_empty() && wanted.device.is_some() && wanted.sub_interface().is_none() {
            self.settle_now()?;
        }
        let (opened, fault) = match self.open_checked(wanted, index) {
            Ok(opened) => (opened, None),
            // A device may appear later: the interface is down until then, and everything else runs.
            Err(reason) if self.tolerant || ports::is_missing(wanted.device.as_ref()) => {
                tracing::error!(interface = name, error = reason, "port cannot be opened");
                (None, Some(Fault::new(reason, self.clock.now())))
            }
            Err(reason) => return Err(reason),
        };
        let (port, peer) =
            opened.map_or((None, None), |it| (Some(it.port), it.peer.map(Peer::new)));
        let drops = (0..self.workers.len())
            .map(|_| self.drop_map.counters())
            .collect();
        // The other end of a TAP is Linux, which has the device's address: ours must be another.
        let is_tap = matches!(
            wanted.device,
            Some(weir_config::Device::Tap { .. } | weir_config::Device::LinuxTap(_))
        );
        let mac = port
            .as_ref()
            .filter(|_| !is_tap)
            .and_then(|port| port.mac())
            .unwrap_or_else(|| match &wanted.device {
                Some(weir_config::Device::Memif(memif)) => ports::memif_mac(memif, index),
                _ => made_up_mac(index),
            });
        let mtu = u32::from(wanted.mtu);
        let counters = Arc::new(InterfaceCounters::new(self.workers.len()));
        let glean = self.nexthops.add_adjacency(Adjacency::glean(
            index,
            mtu,
            wanted.mac.map_or(mac.0, |mac| mac.0),
        ));
        let local = self.nexthops.add_adjacency(Adjacency::local(index));
        // Nothing can take a loopback, a pseudowire or a tunnel down but the configuration.
        let link = LinkState {
            up: !wanted.is_port() && wanted.sub_interface().is_none() && wanted.as_bond().is_none(),
            speed: 0,
        };
        let attached = Attached {
            name: name.into(),
            index,
            made: self.sflow.interface_made(index),
            port: None,
            fault,
            peer,
            link,
            placement: Vec::new(),
            tx_queues: 0,
            spare: Vec::new(),
            counters,
            drops,
            mac,
            glean,
            local,
            bindings: Bindings::default(),
            policers: AttachedPolicers::default(),
        };
        self.interfaces.insert(name.to_owned(), attached);
        self.sflow
            .number(|name| Some(self.interfaces.get(name)?.index));
        if let Some(port) = port {
            self.attach(name, port, &wanted.rx_queue_workers);
        }
        self.refresh(name);
        self.tunnels_changed |= wanted.as_vxlan().is_some();
        if let Some(sub) = wanted.sub_interface() {
            self.unshared.insert(sub.parent.clone());
            self.take_after_parent(name);
        }
        Ok(())
    }

    /// Opens the port of an interface that did not have one, if the machine does not use the device
    /// for itself and the device can carry the MTU.
    fn open_checked(
        &mut self,
        wanted: &weir_config::Interface,
        index: u32,
    ) -> Result<Option<ports::Opened>, String> {
        if let Some(weir_config::Device::AfXdp {
            name,
            allow_management: false,
            ..
        }) = &wanted.device
            && self.trial.is_none()
            && let Some(used) = management::use_of(name)
        {
            return Err(format!(
                "this machine uses the device {name} itself: it has {used}; choose another device, \
                 or set allow-management: true"
            ));
        }
        let opened = self.open_port(wanted, index)?;
        if let Some(opened) = &opened {
            let most = opened.port.capabilities().max_frame;
            let needed = usize::from(wanted.mtu) + 14;
            if needed > most {
                self.memory.withdraw(index);
                return Err(format!(
                    "{} carries frames of up to {most} bytes, an MTU of {} needs {needed}",
                    opened.port.device(),
                    wanted.mtu
                ));
            }
        }
        Ok(opened)
    }

    /// Opens what an interface is attached to, or what a test wants in its place.
    pub(crate) fn open_port(
        &mut self,
        wanted: &weir_config::Interface,
        index: u32,
    ) -> Result<Option<ports::Opened>, String> {
        let replaced = wanted
            .device
            .as_ref()
            .and_then(|device| self.trial.as_ref()?.open(device));
        let port = match replaced {
            Some(port) => port.map(|port| Some(ports::Opened { port, peer: None })),
            None => self.open_device(wanted, index),
        };
        port.map_err(|error| {
            self.memory.withdraw(index);
            error.to_string()
        })
    }

    fn open_device(
        &mut self,
        wanted: &weir_config::Interface,
        index: u32,
    ) -> Result<Option<ports::Opened>, OpenError> {
        let share = match ports::lending_queues(wanted.device.as_ref()) {
            0 => 0,
            queues => self.memory.promise(index, queues)?,
        };
        let own = self.mac_of_pair(wanted).unwrap_or(made_up_mac(index));
        let pool = self.memory.of_device(wanted.device.as_ref());
        ports::open(wanted, own, pool, share)
    }

    /// The MAC address of the interface that a TAP is the Linux end of.
    fn mac_of_pair(&self, wanted: &weir_config::Interface) -> Option<MacAddr> {
        let pair = &crate::linux::tap_of(wanted)?.interface;
        Some(self.tables.interface(self.index_of(pair))?.mac)
    }

    /// Takes a port into use.
    fn attach(&mut self, name: &str, mut port: Box<dyn Port>, wanted: &[u16]) {
        let queues = port.take_queues();
        let Some(attached) = self.interfaces.get_mut(name) else {
            return;
        };
        attached.link = port.link();
        attached.port = Some(port);
        self.hand_out(name, queues, wanted);
    }

    /// Hands a port's queues to workers; its receive queues with [`Control::begin_receiving`].
    fn hand_out(&mut self, name: &str, queues: Vec<QueuePair>, wanted: &[u16]) {
        let count = self.workers.len().max(1);
        let Some(attached) = self.interfaces.get_mut(name) else {
            return;
        };
        let index = attached.index;
        let mut owners = Vec::new();
        attached.placement.clear();
        for (number, queue) in queues.into_iter().enumerate() {
            let worker = match wanted.get(number) {
                Some(&worker) => usize::from(worker) % count,
                None => {
                    self.next_worker = (self.next_worker + 1) % count;
                    (self.next_worker + count - 1) % count
                }
            };
            attached.placement.push(worker);
            let Some(handle) = self.workers.get_mut(worker) else {
                continue;
            };
            match queue.tx {
                Some(tx) if owners.contains(&worker) => attached.spare.push((number, tx)),
                Some(tx) => {
                    handle.tell(Command::AddTx {
                        interface: index,
                        number,
                        queue: tx,
                        work: Arc::default(),
                    });
                    owners.push(worker);
                }
                None => {}
            }
            if let Some(queue) = queue.rx {
                self.arriving.push(Arriving {
                    worker,
                    interface: index,
                    number,
                    queue,
                });
            }
        }
        attached.tx_queues = owners.len();
        for (number, handle) in self.workers.iter_mut().enumerate() {
            if !owners.is_empty() && !owners.contains(&number) {
                handle.tell(Command::HandTo {
                    interface: index,
                    worker: owners[number % owners.len()],
                });
            }
        }
        self.workers.iter_mut().for_each(|worker| {
            worker.sync();
        });
    }

    /// Hands the receive queues out that wait for it, those of the interfaces that `of` says.
    pub(crate) fn begin_receiving(&mut self, of: impl Fn(u32) -> bool) {
        let (now, later) = std::mem::take(&mut self.arriving)
            .into_iter()
            .partition(|it| of(it.interface));
        self.arriving = later;
        let now: Vec<Arriving> = now;
        for Arriving {
            worker,
            interface,
            number,
            queue,
        } in now
        {
            if let Some(handle) = self.workers.get_mut(worker) {
                handle.tell(Command::AddRx {
                    interface,
                    number,
                    queue,
                    work: Arc::default(),
                });
                handle.sync();
            }
        }
    }

    /// Takes a port's queues back from the workers.
    fn take_back(&mut self, attached: &mut Attached) -> Vec<QueuePair> {
        let interface = attached.index;
        let mut queues: Vec<QueuePair> = attached
            .placement
            .drain(..)
            .map(|_| QueuePair { rx: None, tx: None })
            .collect();
        attached.tx_queues = 0;
        for worker in &mut self.workers {
            worker.tell(Command::Remove { interface });
        }
        let spare = attached
            .spare
            .drain(..)
            .map(|(number, queue)| Returned::Tx(number, queue));
        let (here, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.arriving)
            .into_iter()
            .partition(|it| it.interface == interface);
        self.arriving = others;
        let mut returned: Vec<Returned> = spare
            .chain(here.into_iter().map(|it| Returned::Rx(it.number, it.queue)))
            .collect();
        for worker in &mut self.workers {
            worker.sync();
            returned.extend(std::iter::from_fn(|| worker.returned.pop()));
        }
        for queue in returned {
            match queue {
                Returned::Rx(number, queue) => queues
                    .get_mut(number)
                    .map(|pair| pair.rx.replace(queue))
                    .map_or((), drop),
                Returned::Tx(number, queue) => queues
                    .get_mut(number)
                    .map(|pair| pair.tx.replace(queue))
                    .map_or((), drop),
            }
        }
        queues
    }

    /// Takes a port's queues back from the workers and closes it.
    fn detach(&mut self, attached: &mut Attached) {
        drop(self.take_back(attached));
        drop(attached.port.take());
        self.memory.withdraw(attached.index);
    }

    /// Opens the port of an interface again, whose device had vanished.
    pub(crate) fn reopen(&mut self, name: &str) -> Result<(), String> {
        let Some(wanted) = self.config.interfaces.get(name).cloned() else {
            return Ok(());
        };
        if let Some(mut attached) = self.interfaces.remove(name) {
            self.detach(&mut attached);
            self.interfaces.insert(name.to_owned(), attached);
        }
        let index = self.index_of(name);
        let faulty = |attached: &Attached| attached.fault.is_some();
        // A device that this router had before is taken again, whatever has been done to it since.
        let port = if self.interfaces.get(name).is_some_and(faulty) {
            self.open_checked(&wanted, index)
        } else {
            self.open_port(&wanted, index)
        };
        let result = match port {
            Ok(Some(opened)) => {
                let port = opened.port;
                let is_tap = matches!(
                    wanted.device,
                    Some(weir_config::Device::Tap { .. } | weir_config::Device::LinuxTap(_))
                );
                if let (Some(attached), Some(mac), false) =
                    (self.interfaces.get_mut(name), port.mac(), is_tap)
                {
                    attached.mac = mac;
                }
                if let Some(attached) = self.interfaces.get_mut(name) {
                    attached.fault = None;
                    attached.peer = opened.peer.map(Peer::new);
                }
                self.attach(name, port, &wanted.rx_queue_workers);
                self.reopened.insert(name.to_owned());
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.refresh(name);
        let index = self.index_of(name);
        self.begin_receiving(|interface| interface == index);
        self.refresh_adjacencies(index);
        let up = self
            .interfaces
            .get(name)
            .is_some_and(|attached| attached.link.up);
        self.set_paths_up(index, up);
        result
    }

    /// Moves queues to the workers that they are wanted on. The port stays open, so that a peer does not
    /// notice and what waits in a queue goes along; what leaves while nobody has a queue is dropped, counted.
    fn place_again(&mut self, name: &str) -> Result<(), String> {
        let Some(wanted) = self
            .config
            .interfaces
            .get(name)
            .map(|wanted| wanted.rx_queue_workers.clone())
        else {
            return Ok(());
        };
        let Some(mut attached) = self.interfaces.remove(name) else {
            return Ok(());
        };
        let index = attached.index;
        let is_new = self.arriving.iter().any(|it| it.interface == index);
        let queues = self.take_back(&mut attached);
        self.interfaces.insert(name.to_owned(), attached);
        self.hand_out(name, queues, &wanted);
        self.refresh(name);
        // One that receives goes on with it at once.
        self.begin_receiving(|interface| interface == index && !is_new);
        Ok(())
    }

    /// Takes an interface out of the tables; its port is closed when no worker sees it any more.
    fn delete_interface(&mut self, name: &str) {
        let index = self.index_of(name);
        let mut actions = Vec::new();
        self.neighbors
            .forget(|place| place.interface == index, &mut actions);
        self.carry_out(actions);
        if let Some(place) = self.tables.interfaces.get_mut(index as usize) {
            *place = None;
        }
        self.stale = true;
        let Some(gone) = self.interfaces.remove(name) else {
            return;
        };
        self.nexthops.abandon_adjacency(gone.glean);
        self.nexthops.abandon_adjacency(gone.local);
        self.leaving.push(gone);
    }

    /// Closes the ports of interfaces that are gone from the workers' tables.
    pub(crate) fn close_leaving(&mut self) {
        for mut gone in std::mem::take(&mut self.leaving) {
            if gone.port.is_some() {
                self.detach(&mut gone);
            }
            self.keep_drops_of(&gone);
        }
    }

    /// What packets of an interface that goes were dropped for stays in the balance.
    fn keep_drops_of(&mut self, gone: &Attached) {
        for (worker, counters) in gone.drops.iter().enumerate() {
            for place in 0..self.drop_map.pairs().len() {
                let count = counters.get(place);
                if count > 0 {
                    self.drops_of_the_gone.add(&gone.name, worker, place, count);
                }
            }
        }
    }

    fn add_address(&mut self, name: &str, address: IpNet) -> Result<(), String> {
        self.refresh(name);
        self.refresh_borrowers(name);
        let Some((index, glean, local)) = self
            .interfaces
            .get(name)
            .map(|attached| (attached.index, attached.glean, attached.local))
        else {
            return Err(format!("there is no interface {name}"));
        };
        let table = self.table_of(index);
        if address.addr().is_ipv6() {
            self.subnets.insert(table, index, &link_local_subnet());
        }
        self.subnets.insert(table, index, &address);
        for (prefix, source) in routes_of(address) {
            let is_subnet = source == RouteSource::Connected && prefix == address.trunc();
            let group = self.single(if is_subnet { glean } else { local });
            self.set_route_soon(table, prefix, source, group)?;
        }
        Ok(())
    }

    fn remove_address(&mut self, name: &str, address: IpNet) {
        self.refresh(name);
        self.refresh_borrowers(name);
        let (index, subnet) = (self.index_of(name), address.trunc());
        let table = self.table_of(index);
        let (mut shared, mut has_ipv6) = (false, false);
        if let Some(wanted) = self.config.interfaces.get(name) {
            (shared, has_ipv6) = (
                wanted.addresses.iter().any(|other| other.trunc() == subnet),
                wanted.has_ipv6(),
            );
        }
        for (prefix, source) in routes_of(address) {
            if source == RouteSource::Local || !shared {
                self.unset_route(table, prefix, source);
            }
        }
        if !shared {
            self.leave_subnet(table, index, subnet);
        }
        if address.addr().is_ipv6() && !has_ipv6 {
            self.leave_subnet(table, index, link_local_subnet());
        }
    }

    /// Those who borrow addresses of an interface take over what it has now.
    fn refresh_borrowers(&mut self, lender: &str) {
        let config = &self.config;
        let all = self.borrowers.get_or_insert_with(|| {
            let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (name, interface) in &config.interfaces {
                if let Some(lender) = &interface.unnumbered {
                    all.entry(lender.clone()).or_default().push(name.clone());
                }
            }
            all
        });
        let borrowers = all.get(lender).cloned().unwrap_or_default();
        borrowers.iter().for_each(|name| self.refresh(name));
    }

    /// An interface has a subnet no more: who was learnt in it goes.
    fn leave_subnet(&mut self, table: u32, index: u32, subnet: IpNet) {
        self.subnets.remove(table, index, &subnet);
        let mut actions = Vec::new();
        self.neighbors.forget(
            |place| place.interface == index && subnet.contains(&place.address),
            &mut actions,
        );
        self.carry_out(actions);
    }

    /// The table of an interface.
    pub(crate) fn table_of(&self, index: u32) -> u32 {
        self.tables
            .interface(index)
            .map_or(0, |interface| interface.table)
    }

    fn set_static(&mut self, interface: &str, address: IpAddr, mac: Option<MacAddr>) {
        let place = Place {
            interface: self.index_of(interface),
            address,
        };
        let (now, mut actions) = (self.clock.now(), Vec::new());
        self.neighbors.set_static(place, mac, now, &mut actions);
        self.carry_out(actions);
    }

    /// The neighbours that a route's paths lead to.
    fn places<'v>(&self, vrf: Option<&str>, via: &'v Via) -> Vec<(Place, &'v weir_config::Path)> {
        // Those of next hops that are looked up are held with their group.
        let Some(table) = self.place_of_vrf(vrf).filter(|_| !via.is_recursive()) else {
            return Vec::new();
        };
        let nobody = |path: &weir_config::Path| Place {
            interface: 0,
            address: path.next_hop,
        };
        via.paths()
            .iter()
            .map(|path| {
                (
                    self.place(table, path).unwrap_or_else(|| nobody(path)),
                    path,
                )
            })
            .collect()
    }

    /// The group that a `via` in a table leads to, whose neighbours are held from here on. `before` is the group that it
    /// takes the place of.
    pub(crate) fn group_of(
        &mut self,
        vrf: Option<&str>,
        via: &Via,
        before: Option<u32>,
    ) -> Result<u32, String> {
        let places = self.places(vrf, via);
        let (now, mut actions) = (self.clock.now(), Vec::new());
        for (place, _) in &places {
            self.neighbors.hold_for_route(*place, now, &mut actions);
        }
        self.carry_out(actions);
        match via {
            Via::Blackhole => Ok(self.single(self.nowhere.blackhole)),
            Via::Unreachable => Ok(self.single(self.nowhere.unreachable)),
            Via::Prohibit => Ok(self.single(self.nowhere.prohibit)),
            Via::Paths(_) | Via::Resilient(_) if via.is_recursive() => {
                let table = self
                    .place_of_vrf(vrf)
                    .ok_or_else(|| format!("there is no vrf {}", vrf.unwrap_or_default()))?;
                self.acquire_recursive(table, via)
            }
            Via::Paths(_) | Via::Resilient(_) => {
                let path = |(place, path): &(Place, &weir_config::Path)| {
                    let adjacency = self
                        .adjacencies
                        .get(place)
                        .copied()
                        .unwrap_or(weir_fib::DROP);
                    Path {
                        weight: u32::from(path.weight),
                        labels: crate::labels::pushed(path),
                        ..Path::to(adjacency)
                    }
                };
                let paths = places.iter().map(path);
                let resilient = matches!(via, Via::Resilient(_));
                let group = if resilient {
                    Group::resilient(paths, before.and_then(|it| self.nexthops.group(it)))
                } else {
                    Group::new(paths)
                };
                let group = group.map_err(|error| error.to_string())?;
                self.nexthops
                    .acquire(group)
                    .map_err(|error| error.to_string())
            }
        }
    }

    fn add_route(&mut self, key: &RouteKey, via: &Via) -> Result<(), String> {
        let group = self.group_of(key.vrf.as_deref(), via, self.group_before(key))?;
        let table = self
            .place_of_vrf(key.vrf.as_deref())
            .ok_or_else(|| format!("route {key}: there is no such table"))?;
        self.set_route_soon(table, key.prefix, RouteSource::Static, group)
    }

    /// The group that a static route leads over until it changes.
    fn group_before(&self, key: &RouteKey) -> Option<u32> {
        let table = self.place_of_vrf(key.vrf.as_deref())?;
        let routes = self.routing.get(table as usize)?.as_ref()?;
        routes.of(key.prefix, RouteSource::Static)
    }

    pub(crate) fn let_go(&mut self, vrf: Option<&str>, via: &Via) {
        let mut actions = Vec::new();
        for (place, _) in self.places(vrf, via) {
            self.neighbors.let_go(place, &mut actions);
        }
        self.carry_out(actions);
    }
}

/// The routes that come with an own address: itself, its subnet, and of IPv4 subnets the addresses that no
/// host has (RFC 1122 section 3.2.1.3). None with a link-local one, which is on every link.
fn routes_of(address: IpNet) -> Vec<(IpNet, RouteSource)> {
    if weir_config::is_link_local(address.addr()) {
        return Vec::new();
    }
    let mut routes = vec![(IpNet::from(address.addr()), RouteSource::Local)];
    // Other addresses of the subnet bring it too, so that it goes with the last of them, as the subnet's route does.
    if let IpNet::V6(address) = address
        && let Some(anycast) = subnet_anycast6(address.addr().into(), address.prefix_len())
    {
        let anycast = Ipv6Addr::from(anycast);
        routes.push((IpAddr::from(anycast).into(), RouteSource::Connected));
    }
    if address.prefix_len() < address.max_prefix_len() {
        routes.push((address.trunc(), RouteSource::Connected));
    }
    if let IpNet::V4(address) = address
        && address.prefix_len() < 31
    {
        routes.extend(
            [address.network(), address.broadcast()]
                .map(|edge| (Ipv4Net::from(edge).into(), RouteSource::Connected)),
        );
    }
    routes
}

/// A locally administered address for an interface whose device has none.
pub(crate) fn made_up_mac(index: u32) -> MacAddr {
    let [a, b, c, d] = index.to_be_bytes();
    MacAddr([0x02, 0x77, a, b, c, d])
}
