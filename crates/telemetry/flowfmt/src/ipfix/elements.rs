//! What information elements are called and how their octets are read (RFC 7011 section 6, RFC 7012 section 3).
//!
//! A [`Value`] is one field of one record. Integers may come in fewer octets than their type has (RFC 7011
//! 6.2); what has a length that its type cannot have stays [`Value::Octets`], so that nothing is lost
//! and nothing is made up. Elements of enterprises and those that the registry does not know are octets, too.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::registry::REGISTRY;

/// An abstract data type, as far as it decides how octets are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the types of RFC 7012 section 3.1, by their usual short names"
)]
pub enum Kind {
    U8,
    U16,
    U32,
    U64,
    I64,
    F64,
    Bool,
    Mac,
    Text,
    Seconds,
    Millis,
    Micros,
    Nanos,
    V4,
    V6,
    Octets,
    List,
}

impl Kind {
    /// The octets of the full size; `None` for what has any number of them.
    #[must_use]
    pub fn size(self) -> Option<u16> {
        match self {
            Kind::U8 | Kind::Bool => Some(1),
            Kind::U16 => Some(2),
            Kind::U32 | Kind::Seconds | Kind::V4 => Some(4),
            Kind::Mac => Some(6),
            Kind::U64 | Kind::I64 | Kind::F64 | Kind::Millis | Kind::Micros | Kind::Nanos => {
                Some(8)
            }
            Kind::V6 => Some(16),
            Kind::Text | Kind::Octets | Kind::List => None,
        }
    }
}

/// An entry of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its number, 1 to 32767.
    pub number: u16,
    /// Its name, as IANA writes it.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// The element with this number.
#[must_use]
pub fn by_number(number: u16) -> Option<&'static Element> {
    let place = REGISTRY
        .binary_search_by_key(&number, |element| element.number)
        .ok()?;
    REGISTRY.get(place)
}

/// The element with this name; upper and lower case are different.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Element> {
    REGISTRY.iter().find(|element| element.name == name)
}

/// All elements, by number.
#[must_use]
pub fn all() -> &'static [Element] {
    REGISTRY
}

/// One field of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// unsigned8 to unsigned64, in as many octets as there are, up to eight.
    Unsigned(u64),
    /// signed8 to signed64.
    Signed(i64),
    /// float32 and float64.
    Float(f64),
    /// boolean: 1 is true, 2 is false (RFC 7011 6.1.5).
    Bool(bool),
    /// macAddress.
    Mac([u8; 6]),
    /// string.
    Text(&'a [u8]),
    /// A point in time: nanoseconds since 1970.
    Time(u64),
    /// ipv4Address.
    V4(Ipv4Addr),
    /// ipv6Address.
    V6(Ipv6Addr),
    /// octetArray, lists, and whatever does not have a length of its type.
    Octets(&'a [u8]),
}

/// Seconds between the epochs of NTP (1900) and Unix (1970).
const NTP_TO_UNIX: u64 = 2_208_988_800;

impl<'a> Value<'a> {
    /// Reads octets as a type.
    #[must_use]
    pub fn read(kind: Kind, octets: &'a [u8]) -> Value<'a> {
        Value::typed(kind, octets).unwrap_or(Value::Octets(octets))
    }

    fn typed(kind: Kind, octets: &'a [u8]) -> Option<Value<'a>> {
        Some(match kind {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Value::Unsigned(unsigned(octets)?),
            Kind::I64 => Value::Signed(signed(octets)?),
            Kind::F64 => Value::Float(float(octets)?),
            Kind::Bool => match octets {
                [1] => Value::Bool(true),
                [2] => Value::Bool(false),
                _ => return None,
            },
            Kind::Mac => Value::Mac(octets.try_into().ok()?),
            Kind::Text => Value::Text(octets),
            Kind::Seconds => Value::Time(word(octets)?.checked_mul(1_000_000_000)?),
            Kind::Millis => Value::Time(long(octets)?.checked_mul(1_000_000)?),
            Kind::Micros | Kind::Nanos => Value::Time(ntp(long(octets)?)?),
            Kind::V4 => Value::V4(<[u8; 4]>::try_from(octets).ok()?.into()),
            Kind::V6 => Value::V6(<[u8; 16]>::try_from(octets).ok()?.into()),
            Kind::Octets | Kind::List => return None,
        })
    }

    /// The number it is, if it is an unsigned one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Unsigned(value) => Some(*value),
            _ => None,
        }
    }
}

/// Big endian, in one to eight octets (RFC 7011 6.2).
#[must_use]
pub fn unsigned(octets: &[u8]) -> Option<u64> {
    if !(1..=8).contains(&octets.len()) {
        return None;
    }
    Some(
        octets
            .iter()
            .fold(0, |value, octet| value << 8 | u64::from(*octet)),
    )
}

fn signed(octets: &[u8]) -> Option<i64> {
    let unused = 64 - 8 * u32::try_from(octets.len()).ok()?.min(8);
    // The sign comes down again with the shift.
    Some((unsigned(octets)? << unused) as i64 >> unused)
}

fn float(octets: &[u8]) -> Option<f64> {
    match octets.len() {
        4 => Some(f32::from_be_bytes(octets.try_into().ok()?).into()),
        8 => Some(f64::from_be_bytes(octets.try_into().ok()?)),
        _ => None,
    }
}

fn word(octets: &[u8]) -> Option<u64> {
    Some(u32::from_be_bytes(octets.try_into().ok()?).into())
}

fn long(octets: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(octets.try_into().ok()?))
}

