//! From BMP's messages to changes of routes. Formats are read by `bgpkit-parser`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bgpkit_parser::models::{
    AsPathSegment, Attributes as Read, BgpMessage, BgpUpdateMessage, Community, MetaCommunity, Safi,
};
use bgpkit_parser::parser::bmp::messages::{
    BmpMessage, BmpMessageBody, BmpPeerType, BmpPerPeerHeader, PeerFlags, PerPeerFlags,
};
use bgpkit_parser::parser::bmp::parse_bmp_msg;
use bytes::Bytes;
use ipnet::IpNet;

use crate::routes::{Attributes, Monitored, Peer, Routes, Segment};

/// Bytes of the common header (RFC 7854 4.1).
const HEADER: usize = 6;
const VERSION: u8 = 3;
/// The longest message that is read. A message has one BGP message (at most 65,535 bytes, RFC 8654) or two of OPEN.
const LONGEST: usize = 1 << 18;
/// The TLV with the daemon's name (RFC 7854 4.4).
const SYS_NAME: u16 = 2;
/// Peers of a session, at most.
const MOST_PEERS: usize = 4096;

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Another version than 3.
    Version(u8),
    /// A length that no message has.
    Length(u32),
    /// The daemon ends the session (RFC 7854 4.5).
    Terminated,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Version(version) => {
                write!(f, "message of BMP version {version}; only 3 is known")
            }
            Broken::Length(length) => write!(f, "message of {length} bytes"),
            Broken::Terminated => f.write_str("the daemon has ended the session"),
        }
    }
}

/// The length of the message at the start of `bytes`, when its header has come.
///
/// # Errors
/// When there is none; the session has to end then.
pub fn length_of(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some(&[version, a, b, c, d, _]) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    if version != VERSION {
        return Err(Broken::Version(version));
    }
    let length = u32::from_be_bytes([a, b, c, d]);
    match length as usize {
        HEADER..=LONGEST => Ok(Some(length as usize)),
        _ => Err(Broken::Length(length)),
    }
}

/// What tells a peer from another in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PeerKey {
    is_own: bool,
    distinguisher: u64,
    address: IpAddr,
}

/// A peer that is up, and the numbers under which each of its tables is kept. It comes up once, whichever tables follow.
#[derive(Debug)]
struct Up {
    number: u32,
    local: u32,
    tables: BTreeMap<Monitored, u32>,
}

/// What is known of a session's peers.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// The name that the daemon gives itself.
    pub(crate) name: String,
    peers: BTreeMap<PeerKey, Up>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Routes were announced and withdrawn; some found no room.
    Routes {
        announced: usize,
        withdrawn: usize,
        refused: usize,
    },
    /// It is known and changes no route.
    Known,
    /// It cannot be used, for this reason.
    Refused(&'static str),
    /// The session ends.
    Ended,
}

impl Monitor {
    /// Takes one whole message. `next_peer` is the number of a peer that comes up.
    pub(crate) fn take(&mut self, message: Bytes, routes: &Routes, next_peer: &mut u32) -> Taken {
        let mut message = message;
        // The parser is not ours, and what it reads comes from outside.
        let parsed = catch_unwind(AssertUnwindSafe(|| parse_bmp_msg(&mut message)));
        let Ok(Ok(message)) = parsed else {
            return Taken::Refused("malformed");
        };
        let BmpMessage {
            per_peer_header,
            message_body,
            ..
        } = message;
        let header = per_peer_header.as_ref();
        match (message_body, header) {
            (BmpMessageBody::InitiationMessage(initiation), _) => {
                let name = initiation
                    .tlvs
                    .iter()
                    .find(|tlv| u16::from(tlv.info_type) == SYS_NAME);
                if let Some(name) = name {
                    self.name = name
                        .info
                        .chars()
                        .filter(|it| !it.is_control())
                        .take(255)
                        .collect();
                }
                Taken::Known
            }
            (BmpMessageBody::TerminationMessage(_), _) => Taken::Ended,
            (BmpMessageBody::PeerUpNotification(up), Some(header)) => {
                let local = match &up.sent_open {
                    BgpMessage::Open(open) => open.asn.into(),
                    _ => 0,
                };
                self.peer_up(header, local, routes)
            }
            (BmpMessageBody::PeerDownNotification(_), Some(header)) => {
                self.remove(&key_of(header), routes);
                Taken::Known
            }
            (BmpMessageBody::RouteMonitoring(monitoring), Some(header)) => {
                match monitoring.bgp_message {
                    BgpMessage::Update(update) => self.update(header, &update, routes, next_peer),
                    _ => Taken::Refused("no-update"),
                }
            }
            _ => Taken::Known,
        }
    }

    fn peer_up(&mut self, header: &BmpPerPeerHeader, local: u32, routes: &Routes) -> Taken {
        if header.peer_type == BmpPeerType::RD {
            return Taken::Refused("vrf");
        }
        let key = key_of(header);
        // A peer that comes up again sends all its routes again.
        self.remove(&key, routes);
        if self.peers.len() >= MOST_PEERS {
            return Taken::Refused("too-many-peers");
        }
        let number: u32 = header.peer_asn.into();
        let local = if key.is_own { number } else { local };
        let tables = BTreeMap::new();
        self.peers.insert(
            key,
            Up {
                number,
                local,
                tables,
            },
        );
        Taken::Known
    }

