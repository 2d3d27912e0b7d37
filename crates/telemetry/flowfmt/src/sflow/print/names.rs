//! The names of the fields that are printed: `-L` selects columns by them, and unknown ones are refused.
//!
//! Fields of records have their names from the tables of [`records`]; those that the printers write themselves stand here, which a
//! test compares with all that is printed.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::records;

/// Fields of datagrams and samples.
const OF_SAMPLES: &[&str] = &[
    "datagramSourceIP",
    "datagramSize",
    "unixSecondsUTC",
    "unixSecondsUTC_uS",
    "localtime",
    "datagramVersion",
    "agentSubId",
    "agent",
    "packetSequenceNo",
    "sysUpTime",
    "samplesInPacket",
    "sampleType_tag",
    "sampleType",
    "sampleSequenceNo",
    "sourceId",
    "meanSkipCount",
    "samplePool",
    "dropEvents",
    "inputPort",
    "outputPort",
    "discardCode",
    "discardReason",
    "counterBlock_tag",
    "rtmetric_datasource_name",
    "rtflow_datasource_name",
    "rtflow_sampling_rate",
    "rtflow_sample_pool",
];

/// Fields of flow records; those of a discarded packet have `discarded_` before them.
const OF_FLOWS: &[&str] = &[
    "flowBlock_tag",
    "flowSampleType",
    "extendedType",
    "headerLen",
    "dst_as",
    "dst_peer_as",
];

/// Fields of a packet; those of a packet within another one have `inner_` before them, further in `inner2_` and so on.
const OF_PACKETS: &[&str] = &[
    "PPPoE_session",
    "MPLS_stack",
    "IPSize",
    "GRE_protocol",
    "GRE_key",
    "VXLAN_VNI",
    "dstMAC",
    "srcMAC",
    "decodedVLAN",
    "decodedPriority",
    "VSNAP_OUI",
    "ethernet_type",
    "ip.tot_len",
    "srcIP",
    "dstIP",
    "IPProtocol",
    "IPTOS",
    "IPTTL",
    "IPID",
    "IPFragmentOffset",
    "IP6_label",
    "IPV6_payloadLen",
    "srcIP6",
    "dstIP6",
    "IP6HeaderExtension",
    "ICMPType",
    "ICMPCode",
    "TCPSrcPort",
    "TCPDstPort",
    "TCPFlags",
    "UDPSrcPort",
    "UDPDstPort",
    "UDPBytes",
];

/// Beginnings of names that go on with a number or with what the agent chose.
const BEGINNINGS: &[&str] = &[
    "decodedVLAN.",
    "decodedPriority.",
    "adaptor_",
    "sfp_lane_",
    "rtmetric_",
    "rtflow_",
];

/// Names that can be chosen as columns, sorted; those with numbers in them or with something before them are left out.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let fixed = [OF_SAMPLES, OF_FLOWS, OF_PACKETS].into_iter().flatten();
    let structures = records::FLOW.iter().chain(records::COUNTERS);
    let of_records = structures.flat_map(|it| it.fields.iter().map(|field| field.name));
    let mut names: Vec<_> = fixed.copied().chain(of_records).collect();
    names.sort_unstable_by_key(|name| name.to_ascii_lowercase());
    names.dedup();
    names
}

/// Whether a field can have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    static KNOWN: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let names = KNOWN.get_or_init(|| names().into_iter().collect());
    let rest = name.strip_prefix("discarded_").unwrap_or(name);
    let is_known = |name: &str| {
        let has_tail = |it: &&str| name.len() > it.len() && name.starts_with(*it);
        names.contains(name) || BEGINNINGS.iter().any(has_tail)
    };
    let structures = records::FLOW.iter().chain(records::COUNTERS);
    let mut prefixes = structures
        .map(|it| it.prefix)
        .chain(super::header::INNER)
        .filter(|prefix| !prefix.is_empty());
    is_known(rest) || prefixes.any(|prefix| rest.strip_prefix(prefix).is_some_and(is_known))
}
