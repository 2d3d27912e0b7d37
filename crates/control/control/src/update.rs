//! What a source tells the control side: routes that came, changed or went.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use weir_fib::{FibError, GroupError};

use crate::source::RouteSource;

/// One path of a route, as its source has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The interface, by the source's own number: for Linux the ifindex in its namespace.
    pub interface: u32,
    /// The next router; without it the destination is on the link itself. It may be of another IP version than the
    /// route (RFC 8950).
    pub gateway: Option<IpAddr>,
    /// Its share relative to the other paths, from 1.
    pub weight: u32,
    /// Labels to push, outermost first.
    pub labels: Box<[u32]>,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Over these paths.
    Paths(Box<[NextHop]>),
    /// Where this next-hop object of the source leads, which the source sends separately.
    Object(u32),
    /// To this router itself, though no interface has the address (`ip route add local`).
    Local,
    /// Nowhere, silently.
    Blackhole,
    /// Nowhere; the sender gets "destination unreachable".
    Unreachable,
    /// Nowhere; the sender gets "administratively prohibited".
    Prohibit,
}

/// A route of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The table by the number that people know it by; 0 for the default one.
    pub table: u32,
    /// The destinations.
    pub prefix: IpNet,
    /// Where the route comes from.
    pub source: RouteSource,
    /// The lowest of a source wins. The distance is the source's.
    pub metric: u32,
    /// The number of the protocol that made it (`rtm_protocol`).
    pub protocol: u8,
    /// Where it leads. Routes to the same place share it.
    pub target: Arc<Target>,
}

/// One change of a source's routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteUpdate {
    /// The route is new, or takes the place of the one with its table, prefix, source and metric.
    Set(Route),
    /// The route is gone.
    Remove {
        /// Its table.
        table: u32,
        /// Its destinations.
        prefix: IpNet,
        /// Its source.
        source: RouteSource,
        /// Its metric.
        metric: u32,
        /// Only this path is gone, if the route has others: so Linux says it of IPv6 routes.
        path: Option<NextHop>,
    },
}

impl RouteUpdate {
    /// The destinations that it is about.
    #[must_use]
    pub fn prefix(&self) -> IpNet {
        match self {
            RouteUpdate::Set(route) => route.prefix,
            RouteUpdate::Remove { prefix, .. } => *prefix,
        }
    }
}

/// What a source does with packets whose top label is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRoute {
    /// The incoming label.
    pub label: u32,
    /// Where it comes from.
    pub source: RouteSource,
    /// The number of the protocol that made it (`rtm_protocol`).
    pub protocol: u8,
    /// The time to live under the label stays as it is when the label goes (pipe, RFC 3443).
    pub is_pipe: bool,
    /// The paths; labels of a path take the place of the incoming one. A path without gateway leads to what its
    /// interface is: the table of a VRF device, or this router itself.
    pub target: Arc<Target>,
}

/// One change of a source's incoming labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelUpdate {
    /// The label is new, or packets with it go elsewhere from now on.
    Set(LabelRoute),
    /// The label is gone.
    Remove {
        /// The label.
        label: u32,
        /// Its source.
        source: RouteSource,
    },
}

impl LabelUpdate {
    /// The label that it is about.
    #[must_use]
    pub fn label(&self) -> u32 {
        match self {
            LabelUpdate::Set(route) => route.label,
            LabelUpdate::Remove { label, .. } => *label,
        }
    }
}

/// Why an update was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// No VRF has the number.
    #[error("no vrf has table {0}; configure it under vrfs, or ignore its routes")]
    NoTable(u32),
    /// The interface is none of those that Weir has in Linux.
    #[error("interface {0} of Linux is not paired with one of Weir's")]
    NoInterface(u32),
    /// The source has not sent the next-hop object, and too many routes wait for objects.
    #[error("next-hop object {0} is unknown, and too many routes wait already")]
    NoObject(u32),
    /// The label is reserved, or beyond 20 bits.
    #[error("label {0} is reserved or has more than 20 bits")]
    BadLabel(u32),
    /// A route leads into another table, which only labels can.
    #[error("a route over the VRF device {0} leads into another table, which only labels can")]
    IntoTable(u32),
    /// The group is impossible.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The forwarding table refused it.
    #[error(transparent)]
    Fib(#[from] FibError),
}

impl UpdateError {
    /// A short name for counters.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            UpdateError::NoTable(_) => "no-table",
            UpdateError::NoInterface(_) => "no-interface",
            UpdateError::NoObject(_) => "no-next-hop-object",
            UpdateError::BadLabel(_) => "bad-label",
            UpdateError::IntoTable(_) => "into-table",
            UpdateError::Group(_) => "bad-next-hops",
            UpdateError::Fib(_) => "fib-full",
        }
    }
}
