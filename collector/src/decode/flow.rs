//! IPFIX, NetFlow 9 and 5 to rows; option records to names and sampling rates.

use std::net::SocketAddr;

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{Collector, Header, Item, Problem, Record};
use weir_flowfmt::ipfix::elements::Value;
use weir_flowfmt::ipfix::template::Space;
use weir_flowfmt::sflow::RawHeader;

use super::{Shared, Texts};
use crate::account::{Outcome, exporter_name};
use crate::row::{Row, Text, address};

/// A jump of a sequence number by more than this is a new beginning, not a loss.
const MOST_GAP: i64 = 10_000_000;

/// State between messages: templates, sequence numbers, sets that wait (all bounded).
#[derive(Debug, Default)]
pub(super) struct FlowDecoder {
    collector: Collector,
}

/// What one message held.
#[derive(Default)]
struct Seen {
    format: &'static str,
    useful: bool,
    /// Records of this message, for formats whose sequence counts records.
    records: u64,
    /// Records in the sequence: also options in IPFIX.
    counted: u64,
    problem: Option<&'static str>,
    lost: i64,
    restarted: bool,
    clock_ahead: Option<i64>,
}

impl FlowDecoder {
    pub(super) fn message(
        &mut self,
        texts: &Texts,
        from: SocketAddr,
        bytes: &[u8],
        now: i64,
        shared: &mut Shared,
        rows: &mut Vec<Row>,
    ) {
        let name = exporter_name(from.ip());
        let begin = rows.len();
        let mut seen = Seen {
            format: format_of(bytes),
            ..Seen::default()
        };
        self.collector.read(from, bytes, &mut |item| match item {
            Item::Message(header) => {
                let time = i64::try_from(header.time / 1_000_000_000).unwrap_or(0);
                seen.clock_ahead = Some(time - now);
            }
            Item::Template(header, template) => {
                seen.useful = true;
                shared.templates.note(header, template);
            }
            Item::Withdrawn(..) => seen.useful = true,
            Item::Record(record) => {
                seen.useful = true;
                seen.counted += 1;
                if record.template.is_options() {
                    options(&record, &name, shared);
                    shared.accounts.exporter(&name).options += 1;
                } else if let Some(row) = flow(texts, &record, &name, now, shared) {
                    seen.records += 1;
                    rows.push(row);
                } else {
                    // Statistics in data records and the like: decoded, but not a flow.
                    *shared
                        .accounts
                        .exporter(&name)
                        .reasons
                        .entry("record-is-no-flow".to_owned())
                        .or_default() += 1;
                }
            }
            Item::Sequence(_, gap) => {
                let ahead = i64::from(gap.found.wrapping_sub(gap.expected).cast_signed());
                if gap.found == 0 || ahead.abs() > MOST_GAP {
                    seen.restarted = true;
                } else {
                    // Late messages go back by what an earlier gap was too long: the sum is exact.
                    seen.lost += ahead;
                }
            }
            Item::Undecoded(undecoded) => match undecoded.why {
                // A set of an earlier message whose template never came.
                Problem::NoTemplate(_) => {
                    let name = exporter_name(undecoded.exporter.ip());
                    let reasons = &mut shared.accounts.exporter(&name).reasons;
                    *reasons
                        .entry("set-without-template".to_owned())
                        .or_default() += 1;
                }
                why => seen.problem = Some(reason(&why)),
            },
        });
        let outcome = match seen.problem {
            None if seen.useful => Outcome::Decoded,
            // Only sets whose template is missing; a message of a header alone is decoded.
            None if bytes.len() > 24 => Outcome::Waiting,
            None => Outcome::Decoded,
            Some(why) if seen.useful => Outcome::Partly(why),
            Some(why) => Outcome::Rejected(why),
        };
        shared
            .accounts
            .datagram(&name, seen.format, bytes.len(), now, outcome);
        let arrived = if seen.format == "netflow9" {
            1
        } else {
            seen.counted
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            shared
                .accounts
                .sequence(&name, seen.format, now, arrived, seen.lost);
        }
        let exporter = shared.accounts.exporter(&name);
        exporter.restarts += u64::from(seen.restarted);
        exporter.rows += (rows.len() - begin) as u64;
        exporter.unknown_rate += rows.iter().skip(begin).filter(|row| row.rate == 0).count() as u64;
        exporter.clock_ahead = seen.clock_ahead.or(exporter.clock_ahead);
    }

