//! The table of dimensions: name in queries, column in the table, type, and the dimension of the other direction.
//!
//! The filter language, the SQL generator, completion, the live window and the API description all follow this table.

use std::fmt::Write as _;

use crate::row::{Row, from_words, words};

/// How a dimension is written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text: `= != LIKE UNLIKE ILIKE IUNLIKE IN NOTIN`.
    Text,
    /// Number: also `< <= > >=`.
    Number,
    /// AS number: with or without `AS`.
    Asn,
    /// IP protocol: number or name.
    Protocol,
    /// EtherType: number, `IPv4` or `IPv6`.
    EtherType,
    /// Address: also `<<` and `!<<` with a prefix. Two columns.
    Address,
    /// AS numbers between spaces: `=` and `!=` with one number mean that it contains it.
    AsPath,
    /// BGP communities between spaces: `=` and `!=` with one mean that it contains it.
    Communities,
}

impl Kind {
    /// Whether values are texts.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::AsPath | Kind::Communities)
    }

    /// Whether values are lists of which a filter names one member.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Kind::AsPath | Kind::Communities)
    }
}

/// A dimension.
#[derive(Debug)]
pub struct Dimension {
    /// Name in queries; compared without regard to case.
    pub name: &'static str,
    /// Column; of an address the part before `_hi` and `_lo`.
    pub column: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// The dimension of the other direction.
    pub swap: &'static str,
    /// Whether the totals table has it.
    pub in_totals: bool,
    /// What it is.
    pub help: &'static str,
}

const fn d(
    name: &'static str,
    column: &'static str,
    kind: Kind,
    swap: &'static str,
    in_totals: bool,
    help: &'static str,
) -> Dimension {
    Dimension {
        name,
        column,
        kind,
        swap,
        in_totals,
        help,
    }
}

