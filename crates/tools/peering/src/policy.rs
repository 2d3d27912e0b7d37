//! The policy for routes from neighbours, as a pure function.
//!
//! The BIRD filters say the same; a property test compares both over random routes. Checks are made in the order
//! of [`Policy::import`], and the first that fails decides.

use ipnet::IpNet;

use crate::model::{Mode, Neighbor, Peering, Relation};
use crate::prefixes::PrefixIndex;
use crate::snapshot::{Entry, Snapshot, Vrp};

/// Why a route is rejected; the numbers are those that arouteserver gave them, which other tools know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Reason {
    /// The AS path is longer than [`LONGEST_PATH`].
    PathTooLong = 1,
    /// The prefix is reserved, or the own network's, or an exchange's LAN.
    BogonPrefix = 2,
    /// The first AS of the path is not the neighbour's.
    FirstAs = 6,
    /// The path has a reserved AS number.
    BogonAsn = 7,
    /// The path has a network that needs no transit, behind a peer or a customer.
    TransitFree = 8,
    /// The prefix is in no route object of the neighbour's AS-SET.
    NotInIrr = 12,
    /// The prefix is too short or too long for the Internet.
    PrefixLength = 13,
    /// The origin is not authorized (RFC 6811).
    RpkiInvalid = 14,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 8] = [
        Self::PathTooLong,
        Self::BogonPrefix,
        Self::FirstAs,
        Self::BogonAsn,
        Self::TransitFree,
        Self::NotInIrr,
        Self::PrefixLength,
        Self::RpkiInvalid,
    ];

    /// Its word in cases and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PathTooLong => "path-too-long",
            Self::BogonPrefix => "bogon-prefix",
            Self::FirstAs => "first-as",
            Self::BogonAsn => "bogon-asn",
            Self::TransitFree => "transit-free-asn",
            Self::NotInIrr => "not-in-irr",
            Self::PrefixLength => "prefix-length",
            Self::RpkiInvalid => "rpki-invalid",
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

/// A route as a neighbour announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The prefix.
    pub prefix: IpNet,
    /// The AS path, the neighbour first.
    pub path: Vec<u32>,
    /// Standard communities.
    pub communities: Vec<(u16, u16)>,
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

fn is_bogon_asn(asn: u32) -> bool {
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

/// The policy, prepared for many routes.
pub struct Policy<'a> {
    peering: &'a Peering,
    is_laboratory: bool,
    rejected: PrefixIndex<()>,
    vrps: PrefixIndex<Vrp>,
    /// What each neighbour may announce, by its position.
    sets: Vec<PrefixIndex<Entry>>,
}

