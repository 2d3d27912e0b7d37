//! The settings of the flow meter and its exporter: the section `ipfix`.
//!
//! A record set names IANA's information elements that a record has; its key elements separate
//! flows. Interfaces name the set by which they are metered, collectors those they receive. Four
//! sets are built in; others are made of elements and of sets.
//!
//! Which elements the meter measures, and in how many octets, is a table here, because the
//! telemetry crates do not depend on the configuration; a test of the engine compares it with the
//! exporter's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use weir_config_derive::{Section, Words};

use crate::scalar::Host;
use crate::sflow::SflowDirection;

/// Which packets of an interface are metered; the same choice as with sFlow.
pub type MeterDirection = SflowDirection;

/// Flows that are metered (IPFIX, NetFlow 9), and where their records are sent.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{idle-timeout: 30}")]
pub struct Ipfix {
    /// Seconds after which a flow that continues is reported, and again each time.
    #[key(kind = Whole(1, 65_535), default = 60, example = "300")]
    pub active_timeout: u16,
    /// Seconds without a packet after which a flow ends.
    #[key(kind = Whole(1, 65_535), default = 15, example = "30")]
    pub idle_timeout: u16,
    /// Maximum flows in the table of each worker, about 250 bytes each. When it is full, those
    /// nearest to their timeout make room.
    #[key(kind = Whole(1024, 1 << 26), default = 1 << 20, example = "65536")]
    pub flows: u32,
    /// One packet in this many is metered, chosen at random; records report the rate, so that
    /// collectors scale.
    #[key(kind = Whole(1, u32::MAX as u64), default = 1, example = "100")]
    pub sampling_rate: u32,
    /// The observation domain: one for the whole router.
    #[key(kind = Whole(1, u32::MAX as u64), default = 1, example = "7")]
    pub domain: u32,
    /// Seconds after which templates and options are sent again.
    #[key(kind = Whole(1, 3600), default = 30, example = "60")]
    pub template_interval: u16,
    /// Whether both directions of a conversation become one record (RFC 5103) for collectors of
    /// IPFIX.
    #[key(example = "true")]
    pub biflow: bool,
    /// Maximum records per second while a collector is reached over UDP, so that its receive buffer
    /// does not overflow when many flows end at once; 0 = no limit. The others wait in the flow
    /// table.
    #[key(kind = Whole(0, u32::MAX as u64), default = 100_000, example = "20000")]
    pub rate: u32,
    /// Record sets by name, in addition to those that are built in: `5-tuple`, `l2` (MAC addresses,
    /// type, VLAN: frames only), `router` (all that a router measures of an IP flow) and `mpls`.
    #[key(names = RecordSet, example = "{mine: {elements: [5-tuple, forwardingStatus]}}")]
    pub records: BTreeMap<String, IpfixRecords>,
    /// Interfaces that are metered, by name: ports, sub-interfaces, bonds, tunnels.
    #[key(names = Interface, example = "{xe0: {records: router}}")]
    pub interfaces: BTreeMap<String, IpfixInterface>,
    /// Where records are sent, each to all collectors that receive its set.
    #[key(items = (0, 16), example = "[{address: 192.0.2.9}]")]
    pub collectors: Vec<IpfixCollector>,
}

/// One record set.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{elements: [5-tuple, forwardingStatus]}")]
pub struct IpfixRecords {
    /// What its records have; key elements among them separate flows.
    #[key(
        required, default = Vec::new(), items = (1, 64), kind = Word(crate::ipfix::PARTS),
        example = "[5-tuple, forwardingStatus]",
        item = "An information element by IANA's name, or a set that is built in."
    )]
    pub elements: Vec<String>,
}

/// How an interface is metered.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{records: router, direction: both}")]
pub struct IpfixInterface {
    /// Where its packets are metered: on receive (with their egress interface or drop reason), on
    /// transmit, or both.
    #[key(example = "both")]
    pub direction: MeterDirection,
    /// The record set.
    #[key(kind = Text(55), default = "5-tuple".to_owned(), example = "router")]
    pub records: String,
    /// One packet in this many is metered there; `ipfix.sampling-rate` when absent. Records of an
    /// interface with another rate than that contain it.
    #[key(kind = Whole(1, u32::MAX as u64), example = "100")]
    pub sampling_rate: Option<u32>,
}

