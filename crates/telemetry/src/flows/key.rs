//! What tells one flow from another, in 56 octets that are compared as seven words.
//!
//! The hash over a key is NH of UMAC (Black and others 1999, RFC 4418 5.2): sums of products of pairs, each word
//! with a random one added. Whoever does not know the random words finds colliding keys only by chance, however
//! many he tries beforehand; and its four multiplications do not wait for each other.

use crate::random::Random;

/// The kinds of flows; a key of one kind is never that of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Neither of the following: told apart by MAC addresses and type.
    #[default]
    L2 = 0,
    /// IPv4.
    Ip4 = 4,
    /// IPv6.
    Ip6 = 6,
}

/// Record sets that are told apart.
pub const MOST_SETS: usize = 16;
/// Bits of the octet with the kind: whether the packet was seen leaving, and from where on the record set is.
const EGRESS: u64 = 1 << 3;
const SET_AT: u32 = 4;

/// A key. What a record set does not select stays zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Key(pub [u64; 7]);

/// The parts of a key, each in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// What kind of flow.
    pub kind: Kind,
    /// Whether it was metered where it leaves, and not where it comes in.
    pub egress: bool,
    /// The number of the record set, below [`MOST_SETS`].
    pub set: u8,
    /// Source address: IPv4 in the last four octets, a MAC address in the last six.
    pub source: [u8; 16],
    /// Destination address, likewise.
    pub destination: [u8; 16],
    /// Source port; of L2 the type.
    pub source_port: u16,
    /// Destination port, or ICMP type and code.
    pub destination_port: u16,
    /// Protocol.
    pub protocol: u8,
    /// Type of service or traffic class.
    pub tos: u8,
    /// `forwardingStatus` (IANA 89), when dropped packets are flows of their own.
    pub status: u8,
    /// Interface of arrival.
    pub input: u32,
    /// Interface of departure.
    pub output: u32,
    /// Outer VLAN.
    pub vlan: u16,
    /// Inner VLAN.
    pub customer_vlan: u16,
    /// Top entry of the label stack without its TTL (24 bits), or IPv6 flow label (20 bits).
    pub label: u32,
}

impl Key {
    /// Puts a key together.
    #[inline(always)]
    #[must_use]
    pub fn new(parts: &Parts) -> Key {
        let [s0, s1] = halves(parts.source);
        let [d0, d1] = halves(parts.destination);
        let ports = u64::from(parts.source_port) << 48 | u64::from(parts.destination_port) << 32;
        let small = u64::from(parts.protocol) << 24 | u64::from(parts.tos) << 16 | u64::from(parts.status) << 8;
        let interfaces = u64::from(parts.input) << 32 | u64::from(parts.output);
        let tags = u64::from(parts.vlan) << 48 | u64::from(parts.customer_vlan) << 32 | u64::from(parts.label);
        Key([s0, s1, d0, d1, ports | small | ground(parts.kind, parts.egress, parts.set), interfaces, tags])
    }

    /// Takes it apart again.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let [s0, s1, d0, d1, middle, interfaces, tags] = self.0;
        let kind = match middle as u8 & 7 {
            4 => Kind::Ip4,
            6 => Kind::Ip6,
            _ => Kind::L2,
        };
        Parts {
            kind,
            egress: middle & EGRESS != 0,
            set: middle as u8 >> SET_AT,
            source: whole(s0, s1),
            destination: whole(d0, d1),
            source_port: (middle >> 48) as u16,
            destination_port: (middle >> 32) as u16,
            protocol: (middle >> 24) as u8,
            tos: (middle >> 16) as u8,
            status: (middle >> 8) as u8,
            input: (interfaces >> 32) as u32,
            output: interfaces as u32,
            vlan: (tags >> 48) as u16,
            customer_vlan: (tags >> 32) as u16,
            label: tags as u32,
        }
    }
}

impl Key {
    /// The number of its record set.
    #[inline]
    #[must_use]
    pub fn set(&self) -> u8 {
        self.0[4] as u8 >> SET_AT
    }

    /// Whether it is one of IPv4, whose addresses have eight octets in all.
    #[inline(always)]
    pub(super) fn is_ip4(&self) -> bool {
        self.0[4] & 7 == Kind::Ip4 as u64
    }

