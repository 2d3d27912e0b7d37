//! Routes as BGP peers announced them, by prefix.
//!
//! Attributes that are equal are kept once, however many routes have them. Paths are bounded by their number, attributes by their
//! bytes: a daemon may send a long path and many communities with each route. Readers hold the lock for one search.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ipnet::IpNet;

/// Prefixes that are changed with the lock held once.
const STEP: usize = 4096;
/// Changes after which attributes that no route has are forgotten.
const TIDY: usize = 1 << 16;
/// Bytes of attributes for each path that may be kept, and for those of one message.
const BYTES: usize = 100;
const LEAST_BYTES: usize = 1 << 17;

/// A part of an AS path (RFC 4271 4.3, RFC 5065).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// AS numbers in the order in which the route came through them, the nearest first.
    Sequence(Vec<u32>),
    /// AS numbers without an order.
    Set(Vec<u32>),
}

impl Segment {
    /// The AS numbers.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        match self {
            Segment::Sequence(numbers) | Segment::Set(numbers) => numbers,
        }
    }
}

/// What a route carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributes {
    /// NEXT_HOP, or that of MP_REACH_NLRI.
    pub next_hop: Option<IpAddr>,
    /// AS_PATH without confederations' segments.
    pub as_path: Vec<Segment>,
    /// COMMUNITIES (RFC 1997).
    pub communities: Vec<u32>,
    /// LOCAL_PREF, if the route has it.
    pub local_pref: Option<u32>,
}

impl Attributes {
    /// Takes this AS number off the beginning of the path. A path that was received never begins with the own one, but FRR
    /// 8.4 puts it there when it sends the path by BMP.
    pub(crate) fn drop_leading(&mut self, number: u32) {
        if let Some(Segment::Sequence(numbers)) = self.as_path.first_mut()
            && number != 0
        {
            let own = numbers.iter().take_while(|it| **it == number).count();
            numbers.drain(..own);
            if numbers.is_empty() {
                self.as_path.remove(0);
            }
        }
    }

    /// Bytes that they occupy, about.
    fn bytes(&self) -> usize {
        let segments = self.as_path.iter();
        let segments = segments.map(|it| size_of::<Segment>() + size_of_val(it.numbers()));
        size_of::<Attributes>() + segments.sum::<usize>() + size_of_val(&*self.communities)
    }

    fn length(&self) -> usize {
        let of = |segment: &Segment| match segment {
            Segment::Sequence(numbers) => numbers.len(),
            Segment::Set(_) => 1,
        };
        self.as_path.iter().map(of).sum()
    }
}

/// Who announced a route: a peer, and which of its tables is monitored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address; unspecified for the daemon's own table (RFC 9069).
    pub address: IpAddr,
    /// Its AS number.
    pub number: u32,
    /// The AS number of the daemon itself; 0 while it is not known.
    pub local: u32,
    /// Which table.
    pub table: Monitored,
}

/// The tables that a daemon can send, those that decide about forwarding last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Monitored {
    /// Adj-RIB-In before the policy.
    PrePolicy,
    /// Adj-RIB-In behind the policy.
    PostPolicy,
    /// The table with the best routes.
    LocRib,
}

/// A route of a prefix.
#[derive(Clone, Debug)]
struct Entry {
    peer: u32,
    attributes: Arc<Attributes>,
}

/// What is known of the route that a packet took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgpPath {
    /// Its attributes.
    pub attributes: Arc<Attributes>,
    /// The AS number of the peer that announced it.
    pub peer: u32,
    /// The AS number of this router's BGP daemon; 0 when it is not known.
    pub local: u32,
}

impl BgpPath {
    /// The AS number that the route begins in; 0 of routes that begin in this AS, and where it is not one number.
    #[must_use]
    pub fn origin(&self) -> u32 {
        match self.attributes.as_path.last() {
            Some(Segment::Sequence(numbers)) => numbers.last().copied().unwrap_or(0),
            Some(Segment::Set(numbers)) if numbers.len() == 1 => numbers[0],
            _ => 0,
        }
    }

