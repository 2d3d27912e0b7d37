//! What of a packet a list looks at, in words of 32 bits.
//!
//! The words lie so that each field is some bits of one word: a cut of the search tree is then one
//! shift and one mask, whatever it cuts. ICMP's type and code stand where ports stand.
//!
//! Two kinds of packets have no ports although their protocol does: later fragments, and packets that
//! end before their ports. Both are marked in the upper bits of the protocol's word.

use std::net::{Ipv4Addr, Ipv6Addr};

use weir_cpu::Block;
use weir_wire::IpProtocol;

use crate::cache::Packed;

/// The ports are not in this packet, but in the first piece of what it belongs to.
pub(crate) const LATER_FRAGMENT: u32 = 0x100;
/// The packet ends, or cannot be read, before its ports.
pub(crate) const UNREADABLE: u32 = 0x200;
/// Both marks.
pub(crate) const ODD: u32 = LATER_FRAGMENT | UNREADABLE;

/// What a packet tells behind its IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upper {
    /// Source and destination port, or ICMP type and code; two zeros of protocols that have neither.
    Ports(u16, u16),
    /// It is a piece that does not begin with the transport header. Rules that ask for ports take it
    /// by its addresses and its protocol alone, as VPP does by default: a later piece is permitted or
    /// denied with the first rule that *could* have permitted or denied the packet.
    LaterFragment,
    /// It ends before its ports. Only rules that ask for no ports match.
    Unreadable,
}

impl Upper {
    /// The words of ports and of protocol.
    const fn words(self, protocol: IpProtocol) -> (u32, u32) {
        match self {
            Upper::Ports(first, second) => {
                ((first as u32) << 16 | second as u32, protocol.0 as u32)
            }
            Upper::LaterFragment => (0, protocol.0 as u32 | LATER_FRAGMENT),
            Upper::Unreadable => (0, protocol.0 as u32 | UNREADABLE),
        }
    }

    const fn of(ports: u32, protocol: u32) -> Upper {
        match protocol & ODD {
            0 => Upper::Ports((ports >> 16) as u16, ports as u16),
            LATER_FRAGMENT => Upper::LaterFragment,
            _ => Upper::Unreadable,
        }
    }
}

/// Words that fields are cut out of.
pub(crate) trait Words: Copy {
    /// One of them; 0 where there is none.
    fn word(&self, index: usize) -> u32;
    /// The protocol's word, with its marks.
    fn last(&self) -> u32;
}

/// The key of an IPv4 packet: 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key4 {
    /// Source, destination, ports, protocol with marks.
    pub(crate) words: [u32; 4],
}

/// The key of a packet without IP options, its octets as they lie there: nothing need be put together or turned round.
#[derive(Clone, Copy, Debug)]
pub struct Wire4 {
    /// In little-endian order: anything, the protocol, twice anything, the source; the destination and the ports.
    pub(crate) block: Block,
}

/// The protocols that most packets are of, bit by bit.
const USUAL: u64 = 1 << IpProtocol::TCP.0 | 1 << IpProtocol::UDP.0;

impl Wire4 {
    /// Of a packet's octets, those that are the key's.
    pub(crate) const KEY: Block = [0xffff_ffff_0000_ff00, u64::MAX];
    /// Octets of a packet that it is read from.
    pub const OCTETS: usize = 16;

    /// Of a packet's octets from the time to live on: protocol, checksum, addresses, the four octets behind the header (which has no
    /// options).
    #[inline(always)]
    #[must_use]
    pub fn new(octets: &[u8; Wire4::OCTETS]) -> Wire4 {
        let octets = u128::from_le_bytes(*octets);
        Wire4 {
            block: [octets as u64, (octets >> 64) as u64],
        }
    }

    /// The same of a key of a usual protocol that has its ports; `None` of others.
    pub(crate) fn of(key: &Key4) -> Option<Wire4> {
        let [source, destination, ports, protocol] = key.words;
        let [source, destination, ports] =
            [source, destination, ports].map(|word| u64::from(word.swap_bytes()));
        let wire = Wire4 {
            block: [
                u64::from(protocol as u8) << 8 | source << 32,
                destination | ports << 32,
            ],
        };
        (protocol & ODD == 0 && wire.is_usual()).then_some(wire)
    }

    /// A list's number, of 21 bits, where the key has none.
    pub(crate) fn list(number: u32) -> Block {
        [u64::from(number & 0xff) | u64::from(number >> 8) << 16, 0]
    }

    /// Whether the packet is of one of the protocols that most packets are of, which have ports.
    #[must_use]
    pub const fn is_usual(self) -> bool {
        let protocol = (self.block[0] >> 8) as u8;
        protocol < 64 && USUAL >> protocol & 1 != 0
    }
}

