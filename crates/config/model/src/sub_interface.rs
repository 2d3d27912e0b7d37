//! Sub-interfaces: the share of an interface that its tags say, in vppcfg's words.
//!
//! In the file they stand under their parent, as `interfaces.xe0.sub-interfaces.100`; in the model each
//! is an interface beside the others, called `xe0.100`, and what makes it one stands in the place of a
//! device. So whatever can be said of interfaces can be said of them, and another encapsulation
//! is, like another device, another interface.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What makes an interface a sub-interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SubInterface {
    /// The interface whose frames it shares.
    pub parent: String,
    /// Its number there.
    pub id: u32,
    /// The tags of its frames.
    pub encapsulation: Encapsulation,
    /// What becomes of the tags when frames cross; all go on the way in and come back on the way out
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_rewrite: Option<TagRewrite>,
}

impl SubInterface {
    /// The name of sub-interface `id` of `parent`.
    #[must_use]
    pub fn name_of(parent: &str, id: &str) -> String {
        format!("{parent}.{id}")
    }
}

/// The tags of a sub-interface's frames. Either an outer 802.1Q or an outer 802.1ad tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Encapsulation {
    /// VLAN of an outer 802.1Q tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dot1q: Option<u16>,
    /// VLAN of an outer 802.1ad tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dot1ad: Option<u16>,
    /// VLAN of the 802.1Q tag behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_dot1q: Option<u16>,
    /// Whether nothing but these tags may be there.
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

/// What becomes of the tags of a frame that comes in to cross to another interface; what goes out gets
/// the reverse. VPP's `tag-rewrite`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TagRewrite {
    /// How many tags go.
    pub pop: u8,
    /// VLAN of an outer 802.1Q tag that comes in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot1q: Option<u16>,
    /// VLAN of an outer 802.1ad tag that comes in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dot1ad: Option<u16>,
    /// VLAN of an 802.1Q tag behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
