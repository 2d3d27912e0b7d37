//! The few machine instructions the router needs and stable Rust calls unsafe.
//!
//! * [`tsc`] and [`tsc_hz`]: the clock everything on the hot side is measured in.
//! * [`prefetch`], [`prefetch_write`]: hints that a line will be used soon; they can neither fault nor
//!   change anything.
//! * [`less_than`], [`count_less`], [`equal`], [`soonest`], [`differ`]: numbers compared several at once; [`sum_up`].
//! * [`Lanes`]: sixteen octets in one register.
//! * [`dispatch`]: runs a piece of work compiled for the best instruction set this machine has,
//!   chosen once at start. The binary itself stays at the x86-64 baseline. [`apart`] does so in a function of its own.
//! * [`pin_to`]: ties the calling thread to one core.
//! * [`prefer_hugepages`]: asks for memory to lie on large pages; [`LargePages`] is memory that does from end to end.
//! * [`numa`]: which memory is near. [`scheduling`]: priority and cores of a thread. [`heap`]: free memory
//!   goes back to the system.
//!
//! Everything here is callable from safe code, from any thread, at any time.

#![deny(unsafe_code)]

mod code;
pub mod heap;
mod lane;
mod large_pages;
pub mod numa;
pub mod scheduling;

pub use code::{AnyMachine, Block, Code, CodedTask, ScrambleKeys, apart_coded, scramble};
pub use lane::{Lane, Lanes};
pub use large_pages::LargePages;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The current value of the time stamp counter (nanoseconds since start where there is none).
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(
            unsafe_code,
            reason = "the instruction is an intrinsic that stable Rust calls unsafe"
        )]
        // SAFETY: RDTSC reads a counter; it has no operands and no memory effect.
        unsafe {
            core::arch::x86_64::_rdtsc()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Ticks of [`tsc`] per second, measured once against the monotonic clock.
///
/// The first call takes about 20 ms. The best of three short windows is taken, so that being
/// scheduled away in one of them does not spoil the result.
pub fn tsc_hz() -> u64 {
    static HZ: OnceLock<u64> = OnceLock::new();
    *HZ.get_or_init(|| {
        let mut samples = [0u64; 3];
        for sample in &mut samples {
            let (t0, c0) = (Instant::now(), tsc());
            std::thread::sleep(Duration::from_millis(7));
            let (elapsed, ticks) = (t0.elapsed(), tsc().wrapping_sub(c0));
            *sample = (u128::from(ticks) * 1_000_000_000 / elapsed.as_nanos().max(1)) as u64;
        }
        samples.sort_unstable();
        samples[1].max(1)
    })
}

/// Asks the cache for the line that `place` lies in. A hint only.
#[inline(always)]
pub fn prefetch<T: ?Sized>(place: &T) {
    prefetch_address(std::ptr::from_ref(place).cast());
}

/// As [`prefetch`], for an address that may be anything, even invalid.
#[inline(always)]
pub fn prefetch_address(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(
            unsafe_code,
            reason = "the instruction is an intrinsic that stable Rust calls unsafe"
        )]
        // SAFETY: PREFETCHT0 never faults and changes no architectural state, whatever the address.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast());
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        #[expect(
            unsafe_code,
            reason = "there is no stable intrinsic for the instruction"
        )]
        // SAFETY: PRFM never faults and changes no architectural state, whatever the address.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{place}]", place = in(reg) place, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// As [`prefetch_address`], into the second cache only: what is far away and needed later. A core waits for a few lines of the first cache at once,
