//! Ends of shared-memory connections: `GET /v1/memif`.
//!
//! What is known of the peer is what the peer says of itself. Counters of packets are among those of
//! the port (`GET /v1/hardware`); here are those of peers that were parted from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interface::UpDown;

/// All memif ports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Memifs {
    /// The ports, in the order of their interfaces.
    pub ports: Vec<Memif>,
}

/// One end of a shared-memory connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memif {
    /// The interface that sits on it.
    pub interface: String,
    /// Where both ends meet: a path, or `@NAME` in the abstract space.
    pub socket: String,
    /// Which of the interfaces at that socket.
    pub id: u32,
    /// Which end this is.
    pub role: MemifRole,
    /// Whether frames stay where they are (as slave, whose packet memory is shared) or are copied.
    pub zero_copy: bool,
    /// Whether the peer must know a secret.
    pub secret: bool,
    /// Whether there is a peer.
    pub link: UpDown,
    /// How often there was one since the port was opened.
    pub connects: u64,
    /// The peer's name of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The peer's name of its interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_interface: Option<String>,
    /// Queues of this end, in each direction.
    pub queues: u32,
    /// Rings that frames come in on; 0 without a peer.
    pub rx_rings: u32,
    /// Rings that frames go out on; 0 without a peer.
    pub tx_rings: u32,
    /// Descriptors of each ring: those there are, or those that are wanted while there is no peer.
    pub ring_size: u32,
    /// Bytes of each buffer that this end offers as slave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u32>,
    /// Sizes of the regions that are shared with this peer, in bytes, in the order of their numbers; a
    /// slave's last one is the packet memory.
    pub region_bytes: Vec<u64>,
    /// Why the last peer was parted from, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_disconnect: Option<String>,
    /// How often peers were parted from, or sent away, by reason; those that never came up are left out.
    pub disconnects: Vec<MemifDisconnects>,
}

/// How often there was one reason to part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemifDisconnects {
    /// The reason's name.
    pub reason: String,
    /// What it means.
    pub sentence: String,
    /// How often.
    pub count: u64,
}

/// The two ends of a connection.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MemifRole {
    /// It listens.
    Master,
    /// It connects, and shares its packet memory.
    Slave,
}

impl std::fmt::Display for MemifRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Master => "master",
            Self::Slave => "slave",
        })
    }
}
