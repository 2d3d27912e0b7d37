//! Code that is compiled twice, and knows for which instructions.
//!
//! A function that is asked for each packet cannot ask [`level`] each time what the machine has, and a constant cannot tell
//! it: the same function is compiled for both levels. So the code is handed a value whose type says it. That of the better
//! instructions is made here only, after they were found: whoever has one may use them.

use std::sync::atomic::AtomicU32;

#[cfg(target_arch = "x86_64")]
use crate::Lanes;
use crate::Task;

/// What code was compiled for.
pub trait Code: Copy + Sealed {
    /// As [`scramble`].
    fn scramble(self, block: Block, of_it: Block, keys: &ScrambleKeys) -> Block;
    /// The first of four words that equals `wanted`.
    fn first_of_four(self, words: &[u64; 4], wanted: u64) -> Option<usize>;
    /// As [`crate::count_less`]; `than` is read where it lies.
    fn count_less(self, words: &[AtomicU32; 16], than: &i32) -> u32;
    /// Leaves the registers as other code likes them; when the work is done.
    fn finish(self);
}

/// Sixteen octets as words in little-endian order.
pub type Block = [u64; 2];
/// What [`scramble`] is done with: random words, known to nobody else.
pub type ScrambleKeys = [Block; 3];

/// Only the two below are code.
pub trait Sealed {}

/// Compiled for any machine.
#[derive(Clone, Copy, Debug)]
pub struct AnyMachine;

/// Compiled for [`crate::Level::V3`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetterMachine(Lanes);

impl Sealed for AnyMachine {}
#[cfg(target_arch = "x86_64")]
impl Sealed for BetterMachine {}

impl Code for AnyMachine {
    #[inline(always)]
    fn scramble(self, block: Block, of_it: Block, keys: &ScrambleKeys) -> Block {
        scramble(block, of_it, keys)
    }

    #[inline(always)]
    fn first_of_four(self, words: &[u64; 4], wanted: u64) -> Option<usize> {
        Some(crate::equal_of_four(words, wanted).trailing_zeros() as usize / 4)
            .filter(|place| *place < 4)
    }

    #[inline(always)]
    fn count_less(self, words: &[AtomicU32; 16], than: &i32) -> u32 {
        crate::count_less(words, *than)
    }

    #[inline(always)]
    fn finish(self) {}
}

#[cfg(target_arch = "x86_64")]
impl Code for BetterMachine {
    #[inline(always)]
    fn scramble(self, block: Block, of_it: Block, keys: &ScrambleKeys) -> Block {
        let BetterMachine(lanes) = self;
        let [first, second, third] = keys.map(|key| lanes.of(key));
        let block = lanes.xor(lanes.and(lanes.of(block), lanes.of(of_it)), first);
        lanes.words(lanes.round(lanes.round(block, second), third))
    }

    #[inline(always)]
    fn first_of_four(self, words: &[u64; 4], wanted: u64) -> Option<usize> {
        use core::arch::x86_64::{
            _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x,
        };
        #[expect(
            unsafe_code,
            reason = "instructions that not every machine has, and loads by address"
        )]
        // SAFETY: this value says that the machine has AVX2; the 32 bytes that are read are those of `words`.
        let equal = unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(
                words,
                _mm256_set1_epi64x(wanted.cast_signed()),
            )))
        };
        if equal == 0 {
            None
        } else {
            Some(equal.trailing_zeros() as usize)
        }
    }

    #[inline(always)]
    fn count_less(self, words: &[AtomicU32; 16], than: &i32) -> u32 {
        let found: u32;
        #[expect(
            unsafe_code,
            reason = "as in `less_than`, whole lines by two comparisons"
        )]
        // SAFETY: the 64 bytes from the first word on are those of `words`, read as in `less_than`, and the four bytes those of
        // `than`. This value says that the machine has AVX2.
        unsafe {
            core::arch::asm!(
                "vpbroadcastd {than:y}, dword ptr [{number}]",
                "vpcmpgtd {one:y}, {than:y}, [{words}]",
                "vpcmpgtd {than:y}, {than:y}, [{words} + 32]",
                "vpackssdw {one:y}, {one:y}, {than:y}",
                "vpmovmskb {found:e}, {one:y}",
                words = in(reg) words.as_ptr(),
                number = in(reg) than,
                than = out(xmm_reg) _,
                one = out(xmm_reg) _,
                found = lateout(reg) found,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        // Two bits for each word.
        found.count_ones() / 2
    }

    #[inline(always)]
    fn finish(self) {
        #[expect(unsafe_code, reason = "an instruction that not every machine has")]
        // SAFETY: this value says that the machine has AVX2. What is above the sixteen octets of registers belongs to nobody.
        unsafe {
            core::arch::x86_64::_mm256_zeroupper();
        }
    }
}

/// Stirs a block under secret keys so that each bit of it depends on all others, and different blocks stay different: for
/// tables in which part of a block says where the rest of it lies. Only those bits of it count that are set in `of_it`. No cipher.
/// What a block becomes is another on another machine.
#[inline]
#[must_use]
pub fn scramble(block: Block, of_it: Block, keys: &ScrambleKeys) -> Block {
    #[cfg(target_arch = "x86_64")]
    if let Some(lanes) = Lanes::new() {
        #[expect(
            unsafe_code,
            reason = "calling a function with more target features than the caller"
        )]
        // SAFETY: there are `Lanes` only after every feature that `scramble_v3` enables was detected.
        return unsafe { scramble_v3(lanes, block, of_it, keys) };
    }
    scramble_anywhere([block[0] & of_it[0], block[1] & of_it[1]], keys)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "aes,avx2")]
