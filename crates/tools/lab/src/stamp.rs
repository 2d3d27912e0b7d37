//! The stamp: 16 bytes at the end of a packet that say which stream sent it, in what order and when.
//!
//! Layout, big-endian: magic (2), stream (2), sequence number (4), time in nanoseconds (8). It lies at
//! an even offset as near to the frame's end as fits. A device under test may remove or add headers
//! in front of it. When headers are removed from a short frame the device may pad it, so that the
//! reader also searches the bytes before.

/// Bytes of a stamp.
pub(crate) const LEN: usize = 16;
/// The first two bytes.
pub(crate) const MAGIC: u16 = 0x9e57;
/// Bytes of padding that are searched: a VLAN tag, two tags or labels, an IPv6 header less an IPv4 one.
const PADDING: usize = 46;

/// What a stamp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The stream's number.
    pub stream: u16,
    /// The packet's number within the stream, modulo 2^32.
    pub sequence: u32,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub time: u64,
}

/// Where the stamp of a frame of `len` bytes lies.
pub(crate) fn offset(len: usize) -> Option<usize> {
    len.checked_sub(LEN).map(|at| at & !1)
}

impl Stamp {
    /// The bytes.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; LEN] {
        let high = u64::from(MAGIC) << 48 | u64::from(self.stream) << 32 | u64::from(self.sequence);
        (u128::from(high) << 64 | u128::from(self.time)).to_be_bytes()
    }

    /// Finds the stamp in a received frame.
    #[inline]
    #[must_use]
    pub fn find(frame: &[u8]) -> Option<Stamp> {
        let last = offset(frame.len())?;
        (last.saturating_sub(PADDING)..=last)
            .rev()
            .step_by(2)
            .find_map(|at| {
                let bytes: [u8; LEN] = frame.get(at..at + LEN)?.try_into().ok()?;
                let all = u128::from_be_bytes(bytes);
                ((all >> 112) as u16 == MAGIC).then_some(Stamp {
                    stream: (all >> 96) as u16,
                    sequence: (all >> 64) as u32,
                    time: all as u64,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_behind_padding() {
        let stamp = Stamp {
            stream: 7,
            sequence: 0xffff_fffe,
            time: 0x0102_0304_0506_0708,
        };
        let mut frame = vec![0; 43];
        frame.truncate(42);
        frame.extend_from_slice(&stamp.bytes());
        assert_eq!(Stamp::find(&frame), Some(stamp));
        frame.extend_from_slice(&[0; 4]);
        assert_eq!(Stamp::find(&frame), Some(stamp));
        assert_eq!(Stamp::find(&[0; 60]), None);
        assert_eq!(Stamp::find(&[]), None);
    }
}
