//! Plain IPv4 in one pass: the rules of eth-input, ip4-input, ip4-lookup and ip4-rewrite while a header is at hand.
//!
//! Not a node. eth-input uses it on a routed interface when nothing lies between these nodes and nobody follows
//! packets: a pass over 256 frames costs more than any of the steps, and what one pass leaves in the handles for the
//! next costs again. With a large table a lookup waits for memory; then the packets take their steps in blocks by
//! turns (`vector_loops::staged`), so that some are examined and some rewritten while others' entries come. It takes a packet only if every rule is met;
//! otherwise the packet is unchanged and goes its way through the nodes, which find out what is odd.

use weir_acl::Wire4;
use weir_buf::Pkt;
use weir_fib::{FullFib4, Labelled, LargeFib4, NexthopView, SmallFib4};
use weir_port::interface::{Feature, Features, Interface};
use weir_port::own_addresses::OwnAddresses;
use weir_wire::{EthernetHeader, Ipv4Header, MacAddr, checksum};

use crate::{ip4_input, ip4_rewrite, mpls};

/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;
/// Bytes of a plain packet's headers.
pub(crate) const PLAIN: usize = ETHERNET + Ipv4Header::LEN;

/// Whether nothing on an interface stands between receipt and lookup.
pub(crate) fn is_open(features: Features) -> bool {
    !features.has(Feature::AclIn) && is_open_but_for_lists(features)
}

/// Whether nothing does but access lists, if any.
pub(crate) fn is_open_but_for_lists(features: Features) -> bool {
    ![Feature::Urpf, Feature::Policer]
        .into_iter()
        .any(|feature| features.has(feature))
}

/// What a pass over one interface's packets compares with, and where they may leave.
#[derive(Clone, Copy)]
pub(crate) struct Ip4Steps<'a> {
    /// The station's address as the upper six bytes of a word.
    station: u64,
    /// Addresses that no packet from outside may come from.
    own: &'a OwnAddresses,
    nexthops: NexthopView<'a>,
}

/// Bytes of a plain packet up to the end of its ports.
const KEYED: usize = PLAIN + 4;
/// Bytes of a frame in which all lies that access lists ask for, as it is read.
const READ: usize = ETHERNET + 8 + Wire4::OCTETS;

/// Where a fragment belongs (RFC 791 section 3.1), in little-endian order.
const FRAGMENT_OFFSET: u64 = 0xff1f;

/// EtherType 0x0800, version 4 and five words of header, as bytes 12 to 14 of a frame in little-endian order.
const IP4_PLAIN: u32 = 0x45_0008;
const IP4_MASK: u32 = 0xff_ffff;

/// A plain packet's header.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    pub(crate) destination: u32,
    /// Bytes of the frame without what Ethernet padded.
    pub(crate) whole: usize,
    /// Time to live, protocol and checksum.
    pub(crate) hops: u32,
    /// The type of service.
    pub(crate) service: u8,
}

/// A table in which packets are looked up in two steps.
pub(crate) trait Table: Copy {
    /// What is known between them.
    type Between: Copy + Default;
    /// Asks memory for what the second step needs, or looks up at once.
    fn first(self, destination: u32) -> Self::Between;
    /// Told what the first gave; the group.
    fn last(self, destination: u32, first: Self::Between) -> u32;
}

impl Table for LargeFib4<'_> {
    type Between = u32;

    #[inline(always)]
    fn first(self, destination: u32) -> u32 {
        LargeFib4::first(self, destination)
    }

    #[inline(always)]
    fn last(self, destination: u32, first: u32) -> u32 {
        LargeFib4::last(self, destination, first)
    }
}

/// It is in the cache, if not in the nearest: one step does, the first.
impl Table for SmallFib4<'_> {
    /// The group.
    type Between = u32;

    #[inline(always)]
    fn first(self, destination: u32) -> u32 {
        self.lookup(destination)
    }

    #[inline(always)]
    fn last(self, _: u32, group: u32) -> u32 {
        group
    }
}

/// A table in which a packet is looked up at once.
pub(crate) trait Near: Copy {
    /// The group.
    fn group(self, destination: u32) -> u32;
}

impl Near for SmallFib4<'_> {
    #[inline(always)]
    fn group(self, destination: u32) -> u32 {
        self.lookup(destination)
    }
}

/// What it reads was asked for.
impl Near for FullFib4<'_> {
    #[inline(always)]
    fn group(self, destination: u32) -> u32 {
        self.lookup(destination)
    }
}

/// A packet of a large table between the steps of its lookup. What is not plain has destination 0, which no
/// plain packet has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Way {
    destination: u32,
    first: u32,
}

