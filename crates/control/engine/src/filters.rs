//! Access lists: from what the configuration says to what workers ask.
//!
//! Making a long list ready takes seconds, so that is done before the control side's lock is taken
//! ([`BuiltLists::prepare`]), for all lists that the wanted configuration binds and that are not built yet. A
//! list is known by its [`Wording`]: what its terms and their prefix lists say. Interfaces that are bound to
//! the same words share one list; what did not change is not built again.
//!
//! A binding that changes gets new counters, as workers may still count by the old list. The counts of the terms that
//! stay are carried over ([`Earlier`]).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use weir_acl::{Action, Addresses, Payload, Rule};
use weir_api::{AclAction, AclBinding, AclDirection, AclQuery, AclTerm, Acls};
use weir_config::{
    AccessList, AclFragments, AddressPair, Config, PrefixList, Scope, Term, TermAction,
};
use weir_nodes::{Filter, FilterCounters, FilterList, Fragments};
use weir_wire::IpProtocol;

use crate::control::Control;

/// What some access lists, one after the other, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wording {
    lists: Vec<(String, AccessList)>,
    prefix_lists: BTreeMap<String, PrefixList>,
    fragments: AclFragments,
}

impl Wording {
    /// What the lists of these names say in a configuration.
    fn of(config: &Config, names: &[String], fragments: AclFragments) -> Wording {
        let lists: Vec<_> = names
            .iter()
            .filter_map(|name| Some((name.clone(), config.access_lists.get(name)?.clone())))
            .collect();
        let scopes = lists
            .iter()
            .flat_map(|(_, list)| &list.terms)
            .flat_map(|term| [&term.source, &term.destination]);
        let named = scopes.filter_map(|scope| {
            if let Scope::List(name) = scope {
                config.prefix_lists.get_key_value(name)
            } else {
                None
            }
        });
        let prefix_lists = named
            .map(|(name, list)| (name.clone(), list.clone()))
            .collect();
        Wording {
            lists,
            prefix_lists,
            fragments,
        }
    }

    fn build(&self) -> Result<FilterList, String> {
        let terms = self.lists.iter().flat_map(|(_, list)| &list.terms);
        let built =
            FilterList::build(terms.map(|term| (action_of(term), rules(term, &self.prefix_lists))));
        let fragments = match self.fragments {
            AclFragments::Match => Fragments::Match,
            AclFragments::Drop => Fragments::Drop,
            AclFragments::Permit => Fragments::Permit,
        };
        let built = built.map(|list| list.with_fragments(fragments));
        built.map_err(|error| {
            let names: Vec<&str> = self.lists.iter().map(|(name, _)| name.as_str()).collect();
            format!("access list {}: {error}", names.join(" and "))
        })
    }

    /// The terms in the order of the built list, each with its list's name and its place there.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&str, usize, &Term)> {
        self.lists.iter().flat_map(|(name, list)| {
            list.terms
                .iter()
                .enumerate()
                .map(move |(place, term)| (name.as_str(), place, term))
        })
    }

    /// What makes a term the same term after a change: its list's name, and all of it but the description.
    fn keys(&self) -> impl Iterator<Item = (&str, Term)> {
        self.terms().map(|(name, _, term)| {
            let description = None;
            let term = term.clone();
            (
                name,
                Term {
                    description,
                    ..term
                },
            )
        })
    }
}

fn action_of(term: &Term) -> Action {
    match term.action {
        TermAction::Permit => Action::Permit,
        TermAction::Deny => Action::Deny,
    }
}

/// A term with its prefix lists written out.
fn rules(term: &Term, prefix_lists: &BTreeMap<String, PrefixList>) -> Vec<Rule> {
    let payload = match term.protocol {
        None => Payload::Any,
        Some(protocol) if protocol.has_ports() => Payload::Ports {
            protocol: IpProtocol(protocol.0),
            source: term.source_port.first..=term.source_port.last,
            destination: term.destination_port.first..=term.destination_port.last,
        },
        Some(protocol) if protocol.is_icmp() => Payload::Icmp {
            protocol: IpProtocol(protocol.0),
            kind: term.icmp_type.first..=term.icmp_type.last,
            code: term.icmp_code.first..=term.icmp_code.last,
        },
        Some(protocol) => Payload::Protocol(IpProtocol(protocol.0)),
    };
    let addresses = |way: AddressPair| match way {
        AddressPair::Any => Addresses::Any,
        AddressPair::V4 {
            source,
            destination,
        } => Addresses::V4 {
            source,
            destination,
        },
        AddressPair::V6 {
            source,
            destination,
        } => Addresses::V6 {
            source,
            destination,
        },
    };
    let rule = |way| Rule {
        action: action_of(term),
        addresses: addresses(way),
        payload: payload.clone(),
    };
    term.ways(prefix_lists).into_iter().map(rule).collect()
}