/// NTP's 32.32 (RFC 7011 6.1.9), in nanoseconds since 1970; the fraction counts 2^-32 seconds, it is no number of
/// nanoseconds. `None` for years that Unix time does not have.
fn ntp(value: u64) -> Option<u64> {
    let seconds = (value >> 32).checked_sub(NTP_TO_UNIX)?;
    // Rounded, so that a nanosecond put into 2^-32 seconds and back is the same one.
    let fraction = ((value & 0xffff_ffff) * 1_000_000_000 + (1 << 31)) >> 32;
    Some(seconds * 1_000_000_000 + fraction)
}

/// Nanoseconds since 1970 as NTP's 32.32.
#[must_use]
pub fn to_ntp(time: u64) -> u64 {
    let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
    seconds.wrapping_add(NTP_TO_UNIX) << 32 | ((nanoseconds << 32) / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_and_names_are_unique() {
        assert!(
            REGISTRY
                .windows(2)
                .all(|pair| pair[0].number < pair[1].number)
        );
        let names: std::collections::HashSet<_> =
            REGISTRY.iter().map(|element| element.name).collect();
        assert_eq!(names.len(), REGISTRY.len());
        assert!(REGISTRY.iter().all(|element| {
            element
                .name
                .bytes()
                .all(|octet| octet.is_ascii_alphanumeric())
        }));
    }

    #[test]
    fn elements_are_found_both_ways() {
        assert_eq!(
            by_number(89).map(|element| element.name),
            Some("forwardingStatus")
        );
        assert_eq!(
            by_name("flowStartMilliseconds").map(|element| element.number),
            Some(152)
        );
        assert_eq!(by_number(97), None);
        assert_eq!(by_number(0), None);
        assert_eq!(by_name("OctetDeltaCount"), None);
    }

    #[test]
    fn numbers_come_in_fewer_octets() {
        assert_eq!(
            Value::read(Kind::U64, &[1, 2, 3]),
            Value::Unsigned(0x01_02_03)
        );
        assert_eq!(Value::read(Kind::U8, &[0xff; 8]), Value::Unsigned(u64::MAX));
        assert_eq!(Value::read(Kind::I64, &[0xff, 0xfe]), Value::Signed(-2));
        assert_eq!(Value::read(Kind::I64, &[0x7f]), Value::Signed(127));
        assert_eq!(
            Value::read(Kind::F64, &[0x3f, 0x80, 0, 0]),
            Value::Float(1.0)
        );
    }

    #[test]
    fn what_no_type_has_stays_octets() {
        for (kind, octets) in [
            (Kind::U64, &[][..]),
            (Kind::U64, &[0; 9]),
            (Kind::V4, &[1, 2, 3]),
            (Kind::Mac, &[0; 7]),
            (Kind::Bool, &[3]),
        ] {
            assert_eq!(Value::read(kind, octets), Value::Octets(octets));
        }
        // A millisecond that nanoseconds cannot hold, and a moment before 1970.
        for (kind, octets) in [(Kind::Millis, [0xff; 8]), (Kind::Nanos, [0; 8])] {
            assert_eq!(Value::read(kind, &octets), Value::Octets(&octets));
        }
    }

    #[test]
    fn fractions_of_ntp_are_no_nanoseconds() {
        // 2023-11-14 22:13:20.5 UTC: half a second is 0x80000000.
        let octets = ((1_700_000_000 + NTP_TO_UNIX) << 32 | 0x8000_0000).to_be_bytes();
        assert_eq!(
            Value::read(Kind::Nanos, &octets),
            Value::Time(1_700_000_000_500_000_000)
        );
        for nanoseconds in [0, 1, 2, 3, 999_999_999, 123_456_789] {
            let time = 1_700_000_000_000_000_000 + nanoseconds;
            assert_eq!(
                Value::read(Kind::Nanos, &to_ntp(time).to_be_bytes()),
                Value::Time(time)
            );
        }
    }
}
