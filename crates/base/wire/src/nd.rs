//! Neighbour discovery (RFC 4861): who has that address, I have, is there a router, here I am.
//!
//! [`read`] believes a message only if it passes every check of sections 6.1.1, 6.1.2, 7.1.1 and 7.1.2:
//! hop limit 255 (nobody off the link can send that), checksum, code, length, options that are not
//! empty, addresses that make sense together. Unknown options are passed over; the first of each known
//! kind counts. Redirects are not read here.
//!
//! Writers make whole IPv6 packets and allocate nothing. The destination MAC address of a packet is determined by
//! [`crate::ipv6::multicast_mac`], or known.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::icmp6::{self, Endpoints};
use crate::ipv6::{
    ALL_NODES, ALL_ROUTERS, UNSPECIFIED, is_link_local, is_multicast, solicited_node,
};
use crate::{IcmpHeader, IpProtocol, Ipv6Header, MacAddr, checksum, header};

/// Is there a router?
pub const ROUTER_SOLICITATION: u8 = 133;
/// Here I am, and this is how this link works.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Who has that address?
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// I have.
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// The hop limit of all of them.
const HOPS: u8 = 255;
const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
/// Prefixes that are read of one advertisement.
pub const MAX_PREFIXES: usize = 16;

/// A link-layer address option for Ethernet.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LinkLayer {
    kind: u8,
    length: u8,
    mac: MacAddr,
}

impl LinkLayer {
    const fn new(kind: u8, mac: MacAddr) -> LinkLayer {
        LinkLayer {
            kind,
            length: 1,
            mac,
        }
    }
}

/// A prefix of the link (section 4.6.2).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Prefix {
    kind: u8,
    units: u8,
    /// Bits that count, 0 to 128.
    pub length: u8,
    flags: u8,
    valid: U32,
    preferred: U32,
    reserved: U32,
    /// The prefix; what lies behind its length is 0.
    pub prefix: [u8; 16],
}
header!(Prefix, 32);

impl Prefix {
    /// A prefix of these fields; lifetimes are in seconds, and `u32::MAX` means forever.
    #[must_use]
    pub const fn new(
        prefix: [u8; 16],
        length: u8,
        on_link: bool,
        autonomous: bool,
        valid: u32,
        preferred: u32,
    ) -> Prefix {
        let flags = (on_link as u8) << 7 | (autonomous as u8) << 6;
        let (valid, preferred) = (U32::new(valid), U32::new(preferred));
        Prefix {
            kind: PREFIX,
            units: 4,
            length,
            flags,
            valid,
            preferred,
            reserved: U32::ZERO,
            prefix,
        }
    }

    /// Whether its addresses are reached without a router.
    #[must_use]
    pub const fn is_on_link(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Whether hosts may make themselves addresses of it (RFC 4862).
    #[must_use]
    pub const fn is_autonomous(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Seconds that it holds.
    #[must_use]
    pub const fn valid(&self) -> u32 {
        self.valid.get()
    }

    /// Seconds that its addresses are preferred.
    #[must_use]
    pub const fn preferred(&self) -> u32 {
        self.preferred.get()
    }
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Mtu {
    kind: u8,
    length: u8,
    reserved: U16,
    mtu: U32,
}

/// What of a router advertisement stands in front of its options, behind the first eight bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Times {
    reachable: U32,
    retransmit: U32,
}

/// A router's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// The hop limit that hosts shall use; 0 says nothing.
    pub hop_limit: u8,
    /// Whether addresses come from DHCPv6.
    pub managed: bool,
    /// Whether other settings come from DHCPv6.
    pub other: bool,
    /// Seconds that it may be a default router; 0 means that it is none.
    pub lifetime: u16,
    /// Milliseconds that a neighbour is held for reachable; 0 says nothing.
    pub reachable: u32,
    /// Milliseconds between solicitations; 0 says nothing.
    pub retransmit: u32,
    /// Its MAC address.
    pub mac: Option<MacAddr>,
    /// The link's MTU.
    pub mtu: Option<u32>,
}

/// A message that was believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Is there a router?
    RouterSolicitation {
        /// Who asks; never of an unspecified source.
        mac: Option<MacAddr>,
    },
    /// Here I am.
    RouterAdvertisement {
        /// What it says of itself and the link.
        router: Router,
        /// Its options, checked; [`Message::prefixes`] goes through them.
        options: &'a [u8],
    },
    /// Who has that address?
    NeighborSolicitation {
        /// The address asked for.
        target: [u8; 16],
        /// Who asks. `None` of somebody who probes whether the address is free (RFC 4862 section 5.4).
        mac: Option<MacAddr>,
    },
    /// I have.
    NeighborAdvertisement {
        /// The address.
        target: [u8; 16],
        /// Where it is.
        mac: Option<MacAddr>,
        /// Whether it is a router's.
        router: bool,
        /// Whether it answers a question.
        solicited: bool,
        /// Whether it shall replace what was known.
        override_known: bool,
    },
}

