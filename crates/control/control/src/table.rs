//! One routing table (VRF): all routes, the best of which are in its forwarding tables.
//!
//! Keeps the order that `weir_fib` demands in one respect only: a group must be published before a route
//! leads to it. That is the caller's part; here the route takes effect at once.

use std::convert::Infallible;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weir_fib::{Fib4Writer, Fib6Writer, FibError, Memory};
use weir_ring::qsbr::Domain;

use crate::lengths::Lengths;
use crate::rib::{Candidate, Rib};
use crate::source::{RouteId, RouteSource};

/// The best route of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The destinations.
    pub prefix: IpNet,
    /// Where the route comes from.
    pub source: RouteSource,
    /// The next-hop group.
    pub group: u32,
}

/// What became of routes that were set together.
#[derive(Debug, Default)]
pub struct Replaced {
    /// The groups of routes that others took the place of, once for each.
    pub groups: Vec<u32>,
    /// Routes that were refused, and why. Their groups are not used.
    pub refused: Vec<(IpNet, Candidate, FibError)>,
}

impl Found {
    fn of(prefix: IpNet, route: Candidate) -> Found {
        Found {
            prefix,
            source: route.id.source,
            group: route.group,
        }
    }
}

/// One routing table (VRF), for both IP versions.
#[derive(Debug)]
pub struct Table {
    /// The name of the VRF; the default table has none.
    pub name: Option<String>,
    /// The number that people know it by.
    pub number: u32,
    /// The IPv4 forwarding table.
    pub fib4: Fib4Writer,
    /// The IPv6 forwarding table.
    pub fib6: Fib6Writer,
    four: Rib<Ipv4Net>,
    six: Rib<Ipv6Net>,
    /// The lengths of its prefixes, while reports need them.
    lengths: Option<Lengths>,
}

impl Table {
    /// An empty table.
    ///
    /// # Errors
    /// When there is no memory for the forwarding tables.
    pub fn new(domain: &Domain, name: Option<String>, number: u32) -> Result<Table, FibError> {
        let (fib4, fib6) = (Fib4Writer::new(domain)?, Fib6Writer::new(domain)?);
        Ok(Table {
            name,
            number,
            fib4,
            fib6,
            four: Rib::new(),
            six: Rib::new(),
            lengths: None,
        })
    }

