//! The steps of forwarding plain IPv6, each once: validate, look up, rewrite. As `ip4_steps.rs`.
//!
//! *Plain* is an unfragmented buffer with a payload, and addresses that are neither groups nor link-local nor special, nor, for the source,
//! this router's: what
//! passes here passes ip6-input, too, and goes on to ip6-lookup.

use std::hint::cold_path;

use weir_acl::{Key6, Upper};
use weir_buf::{Flags, Pkt};
use weir_cpu::{AnyMachine, Code};
use weir_fib::{Adjacency, LargeFib6, NexthopView, SmallFib6, Way6};
use weir_port::interface::Interface;
use weir_wire::{IpProtocol, Ipv6Header};

use crate::frame::{ETHERNET, Own, send, types, word};
use crate::ip6_rewrite;

/// Bytes of a plain packet's headers.
const PLAIN: usize = ETHERNET + Ipv6Header::LEN;

/// EtherType 0x86dd and version 6, as bytes 12 to 14 of a frame in little-endian order, and where they are.
const IP6_PLAIN: u32 = 0x60_dd86;
const IP6_MASK: u32 = 0xf0_ffff;

/// What matters of a plain packet's header (RFC 8200 section 3).
#[derive(Clone, Copy)]
struct Plain {
    /// Bytes of the frame without what Ethernet padded.
    whole: usize,
    /// The hop limit.
    hops: u8,
    /// The upper half of the destination, in little-endian order.
    upper: u64,
}

/// Validates the header of a frame of `len` bytes that came in.
#[inline(always)]
fn validate_received(
    own: Own<'_>,
    frame: &[u8; PLAIN],
    len: usize,
    chained: bool,
) -> Option<Plain> {
    // The headers once, as words: MAC addresses and types, lengths and hops, the destination.
    let (types, sizes, upper) = (types(frame), word(frame, ETHERNET), upper(frame));
    let ours = own.mac.is_destination_of(frame) & (types & IP6_MASK == IP6_PLAIN) & !chained;
    let between = between_hosts(frame[ETHERNET + 8], upper as u8);
    let (source, below) = (word(frame, ETHERNET + 8), word(frame, ETHERNET + 16));
    let foreign = !own.addresses.may_have6(source, below);
    let whole = PLAIN + usize::from(((sizes >> 32) as u16).swap_bytes());
    // A payload of no length is empty, or a jumbogram's (RFC 2675).
    if !(ours & between & foreign & (whole != PLAIN)) || whole > len {
        return None;
    }
    Some(Plain {
        whole,
        hops: (sizes >> 56) as u8,
        upper,
    })
}

/// Whether a packet from and to addresses with these first octets is between two hosts.
#[inline(always)]
fn between_hosts(source: u8, destination: u8) -> bool {
    // `::/8` holds all that is special, `fe00::/8` what is link-local, `ff00::/8` groups: two more make 0 to 2.
    (source.wrapping_add(2) > 2) & (destination.wrapping_add(2) > 2)
}

/// Validates a packet that came in and prepares it for ip6-lookup; `false`, and nothing is changed, if it is not plain.
#[inline(always)]
pub(crate) fn receive(own: Own<'_>, packet: &mut Pkt) -> bool {
    let (len, chained) = (packet.len(), packet.is_chained());
    let plain = packet
        .data()
        .first_chunk()
        .and_then(|frame| validate_received(own, frame, len, chained));
    let Some(Plain { whole, .. }) = plain else {
        return false;
    };
    packet.set_l3_offset(ETHERNET);
    packet.set_flags(Flags::PLAIN_IP6);
    if whole != len {
        let _ = packet.set_len(whole);
    }
    true
}

/// What a path over one interface's packets compares with, and where they may leave.
#[derive(Clone, Copy)]
pub(crate) struct Ip6Steps<'a> {
    own: Own<'a>,
    nexthops: NexthopView<'a>,
}

