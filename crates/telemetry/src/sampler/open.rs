//! Samples whose packets are still on their way.
//!
//! A sampled packet mostly ends within the turn in which it came. So its sample is written into the worker's ring but not
//! shown to the reader yet, and what becomes of the packet is written into the same slot, which still lies in this core's
//! cache. Samples are shown in the order in which they were taken, as soon as all before them have ended.
//!
//! A packet that waits (for a neighbour's address) or goes to another worker parts from its sample: that is shown
//! as it is, and the packet takes its ticket along, under which its end is told in a ring of its own. Until then
//! a packet is known by its identity, so that nothing cold of it need be touched.
//!
//! Should a packet go without its end being told, its sample keeps no others back for longer than two ticks.

use weir_buf::Pkt;
use weir_graph::Fate;
use weir_ring::spsc::slots::Writer;

use super::Sample;

/// The newest samples of one worker, and its ring: those that are staged there.
#[derive(Debug)]
pub(super) struct OpenSamples {
    ring: Writer<Sample>,
    /// Where the next packet is looked for first: they end in the order in which they came, mostly.
    next: usize,
    /// How many of them were there when the clock ticked last.
    old: usize,
}

impl OpenSamples {
    pub(super) fn new(ring: Writer<Sample>) -> OpenSamples {
        OpenSamples { ring, next: 0, old: 0 }
    }

    /// Where the next sample goes.
    pub(super) fn slot(&self) -> *const Sample {
        self.ring.address(0)
    }

    /// Asks the cache for the lines of a slot that most samples fill: the facts, the bytes as they leave, a short frame.
    #[inline(always)]
    pub(super) fn fetch_slot(&self, ahead: usize) {
        let slot = self.ring.address(ahead).cast::<u8>();
        weir_cpu::prefetch_write(slot);
        weir_cpu::prefetch_write(slot.wrapping_add(64));
        weir_cpu::prefetch_write(slot.wrapping_add(128));
    }

    /// Writes the sample of a packet, whose end is to follow when it is `open`. `false` when the ring is full.
    #[inline(always)]
    pub(super) fn add(&mut self, packet: &Pkt, open: bool, fill: impl FnOnce(&mut Sample)) -> bool {
        self.ring.stage_with(|sample| {
            (sample.identity, sample.open, sample.fate) = (packet.identity(), open, None);
            fill(sample);
        })
    }

    /// Writes what became of a packet into its sample; `false` when that is not here any more.
    #[inline(always)]
    pub(super) fn end(&mut self, packet: &Pkt, fate: Fate) -> bool {
        let place = self.find(|sample| sample.open && sample.identity == packet.identity());
        place.and_then(|place| self.ring.change_staged(place, |sample| sample.end(fate, packet))).is_some()
    }

    /// The packet's end will not be seen from here: the ticket under which it is told then; 0 when its sample is gone.
    #[cold]
    pub(super) fn part(&mut self, packet: &Pkt) -> u32 {
        let place = self.find(|sample| sample.open && sample.identity == packet.identity());
        let ticket = |sample: &mut Sample| {
            sample.open = false;
            sample.ticket
        };
        place.and_then(|place| self.ring.change_staged(place, ticket)).unwrap_or(0)
    }

    /// The packet has not ended after all. Its sample is the newest under its identity: an older one may still be here, of
    /// a packet that ended and whose memory it has.
    #[cold]
    pub(super) fn reopen(&mut self, packet: &Pkt) {
        self.next = 0;
        for place in (0..self.ring.staged()).rev() {
            let reopened = self.ring.change_staged(place, |sample| {
                let it = sample.fate.is_some() && sample.identity == packet.identity();
                if it {
                    (sample.open, sample.fate) = (true, None);
                }
                it
            });
            if reopened == Some(true) {
                return;
            }
        }
    }

    /// The place of a staged sample, counted from the oldest.
    #[inline(always)]
    fn find(&mut self, is_it: impl Fn(&Sample) -> bool) -> Option<usize> {
        let next = self.next;
        let place = match self.ring.change_staged(next, |sample| is_it(sample)) {
            Some(true) => next,
            _ => self.search(is_it)?,
        };
        self.next = place + 1;
        Some(place)
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, is_it: impl Fn(&Sample) -> bool) -> Option<usize> {
        (0..).map_while(|place| self.ring.change_staged(place, |sample| is_it(sample))).position(|it| it)
    }

    /// Shows what has ended, up to the first that has not.
    #[inline(always)]
    pub(super) fn show_ended(&mut self) {
        let mut count = 0;
        while self.ring.change_staged(count, |sample| sample.open) == Some(false) {
            count += 1;
        }
        if count > 0 {
            self.show(count);
        }
    }

    /// The same, out of the way of the code that takes what comes in.
    #[inline(never)]
    pub(super) fn show_sent(&mut self) {
        self.show_ended();
    }

    /// The clock ticks: what was there at the last tick is shown as it is.
    pub(super) fn tick(&mut self) {
        if self.old > 0 {
            self.show(self.old);
        }
        self.show_ended();
        self.old = self.ring.staged();
    }

    #[inline(always)]
    fn show(&mut self, count: usize) {
        self.next = self.next.saturating_sub(count);
        self.old = self.old.saturating_sub(count);
        self.ring.publish(count);
    }
}

/// What is still open is shown as it is: nobody tells its end.
impl Drop for OpenSamples {
    fn drop(&mut self) {
        self.show(self.ring.staged());
    }
}