impl Message<'_> {
    /// The prefixes of a router advertisement, at most [`MAX_PREFIXES`]; none of other messages.
    pub fn prefixes(&self) -> impl Iterator<Item = &Prefix> {
        let options = if let Message::RouterAdvertisement { options, .. } = self {
            *options
        } else {
            &[]
        };
        let found = Options(options)
            .map_while(Result::ok)
            .filter(|option| option.first() == Some(&PREFIX));
        found
            .filter_map(|option| Prefix::read(option).map(|(prefix, _)| prefix))
            .take(MAX_PREFIXES)
    }
}

/// Why a message is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NdError {
    /// It is not a message of these four kinds.
    #[error("no neighbour discovery")]
    Other,
    /// It came through a router, or claims so.
    #[error("hop limit {0} instead of 255")]
    HopLimit(u8),
    /// It is shorter than its kind must be.
    #[error("too short")]
    Truncated,
    /// Its checksum is wrong.
    #[error("a wrong checksum")]
    Checksum,
    /// Its code is not 0.
    #[error("code {0}")]
    Code(u8),
    /// An option of length 0, or one longer than what is left.
    #[error("an option of a wrong length")]
    Option,
    /// Its target is a group.
    #[error("the target is a group")]
    Target,
    /// Source, destination and options do not go together.
    #[error("addresses that do not go together")]
    Addresses,
}

/// Goes through options by their lengths, in units of 8 bytes.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Result<&'a [u8], NdError>;

    fn next(&mut self) -> Option<Result<&'a [u8], NdError>> {
        if self.0.is_empty() {
            return None;
        }
        let length = self.0.get(1).map_or(0, |units| usize::from(*units) * 8);
        let split = self.0.split_at_checked(length).filter(|_| length > 0);
        let (option, rest) = split.unwrap_or((&[], &[]));
        self.0 = rest;
        Some(if option.is_empty() {
            Err(NdError::Option)
        } else {
            Ok(option)
        })
    }
}

/// The options that mean something.
#[derive(Default)]
struct Known {
    source: Option<MacAddr>,
    target: Option<MacAddr>,
    mtu: Option<u32>,
}

fn known(options: &[u8]) -> Result<Known, NdError> {
    let mut known = Known::default();
    for option in Options(options) {
        let option = option?;
        let mac = || LinkLayer::ref_from_bytes(option).ok().map(|link| link.mac);
        match option.first() {
            Some(&SOURCE_LINK_LAYER) => known.source = known.source.or_else(mac),
            Some(&TARGET_LINK_LAYER) => known.target = known.target.or_else(mac),
            Some(&MTU) => {
                known.mtu = known
                    .mtu
                    .or_else(|| Mtu::ref_from_bytes(option).ok().map(|mtu| mtu.mtu.get()))
            }
            _ => {}
        }
    }
    Ok(known)
}

