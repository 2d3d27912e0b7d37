//! Rules about access lists: what their terms name, and whether a packet can match them.

use std::collections::HashMap;

use ipnet::IpNet;

use super::Rules;
use crate::access_list::{Family, Octets, Ports, Protocol, Scope, Term};
use crate::build::items;
use crate::findings::{Segment, at};
use crate::suggest::nearest;
use crate::tree::Node;

/// Terms with all prefix lists written out that one interface may be bound to in one direction; what the classifier takes.
pub(crate) const MOST_RULES: usize = 65_536;

impl Rules<'_, '_> {
    pub(super) fn access_lists(&mut self) {
        let config = &self.candidate.config;
        let sizes = Sizes(
            config
                .prefix_lists
                .iter()
                .map(|(name, list)| (name.as_str(), list.counts()))
                .collect(),
        );
        self.prefix_lists();
        let mut rules: HashMap<&str, usize> = HashMap::new();
        for (name, list) in &config.access_lists {
            for (item, term) in list.terms.iter().enumerate() {
                if self.findings.is_full() {
                    return;
                }
                self.scopes(name, item, term, &sizes);
                self.payload(name, item, term);
                let sum = rules.entry(name).or_default();
                *sum = sum.saturating_add(term.count_ways(|list| sizes.of(list)));
            }
        }
        self.bindings(&rules);
    }

    /// What vppcfg takes, and what is odd all the same.
    fn prefix_lists(&mut self) {
        for (name, list) in &self.candidate.config.prefix_lists {
            let at = at!["prefixlists", name.as_str(), "members"];
            if list.members.is_empty() && self.findings.any_broken("prefixlists.*.members") {
                continue;
            }
            if list.members.is_empty() {
                self.warning(
                    at,
                    format!("the prefix list `{name}` has no members"),
                    "matches nothing",
                    "give it some".into(),
                );
            }
        }
        let lists = self
            .root
            .value("prefixlists")
            .map_or(&[][..], Node::entries);
        for (entry, (item, member)) in lists
            .iter()
            .flat_map(|entry| items(&entry.value, "members").map(move |member| (entry, member)))
        {
            self.host_bits(
                at!["prefixlists", entry.key.as_ref(), "members", item],
                member.text(),
            );
        }
        let lists = self.root.value("acls").map_or(&[][..], Node::entries);
        for (entry, (item, term)) in lists
            .iter()
            .flat_map(|entry| items(&entry.value, "terms").map(move |term| (entry, term)))
        {
            for key in ["source", "destination"] {
                self.host_bits(
                    at!["acls", entry.key.as_ref(), "terms", item, key],
                    term.value(key).and_then(Node::text),
                );
            }
        }
    }