/// Lists that are ready, by what they say.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuiltLists(Vec<(Wording, Arc<FilterList>)>);

impl BuiltLists {
    /// Builds what a configuration binds and what is not here yet. Takes its time.
    pub(crate) fn prepare(&mut self, config: &Config) -> Result<(), String> {
        for binding in config.interfaces.values().map(|interface| &interface.acl) {
            for names in [&binding.input, &binding.output] {
                self.get(Wording::of(config, names, binding.fragments))?;
            }
        }
        Ok(())
    }

    /// The list that says this; none when it has no lists at all.
    fn get(&mut self, wording: Wording) -> Result<Option<Bound>, String> {
        if wording.lists.is_empty() {
            return Ok(None);
        }
        if let Some((wording, list)) = self.0.iter().find(|(known, _)| *known == wording) {
            return Ok(Some(Bound {
                wording: wording.clone(),
                filter: list.clone(),
            }));
        }
        let list = Arc::new(wording.build()?);
        self.0.push((wording.clone(), list.clone()));
        Ok(Some(Bound {
            wording,
            filter: list,
        }))
    }

    /// Takes over what somebody else built.
    fn take_over(&mut self, other: BuiltLists) {
        let new = other
            .0
            .into_iter()
            .filter(|(_, list)| !self.0.iter().any(|(_, known)| Arc::ptr_eq(known, list)));
        let new: Vec<_> = new.collect();
        self.0.extend(new);
    }
}

/// A list that is ready, and what it says.
struct Bound {
    wording: Wording,
    filter: Arc<FilterList>,
}

/// What an interface is bound to in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) wording: Wording,
    pub(crate) filter: Filter,
    earlier: Earlier,
}

impl Binding {
    /// Packets and bytes of a term; those that no term matched when `term` is the number of terms.
    fn count_of(&self, term: usize) -> (u64, u64) {
        let earlier = self.earlier.of(term);
        let since = self.filter.counters.of(term);
        (earlier.0 + since.0, earlier.1 + since.1)
    }
}

/// What the terms of a binding counted before the binding changed. Entries are by term, the last one is what no term
/// matched.
#[derive(Clone, Debug, Default)]
struct Earlier {
    /// Counts of bindings before the last one, which nobody changes any more.
    sums: Vec<(u64, u64)>,
    /// The counters of the last one, which workers may still change, and which of them each term continues.
    last: Option<(Arc<FilterCounters>, Vec<Option<usize>>)>,
}

impl Earlier {
    fn of(&self, term: usize) -> (u64, u64) {
        let sum = self.sums.get(term).copied().unwrap_or_default();
        let last = self.last.as_ref().and_then(|(counters, terms)| {
            let term = terms.get(term).copied().flatten()?;
            Some(counters.of(term))
        });
        let last = last.unwrap_or_default();
        (sum.0 + last.0, sum.1 + last.1)
    }

    /// What a binding with this wording continues of the binding before. A term continues the count of an equal term
    /// of the same list, wherever it stood; its description does not matter.
    fn of_change(before: &Binding, wording: &Wording) -> Earlier {
        let mut old: HashMap<(&str, Term), VecDeque<usize>> = HashMap::new();
        for (number, key) in before.wording.keys().enumerate() {
            old.entry(key).or_default().push_back(number);
        }
        let mut continued: Vec<Option<usize>> = wording
            .keys()
            .map(|key| old.get_mut(&key).and_then(VecDeque::pop_front))
            .collect();
        continued.push(Some(before.filter.list.terms()));
        let sum = |number: &Option<usize>| number.map(|number| before.earlier.of(number));
        let sums = continued
            .iter()
            .map(|number| sum(number).unwrap_or_default());
        Earlier {
            sums: sums.collect(),
            last: Some((before.filter.counters.clone(), continued)),
        }
    }
}

