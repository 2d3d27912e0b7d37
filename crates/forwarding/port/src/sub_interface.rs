//! Sub-interfaces: which tags are whose, and what becomes of them.
//!
//! A sub-interface takes the frames of its parent that carry its tags (IEEE 802.1Q, 802.1ad): one or
//! two of them, exactly those or those and whatever follows. [`SubInterfaces`] is a parent's table of
//! them; [`SubInterface`] is what one of them does with the tags of a frame: a frame loses them on the
//! way in and gets them on the way out, unless its tag rewrite says otherwise.
//!
//! The table is a value like the interface that it belongs to: built by the control thread, only read
//! by workers. It holds what is configured and nothing that frames bring.

use weir_wire::EtherType;
use weir_wire::vlan::{Outer, TAG_LEN, tag_bytes};

/// The tags that choose a sub-interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encapsulation {
    /// Whether the outer tag is a service tag (802.1ad) and not a customer's (802.1Q).
    pub service: bool,
    /// VLAN of the outer tag.
    pub outer: u16,
    /// VLAN of the tag behind it, which is always a customer's.
    pub inner: Option<u16>,
    /// Whether nothing but these tags may be there.
    pub exact: bool,
}

impl Encapsulation {
    /// How many tags these are.
    #[must_use]
    pub const fn count(self) -> usize {
        1 + self.inner.is_some() as usize
    }

    /// These tags as bytes, priority 0.
    #[must_use]
    pub fn tags(self) -> TagStack {
        let announced = if self.service {
            EtherType::QINQ
        } else {
            EtherType::VLAN
        };
        let outer = TagStack::EMPTY.with(announced, self.outer);
        self.inner
            .map_or(outer, |inner| outer.with(EtherType::VLAN, inner))
    }

    /// A number that no other encapsulation of a parent has.
    const fn key(self) -> u32 {
        let (inner, any) = match self.inner {
            Some(vlan) => (vlan as u32 & 0xfff, 1),
            None => (0, 0),
        };
        USED | (self.service as u32) << 26
            | (self.exact as u32) << 25
            | any << 24
            | (self.outer as u32 & 0xfff) << 12
            | inner
    }
}

/// Up to two tags as they stand behind the MAC addresses of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagStack {
    bytes: [u8; 2 * TAG_LEN],
    len: u8,
}

impl TagStack {
    /// No tag.
    pub const EMPTY: TagStack = TagStack {
        bytes: [0; 2 * TAG_LEN],
        len: 0,
    };

    /// With another tag behind those that are there; a third one is left out.
    #[must_use]
    pub fn with(mut self, announced: EtherType, vlan: u16) -> TagStack {
        let at = usize::from(self.len);
        if let Some(place) = self.bytes.get_mut(at..at + TAG_LEN) {
            place.copy_from_slice(&tag_bytes(announced, vlan & 0xfff));
            self.len += TAG_LEN as u8;
        }
        self
    }

    /// The bytes.
    #[inline(always)]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// How many tags.
    #[inline(always)]
    #[must_use]
    pub const fn count(&self) -> usize {
        self.len as usize / TAG_LEN
    }
}

/// A change of a frame's tags: so many are taken off, then these are put on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagChange {
    /// How many outer tags go.
    pub pop: u8,
    /// What comes in their place.
    pub push: TagStack,
}

/// What makes an interface a sub-interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubInterface {
    /// The interface whose frames it shares.
    pub parent: u32,
    /// The tags of its frames.
    pub encapsulation: Encapsulation,
    /// What happens to the tags of a frame that comes in.
    pub input: TagChange,
    /// What happens to the tags of a frame that goes out: the reverse.
    pub output: TagChange,
}

impl SubInterface {
    /// A sub-interface whose frames lose their tags on the way in and get them on the way out.
    #[must_use]
    pub fn new(parent: u32, encapsulation: Encapsulation) -> SubInterface {
        SubInterface::with_rewrite(
            parent,
            encapsulation,
            encapsulation.count() as u8,
            TagStack::EMPTY,
        )
    }