/// and for more of the second one.
#[inline(always)]
pub fn prefetch_second(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(
            unsafe_code,
            reason = "the instruction is an intrinsic that stable Rust calls unsafe"
        )]
        // SAFETY: PREFETCHT1 never faults and changes no architectural state, whatever the address.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(place.cast());
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        #[expect(
            unsafe_code,
            reason = "there is no stable intrinsic for the instruction"
        )]
        // SAFETY: PRFM never faults and changes no architectural state, whatever the address.
        unsafe {
            core::arch::asm!("prfm pldl2keep, [{place}]", place = in(reg) place, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// As [`prefetch`], for a line that will be written soon: it is taken away from other cores as well.
#[inline(always)]
pub fn prefetch_write(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        #[expect(
            unsafe_code,
            reason = "without the target feature, the intrinsic would become an ordinary prefetch"
        )]
        // SAFETY: PREFETCHW never faults and changes no architectural state, whatever the address; a
        // 64-bit processor that does not know it takes it for a NOP.
        unsafe {
            core::arch::asm!("prefetchw [{place}]", place = in(reg) place, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        #[expect(
            unsafe_code,
            reason = "there is no stable intrinsic for the instruction"
        )]
        // SAFETY: PRFM never faults and changes no architectural state, whatever the address.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{place}]", place = in(reg) place, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Which of sixteen words are less than `than`, all taken as signed numbers: bit `n` tells of word `n`.
///
/// The words are read as one relaxed load of each would read them, in any order.
#[inline(always)]
#[must_use]
pub fn less_than(words: &[AtomicU32; 16], than: i32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_cmpgt_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32,
        };
        let (one, two, three, last): (__m128i, __m128i, __m128i, __m128i);
        #[expect(
            unsafe_code,
            reason = "there are no atomic loads of several words; a plain load of what others write is not defined"
        )]
        // SAFETY: the 64 bytes from the first word on are those of `words`. On x86-64 such a load reads each aligned word of it
        // in one piece, as four relaxed loads would; it writes nothing.
        unsafe {
            core::arch::asm!(
                "movups {one}, [{words}]",
                "movups {two}, [{words} + 16]",
                "movups {three}, [{words} + 32]",
                "movups {last}, [{words} + 48]",
                words = in(reg) words.as_ptr(),
                one = out(xmm_reg) one,
                two = out(xmm_reg) two,
                three = out(xmm_reg) three,
                last = out(xmm_reg) last,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        #[expect(
            unsafe_code,
            reason = "arithmetic that every x86-64 has, but stable Rust calls unsafe in older versions only"
        )]
        // SAFETY: SSE2 is part of x86-64; these instructions work on registers.
        unsafe {
            let than = _mm_set1_epi32(than);
            let less = |words: __m128i| _mm_cmpgt_epi32(than, words);
            let (lower, upper) = (
                _mm_packs_epi32(less(one), less(two)),
                _mm_packs_epi32(less(three), less(last)),
            );
            _mm_movemask_epi8(_mm_packs_epi16(lower, upper)) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.iter().enumerate().fold(0, |bits, (n, word)| {
        bits | u32::from(word.load(Ordering::Relaxed).cast_signed() < than) << n
    })
}

/// How many of sixteen words, which are in ascending order, are less than `than`, all taken as signed numbers. Read as by
/// [`less_than`].
#[inline(always)]
#[must_use]
pub fn count_less(words: &[AtomicU32; 16], than: i32) -> u32 {
    // Whoever is in a loop of packets has looked for the level long since.
    #[cfg(target_arch = "x86_64")]
    if LEVEL.load(Ordering::Relaxed) == V3 {
        let found: u32;
        #[expect(
            unsafe_code,
            reason = "as in `less_than`; compared where they are read, words take half the instructions"
        )]
        // SAFETY: the 64 bytes from the first word on are those of `words`, read as in `less_than`. AVX2 is part of V3.
        unsafe {
            core::arch::asm!(
                "vmovd {than}, {number:e}",
                "vpbroadcastd {than}, {than}",
                "vpcmpgtd {one}, {than}, [{words}]",
                "vpcmpgtd {two}, {than}, [{words} + 16]",
                "vpackssdw {one}, {one}, {two}",
                "vpcmpgtd {two}, {than}, [{words} + 32]",
                "vpcmpgtd {than}, {than}, [{words} + 48]",
                "vpackssdw {two}, {two}, {than}",
                "vpacksswb {one}, {one}, {two}",
                "vpmovmskb {found:e}, {one}",
                words = in(reg) words.as_ptr(),
                number = in(reg) than,
                than = out(xmm_reg) _,
                one = out(xmm_reg) _,
                two = out(xmm_reg) _,
                found = lateout(reg) found,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        return found.count_ones();
    }
    less_than(words, than).trailing_ones()
}

