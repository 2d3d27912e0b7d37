//! The parameters of the endpoints: what the table says of them, and how they are read.
//!
//! A query with a key that its path does not know is refused, so that a typing error is not
//! answered by everything.

use axum::extract::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::endpoints::Request;
use crate::{
    ApiError, ErrorCode, EventLevel, Family, FlowGroupBy, FlowGrouping, FlowMeasure, FlowQuery,
    Topic,
};

/// A key of a query, or a part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub sentence: &'static str,
    /// What values it has.
    pub kind: ParameterKind,
}

/// The kinds of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Switch,
    /// A whole number within bounds.
    Number {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
        /// The one when nobody says.
        default: Option<u64>,
    },
    /// Some of these words with commas between.
    Words(&'static [&'static str]),
}

/// More entries than this are never in one page.
pub(crate) const LARGEST_PAGE: u32 = 10_000;
/// Entries in a page when nobody says.
const PAGE: u32 = 1000;
/// Flows in an answer at most, and when nobody says.
const MOST_FLOWS: u32 = 10_000;
const FLOWS_USUAL: u32 = 100;
/// Revisions in a page of the history, when nobody says.
const HISTORY_PAGE: u32 = 50;
const FASTEST_MS: u32 = 100;
const SLOWEST_MS: u32 = 3_600_000;
const USUAL_MS: u32 = 1000;

const fn text(name: &'static str, sentence: &'static str) -> Parameter {
    Parameter {
        name,
        sentence,
        kind: ParameterKind::Text,
    }
}

const fn number(
    name: &'static str,
    sentence: &'static str,
    bounds: (u32, u32),
    default: Option<u32>,
) -> Parameter {
    let (least, most) = (bounds.0 as u64, bounds.1 as u64);
    let default = match default {
        Some(default) => Some(default as u64),
        None => None,
    };
    Parameter {
        name,
        sentence,
        kind: ParameterKind::Number {
            least,
            most,
            default,
        },
    }
}

const INTERFACE: Parameter = text("interface", "Only what belongs to this interface.");
const LIMIT: Parameter = number(
    "limit",
    "The most entries of the page.",
    (1, LARGEST_PAGE),
    Some(PAGE),
);
const AFTER: Parameter = text(
    "after",
    "The page behind this place: the `next` of the page before.",
);

