//! The routes of one table: where they come from, which of several counts, and what workers look up.
//!
//! A prefix may have a route of each source; the first source in [`RouteSource`]'s order counts and is
//! what the forwarding table holds, the others are hidden until it goes. Few are hidden, so what is kept
//! for a route is its prefix, its group and its source: the hidden ones are in a map of their own.
//!
//! Belongs to the control side. Groups are numbers here; who counts their users is `control.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weir_fib::{Fib4Writer, Fib6Writer, FibError, Memory};
use weir_ring::qsbr::Domain;

use crate::lengths::Lengths;

/// Where a route comes from; the first of several wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RouteSource {
    Local,
    Static,
    Connected,
    Neighbor,
}

impl RouteSource {
    pub(crate) const ALL: [RouteSource; 4] = [
        RouteSource::Local,
        RouteSource::Static,
        RouteSource::Connected,
        RouteSource::Neighbor,
    ];
}

/// The route of a prefix that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Best {
    group: u32,
    source: RouteSource,
}

impl Best {
    fn found(self, prefix: IpNet) -> Found {
        Found {
            prefix,
            source: self.source,
            group: self.group,
        }
    }
}

/// The routes of one IP version.
#[derive(Debug)]
struct Rib<N> {
    best: BTreeMap<N, Best>,
    /// Routes that another source hides.
    hidden: BTreeMap<(N, RouteSource), u32>,
    /// How many there are of each source, hidden ones too.
    counts: [u64; RouteSource::ALL.len()],
}

impl<N: Ord + Copy> Rib<N> {
    fn new() -> Rib<N> {
        Rib {
            best: BTreeMap::new(),
            hidden: BTreeMap::new(),
            counts: [0; RouteSource::ALL.len()],
        }
    }

    /// Adds a route, or replaces the one of the same source, whose group is returned.
    fn set(&mut self, net: N, source: RouteSource, group: u32) -> Option<u32> {
        let new = Best { group, source };
        let old = match self.best.get_mut(&net) {
            None => self.best.insert(net, new).map(|best| best.group),
            Some(best) if best.source == source => Some(std::mem::replace(&mut best.group, group)),
            Some(best) if source < best.source => {
                let hidden = std::mem::replace(best, new);
                self.hidden.insert((net, hidden.source), hidden.group)
            }
            Some(_) => self.hidden.insert((net, source), group),
        };
        if old.is_none() {
            self.counts[source as usize] += 1;
        }
        old
    }

    /// Takes a route away; returns its group.
    fn unset(&mut self, net: N, source: RouteSource) -> Option<u32> {
        let best = self.best.get(&net).copied()?;
        let old = if best.source == source {
            let of_net = (net, RouteSource::Local)..=(net, RouteSource::Neighbor);
            let next = self
                .hidden
                .range(of_net)
                .next()
                .map(|(&key, &group)| (key, group));
            match next {
                Some((key, group)) => {
                    self.hidden.remove(&key);
                    self.best.insert(
                        net,
                        Best {
                            group,
                            source: key.1,
                        },
                    );
                }
                None => {
                    self.best.remove(&net);
                }
            }
            Some(best.group)
        } else {
            self.hidden.remove(&(net, source))
        };
        if old.is_some() {
            self.counts[source as usize] -= 1;
        }
        old
    }

    /// The group of the route of a source, hidden or not.
    fn of(&self, net: N, source: RouteSource) -> Option<u32> {
        let best = self.best.get(&net)?;
        if best.source == source {
            Some(best.group)
        } else {
            self.hidden.get(&(net, source)).copied()
        }
    }

    fn get(&self, net: N) -> Option<Best> {
        self.best.get(&net).copied()
    }

    fn after(&self, net: Option<N>) -> impl Iterator<Item = (N, Best)> + '_ {
        let from = net.map_or(Bound::Unbounded, Bound::Excluded);
        self.best
            .range((from, Bound::Unbounded))
            .map(|(net, best)| (*net, *best))
    }
}

/// A route that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) prefix: IpNet,
    pub(crate) source: RouteSource,
    pub(crate) group: u32,
}

