//! Datagrams that are made and not yet sent.
//!
//! Sending is the most expensive thing that the agent does: a system call, a walk through the kernel's layers and a
//! wake-up for each datagram. So datagrams are gathered for as long as the agent goes through its rings, and go out
//! together; those of equal length, which most are, in one call that the kernel cuts into datagrams (UDP segmentation).

use std::ops::Range;

/// Datagrams that are gathered: as many as the kernel cuts out of one piece at most (`UDP_MAX_SEGMENTS`).
const MOST: usize = 64;
/// Octets that one piece may have: what fits a datagram over IPv4, since that is how the kernel handles it.
const MOST_OCTETS: usize = 65_507;

/// Datagrams, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

/// Some datagrams of an outbox that can leave in one piece: all of one length, but for the last, which may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) octets: Range<usize>,
    pub(super) length: usize,
    pub(super) datagrams: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, datagram: &[u8]) {
        self.octets.extend_from_slice(datagram);
        self.ends.push(self.octets.len());
    }

    /// Whether it is time to send.
    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= MOST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    /// The octets of a piece.
    pub(super) fn octets(&self, piece: &Piece) -> &[u8] {
        self.octets.get(piece.octets.clone()).unwrap_or(&[])
    }

    /// All of it, in as few pieces as there can be.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> {
        let mut ends = self.ends.iter().copied().peekable();
        let mut start = 0;
        std::iter::from_fn(move || {
            let mut end = ends.next()?;
            let (first, length) = (start, end - start);
            let mut datagrams = 1;
            while let Some(&next) = ends.peek()
                && next - end <= length
                && next - first <= MOST_OCTETS
                && datagrams < MOST
            {
                let is_last = next - end < length;
                ends.next();
                (end, datagrams) = (next, datagrams + 1);
                if is_last {
                    break;
                }
            }
            start = end;
            Some(Piece {
                octets: first..end,
                length,
                datagrams,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lengths: &[usize]) -> Vec<(usize, usize, usize)> {
        let mut outbox = Outbox::default();
        lengths
            .iter()
            .for_each(|&length| outbox.push(&vec![7; length]));
        outbox
            .pieces()
            .map(|piece| (piece.octets.len(), piece.length, piece.datagrams))
            .collect()
    }

    #[test]
    fn those_of_one_length_and_a_shorter_one_leave_together() {
        assert_eq!(pieces(&[]), []);
        assert_eq!(pieces(&[100]), [(100, 100, 1)]);
        assert_eq!(pieces(&[100, 100, 100]), [(300, 100, 3)]);
        assert_eq!(
            pieces(&[100, 100, 60, 60, 100]),
            [(260, 100, 3), (60, 60, 1), (100, 100, 1)]
        );
        assert_eq!(pieces(&[60, 100]), [(60, 60, 1), (100, 100, 1)]);
    }

    #[test]
    fn no_piece_is_more_than_the_kernel_takes() {
        assert_eq!(
            pieces(&[8192; 20]),
            [(57_344, 8192, 7), (57_344, 8192, 7), (49_152, 8192, 6)]
        );
        assert_eq!(pieces(&[100; 70]), [(6400, 100, 64), (600, 100, 6)]);
        let all: usize = pieces(&[1400; 64]).iter().map(|piece| piece.2).sum();
        assert_eq!(all, 64);
    }
}
