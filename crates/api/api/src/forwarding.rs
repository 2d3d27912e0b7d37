//! What the router knows of its surroundings: neighbours, routes and where they end
//! (`GET /v1/neighbors`, `GET /v1/routes`, `GET /v1/adjacencies`).
//!
//! A route shows the whole chain from prefix to wire: its group, the paths of that, and the state of each path's
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
    /// Neighbours that made room for others: without an answer, or known only because they spoke.
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
    /// The name of that table; the default one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// The destinations it is for.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// Where it comes from.
    pub source: RouteSource,
    /// Next hops as they were given, when one of them is looked up in a table or the API set the route; `paths` are what they resolve to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_hops: Vec<NextHop>,
    /// What it shares with all routes that lead the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RouteGroup>,
    /// Where packets may go; each flow takes one of them.
    pub paths: Vec<PathReply>,
    /// All routes of the prefix, whatever their source is, the one in use first. Only where a prefix or an address is
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<RouteCandidate>,
}

/// One of the routes of a prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCandidate {
    /// Where it comes from.
    pub source: RouteSource,
    /// The protocol that made it, as iproute2 names it, or its number; absent where the source says enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The daemon that this protocol belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<String>,
    /// The administrative distance of its source; the lowest is used.
    pub distance: u8,
    /// Among routes of one distance the lowest is used.
    pub metric: u32,
    /// Seconds since it was set last.
    pub age: u64,
    /// Why it is used, or why not.
    pub verdict: RouteVerdict,
    /// What it shares with all routes that lead the same way.
    pub group: RouteGroup,
    /// Where packets go that take it.
    pub paths: Vec<PathReply>,
}

/// Why a route of a prefix is used, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteVerdict {
    /// Used: the prefix has no other.
    OnlyRoute,
    /// Used: its distance is the lowest.
    LowestDistance,
    /// Used: of the lowest distance its metric is the lowest.
    LowestMetric,
    /// Used: at equal distance and metric its source comes first.
    FirstSource,
    /// Not used: another distance is lower.
    HigherDistance,
    /// Not used: at equal distance another metric is lower.
    HigherMetric,
    /// Not used: at equal distance and metric another source comes first.
    LaterSource,
}

impl std::fmt::Display for RouteVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::OnlyRoute => "used, only route",
            Self::LowestDistance => "used, lowest distance",
            Self::LowestMetric => "used, lowest metric",
            Self::FirstSource => "used, first source",
            Self::HigherDistance => "higher distance",
            Self::HigherMetric => "higher metric",
            Self::LaterSource => "later source",
        })
    }
}

/// A next hop before it is resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextHop {
    /// Its address.
    pub address: IpAddr,
    /// The table whose longest match is the way to it; on a link when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Why no path leads to it; absent when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<Unresolved>,
}

/// Why no path leads to a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unresolved {
    /// No route covers it.
    NoRoute,
    /// It is an own address.
    OwnAddress,
    /// The way to it leads back to the route itself.
    Loop,
    /// The way to it goes over more routes, or branches more often, than is followed.
    TooDeep,
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::NoRoute => "no route to it",
            Self::OwnAddress => "an own address",
            Self::Loop => "the way to it leads back here",
            Self::TooDeep => "too many routes on the way to it",
        })
    }
}

/// Paths that routes share: when a link goes down the group is written once, and no route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteGroup {
    /// Its number.
    pub number: u32,
    /// How many routes lead over it.
    pub routes: u32,
    /// How many buckets its flows are spread over.
    pub buckets: u32,
    /// Whether flows keep their paths when others come and go.
    #[serde(default)]
    pub resilient: bool,
}

/// Where a route comes from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
    /// A client of the API (`POST /v1/routes`).
    Api,
    /// FRR's zebra, by the forwarding plane manager protocol.
    Fpm,
    /// The Linux kernel: what routing daemons and `ip route` put there.
    Kernel,
    /// Built in: what no route covers, and destinations that are never forwarded to.
    Special,
}

impl RouteSource {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Local,
        Self::Connected,
        Self::Neighbor,
        Self::Static,
        Self::Api,
        Self::Fpm,
        Self::Kernel,
        Self::Special,
    ];
}

impl std::fmt::Display for RouteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Local => "local",
            Self::Connected => "connected",
            Self::Neighbor => "neighbor",
            Self::Static => "static",
            Self::Api => "api",
            Self::Fpm => "fpm",
            Self::Kernel => "kernel",
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
    /// How many of the group's buckets it has now; none while it is down.
    #[serde(default)]
    pub buckets: u32,
    /// The number of the adjacency at its end.
    #[serde(default)]
    pub adjacency_number: u32,
    /// What becomes of packets that take it.
    pub adjacency: Adjacency,
    /// The MAC address that they are sent to, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The longest IP packet that it takes, in bytes, if it leaves the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// MPLS labels that are pushed, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<u32>,
    /// How they are pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<LabelPush>,
}

/// How labels are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelPush {
    /// Where their time to live comes from (RFC 3443).
    pub ttl_mode: PushMode,
    /// The traffic class that is written; without it, that of what they are pushed onto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// Whether an entropy label is pushed below the first one (RFC 6790).
    #[serde(default)]
    pub entropy_label: bool,
}

/// Where the time to live of pushed labels comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushMode {
    /// From what they are pushed onto.
    Uniform,
    /// It begins anew: the path is one hop.
    Pipe,
    /// The same; the egress acts by the traffic class under the labels.
    ShortPipe,
}

impl std::fmt::Display for PushMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Uniform => "uniform",
            Self::Pipe => "pipe",
            Self::ShortPipe => "short-pipe",
        })
    }
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
    /// Dropped, and the sender notified that the destination is unreachable.
    Unreachable,
    /// Dropped, and the sender notified that it may not go there.
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

/// Where paths end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Adjacencies {
    /// The adjacencies, by number.
    pub adjacencies: Vec<AdjacencyReply>,
}

/// The end of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdjacencyReply {
    /// Its number.
    pub number: u32,
    /// What it does with packets.
    pub kind: AdjacencyKind,
    /// What becomes of packets now.
    pub state: Adjacency,
    /// The interface they leave by, or that the address is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The neighbour that they are handed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The number of the table that they are looked up in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// The name of that table; the default one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Its MAC address, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The MAC address that they are sent from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_mac: Option<String>,
    /// The longest IP packet that it takes, in bytes, if it leaves the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// MPLS labels that are pushed, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<u32>,
    /// How many groups have a path that ends here.
    pub groups: u32,
}

/// What an adjacency does with packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdjacencyKind {
    /// Sends them to a neighbour.
    Neighbor,
    /// Finds the neighbour first: the destination itself.
    Glean,
    /// Takes them for the router itself.
    Local,
    /// Pushes labels, then sends them to a neighbour.
    Labelled,
    /// Looks them up anew, without their label, in a table.
    Lookup,
    /// Takes them for frames that came out of a pseudowire.
    Pseudowire,
    /// Drops them.
    Blackhole,
    /// Drops them, and tells the sender that the destination is unreachable.
    Unreachable,
    /// Drops them, and tells the sender that it may not go there.
    Prohibit,
    /// Drops what has no route, and tells the sender.
    NoRoute,
}

impl std::fmt::Display for AdjacencyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Neighbor => "neighbor",
            Self::Glean => "glean",
            Self::Local => "local",
            Self::Labelled => "labelled",
            Self::Lookup => "lookup",
            Self::Pseudowire => "pseudowire",
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
            Self::NoRoute => "no-route",
        })
    }
}