/// Reads a message: `header` is the packet's, `message` all from ICMPv6's first byte to the packet's end.
///
/// # Errors
/// Why it is not believed.
pub fn read<'a>(header: &Ipv6Header, message: &'a [u8]) -> Result<Message<'a>, NdError> {
    let (icmp, body) = IcmpHeader::read(message).ok_or(NdError::Truncated)?;
    if header.next_header() != IpProtocol::ICMP6
        || !matches!(icmp.kind, ROUTER_SOLICITATION..=NEIGHBOR_ADVERTISEMENT)
    {
        return Err(NdError::Other);
    }
    if header.hop_limit != HOPS {
        return Err(NdError::HopLimit(header.hop_limit));
    }
    if checksum::icmp6(&header.source, &header.destination, message) != 0 {
        return Err(NdError::Checksum);
    }
    if icmp.code != 0 {
        return Err(NdError::Code(icmp.code));
    }
    match icmp.kind {
        ROUTER_SOLICITATION => router_solicited(header, body),
        ROUTER_ADVERTISEMENT => router_advertised(header, icmp, body),
        NEIGHBOR_SOLICITATION => neighbor_solicited(header, body),
        _ => neighbor_advertised(header, icmp, body),
    }
}

/// Section 6.1.1.
fn router_solicited<'a>(header: &Ipv6Header, options: &[u8]) -> Result<Message<'a>, NdError> {
    let known = known(options)?;
    if header.source == UNSPECIFIED && known.source.is_some() {
        return Err(NdError::Addresses);
    }
    Ok(Message::RouterSolicitation { mac: known.source })
}

/// Section 6.1.2.
fn router_advertised<'a>(
    header: &Ipv6Header,
    icmp: &IcmpHeader,
    body: &'a [u8],
) -> Result<Message<'a>, NdError> {
    let (times, options) = Times::ref_from_prefix(body).map_err(|_| NdError::Truncated)?;
    if !is_link_local(&header.source) {
        return Err(NdError::Addresses);
    }
    let known = known(options)?;
    let [hop_limit, flags, high, low] = icmp.argument().to_be_bytes();
    let router = Router {
        hop_limit,
        managed: flags & 0x80 != 0,
        other: flags & 0x40 != 0,
        lifetime: u16::from_be_bytes([high, low]),
        reachable: times.reachable.get(),
        retransmit: times.retransmit.get(),
        mac: known.source,
        mtu: known.mtu,
    };
    Ok(Message::RouterAdvertisement { router, options })
}

/// Section 7.1.1.
fn neighbor_solicited<'a>(header: &Ipv6Header, body: &[u8]) -> Result<Message<'a>, NdError> {
    let (target, options) = body.split_first_chunk::<16>().ok_or(NdError::Truncated)?;
    if is_multicast(target) {
        return Err(NdError::Target);
    }
    let known = known(options)?;
    let probe = header.source == UNSPECIFIED;
    let group = header.destination[..13] == solicited_node(target)[..13];
    if probe && (!group || known.source.is_some()) {
        return Err(NdError::Addresses);
    }
    Ok(Message::NeighborSolicitation {
        target: *target,
        mac: known.source,
    })
}

/// Section 7.1.2.
fn neighbor_advertised<'a>(
    header: &Ipv6Header,
    icmp: &IcmpHeader,
    body: &[u8],
) -> Result<Message<'a>, NdError> {
    let (target, options) = body.split_first_chunk::<16>().ok_or(NdError::Truncated)?;
    if is_multicast(target) {
        return Err(NdError::Target);
    }
    let known = known(options)?;
    let [flags, ..] = icmp.argument().to_be_bytes();
    let solicited = flags & 0x40 != 0;
    if solicited && is_multicast(&header.destination) {
        return Err(NdError::Addresses);
    }
    let (router, override_known) = (flags & 0x80 != 0, flags & 0x20 != 0);
    Ok(Message::NeighborAdvertisement {
        target: *target,
        mac: known.target,
        router,
        solicited,
        override_known,
    })
}

fn endpoints(source: [u8; 16], destination: [u8; 16]) -> Endpoints {
    Endpoints {
        source,
        destination,
        hop_limit: HOPS,
    }
}

/// Writes the question who has `target`, to everybody whose address could be that; gives the packet's
/// length. `None`, and nothing written, when there is too little room; so do all that follow.
pub fn neighbor_solicitation(
    packet: &mut [u8],
    source: [u8; 16],
    mac: MacAddr,
    target: [u8; 16],
) -> Option<usize> {
    solicit(packet, source, solicited_node(&target), mac, target)
}

/// Writes the question whether `target` is still where it was, to itself (section 7.3.3).
pub fn neighbor_probe(
    packet: &mut [u8],
    source: [u8; 16],
    mac: MacAddr,
    target: [u8; 16],
) -> Option<usize> {
    solicit(packet, source, target, mac, target)
}

