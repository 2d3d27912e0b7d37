//! What tells one flow from another: 56 octets as seven words, of which 32 ([`Short`]) are compared in one go.
//!
//! Those 32 are all of a key of IPv4. Of the others they have a digest of 128 bits in place of the addresses: half of it where IPv4
//! has its addresses, the other half added to the tags. The addresses themselves lie elsewhere, are written when a flow begins, and
//! read when its record leaves; no packet is compared with them. Two flows that differ in their addresses alone share a record only if
//! their keyed digests are equal: for fewer than one in 2^100 pairs of flows where the digest is by AES, whoever chose them; on a
//! processor without it, it is NH twice with keys of its own each.
//!
//! Hash, and the digest where there is no AES, are NH of UMAC (Black and others 1999, RFC 4418 5.2): sums of products of pairs, each word with a
//! random one added. Without the random words, colliding keys are found only by chance. Where a packet goes (its output
//! interface and status) is not hashed, so that the hash can be computed when the packet arrives; flows that differ in
//! nothing else, of which there are a few at most, share a bucket.
//!
//! Record sets may select parts that a key has no field for: MAC addresses of IP flows and label stack entries below the
//! top one ([`Extra`]). They enter the first half of the digest. A flow of IPv4 that has any is stored as a wide one: two flows that
//! differ in such parts alone are one only if 64-bit keyed digests collide.

use weir_cpu::{Lane, Lanes, differ};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::index::TAGGED;
use crate::random::Random;

/// The kinds of flows; a key of one kind is never that of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Neither of the following: distinguished by MAC addresses and type.
    #[default]
    L2 = 0,
    /// IPv4.
    Ip4 = 4,
    /// IPv6.
    Ip6 = 6,
}

/// Record sets that are distinguished.
pub const MOST_SETS: usize = 16;
/// Bits of the octet with the kind: whether the packet was seen leaving, and from where on the record set is.
const EGRESS: u64 = 1 << 3;
const SET_AT: u32 = 4;

/// A key: addresses and ports as they are on the wire, the rest as numbers. What a record set does not select stays zero.
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
        let ports = u64::from(swapped(parts.source_port)) << 32
            | u64::from(swapped(parts.destination_port)) << 48;
        let small = u64::from(parts.protocol) << 24
            | u64::from(parts.tos) << 16
            | u64::from(parts.status) << 8;
        let interfaces = u64::from(parts.input) << 32 | u64::from(parts.output);
        let tags = u64::from(parts.vlan) << 48
            | u64::from(parts.customer_vlan) << 32
            | u64::from(parts.label);
        Key([
            s0,
            s1,
            d0,
            d1,
            ports | small | ground(parts.kind, parts.egress, parts.set),
            interfaces,
            tags,
        ])
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
            source_port: swapped((middle >> 32) as u16),
            destination_port: swapped((middle >> 48) as u16),
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

/// Parts of a flow's identity that [`Key`] has no field for, as a record set selects them; zero when there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra([u64; 3]);

impl Extra {
    /// From MAC addresses and the label stack entries below the top one (24 bits each); what is not selected is zero.
    #[must_use]
    pub fn new(source_mac: [u8; 6], destination_mac: [u8; 6], labels: [u32; 4]) -> Extra {
        let six = |mac: [u8; 6]| {
            let [a, b, c, d, e, f] = mac;
            u64::from_be_bytes([0, 0, a, b, c, d, e, f])
        };
        let [first, second, third, fourth] = labels.map(|label| u64::from(label & 0x00ff_ffff));
        Extra([
            six(source_mac) | (first & 0xffff) << 48,
            six(destination_mac) | (second & 0xffff) << 48,
            first >> 16 | second >> 16 << 8 | third << 16 | fourth << 40,
        ])
    }

    /// Whether it has no part.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0 == [0; 3]
    }
}

impl Key {
    /// The number of its record set.
    #[inline]
    #[must_use]
    pub fn set(&self) -> u8 {
        self.0[4] as u8 >> SET_AT
    }

