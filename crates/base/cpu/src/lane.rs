//! Sixteen octets in one register, for loops that take packets' headers apart: more of them in one instruction than general
//! registers hold.

/// That this processor has what [`Lane`]s need, which is known once: no method asks again.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Lanes(());

/// On no other processor so far.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub enum Lanes {}

/// Sixteen octets.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Lane(core::arch::x86_64::__m128i);

/// Sixteen octets.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub struct Lane(());

/// A method for each instruction: of the processors that have them, and of all others, where nobody can call it.
macro_rules! methods {
    ($($(#[$doc:meta])* fn $name:ident($self:ident, $($arg:ident: $type:ty),*) -> $result:ty { $work:expr })*) => {
        impl Lanes {
            $(
                $(#[$doc])*
                #[inline(always)]
                #[must_use]
                pub fn $name($self, $($arg: $type),*) -> $result {
                    #[cfg(target_arch = "x86_64")]
                    {
                        use core::arch::x86_64 as cpu;
                        #[expect(unsafe_code, reason = "instructions that not every x86-64 has")]
                        // SAFETY: there is a `Lanes` only where the level is V3, of which SSE 4.1 and AES are part; memory is read and
                        // written through references to sixteen octets only, whatever their alignment.
                        unsafe { $work }
                    }
                    #[cfg(not(target_arch = "x86_64"))]
                    {
                        let _ = ($($arg,)*);
                        match $self {}
                    }
                }
            )*
        }
    };
}

impl Lanes {
    /// If this processor has what it takes.
    #[inline]
    #[must_use]
    pub fn new() -> Option<Lanes> {
        #[cfg(target_arch = "x86_64")]
        return (crate::level() == crate::Level::V3).then_some(Lanes(()));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}

methods! {
    /// As they lie in memory.
    fn load(self, octets: &[u8; 16]) -> Lane { Lane(cpu::_mm_loadu_si128(octets.as_ptr().cast())) }

    /// Two words, the lower one first.
    fn of(self, words: [u64; 2]) -> Lane { Lane(cpu::_mm_set_epi64x(words[1].cast_signed(), words[0].cast_signed())) }

    /// The same the other way round.
    fn words(self, lane: Lane) -> [u64; 2] { std::mem::transmute::<cpu::__m128i, [u64; 2]>(lane.0) }

    /// The lower word.
    fn low(self, lane: Lane) -> u64 { cpu::_mm_cvtsi128_si64(lane.0).cast_unsigned() }

    /// Bits that are set in both.
    fn and(self, one: Lane, other: Lane) -> Lane { Lane(cpu::_mm_and_si128(one.0, other.0)) }

    /// Bits that are set in either.
    fn or(self, one: Lane, other: Lane) -> Lane { Lane(cpu::_mm_or_si128(one.0, other.0)) }

    /// Bits that are set in one of them.
    fn xor(self, one: Lane, other: Lane) -> Lane { Lane(cpu::_mm_xor_si128(one.0, other.0)) }

    /// Octet `n` is the one that `order` has in place `n`; zero where its highest bit is set.
    fn shuffle(self, lane: Lane, order: Lane) -> Lane { Lane(cpu::_mm_shuffle_epi8(lane.0, order.0)) }

    /// How much each of eight words of 16 bits of `one` is more than that of `other`; zero if it is not.
    fn more(self, one: Lane, other: Lane) -> Lane { Lane(cpu::_mm_subs_epu16(one.0, other.0)) }

    /// Octet 3 is another one.
    fn with_octet_3(self, lane: Lane, octet: u8) -> Lane { Lane(cpu::_mm_insert_epi8::<3>(lane.0, i32::from(octet))) }

    /// Octets 4 and 5 are others.
    fn with_octets_4(self, lane: Lane, octets: u16) -> Lane { Lane(cpu::_mm_insert_epi16::<2>(lane.0, i32::from(octets))) }

    /// Whether all are zero.
    fn is_zero(self, lane: Lane) -> bool { cpu::_mm_testz_si128(lane.0, lane.0) != 0 }

    /// A round of AES: after two of them each octet depends on all octets, and on the keys.
    fn round(self, lane: Lane, key: Lane) -> Lane { Lane(cpu::_mm_aesenc_si128(lane.0, key.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_taken_apart() {
        let Some(lanes) = Lanes::new() else { return };
        let octets: [u8; 16] = std::array::from_fn(|n| n as u8 + 1);
        let lane = lanes.load(&octets);
        let whole = u128::from_le_bytes(octets);
        let words = |lane: Lane| {
            let [low, high] = lanes.words(lane);
            u128::from(high) << 64 | u128::from(low)
        };
        assert_eq!((words(lane), lanes.low(lane)), (whole, whole as u64));
        let other = lanes.of([0xff00_0000_0000_000f, 3]);
        let mask = 3 << 64 | 0xff00_0000_0000_000f;
        assert_eq!(
            [
                lanes.and(lane, other),
                lanes.or(lane, other),
                lanes.xor(lane, other)
            ]
            .map(words),
            [whole & mask, whole | mask, whole ^ mask]
        );
        let order = lanes.load(&[
            15, 0x80, 0, 1, 0xff, 2, 2, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
        ]);
        assert_eq!(
            lanes.words(lanes.shuffle(lane, order)),
            [u64::from_le_bytes([16, 0, 1, 2, 0, 3, 3, 3]), 0]
        );
        let most = lanes.more(
            lanes.of([0x0002_0005_ffff, 0]),
            lanes.of([0x0003_0001_0001, 0]),
        );
        assert_eq!(lanes.words(most), [0x0004_fffe, 0]);
        let changed = lanes.with_octets_4(lanes.with_octet_3(lane, 0xaa), 0xbbcc);
        let bytes = [
            [1, 2, 3, 0xaa, 0xcc, 0xbb, 7, 8],
            [9, 10, 11, 12, 13, 14, 15, 16],
        ];
        assert_eq!(lanes.words(changed), bytes.map(u64::from_le_bytes));
        assert!(
            !lanes.is_zero(lane)
                && lanes.is_zero(lanes.xor(lane, lane))
                && !lanes.is_zero(lanes.of([0, 1 << 63]))
        );
        // FIPS 197, appendix B: the first round.
        let start = lanes.load(&[
            0x19, 0x3d, 0xe3, 0xbe, 0xa0, 0xf4, 0xe2, 0x2b, 0x9a, 0xc6, 0x8d, 0x2a, 0xe9, 0xf8,
            0x48, 0x08,
        ]);
        let key = lanes.load(&[
            0xa0, 0xfa, 0xfe, 0x17, 0x88, 0x54, 0x2c, 0xb1, 0x23, 0xa3, 0x39, 0x39, 0x2a, 0x6c,
            0x76, 0x05,
        ]);
        let next = [
            0xa4, 0x9c, 0x7f, 0xf2, 0x68, 0x9f, 0x35, 0x2b, 0x6b, 0x5b, 0xea, 0x43, 0x02, 0x6a,
            0x50, 0x49,
        ];
        assert_eq!(words(lanes.round(start, key)), u128::from_le_bytes(next));
    }
}
