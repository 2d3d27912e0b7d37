//! Any bytes as an sFlow datagram of any version: printed in every form, entered into a ledger, turned into
//! NetFlow; nothing panics, and what comes out is bounded by what went in.
//!
//! Run with `cargo +nightly fuzz run sflow_decode`.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use weir_flowfmt::netflow5::{Converter, Options};
use weir_flowfmt::sflow::decode::Sample;
use weir_flowfmt::sflow::ledger::Ledger;
use weir_flowfmt::sflow::print::Format;
use weir_flowfmt::sflow::{decode_datagram_to, version4};

fuzz_target!(|input: &[u8]| {
    let columns = [
        "srcIP".to_owned(),
        "inner_dstIP".to_owned(),
        "ifName".to_owned(),
    ];
    for format in [
        Format::Text,
        Format::Line,
        Format::Json,
        Format::PrettyJson,
        Format::Grep,
        Format::Columns(&columns),
    ] {
        let mut output = Vec::new();
        let _ = decode_datagram_to(
            &mut output,
            format,
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            0,
            input,
        );
        assert!(output.len() <= 2_000 + 400 * input.len());
    }
    let mut room = Vec::new();
    let Ok((datagram, ..)) = version4::decode(input, &mut room) else {
        return;
    };
    for sample in datagram.samples() {
        match sample {
            Ok(Sample::Flow(_, _, records) | Sample::Discard(_, records)) => {
                assert!(records.count() <= 8 * input.len())
            }
            Ok(Sample::Counters(_, _, records)) => assert!(records.count() <= 8 * input.len()),
            Ok(_) => {}
            Err(error) => assert!(error.offset <= 8 * input.len() + 64),
        }
    }
    let mut ledger = Ledger::new();
    ledger.note(&datagram);
    ledger.note(&datagram);
    for (_, _, agent) in ledger.agents() {
        for (class, index, _) in agent.sources() {
            for estimate in agent.estimates(class, index) {
                let _ = estimate.verdict();
            }
        }
    }
    let _ = Converter::new(Options::default()).convert(&datagram, 0, |packet| {
        assert!(packet.len() <= 24 + 30 * 48);
        Ok::<(), ()>(())
    });
});
