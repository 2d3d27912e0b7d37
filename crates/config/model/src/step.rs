//! The steps that turn one configuration into another.
//!
//! A step is the smallest change the engine makes in one go. It carries all it needs to be done
//! *and* undone: a change holds `from` and `to`, a removal holds what is removed. That is what
//! makes `apply` a transaction: when a step fails, the inverses of those before it are played
//! backwards. `apply_to_model` (in `apply.rs`) says what each step means for a `Config`, and the
//! engine keeps its running configuration with it.
//!
//! An interface is created and deleted *at rest*: down, without addresses, cross connect and
//! sampling. Those follow, or precede, as steps of their own, so that each has one place in the
//! engine where it is done.

mod display;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use weir_config_derive::Kinds;

use crate::access_list::{AccessList, Binding, PrefixList};
use crate::bridge::{Bridge, BridgeRole, StaticMac};
use crate::ipfix::Ipfix;
use crate::linux::Linux;
use crate::model::{AdminState, Interface, Police, RouteKey, RouterAdvertisements, Urpf, Via, Vrf};
use crate::mpls::LabelEntry;
use crate::pseudowire::Pseudowire;
use crate::scalar::MacAddr;
use crate::settings::{Api, Buffers, History, Ip4, LogFormat, LogLevel, Workers};
use crate::sflow::Sflow;

