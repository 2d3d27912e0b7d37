//! Plain IPv4 in one pass: the rules of eth-input, ip4-input, ip4-lookup and ip4-rewrite while a header is at hand.
//!
//! Not a node. eth-input uses it on a routed interface when nothing lies between these nodes and nobody follows
//! packets: a pass over 256 frames costs more than any of the steps, and what one pass leaves in the handles for the
//! next costs again. With a large table a lookup waits for memory; then the packets take their steps in blocks by
//! turns (`each::staged`), so that some are examined and some rewritten while others' entries come. It takes a packet only if every rule is met;
//! otherwise the packet is unchanged and goes its way through the nodes, which find out what is odd.

use weir_buf::Pkt;
use weir_fib::{Labelled, LargeFib4, NexthopView, SmallFib4};
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

/// What a pass over one interface's packets compares with, and where they may leave.
#[derive(Clone, Copy)]
pub(crate) struct Straight<'a> {
    /// The station's address as the upper six bytes of a word.
    station: u64,
    nexthops: NexthopView<'a>,
}

/// EtherType 0x0800, version 4 and five words of header, as bytes 12 to 14 of a frame in little-endian order.
const IP4_PLAIN: u64 = 0x45_0008;

/// A plain packet's header.
#[derive(Clone, Copy)]
struct Plain {
    destination: u32,
    /// Bytes of the frame without what Ethernet padded.
    whole: usize,
    /// Time to live, protocol and checksum.
    hops: u32,
}

/// A packet of a large table between the steps of its lookup. What is not plain has destination 0, which no
/// plain packet has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Way {
    destination: u32,
    first: u32,
}

impl<'a> Straight<'a> {
    #[inline(always)]
    pub(crate) fn new(MacAddr([a, b, c, d, e, f]): MacAddr, nexthops: NexthopView<'a>) -> Straight<'a> {
        Straight { station: u64::from_le_bytes([0, 0, a, b, c, d, e, f]), nexthops }
    }

    /// Forwards a plain packet for this station to a neighbour in use, and returns the interface. `None`, and
    /// nothing is changed, for all else. `LABELS` says whether there are paths that push labels: their being there
    /// alone would cost every packet a tenth of its instructions.
    #[inline(always)]
    pub(crate) fn forward<const LABELS: bool>(self, fib: SmallFib4<'_>, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let plain = self.examine(frame, len, chained)?;
        let group = fib.lookup(plain.destination);
        let Some(adjacency) = self.nexthops.only_neighbor(group) else { return self.push::<LABELS>(packet, group, plain.whole) };
        let interface = ip4_rewrite::head(adjacency, plain.whole, plain.hops, frame)?;
        Some(leave(packet, len, plain.whole, interface))
    }

    /// What the steps with a large table need first, which follow soon.
    #[inline(always)]
    pub(crate) fn announce(fib: LargeFib4<'_>, packet: &Pkt) {
        if let Some(frame) = packet.data().first_chunk::<PLAIN>() {
            fib.announce(u16::from_be_bytes([frame[PLAIN - 4], frame[PLAIN - 3]]));
        }
    }

    /// The same as [`Straight::forward`] with a large table, in steps between which other packets have theirs: first, …
    #[inline(always)]
    pub(crate) fn first(self, fib: LargeFib4<'_>, packet: &Pkt) -> Way {
        let frame = packet.data().first_chunk::<PLAIN>();
        match frame.and_then(|frame| self.examine(frame, packet.len(), packet.is_chained())) {
            Some(Plain { destination, .. }) => Way { destination, first: fib.first(destination) },
            None => Way::default(),
        }
    }

    /// … and at last. What was examined is right still.
    #[inline(always)]
    pub(crate) fn last<const LABELS: bool>(self, fib: LargeFib4<'_>, way: Way, packet: &mut Pkt) -> Option<u32> {
        if way.destination == 0 {
            return None;
        }
        let len = packet.len();
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let (whole, hops) = (whole(word(frame, ETHERNET)), word(frame, ETHERNET + 8) as u32);
        let group = fib.last(way.destination, way.first);
        let Some(adjacency) = self.nexthops.only_neighbor(group) else { return self.push::<LABELS>(packet, group, whole) };
        let interface = ip4_rewrite::head(adjacency, whole, hops, frame)?;
        Some(leave(packet, len, whole, interface))
    }

    #[inline(always)]
    fn push<const LABELS: bool>(self, packet: &mut Pkt, group: u32, whole: usize) -> Option<u32> {
        if LABELS { push(self.nexthops, packet, group, whole) } else { None }
    }

    /// Whether there are paths that push labels.
    pub(crate) fn has_labels(self) -> bool {
        self.nexthops.has_labels()
    }

    /// Whether these are the headers of a plain packet for this station.
    #[inline(always)]
    fn examine(self, frame: &[u8; PLAIN], len: usize, chained: bool) -> Option<Plain> {
        // The headers once, as words: MAC addresses and types, then the IPv4 header (RFC 791 3.1).
        let (stations, types) = (word(frame, 0), word(frame, 8));
        let (sizes, hops) = (word(frame, ETHERNET), word(frame, ETHERNET + 8));
        let destination = frame.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let ours = (stations << 16 == self.station) & (types >> 32 & 0xff_ffff == IP4_PLAIN) & !chained;
        let sound = checksum::ipv4_words_ok(sizes, hops, destination) & ip4_input::between_hosts((hops >> 32) as u8, destination as u8);
        if !(ours & sound) {
            return None;
        }
        let whole = whole(sizes);
        if whole > len || whole < PLAIN {
            return None;
        }
        Some(Plain { destination: destination.swap_bytes(), whole, hops: hops as u32 })
    }
}

/// Where the group's packets get labels: one in the usual case.
#[inline(always)]
fn push(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32, whole: usize) -> Option<u32> {
    let labelled = nexthops.only_labelled(group)?;
    match labelled.only_push() {
        Some(entry) => mpls::one4(labelled, entry, packet, whole),
        None => push_stack(labelled, packet, whole),
    }
}

#[inline(never)]
fn push_stack(labelled: &Labelled, packet: &mut Pkt, whole: usize) -> Option<u32> {
    let _ = packet.set_len(whole);
    mpls::plain4(labelled, packet)
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

/// Bytes of a frame, as the first word of its IPv4 header tells.
#[inline(always)]
fn whole(sizes: u64) -> usize {
    ETHERNET + usize::from(((sizes >> 16) as u16).swap_bytes())
}

#[inline(always)]
fn word(frame: &[u8; PLAIN], at: usize) -> u64 {
    frame.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