fn solicit(
    packet: &mut [u8],
    source: [u8; 16],
    destination: [u8; 16],
    mac: MacAddr,
    target: [u8; 16],
) -> Option<usize> {
    let option = LinkLayer::new(SOURCE_LINK_LAYER, mac);
    icmp6::write(
        packet,
        &endpoints(source, destination),
        &IcmpHeader::new(NEIGHBOR_SOLICITATION, 0, 0),
        &[&target, option.as_bytes()],
    )
}

/// Writes the question whether `target` is free, from nobody (RFC 4862 section 5.4.2).
pub fn duplicate_solicitation(packet: &mut [u8], target: [u8; 16]) -> Option<usize> {
    let endpoints = endpoints(UNSPECIFIED, solicited_node(&target));
    icmp6::write(
        packet,
        &endpoints,
        &IcmpHeader::new(NEIGHBOR_SOLICITATION, 0, 0),
        &[&target],
    )
}

/// What an advertisement says beside address and place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The sender is a router.
    pub router: bool,
    /// It answers a question. Never set towards a group.
    pub solicited: bool,
    /// It shall replace what was known.
    pub override_known: bool,
}

/// Writes the answer that `target` is at `mac`. To somebody who probes (from nobody) it goes to all nodes
/// and is unsolicited (section 7.2.4), whatever `claim` says: give [`UNSPECIFIED`] for the asker.
pub fn neighbor_advertisement(
    packet: &mut [u8],
    source: [u8; 16],
    asker: [u8; 16],
    target: [u8; 16],
    mac: MacAddr,
    claim: Claim,
) -> Option<usize> {
    let destination = if asker == UNSPECIFIED {
        ALL_NODES
    } else {
        asker
    };
    let solicited = claim.solicited && !is_multicast(&destination);
    let flags = u32::from(claim.router) << 31
        | u32::from(solicited) << 30
        | u32::from(claim.override_known) << 29;
    let option = LinkLayer::new(TARGET_LINK_LAYER, mac);
    let header = IcmpHeader::new(NEIGHBOR_ADVERTISEMENT, 0, flags);
    icmp6::write(
        packet,
        &endpoints(source, destination),
        &header,
        &[&target, option.as_bytes()],
    )
}

/// Writes the question for routers; an unspecified source says no MAC address.
pub fn router_solicitation(packet: &mut [u8], source: [u8; 16], mac: MacAddr) -> Option<usize> {
    let option = LinkLayer::new(SOURCE_LINK_LAYER, mac);
    let option = if source == UNSPECIFIED {
        &[]
    } else {
        option.as_bytes()
    };
    icmp6::write(
        packet,
        &endpoints(source, ALL_ROUTERS),
        &IcmpHeader::new(ROUTER_SOLICITATION, 0, 0),
        &[option],
    )
}

/// Writes a router advertisement from a link-local address to all nodes or to who asked.
pub fn router_advertisement(
    packet: &mut [u8],
    source: [u8; 16],
    destination: [u8; 16],
    router: &Router,
    prefixes: &[Prefix],
) -> Option<usize> {
    let flags = u8::from(router.managed) << 7 | u8::from(router.other) << 6;
    let [high, low] = router.lifetime.to_be_bytes();
    let argument = u32::from_be_bytes([router.hop_limit, flags, high, low]);
    let times = Times {
        reachable: U32::new(router.reachable),
        retransmit: U32::new(router.retransmit),
    };
    let mac = router.mac.map(|mac| LinkLayer::new(SOURCE_LINK_LAYER, mac));
    let mtu = router.mtu.map(|mtu| Mtu {
        kind: MTU,
        length: 1,
        reserved: U16::ZERO,
        mtu: U32::new(mtu),
    });
    let mac = mac.as_ref().map_or(&[][..], IntoBytes::as_bytes);
    let mtu = mtu.as_ref().map_or(&[][..], IntoBytes::as_bytes);
    let header = IcmpHeader::new(ROUTER_ADVERTISEMENT, 0, argument);
    icmp6::write(
        packet,
        &endpoints(source, destination),
        &header,
        &[times.as_bytes(), mac, mtu, prefixes.as_bytes()],
    )
}
