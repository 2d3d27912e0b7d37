//! How the structures of records are written down, once for the agent and for the collector.
//!
//! A [`Structure`] is a record's number and its fields in the wire's order, each with its [`Kind`] and
//! the name under which it is printed. [`Structure::read`] takes a body apart, the encoder puts
//! [`Value`]s together by the same list, the printers take the names from it: what the agent sends and
//! what the decoder reads cannot drift apart.
//!
//! A body may be longer than its structure: records have grown, and what was added is stepped over. It
//! may also end before the fields that were added later (`required` says which).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::DataFormat;
use super::cursor::Cursor;
use super::decode::{DecodeError, Opaque, Problem};

/// What a field holds, and so how it is written and printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 32 bits.
    I32,
    /// Floating point, 32 bits.
    F32,
    /// Hundredths in 32 bits; all ones when unknown.
    Hundredths,
    /// One octet, without padding: four of them stand together.
    Octet,
    /// A string.
    Text,
    /// Octets with their length before them.
    Octets,
    /// An address with its type before it.
    Address,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address and two octets of padding.
    Mac,
    /// Sixteen octets.
    Uuid,
    /// 64 bits that are a name rather than a number.
    Id64,
    /// 32 bits of which each value has a word.
    Choice(&'static [&'static str]),
    /// A count and so many words.
    Words,
    /// The same, MPLS labels with their traffic class, bottom bit and TTL.
    Labels,
    /// The same, VLAN tags with their TPID.
    Tags,
    /// The same, hundredths.
    Percentages,
    /// A count and so many segments of an AS path: type, count, numbers.
    AsPath,
    /// A count and so many interfaces: number, count, MAC addresses.
    Adaptors,
    /// A count and so many optical lanes of ten words.
    Lanes,
    /// Whatever is left of the record.
    Rest,
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name it is printed under.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// What a record is made of.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its number.
    pub format: DataFormat,
    /// What is printed first: `extendedType` or `flowSampleType`, and which.
    pub label: Option<(&'static str, &'static str)>,
    /// Stands before every name that is printed.
    pub prefix: &'static str,
    /// The fields, in the wire's order.
    pub fields: &'static [Field],
    /// How many of them were there from the beginning.
    pub required: usize,
}

/// Fields a structure may have.
pub const MOST_FIELDS: usize = 40;

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Not there: the record ended before it.
    Absent,
    /// Of 32 bits, and choices.
    U32(u32),
    /// Of 64 bits.
    U64(u64),
    /// Signed.
    I32(i32),
    /// Floating point.
    F32(f32),
    /// One octet.
    Octet(u8),
    /// Strings and octets.
    Octets(&'a [u8]),
    /// Addresses; `None` is the specification's unknown one.
    Address(Option<IpAddr>),
    /// A MAC address.
    Mac([u8; 6]),
    /// Sixteen octets.
    Uuid([u8; 16]),
    /// A list of words, as the wire has them.
    Words(&'a [u8]),
    /// A list of something larger: how many, and its octets, whose lengths were checked.
    List(u32, &'a [u8]),
}

impl Value<'_> {
    /// As a number, where it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match *self {
            Value::U32(value) => Some(value.into()),
            Value::U64(value) => Some(value),
            Value::Octet(value) => Some(value.into()),
            _ => None,
        }
    }
}

/// The values of a record, in the order of its structure's fields.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    values: [Value<'a>; MOST_FIELDS],
    len: usize,
}

impl<'a> Values<'a> {
    /// One for each field.
    #[must_use]
    pub fn as_slice(&self) -> &[Value<'a>] {
        self.values.get(..self.len).unwrap_or(&[])
    }
}

impl Structure {
    pub(super) const fn new(enterprise: u32, format: u32, fields: &'static [Field]) -> Structure {
        // Said when the table is compiled.
        assert!(
            fields.len() <= MOST_FIELDS,
            "more fields than Values has room for"
        );
        Structure {
            format: DataFormat { enterprise, format },
            label: None,
            prefix: "",
            fields,
            required: fields.len(),
        }
    }

    pub(super) const fn extended(mut self, label: &'static str) -> Structure {
        self.label = Some(("extendedType", label));
        self
    }

    pub(super) const fn flow(mut self, label: &'static str) -> Structure {
        self.label = Some(("flowSampleType", label));
        self
    }

    pub(super) const fn prefixed(mut self, prefix: &'static str) -> Structure {
        self.prefix = prefix;
        self
    }

