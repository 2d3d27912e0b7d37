//! What is wrong with a section that can be read.

use std::collections::BTreeSet;

use super::{Daemon, LONGEST_NAME, Neighbor, Peering, Relation};
use crate::policy;

impl Peering {
    pub(super) fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        self.check_own(&mut findings);
        let (mut seen, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut names = BTreeSet::new();
        for neighbor in &self.neighbors {
            let who = format!("neighbors: AS{}", neighbor.asn);
            if !known.insert((neighbor.asn, &neighbor.at)) {
                findings.push(format!(
                    "{who}: it is there twice; write all its addresses at one exchange into one entry"
                ));
            } else if !names.insert(neighbor.name()) {
                findings.push(format!(
                    "{who}: two exchanges have names that differ in - and _ only"
                ));
            }
            for address in &neighbor.addresses {
                if !seen.insert(*address) {
                    findings.push(format!("{who}: {address} has a session already"));
                }
            }
            self.check_neighbor(neighbor, &mut |finding| {
                findings.push(format!("{who}: {finding}"));
            });
        }
        findings
    }

    fn check_own(&self, findings: &mut Vec<String>) {
        if self.asn == 0 {
            findings.push("asn: 0 is not an AS number".to_owned());
        }
        if self.prefixes.is_empty() {
            findings.push(
                "prefixes: name the own prefixes; without them nothing is announced".to_owned(),
            );
        }
        let lists = [
            ("prefixes", &self.prefixes),
            ("policy: reject-prefixes", &self.policy.reject_prefixes),
        ];
        for (key, list) in lists {
            for prefix in list.iter().filter(|it| it.addr() != it.network()) {
                findings.push(format!(
                    "{key}: {prefix} has host bits; write {}",
                    prefix.trunc()
                ));
            }
        }
        if self.policy.aspa != super::AspaMode::Off && self.daemon != Daemon::Bird216 {
            findings.push(
                "policy: aspa: only BIRD from 2.16 on has it; write `daemon: bird-2.16`".to_owned(),
            );
        }
        for (name, exchange) in &self.exchanges {
            if !is_name(name) {
                findings.push(format!(
                    "exchanges: {name:?}: use letters, digits and -, at most {LONGEST_NAME}"
                ));
            }
            if exchange.lan.is_empty() && exchange.peeringdb_ix.is_none() {
                findings.push(format!(
                    "exchanges: {name}: name its lan or its peeringdb-ix"
                ));
            }
        }
        if self.policy.shadow.contains(&policy::Reason::AspaInvalid) {
            findings.push("policy: shadow: write `aspa: tag` instead of aspa-invalid".to_owned());
        }
    }

    fn check_neighbor(&self, neighbor: &Neighbor, report: &mut dyn FnMut(String)) {
        let is_own = neighbor.relation == Relation::Own;
        if neighbor.asn == 0 || (neighbor.asn == self.asn) != is_own {
            report(if is_own {
                "relation: own: its AS number is the own one".to_owned()
            } else {
                "not a neighbour's AS number".to_owned()
            });
        }
        let exchange = neighbor
            .at
            .as_ref()
            .map(|name| (name, self.exchanges.get(name)));
        if let Some((name, None)) = exchange {
            report(format!("at: there is no exchange {name:?}"));
        }
        let from_peeringdb = matches!(exchange, Some((_, Some(it))) if it.peeringdb_ix.is_some());
        if neighbor.addresses.is_empty() && !from_peeringdb {
            report("addresses: name at least one, or an exchange with a peeringdb-ix".to_owned());
        }
        if let Some((name, Some(exchange))) = exchange {
            for address in &neighbor.addresses {
                let is_far = neighbor.multihop.is_some() || exchange.lan.is_empty();
                if !is_far && !exchange.lan.iter().any(|lan| lan.contains(address)) {
                    report(format!("addresses: {address} is not in the LAN of {name}"));
                }
            }
        }
        if neighbor.is_filtered_by_prefix()
            && neighbor.prefixes.is_empty()
            && neighbor.as_set.is_none()
            && !from_peeringdb
        {
            report("name its as-set or its prefixes; without them nothing is accepted".to_owned());
        }
        if let Some(set) = &neighbor.as_set
            && !crate::snapshot::split_sets(set).all(is_as_set)
        {
            report(format!("as-set: {set:?} has characters that no AS-SET has"));
        }
        if !is_text(&neighbor.description) {
            report(format!(
                "description: at most {LONGEST_NAME} bytes without quotes, backslashes and control characters"
            ));
        }
        for text in &neighbor.communities {
            if crate::policy::community(text).is_none() {
                report(format!(
                    "communities: {text:?}: write two numbers, as 65535:65281"
                ));
            }
        }
        if neighbor.prepend > 10 {
            report("prepend: at most 10".to_owned());
        }
        if neighbor.blackhole && neighbor.relation != Relation::Customer {
            report("blackhole: only routes of customers can be blackhole routes".to_owned());
        }
        if neighbor.require_role && (!neighbor.role || is_own) {
            report("require-role: the session has no role".to_owned());
        }
        for address in neighbor.sessions.keys() {
            if !neighbor.addresses.is_empty() && !neighbor.addresses.contains(address) {
                report(format!("sessions: {address} is none of its addresses"));
            }
        }
        for (_, session) in self.sessions(neighbor) {
            if session.gtsm && session.multihop.is_some() {
                report("gtsm and multihop exclude each other".to_owned());
            }
            if let Some(local) = session.local_address
                && local.is_ipv4() != session.address.is_ipv4()
            {
                report(format!(
                    "local-address: {local} and {} are of two families",
                    session.address
                ));
            }
            let file = session.password_file.as_deref();
            if file.is_some_and(|it| !is_file_name(&it.to_string_lossy())) {
                report("password-file: not a file name that BIRD can include".to_owned());
            }
        }
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && !name
            .chars()
            .any(|c| c.is_control() || c == '"' || c == '\\')
}

/// Whether a text may stand between quotes in a daemon's configuration.
pub(crate) fn is_text(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && !text
            .chars()
            .any(|c| c.is_control() || c == '"' || c == '\\')
}

/// Whether a text has only characters of AS-SETs, with a source before it or not.
pub(crate) fn is_as_set(set: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_');
    !set.is_empty()
        && set.len() <= 2 * LONGEST_NAME
        && !set.starts_with('-')
        && set.chars().all(allowed)
}

/// Whether a text is the name of an exchange.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