pub(super) const INTERFACES: &[Parameter] = &[text("name", "Only this interface."), LIMIT, AFTER];
pub(super) const OF_INTERFACE: &[Parameter] = &[INTERFACE];
const BRIDGE: Parameter = text("bridge", "Only this bridge domain.");
pub(super) const BRIDGE_DOMAINS: &[Parameter] = &[BRIDGE];
pub(super) const L2FIB: &[Parameter] = &[BRIDGE, LIMIT, AFTER];
pub(super) const ERRORS: &[Parameter] = &[
    INTERFACE,
    Parameter {
        name: "by_worker",
        sentence: "One counter for each worker instead of their sum.",
        kind: ParameterKind::Switch,
    },
];
pub(super) const NEIGHBORS: &[Parameter] = &[INTERFACE, LIMIT, AFTER];
pub(super) const ADJACENCIES: &[Parameter] = &[INTERFACE, LIMIT, AFTER];
pub(super) const ACLS: &[Parameter] = &[
    text("acl", "Only the terms of this access list."),
    INTERFACE,
    LIMIT,
    AFTER,
];
pub(super) const MPLS_FIB: &[Parameter] = &[
    number("label", "Only this label.", (0, 1_048_575), None),
    LIMIT,
    AFTER,
];
pub(super) const ROUTES: &[Parameter] = &[
    text(
        "prefix",
        "Only this prefix; an address means the longest match in each table.",
    ),
    number("table", "Only this table (VRF).", (0, u32::MAX), None),
    Parameter {
        name: "family",
        sentence: "Only routes of this family.",
        kind: ParameterKind::Words(&["ipv4", "ipv6"]),
    },
    LIMIT,
    AFTER,
];
pub(super) const LOG: &[Parameter] = &[
    number("limit", "At most so many lines.", (1, 1000), Some(100)),
    Parameter {
        name: "level",
        sentence: "Only lines of this level and above.",
        kind: ParameterKind::Words(&["error", "warn", "info", "debug", "trace"]),
    },
];
pub(super) const WHY: &[Parameter] = &[
    text("source", "Its source address; required."),
    text("destination", "Its destination address; required."),
    Parameter {
        name: "protocol",
        sentence: "Its protocol; UDP when absent.",
        kind: ParameterKind::Words(&["udp", "tcp", "icmp"]),
    },
    number(
        "source_port",
        "Its source port, or the identifier of an echo request.",
        (0, 65_535),
        Some(49_152),
    ),
    number(
        "destination_port",
        "Its destination port, or the sequence number of an echo request.",
        (0, 65_535),
        Some(33_434),
    ),
    text(
        "interface",
        "The interface on which it is received; that of the route to its source when absent.",
    ),
    number(
        "length",
        "Its length in bytes, from the IP header on.",
        (48, 9000),
        Some(100),
    ),
    number("ttl", "Its time to live or hop limit.", (0, 255), Some(64)),
    Parameter {
        name: "dont_fragment",
        sentence: "Whether IPv4 forbids to fragment it.",
        kind: ParameterKind::Switch,
    },
];
pub(super) const FLOWS: &[Parameter] = &[
    text(
        "prefix",
        "Only flows with source or destination in this prefix, or with this address.",
    ),
    text("interface", "Only flows in or out by this interface."),
    number(
        "port",
        "Only flows with this source or destination port.",
        (0, 65_535),
        None,
    ),
    number(
        "protocol",
        "Only flows of this IP protocol.",
        (0, 255),
        None,
    ),
    Parameter {
        name: "top",
        sentence: "Those with the most of it a second first.",
        kind: ParameterKind::Words(&["octets", "packets"]),
    },
    Parameter {
        name: "group",
        sentence: "Sums of the flows that have this in common, instead of flows.",
        kind: ParameterKind::Words(&[
            "source",
            "destination",
            "host",
            "protocol",
            "input",
            "output",
            "status",
        ]),
    },
    text(
        "lengths",
        "Groups of addresses are groups of prefixes: their lengths of IPv4 and IPv6, as `24,48`.",
    ),
    number(
        "limit",
        "The most flows or groups of the answer.",
        (1, MOST_FLOWS),
        Some(FLOWS_USUAL),
    ),
];
pub(super) const HISTORY: &[Parameter] = &[
    number(
        "limit",
        "The most revisions of the page.",
        (1, 1000),
        Some(HISTORY_PAGE),
    ),
    Parameter {
        name: "before",
        sentence: "Revisions older than this one: the `next` of the page before.",
        kind: ParameterKind::Number {
            least: 0,
            most: MOST_REVISIONS,
            default: None,
        },
    },
];
pub(super) const EVENTS: &[Parameter] = &[
    Parameter {
        name: "topics",
        sentence: "What to tell, with commas between; all when absent.",
        kind: ParameterKind::Words(&["counters", "log", "config", "link"]),
    },
    number(
        "interval_ms",
        "Milliseconds between two `counters`.",
        (FASTEST_MS, SLOWEST_MS),
        Some(USUAL_MS),
    ),
    text(
        "interface",
        "Counters and link events of this interface only.",
    ),
];
pub(super) const NAME_IN_PATH: &[Parameter] = &[text("name", "The interface.")];
/// JSON numbers are exact up to here (RFC 8259 6).
const MOST_REVISIONS: u64 = (1 << 53) - 1;
pub(super) const REVISION_IN_PATH: &[Parameter] = &[Parameter {
    name: "revision",
    sentence: "The revision's number.",
    kind: ParameterKind::Number {
        least: 0,
        most: MOST_REVISIONS,
        default: None,
    },
}];

