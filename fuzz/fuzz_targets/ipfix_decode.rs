//! Any octets as messages of IPFIX or NetFlow, one behind the other in a session, so that templates of one are
//! used by the next: every record is read and printed, and every place reported lies inside of its message.
//!
//! Run with `cargo +nightly fuzz run ipfix_decode`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::ipfix::print::{Format, Printer};

fuzz_target!(|input: &[u8]| {
    let exporter = "192.0.2.1:40000".parse().unwrap();
    let (mut collector, mut sink) = (Collector::new(), std::io::sink());
    let mut printers = [Format::Json, Format::Line, Format::Csv].map(Printer::new);
    let mut rest = input;
    // The first octet of each message is how many octets it has, in units of four.
    while let [length, message @ ..] = rest {
        let length = (usize::from(*length) * 4).min(message.len());
        let (message, behind) = message.split_at(length);
        let mut records = 0;
        collector.read(exporter, message, &mut |item| {
            match item {
                Item::Undecoded(what) => assert!(what.offset + what.octets <= 65_535),
                Item::Record(_) => records += 1,
                _ => {}
            }
            printers
                .iter_mut()
                .for_each(|printer| printer.item(&mut sink, 0, &item).unwrap());
        });
        assert!(records <= input.len());
        rest = behind;
    }
    collector.finish(&mut |_| {});
});
