//! Any bytes as an sFlow datagram: every sample and record is walked to its end or to an error.
//!
//! Run with `cargo +nightly fuzz run sflow_decode`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_flowfmt::sflow::decode::{Datagram, Sample};

fuzz_target!(|input: &[u8]| {
    let Ok(datagram) = Datagram::decode(input) else { return };
    for sample in datagram.samples() {
        match sample {
            Ok(Sample::Flow(_, _, records)) => assert!(records.count() <= input.len()),
            Ok(Sample::Counters(_, _, records)) => assert!(records.count() <= input.len()),
            Ok(_) => {}
            Err(error) => assert!(error.offset <= input.len()),
        }
    }
});
