//! XDR out of a datagram, never past its end.
//!
//! A [`Cursor`] knows the whole datagram and the part it may read, so that an error can say at which
//! octet of the datagram it happened, however deep inside a sample's record that was.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::decode::{DecodeError, Problem};

/// A place in a datagram, and the end of what may be read from there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins in the datagram.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor {
            bytes,
            at: 0,
            base: 0,
        }
    }

    /// The body of a record that began at octet `base` of its datagram.
    pub(super) fn inside(bytes: &'a [u8], base: usize) -> Cursor<'a> {
        Cursor { bytes, at: 0, base }
    }

    /// Which octet of the datagram comes next.
    pub(super) fn offset(&self) -> usize {
        self.base.saturating_add(self.at)
    }

    /// Octets not read yet.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn error(&self, problem: Problem) -> DecodeError {
        DecodeError {
            offset: self.offset(),
            problem,
        }
    }

    /// The next `len` octets; `field` is what the error calls them.
    pub(super) fn bytes(
        &mut self,
        field: &'static str,
        len: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let end = self.at.saturating_add(len);
        let Some(bytes) = self.bytes.get(self.at..end) else {
            return Err(self.error(Problem::Truncated {
                field,
                needed: len,
                left: self.left(),
            }));
        };
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    pub(super) fn word(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(super) fn long(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// `opaque<>` and `string<>`: a length, so many octets, and zeros up to a multiple of four, which
    /// may be missing where everything ends.
    pub(super) fn opaque(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.word(field)? as usize;
        let bytes = self.bytes(field, len)?;
        self.skip_padding(len);
        Ok(bytes)
    }

    /// A MAC address, which XDR pads to eight octets.
    pub(super) fn mac(&mut self, field: &'static str) -> Result<[u8; 6], DecodeError> {
        let [a, b, c, d, e, f, _, _] = self.array::<8>(field)?;
        Ok([a, b, c, d, e, f])
    }

    /// A count and so many words.
    pub(super) fn words(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let count = self.word(field)? as usize;
        self.bytes(field, count.saturating_mul(4))
    }

    /// The specification's `address`; its type 0 is an address nobody knows.
    pub(super) fn address(&mut self, field: &'static str) -> Result<Option<IpAddr>, DecodeError> {
        let start = *self;
        match self.word(field)? {
            0 => Ok(None),
            1 => Ok(Some(IpAddr::V4(Ipv4Addr::from(self.array::<4>(field)?)))),
            2 => Ok(Some(IpAddr::V6(Ipv6Addr::from(self.array::<16>(field)?)))),
            other => Err(start.error(Problem::AddressType(other))),
        }
    }

    /// Splits off `len` octets and their padding as a cursor of their own; `None` when there are not
    /// so many left.
    pub(super) fn split(&mut self, len: u32) -> Option<Cursor<'a>> {
        let len = len as usize;
        if len > self.left() {
            return None;
        }
        let at = self.at;
        self.at = self.at.saturating_add(len);
        self.skip_padding(len);
        let bytes = self.bytes.get(..self.at)?;
        Some(Cursor {
            bytes,
            at,
            base: self.base,
        })
    }

    /// Everything that is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    fn skip_padding(&mut self, len: usize) {
        let padding = len.wrapping_neg() % 4;
        self.at = self.at.saturating_add(padding.min(self.left()));
    }
}
