//! The settings of the flow meter and its exporter: the section `ipfix`.
//!
//! Record sets say which of IANA's information elements a record has, and by that what tells flows apart. Interfaces name
//! the set by which they are metered, collectors those they want. Four sets are always there; others are put together of
//! elements and of sets.
//!
//! Which elements the meter measures, and in how many octets, is known here as a table, since nobody below this floor
//! knows configuration; a test of the engine holds it equal to the exporter's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::build::{items, named, number, parsed, text, truth, word};
use crate::sflow::SflowDirection;
use crate::tree::Node;

/// Which packets of an interface are metered; the same choice as with sFlow.
pub type MeterDirection = SflowDirection;

/// The settings of the flow meter and its exporter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Ipfix {
    /// Seconds after which a flow that goes on is reported.
    pub active_timeout: u16,
    /// Seconds without a packet after which a flow is over.
    pub idle_timeout: u16,
    /// Flows that the table of each worker holds at most.
    pub flows: u32,
    /// One packet in this many is metered.
    pub sampling_rate: u32,
    /// The observation domain.
    pub domain: u32,
    /// Seconds after which templates and options are sent again.
    pub template_interval: u16,
    /// Whether both directions of a conversation become one record (RFC 5103).
    pub biflow: bool,
    /// Records a second that are sent at most while a collector is reached over UDP; 0 = no limit.
    pub rate: u32,
    /// Record sets by name, beside those that are always there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub records: BTreeMap<String, IpfixRecords>,
    /// Interfaces that are metered.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, IpfixInterface>,
    /// Where records go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<IpfixCollector>,
}

impl Default for Ipfix {
    fn default() -> Self {
        Self {
            active_timeout: 60,
            idle_timeout: 15,
            flows: 1 << 20,
            sampling_rate: 1,
            domain: 1,
            template_interval: 30,
            biflow: false,
            rate: 100_000,
            records: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            collectors: Vec::new(),
        }
    }
}

/// A record set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct IpfixRecords {
    /// Elements by IANA's names, and sets that are always there.
    pub elements: Vec<String>,
}

/// How an interface is metered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct IpfixInterface {
    /// Where its packets are metered: as they come in, as they leave, or both.
    pub direction: MeterDirection,
    /// The record set.
    pub records: String,
}

impl Default for IpfixInterface {
    fn default() -> Self {
        Self {
            direction: MeterDirection::Rx,
            records: "5-tuple".to_owned(),
        }
    }
}

/// A place that records are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IpfixCollector {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    #[serde(default = "IpfixCollector::default_port")]
    pub port: u16,
    /// How it is reached.
    #[serde(default)]
    pub transport: IpfixTransport,
    /// What is spoken.
    #[serde(default)]
    pub version: IpfixVersion,
    /// The record sets it wants; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// Octets of the longest IP packet on the way there.
    #[serde(default = "IpfixCollector::default_mtu")]
    pub mtu: u16,
    /// KiB of messages that wait for a stream at most.
    #[serde(default = "IpfixCollector::default_queue")]
    pub queue: u32,
    /// What TLS needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<IpfixTls>,
    /// The network namespace that it is reached from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The address that messages come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// The class of the packets.
    #[serde(default, skip_serializing_if = "IpfixCollector::is_best_effort")]
    pub dscp: u8,
    /// The Linux device that they leave by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// The router's table that routes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Whether they leave through the host, whatever the router's routes say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

impl IpfixCollector {
    /// The port that IANA gave to IPFIX.
    #[must_use]
    pub const fn default_port() -> u16 {
        4739
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    const fn is_best_effort(dscp: &u8) -> bool {
        *dscp == 0
    }

    /// Ethernet's.
    #[must_use]
    pub const fn default_mtu() -> u16 {
        1500
    }

    /// Four MiB.
    #[must_use]
    pub const fn default_queue() -> u32 {
        4096
    }

    /// Octets that a message may have.
    #[must_use]
    pub fn message(&self) -> u32 {
        // RFC 7011, 10.3.3: with all headers it fits the path.
        let headers = match (self.transport, self.address) {
            (IpfixTransport::Udp, IpAddr::V4(_)) => 28,
            (IpfixTransport::Udp, IpAddr::V6(_)) => 48,
            _ => 0,
        };
        u32::from(self.mtu) - headers
    }
}

impl fmt::Display for IpfixCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            IpfixTransport::Udp => "udp",
            IpfixTransport::Tcp => "tcp",
            IpfixTransport::Tls => "tls",
        };
        let version = if self.version == IpfixVersion::Netflow9 {
            " netflow9"
        } else {
            ""
        };
        write!(
            f,
            "{transport} {}{version}",
            SocketAddr::new(self.address, self.port)
        )?;
        if !self.records.is_empty() {
            write!(f, " {}", self.records.join("+"))?;
        }
        let named = |key: &str, value: Option<String>| value.map(|value| format!(" {key} {value}"));
        let more = [
            named("namespace", self.namespace.clone()),
            named("source", self.source.map(|source| source.to_string())),
            named("dscp", (self.dscp != 0).then(|| self.dscp.to_string())),
            named("dev", self.dev.clone()),
            named("table", self.table.clone()),
            self.host.then(|| " host".to_owned()),
        ];
        more.into_iter()
            .flatten()
            .try_for_each(|text| f.write_str(&text))
    }
}

