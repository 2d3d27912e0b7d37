//! What an ICMP error carries behind its quote (RFC 4884), and the one thing that routers put there: the
//! label stack of a packet that died under MPLS (RFC 4950).
//!
//! The quote is filled up to at least 128 bytes and to whole words (32 bits in ICMP, 64 in ICMPv6); a
//! length field in the error's second word says how many of these there are. Then come four bytes
//! with a checksum over all that follows, then objects.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;

/// Bytes that a quote has at least when something follows (RFC 4884 section 3).
pub const QUOTE: usize = 128;
/// The class of label stacks (RFC 4950 section 3).
pub const MPLS_STACK: u8 = 1;
/// The kind of [`MPLS_STACK`] that is a stack as it came in.
pub const MPLS_INCOMING: u8 = 1;

/// Begins the extensions.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
struct Head {
    version: u8,
    reserved: u8,
    checksum: U16,
}

/// Begins an object; its length counts these four bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
struct ObjectHead {
    length: U16,
    class: u8,
    kind: u8,
}

/// Which ICMP: they count the quote in different words, in different places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// ICMP: words of 32 bits, counted in bits 16 to 23 of the second word.
    Icmp,
    /// ICMPv6: words of 64 bits, counted in bits 24 to 31 of the second word.
    Icmp6,
}

impl Version {
    const fn word(self) -> usize {
        match self {
            Version::Icmp => 4,
            Version::Icmp6 => 8,
        }
    }

    const fn shift(self) -> u32 {
        match self {
            Version::Icmp => 16,
            Version::Icmp6 => 24,
        }
    }
}

/// What goes behind an error's first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub length: usize,
    /// The error's second word, with the length of the quote.
    pub argument: u32,
}

/// Writes a quote and a label stack: `stack` is the entries as they came in, top first (RFC 4950 section
/// 3), `quote` the packet under them, cut to `most` bytes if it is longer. `None` when there is no room,
/// or `most` is below [`QUOTE`].
pub fn write(
    body: &mut [u8],
    version: Version,
    quote: &[u8],
    most: usize,
    stack: &[u8],
) -> Option<Written> {
    let word = version.word();
    // Whole words only, and as many as the length field can count.
    let most = (most / word).min(255) * word;
    if most < QUOTE {
        return None;
    }
    let quote = quote.get(..most).unwrap_or(quote);
    let quoted = quote.len().next_multiple_of(word).max(QUOTE);
    let object = size_of::<ObjectHead>() + stack.len();
    let length = quoted + size_of::<Head>() + object;
    let (place, rest) = body.get_mut(..length)?.split_at_mut_checked(quoted)?;
    let (start, padding) = place.split_at_mut_checked(quote.len())?;
    start.copy_from_slice(quote);
    padding.fill(0);
    let head = ObjectHead {
        length: U16::new(u16::try_from(object).ok()?),
        class: MPLS_STACK,
        kind: MPLS_INCOMING,
    };
    let extensions = [
        Head {
            version: 2 << 4,
            ..Head::default()
        }
        .as_bytes(),
        head.as_bytes(),
        stack,
    ]
    .concat();
    rest.copy_from_slice(&extensions);
    let sum = checksum::internet(rest);
    if let Ok((head, _)) = Head::mut_from_prefix(rest) {
        head.checksum = U16::new(sum);
    }
    Some(Written {
        length,
        argument: ((quoted / word) as u32) << version.shift(),
    })
}

/// What was wrong with extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionError {
    /// The message ends within its quote or its extensions.
    #[error("the message ends within its extensions")]
    Truncated,
    /// They are of another version than 2.
    #[error("extensions of version {0}")]
    Version(u8),
    /// Their checksum is wrong.
    #[error("a wrong checksum")]
    Checksum,
    /// An object is shorter than its own head, or longer than what is left.
    #[error("an object of {0} bytes")]
    Object(u16),
}

/// An object of the extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// What it is about; [`MPLS_STACK`] is one.
    pub class: u8,
    /// What of that class.
    pub kind: u8,
    /// What it says.
    pub payload: &'a [u8],
}

/// A message's quote, and the objects behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The quote, with what it was filled up with.
    pub quote: &'a [u8],
    objects: &'a [u8],
}

/// Takes apart what lies behind an error's first eight bytes; `argument` is its second word. Where that
/// counts nothing, all is quote and there are no objects (RFC 4884 section 5 leaves older senders, who did
/// not count, to guessing; nothing is guessed here).
///
/// # Errors
/// What was wrong.
pub fn read(version: Version, argument: u32, body: &[u8]) -> Result<Parts<'_>, ExtensionError> {
    let quoted = ((argument >> version.shift()) & 0xff) as usize * version.word();
    if quoted == 0 {
        return Ok(Parts {
            quote: body,
            objects: &[],
        });
    }
    let (quote, rest) = body
        .split_at_checked(quoted)
        .ok_or(ExtensionError::Truncated)?;
    let (head, objects) = Head::ref_from_prefix(rest).map_err(|_| ExtensionError::Truncated)?;
    if head.version >> 4 != 2 {
        return Err(ExtensionError::Version(head.version >> 4));
    }
    // A checksum of 0 was not taken (RFC 4884 section 7).
    if head.checksum.get() != 0 && checksum::internet(rest) != 0 {
        return Err(ExtensionError::Checksum);
    }
    Ok(Parts { quote, objects })
}

impl<'a> Parts<'a> {
    /// The objects, in order; after an error, no more.
    pub fn objects(&self) -> impl Iterator<Item = Result<Object<'a>, ExtensionError>> + use<'a> {
        let mut rest = self.objects;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let object = object(&mut rest);
            if object.is_err() {
                rest = &[];
            }
            Some(object)
        })
    }

    /// The label stack that the packet came with, as bytes on the wire; `None` without one.
    #[must_use]
    pub fn label_stack(&self) -> Option<&'a [u8]> {
        let found = self
            .objects()
            .map_while(Result::ok)
            .find(|object| (object.class, object.kind) == (MPLS_STACK, MPLS_INCOMING));
        found.map(|object| object.payload)
    }
}

fn object<'a>(rest: &mut &'a [u8]) -> Result<Object<'a>, ExtensionError> {
    let (head, _) = ObjectHead::ref_from_prefix(rest).map_err(|_| ExtensionError::Truncated)?;
    let wrong = ExtensionError::Object(head.length.get());
    let (object, behind) = rest
        .split_at_checked(usize::from(head.length.get()))
        .ok_or(wrong)?;
    let payload = object.get(size_of::<ObjectHead>()..).ok_or(wrong)?;
    *rest = behind;
    Ok(Object {
        class: head.class,
        kind: head.kind,
        payload,
    })
}
