//! Sub-interfaces: the share of an interface that its tags say, in vppcfg's words.
//!
//! In the file they stand under their parent, as `interfaces.xe0.sub-interfaces.100`; in the model each
//! is an interface beside the others, called `xe0.100`, and what makes it one stands in the place of a
//! device. So whatever can be said of interfaces can be said of them, and another encapsulation
//! is, like another device, another interface.

use std::fmt;

use weir_config_derive::Section;

/// What makes an interface a sub-interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubInterface {
    /// The interface whose frames it shares.
    pub parent: String,
    /// Its number there.
    pub id: u32,
    /// The tags of its frames.
    pub encapsulation: Encapsulation,
    /// What becomes of the tags when frames cross; all go on the way in and come back on the way out
    /// when absent.
    pub tag_rewrite: Option<TagRewrite>,
}

impl SubInterface {
    /// The name of sub-interface `id` of `parent`.
    #[must_use]
    pub fn name_of(parent: &str, id: &str) -> String {
        format!("{parent}.{id}")
    }
}

/// The tags of a sub-interface's frames: an outer 802.1Q or an outer 802.1ad tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Section)]
#[section(example = "{dot1ad: 100, inner-dot1q: 200, exact-match: true}")]
pub struct Encapsulation {
    /// VLAN of the outer tag, an 802.1Q tag (0x8100).
    #[key(kind = Whole(1, 4094), example = "100")]
    pub dot1q: Option<u16>,
    /// VLAN of the outer tag, an 802.1ad tag (0x88a8), in place of `dot1q`.
    #[key(kind = Whole(1, 4094), example = "100")]
    pub dot1ad: Option<u16>,
    /// VLAN of the tag behind the outer one, an 802.1Q tag.
    #[key(kind = Whole(1, 4094), example = "200")]
    pub inner_dot1q: Option<u16>,
    /// Whether frames have these tags and no other; needed where there are addresses.
    #[key(example = "true")]
    pub exact_match: bool,
}

/// The last VLAN that frames can have; 4095 is reserved (IEEE 802.1Q table 9-2).
pub const LAST_VLAN: u16 = 4094;

impl Encapsulation {
    /// That of a sub-interface which does not say: the VLAN of its number, and nothing else.
    #[must_use]
    pub fn of_id(id: u32) -> Self {
        let dot1q = u16::try_from(id)
            .ok()
            .filter(|vlan| (1..=LAST_VLAN).contains(vlan));
        Self {
            dot1q,
            exact_match: true,
            ..Self::default()
        }
    }

    /// How many tags these are.
    #[must_use]
    pub fn tags(&self) -> u8 {
        u8::from(self.outer().is_some()) + u8::from(self.inner_dot1q.is_some())
    }

    /// Whether the outer tag is an 802.1ad tag, and its VLAN.
    #[must_use]
    pub fn outer(&self) -> Option<(bool, u16)> {
        self.dot1ad
            .map(|vlan| (true, vlan))
            .or(self.dot1q.map(|vlan| (false, vlan)))
    }
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tags(f, self.dot1q, self.dot1ad, self.inner_dot1q)?;
        f.write_str(if self.exact_match { " exact-match" } else { "" })
    }
}

fn tags(
    f: &mut fmt::Formatter<'_>,
    dot1q: Option<u16>,
    dot1ad: Option<u16>,
    inner: Option<u16>,
) -> fmt::Result {
    match (dot1q, dot1ad) {
        (_, Some(vlan)) => write!(f, "dot1ad {vlan}")?,
        (Some(vlan), None) => write!(f, "dot1q {vlan}")?,
        (None, None) => f.write_str("no tag")?,
    }
    inner.map_or(Ok(()), |vlan| write!(f, " inner-dot1q {vlan}"))
}

/// How the tags of a received frame are rewritten on a cross connect or in a bridge domain; sent
/// frames get the reverse. VPP's `tag-rewrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{pop: 1, dot1q: 300}")]
pub struct TagRewrite {
    /// The number of outer tags that are removed; no more than the encapsulation has.
    #[key(required, default = 0, kind = Whole(0, 2), example = "1")]
    pub pop: u8,
    /// VLAN of an 802.1Q tag that is added, outermost. It has the priority of the outer tag that
    /// was removed, if one was.
    #[key(kind = Whole(1, 4094), example = "300")]
    pub dot1q: Option<u16>,
    /// The same with an 802.1ad tag, in place of `dot1q`.
    #[key(kind = Whole(1, 4094), example = "300")]
    pub dot1ad: Option<u16>,
    /// VLAN of an 802.1Q tag behind that one.
    #[key(kind = Whole(1, 4094), example = "400")]
    pub inner_dot1q: Option<u16>,
}

impl TagRewrite {
    /// Whether it says what happens without it: all tags of `encapsulation` go, none comes.
    #[must_use]
    pub fn is_usual(&self, encapsulation: &Encapsulation) -> bool {
        *self
            == Self {
                pop: encapsulation.tags(),
                ..Self::default()
            }
    }
}

impl fmt::Display for TagRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pop {}", self.pop)?;
        if self.dot1q.or(self.dot1ad).is_some() {
            f.write_str(" push ")?;
            tags(f, self.dot1q, self.dot1ad, self.inner_dot1q)?;
        }
        Ok(())
    }
}

impl fmt::Display for SubInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {}, {}", self.parent, self.encapsulation)?;
        self.tag_rewrite
            .map_or(Ok(()), |rewrite| write!(f, ", tag-rewrite {rewrite}"))
    }
}