/// How a collector is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpfixTransport {
    /// Datagrams.
    #[default]
    Udp,
    /// A stream in the clear.
    Tcp,
    /// A stream in TLS.
    Tls,
}

/// What is spoken to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpfixVersion {
    /// RFC 7011.
    #[default]
    Ipfix,
    /// RFC 3954.
    Netflow9,
}

/// What TLS needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IpfixTls {
    /// The name, or address, that the collector's certificate has.
    pub name: String,
    /// PEM file of the authorities that are trusted.
    pub ca: PathBuf,
    /// PEM file of the router's own certificate with its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// PEM file of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

/// The sets that are always there.
pub const RECORD_SETS: [&str; 4] = ["5-tuple", "l2", "router", "mpls"];

/// Which records have an element: of IPv4, IPv6, frames, and IPv4 whose next hop is one of IPv6 (RFC 8950).
type Shapes = [bool; 4];

/// What the meter measures: IANA's name, octets in a record, and which records have it.
pub const ELEMENTS: &[(&str, u16, Shapes)] = &[
    ("octetDeltaCount", 8, ALL),
    ("packetDeltaCount", 8, ALL),
    ("protocolIdentifier", 1, IP),
    ("ipClassOfService", 1, IP),
    ("tcpControlBits", 1, IP),
    ("sourceTransportPort", 2, IP),
    ("sourceIPv4Address", 4, V4),
    ("sourceIPv4PrefixLength", 1, V4),
    ("ingressInterface", 4, ALL),
    ("destinationTransportPort", 2, IP),
    ("destinationIPv4Address", 4, V4),
    ("destinationIPv4PrefixLength", 1, V4),
    ("egressInterface", 4, ALL),
    ("ipNextHopIPv4Address", 4, V4),
    ("bgpSourceAsNumber", 4, IP),
    ("bgpDestinationAsNumber", 4, IP),
    ("bgpNextHopIPv4Address", 4, V4),
    ("flowEndSysUpTime", 4, ALL),
    ("flowStartSysUpTime", 4, ALL),
    ("minimumIpTotalLength", 8, IP),
    ("maximumIpTotalLength", 8, IP),
    ("sourceIPv6Address", 16, V6),
    ("destinationIPv6Address", 16, V6),
    ("sourceIPv6PrefixLength", 1, V6),
    ("destinationIPv6PrefixLength", 1, V6),
    ("flowLabelIPv6", 4, V6),
    ("icmpTypeCodeIPv4", 2, V4),
    ("samplerId", 1, ALL),
    ("minimumTTL", 1, IP),
    ("maximumTTL", 1, IP),
    ("sourceMacAddress", 6, ALL),
    ("vlanId", 2, ALL),
    ("ipVersion", 1, IP),
    ("flowDirection", 1, ALL),
    ("ipNextHopIPv6Address", 16, V6_HOP),
    ("bgpNextHopIPv6Address", 16, V6_HOP),
    ("mplsTopLabelStackSection", 3, ALL),
    ("mplsLabelStackSection2", 3, ALL),
    ("mplsLabelStackSection3", 3, ALL),
    ("mplsLabelStackSection4", 3, ALL),
    ("mplsLabelStackSection5", 3, ALL),
    ("destinationMacAddress", 6, ALL),
    ("forwardingStatus", 1, ALL),
    ("bgpNextAdjacentAsNumber", 4, IP),
    ("bgpPrevAdjacentAsNumber", 4, IP),
    ("flowEndReason", 1, ALL),
    ("icmpTypeCodeIPv6", 2, V6),
    ("flowStartMilliseconds", 8, ALL),
    ("flowEndMilliseconds", 8, ALL),
    ("flowStartMicroseconds", 8, ALL),
    ("flowEndMicroseconds", 8, ALL),
    ("flowStartNanoseconds", 8, ALL),
    ("flowEndNanoseconds", 8, ALL),
    ("ipDiffServCodePoint", 1, IP),
    ("fragmentFlags", 1, IP),
    ("ingressVRFID", 4, ALL),
    ("dot1qVlanId", 2, ALL),
    ("dot1qCustomerVlanId", 2, ALL),
    ("ethernetType", 2, L2),
    ("selectorId", 8, ALL),
    ("layer2OctetDeltaCount", 8, L2),
];

