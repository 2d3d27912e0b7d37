//! The small values a configuration is written in: MAC addresses, ranges of addresses and of
//! ports.
//!
//! Each has one spelling in the file, which `Display` writes and `FromStr` reads back. The errors
//! are short fragments ("is a multicast address") that the caller appends to the text it quotes;
//! they have no location, because only the caller knows it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A 48-bit Ethernet address, in the order it has on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The six bytes as they stand on the wire.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether one station can own this address: the group bit is clear and it is not all zero
    /// (IEEE 802-2014, 8.2.2).
    #[must_use]
    pub const fn is_unicast(self) -> bool {
        let [a, b, c, d, e, f] = self.0;
        a & 1 == 0 && (a | b | c | d | e | f) != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A host, by its address or by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// By its address.
    Address(IpAddr),
    /// By its name, which is looked up when it is needed.
    Name(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl FromStr for Host {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        const WRONG: NotAValue = NotAValue("is neither an IP address nor the name of a host");
        if let Ok(address) = text.parse::<IpAddr>() {
            return if address.is_unspecified() {
                Err(NotAValue("is no one's address"))
            } else {
                Ok(Self::Address(address))
            };
        }
        if is_host_name(text) {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(WRONG)
        }
    }
}

/// Whether a text can be a host's or a domain's name: letters, digits and hyphens, 63 a label, 253 in all, and never
/// like an address (RFC 1123 section 2.1).
pub(crate) fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or(name);
    name.len() <= 253
        && name.split('.').all(label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

/// Why a text is not the value it should be; reads as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAValue(pub &'static str);

impl FromStr for MacAddr {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        const WRONG: NotAValue = NotAValue("is not a MAC address");
        let mut octets = [0u8; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(WRONG)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(WRONG);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| WRONG)?;
        }
        if parts.next().is_some() {
            return Err(WRONG);
        }
        Ok(Self(octets))
    }
}

/// Addresses from `first` to `last`, both included; one address when they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ipv4Range {
    /// The lowest address.
    pub first: Ipv4Addr,
    /// The highest address, not below `first`.
    pub last: Ipv4Addr,
}

impl fmt::Display for Ipv4Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for Ipv4Range {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        const WRONG: NotAValue = NotAValue("is not an IPv4 address or range");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first: Ipv4Addr = first.trim_end().parse().map_err(|_| WRONG)?;
        let last: Ipv4Addr = last.trim_start().parse().map_err(|_| WRONG)?;
        if last < first {
            return Err(NotAValue("ends before it begins"));
        }
        Ok(Self { first, last })
    }
}

/// TCP or UDP ports from `first` to `last`, both included; one port when they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port, not below `first`.
    pub last: u16,
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl FromStr for PortRange {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        const WRONG: NotAValue = NotAValue("is not a port or range of ports");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first: u16 = decimal(first.trim_end()).ok_or(WRONG)?;
        let last: u16 = decimal(last.trim_start()).ok_or(WRONG)?;
        if last < first {
            return Err(NotAValue("ends before it begins"));
        }
        Ok(Self { first, last })
    }
}

/// A SHA-256 hash (FIPS 180-4). [`Sha256::HIDDEN`] stands for one that is not shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// The hash of a token whose hash is not shown: no token matches it.
    pub const HIDDEN: Self = Self([0; 32]);
    /// How the file spells [`Sha256::HIDDEN`].
    pub(crate) const HIDDEN_WORD: &str = "hidden";

    /// Whether the hash is not shown.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        *self == Self::HIDDEN
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_hidden() {
            return f.write_str(Self::HIDDEN_WORD);
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        const WRONG: NotAValue = NotAValue("is not a SHA-256 hash of 64 hexadecimal digits");
        if text == Self::HIDDEN_WORD {
            return Ok(Self::HIDDEN);
        }
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WRONG);
        }
        let mut hash = [0u8; 32];
        for (index, byte) in hash.iter_mut().enumerate() {
            let pair = text.get(2 * index..2 * index + 2).ok_or(WRONG)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| WRONG)?;
        }
        Ok(Self(hash))
    }
}

/// A plain decimal number: no sign, no leading zero, no underscores, as the file must spell it.
pub(crate) fn decimal<N: FromStr>(text: &str) -> Option<N> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if plain && !leading_zero {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_read_and_written() {
        let mac: MacAddr = "02:00:5e:00:AB:01".parse().unwrap();
        assert_eq!(mac.octets(), [2, 0, 0x5e, 0, 0xab, 1]);
        assert_eq!(mac.to_string(), "02:00:5e:00:ab:01");
        for wrong in [
            "",
            "02:00:5e:00:ab",
            "02:00:5e:00:ab:01:02",
            "2:0:5e:0:ab:1",
            "02-00-5e-00-ab-01",
            "+2:00:00:00:00:00",
        ] {
            assert!(wrong.parse::<MacAddr>().is_err(), "{wrong}");
        }
        assert!(mac.is_unicast());
        assert!(!MacAddr([1, 0, 0x5e, 0, 0, 1]).is_unicast());
        assert!(!MacAddr([0; 6]).is_unicast());
    }

    #[test]
    fn ranges_are_read_and_written() {
        let range: Ipv4Range = "10.0.0.1-10.0.0.9".parse().unwrap();
        assert_eq!((range.first.octets()[3], range.last.octets()[3]), (1, 9));
        assert_eq!(range.to_string(), "10.0.0.1-10.0.0.9");
        assert_eq!(
            "10.0.0.1".parse::<Ipv4Range>().unwrap().to_string(),
            "10.0.0.1"
        );
        assert!("10.0.0.9-10.0.0.1".parse::<Ipv4Range>().is_err());
        assert_eq!(
            "7-9".parse::<PortRange>().unwrap(),
            PortRange { first: 7, last: 9 }
        );
        for wrong in ["", "9-7", "65536", "a-b", "1-2-3", "+1"] {
            assert!(wrong.parse::<PortRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn hashes_are_read_and_written() {
        let text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00A08";
        let hash: Sha256 = text.parse().unwrap();
        assert_eq!((hash.0[0], hash.0[31]), (0x9f, 0x08));
        assert_eq!(hash.to_string(), text.to_lowercase());
        for wrong in [
            "",
            "9f",
            &text[..63],
            &"é".repeat(32),
            &format!("+{}", &text[1..]),
        ] {
            assert!(wrong.parse::<Sha256>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn decimals_have_one_spelling() {
        assert_eq!(decimal::<u16>("0"), Some(0));
        assert_eq!(decimal::<u16>("65535"), Some(65535));
        for wrong in ["", "007", "+1", "-1", "1_0", "0x1", "65536", "1.0"] {
            assert_eq!(decimal::<u16>(wrong), None, "{wrong}");
        }
    }
}
