//! Puts samples and their outcomes together.
//!
//! A sample mostly comes out of its ring with its outcome and is encoded where it lies. Of one whose packet waited (for a
//! neighbour's address, for another worker's turn) the outcome is reported in a ring of its own. Those are read first, so that the
//! outcome is at hand if it is known at all. Else the sample is copied and waits, too, for at most
//! [`MOST_WAIT`]; then it is sent without its output, since samples may not be late.
//!
//! Bounded: outcomes of at most [`weir_telemetry::sampler::FATES`](crate::sampler::FATES) samples, and
//! [`MOST_WAITING`] samples a worker; the oldest goes when another one comes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sampler::{FATES, Sample, TicketOutcome, ticket_distance};

/// How long a sample waits for its outcome.
pub(super) const MOST_WAIT: Duration = Duration::from_millis(400);
/// Samples of one worker that wait.
const MOST_WAITING: usize = 1024;

/// A sample that waits; `None` once it is sent.
struct Waiting {
    ticket: u32,
    since: Instant,
    sample: Option<Box<Sample>>,
}

/// The samples of one worker.
#[derive(Default)]
pub(super) struct Join {
    /// Fates by ticket, modulo their number; made with the first.
    early: Vec<Option<TicketOutcome>>,
    /// In the order of their tickets.
    waiting: VecDeque<Waiting>,
}

const MASK: usize = FATES - 1;
const _: () = assert!(FATES.is_power_of_two());

impl Join {
    /// An outcome arrives: the sample that waited for it, if it is out of its ring already.
    pub(super) fn outcome(&mut self, outcome: &TicketOutcome) -> Option<Box<Sample>> {
        let ticket = outcome.mark.ticket();
        if let Some(first) = self.waiting.front() {
            let first = first.ticket;
            let place = self.waiting.partition_point(|waiting| {
                ticket_distance(first, waiting.ticket) < ticket_distance(first, ticket)
            });
            if let Some(found) = self
                .waiting
                .get_mut(place)
                .filter(|waiting| waiting.ticket == ticket)
            {
                let sample = found.sample.take();
                self.forget_sent();
                return sample;
            }
        }
        if self.early.is_empty() {
            self.early.resize_with(FATES, || None);
        }
        if let Some(place) = self.early.get_mut(ticket as usize & MASK) {
            *place = Some(*outcome);
        }
        None
    }

    /// The outcome of a sample that comes out of its ring, when it is known.
    pub(super) fn known(&mut self, ticket: u32) -> Option<TicketOutcome> {
        self.early
            .get_mut(ticket as usize & MASK)?
            .take()
            .filter(|outcome| outcome.mark.ticket() == ticket)
    }

    /// Lets a sample wait; returns the one that has to go for it.
    pub(super) fn wait(&mut self, sample: &Sample, now: Instant) -> Option<Box<Sample>> {
        let gone = if self.waiting.len() >= MOST_WAITING {
            self.take_oldest()
        } else {
            None
        };
        self.waiting.push_back(Waiting {
            ticket: sample.ticket,
            since: now,
            sample: Some(Box::new(sample.clone())),
        });
        gone
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A sample that has waited too long, or any with `all`.
    pub(super) fn overdue(&mut self, now: Instant, all: bool) -> Option<Box<Sample>> {
        let oldest = self.waiting.front()?;
        if all || now.duration_since(oldest.since) >= MOST_WAIT {
            self.take_oldest()
        } else {
            None
        }
    }

    fn take_oldest(&mut self) -> Option<Box<Sample>> {
        let sample = self.waiting.pop_front().and_then(|waiting| waiting.sample);
        self.forget_sent();
        sample
    }

    fn forget_sent(&mut self) {
        while self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.sample.is_none())
        {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_graph::PacketOutcome;

    use super::*;

    fn sample(ticket: u32) -> Sample {
        let mut sample = Sample::default();
        sample.ticket = ticket;
        sample
    }

    fn ticket(sample: Option<Box<Sample>>) -> Option<u32> {
        sample.map(|sample| sample.ticket)
    }

    #[test]
    fn a_fate_that_is_reported_first_is_kept_for_its_sample_only() {
        let known = |join: &mut Join| join.known(7).map(|outcome| outcome.ending().outcome);
        let mut join = Join::default();
        assert_eq!(known(&mut join), None);
        assert_eq!(
            ticket(join.outcome(&TicketOutcome::bare(7, PacketOutcome::Kept))),
            None
        );
        assert!(
            join.known(7 + FATES as u32).is_none(),
            "another sample's, which is gone"
        );
        assert_eq!(
            ticket(join.outcome(&TicketOutcome::bare(7, PacketOutcome::Copied(3)))),
            None
        );
        assert_eq!(
            (known(&mut join), known(&mut join)),
            (Some(PacketOutcome::Copied(3)), None)
        );
    }

    #[test]
    fn samples_wait_for_their_fates_in_any_order_also_where_tickets_wrap() {
        let last = (1 << 24) - 1;
        let mut join = Join::default();
        let now = Instant::now();
        for number in [last - 1, last, 1, 2] {
            assert!(join.wait(&sample(number), now).is_none());
        }
        assert_eq!(
            ticket(join.outcome(&TicketOutcome::bare(1, PacketOutcome::Kept))),
            Some(1)
        );
        assert_eq!(
            ticket(join.outcome(&TicketOutcome::bare(1, PacketOutcome::Kept))),
            None,
            "reported once"
        );
        assert_eq!(
            ticket(join.outcome(&TicketOutcome::bare(last - 1, PacketOutcome::Kept))),
            Some(last - 1)
        );
        assert_eq!(ticket(join.overdue(now, false)), None);
        assert_eq!(ticket(join.overdue(now + MOST_WAIT, false)), Some(last));
        assert_eq!(ticket(join.overdue(now, true)), Some(2));
        assert!(join.overdue(now, true).is_none() && join.waiting.is_empty());
    }

    #[test]
    fn those_who_wait_are_bounded() {
        let mut join = Join::default();
        let now = Instant::now();
        let gone = (1..=3000)
            .filter_map(|number| join.wait(&sample(number), now))
            .count();
        assert_eq!(
            (join.waiting.len(), gone),
            (MOST_WAITING, 3000 - MOST_WAITING)
        );
    }
}
