//! All routes of one IP version in one table, and which of each prefix is the best.
//!
//! Most prefixes have one route. So the best routes are in one map, of 16 bytes and a prefix each, and the others in
//! a second one that is mostly empty. A route carries the generation of its source in which it was set last: after a
//! source has sent everything again, what has an older generation is stale.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use crate::source::{Rank, RouteId, RouteSource};

const SOURCES: usize = RouteSource::ALL.len();

/// A route as the RIB shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Source and metric.
    pub id: RouteId,
    /// The next-hop group.
    pub group: u32,
    /// The number of the protocol that made it (`rtm_protocol` of Linux); 0 where there is none.
    pub protocol: u8,
    /// When it was set, in seconds of the router's clock.
    pub since: u32,
}

/// A route as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    group: u32,
    metric: u32,
    since: u32,
    source: RouteSource,
    protocol: u8,
    generation: u8,
}

const _: () = assert!(size_of::<Entry>() == 16);

impl Entry {
    fn id(&self) -> RouteId {
        RouteId {
            source: self.source,
            metric: self.metric,
        }
    }

    /// A route that its source sets again without a change is as old as it was.
    fn keep_age(&mut self, known: &Entry) {
        if (self.group, self.protocol) == (known.group, known.protocol) {
            self.since = known.since;
        }
    }

    fn candidate(&self) -> Candidate {
        Candidate {
            id: self.id(),
            group: self.group,
            protocol: self.protocol,
            since: self.since,
        }
    }
}

/// The routes of one IP version.
#[derive(Debug)]
pub(crate) struct Rib<N> {
    best: BTreeMap<N, Entry>,
    /// Routes of prefixes that have a better one.
    hidden: BTreeMap<(N, Rank), Entry>,
    /// Routes of each source, hidden ones too.
    counts: [u64; SOURCES],
    generations: [u8; SOURCES],
}

impl<N: Ord + Copy> Rib<N> {
    pub(crate) fn new() -> Rib<N> {
        Rib {
            best: BTreeMap::new(),
            hidden: BTreeMap::new(),
            counts: [0; SOURCES],
            generations: [0; SOURCES],
        }
    }

    /// Adds a route, or replaces the one of the same source and metric, whose group is returned. `forward` writes a group
    /// into the forwarding table; it is called when the best route's group changes, and nothing has changed when it fails.
    ///
    /// A full table is set route by route, so the prefix is searched once.
    pub(crate) fn set<E>(
        &mut self,
        net: N,
        route: Candidate,
        forward: impl FnOnce(u32) -> Result<(), E>,
    ) -> Result<Option<u32>, E> {
        let source = route.id.source;
        let mut new = Entry {
            group: route.group,
            metric: route.id.metric,
            since: route.since,
            source,
            protocol: route.protocol,
            generation: self.generations[source as usize],
        };
        let old = match self.best.entry(net) {
            btree_map::Entry::Vacant(place) => {
                forward(new.group)?;
                place.insert(new);
                None
            }
            btree_map::Entry::Occupied(mut best) => {
                let known = *best.get();
                if known.id() == route.id {
                    if known.group != new.group {
                        forward(new.group)?;
                    }
                    new.keep_age(&known);
                    best.insert(new);
                    Some(known)
                } else if route.id.rank() < known.id().rank() {
                    if known.group != new.group {
                        forward(new.group)?;
                    }
                    best.insert(new);
                    // The same route may have been among the hidden ones only if its rank was higher than the best's.
                    self.hidden.insert((net, known.id().rank()), known);
                    None
                } else {
                    let key = (net, route.id.rank());
                    if let Some(known) = self.hidden.get(&key) {
                        new.keep_age(known);
                    }
                    self.hidden.insert(key, new)
                }
            }
        };
        if old.is_none() {
            self.counts[source as usize] += 1;
        }
        Ok(old.map(|old| old.group))
    }

    /// Removes a route; returns its group.
    pub(crate) fn unset(&mut self, net: N, id: RouteId) -> Option<u32> {
        let best = self.best.get(&net).copied()?;
        let old = if best.id() == id {
            match self.next_hidden(net) {
                Some((rank, next)) => {
                    self.hidden.remove(&(net, rank));
                    self.best.insert(net, next);
                }
                None => drop(self.best.remove(&net)),
            }
            Some(best)
        } else {
            self.hidden.remove(&(net, id.rank()))
        };
        if old.is_some() {
            self.counts[id.source as usize] -= 1;
        }
        old.map(|old| old.group)
    }

    fn next_hidden(&self, net: N) -> Option<(Rank, Entry)> {
        let (key, entry) = self.hidden_of(net).next()?;
        Some((key.1, *entry))
    }

    fn hidden_of(&self, net: N) -> impl Iterator<Item = (&(N, Rank), &Entry)> {
        let lowest: Rank = (0, 0, RouteSource::Local);
        let highest: Rank = (u8::MAX, u32::MAX, RouteSource::Neighbor);
        self.hidden.range((net, lowest)..=(net, highest))
    }

    /// One route, whether or not it is the best.
    pub(crate) fn of(&self, net: N, id: RouteId) -> Option<Candidate> {
        let best = self.best.get(&net)?;
        let entry = if best.id() == id {
            Some(best)
        } else {
            self.hidden.get(&(net, id.rank()))
        };
        entry.map(Entry::candidate)
    }

    /// All routes of a prefix, the best first.
    pub(crate) fn candidates(&self, net: N) -> Vec<Candidate> {
        let best = self.best.get(&net).into_iter();
        let hidden = self.hidden_of(net).map(|(_, entry)| entry);
        best.chain(hidden).map(Entry::candidate).collect()
    }

    pub(crate) fn get(&self, net: N) -> Option<Candidate> {
        self.best.get(&net).map(Entry::candidate)
    }

    /// The best routes behind a prefix, in order.
    pub(crate) fn after(&self, net: Option<N>) -> impl Iterator<Item = (N, Candidate)> + '_ {
        let from = net.map_or(Bound::Unbounded, Bound::Excluded);
        self.best
            .range((from, Bound::Unbounded))
            .map(|(net, best)| (*net, best.candidate()))
    }

    /// Begins a new generation of a source: what it does not set again is stale.
    pub(crate) fn begin_generation(&mut self, source: RouteSource) {
        let generation = &mut self.generations[source as usize];
        *generation = generation.wrapping_add(1);
    }

    /// Looks at up to `most` prefixes behind `after` and adds the stale routes of a source to `stale`. Returns the last
    /// prefix that was inspected if there are more.
    pub(crate) fn stale(
        &self,
        source: RouteSource,
        after: Option<N>,
        most: usize,
        stale: &mut Vec<(N, RouteId)>,
    ) -> Option<N> {
        let current = self.generations[source as usize];
        let is_stale = |entry: &Entry| entry.source == source && entry.generation != current;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        if after.is_none() {
            let hidden = self.hidden.iter().filter(|(_, entry)| is_stale(entry));
            stale.extend(hidden.map(|((net, _), entry)| (*net, entry.id())));
        }
        let (mut last, mut seen) = (None, 0);
        for (net, entry) in self.best.range((from, Bound::Unbounded)) {
            if seen == most {
                return last;
            }
            seen += 1;
            last = Some(*net);
            if is_stale(entry) {
                stale.push((*net, entry.id()));
            }
        }
        None
    }

    pub(crate) fn counts(&self) -> [u64; SOURCES] {
        self.counts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.best.is_empty()
    }
}
