//! Random numbers for sampling: xoshiro256++, and the geometric law of gaps between samples.
//!
//! The generator is seeded by its owner: from the operating system's entropy in a router, so that
//! nobody who knows the rate can dodge samples, from a constant in tests. It is not for secrets.

/// A generator with 256 bits of state.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// A generator for `seed`; any seed is good.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        // SplitMix64 spreads the seed over the state (Steele, Lea, Flood 2014).
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Random([next(), next(), next(), next()])
    }

    /// The next 64 bits (Blackman and Vigna, xoshiro256++).
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number above 0, up to and including 1, with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

/// How many packets lie between one sample and the next when each packet is sampled with chance 1/N.
///
/// Drawing the gap is the same as tossing a coin for every packet, only without the tosses: each
/// packet has the same chance, whatever was sampled before, from the very first one on.
///
/// Gaps are drawn in batches: where samples are rare, the code and the tables of the logarithm have
/// left the cache by the time of the next one, and fetching them would cost more than all the rest.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Gaps {
    /// How many of `drawn` are used up.
    used: u32,
    drawn: [u32; BATCH],
    random: Random,
    /// 1 / ln(1 - 1/N); 0 for N = 1.
    scale: f64,
}

/// Gaps drawn together: so many that the code for it hardly counts.
const BATCH: usize = 42;
/// From so rare samples on, one in 58 million, gaps may be too long for the batch, and are drawn one by one: no logarithm of what is
/// drawn is below -37.
const LEAST_SCALE: f64 = -((1_u64 << 31) as f64 / 37.0);

impl Gaps {
    /// Gaps for one in `rate`; a rate of 0 counts as 1.
    #[must_use]
    pub fn new(random: Random, rate: u32) -> Gaps {
        let mut gaps = Gaps {
            random,
            scale: 0.0,
            drawn: [0; BATCH],
            used: BATCH as u32,
        };
        gaps.set_rate(rate);
        gaps
    }

    /// Changes the rate; the generator goes on.
    pub fn set_rate(&mut self, rate: u32) {
        self.used = BATCH as u32;
        self.scale = if rate <= 1 {
            0.0
        } else {
            1.0 / (-1.0 / f64::from(rate)).ln_1p()
        };
    }

    /// What [`Gaps::pass`] will tell next, when that is drawn already.
    #[inline(always)]
    pub(crate) fn drawn(&self) -> Option<u64> {
        self.drawn.get(self.used as usize).map(|&gap| gap.into())
    }

    /// Has used what [`Gaps::drawn`] returned.
    #[inline(always)]
    pub(crate) fn use_drawn(&mut self) {
        self.used += 1;
    }

    /// How many packets to pass over before the next sample.
    #[inline]
    pub fn pass(&mut self) -> u64 {
        match self.drawn() {
            Some(gap) => {
                self.use_drawn();
                gap
            }
            None => self.draw(),
        }
    }

    /// Draws a batch and returns the first of it.
    #[cold]
    fn draw(&mut self) -> u64 {
        // Inversion: floor(ln(U) / ln(1 - p)) is geometric from 0. Both logarithms are negative.
        if self.scale < LEAST_SCALE {
            return (ln(self.random.unit()) * self.scale) as u64;
        }
        // One by one: several at once, in vectors, are a little quicker when they come often, and so much code that it costs more than
        // they when they come rarely.
        for gap in &mut self.drawn {
            *gap = (ln(self.random.unit()) * self.scale) as i32 as u32;
        }
        self.used = 1;
        self.drawn[0].into()
    }
}

/// The natural logarithm of a normal number above 0, to thirteen digits: without a table, a branch or a call, so that several are
/// worked out at once.
#[inline(always)]
fn ln(x: f64) -> f64 {
    /// The octets of the root of one half: what is left when the power of two is taken off lies between it and its double.
    const LEAST: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(LEAST) as i64) >> 52;
    let rest = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    // The series of the inverse hyperbolic tangent: its square is below 0.03.
    let part = (rest - 1.0) / (rest + 1.0);
    let square = part * part;
    let series = [
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
        1.0,
    ];
    exponent as f64 * std::f64::consts::LN_2
        + 2.0
            * part
            * series
                .iter()
                .fold(1.0 / 15.0, |sum, term| sum * square + term)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On both sides of where gaps are no longer drawn together, and at the end: none is cut off.
    #[test]
    fn long_gaps_have_their_mean() {
        for rate in [57_000_000, 59_000_000, u32::MAX] {
            let mut gaps = Gaps::new(Random::new(9), rate);
            let count = 40_000;
            let sum: f64 = (0..count).map(|_| gaps.pass() as f64).sum();
            // The deviation of one gap is its mean.
            let deviations =
                (sum / f64::from(count) / f64::from(rate) - 1.0) * f64::from(count).sqrt();
            assert!(deviations.abs() < 4.0, "{rate}: {deviations}");
            assert_eq!(gaps.drawn().is_some(), rate < 58_000_000, "{rate}");
        }
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        let mut random = Random::new(3);
        let ends = [
            1.0,
            1.0 - f64::EPSILON,
            0.5,
            std::f64::consts::FRAC_1_SQRT_2,
            1.0 / 9_007_199_254_740_992.0,
        ];
        for x in ends.into_iter().chain((0..100_000).map(|_| random.unit())) {
            let (found, exact) = (ln(x), x.ln());
            assert!(
                (found - exact).abs() <= exact.abs() * 1e-13,
                "{x}: {found} and {exact}"
            );
        }
    }
}