/// Which of sixteen words equal `wanted`: a bit for each, that of the first one lowest.
#[inline(always)]
#[must_use]
pub fn equal(words: &[u16; 16], wanted: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16,
        };
        #[expect(
            unsafe_code,
            reason = "loads by address, and arithmetic that every x86-64 has but older versions of Rust call unsafe"
        )]
        // SAFETY: the 32 bytes are those of `words`; SSE2 is part of x86-64.
        unsafe {
            let (wanted, words) = (
                _mm_set1_epi16(wanted.cast_signed()),
                std::ptr::from_ref(words).cast(),
            );
            let (low, high) = (_mm_loadu_si128(words), _mm_loadu_si128(words.add(1)));
            _mm_movemask_epi8(_mm_packs_epi16(
                _mm_cmpeq_epi16(low, wanted),
                _mm_cmpeq_epi16(high, wanted),
            )) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    words
        .iter()
        .enumerate()
        .fold(0, |bits, (n, word)| bits | u32::from(*word == wanted) << n)
}

/// Which of fourteen words comes first, counted from `from` on: how far ahead it is, with 0x8000 for `from` itself and less for those
/// behind it, and its place. Those that are not `used`, with a 0 there, do not count; 0xffff when none is.
#[inline(always)]
#[must_use]
pub fn soonest(words: &[u16; 14], used: &[u16; 14], from: u16) -> (u16, usize) {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::V3 {
        use core::arch::x86_64::{
            __m128i, _mm_cmpeq_epi16, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_minpos_epu16,
            _mm_or_si128, _mm_set1_epi16, _mm_setzero_si128, _mm_sub_epi16,
        };
        let eight = |at: usize| {
            #[expect(
                unsafe_code,
                reason = "loads by address, and an instruction of SSE 4.1"
            )]
            // SAFETY: the sixteen bytes from `at` on lie within each of them, since `at` is 0 or 6; SSE 4.1 is part of V3.
            unsafe {
                let load =
                    |words: &[u16; 14]| _mm_loadu_si128(words.as_ptr().add(at).cast::<__m128i>());
                let ahead =
                    _mm_sub_epi16(load(words), _mm_set1_epi16((from ^ 0x8000).cast_signed()));
                let unused = _mm_cmpeq_epi16(load(used), _mm_setzero_si128());
                _mm_cvtsi128_si32(_mm_minpos_epu16(_mm_or_si128(ahead, unused))).cast_unsigned()
            }
        };
        let (low, high) = (eight(0), eight(6) + (6 << 16));
        let first = if high as u16 >= low as u16 { low } else { high };
        return (first as u16, (first >> 16) as usize);
    }
    let ahead = |(place, (word, used)): (usize, (&u16, &u16))| {
        (
            if *used == 0 {
                u16::MAX
            } else {
                word.wrapping_sub(from) ^ 0x8000
            },
            place,
        )
    };
    words
        .iter()
        .zip(used)
        .enumerate()
        .map(ahead)
        .min()
        .unwrap_or((u16::MAX, 0))
}

/// Which of four words equal `wanted`: bit `4n` tells of word `n`.
#[inline(always)]
#[must_use]
pub fn equal_of_four(words: &[u64; 4], wanted: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi32, _mm_set1_epi64x,
        };
        #[expect(
            unsafe_code,
            reason = "loads by address, and arithmetic that every x86-64 has but older versions of Rust call unsafe"
        )]
        // SAFETY: the 32 bytes are those of `words`; SSE2 is part of x86-64.
        let halves = unsafe {
            let (wanted, words) = (
                _mm_set1_epi64x(wanted.cast_signed()),
                std::ptr::from_ref(words).cast(),
            );
            let (low, high) = (_mm_loadu_si128(words), _mm_loadu_si128(words.add(1)));
            _mm_movemask_epi8(_mm_packs_epi32(
                _mm_cmpeq_epi32(low, wanted),
                _mm_cmpeq_epi32(high, wanted),
            )) as u32
        };
        // Two bits for each half of a word.
        halves & (halves >> 2) & 0x1111
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.iter().enumerate().fold(0, |bits, (n, word)| {
        bits | u32::from(*word == wanted) << (4 * n)
    })
}

