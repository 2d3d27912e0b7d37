//! `weir-collector bench`: decoding and storing, measured on one thread of this machine.
//!
//! The datagrams are made here, from a fixed seed: an sFlow datagram of seven samples with 128-byte headers and router
//! records, and an IPFIX message of 24 records of 16 fields. Figures are best of three, in samples, records and rows a second.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use crate::decode::{Decoder, Shared};
use crate::row::{Country, ExporterInfo, InterfaceInfo, NetworkInfo, Row, Text, Unknown, batch};
use crate::store::{StoreError, bench_write};

fn put(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// One Ethernet header with IPv4 and UDP, 128 bytes.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(1000_u16.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend((0x0a00_0000 | (number.wrapping_mul(2_654_435_761) >> 12)).to_be_bytes());
    frame.extend((0xc000_0200 | (number & 255)).to_be_bytes());
    frame.extend((1024 + (number % 5000) as u16).to_be_bytes());
    frame.extend(443_u16.to_be_bytes());
    frame.resize(128, 0);
    frame
}

/// An sFlow datagram of `samples` flow samples.
#[must_use]
pub fn sflow_datagram(sequence: u32, samples: u32, rate: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, &[5, 1, 0xc000_0201, 0, sequence, 1000, samples]);
    for sample in 0..samples {
        let mut body = Vec::new();
        let number = sequence.wrapping_mul(samples).wrapping_add(sample);
        put(
            &mut body,
            &[
                number,
                1 + number % 4,
                rate,
                0,
                0,
                1 + number % 4,
                1 + (number + 1) % 4,
                2,
            ],
        );
        put(&mut body, &[1, 16 + 128, 1, 1018, 4, 128]);
        body.extend(frame(number));
        put(&mut body, &[1002, 16, 1, 0xc000_0301, 24, 16]);
        put(&mut out, &[1, body.len() as u32]);
        out.extend(body);
    }
    out
}

const FIELDS: [(u16, u16); 16] = [
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (5, 1),
    (6, 2),
    (10, 4),
    (14, 4),
    (1, 8),
    (2, 8),
    (16, 4),
    (17, 4),
    (9, 1),
    (13, 1),
    (89, 1),
];

/// An IPFIX message of `records` records, with its template when `template` is set.
#[must_use]
pub fn ipfix_message(sequence: u32, records: u32, template: bool) -> Vec<u8> {
    let mut sets = Vec::new();
    if template {
        let length = 8 + 4 * FIELDS.len() as u16;
        [2, length, 256, FIELDS.len() as u16]
            .iter()
            .for_each(|word: &u16| sets.extend(word.to_be_bytes()));
        for (number, length) in FIELDS {
            sets.extend(number.to_be_bytes());
            sets.extend(length.to_be_bytes());
        }
    }
    let size: u16 = FIELDS.iter().map(|(_, length)| length).sum();
    sets.extend(256_u16.to_be_bytes());
    sets.extend((4 + size * records as u16).to_be_bytes());
    for record in 0..records {
        let number = sequence.wrapping_add(record);
        sets.extend((0x0a00_0000 | (number.wrapping_mul(2_654_435_761) >> 12)).to_be_bytes());
        sets.extend((0xc000_0200 | (number & 255)).to_be_bytes());
        sets.extend((1024 + (number % 5000) as u16).to_be_bytes());
        sets.extend(443_u16.to_be_bytes());
        sets.extend([6, 0, 0, 0x18]);
        put(&mut sets, &[1 + number % 4, 1 + (number + 1) % 4]);
        sets.extend(u64::from(1000 + number % 1000).to_be_bytes());
        sets.extend(3_u64.to_be_bytes());
        put(&mut sets, &[64_500 + number % 100, 15_169]);
        sets.extend([24, 16, 64]);
    }
    let mut out = Vec::new();
    out.extend(10_u16.to_be_bytes());
    out.extend((16 + sets.len() as u16).to_be_bytes());
    put(&mut out, &[1_700_000_000, sequence, 1]);
    out.extend(sets);
    out
}

