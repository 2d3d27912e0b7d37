//! What differs between IPv4 and IPv6: which fields there are, and eight rules side by side.
//!
//! A *shape* is a rule as one range per field; a *group* is eight shapes laid out field by field, so
//! that one pass of vector instructions compares a key with all eight. Addresses are compared with a
//! value and a mask, ports against two ends. Rules are compared in full here, always: the tree that
//! leads to a group only has to be right in never leading past a rule that matches.

use crate::key::{Key4, Key6, Words, words};
use crate::rule::{Addresses, Demands, Rule};

/// No rule.
pub(crate) const NONE: u32 = u32::MAX;
/// Rules in a group.
pub(crate) const LANES: usize = 8;
/// Fields of the family that has most.
pub(crate) const FIELDS: usize = 11;

/// Where a field lies in the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) word: u8,
    pub(crate) shift: u8,
    pub(crate) bits: u8,
}

impl Place {
    /// The field's highest value.
    pub(crate) const fn whole(self) -> u32 {
        u32::MAX >> (32 - self.bits as u32)
    }
}

const fn place(word: u8, shift: u8, bits: u8) -> Place {
    Place { word, shift, bits }
}

/// A rule as one range per field, both ends included. Fields that a family lacks are 0 to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) low: [u32; FIELDS],
    pub(crate) high: [u32; FIELDS],
}

impl Shape {
    fn set(&mut self, field: usize, low: u32, high: u32) {
        if let (Some(l), Some(h)) = (self.low.get_mut(field), self.high.get_mut(field)) {
            (*l, *h) = (low, high);
        }
    }

    /// Writes what is asked of ports and protocol into the last three fields.
    fn set_demands(&mut self, first: usize, demands: &Demands) {
        let ports = demands.ports.unwrap_or([(0, u16::MAX); 2]);
        for (n, (low, high)) in ports.into_iter().enumerate() {
            self.set(first + n, low.into(), high.into());
        }
        let (low, high) = demands
            .protocol
            .map_or((0, 255), |protocol| (protocol, protocol));
        self.set(first + 2, low.into(), high.into());
    }

    /// Value and mask of a field that is a prefix.
    fn ternary(&self, field: usize) -> (u32, u32) {
        (self.low[field], !(self.low[field] ^ self.high[field]))
    }
}

/// A family of addresses.
pub(crate) trait Family {
    /// What is classified.
    type Key: Words + Default;
    /// Eight rules side by side.
    type Group: Default + Clone;
    /// The fields, in the order of a shape.
    const PLACES: &'static [Place];

    /// A key of these words.
    fn key(words: &[u32; 16]) -> Self::Key;
    /// The shape of a rule; `None` for a rule of the other family.
    fn shape(rule: &Rule, demands: &Demands) -> Option<Shape>;
    /// Puts a shape into a lane.
    fn put(group: &mut Self::Group, lane: usize, rule: u32, shape: &Shape);
    /// The first rule of all in a group.
    fn first(group: &Self::Group) -> u32;
    /// The first rule of a group that the key matches, or [`NONE`].
    fn scan(group: &Self::Group, key: &Self::Key) -> u32;
}

/// The part of a group that both families have: ports, protocol, and which rules these are.
#[derive(Clone)]
#[repr(C)]
struct Tail {
    rules: [u32; LANES],
    source_low: [u16; LANES],
    source_high: [u16; LANES],
    destination_low: [u16; LANES],
    destination_high: [u16; LANES],
    protocol: [u8; LANES],
    protocol_mask: [u8; LANES],
    /// The first of the rules.
    earliest: u32,
}

impl Default for Tail {
    /// Lanes that nothing matches: their port ranges are turned round, and they name no rule.
    fn default() -> Tail {
        Tail {
            earliest: NONE,
            rules: [NONE; LANES],
            source_low: [1; LANES],
            source_high: [0; LANES],
            destination_low: [0; LANES],
            destination_high: [0; LANES],
            protocol: [0; LANES],
            protocol_mask: [0; LANES],
        }
    }
}

impl Tail {
    fn put(&mut self, lane: usize, rule: u32, shape: &Shape, first: usize) {
        self.rules[lane] = rule;
        self.earliest = self.earliest.min(rule);
        self.source_low[lane] = shape.low[first] as u16;
        self.source_high[lane] = shape.high[first] as u16;
        self.destination_low[lane] = shape.low[first + 1] as u16;
        self.destination_high[lane] = shape.high[first + 1] as u16;
        let (value, mask) = shape.ternary(first + 2);
        (self.protocol[lane], self.protocol_mask[lane]) = (value as u8, mask as u8);
    }

    /// Of one lane, something other than 0 when ports or protocol do not match. A number minus an end
    /// that it lies beyond is negative, so that bit 31 of the four differences tells.
    #[inline(always)]
    fn differs(&self, lane: usize, source: u32, destination: u32, protocol: u32) -> u32 {
        let below = source.wrapping_sub(self.source_low[lane].into())
            | u32::from(self.source_high[lane]).wrapping_sub(source);
        let beside = destination.wrapping_sub(self.destination_low[lane].into())
            | u32::from(self.destination_high[lane]).wrapping_sub(destination);
        let other =
            (protocol ^ u32::from(self.protocol[lane])) & u32::from(self.protocol_mask[lane]);
        ((below | beside) >> 31) | other
    }

    /// The first rule among the lanes that differ in nothing. Written without a choice, so that the
    /// compiler makes vector instructions of it.
    #[inline(always)]
    fn first(&self, differs: &[u32; LANES]) -> u32 {
        let lane = |lane: usize| self.rules[lane] | u32::from(differs[lane] != 0).wrapping_neg();
        let pair = |n: usize| lane(n).min(lane(n + 4));
        pair(0).min(pair(2)).min(pair(1).min(pair(3)))
    }
}