/// One change of the running router.
#[derive(Debug, Clone, PartialEq, Eq, Kinds)]
pub enum Step {
    /// Make an interface, at rest: description, device, MAC, MTU and placement are as given.
    CreateInterface {
        /// Its name.
        name: String,
        /// Its settings; down, without addresses, cross connect and sampling.
        interface: Interface,
    },
    /// Take an interface away that is at rest.
    DeleteInterface {
        /// Its name.
        name: String,
        /// Its settings as they were; down, without addresses, cross connect and sampling.
        interface: Interface,
    },
    /// Change the text for people.
    SetDescription {
        /// Which interface.
        interface: String,
        /// The old text.
        from: Option<String>,
        /// The new text.
        to: Option<String>,
    },
    /// Change the MAC address; `None` is the device's own.
    SetMac {
        /// Which interface.
        interface: String,
        /// The old address.
        from: Option<MacAddr>,
        /// The new address.
        to: Option<MacAddr>,
    },
    /// Change the router advertisements.
    SetRouterAdvertisements {
        /// Which interface.
        interface: String,
        /// The old ones; none when absent.
        from: Option<RouterAdvertisements>,
        /// The new ones; none when absent.
        to: Option<RouterAdvertisements>,
    },
    /// Change the MTU.
    SetMtu {
        /// Which interface.
        interface: String,
        /// The old MTU in bytes.
        from: u16,
        /// The new MTU in bytes.
        to: u16,
    },
    /// Change which workers serve the receive queues.
    SetPlacement {
        /// Which interface.
        interface: String,
        /// The old list: the worker of queue 0, 1, …
        from: Vec<u16>,
        /// The new list.
        to: Vec<u16>,
    },
    /// Bring an interface up or down.
    SetState {
        /// Which interface.
        interface: String,
        /// The old state.
        from: AdminState,
        /// The new state.
        to: AdminState,
    },
    /// Make a table.
    CreateVrf {
        /// Its name.
        name: String,
        /// Its settings.
        vrf: Vrf,
    },
    /// Take a table away in which nothing is left.
    DeleteVrf {
        /// Its name.
        name: String,
        /// Its settings as they were.
        vrf: Vrf,
    },
    /// Change the number of a table, or the text for people; nothing in it changes.
    ChangeVrf {
        /// Its name.
        name: String,
        /// The old settings.
        from: Vrf,
        /// The new settings.
        to: Vrf,
    },
    /// Move an interface without addresses into another table; `None` is the default one.
    SetVrf {
        /// Which interface.
        interface: String,
        /// The old table.
        from: Option<String>,
        /// The new table.
        to: Option<String>,
    },
    /// Take labelled packets on an interface, or no more.
    SetMpls {
        /// Which interface.
        interface: String,
        /// Whether it did.
        from: bool,
        /// Whether it shall.
        to: bool,
    },
    /// Say what is done with an incoming label.
    AddLabel {
        /// The label.
        label: u32,
        /// What is done.
        entry: LabelEntry,
    },
    /// Forget an incoming label.
    RemoveLabel {
        /// The label.
        label: u32,
        /// What was done.
        entry: LabelEntry,
    },
    /// Do something else with an incoming label; no packet is lost between.
    ChangeLabel {
        /// The label.
        label: u32,
        /// What was done.
        from: LabelEntry,
        /// What is to be done.
        to: LabelEntry,
    },
    /// Give an interface an own address and its connected subnet.
    AddAddress {
        /// Which interface.
        interface: String,
        /// The address with its subnet.
        address: IpNet,
    },
    /// Take an own address and its connected subnet away.
    RemoveAddress {
        /// Which interface.
        interface: String,
        /// The address with its subnet.
        address: IpNet,
    },
    /// Borrow the addresses of an interface, of another one, or of none any more.
    SetUnnumbered {
        /// Which interface.
        interface: String,
        /// The interface whose addresses it borrowed.
        from: Option<String>,
        /// The interface whose addresses it borrows from now on.
        to: Option<String>,
    },
    /// Change the interface that everything received leaves by.
    SetL2xc {
        /// Which interface.
        interface: String,
        /// The old target.
        from: Option<String>,
        /// The new target; `None` = packets are looked at again.
        to: Option<String>,
    },
    /// Change the access lists that an interface's packets pass.
    SetAcl {
        /// Which interface.
        interface: String,
        /// The old lists.
        from: Binding,
        /// The new lists.
        to: Binding,
    },
    /// Add, change or remove a prefix list.
    SetPrefixList {
        /// Its name.
        name: String,
        /// As it was; absent when it is new.
        from: Option<PrefixList>,
        /// As it is from now on; absent when it goes.
        to: Option<PrefixList>,
    },
    /// Add, change or remove an access list.
    SetAccessList {
        /// Its name.
        name: String,
        /// As it was; absent when it is new.
        from: Option<AccessList>,
        /// As it is from now on; absent when it goes.
        to: Option<AccessList>,
    },
    /// Take an interface into a bond, or out of it.
    SetBond {
        /// Which interface.
        interface: String,
        /// The bond that it was a member of.
        from: Option<String>,
        /// The bond that it is a member of from now on.
        to: Option<String>,
    },
    /// Look at the way back to sources, otherwise, or no longer.
    SetUrpf {
        /// Which interface.
        interface: String,
        /// How it was looked at; not at all when absent.
        from: Option<Urpf>,
        /// How it is looked at from now on.
        to: Option<Urpf>,
    },
    /// Limit what comes in and goes out, otherwise, or no longer.
    SetPolice {
        /// Which interface.
        interface: String,
        /// What it was limited to.
        from: Police,
        /// What it is limited to from now on.
        to: Police,
    },
    /// Start or stop sampling what an interface receives.
    SetSflow {
        /// Which interface.
        interface: String,
        /// Whether it was sampled.
        from: bool,
        /// Whether it is sampled from now on.
        to: bool,
    },
    /// Make a bridge domain, with nothing in it.
    CreateBridge {
        /// Its name.
        name: String,
        /// Its settings; without members, BVI and static entries.
        bridge: Bridge,
    },
    /// Take a bridge domain away in which nothing is left.
    DeleteBridge {
        /// Its name.
        name: String,
        /// Its settings as they were; without members, BVI and static entries.
        bridge: Bridge,
    },
    /// Change the settings of a bridge domain; who is in it stays.
    SetBridge {
        /// Its name.
        name: String,
        /// The old settings, at rest.
        from: Bridge,
        /// The new settings, at rest.
        to: Bridge,
    },
    /// Take an interface into a bridge domain.
    JoinBridge {
        /// The domain.
        bridge: String,
        /// The interface.
        interface: String,
        /// What it is there.
        role: BridgeRole,
    },
    /// Take an interface out of its bridge domain.
    LeaveBridge {
        /// The domain.
        bridge: String,
        /// The interface.
        interface: String,
        /// What it was there.
        role: BridgeRole,
    },
    /// Bind a station to a member of a bridge domain.
    AddStaticMac {
        /// The domain.
        bridge: String,
        /// Station and member.
        entry: StaticMac,
    },
    /// Let a station go that was bound to a member.
    RemoveStaticMac {
        /// The domain.
        bridge: String,
        /// Station and member.
        entry: StaticMac,
    },
    /// Add a static neighbour.
    AddNeighbor {
        /// The interface it is behind.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// Its MAC address.
        mac: MacAddr,
    },
    /// Take a static neighbour away.
    RemoveNeighbor {
        /// The interface it is behind.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// Its MAC address as it was.
        mac: MacAddr,
    },
    /// Change the MAC address of a static neighbour in place.
    ChangeNeighbor {
        /// The interface it is behind.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// The old MAC address.
        from: MacAddr,
        /// The new MAC address.
        to: MacAddr,
    },
    /// Add a static route.
    AddRoute {
        /// What it is for.
        key: RouteKey,
        /// Where it leads.
        via: Via,
    },
    /// Take a static route away.
    RemoveRoute {
        /// What it was for.
        key: RouteKey,
        /// Where it led.
        via: Via,
    },
    /// Lead a static route elsewhere, without a moment in which it is missing.
    ChangeRoute {
        /// What it is for.
        key: RouteKey,
        /// Where it led.
        from: Via,
        /// Where it leads from now on.
        to: Via,
    },
    /// Bind a pseudowire's interface to its labels.
    AddPseudowire {
        /// The interface.
        name: String,
        /// Its labels and the way to the far end.
        pseudowire: Pseudowire,
    },
    /// Take the labels of a pseudowire away; its interface stays.
    RemovePseudowire {
        /// The interface.
        name: String,
        /// Its labels and the way as they were.
        pseudowire: Pseudowire,
    },
    /// Lead a pseudowire elsewhere, without a moment in which it is missing.
    ChangePseudowire {
        /// The interface.
        name: String,
        /// The way as it was.
        from: Pseudowire,
        /// The way from now on; the label of its own is the same.
        to: Pseudowire,
    },
    /// Change the settings of the sFlow sampler and agent.
    SetSflowSettings {
        /// The old settings.
        from: Sflow,
        /// The new settings.
        to: Sflow,
    },
    /// Change what flows are metered, and where records go.
    SetIpfix {
        /// The old settings.
        from: Box<Ipfix>,
        /// The new settings.
        to: Box<Ipfix>,
    },
    /// Change which interfaces Linux has a TAP of.
    SetLinux {
        /// The old ones.
        from: Box<Linux>,
        /// The new ones.
        to: Box<Linux>,
    },
    /// Change what is done with IPv4 packets.
    SetIp4 {
        /// The old settings.
        from: Ip4,
        /// The new settings.
        to: Ip4,
    },
    /// Change the BGP policy. The daemon that runs it is changed behind all steps.
    SetPeering {
        /// The old section.
        from: Option<serde_json::Value>,
        /// The new section.
        to: Option<serde_json::Value>,
    },
    /// Change the tokens and certificates that the API lets in.
    SetAccess {
        /// The old settings of the API.
        from: Box<Api>,
        /// The new ones; they listen where the old ones do.
        to: Box<Api>,
    },
    /// Change how much is logged.
    SetLogLevel {
        /// The old level.
        from: LogLevel,
        /// The new level.
        to: LogLevel,
    },
    /// A change that only a restart can make. Whoever executes plans says so to the user, and
    /// keeps the old value in its running configuration until then, so that the next plan names
    /// it again.
    NeedsRestart {
        /// What would change.
        change: RestartChange,
    },
}

