//! The policy for routes from neighbours, as a pure function.
//!
//! The BIRD filters say the same; a property test compares both over random routes. Checks are made in the order
//! of [`Policy::import`], and the first that fails decides.

mod aspa;
pub(crate) mod import;

use ipnet::IpNet;
use serde::Deserialize;

use crate::model::{Peering, Relation};

pub use aspa::{AspaState, check as check_aspa};
pub use import::Policy;

/// Why a route is rejected; the numbers are those that arouteserver gave them, which other tools know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum Reason {
    /// The AS path is longer than [`LONGEST_PATH`].
    PathTooLong = 1,
    /// The prefix is reserved, or the own network's, or an exchange's LAN.
    BogonPrefix = 2,
    /// The prefix or an AS number of the path is in the configured list.
    Blocked = 3,
    /// The next hop is not the neighbour's (a route server's: not in the LAN).
    NextHop = 5,
    /// The first AS of the path is not the neighbour's.
    FirstAs = 6,
    /// The path has a reserved AS number.
    BogonAsn = 7,
    /// The path has a network that needs no transit, behind a peer or a customer.
    #[serde(rename = "transit-free-asn")]
    TransitFree = 8,
    /// The origin is no member of the neighbour's AS-SET.
    OriginNotInAsSet = 9,
    /// An IPv6 prefix is outside of 2000::/3.
    NotGlobalUnicast = 10,
    /// The prefix is in no route object of the neighbour's AS-SET.
    NotInIrr = 12,
    /// The prefix is too short or too long for the Internet.
    PrefixLength = 13,
    /// The origin is not authorized (RFC 6811).
    RpkiInvalid = 14,
    /// The path has a network behind a route server that is never behind one.
    NeverViaRouteServer = 15,
    /// The path contradicts ASPA objects. This number and the next are Weir's own.
    AspaInvalid = 16,
    /// The path ends with an AS_SET (RFC 9774).
    AsSet = 17,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 15] = [
        Self::PathTooLong,
        Self::BogonPrefix,
        Self::Blocked,
        Self::NextHop,
        Self::FirstAs,
        Self::BogonAsn,
        Self::TransitFree,
        Self::OriginNotInAsSet,
        Self::NotGlobalUnicast,
        Self::NotInIrr,
        Self::PrefixLength,
        Self::RpkiInvalid,
        Self::NeverViaRouteServer,
        Self::AspaInvalid,
        Self::AsSet,
    ];

    /// Its word in cases and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PathTooLong => "path-too-long",
            Self::BogonPrefix => "bogon-prefix",
            Self::Blocked => "blocked",
            Self::NextHop => "next-hop",
            Self::FirstAs => "first-as",
            Self::BogonAsn => "bogon-asn",
            Self::TransitFree => "transit-free-asn",
            Self::OriginNotInAsSet => "origin-not-in-as-set",
            Self::NotGlobalUnicast => "not-global-unicast",
            Self::NotInIrr => "not-in-irr",
            Self::PrefixLength => "prefix-length",
            Self::RpkiInvalid => "rpki-invalid",
            Self::NeverViaRouteServer => "never-via-route-server",
            Self::AspaInvalid => "aspa-invalid",
            Self::AsSet => "as-set",
        }
    }

    /// Where the check comes from: the comment above the generated function.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::PathTooLong => "NLNOG BGP filter guide, long_paths",
            Self::BogonPrefix => {
                "RFC 6890, RFC 7454 section 6.1; NLNOG BGP filter guide, bogon_prefixes, no_ixp_leaks"
            }
            Self::Blocked => "the keys reject-prefixes and reject-asns",
            Self::NextHop => "RFC 7454 section 10; RFC 7948 section 4.8",
            Self::FirstAs => "RFC 4271 section 6.3, RFC 7454 section 9",
            Self::BogonAsn => {
                "RFC 7607, RFC 6793, RFC 6996, RFC 5398; NLNOG BGP filter guide, bogon_asns"
            }
            Self::TransitFree => "NLNOG BGP filter guide, no_transit_leaks; RFC 7908",
            Self::OriginNotInAsSet => "MANRS action 1",
            Self::NotGlobalUnicast => "RFC 4291, IANA IPv6 global unicast",
            Self::NotInIrr => "RFC 7454 section 6.1.3, MANRS action 1",
            Self::PrefixLength => "RFC 7454 section 6.1.3; NLNOG BGP filter guide, small_prefixes",
            Self::RpkiInvalid => "RFC 6811, RFC 7115; NLNOG BGP filter guide, reject_invalids",
            Self::NeverViaRouteServer => "PeeringDB, info_never_via_route_servers",
            Self::AspaInvalid => "draft-ietf-sidrops-aspa-verification",
            Self::AsSet => "RFC 9774; NLNOG BGP filter guide",
        }
    }

    /// The reason with a number.
    #[must_use]
    pub fn of(number: u32) -> Option<Reason> {
        Self::ALL
            .into_iter()
            .find(|reason| *reason as u32 == number)
    }
}

/// The longest AS path that is accepted.
pub const LONGEST_PATH: usize = 100;
/// Prefixes that nobody may announce (IANA special-purpose registries, RFC 6890), with their more-specific ones.
pub const BOGONS: [&str; 24] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/8",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "2001:db8::/32",
    "2002::/16",
    "fc00::/7",
    "fe80::/9",
];
/// Reserved AS numbers (IANA), as ranges.
pub const BOGON_ASNS: [(u32, u32); 7] = [
    (0, 0),
    (23456, 23456),
    (64496, 64511),
    (64512, 65535),
    (65536, 65551),
    (65552, 131_071),
    (4_200_000_000, 4_294_967_295),
];
/// Networks that buy no transit: behind a peer or a customer they are a route leak.
pub const TRANSIT_FREE: [u32; 12] = [
    174, 701, 1299, 2914, 3257, 3320, 3356, 5511, 6453, 6461, 6762, 7018,
];
/// GRACEFUL_SHUTDOWN (RFC 8326).
pub const GRACEFUL_SHUTDOWN: (u16, u16) = (65535, 0);

