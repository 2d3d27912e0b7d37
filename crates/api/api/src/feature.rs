//! Features of interfaces in the order in which packets pass them, and what policers counted: `GET /v1/features`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The features of all interfaces.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Features {
    /// The interfaces, in the order of their numbers.
    pub interfaces: Vec<InterfaceFeatures>,
}

/// The features of one interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceFeatures {
    /// The interface.
    pub interface: String,
    /// The stretches of a packet's path on which there are features.
    pub arcs: Vec<FeatureArc>,
    /// Its policers.
    pub policers: Vec<Policer>,
}

/// A stretch of a packet's path, and the nodes on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureArc {
    /// Its name: `ip4-input`, `ip6-input`, `bridge-input`, `cross-connect-input`, `mpls-input`, `output`.
    pub arc: String,
    /// The nodes of all features that there are, in the order in which packets pass them.
    pub order: Vec<String>,
    /// Those that the interface has.
    pub attached: Vec<String>,
}

/// A policer: a single rate, two colours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policer {
    /// `input` or `output`.
    pub direction: String,
    /// Bits a second.
    pub rate: u64,
    /// Bytes that may come at once.
    pub burst: u32,
    /// Packets that conformed.
    pub conformed_packets: u64,
    /// Their bytes, from the IP header on, or behind the Ethernet header.
    pub conformed_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}