    pub(super) fn restore(&mut self, from: SocketAddr, message: &[u8]) {
        self.collector.read(from, message, &mut |_| {});
        // The sequence of a stored message is not one that the exporter sent.
        self.collector.forget_sequence(from);
    }

    pub(super) fn forget(&mut self, from: SocketAddr) {
        self.collector.forget(from);
    }
}

fn format_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [0, 5, ..] => "netflow5",
        [0, 9, ..] => "netflow9",
        _ => "ipfix",
    }
}

fn number(value: &Value<'_>) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A flow record as a row; `None` when it counts neither packets nor bytes and holds no packet.
fn flow(
    texts: &Texts,
    record: &Record<'_>,
    name: &str,
    now: i64,
    shared: &mut Shared,
) -> Option<Row> {
    let format: &Text = match record.header.version {
        Version::Ipfix => &texts.ipfix,
        Version::NetFlow9 => &texts.netflow9,
        Version::NetFlow5 => &texts.netflow5,
    };
    let mut row = shared.enricher.row(now, name, format, &texts.unknown);
    let (mut bytes, mut packets, mut l2_bytes) = (None, None, None);
    let (mut selector, mut interval, mut space, mut rate) = (0, None, None, None);
    let (mut icmp, mut section, mut frame, mut status) = (None, None, None, 0);
    for (field, value) in record.fields() {
        if field.space != Space::Iana {
            continue;
        }
        match (field.number, value) {
            (1, value) => bytes = Some(number(&value)),
            (2, value) => packets = Some(number(&value)),
            (85 | 23, value) if bytes.is_none() => bytes = Some(number(&value)),
            (86 | 24, value) if packets.is_none() => packets = Some(number(&value)),
            (352, value) => l2_bytes = Some(number(&value)),
            (4, value) => row.proto = number(&value) as u8,
            (5, value) => row.tos = number(&value) as u8,
            (6, value) => row.tcp_flags = number(&value) as u16,
            (7 | 180 | 182, value) => row.src_port = number(&value) as u16,
            (11 | 181 | 183, value) => row.dst_port = number(&value) as u16,
            (8, Value::V4(ip)) if !ip.is_unspecified() || row.src.is_unspecified() => {
                row.src = address(ip.into());
            }
            (12, Value::V4(ip)) if !ip.is_unspecified() || row.dst.is_unspecified() => {
                row.dst = address(ip.into());
            }
            (27, Value::V6(ip)) if !ip.is_unspecified() => row.src = ip,
            (28, Value::V6(ip)) if !ip.is_unspecified() => row.dst = ip,
            (9 | 29, value) => row.src_len = row.src_len.max(number(&value) as u8),
            (13 | 30, value) => row.dst_len = row.dst_len.max(number(&value) as u8),
            (10 | 252, value) if row.in_if == 0 => row.in_if = number(&value) as u32,
            (14 | 253, value) if row.out_if == 0 => row.out_if = number(&value) as u32,
            (16, value) => row.src_as = number(&value) as u32,
            (17, value) => row.dst_as = number(&value) as u32,
            (32 | 139, value) => icmp = Some(number(&value) as u16),
            (58 | 243, value) => row.vlan = number(&value) as u16,
            (61, value) => row.direction = number(&value) as u8,
            (89, value) => status = number(&value) as u8,
            (60, value) => row.etype = if number(&value) == 6 { 0x86dd } else { 0x0800 },
            (256, value) => row.etype = number(&value) as u16,
            (302 | 48, value) => selector = number(&value),
            (34 | 50, value) => rate = Some(number(&value)),
            (305, value) => interval = Some(number(&value)),
            (306, value) => space = Some(number(&value)),
            (312, value) => frame = Some(number(&value)),
            (315, Value::Octets(octets)) => section = Some((RawHeader::ETHERNET, octets)),
            (313, Value::Octets([first, ..])) if first >> 4 == 4 => {
                section = ip_section(record, RawHeader::IPV4)
            }
            (313, Value::Octets(_)) => section = ip_section(record, RawHeader::IPV6),
            _ => {}
        }
    }
    if let Some((protocol, octets)) = section {
        let length = frame.map_or(octets.len() as u64, |frame| frame + 4);
        let frame_length = u32::try_from(length).unwrap_or(u32::MAX);
        super::sflow::header(
            &mut row,
            &RawHeader {
                protocol,
                frame_length,
                stripped: 0,
                header: octets,
            },
        );
        (packets, bytes, l2_bytes) = (
            packets.or(Some(1)),
            bytes.or(Some(row.bytes)),
            l2_bytes.or(Some(row.l2_bytes)),
        );
    }
    if packets.is_none() && bytes.is_none() {
        return None;
    }
    if row.etype == 0 && !row.src.is_unspecified() {
        row.etype = if row.src.to_ipv4_mapped().is_some() {
            0x0800
        } else {
            0x86dd
        };
    }
    if let Some(icmp) = icmp.filter(|_| matches!(row.proto, 1 | 58) && row.dst_port == 0) {
        row.dst_port = icmp;
    }
    row.outcome = outcome(texts, status, row.out_if, shared);
    let in_record = rate
        .or_else(|| ratio(interval, space))
        .filter(|rate| *rate > 0);
    let rate = shared
        .enricher
        .rate_override(name)
        .or_else(|| in_record.and_then(|rate| u32::try_from(rate).ok()))
        .or_else(|| header_rate(record.header))
        .or_else(|| shared.enricher.rate(name, record.header.domain, selector))
        .unwrap_or(0);
    let (packets, bytes) = (packets.unwrap_or(0), bytes.unwrap_or(0));
    row.measure(packets, bytes, l2_bytes.unwrap_or(bytes), rate);
    shared.enricher.finish(name, &mut row);
    Some(row)
}

/// The sampled IP header of a record.
fn ip_section<'a>(record: &Record<'a>, protocol: u32) -> Option<(u32, &'a [u8])> {
    record
        .octets()
        .find(|(field, _)| field.space == Space::Iana && field.number == 313)
        .map(|(_, octets)| (protocol, octets))
}

