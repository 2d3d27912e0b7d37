//! What the router knows of its surroundings: neighbours and routes
//! (`GET /v1/neighbors`, `GET /v1/routes`).
//!
//! A route shows the whole chain from prefix to wire: its paths, and the state of each path's
//! adjacency, so that one sees at which link it breaks.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All neighbours.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Neighbors {
    /// The neighbours, by interface and address.
    pub neighbors: Vec<Neighbor>,
    /// New neighbours that were refused because there is no room.
    #[serde(default)]
    pub refused: u64,
    /// Neighbours that did not answer and made room for others that are asked for.
    #[serde(default)]
    pub evicted: u64,
}

/// One neighbour on a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbor {
    /// The interface it is behind.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// How well it is known.
    pub state: NeighborState,
    /// Seconds since it last confirmed itself (or, when incomplete, since it was first asked for);
    /// absent for static ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<f64>,
}

/// How well a neighbour is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighborState {
    /// Asked for, no answer yet.
    Incomplete,
    /// It answered lately.
    Reachable,
    /// It answered once, is still used and will be asked again.
    Stale,
    /// It is being asked again.
    Probing,
    /// It does not answer.
    Failed,
    /// The configuration says it.
    Static,
}

impl std::fmt::Display for NeighborState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Incomplete => "incomplete",
            Self::Reachable => "reachable",
            Self::Stale => "stale",
            Self::Probing => "probing",
            Self::Failed => "failed",
            Self::Static => "static",
        })
    }
}

/// All routes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Routes {
    /// The routes, by table and prefix.
    pub routes: Vec<Route>,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The table (VRF) it is in; 0 = the default one.
    pub table: u32,
    /// The destinations it is for.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// Where it comes from.
    pub source: RouteSource,
    /// Where packets may go; each flow takes one of them.
    pub paths: Vec<PathReply>,
}

/// Where a route comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteSource {
    /// An own address.
    Local,
    /// The subnet of an own address.
    Connected,
    /// A neighbour on a link.
    Neighbor,
    /// The configuration.
    Static,
    /// Built in: what no route covers, and destinations that are never forwarded to.
    Special,
}

impl RouteSource {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Local, Self::Connected, Self::Neighbor, Self::Static, Self::Special];
}

impl std::fmt::Display for RouteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Local => "local",
            Self::Connected => "connected",
            Self::Neighbor => "neighbor",
            Self::Static => "static",
            Self::Special => "special",
        })
    }
}

/// One path of a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathReply {
    /// The neighbour that packets are handed to; absent when the destination itself is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<IpAddr>,
    /// The interface they leave by, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its share of flows beside the other paths.
    pub weight: u32,
    /// What becomes of packets that take it.
    pub adjacency: Adjacency,
    /// MPLS labels that are pushed, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<u32>,
}

/// What becomes of packets that take a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// Sent on: the next hop's MAC address is known.
    Complete,
    /// Held until the next hop answers.
    Incomplete,
    /// Held until the destination itself answers.
    Glean,
    /// For the router itself.
    Local,
    /// Dropped, as asked.
    Drop,
    /// Dropped, and the sender told that the destination is unreachable.
    Unreachable,
    /// Dropped, and the sender told that it may not go there.
    Prohibit,
    /// Dropped: the interface is down.
    Down,
}

impl std::fmt::Display for Adjacency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Glean => "glean",
            Self::Local => "local",
            Self::Drop => "drop",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
            Self::Down => "down",
        })
    }
}
