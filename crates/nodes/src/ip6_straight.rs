//! Plain IPv6 in one pass: the rules of eth-input, ip6-input, ip6-lookup and ip6-rewrite while a header is at hand.
//!
//! Not a node; as `ip4_straight.rs`, and used under the same conditions: a table that stays in the cache, nothing
//! between these nodes, nobody who follows packets. It takes a packet only if every rule is met; otherwise the
//! packet is unchanged and goes its way through the nodes, which find out what is odd.

use weir_buf::Pkt;
use weir_fib::{NexthopView, SmallFib6};
use weir_graph::Cx;
use weir_port::interface::Interface;
use weir_wire::{EthernetHeader, Ipv6Header, MacAddr};

use crate::{Tables, ip4_straight, ip6_input, ip6_rewrite};

/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;
/// Bytes of a plain packet's headers.
const PLAIN: usize = ETHERNET + Ipv6Header::LEN;

/// What a pass over one interface's packets compares with and looks up in.
#[derive(Clone, Copy)]
pub(crate) struct Straight6<'a> {
    /// The station's address as the upper six bytes of a word.
    station: u64,
    fib: SmallFib6<'a>,
    nexthops: NexthopView<'a>,
}

/// EtherType 0x86dd and version 6, as bytes 12 to 14 of a frame in little-endian order, and where they are.
const IP6_PLAIN: u64 = 0x60_dd86;
const IP6_MASK: u64 = 0xf0_ffff;

impl<'a> Straight6<'a> {
    /// What plain IPv6 of an interface is forwarded with in one pass, if it can be.
    #[inline(always)]
    pub(crate) fn of(cx: &Cx<'a, Tables>, interface: &Interface) -> Option<Straight6<'a>> {
        if cx.is_traced() || !ip4_straight::is_open(interface.features) || interface.addresses6.is_empty() {
            return None;
        }
        let MacAddr([a, b, c, d, e, f]) = interface.mac;
        let fib = cx.world.fib6.get(interface.table as usize)?.small()?;
        Some(Straight6 { station: u64::from_le_bytes([0, 0, a, b, c, d, e, f]), fib, nexthops: cx.world.nexthops.view() })
    }

    /// Forwards a plain packet for this station to a neighbour in use, and returns the interface. `None`, and
    /// nothing is changed, for all else.
    #[inline(always)]
    pub(crate) fn forward(self, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        // The headers once, as words: MAC addresses and types, lengths and hops (RFC 8200 section 3), the destination.
        let (stations, types, hops) = (word(frame, 0), word(frame, 8), word(frame, ETHERNET));
        let (upper, lower) = (word(frame, ETHERNET + 24), word(frame, ETHERNET + 32));
        let ours = (stations << 16 == self.station) & (types >> 32 & IP6_MASK == IP6_PLAIN) & !chained;
        let between = ip6_input::between_hosts(frame[ETHERNET + 8], upper as u8);
        let payload = usize::from(((hops >> 32) as u16).swap_bytes());
        let whole = PLAIN + payload;
        if !(ours & between & (payload != 0)) || whole > len {
            return None;
        }
        let adjacency = self.nexthops.only_neighbor(self.fib.lookup(upper.swap_bytes(), lower.swap_bytes()))?;
        let interface = ip6_rewrite::head(adjacency, whole, (hops >> 56) as u8, frame)?;
        if whole != len {
            // What Ethernet padded is cut off.
            let _ = packet.set_len(whole);
        }
        packet.set_aux(interface);
        Some(interface)
    }
}

#[inline(always)]
fn word(frame: &[u8; PLAIN], at: usize) -> u64 {
    frame.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