    /// A sub-interface that takes `pop` tags off what comes in (no more than its encapsulation has) and
    /// puts `push` on; the other way round on the way out.
    #[must_use]
    pub fn with_rewrite(
        parent: u32,
        encapsulation: Encapsulation,
        pop: u8,
        push: TagStack,
    ) -> SubInterface {
        let pop = pop.min(encapsulation.count() as u8);
        let mut own = encapsulation.tags();
        own.len = pop * TAG_LEN as u8;
        if let Some(others) = own.bytes.get_mut(usize::from(own.len)..) {
            others.fill(0);
        }
        SubInterface {
            parent,
            encapsulation,
            input: TagChange { pop, push },
            output: TagChange {
                pop: push.count() as u8,
                push: own,
            },
        }
    }
}

/// Set in every key, so that an empty place differs from all of them.
const USED: u32 = 1 << 31;

/// A parent's sub-interfaces by their tags: an open table, at most half full.
#[derive(Clone, Debug, Default)]
pub struct SubInterfaces {
    /// Key and interface index.
    places: Box<[(u32, u32)]>,
    /// Numbers of places minus one.
    mask: u32,
    /// Whether any has two tags; whether any takes more than its own.
    doubles: bool,
    loose: bool,
}

impl SubInterfaces {
    /// The table of these sub-interfaces; of two with the same encapsulation, the last one stays.
    #[must_use]
    pub fn new(entries: &[(Encapsulation, u32)]) -> SubInterfaces {
        let size = (entries.len() * 2).next_power_of_two().max(4);
        let mut table = SubInterfaces {
            places: vec![(0, 0); size].into(),
            mask: size as u32 - 1,
            doubles: false,
            loose: false,
        };
        for &(encapsulation, index) in entries {
            table.doubles |= encapsulation.inner.is_some();
            table.loose |= !encapsulation.exact;
            let (key, mut place) = (encapsulation.key(), hash(encapsulation.key()));
            while let Some(slot) = table.places.get_mut((place & table.mask) as usize) {
                if slot.0 == 0 || slot.0 == key {
                    *slot = (key, index);
                    break;
                }
                place = place.wrapping_add(1);
            }
        }
        table
    }

    #[inline(always)]
    fn find(&self, encapsulation: Encapsulation) -> Option<u32> {
        let (key, mut place) = (encapsulation.key(), hash(encapsulation.key()));
        loop {
            let &(found, index) = self.places.get((place & self.mask) as usize)?;
            if found == key {
                return Some(index);
            }
            if found == 0 {
                return None;
            }
            place = place.wrapping_add(1);
        }
    }

    /// The sub-interface of a frame with exactly one tag: who wants exactly that one, else who takes it
    /// with whatever follows.
    #[inline(always)]
    #[must_use]
    pub fn of_one(&self, service: bool, outer: u16) -> Option<u32> {
        let one = Encapsulation {
            service,
            outer,
            inner: None,
            exact: true,
        };
        self.find(one).or_else(|| {
            if self.loose {
                self.find(Encapsulation {
                    exact: false,
                    ..one
                })
            } else {
                None
            }
        })
    }

    /// The sub-interface of a frame by its tags; the one that says most of them wins.
    #[inline]
    #[must_use]
    pub fn of(&self, tags: &Outer) -> Option<u32> {
        let outer = tags.outer?;
        let service = outer.announced == EtherType::QINQ;
        let Some(inner) = tags.inner else {
            return self.of_one(service, outer.tag.vlan());
        };
        let one = Encapsulation {
            service,
            outer: outer.tag.vlan(),
            inner: None,
            exact: false,
        };
        if self.doubles && inner.announced == EtherType::VLAN {
            let two = Encapsulation {
                inner: Some(inner.tag.vlan()),
                ..one
            };
            let only = if tags.ethertype.is_tag() {
                None
            } else {
                self.find(Encapsulation { exact: true, ..two })
            };
            if let Some(index) = only.or_else(|| self.find(two)) {
                return Some(index);
            }
        }
        self.find(one)
    }
}

