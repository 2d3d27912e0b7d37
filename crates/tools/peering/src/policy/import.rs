//! Verdicts on routes from neighbours.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{
    AspaState, BLACKHOLE, GRACEFUL_SHUTDOWN, LONGEST_PATH, MOST_COMMUNITIES, Origin, Reason, Route,
    Verdict, check_aspa, customer_local_prefs, functions, is_bogon_asn, is_laboratory, lengths,
    rejected_prefixes, transit_free_asns,
};
use crate::model::{AspaMode, Mode, Neighbor, Peering, Relation};
use crate::prefixes::PrefixIndex;
use crate::snapshot::{Entry, Snapshot, Vrp};

use ipnet::IpNet;

/// The policy, prepared for many routes.
pub struct Policy<'a> {
    peering: &'a Peering,
    snapshot: &'a Snapshot,
    is_laboratory: bool,
    rejected: PrefixIndex<()>,
    blocked: PrefixIndex<()>,
    transit_free: BTreeSet<u32>,
    preferences: Vec<u32>,
    vrps: PrefixIndex<Vrp>,
    /// What each neighbour may announce, by its position.
    sets: Vec<PrefixIndex<Entry>>,
    origins: Vec<Option<BTreeSet<u32>>>,
}

impl<'a> Policy<'a> {
    /// Prepares the policy of a configuration and a snapshot.
    #[must_use]
    pub fn new(peering: &'a Peering, snapshot: &'a Snapshot) -> Policy<'a> {
        let set = |neighbor: &Neighbor| {
            let entries = if neighbor.is_filtered_by_prefix() {
                snapshot.accepted(neighbor)
            } else {
                Vec::new()
            };
            entries.into_iter().map(|it| (it.prefix, it)).collect()
        };
        let index = |list: &[IpNet]| list.iter().map(|it| (*it, ())).collect();
        Policy {
            peering,
            snapshot,
            is_laboratory: is_laboratory(peering),
            rejected: index(&rejected_prefixes(peering)),
            blocked: index(&peering.policy.reject_prefixes),
            transit_free: transit_free_asns(peering).into_iter().collect(),
            preferences: customer_local_prefs(peering),
            vrps: snapshot.vrps.iter().map(|it| (it.prefix, *it)).collect(),
            sets: peering.neighbors.iter().map(set).collect(),
            origins: peering
                .neighbors
                .iter()
                .map(|it| snapshot.origins(it))
                .collect(),
        }
    }

    /// What happens to a route from the neighbour at this position of the configuration.
    #[must_use]
    pub fn import(&self, neighbor: usize, route: &Route) -> Verdict {
        let Some(of) = self.peering.neighbors.get(neighbor) else {
            return Verdict::Reject(Reason::FirstAs);
        };
        if of.relation == Relation::Own {
            return Verdict::Accept { local_pref: 100 };
        }
        match self.decide(neighbor, of, route) {
            Err(reason) => Verdict::Reject(reason),
            Ok(()) => Verdict::Accept {
                local_pref: self.preference(of, route),
            },
        }
    }

    fn preference(&self, of: &Neighbor, route: &Route) -> u32 {
        let is_stripped = is_stripped(route);
        let mut preference = self.peering.local_pref(of);
        if of.relation == Relation::Customer && !is_stripped {
            for wanted in &self.preferences {
                if route
                    .large
                    .contains(&(self.peering.asn, functions::PREFERENCE, *wanted))
                {
                    preference = *wanted;
                }
            }
        }
        let asked = !is_stripped && route.communities.contains(&GRACEFUL_SHUTDOWN);
        if self.peering.mode(of) == Mode::Drain || asked {
            0
        } else {
            preference
        }
    }

    /// The checks in their order. What is in shadow mode never fails.
    fn decide(&self, number: usize, neighbor: &Neighbor, route: &Route) -> Result<(), Reason> {
        let check = |failed: bool, reason: Reason| {
            if failed && !self.peering.policy.shadow.contains(&reason) {
                Err(reason)
            } else {
                Ok(())
            }
        };
        let is_blocked = |asn: &u32| self.peering.policy.reject_asns.contains(asn);
        check(route.path.len() > LONGEST_PATH, Reason::PathTooLong)?;
        check(route.has_as_set, Reason::AsSet)?;
        check(
            !self.is_laboratory && route.path.iter().any(|asn| is_bogon_asn(*asn)),
            Reason::BogonAsn,
        )?;
        check(route.path.iter().any(is_blocked), Reason::Blocked)?;
        check(
            neighbor.relation != Relation::RouteServer && route.path.first() != Some(&neighbor.asn),
            Reason::FirstAs,
        )?;
        check(self.has_foreign_next_hop(neighbor, route), Reason::NextHop)?;
        if self.is_blackhole(number, neighbor, route) {
            return Ok(());
        }
        let (shortest, longest) = lengths(route.prefix.addr().is_ipv4());
        check(
            !(shortest..=longest).contains(&route.prefix.prefix_len()),
            Reason::PrefixLength,
        )?;
        check(is_not_global(&route.prefix), Reason::NotGlobalUnicast)?;
        check(
            self.rejected.covering(&route.prefix).next().is_some(),
            Reason::BogonPrefix,
        )?;
        check(
            self.blocked.covering(&route.prefix).next().is_some(),
            Reason::Blocked,
        )?;
        check(
            neighbor.relation == Relation::RouteServer
                && self.never_via_route_server(route).next().is_some(),
            Reason::NeverViaRouteServer,
        )?;
        check(
            neighbor.relation != Relation::Transit
                && self.transit_free(neighbor, route).next().is_some(),
            Reason::TransitFree,
        )?;
        let origin = self.origin(route);
        check(origin == Origin::Invalid, Reason::RpkiInvalid)?;
        check(
            self.peering.policy.aspa == AspaMode::Reject
                && self.aspa(neighbor, route) == AspaState::Invalid,
            Reason::AspaInvalid,
        )?;
        if !neighbor.is_filtered_by_prefix() {
            return Ok(());
        }
        let asn = route.path.last().copied().unwrap_or(0);
        let member = self.origins.get(number).and_then(Option::as_ref);
        let is_member = member.map(|it| it.contains(&asn));
        check(is_member == Some(false), Reason::OriginNotInAsSet)?;
        let by_roa = self.peering.policy.roa_as_route_object.unwrap_or(true)
            && is_member == Some(true)
            && origin == Origin::Valid;
        check(
            self.entry(number, route).is_none() && !by_roa,
            Reason::NotInIrr,
        )
    }

    /// Whether a next hop is none of the neighbour's addresses; a route server's may be all of the LAN.
    fn has_foreign_next_hop(&self, neighbor: &Neighbor, route: &Route) -> bool {
        let Some(next_hop) = route.next_hop.filter(|_| neighbor.check_next_hop) else {
            return false;
        };
        let allowed = next_hops(self.peering, neighbor, next_hop.is_ipv4());
        !allowed.is_empty() && !allowed.iter().any(|it| it.contains(&next_hop))
    }

    fn is_blackhole(&self, number: usize, neighbor: &Neighbor, route: &Route) -> bool {
        let (_, longest) = lengths(route.prefix.addr().is_ipv4());
        neighbor.blackhole
            && !is_stripped(route)
            && route.communities.contains(&BLACKHOLE)
            && route.prefix.prefix_len() > longest
            && self
                .sets
                .get(number)
                .is_some_and(|set| set.covering(&route.prefix).next().is_some())
    }

    /// Validates the origin of a route.
    #[must_use]
    pub fn origin(&self, route: &Route) -> Origin {
        let asn = route.path.last().copied().filter(|_| !route.has_as_set);
        let asn = asn.unwrap_or(0);
        let mut covered = false;
        for (_, vrp) in self.vrps.covering(&route.prefix) {
            covered = true;
            if vrp.asn == asn && asn != 0 && route.prefix.prefix_len() <= vrp.max_length {
                return Origin::Valid;
            }
        }
        if covered {
            Origin::Invalid
        } else {
            Origin::NotFound
        }
    }

    /// Verifies the path of a route by ASPA objects.
    #[must_use]
    pub fn aspa(&self, neighbor: &Neighbor, route: &Route) -> AspaState {
        check_aspa(
            &self.snapshot.aspas,
            &route.path,
            route.has_as_set,
            neighbor.relation != Relation::Transit,
        )
    }

    /// The entry of a neighbour's set that accepts a route.
    fn entry(&self, neighbor: usize, route: &Route) -> Option<&Entry> {
        self.sets
            .get(neighbor)?
            .covering(&route.prefix)
            .map(|(_, entry)| entry)
            .find(|entry| entry.accepts(&route.prefix))
    }

    /// Networks of the path that buy no transit, the neighbour itself excepted.
    fn transit_free<'r>(
        &'r self,
        neighbor: &'r Neighbor,
        route: &'r Route,
    ) -> impl Iterator<Item = u32> + 'r {
        let is_one = |asn: &u32| *asn != neighbor.asn && self.transit_free.contains(asn);
        route.path.iter().copied().filter(is_one)
    }

    fn never_via_route_server<'r>(&'r self, route: &'r Route) -> impl Iterator<Item = u32> + 'r {
        let never = &self.snapshot.never_via_route_servers;
        route.path.iter().copied().filter(|asn| never.contains(asn))
    }

    /// Why a route gets its verdict: one sentence a fact, the deciding one last.
    #[must_use]
    pub fn evidence(&self, neighbor: usize, route: &Route) -> Vec<String> {
        let Some(of) = self.peering.neighbors.get(neighbor) else {
            return Vec::new();
        };
        let path: Vec<String> = route.path.iter().map(u32::to_string).collect();
        let mut facts = vec![format!("AS path {}", path.join(" "))];
        let vrps: Vec<String> = self
            .vrps
            .covering(&route.prefix)
            .take(10)
            .map(|(prefix, vrp)| format!("{prefix} up to /{} for AS{}", vrp.max_length, vrp.asn))
            .collect();
        facts.push(match self.origin(route) {
            Origin::NotFound => "no ROA covers the prefix".to_owned(),
            Origin::Valid => format!("the origin is valid: ROA {}", vrps.join(", ")),
            Origin::Invalid => format!("the origin is invalid: ROA {}", vrps.join(", ")),
        });
        if !self.snapshot.aspas.is_empty() {
            facts.push(match self.aspa(of, route) {
                AspaState::Valid => "ASPA objects attest the path".to_owned(),
                AspaState::Invalid => "ASPA objects contradict the path".to_owned(),
                AspaState::Unknown => "ASPA objects say nothing about the whole path".to_owned(),
            });
        }
        if of.is_filtered_by_prefix() {
            let set = match (&of.as_set, of.prefixes.is_empty()) {
                (Some(set), true) => set.clone(),
                _ => "the configured prefixes".to_owned(),
            };
            facts.push(match self.entry(neighbor, route) {
                Some(entry) => format!(
                    "{set} has {} with lengths {} to {}",
                    entry.prefix, entry.least, entry.most
                ),
                None => format!("{set} does not have the prefix"),
            });
        }
        facts.extend(
            self.decide(neighbor, of, route)
                .err()
                .and_then(|reason| self.deciding_fact(reason, neighbor, of, route)),
        );
        facts
    }

    fn deciding_fact(
        &self,
        reason: Reason,
        number: usize,
        of: &Neighbor,
        route: &Route,
    ) -> Option<String> {
        match reason {
            Reason::PathTooLong => Some(format!("the path has {} ASNs", route.path.len())),
            Reason::BogonAsn => route
                .path
                .iter()
                .find(|asn| is_bogon_asn(**asn))
                .map(|asn| format!("AS{asn} is reserved")),
            Reason::FirstAs => Some(format!("the first ASN is not {}", of.asn)),
            Reason::NextHop => route.next_hop.map(|it| format!("the next hop is {it}")),
            Reason::BogonPrefix => {
                let mut covering = self.rejected.covering(&route.prefix);
                let (prefix, ()) = covering.next()?;
                Some(format!("{prefix} is reserved, own, or an exchange's LAN"))
            }
            Reason::TransitFree => {
                let asn = self.transit_free(of, route).next()?;
                Some(format!(
                    "AS{asn} buys no transit, so AS{} leaks its route",
                    of.asn
                ))
            }
            Reason::NeverViaRouteServer => {
                let asn = self.never_via_route_server(route).next()?;
                Some(format!(
                    "AS{asn} is never behind a route server, says PeeringDB or the configuration"
                ))
            }
            Reason::OriginNotInAsSet => {
                let count = self.origins.get(number)?.as_ref()?.len();
                let origin = route.path.last().copied().unwrap_or(0);
                Some(format!(
                    "AS{origin} is none of the {count} members of the AS-SET"
                ))
            }
            Reason::PrefixLength => {
                let (shortest, longest) = lengths(route.prefix.addr().is_ipv4());
                Some(format!("lengths from {shortest} to {longest} are accepted"))
            }
            Reason::AsSet => Some("the path ends with an AS_SET".to_owned()),
            Reason::NotGlobalUnicast => Some("it is outside of 2000::/3".to_owned()),
            Reason::Blocked => Some("the configuration rejects the prefix or an ASN".to_owned()),
            Reason::NotInIrr | Reason::RpkiInvalid | Reason::AspaInvalid => None,
        }
    }
}

/// Whether filters remove all communities of a route, because there are too many.
fn is_stripped(route: &Route) -> bool {
    route.communities.len() + route.large.len() > MOST_COMMUNITIES
}

/// The next hops that routes of a neighbour may have.
pub(crate) fn next_hops(peering: &Peering, neighbor: &Neighbor, is_ipv4: bool) -> Vec<IpNet> {
    let lan = peering.exchange(neighbor).map(|it| it.lan.as_slice());
    let mut all: Vec<IpNet> = match (neighbor.relation, lan) {
        (Relation::RouteServer, Some(lan)) => lan.iter().map(IpNet::trunc).collect(),
        _ => {
            let own = neighbor.addresses.iter().copied();
            own.map(|it: IpAddr| IpNet::from(it)).collect()
        }
    };
    all.retain(|it| it.addr().is_ipv4() == is_ipv4);
    all.sort_unstable();
    all
}

/// Whether an IPv6 prefix is outside of 2000::/3.
fn is_not_global(prefix: &IpNet) -> bool {
    match prefix {
        IpNet::V4(_) => false,
        IpNet::V6(prefix) => prefix.addr().segments()[0] >> 13 != 1,
    }
}
