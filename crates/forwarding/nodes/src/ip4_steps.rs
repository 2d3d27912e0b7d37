//! The steps of forwarding plain IPv4, each once: validate, look up, rewrite or push labels.
//!
//! *Plain* is an unfragmented buffer with a header of 20 bytes, a right checksum, and addresses of two hosts,
//! of which the source is not this router's for certain. Nodes and
//! fast paths are composed of these steps; they run in workers. A step takes a packet only if each of its rules is met. Otherwise
//! the packet is unchanged and goes to the node of the protocol, which finds the reason. The rules of rewriting are in
//! `ip4_rewrite.rs`, those of labels in `mpls`.

use weir_acl::Wire4;
use weir_buf::{Flags, Pkt};
use weir_fib::{FullFib4, Labelled, LargeFib4, NexthopView, SmallFib4};
use weir_port::interface::Interface;
use weir_port::own_addresses::OwnAddresses;
use weir_wire::{Ipv4Header, checksum};

use crate::frame::{ETHERNET, Own, send, types, word};
use crate::{ip4_input, ip4_rewrite, mpls};

/// Bytes of a plain packet's headers.
pub(crate) const PLAIN: usize = ETHERNET + Ipv4Header::LEN;
/// Bytes of a plain packet up to the end of its ports.
const KEYED: usize = PLAIN + 4;
/// Bytes of a frame in which all lies that access lists ask for, as it is read.
const READ: usize = ETHERNET + 8 + Wire4::OCTETS;

/// Where a fragment belongs (RFC 791 section 3.1), in little-endian order.
const FRAGMENT_OFFSET: u64 = 0xff1f;

/// EtherType 0x0800, version 4 and five words of header, as bytes 12 to 14 of a frame in little-endian order.
const IP4_PLAIN: u32 = 0x45_0008;
const IP4_MASK: u32 = 0xff_ffff;

/// What matters of a plain packet's header.
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

impl Plain {
    /// Prepares the packet for ip4-lookup.
    #[inline(always)]
    pub(crate) fn mark(&self, packet: &mut Pkt) {
        packet.set_aux(self.destination);
        packet.set_l3_offset(ETHERNET);
        packet.set_flags(Flags::PLAIN_IP4);
        if self.whole != packet.len() {
            let _ = packet.set_len(self.whole);
        }
    }
}

/// The IPv4 header behind an Ethernet header as words (RFC 791 section 3.1), in little-endian order.
#[derive(Clone, Copy)]
struct Header {
    sizes: u64,
    hops: u64,
    destination: u32,
}

impl Header {
    #[inline(always)]
    fn read(frame: &[u8; PLAIN]) -> Header {
        let destination = frame
            .last_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Header {
            sizes: word(frame, ETHERNET),
            hops: word(frame, ETHERNET + 8),
            destination,
        }
    }

    #[inline(always)]
    fn has_valid_checksum(self) -> bool {
        checksum::ipv4_words_ok(self.sizes, self.hops, self.destination)
    }

    #[inline(always)]
    fn is_between_hosts(self) -> bool {
        ip4_input::between_hosts((self.hops >> 32) as u8, self.destination as u8)
    }

    /// Whether the source may be an address of this router.
    #[inline(always)]
    fn may_be_from(self, own: &OwnAddresses) -> bool {
        own.may_have4((self.hops >> 32) as u32)
    }

    /// Bytes of the frame without what Ethernet padded.
    #[inline(always)]
    fn whole(self) -> usize {
        ETHERNET + usize::from(((self.sizes >> 16) as u16).swap_bytes())
    }

    #[inline(always)]
    fn plain(self) -> Plain {
        Plain {
            destination: self.destination.swap_bytes(),
            whole: self.whole(),
            hops: self.hops as u32,
            service: (self.sizes >> 8) as u8,
        }
    }

    /// The packet, if it is plain. `matches`: version, header length and what the caller compares besides.
    #[inline(always)]
    fn validated(self, matches: bool, own: &OwnAddresses, len: usize) -> Option<Plain> {
        let between = self.is_between_hosts() & !self.may_be_from(own);
        if !(matches & (self.has_valid_checksum() & between)) {
            return None;
        }
        let plain = self.plain();
        (plain.whole <= len && plain.whole >= PLAIN).then_some(plain)
    }
}