/// A small generator, so that data repeats.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A number below `count`; small ones are more frequent, as 1/x.
fn power(state: &mut u64, count: u32) -> u32 {
    let part = (random(state) >> 11) as f64 / (1_u64 << 53) as f64;
    ((f64::from(count).ln() * part).exp() as u32).clamp(1, count) - 1
}

/// Rows like those of a network with 8 exporters of 24 interfaces: 60,000 AS numbers, 900,000 remote prefixes, 200,000 own
/// hosts, all with power laws; half sampled, a fifth IPv6; five minutes. The same seed gives the same rows.
#[must_use]
pub fn dataset(seed: u64, count: usize) -> Vec<Row> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let text = |text: String| Text::from(text);
    let exporters: Vec<Arc<ExporterInfo>> = (0..8)
        .map(|number| {
            Arc::new(ExporterInfo {
                address: text(format!("192.0.2.{number}")),
                name: text(format!("edge{number}")),
                role: text("edge".to_owned()),
                site: text(format!("site{}", number / 2)),
                tenant: text(format!("tenant{}", number % 2)),
            })
        })
        .collect();
    let ports: Vec<Arc<InterfaceInfo>> = (0..24)
        .map(|number| {
            let boundary = if number < 6 { "external" } else { "internal" };
            Arc::new(InterfaceInfo {
                name: text(format!("port{number}")),
                boundary: text(boundary.to_owned()),
                provider: text(if number < 6 {
                    format!("transit{number}")
                } else {
                    String::new()
                }),
                connectivity: text(if number < 6 {
                    "transit".to_owned()
                } else {
                    String::new()
                }),
            })
        })
        .collect();
    let nets: Vec<Arc<NetworkInfo>> = (0..16)
        .map(|number| {
            Arc::new(NetworkInfo {
                name: text(format!("net{number}")),
                role: text("customers".to_owned()),
                site: text(format!("site{}", number % 4)),
                tenant: text(format!("tenant{}", number % 3)),
            })
        })
        .collect();
    let (sflow, ipfix, forwarded) = (
        text("sflow".into()),
        text("ipfix".into()),
        text("forwarded".into()),
    );
    let unknown = Unknown::default();
    let codes = ["US", "DE", "NL", "FR", "JP", "BR", "IN", "GB"];
    (0..count)
        .map(|number| {
            let exporter = power(&mut state, 8) as usize;
            let is_sampled = exporter.is_multiple_of(2);
            let time = 1_700_000_100 + (number * 300 / count.max(1)) as i64;
            let format = if is_sampled { &sflow } else { &ipfix };
            let mut row = Row::new(
                time,
                Arc::clone(&exporters[exporter]),
                Arc::clone(format),
                &unknown,
            );
            let prefix = power(&mut state, 900_000);
            let asn = 1 + prefix.wrapping_mul(2_654_435_761)
                % (1 + power(&mut (u64::from(prefix) | 1 << 40), 60_000));
            let is_v6 = prefix % 5 == 0;
            let remote = if is_v6 {
                Ipv6Addr::from(
                    0x2001_0db8_u128 << 96
                        | u128::from(prefix) << 72
                        | u128::from(random(&mut state) % 4096),
                )
            } else {
                Ipv4Addr::from(
                    (prefix << 8).wrapping_add(0x0100_0000) | (random(&mut state) % 256) as u32,
                )
                .to_ipv6_mapped()
            };
            let host = power(&mut state, 200_000);
            let local = if is_v6 {
                Ipv6Addr::from(0x2001_0db9_u128 << 96 | u128::from(host))
            } else {
                Ipv4Addr::from(0x0a00_0000 + host).to_ipv6_mapped()
            };
            let is_in = random(&mut state) % 3 != 0;
            let external = prefix % 6;
            let internal = 6 + host % 18;
            let (service, client) = (
                [443, 80, 53, 22, 25, 123, 8080, 5060][power(&mut state, 8) as usize],
                1024 + (random(&mut state) % 60_000) as u16,
            );
            row.proto = if service == 53 || service == 123 || random(&mut state) % 4 == 0 {
                17
            } else {
                6
            };
            row.etype = if is_v6 { 0x86dd } else { 0x0800 };
            let net = &nets[host as usize % 16];
            let country = Country::new(codes[prefix as usize % 8]);
            if is_in {
                (row.src, row.dst, row.src_as, row.dst_as) = (remote, local, asn, 64_500);
                (row.src_port, row.dst_port) = (service, client);
                (row.in_if, row.out_if) = (external + 1, internal + 1);
                (row.dst_net, row.src_country) = (Arc::clone(net), country);
            } else {
                (row.src, row.dst, row.src_as, row.dst_as) = (local, remote, 64_500, asn);
                (row.src_port, row.dst_port) = (client, service);
                (row.in_if, row.out_if) = (internal + 1, external + 1);
                (row.src_net, row.dst_country) = (Arc::clone(net), country);
            }
            row.in_port = Arc::clone(&ports[row.in_if as usize - 1]);
            row.out_port = Arc::clone(&ports[row.out_if as usize - 1]);
            (row.src_len, row.dst_len) = if is_v6 { (48, 48) } else { (24, 24) };
            row.tcp_flags = if row.proto == 6 {
                [0x10, 0x18, 0x1b, 0x02][power(&mut state, 4) as usize]
            } else {
                0
            };
            row.outcome = Arc::clone(&forwarded);
            row.direction = u8::from(!is_in);
            let size =
                [1500, 64, 576, 1280, 100][power(&mut state, 5) as usize] + random(&mut state) % 40;
            if is_sampled {
                row.measure(1, size, size + 14, 1000);
            } else {
                let packets = u64::from(1 + power(&mut state, 1000));
                row.measure(packets, packets * size, packets * (size + 14), 1);
            }
            row
        })
        .collect()
}