/// One collector.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{address: 192.0.2.9, port: 2055}")]
pub struct IpfixCollector {
    /// Its address, IPv4 or IPv6, or its name, which is looked up until it is found.
    #[key(required, example = "192.0.2.9")]
    pub address: Host,
    /// Its port; 4740 is usual for TLS.
    #[key(kind = Whole(1, 65_535), default = 4739, example = "2055")]
    pub port: u16,
    /// How it is reached. UDP never waits; messages for TCP and TLS wait in a queue.
    #[key(example = "tcp")]
    pub transport: IpfixTransport,
    /// The protocol: IPFIX (RFC 7011) or NetFlow version 9 (RFC 3954), which uses UDP only.
    #[key(example = "netflow9")]
    pub version: IpfixVersion,
    /// The record sets that it receives; those of all interfaces when empty.
    #[key(items = (0, 16), kind = Text(55), example = "[router]", item = "A record set.")]
    pub records: Vec<String>,
    /// Octets of the longest IP packet on the path to it; each template fits one.
    #[key(kind = Whole(128, 9216), default = 1500, example = "1400")]
    pub mtu: u16,
    /// Maximum KiB of messages that wait for a stream; further messages are dropped and counted.
    #[key(kind = Whole(64, 1_048_576), default = 4096, example = "16384")]
    pub queue: u32,
    /// The network namespace that it is reached from, as `ip netns` names it; the router's own when
    /// absent.
    #[key(kind = NamespaceName, example = "mgmt")]
    pub namespace: Option<String>,
    /// The source address of messages; selected by the route when absent.
    #[key(example = "192.0.2.1")]
    pub source: Option<IpAddr>,
    /// The DSCP of the packets.
    #[key(kind = Whole(0, 63), default = 0, example = "16")]
    pub dscp: u8,
    /// The Linux device that packets leave by: a VRF's or any other.
    #[key(kind = LinuxName, example = "vrf-mgmt")]
    pub dev: Option<String>,
    /// The router's table that routes datagrams to it: `default` or a VRF. When absent, the default
    /// table is used if it has a route and the router an address to send from, and the host
    /// otherwise. For UDP: TCP and TLS leave through the host.
    #[key(kind = TableName, example = "default")]
    pub table: Option<String>,
    /// Send packets through the host, as its own, whatever routes the router has.
    #[key(example = "true")]
    pub host: bool,
    /// Settings of TLS, with `transport: tls`.
    pub tls: Option<IpfixTls>,
}

impl IpfixCollector {
    /// Octets that a message may have.
    #[must_use]
    pub fn message(&self) -> u32 {
        // RFC 7011, 10.3.3: with all headers it fits the path.
        let headers = match self.transport {
            IpfixTransport::Udp if self.is_ip4() => 28,
            IpfixTransport::Udp => 48,
            IpfixTransport::Tcp | IpfixTransport::Tls => 0,
        };
        u32::from(self.mtu) - headers
    }

    /// Whether datagrams to it are IPv4. A name may have addresses of both versions; the source decides where there is one.
    fn is_ip4(&self) -> bool {
        match &self.address {
            Host::Address(address) => address.is_ipv4(),
            Host::Name(_) => self.source.is_some_and(|source| source.is_ipv4()),
        }
    }

    /// Its address or name, and its port.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.address {
            Host::Address(address) => SocketAddr::new(*address, self.port).to_string(),
            Host::Name(name) => format!("{name}:{}", self.port),
        }
    }
}

impl fmt::Display for IpfixCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.version == IpfixVersion::Netflow9 {
            " netflow9"
        } else {
            ""
        };
        write!(f, "{} {}{version}", self.transport, self.place())?;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum IpfixTransport {
    /// Datagrams.
    #[default]
    Udp,
    /// A stream in clear text.
    Tcp,
    /// A stream in TLS.
    Tls,
}

/// The protocol of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum IpfixVersion {
    /// RFC 7011.
    #[default]
    Ipfix,
    /// RFC 3954.
    Netflow9,
}

/// Settings of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{name: collector.example.net, ca: /etc/weir/ca.pem}")]
pub struct IpfixTls {
    /// The name, or address, in the collector's certificate.
    #[key(required, kind = Text(255), example = "collector.example.net")]
    pub name: String,
    /// Certificates, in PEM, one of which must have signed that of the collector.
    #[key(required, example = "/etc/weir/ca.pem")]
    pub ca: PathBuf,
    /// The router's own certificate with its chain, in PEM, for collectors that require one.
    #[key(example = "/etc/weir/weir.pem")]
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    #[key(example = "/etc/weir/weir.key")]
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
    ("samplingInterval", 4, ALL),
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

/// What records of an interface have besides that has a sampling rate of its own: whatever a collector knows of sampling, it finds
/// the rate or the sampler.
pub const RATE_ELEMENTS: [&str; 3] = ["samplingInterval", "samplerId", "selectorId"];

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

    /// The sets by which interfaces are metered.
    #[must_use]
    pub fn sets_in_use(&self) -> Vec<&str> {
        let mut sets: Vec<&str> = self.metered_by().into_iter().map(|(set, _)| set).collect();
        sets.dedup();
        sets
    }

    /// The sets by which interfaces are metered, each with its rate where that is not the rate of the section; in the order in
    /// which they are numbered. The same set with two rates counts twice: flows of one rate never share a record with others.
    #[must_use]
    pub fn metered_by(&self) -> Vec<(&str, Option<u32>)> {
        let mut sets: Vec<_> = self
            .interfaces
            .values()
            .map(|interface| (interface.records.as_str(), self.own_rate(interface)))
            .collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// The rate of an interface, if that is another one than that of the section.
    #[must_use]
    pub fn own_rate(&self, interface: &IpfixInterface) -> Option<u32> {
        interface
            .sampling_rate
            .filter(|rate| *rate != self.sampling_rate)
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
        let mut parts = self.parts_of(set);
        if self
            .metered_by()
            .iter()
            .any(|(name, rate)| *name == set && rate.is_some())
        {
            parts.extend(RATE_ELEMENTS.map(str::to_owned));
        }
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
}
