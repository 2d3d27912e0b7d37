//! The Internet checksum (RFC 1071), whole and incremental (RFC 1624).
//!
//! The sum does not care in which byte order it is taken as long as the result is turned once at the
//! end (RFC 1071 section 2B), so all sums here are taken in the machine's own order and over words as
//! wide as it has; carries are folded in at the end.
//!
//! A checksum is given as the number to store in network order. Over data which contains its own
//! right checksum, [`internet`] gives 0.

use zerocopy::transmute_ref;

use crate::{IpProtocol, Ipv4Header};

/// A sum that is still being taken.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Sum(u64);

impl Sum {
    /// A sum of nothing.
    pub const EMPTY: Sum = Sum(0);

    /// Adds bytes. What was added before must have been an even number of bytes.
    #[inline]
    pub fn add_bytes(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        // Words of 32 bits in a sum of 64: no carry is lost below 2^32 words.
        let sum: u64 = words
            .iter()
            .map(|word| u64::from(u32::from_ne_bytes(*word)))
            .sum();
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.add_raw(sum)
            .add_raw(u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds a number of 16 bits as it is on the wire.
    #[inline]
    pub fn add_u16(self, number: u16) -> Sum {
        self.add_raw(u64::from(number.to_be()))
    }

    /// Adds a number of 32 bits as it is on the wire.
    #[inline]
    pub fn add_u32(self, number: u32) -> Sum {
        self.add_raw(u64::from(number.to_be()))
    }

    #[inline(always)]
    fn add_raw(self, sum: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(sum);
        Sum(sum.wrapping_add(u64::from(carry)))
    }

    /// The checksum: the complement of the sum.
    #[inline]
    #[must_use]
    pub fn finish(self) -> u16 {
        !fold(self.0).to_be()
    }
}

/// Folds the carries in. Adding a word to itself with its halves exchanged leaves the sum of both
/// halves, and the carry of that, in the upper half.
#[inline(always)]
fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// The checksum of some bytes.
#[inline]
#[must_use]
pub fn internet(bytes: &[u8]) -> u16 {
    Sum::EMPTY.add_bytes(bytes).finish()
}

/// The folded sum of the 20 bytes of a header: two additions of 64 bits, no branch.
#[inline(always)]
fn ipv4_header_sum(header: &Ipv4Header) -> u16 {
    let words: &[[u8; 4]; 5] = transmute_ref!(header);
    let word = |n: usize| u64::from(u32::from_ne_bytes(words[n]));
    sum_of_words(
        word(0) | word(1) << 32,
        word(2) | word(3) << 32,
        word(4) as u32,
    )
}

/// The folded sum of 20 bytes that were read as two words of eight and one of four, all in one order.
#[inline(always)]
fn sum_of_words(first: u64, second: u64, third: u32) -> u16 {
    let (sum, carry) = first.overflowing_add(second);
    let (sum, again) = sum.overflowing_add(u64::from(third) + u64::from(carry));
    fold(sum.wrapping_add(u64::from(again)))
}

/// As [`ipv4_header_ok`], for who has read the header's 20 bytes as words already: two of eight bytes and one of
/// four, all in one order.
#[inline(always)]
#[must_use]
pub fn ipv4_words_ok(first: u64, second: u64, third: u32) -> bool {
    sum_of_words(first, second, third) == 0xffff
}

/// Whether the checksum of a header without options is right.
#[inline(always)]
#[must_use]
pub fn ipv4_header_ok(header: &Ipv4Header) -> bool {
    ipv4_header_sum(header) == 0xffff
}

/// Writes the checksum of the IPv4 header, options included, at the start of `packet`. Does nothing
/// when the header is not all there.
#[inline]
pub fn ipv4_header_set(packet: &mut [u8]) {
    let Some((header, _)) = Ipv4Header::read_mut(packet) else {
        return;
    };
    let length = header.header_len();
    if length == Ipv4Header::LEN {
        header.set_checksum(0);
        return header.set_checksum(!ipv4_header_sum(header).to_be());
    }
    let Some(bytes) = packet.get_mut(..length) else {
        return;
    };
    if let Some((header, _)) = Ipv4Header::read_mut(bytes) {
        header.set_checksum(0);
    }
    let sum = internet(bytes);
    if let Some((header, _)) = Ipv4Header::read_mut(bytes) {
        header.set_checksum(sum);
    }
}

/// Takes one hop off and corrects the checksum (RFC 1624 equation 3). A time to live of 0 stays.
#[inline(always)]
pub fn decrement_ttl(header: &mut Ipv4Header) {
    let step = u8::from(header.ttl != 0);
    header.ttl -= step;
    // ~(~HC + ~m + m') = HC + (m - m'): the word of ttl and protocol lost one in its first byte. The
    // sum is taken modulo 0xffff in the machine's order; 0xffff becomes 0, as a whole sum would give.
    let sum = u32::from(header.checksum().to_be()) + u32::from(u16::from_ne_bytes([step, 0]));
    header.set_checksum(u16::from_be((sum + ((sum + 1) >> 16)) as u16));
}

/// An internet checksum after one of the words under it changed from `old` to `new` (RFC 1624 equation 3).
#[inline]
#[must_use]
pub fn changed(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The pseudo-header of UDP and TCP over IPv4 (RFC 768, RFC 9293 section 3.1).
#[inline]
pub fn pseudo4(source: u32, destination: u32, protocol: IpProtocol, length: u16) -> Sum {
    Sum::EMPTY
        .add_u32(source)
        .add_u32(destination)
        .add_u16(u16::from(protocol.0))
        .add_u16(length)
}

/// The pseudo-header of protocols over IPv6 (RFC 8200 section 8.1).
#[inline]
pub fn pseudo6(
    source: &[u8; 16],
    destination: &[u8; 16],
    protocol: IpProtocol,
    length: u32,
) -> Sum {
    Sum::EMPTY
        .add_bytes(source)
        .add_bytes(destination)
        .add_u32(length)
        .add_u16(u16::from(protocol.0))
}

/// The checksum of a UDP datagram whose checksum field is 0. A sum of 0 is sent as 0xffff, since 0
/// means that there is none (RFC 768).
#[inline]
#[must_use]
pub fn udp4(source: u32, destination: u32, datagram: &[u8]) -> u16 {
    match pseudo4(source, destination, IpProtocol::UDP, datagram.len() as u16)
        .add_bytes(datagram)
        .finish()
    {
        0 => 0xffff,
        sum => sum,
    }
}

/// The checksum of a TCP segment whose checksum field is 0.
#[inline]
#[must_use]
pub fn tcp4(source: u32, destination: u32, segment: &[u8]) -> u16 {
    pseudo4(source, destination, IpProtocol::TCP, segment.len() as u16)
        .add_bytes(segment)
        .finish()
}

/// The checksum of a UDP datagram over IPv6 whose checksum field is 0. It must not be left out here, so
/// that a sum of 0 is sent as 0xffff (RFC 8200 section 8.1).
#[inline]
#[must_use]
pub fn udp6(source: &[u8; 16], destination: &[u8; 16], datagram: &[u8]) -> u16 {
    match upper6(source, destination, IpProtocol::UDP, datagram) {
        0 => 0xffff,
        sum => sum,
    }
}

/// The checksum of a TCP segment over IPv6 whose checksum field is 0.
#[inline]
#[must_use]
pub fn tcp6(source: &[u8; 16], destination: &[u8; 16], segment: &[u8]) -> u16 {
    upper6(source, destination, IpProtocol::TCP, segment)
}

/// The checksum of an ICMPv6 message whose checksum field is 0 (RFC 4443 section 2.3); 0 of a message
/// that contains its right one.
#[inline]
#[must_use]
pub fn icmp6(source: &[u8; 16], destination: &[u8; 16], message: &[u8]) -> u16 {
    upper6(source, destination, IpProtocol::ICMP6, message)
}

fn upper6(source: &[u8; 16], destination: &[u8; 16], protocol: IpProtocol, bytes: &[u8]) -> u16 {
    pseudo6(source, destination, protocol, bytes.len() as u32)
        .add_bytes(bytes)
        .finish()
}
