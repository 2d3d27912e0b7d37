//! MAC addresses (IEEE 802-2014 section 8.2).

use std::fmt;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A MAC address, as on the wire and in text as `aa:bb:cc:dd:ee:ff`.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// No address.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Whether it names a group of stations (multicast or broadcast): the first bit on the wire.
    #[inline(always)]
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it names all stations.
    #[inline(always)]
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == MacAddr::BROADCAST
    }

    /// Whether it can be the address of one station: neither a group nor zero.
    #[inline(always)]
    #[must_use]
    pub fn is_unicast(self) -> bool {
        !self.is_group() && self != MacAddr::ZERO
    }

    /// The address as a number of 48 bits, first byte highest.
    #[inline(always)]
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address of a number's lower 48 bits.
    #[inline(always)]
    #[must_use]
    pub const fn from_u64(number: u64) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
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

impl From<[u8; 6]> for MacAddr {
    fn from(bytes: [u8; 6]) -> MacAddr {
        MacAddr(bytes)
    }
}

/// A text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address: six pairs of hexadecimal digits with colons are expected")]
pub struct MacParseError;

impl FromStr for MacAddr {
    type Err = MacParseError;

    fn from_str(text: &str) -> Result<MacAddr, MacParseError> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|pair| {
                pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit())
            });
            *byte =
                u8::from_str_radix(pair.ok_or(MacParseError)?, 16).map_err(|_| MacParseError)?;
        }
        if pairs.next().is_some() {
            Err(MacParseError)
        } else {
            Ok(MacAddr(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_both_ways() {
        let mac = MacAddr([0x02, 0xfe, 0, 0x10, 0xab, 0x9]);
        assert_eq!(mac.to_string(), "02:fe:00:10:ab:09");
        assert_eq!("02:FE:00:10:ab:09".parse(), Ok(mac));
        for wrong in [
            "",
            "02",
            "02:fe:00:10:ab",
            "02:fe:00:10:ab:09:",
            "02:fe:00:10:ab:09:01",
            "2:fe:0:10:ab:9",
            "02:fe:00:10:ab:+9",
            "02-fe-00-10-ab-09",
            "0ä:fe:00:10:ab:09",
        ] {
            assert_eq!(wrong.parse::<MacAddr>(), Err(MacParseError), "{wrong}");
        }
    }

    #[test]
    fn kinds() {
        let group = MacAddr([1, 0, 0x5e, 0, 0, 1]);
        let station = MacAddr([2, 0, 0, 0, 0, 1]);
        assert!(group.is_group() && !group.is_broadcast() && !group.is_unicast());
        assert!(MacAddr::BROADCAST.is_group() && MacAddr::BROADCAST.is_broadcast());
        assert!(station.is_unicast() && !MacAddr::ZERO.is_unicast());
        assert_eq!(station.to_u64(), 0x0200_0000_0001);
        assert_eq!(MacAddr::from_u64(0xffff_0200_0000_0001), station);
    }
}