impl From<Wire4> for Key4 {
    fn from(
        Wire4 {
            block: [first, second],
        }: Wire4,
    ) -> Key4 {
        let [source, destination, ports] =
            [(first >> 32) as u32, second as u32, (second >> 32) as u32].map(u32::swap_bytes);
        Key4 {
            words: [source, destination, ports, u32::from((first >> 8) as u8)],
        }
    }
}

impl Key4 {
    /// A key of these fields.
    #[inline(always)]
    #[must_use]
    pub const fn new(source: u32, destination: u32, protocol: IpProtocol, upper: Upper) -> Key4 {
        let (ports, protocol) = upper.words(protocol);
        Key4 {
            words: [source, destination, ports, protocol],
        }
    }

    /// Where the packet comes from.
    #[must_use]
    pub const fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.words[0])
    }

    /// Where it goes.
    #[must_use]
    pub const fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.words[1])
    }

    /// What it carries.
    #[must_use]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.words[3] as u8)
    }

    /// What it tells behind its header.
    #[must_use]
    pub const fn upper(&self) -> Upper {
        Upper::of(self.words[2], self.words[3])
    }
}

impl Words for Key4 {
    #[inline(always)]
    fn word(&self, index: usize) -> u32 {
        self.words[index & 3]
    }

    #[inline(always)]
    fn last(&self) -> u32 {
        self.words[3]
    }
}

/// The key of an IPv6 packet: 40 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key6 {
    /// Source and destination (four each), ports, protocol with marks.
    pub(crate) words: [u32; 10],
}

impl Key6 {
    /// A key of these fields.
    #[inline(always)]
    #[must_use]
    pub const fn new(
        source: &[u8; 16],
        destination: &[u8; 16],
        protocol: IpProtocol,
        upper: Upper,
    ) -> Key6 {
        let (ports, protocol) = upper.words(protocol);
        let [[a, b, c, d], [e, f, g, h]] = [words(source), words(destination)];
        Key6 {
            words: [a, b, c, d, e, f, g, h, ports, protocol],
        }
    }

    /// Where the packet comes from.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        let [a, b, c, d, ..] = self.words;
        address([a, b, c, d])
    }

    /// Where it goes.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        let [_, _, _, _, a, b, c, d, ..] = self.words;
        address([a, b, c, d])
    }

    /// What it carries.
    #[must_use]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol(self.words[9] as u8)
    }

    /// What it tells behind its headers.
    #[must_use]
    pub const fn upper(&self) -> Upper {
        Upper::of(self.words[8], self.words[9])
    }
}

impl Words for Key6 {
    #[inline(always)]
    fn word(&self, index: usize) -> u32 {
        self.words.get(index).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn last(&self) -> u32 {
        self.words[9]
    }
}

impl Packed<2> for Key4 {
    /// 14 bits where packets have their checksum, the others at the end.
    const LIST: [u64; 2] = [0x3fff << 10, 0xff << 56];

    #[inline(always)]
    fn packed(&self) -> [u64; 2] {
        // As octets lie in packets. The marks lie where the checksum does.
        let [source, destination, ports, protocol] = self.words;
        let [source, destination, ports] =
            [source, destination, ports].map(|word| u64::from(word.swap_bytes()));
        [
            u64::from(protocol) | source << 24 | destination << 56,
            destination >> 8 | ports << 24,
        ]
    }

    #[inline(always)]
    fn list(number: u32) -> [u64; 2] {
        [
            (u64::from(number) & 0x3fff) << 10,
            u64::from(number) >> 14 << 56,
        ]
    }
}

impl Packed<5> for Key6 {
    const LIST: [u64; 5] = [0, 0, 0, 0, !0 << 42];

    #[inline(always)]
    fn packed(&self) -> [u64; 5] {
        let [a, b, c, d, e, f, g, h, i, j] = self.words;
        [pair(a, b), pair(c, d), pair(e, f), pair(g, h), pair(i, j)]
    }

    /// Above the protocol's word, which has ten bits.
    #[inline(always)]
    fn list(number: u32) -> [u64; 5] {
        [0, 0, 0, 0, u64::from(number) << 42]
    }
}

/// Two words in one, the second above: as they lie in the memory of most machines.
#[inline(always)]
const fn pair(first: u32, second: u32) -> u64 {
    first as u64 | (second as u64) << 32
}

/// The four words of an address.
pub(crate) const fn words(address: &[u8; 16]) -> [u32; 4] {
    let number = u128::from_be_bytes(*address);
    [
        (number >> 96) as u32,
        (number >> 64) as u32,
        (number >> 32) as u32,
        number as u32,
    ]
}

fn address(words: [u32; 4]) -> Ipv6Addr {
    Ipv6Addr::from_bits(
        words
            .iter()
            .fold(0, |number, word| number << 32 | u128::from(*word)),
    )
}
