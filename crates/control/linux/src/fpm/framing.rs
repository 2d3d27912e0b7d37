//! Frames of the forwarding plane manager protocol, cut out of a stream.
//!
//! A frame has a header of four bytes: version (1), type (1 = netlink), and its length with the header in network byte order.
//! FRR's encoder has a buffer of 8,192 bytes, from version 10.4 of 65,536: any length that the header can express is
//! accepted. After a wrong version or length nothing in the stream can be trusted, so that the session has to end.

/// Bytes of a frame's header.
const HEADER: usize = 4;
const VERSION: u8 = 1;
const TYPE_NETLINK: u8 = 1;

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The version is none that is known.
    #[error("frame of version {0}, where only 1 is known; use dplane_fpm_nl of FRR")]
    Version(u8),
    /// The frame has no netlink messages.
    #[error("frame of type {0}, where only 1 (netlink) is known; use dplane_fpm_nl of FRR")]
    Type(u8),
    /// The length does not even cover the header.
    #[error("frame of {0} bytes, which is shorter than its header")]
    Length(u16),
}

/// Bytes that have come, and where the next frame begins. Holds one frame at most beside what was read last.
#[derive(Debug, Default)]
pub struct Framer {
    bytes: Vec<u8>,
    next: usize,
}

impl Framer {
    /// Adds what was read from the stream.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.next);
        self.next = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The netlink messages of the next frame, when it has come as a whole.
    ///
    /// # Errors
    /// When the header is wrong; then the session has to end.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FramingError> {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        let Some(&[version, kind, high, low]) = rest.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(FramingError::Version(version));
        }
        if kind != TYPE_NETLINK {
            return Err(FramingError::Type(kind));
        }
        let length = u16::from_be_bytes([high, low]);
        if usize::from(length) < HEADER {
            return Err(FramingError::Length(length));
        }
        if rest.len() < usize::from(length) {
            return Ok(None);
        }
        let begin = self.next;
        self.next += usize::from(length);
        Ok(self.bytes.get(begin + HEADER..self.next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() + HEADER) as u16;
        [&[1, 1], &length.to_be_bytes()[..], payload].concat()
    }

    /// The payloads of all frames, whatever the pieces are in which the stream comes.
    fn read(stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, FramingError> {
        let (mut framer, mut frames) = (Framer::default(), Vec::new());
        for piece in stream.chunks(piece) {
            framer.add(piece);
            while let Some(frame) = framer.next_frame()? {
                frames.push(frame.to_vec());
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_are_found_in_any_pieces() {
        let long = vec![7; 65_531];
        let payloads = [&b"one"[..], b"", &long, b"two"];
        let stream: Vec<u8> = payloads.iter().flat_map(|it| frame(it)).collect();
        for piece in [1, 2, 3, 5, 4096, stream.len()] {
            assert_eq!(
                read(&stream, piece),
                Ok(payloads.map(<[u8]>::to_vec).to_vec())
            );
        }
    }

    #[test]
    fn each_truncation_is_no_frame_and_a_lie_ends_the_session() {
        let whole = frame(b"payload");
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], 3), Ok(vec![]), "{length} bytes");
        }
        for (header, error) in [
            ([0, 1, 0, 8], FramingError::Version(0)),
            ([2, 1, 0, 8], FramingError::Version(2)),
            ([1, 2, 0, 8], FramingError::Type(2)),
            ([1, 1, 0, 0], FramingError::Length(0)),
            ([1, 1, 0, 3], FramingError::Length(3)),
        ] {
            assert_eq!(read(&[&header[..], b"abcd"].concat(), 8), Err(error));
        }
    }

    #[test]
    fn what_was_read_is_not_kept() {
        let mut framer = Framer::default();
        for _ in 0..1000 {
            framer.add(&frame(&[0; 1000]));
            assert!(framer.next_frame().unwrap().is_some());
            assert!(framer.bytes.len() <= 2 * 1004);
        }
    }
}