/// One in how many packets, from RFC 5477's interval (packets taken) and space (packets skipped).
fn ratio(interval: Option<u64>, space: Option<u64>) -> Option<u64> {
    let (interval, space) = (interval?, space?);
    interval.checked_add(space)?.checked_div(interval)
}

/// NetFlow 5: the lower 14 bits of the header's sampling field; 0 is not sampled.
fn header_rate(header: &Header) -> Option<u32> {
    header
        .sampling
        .map(|sampling| u32::from(sampling & 0x3fff).max(1))
}

/// forwardingStatus (RFC 7270, 4.12) as an outcome.
fn outcome(texts: &Texts, status: u8, out_if: u32, shared: &mut Shared) -> Text {
    // sFlow's codes of the same reasons, so that both formats group together.
    let code = match status {
        64..=127 => return texts.forwarded.clone(),
        // "For us": the router itself is the destination.
        192..=255 => return texts.consumed.clone(),
        128 => 256,
        129 | 130 => 258,
        131 => 0,
        132 => 279,
        133 => 4,
        134..=136 => 275,
        137 => 257,
        138 => 261,
        139 => 260,
        140 => 302,
        141 => return texts.consumed.clone(),
        142 => 0,
        143 => 256,
        144..=191 => 256,
        0..=63 if out_if != 0 => return texts.forwarded.clone(),
        0..=63 => return texts.unknown.text.clone(),
    };
    shared.enricher.dropped(code)
}