/// One routing table (VRF), for both IP versions.
#[derive(Debug)]
pub(crate) struct Table {
    /// The name of the VRF; the default table has none.
    pub(crate) name: Option<String>,
    /// The number that people know it by.
    pub(crate) number: u32,
    pub(crate) fib4: Fib4Writer,
    pub(crate) fib6: Fib6Writer,
    four: Rib<Ipv4Net>,
    six: Rib<Ipv6Net>,
    /// The lengths of its prefixes, while somebody reports them.
    lengths: Option<Lengths>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(
        domain: &Domain,
        name: Option<String>,
        number: u32,
    ) -> Result<Table, FibError> {
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
    pub(crate) fn measure(&mut self, domain: &Domain, on: bool) -> Result<(), FibError> {
        self.lengths = if on {
            Some({
                // A neighbour has no prefix of its own: it is on the link's.
                let routes = self
                    .after(None)
                    .filter(|found| found.source != RouteSource::Neighbor);
                Lengths::of(domain, routes.map(|found| found.prefix))?
            })
        } else {
            None
        };
        Ok(())
    }

    /// The lengths of its prefixes.
    pub(crate) fn lengths(&self) -> Option<&Lengths> {
        self.lengths.as_ref()
    }

    /// Adds a route, or replaces the one of the same source, whose group is returned. When the forwarding
    /// table is full, nothing has changed.
    pub(crate) fn set(
        &mut self,
        prefix: IpNet,
        source: RouteSource,
        group: u32,
    ) -> Result<Option<u32>, FibError> {
        let hidden = self.get(prefix).is_some_and(|found| found.source < source);
        if let Some(lengths) = self
            .lengths
            .as_mut()
            .filter(|_| source != RouteSource::Neighbor)
        {
            lengths.add(prefix)?;
        }
        match prefix {
            IpNet::V4(net) => {
                if !hidden {
                    self.fib4.insert(net, group)?;
                }
                Ok(self.four.set(net, source, group))
            }
            IpNet::V6(net) => {
                if !hidden {
                    self.fib6.insert(net, group)?;
                }
                Ok(self.six.set(net, source, group))
            }
        }
    }

    /// Takes the route of a source away, whose group is returned; what it hid shows again.
    pub(crate) fn unset(
        &mut self,
        prefix: IpNet,
        source: RouteSource,
    ) -> Result<Option<u32>, FibError> {
        let old = match prefix {
            IpNet::V4(net) => self.four.unset(net, source),
            IpNet::V6(net) => self.six.unset(net, source),
        };
        let best = self.get(prefix);
        let gone = best.is_none_or(|best| best.source == RouteSource::Neighbor);
        match (prefix, best) {
            (IpNet::V4(net), Some(best)) => {
                self.fib4.insert(net, best.group)?;
            }
            (IpNet::V6(net), Some(best)) => {
                self.fib6.insert(net, best.group)?;
            }
            (IpNet::V4(net), None) => {
                self.fib4.remove(net);
            }
            (IpNet::V6(net), None) => {
                self.fib6.remove(net);
            }
        }
        if let Some(lengths) = self.lengths.as_mut().filter(|_| gone) {
            lengths.remove(prefix);
        }
        Ok(old)
    }

    /// The group of a prefix's route of one source, whether or not it counts.
    pub(crate) fn of(&self, prefix: IpNet, source: RouteSource) -> Option<u32> {
        match prefix {
            IpNet::V4(net) => self.four.of(net, source),
            IpNet::V6(net) => self.six.of(net, source),
        }
    }

    /// The route of exactly this prefix.
    pub(crate) fn get(&self, prefix: IpNet) -> Option<Found> {
        let best = match prefix {
            IpNet::V4(net) => self.four.get(net),
            IpNet::V6(net) => self.six.get(net),
        };
        best.map(|Best { group, source }| Found {
            prefix,
            source,
            group,
        })
    }

    /// The route that packets to an address take.
    pub(crate) fn longest_match(&self, address: IpAddr) -> Option<Found> {
        let prefix = match address {
            IpAddr::V4(address) => IpNet::V4(self.fib4.longest_match(address)?.0),
            IpAddr::V6(address) => IpNet::V6(self.fib6.longest_match(address)?.0),
        };
        self.get(prefix)
    }

    /// All routes that count and come after a prefix, IPv4 first, in order of addresses.
    pub(crate) fn after(&self, prefix: Option<IpNet>) -> impl Iterator<Item = Found> + '_ {
        let four = match prefix {
            None => Some(None),
            Some(IpNet::V4(net)) => Some(Some(net)),
            Some(IpNet::V6(_)) => None,
        };
        let four = four.map(|from| self.four.after(from)).into_iter().flatten();
        four.map(|(net, best)| best.found(net.into()))
            .chain(self.six_after(prefix))
    }

