//! What each step means for a configuration held as a value.
//!
//! The engine calls this after it has done a step for real, and so keeps its running
//! configuration; the tests use it as the model that a plan is proved against. It is strict: a
//! step whose `from` is not what the model holds is refused, because then the plan was made for
//! another configuration, and undoing it would not lead back.

use std::collections::BTreeMap;

use crate::model::{Config, Interface, NeighborKey};
use crate::step::{RestartChange, Step};

/// A step does not fit the configuration it was to be applied to; the configuration is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step does not fit the running configuration: {step}")]
pub struct StepMisfit {
    /// The step, in its one-line form.
    pub step: String,
}

/// Make the change that `step` stands for in `config`.
///
/// `NeedsRestart` is applied, too; whoever did not restart leaves it out.
///
/// # Errors
/// When the step was made for another configuration; `config` is unchanged then.
pub fn apply_to_model(config: &mut Config, step: &Step) -> Result<(), StepMisfit> {
    match fit(config, step) {
        Some(()) => Ok(()),
        None => Err(StepMisfit {
            step: step.to_string(),
        }),
    }
}

/// The steps that change one field of an interface: what such a step does, if it is one.
macro_rules! set_field {
    ($interfaces:expr, $step:expr; $($variant:ident: $field:ident,)*) => {
        match $step {
            $(Step::$variant { interface, from, to } => {
                let set = $interfaces.get_mut(interface).and_then(|it| set(&mut it.$field, from, to));
                Some(set)
            })*
            _ => None,
        }
    };
}

fn fit(config: &mut Config, step: &Step) -> Option<()> {
    let interfaces = &mut config.interfaces;
    let field_set = set_field! {
        interfaces, step;
        SetDescription: description,
        SetMac: mac,
        SetMtu: mtu,
        SetRouterAdvertisements: router_advertisements,
        SetPlacement: rx_queue_workers,
        SetState: state,
        SetL2xc: l2xc,
        SetAcl: acl,
        SetUnnumbered: unnumbered,
        SetUrpf: urpf,
        SetPolice: police,
        SetSflow: sflow,
        SetBond: bond,
        SetMpls: mpls,
    };
    if let Some(done) = field_set {
        return done;
    }
    match step {
        Step::CreateInterface { name, interface } => when(!interfaces.contains_key(name), || {
            interfaces.insert(name.clone(), interface.clone());
        }),
        Step::DeleteInterface { name, interface } => {
            when(interfaces.get(name) == Some(interface), || {
                interfaces.remove(name);
            })
        }
        Step::SetVrf {
            interface,
            from,
            to,
        } => {
            let it = interfaces
                .get_mut(interface)
                .filter(|it| it.addresses.is_empty())?;
            set(&mut it.vrf, from, to)
        }
        Step::AddAddress { interface, address } => {
            done(interfaces.get_mut(interface)?.addresses.insert(*address))
        }
        Step::RemoveAddress { interface, address } => {
            done(interfaces.get_mut(interface)?.addresses.remove(address))
        }
        _ => fit_shared(config, step),
    }
}