/// Sums up in one go, in few stores. The first two words grow; of the third the lower half is `last` now, and the upper half has the bits of that of
/// `flags` as well; of the four numbers of 16 bits that are the fourth, and of those of `flags`, the lesser ones stay. The lower half of `flags` is zero.
#[inline(always)]
pub fn sum_up(words: &mut [u64; 4], grow: [u64; 2], flags: &[u64; 2], last: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_add_epi64, _mm_and_si128, _mm_cvtsi32_si128, _mm_loadu_si128,
            _mm_or_si128, _mm_set_epi64x, _mm_storeu_si128, _mm_sub_epi16, _mm_subs_epu16,
        };
        #[expect(
            unsafe_code,
            reason = "loads and stores by address, and arithmetic that older versions of Rust call unsafe"
        )]
        // SAFETY: each load and store is of sixteen bytes that are the first or the second half of `words`, or `flags`; SSE2 is part of x86-64.
        unsafe {
            let of = |[low, high]: [u64; 2]| _mm_set_epi64x(high.cast_signed(), low.cast_signed());
            let sums = words.as_mut_ptr().cast::<__m128i>();
            let rest = sums.add(1);
            _mm_storeu_si128(sums, _mm_add_epi64(_mm_loadu_si128(sums), of(grow)));
            let (old, new) = (
                _mm_loadu_si128(rest),
                _mm_or_si128(
                    _mm_loadu_si128(flags.as_ptr().cast()),
                    _mm_cvtsi32_si128(last.cast_signed()),
                ),
            );
            let (any, least) = (
                _mm_or_si128(old, new),
                _mm_sub_epi16(old, _mm_subs_epu16(old, new)),
            );
            let halves = _mm_or_si128(
                _mm_and_si128(new, of([0xffff_ffff, 0])),
                _mm_and_si128(any, of([!0xffff_ffff, 0])),
            );
            _mm_storeu_si128(
                rest,
                _mm_or_si128(halves, _mm_and_si128(least, of([0, u64::MAX]))),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let lesser = |one: u64, other: u64, at: u32| {
            u64::from(((one >> at) as u16).min((other >> at) as u16)) << at
        };
        let [octets, packets, marks, sizes] = words;
        (*octets, *packets) = (octets.wrapping_add(grow[0]), packets.wrapping_add(grow[1]));
        *marks = (*marks | flags[0]) & !0xffff_ffff | u64::from(last);
        *sizes = (0..64)
            .step_by(16)
            .fold(0, |all, at| all | lesser(*sizes, flags[1], at));
    }
}

/// Whether four words are others than those of `begin` and `end`, where the first and the third have bits of `more` besides.
#[inline(always)]
#[must_use]
pub fn differ(words: &[u64; 4], begin: &[u64; 2], end: [u64; 2], more: [u64; 2]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
            _mm_set_epi64x, _mm_setzero_si128, _mm_xor_si128,
        };
        #[expect(
            unsafe_code,
            reason = "loads by address, and arithmetic that every x86-64 has but older versions of Rust call unsafe"
        )]
        // SAFETY: each load is of sixteen bytes that lie within `words` or are those of `begin`; SSE2 is part of x86-64.
        unsafe {
            let load = |words: *const u64| _mm_loadu_si128(words.cast::<__m128i>());
            let of = |[low, high]: [u64; 2]| _mm_set_epi64x(high.cast_signed(), low.cast_signed());
            let first = _mm_xor_si128(
                load(words.as_ptr()),
                _mm_or_si128(load(begin.as_ptr()), of([more[0], 0])),
            );
            let second = _mm_xor_si128(
                load(words.as_ptr().add(2)),
                _mm_or_si128(of(end), of([more[1], 0])),
            );
            _mm_movemask_epi8(_mm_cmpeq_epi32(
                _mm_or_si128(first, second),
                _mm_setzero_si128(),
            )) != 0xffff
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        *words != [begin[0] | more[0], begin[1], end[0] | more[1], end[1]]
    }
}

