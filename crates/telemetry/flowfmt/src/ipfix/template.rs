//! Templates: which fields a record has, in which order, in how many octets (RFC 7011 section 3.4).
//!
//! An options template begins with scope fields: they say what the record is about. NetFlow version 9 numbers
//! its scopes by themselves ([`Space::Scope9`]), and has no enterprises.

use std::borrow::Cow;

use super::elements::{Element, Kind, by_number};

/// A field of this length says with each record how long it is (RFC 7011, 7).
pub const VARIABLE: u16 = 65_535;
/// The enterprise of the other direction's elements (RFC 5103, 6.1).
pub const REVERSE: u32 = 29_305;

/// Whose number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// IANA's registry; with NetFlow version 9 also numbers above it.
    Iana,
    /// An enterprise's.
    Enterprise(u32),
    /// A kind of scope in NetFlow version 9.
    Scope9,
}

/// A field specifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Whose number.
    pub space: Space,
    /// The number.
    pub number: u16,
    /// Octets, or [`VARIABLE`].
    pub length: u16,
}

/// What scopes are called (RFC 3954, 6.1).
const SCOPES_9: [&str; 5] = [
    "scopeSystem",
    "scopeInterface",
    "scopeLineCard",
    "scopeCache",
    "scopeTemplate",
];

impl Field {
    /// An element of the registry.
    #[must_use]
    pub const fn iana(number: u16, length: u16) -> Field {
        Field {
            space: Space::Iana,
            number,
            length,
        }
    }

    /// Its entry in the registry; that of the forward direction for a reverse element.
    #[must_use]
    pub fn element(&self) -> Option<&'static Element> {
        match self.space {
            Space::Iana | Space::Enterprise(REVERSE) => by_number(self.number),
            _ => None,
        }
    }

    /// How its octets are read.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.space {
            Space::Scope9 => Kind::U64,
            _ => self.element().map_or(Kind::Octets, |element| element.kind),
        }
    }

    /// What it is called: the registry's name, `reverse…`, or numbers.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        match (self.space, self.element()) {
            (Space::Iana, Some(element)) => element.name.into(),
            (Space::Iana, None) => format!("element{}", self.number).into(),
            (Space::Enterprise(_), Some(element)) => reverse_name(element.name).into(),
            (Space::Enterprise(enterprise), None) => {
                format!("enterprise{enterprise}element{}", self.number).into()
            }
            (Space::Scope9, _) => match SCOPES_9.get(usize::from(self.number).wrapping_sub(1)) {
                Some(name) => (*name).into(),
                None => format!("scope{}", self.number).into(),
            },
        }
    }

    /// The fewest octets it takes in a record.
    fn least(&self) -> usize {
        if self.length == VARIABLE {
            1
        } else {
            self.length.into()
        }
    }
}

/// RFC 5103, 6.1: the name begins with "reverse" and goes on with a capital.
fn reverse_name(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    "reverse".chars().chain(first).chain(letters).collect()
}

/// What records of one kind consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its number, 256 or more; 0 for the fixed record of NetFlow version 5.
    pub id: u16,
    /// How many of the fields are scopes; none in a template that is not an options template.
    pub scopes: u16,
    /// The fields, scopes first.
    pub fields: Vec<Field>,
}

impl Template {
    /// A template for data.
    #[must_use]
    pub fn data(id: u16, fields: Vec<Field>) -> Template {
        Template {
            id,
            scopes: 0,
            fields,
        }
    }

    /// An options template whose first `scopes` fields are scopes.
    #[must_use]
    pub fn options(id: u16, scopes: u16, fields: Vec<Field>) -> Template {
        Template { id, scopes, fields }
    }

    /// Whether its records are options.
    #[must_use]
    pub fn is_options(&self) -> bool {
        self.scopes > 0
    }

    /// Octets of its shortest record.
    #[must_use]
    pub fn least(&self) -> usize {
        self.fields.iter().map(Field::least).sum()
    }

