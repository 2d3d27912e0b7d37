//! `weir-collector bench`: decoding and storing, measured on one thread of this machine.
//!
//! The datagrams are made here, from a fixed seed: an sFlow datagram of seven samples with 128-byte headers and router
//! records, and an IPFIX message of 24 records of 16 fields. Figures are best of three, in samples, records and rows a second.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use serde_json::json;

use crate::decode::{Decoder, Shared};
use crate::row::{Row, batch};
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
    let (sflow, kept) = decode(rows, |number| sflow_datagram(number, 7, 1000));
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
