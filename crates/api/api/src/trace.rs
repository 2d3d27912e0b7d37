//! Packet trace: which nodes single packets visited, and what each node decided
//! (`GET`, `POST` and `DELETE /v1/trace`).
//!
//! A trace is armed with a filter and a count; the next that many packets are recorded. They take the same path as they
//! would without a trace. Recorded packets stay until they are cleared; how many are kept is bounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The largest count that one request may ask for.
const MOST_PACKETS: u32 = 10_000;

/// A wish to trace packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Only packets that enter this node, from where on they are recorded; absent = any, from
    /// their reception on. Packets that an earlier node forwards in one pass do not enter this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Only packets received on this interface; absent = on any. Of a sub-interface or a bond, only packets that are not
    /// forwarded in one pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// How many packets, 1 to 10,000.
    #[serde(default = "TraceRequest::default_count")]
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
}

impl TraceRequest {
    /// How many packets are traced when nobody says.
    #[must_use]
    pub const fn default_count() -> u32 {
        50
    }

    /// The largest count that one request may ask for.
    #[must_use]
    pub const fn most_packets() -> u32 {
        MOST_PACKETS
    }
}

/// The traces that are armed, and what they recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// What was asked for, and how much of it is still to come.
    pub filters: Vec<TraceFilter>,
    /// The recorded packets, oldest first.
    pub packets: Vec<TracedPacket>,
}

/// One armed trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFilter {
    /// What was asked for.
    #[serde(flatten)]
    pub request: TraceRequest,
    /// Packets still to come.
    pub left: u32,
}

/// One recorded packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracedPacket {
    /// Its number, from 1, in the order of recording.
    pub number: u64,
    /// The worker that forwarded it.
    pub worker: u32,
    /// The interface it came in by; absent for packets that the router made itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// When it came.
    pub time: Timestamp,
    /// Its length when it came, in bytes without FCS.
    pub length: u32,
    /// Its headers when it came, for people; may have several lines.
    pub headers: String,
    /// The nodes whose steps were made, in order.
    pub steps: Vec<TraceStep>,
    /// Why steps or decisions are missing; absent if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// What one node did with a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStep {
    /// The node.
    pub node: String,
    /// The earlier node that made this step in its own pass; absent if the node made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// Where the packet went: `to ip4-lookup`, `drop ttl-expired`, `hold`.
    pub verdict: String,
    /// What the node decided by, for people: route and adjacency, term of an access list, label, meaning of a drop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}