/// Validates the IPv4 header in a frame of `len` bytes, which is in one piece.
#[inline(always)]
pub(crate) fn validate(own: &OwnAddresses, frame: &[u8; PLAIN], len: usize) -> Option<Plain> {
    let header = Header::read(frame);
    header.validated(header.sizes as u8 == 0x45, own, len)
}

/// The same for a frame that came in, which has to be for this router.
#[inline(always)]
fn validate_received(
    own: Own<'_>,
    frame: &[u8; PLAIN],
    len: usize,
    chained: bool,
) -> Option<Plain> {
    let matches =
        own.mac.is_destination_of(frame) & (types(frame) & IP4_MASK == IP4_PLAIN) & !chained;
    Header::read(frame).validated(matches, own.addresses, len)
}

/// Validates a packet that came in and prepares it for ip4-lookup; `false`, and nothing is changed, if it is not plain. A frame
/// to a group never is.
#[inline(always)]
pub(crate) fn receive(own: Own<'_>, packet: &mut Pkt) -> bool {
    let (len, chained) = (packet.len(), packet.is_chained());
    let plain = packet
        .data()
        .first_chunk()
        .and_then(|frame| validate_received(own, frame, len, chained));
    plain.inspect(|plain| plain.mark(packet)).is_some()
}

/// The same for a packet whatever its Ethernet header is.
pub(crate) fn receive_payload(own: &OwnAddresses, packet: &mut Pkt) -> bool {
    let frame = packet.data().first_chunk().filter(|_| !packet.is_chained());
    let plain = frame.and_then(|frame| validate(own, frame, packet.len()));
    plain.inspect(|plain| plain.mark(packet)).is_some()
}

/// A table in which packets are looked up in two steps, between which memory has time to answer.
pub(crate) trait Table4: Copy {
    /// Packets that take the first step before one takes the second.
    const EARLY: usize;
    /// What the first step found.
    type Between: Copy + Default;
    /// Prefetches what the second step reads. Nothing is known of the packet yet: any address will do.
    fn first(self, address: u32) -> Self::Between;
    /// The group.
    fn last(self, address: u32, first: Self::Between) -> u32;
}

/// It is in the cache, if not in the nearest.
impl Table4 for SmallFib4<'_> {
    const EARLY: usize = 0;
    type Between = ();

    #[inline(always)]
    fn first(self, _: u32) {}

    #[inline(always)]
    fn last(self, address: u32, (): ()) -> u32 {
        self.lookup(address)
    }
}

/// One line in memory has the answer.
impl Table4 for FullFib4<'_> {
    /// More than the slowest memory takes, and fewer lines than a processor has under way before it drops some.
    const EARLY: usize = 24;
    type Between = ();

    #[inline(always)]
    fn first(self, address: u32) {
        self.announce(address);
    }

    #[inline(always)]
    fn last(self, address: u32, (): ()) -> u32 {
        self.lookup(address)
    }
}

impl Table4 for LargeFib4<'_> {
    const EARLY: usize = 16;
    type Between = u32;

    #[inline(always)]
    fn first(self, address: u32) -> u32 {
        LargeFib4::first(self, address)
    }

    #[inline(always)]
    fn last(self, address: u32, first: u32) -> u32 {
        LargeFib4::last(self, address, first)
    }
}

/// What a path over one interface's packets compares with, and where they may leave.
#[derive(Clone, Copy)]
pub(crate) struct Ip4Steps<'a> {
    own: Own<'a>,
    nexthops: NexthopView<'a>,
}

