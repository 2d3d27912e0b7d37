//! Files of nfcapd, read by nfdump itself: it knows all versions and compressions of its format.
//!
//! nfdump prints one JSON object a record. Rates that it applied are not known here: records that it marks as sampled are
//! stored as of unknown rate, with the values that it prints.

use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{Counts, ImportError};
use crate::decode::Shared;
use crate::row::{Row, Text, Unknown, address};

/// The first octets of a file, in both byte orders.
const MAGIC: [[u8; 2]; 2] = [[0x0c, 0xa5], [0xa5, 0x0c]];
/// Bytes of a record's text.
const MOST_RECORD: usize = 1 << 16;

/// Whether a file is one of nfcapd.
#[must_use]
pub(super) fn is_nfcapd(path: &Path) -> bool {
    use std::io::Read as _;
    let mut begin = [0; 2];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut begin))
        .is_ok_and(|()| MAGIC.contains(&begin))
}

/// A record as nfdump prints it.
#[derive(Deserialize)]
#[serde(default)]
struct Record {
    sampled: u64,
    received: String,
    last: String,
    in_packets: u64,
    in_bytes: u64,
    proto: u8,
    tcp_flags: String,
    src_port: u16,
    dst_port: u16,
    src_tos: u8,
    src4_addr: Option<IpAddr>,
    dst4_addr: Option<IpAddr>,
    src6_addr: Option<IpAddr>,
    dst6_addr: Option<IpAddr>,
    input_snmp: u32,
    output_snmp: u32,
    src_mask: u8,
    dst_mask: u8,
    direction: u8,
    src_as: u32,
    dst_as: u32,
    ip4_router: Option<IpAddr>,
    ip6_router: Option<IpAddr>,
}

impl Default for Record {
    fn default() -> Record {
        Record {
            sampled: 0,
            received: String::new(),
            last: String::new(),
            in_packets: 0,
            in_bytes: 0,
            proto: 0,
            tcp_flags: String::new(),
            src_port: 0,
            dst_port: 0,
            src_tos: 0,
            src4_addr: None,
            dst4_addr: None,
            src6_addr: None,
            dst6_addr: None,
            input_snmp: 0,
            output_snmp: 0,
            src_mask: 0,
            dst_mask: 0,
            direction: 255,
            src_as: 0,
            dst_as: 0,
            ip4_router: None,
            ip6_router: None,
        }
    }
}

/// TCP flags as nfdump prints them: a letter a bit, the highest first.
fn flags(text: &str) -> u16 {
    text.chars()
        .fold(0, |all, letter| all << 1 | u16::from(letter != '.'))
}

/// Calls `each` with the time and row of each record.
///
/// # Errors
/// When nfdump is not installed or cannot read the file.
pub(super) fn records(
    path: &Path,
    shared: &mut Shared,
    counts: &mut Counts,
    each: &mut dyn FnMut(i64, Row),
) -> Result<(), ImportError> {
    let refuse = |message: String| ImportError::File {
        path: path.to_owned(),
        message,
    };
    let mut child = Command::new("nfdump")
        .args(["-q", "-o", "json", "-r"])
        .arg(path)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            refuse(format!(
                "nfdump reads such files, and cannot be run: {error}"
            ))
        })?;
    let output = child.stdout.take();
    let (format, unknown): (Text, Unknown) = ("nfcapd".into(), Unknown::default());
    let mut text = String::new();
    for line in output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines())
    {
        let line = line.map_err(|error| refuse(error.to_string()))?;
        text.push_str(line.trim_end_matches('\0'));
        if text.len() > MOST_RECORD {
            counts.broken += 1;
            text.clear();
        }
        if !line.starts_with('}') {
            continue;
        }
        counts.frames += 1;
        let from = text.find('{').unwrap_or(0);
        let record = text.get(from..).unwrap_or("").trim_end_matches(',');
        let parsed = serde_json::from_str::<Record>(record);
        text.clear();
        let time = |record: &Record| {
            let seconds = |text: &str| crate::api::seconds(&format!("{text}Z"));
            seconds(&record.received).or_else(|| seconds(&record.last))
        };
        let Some((record, time)) = parsed
            .ok()
            .and_then(|record| time(&record).map(|time| (record, time)))
        else {
            counts.broken += 1;
            continue;
        };
        counts.datagrams += 1;
        let exporter = record.ip4_router.or(record.ip6_router);
        let exporter = exporter.map_or_else(|| "unknown".to_owned(), crate::account::exporter_name);
        let mut row = shared.enricher.row(time, &exporter, &format, &unknown);
        let (src, dst) = (
            record.src4_addr.or(record.src6_addr),
            record.dst4_addr.or(record.dst6_addr),
        );
        row.src = src.map_or(row.src, address);
        row.dst = dst.map_or(row.dst, address);
        row.etype = match src {
            Some(IpAddr::V4(_)) => 0x0800,
            Some(IpAddr::V6(_)) => 0x86dd,
            None => 0,
        };
        (row.src_port, row.dst_port, row.proto) = (record.src_port, record.dst_port, record.proto);
        (row.tos, row.tcp_flags) = (record.src_tos, flags(&record.tcp_flags));
        (row.in_if, row.out_if) = (record.input_snmp, record.output_snmp);
        (row.src_len, row.dst_len) = (record.src_mask, record.dst_mask);
        (row.src_as, row.dst_as) = (record.src_as, record.dst_as);
        row.direction = record.direction;
        let rate = u32::from(record.sampled == 0);
        row.measure(record.in_packets, record.in_bytes, record.in_bytes, rate);
        shared.enricher.finish(&exporter, &mut row);
        each(time, row);
    }
    let status = child.wait().map_err(|error| refuse(error.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(refuse(format!("nfdump: {status}")))
    }
}
