//! Bonds and the talk with their far ends: `GET /v1/bonds`.
//!
//! A bond's own counters are those of its interface (`GET /v1/interfaces`), as are its members'. Here is which members
//! carry frames, and where LACP stands on each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interface::UpDown;

/// All bonds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Bonds {
    /// The bonds, in the order of their interfaces.
    pub bonds: Vec<Bond>,
}

/// Several ports as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bond {
    /// The bond's interface.
    pub interface: String,
    /// Which members carry frames: `lacp`, `xor`, `active-backup`, `round-robin` or `broadcast`.
    pub mode: String,
    /// What keeps a flow on one member, in modes that choose by flow: `l2`, `l23` or `l34`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balance: Option<String>,
    /// Whether some member carries frames.
    pub link: UpDown,
    /// Bits per second of all members that carry frames; 0 = unknown.
    pub speed: u64,
    /// Its members, in the order of their names.
    pub members: Vec<BondMember>,
}

/// A member of a bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BondMember {
    /// Its interface.
    pub interface: String,
    /// Whether it can carry frames at all: bond and member are wanted up, and the member's link is.
    pub link: UpDown,
    /// Whether the bond takes frames from it.
    pub collecting: bool,
    /// Whether the bond sends frames by it.
    pub distributing: bool,
    /// Where LACP stands, in mode `lacp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp: Option<LacpPort>,
}

/// Where LACP stands on a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LacpPort {
    /// The receive machine: `port-disabled`, `expired`, `defaulted` (nobody speaks LACP at the far end) or `current`.
    pub receive: String,
    /// The mux machine: `detached`, `waiting`, `attached`, `collecting` or `distributing`.
    pub mux: String,
    /// Whether it leads to the far end that the bond has chosen.
    pub selected: bool,
    /// What this end says of itself.
    pub actor: LacpEnd,
    /// What the far end says of itself, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<LacpEnd>,
    /// PDUs that were taken in.
    pub received: u64,
    /// PDUs that were sent.
    pub sent: u64,
    /// How often the far end fell silent.
    pub expired: u64,
    /// How often the far end became another one.
    pub partner_changes: u64,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LacpEnd {
    /// The system's MAC address.
    pub system: String,
    /// The system's priority.
    pub system_priority: u16,
    /// Links of one key may be aggregated.
    pub key: u16,
    /// The port's number.
    pub port: u16,
    /// The port's priority.
    pub port_priority: u16,
    /// What is set of `active`, `short-timeout`, `aggregation`, `synchronization`, `collecting`, `distributing`, `defaulted`
    /// and `expired`.
    pub state: Vec<String>,
}
