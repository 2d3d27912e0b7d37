//! The tags of a frame (IEEE 802.1Q sections 9.3 to 9.6): none, one, or several one behind the other.
//!
//! A tag on the wire is the ethertype that announces it, then its control information; the ethertype
//! of what follows is the next tag's first half. [`VlanTag`] sees it shifted by two bytes (control,
//! then what follows), which is how a reader meets it. For a writer, a tag is four bytes put in at
//! [`TAG_AT`]: [`tag_bytes`]; taking them out again is moving the two MAC addresses by four.

use crate::{EtherType, EthernetHeader, VlanTag};

/// Where the outermost tag begins: behind the MAC addresses.
pub const TAG_AT: usize = 12;
/// Bytes of a tag on the wire.
pub const TAG_LEN: usize = 4;

/// The four bytes of a tag as they stand at [`TAG_AT`].
#[inline]
#[must_use]
pub const fn tag_bytes(announced: EtherType, control: u16) -> [u8; TAG_LEN] {
    let ([a, b], [c, d]) = (announced.0.to_be_bytes(), control.to_be_bytes());
    [a, b, c, d]
}

/// Tag control information: priority (3 bits), whether to be dropped first, VLAN (12 bits).
#[inline]
#[must_use]
pub const fn control(vlan: u16, priority: u8, drop_eligible: bool) -> u16 {
    ((priority & 7) as u16) << 13 | (drop_eligible as u16) << 12 | (vlan & 0xfff)
}

/// A tag, and by which ethertype it was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// [`EtherType::VLAN`] or [`EtherType::QINQ`].
    pub announced: EtherType,
    /// The tag.
    pub tag: VlanTag,
}

/// A frame that ends within a tag, or within its own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame ends within a tag")]
pub struct CutTag;

/// The tags of a frame, outermost first; see [`tags`].
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    ethertype: EtherType,
    rest: &'a [u8],
    left: usize,
}

/// The tags of a frame, at most `most` of them.
///
/// # Errors
/// When the frame is shorter than an Ethernet header.
pub fn tags(frame: &[u8], most: usize) -> Result<Tags<'_>, CutTag> {
    let (header, rest) = EthernetHeader::read(frame).ok_or(CutTag)?;
    Ok(Tags {
        ethertype: header.ethertype(),
        rest,
        left: most,
    })
}

impl<'a> Tags<'a> {
    /// What follows the tags seen so far: what they carry, once the iterator has ended, or another tag
    /// ([`EtherType::is_tag`]) where there were more than the bound.
    #[must_use]
    pub const fn ethertype(&self) -> EtherType {
        self.ethertype
    }

    /// The bytes behind the tags seen so far.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl Iterator for Tags<'_> {
    type Item = Result<Tag, CutTag>;

    fn next(&mut self) -> Option<Result<Tag, CutTag>> {
        if self.left == 0 || !self.ethertype.is_tag() {
            return None;
        }
        let Some((tag, rest)) = VlanTag::read(self.rest) else {
            self.left = 0;
            return Some(Err(CutTag));
        };
        let found = Tag {
            announced: self.ethertype,
            tag: *tag,
        };
        (self.ethertype, self.rest, self.left) = (tag.ethertype(), rest, self.left - 1);
        Some(Ok(found))
    }
}

/// Up to two tags of a frame: all that a sub-interface is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The outermost tag.
    pub outer: Option<Tag>,
    /// The one behind it.
    pub inner: Option<Tag>,
    /// What follows these two; a tag if there is a third.
    pub ethertype: EtherType,
    /// Where that begins in the frame: 14, 18 or 22.
    pub payload_at: usize,
}

impl Outer {
    /// Reads up to two tags.
    ///
    /// # Errors
    /// When the frame ends within one.
    #[inline]
    pub fn read(frame: &[u8]) -> Result<Outer, CutTag> {
        let mut tags = tags(frame, 2)?;
        let (outer, inner) = (tags.next().transpose()?, tags.next().transpose()?);
        Ok(Outer {
            outer,
            inner,
            ethertype: tags.ethertype,
            payload_at: frame.len() - tags.rest.len(),
        })
    }
}
