//! Samples, scaled up, beside an interface's own counters.

/// The frame check sequence.
const FCS: u64 = 4;

/// What was sampled in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) samples: u64,
    packets: u64,
    octets: u64,
    octets_without_fcs: u64,
    /// Sums for the frames' variation.
    lengths: f64,
    squares: f64,
    /// Sum of the rates' squares: one sample in many says less than many of a few.
    rates: f64,
}

impl Sampled {
    pub(super) fn add(&mut self, rate: u32, frame: u32) {
        let (rate, frame) = (u64::from(rate), u64::from(frame));
        self.samples += 1;
        self.packets = self.packets.saturating_add(rate);
        self.octets = self.octets.saturating_add(rate * frame);
        self.octets_without_fcs = self
            .octets_without_fcs
            .saturating_add(rate * frame.saturating_sub(FCS));
        self.lengths += frame as f64;
        self.squares += (frame * frame) as f64;
        self.rates += (rate as f64) * (rate as f64);
    }

    pub(super) fn merge(&mut self, other: Sampled) {
        self.samples += other.samples;
        self.packets = self.packets.saturating_add(other.packets);
        self.octets = self.octets.saturating_add(other.octets);
        self.octets_without_fcs = self
            .octets_without_fcs
            .saturating_add(other.octets_without_fcs);
        self.lengths += other.lengths;
        self.squares += other.squares;
        self.rates += other.rates;
    }

    /// The squared coefficient of variation of the frames' lengths.
    fn variation(&self) -> f64 {
        let mean = self.lengths / self.samples.max(1) as f64;
        if mean == 0.0 {
            0.0
        } else {
            (self.squares / self.samples.max(1) as f64 / (mean * mean) - 1.0).max(0.0)
        }
    }

    /// `196 * sqrt(1/c)`; of several rates, what that becomes.
    fn bound(&self) -> f64 {
        match (self.samples, self.packets) {
            (0, _) => f64::INFINITY,
            (samples, 0) => 196.0 / (samples as f64).sqrt(),
            (_, packets) => 196.0 * self.rates.sqrt() / packets as f64,
        }
    }
}

/// What an interface counted in one direction between its reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) packets: u64,
    pub(super) octets: u64,
}

/// Which way packets go through an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// In.
    Ingress,
    /// Out.
    Egress,
}

/// What can be said of samples beside counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Packets and octets are within their bounds.
    Agrees,
    /// They are not.
    Disagrees,
    /// There were times in which the interface counted and nothing was sampled.
    PartlySampled,
    /// They would be or not, depending on which way packets went of which that cannot be known.
    DirectionUnknown,
}

/// Samples beside counters, of one interface and direction.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Which direction.
    pub direction: Direction,
    /// Samples between the counters.
    pub samples: u64,
    /// Samples in the same time that may be of this direction or of the other one.
    pub undirected: u64,
    /// Packets of these.
    pub undirected_packets: f64,
    /// Packets, as the samples have it.
    pub estimated_packets: f64,
    /// Packets, as the interface counted.
    pub counted_packets: u64,
    /// Octets, as the samples have it, with the frames' check sequences.
    pub estimated_octets: f64,
    /// The same without them.
    pub estimated_octets_without_fcs: f64,
    /// Octets, as the interface counted.
    pub counted_octets: u64,
    /// How far the packets may be off, in percent.
    pub packet_bound: f64,
    /// How far the octets may be off, in percent; more, because frames differ.
    pub octet_bound: f64,
    /// Whether there were times in which packets were counted and none was sampled.
    pub with_gaps: bool,
}

/// In percent of what is true.
fn off(estimated: f64, counted: u64) -> f64 {
    if counted == 0 {
        if estimated == 0.0 { 0.0 } else { f64::INFINITY }
    } else {
        100.0 * (estimated / counted as f64 - 1.0)
    }
}