#[inline(always)]
const fn hash(key: u32) -> u32 {
    key.wrapping_mul(0x9e37_79b1) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tags: &[(u16, u16)]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for &(announced, vlan) in tags {
            frame.extend(announced.to_be_bytes());
            frame.extend((0xe000 | vlan).to_be_bytes());
        }
        frame.extend([8, 0, 1, 2, 3]);
        frame
    }

    fn of(table: &SubInterfaces, tags: &[(u16, u16)]) -> Option<u32> {
        table.of(&Outer::read(&frame(tags)).unwrap())
    }

    const Q: u16 = 0x8100;
    const AD: u16 = 0x88a8;

    fn encapsulation(service: bool, outer: u16, inner: Option<u16>, exact: bool) -> Encapsulation {
        Encapsulation {
            service,
            outer,
            inner,
            exact,
        }
    }

    #[test]
    fn the_most_exact_one_takes_a_frame() {
        let table = SubInterfaces::new(&[
            (encapsulation(false, 100, None, true), 1),
            (encapsulation(false, 200, None, false), 2),
            (encapsulation(false, 200, Some(7), true), 3),
            (encapsulation(false, 200, Some(8), false), 4),
            (encapsulation(true, 100, None, true), 5),
            (encapsulation(true, 100, Some(100), true), 6),
            (encapsulation(false, 300, None, true), 7),
            (encapsulation(false, 300, None, false), 8),
        ]);
        for (tags, expected) in [
            (&[(Q, 100)][..], Some(1)),
            (&[(Q, 100), (Q, 7)], None),
            (&[(Q, 200)], Some(2)),
            (&[(Q, 200), (Q, 7)], Some(3)),
            (&[(Q, 200), (Q, 7), (Q, 1)], Some(2)),
            (&[(Q, 200), (Q, 8)], Some(4)),
            (&[(Q, 200), (Q, 8), (Q, 1)], Some(4)),
            (&[(Q, 200), (AD, 7)], Some(2)),
            (&[(Q, 200), (Q, 9)], Some(2)),
            (&[(AD, 200)], None),
            (&[(AD, 100)], Some(5)),
            (&[(AD, 100), (Q, 100)], Some(6)),
            (&[(AD, 100), (AD, 100)], None),
            (&[(AD, 100), (Q, 101)], None),
            (&[(Q, 300)], Some(7)),
            (&[(Q, 300), (Q, 5)], Some(8)),
            (&[(Q, 101)], None),
            (&[], None),
        ] {
            assert_eq!(of(&table, tags), expected, "{tags:x?}");
        }
        assert_eq!(
            (table.of_one(false, 300), table.of_one(true, 300)),
            (Some(7), None)
        );
    }

    #[test]
    fn every_vlan_finds_its_own_and_only_that() {
        let entries: Vec<_> = (1..4095)
            .map(|vlan| {
                (
                    encapsulation(vlan % 2 == 0, vlan, None, vlan % 3 == 0),
                    u32::from(vlan) + 9,
                )
            })
            .collect();
        let table = SubInterfaces::new(&entries);
        for vlan in 0..4096 {
            let index = (1..4095).contains(&vlan).then_some(u32::from(vlan) + 9);
            assert_eq!(table.of_one(vlan % 2 == 0, vlan), index, "{vlan}");
            assert_eq!(table.of_one(vlan % 2 == 1, vlan), None, "{vlan}");
        }
        assert_eq!(SubInterfaces::default().of_one(false, 1), None);
    }

    #[test]
    fn what_goes_out_is_the_reverse_of_what_comes_in() {
        let two = encapsulation(true, 10, Some(20), true);
        let plain = SubInterface::new(4, two);
        assert_eq!((plain.input.pop, plain.input.push.as_bytes()), (2, &[][..]));
        assert_eq!(
            (plain.output.pop, plain.output.push.as_bytes()),
            (0, &[0x88, 0xa8, 0, 10, 0x81, 0, 0, 20][..])
        );
        let push = TagStack::EMPTY.with(EtherType::VLAN, 30);
        let outer_only = SubInterface::with_rewrite(4, two, 1, push);
        assert_eq!(
            (outer_only.input.pop, outer_only.input.push.as_bytes()),
            (1, &[0x81, 0, 0, 30][..])
        );
        assert_eq!(
            (outer_only.output.pop, outer_only.output.push.as_bytes()),
            (1, &[0x88, 0xa8, 0, 10][..])
        );
        let none = SubInterface::with_rewrite(4, two, 0, TagStack::EMPTY);
        assert_eq!(
            (none.input, none.output),
            (TagChange::default(), TagChange::default())
        );
        assert_eq!(
            SubInterface::with_rewrite(4, encapsulation(false, 1, None, true), 9, push)
                .input
                .pop,
            1
        );
        assert_eq!(
            push.with(EtherType::VLAN, 31)
                .with(EtherType::VLAN, 32)
                .count(),
            2
        );
    }
}
