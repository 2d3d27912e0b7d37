//! MPLS label stacks (RFC 3032, RFC 5462) and what lies under them.
//!
//! A stack has no length field and no type field: it ends where an entry says so, and what follows is
//! known to whoever assigned the last label. [`read_stack`] bounds the way down. Routers in between may
//! only guess: [`guess`] does, by the first nibble as RFC 4928 describes, and holds the guess against the
//! lengths that follow, since an Ethernet frame under a pseudowire without control word may begin
//! with any nibble at all.

use std::fmt;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Ipv4Header, Ipv6Header, header};

/// A label, 20 bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

impl Label {
    /// Pop, then look at an IPv4 header (RFC 3032 section 2.1, RFC 4182).
    pub const EXPLICIT_NULL4: Label = Label(0);
    /// To the router's own processor.
    pub const ROUTER_ALERT: Label = Label(1);
    /// Pop, then look at an IPv6 header.
    pub const EXPLICIT_NULL6: Label = Label(2);
    /// Asks for penultimate hop popping; never on the wire.
    pub const IMPLICIT_NULL: Label = Label(3);
    /// The next label tells flows apart (RFC 6790 section 4.2).
    pub const ENTROPY_INDICATOR: Label = Label(7);
    /// A channel beside the payload follows (RFC 5586).
    pub const ASSOCIATED_CHANNEL: Label = Label(13);
    /// Alerts of operation and maintenance (RFC 3429).
    pub const OAM_ALERT: Label = Label(14);
    /// Another special label follows (RFC 7274).
    pub const EXTENSION: Label = Label(15);
    /// The first label that may be assigned freely.
    pub const FIRST_FREE: Label = Label(16);
    /// The last label.
    pub const LAST: Label = Label(0xf_ffff);

    /// Whether it is one of the sixteen that have a meaning everywhere or are kept for one (RFC 7274).
    #[inline(always)]
    #[must_use]
    pub const fn is_special(self) -> bool {
        self.0 < 16
    }

    /// The name of a special label; `None` of ordinary ones and of those not assigned.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Label::EXPLICIT_NULL4 => Some("ipv4-explicit-null"),
            Label::ROUTER_ALERT => Some("router-alert"),
            Label::EXPLICIT_NULL6 => Some("ipv6-explicit-null"),
            Label::IMPLICIT_NULL => Some("implicit-null"),
            Label::ENTROPY_INDICATOR => Some("entropy-label-indicator"),
            Label::ASSOCIATED_CHANNEL => Some("generic-associated-channel"),
            Label::OAM_ALERT => Some("oam-alert"),
            Label::EXTENSION => Some("extension"),
            _ => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A label stack entry: label (20 bits), traffic class (3), bottom of stack (1), time to live (8).
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
#[repr(transparent)]
pub struct Entry(U32);
header!(Entry, 4);

const BOTTOM: u32 = 0x100;

impl Entry {
    /// An entry of these fields; higher bits than they have are cut off.
    #[inline(always)]
    #[must_use]
    pub const fn new(label: Label, class: u8, bottom: bool, ttl: u8) -> Entry {
        let bottom = if bottom { BOTTOM } else { 0 };
        Entry(U32::new(
            label.0 << 12 | ((class & 7) as u32) << 9 | bottom | ttl as u32,
        ))
    }

    /// The label.
    #[inline(always)]
    #[must_use]
    pub const fn label(&self) -> Label {
        Label(self.0.get() >> 12)
    }

    /// The traffic class, 0 to 7 (RFC 5462; once "EXP").
    #[inline(always)]
    #[must_use]
    pub const fn class(&self) -> u8 {
        (self.0.get() >> 9) as u8 & 7
    }

    /// Whether it is the last of its stack.
    #[inline(always)]
    #[must_use]
    pub const fn is_bottom(&self) -> bool {
        self.0.get() & BOTTOM != 0
    }

    /// Hops that the packet may still go.
    #[inline(always)]
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        self.0.get() as u8
    }

    /// Writes another label.
    #[inline(always)]
    pub fn set_label(&mut self, label: Label) {
        self.0 = U32::new((self.0.get() & 0xfff) | label.0 << 12);
    }

    /// Writes another traffic class.
    #[inline(always)]
    pub fn set_class(&mut self, class: u8) {
        self.0 = U32::new((self.0.get() & !0xe00) | u32::from(class & 7) << 9);
    }

    /// Says whether it is the last of its stack.
    #[inline(always)]
    pub fn set_bottom(&mut self, bottom: bool) {
        self.0 = U32::new((self.0.get() & !BOTTOM) | if bottom { BOTTOM } else { 0 });
    }

    /// Writes another time to live.
    #[inline(always)]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.0 = U32::new((self.0.get() & !0xff) | u32::from(ttl));
    }
}

/// What was wrong with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// The packet ends before the bottom of the stack.
    #[error("the packet ends within its label stack")]
    NoBottom,
    /// The stack is deeper than the bound.
    #[error("the label stack is deeper than {0}")]
    TooDeep(usize),
}

/// A stack that was walked to its bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Its entries on the wire, a multiple of four bytes.
    bytes: &'a [u8],
    /// What lies under it.
    pub payload: &'a [u8],
    /// How many bytes more lie behind the payload, out of sight: 0 unless who read the stack knows of some.
    pub beyond: usize,
    /// The entropy label: the one behind an entropy label indicator (RFC 6790 section 4.2).
    pub entropy: Option<Label>,
}

