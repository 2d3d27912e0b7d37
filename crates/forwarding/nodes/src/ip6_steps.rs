//! Plain IPv6 in one pass: the rules of eth-input, ip6-input, ip6-lookup and ip6-rewrite while a header is at hand.
//!
//! Not a node; as `ip4_steps.rs`, used under the same conditions and with large tables in the same way. It takes a
//! packet only if every rule is met; otherwise the packet is unchanged and goes its way through the nodes, which find
//! out what is odd.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::{Adjacency, Fib6, LargeFib6, NexthopView, SmallFib6, Way6};
use weir_graph::Cx;
use weir_port::interface::Interface;
use weir_port::own_addresses::OwnAddresses;
use weir_wire::{EthernetHeader, Ipv6Header, MacAddr};

use crate::{Tables, ip4_steps, ip6_input, ip6_rewrite};

/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;
/// Bytes of a plain packet's headers.
const PLAIN: usize = ETHERNET + Ipv6Header::LEN;

/// What a pass over one interface's packets compares with and looks up in.
#[derive(Clone, Copy)]
pub(crate) struct Ip6Steps<'a> {
    /// The station's address as the upper six bytes of a word.
    station: u64,
    /// Addresses that no packet from outside may come from.
    own: &'a OwnAddresses,
    nexthops: NexthopView<'a>,
}

/// EtherType 0x86dd and version 6, as bytes 12 to 14 of a frame in little-endian order, and where they are.
const IP6_PLAIN: u32 = 0x60_dd86;
const IP6_MASK: u32 = 0xf0_ffff;

impl<'a> Ip6Steps<'a> {
    /// What plain IPv6 of an interface is forwarded with in one pass, if it can be.
    #[inline(always)]
    pub(crate) fn of(
        cx: &Cx<'a, Tables>,
        interface: &'a Interface,
    ) -> Option<(Ip6Steps<'a>, &'a Fib6)> {
        if cx.is_traced()
            || !ip4_steps::is_open(interface.features)
            || interface.addresses6.is_empty()
        {
            return None;
        }
        let MacAddr([a, b, c, d, e, f]) = interface.mac;
        let fib = cx.world.fib6.get(interface.table as usize)?;
        Some((
            Ip6Steps {
                station: u64::from_le_bytes([0, 0, a, b, c, d, e, f]),
                own: &interface.own,
                nexthops: cx.world.nexthops.view(),
            },
            fib,
        ))
    }

    /// Forwards a plain packet for this station to a neighbour in use, and returns the interface. `None`, and
    /// nothing is changed, for all else.
    #[inline(always)]
    pub(crate) fn forward(self, fib: SmallFib6<'_>, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let (whole, hops, upper) = self.examine(frame, len, chained)?;
        let lower = word(frame, ETHERNET + 32);
        let group = fib.lookup(upper.swap_bytes(), lower.swap_bytes());
        let interface = ip6_rewrite::head(self.nexthops.only_neighbor(group)?, whole, hops, frame)?;
        Some(leave(packet, len, whole, interface))
    }

    /// The same with a large table, in steps between which other packets have theirs: first, before it is known whether the
    /// packet is one, …
    #[inline(always)]
    pub(crate) fn first(fib: LargeFib6<'_>, packet: &Pkt) -> Way6 {
        let Some(frame) = packet.data().first_chunk::<PLAIN>() else {
            cold_path();
            return Way6::default();
        };
        fib.first(upper(frame).swap_bytes())
    }

    /// … then, after those of the table alone, its neighbour, if it is one, …
    #[inline(always)]
    pub(crate) fn neighbor(
        self,
        code: impl Code,
        fib: LargeFib6<'_>,
        way: &Way6,
        packet: &Pkt,
    ) -> Option<&'a Adjacency> {
        let destination = || {
            packet
                .data()
                .first_chunk::<PLAIN>()
                .and_then(|frame| frame.last_chunk())
        };
        self.nexthops.only_neighbor(fib.last(code, way, || {
            destination().map_or(0, |bytes| u128::from_be_bytes(*bytes))
        }))
    }

    /// … and at last.
    #[inline(always)]
    pub(crate) fn last(self, neighbor: Option<&Adjacency>, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let (whole, hops, _) = self.examine(frame, len, chained)?;
        let interface = ip6_rewrite::head(neighbor?, whole, hops, frame)?;
        Some(leave(packet, len, whole, interface))
    }

    /// Whether these are the headers of a plain packet for this station: the bytes of the frame without what Ethernet
    /// padded, the hop limit, and the upper half of the destination.
    #[inline(always)]
    fn examine(self, frame: &[u8; PLAIN], len: usize, chained: bool) -> Option<(usize, u8, u64)> {
        // The headers once, as words: MAC addresses and types, lengths and hops (RFC 8200 section 3), the destination.
        let (stations, types, upper) = (word(frame, 0), types(frame), upper(frame));
        let ours = (stations << 16 == self.station) & (types & IP6_MASK == IP6_PLAIN) & !chained;
        let between = ip6_input::between_hosts(frame[ETHERNET + 8], upper as u8);
        let (whole, hops) = sizes(word(frame, ETHERNET));
        let (source, below) = (word(frame, ETHERNET + 8), word(frame, ETHERNET + 16));
        let foreign = !self.own.may_have6(source, below);
        if !(ours & between & foreign & (whole != PLAIN)) || whole > len {
            return None;
        }
        Some((whole, hops, upper))
    }
}

/// The upper half of the destination, in little-endian order.
#[inline(always)]
fn upper(frame: &[u8; PLAIN]) -> u64 {
    word(frame, ETHERNET + 24)
}

/// The type and the first bytes of the IPv6 header, in little-endian order.
#[inline(always)]
fn types(frame: &[u8; PLAIN]) -> u32 {
    frame
        .get(ETHERNET - 2..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Bytes of a frame without what Ethernet padded, and the hop limit, as the first word of its IPv6 header tells.
#[inline(always)]
fn sizes(word: u64) -> (usize, u8) {
    (
        PLAIN + usize::from(((word >> 32) as u16).swap_bytes()),
        (word >> 56) as u8,
    )
}

/// Readies a rewritten packet; gives its interface.
#[inline(always)]
fn leave(packet: &mut Pkt, len: usize, whole: usize, interface: u32) -> u32 {
    if whole != len {
        // What Ethernet padded is cut off.
        let _ = packet.set_len(whole);
    }
    packet.set_aux(interface);
    interface
}

#[inline(always)]
fn word(frame: &[u8; PLAIN], at: usize) -> u64 {
    frame
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
