//! Netlink frames and their attributes: reading what the kernel sends, framing what is sent.
//!
//! Both readers walk a byte slice with one length check an element. They never index, never
//! allocate, and end at the first element whose length lies. Layouts: `include/uapi/linux/netlink.h`
//! of Linux. All numbers are in the byte order of the host.

/// `NLMSG_NOOP`: nothing.
pub(crate) const NOOP: u16 = 1;
/// `NLMSG_ERROR`: an acknowledgement (error number 0) or a refusal.
pub(crate) const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub(crate) const DONE: u16 = 3;
/// `NLMSG_OVERRUN`: data was lost.
pub(crate) const OVERRUN: u16 = 4;

/// `NLM_F_DUMP_INTR`: the dump is inconsistent because something changed under it.
pub(crate) const FLAG_DUMP_INTERRUPTED: u16 = 0x10;
/// `NLM_F_CAPPED`: the refusal does not repeat the request's payload.
const FLAG_CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: attributes follow the refusal.
const FLAG_ACK_ATTRIBUTES: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`: the kernel's sentence.
const ACK_ATTRIBUTE_TEXT: u16 = 1;

const FRAME_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// The two high bits of an attribute's type are flags (nested, network byte order).
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let end = offset.checked_add(2)?;
    Some(u16::from_ne_bytes(bytes.get(offset..end)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset.checked_add(4)?;
    Some(u32::from_ne_bytes(bytes.get(offset..end)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let end = offset.checked_add(8)?;
    Some(u64::from_ne_bytes(bytes.get(offset..end)?.try_into().ok()?))
}

/// A name or sentence that ends at its first NUL; what is not UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// One netlink message within a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The type of the message.
    pub kind: u16,
    /// Its flags (`NLM_F_*`).
    pub flags: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// The port of its sender.
    pub port: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// The messages of one datagram; `Err(())` once, at the end, when a length lies.
#[derive(Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    /// The messages of a datagram.
    #[must_use]
    pub fn new(datagram: &'a [u8]) -> Self {
        Frames { rest: datagram }
    }

    fn read(&mut self) -> Option<Frame<'a>> {
        let length = u32_at(self.rest, 0)? as usize;
        let payload = self.rest.get(FRAME_HEADER..length)?;
        let frame = Frame {
            kind: u16_at(self.rest, 4)?,
            flags: u16_at(self.rest, 6)?,
            sequence: u32_at(self.rest, 8)?,
            port: u32_at(self.rest, 12)?,
            payload,
        };
        let next = length.checked_next_multiple_of(4)?;
        self.rest = self.rest.get(next..).unwrap_or_default();
        Some(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let frame = self.read();
        if frame.is_none() {
            self.rest = &[];
        }
        Some(frame.ok_or(()))
    }
}

/// The attributes of a message: pairs of type and value. Ends silently at a length that lies,
/// so that what was good before it is kept.
#[derive(Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes in these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Attributes { rest: bytes }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.rest, 0)?);
        let kind = u16_at(self.rest, 2)? & ATTRIBUTE_TYPE_MASK;
        let value = self.rest.get(ATTRIBUTE_HEADER..length)?;
        self.rest = self
            .rest
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some((kind, value))
    }
}

/// A whole message, ready to be sent. `None`: longer than a length can say.
pub(crate) fn frame(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len().checked_add(FRAME_HEADER)?).ok()?;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    // The port of the sender: the kernel fills it in.
    bytes.extend_from_slice(&0u32.to_ne_bytes());
    bytes.extend_from_slice(payload);
    Some(bytes)
}

/// Appends an attribute with its padding. `None`: the value is longer than a length can say.
pub(crate) fn push_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) -> Option<()> {
    let length = u16::try_from(value.len().checked_add(ATTRIBUTE_HEADER)?).ok()?;
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Some(())
}

/// What an `NLMSG_ERROR` message says: the error number (0 is an acknowledgement) and the
/// kernel's sentence, when there is one.
pub(crate) fn verdict(frame: &Frame<'_>) -> Option<(i32, Option<String>)> {
    let code = u32_at(frame.payload, 0)?.cast_signed();
    let mut detail = None;
    if frame.flags & FLAG_ACK_ATTRIBUTES != 0 {
        let repeated = if frame.flags & FLAG_CAPPED != 0 {
            FRAME_HEADER
        } else {
            (u32_at(frame.payload, 4)? as usize).checked_next_multiple_of(4)?
        };
        let attributes = frame
            .payload
            .get(4usize.checked_add(repeated)?..)
            .unwrap_or_default();
        detail = Attributes::new(attributes)
            .find(|(kind, _)| *kind == ACK_ATTRIBUTE_TEXT)
            .map(|(_, value)| text(value));
    }
    Some((code.checked_neg().unwrap_or(libc::EIO), detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame worked out by hand: length 20, kind 16, flags 2, sequence 7, port 9, four bytes.
    fn hand_made() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&20u32.to_ne_bytes());
        bytes.extend_from_slice(&16u16.to_ne_bytes());
        bytes.extend_from_slice(&2u16.to_ne_bytes());
        bytes.extend_from_slice(&7u32.to_ne_bytes());
        bytes.extend_from_slice(&9u32.to_ne_bytes());
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn a_frame_is_put_together() {
        let mut expected = hand_made();
        expected[12..16].fill(0);
        assert_eq!(frame(16, 2, 7, &[1, 2, 3, 4]), Some(expected));
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, 3, &[0xaa]).unwrap();
        assert_eq!(bytes[4..], [0xaa, 0, 0, 0]);
        assert_eq!(Attributes::new(&bytes).next(), Some((3, &[0xaau8][..])));
        assert_eq!(push_attribute(&mut bytes, 3, &vec![0; 65_532]), None);
    }

    #[test]
    fn a_frame_is_taken_apart() {
        let bytes = hand_made();
        let frames: Vec<_> = Frames::new(&bytes).collect();
        let payload: &[u8] = &[1, 2, 3, 4];
        assert_eq!(
            frames,
            [Ok(Frame {
                kind: 16,
                flags: 2,
                sequence: 7,
                port: 9,
                payload
            })]
        );
    }

    #[test]
    fn every_truncation_is_an_error_once() {
        let bytes = hand_made();
        for length in 1..bytes.len() {
            let frames: Vec<_> = Frames::new(&bytes[..length]).collect();
            assert_eq!(frames, [Err(())], "cut to {length}");
        }
    }

    #[test]
    fn a_frame_shorter_than_its_header_is_refused() {
        let mut bytes = hand_made();
        bytes[..4].copy_from_slice(&15u32.to_ne_bytes());
        assert_eq!(Frames::new(&bytes).collect::<Vec<_>>(), [Err(())]);
    }

    #[test]
    fn attributes_keep_what_precedes_a_lie() {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&5u16.to_ne_bytes());
        bytes.extend_from_slice(&(0x8000u16 | 3).to_ne_bytes());
        bytes.extend_from_slice(&[0xaa, 0, 0, 0]);
        bytes.extend_from_slice(&400u16.to_ne_bytes());
        bytes.extend_from_slice(&[4, 0]);
        let found: Vec<_> = Attributes::new(&bytes).collect();
        assert_eq!(found, [(3, &[0xaau8][..])]);
    }

    #[test]
    fn a_refusal_gives_number_and_sentence() {
        let mut payload = (-libc::EEXIST).to_ne_bytes().to_vec();
        payload.extend_from_slice(&[0; FRAME_HEADER]);
        payload.extend_from_slice(&8u16.to_ne_bytes());
        payload.extend_from_slice(&ACK_ATTRIBUTE_TEXT.to_ne_bytes());
        payload.extend_from_slice(b"two\0");
        let flags = FLAG_CAPPED | FLAG_ACK_ATTRIBUTES;
        let frame = Frame {
            kind: ERROR,
            flags,
            sequence: 1,
            port: 1,
            payload: &payload,
        };
        assert_eq!(
            verdict(&frame),
            Some((libc::EEXIST, Some("two".to_owned())))
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_end_and_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut count = 0usize;
            for frame in Frames::new(&bytes).flatten() {
                count += 1;
                let _ = verdict(&frame);
                prop_assert!(Attributes::new(frame.payload).count() <= frame.payload.len());
            }
            prop_assert!(count <= bytes.len() / FRAME_HEADER);
        }
    }
}