/// A setting that is read once, when the router starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartChange {
    /// Worker threads.
    Workers {
        /// As they run.
        from: Workers,
        /// As they are wanted.
        to: Workers,
    },
    /// Packet memory.
    Buffers {
        /// As it is.
        from: Buffers,
        /// As it is wanted.
        to: Buffers,
    },
    /// Where the API listens, and who is let in.
    Api {
        /// As it is.
        from: Box<Api>,
        /// As it is wanted.
        to: Box<Api>,
    },
    /// The form of the log.
    LogFormat {
        /// As it is.
        from: LogFormat,
        /// As it is wanted.
        to: LogFormat,
    },
    /// Where applied configurations are kept.
    History {
        /// As it is.
        from: History,
        /// As it is wanted.
        to: History,
    },
}

impl RestartChange {
    /// The section of the file that it is about.
    #[must_use]
    pub const fn section(&self) -> &'static str {
        match self {
            Self::Workers { .. } => "workers",
            Self::Buffers { .. } => "buffers",
            Self::Api { .. } => "api",
            Self::LogFormat { .. } => "logging",
            Self::History { .. } => "history",
        }
    }

    fn inverse(&self) -> Self {
        match self.clone() {
            Self::Workers { from, to } => Self::Workers { from: to, to: from },
            Self::Buffers { from, to } => Self::Buffers { from: to, to: from },
            Self::Api { from, to } => Self::Api { from: to, to: from },
            Self::LogFormat { from, to } => Self::LogFormat { from: to, to: from },
            Self::History { from, to } => Self::History { from: to, to: from },
        }
    }
}