/// Bytes of a large page, and what memory has to begin at to lie on such pages whole.
pub const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel to put those parts of `memory` on large pages that fill one. With `now`, what lies on
/// ordinary ones is moved at once, if this kernel can (Linux 6.1), else some time later. A hint only.
pub fn prefer_hugepages<T>(memory: &[T], now: bool) {
    let start = memory.as_ptr().addr().next_multiple_of(HUGE_PAGE);
    let end = (memory.as_ptr().addr() + size_of_val(memory)) / HUGE_PAGE * HUGE_PAGE;
    let (Some(bytes @ 1..), Some(skipped)) = (
        end.checked_sub(start),
        start.checked_sub(memory.as_ptr().addr()),
    ) else {
        return;
    };
    let place = memory
        .as_ptr()
        .cast::<u8>()
        .wrapping_add(skipped)
        .cast_mut()
        .cast();
    #[expect(unsafe_code, reason = "libc's madvise takes a raw pointer")]
    // SAFETY: the range lies within `memory`, which is borrowed meanwhile; neither piece of advice changes what
    // anybody reads there, and a kernel that does not know one of them refuses it.
    unsafe {
        libc::madvise(place, bytes, libc::MADV_HUGEPAGE);
        if now {
            libc::madvise(place, bytes, libc::MADV_COLLAPSE);
        }
    }
}

/// An instruction set level that hot loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every x86-64 machine has (or any other architecture).
    Baseline,
    /// AVX2, BMI1/2, POPCNT, LZCNT, MOVBE, which are x86-64-v3, and AES: machines since about 2013.
    V3,
}

impl Level {
    /// The name as the psABI writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline => "x86-64",
            Level::V3 => "x86-64-v3",
        }
    }
}

/// 0: not looked yet, 1: baseline, 2: v3.
static LEVEL: AtomicU8 = AtomicU8::new(0);
const V3: u8 = 2;

/// The level in use. `WEIR_CPU=baseline` in the environment keeps to the baseline.
#[inline]
#[must_use]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        V3 => Level::V3,
        1 => Level::Baseline,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    let forced = std::env::var_os("WEIR_CPU").is_some_and(|value| value == "baseline");
    let level = if !forced && has_v3() {
        Level::V3
    } else {
        Level::Baseline
    };
    LEVEL.store(if level == Level::V3 { V3 } else { 1 }, Ordering::Relaxed);
    level
}

fn has_v3() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("movbe")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("aes")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A piece of work that [`dispatch`] compiles once per [`Level`].
///
/// Mark `run` `#[inline(always)]`: only what is inlined gets the better instructions.
pub trait Task {
    /// What the work yields.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs `task` with the best instruction set of this machine.
#[inline(always)]
pub fn dispatch<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::V3 {
        #[expect(
            unsafe_code,
            reason = "calling a function with more target features than the caller"
        )]
        // SAFETY: `level()` returns V3 only after every feature that `run_v3` enables was detected.
        return unsafe { run_v3(task) };
    }
    task.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,movbe,popcnt,aes")]
fn run_v3<T: Task>(task: T) -> T::Output {
    task.run()
}

