//! Routes that clients set (`POST /v1/routes`).
//!
//! They are a source of their own in the routing table, beside the configuration file and the kernel: they are not part
//! of the configuration, have no revision, and are gone when the router restarts. So a client that sets
//! routes sends all of them again when it connects to a router that has just started. A request is a batch, not a transaction:
//! each route is set or refused by itself, and the answer says which ones were refused.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Routes to delete and to set: `POST /v1/routes`. Routes are deleted first, then set, each in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteChanges {
    /// Routes to delete; one that is not there is not an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<ApiRouteKey>,
    /// Routes to set: new ones, and ones that replace the route with the same table, prefix and metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<ApiRoute>,
    /// Replaces all routes of the API by those that are set between a request with `begin` and one with `end`, which may
    /// be the same request (`all`). Until the end the routes from before stay in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync: Option<RouteResync>,
}

impl RouteChanges {
    /// Routes to set and to delete in one request, at most.
    pub const MOST: usize = 100_000;
    /// Paths of a route, at most.
    pub const MOST_PATHS: usize = 64;
}

/// Where a request is in the replacement of all routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteResync {
    /// The first request: what is not set from here on will be deleted.
    Begin,
    /// The last request: what was not set since the first one is deleted.
    End,
    /// The only request.
    All,
}

/// A route of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiRoute {
    /// The destinations.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// The VRF whose table it is in; absent = the default table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Of several routes of the API to a prefix the one with the lowest metric is used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub metric: u32,
    /// Where packets may go; each flow takes one of them. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<ApiPath>,
    /// Drops packets in place of sending them; then there are no paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discard: Option<Discard>,
}

/// One path of a route of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiPath {
    /// The neighbour that packets are handed to, or with `lookup` an address that has a route.
    pub next_hop: IpAddr,
    /// The interface that the neighbour is behind; absent = the one whose subnet has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The table in which the route to the next hop is looked up, `default` or a VRF's name; absent = it is on a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<String>,
    /// Its share of flows beside the other paths, from 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub weight: u8,
    /// MPLS labels to push, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<u32>,
}

/// What a route without paths does with packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// Drops them.
    Blackhole,
    /// Drops them, and tells the sender that the destination is unreachable.
    Unreachable,
    /// Drops them, and tells the sender that it may not go there.
    Prohibit,
}

/// Which route of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiRouteKey {
    /// The destinations.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// The VRF whose table it is in; absent = the default table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Its metric.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub metric: u32,
}

/// What a request did: the answer to `POST /v1/routes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoutesChanged {
    /// Routes that were set.
    pub set: u64,
    /// Routes that were deleted because the request names them.
    pub deleted: u64,
    /// Routes that were deleted at the end of a resync, because they were not set again.
    pub stale: u64,
    /// Routes that were refused. A route of the same table, prefix and metric that was there before stays.
    pub refused: u64,
    /// Why, for the first 100 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<RouteRefusal>,
}

impl RoutesChanged {
    /// Refused routes whose reasons are kept.
    pub const MOST_ERRORS: usize = 100;

    /// Counts a route that is refused.
    pub fn refuse(&mut self, prefix: IpNet, message: String) {
        self.refused += 1;
        if self.errors.len() < Self::MOST_ERRORS {
            self.errors.push(RouteRefusal { prefix, message });
        }
    }

    /// Adds what a further request did.
    pub fn add(&mut self, other: Self) {
        self.set += other.set;
        self.deleted += other.deleted;
        self.stale += other.stale;
        self.refused += other.refused;
        self.errors.extend(other.errors);
        self.errors.truncate(Self::MOST_ERRORS);
    }
}

/// A route that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteRefusal {
    /// Its destinations.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// Why.
    pub message: String,
}

const fn one() -> u8 {
    1
}

const fn is_one(weight: &u8) -> bool {
    *weight == 1
}

const fn is_zero(metric: &u32) -> bool {
    *metric == 0
}