    /// The same structure under another number.
    pub(super) const fn numbered(mut self, format: u32) -> Structure {
        self.format = DataFormat::standard(format);
        self
    }

    /// The last `added` fields came later; older agents end before them.
    pub(super) const fn grown(mut self, added: usize) -> Structure {
        self.required = self.fields.len() - added;
        self
    }

    /// Takes a record's body apart.
    ///
    /// # Errors
    /// When it ends before all that was there from the beginning, or contradicts itself.
    pub fn read<'a>(&self, record: &Opaque<'a>) -> Result<Values<'a>, DecodeError> {
        let mut cursor = Cursor::inside(record.body, record.offset);
        let mut values = Values {
            values: [Value::Absent; MOST_FIELDS],
            len: self.fields.len(),
        };
        for (place, (field, value)) in self.fields.iter().zip(&mut values.values).enumerate() {
            if place >= self.required && cursor.left() == 0 {
                break;
            }
            *value = field.kind.read(field.name, &mut cursor)?;
        }
        Ok(values)
    }
}

impl Kind {
    pub(super) const ACL_DIRECTION: Kind = Kind::Choice(&["unknown", "ingress", "egress"]);
    pub(super) const TCP_DIRECTION: Kind = Kind::Choice(&["unknown", "received", "sent"]);
    pub(super) const STATUS: Kind = Kind::Choice(&[
        "SUCCESS",
        "OTHER",
        "TIMEOUT",
        "INTERNAL_ERROR",
        "BAD_REQUEST",
        "FORBIDDEN",
        "TOO_LARGE",
        "NOT_IMPLEMENTED",
        "NOT_FOUND",
        "UNAVAILABLE",
        "UNAUTHORIZED",
    ]);

    fn read<'a>(
        self,
        name: &'static str,
        cursor: &mut Cursor<'a>,
    ) -> Result<Value<'a>, DecodeError> {
        Ok(match self {
            Kind::U32 | Kind::Hundredths | Kind::Choice(_) => Value::U32(cursor.word(name)?),
            Kind::I32 => Value::I32(cursor.word(name)?.cast_signed()),
            Kind::F32 => Value::F32(f32::from_bits(cursor.word(name)?)),
            Kind::U64 | Kind::Id64 => Value::U64(cursor.long(name)?),
            Kind::Octet => Value::Octet(cursor.array::<1>(name)?[0]),
            Kind::Text | Kind::Octets => Value::Octets(cursor.opaque(name)?),
            Kind::Address => Value::Address(cursor.address(name)?),
            Kind::Ipv4 => Value::Address(Some(Ipv4Addr::from(cursor.array::<4>(name)?).into())),
            Kind::Ipv6 => Value::Address(Some(Ipv6Addr::from(cursor.array::<16>(name)?).into())),
            Kind::Mac => Value::Mac(cursor.mac(name)?),
            Kind::Uuid => Value::Uuid(cursor.array(name)?),
            Kind::Words | Kind::Labels | Kind::Tags | Kind::Percentages => {
                Value::Words(cursor.words(name)?)
            }
            Kind::AsPath => list(cursor, name, |cursor| {
                cursor.word(name)?;
                cursor.words(name)?;
                Ok(())
            })?,
            Kind::Adaptors => list(cursor, name, |cursor| {
                cursor.word(name)?;
                let macs = cursor.word(name)?;
                cursor.bytes(name, (macs as usize).saturating_mul(8))?;
                Ok(())
            })?,
            Kind::Lanes => list(cursor, name, |cursor| cursor.bytes(name, 40).map(|_| ()))?,
            Kind::Rest => {
                let rest = cursor.rest();
                cursor.bytes(name, rest.len())?;
                Value::Octets(rest)
            }
        })
    }
}

/// A count, and so many of what `item` steps over; every item has at least four octets.
fn list<'a>(
    cursor: &mut Cursor<'a>,
    name: &'static str,
    item: impl Fn(&mut Cursor<'a>) -> Result<(), DecodeError>,
) -> Result<Value<'a>, DecodeError> {
    let start = *cursor;
    let count = cursor.word(name)?;
    if count as usize > cursor.left() / 4 {
        return Err(start.error(Problem::Truncated {
            field: name,
            needed: (count as usize).saturating_mul(4),
            left: cursor.left(),
        }));
    }
    let items = cursor.rest();
    for _ in 0..count {
        item(cursor)?;
    }
    let read = items.len().saturating_sub(cursor.left());
    Ok(Value::List(count, items.get(..read).unwrap_or(&[])))
}

