//! Parts of long lists: which routes, neighbours and interfaces are asked for.
//!
//! Long lists come in pages: `?limit=N` at most so many, and `?after=X` those behind a place in
//! the list. The place is the key of an entry, not a number, so that a list which changes between
//! two pages neither repeats nor skips what did not change. A reply that is not the end says
//! `next`, which is the `after` of the next page.
//!
//! The queries here come to the [`Router`](crate::Router) parsed. An implementation either takes
//! just what is asked for from its tables, or narrows the whole list (`narrow`).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Adjacencies, Family, Interfaces, Neighbor, Neighbors, Route, RouteSource, Routes};

/// A part of a long list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The entries.
    #[serde(flatten)]
    pub part: T,
    /// There are more: the `after` that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which interfaces are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceQuery {
    /// Those with an index above this one.
    pub after: Option<u32>,
    /// At most so many.
    pub most: usize,
}

impl InterfaceQuery {
    /// Takes what is asked for from the whole list.
    #[must_use]
    pub fn narrow(&self, mut all: Interfaces) -> Interfaces {
        all.interfaces
            .retain(|interface| self.after.is_none_or(|after| interface.index > after));
        all.interfaces.sort_by_key(|interface| interface.index);
        all.interfaces.truncate(self.most);
        all
    }
}

/// A neighbour's place in the list; written as `192.0.2.9%wan` (as RFC 4007 11 writes a zone).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeighborKey {
    /// The interface it is behind.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
}

impl From<&Neighbor> for NeighborKey {
    fn from(neighbor: &Neighbor) -> Self {
        Self {
            interface: neighbor.interface.clone(),
            address: neighbor.address,
        }
    }
}

impl fmt::Display for NeighborKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%{}", self.address, self.interface)
    }
}

/// A text that names no place in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a place in the list")]
pub struct NotAPlace;

impl FromStr for NeighborKey {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (address, interface) = text.split_once('%').ok_or(NotAPlace)?;
        Ok(Self {
            interface: interface.to_owned(),
            address: address.parse().map_err(|_| NotAPlace)?,
        })
    }
}

/// Which neighbours are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighborQuery {
    /// Those of this interface.
    pub interface: Option<String>,
    /// Those behind this one, in the order of interfaces' names and addresses.
    pub after: Option<NeighborKey>,
    /// At most so many.
    pub most: usize,
}

impl NeighborQuery {
    /// Takes what is asked for from the whole list.
    #[must_use]
    pub fn narrow(&self, mut all: Neighbors) -> Neighbors {
        let is_wanted = |neighbor: &Neighbor| {
            self.interface
                .as_ref()
                .is_none_or(|name| *name == neighbor.interface)
                && self.after.as_ref().is_none_or(|after| {
                    (&neighbor.interface, neighbor.address) > (&after.interface, after.address)
                })
        };
        all.neighbors.retain(is_wanted);
        all.neighbors
            .sort_by(|a, b| (&a.interface, a.address).cmp(&(&b.interface, b.address)));
        all.neighbors.truncate(self.most);
        all
    }
}

/// A route's place in the list; written as `0,192.0.2.0/24,static`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The table it is in.
    pub table: u32,
    /// Its destinations.
    pub prefix: IpNet,
    /// Where it comes from.
    pub source: RouteSource,
}

impl From<&Route> for RouteKey {
    fn from(route: &Route) -> Self {
        Self {
            table: route.table,
            prefix: route.prefix,
            source: route.source,
        }
    }
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.table, self.prefix, self.source)
    }
}

impl FromStr for RouteKey {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let mut parts = text.splitn(3, ',');
        let mut part = || parts.next().ok_or(NotAPlace);
        let (table, prefix, source) = (part()?, part()?, part()?);
        let source = RouteSource::ALL
            .into_iter()
            .find(|known| known.to_string() == source)
            .ok_or(NotAPlace)?;
        Ok(Self {
            table: table.parse().map_err(|_| NotAPlace)?,
            prefix: prefix.parse().map_err(|_| NotAPlace)?,
            source,
        })
    }
}