/// Decodes datagrams until there are `rows` rows; returns rows a second and the rows.
fn decode(rows: usize, mut make: impl FnMut(u32) -> Vec<u8>) -> (f64, Vec<Row>) {
    let datagrams: Vec<Vec<u8>> = (0..1000).map(&mut make).collect();
    let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5000);
    let (mut decoder, mut shared) = (Decoder::default(), Shared::default());
    let mut out = Vec::with_capacity(1 << 16);
    let (mut best, mut kept) = (0.0_f64, Vec::new());
    for _ in 0..3 {
        let (begin, mut count) = (Instant::now(), 0);
        while count < rows {
            for datagram in &datagrams {
                decoder.datagram(from, datagram, 1_700_000_000, &mut shared, &mut out);
            }
            count += out.len();
            if kept.len() < rows {
                kept.extend_from_slice(&out);
            }
            out.clear();
        }
        best = best.max(count as f64 / begin.elapsed().as_secs_f64());
    }
    (best, kept)
}

/// Runs the measurements and prints them.
///
/// # Errors
/// When a file cannot be written.
pub fn run(rows: usize, as_json: bool) -> Result<(), StoreError> {
    let (sflow, _) = decode(rows, |number| sflow_datagram(number, 7, 1000));
    let kept = dataset(1, rows);
    let (ipfix, _) = decode(rows, |number| ipfix_message(number * 24, 24, number == 0));
    let folder = std::env::temp_dir().join(format!("weir-collector-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Io {
        path: folder.clone(),
        source,
    })?;
    let begin = Instant::now();
    let batches: Result<Vec<_>, _> = kept.chunks(20_000).map(batch).collect();
    let written = bench_write(&folder.join("flows.parquet"), &batches?);
    let stored = kept.len() as f64 / begin.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(&folder);
    let bytes = written? as f64 / kept.len() as f64;
    if as_json {
        println!(
            "{}",
            json!({ "rows": kept.len(), "sflow_samples_per_second": sflow, "ipfix_records_per_second": ipfix, "parquet_rows_per_second": stored, "bytes_per_row": bytes })
        );
    } else {
        println!("decode and enrich, sFlow samples a second    {sflow:>12.0}");
        println!("decode and enrich, IPFIX records a second    {ipfix:>12.0}");
        println!("rows to sorted Parquet on disk, a second     {stored:>12.0}");
        println!("bytes a row on disk                          {bytes:>12.1}");
    }
    Ok(())
}
