//! Samples whose packets are still on their way.
//!
//! A sampled packet mostly ends within the turn in which it came. So its sample is written into the worker's ring but not
//! shown to the reader yet, and what becomes of the packet is written into the same slot, which still lies in this core's
//! cache. Samples are shown in the order in which they were taken, when all before them have ended. Those of packets that
//! leave are shown with the next look, or the next tick: a driver may refuse some, and a lone sample needs no code of its own
//! for being shown.
//!
//! A packet that waits (for a neighbour's address) or goes to another worker parts from its sample: that is shown
//! as it is, and the packet takes its ticket along, under which its end is reported in a ring of its own. Until then
//! a packet is known by its identity, so that nothing cold of it need be touched.
//!
//! Should a packet go without its end being reported, its sample keeps no others back for longer than two ticks.

use weir_buf::{Flags, Pkt};
use weir_graph::PacketOutcome;
use weir_ring::spsc::slots::Writer;

use super::Sample;

/// The newest samples of one worker, and its ring: those that are staged there. Places are the ring's numbers, which wrap.
#[derive(Debug)]
#[repr(C)]
pub(super) struct OpenSamples {
    ring: Writer<Sample>,
    /// Where the next packet is looked for first: they end in the order in which they came, mostly.
    next: usize,
    /// All before this one have ended and can be shown: no slot need be looked at for that.
    ended: usize,
    /// Those before this one were there when the clock ticked last.
    old: usize,
}

impl OpenSamples {
    pub(super) fn new(ring: Writer<Sample>) -> OpenSamples {
        OpenSamples {
            ring,
            next: 0,
            ended: 0,
            old: 0,
        }
    }

    /// Asks the cache for the lines of a slot that most samples fill: the facts, the bytes as they leave, a short frame.
    #[inline(always)]
    pub(super) fn fetch_slot(&self, ahead: usize) {
        let slot = self.ring.address(ahead).cast::<u8>();
        weir_cpu::prefetch_write(slot);
        weir_cpu::prefetch_write(slot.wrapping_add(64));
        weir_cpu::prefetch_write(slot.wrapping_add(128));
    }

