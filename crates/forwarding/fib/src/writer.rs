//! The writers of IPv4 and IPv6 tables: prefixes in, and the checks of what may go in.
//!
//! Used by the control thread. What a change does to the trie is in `grow.rs`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_ring::qsbr::Domain;

use crate::entry::MAX_GROUP;
use crate::fib4::Fib4;
use crate::fib6::Fib6;
use crate::grow::{Grower, Shape};
use crate::rib::{Full, Prefix};

/// Why a route cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// There is no memory for another node of the table.
    #[error("the table is full: no memory for more routes")]
    Full,
    /// The group number does not fit an entry.
    #[error("group number {0} is over {MAX_GROUP}")]
    GroupTooHigh(u32),
}

impl From<Full> for FibError {
    fn from(_: Full) -> FibError {
        FibError::Full
    }
}

/// What a table occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    /// Bytes that lookups read: root, directory and nodes, with what lies free between them.
    pub table: usize,
    /// Bytes of the exact routes beside it.
    pub routes: usize,
    /// Nodes in use.
    pub blocks: usize,
    /// Nodes that wait for readers.
    pub spare_blocks: usize,
}

/// Routes from which on a table of IPv4 has lines (`line.rs`): 7 MiB, or 224 bytes for each of so few.
const LARGE: usize = 32_768;

fn memory_of(grower: &Grower) -> Memory {
    let ((table, routes), (blocks, spare_blocks)) = (grower.bytes(), grower.node_counts());
    Memory {
        table,
        routes,
        blocks,
        spare_blocks,
    }
}

fn check(group: u32) -> Result<u32, FibError> {
    if group > MAX_GROUP {
        Err(FibError::GroupTooHigh(group))
    } else {
        Ok(group)
    }
}

/// The one writer of a [`Fib4`].
pub struct Fib4Writer {
    fib: Arc<Fib4>,
    grower: Grower,
}

fn prefix4(prefix: Ipv4Net) -> Prefix {
    let mut octets = [0; 16];
    octets
        .iter_mut()
        .zip(prefix.network().octets())
        .for_each(|(place, octet)| *place = octet);
    Prefix {
        octets,
        len: prefix.prefix_len(),
    }
}

fn net4(prefix: Prefix) -> Option<Ipv4Net> {
    let [a, b, c, d, ..] = prefix.octets;
    Ipv4Net::new(Ipv4Addr::new(a, b, c, d), prefix.len)
        .ok()
        .map(|net| net.trunc())
}

impl Fib4Writer {
    /// An empty table whose readers are readers of `domain`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(domain: &Domain) -> Result<Fib4Writer, FibError> {
        Fib4Writer::of(
            domain,
            Shape {
                ranges: false,
                few: 128,
                plain_from: usize::MAX,
                lines_from: LARGE,
            },
        )
    }

    /// The same, made as a large one from the first route on, with 7 MiB of lines: for a full table to come.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn large(domain: &Domain) -> Result<Fib4Writer, FibError> {
        Fib4Writer::of(
            domain,
            Shape {
                ranges: false,
                few: 0,
                plain_from: usize::MAX,
                lines_from: 0,
            },
        )
    }

    fn of(domain: &Domain, shape: Shape) -> Result<Fib4Writer, FibError> {
        let grower = Grower::new(domain, shape).ok_or(FibError::Full)?;
        Ok(Fib4Writer {
            fib: Arc::new(Fib4::new(grower.trie().clone())),
            grower,
        })
    }

    /// The table that workers read.
    #[must_use]
    pub fn fib(&self) -> &Arc<Fib4> {
        &self.fib
    }

    /// Adds a route or gives it another group; returns the group it had.
    ///
    /// # Errors
    /// When the table is full or the group number too high; then nothing has changed.
    pub fn insert(&mut self, prefix: Ipv4Net, group: u32) -> Result<Option<u32>, FibError> {
        Ok(self.grower.insert(&prefix4(prefix), check(group)?)?)
    }

    /// Adds many routes, several times as fast as one by one: for whoever has a whole table at once.
    /// Readers see it change part by part, sixteen bits of addresses at a time.
    ///
    /// # Errors
    /// When a group number is too high nothing has changed. When the table is full, a part of the routes
    /// is in.
    pub fn extend(&mut self, routes: &[(Ipv4Net, u32)]) -> Result<(), FibError> {
        routes
            .iter()
            .try_for_each(|&(_, group)| check(group).map(|_| ()))?;
        Ok(self.grower.extend(
            routes
                .iter()
                .map(|&(prefix, group)| (prefix4(prefix), group)),
        )?)
    }

    /// Adds routes in their order, of which many may be neighbors of each other: these are added together. Unlike with
    /// [`Fib4Writer::extend`], few routes cost little in a table of many.
    ///
    /// # Errors
    /// When a group number is too high nothing has changed. When the table is full, a part of the routes
    /// is in.
    pub fn insert_all(&mut self, routes: &[(Ipv4Net, u32)]) -> Result<(), FibError> {
        let checked = |&(prefix, group): &(Ipv4Net, u32)| Ok((prefix4(prefix), check(group)?));
        let routes: Result<Vec<_>, FibError> = routes.iter().map(checked).collect();
        Ok(self.grower.insert_all(&routes?)?)
    }

    /// Removes a route; its addresses fall to the route that covers it. Returns the group it had.
    pub fn remove(&mut self, prefix: Ipv4Net) -> Option<u32> {
        self.grower.remove(&prefix4(prefix))
    }

    /// The group of exactly this route.
    #[must_use]
    pub fn get(&self, prefix: Ipv4Net) -> Option<u32> {
        self.grower.rib.get(&prefix4(prefix))
    }

    /// The route that an address takes, and its group.
    #[must_use]
    pub fn longest_match(&self, address: Ipv4Addr) -> Option<(Ipv4Net, u32)> {
        let (len, group) = self
            .grower
            .rib
            .longest_match(&prefix4(address.into()).octets)?;
        Some((Ipv4Net::new(address, len).ok()?.trunc(), group))
    }

    /// All routes, in order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Net, u32)> + '_ {
        self.grower
            .rib
            .iter()
            .filter_map(|(prefix, group)| Some((net4(prefix)?, group)))
    }

    /// How many routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.grower.rib.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the table occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        memory_of(&self.grower)
    }
}