/// IPv4.
pub(crate) enum V4 {}

/// Eight rules for IPv4: 240 bytes in four cache lines.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Group4 {
    source: [u32; LANES],
    source_mask: [u32; LANES],
    destination: [u32; LANES],
    destination_mask: [u32; LANES],
    tail: Tail,
}

impl Default for Group4 {
    fn default() -> Group4 {
        let none = [0; LANES];
        Group4 {
            source: none,
            source_mask: none,
            destination: none,
            destination_mask: none,
            tail: Tail::default(),
        }
    }
}

impl Family for V4 {
    type Key = Key4;
    type Group = Group4;
    const PLACES: &'static [Place] = &[
        place(0, 0, 32),
        place(1, 0, 32),
        place(2, 16, 16),
        place(2, 0, 16),
        place(3, 0, 8),
    ];

    fn key(words: &[u32; 16]) -> Key4 {
        let [a, b, c, d, ..] = *words;
        Key4 {
            words: [a, b, c, d],
        }
    }

    fn shape(rule: &Rule, demands: &Demands) -> Option<Shape> {
        let mut shape = Shape {
            low: [0; FIELDS],
            high: [0; FIELDS],
        };
        match &rule.addresses {
            Addresses::Any => (0..2).for_each(|field| shape.set(field, 0, u32::MAX)),
            Addresses::V4 {
                source,
                destination,
            } => {
                for (field, net) in [source, destination].into_iter().enumerate() {
                    shape.set(field, net.network().to_bits(), net.broadcast().to_bits());
                }
            }
            Addresses::V6 { .. } => return None,
        }
        shape.set_demands(2, demands);
        Some(shape)
    }

    fn put(group: &mut Group4, lane: usize, rule: u32, shape: &Shape) {
        (group.source[lane], group.source_mask[lane]) = shape.ternary(0);
        (group.destination[lane], group.destination_mask[lane]) = shape.ternary(1);
        group.tail.put(lane, rule, shape, 2);
    }

    #[inline(always)]
    fn first(group: &Group4) -> u32 {
        group.tail.earliest
    }

    #[inline(always)]
    fn scan(group: &Group4, key: &Key4) -> u32 {
        let [source, destination, ports, protocol] = key.words;
        let mut differs = [0; LANES];
        for (lane, differs) in differs.iter_mut().enumerate() {
            *differs = ((source ^ group.source[lane]) & group.source_mask[lane])
                | ((destination ^ group.destination[lane]) & group.destination_mask[lane])
                | group
                    .tail
                    .differs(lane, ports >> 16, ports & 0xffff, protocol);
        }
        group.tail.first(&differs)
    }
}

/// IPv6.
pub(crate) enum V6 {}

/// Eight rules for IPv6: 624 bytes in ten cache lines.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Group6 {
    /// The eight words of both addresses, eight lanes each.
    address: [[u32; LANES]; 8],
    mask: [[u32; LANES]; 8],
    tail: Tail,
}

impl Default for Group6 {
    fn default() -> Group6 {
        Group6 {
            address: [[0; LANES]; 8],
            mask: [[0; LANES]; 8],
            tail: Tail::default(),
        }
    }
}

impl Family for V6 {
    type Key = Key6;
    type Group = Group6;
    const PLACES: &'static [Place] = &[
        place(0, 0, 32),
        place(1, 0, 32),
        place(2, 0, 32),
        place(3, 0, 32),
        place(4, 0, 32),
        place(5, 0, 32),
        place(6, 0, 32),
        place(7, 0, 32),
        place(8, 16, 16),
        place(8, 0, 16),
        place(9, 0, 8),
    ];

    fn key(words: &[u32; 16]) -> Key6 {
        let [a, b, c, d, e, f, g, h, i, j, ..] = *words;
        Key6 {
            words: [a, b, c, d, e, f, g, h, i, j],
        }
    }

    fn shape(rule: &Rule, demands: &Demands) -> Option<Shape> {
        let mut shape = Shape {
            low: [0; FIELDS],
            high: [0; FIELDS],
        };
        match &rule.addresses {
            Addresses::Any => (0..8).for_each(|field| shape.set(field, 0, u32::MAX)),
            Addresses::V6 {
                source,
                destination,
            } => {
                for (side, net) in [source, destination].into_iter().enumerate() {
                    let ends = words(&net.network().octets())
                        .into_iter()
                        .zip(words(&net.broadcast().octets()));
                    ends.enumerate()
                        .for_each(|(n, (low, high))| shape.set(side * 4 + n, low, high));
                }
            }
            Addresses::V4 { .. } => return None,
        }
        shape.set_demands(8, demands);
        Some(shape)
    }

    fn put(group: &mut Group6, lane: usize, rule: u32, shape: &Shape) {
        for word in 0..8 {
            (group.address[word][lane], group.mask[word][lane]) = shape.ternary(word);
        }
        group.tail.put(lane, rule, shape, 8);
    }

    #[inline(always)]
    fn first(group: &Group6) -> u32 {
        group.tail.earliest
    }

    #[inline(always)]
    fn scan(group: &Group6, key: &Key6) -> u32 {
        let mut differs = [0; LANES];
        for (word, (address, mask)) in group.address.iter().zip(&group.mask).enumerate() {
            let wanted = key.words[word];
            for lane in 0..LANES {
                differs[lane] |= (wanted ^ address[lane]) & mask[lane];
            }
        }
        let (ports, protocol) = (key.words[8], key.words[9]);
        for (lane, differs) in differs.iter_mut().enumerate() {
            *differs |= group
                .tail
                .differs(lane, ports >> 16, ports & 0xffff, protocol);
        }
        group.tail.first(&differs)
    }
}