impl<'a> Ip6Steps<'a> {
    #[inline(always)]
    pub(crate) fn new(interface: &'a Interface, nexthops: NexthopView<'a>) -> Ip6Steps<'a> {
        Ip6Steps {
            own: Own::of(interface),
            nexthops,
        }
    }

    /// Validates a packet, looks it up and sends it to a neighbour in use; its interface. `None`, and nothing is changed, for
    /// all else.
    #[inline(always)]
    pub(crate) fn forward(self, fib: SmallFib6<'_>, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let plain = validate_received(self.own, frame, len, chained)?;
        let lower = word(frame, ETHERNET + 32);
        let group = fib.lookup(plain.upper.swap_bytes(), lower.swap_bytes());
        let neighbor = self.nexthops.only_neighbor(group)?;
        let interface = ip6_rewrite::head(neighbor, plain.whole, plain.hops, frame)?;
        Some(send(packet, len, plain.whole, interface))
    }

    /// Looks a packet up in a large table: the first step, before anything is known of the packet.
    #[inline(always)]
    pub(crate) fn first(fib: LargeFib6<'_>, packet: &Pkt) -> Way6 {
        let Some(frame) = packet.data().first_chunk::<PLAIN>() else {
            cold_path();
            return Way6::default();
        };
        fib.first(upper(frame).swap_bytes())
    }

    /// The same with the source.
    #[inline(always)]
    pub(crate) fn first_of_source(fib: LargeFib6<'_>, packet: &Pkt) -> Way6 {
        fib.first((source(packet) >> 64) as u64)
    }

    /// All steps of a lookup at once.
    pub(crate) fn look_up(self, fib: LargeFib6<'_>, packet: &Pkt) -> Option<&'a Adjacency> {
        let mut way = Ip6Steps::first(fib, packet);
        fib.second(AnyMachine, &mut way);
        self.neighbor(AnyMachine, fib, &way, packet)
    }

    /// The last step, after those of the table alone: the neighbour, if it is one.
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

    /// Validates a packet that was looked up and sends it to its neighbour.
    #[inline(always)]
    pub(crate) fn send(self, neighbor: Option<&Adjacency>, packet: &mut Pkt) -> Option<u32> {
        let (len, chained) = (packet.len(), packet.is_chained());
        let frame = packet.data_mut().first_chunk_mut::<PLAIN>()?;
        let plain = validate_received(self.own, frame, len, chained)?;
        let interface = ip6_rewrite::head(neighbor?, plain.whole, plain.hops, frame)?;
        Some(send(packet, len, plain.whole, interface))
    }
}

/// The upper half of the destination, in little-endian order.
#[inline(always)]
fn upper(frame: &[u8; PLAIN]) -> u64 {
    word(frame, ETHERNET + 24)
}

/// The source of a packet, if it is IPv6.
#[inline(always)]
pub(crate) fn source(packet: &Pkt) -> u128 {
    let source = packet
        .data()
        .get(ETHERNET + 8..)
        .and_then(|rest| rest.first_chunk());
    source.map_or(0, |octets| u128::from_be_bytes(*octets))
}

/// The key of a packet for access lists, as they read it from its header on. `None` if that does not have all that terms can ask for, or
/// is a later fragment. Nothing is validated.
#[inline(always)]
pub(crate) fn key(packet: &Pkt) -> Option<Key6> {
    let frame = packet.data().first_chunk::<KEYED>()?;
    let protocol = IpProtocol(frame[ETHERNET + 6]);
    let payload = u16::from_be_bytes([frame[ETHERNET + 4], frame[ETHERNET + 5]]);
    if !matches!(protocol, IpProtocol::TCP | IpProtocol::UDP) || payload < 4 {
        cold_path();
        return key_of_other(packet);
    }
    let (addresses, ports) = frame[ETHERNET + 8..].split_first_chunk::<32>()?;
    let (source, destination) = (addresses.first_chunk()?, addresses.last_chunk()?);
    let [a, b, c, d] = *ports.first_chunk()?;
    let ports = Upper::Ports(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(Key6::new(source, destination, protocol, ports))
}

#[inline(never)]
fn key_of_other(packet: &Pkt) -> Option<Key6> {
    let key = Key6::read(packet.data().get(ETHERNET..)?)?;
    matches!(key.upper(), Upper::Ports(..)).then_some(key)
}

/// Bytes of a frame with ports behind the header.
const KEYED: usize = PLAIN + 4;
