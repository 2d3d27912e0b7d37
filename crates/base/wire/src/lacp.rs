//! LACP and its marker protocol (IEEE 802.1AX-2020 sections 6.4.2 and 6.5.3): slow protocols, sent to
//! [`MULTICAST`] with [`crate::EtherType::SLOW`].
//!
//! Both have a fixed layout of 110 bytes, type and length fields included; a receiver shall not check
//! those of version 1 beyond what tells the two protocols apart (6.4.2.4.1, 6.2.3.1), and longer PDUs of
//! later versions begin with the same bytes. [`Pdu::read`] wants the first three TLVs where they
//! belong all the same, since nothing good comes of believing others.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{MacAddr, header};

/// The group of slow protocols, which no bridge forwards.
pub const MULTICAST: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x02]);
/// The first byte of LACP.
pub const SUBTYPE_LACP: u8 = 1;
/// The first byte of the marker protocol.
pub const SUBTYPE_MARKER: u8 = 2;

/// The bits of an actor's or partner's state.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct State(pub u8);

impl State {
    /// It sends without being asked.
    pub const ACTIVE: State = State(1);
    /// It wants a PDU every second rather than every thirty.
    pub const SHORT_TIMEOUT: State = State(2);
    /// The link may be aggregated.
    pub const AGGREGATION: State = State(4);
    /// The link is in the right aggregate.
    pub const SYNCHRONIZATION: State = State(8);
    /// It takes frames from the link.
    pub const COLLECTING: State = State(16);
    /// It sends frames to the link.
    pub const DISTRIBUTING: State = State(32);
    /// What it knows of its partner was made up.
    pub const DEFAULTED: State = State(64);
    /// What it knew of its partner is out of date.
    pub const EXPIRED: State = State(128);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    /// With all bits of `other` set or cleared.
    #[must_use]
    pub const fn with(self, other: State, set: bool) -> State {
        if set {
            State(self.0 | other.0)
        } else {
            State(self.0 & !other.0)
        }
    }
}

impl std::ops::BitOr for State {
    type Output = State;

    fn bitor(self, other: State) -> State {
        State(self.0 | other.0)
    }
}

/// One end of a link.
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
pub struct End {
    system_priority: U16,
    /// The system's MAC address.
    pub system: MacAddr,
    key: U16,
    port_priority: U16,
    port: U16,
    /// Its state.
    pub state: State,
    reserved: [u8; 3],
}

impl End {
    /// An end of these fields.
    #[must_use]
    pub const fn new(
        system_priority: u16,
        system: MacAddr,
        key: u16,
        port_priority: u16,
        port: u16,
        state: State,
    ) -> End {
        let (system_priority, key) = (U16::new(system_priority), U16::new(key));
        let (port_priority, port) = (U16::new(port_priority), U16::new(port));
        End {
            system_priority,
            system,
            key,
            port_priority,
            port,
            state,
            reserved: [0; 3],
        }
    }

    /// The system's priority; lower decides.
    #[must_use]
    pub const fn system_priority(&self) -> u16 {
        self.system_priority.get()
    }

    /// Ports with one key may be aggregated.
    #[must_use]
    pub const fn key(&self) -> u16 {
        self.key.get()
    }

    /// The port's priority; lower is chosen.
    #[must_use]
    pub const fn port_priority(&self) -> u16 {
        self.port_priority.get()
    }

    /// The port's number.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.get()
    }
}

/// A LACP PDU, from the subtype on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Pdu {
    subtype: u8,
    /// 1, or a later one.
    pub version: u8,
    actor_tlv: [u8; 2],
    /// Who sends.
    pub actor: End,
    partner_tlv: [u8; 2],
    /// What the sender believes of the receiver.
    pub partner: End,
    collector_tlv: [u8; 2],
    collector_delay: U16,
    collector_reserved: [u8; 12],
    terminator: [u8; 2],
    reserved: [u8; 50],
}

const ACTOR: [u8; 2] = [1, 20];
const PARTNER: [u8; 2] = [2, 20];
const COLLECTOR: [u8; 2] = [3, 16];

impl Pdu {
    /// Bytes of a PDU of version 1.
    pub const LEN: usize = 110;

    /// A PDU of version 1; the delay is in tens of microseconds.
    #[must_use]
    pub const fn new(actor: End, partner: End, collector_delay: u16) -> Pdu {
        Pdu {
            subtype: SUBTYPE_LACP,
            version: 1,
            actor_tlv: ACTOR,
            actor,
            partner_tlv: PARTNER,
            partner,
            collector_tlv: COLLECTOR,
            collector_delay: U16::new(collector_delay),
            collector_reserved: [0; 12],
            terminator: [0; 2],
            reserved: [0; 50],
        }
    }

    /// The PDU at the start of what follows the Ethernet header. `None` when it is too short, of another
    /// subtype, of version 0, or its parts are not where they belong.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<&Pdu> {
        let (pdu, _) = <Pdu as FromBytes>::ref_from_prefix(bytes).ok()?;
        let parts =
            pdu.actor_tlv == ACTOR && pdu.partner_tlv == PARTNER && pdu.collector_tlv == COLLECTOR;
        (pdu.subtype == SUBTYPE_LACP && pdu.version >= 1 && parts).then_some(pdu)
    }

    /// How long frames may wait at the sender before they are handed on, in tens of microseconds.
    #[must_use]
    pub const fn collector_delay(&self) -> u16 {
        self.collector_delay.get()
    }
}

const _: () = assert!(size_of::<Pdu>() == Pdu::LEN);

/// A marker or the answer to one, from the subtype on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Marker {
    subtype: u8,
    version: u8,
    kind: u8,
    length: u8,
    port: U16,
    /// The asking system.
    pub system: MacAddr,
    transaction: U32,
    pad: [u8; 2],
    terminator: [u8; 2],
    reserved: [u8; 90],
}
header!(Marker, 110);

impl Marker {
    /// A question: tell me when you have all that I sent before this.
    #[must_use]
    pub const fn new(port: u16, system: MacAddr, transaction: u32) -> Marker {
        Marker {
            subtype: SUBTYPE_MARKER,
            version: 1,
            kind: 1,
            length: 16,
            port: U16::new(port),
            system,
            transaction: U32::new(transaction),
            pad: [0; 2],
            terminator: [0; 2],
            reserved: [0; 90],
        }
    }

    /// Whether this is a marker, in form.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.subtype == SUBTYPE_MARKER && self.length == 16 && matches!(self.kind, 1 | 2)
    }

    /// Whether it is the answer to one.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.kind == 2
    }

    /// The answer to it: the same, but for its kind (6.5.3.3).
    #[must_use]
    pub const fn response(&self) -> Marker {
        Marker { kind: 2, ..*self }
    }

    /// The asking port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.get()
    }

    /// Which question.
    #[must_use]
    pub const fn transaction(&self) -> u32 {
        self.transaction.get()
    }
}
