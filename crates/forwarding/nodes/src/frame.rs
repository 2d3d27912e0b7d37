//! What the steps of several protocols read and write of a frame in one piece.
//!
//! Headers are read as words in little-endian order: one load and one comparison take the place of several.

use weir_buf::Pkt;
use weir_graph::Outcome;
use weir_port::interface::Interface;
use weir_port::own_addresses::OwnAddresses;
use weir_wire::{EthernetHeader, MacAddr};

/// The time to live of packets that this router makes.
pub(crate) const OWN_TTL: u8 = 64;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = EthernetHeader::LEN;

/// An interface's MAC address as the upper six bytes of a word, ready to be compared with the start of a frame.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnMac(u64);

impl OwnMac {
    pub(crate) fn new(MacAddr([a, b, c, d, e, f]): MacAddr) -> OwnMac {
        OwnMac(u64::from_le_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// 0 in all bits if the frame is for this address, so that comparisons can be combined.
    #[inline(always)]
    pub(crate) fn difference<const LEN: usize>(self, frame: &[u8; LEN]) -> u64 {
        word(frame, 0) << 16 ^ self.0
    }

    #[inline(always)]
    pub(crate) fn is_destination_of<const LEN: usize>(self, frame: &[u8; LEN]) -> bool {
        self.difference(frame) == 0
    }
}

/// What a packet that came in is compared with: the interface's MAC address, and the addresses that no packet from outside may
/// come from.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) mac: OwnMac,
    pub(crate) addresses: &'a OwnAddresses,
}

impl<'a> Own<'a> {
    #[inline(always)]
    pub(crate) fn of(interface: &'a Interface) -> Own<'a> {
        Own {
            mac: OwnMac::new(interface.mac),
            addresses: &interface.own,
        }
    }
}

/// Eight bytes of a frame; 0 when they are not within.
#[inline(always)]
pub(crate) fn word<const LEN: usize>(frame: &[u8; LEN], at: usize) -> u64 {
    frame
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The ethertype and the first two bytes behind the Ethernet header.
#[inline(always)]
pub(crate) fn types<const LEN: usize>(frame: &[u8; LEN]) -> u32 {
    frame
        .get(ETHERNET - 2..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Cuts a rewritten packet of `len` bytes to its `whole` bytes, without what Ethernet padded, and gives it to `interface`.
#[inline(always)]
pub(crate) fn send(packet: &mut Pkt, len: usize, whole: usize, interface: u32) -> u32 {
    if whole != len {
        let _ = packet.set_len(whole);
    }
    packet.set_aux(interface);
    interface
}

/// By which interfaces the packets of a vector leave.
pub(crate) struct Egress {
    /// All of them, bit by bit.
    all: u32,
    any: u32,
    /// Some packet does not leave from here.
    pub(crate) incomplete: bool,
}

impl Default for Egress {
    fn default() -> Egress {
        Egress {
            all: u32::MAX,
            any: 0,
            incomplete: false,
        }
    }
}

impl Egress {
    #[inline(always)]
    pub(crate) fn note(&mut self, interface: u32) {
        self.all &= interface;
        self.any |= interface;
    }

    /// The interface that all packets leave by, if it is one.
    #[inline(always)]
    pub(crate) fn only(&self) -> Option<u32> {
        (!self.incomplete && self.all == self.any).then_some(self.any)
    }

    /// The verdicts are written, [`weir_graph::Verdict::OUT`] for what leaves.
    #[inline(always)]
    pub(crate) fn outcome(self) -> Outcome {
        self.only().map_or(Outcome::Each, Outcome::AllOut)
    }
}