    fn remove(&mut self, key: &PeerKey, routes: &Routes) {
        if let Some(up) = self.peers.remove(key) {
            routes.remove_peers(&up.tables.into_values().collect());
        }
    }

    fn update(
        &mut self,
        header: &BmpPerPeerHeader,
        update: &BgpUpdateMessage,
        routes: &Routes,
        next_peer: &mut u32,
    ) -> Taken {
        let Some(table) = table_of(header) else {
            return Taken::Refused("adj-rib-out");
        };
        let Some(up) = self.peers.get_mut(&key_of(header)) else {
            return Taken::Refused("unknown-peer");
        };
        let (number, local) = (up.number, up.local);
        let peer = *up.tables.entry(table).or_insert_with(|| {
            let (address, new) = (header.peer_ip, *next_peer);
            *next_peer += 1;
            routes.set_peer(
                new,
                Peer {
                    address,
                    number,
                    local,
                    table,
                },
            );
            new
        });
        let unicast = |nlri: &&bgpkit_parser::models::Nlri| nlri.safi == Safi::Unicast;
        let mut withdrawn: Vec<IpNet> = update
            .withdrawn_prefixes
            .iter()
            .map(|it| it.prefix)
            .collect();
        if let Some(nlri) = update.attributes.get_unreachable_nlri().filter(unicast) {
            withdrawn.extend(nlri.prefixes.iter().map(|it| it.prefix));
        }
        routes.withdraw(peer, &withdrawn);
        let read = |next_hop| {
            let mut attributes = attributes_of(&update.attributes, next_hop);
            attributes.drop_leading(local);
            attributes
        };
        let mut refused = 0;
        let mut announced: Vec<IpNet> = update
            .announced_prefixes
            .iter()
            .map(|it| it.prefix)
            .collect();
        refused += routes.announce(peer, read(update.attributes.next_hop()), &announced);
        if let Some(nlri) = update.attributes.get_reachable_nlri().filter(unicast) {
            let prefixes: Vec<IpNet> = nlri.prefixes.iter().map(|it| it.prefix).collect();
            let next_hop = nlri.next_hop.map(|hop| hop.addr());
            refused += routes.announce(peer, read(next_hop), &prefixes);
            announced.extend(prefixes);
        }
        Taken::Routes {
            announced: announced.len() - refused,
            withdrawn: withdrawn.len(),
            refused,
        }
    }

    /// The session has ended: its peers go with their routes.
    pub(crate) fn end(self, routes: &Routes) {
        routes.remove_peers(&self.peers().collect());
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = u32> + '_ {
        self.peers
            .values()
            .flat_map(|up| up.tables.values().copied())
    }
}

fn key_of(header: &BmpPerPeerHeader) -> PeerKey {
    PeerKey {
        is_own: header.peer_type == BmpPeerType::LocalRib,
        distinguisher: header.peer_distinguisher,
        address: header.peer_ip,
    }
}

/// The table that a route is of. `None` of what a daemon sends to peers, which says nothing about how packets are forwarded.
fn table_of(header: &BmpPerPeerHeader) -> Option<Monitored> {
    match header.peer_flags {
        PerPeerFlags::LocalRibPeerFlags(_) => Some(Monitored::LocRib),
        PerPeerFlags::PeerFlags(flags) if flags.contains(PeerFlags::IS_ADJ_RIB_OUT) => None,
        PerPeerFlags::PeerFlags(flags) if flags.is_post_policy() => Some(Monitored::PostPolicy),
        PerPeerFlags::PeerFlags(_) => Some(Monitored::PrePolicy),
    }
}

fn attributes_of(read: &Read, next_hop: Option<IpAddr>) -> Attributes {
    let numbers =
        |all: &[bgpkit_parser::models::Asn]| all.iter().map(|&number| number.into()).collect();
    let path = read.effective_as_path();
    let segments = path.iter().flat_map(|path| path.iter_segments());
    let as_path = segments.filter_map(|segment| match segment {
        AsPathSegment::AsSequence(all) => Some(Segment::Sequence(numbers(all))),
        AsPathSegment::AsSet(all) => Some(Segment::Set(numbers(all))),
        AsPathSegment::ConfedSequence(_) | AsPathSegment::ConfedSet(_) => None,
    });
    let communities = read
        .iter_communities()
        .filter_map(|community| match community {
            MetaCommunity::Plain(plain) => Some(number_of(plain)),
            _ => None,
        });
    Attributes {
        next_hop,
        as_path: as_path.collect(),
        communities: communities.collect(),
        local_pref: read.local_preference(),
    }
}

/// RFC 1997.
fn number_of(community: Community) -> u32 {
    match community {
        Community::NoExport => 0xffff_ff01,
        Community::NoAdvertise => 0xffff_ff02,
        Community::NoExportSubConfed => 0xffff_ff03,
        Community::Custom(number, value) => u32::from(number) << 16 | u32::from(value),
    }
}