    /// The same, or more than `most` when it is more: no more fields are looked at than `most` octets have room for.
    pub(super) fn least_up_to(&self, most: usize) -> usize {
        let mut least = 0;
        for field in &self.fields {
            least += field.least();
            if least > most {
                break;
            }
        }
        least
    }

    /// Octets of each of its records, when all have the same length.
    #[must_use]
    pub fn fixed(&self) -> Option<usize> {
        self.fields
            .iter()
            .all(|field| field.length != VARIABLE)
            .then(|| self.least())
    }

    /// The fields of the record that `octets` begin with, and behind them where the record ends.
    pub(super) fn split<'a, 't>(&'t self, octets: &'a [u8]) -> FieldOctets<'a, 't> {
        FieldOctets {
            fields: self.fields.iter(),
            rest: octets,
        }
    }
}

/// The fields of one record with their octets; ends early where octets are missing.
#[derive(Clone, Debug)]
pub struct FieldOctets<'a, 't> {
    fields: std::slice::Iter<'t, Field>,
    rest: &'a [u8],
}

impl<'a> FieldOctets<'a, '_> {
    /// What is behind the record, when the iterator came to the record's end.
    pub(super) fn behind(mut self) -> Option<&'a [u8]> {
        while !self.fields.as_slice().is_empty() {
            self.next()?;
        }
        Some(self.rest)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// RFC 7011, 7: one octet, or 255 and two.
    fn variable(&mut self) -> Option<usize> {
        match self.take(1)? {
            [255] => Some(usize::from(u16::from_be_bytes(
                self.take(2)?.try_into().ok()?,
            ))),
            [length] => Some(usize::from(*length)),
            _ => None,
        }
    }
}

impl<'a> Iterator for FieldOctets<'a, '_> {
    type Item = (Field, &'a [u8]);

    fn next(&mut self) -> Option<(Field, &'a [u8])> {
        let field = *self.fields.as_slice().first()?;
        let length = if field.length == VARIABLE {
            self.variable()?
        } else {
            field.length.into()
        };
        let octets = self.take(length)?;
        self.fields.next();
        Some((field, octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = |space, number| {
            Field {
                space,
                number,
                length: 4,
            }
            .name()
            .into_owned()
        };
        assert_eq!(name(Space::Iana, 1), "octetDeltaCount");
        assert_eq!(name(Space::Iana, 33_002), "element33002");
        assert_eq!(
            name(Space::Enterprise(REVERSE), 1),
            "reverseOctetDeltaCount"
        );
        assert_eq!(name(Space::Enterprise(9), 1), "enterprise9element1");
        assert_eq!(name(Space::Scope9, 2), "scopeInterface");
        assert_eq!(name(Space::Scope9, 0), "scope0");
    }

    #[test]
    fn a_record_is_split_by_its_lengths() {
        let fields = vec![
            Field::iana(4, 1),
            Field::iana(82, VARIABLE),
            Field::iana(83, VARIABLE),
            Field::iana(7, 2),
        ];
        let template = Template::data(256, fields);
        assert_eq!((template.least(), template.fixed()), (5, None));
        assert_eq!(
            [0, 1, 4, 5, 9].map(|most| template.least_up_to(most)),
            [1, 2, 5, 5, 5]
        );
        // A long template is not looked through for a short set.
        let long = Template::data(256, vec![Field::iana(4, 1); 15_000]);
        assert_eq!(
            (
                long.least_up_to(0),
                long.least_up_to(99),
                long.least_up_to(usize::MAX)
            ),
            (1, 100, 15_000)
        );
        let mut octets = vec![17, 3, b'w', b'a', b'n', 255, 1, 0];
        octets.extend([7; 256]);
        octets.extend([0, 53, 99]);
        let split: Vec<_> = template
            .split(&octets)
            .map(|(field, octets)| (field.number, octets.len()))
            .collect();
        assert_eq!(split, [(4, 1), (82, 3), (83, 256), (7, 2)]);
        assert_eq!(template.split(&octets).behind(), Some(&[99][..]));
        for cut in 0..octets.len() - 1 {
            assert_eq!(template.split(&octets[..cut]).behind(), None, "{cut}");
        }
    }
}
