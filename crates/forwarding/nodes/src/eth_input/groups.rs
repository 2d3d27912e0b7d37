//! Sorts a vector by interfaces, so that the frames of each are taken in together.
//!
//! Only handles move. The order within a group stays; no flow is in two groups. Runs in the worker and does not allocate.

use std::ops::Range;

use weir_buf::sort::Sorter;
use weir_buf::{Pkt, VECTOR};
use weir_graph::{DropReason, Outcome, Verdict};

use crate::vector_loops;

/// Groups by the lowest bits of their interfaces.
const SLOTS: usize = 256;
/// No interface: the group of what is dropped.
const REFUSED: u32 = u32::MAX;

/// A vector sorted by interfaces.
pub(crate) struct Groups(Box<Room>);

struct Room {
    /// The group of each packet.
    numbers: [u8; VECTOR],
    /// The interface of each group, and the bytes of its frames.
    interfaces: [u32; VECTOR],
    bytes: [u64; VECTOR],
    /// Where each group ends in the sorted vector.
    ends: [u16; VECTOR],
    count: usize,
    /// A group for each slot, which is right if that group has the interface.
    slots: [u8; SLOTS],
    /// Why packets are refused, in their order.
    reasons: [DropReason; VECTOR],
    refused: usize,
    sorter: Sorter,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups(Box::new(Room {
            numbers: [0; VECTOR],
            interfaces: [0; VECTOR],
            bytes: [0; VECTOR],
            ends: [0; VECTOR],
            count: 0,
            slots: [0; SLOTS],
            reasons: [DropReason::InterfaceDown; VECTOR],
            refused: 0,
            sorter: Sorter::default(),
        }))
    }
}

/// Packets of one interface.
pub(super) struct Group {
    /// Where they are in the sorted vector.
    pub(super) places: Range<usize>,
    /// `None` when they are refused.
    pub(super) interface: Option<u32>,
    /// Bytes of the frames as they were sorted.
    pub(super) bytes: u64,
}

impl Groups {
    /// Sorts up to 256 packets by what `interface_of` says, or why it refuses them. Returns the number of groups.
    #[inline(always)]
    pub(super) fn sort(
        &mut self,
        packets: &mut [Pkt],
        mut interface_of: impl FnMut(&mut Pkt) -> Result<u32, DropReason>,
    ) -> usize {
        let room = &mut *self.0;
        (room.count, room.refused) = (0, 0);
        vector_loops::each_packet(packets, |place, packet| {
            let interface = match interface_of(packet) {
                Ok(interface) => interface,
                Err(reason) => room.refuse(reason),
            };
            let number = room.number(interface);
            room.bytes[number] += packet.total_len() as u64;
            room.numbers[place % VECTOR] = number as u8;
        });
        match room.count {
            0 | 1 => room.ends[0] = packets.len() as u16,
            _ => {
                let Room {
                    sorter, numbers, ..
                } = room;
                room.ends = sorter.group(packets, numbers).unwrap_or([0; VECTOR]);
            }
        }
        room.count
    }

    /// A group of the sorted vector.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> Group {
        let room = &*self.0;
        let end = |number: usize| usize::from(room.ends[number % VECTOR]);
        let start = number.checked_sub(1).map_or(0, end);
        let interface = room.interfaces[number % VECTOR];
        Group {
            places: start..end(number),
            interface: (interface != REFUSED).then_some(interface),
            bytes: room.bytes[number % VECTOR],
        }
    }

    /// Writes why each packet of the group of refused ones is dropped.
    #[cold]
    pub(super) fn refuse(&self, verdicts: &mut [Verdict]) -> Outcome {
        for (verdict, reason) in verdicts.iter_mut().zip(self.0.reasons) {
            *verdict = Verdict::drop(reason);
        }
        Outcome::Each
    }
}

/// Calls `take` for each group of a sorted vector. Where there are several, all verdicts are written.
#[inline(always)]
pub(super) fn each_group(
    groups: &Groups,
    count: usize,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
    mut take: impl FnMut(&Group, &mut [Pkt], &mut [Verdict]) -> Outcome,
) -> Outcome {
    let mut whole = None;
    for group in (0..count).map(|number| groups.get(number)) {
        let part = (
            packets.get_mut(group.places.clone()),
            verdicts.get_mut(group.places.clone()),
        );
        let (Some(packets @ [_, ..]), Some(verdicts)) = part else {
            continue;
        };
        let outcome = take(&group, packets, verdicts);
        if count > 1 {
            write(outcome, packets, verdicts);
        }
        whole = Some(match whole {
            None => outcome,
            Some(before) if before == outcome => outcome,
            Some(_) => Outcome::Each,
        });
    }
    whole.unwrap_or(Outcome::Each)
}

/// Writes what all packets have in common into the verdict of each.
pub(super) fn write(outcome: Outcome, packets: &mut [Pkt], verdicts: &mut [Verdict]) {
    match outcome {
        Outcome::All(verdict) => verdicts.fill(verdict),
        Outcome::AllOut(out) => {
            packets.iter_mut().for_each(|packet| packet.set_aux(out));
            verdicts.fill(Verdict::OUT);
        }
        Outcome::Each => {}
    }
}

impl Room {
    /// The group of an interface; a new one when it has none.
    #[inline(always)]
    fn number(&mut self, interface: u32) -> usize {
        let number = usize::from(self.slots[interface as usize % SLOTS]);
        if number < self.count && self.interfaces[number] == interface {
            number
        } else {
            self.number_of_new(interface)
        }
    }

    /// The same for an interface whose slot has another one's group.
    #[inline(never)]
    fn number_of_new(&mut self, interface: u32) -> usize {
        let known = self.interfaces[..self.count.min(VECTOR)].iter();
        let number = known.clone().position(|&known| known == interface);
        let number = number.unwrap_or_else(|| {
            // There are at most as many groups as packets.
            let new = self.count % VECTOR;
            (self.interfaces[new], self.bytes[new]) = (interface, 0);
            self.count = new + 1;
            new
        });
        self.slots[interface as usize % SLOTS] = number as u8;
        number
    }

    #[cold]
    fn refuse(&mut self, reason: DropReason) -> u32 {
        self.reasons[self.refused % VECTOR] = reason;
        self.refused += 1;
        REFUSED
    }
}