pub(super) const CAPTURE_IN_PATH: &[Parameter] = &[Parameter {
    name: "number",
    sentence: "The capture's number.",
    kind: ParameterKind::Number {
        least: 0,
        most: MOST_REVISIONS,
        default: None,
    },
}];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InterfacesQuery {
    pub(super) name: Option<String>,
    limit: Option<u32>,
    pub(super) after: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowsQuery {
    prefix: Option<String>,
    pub(super) interface: Option<String>,
    port: Option<u16>,
    protocol: Option<u8>,
    top: Option<FlowMeasure>,
    group: Option<FlowGroupBy>,
    lengths: Option<String>,
    limit: Option<u32>,
}

/// `24,48`: bits of IPv4 and IPv6 addresses that count.
fn prefix_lengths(text: &str) -> Option<(u8, u8)> {
    let (four, six) = text.split_once(',')?;
    let (four, six) = (four.parse().ok()?, six.parse().ok()?);
    (four <= 32 && six <= 128).then_some((four, six))
}

impl FlowsQuery {
    pub(super) fn read(self) -> Result<FlowQuery, ApiError> {
        let limit = self.limit.unwrap_or(FLOWS_USUAL);
        if !(1..=MOST_FLOWS).contains(&limit) {
            let message = format!("limit is {limit}");
            return Err(ApiError::new(
                ErrorCode::BadRequest,
                message,
                format!("a whole number from 1 to {MOST_FLOWS}"),
            ));
        }
        let prefix = |text: &String| {
            let (address, length) = text
                .split_once('/')
                .map_or((text.as_str(), None), |(address, length)| {
                    (address, Some(length))
                });
            let address: std::net::IpAddr = address.parse().ok()?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            let length = length.map_or(Some(width), |length| {
                length.parse().ok().filter(|length| *length <= width)
            })?;
            Some((address, length))
        };
        let read = self.prefix.as_ref().map(|text| {
            let wrong = || {
                ApiError::new(
                    ErrorCode::BadRequest,
                    format!("`{text}` is no prefix"),
                    "as 192.0.2.0/24, or an address",
                )
            };
            prefix(text).ok_or_else(wrong)
        });
        let lengths = match &self.lengths {
            None => (32, 128),
            Some(text) => prefix_lengths(text).ok_or_else(|| {
                let message = format!("`{text}` are no lengths of prefixes");
                ApiError::new(ErrorCode::BadRequest, message, "as 24,48: IPv4, IPv6")
            })?,
        };
        Ok(FlowQuery {
            protocol: self.protocol,
            group: self.group.map(|by| FlowGrouping { by, lengths }),
            prefix: read.transpose()?,
            interface: self.interface,
            port: self.port,
            top: self.top,
            most: limit as usize,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfInterfaceQuery {
    pub(super) interface: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BridgeQuery {
    pub(super) bridge: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct L2fibAsked {
    pub(super) bridge: Option<String>,
    limit: Option<u32>,
    pub(super) after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogQuery {
    limit: Option<u32>,
    #[serde(default = "LogQuery::all")]
    pub(super) level: EventLevel,
}

impl LogQuery {
    fn all() -> EventLevel {
        EventLevel::Trace
    }

    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(100), (1, 1000)).map(|limit| limit as usize)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorsQuery {
    pub(super) interface: Option<String>,
    #[serde(default)]
    pub(super) by_worker: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeighborsQuery {
    pub(super) interface: Option<String>,
    limit: Option<u32>,
    pub(super) after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AclsQuery {
    pub(super) acl: Option<String>,
    pub(super) interface: Option<String>,
    limit: Option<u32>,
    pub(super) after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoutesQuery {
    pub(super) prefix: Option<String>,
    pub(super) table: Option<u32>,
    pub(super) family: Option<Family>,
    limit: Option<u32>,
    pub(super) after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MplsFibQuery {
    label: Option<u32>,
    limit: Option<u32>,
    pub(super) after: Option<String>,
}

/// The greatest label: it has 20 bits (RFC 3032 section 2.1).
const LAST_LABEL: u32 = (1 << 20) - 1;

impl MplsFibQuery {
    pub(super) fn label(&self) -> Result<Option<u32>, ApiError> {
        self.label
            .map(|label| bounded("label", label, (0, LAST_LABEL)))
            .transpose()
    }

    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    limit: Option<u32>,
    before: Option<u64>,
}

impl InterfacesQuery {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

impl NeighborsQuery {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

impl AclsQuery {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

impl L2fibAsked {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

impl RoutesQuery {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(PAGE), (1, LARGEST_PAGE)).map(|limit| limit as usize)
    }
}

impl HistoryQuery {
    pub(super) fn limit(&self) -> Result<usize, ApiError> {
        bounded("limit", self.limit.unwrap_or(HISTORY_PAGE), (1, 1000)).map(|limit| limit as usize)
    }

    pub(super) fn before(&self) -> Result<Option<u64>, ApiError> {
        self.before
            .map(|before| bounded("before", before, (0, MOST_REVISIONS)))
            .transpose()
    }
}

fn bounded<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    (least, most): (T, T),
) -> Result<T, ApiError> {
    if least <= value && value <= most {
        return Ok(value);
    }
    Err(ApiError::new(
        ErrorCode::BadRequest,
        format!("{name} cannot be {value}"),
        format!("{name} may be {least} to {most}"),
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    topics: Option<String>,
    interval_ms: Option<u32>,
    interface: Option<String>,
}

/// What a subscriber asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventParameters {
    pub(crate) topics: Vec<Topic>,
    pub(crate) interval_ms: u32,
    pub(crate) interface: Option<String>,
}

/// Reads what a subscriber asks for.
pub(crate) fn event_parameters(request: &Request) -> Result<EventParameters, ApiError> {
    let EventsQuery {
        topics,
        interval_ms,
        interface,
    } = query(request)?;
    let interval_ms = bounded(
        "interval_ms",
        interval_ms.unwrap_or(USUAL_MS),
        (FASTEST_MS, SLOWEST_MS),
    )?;
    let mut wanted = Vec::new();
    for word in topics
        .as_deref()
        .unwrap_or("counters,log,config,link")
        .split(',')
    {
        let Some(topic) = Topic::ALL.into_iter().find(|topic| topic.word() == word) else {
            let known = Topic::ALL.map(Topic::word).join(", ");
            return Err(ApiError::new(
                ErrorCode::BadRequest,
                format!("no topic {word:?}"),
                format!("known: {known}"),
            ));
        };
        if !wanted.contains(&topic) {
            wanted.push(topic);
        }
    }
    Ok(EventParameters {
        topics: wanted,
        interval_ms,
        interface,
    })
}

/// Reads the query.
pub(super) fn query<T: DeserializeOwned>(request: &Request) -> Result<T, ApiError> {
    let help = || match request.endpoint.query {
        [] => "this path takes no query".to_owned(),
        keys => format!(
            "this path's query may have: {}",
            keys.iter()
                .map(|key| key.name)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let refused = |error: axum::extract::rejection::QueryRejection| {
        ApiError::new(ErrorCode::BadRequest, error.body_text(), help())
    };
    Query::<T>::try_from_uri(&request.uri)
        .map(|Query(value)| value)
        .map_err(refused)
}

/// The only parameter in the path.
pub(super) fn in_path(request: &Request) -> Result<&str, ApiError> {
    let missing = || {
        ApiError::new(
            ErrorCode::Internal,
            format!("{} has no parameter", request.endpoint.path),
            "",
        )
    };
    request
        .in_path
        .first()
        .map(String::as_str)
        .ok_or_else(missing)
}

/// A number in the path.
pub(super) fn number_in_path(request: &Request, of: &str) -> Result<u64, ApiError> {
    let text = in_path(request)?;
    text.parse()
        .ok()
        .filter(|number| *number <= MOST_REVISIONS)
        .ok_or_else(|| {
            ApiError::new(
                ErrorCode::BadRequest,
                format!("{text:?} is not the number of a {of}"),
                "a whole number, as 17",
            )
        })
}

/// Refuses a place in a list that is none.
pub(super) fn place<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, ApiError> {
    let refused = |text| {
        let message = format!("{text:?} is not a place in this list");
        ApiError::new(
            ErrorCode::BadRequest,
            message,
            "`after` is the `next` of the page before",
        )
    };
    text.map(|text| text.parse().map_err(|_| refused(text)))
        .transpose()
}