/// Which routes are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteQuery {
    /// Those of this table.
    pub table: Option<u32>,
    /// Those of this family.
    pub family: Option<Family>,
    /// Those for these destinations.
    pub destinations: Destinations,
    /// Those behind this one, in the order of tables, prefixes and sources.
    pub after: Option<RouteKey>,
    /// At most so many.
    pub most: usize,
}

/// Which destinations routes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destinations {
    /// Any.
    All,
    /// Exactly this prefix.
    Prefix(IpNet),
    /// This address: of each table the route with the longest prefix that covers it.
    LongestMatch(IpAddr),
}

impl RouteQuery {
    /// Takes what is asked for from the whole list.
    #[must_use]
    pub fn narrow(&self, mut all: Routes) -> Routes {
        let is_wanted = |route: &Route| {
            let of_destinations = match self.destinations {
                Destinations::All => true,
                Destinations::Prefix(prefix) => route.prefix == prefix,
                Destinations::LongestMatch(address) => route.prefix.contains(&address),
            };
            let family = if route.prefix.addr().is_ipv4() {
                Family::Ipv4
            } else {
                Family::Ipv6
            };
            of_destinations
                && self.family.is_none_or(|wanted| wanted == family)
                && self.table.is_none_or(|table| table == route.table)
        };
        all.routes.retain(is_wanted);
        if let Destinations::LongestMatch(_) = self.destinations {
            keep_longest(&mut all.routes);
        }
        all.routes
            .retain(|route| self.after.is_none_or(|after| RouteKey::from(route) > after));
        all.routes.sort_by_key(|route| RouteKey::from(route));
        all.routes.truncate(self.most);
        all
    }
}

/// Which adjacencies are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjacencyQuery {
    /// Those of this interface.
    pub interface: Option<String>,
    /// Those with a number above this one.
    pub after: Option<u32>,
    /// At most so many.
    pub most: usize,
}

impl AdjacencyQuery {
    /// Takes what is asked for from the whole list.
    #[must_use]
    pub fn narrow(&self, mut all: Adjacencies) -> Adjacencies {
        all.adjacencies
            .retain(|it| self.after.is_none_or(|after| it.number > after));
        all.adjacencies
            .retain(|it| self.interface.is_none() || it.interface == self.interface);
        all.adjacencies.sort_by_key(|it| it.number);
        all.adjacencies.truncate(self.most);
        all
    }
}

/// Keeps of each table the longest prefix.
fn keep_longest(routes: &mut Vec<Route>) {
    let mut longest: std::collections::BTreeMap<u32, u8> = std::collections::BTreeMap::new();
    for route in routes.iter() {
        let length = longest.entry(route.table).or_default();
        *length = (*length).max(route.prefix.prefix_len());
    }
    routes.retain(|route| longest.get(&route.table) == Some(&route.prefix.prefix_len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_lists_are_written_and_read() {
        for text in ["192.0.2.9%wan", "2001:db8::1%lan & co", "192.0.2.9%a%b"] {
            assert_eq!(text.parse::<NeighborKey>().unwrap().to_string(), text);
        }
        for text in ["0,192.0.2.0/24,static", "7,2001:db8::/32,connected"] {
            assert_eq!(text.parse::<RouteKey>().unwrap().to_string(), text);
        }
        for text in ["", "x", "wan%192.0.2.9", "192.0.2.9"] {
            assert_eq!(text.parse::<NeighborKey>(), Err(NotAPlace), "{text}");
        }
        for text in [
            "",
            "0",
            "0,192.0.2.0/24",
            "0,192.0.2.0/24,bgp",
            "-1,192.0.2.0/24,static",
            "0,192.0.2.0/40,static",
        ] {
            assert_eq!(text.parse::<RouteKey>(), Err(NotAPlace), "{text}");
        }
    }
}