impl<'a> Ip4Steps<'a> {
    #[inline(always)]
    pub(crate) fn new(interface: &'a Interface, nexthops: NexthopView<'a>) -> Ip4Steps<'a> {
        let MacAddr([a, b, c, d, e, f]) = interface.mac;
        Ip4Steps {
            station: u64::from_le_bytes([0, 0, a, b, c, d, e, f]),
            own: &interface.own,
            nexthops,
        }
    }

    /// Forwards a plain packet for this station to a neighbour in use, and returns the interface. `None`, and
    /// nothing is changed, for all else. `LABELS` says whether there are paths that push labels: their being there
    /// alone would cost every packet a tenth of its instructions.
    #[inline(always)]
    pub(crate) fn forward<const LABELS: bool>(
        self,
        fib: impl Near,
        packet: &mut Pkt,
    ) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let plain = self.examine(frame, len, chained)?;
        let group = fib.group(plain.destination);
        let Some(adjacency) = self.nexthops.only_neighbor(group) else {
            return self.push::<LABELS>(packet, group, plain);
        };
        let interface = ip4_rewrite::head(adjacency, plain.whole, plain.hops, frame)?;
        Some(leave(packet, len, plain.whole, interface))
    }

    /// What [`Ip4Steps::forward`] with a full table reads, which follows soon.
    #[inline(always)]
    pub(crate) fn ask(fib: FullFib4<'_>, packet: &Pkt) {
        if let Some(frame) = packet.data().first_chunk::<PLAIN>() {
            fib.announce(
                frame
                    .last_chunk()
                    .map_or(0, |octets| u32::from_be_bytes(*octets)),
            );
        }
    }

    /// What the steps with a large table need first, which follow soon.
    #[inline(always)]
    pub(crate) fn announce(fib: LargeFib4<'_>, packet: &Pkt) {
        if let Some(frame) = packet.data().first_chunk::<PLAIN>() {
            fib.announce(u16::from_be_bytes([frame[PLAIN - 4], frame[PLAIN - 3]]));
        }
    }

    /// The same as [`Ip4Steps::forward`] with a large table, in steps between which other packets have theirs: first, …
    #[inline(always)]
    pub(crate) fn first(self, fib: LargeFib4<'_>, packet: &Pkt) -> Way {
        let frame = packet.data().first_chunk::<PLAIN>();
        match frame.and_then(|frame| self.examine(frame, packet.len(), packet.is_chained())) {
            Some(Plain { destination, .. }) => Way {
                destination,
                first: fib.first(destination),
            },
            None => Way::default(),
        }
    }

    /// … and at last. What was examined is right still.
    #[inline(always)]
    pub(crate) fn last<const LABELS: bool>(
        self,
        fib: LargeFib4<'_>,
        way: Way,
        packet: &mut Pkt,
    ) -> Option<u32> {
        if way.destination == 0 {
            return None;
        }
        self.leave::<LABELS>(fib.last(way.destination, way.first), bytes(packet), packet)
    }

    /// A packet that was examined, of `whole` bytes, to the group that it was found to go to.
    #[inline(always)]
    pub(crate) fn leave<const LABELS: bool>(
        self,
        group: u32,
        whole: usize,
        packet: &mut Pkt,
    ) -> Option<u32> {
        let len = packet.len();
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let Header {
            sizes,
            hops,
            destination,
        } = Header::read(frame);
        let plain = Plain {
            destination: destination.swap_bytes(),
            whole,
            hops: hops as u32,
            service: (sizes >> 8) as u8,
        };
        let Some(adjacency) = self.nexthops.only_neighbor(group) else {
            return self.push::<LABELS>(packet, group, plain);
        };
        let interface = ip4_rewrite::head(adjacency, whole, plain.hops, frame)?;
        Some(leave(packet, len, whole, interface))
    }

    /// The key of a packet for access lists, and its destination, if it is plain, and no later fragment, and does not end before its
    /// ports. What Ethernet padded is cut off then, and added up in `padding`. That the packet is from one host to another is not
    /// inspected: it is so when its flow is known. An address may become the router's own while its flow is known.
    #[inline(always)]
    pub(crate) fn key(self, packet: &mut Pkt, padding: &mut u64) -> Option<(Wire4, u32)> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data().first_chunk::<READ>()?;
        let headers = frame.first_chunk::<PLAIN>()?;
        let header = Header::read(headers);
        let odd = (word(headers, 0) << 16 ^ self.station)
            | u64::from(types(headers) & IP4_MASK ^ IP4_PLAIN)
            | (header.sizes >> 48 & FRAGMENT_OFFSET)
            | u64::from(chained);
        if odd != 0 || !header.is_right() || header.may_be_own(self.own) {
            return None;
        }
        let found = (
            Wire4::new(frame.last_chunk()?),
            header.destination.swap_bytes(),
        );
        let whole = whole(header.sizes);
        if whole != len {
            if whole > len || whole < KEYED {
                return None;
            }
            *padding += (len - whole) as u64;
            let _ = packet.set_len(whole);
        }
        Some(found)
    }

    /// The key of a packet that [`Ip4Steps::key`] has one of, if it is from one host to another.
    pub(crate) fn key_of_host(self, packet: &mut Pkt) -> Option<Wire4> {
        let (key, _) = self.key(packet, &mut 0)?;
        let header = Header::read(packet.data().first_chunk()?);
        header.is_sound(self.own).then_some(key)
    }

    #[inline(always)]
    fn push<const LABELS: bool>(self, packet: &mut Pkt, group: u32, plain: Plain) -> Option<u32> {
        if LABELS {
            push(self.nexthops, packet, group, plain)
        } else {
            None
        }
    }

    /// Whether there are paths that push labels.
    pub(crate) fn has_labels(self) -> bool {
        self.nexthops.has_labels()
    }

    /// Whether these are the headers of a plain packet for this station.
    #[inline(always)]
    fn examine(self, frame: &[u8; PLAIN], len: usize, chained: bool) -> Option<Plain> {
        let ours = (word(frame, 0) << 16 == self.station)
            & (types(frame) & IP4_MASK == IP4_PLAIN)
            & !chained;
        let header = Header::read(frame);
        if ours & header.is_sound(self.own) {
            header.plain(len)
        } else {
            None
        }
    }
}

