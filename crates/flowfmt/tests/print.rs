//! The printers against what sflowtool itself printed, and against damage.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weir_flowfmt::sflow::decode_datagram_to;
use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit};
use weir_flowfmt::sflow::print::{Format, PrintError};
use weir_flowfmt::sflow::{CountersSample, Source};

const COLLECTOR_SAW: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 99));

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn datagrams() -> Vec<Vec<u8>> {
    include_str!("sflowtool/datagrams.hex").lines().map(hex).collect()
}

/// What is printed, and whether the datagram was sound.
fn print(format: Format, datagram: &[u8]) -> (String, Option<String>) {
    let mut output = Vec::new();
    let result = decode_datagram_to(&mut output, format, COLLECTOR_SAW, 0, datagram);
    (String::from_utf8(output).unwrap(), result.err().map(|error| error.to_string()))
}

#[test]
fn each_format_is_what_sflowtool_prints() {
    let formats = [
        (Format::Text, include_str!("sflowtool/text.txt")),
        (Format::Line, include_str!("sflowtool/line.txt")),
        (Format::Json, include_str!("sflowtool/json.txt")),
    ];
    for (format, expected) in formats {
        let mut printed = String::new();
        for datagram in datagrams() {
            let (output, error) = print(format, &datagram);
            assert_eq!(error, None);
            printed += &output;
        }
        for (number, (printed, expected)) in printed.lines().zip(expected.lines()).enumerate() {
            assert_eq!(printed, expected, "{format:?}, line {}", number + 1);
        }
        assert_eq!(printed.len(), expected.len(), "{format:?}");
    }
}

#[test]
fn times_and_mapped_addresses_are_shown_as_such() {
    let mut output = Vec::new();
    let mapped = IpAddr::V6(Ipv4Addr::new(198, 51, 100, 7).to_ipv6_mapped());
    decode_datagram_to(&mut output, Format::Text, mapped, 1_700_000_000_123_456_789, &datagrams()[0]).unwrap();
    let text = String::from_utf8(output).unwrap();
    let head: Vec<&str> = text.lines().skip(1).take(5).collect();
    assert_eq!(
        head,
        [
            "datagramSourceIP 198.51.100.7",
            "datagramSize 292",
            "unixSecondsUTC 1700000000",
            "unixSecondsUTC_uS 123456",
            "localtime 2023-11-14T22:13:20+0000",
        ]
    );
}

#[test]
fn a_hostile_port_name_stays_inside_its_value() {
    let mut builder = DatagramBuilder::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0, Encoding::Expanded);
    let sample = CountersSample { sequence: 1, source: Source::interface(1) };
    let name = CounterRecord::PortName("a\"b\\c\nsrcIP 6.6.6.6\u{1b}[31m");
    assert_eq!(builder.counters_sample(&sample, &[name]), Ok(Fit::Added));
    let datagram = builder.finish(1, 1).to_vec();
    let (text, _) = print(Format::Text, &datagram);
    assert!(text.contains("\nifName a\"b\\c\\u{a}srcIP 6.6.6.6\\u{1b}[31m\n"), "{text}");
    let (json, _) = print(Format::Json, &datagram);
    assert!(
        json.ends_with(
            "\"elements\":[{\"counterBlock_tag\":\"0:1005\",\
         \"ifName\":\"a\\\"b\\\\c\\u000asrcIP 6.6.6.6\\u001b[31m\"}]}]}\n"
        ),
        "{json}"
    );
}

#[test]
fn a_damaged_datagram_says_so_and_what_is_sound_is_printed() {
    let whole = &datagrams()[0];
    // Cut inside the counters sample: the flow sample is there.
    let (text, error) = print(Format::Text, &whole[..280]);
    // Header 28, sample 8 + 44, record 8 + 16 + 48, then the other sample's format and length.
    let left = 280 - (28 + 52 + 72 + 8);
    assert_eq!(error, Some(format!("malformed sFlow at octet 152: sample 0:4 of 132 octets, but {left} are left")));
    assert!(text.contains("UDPBytes 12\nendSample   ----------------------\nendDatagram   ===="), "{text}");
    let (line, _) = print(Format::Line, &whole[..280]);
    assert_eq!(line.lines().count(), 1);
    // A header that lies about its length takes its record away, and in lines the sample.
    let mut lying = whole.clone();
    lying[28 + 8 + 44 + 8 + 12..][..4].copy_from_slice(&[0xff; 4]);
    let (line, error) = print(Format::Line, &lying);
    assert!(error.unwrap().contains("sampled header needs 4294967295 octets, but 48 are left"));
    assert!(line.starts_with("CNTR,") && line.lines().count() == 1, "{line}");
    // Without a header there is nothing to print.
    for len in 0..28 {
        let (text, error) = print(Format::Json, &whole[..len]);
        assert!(text.is_empty() && error.is_some());
    }
}

#[test]
fn an_output_that_is_gone_is_told_apart_from_damage() {
    struct Gone;
    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in [Format::Text, Format::Line, Format::Json] {
        let result = decode_datagram_to(&mut Gone, format, COLLECTOR_SAW, 0, &datagrams()[0]);
        assert!(matches!(result, Err(PrintError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe));
    }
}

/// Whether brackets, quotes and commas of one line of JSON are where they belong: a value is read off
/// the front, and nothing may be left.
fn is_json(line: &str) -> bool {
    fn string(rest: &[u8]) -> Option<&[u8]> {
        let mut rest = rest.strip_prefix(b"\"")?;
        loop {
            rest = match rest {
                [b'"', rest @ ..] => return Some(rest),
                [b'\\', b'"' | b'\\', rest @ ..] => rest,
                [b'\\', b'u', a, b, c, d, rest @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => rest,
                [b'\\' | 0..=0x1f, ..] | [] => return None,
                [_, rest @ ..] => rest,
            }
        }
    }
    fn items(mut rest: &[u8], end: u8, item: fn(&[u8]) -> Option<&[u8]>) -> Option<&[u8]> {
        if rest.first() == Some(&end) {
            return rest.get(1..);
        }
        loop {
            rest = item(rest)?;
            match rest.split_first()? {
                (b',', following) => rest = following,
                (byte, following) if *byte == end => return Some(following),
                _ => return None,
            }
        }
    }
    fn value(rest: &[u8]) -> Option<&[u8]> {
        match rest.first()? {
            b'{' => items(&rest[1..], b'}', |rest| value(string(rest)?.strip_prefix(b":")?)),
            b'[' => items(&rest[1..], b']', value),
            _ => string(rest),
        }
    }
    value(line.as_bytes()).is_some_and(<[u8]>::is_empty)
}

proptest! {
    #[test]
    fn damage_never_breaks_the_layout(
        which in 0_usize..8,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut datagram = datagrams().swap_remove(which);
        datagram.truncate(cut.index(datagram.len()) + 1);
        for (at, value) in changes {
            let at = at.index(datagram.len());
            datagram[at] = value;
        }
        let (json, _) = print(Format::Json, &datagram);
        prop_assert!(json.is_empty() || (json.lines().count() == 1 && is_json(json.trim_end())), "{}", json);
        let (text, _) = print(Format::Text, &datagram);
        for mark in ["Datagram ", "Sample "] {
            let starts = text.lines().filter(|line| line.starts_with(&format!("start{mark}"))).count();
            prop_assert_eq!(starts, text.lines().filter(|line| line.starts_with(&format!("end{mark}"))).count());
        }
        for line in print(Format::Line, &datagram).0.lines() {
            prop_assert_eq!(line.split(',').count(), if line.starts_with("FLOW,") { 20 } else { 21 }, "{}", line);
        }
    }
}