/// Elements that the other direction tells anew in a record of both (RFC 5103).
const REVERSED: [&str; 18] = [
    "octetDeltaCount",
    "packetDeltaCount",
    "tcpControlBits",
    "flowEndSysUpTime",
    "flowStartSysUpTime",
    "minimumIpTotalLength",
    "maximumIpTotalLength",
    "minimumTTL",
    "maximumTTL",
    "forwardingStatus",
    "flowEndReason",
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "flowStartMicroseconds",
    "flowEndMicroseconds",
    "flowStartNanoseconds",
    "flowEndNanoseconds",
    "fragmentFlags",
];

/// The place of frames among the shapes.
const FRAMES: usize = 2;
const V4: Shapes = [true, false, false, true];
const V6: Shapes = [false, true, false, false];
const V6_HOP: Shapes = [false, true, false, true];
const L2: Shapes = [false, false, true, false];
const IP: Shapes = [true, true, false, true];
const ALL: Shapes = [true; 4];

/// What a record set can be made of: sets, then elements.
pub(crate) const PARTS: &[&str] = &{
    let mut parts = [""; RECORD_SETS.len() + ELEMENTS.len()];
    let mut place = 0;
    while place < parts.len() {
        parts[place] = if place < RECORD_SETS.len() {
            RECORD_SETS[place]
        } else {
            ELEMENTS[place - RECORD_SETS.len()].0
        };
        place += 1;
    }
    parts
};

/// Elements of the sets that are always there; a test of the engine holds them equal to the exporter's.
pub const SET_ELEMENTS: [&[&str]; 4] = [
    &[
        "sourceIPv4Address",
        "sourceIPv6Address",
        "destinationIPv4Address",
        "destinationIPv6Address",
        "sourceTransportPort",
        "destinationTransportPort",
        "protocolIdentifier",
        "ingressInterface",
        "egressInterface",
        "packetDeltaCount",
        "octetDeltaCount",
        "flowStartMilliseconds",
        "flowEndMilliseconds",
        "flowEndReason",
    ],
    &[
        "sourceMacAddress",
        "destinationMacAddress",
        "ethernetType",
        "dot1qVlanId",
        "vlanId",
        "ingressInterface",
        "egressInterface",
        "packetDeltaCount",
        "octetDeltaCount",
        "layer2OctetDeltaCount",
        "flowStartMilliseconds",
        "flowEndMilliseconds",
        "flowEndReason",
    ],
    &[
        "sourceIPv4Address",
        "sourceIPv6Address",
        "destinationIPv4Address",
        "destinationIPv6Address",
        "sourceTransportPort",
        "destinationTransportPort",
        "protocolIdentifier",
        "ipClassOfService",
        "tcpControlBits",
        "icmpTypeCodeIPv4",
        "icmpTypeCodeIPv6",
        "flowLabelIPv6",
        "ingressInterface",
        "egressInterface",
        "ingressVRFID",
        "dot1qVlanId",
        "vlanId",
        "bgpNextHopIPv4Address",
        "bgpNextHopIPv6Address",
        "ipNextHopIPv4Address",
        "ipNextHopIPv6Address",
        "sourceIPv4PrefixLength",
        "sourceIPv6PrefixLength",
        "destinationIPv4PrefixLength",
        "destinationIPv6PrefixLength",
        "packetDeltaCount",
        "octetDeltaCount",
        "flowStartMilliseconds",
        "flowEndMilliseconds",
        "flowEndReason",
        "forwardingStatus",
        "flowDirection",
        "minimumTTL",
        "maximumTTL",
        "minimumIpTotalLength",
        "maximumIpTotalLength",
        "fragmentFlags",
    ],
    &[
        "mplsTopLabelStackSection",
        "mplsLabelStackSection2",
        "mplsLabelStackSection3",
        "sourceIPv4Address",
        "sourceIPv6Address",
        "destinationIPv4Address",
        "destinationIPv6Address",
        "sourceTransportPort",
        "destinationTransportPort",
        "protocolIdentifier",
        "ingressInterface",
        "egressInterface",
        "packetDeltaCount",
        "octetDeltaCount",
        "flowStartMilliseconds",
        "flowEndMilliseconds",
        "flowEndReason",
        "forwardingStatus",
    ],
];