/// The IPv4 header behind an Ethernet header as words (RFC 791 section 3.1), in little-endian order.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    sizes: u64,
    hops: u64,
    destination: u32,
}

impl Header {
    #[inline(always)]
    pub(crate) fn read(frame: &[u8; PLAIN]) -> Header {
        let destination = frame
            .last_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Header {
            sizes: word(frame, ETHERNET),
            hops: word(frame, ETHERNET + 8),
            destination,
        }
    }

    /// Whether version and length are those of a plain packet.
    #[inline(always)]
    pub(crate) fn is_usual(self) -> bool {
        self.sizes as u8 == 0x45
    }

    /// The type of service.
    #[inline(always)]
    pub(crate) fn service(self) -> u8 {
        (self.sizes >> 8) as u8
    }

    /// Whether the checksum is right and the packet is from one host to another, neither of them this router for certain.
    #[inline(always)]
    pub(crate) fn is_sound(self, own: &OwnAddresses) -> bool {
        let between_hosts =
            ip4_input::between_hosts((self.hops >> 32) as u8, self.destination as u8);
        self.is_right() & between_hosts & !self.may_be_own(own)
    }

    /// Whether the source may be an address of this router.
    #[inline(always)]
    fn may_be_own(self, own: &OwnAddresses) -> bool {
        own.may_have4((self.hops >> 32) as u32)
    }

    /// Whether the checksum is right.
    #[inline(always)]
    fn is_right(self) -> bool {
        checksum::ipv4_words_ok(self.sizes, self.hops, self.destination)
    }

    /// What of it matters in a frame of `len` bytes, if the packet ends within.
    #[inline(always)]
    pub(crate) fn plain(self, len: usize) -> Option<Plain> {
        let whole = whole(self.sizes);
        if whole > len || whole < PLAIN {
            return None;
        }
        Some(Plain {
            destination: self.destination.swap_bytes(),
            whole,
            hops: self.hops as u32,
            service: self.service(),
        })
    }
}

/// The type and the first bytes of the IPv4 header, in little-endian order.
#[inline(always)]
fn types(frame: &[u8; PLAIN]) -> u32 {
    frame
        .get(ETHERNET - 2..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Where the group's packets get labels: one in the usual case.
#[inline(always)]
fn push(nexthops: NexthopView<'_>, packet: &mut Pkt, group: u32, plain: Plain) -> Option<u32> {
    match nexthops.only_push(group) {
        Some((entry, below)) => mpls::one4(below, entry, packet, plain),
        None => push_stack(nexthops.only_labelled(group)?, packet, plain.whole),
    }
}

#[inline(never)]
fn push_stack(labelled: &Labelled, packet: &mut Pkt, whole: usize) -> Option<u32> {
    let _ = packet.set_len(whole);
    mpls::plain4(labelled, packet)
}

/// Readies a rewritten packet; gives its interface.
#[inline(always)]
pub(crate) fn leave(packet: &mut Pkt, len: usize, whole: usize, interface: u32) -> u32 {
    if whole != len {
        // What Ethernet padded is cut off.
        let _ = packet.set_len(whole);
    }
    packet.set_aux(interface);
    interface
}

/// Where a plain packet goes.
#[inline(always)]
pub(crate) fn destination(packet: &Pkt) -> u32 {
    packet
        .data()
        .first_chunk::<PLAIN>()
        .and_then(|frame| frame.last_chunk())
        .map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// Bytes of a plain packet's frame without what Ethernet padded.
#[inline(always)]
pub(crate) fn bytes(packet: &Pkt) -> usize {
    packet
        .data()
        .first_chunk::<PLAIN>()
        .map_or(0, |frame| whole(word(frame, ETHERNET)))
}

/// Bytes of a frame, as the first word of its IPv4 header tells.
#[inline(always)]
fn whole(sizes: u64) -> usize {
    ETHERNET + usize::from(((sizes >> 16) as u16).swap_bytes())
}

#[inline(always)]
fn word(frame: &[u8; PLAIN], at: usize) -> u64 {
    frame
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