/// BLACKHOLE (RFC 7999).
pub const BLACKHOLE: (u16, u16) = (65535, 666);
/// Functions of own large communities, (own AS, function, value).
pub mod functions {
    /// What a neighbour is ([`crate::model::Relation::tag`]).
    pub const RELATION: u32 = 0;
    /// Of customers: the local preference to use.
    pub const PREFERENCE: u32 = 1;
    /// Of customers: put the own AS number once more in front of the path towards an AS (0 = all); 3 and 4: two and three times.
    pub const PREPEND: u32 = 2;
    /// 1 = in the AS-SET, 2 = origin valid, 3 = origin not found.
    pub const VALIDATION: u32 = 5;
    /// Of customers: do not announce to an AS (0 = to nobody).
    pub const WITHHOLD: u32 = 6;
    /// Why a route is rejected; of an accepted route, what it would be rejected for ([`super::Reason`]).
    pub const REASON: u32 = 7;
    /// The exchange: its number in PeeringDB.
    pub const EXCHANGE: u32 = 8;
}
/// The most communities of a route; all are removed from one with more.
pub const MOST_COMMUNITIES: usize = 100;

/// A route as a neighbour announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The prefix.
    pub prefix: IpNet,
    /// The AS path, the neighbour first.
    pub path: Vec<u32>,
    /// Whether the path ends with an AS_SET.
    pub has_as_set: bool,
    /// Standard communities.
    pub communities: Vec<(u16, u16)>,
    /// Large communities.
    pub large: Vec<(u32, u32, u32)>,
    /// The next hop, where it is known.
    pub next_hop: Option<std::net::IpAddr>,
}

impl Route {
    /// A route with a path and nothing else.
    #[must_use]
    pub fn new(prefix: IpNet, path: Vec<u32>) -> Route {
        Route {
            prefix: prefix.trunc(),
            path,
            has_as_set: false,
            communities: Vec::new(),
            large: Vec::new(),
            next_hop: None,
        }
    }
}

/// A standard community as `65535:0`.
#[must_use]
pub fn community(text: &str) -> Option<(u16, u16)> {
    let (high, low) = text.split_once(':')?;
    Some((high.parse().ok()?, low.parse().ok()?))
}

/// A large community as `64500:1:2`.
#[must_use]
pub fn large_community(text: &str) -> Option<(u32, u32, u32)> {
    let (global, rest) = text.split_once(':')?;
    let (function, value) = rest.split_once(':')?;
    Some((
        global.parse().ok()?,
        function.parse().ok()?,
        value.parse().ok()?,
    ))
}

/// What happens to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken with this local preference.
    Accept {
        /// The local preference.
        local_pref: u32,
    },
    /// It is rejected.
    Reject(Reason),
}

/// The state of a route's origin (RFC 6811).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A ROA authorizes it.
    Valid,
    /// ROAs cover the prefix and none authorizes it.
    Invalid,
    /// No ROA covers the prefix.
    NotFound,
}

/// Whether private and documentation AS numbers are let through: only where the own AS number is one of them,
/// in laboratories and examples.
#[must_use]
pub fn is_laboratory(peering: &Peering) -> bool {
    is_bogon_asn(peering.asn)
}

pub(crate) fn is_bogon_asn(asn: u32) -> bool {
    BOGON_ASNS
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&asn))
}

/// Prefixes that are rejected from everybody: reserved ones, the own ones and the LANs of exchanges. In a
/// laboratory documentation prefixes are in use, so reserved ones are not rejected there.
#[must_use]
pub fn rejected_prefixes(peering: &Peering) -> Vec<IpNet> {
    let mut rejected: Vec<IpNet> = Vec::new();
    if !is_laboratory(peering) {
        rejected.extend(BOGONS.iter().filter_map(|text| text.parse::<IpNet>().ok()));
    }
    rejected.extend(peering.prefixes.iter().map(IpNet::trunc));
    rejected.extend(
        peering
            .exchanges
            .values()
            .flat_map(|it| it.lan.iter().map(IpNet::trunc)),
    );
    rejected.sort_unstable();
    rejected.dedup();
    rejected
}

/// The lengths of prefixes that the Internet takes.
#[must_use]
pub const fn lengths(is_ipv4: bool) -> (u8, u8) {
    if is_ipv4 { (8, 24) } else { (12, 48) }
}

/// Networks that buy no transit.
#[must_use]
pub fn transit_free_asns(peering: &Peering) -> Vec<u32> {
    let own = peering.policy.transit_free_asns.as_ref();
    own.map_or_else(|| TRANSIT_FREE.to_vec(), Clone::clone)
}

/// The local preferences that customers may choose, the highest first: the lowest that a route asks for counts.
#[must_use]
pub fn customer_local_prefs(peering: &Peering) -> Vec<u32> {
    let all = [
        Relation::Customer,
        Relation::Peer,
        Relation::RouteServer,
        Relation::Transit,
    ];
    let own = peering.policy.customer_local_prefs.clone();
    let mut list = own.unwrap_or_else(|| all.map(Relation::local_pref).to_vec());
    list.sort_unstable_by(|one, other| other.cmp(one));
    list.dedup();
    list
}
