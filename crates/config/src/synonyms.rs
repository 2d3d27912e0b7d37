//! Keys under the names that hsflowd has for them: whoever comes from there need not learn others.
//!
//! Where a key of sFlow's has hsflowd's name, the tree gets ours instead, before anything looks at it, so that all messages, and
//! what is written, have ours.

use std::borrow::Cow;

use crate::tree::{Content, Node};

/// Section, hsflowd's name, and ours.
pub(crate) const SYNONYMS: &[(&str, &str, &str)] = &[
    (SFLOW, "sampling", "sampling-rate"),
    (SFLOW, "packetSamplingRate", "sampling-rate"),
    (SFLOW, "polling", "polling-interval"),
    (SFLOW, "counterPollingInterval", "polling-interval"),
    (SFLOW, "headerBytes", "header-bytes"),
    (SFLOW, "datagramBytes", "datagram-bytes"),
    (SFLOW, "agentIP", "agent"),
    (SFLOW, "subAgentId", "agent-sub-id"),
    (COLLECTOR, "ip", "address"),
    (COLLECTOR, "udpport", "port"),
];

const SFLOW: &str = "sflow";
const COLLECTOR: &str = "sflow.collectors[]";

/// Our name for a key of a section.
pub(crate) fn ours(section: &str, key: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(place, theirs, _)| (*place, *theirs) == (section, key)).map(|(_, _, ours)| *ours)
}

/// hsflowd's names for a key of a section.
pub(crate) fn theirs(section: &str, key: &str) -> impl Iterator<Item = &'static str> {
    SYNONYMS.iter().filter(move |(place, _, ours)| (*place, *ours) == (section, key)).map(|(_, theirs, _)| *theirs)
}

/// Gives the keys of a whole file our names. One that stands there under both keeps hsflowd's, and is told as unknown.
pub(crate) fn rename(root: &mut Node<'_>) {
    let Some(sflow) = child(root, SFLOW) else { return };
    rename_in(sflow, SFLOW);
    if let Some(Node { content: Content::List(collectors), .. }) = child(sflow, "collectors") {
        collectors.iter_mut().for_each(|collector| rename_in(collector, COLLECTOR));
    }
}

fn child<'n, 't>(node: &'n mut Node<'t>, key: &str) -> Option<&'n mut Node<'t>> {
    let Content::Map(entries) = &mut node.content else { return None };
    entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}

fn rename_in(node: &mut Node<'_>, section: &str) {
    let Content::Map(entries) = &mut node.content else { return };
    for place in 0..entries.len() {
        let Some(name) = entries.get(place).and_then(|entry| ours(section, &entry.key)) else { continue };
        if entries.iter().any(|entry| entry.key == name) {
            continue;
        }
        if let Some(entry) = entries.get_mut(place) {
            entry.key = Cow::Borrowed(name);
        }
    }
}