    /// 32 octets: all of a key of IPv4; of another one all but the addresses, in whose place is the hash.
    #[inline(always)]
    pub(super) fn short(&self, hash: u64) -> [u64; 4] {
        let [s0, source, d0, destination, middle, interfaces, tags] = self.0;
        debug_assert!(!self.is_ip4() || (s0 | d0 | source >> 32 | destination >> 32) == 0, "addresses of IPv4 have four octets");
        let addresses = if self.is_ip4() { source << 32 | destination } else { hash };
        [addresses, middle, interfaces, tags]
    }
}

/// The octet that all flows of a kind, a direction and a record set share.
#[inline(always)]
pub(super) fn ground(kind: Kind, egress: bool, set: u8) -> u64 {
    kind as u64 | if egress { EGRESS } else { 0 } | u64::from(set & (MOST_SETS as u8 - 1)) << SET_AT
}

#[inline(always)]
fn halves(octets: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(octets);
    [(whole >> 64) as u64, whole as u64]
}

fn whole(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// The random words of a table's hash.
#[derive(Clone, Debug)]
pub(super) struct Secret([u64; 10]);

impl Secret {
    pub(super) fn new(random: &mut Random) -> Secret {
        Secret(std::array::from_fn(|_| random.bits()))
    }

    /// 64 bits, all of which depend on all of the key.
    #[inline(always)]
    pub(super) fn hash(&self, key: &Key) -> u64 {
        let ([a, b, c, d, e, f, g], s) = (key.0, &self.0);
        let pair = |x: u64, y: u64| u128::from(x).wrapping_mul(y.into());
        // The random words are not taken in their order: else the compiler adds them four at a time and
        // has to take the sums apart again for the multiplications, which takes longer.
        let sum = pair(a.wrapping_add(s[0]), b.wrapping_add(s[5]))
            .wrapping_add(pair(c.wrapping_add(s[2]), d.wrapping_add(s[7])))
            .wrapping_add(pair(e.wrapping_add(s[4]), f.wrapping_add(s[1])))
            .wrapping_add(pair(g.wrapping_add(s[6]), s[3]));
        // Both halves into one, again by random words, and the high bits into the low ones.
        let folded = pair(sum as u64 ^ s[8], (sum >> 64) as u64 ^ s[9]);
        let mixed = (folded ^ folded >> 64) as u64 ^ sum as u64 ^ ((sum >> 64) as u64).rotate_left(32);
        mixed ^ mixed >> 29
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_apart_as_it_was_put_together() {
        let parts = Parts {
            kind: Kind::Ip6,
            egress: true,
            set: 11,
            source: std::array::from_fn(|n| n as u8 + 1),
            destination: std::array::from_fn(|n| n as u8 + 100),
            source_port: 0x1234,
            destination_port: 0x5678,
            protocol: 6,
            tos: 0xb8,
            status: 129,
            input: 0x0102_0304,
            output: 0xffff_fffe,
            vlan: 100,
            customer_vlan: 200,
            label: 0x00ab_cdef,
        };
        assert_eq!(Key::new(&parts).parts(), parts);
        assert_eq!(Key::new(&Parts::default()).parts(), Parts::default());
    }

    /// Every bit of a key changes about half of the hash, and 100,000 keys that differ in few bits fall evenly on 4096 buckets.
    #[test]
    fn the_hash_spreads() {
        let secret = Secret::new(&mut Random::new(7));
        let base = secret.hash(&Key::default());
        for word in 0..7 {
            for bit in 0..64 {
                let mut key = Key::default();
                key.0[word] ^= 1 << bit;
                let changed = (secret.hash(&key) ^ base).count_ones();
                assert!((10..55).contains(&changed), "{word} {bit}: {changed}");
            }
        }
        let mut buckets = vec![0_u32; 4096];
        for flow in 0..100_000_u64 {
            let parts = Parts { kind: Kind::Ip4, destination_port: flow as u16, input: (flow >> 16) as u32, ..Parts::default() };
            buckets[secret.hash(&Key::new(&parts)) as usize & 4095] += 1;
        }
        // 24.4 each; chi squared of 4095 degrees is 4095 ± 90.
        let mean = 100_000.0 / 4096.0;
        let chi: f64 = buckets.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
        assert!((3600.0..4600.0).contains(&chi), "{chi}");
    }
}