impl std::fmt::Debug for Fib4Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fib4Writer")
            .field("routes", &self.len())
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

/// The one writer of a [`Fib6`].
pub struct Fib6Writer {
    fib: Arc<Fib6>,
    grower: Grower,
}

fn prefix6(prefix: Ipv6Net) -> Prefix {
    Prefix {
        octets: prefix.network().octets(),
        len: prefix.prefix_len(),
    }
}

fn net6(prefix: Prefix) -> Option<Ipv6Net> {
    Ipv6Net::new(Ipv6Addr::from(prefix.octets), prefix.len)
        .ok()
        .map(|net| net.trunc())
}

impl Fib6Writer {
    /// An empty table whose readers are readers of `domain`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(domain: &Domain) -> Result<Fib6Writer, FibError> {
        let shape = Shape {
            ranges: true,
            few: 256,
            plain_from: 94,
            lines_from: usize::MAX,
        };
        let grower = Grower::new(domain, shape).ok_or(FibError::Full)?;
        Ok(Fib6Writer {
            fib: Arc::new(Fib6::new(grower.trie().clone())),
            grower,
        })
    }

    /// The table that workers read.
    #[must_use]
    pub fn fib(&self) -> &Arc<Fib6> {
        &self.fib
    }

    /// Adds a route or gives it another group; returns the group it had.
    ///
    /// # Errors
    /// When the table is full or the group number too high; then nothing has changed.
    pub fn insert(&mut self, prefix: Ipv6Net, group: u32) -> Result<Option<u32>, FibError> {
        Ok(self.grower.insert(&prefix6(prefix), check(group)?)?)
    }

    /// Adds many routes, several times as fast as one by one: for whoever has a whole table at once.
    /// Readers see it change part by part, sixteen bits of addresses at a time.
    ///
    /// # Errors
    /// When a group number is too high nothing has changed. When the table is full, a part of the routes
    /// is in.
    pub fn extend(&mut self, routes: &[(Ipv6Net, u32)]) -> Result<(), FibError> {
        routes
            .iter()
            .try_for_each(|&(_, group)| check(group).map(|_| ()))?;
        Ok(self.grower.extend(
            routes
                .iter()
                .map(|&(prefix, group)| (prefix6(prefix), group)),
        )?)
    }

    /// Adds routes in their order, of which many may be neighbors of each other: these are added together. Unlike with
    /// [`Fib6Writer::extend`], few routes cost little in a table of many.
    ///
    /// # Errors
    /// When a group number is too high nothing has changed. When the table is full, a part of the routes
    /// is in.
    pub fn insert_all(&mut self, routes: &[(Ipv6Net, u32)]) -> Result<(), FibError> {
        let checked = |&(prefix, group): &(Ipv6Net, u32)| Ok((prefix6(prefix), check(group)?));
        let routes: Result<Vec<_>, FibError> = routes.iter().map(checked).collect();
        Ok(self.grower.insert_all(&routes?)?)
    }

    /// Removes a route; its addresses fall to the route that covers it. Returns the group it had.
    pub fn remove(&mut self, prefix: Ipv6Net) -> Option<u32> {
        self.grower.remove(&prefix6(prefix))
    }

    /// The group of exactly this route.
    #[must_use]
    pub fn get(&self, prefix: Ipv6Net) -> Option<u32> {
        self.grower.rib.get(&prefix6(prefix))
    }

    /// The route that an address takes, and its group.
    #[must_use]
    pub fn longest_match(&self, address: Ipv6Addr) -> Option<(Ipv6Net, u32)> {
        let (len, group) = self.grower.rib.longest_match(&address.octets())?;
        Some((Ipv6Net::new(address, len).ok()?.trunc(), group))
    }

    /// All routes, in order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Net, u32)> + '_ {
        self.grower
            .rib
            .iter()
            .filter_map(|(prefix, group)| Some((net6(prefix)?, group)))
    }

    /// How many routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.grower.rib.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the table occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        memory_of(&self.grower)
    }
}

impl std::fmt::Debug for Fib6Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fib6Writer")
            .field("routes", &self.len())
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}