/// All dimensions.
pub const DIMENSIONS: &[Dimension] = &[
    d(
        "Exporter",
        "exporter",
        Kind::Text,
        "Exporter",
        true,
        "Address of the exporter",
    ),
    d(
        "ExporterName",
        "exporter_name",
        Kind::Text,
        "ExporterName",
        true,
        "Name of the exporter",
    ),
    d(
        "Format",
        "format",
        Kind::Text,
        "Format",
        true,
        "sflow, ipfix, netflow9 or netflow5",
    ),
    d(
        "InIf",
        "in_if",
        Kind::Number,
        "OutIf",
        true,
        "Index of the input interface",
    ),
    d(
        "OutIf",
        "out_if",
        Kind::Number,
        "InIf",
        true,
        "Index of the output interface",
    ),
    d(
        "InIfName",
        "in_if_name",
        Kind::Text,
        "OutIfName",
        true,
        "Name of the input interface",
    ),
    d(
        "OutIfName",
        "out_if_name",
        Kind::Text,
        "InIfName",
        true,
        "Name of the output interface",
    ),
    d(
        "SrcAddr",
        "src",
        Kind::Address,
        "DstAddr",
        false,
        "Source address",
    ),
    d(
        "DstAddr",
        "dst",
        Kind::Address,
        "SrcAddr",
        false,
        "Destination address",
    ),
    d(
        "SrcPort",
        "src_port",
        Kind::Number,
        "DstPort",
        false,
        "Source port",
    ),
    d(
        "DstPort",
        "dst_port",
        Kind::Number,
        "SrcPort",
        false,
        "Destination port",
    ),
    d(
        "Proto",
        "proto",
        Kind::Protocol,
        "Proto",
        true,
        "IP protocol, number or name",
    ),
    d(
        "EType",
        "etype",
        Kind::EtherType,
        "EType",
        true,
        "IPv4, IPv6 or an EtherType",
    ),
    d(
        "TOS",
        "tos",
        Kind::Number,
        "TOS",
        false,
        "Type of service or traffic class",
    ),
    d(
        "TCPFlags",
        "tcp_flags",
        Kind::Number,
        "TCPFlags",
        false,
        "TCP flags as a number",
    ),
    d("VLAN", "vlan", Kind::Number, "VLAN", false, "VLAN number"),
    d(
        "SrcAS",
        "src_as",
        Kind::Asn,
        "DstAS",
        false,
        "Source AS number",
    ),
    d(
        "DstAS",
        "dst_as",
        Kind::Asn,
        "SrcAS",
        false,
        "Destination AS number",
    ),
    d(
        "SrcNetMask",
        "src_len",
        Kind::Number,
        "DstNetMask",
        false,
        "Source prefix length",
    ),
    d(
        "DstNetMask",
        "dst_len",
        Kind::Number,
        "SrcNetMask",
        false,
        "Destination prefix length",
    ),
    d(
        "SrcNet",
        "src_net",
        Kind::Text,
        "DstNet",
        true,
        "Configured network of the source",
    ),
    d(
        "DstNet",
        "dst_net",
        Kind::Text,
        "SrcNet",
        true,
        "Configured network of the destination",
    ),
    d(
        "Outcome",
        "outcome",
        Kind::Text,
        "Outcome",
        true,
        "forwarded, consumed, multiple or dropped: reason",
    ),
    d(
        "Direction",
        "direction",
        Kind::Number,
        "Direction",
        true,
        "0 ingress, 1 egress, 255 unknown",
    ),
    d(
        "SamplingRate",
        "rate",
        Kind::Number,
        "SamplingRate",
        true,
        "Sampling rate; 0 unknown",
    ),
    d(
        "ExporterRole",
        "exporter_role",
        Kind::Text,
        "ExporterRole",
        true,
        "Role of the exporter",
    ),
    d(
        "ExporterSite",
        "exporter_site",
        Kind::Text,
        "ExporterSite",
        true,
        "Site of the exporter",
    ),
    d(
        "ExporterTenant",
        "exporter_tenant",
        Kind::Text,
        "ExporterTenant",
        true,
        "Tenant of the exporter",
    ),
    d(
        "InIfBoundary",
        "in_if_boundary",
        Kind::Text,
        "OutIfBoundary",
        true,
        "external or internal, of the input interface",
    ),
    d(
        "OutIfBoundary",
        "out_if_boundary",
        Kind::Text,
        "InIfBoundary",
        true,
        "external or internal, of the output interface",
    ),
    d(
        "InIfProvider",
        "in_if_provider",
        Kind::Text,
        "OutIfProvider",
        true,
        "Network behind it, of the input interface",
    ),
    d(
        "OutIfProvider",
        "out_if_provider",
        Kind::Text,
        "InIfProvider",
        true,
        "Network behind it, of the output interface",
    ),
    d(
        "InIfConnectivity",
        "in_if_connectivity",
        Kind::Text,
        "OutIfConnectivity",
        true,
        "For example transit or ix, of the input interface",
    ),
    d(
        "OutIfConnectivity",
        "out_if_connectivity",
        Kind::Text,
        "InIfConnectivity",
        true,
        "For example transit or ix, of the output interface",
    ),
    d(
        "SrcNetRole",
        "src_net_role",
        Kind::Text,
        "DstNetRole",
        true,
        "Role of the network of the source",
    ),
    d(
        "DstNetRole",
        "dst_net_role",
        Kind::Text,
        "SrcNetRole",
        true,
        "Role of the network of the destination",
    ),
    d(
        "SrcNetSite",
        "src_net_site",
        Kind::Text,
        "DstNetSite",
        true,
        "Site of the network of the source",
    ),
    d(
        "DstNetSite",
        "dst_net_site",
        Kind::Text,
        "SrcNetSite",
        true,
        "Site of the network of the destination",
    ),
    d(
        "SrcNetTenant",
        "src_net_tenant",
        Kind::Text,
        "DstNetTenant",
        true,
        "Tenant of the network of the source",
    ),
    d(
        "DstNetTenant",
        "dst_net_tenant",
        Kind::Text,
        "SrcNetTenant",
        true,
        "Tenant of the network of the destination",
    ),
    d(
        "SrcCountry",
        "src_country",
        Kind::Text,
        "DstCountry",
        false,
        "Country of the source, two letters",
    ),
    d(
        "DstCountry",
        "dst_country",
        Kind::Text,
        "SrcCountry",
        false,
        "Country of the destination, two letters",
    ),
    d(
        "ASPath",
        "as_path",
        Kind::AsPath,
        "ASPath",
        false,
        "AS path to the destination; = means that it contains",
    ),
    d(
        "Communities",
        "communities",
        Kind::Communities,
        "Communities",
        false,
        "BGP communities of the route; = means that they contain",
    ),
];

/// A dimension by its name, without regard to case.
#[must_use]
pub fn dimension(name: &str) -> Option<&'static Dimension> {
    DIMENSIONS
        .iter()
        .find(|dimension| dimension.name.eq_ignore_ascii_case(name))
}

