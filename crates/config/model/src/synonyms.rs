//! Other forms that a file may have: keys under hsflowd's and vppcfg's names, and one item where a list could stand.
//!
//! Whoever comes from there need not learn others. The tree gets our names and lists instead, before anything looks at it, so that all
//! messages, and what is written, have ours.

use std::borrow::Cow;

use crate::tree::{Content, Node};

/// Section, the other name, and ours.
pub(crate) const SYNONYMS: &[(&str, &str, &str)] = &[
    (SFLOW, "sampling", "sampling-rate"),
    (SFLOW, "packetSamplingRate", "sampling-rate"),
    (SFLOW, "polling", "polling-interval"),
    (SFLOW, "counterPollingInterval", "polling-interval"),
    (SFLOW, "headerBytes", "header-bytes"),
    (SFLOW, "datagramBytes", "datagram-bytes"),
    (SFLOW, "dropLimit", "drop-limit"),
    (SFLOW, "agentIP", "agent"),
    (SFLOW, "subAgentId", "agent-sub-id"),
    (SFLOW, "collector", "collectors"),
    (SFLOW, "DNS-SD", "dns-sd"),
    (COLLECTOR, "ip", "address"),
    (COLLECTOR, "udpport", "port"),
    (INTERFACE, "acls", "acl"),
    (SUB_INTERFACE, "acls", "acl"),
];

/// What hsflowd has under `sflow`, and what does the same here or why nothing does.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "dropmon",
        "discarded packets are reported with `drop-limit: 100`, a second at most, and to hsflowd with `psample`",
    ),
    (
        "vpp",
        "this router is the agent: remove it, and set `sflow: true` on interfaces",
    ),
    (
        "pcap",
        "packets are sampled on interfaces with `sflow: true`: remove it",
    ),
    ("uuid", "the machine's own UUID is sent: remove it"),
    ("modules", "this router has no modules: remove it"),
];

/// Other modules of hsflowd's.
const MODULES: &[&str] = &[
    "cumulus",
    "containerd",
    "dbus",
    "dent",
    "docker",
    "eapi",
    "epcap",
    "json",
    "k8s",
    "kvm",
    "nflog",
    "nlroute",
    "nvml",
    "opx",
    "os10",
    "ovs",
    "sonic",
    "systemd",
    "tcp",
    "ulog",
    "xen",
];

/// Lists of which one item may stand alone.
const ALONE: &[&str] = &[
    "interfaces.*.acl.input",
    "interfaces.*.acl.output",
    "interfaces.*.sub-interfaces.*.acl.input",
    "interfaces.*.sub-interfaces.*.acl.output",
    COLLECTORS,
];

const SFLOW: &str = "sflow";
const COLLECTORS: &str = "sflow.collectors";
const COLLECTOR: &str = "sflow.collectors[]";
const INTERFACE: &str = "interfaces.*";
const SUB_INTERFACE: &str = "interfaces.*.sub-interfaces.*";

/// Our name for a key of a section.
pub(crate) fn ours(section: &str, key: &str) -> Option<&'static str> {
    SYNONYMS
        .iter()
        .find(|(place, theirs, _)| (*place, *theirs) == (section, key))
        .map(|(_, _, ours)| *ours)
}

/// Other names for a key of a section.
pub(crate) fn theirs(section: &str, key: &str) -> impl Iterator<Item = &'static str> {
    SYNONYMS
        .iter()
        .filter(move |(place, _, ours)| (*place, *ours) == (section, key))
        .map(|(_, theirs, _)| *theirs)
}

/// What to do about a key that hsflowd has and this section has not.
pub(crate) fn elsewhere(section: &str, key: &str) -> Option<&'static str> {
    const PER_SPEED: &str = "rates are not set by speed or application: set `sampling-rate`, and others under `interfaces`";
    const MODULE: &str = "this module of hsflowd's has no counterpart here: remove it, or run hsflowd with `psample`";
    let named = || {
        ELSEWHERE
            .iter()
            .find(|(theirs, _)| *theirs == key)
            .map(|(_, help)| *help)
    };
    let per_speed = || key.starts_with("sampling.").then_some(PER_SPEED);
    let module = || MODULES.contains(&key).then_some(MODULE);
    (section == SFLOW)
        .then(|| named().or_else(per_speed).or_else(module))
        .flatten()
}

/// Whether one item of this list may stand without the list.
pub(crate) fn may_stand_alone(path: &str) -> bool {
    ALONE.contains(&path)
}

/// Gives the keys of a whole file our names, and lists where one item stands alone. A key that stands there under both names keeps
/// the other, which is reported.
pub(crate) fn rename(root: &mut Node<'_>) {
    if let Some(sflow) = child(root, SFLOW) {
        rename_in(sflow, SFLOW);
        if let Some(collectors) = child(sflow, "collectors") {
            if matches!(collectors.content, Content::Map(_)) {
                into_list(collectors);
            }
            if let Content::List(collectors) = &mut collectors.content {
                collectors
                    .iter_mut()
                    .for_each(|collector| rename_in(collector, COLLECTOR));
            }
        }
    }
    for interface in children(root, "interfaces") {
        bindings(interface, INTERFACE);
        for sub in children(interface, "sub-interfaces") {
            bindings(sub, SUB_INTERFACE);
        }
    }
}

/// The access lists of an interface.
fn bindings(interface: &mut Node<'_>, section: &str) {
    rename_in(interface, section);
    let Some(acl) = child(interface, "acl") else {
        return;
    };
    for key in ["input", "output"] {
        if let Some(names) = child(acl, key)
            && matches!(names.content, Content::Scalar { .. })
            && !names.is_empty()
        {
            into_list(names);
        }
    }
}

fn into_list(node: &mut Node<'_>) {
    let item = Node {
        place: node.place,
        content: std::mem::replace(&mut node.content, Content::List(Vec::new())),
    };
    node.content = Content::List(vec![item]);
}

fn child<'n, 't>(node: &'n mut Node<'t>, key: &str) -> Option<&'n mut Node<'t>> {
    let Content::Map(entries) = &mut node.content else {
        return None;
    };
    entries
        .iter_mut()
        .find(|entry| entry.key == key)
        .map(|entry| &mut entry.value)
}

fn children<'n, 't>(node: &'n mut Node<'t>, key: &str) -> impl Iterator<Item = &'n mut Node<'t>> {
    let entries = child(node, key).and_then(|section| match &mut section.content {
        Content::Map(entries) => Some(entries),
        _ => None,
    });
    entries.into_iter().flatten().map(|entry| &mut entry.value)
}

fn rename_in(node: &mut Node<'_>, section: &str) {
    let Content::Map(entries) = &mut node.content else {
        return;
    };
    for place in 0..entries.len() {
        let Some(name) = entries
            .get(place)
            .and_then(|entry| ours(section, &entry.key))
        else {
            continue;
        };
        if entries.iter().any(|entry| entry.key == name) {
            continue;
        }
        if let Some(entry) = entries.get_mut(place) {
            entry.key = Cow::Borrowed(name);
        }
    }
}