    /// Its 32 octets, and the addresses of what is not plain IPv4. `extra` is what the flow has besides.
    #[must_use]
    pub fn split(&self, secret: &Secret, extra: &Extra) -> (Short, Addresses) {
        let [s0, s1, d0, d1, mut middle, interfaces, tags] = self.0;
        let is_ip4 = middle & KIND == Kind::Ip4 as u64;
        if is_ip4 && extra.is_none() {
            debug_assert!(
                (s0 | d0 | s1 << 32 | d1 << 32) == 0,
                "addresses of IPv4 have four octets"
            );
            return (
                Short::new(s1 >> 32 | d1, middle, interfaces, tags),
                Addresses::default(),
            );
        }
        let addresses = [s0, s1, d0, d1];
        let [mut digest, second] = secret.digest(&addresses);
        if !extra.is_none() {
            digest = secret.digest_more(digest, extra);
            if is_ip4 {
                middle = middle & !KIND | WIDE_IP4;
            }
        }
        (
            Short::new(digest, middle, interfaces, tags ^ second),
            addresses,
        )
    }

    /// Both put together again; the [`Short`] without its digest.
    #[must_use]
    pub fn join(short: &Short, addresses: &Addresses) -> Key {
        let ([both, mut middle], [_, _, interfaces, tags]) = (short.begin(), short.0);
        if middle & KIND == WIDE_IP4 {
            middle = middle & !KIND | Kind::Ip4 as u64;
        }
        let [s0, s1, d0, d1] = if short.is_ip4() {
            [0, both << 32, 0, both & !0xffff_ffff]
        } else {
            *addresses
        };
        Key([s0, s1, d0, d1, middle, interfaces, tags])
    }
}

/// Source and destination, as in a [`Key`].
pub type Addresses = [u64; 4];

/// What of a key is compared in one go: source address and what is small; destination address and ports; interfaces; tags and
/// label. Of what is not IPv4, the halves of a digest stand in place of the addresses.
///
/// The first two words lie as the sixteen octets of a plain packet from its TTL on, so that they are loaded as they are: where
/// the TTL is, the octet that all flows of a kind share; the protocol; where the checksum is, status and type of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Short(pub(crate) [u64; 4]);

/// Bits of the first word: what kind of flow, and where the other small parts begin.
const KIND: u64 = 7;
/// IPv4 with parts that a key has no field for: its addresses lie elsewhere. In a [`Short`] only.
const WIDE_IP4: u64 = 5;
pub(crate) const PROTOCOL_AT: u32 = 8;
const STATUS_AT: u32 = 16;
pub(crate) const TOS_AT: u32 = 24;
const STATUS: u64 = 0xff << STATUS_AT;
/// Bits of the third word: the interface of departure.
const OUTPUT: u64 = 0xffff_ffff;

/// What a record set selects of where a packet went, as it is added to a [`Short`]: the interface of departure in the lower half, the
/// status in the upper one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ForwardingOutcome(u64);

impl ForwardingOutcome {
    /// Out of an interface, and nothing else is known.
    #[inline(always)]
    pub(crate) fn out(interface: u32) -> ForwardingOutcome {
        ForwardingOutcome(interface.into())
    }

    /// The same interface with another status.
    #[inline(always)]
    pub(crate) fn with_status(self, status: u8) -> ForwardingOutcome {
        ForwardingOutcome(self.0 & OUTPUT | u64::from(status) << (STATUS_AT + 32))
    }

    /// Whether it has a status, or a drop reason.
    #[inline(always)]
    pub(crate) fn has_status(self) -> bool {
        self.0 & !OUTPUT != 0
    }

    /// The same status with another interface.
    #[inline(always)]
    pub(crate) fn with_output(self, interface: u32) -> ForwardingOutcome {
        ForwardingOutcome(self.0 & !OUTPUT | u64::from(interface))
    }
}