    /// Begins or ends to keep the lengths of prefixes.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn measure(&mut self, domain: &Domain, on: bool) -> Result<(), FibError> {
        self.lengths = if on {
            // A neighbour has no prefix of its own: it is on the link's.
            let routes = self
                .after(None)
                .filter(|found| found.source != RouteSource::Neighbor);
            Some(Lengths::of(domain, routes.map(|found| found.prefix))?)
        } else {
            None
        };
        Ok(())
    }

    /// The lengths of its prefixes.
    #[must_use]
    pub fn lengths(&self) -> Option<&Lengths> {
        self.lengths.as_ref()
    }

    /// Adds a route without protocol and age, or replaces the one of the same source and metric, whose group is returned.
    ///
    /// # Errors
    /// When the forwarding table is full. Then nothing has changed.
    pub fn set(
        &mut self,
        prefix: IpNet,
        id: impl Into<RouteId>,
        group: u32,
    ) -> Result<Option<u32>, FibError> {
        let route = Candidate {
            id: id.into(),
            group,
            protocol: 0,
            since: 0,
        };
        self.set_route(prefix, route)
    }

    /// Adds a route, or replaces the one of the same source and metric, whose group is returned.
    ///
    /// # Errors
    /// When the forwarding table is full. Then nothing has changed.
    pub fn set_route(&mut self, prefix: IpNet, route: Candidate) -> Result<Option<u32>, FibError> {
        if let Some(lengths) = self
            .lengths
            .as_mut()
            .filter(|_| route.id.source != RouteSource::Neighbor)
        {
            lengths.add(prefix)?;
        }
        match prefix {
            IpNet::V4(net) => {
                let fib = &mut self.fib4;
                let forward = |group| fib.insert(net, group).map(drop);
                self.four.set(net, route, forward)
            }
            IpNet::V6(net) => {
                let fib = &mut self.fib6;
                let forward = |group| fib.insert(net, group).map(drop);
                self.six.set(net, route, forward)
            }
        }
    }

    /// Adds many routes, or replaces those of the same source and metric; the forwarding tables are written together.
    ///
    /// A route that is refused, since there is no memory, leaves none of its source behind.
    pub fn set_routes(&mut self, routes: &[(IpNet, Candidate)]) -> Replaced {
        let mut replaced = Replaced::default();
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for (prefix, route) in routes {
            let is_counted = route.id.source != RouteSource::Neighbor;
            if let Some(lengths) = self.lengths.as_mut().filter(|_| is_counted)
                && let Err(error) = lengths.add(*prefix)
            {
                replaced.refused.push((*prefix, *route, error));
                continue;
            }
            // Nothing fails here: the forwarding tables come after.
            let old = match prefix {
                IpNet::V4(net) => self.four.set(*net, *route, |group| {
                    four.push((*net, group));
                    Ok::<(), Infallible>(())
                }),
                IpNet::V6(net) => self.six.set(*net, *route, |group| {
                    six.push((*net, group));
                    Ok::<(), Infallible>(())
                }),
            };
            let Ok(old) = old;
            replaced.groups.extend(old);
        }
        if self.fib4.insert_all(&four).is_err() {
            for (net, group) in four {
                if let Err(error) = self.fib4.insert(net, group) {
                    self.refuse(net.into(), error, routes, &mut replaced);
                }
            }
        }
        if self.fib6.insert_all(&six).is_err() {
            for (net, group) in six {
                if let Err(error) = self.fib6.insert(net, group) {
                    self.refuse(net.into(), error, routes, &mut replaced);
                }
            }
        }
        replaced
    }

    /// Takes a route back that the forwarding table has no memory for.
    fn refuse(
        &mut self,
        prefix: IpNet,
        error: FibError,
        routes: &[(IpNet, Candidate)],
        replaced: &mut Replaced,
    ) {
        let Some((_, route)) = routes.iter().rev().find(|(net, _)| *net == prefix) else {
            return;
        };
        if self.of(prefix, route.id) == Some(route.group) {
            // What is left needs no more memory than what is there.
            let _ = self.unset(prefix, route.id);
            replaced.refused.push((prefix, *route, error));
        }
    }

    /// Removes a route, whose group is returned; the next best one takes its place.
    ///
    /// # Errors
    /// When the forwarding table has no memory for the next best one.
    pub fn unset(
        &mut self,
        prefix: IpNet,
        id: impl Into<RouteId>,
    ) -> Result<Option<u32>, FibError> {
        let id = id.into();
        let before = self.best(prefix).map(|best| best.group);
        let old = match prefix {
            IpNet::V4(net) => self.four.unset(net, id),
            IpNet::V6(net) => self.six.unset(net, id),
        };
        let best = self.best(prefix);
        let gone = best.is_none_or(|best| best.id.source == RouteSource::Neighbor);
        match (prefix, best.map(|best| best.group)) {
            (_, group) if group == before => {}
            (IpNet::V4(net), Some(group)) => drop(self.fib4.insert(net, group)?),
            (IpNet::V6(net), Some(group)) => drop(self.fib6.insert(net, group)?),
            (IpNet::V4(net), None) => drop(self.fib4.remove(net)),
            (IpNet::V6(net), None) => drop(self.fib6.remove(net)),
        }
        if let Some(lengths) = self.lengths.as_mut().filter(|_| gone) {
            lengths.remove(prefix);
        }
        Ok(old)
    }

    /// The group of one route, whether or not it is the best.
    #[must_use]
    pub fn of(&self, prefix: IpNet, id: impl Into<RouteId>) -> Option<u32> {
        let route = match prefix {
            IpNet::V4(net) => self.four.of(net, id.into()),
            IpNet::V6(net) => self.six.of(net, id.into()),
        };
        route.map(|route| route.group)
    }

    /// All routes of a prefix, the best first.
    #[must_use]
    pub fn candidates(&self, prefix: IpNet) -> Vec<Candidate> {
        match prefix {
            IpNet::V4(net) => self.four.candidates(net),
            IpNet::V6(net) => self.six.candidates(net),
        }
    }

    fn best(&self, prefix: IpNet) -> Option<Candidate> {
        match prefix {
            IpNet::V4(net) => self.four.get(net),
            IpNet::V6(net) => self.six.get(net),
        }
    }

    /// The best route of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: IpNet) -> Option<Found> {
        self.best(prefix).map(|route| Found::of(prefix, route))
    }

    /// The route that packets to an address take.
    #[must_use]
    pub fn longest_match(&self, address: IpAddr) -> Option<Found> {
        let prefix = match address {
            IpAddr::V4(address) => IpNet::V4(self.fib4.longest_match(address)?.0),
            IpAddr::V6(address) => IpNet::V6(self.fib6.longest_match(address)?.0),
        };
        self.get(prefix)
    }

    /// All best routes behind a prefix, IPv4 first, in order of addresses.
    pub fn after(&self, prefix: Option<IpNet>) -> impl Iterator<Item = Found> + '_ {
        let four = match prefix {
            None => Some(None),
            Some(IpNet::V4(net)) => Some(Some(net)),
            Some(IpNet::V6(_)) => None,
        };
        let four = four.map(|from| self.four.after(from)).into_iter().flatten();
        four.map(|(net, route)| Found::of(net.into(), route))
            .chain(self.six_after(prefix))
    }

    /// The same of IPv6 alone.
    pub fn six_after(&self, prefix: Option<IpNet>) -> impl Iterator<Item = Found> + '_ {
        let six = prefix.and_then(|prefix| match prefix {
            IpNet::V6(net) => Some(net),
            IpNet::V4(_) => None,
        });
        self.six
            .after(six)
            .map(|(net, route)| Found::of(net.into(), route))
    }

    /// Begins a new generation of a source, which is about to set all its routes again. What it has not set when it
    /// is done is stale: see [`Table::stale`].
    pub fn begin_generation(&mut self, source: RouteSource) {
        self.four.begin_generation(source);
        self.six.begin_generation(source);
    }

    /// The stale routes of a source among the next `most` prefixes behind `after`, and from where to go on, if there are
    /// more.
    #[must_use]
    pub fn stale(
        &self,
        source: RouteSource,
        after: Option<IpNet>,
        most: usize,
    ) -> (Vec<(IpNet, RouteId)>, Option<IpNet>) {
        let mut stale = Vec::new();
        let mut next = None;
        if !matches!(after, Some(IpNet::V6(_))) {
            let four = after.and_then(|after| match after {
                IpNet::V4(net) => Some(net),
                IpNet::V6(_) => None,
            });
            let mut found = Vec::new();
            next = self
                .four
                .stale(source, four, most, &mut found)
                .map(IpNet::V4);
            stale.extend(found.into_iter().map(|(net, id)| (net.into(), id)));
        }
        if next.is_none() {
            let six = after.and_then(|after| match after {
                IpNet::V4(_) => None,
                IpNet::V6(net) => Some(net),
            });
            let mut found = Vec::new();
            next = self.six.stale(source, six, most, &mut found).map(IpNet::V6);
            stale.extend(found.into_iter().map(|(net, id)| (net.into(), id)));
        }
        (stale, next)
    }

    /// The routes of the kernel and of zebra among the next `most` prefixes behind `after`, and from where to go on, if
    /// there are more.
    #[must_use]
    pub fn of_linux(
        &self,
        after: Option<IpNet>,
        most: usize,
    ) -> (Vec<(IpNet, RouteId)>, Option<IpNet>) {
        let mut prefixes = self.after(after).map(|found| found.prefix);
        let part: Vec<IpNet> = prefixes.by_ref().take(most).collect();
        let next = part.last().copied().filter(|_| prefixes.next().is_some());
        let of_prefix = |prefix: &IpNet| {
            let prefix = *prefix;
            let all = self.candidates(prefix).into_iter().map(|route| route.id);
            all.filter(|id| matches!(id.source, RouteSource::Kernel | RouteSource::Fpm))
                .map(move |id| (prefix, id))
        };
        (part.iter().flat_map(of_prefix).collect(), next)
    }

    /// The number of routes of each source, IPv4 and IPv6.
    #[must_use]
    pub fn counts(&self) -> [[u64; RouteSource::ALL.len()]; 2] {
        [self.four.counts(), self.six.counts()]
    }

    /// What the forwarding tables occupy, IPv4 and IPv6.
    #[must_use]
    pub fn memory(&self) -> [Memory; 2] {
        [self.fib4.memory(), self.fib6.memory()]
    }

    /// Whether it has no route at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.four.is_empty() && self.six.is_empty()
    }
}

#[cfg(test)]
mod tests;