    /// The AS number next to this one on the path; 0 of routes that begin in this AS.
    #[must_use]
    pub fn neighbor(&self) -> u32 {
        match self.attributes.as_path.first() {
            Some(Segment::Sequence(numbers)) => numbers.first().copied().unwrap_or(0),
            _ => 0,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    routes: BTreeMap<IpNet, Vec<Entry>>,
    peers: BTreeMap<u32, Peer>,
    attributes: BTreeSet<Arc<Attributes>>,
    /// Bytes of the attributes.
    bytes: usize,
    paths: usize,
    changes: usize,
}

/// The routes of all peers.
#[derive(Debug)]
pub struct Routes {
    inner: RwLock<Inner>,
    most: usize,
}

impl Routes {
    /// None yet, and at most so many paths.
    #[must_use]
    pub fn new(most: usize) -> Routes {
        Routes {
            inner: RwLock::default(),
            most,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of attributes that are kept at most.
    fn most_bytes(&self) -> usize {
        LEAST_BYTES.saturating_add(self.most.saturating_mul(BYTES))
    }

    /// Paths and prefixes.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.read();
        (inner.paths, inner.routes.len())
    }

    /// The path of the route of exactly this prefix. Of several, the one that leads to `next_hop`; else the one that BGP would
    /// choose by local preference and length.
    #[must_use]
    pub fn find(&self, prefix: IpNet, next_hop: Option<IpAddr>) -> Option<BgpPath> {
        self.read().choose(prefix, next_hop)
    }

    /// The path of the route with the longest prefix that has an address.
    #[must_use]
    pub fn longest(&self, address: IpAddr) -> Option<BgpPath> {
        let inner = self.read();
        let mut bound = IpNet::from(address);
        loop {
            // Prefixes are sorted by address and length: a longer one that has the address would come later.
            let (found, _) = inner.routes.range(..=bound).next_back()?;
            if found.contains(&address) {
                return inner.choose(*found, None);
            }
            // Any prefix that has the address is no longer than what it shares with the one found.
            let shared = shared_bits(found.network(), address)?;
            bound = IpNet::new(address, shared.min(bound.prefix_len().checked_sub(1)?))
                .ok()?
                .trunc();
        }
    }

    /// A peer whose routes follow.
    pub(crate) fn set_peer(&self, number: u32, peer: Peer) {
        self.write().peers.insert(number, peer);
    }

    /// Adds routes of a peer, or replaces them. Returns how many found no room; of these, none is left from before.
    pub(crate) fn announce(&self, peer: u32, attributes: Attributes, prefixes: &[IpNet]) -> usize {
        if prefixes.is_empty() {
            return 0;
        }
        let mut refused = 0;
        let mut inner = self.write();
        let attributes = match inner.attributes.get(&attributes) {
            Some(known) => known.clone(),
            None => {
                let (new, most) = (attributes.bytes(), self.most_bytes());
                if inner.bytes + new > most {
                    inner.tidy();
                }
                if inner.bytes + new > most {
                    for prefix in prefixes {
                        inner.remove(*prefix, peer);
                    }
                    return prefixes.len();
                }
                inner.bytes += new;
                let new = Arc::new(attributes);
                inner.attributes.insert(new.clone());
                new
            }
        };
        let room = self.most.saturating_sub(inner.paths);
        let mut added = 0;
        for prefix in prefixes {
            let known = inner.routes.get_mut(prefix);
            let own = known.and_then(|all| all.iter_mut().find(|entry| entry.peer == peer));
            if let Some(entry) = own {
                entry.attributes = attributes.clone();
            } else if added == room {
                refused += 1;
            } else {
                added += 1;
                let entry = Entry {
                    peer,
                    attributes: attributes.clone(),
                };
                match inner.routes.get_mut(prefix) {
                    Some(all) => all.push(entry),
                    None => drop(inner.routes.insert(*prefix, vec![entry])),
                }
            }
        }
        inner.paths += added;
        inner.changed(prefixes.len());
        refused
    }

    /// Removes routes of a peer.
    pub(crate) fn withdraw(&self, peer: u32, prefixes: &[IpNet]) {
        let mut inner = self.write();
        for prefix in prefixes {
            inner.remove(*prefix, peer);
        }
        inner.changed(prefixes.len());
    }

    /// Removes peers with all their routes, some at a time.
    pub(crate) fn remove_peers(&self, peers: &BTreeSet<u32>) {
        if peers.is_empty() {
            return;
        }
        let mut from = Bound::Unbounded;
        loop {
            let mut inner = self.write();
            let mut some = inner.routes.range((from, Bound::Unbounded)).take(STEP);
            let mut last = None;
            let mut its = Vec::new();
            for (prefix, entries) in &mut some {
                last = Some(*prefix);
                let its_peers = entries.iter().map(|entry| entry.peer);
                its.extend(
                    its_peers
                        .filter(|peer| peers.contains(peer))
                        .map(|peer| (*prefix, peer)),
                );
            }
            for (prefix, peer) in its {
                inner.remove(prefix, peer);
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => {
                    inner.peers.retain(|peer, _| !peers.contains(peer));
                    inner.tidy();
                    return;
                }
            }
        }
    }

    /// Each peer with its number.
    #[must_use]
    pub fn peers(&self) -> Vec<(u32, Peer)> {
        let inner = self.read();
        inner
            .peers
            .iter()
            .map(|(number, peer)| (*number, peer.clone()))
            .collect()
    }
}

/// The number of leading bits that two addresses of one family share.
fn shared_bits(a: IpAddr, b: IpAddr) -> Option<u8> {
    let bits = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros(),
        _ => return None,
    };
    u8::try_from(bits).ok()
}

impl Inner {
    /// Of the routes of a prefix the one that leads to `next_hop`, else the one that BGP would choose.
    fn choose(&self, prefix: IpNet, next_hop: Option<IpAddr>) -> Option<BgpPath> {
        let entries = self.routes.get(&prefix)?;
        let rank = |entry: &&Entry| {
            let peer = self.peers.get(&entry.peer);
            let leads = next_hop.is_some()
                && (entry.attributes.next_hop == next_hop
                    || peer.is_some_and(|peer| Some(peer.address) == next_hop));
            (
                leads,
                peer.map(|peer| peer.table),
                entry.attributes.local_pref.unwrap_or(100),
                std::cmp::Reverse(entry.attributes.length()),
                std::cmp::Reverse(entry.peer),
            )
        };
        let entry = entries.iter().max_by_key(rank)?;
        let peer = self.peers.get(&entry.peer);
        // The daemon's own table names no peer but itself.
        let own = peer.is_none_or(|peer| peer.table == Monitored::LocRib);
        let mut path = BgpPath {
            attributes: entry.attributes.clone(),
            peer: peer.map_or(0, |peer| peer.number),
            local: peer.map_or(0, |peer| peer.local),
        };
        if own {
            path.peer = path.neighbor();
        }
        Some(path)
    }

    fn remove(&mut self, prefix: IpNet, peer: u32) {
        let Some(entries) = self.routes.get_mut(&prefix) else {
            return;
        };
        let before = entries.len();
        entries.retain(|entry| entry.peer != peer);
        self.paths -= before - entries.len();
        if entries.is_empty() {
            self.routes.remove(&prefix);
        }
    }

    fn changed(&mut self, count: usize) {
        self.changes += count;
        if self.changes >= TIDY {
            self.tidy();
        }
    }

    /// Forgets attributes that no route has.
    fn tidy(&mut self) {
        self.changes = 0;
        self.attributes
            .retain(|attributes| Arc::strong_count(attributes) > 1);
        self.bytes = self.attributes.iter().map(|it| it.bytes()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(next_hop: &str, path: &[u32]) -> Attributes {
        Attributes {
            next_hop: Some(next_hop.parse().unwrap()),
            as_path: vec![Segment::Sequence(path.to_vec())],
            ..Attributes::default()
        }
    }

    fn peer(address: &str, number: u32) -> Peer {
        Peer {
            address: address.parse().unwrap(),
            number,
            local: 65_000,
            table: Monitored::PostPolicy,
        }
    }

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_the_route_with_the_longest_prefix() {
        let routes = Routes::new(100);
        routes.set_peer(1, peer("192.0.2.1", 65_001));
        for (number, prefix) in [
            (1, "10.0.0.0/8"),
            (2, "10.1.0.0/16"),
            (3, "10.1.2.0/24"),
            (4, "10.1.2.128/25"),
            (5, "10.2.0.0/16"),
            (6, "2001:db8::/32"),
            (7, "2001:db8:1::/48"),
            (8, "::/0"),
        ] {
            routes.announce(
                1,
                attributes("192.0.2.1", &[65_001, number]),
                &[net(prefix)],
            );
        }
        let origin = |address: &str| {
            let path = routes.longest(address.parse().unwrap());
            path.map(|path| path.origin())
        };
        for (address, expected) in [
            ("10.1.2.200", Some(4)),
            ("10.1.2.100", Some(3)),
            ("10.1.3.1", Some(2)),
            ("10.255.0.1", Some(1)),
            ("10.2.255.255", Some(5)),
            ("10.3.0.0", Some(1)),
            ("11.0.0.0", None),
            ("9.255.255.255", None),
            ("2001:db8:1::1", Some(7)),
            ("2001:db8:2::1", Some(6)),
            ("2001:db9::1", Some(8)),
            ("::", Some(8)),
        ] {
            assert_eq!(origin(address), expected, "{address}");
        }
    }

    #[test]
    fn the_path_to_the_next_hop_of_the_forwarding_table_is_reported() {
        let routes = Routes::new(10);
        routes.set_peer(1, peer("192.0.2.1", 65_001));
        routes.set_peer(2, peer("192.0.2.2", 65_002));
        let all = [net("10.0.0.0/8")];
        routes.announce(1, attributes("192.0.2.1", &[65_001, 65_009]), &all);
        routes.announce(2, attributes("192.0.2.2", &[65_002, 65_003, 65_009]), &all);
        let by = |hop: &str| routes.find(all[0], Some(hop.parse().unwrap())).unwrap();
        assert_eq!(
            (by("192.0.2.2").peer, by("192.0.2.2").neighbor()),
            (65_002, 65_002)
        );
        assert_eq!(
            (by("192.0.2.1").peer, by("192.0.2.1").origin()),
            (65_001, 65_009)
        );
        // By no next hop that is known: the shorter path.
        assert_eq!(by("192.0.2.9").peer, 65_001);
        assert_eq!(by("192.0.2.9").local, 65_000);
        routes.withdraw(1, &all);
        assert_eq!(by("192.0.2.9").peer, 65_002);
        routes.remove_peers(&BTreeSet::from([2]));
        assert_eq!(routes.find(all[0], None), None);
        assert_eq!(routes.counts(), (0, 0));
        assert!(routes.read().attributes.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_there_can_change() {
        let routes = Routes::new(2);
        routes.set_peer(1, peer("192.0.2.1", 65_001));
        let all = [net("10.0.0.0/8"), net("2001:db8::/32"), net("10.1.0.0/16")];
        assert_eq!(routes.announce(1, attributes("192.0.2.1", &[1]), &all), 1);
        assert_eq!(routes.announce(1, attributes("192.0.2.1", &[2]), &all), 1);
        assert_eq!(routes.counts(), (2, 2));
        assert_eq!(routes.find(all[1], None).unwrap().origin(), 2);
        assert_eq!(routes.read().attributes.len(), 2);
    }

    #[test]
    fn a_peer_goes_with_all_its_routes_and_others_stay() {
        let routes = Routes::new(1 << 20);
        let all: Vec<IpNet> = (0..10_000u32)
            .map(|n| IpNet::new(IpAddr::from((n << 12).to_be_bytes()), 20).unwrap())
            .collect();
        routes.announce(1, attributes("192.0.2.1", &[1]), &all);
        routes.announce(2, attributes("192.0.2.2", &[2]), &all[..5000]);
        routes.remove_peers(&BTreeSet::from([1]));
        assert_eq!(routes.counts(), (5000, 5000));
    }

    /// Long paths with each route: few fit, and no older path is shown for those that do not.
    #[test]
    fn attributes_are_bounded_by_their_bytes() {
        let most = 1000;
        let routes = Routes::new(most);
        let net = |n: u32| IpNet::new(IpAddr::from((n << 12).to_be_bytes()), 20).unwrap();
        assert_eq!(
            routes.announce(1, attributes("192.0.2.1", &[7]), &[net(999)]),
            0
        );
        let long = |n: u32| attributes("192.0.2.1", &[n; 500]);
        let refused: usize = (0..1000)
            .map(|n| routes.announce(1, long(n), &[net(n)]))
            .sum();
        assert!(refused > 800, "{refused}");
        assert!(routes.read().bytes <= routes.most_bytes());
        assert_eq!(
            routes.find(net(999), None),
            None,
            "the older path of a refused one"
        );
        // Withdrawals make room again.
        let all: Vec<IpNet> = (0..1000).map(net).collect();
        routes.withdraw(1, &all);
        assert_eq!(routes.announce(1, long(1000), &all[..1]), 0);
    }
}