impl Short {
    /// Of no flow.
    pub(super) const NONE: Short = Short([0; 4]);

    /// From both addresses of IPv4 or a digest, and the last three words of a key.
    #[inline(always)]
    pub(crate) fn new(both: u64, middle: u64, interfaces: u64, tags: u64) -> Short {
        let part = |from: u32, to: u32| (middle >> from & 0xff) << to;
        let small = middle & 0xff | part(24, PROTOCOL_AT) | part(8, STATUS_AT) | part(16, TOS_AT);
        Short([
            small | both << 32,
            both >> 32 | middle & !0xffff_ffff,
            interfaces,
            tags,
        ])
    }

    /// The first two words as they were put together.
    fn begin(&self) -> [u64; 2] {
        let [first, second, ..] = self.0;
        let part = |from: u32, to: u32| (first >> from & 0xff) << to;
        let small = first & 0xff | part(PROTOCOL_AT, 24) | part(STATUS_AT, 8) | part(TOS_AT, 16);
        [first >> 32 | second << 32, small | second & !0xffff_ffff]
    }

    /// Of a flow with these addresses, if it is a wide one: with its tags as they are.
    #[inline(always)]
    pub(super) fn without_digest(mut self, secret: &Secret, addresses: &Addresses) -> Short {
        let [_, second] = secret.digest(addresses);
        self.0[3] ^= second;
        self
    }

    /// Whether it is all of the key.
    #[inline(always)]
    pub(crate) fn is_ip4(&self) -> bool {
        self.0[0] & KIND == Kind::Ip4 as u64
    }

    /// Of a plain packet, from the words that are its own and those that it shares.
    #[inline(always)]
    pub(crate) fn of_plain(
        [first, second]: [u64; 2],
        (interfaces, tail): (u64, u64),
        ForwardingOutcome(outcome): ForwardingOutcome,
    ) -> Short {
        Short([
            first | outcome >> 32,
            second,
            interfaces | outcome & OUTPUT,
            tail,
        ])
    }

    /// Sets where a packet went; nothing was set before.
    #[inline(always)]
    pub(crate) fn tell(&mut self, ForwardingOutcome(outcome): ForwardingOutcome) {
        self.0[0] = self.0[0] & !STATUS | outcome >> 32;
        self.0[2] = self.0[2] & !OUTPUT | outcome & OUTPUT;
    }

    /// Whether it is not the key of a plain packet.
    #[inline(always)]
    pub(crate) fn differs(
        &self,
        own: &[u64; 2],
        (interfaces, tail): (u64, u64),
        ForwardingOutcome(outcome): ForwardingOutcome,
    ) -> bool {
        differ(
            &self.0,
            own,
            [interfaces, tail],
            [outcome >> 32, outcome & OUTPUT],
        )
    }
}

/// The octet that all flows of a kind, a direction and a record set share.
#[inline(always)]
pub(crate) fn ground(kind: Kind, egress: bool, set: u8) -> u64 {
    kind as u64 | if egress { EGRESS } else { 0 } | u64::from(set & (MOST_SETS as u8 - 1)) << SET_AT
}

/// Octets on the wire are kept as they are loaded.
#[inline(always)]
fn halves(octets: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(octets);
    [whole as u64, (whole >> 64) as u64]
}