/// The three groups of a plan, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// What is not wanted goes first, dependants before what they depend on.
    Prune,
    /// Then what is missing is made, at rest.
    Create,
    /// Then everything is set as wanted; interfaces come up last.
    Sync,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prune => "prune",
            Self::Create => "create",
            Self::Sync => "sync",
        })
    }
}

/// The inverse of a step: variants of which `from` and `to` are swapped, with their other fields, and
/// pairs of variants of which each undoes the other.
macro_rules! inverse {
    (
        $step:expr;
        swap { $($swap:ident { $($field:ident),* },)* }
        undone { $($one:ident / $other:ident { $($kept:ident),* },)* }
    ) => {
        match $step.clone() {
            $(Self::$swap { $($field,)* from, to } => {
                Self::$swap { $($field,)* from: to, to: from }
            })*
            $(
                Self::$one { $($kept),* } => Self::$other { $($kept),* },
                Self::$other { $($kept),* } => Self::$one { $($kept),* },
            )*
            Self::NeedsRestart { change } => Self::NeedsRestart { change: change.inverse() },
        }
    };
}

impl Step {
    /// The group of a plan that this step belongs to. Whatever takes something away is in
    /// `Prune`, also when the interface stays.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self {
            Self::SetAcl { to, .. } if to.is_empty() => Phase::Prune,
            Self::SetPolice { to, .. } if to.is_empty() => Phase::Prune,
            Self::DeleteInterface { .. }
            | Self::RemoveAddress { .. }
            | Self::RemoveNeighbor { .. }
            | Self::RemoveRoute { .. }
            | Self::DeleteBridge { .. }
            | Self::LeaveBridge { .. }
            | Self::RemoveStaticMac { .. }
            | Self::SetState {
                to: AdminState::Down,
                ..
            }
            | Self::DeleteVrf { .. }
            | Self::SetVrf { to: None, .. }
            | Self::SetL2xc { to: None, .. }
            | Self::SetUnnumbered { to: None, .. }
            | Self::SetPrefixList { to: None, .. }
            | Self::SetAccessList { to: None, .. }
            | Self::SetBond { to: None, .. }
            | Self::SetUrpf { to: None, .. }
            | Self::RemoveLabel { .. }
            | Self::RemovePseudowire { .. }
            | Self::SetMpls { to: false, .. }
            | Self::SetSflow { to: false, .. } => Phase::Prune,
            Self::CreateInterface { .. }
            | Self::CreateBridge { .. }
            | Self::CreateVrf { .. }
            | Self::SetPrefixList { from: None, .. }
            | Self::SetAccessList { from: None, .. } => Phase::Create,
            _ => Phase::Sync,
        }
    }

    /// What it is about, as `interface xe0`, `route 10.0.0.0/8` or `section sflow`.
    #[must_use]
    pub fn object(&self) -> String {
        match self {
            Self::CreateInterface {
                name: interface, ..
            }
            | Self::DeleteInterface {
                name: interface, ..
            }
            | Self::SetDescription { interface, .. }
            | Self::SetMac { interface, .. }
            | Self::SetMtu { interface, .. }
            | Self::SetPlacement { interface, .. }
            | Self::SetRouterAdvertisements { interface, .. }
            | Self::SetState { interface, .. }
            | Self::SetVrf { interface, .. }
            | Self::AddAddress { interface, .. }
            | Self::RemoveAddress { interface, .. }
            | Self::SetL2xc { interface, .. }
            | Self::SetUnnumbered { interface, .. }
            | Self::SetAcl { interface, .. }
            | Self::SetBond { interface, .. }
            | Self::SetUrpf { interface, .. }
            | Self::SetPolice { interface, .. }
            | Self::SetMpls { interface, .. }
            | Self::SetSflow { interface, .. } => format!("interface {interface}"),
            Self::CreateBridge { name: bridge, .. }
            | Self::DeleteBridge { name: bridge, .. }
            | Self::SetBridge { name: bridge, .. }
            | Self::JoinBridge { bridge, .. }
            | Self::LeaveBridge { bridge, .. }
            | Self::AddStaticMac { bridge, .. }
            | Self::RemoveStaticMac { bridge, .. } => format!("bridge domain {bridge}"),
            Self::SetPrefixList { name, .. } => format!("prefix list {name}"),
            Self::SetAccessList { name, .. } => format!("acl {name}"),
            Self::AddPseudowire { name, .. }
            | Self::RemovePseudowire { name, .. }
            | Self::ChangePseudowire { name, .. } => {
                format!("pseudowire {name}")
            }
            Self::AddLabel { label, .. }
            | Self::RemoveLabel { label, .. }
            | Self::ChangeLabel { label, .. } => format!("label {label}"),
            Self::AddNeighbor {
                interface, address, ..
            }
            | Self::RemoveNeighbor {
                interface, address, ..
            }
            | Self::ChangeNeighbor {
                interface, address, ..
            } => format!("neighbor {address} on interface {interface}"),
            Self::CreateVrf { name, .. }
            | Self::DeleteVrf { name, .. }
            | Self::ChangeVrf { name, .. } => format!("vrf {name}"),
            Self::AddRoute { key, .. }
            | Self::RemoveRoute { key, .. }
            | Self::ChangeRoute { key, .. } => format!("route {key}"),
            Self::SetSflowSettings { .. } => "section sflow".into(),
            Self::SetIpfix { .. } => "section ipfix".into(),
            Self::SetLinux { .. } => "section linux".into(),
            Self::SetIp4 { .. } => "section ip4".into(),
            Self::SetPeering { .. } => "section peering".into(),
            Self::SetAccess { .. } => "section api".into(),
            Self::SetLogLevel { .. } => "section logging".into(),
            Self::NeedsRestart { change } => format!("section {}", change.section()),
        }
    }

    /// Whether an interface borrows addresses after it that did not before, or the other way round.
    #[must_use]
    pub fn changes_borrowers(&self) -> bool {
        match self {
            Self::SetUnnumbered { .. } => true,
            Self::CreateInterface { interface, .. } | Self::DeleteInterface { interface, .. } => {
                interface.unnumbered.is_some()
            }
            _ => false,
        }
    }

    /// The step that undoes this one.
    #[must_use]
    pub fn inverse(&self) -> Self {
        inverse! {
            self;
            swap {
                SetDescription { interface },
                SetMac { interface },
                SetMtu { interface },
                SetPlacement { interface },
                SetRouterAdvertisements { interface },
                SetState { interface },
                ChangeVrf { name },
                SetVrf { interface },
                SetUnnumbered { interface },
                SetL2xc { interface },
                SetAcl { interface },
                SetPrefixList { name },
                SetAccessList { name },
                SetBond { interface },
                SetUrpf { interface },
                SetPolice { interface },
                SetSflow { interface },
                SetBridge { name },
                SetMpls { interface },
                ChangeLabel { label },
                ChangePseudowire { name },
                ChangeNeighbor { interface, address },
                ChangeRoute { key },
                SetSflowSettings {},
                SetIpfix {},
                SetLinux {},
                SetIp4 {},
                SetPeering {},
                SetAccess {},
                SetLogLevel {},
            }
            undone {
                CreateInterface / DeleteInterface { name, interface },
                CreateVrf / DeleteVrf { name, vrf },
                AddAddress / RemoveAddress { interface, address },
                CreateBridge / DeleteBridge { name, bridge },
                JoinBridge / LeaveBridge { bridge, interface, role },
                AddStaticMac / RemoveStaticMac { bridge, entry },
                AddLabel / RemoveLabel { label, entry },
                AddPseudowire / RemovePseudowire { name, pseudowire },
                AddNeighbor / RemoveNeighbor { interface, address, mac },
                AddRoute / RemoveRoute { key, via },
            }
        }
    }
}