/// The steps that are about no single interface.
fn fit_shared(config: &mut Config, step: &Step) -> Option<()> {
    match step {
        Step::AddNeighbor {
            interface,
            address,
            mac,
        } => {
            let key = NeighborKey {
                interface: interface.clone(),
                address: *address,
            };
            when(!config.neighbors.contains_key(&key), || {
                config.neighbors.insert(key, *mac);
            })
        }
        Step::RemoveNeighbor {
            interface,
            address,
            mac,
        } => {
            let key = NeighborKey {
                interface: interface.clone(),
                address: *address,
            };
            when(config.neighbors.get(&key) == Some(mac), || {
                config.neighbors.remove(&key);
            })
        }
        Step::ChangeNeighbor {
            interface,
            address,
            from,
            to,
        } => {
            let key = NeighborKey {
                interface: interface.clone(),
                address: *address,
            };
            set(config.neighbors.get_mut(&key)?, from, to)
        }
        Step::CreateVrf { name, vrf } => when(!config.vrfs.contains_key(name), || {
            config.vrfs.insert(name.clone(), vrf.clone());
        }),
        Step::DeleteVrf { name, vrf } => when(config.vrfs.get(name) == Some(vrf), || {
            config.vrfs.remove(name);
        }),
        Step::CreateBridge { name, bridge } => when(!config.bridges.contains_key(name), || {
            config.bridges.insert(name.clone(), bridge.clone());
        }),
        Step::DeleteBridge { name, bridge } => {
            when(config.bridges.get(name) == Some(bridge), || {
                config.bridges.remove(name);
            })
        }
        Step::SetBridge { name, from, to } => {
            let bridge = config.bridges.get_mut(name)?;
            when(bridge.at_rest() == *from, || {
                (bridge.description, bridge.mtu, bridge.settings) =
                    (to.description.clone(), to.mtu, to.settings);
                bridge.arp_entries = to.arp_entries.clone();
            })
        }
        Step::JoinBridge {
            bridge,
            interface,
            role,
        } => config.bridges.get_mut(bridge)?.join(interface, *role),
        Step::LeaveBridge {
            bridge,
            interface,
            role,
        } => config.bridges.get_mut(bridge)?.leave(interface, *role),
        Step::AddStaticMac { bridge, entry } => done(
            config
                .bridges
                .get_mut(bridge)?
                .static_macs
                .insert(entry.clone()),
        ),
        Step::RemoveStaticMac { bridge, entry } => {
            done(config.bridges.get_mut(bridge)?.static_macs.remove(entry))
        }
        Step::SetPrefixList { name, from, to } => {
            set_entry(&mut config.prefix_lists, name, from, to)
        }
        Step::SetAccessList { name, from, to } => {
            set_entry(&mut config.access_lists, name, from, to)
        }
        Step::ChangeVrf { name, from, to } => set(config.vrfs.get_mut(name)?, from, to),
        Step::AddRoute { key, via } => when(!config.routes.contains_key(key), || {
            config.routes.insert(key.clone(), via.clone());
        }),
        Step::RemoveRoute { key, via } => when(config.routes.get(key) == Some(via), || {
            config.routes.remove(key);
        }),
        Step::ChangeRoute { key, from, to } => set(config.routes.get_mut(key)?, from, to),
        Step::AddLabel { label, entry } => when(!config.mpls.labels.contains_key(label), || {
            config.mpls.labels.insert(*label, entry.clone());
        }),
        Step::RemoveLabel { label, entry } => {
            when(config.mpls.labels.get(label) == Some(entry), || {
                config.mpls.labels.remove(label);
            })
        }
        Step::ChangeLabel { label, from, to } => set(config.mpls.labels.get_mut(label)?, from, to),
        Step::AddPseudowire { name, pseudowire } => {
            when(!config.pseudowires.contains_key(name), || {
                config.pseudowires.insert(name.clone(), pseudowire.clone());
            })
        }
        Step::RemovePseudowire { name, pseudowire } => {
            when(config.pseudowires.get(name) == Some(pseudowire), || {
                config.pseudowires.remove(name);
            })
        }
        Step::ChangePseudowire { name, from, to } => {
            set(config.pseudowires.get_mut(name)?, from, to)
        }
        Step::SetSflowSettings { from, to } => set(&mut config.sflow, from, to),
        Step::SetIpfix { from, to } => set(&mut config.ipfix, from, to),
        Step::SetLinux { from, to } => set(&mut config.linux, from, to),
        Step::SetPeering { from, to } => set(&mut config.peering, from, to),
        Step::SetIp4 { from, to } => set(&mut config.ip4, from, to),
        Step::SetAccess { from, to } => set(&mut config.api, from.as_ref(), to.as_ref()),
        Step::SetLogLevel { from, to } => set(&mut config.logging.level, from, to),
        Step::NeedsRestart { change } => match change {
            RestartChange::Workers { from, to } => set(&mut config.workers, from, to),
            RestartChange::Buffers { from, to } => set(&mut config.buffers, from, to),
            RestartChange::Api { from, to } => set(&mut config.api, from.as_ref(), to.as_ref()),
            RestartChange::LogFormat { from, to } => set(&mut config.logging.format, from, to),
            RestartChange::History { from, to } => set(&mut config.history, from, to),
        },
        // The steps about one interface were taken by `fit`.
        _ => None,
    }
}

fn set<T: PartialEq + Clone>(place: &mut T, from: &T, to: &T) -> Option<()> {
    when(place == from, || *place = to.clone())
}

/// An entry that is added, changed or taken away.
fn set_entry<V: PartialEq + Clone>(
    entries: &mut BTreeMap<String, V>,
    name: &str,
    from: &Option<V>,
    to: &Option<V>,
) -> Option<()> {
    when(entries.get(name) == from.as_ref(), || match to {
        Some(to) => drop(entries.insert(name.to_owned(), to.clone())),
        None => drop(entries.remove(name)),
    })
}

fn done(changed: bool) -> Option<()> {
    changed.then_some(())
}

fn when(fits: bool, change: impl FnOnce()) -> Option<()> {
    fits.then(change)
}

impl Interface {
    /// This interface as it is created and deleted: down, without addresses, cross connect and
    /// sampling.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        Self {
            state: crate::model::AdminState::Down,
            addresses: std::collections::BTreeSet::new(),
            unnumbered: None,
            l2xc: None,
            acl: crate::access_list::Binding::default(),
            urpf: None,
            police: crate::model::Police::default(),
            sflow: false,
            bond: None,
            mpls: false,
            ..self.clone()
        }
    }
}
