//! Sorting a vector into classes.
//!
//! A node that has different work for different kinds of packets sorts its vector first, so that each kind is worked on
//! in a loop of its own without a branch that the processor cannot predict. Only handles move, each at most twice. The
//! order within a class stays. Runs in the worker; it neither allocates nor looks at packet data.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::{Pkt, VECTOR};

/// Indices of packets in a vector: bit `n % 64` of word `n / 64` stands for packet `n`.
pub type Places = [u64; VECTOR / 64];

/// Room for the handles that are moved aside.
#[derive(Debug)]
pub struct Sorter {
    aside: Box<[MaybeUninit<Pkt>; VECTOR]>,
}

impl Default for Sorter {
    fn default() -> Sorter {
        Sorter {
            aside: Box::new([const { MaybeUninit::uninit() }; VECTOR]),
        }
    }
}

impl Sorter {
    /// Moves the packets of each class together, in their order; returns where those of each class are then. `None`,
    /// and nothing has moved, unless each packet is in exactly one class and there are at most 256.
    #[inline]
    #[expect(unsafe_code, reason = "handles are moved without a walk for each")]
    pub fn sort<const CLASSES: usize>(
        &mut self,
        packets: &mut [Pkt],
        classes: &[Places; CLASSES],
    ) -> Option<[Range<usize>; CLASSES]> {
        let counts = partition(packets.len(), classes)?;
        let largest = (0..CLASSES).max_by_key(|&class| counts[class])?;
        let mut found = [const { 0..0 }; CLASSES];
        found[largest] = 0..counts[largest];
        let (base, aside) = (packets.as_mut_ptr(), self.aside.as_mut_ptr());
        let mut moved = 0;
        for class in (0..CLASSES).filter(|&class| class != largest) {
            found[class] = counts[largest] + moved..counts[largest] + moved + counts[class];
            each_place(&classes[class], |place| {
                // SAFETY: `partition` found every place of a class below `packets.len()` and the sum of all counts equal to
                // it, at most VECTOR; so both addresses lie within their arrays. From here to the end nothing can
                // unwind, and every handle that is copied here is written back to exactly one place below.
                unsafe { aside.add(moved).cast::<Pkt>().write(base.add(place).read()) };
                moved += 1;
            });
        }
        let mut kept = 0;
        each_place(&classes[largest], |place| {
            // SAFETY: places ascend, so `kept <= place`: what is overwritten was moved aside above or moved forward here.
            unsafe { base.add(kept).write(base.add(place).read()) };
            kept += 1;
        });
        // SAFETY: `moved` handles were written to `aside`; `kept + moved` is `packets.len()`. The handles that lay
        // there were moved, so none is lost and each has one owner again.
        unsafe { std::ptr::copy_nonoverlapping(aside.cast::<Pkt>(), base.add(kept), moved) };
        Some(found)
    }
}

impl Sorter {
    /// Moves the packets of each group together, in their order; the groups come by their numbers. `numbers` has the
    /// group of each packet. Returns where each group ends, or `None`, and nothing has moved, when there are more than 256 packets
    /// or fewer numbers than packets.
    #[inline]
    #[expect(unsafe_code, reason = "handles are moved without a walk for each")]
    pub fn group(&mut self, packets: &mut [Pkt], numbers: &[u8]) -> Option<[u16; VECTOR]> {
        let numbers = numbers
            .get(..packets.len())
            .filter(|numbers| numbers.len() <= VECTOR)?;
        let mut places = [0u16; VECTOR];
        for &number in numbers {
            places[usize::from(number)] += 1;
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        let (base, aside) = (packets.as_mut_ptr(), self.aside.as_mut_ptr());
        for (from, &number) in numbers.iter().enumerate() {
            let place = &mut places[usize::from(number)];
            // SAFETY: `from` is below `packets.len()`. Each group begins behind all packets of those before it, and grows by one for
            // each of its own packets, so every place is below `packets.len()`, at most VECTOR, and written once. Nothing
            // can unwind until the handles are back.
            unsafe {
                aside
                    .add(usize::from(*place))
                    .cast::<Pkt>()
                    .write(base.add(from).read())
            };
            *place += 1;
        }
        // SAFETY: as many handles as `packets` has were written to `aside`, each of them once; so each has one owner again.
        unsafe { std::ptr::copy_nonoverlapping(aside.cast::<Pkt>(), base, numbers.len()) };
        Some(places)
    }
}

/// How many packets each class has, if each of `len` packets is in exactly one.
#[inline(always)]
fn partition<const CLASSES: usize>(
    len: usize,
    classes: &[Places; CLASSES],
) -> Option<[usize; CLASSES]> {
    let (mut union, mut sum, mut counts) = ([0; VECTOR / 64], 0, [0; CLASSES]);
    for (class, count) in classes.iter().zip(&mut counts) {
        for (all, word) in union.iter_mut().zip(class) {
            *all |= word;
            *count += word.count_ones() as usize;
        }
        sum += *count;
    }
    (len <= VECTOR && union == first(len) && sum == len).then_some(counts)
}

/// The first `len` places.
#[inline(always)]
#[must_use]
pub fn first(len: usize) -> Places {
    std::array::from_fn(|word| match len.saturating_sub(64 * word) {
        0 => 0,
        some @ 1..64 => (1 << some) - 1,
        _ => u64::MAX,
    })
}

/// Calls `body` for each place, in ascending order.
#[inline(always)]
fn each_place(places: &Places, mut body: impl FnMut(usize)) {
    for (number, &word) in places.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            body(64 * number + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}