/// What an interface is bound to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) input: Option<Binding>,
    pub(crate) output: Option<Binding>,
}

impl Control {
    /// A copy of the lists that are ready, for whoever prepares others.
    pub(crate) fn built_lists(&self) -> BuiltLists {
        self.lists.clone()
    }

    /// Takes lists over that somebody prepared.
    pub(crate) fn take_lists(&mut self, prepared: BuiltLists) {
        self.lists.take_over(prepared);
    }

    /// Binds every interface to what the configuration says, once a change is complete; lists that nobody is bound
    /// to any more are forgotten.
    pub(crate) fn bind_lists(&mut self) -> Result<(), String> {
        let names: Vec<String> = self.interfaces.keys().cloned().collect();
        for name in names {
            self.bind_interface(&name)?;
        }
        let in_use = |list: &Arc<FilterList>| {
            let all = self
                .interfaces
                .values()
                .flat_map(|it| [&it.bindings.input, &it.bindings.output]);
            all.flatten()
                .any(|binding| Arc::ptr_eq(&binding.filter.list, list))
        };
        let used: Vec<bool> = self.lists.0.iter().map(|(_, list)| in_use(list)).collect();
        let mut used = used.into_iter();
        self.lists.0.retain(|_| used.next().unwrap_or(true));
        Ok(())
    }

    fn bind_interface(&mut self, name: &str) -> Result<(), String> {
        let Some(wanted) = self
            .config
            .interfaces
            .get(name)
            .map(|interface| interface.acl.clone())
        else {
            return Ok(());
        };
        let before = self
            .interfaces
            .get(name)
            .map(|attached| attached.bindings.clone())
            .unwrap_or_default();
        if wanted.is_empty() && before.input.is_none() && before.output.is_none() {
            return Ok(());
        }
        let input = self.binding(&wanted.input, wanted.fragments, before.input.as_ref())?;
        let output = self.binding(&wanted.output, wanted.fragments, before.output.as_ref())?;
        let same = |one: &Option<Binding>, other: &Option<Binding>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.filter.counters, &other.filter.counters),
            (None, None) => true,
            _ => false,
        };
        if same(&input, &before.input) && same(&output, &before.output) {
            return Ok(());
        }
        if let Some(attached) = self.interfaces.get_mut(name) {
            attached.bindings = Bindings { input, output };
        }
        self.refresh(name);
        Ok(())
    }

    /// What some names stand for now; as before when it says the same.
    fn binding(
        &mut self,
        names: &[String],
        fragments: AclFragments,
        before: Option<&Binding>,
    ) -> Result<Option<Binding>, String> {
        let wording = Wording::of(&self.config, names, fragments);
        if let Some(before) = before.filter(|before| before.wording == wording) {
            return Ok(Some(before.clone()));
        }
        let Some(bound) = self.lists.get(wording)? else {
            return Ok(None);
        };
        let counters = Arc::new(FilterCounters::new(
            self.workers.len(),
            bound.filter.terms(),
        ));
        let earlier = before.map(|before| Earlier::of_change(before, &bound.wording));
        Ok(Some(Binding {
            earlier: earlier.unwrap_or_default(),
            wording: bound.wording,
            filter: Filter {
                list: bound.filter,
                counters,
            },
        }))
    }
}

impl Control {
    /// What an interface is bound to, and what was met there.
    fn binding_view(interface: &str, direction: AclDirection, binding: &Binding) -> AclBinding {
        let (mut permitted, mut denied) = (0, 0);
        for (number, (_, _, term)) in binding.wording.terms().enumerate() {
            let (packets, _) = binding.count_of(number);
            match term.action {
                TermAction::Permit => permitted += packets,
                TermAction::Deny => denied += packets,
            }
        }
        let facts = binding.filter.list.facts();
        AclBinding {
            interface: interface.to_owned(),
            direction,
            acls: binding
                .wording
                .lists
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            permitted,
            denied,
            unmatched: binding.count_of(binding.filter.list.terms()).0,
            rules: facts.rules as u64,
            memory_bytes: facts.bytes as u64,
        }
    }