impl<'a> Ip4Steps<'a> {
    #[inline(always)]
    pub(crate) fn new(interface: &'a Interface, nexthops: NexthopView<'a>) -> Ip4Steps<'a> {
        Ip4Steps {
            own: Own::of(interface),
            nexthops,
        }
    }

    /// Whether there are paths that push labels.
    pub(crate) fn has_labels(self) -> bool {
        self.nexthops.has_labels()
    }

    /// Validates a packet, looks it up and sends it to a neighbour in use; its interface. `None`, and nothing is changed, for all
    /// else. `LABELS` says whether there are paths that push labels: their being there alone would cost every packet a tenth of its
    /// instructions.
    #[inline(always)]
    pub(crate) fn forward<F: Table4, const LABELS: bool>(
        self,
        table: F,
        first: F::Between,
        packet: &mut Pkt,
    ) -> Option<u32> {
        self.look_up_and_send::<F, LABELS, false>(table, first, packet)
    }

    /// The same for a packet that was validated, and cut to its length.
    #[inline(always)]
    pub(crate) fn forward_validated<F: Table4, const LABELS: bool>(
        self,
        table: F,
        first: F::Between,
        packet: &mut Pkt,
    ) -> Option<u32> {
        self.look_up_and_send::<F, LABELS, true>(table, first, packet)
    }

    #[inline(always)]
    fn look_up_and_send<F: Table4, const LABELS: bool, const VALIDATED: bool>(
        self,
        table: F,
        first: F::Between,
        packet: &mut Pkt,
    ) -> Option<u32> {
        // Read once: after a look at tables that others change, the compiler would read them anew.
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let plain = if VALIDATED {
            Plain {
                whole: len,
                ..Header::read(frame).plain()
            }
        } else {
            validate_received(self.own, frame, len, chained)?
        };
        let group = table.last(plain.destination, first);
        let Some(adjacency) = self.nexthops.only_neighbor(group) else {
            return if LABELS {
                push(self.nexthops, packet, group, plain)
            } else {
                None
            };
        };
        let interface = ip4_rewrite::head(adjacency, plain.whole, plain.hops, frame)?;
        Some(send(packet, len, plain.whole, interface))
    }

    /// The key of a packet for access lists, if it is plain, and no later fragment, and does not end before its ports. What Ethernet
    /// padded is cut off then, and added up in `padding`. That the packet is from one host to another is not validated: it is so when
    /// its flow is cached. An address may become the router's own while a flow is cached.
    #[inline(always)]
    pub(crate) fn key(self, packet: &mut Pkt, padding: &mut u64) -> Option<Wire4> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data().first_chunk::<READ>()?;
        let headers = frame.first_chunk::<PLAIN>()?;
        let header = Header::read(headers);
        let differs = self.own.mac.difference(headers)
            | u64::from(types(headers) & IP4_MASK ^ IP4_PLAIN)
            | (header.sizes >> 48 & FRAGMENT_OFFSET)
            | u64::from(chained);
        if differs != 0 || !header.has_valid_checksum() || header.may_be_from(self.own.addresses) {
            return None;
        }
        let key = Wire4::new(frame.last_chunk()?);
        let whole = header.whole();
        if whole != len {
            if whole > len || whole < KEYED {
                return None;
            }
            *padding += (len - whole) as u64;
            let _ = packet.set_len(whole);
        }
        Some(key)
    }

    /// The key of a packet that [`Ip4Steps::key`] has one of, if it is from one host to another.
    pub(crate) fn key_of_host(self, packet: &mut Pkt) -> Option<Wire4> {
        let key = self.key(packet, &mut 0)?;
        let header = Header::read(packet.data().first_chunk()?);
        header.is_between_hosts().then_some(key)
    }
}

/// Pushes the labels of a group: one in the usual case.
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

/// The destination of a packet, if it is IPv4.
#[inline(always)]
pub(crate) fn destination(packet: &Pkt) -> u32 {
    packet
        .data()
        .first_chunk::<PLAIN>()
        .and_then(|frame| frame.last_chunk())
        .map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// The source of a packet, if it is IPv4.
#[inline(always)]
pub(crate) fn source(packet: &Pkt) -> u32 {
    packet.data().first_chunk::<PLAIN>().map_or(0, |frame| {
        ((word(frame, ETHERNET + 8) >> 32) as u32).swap_bytes()
    })
}