fn scramble_v3(lanes: Lanes, block: Block, of_it: Block, keys: &ScrambleKeys) -> Block {
    BetterMachine(lanes).scramble(block, of_it, keys)
}

/// Each of the two steps can be undone by who knows what the other word became, so that nothing is lost.
#[inline(always)]
fn scramble_anywhere([low, high]: Block, keys: &ScrambleKeys) -> Block {
    let folded = |word: u64, [laid_over, factor]: Block| {
        let product = u128::from(word ^ laid_over) * u128::from(factor | 1);
        (product >> 64) as u64 ^ product as u64
    };
    let low = low ^ folded(high, keys[0]);
    let high = high ^ folded(low, keys[1]);
    [low ^ folded(high, keys[2]), high]
}

/// As [`Task`], with the CPU features that it is compiled for.
pub trait CodedTask {
    /// What the work yields.
    type Output;
    /// Does the work. To be marked `#[inline(always)]`.
    fn run<C: Code>(self, code: C) -> Self::Output;
}

/// As [`apart`](crate::apart).
#[inline(always)]
pub fn apart_coded<T: CodedTask>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(lanes) = Lanes::new() {
        #[expect(
            unsafe_code,
            reason = "calling a function with more target features than the caller"
        )]
        // SAFETY: there are `Lanes` only after every feature that `apart_v3` enables was detected.
        return unsafe {
            crate::apart_v3(Coded {
                task,
                code: BetterMachine(lanes),
            })
        };
    }
    crate::apart_baseline(Coded {
        task,
        code: AnyMachine,
    })
}

struct Coded<T, C> {
    task: T,
    code: C,
}

impl<T: CodedTask, C: Code> Task for Coded<T, C> {
    type Output = T::Output;

    #[inline(always)]
    fn run(self) -> T::Output {
        let done = self.task.run(self.code);
        self.code.finish();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: ScrambleKeys = [
        [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
        [0xd1b5_4a32_d192_ed03, 0x94d0_49bb_1331_11eb],
        [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9],
    ];

    /// What the code that it is compiled for makes of blocks, and where it finds words.
    struct Found<'a>(&'a [Block]);

    impl CodedTask for Found<'_> {
        type Output = (Vec<Block>, Vec<Option<usize>>, Vec<u32>);

        #[inline(always)]
        fn run<C: Code>(self, code: C) -> Self::Output {
            let words = [1 << 40 | 7, 7, 1 << 40, 7];
            let places = [7, 1 << 40, 1 << 40 | 7, 0, u64::MAX]
                .map(|wanted| code.first_of_four(&words, wanted))
                .to_vec();
            let ascending: [AtomicU32; 16] =
                std::array::from_fn(|n| AtomicU32::new((n as i32 * 3 - 20).cast_unsigned()));
            let less = [i32::MIN, -21, -20, -19, -1, 0, 1, 24, 25, 26, i32::MAX]
                .map(|than| code.count_less(&ascending, &than))
                .to_vec();
            (
                self.0
                    .iter()
                    .map(|block| code.scramble(*block, [u64::MAX; 2], &KEYS))
                    .collect(),
                places,
                less,
            )
        }
    }

    #[test]
    fn all_code_does_the_same() {
        let blocks: Vec<Block> = (0..100).map(|n| [n, n << 32]).collect();
        let here = apart_coded(Found(&blocks));
        assert_eq!(here, Found(&blocks).run(AnyMachine));
        assert!(blocks.iter().zip(&here.0).all(|(block, found)| scramble(
            *block,
            [u64::MAX; 2],
            &KEYS
        ) == *found));
        assert_eq!(here.1, [Some(1), Some(2), Some(0), None, None]);
        assert_eq!(here.2, [0, 0, 0, 1, 7, 7, 7, 15, 15, 16, 16]);
    }

    fn is_well_stirred(scramble: impl Fn(Block) -> Block) {
        let mut all: Vec<Block> = (0..1 << 16)
            .map(|n: u64| scramble([n & 0xff, n >> 8 << 40]))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1 << 16);
        for bit in 0..128 {
            let changed = |n: u64| {
                let (block, other) = (
                    [n, !n],
                    [
                        n ^ (1u128 << bit) as u64,
                        !n ^ ((1u128 << bit) >> 64) as u64,
                    ],
                );
                let (block, other) = (scramble(block), scramble(other));
                (block[0] ^ other[0]).count_ones() + (block[1] ^ other[1]).count_ones()
            };
            let mean = (0..64).map(|n| changed(n << 58 | n << 30 | n)).sum::<u32>() / 64;
            assert!((40..=80).contains(&mean), "bit {bit} changes {mean}");
        }
    }

    #[test]
    fn blocks_are_stirred_and_stay_different() {
        is_well_stirred(|block| scramble(block, [u64::MAX; 2], &KEYS));
        is_well_stirred(|block| scramble_anywhere(block, &KEYS));
    }

    #[test]
    fn bits_that_do_not_count_change_nothing() {
        let of_it = [0xffff_ffff_0000_ff00, 0xf0f0];
        let block = |other: u64| {
            [
                0x1234_5678_0000_4400 | other & !of_it[0],
                0x4050 | other & !of_it[1],
            ]
        };
        assert_eq!(
            scramble(block(0), of_it, &KEYS),
            scramble(block(u64::MAX), of_it, &KEYS)
        );
        assert_ne!(
            scramble(block(0), of_it, &KEYS),
            scramble(block(0).map(|word| word ^ 0x1000), of_it, &KEYS)
        );
    }
}