    /// Writes the sample of a packet, whose end is to follow when it is `open`; returns where. `None` when the ring is full.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        packet: &Pkt,
        open: bool,
        fill: impl FnOnce(&mut Sample),
    ) -> Option<usize> {
        let place = self.ring.next();
        let staged = self.ring.stage_with(|sample| {
            sample.begin(packet, open);
            fill(sample);
        });
        if staged && !open {
            self.note_end(place);
            self.keep_up();
        }
        staged.then_some(place)
    }

    /// A packet that was about to go out ended so after all, and its sample is not shown yet.
    #[cold]
    pub(super) fn correct(&mut self, place: usize, outcome: PacketOutcome) {
        self.ring
            .change_staged(place, |sample| sample.outcome = Some(outcome));
    }

    /// Of packets about to leave, so many of them marked: those that stand where they stood as they came in, one after the other,
    /// end so. Returns how many did; the samples that ended are the last so many that [`OpenSamples::just_ended`] knows.
    ///
    /// Most vectors leave as they came. Then nobody need go through the packets to find which are marked.
    #[inline(always)]
    pub(super) fn end_in_place(
        &mut self,
        packets: &[Pkt],
        marked: usize,
        outcome: impl Fn(&Pkt) -> PacketOutcome,
    ) -> usize {
        let first = self.next;
        let in_place = |sample: &mut Sample| {
            let packet = packets
                .get(usize::from(sample.place))
                .filter(|packet| packet.identity() == sample.identity);
            let packet = packet.filter(|packet| sample.open && packet.flags().any(Flags::MARKED));
            packet
                .map(|packet| sample.end(outcome(packet), packet))
                .is_some()
        };
        let mut ended = 0;
        while ended < marked
            && self.ring.change_staged(first.wrapping_add(ended), in_place) == Some(true)
        {
            ended += 1;
        }
        self.next = first.wrapping_add(ended);
        if self.ended == first {
            self.ended = self.next;
        }
        ended
    }

    /// Whether a packet's sample is one of so many that ended last ([`OpenSamples::end_in_place`]).
    pub(super) fn just_ended(&mut self, packet: &Pkt, next: usize, count: usize) -> bool {
        (1..=count).any(|back| {
            self.ring.change_staged(next.wrapping_sub(back), |sample| {
                sample.identity == packet.identity()
            }) == Some(true)
        })
    }

    /// Where the next packet is looked for.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// The sample in this place has ended.
    #[inline(always)]
    fn note_end(&mut self, place: usize) {
        if place == self.ended {
            self.ended = place.wrapping_add(1);
        }
    }

    /// Writes what became of a packet into its sample; `false` when that is not here any more.
    #[inline(always)]
    pub(super) fn end(&mut self, packet: &Pkt, outcome: PacketOutcome) -> bool {
        let place = self.find(|sample| sample.open && sample.identity == packet.identity());
        let Some(place) = place else { return false };
        let ended = self
            .ring
            .change_staged(place, |sample| sample.end(outcome, packet))
            .is_some();
        self.note_end(place);
        ended
    }

    /// The packet's outcome will not be known here: the ticket under which it arrives then; 0 when its sample is gone.
    #[cold]
    pub(super) fn part(&mut self, packet: &Pkt) -> u32 {
        let place = self.find(|sample| sample.open && sample.identity == packet.identity());
        let ticket = |sample: &mut Sample| {
            sample.open = false;
            sample.ticket
        };
        let Some(place) = place else { return 0 };
        let ticket = self.ring.change_staged(place, ticket).unwrap_or(0);
        self.note_end(place);
        ticket
    }

    /// The packet has not ended after all. Its sample is the newest under its identity: an older one may still be here, of
    /// a packet that ended and whose memory it has.
    #[cold]
    pub(super) fn reopen(&mut self, packet: &Pkt) {
        self.next = self.ring.oldest();
        for back in 1..=self.ring.staged() {
            let place = self.ring.next().wrapping_sub(back);
            let reopened = self.ring.change_staged(place, |sample| {
                let it = sample.ticket != 0
                    && sample.outcome.is_some()
                    && sample.identity == packet.identity();
                if it {
                    (sample.open, sample.outcome) = (true, None);
                }
                it
            });
            if reopened == Some(true) {
                self.ended = if is_before(place, self.ended) {
                    place
                } else {
                    self.ended
                };
                return;
            }
        }
    }

    /// The place of a staged sample.
    #[inline(always)]
    fn find(&mut self, is_it: impl Fn(&Sample) -> bool) -> Option<usize> {
        let next = self.next;
        let place = match self.ring.change_staged(next, |sample| is_it(sample)) {
            Some(true) => next,
            _ => self.search(is_it)?,
        };
        self.next = place.wrapping_add(1);
        Some(place)
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, is_it: impl Fn(&Sample) -> bool) -> Option<usize> {
        let oldest = self.ring.oldest();
        let mut all = (0..self.ring.staged()).map(|ahead| oldest.wrapping_add(ahead));
        all.find(|place| self.ring.change_staged(*place, |sample| is_it(sample)) == Some(true))
    }

    /// Shows what has ended, up to the first that has not.
    #[inline(always)]
    pub(super) fn show_ended(&mut self) {
        if self.ended != self.ring.oldest() {
            if self.ended != self.ring.next() {
                self.find_more_ended();
            }
            self.ring.publish_before(self.ended);
        }
    }

    /// Those that ended before others in front of them.
    #[inline(never)]
    fn find_more_ended(&mut self) {
        while self.ring.change_staged(self.ended, |sample| sample.open) == Some(false) {
            self.ended = self.ended.wrapping_add(1);
        }
        self.keep_up();
    }

    /// What is shown is not looked for any more.
    fn keep_up(&mut self) {
        if is_before(self.next, self.ended) {
            self.next = self.ended;
        }
    }

    /// The clock ticks: what was there at the last tick is shown as it is.
    pub(super) fn tick(&mut self) {
        if is_before(self.ended, self.old) {
            self.ended = self.old;
        }
        self.find_more_ended();
        self.show_ended();
        self.old = self.ring.next();
    }
}

/// Whether one place comes before another.
#[inline(always)]
fn is_before(place: usize, other: usize) -> bool {
    place.wrapping_sub(other).cast_signed() < 0
}

/// What is still open is shown as it is: nobody tells its end.
impl Drop for OpenSamples {
    fn drop(&mut self) {
        self.ring.publish_all();
    }
}
