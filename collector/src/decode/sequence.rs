//! Sequence numbers of datagrams: which were lost, with late ones taken off again.

use weir_flowfmt::sflow::ledger::{Numbers, Order};

/// The sequence of one sender.
#[derive(Debug, Default)]
pub(super) struct Sequence(Numbers);

/// What one number shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Change of the number of lost datagrams.
    pub(super) lost: i64,
    /// Whether it counts as an arrival (a duplicate does not).
    pub(super) arrived: bool,
    /// Whether the sequence began again.
    pub(super) restarted: bool,
}

impl Sequence {
    /// Enters a number.
    pub(super) fn note(&mut self, number: u32) -> Seen {
        let before = self.0.lost;
        let order = self.0.note(number);
        Seen {
            lost: self.0.lost.wrapping_sub(before).cast_signed(),
            arrived: order != Order::Duplicate,
            restarted: order == Order::Restart,
        }
    }
}