impl<'a> Policy<'a> {
    /// Prepares the policy of a configuration and a snapshot.
    #[must_use]
    pub fn new(peering: &'a Peering, snapshot: &Snapshot) -> Policy<'a> {
        let set = |neighbor: &Neighbor| {
            let entries = if neighbor.is_filtered_by_prefix() {
                snapshot.accepted(neighbor)
            } else {
                Vec::new()
            };
            entries.into_iter().map(|it| (it.prefix, it)).collect()
        };
        Policy {
            peering,
            is_laboratory: is_laboratory(peering),
            rejected: rejected_prefixes(peering)
                .into_iter()
                .map(|it| (it, ()))
                .collect(),
            vrps: snapshot.vrps.iter().map(|it| (it.prefix, *it)).collect(),
            sets: peering.neighbors.iter().map(set).collect(),
        }
    }

    /// What happens to a route from the neighbour at this position of the configuration.
    #[must_use]
    pub fn import(&self, neighbor: usize, route: &Route) -> Verdict {
        let Some(of) = self.peering.neighbors.get(neighbor) else {
            return Verdict::Reject(Reason::FirstAs);
        };
        if let Some(reason) = self.failed_check(neighbor, of, route) {
            return Verdict::Reject(reason);
        }
        let drained =
            self.peering.mode(of) == Mode::Drain || route.communities.contains(&GRACEFUL_SHUTDOWN);
        Verdict::Accept {
            local_pref: if drained {
                0
            } else {
                self.peering.local_pref(of)
            },
        }
    }

    fn failed_check(&self, number: usize, neighbor: &Neighbor, route: &Route) -> Option<Reason> {
        let (shortest, longest) = lengths(route.prefix.addr().is_ipv4());
        if route.path.len() > LONGEST_PATH {
            Some(Reason::PathTooLong)
        } else if !self.is_laboratory && route.path.iter().any(|asn| is_bogon_asn(*asn)) {
            Some(Reason::BogonAsn)
        } else if neighbor.relation != Relation::RouteServer
            && route.path.first() != Some(&neighbor.asn)
        {
            Some(Reason::FirstAs)
        } else if !(shortest..=longest).contains(&route.prefix.prefix_len()) {
            Some(Reason::PrefixLength)
        } else if self.rejected.covering(&route.prefix).next().is_some() {
            Some(Reason::BogonPrefix)
        } else if neighbor.relation != Relation::Transit
            && transit_free(neighbor, route).next().is_some()
        {
            Some(Reason::TransitFree)
        } else if self.origin(route) == Origin::Invalid {
            Some(Reason::RpkiInvalid)
        } else if neighbor.is_filtered_by_prefix() && self.entry(number, route).is_none() {
            Some(Reason::NotInIrr)
        } else {
            None
        }
    }

    /// Validates the origin of a route.
    #[must_use]
    pub fn origin(&self, route: &Route) -> Origin {
        let asn = route.path.last().copied().unwrap_or(0);
        let mut covered = false;
        for (_, vrp) in self.vrps.covering(&route.prefix) {
            covered = true;
            if vrp.asn == asn && asn != 0 && route.prefix.prefix_len() <= vrp.max_length {
                return Origin::Valid;
            }
        }
        if covered {
            Origin::Invalid
        } else {
            Origin::NotFound
        }
    }

    /// The entry of a neighbour's set that accepts a route.
    fn entry(&self, neighbor: usize, route: &Route) -> Option<&Entry> {
        self.sets
            .get(neighbor)?
            .covering(&route.prefix)
            .map(|(_, entry)| entry)
            .find(|entry| entry.accepts(&route.prefix))
    }

    /// Why a route gets its verdict: one sentence a fact, the deciding one last.
    #[must_use]
    pub fn evidence(&self, neighbor: usize, route: &Route) -> Vec<String> {
        let Some(of) = self.peering.neighbors.get(neighbor) else {
            return Vec::new();
        };
        let path: Vec<String> = route.path.iter().map(u32::to_string).collect();
        let mut facts = vec![format!("AS path {}", path.join(" "))];
        let vrps: Vec<String> = self
            .vrps
            .covering(&route.prefix)
            .take(10)
            .map(|(prefix, vrp)| format!("{prefix} up to /{} for AS{}", vrp.max_length, vrp.asn))
            .collect();
        facts.push(match self.origin(route) {
            Origin::NotFound => "no ROA covers the prefix".to_owned(),
            Origin::Valid => format!("the origin is valid: ROA {}", vrps.join(", ")),
            Origin::Invalid => format!("the origin is invalid: ROA {}", vrps.join(", ")),
        });
        if of.is_filtered_by_prefix() {
            let set = match (&of.as_set, of.prefixes.is_empty()) {
                (Some(set), true) => set.clone(),
                _ => "the configured prefixes".to_owned(),
            };
            facts.push(match self.entry(neighbor, route) {
                Some(entry) => format!(
                    "{set} has {} with lengths {} to {}",
                    entry.prefix, entry.least, entry.most
                ),
                None => format!("{set} does not have the prefix"),
            });
        }
        facts.extend(match self.failed_check(neighbor, of, route) {
            Some(Reason::PathTooLong) => Some(format!("the path has {} ASNs", route.path.len())),
            Some(Reason::BogonAsn) => route
                .path
                .iter()
                .find(|asn| is_bogon_asn(**asn))
                .map(|asn| format!("AS{asn} is reserved")),
            Some(Reason::FirstAs) => Some(format!("the first ASN is not {}", of.asn)),
            Some(Reason::BogonPrefix) => self
                .rejected
                .covering(&route.prefix)
                .next()
                .map(|(prefix, ())| format!("{prefix} is reserved, own, or an exchange's LAN")),
            Some(Reason::TransitFree) => transit_free(of, route)
                .next()
                .map(|asn| format!("AS{asn} buys no transit, so AS{} leaks its route", of.asn)),
            Some(Reason::PrefixLength) => {
                let (shortest, longest) = lengths(route.prefix.addr().is_ipv4());
                Some(format!("lengths from {shortest} to {longest} are accepted"))
            }
            _ => None,
        });
        facts
    }
}

/// Networks of the path that buy no transit, the neighbour itself excepted.
fn transit_free<'a>(neighbor: &'a Neighbor, route: &'a Route) -> impl Iterator<Item = u32> + 'a {
    let is_one = |asn: &u32| *asn != neighbor.asn && TRANSIT_FREE.contains(asn);
    route.path.iter().copied().filter(is_one)
}
