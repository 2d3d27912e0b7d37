//! Plain IPv4 in one pass: the rules of eth-input, ip4-input, ip4-lookup and ip4-rewrite while a header is at hand.
//!
//! Not a node. eth-input uses it on a routed interface with a table that stays in the cache, when nothing lies
//! between these nodes and nobody follows packets: a pass over 256 frames costs more than any of the steps, and
//! what one pass leaves in the handles for the next costs again. It takes a packet only if every rule is met;
//! otherwise the packet is unchanged and goes its way through the nodes, which find out what is odd.

use weir_buf::Pkt;
use weir_fib::{NexthopView, SmallFib4};
use weir_port::interface::{Feature, Features};
use weir_wire::{EthernetHeader, Ipv4Header, MacAddr, checksum};

use crate::{ip4_input, ip4_rewrite, mpls};

/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;
/// Bytes of a plain packet's headers.
const PLAIN: usize = ETHERNET + Ipv4Header::LEN;

/// Whether nothing on an interface stands between receipt and lookup.
pub(crate) fn is_open(features: Features) -> bool {
    ![Feature::AclIn, Feature::Urpf, Feature::Policer].into_iter().any(|feature| features.has(feature))
}

/// What a pass over one interface's packets compares with and looks up in.
#[derive(Clone, Copy)]
pub(crate) struct Straight<'a> {
    /// The station's address as the upper six bytes of a word.
    station: u64,
    fib: SmallFib4<'a>,
    nexthops: NexthopView<'a>,
}

/// EtherType 0x0800, version 4 and five words of header, as bytes 12 to 14 of a frame in little-endian order.
const IP4_PLAIN: u64 = 0x45_0008;

impl<'a> Straight<'a> {
    #[inline(always)]
    pub(crate) fn new(MacAddr([a, b, c, d, e, f]): MacAddr, fib: SmallFib4<'a>, nexthops: NexthopView<'a>) -> Straight<'a> {
        Straight { station: u64::from_le_bytes([0, 0, a, b, c, d, e, f]), fib, nexthops }
    }

    /// Forwards a plain packet for this station to a neighbour in use, and returns the interface. `None`, and
    /// nothing is changed, for all else.
    #[inline(always)]
    pub(crate) fn forward(self, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        // The headers once, as words: MAC addresses and types, then the IPv4 header (RFC 791 3.1).
        let (stations, types) = (word(frame, 0), word(frame, 8));
        let (sizes, hops) = (word(frame, ETHERNET), word(frame, ETHERNET + 8));
        let destination = frame.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let ours = (stations << 16 == self.station) & (types >> 32 & 0xff_ffff == IP4_PLAIN) & !chained;
        let sound = checksum::ipv4_words_ok(sizes, hops, destination) & ip4_input::between_hosts((hops >> 32) as u8, destination as u8);
        if !(ours & sound) {
            return None;
        }
        let whole = ETHERNET + usize::from(((sizes >> 16) as u16).swap_bytes());
        if whole > len || whole < PLAIN {
            return None;
        }
        let group = self.fib.lookup(destination.swap_bytes());
        let Some(adjacency) = self.nexthops.only_neighbor(group) else { return self.push(packet, group, whole) };
        let interface = ip4_rewrite::head(adjacency, whole, hops as u32, frame)?;
        if whole != len {
            // What Ethernet padded is cut off.
            let _ = packet.set_len(whole);
        }
        packet.set_aux(interface);
        Some(interface)
    }

    /// The same where the group's packets get labels.
    #[inline(never)]
    fn push(self, packet: &mut Pkt, group: u32, whole: usize) -> Option<u32> {
        let labelled = self.nexthops.only_labelled(group)?;
        let _ = packet.set_len(whole);
        mpls::plain4(labelled, packet)
    }
}

#[inline(always)]
fn word(frame: &[u8; PLAIN], at: usize) -> u64 {
    frame.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