    /// The part of all lists that is asked for.
    pub(crate) fn acls(&self, query: &AclQuery) -> Acls {
        let wanted = |name: &str| {
            query
                .interface
                .as_deref()
                .is_none_or(|interface| interface == name)
        };
        let mut bound: Vec<(&str, AclDirection, &Binding)> = Vec::new();
        for (name, attached) in self.interfaces.iter().filter(|(name, _)| wanted(name)) {
            let Bindings { input, output } = &attached.bindings;
            bound.extend(
                input
                    .iter()
                    .map(|binding| (name.as_str(), AclDirection::Input, binding)),
            );
            bound.extend(
                output
                    .iter()
                    .map(|binding| (name.as_str(), AclDirection::Output, binding)),
            );
        }
        let mut met: BTreeMap<(&str, usize), (u64, u64)> = BTreeMap::new();
        for (_, _, binding) in &bound {
            for (number, (list, place, _)) in binding.wording.terms().enumerate() {
                let (packets, bytes) = binding.count_of(number);
                let sum = met.entry((list, place)).or_default();
                *sum = (sum.0 + packets, sum.1 + bytes);
            }
        }
        let is_bound = |name: &str| {
            query.interface.is_none()
                || met
                    .range((name, 0)..)
                    .next()
                    .is_some_and(|((list, _), _)| *list == name)
        };
        let behind = |name: &str, place: usize| {
            query
                .after
                .as_ref()
                .is_none_or(|after| (name, place) > (after.acl.as_str(), after.term as usize))
        };
        let lists = self.config.access_lists.iter().filter(|(name, _)| {
            query.acl.as_deref().is_none_or(|acl| acl == *name) && is_bound(name)
        });
        let all = lists.flat_map(|(name, list)| {
            list.terms
                .iter()
                .enumerate()
                .map(move |(place, term)| (name.as_str(), place, term))
        });
        let terms = all
            .filter(|(name, place, _)| behind(name, *place))
            .take(query.most)
            .map(|(name, place, term)| {
                let (packets, bytes) = met.get(&(name, place)).copied().unwrap_or_default();
                let action = if term.action == TermAction::Permit {
                    AclAction::Permit
                } else {
                    AclAction::Deny
                };
                let description = term.description.clone();
                AclTerm {
                    acl: name.to_owned(),
                    term: place as u32,
                    action,
                    asks: term.match_text(),
                    description,
                    packets,
                    bytes,
                }
            });
        let terms = terms.collect();
        let is_asked = |binding: &Binding| {
            query
                .acl
                .as_ref()
                .is_none_or(|acl| binding.wording.lists.iter().any(|(name, _)| name == acl))
        };
        let first_page = query.after.is_none();
        let bindings = bound
            .into_iter()
            .filter(|(_, _, binding)| first_page && is_asked(binding));
        Acls {
            bindings: bindings
                .map(|(name, direction, binding)| Control::binding_view(name, direction, binding))
                .collect(),
            terms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key reaches the list that workers ask, and makes it another one.
    #[test]
    fn later_fragments_are_treated_as_the_binding_says() {
        let mut lists = BuiltLists::default();
        for (words, wanted) in [
            ("", Fragments::Match),
            (", fragments: match", Fragments::Match),
            (", fragments: drop", Fragments::Drop),
            (", fragments: permit", Fragments::Permit),
        ] {
            let text = format!(
                "interfaces: {{xe0: {{device: {{driver: 'null'}}, addresses: [10.0.0.1/24], acl: {{input: [web]{words}}}}}}}
acls: {{web: {{terms: [{{action: permit, protocol: tcp, destination-port: https}}]}}}}"
            );
            let (config, _) = weir_config::check("test", &text).unwrap();
            lists.prepare(&config).unwrap();
            let acl = &config.interfaces["xe0"].acl;
            let wording = Wording::of(&config, &acl.input, acl.fragments);
            let bound = lists.get(wording).unwrap().unwrap();
            assert_eq!(bound.filter.fragments(), wanted, "{words}");
        }
        assert_eq!(lists.0.len(), 3);
    }
}