impl Ipfix {
    /// What a set is made of: elements, and names of sets that are always there; nothing for one that is not known.
    #[must_use]
    pub fn parts_of(&self, set: &str) -> Vec<String> {
        match self.records.get(set) {
            Some(records) => records.elements.clone(),
            None if RECORD_SETS.contains(&set) => vec![set.to_owned()],
            None => Vec::new(),
        }
    }

    /// Whether there is such a set.
    #[must_use]
    pub fn has_set(&self, set: &str) -> bool {
        self.records.contains_key(set) || RECORD_SETS.contains(&set)
    }

    /// The sets by which interfaces are metered, in the order in which they are numbered.
    #[must_use]
    pub fn sets_in_use(&self) -> Vec<&str> {
        let mut sets: Vec<&str> = self
            .interfaces
            .values()
            .map(|interface| interface.records.as_str())
            .collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Whether any record tells lengths of prefixes.
    #[must_use]
    pub fn needs_prefixes(&self) -> bool {
        let tells = |part: &String| {
            part == "router" || part.ends_with("PrefixLength") || part.ends_with("AsNumber")
        };
        self.sets_in_use()
            .iter()
            .any(|set| self.parts_of(set).iter().any(tells))
    }

    /// The sets that a collector gets, of those in use.
    #[must_use]
    pub fn sets_for(&self, collector: &IpfixCollector) -> Vec<&str> {
        let wants = |set: &&str| {
            collector.records.is_empty() || collector.records.iter().any(|wanted| wanted == set)
        };
        self.sets_in_use().into_iter().filter(wants).collect()
    }

    /// Octets of the longest template and of the longest record of a set, each alone in a message to a collector.
    #[must_use]
    pub fn longest(&self, set: &str, version: IpfixVersion) -> (u32, u32) {
        let mut elements: Vec<&str> = Vec::new();
        let parts = self.parts_of(set);
        for part in &parts {
            match RECORD_SETS.iter().position(|set| set == part) {
                Some(place) => elements.extend(SET_ELEMENTS[place]),
                None => elements.push(part),
            }
        }
        elements.sort_unstable();
        elements.dedup();
        // RFC 7011, 3.1 to 3.4: message header 16, set header 4, template header 4, 4 for each field, 8 with an enterprise.
        // RFC 3954, 5.1 and 5.2: a header of 20, and up to three octets of padding.
        let (head, is_both) = match version {
            IpfixVersion::Ipfix => (16 + 4, self.biflow),
            IpfixVersion::Netflow9 => (20 + 4 + 3, false),
        };
        let (mut template, mut record) = (0, 0);
        for shape in 0..4 {
            let here = |element: &&str| {
                ELEMENTS
                    .iter()
                    .find(|(name, _, shapes)| name == element && shapes[shape])
            };
            let sum = |elements: &mut dyn Iterator<Item = &&str>| {
                elements
                    .filter_map(here)
                    .fold((0, 0), |(count, sum), (_, octets, _)| {
                        (count + 1, sum + u32::from(*octets))
                    })
            };
            let (mut specifiers, mut octets) = sum(&mut elements.iter());
            specifiers *= 4;
            if is_both && shape != FRAMES {
                let (count, sum) =
                    sum(&mut elements.iter().filter(|element| REVERSED.contains(element)));
                // Behind them stands biflowDirection.
                (specifiers, octets) = (specifiers + 8 * count + 4, octets + sum + 1);
            }
            template = template.max(head + 4 + specifiers);
            record = record.max(head + octets);
        }
        (template, record)
    }

    /// What differs, in the file's words.
    #[must_use]
    pub fn changes(&self, to: &Ipfix) -> Vec<String> {
        let mut changes = Vec::new();
        let mut change = |key: &str, from: String, to: String| {
            if from != to {
                changes.push(format!("{key} {from} -> {to}"));
            }
        };
        change(
            "active-timeout",
            self.active_timeout.to_string(),
            to.active_timeout.to_string(),
        );
        change(
            "idle-timeout",
            self.idle_timeout.to_string(),
            to.idle_timeout.to_string(),
        );
        change("flows", self.flows.to_string(), to.flows.to_string());
        change(
            "sampling-rate",
            self.sampling_rate.to_string(),
            to.sampling_rate.to_string(),
        );
        change("domain", self.domain.to_string(), to.domain.to_string());
        change(
            "template-interval",
            self.template_interval.to_string(),
            to.template_interval.to_string(),
        );
        change("biflow", self.biflow.to_string(), to.biflow.to_string());
        change("rate", self.rate.to_string(), to.rate.to_string());
        let both = |from: Vec<&String>, to: Vec<&String>| -> Vec<String> {
            let mut names: Vec<String> = from.into_iter().chain(to).cloned().collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let parts = |of: &Ipfix, name: &str| {
            of.records.get(name).map_or_else(
                || "none".to_owned(),
                |records| format!("[{}]", records.elements.join(" ")),
            )
        };
        for name in both(self.records.keys().collect(), to.records.keys().collect()) {
            change(
                &format!("records {name}"),
                parts(self, &name),
                parts(to, &name),
            );
        }
        let metered = |of: &Ipfix, name: &str| match of.interfaces.get(name) {
            Some(interface) => format!("{} {}", interface.records, interface.direction.word()),
            None => "not metered".to_owned(),
        };
        for name in both(
            self.interfaces.keys().collect(),
            to.interfaces.keys().collect(),
        ) {
            change(
                &format!("interface {name}"),
                metered(self, &name),
                metered(to, &name),
            );
        }
        if self.collectors != to.collectors {
            let all = |of: &Ipfix| {
                of.collectors
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            changes.push(format!("collectors [{}] -> [{}]", all(self), all(to)));
        }
        changes
    }
}

/// Reads the section.
pub(crate) fn build(node: &Node<'_>) -> Ipfix {
    let usual = Ipfix::default();
    Ipfix {
        active_timeout: number(node, "active-timeout").unwrap_or(usual.active_timeout),
        idle_timeout: number(node, "idle-timeout").unwrap_or(usual.idle_timeout),
        flows: number(node, "flows").unwrap_or(usual.flows),
        sampling_rate: number(node, "sampling-rate").unwrap_or(usual.sampling_rate),
        domain: number(node, "domain").unwrap_or(usual.domain),
        template_interval: number(node, "template-interval").unwrap_or(usual.template_interval),
        biflow: truth(node, "biflow").unwrap_or_default(),
        rate: number(node, "rate").unwrap_or(usual.rate),
        records: named(node, "records", |node| IpfixRecords {
            elements: words(node, "elements"),
        }),
        interfaces: named(node, "interfaces", interface),
        collectors: items(node, "collectors")
            .filter_map(|(_, node)| collector(node))
            .collect(),
    }
}

fn words(node: &Node<'_>, key: &str) -> Vec<String> {
    items(node, key)
        .filter_map(|(_, node)| node.text().filter(|_| !node.is_empty()).map(str::to_owned))
        .collect()
}

fn interface(node: &Node<'_>) -> IpfixInterface {
    let usual = IpfixInterface::default();
    IpfixInterface {
        direction: word(node, "direction").unwrap_or_default(),
        records: text(node, "records").unwrap_or(usual.records),
    }
}

fn collector(node: &Node<'_>) -> Option<IpfixCollector> {
    let transport = word(node, "transport").unwrap_or_default();
    Some(IpfixCollector {
        address: parsed(node, "address")?,
        port: number(node, "port").unwrap_or(IpfixCollector::default_port()),
        transport,
        version: word(node, "version").unwrap_or_default(),
        records: words(node, "records"),
        mtu: number(node, "mtu").unwrap_or(IpfixCollector::default_mtu()),
        queue: number(node, "queue").unwrap_or(IpfixCollector::default_queue()),
        tls: node.value("tls").and_then(tls),
        namespace: text(node, "namespace"),
        source: parsed(node, "source"),
        dscp: number(node, "dscp").unwrap_or_default(),
        dev: text(node, "dev"),
        table: text(node, "table"),
        host: truth(node, "host").unwrap_or_default(),
    })
}

fn tls(node: &Node<'_>) -> Option<IpfixTls> {
    let file = |key: &str| text(node, key).map(PathBuf::from);
    Some(IpfixTls {
        name: text(node, "name")?,
        ca: file("ca")?,
        certificate: file("certificate"),
        key: file("key"),
    })
}
