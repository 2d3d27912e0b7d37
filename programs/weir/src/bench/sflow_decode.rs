//! `weir bench sflow-decode`: how many flow samples a second one core reads.
//!
//! The datagrams are what an agent sends: expanded samples with 128 octets of header, six in each. They
//! are decoded again and again from memory, by one thread, and what is printed goes to memory; so this is the
//! decoder alone, without sockets. Counting walks every sample and every record.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use serde::Serialize;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_flowfmt::sflow::encode::{DatagramBuilder, Encoding, Fit, FlowRecord as Written};
use weir_flowfmt::sflow::ledger::Ledger;
use weir_flowfmt::sflow::print::Format;
use weir_flowfmt::sflow::{FlowSample, Port, RawHeader, Source, decode_datagram_to};
use weir_wire::build::{Ends, udp4};

const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// One for each thing that is done with the samples.
    pub(crate) figures: Vec<Figure>,
}

/// How fast one thing is.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// What is done.
    pub(crate) what: &'static str,
    /// So many.
    pub(crate) samples_per_second: f64,
    /// How many it should be; 0 = no aim.
    pub(crate) target: u64,
}

/// Measures each thing for so long.
pub(crate) fn measure(time: Duration) -> Result<Report, String> {
    let datagrams = datagrams(64)?;
    let mut ledger = Ledger::new();
    let mut figures = Vec::new();
    let mut figure = |what, target, each: &mut dyn FnMut(&[u8]) -> Result<u64, String>| {
        let began = Instant::now();
        let mut samples = 0;
        while began.elapsed() < time {
            for datagram in &datagrams {
                samples += each(black_box(datagram))?;
            }
        }
        figures.push(Figure {
            what,
            samples_per_second: samples as f64 / began.elapsed().as_secs_f64(),
            target,
        });
        Ok::<(), String>(())
    };
    figure("counting", 3_000_000, &mut |bytes| Ok(count(bytes)))?;
    figure("with a ledger of agents", 0, &mut |bytes| {
        let datagram = Datagram::decode(bytes).map_err(|error| error.to_string())?;
        ledger.note(&datagram);
        Ok(datagram.sample_count.into())
    })?;
    let mut printed = Vec::with_capacity(1 << 16);
    for (what, target, format) in [
        ("lines", 500_000, Format::Line),
        ("text", 0, Format::Text),
        ("JSON", 0, Format::Json),
    ] {
        figure(what, target, &mut |bytes| {
            // Not `sink`, which does not even format.
            printed.clear();
            let outcome = decode_datagram_to(&mut printed, format, AGENT, 0, bytes);
            outcome.map_err(|error| error.to_string())?;
            black_box(&printed);
            Ok(Datagram::decode(bytes).map_or(0, |datagram| datagram.sample_count.into()))
        })?;
    }
    Ok(Report { figures })
}

/// Every sample and record is looked at.
fn count(bytes: &[u8]) -> u64 {
    let Ok(datagram) = Datagram::decode(bytes) else {
        return 0;
    };
    let mut samples = 0;
    for sample in datagram.samples().flatten() {
        if let Sample::Flow(_, fixed, records) = sample {
            for record in records.flatten() {
                if let FlowRecord::RawHeader(raw) = record {
                    black_box((fixed.rate, raw.frame_length, raw.header));
                }
            }
            samples += 1;
        }
    }
    samples
}

/// Datagrams as an agent sends them.
fn datagrams(count: u32) -> Result<Vec<Vec<u8>>, String> {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
    let mut sequence = 0;
    let one = |number: u32| {
        builder.clear();
        loop {
            let flow = sequence + 1;
            let sample = FlowSample {
                sequence: flow,
                source: Source::interface(1),
                rate: 1000,
                pool: flow.wrapping_mul(1000),
                drops: 0,
                input: Port::interface(1),
                output: Port::interface(2),
            };
            let ends = Ends {
                source: 0x0a00_0000 + flow % 1000,
                destination: 0x0a01_0000 + flow % 77,
                ..Ends::default()
            };
            let packet = udp4(&ends, &[0; 200]);
            let header = packet.get(..128).unwrap_or(&packet);
            let raw = RawHeader {
                protocol: RawHeader::ETHERNET,
                frame_length: 246,
                stripped: 4,
                header,
            };
            match builder
                .flow_sample(&sample, &[Written::RawHeader(raw)])
                .map_err(|error| error.to_string())?
            {
                Fit::Added => sequence = flow,
                Fit::Full => return Ok(builder.finish(number, number).to_vec()),
            }
        }
    };
    (1..=count).map(one).collect()
}