    fn host_bits(&mut self, at: &[Segment<'_>], text: Option<&str>) {
        if let Some(net) = text
            .and_then(|text| text.parse::<IpNet>().ok())
            .filter(|net| *net != net.trunc())
        {
            self.warning(
                at,
                format!("`{net}` has host bits"),
                "taken for its network",
                format!("write `{}`", net.trunc()),
            );
        }
    }

    /// Addresses: lists that are there, and families that meet.
    fn scopes(&mut self, name: &str, item: usize, term: &Term, sizes: &Sizes<'_>) {
        let lists = &self.candidate.config.prefix_lists;
        let mut known = true;
        for (key, scope) in [("source", &term.source), ("destination", &term.destination)] {
            let Scope::List(wanted) = scope else { continue };
            if let Some(list) = lists.get(wanted) {
                // The list reports that it matches nothing.
                known &= !list.members.is_empty()
                    && !self
                        .findings
                        .is_broken(at!["prefixlists", wanted.as_str(), "members"]);
                continue;
            }
            known = false;
            let affordable = self.comparisons.checked_sub(lists.len());
            let near = affordable.and_then(|_| nearest(wanted, lists.keys().map(String::as_str)));
            self.comparisons = affordable.unwrap_or(self.comparisons);
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("add `{wanted}` under `prefixlists`, or write an address or a prefix")
                }
            };
            self.error(
                at!["acls", name, "terms", item, key],
                format!("there is no prefix list `{wanted}`"),
                "not under `prefixlists`",
                help,
            );
        }
        if known && term.count_ways(|list| sizes.of(list)) == 0 {
            self.no_way(name, item, term, sizes);
        }
    }

    /// No packet can have such a source and such a destination.
    fn no_way(&mut self, name: &str, item: usize, term: &Term, sizes: &Sizes<'_>) {
        let lacks = |scope: &Scope| match (scope.counts(|list| sizes.of(list)), term.family) {
            ((0, _), Family::Ipv4) => Some("IPv4"),
            ((_, 0), Family::Ipv6) => Some("IPv6"),
            _ => None,
        };
        for (key, scope) in [("source", &term.source), ("destination", &term.destination)] {
            if let Some(family) = lacks(scope) {
                let message = format!(
                    "the {key} `{scope}` has no {family} address, and the term is about {family} only"
                );
                return self.error(
                    at!["acls", name, "terms", item, key],
                    message,
                    "",
                    "change `family`, or the addresses".into(),
                );
            }
        }
        let message = format!(
            "the source `{}` and the destination `{}` have no family in common",
            term.source, term.destination
        );
        self.error(
            at!["acls", name, "terms", item, "destination"],
            message,
            "",
            "no packet has addresses of two families; change one of them".into(),
        );
    }

    fn nearest_list(&mut self, name: &str) -> Option<String> {
        let lists = &self.candidate.config.access_lists;
        self.comparisons = self.comparisons.checked_sub(lists.len())?;
        nearest(name, lists.keys().map(String::as_str)).map(str::to_owned)
    }

    /// Ports with protocols that have ports, types and codes with ICMP.
    fn payload(&mut self, name: &str, item: usize, term: &Term) {
        if self
            .findings
            .is_broken(at!["acls", name, "terms", item, "protocol"])
        {
            return;
        }
        let lacks = |what: &str| match term.protocol {
            Some(protocol) => format!("{protocol} has no {what}"),
            None => format!("a term without a protocol cannot ask for {what}"),
        };
        for (key, ports) in [
            ("source-port", term.source_port),
            ("destination-port", term.destination_port),
        ] {
            if ports != Ports::ANY && !term.protocol.is_some_and(Protocol::has_ports) {
                let help = "add `protocol: tcp`, `udp` or `sctp`, or remove the port".to_owned();
                self.error(
                    at!["acls", name, "terms", item, key],
                    lacks("ports"),
                    "",
                    help,
                );
            }
        }
        for (key, octets) in [("icmp-type", term.icmp_type), ("icmp-code", term.icmp_code)] {
            if octets != Octets::ANY && !term.protocol.is_some_and(Protocol::is_icmp) {
                let what = if key == "icmp-type" { "type" } else { "code" };
                let help = format!("add `protocol: icmp` or `ipv6-icmp`, or remove the {what}");
                self.error(
                    at!["acls", name, "terms", item, key],
                    lacks(&format!("ICMP {what}s")),
                    "",
                    help,
                );
            }
        }
    }

    /// What interfaces are bound to is there, once, and not too much.
    fn bindings(&mut self, rules_of: &HashMap<&str, usize>) {
        let config = &self.candidate.config;
        for (interface, settings) in &config.interfaces {
            for (direction, names) in [
                ("input", &settings.acl.input),
                ("output", &settings.acl.output),
            ] {
                let mut rules = 0usize;
                for (item, name) in names.iter().enumerate() {
                    let at = &[
                        &self.of_interface(interface, "acl")[..],
                        &[direction.into(), item.into()],
                    ]
                    .concat();
                    if names.iter().take(item).any(|earlier| earlier == name) {
                        self.error(
                            at,
                            format!("the access list `{name}` is bound twice"),
                            "the second one",
                            "remove it; it is never reached".into(),
                        );
                    } else if config.access_lists.contains_key(name) {
                        rules =
                            rules.saturating_add(rules_of.get(name.as_str()).copied().unwrap_or(0));
                    } else if !self.findings.is_full()
                        && !self.findings.is_broken(at!["acls", name.as_str()])
                    {
                        let near = self.nearest_list(name);
                        let help = near.map_or_else(
                            || format!("add `{name}` under `acls`"),
                            |near| format!("did you mean `{near}`?"),
                        );
                        self.error(
                            at,
                            format!("there is no access list `{name}`"),
                            "not under `acls`",
                            help,
                        );
                    }
                }
                if rules > MOST_RULES {
                    let message = format!(
                        "with all prefix lists written out these are {rules} rules, more than {MOST_RULES}"
                    );
                    let help = "bind fewer lists, or name one prefix list in a term and not two"
                        .to_owned();
                    let at = [
                        &self.of_interface(interface, "acl")[..],
                        &[direction.into()],
                    ]
                    .concat();
                    self.error(&at, message, "", help);
                }
            }
        }
    }
}

/// How many prefixes of each family the prefix lists have.
struct Sizes<'a>(HashMap<&'a str, (usize, usize)>);

impl Sizes<'_> {
    fn of(&self, list: &str) -> (usize, usize) {
        self.0.get(list).copied().unwrap_or((0, 0))
    }
}