/// The dimension of the other direction.
#[must_use]
pub fn swapped(of: &'static Dimension) -> &'static Dimension {
    dimension(of.swap).unwrap_or(of)
}

/// Names of IP protocols that filters take and answers show.
const PROTOCOLS: &[(u8, &str)] = &[
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipip"),
    (6, "tcp"),
    (17, "udp"),
    (41, "ipv6"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmp6"),
    (89, "ospf"),
    (103, "pim"),
    (112, "vrrp"),
    (115, "l2tp"),
    (132, "sctp"),
];

/// A protocol's number by its name.
#[must_use]
pub fn protocol(name: &str) -> Option<u8> {
    PROTOCOLS
        .iter()
        .find(|(_, known)| known.eq_ignore_ascii_case(name))
        .map(|(number, _)| *number)
}

/// A number of this dimension as people read it.
#[must_use]
pub fn show(kind: Kind, number: u64) -> String {
    match kind {
        Kind::Protocol => match PROTOCOLS
            .iter()
            .find(|(known, _)| u64::from(*known) == number)
        {
            Some((_, name)) => (*name).to_owned(),
            None => number.to_string(),
        },
        Kind::EtherType => match number {
            0x0800 => "IPv4".to_owned(),
            0x86dd => "IPv6".to_owned(),
            0 => "unknown".to_owned(),
            other => format!("0x{other:04x}"),
        },
        Kind::Asn => format!("AS{number}"),
        Kind::Text | Kind::Number | Kind::Address | Kind::AsPath | Kind::Communities => {
            number.to_string()
        }
    }
}

/// A value of a row: what filters compare and keys are made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
    /// The two words of an address.
    Address(u64, u64),
}

impl Value {
    /// As people read it.
    #[must_use]
    pub fn show(&self, kind: Kind) -> String {
        match self {
            Value::Number(number) => show(kind, *number),
            Value::Text(text) => text.clone(),
            Value::Address(high, low) => from_words(*high, *low).to_string(),
        }
    }

    /// As a filter compares it (what a click on a table row inserts).
    #[must_use]
    pub fn literal(&self, kind: Kind) -> String {
        match self {
            Value::Text(text) => quote_filter(text),
            Value::Number(number) if kind != Kind::Asn => number.to_string(),
            _ => self.show(kind),
        }
    }
}

/// A text between double quotes, as the filter language writes it.
#[must_use]
pub fn quote_filter(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        let _ = write!(quoted, "{letter}");
    }
    quoted.push('"');
    quoted
}

/// A row's value of a dimension.
#[must_use]
pub fn value(of: &Dimension, row: &Row) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let address = |ip| {
        let (high, low) = words(ip);
        Value::Address(high, low)
    };
    match of.column {
        "exporter" => text(&row.exporter.address),
        "exporter_name" => text(&row.exporter.name),
        "format" => text(&row.format),
        "in_if" => Value::Number(row.in_if.into()),
        "out_if" => Value::Number(row.out_if.into()),
        "in_if_name" => text(&row.in_port.name),
        "out_if_name" => text(&row.out_port.name),
        "src" => address(row.src),
        "dst" => address(row.dst),
        "src_port" => Value::Number(row.src_port.into()),
        "dst_port" => Value::Number(row.dst_port.into()),
        "proto" => Value::Number(row.proto.into()),
        "etype" => Value::Number(row.etype.into()),
        "tos" => Value::Number(row.tos.into()),
        "tcp_flags" => Value::Number(row.tcp_flags.into()),
        "vlan" => Value::Number(row.vlan.into()),
        "src_as" => Value::Number(row.src_as.into()),
        "dst_as" => Value::Number(row.dst_as.into()),
        "src_len" => Value::Number(row.src_len.into()),
        "dst_len" => Value::Number(row.dst_len.into()),
        "src_net" => text(&row.src_net.name),
        "dst_net" => text(&row.dst_net.name),
        "outcome" => text(&row.outcome),
        "direction" => Value::Number(row.direction.into()),
        "exporter_role" => text(&row.exporter.role),
        "exporter_site" => text(&row.exporter.site),
        "exporter_tenant" => text(&row.exporter.tenant),
        "in_if_boundary" => text(&row.in_port.boundary),
        "in_if_provider" => text(&row.in_port.provider),
        "in_if_connectivity" => text(&row.in_port.connectivity),
        "out_if_boundary" => text(&row.out_port.boundary),
        "out_if_provider" => text(&row.out_port.provider),
        "out_if_connectivity" => text(&row.out_port.connectivity),
        "src_net_role" => text(&row.src_net.role),
        "src_net_site" => text(&row.src_net.site),
        "src_net_tenant" => text(&row.src_net.tenant),
        "src_country" => text(row.src_country.code()),
        "dst_net_role" => text(&row.dst_net.role),
        "dst_net_site" => text(&row.dst_net.site),
        "dst_net_tenant" => text(&row.dst_net.tenant),
        "dst_country" => text(row.dst_country.code()),
        "as_path" => text(&row.as_path),
        "communities" => text(&row.communities),
        _ => Value::Number(row.rate.into()),
    }
}
