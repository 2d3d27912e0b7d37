//! What would happen to a packet: the question and the answer of `GET /v1/why`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Route, TraceStep};

/// Shortest and longest packet that can be asked for, in bytes from the IP header on.
const LENGTHS: (u32, u32) = (48, 9000);

/// A packet of which nothing but this matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address, of the same family.
    pub destination: IpAddr,
    /// Its protocol.
    #[serde(default)]
    pub protocol: WhyProtocol,
    /// Its source port; of an ICMP echo request the identifier.
    #[serde(default = "WhyRequest::default_source_port")]
    pub source_port: u16,
    /// Its destination port; of an ICMP echo request the sequence number.
    #[serde(default = "WhyRequest::default_destination_port")]
    pub destination_port: u16,
    /// The interface on which it is received; absent = the one over which its source is routed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its length in bytes, from the IP header on.
    #[serde(default = "WhyRequest::default_length")]
    pub length: u32,
    /// Its time to live or hop limit.
    #[serde(default = "WhyRequest::default_ttl")]
    pub ttl: u8,
    /// Whether IPv4 forbids to fragment it.
    #[serde(default)]
    pub dont_fragment: bool,
}

impl WhyRequest {
    /// A UDP packet to the port of `traceroute`.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr) -> WhyRequest {
        WhyRequest {
            source,
            destination,
            protocol: WhyProtocol::default(),
            source_port: WhyRequest::default_source_port(),
            destination_port: WhyRequest::default_destination_port(),
            interface: None,
            length: WhyRequest::default_length(),
            ttl: WhyRequest::default_ttl(),
            dont_fragment: false,
        }
    }

    /// The source port when none is given.
    #[must_use]
    pub const fn default_source_port() -> u16 {
        49_152
    }

    /// The destination port when none is given.
    #[must_use]
    pub const fn default_destination_port() -> u16 {
        33_434
    }

    /// The length when none is given.
    #[must_use]
    pub const fn default_length() -> u32 {
        100
    }

    /// The time to live when none is given.
    #[must_use]
    pub const fn default_ttl() -> u8 {
        64
    }

    /// The shortest and the longest packet in bytes.
    #[must_use]
    pub const fn lengths() -> (u32, u32) {
        LENGTHS
    }
}

/// The protocols that can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyProtocol {
    /// UDP.
    #[default]
    Udp,
    /// TCP, a SYN.
    Tcp,
    /// An ICMP or ICMPv6 echo request.
    Icmp,
}

/// What the router does with the packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The interface on which it is received.
    pub interface: String,
    /// Whether the interface follows from the route to the source, since none was given.
    pub interface_from_route: bool,
    /// What becomes of it.
    pub outcome: WhyOutcome,
    /// Why it is dropped, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// The terms of access lists that decide about it, in the order in which they are applied.
    pub acl_terms: Vec<WhyTerm>,
    /// The reverse path check of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urpf: Option<String>,
    /// The route to its source, which the reverse path check uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_route: Option<Route>,
    /// The route to its destination; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Frames that leave: the packet or its fragments, or the router's answer.
    pub frames: Vec<WhyFrame>,
    /// One in how many packets of the interface is sampled by sFlow; absent when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_rate: Option<u32>,
    /// Whether flows of the interface are metered for IPFIX.
    pub metered: bool,
    /// The nodes that it visits, in order.
    pub steps: Vec<TraceStep>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhyOutcome {
    /// It is sent on.
    Forwarded,
    /// It is dropped.
    Dropped,
    /// It waits until its neighbor's MAC address is known.
    Held,
    /// The router or its host takes it.
    Received,
}

/// A term of an access list that a packet matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyTerm {
    /// The interface.
    pub interface: String,
    /// `input` or `output`.
    pub direction: String,
    /// The list.
    pub acl: String,
    /// The term's place in its list, from 0, as in `GET /v1/acls`.
    pub term: u32,
    /// `permit` or `deny`.
    pub action: String,
}

/// A frame that leaves the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyFrame {
    /// The interface by which it leaves.
    pub interface: String,
    /// Its source MAC address.
    pub source_mac: String,
    /// Its destination MAC address.
    pub destination_mac: String,
    /// Its VLAN identifiers, the outermost first.
    pub vlans: Vec<u16>,
    /// Its MPLS labels, the outermost first.
    pub labels: Vec<u32>,
    /// Its length in bytes without FCS.
    pub length: u32,
    /// The longest packet that the interface sends, in bytes from the IP header on.
    pub mtu: u32,
    /// Whether the router made it, for example an ICMP error.
    pub originated: bool,
}
