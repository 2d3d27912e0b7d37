//! Sorts what a routed interface received into classes, so that each class runs its own fast path.
//!
//! One pass reads the ethertypes. A vector of one class, which is common on a quiet link, is left as it is. Else the handles
//! are sorted by class (`weir_buf::sort`): the order within a class stays, the order between classes changes, and no
//! flow is in two classes. Runs in the worker. It does not validate anything: a packet that is not what its ethertype
//! says, or not for this station, is refused by the class's fast path and goes through the nodes.

use std::ops::Range;

use weir_buf::sort::{self, Places, Sorter};
use weir_buf::{Pkt, VECTOR};

use crate::frame::ETHERNET;

/// What a frame holds, by its ethertype alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Ip4,
    Ip6,
    Mpls,
    /// Tags, ARP, LACP, and everything unknown.
    Other,
}

impl Class {
    pub(super) const ALL: [Class; 4] = [Class::Ip4, Class::Ip6, Class::Mpls, Class::Other];

    fn of(ethertype: u16) -> Class {
        match ethertype {
            IP4 => Class::Ip4,
            IP6 => Class::Ip6,
            MPLS => Class::Mpls,
            _ => Class::Other,
        }
    }
}

// Ethertypes as they lie in memory.
const IP4: u16 = u16::from_ne_bytes([0x08, 0x00]);
const IP6: u16 = u16::from_ne_bytes([0x86, 0xdd]);
const MPLS: u16 = u16::from_ne_bytes([0x88, 0x47]);

/// Where the packets of each class of [`Class::ALL`] are in a sorted vector.
pub(super) type Ranges = [Range<usize>; 4];

/// What a vector holds.
pub(super) enum Classes {
    /// All packets are of this class.
    One(Class),
    /// They are sorted.
    Several(Ranges),
}

/// Room to sort vectors in.
pub(super) struct Classifier {
    ethertypes: Box<[[u16; 16]; VECTOR / 16]>,
    sorter: Sorter,
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier {
            ethertypes: Box::new([[0; 16]; VECTOR / 16]),
            sorter: Sorter::default(),
        }
    }
}

impl Classifier {
    /// Sorts up to 256 packets into their classes.
    #[inline(always)]
    pub(super) fn classify(&mut self, packets: &mut [Pkt]) -> Classes {
        let Some(first) = packets.first().map(ethertype) else {
            return Classes::One(Class::Other);
        };
        let mut differ = 0;
        for (packet, found) in packets.iter().zip(self.ethertypes.as_flattened_mut()) {
            *found = ethertype(packet);
            differ |= *found ^ first;
        }
        if differ == 0 {
            return Classes::One(Class::of(first));
        }
        self.sort(packets)
    }

    #[inline(never)]
    fn sort(&mut self, packets: &mut [Pkt]) -> Classes {
        let all = sort::first(packets.len());
        let of = |wanted| self.places(wanted, &all);
        let known = [of(IP4), of(IP6), of(MPLS)];
        let mut other = all;
        for (word, rest) in other.iter_mut().enumerate() {
            *rest &= !known.iter().fold(0, |known, class| known | class[word]);
        }
        let [ip4, ip6, mpls] = known;
        let sorted = self.sorter.sort(packets, &[ip4, ip6, mpls, other]);
        sorted.map_or(Classes::One(Class::Other), Classes::Several)
    }

    /// The packets of an ethertype, of those in `all`.
    #[inline(always)]
    fn places(&self, wanted: u16, all: &Places) -> Places {
        let (quarters, _) = self.ethertypes.as_chunks::<4>();
        std::array::from_fn(|word| {
            let bits = |n: usize| u64::from(weir_cpu::equal(&quarters[word][n], wanted));
            (bits(0) | bits(1) << 16 | bits(2) << 32 | bits(3) << 48) & all[word]
        })
    }
}

/// The ethertype as it lies in memory; 0 for a frame that is too short to have one.
#[inline(always)]
fn ethertype(packet: &Pkt) -> u16 {
    packet
        .data()
        .first_chunk::<ETHERNET>()
        .and_then(|header| header.last_chunk())
        .map_or(0, |bytes| u16::from_ne_bytes(*bytes))
}