fn whole(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// A word of the wire, as a load of its octets has it.
fn swapped(word: u16) -> u16 {
    u16::from_le_bytes(word.to_be_bytes())
}

/// The random words of a worker's hash.
#[derive(Clone, Copy, Debug)]
pub struct Secret([u64; 10], [u64; 8], [[u64; 2]; 5], [[u64; 2]; 5]);

/// The share of interfaces and tags in a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest(u128);

impl Secret {
    /// Words that cannot be predicted without the seed.
    #[must_use]
    pub fn new(random: &mut Random) -> Secret {
        Secret(
            std::array::from_fn(|_| random.bits()),
            std::array::from_fn(|_| random.bits()),
            std::array::from_fn(|_| [random.bits(), random.bits()]),
            std::array::from_fn(|_| [random.bits(), random.bits()]),
        )
    }

    /// A digest of addresses and of what a flow has besides.
    fn digest_more(&self, digest: u64, Extra([a, b, c]): &Extra) -> u64 {
        let [s, t, u, v, ..] = self.1;
        mix(product(*a, s, *b, t)
            .wrapping_add(product(*c, u, digest, v))
            .wrapping_add(self.ground()))
    }

    /// 128 bits in place of addresses.
    #[inline(always)]
    pub(crate) fn digest(&self, addresses: &Addresses) -> [u64; 2] {
        match Lanes::new() {
            Some(lanes) => {
                let [a, b, c, d] = *addresses;
                let digest = self.digest_wide(lanes, lanes.of([a, b]), lanes.of([c, d]));
                lanes.words(digest)
            }
            None => self.plain_digest(addresses),
        }
    }

    /// The same from source and destination in registers: four rounds of AES over each, with keys of its own. No difference of
    /// addresses leads to a certain difference of digests more often than once in 2^113 secrets (Keliher and Sui 2007), so that
    /// neither another address nor another tag makes up for it.
    #[inline(always)]
    pub(crate) fn digest_wide(&self, lanes: Lanes, source: Lane, destination: Lane) -> Lane {
        let mixed = |address: Lane, [first, a, b, c, d]: [[u64; 2]; 5]| {
            let start = lanes.xor(address, lanes.of(first));
            [a, b, c, d]
                .into_iter()
                .fold(start, |mixed, key| lanes.round(mixed, lanes.of(key)))
        };
        lanes.xor(mixed(source, self.2), mixed(destination, self.3))
    }

    /// As on a processor without [`Lanes`].
    #[inline(always)]
    fn plain_digest(&self, [a, b, c, d]: &Addresses) -> [u64; 2] {
        let of = |[s, t, u, v]: [u64; 4]| {
            mix(product(*a, s, *b, t)
                .wrapping_add(product(*c, u, *d, v))
                .wrapping_add(self.ground()))
        };
        let ([.., s, t, u, v], [.., w, x, y, z]) = (self.0, self.1);
        [of([s, t, u, v]), of([w, x, y, z])]
    }

    /// What interfaces and tags add, the same for most packets of a vector.
    #[inline(always)]
    pub(crate) fn rest(&self, interfaces: u64, tags: u64) -> Rest {
        let [_, _, s, t, ..] = self.0;
        Rest(product(interfaces & !OUTPUT, s, tags, t).wrapping_add(self.ground()))
    }

    /// What all sums have besides.
    #[inline(always)]
    fn ground(&self) -> u128 {
        let [.., s, t, _, _, _, _] = self.0;
        u128::from(s) | u128::from(t) << 64
    }

    /// What a hash of keys needs that share interfaces and tags.
    #[inline(always)]
    pub(crate) fn begin(&self, rest: Rest) -> Begun {
        let [s, t, ..] = self.0;
        Begun { s, t, rest }
    }

    /// The same for a processor with [`Lanes`].
    #[inline(always)]
    pub(crate) fn begin_wide(&self, lanes: Lanes, Rest(rest): Rest) -> BegunWide {
        let [s, t, .., u, v] = self.0;
        BegunWide {
            lanes,
            rest: lanes.of([rest as u64, (rest >> 64) as u64]),
            keys: [lanes.of([s, t]), lanes.of([u, v])],
            tagged: lanes.of([TAGGED, 0]),
        }
    }

    /// 64 bits, which depend on all but where the packet goes.
    #[inline(always)]
    pub(crate) fn hash(&self, short: &Short) -> u64 {
        let [first, second, interfaces, tags] = short.0;
        let (rest, own) = (self.rest(interfaces, tags), [first & !STATUS, second]);
        match Lanes::new() {
            Some(lanes) => self.begin_wide(lanes, rest).hash(lanes.of(own)),
            None => self.begin(rest).hash(own),
        }
    }

    /// As on a processor without [`Lanes`].
    #[cfg(test)]
    fn plain_hash(&self, Short([first, second, interfaces, tags]): &Short) -> u64 {
        self.begin(self.rest(*interfaces, *tags))
            .hash([first & !STATUS, *second])
    }
}

/// What keys share in their hash where rounds of AES do what products do elsewhere: two of them, under secret keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunWide {
    lanes: Lanes,
    rest: Lane,
    keys: [Lane; 2],
    tagged: Lane,
}