/// Fields, those of one kind together: `fields![U32: "a" "b"; U64: "c"]`.
macro_rules! fields {
    ($($kind:ident: $($name:literal)+);+ $(;)?) => {
        &[$($(crate::sflow::structure::Field { name: $name, kind: crate::sflow::structure::Kind::$kind }),+),+]
    };
}
pub(super) use fields;

/// A structure that the router itself fills in or reads: a Rust type and its table entry in one.
macro_rules! typed {
    ($($(#[$meta:meta])* $name:ident = $enterprise:literal : $format:literal $(. $with:ident($label:expr))? {
        $($(#[$doc:meta])* $field:ident: $kind:ident $printed:literal,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: crate::sflow::structure::rust_type!($kind),)* }

        impl $name {
            /// Its entry in the table of structures.
            pub const STRUCTURE: crate::sflow::structure::Structure = crate::sflow::structure::Structure::new(
                $enterprise, $format, &[$(crate::sflow::structure::Field { name: $printed, kind: crate::sflow::structure::Kind::$kind }),*],
            )$(.$with($label))?;

            /// Its values, in the table's order.
            #[must_use]
            pub fn values(&self) -> Vec<crate::sflow::structure::Value<'static>> {
                vec![$(crate::sflow::structure::value!($kind, self.$field)),*]
            }

            #[allow(dead_code, reason = "some are read and some are written, the macro makes both")]
            pub(in crate::sflow) fn read_from(cursor: &mut crate::sflow::cursor::Cursor<'_>) -> Result<$name, crate::sflow::decode::DecodeError> {
                Ok($name { $($field: crate::sflow::structure::read!($kind, cursor, $printed),)* })
            }

            #[allow(dead_code, reason = "some are read and some are written, the macro makes both")]
            pub(in crate::sflow) fn write_to(&self, writer: &mut crate::sflow::encode::Writer) {
                $(crate::sflow::structure::write!($kind, writer, self.$field);)*
            }
        }
    )*};
}
pub(super) use typed;

macro_rules! rust_type {
    (U32) => { u32 };
    (U64) => { u64 };
    (Octet) => { u8 };
    (Address) => { Option<std::net::IpAddr> };
    (Ipv4) => { [u8; 4] };
    (Ipv6) => { [u8; 16] };
    (Mac) => { [u8; 6] };
}
pub(super) use rust_type;

macro_rules! value {
    (Ipv4, $value:expr) => {
        crate::sflow::structure::Value::Address(Some($value.into()))
    };
    (Ipv6, $value:expr) => {
        crate::sflow::structure::Value::Address(Some($value.into()))
    };
    ($kind:ident, $value:expr) => {
        crate::sflow::structure::Value::$kind($value)
    };
}
pub(super) use value;

macro_rules! read {
    (U32, $cursor:ident, $name:literal) => {
        $cursor.word($name)?
    };
    (U64, $cursor:ident, $name:literal) => {
        $cursor.long($name)?
    };
    (Octet, $cursor:ident, $name:literal) => {
        $cursor.array::<1>($name)?[0]
    };
    (Address, $cursor:ident, $name:literal) => {
        $cursor.address($name)?
    };
    (Ipv4, $cursor:ident, $name:literal) => {
        $cursor.array::<4>($name)?
    };
    (Ipv6, $cursor:ident, $name:literal) => {
        $cursor.array::<16>($name)?
    };
    (Mac, $cursor:ident, $name:literal) => {
        $cursor.mac($name)?
    };
}
pub(super) use read;

macro_rules! write {
    (U32, $writer:ident, $value:expr) => {
        $writer.word($value)
    };
    (U64, $writer:ident, $value:expr) => {
        $writer.long($value)
    };
    (Octet, $writer:ident, $value:expr) => {
        $writer.bytes(&[$value])
    };
    (Address, $writer:ident, $value:expr) => {
        $writer.address($value)
    };
    (Ipv4, $writer:ident, $value:expr) => {
        $writer.bytes(&$value)
    };
    (Ipv6, $writer:ident, $value:expr) => {
        $writer.bytes(&$value)
    };
    (Mac, $writer:ident, $value:expr) => {
        $writer.padded(&$value)
    };
}
pub(super) use write;