/// As [`dispatch`], in a function of its own: for a loop that shall have the processor's registers for itself, whatever
/// else its caller does.
#[inline(always)]
pub fn apart<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::V3 {
        #[expect(
            unsafe_code,
            reason = "calling a function with more target features than the caller"
        )]
        // SAFETY: `level()` returns V3 only after every feature that `apart_v3` enables was detected.
        // By an address that the compiler does not know: it puts what is called from one place only back into its caller, never inlined or not.
        return unsafe { std::hint::black_box(apart_v3::<T> as unsafe fn(T) -> T::Output)(task) };
    }
    apart_baseline(task)
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,movbe,popcnt,aes")]
fn apart_v3<T: Task>(task: T) -> T::Output {
    task.run()
}

#[inline(never)]
fn apart_baseline<T: Task>(task: T) -> T::Output {
    task.run()
}

/// Ties the calling thread to `core`.
///
/// # Errors
/// What the kernel answered, for example when the core does not exist or is not allowed here.
pub fn pin_to(core: usize) -> std::io::Result<()> {
    let bits = libc::CPU_SETSIZE as usize;
    if core >= bits {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    #[expect(unsafe_code, reason = "libc's affinity calls take raw pointers")]
    // SAFETY: an all-zero cpu_set_t is valid; `core` is below CPU_SETSIZE; the set outlives the call
    // and its size is passed along; pid 0 means the calling thread.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// The cores that the calling thread may run on.
#[must_use]
pub fn allowed_cores() -> Vec<usize> {
    #[expect(unsafe_code, reason = "libc's affinity calls take raw pointers")]
    // SAFETY: the set is zeroed, outlives the calls, and its size is passed; CPU_ISSET stays below CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&core| libc::CPU_ISSET(core, &set))
            .collect()
    }
}

/// The processor's own name, or "unknown".
#[must_use]
pub fn model_name() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            text.lines()
                .find(|line| line.starts_with("model name"))
                .and_then(|line| line.split(':').nth(1))
                .map(|name| name.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [u32]);
    impl Task for Sum<'_> {
        type Output = u64;
        #[inline(always)]
        fn run(self) -> u64 {
            self.0.iter().map(|&n| u64::from(n)).sum()
        }
    }

    #[test]
    fn the_clock_moves_and_has_a_plausible_rate() {
        let before = tsc();
        let hz = tsc_hz();
        assert!(tsc() > before);
        assert!((100_000_000..20_000_000_000).contains(&hz), "{hz}");
    }

    #[test]
    fn dispatch_gives_what_the_task_gives() {
        let numbers: Vec<u32> = (0..1000).collect();
        assert_eq!(dispatch(Sum(&numbers)), 499_500);
        assert_eq!(apart(Sum(&numbers)), 499_500);
    }

    #[test]
    fn words_that_are_equal_are_reported_by_bits() {
        let words = [1 << 40 | 7, 7, 1 << 40, u64::MAX];
        assert_eq!(
            [1 << 40 | 7, 7, 1 << 40, u64::MAX, 0].map(|wanted| equal_of_four(&words, wanted)),
            [1, 0x10, 0x100, 0x1000, 0]
        );
        assert_eq!(equal_of_four(&[5; 4], 5), 0x1111);
    }

    #[test]
    fn pinning_works_on_an_allowed_core_and_fails_on_none() {
        let cores = allowed_cores();
        assert!(!cores.is_empty());
        std::thread::spawn(move || {
            pin_to(cores[0]).unwrap();
            assert_eq!(allowed_cores(), vec![cores[0]]);
        })
        .join()
        .unwrap();
        assert!(pin_to(usize::MAX).is_err());
    }

    #[test]
    fn memory_keeps_its_content_on_large_pages() {
        let mut memory = vec![0u32; 3 * HUGE_PAGE / 4];
        memory
            .iter_mut()
            .enumerate()
            .for_each(|(n, word)| *word = n as u32);
        for now in [false, true] {
            prefer_hugepages(&memory, now);
            prefer_hugepages(&memory[..10], now);
            prefer_hugepages::<u32>(&[], now);
            assert!(memory.iter().enumerate().all(|(n, &word)| word == n as u32));
        }
    }

    #[test]
    fn words_are_compared_as_signed_numbers() {
        let words: [AtomicU32; 16] = std::array::from_fn(|n| {
            AtomicU32::new(if n < 2 {
                i32::MIN.cast_unsigned() + n as u32
            } else {
                10 * n as u32
            })
        });
        // With the instructions of this machine.
        let _ = level();
        for than in [
            i32::MIN,
            i32::MIN + 1,
            -1,
            0,
            20,
            21,
            70,
            150,
            151,
            i32::MAX,
        ] {
            let bits = words.iter().rev().fold(0, |bits, word| {
                bits << 1 | u32::from(word.load(Ordering::Relaxed).cast_signed() < than)
            });
            assert_eq!(less_than(&words, than), bits, "{than}");
            assert_eq!(
                [count_less(&words, than), bits.trailing_ones()],
                [bits.count_ones(); 2],
                "{than}"
            );
        }
    }

    #[test]
    fn words_are_compared_for_being_equal() {
        let words = [
            0, 7, 0xffff, 7, 0x8000, 1, 7, 0x7fff, 9, 0xffff, 0, 2, 0x8000, 3, 3, 0,
        ];
        for wanted in [0, 1, 2, 3, 7, 0x7fff, 0x8000, 0xffff] {
            let bits = words
                .iter()
                .rev()
                .fold(0, |bits, word| bits << 1 | u32::from(*word == wanted));
            assert_eq!(equal(&words, wanted), bits, "{wanted}");
        }
    }

    #[test]
    fn the_word_that_comes_first_is_found() {
        for (from, used) in (0..2000_u16).map(|n| (n.wrapping_mul(40_503), n.wrapping_mul(30_011)))
        {
            let words = std::array::from_fn(|n| {
                from.wrapping_add((n as u16).wrapping_mul(used) % 9)
                    .wrapping_sub(4)
            });
            let used: [u16; 14] = std::array::from_fn(|n| used >> n & 1);
            let ahead = |n: usize| words[n].wrapping_sub(from) ^ 0x8000;
            let first = (0..14).filter(|n| used[*n] != 0).min_by_key(|n| ahead(*n));
            let (found, place) = soonest(&words, &used, from);
            assert_eq!(first.map_or(0xffff, ahead), found, "{words:?} {used:?}");
            assert!(
                first.is_none_or(|first| first == place),
                "{words:?} {used:?} {place}"
            );
        }
    }

    #[test]
    fn four_words_are_summed_up() {
        let mut words = [10, 7 << 32 | 1, 0x11_0000_0000 | 5, 0x0000_8000_7fff_ffff];
        sum_up(
            &mut words,
            [64, 1],
            &[0x102_0000_0000, 0xffff_7fff_8000_0001],
            9,
        );
        assert_eq!(
            words,
            [74, 7 << 32 | 2, 0x113_0000_0000 | 9, 0x0000_7fff_7fff_0001]
        );
        sum_up(
            &mut words,
            [u64::MAX, 0],
            &[0, 1 << 48 | 1 << 32],
            0xffff_fffe,
        );
        assert_eq!(words, [73, 7 << 32 | 2, 0x113_ffff_fffe, 1 << 32]);
    }

    /// Each bit of each word tells, and what is added.
    #[test]
    fn words_that_differ() {
        let (begin, end, more) = ([0x11, 0x22], [0x33, 0x44], [0x100, 0x200]);
        let same = [0x111, 0x22, 0x233, 0x44];
        assert!(
            !differ(&same, &begin, end, more)
                && differ(&same, &begin, end, [0, 0x200])
                && differ(&same, &begin, end, [0x100, 0])
        );
        for (word, bit) in (0..4).flat_map(|word| (0..64).map(move |bit| (word, bit))) {
            let mut other = same;
            other[word] ^= 1 << bit;
            assert!(differ(&other, &begin, end, more), "{word} {bit}");
        }
    }

    #[test]
    fn prefetch_takes_any_address() {
        prefetch_address(std::ptr::null());
        prefetch(&7u8);
        prefetch_write(std::ptr::null());
    }
}