impl BegunWide {
    /// The hash, from the first two words; without a status.
    #[inline(always)]
    pub(crate) fn hash(self, own: Lane) -> u64 {
        let BegunWide {
            lanes,
            rest,
            keys: [one, other],
            tagged,
        } = self;
        lanes.low(lanes.or(
            lanes.round(lanes.round(lanes.xor(own, rest), one), other),
            tagged,
        ))
    }
}

/// What keys share in their hash, so that it can be in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    s: u64,
    t: u64,
    rest: Rest,
}

impl Begun {
    /// The hash, from the first two words; without a status.
    #[inline(always)]
    pub(crate) fn hash(self, [first, second]: [u64; 2]) -> u64 {
        mix(product(first, self.s, second, self.t).wrapping_add(self.rest.0))
    }
}

/// Sums of products go up in even steps where keys do, as port numbers in a scan; multiplied with each other, the halves
/// of a sum do not. The lowest bits of a product are weak, and so are the highest: each half makes up for the other.
#[inline(always)]
fn mix(sum: u128) -> u64 {
    let mixed = product(sum as u64, 0, (sum >> 64) as u64, 0);
    (mixed ^ mixed >> 64) as u64 | TAGGED
}

#[inline(always)]
fn product(x: u64, s: u64, y: u64, t: u64) -> u128 {
    u128::from(x.wrapping_add(s)).wrapping_mul(y.wrapping_add(t).into())
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

    /// As a record has it.
    fn joined(short: Short, secret: &Secret, addresses: &Addresses) -> Key {
        let clear = match short.is_ip4() {
            true => short,
            false => short.without_digest(secret, addresses),
        };
        Key::join(&clear, addresses)
    }

    #[test]
    fn a_key_is_split_and_joined() {
        let secret = Secret::new(&mut Random::new(3));
        for kind in [Kind::Ip4, Kind::Ip6, Kind::L2] {
            let mut parts = Parts {
                kind,
                protocol: 17,
                output: 5,
                input: 4,
                vlan: 9,
                status: 64,
                ..Parts::default()
            };
            (parts.source[15], parts.destination[12]) = (1, 200);
            let key = Key::new(&parts);
            let (short, addresses) = key.split(&secret, &Extra::default());
            assert_eq!(
                (joined(short, &secret, &addresses), short.is_ip4()),
                (key, kind == Kind::Ip4)
            );
        }
    }

    /// Every bit of what a flow has besides changes what is compared, and its addresses are kept.
    #[test]
    fn extra_parts_separate_flows() {
        let secret = Secret::new(&mut Random::new(3));
        for kind in [Kind::Ip4, Kind::Ip6, Kind::L2] {
            let mut parts = Parts {
                kind,
                protocol: 17,
                ..Parts::default()
            };
            (parts.source[15], parts.destination[12]) = (1, 200);
            let key = Key::new(&parts);
            let mut seen = vec![key.split(&secret, &Extra::default()).0];
            for bit in 0..192 {
                let (mut macs, mut labels) = ([[0; 6]; 2], [0; 4]);
                match bit {
                    0..96 => macs[bit / 48][bit % 48 / 8] = 1 << (bit % 8),
                    _ => labels[(bit - 96) / 24] = 1 << (bit % 24),
                }
                let extra = Extra::new(macs[0], macs[1], labels);
                let (short, addresses) = key.split(&secret, &extra);
                assert!(!short.is_ip4() && !seen.contains(&short), "{kind:?} {bit}");
                assert_eq!(joined(short, &secret, &addresses), key);
                seen.push(short);
            }
        }
    }

    /// Every bit but those of a packet's outcome changes about half of the hash; so does every bit of addresses the digest.
    #[test]
    fn a_bit_changes_half_of_the_hash() {
        let secret = Secret::new(&mut Random::new(7));
        let hashes = |words| [secret.hash(&Short(words)), secret.plain_hash(&Short(words))];
        let digests = |words| [secret.digest(&words), secret.plain_digest(&words)];
        let base = (hashes([0; 4]), digests([0; 4]));
        for (word, bit) in (0..4).flat_map(|word| (0..64).map(move |bit| (word, bit))) {
            let mut words = [0; 4];
            words[word] = 1 << bit;
            let is_fate =
                word == 0 && STATUS >> bit & 1 != 0 || word == 2 && OUTPUT >> bit & 1 != 0;
            for (hash, base) in hashes(words).into_iter().zip(base.0) {
                let changed = (hash ^ base).count_ones();
                assert!(
                    if is_fate {
                        changed == 0
                    } else {
                        (8..57).contains(&changed)
                    },
                    "{word} {bit}: {changed}"
                );
            }
            for (digest, base) in digests(words).into_iter().zip(base.1) {
                for (half, base) in digest.into_iter().zip(base) {
                    let changed = (half ^ base).count_ones();
                    assert!((8..57).contains(&changed), "{word} {bit}: {changed}");
                }
            }
        }
    }

    /// Flows that differ in one bit of an address, or in one of it and one of the tags, are told apart.
    #[test]
    fn digests_separate_addresses_and_tags() {
        let secret = Secret::new(&mut Random::new(9));
        let mut seen = std::collections::HashSet::new();
        for (bit, tag) in (0..256).flat_map(|bit| (0..65).map(move |tag| (bit, tag))) {
            let mut words = [1, 2, 3, 4, Kind::Ip6 as u64, 0, 0];
            words[bit / 64] ^= 1 << (bit % 64);
            words[6] = if tag < 64 { 1 << tag } else { 0 };
            let (short, addresses) = Key(words).split(&secret, &Extra::default());
            assert!(seen.insert(short.0), "{bit} {tag}");
            assert_eq!(joined(short, &secret, &addresses), Key(words));
        }
    }

    /// 100,000 keys that differ in few bits fall evenly on 4096 buckets, and on as many tags, under each of several secrets.
    #[test]
    fn the_hash_spreads() {
        spreads(Secret::hash);
        spreads(Secret::plain_hash);
    }

    fn spreads(hash_of: fn(&Secret, &Short) -> u64) {
        for seed in 1..9 {
            let secret = Secret::new(&mut Random::new(seed));
            let (mut buckets, mut tags) = (vec![0_u32; 4096], vec![0_u32; 4096]);
            for flow in 0..100_000_u64 {
                let parts = Parts {
                    kind: Kind::Ip4,
                    destination_port: flow as u16,
                    input: (flow >> 16) as u32,
                    ..Parts::default()
                };
                let (short, _) = Key::new(&parts).split(&secret, &Extra::default());
                let hash = hash_of(&secret, &short);
                buckets[(hash >> 16) as usize & 4095] += 1;
                tags[(hash >> 51) as usize & 4095] += 1;
            }
            // 24.4 each; chi squared of 4095 degrees is 4095 ± 90, and less where keys are spread more evenly than by chance.
            let mean = 100_000.0 / 4096.0;
            for counts in [buckets, tags] {
                let chi: f64 = counts
                    .iter()
                    .map(|count| (f64::from(*count) - mean).powi(2) / mean)
                    .sum();
                assert!(chi < 4600.0, "{seed}: {chi}");
            }
        }
    }
}