impl Estimate {
    pub(super) fn new(
        direction: Direction,
        sampled: Sampled,
        undirected: Sampled,
        counted: Counted,
        correction: f64,
    ) -> Estimate {
        let mut all = sampled;
        all.merge(undirected);
        let packet_bound = all.bound();
        Estimate {
            direction,
            samples: sampled.samples,
            undirected: undirected.samples,
            undirected_packets: undirected.packets as f64 * correction,
            estimated_packets: sampled.packets as f64 * correction,
            counted_packets: counted.packets,
            estimated_octets: sampled.octets as f64 * correction,
            estimated_octets_without_fcs: sampled.octets_without_fcs as f64 * correction,
            counted_octets: counted.octets,
            packet_bound,
            octet_bound: packet_bound * (1.0 + all.variation()).sqrt(),
            with_gaps: false,
        }
    }

    /// How far the packets are off, in percent.
    #[must_use]
    pub fn packets_off(&self) -> f64 {
        off(self.estimated_packets, self.counted_packets)
    }

    /// How far the octets are off, in percent, and whether with check sequences: what fits better.
    #[must_use]
    pub fn octets_off(&self) -> (f64, bool) {
        let (with, without) = (
            off(self.estimated_octets, self.counted_octets),
            off(self.estimated_octets_without_fcs, self.counted_octets),
        );
        if with.abs() <= without.abs() {
            (with, true)
        } else {
            (without, false)
        }
    }

    /// Whether the interface counts check sequences; `None` where both are within the bound, as with few samples or long frames.
    #[must_use]
    pub fn counts_fcs(&self) -> Option<bool> {
        let fits = |estimated: f64| off(estimated, self.counted_octets).abs() <= self.octet_bound;
        match (
            fits(self.estimated_octets),
            fits(self.estimated_octets_without_fcs),
        ) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    /// Whether both are within their bounds.
    #[must_use]
    pub fn within(&self) -> bool {
        self.packets_off().abs() <= self.packet_bound
            && self.octets_off().0.abs() <= self.octet_bound
    }

    /// What can be said.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let most = off(
            self.estimated_packets + self.undirected_packets,
            self.counted_packets,
        );
        let least = self.packets_off();
        if self.samples == 0 && self.undirected > 0 {
            Verdict::DirectionUnknown
        } else if self.within() && most <= self.packet_bound {
            Verdict::Agrees
        } else if self.undirected > 0 && least <= self.packet_bound && most >= -self.packet_bound {
            Verdict::DirectionUnknown
        } else if self.with_gaps && most < 0.0 {
            Verdict::PartlySampled
        } else {
            Verdict::Disagrees
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one length, of which the interface counted so many octets each.
    fn estimate(samples: u64, frame: u32, counted: u64) -> Estimate {
        let mut sampled = Sampled::default();
        (0..samples).for_each(|_| sampled.add(100, frame));
        let counted = Counted {
            packets: samples * 100,
            octets: samples * 100 * counted,
        };
        Estimate::new(
            Direction::Ingress,
            sampled,
            Sampled::default(),
            counted,
            1.0,
        )
    }

    /// 4 of 68 octets are 6 %: seen with 10,000 samples (bound 2 %), and not with 100 (bound 20 %); of 1518 octets not at all.
    #[test]
    fn check_sequences_are_reported_where_they_can_be_reported() {
        assert_eq!(estimate(10_000, 68, 64).counts_fcs(), Some(false));
        assert_eq!(estimate(10_000, 68, 68).counts_fcs(), Some(true));
        assert_eq!(estimate(100, 68, 64).counts_fcs(), None);
        assert_eq!(estimate(100, 68, 68).counts_fcs(), None);
        assert_eq!(estimate(10_000, 1518, 1514).counts_fcs(), None);
        assert_eq!(estimate(100, 68, 64).verdict(), Verdict::Agrees);
        // Neither fits.
        assert_eq!(estimate(10_000, 68, 90).counts_fcs(), None);
    }
}