    /// The same of IPv6 alone.
    pub(crate) fn six_after(&self, prefix: Option<IpNet>) -> impl Iterator<Item = Found> + '_ {
        let six = prefix.and_then(|prefix| {
            if let IpNet::V6(net) = prefix {
                Some(net)
            } else {
                None
            }
        });
        self.six
            .after(six)
            .map(|(net, best)| best.found(net.into()))
    }

    /// How many routes there are of each source, IPv4 and IPv6.
    pub(crate) fn counts(&self) -> [[u64; RouteSource::ALL.len()]; 2] {
        [self.four.counts, self.six.counts]
    }

    /// What the forwarding tables occupy, IPv4 and IPv6.
    pub(crate) fn memory(&self) -> [Memory; 2] {
        [self.fib4.memory(), self.fib6.memory()]
    }

    /// Whether it has no route at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.four.best.is_empty() && self.six.best.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_counts_and_shows_what_it_hid() {
        let domain = Domain::new(1);
        let mut table = Table::new(&domain, None, 0).unwrap();
        for prefix in ["10.0.0.0/8", "2001:db8::/32"] {
            let prefix: IpNet = prefix.parse().unwrap();
            let best = |table: &Table| {
                table
                    .longest_match(prefix.addr())
                    .map(|found| (found.source, found.group))
            };
            assert_eq!(table.set(prefix, RouteSource::Connected, 5), Ok(None));
            assert_eq!(table.set(prefix, RouteSource::Neighbor, 7), Ok(None));
            assert_eq!(best(&table), Some((RouteSource::Connected, 5)));
            assert_eq!(table.set(prefix, RouteSource::Static, 6), Ok(None));
            assert_eq!(best(&table), Some((RouteSource::Static, 6)));
            assert_eq!(table.set(prefix, RouteSource::Static, 8), Ok(Some(6)));
            assert_eq!(table.set(prefix, RouteSource::Connected, 9), Ok(Some(5)));
            assert_eq!(table.counts().iter().flatten().sum::<u64>(), 3);
            assert_eq!(table.unset(prefix, RouteSource::Static), Ok(Some(8)));
            assert_eq!(best(&table), Some((RouteSource::Connected, 9)));
            assert_eq!(table.unset(prefix, RouteSource::Neighbor), Ok(Some(7)));
            assert_eq!(table.unset(prefix, RouteSource::Neighbor), Ok(None));
            assert_eq!(table.unset(prefix, RouteSource::Connected), Ok(Some(9)));
            assert_eq!(best(&table), None);
        }
        assert!(table.is_empty() && table.counts() == [[0; 4]; 2]);
    }

    #[test]
    fn lengths_follow_the_routes_while_they_are_wanted() {
        let domain = Domain::new(1);
        let mut table = Table::new(&domain, None, 0).unwrap();
        let prefix = |text: &str| text.parse::<IpNet>().unwrap();
        table
            .set(prefix("10.0.0.0/8"), RouteSource::Static, 1)
            .unwrap();
        assert!(table.lengths().is_none());
        table.measure(&domain, true).unwrap();
        for net in ["10.1.0.0/16", "2001:db8::/32", "2001:db8:1::/48"] {
            table.set(prefix(net), RouteSource::Static, 1).unwrap();
        }
        table
            .set(prefix("10.1.0.0/16"), RouteSource::Connected, 1)
            .unwrap();
        let lengths = |table: &Table| {
            [
                "10.2.0.1",
                "10.1.0.1",
                "9.9.9.9",
                "2001:db8:1::1",
                "2001:db8::1",
                "::1",
            ]
            .map(|address| table.lengths().unwrap().length(address.parse().unwrap()))
        };
        assert_eq!(lengths(&table), [8, 16, 0, 48, 32, 0]);
        table
            .unset(prefix("10.1.0.0/16"), RouteSource::Static)
            .unwrap();
        table
            .unset(prefix("2001:db8:1::/48"), RouteSource::Static)
            .unwrap();
        assert_eq!(
            lengths(&table),
            [8, 16, 0, 32, 32, 0],
            "what another source still has stays"
        );
        table
            .unset(prefix("10.1.0.0/16"), RouteSource::Connected)
            .unwrap();
        assert_eq!((lengths(&table)[1], table.lengths().unwrap().len()), (8, 2));
        table.measure(&domain, false).unwrap();
        assert!(table.lengths().is_none());
    }

    #[test]
    fn routes_come_in_order_and_go_on_from_anywhere() {
        let domain = Domain::new(1);
        let mut table = Table::new(&domain, None, 0).unwrap();
        let all: Vec<IpNet> = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/16",
            "::/0",
            "2001:db8::/32",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        for prefix in all.iter().rev() {
            table.set(*prefix, RouteSource::Static, 1).unwrap();
        }
        let after = |prefix| {
            table
                .after(prefix)
                .map(|found| found.prefix)
                .collect::<Vec<_>>()
        };
        assert_eq!(after(None), all);
        for (place, prefix) in all.iter().enumerate() {
            assert_eq!(after(Some(*prefix)), all[place + 1..]);
        }
    }
}
