//! UDP datagrams out of captured frames, those too that were sent in fragments.
//!
//! Fragments wait until their packet is whole. Their number and size are bounded: the oldest packet is given up when there are too
//! many. Fragments may come in any order and twice; where they overlap, the one that came first counts (of IPv6, RFC 5722
//! forbids overlaps). A packet that never becomes whole is reported by [`UdpReader::finish`], with what its first fragment has.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::capture::{Transport, UdpPayload, transport, udp};

/// Packets whose fragments wait, at most.
const MOST_PACKETS: usize = 64;
/// Octets that an IP packet carries, at most.
const LARGEST: usize = 65_535;
/// Fragments of one packet, at most: each has eight octets or more.
const MOST_FRAGMENTS: usize = 1024;

/// A datagram of which not all fragments came: the number of the frame, the octets that came, source and destination.
pub type CutDatagram = (u64, Vec<u8>, (IpAddr, IpAddr));

/// Reads frames of captures, one after the other.
#[derive(Debug, Default)]
pub struct UdpReader {
    waiting: VecDeque<Packet>,
    whole: Vec<u8>,
    given_up: u64,
}

/// A packet whose fragments wait.
#[derive(Debug)]
struct Packet {
    /// Of the first frame that has a fragment of it.
    frame: u64,
    ends: (IpAddr, IpAddr),
    id: u32,
    /// Offset and octets, in the order of offsets, without overlaps.
    parts: Vec<(usize, Vec<u8>)>,
    /// Octets of the whole packet, when its last fragment came.
    length: Option<usize>,
}

impl UdpReader {
    /// One that has read nothing.
    #[must_use]
    pub fn new() -> UdpReader {
        UdpReader::default()
    }

    /// The UDP datagram in a frame, or the one that its fragment makes whole. `number` is the frame's.
    pub fn read<'a>(
        &'a mut self,
        number: u64,
        link_type: u32,
        frame: &'a [u8],
    ) -> Option<UdpPayload<'a>> {
        let found = transport(link_type, frame).filter(|found| found.protocol == 17)?;
        let Some((id, offset, has_more)) = found.fragment else {
            return udp(found.source, found.destination, found.octets);
        };
        self.whole = self.add(number, &found, (id, offset, has_more))?;
        udp(found.source, found.destination, &self.whole)
    }

    /// Adds a fragment; what the packet carries, if it is whole now.
    fn add(
        &mut self,
        number: u64,
        found: &Transport<'_>,
        (id, offset, has_more): (u32, usize, bool),
    ) -> Option<Vec<u8>> {
        let ends = (found.source, found.destination);
        let is_it = |packet: &Packet| packet.ends == ends && packet.id == id;
        let place = match self.waiting.iter().position(is_it) {
            Some(place) => place,
            None => {
                if self.waiting.len() == MOST_PACKETS {
                    self.waiting.pop_front();
                    self.given_up += 1;
                }
                self.waiting.push_back(Packet {
                    frame: number,
                    ends,
                    id,
                    parts: Vec::new(),
                    length: None,
                });
                self.waiting.len() - 1
            }
        };
        let packet = self.waiting.get_mut(place)?;
        packet.add(offset, found.octets, has_more);
        let whole = packet.whole()?;
        self.waiting.remove(place);
        Some(whole)
    }

    /// The datagrams that did not become whole, as far as they came, with the number of their frame; and how many there are
    /// of which nothing can be shown.
    pub fn finish(&mut self) -> (Vec<CutDatagram>, u64) {
        let mut lost = std::mem::take(&mut self.given_up);
        let mut found = Vec::new();
        for packet in self.waiting.drain(..) {
            match packet.parts.into_iter().next() {
                Some((0, octets)) => found.push((packet.frame, octets, packet.ends)),
                _ => lost += 1,
            }
        }
        (found, lost)
    }
}

/// The UDP datagram of what [`UdpReader::finish`] gives.
#[must_use]
pub fn cut_datagram(octets: &[u8], ends: (IpAddr, IpAddr)) -> Option<UdpPayload<'_>> {
    udp(ends.0, ends.1, octets)
}

impl Packet {
    fn add(&mut self, offset: usize, octets: &[u8], has_more: bool) {
        let end = offset.saturating_add(octets.len());
        if end > LARGEST || octets.is_empty() || self.parts.len() >= MOST_FRAGMENTS {
            return;
        }
        if !has_more {
            self.length.get_or_insert(end);
        }
        let at = self.parts.partition_point(|(begin, _)| *begin < offset);
        let overlaps_next = self.parts.get(at).is_some_and(|(begin, _)| *begin < end);
        let overlaps_last = at
            .checked_sub(1)
            .and_then(|last| self.parts.get(last))
            .is_some_and(|(begin, last)| begin + last.len() > offset);
        if !overlaps_next && !overlaps_last {
            self.parts.insert(at, (offset, octets.to_vec()));
        }
    }

    /// What it carries, if all of it is there.
    fn whole(&self) -> Option<Vec<u8>> {
        let length = self.length?;
        let mut next = 0;
        for (begin, octets) in &self.parts {
            if *begin != next {
                return None;
            }
            next += octets.len();
        }
        (next == length).then(|| {
            self.parts
                .iter()
                .flat_map(|(_, octets)| octets)
                .copied()
                .collect()
        })
    }
}