impl<'a> Stack<'a> {
    /// How many entries it has; at least one.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.bytes.len() / Entry::LEN
    }

    /// Its entries, top first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &'a Entry> + use<'a> {
        self.bytes
            .as_chunks::<{ Entry::LEN }>()
            .0
            .iter()
            .map(|bytes| zerocopy::transmute_ref!(bytes))
    }

    /// Its bytes, as an ICMP extension quotes them.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Walks down the stack at the start of `bytes`, past at most `most` entries.
///
/// # Errors
/// When the bytes, or the bound, end before the stack does.
#[inline]
pub fn read_stack(bytes: &[u8], most: usize) -> Result<Stack<'_>, StackError> {
    let (mut rest, mut indicated, mut entropy) = (bytes, false, None);
    for depth in 1..=most {
        let (entry, behind) = Entry::read(rest).ok_or(StackError::NoBottom)?;
        rest = behind;
        // The first indicator counts; special labels are no entropy.
        if indicated && entropy.is_none() && !entry.label().is_special() {
            entropy = Some(entry.label());
        }
        indicated = entry.label() == Label::ENTROPY_INDICATOR;
        if entry.is_bottom() {
            let (stack, payload) = bytes
                .split_at_checked(depth * Entry::LEN)
                .ok_or(StackError::NoBottom)?;
            return Ok(Stack {
                bytes: stack,
                payload,
                beyond: 0,
                entropy,
            });
        }
    }
    Err(StackError::TooDeep(most))
}

/// What seems to lie under a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess<'a> {
    /// An IPv4 packet, its version, header length and total length agree with what is there.
    Ipv4(&'a Ipv4Header),
    /// An IPv6 packet, its version and payload length agree with what is there.
    Ipv6(&'a Ipv6Header),
    /// A pseudowire's control word, or its associated channel (RFC 4385: first nibble 0 or 1).
    Pseudowire,
    /// Anything else. Only the labels tell its flow.
    Unknown,
}

/// Guesses what lies under a stack. Never in order to forward by it: for choosing among equal paths, and
/// for ICMP. A frame shorter than its link's minimum is padded, so that lengths need not be exact,
/// but what an IP header says must be there.
#[inline]
#[must_use]
pub fn guess(payload: &[u8]) -> Guess<'_> {
    guess_first(payload, 0)
}

/// As [`guess`], for a payload of which `beyond` bytes more are there than can be seen.
#[inline]
#[must_use]
pub fn guess_first(payload: &[u8], beyond: usize) -> Guess<'_> {
    match payload.first().map(|first| first >> 4) {
        Some(0 | 1) => Guess::Pseudowire,
        Some(4) => match Ipv4Header::read(payload) {
            Some((header, _)) if agrees4(header, payload.len() + beyond) => Guess::Ipv4(header),
            _ => Guess::Unknown,
        },
        Some(6) => match Ipv6Header::read(payload) {
            Some((header, rest)) if agrees6(header, rest.len() + beyond) => Guess::Ipv6(header),
            _ => Guess::Unknown,
        },
        _ => Guess::Unknown,
    }
}

/// Padding that an Ethernet frame of minimum size may have behind a packet.
const PADDING: usize = 46;

fn agrees4(header: &Ipv4Header, there: usize) -> bool {
    let total = usize::from(header.total_len());
    header.header_len() >= Ipv4Header::LEN
        && total >= header.header_len()
        && total <= there
        && there - total <= PADDING
}

fn agrees6(header: &Ipv6Header, behind: usize) -> bool {
    let payload = usize::from(header.payload_len());
    payload <= behind && behind - payload <= PADDING
}

/// The control word of an Ethernet pseudowire (RFC 4385 section 3, RFC 4448 section 4.6).
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
pub struct ControlWord {
    first: u8,
    length: u8,
    sequence: U16,
}
header!(ControlWord, 4);

impl ControlWord {
    /// A control word whose sequence number is 0: frames are not numbered.
    #[must_use]
    pub const fn new() -> ControlWord {
        ControlWord {
            first: 0,
            length: 0,
            sequence: U16::ZERO,
        }
    }

    /// A control word of a numbered frame.
    #[must_use]
    pub const fn numbered(sequence: u16) -> ControlWord {
        ControlWord {
            first: 0,
            length: 0,
            sequence: U16::new(sequence),
        }
    }

    /// Whether user data follows: the first nibble is 0.
    #[inline(always)]
    #[must_use]
    pub const fn is_data(&self) -> bool {
        self.first >> 4 == 0
    }

    /// Whether the associated channel follows rather than user data: the first nibble is 1 (section 5).
    #[inline(always)]
    #[must_use]
    pub const fn is_channel(&self) -> bool {
        self.first >> 4 == 1
    }

    /// Whether the frame is a piece of one (RFC 4623); 0 means whole.
    #[must_use]
    pub const fn fragment(&self) -> u8 {
        self.length >> 6
    }

    /// Bytes of control word and payload where these are below 64; else 0 (section 3).
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length & 0x3f
    }

    /// The frame's number, 0 where frames are not numbered.
    #[must_use]
    pub const fn sequence(&self) -> u16 {
        self.sequence.get()
    }
}
