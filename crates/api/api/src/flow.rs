//! The flow meter and its exporter, as `GET /v1/ipfix` tells them, and flows that are under way, as `GET /v1/flows` does.
//!
//! A packet's way: it is *metered* into a flow, which is *resident* in a worker's table until it is over; its record is
//! *exported* into the worker's ring, *taken* by the exporter, and *sent* to each collector that wants it. What does not go that
//! way is counted where it leaves it, so that the sums agree to the packet. Counters count since the router started.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SflowDirection, Timestamp};

/// Settings and counters of meter and exporter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ipfix {
    /// What the configuration says.
    pub settings: IpfixSettings,
    /// The metered interfaces.
    pub interfaces: Vec<IpfixInterface>,
    /// What each worker metered.
    pub workers: Vec<FlowWorker>,
    /// What the exporter took from the workers.
    pub taken: FlowLoad,
    /// Milliseconds that the oldest record waits which is in no message that went out yet.
    pub oldest_ms: u64,
    /// Where records go.
    pub collectors: Vec<IpfixCollector>,
    /// The templates of data records.
    pub templates: Vec<IpfixTemplate>,
}

/// The settings of the meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpfixSettings {
    /// Seconds after which a flow that goes on is reported.
    pub active_timeout: u32,
    /// Seconds without a packet after which a flow is over.
    pub idle_timeout: u32,
    /// Flows that the table of each worker holds at most.
    pub flows: u32,
    /// One packet in this many is metered.
    pub sampling_rate: u32,
    /// The observation domain.
    pub domain: u32,
    /// Seconds after which templates and options are sent again.
    pub template_interval: u32,
    /// Whether both directions of a conversation become one record.
    pub biflow: bool,
}

/// A metered interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpfixInterface {
    /// Its name.
    pub interface: String,
    /// Its ifIndex.
    pub index: u32,
    /// Where its packets are metered.
    pub direction: SflowDirection,
    /// The record set.
    pub records: String,
    /// One packet in this many is metered.
    pub sampling_rate: u32,
}

/// Flows, and what was in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowLoad {
    /// Flow records.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
}

/// The flows of one worker. In packets and octets: metered = exported + unexported + resident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowWorker {
    /// Its number, from 0.
    pub worker: u32,
    /// Flows that are in its table.
    pub resident: u64,
    /// Packets that were metered.
    pub metered_packets: u64,
    /// Octets of them.
    pub metered_octets: u64,
    /// Flows that were begun.
    pub begun: u64,
    /// Records of flows that were silent for the idle timeout.
    pub ended_idle: u64,
    /// Records of flows that went on for the active timeout.
    pub ended_active: u64,
    /// Records of flows whose end was seen (FIN, RST).
    pub ended_seen: u64,
    /// Records of flows that left since the meter was changed or stopped.
    pub ended_forced: u64,
    /// Records of flows that had to make room for others.
    pub ended_resources: u64,
    /// What was exported in all.
    pub exported: FlowLoad,
    /// What made room while the ring to the exporter was full: in no record.
    pub unexported: FlowLoad,
    /// Packets that should have been metered while there was no table.
    pub ignored_packets: u64,
    /// Octets of them.
    pub ignored_octets: u64,
    /// Packets that sampling passed over.
    pub passed_over: u64,
    /// Packets that wait for an answer; metered when it is known where they go.
    pub waiting: u64,
    /// Packets whose flow was not where the first look went: new flows, and tags that are alike by chance.
    pub long_ways: u64,
    /// Buckets that were looked at on those ways.
    pub probes: u64,
}

/// One collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpfixCollector {
    /// Its address or its name, as it is configured.
    pub host: String,
    /// Its address; absent while its name is not looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: u16,
    /// How it is reached: `udp`, `tcp` or `tls`.
    pub transport: String,
    /// What is spoken: `ipfix` or `netflow9`.
    pub version: String,
    /// The network namespace that it is reached from, if not the router's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The address that messages come from, if it is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The class of the packets.
    #[serde(default)]
    pub dscp: u8,
    /// The Linux device that they leave by, if it is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// The router's table that routes them; absent = the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Whether they leave through the host, whatever the router's routes say.
    #[serde(default)]
    pub through_host: bool,
    /// Whether a stream is connected, or datagrams have a socket.
    pub connected: bool,
    /// Connections that were made.
    pub connections: u64,
    /// Messages that went out.
    pub messages: u64,
    /// Octets of them.
    pub message_octets: u64,
    /// What was sent.
    pub sent: FlowLoad,
    /// What was not: the queue was full, or the kernel refused it.
    pub not_sent: FlowLoad,
    /// What it does not want.
    pub left_out: FlowLoad,
    /// Octets that wait in the queue.
    pub queued: u64,
    /// Errors.
    pub errors: u64,
    /// The last one, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl IpfixCollector {
    /// Where it is, in one word; with its namespace if it has one.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.host, self.port, self.namespace.as_deref())
    }
}

