//! Steps in words: one line each, as a plan shows them, with what differs and nothing else.

use std::fmt;

use super::Step;
use crate::access_list::{AccessList, PrefixList};
use crate::changes::changes;
use crate::model::RouterAdvertisements;
use crate::terms;

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateInterface { name, interface } => match &interface.device {
                Some(device) => write!(
                    f,
                    "create interface {name}: {device}, mtu {}",
                    interface.mtu
                ),
                None => write!(
                    f,
                    "create interface {name}: no device, mtu {}",
                    interface.mtu
                ),
            },
            Self::DeleteInterface { name, .. } => write!(f, "delete interface {name}"),
            Self::SetDescription { interface, to, .. } => match to {
                Some(text) => write!(f, "describe interface {interface} as {text:?}"),
                None => write!(f, "clear the description of interface {interface}"),
            },
            Self::SetMac {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "set mac of interface {interface}: {} -> {}",
                    or(from, "device's"),
                    or(to, "device's")
                )
            }
            Self::SetMtu {
                interface,
                from,
                to,
            } => write!(f, "set mtu of interface {interface}: {from} -> {to}"),
            Self::SetRouterAdvertisements {
                interface,
                to: None,
                ..
            } => write!(f, "stop router advertisements on interface {interface}"),
            Self::SetRouterAdvertisements {
                interface,
                to: Some(to),
                ..
            } => {
                let RouterAdvertisements {
                    interval, lifetime, ..
                } = to;
                write!(
                    f,
                    "set router advertisements of interface {interface}: interval {interval}, lifetime {lifetime}"
                )
            }
            Self::SetPlacement {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "place rx queues of interface {interface} on workers: {from:?} -> {to:?}"
                )
            }
            Self::SetState { interface, to, .. } => write!(f, "set interface {interface} {to}"),
            Self::CreateVrf { name, vrf } => write!(f, "create vrf {name}: table {}", vrf.table),
            Self::DeleteVrf { name, .. } => write!(f, "delete vrf {name}"),
            Self::ChangeVrf { name, from, to } if from.table != to.table => {
                write!(f, "set table of vrf {name}: {} -> {}", from.table, to.table)
            }
            Self::ChangeVrf { name, to, .. } => match &to.description {
                Some(text) => write!(f, "describe vrf {name} as {text:?}"),
                None => write!(f, "clear the description of vrf {name}"),
            },
            Self::SetVrf {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "set vrf of interface {interface}: {} -> {}",
                    or(from, "default"),
                    or(to, "default")
                )
            }
            Self::AddAddress { interface, address } => {
                write!(f, "add address {address} to interface {interface}")
            }
            Self::RemoveAddress { interface, address } => {
                write!(f, "remove address {address} from interface {interface}")
            }
            Self::SetUnnumbered {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "set unnumbered of interface {interface}: {} -> {}",
                    or(from, "none"),
                    or(to, "none")
                )
            }
            Self::SetL2xc {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "set l2xc of interface {interface}: {} -> {}",
                    or(from, "none"),
                    or(to, "none")
                )
            }
            Self::SetAcl {
                interface,
                from,
                to,
            } => write!(f, "set acl of interface {interface}: {from} -> {to}"),
            Self::SetPrefixList { name, from, to } => {
                let prefixes = |list: &PrefixList| format!("{} prefixes", list.members.len());
                change_of(
                    f,
                    "prefix list",
                    name,
                    from.as_ref().map(prefixes),
                    to.as_ref().map(prefixes),
                )
            }
            Self::SetAccessList { name, from, to } => {
                if let (Some(from), Some(to)) = (from, to) {
                    return write!(f, "change acl {name}: {}", terms::change_text(from, to));
                }
                let terms = |list: &AccessList| format!("{} terms", list.terms.len());
                change_of(
                    f,
                    "acl",
                    name,
                    from.as_ref().map(terms),
                    to.as_ref().map(terms),
                )
            }
            Self::SetBond {
                interface,
                from,
                to,
            } => match (from, to) {
                (_, Some(bond)) => write!(f, "add interface {interface} to bond {bond}"),
                (from, None) => write!(
                    f,
                    "remove interface {interface} from bond {}",
                    or(from, "none")
                ),
            },
            Self::SetUrpf {
                interface,
                from,
                to,
            } => {
                write!(
                    f,
                    "set urpf of interface {interface}: {} -> {}",
                    or(from, "off"),
                    or(to, "off")
                )
            }
            Self::SetPolice {
                interface,
                from,
                to,
            } => write!(f, "set police of interface {interface}: {from} -> {to}"),
            Self::SetSflow { interface, to, .. } => {
                write!(
                    f,
                    "{} sflow on interface {interface}",
                    if *to { "enable" } else { "disable" }
                )
            }
            Self::CreateBridge { name, bridge } => {
                write!(f, "create bridge domain {name}: mtu {}", bridge.mtu)
            }
            Self::DeleteBridge { name, .. } => write!(f, "delete bridge domain {name}"),
            Self::SetBridge { name, from, to } => {
                let changes = changes("bridgedomains.*", from, to);
                write!(f, "set bridge domain {name}: {changes}")
            }
            Self::JoinBridge {
                bridge,
                interface,
                role,
            } => write!(
                f,
                "add interface {interface} to bridge domain {bridge}: {role}"
            ),
            Self::LeaveBridge {
                bridge, interface, ..
            } => write!(
                f,
                "remove interface {interface} from bridge domain {bridge}"
            ),
            Self::AddStaticMac { bridge, entry } => {
                write!(
                    f,
                    "bind {} to interface {} in bridge domain {bridge}",
                    entry.mac, entry.interface
                )
            }
            Self::RemoveStaticMac { bridge, entry } => {
                write!(
                    f,
                    "unbind {} from interface {} in bridge domain {bridge}",
                    entry.mac, entry.interface
                )
            }
            Self::SetMpls { interface, to, .. } => {
                write!(
                    f,
                    "{} mpls on interface {interface}",
                    if *to { "enable" } else { "disable" }
                )
            }
            Self::AddLabel { label, entry } => write!(f, "add label {label} {entry}"),
            Self::RemoveLabel { label, entry } => write!(f, "remove label {label} {entry}"),
            Self::ChangeLabel { label, from, to } => {
                write!(f, "change label {label} {from} -> {to}")
            }
            Self::AddPseudowire { name, pseudowire } => {
                write!(f, "add pseudowire {name} {pseudowire}")
            }
            Self::RemovePseudowire { name, pseudowire } => {
                write!(f, "remove pseudowire {name} {pseudowire}")
            }
            Self::ChangePseudowire { name, from, to } => {
                write!(f, "change pseudowire {name} {from} -> {to}")
            }
            Self::AddNeighbor {
                interface,
                address,
                mac,
            } => {
                write!(f, "add neighbor {address} {mac} on interface {interface}")
            }
            Self::RemoveNeighbor {
                interface,
                address,
                mac,
            } => {
                write!(
                    f,
                    "remove neighbor {address} {mac} from interface {interface}"
                )
            }
            Self::ChangeNeighbor {
                interface,
                address,
                from,
                to,
            } => {
                write!(
                    f,
                    "change neighbor {address} on interface {interface}: {from} -> {to}"
                )
            }
            Self::AddRoute { key, via } => write!(f, "add route {key} via {via}"),
            Self::RemoveRoute { key, via } => write!(f, "remove route {key} via {via}"),
            Self::ChangeRoute { key, from, to } => {
                write!(f, "change route {key} via {from} -> {to}")
            }
            Self::SetSflowSettings { from, to } => {
                write!(f, "set sflow: {}", changes("sflow", from, to))
            }
            Self::SetIpfix { from, to } => {
                write!(
                    f,
                    "set ipfix: {}",
                    changes("ipfix", from.as_ref(), to.as_ref())
                )
            }
            Self::SetLinux { from, to } => {
                write!(
                    f,
                    "set linux: {}",
                    changes("linux", from.as_ref(), to.as_ref())
                )
            }
            Self::SetIp4 { from, to } => write!(f, "set ip4: {}", changes("ip4", from, to)),
            Self::SetPeering { from, to } => {
                let neighbors = |it: &Option<serde_json::Value>| {
                    let list = it.as_ref().and_then(|it| it.get("neighbors"));
                    list.and_then(serde_json::Value::as_array)
                        .map_or(0, Vec::len)
                };
                write!(
                    f,
                    "set peering: {} -> {} neighbors",
                    neighbors(from),
                    neighbors(to)
                )
            }
            Self::SetAccess { from, to } => {
                let names = |api: &crate::settings::Api| {
                    let names: Vec<&str> = api.tokens.iter().map(|it| it.name.as_str()).collect();
                    if names.is_empty() {
                        "none".to_owned()
                    } else {
                        names.join(", ")
                    }
                };
                let (old, new) = (names(from), names(to));
                if from.tokens == to.tokens {
                    f.write_str("set access: certificates of the API")
                } else if old == new {
                    write!(f, "set access: tokens {new} change")
                } else {
                    write!(f, "set access: tokens {old} -> {new}")
                }
            }
            Self::SetLogLevel { from, to } => {
                write!(f, "set log level: {} -> {}", from.word(), to.word())
            }
            Self::NeedsRestart { change } => {
                write!(f, "restart needed: section {} changes", change.section())
            }
        }
    }
}

/// What became of a named list.
fn change_of(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    name: &str,
    from: Option<String>,
    to: Option<String>,
) -> fmt::Result {
    match (from, to) {
        (None, Some(to)) => write!(f, "add {what} {name}: {to}"),
        (Some(from), Some(to)) => write!(f, "change {what} {name}: {from} -> {to}"),
        (_, None) => write!(f, "remove {what} {name}"),
    }
}

fn or<T: fmt::Display>(value: &Option<T>, absent: &str) -> String {
    value
        .as_ref()
        .map_or_else(|| absent.to_owned(), T::to_string)
}