/// An option record: names of interfaces, sampling rates.
fn options(record: &Record<'_>, name: &str, shared: &mut Shared) {
    let (mut index, mut interface, mut description, mut selector) = (None, None, None, 0);
    let (mut rate, mut interval, mut space, mut size, mut population, mut probability) =
        (None, None, None, None, None, None);
    let mut algorithm = None;
    let text = |octets: &[u8]| {
        String::from_utf8_lossy(octets)
            .trim_end_matches('\0')
            .to_owned()
    };
    for (field, value) in record.fields() {
        match (field.space, field.number, value) {
            (Space::Iana, 10, value) | (Space::Scope9, 2, value) => index = Some(number(&value)),
            (Space::Iana, 82, Value::Text(octets)) => interface = Some(text(octets)),
            (Space::Iana, 83, Value::Text(octets)) => description = Some(text(octets)),
            (Space::Iana, 302 | 48, value) => selector = number(&value),
            (Space::Iana, 304 | 49 | 35, value) => algorithm = Some(number(&value)),
            (Space::Iana, 34 | 50, value) => rate = Some(number(&value)),
            (Space::Iana, 305, value) => interval = Some(number(&value)),
            (Space::Iana, 306, value) => space = Some(number(&value)),
            (Space::Iana, 309, value) => size = Some(number(&value)),
            (Space::Iana, 310, value) => population = Some(number(&value)),
            (Space::Iana, 311, Value::Float(value)) => probability = Some(value),
            _ => {}
        }
    }
    if let Some(index) = index
        .and_then(|index| u32::try_from(index).ok())
        .filter(|_| interface.is_some() || description.is_some())
    {
        // Cisco puts the short name into 82; where only 83 is sent, it is the name.
        let name_of = interface.as_deref().or(description.as_deref());
        shared
            .enricher
            .interface(name, index, name_of, description.as_deref(), None);
    }
    let rate = rate
        .or_else(|| ratio(interval, space))
        .or_else(|| population?.checked_div(size.filter(|size| *size > 0)?))
        .or_else(|| {
            probability
                .filter(|p| *p > 0.0 && *p <= 1.0)
                .map(|p| (1.0 / p).round() as u64)
        })
        // A selector that takes every packet announces an algorithm and no rate.
        .or_else(|| algorithm.filter(|algorithm| *algorithm == 0).map(|_| 1));
    if let Some(rate) = rate.and_then(|rate| u32::try_from(rate).ok()) {
        let rate = rate.max(1);
        shared
            .enricher
            .learn_rate(name, record.header.domain, selector, rate);
        let source = format!("domain {} selector {selector}", record.header.domain);
        shared.accounts.exporter(name).rate(&source, rate);
    }
}

fn reason(problem: &Problem) -> &'static str {
    match problem {
        Problem::ShortHeader { .. } => "flow-short-header",
        Problem::Version(_) => "flow-version",
        Problem::MessageLength { .. } => "flow-message-length",
        Problem::SetLength { .. } => "flow-set-length",
        Problem::BehindSets(_) => "flow-trailing-bytes",
        Problem::ReservedSet(_) => "flow-reserved-set",
        Problem::NoTemplate(_) => "flow-no-template",
        Problem::ShortTemplate(_) => "flow-short-template",
        Problem::TemplateNumber(_) => "flow-template-number",
        Problem::Scopes(..) => "flow-template-scopes",
        Problem::EmptyRecords(_) | Problem::EmptyFields(..) => "flow-template-empty",
        Problem::ShortRecord { .. } => "flow-short-record",
        Problem::Padding { .. } => "flow-padding",
        Problem::Count { .. } => "flow-count",
    }
}