/// Where a collector is, in one word: address or name, port, and namespace if it has one.
pub(crate) fn place(host: &str, port: u16, namespace: Option<&str>) -> String {
    let place = host.parse::<IpAddr>().map_or_else(
        |_| format!("{host}:{port}"),
        |address| SocketAddr::new(address, port).to_string(),
    );
    namespace.map_or(place.clone(), |namespace| format!("{place}%{namespace}"))
}

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpfixTemplate {
    /// Its number.
    pub id: u16,
    /// The record set.
    pub records: String,
    /// The kind of flows: `ipv4`, `ipv6`, `l2` or `ipv4-by-ipv6`, with `-biflow` for both ways.
    pub kind: String,
    /// Octets of a record.
    pub octets: u32,
    /// Its elements, by IANA's names.
    pub elements: Vec<String>,
}

/// Which flows are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowQuery {
    /// Source or destination in this prefix; an address is a prefix of itself.
    pub prefix: Option<(IpAddr, u8)>,
    /// In or out by this interface.
    pub interface: Option<String>,
    /// Source or destination port.
    pub port: Option<u16>,
    /// IP protocol.
    pub protocol: Option<u8>,
    /// Those with the most octets or packets a second first.
    pub top: Option<FlowMeasure>,
    /// Sums of flows that have this in common, instead of the flows.
    pub group: Option<FlowGrouping>,
    /// At most this many flows, or groups.
    pub most: usize,
}

/// What the flows of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowGrouping {
    /// Which part of a flow.
    pub by: FlowGroupBy,
    /// Of addresses: the bits that count, of IPv4 and of IPv6.
    pub lengths: (u8, u8),
}

/// A part of a flow by which flows are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowGroupBy {
    /// The source address, or its prefix.
    Source,
    /// The destination address, or its prefix.
    Destination,
    /// Either address, or its prefix: a flow counts for its source and for its destination.
    Host,
    /// The IP protocol.
    Protocol,
    /// The interface by which flows come in.
    Input,
    /// The interface by which flows leave.
    Output,
    /// What became of the packets (`forwardingStatus`).
    Status,
}

/// What flows are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowMeasure {
    /// Octets.
    Octets,
    /// Packets.
    Packets,
}

/// Flows that are under way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// The flows; none where groups were asked for.
    pub flows: Vec<FlowEntry>,
    /// Sums of flows that have something in common, those with the most octets a second (or packets) first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<FlowGroup>,
    /// How many flows there were that the filter takes, shown or not.
    pub matched: u64,
}

/// Flows that have something in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowGroup {
    /// What that is: an address, a prefix, a name; `other` for groups beyond the limit of the router; absent where a
    /// flow's record set does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Flows.
    pub flows: u64,
    /// Their packets so far.
    pub packets: u64,
    /// Their octets so far.
    pub octets: u64,
    /// The sum of their packets a second.
    pub packets_per_second: u64,
    /// The sum of their octets a second.
    pub octets_per_second: u64,
}

/// A flow that is under way. What its record set does not select is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowEntry {
    /// The worker that has it.
    pub worker: u32,
    /// The record set.
    pub records: String,
    /// `rx` when it is metered where it comes in, `tx` where it leaves.
    pub direction: SflowDirection,
    /// Source: an IP address, or a MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Ethertype of L2 flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ethertype: Option<u16>,
    /// Protocol of IP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Source port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port; of ICMP type and code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// The interface by which it comes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The one by which it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// `forwardingStatus`: 64 when it is forwarded, why not when it is not.
    pub forwarding_status: u8,
    /// The same in words: `forwarded`, `dropped: unroutable`.
    pub forwarding_status_name: String,
    /// The next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<IpAddr>,
    /// The next hop of its route, where that was looked up in a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp_next_hop: Option<IpAddr>,
    /// Outer VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Inner VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_vlan: Option<u16>,
    /// Top label of the stack that it comes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<u32>,
    /// Type of service, or traffic class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// Packets so far; counted anew after each active timeout.
    pub packets: u64,
    /// Octets so far, likewise.
    pub octets: u64,
    /// Packets a second since the flow began, over the last two active timeouts at most.
    pub packets_per_second: u64,
    /// Octets a second, likewise.
    pub octets_per_second: u64,
    /// The first packet.
    pub start: Timestamp,
    /// The last one.
    pub end: Timestamp,
    /// TCP's flags of all packets.
    pub tcp_flags: u16,
}
