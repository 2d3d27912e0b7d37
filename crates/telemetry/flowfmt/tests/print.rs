//! The printers against what sflowtool itself printed, and against damage.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weir_flowfmt::sflow::decode_datagram_to;
use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::print::{Format, PrintError, is_name, names};
use weir_flowfmt::sflow::{CountersSample, ExtendedSwitch, FlowSample, Port, RawHeader, Source};

const COLLECTOR_SAW: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 99));

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn datagrams() -> Vec<Vec<u8>> {
    include_str!("sflowtool/datagrams.hex")
        .lines()
        .map(hex)
        .collect()
}

/// What is printed, and whether the datagram was sound.
fn print(format: Format<'_>, datagram: &[u8]) -> (String, Option<String>) {
    let mut output = Vec::new();
    let result = decode_datagram_to(&mut output, format, COLLECTOR_SAW, 0, datagram);
    let output = String::from_utf8(output).unwrap();
    if format == Format::Text && result.is_ok() {
        has_known_names(&output);
    }
    (output, result.err().map(|error| error.to_string()))
}

/// Whatever is printed can be chosen as a column.
fn has_known_names(text: &str) {
    for line in text.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let is_mark = name.starts_with("start") || name.starts_with("end");
        let is_remark = matches!(name, "skipping" | "NO_DECODE" | "UNKNOWN");
        assert!(is_mark || is_remark || is_name(name), "{line}");
    }
}

#[test]
fn names_of_columns_are_those_that_are_printed() {
    for text in [
        include_str!("sflowtool/text.txt"),
        include_str!("sflowtool/records.txt"),
        include_str!("sflowtool/more.txt"),
    ] {
        has_known_names(text);
    }
    for name in [
        "srcip",
        "",
        "discarded_",
        "inner_",
        "inner_discarded_srcIP",
        "rtmetric_",
    ] {
        assert!(!is_name(name), "{name:?}");
    }
    for name in [
        "discarded_srcIP",
        "inner2_dstIP6",
        "discarded_inner_UDPSrcPort",
        "tunnel_ipv4_in_srcIP",
        "rtmetric_gauge32_load",
        "decodedVLAN.1",
    ] {
        assert!(is_name(name), "{name}");
    }
    assert!(names().is_sorted_by_key(|name| name.to_ascii_lowercase()));
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

/// Datagrams with every record that sflowtool knows.
fn records() -> Vec<Vec<u8>> {
    include_str!("sflowtool/records.hex")
        .lines()
        .map(hex)
        .collect()
}

/// Line by line, so that the first difference is seen.
fn same(printed: &str, expected: &str) {
    for (number, (printed, expected)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(printed, expected, "line {}", number + 1);
    }
    assert_eq!(printed.trim_end().len(), expected.trim_end().len());
}

#[test]
fn each_record_is_what_sflowtool_prints() {
    let columns: Vec<String> = COLUMNS.split(',').map(str::to_owned).collect();
    let formats = [
        (Format::Line, include_str!("sflowtool/records.line.txt")),
        (Format::Text, include_str!("sflowtool/records.txt")),
        (Format::Json, include_str!("sflowtool/records.json.txt")),
        (
            Format::Columns(&columns),
            include_str!("sflowtool/columns.txt"),
        ),
    ];
    for (format, expected) in formats {
        let mut printed = String::new();
        for datagram in records() {
            let (output, error) = print(format, &datagram);
            assert_eq!(error, None, "{output}");
            printed += &output;
        }
        // Behind each MAC of a list sflowtool has a space.
        same(
            &printed,
            &expected.replace("\" ,", "\",").replace("\" ]", "\"]"),
        );
    }
    let last = records().pop().unwrap();
    same(
        &print(Format::PrettyJson, &last).0,
        include_str!("sflowtool/pretty.txt"),
    );
}

/// Counters 0:2200 in full, and strings that are empty.
#[test]
fn empty_strings_and_old_counters_are_what_sflowtool_prints() {
    let formats = [
        (Format::Text, include_str!("sflowtool/more.txt")),
        (Format::Json, include_str!("sflowtool/more.json.txt")),
    ];
    for (format, expected) in formats {
        let mut printed = String::new();
        for datagram in include_str!("sflowtool/more.hex").lines().map(hex) {
            let (output, error) = print(format, &datagram);
            assert_eq!(error, None, "{output}");
            printed += &output;
        }
        same(&printed, expected);
    }
}

const COLUMNS: &str = "srcIP,dstIP,inputPort,ifName,nextHop,in_vlan,unixSecondsUTC,agent,discardReason,\
    discarded_srcIP,hostname,cpu_load_one,dst_as_path,tunnel_ipv4_in_srcIP,headerBytes";

#[test]
fn lines_for_grep_say_where_they_stand() {
    let last = records().pop().unwrap();
    let (text, _) = print(Format::Text, &last);
    let (grep, _) = print(Format::Grep, &last);
    assert_eq!(text.lines().count(), grep.lines().count());
    let start = "1970-01-01T00:00:00+0000 192.0.2.1 7 258 ";
    for (plain, placed) in text.lines().zip(grep.lines()) {
        assert!(
            placed.starts_with(start) && placed.ends_with(&format!(" {plain}")),
            "{placed}"
        );
    }
    for line in [
        "0:0 0:0 0:0 datagramVersion 5",
        "0:3 0:3 0:1 srcIP 192.0.2.1",
        "0:3 0:3 0:1002 nextHop 192.0.2.254",
        "0:3 0:4 0:1005 ifName xe0",
    ] {
        assert_eq!(
            grep.lines()
                .filter(|placed| placed.strip_prefix(start) == Some(line))
                .count(),
            1,
            "{line} in {grep}"
        );
    }
}

#[test]
fn lines_have_the_vlans_of_both_sides() {
    let header = hex(
        "020000000002020000000001810000640800450000200000400040110000c0000201c63364021389177000080000",
    );
    let vlans = |switch: Option<(u32, u32)>| {
        let mut builder =
            DatagramBuilder::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, Encoding::Expanded);
        let port = Port::interface(1);
        let sample = FlowSample {
            sequence: 1,
            source: Source::interface(1),
            rate: 1,
            pool: 1,
            drops: 0,
            input: port,
            output: port,
        };
        let raw = FlowRecord::RawHeader(RawHeader {
            protocol: 1,
            frame_length: 200,
            stripped: 4,
            header: &header,
        });
        let (source_vlan, destination_vlan) = switch.unwrap_or_default();
        let switched = ExtendedSwitch {
            source_vlan,
            source_priority: 3,
            destination_vlan,
            destination_priority: 4,
        };
        let records = [raw, FlowRecord::Switch(switched)];
        let records = if switch.is_some() {
            &records[..]
        } else {
            &records[..1]
        };
        assert_eq!(builder.flow_sample(&sample, records), Ok(Fit::Added));
        let (line, error) = print(Format::Line, builder.finish(1, 1));
        assert_eq!(error, None);
        line.split(',')
            .skip(7)
            .take(2)
            .collect::<Vec<_>>()
            .join(",")
    };
    assert_eq!(vlans(None), "100,0");
    assert_eq!(vlans(Some((100, 200))), "100,200");
    // Seen going out, and to nobody knows where.
    assert_eq!(vlans(Some((0, 100))), "0,100");
    assert_eq!(
        vlans(Some((100, ExtendedSwitch::UNKNOWN))),
        "100,4294967295"
    );
}

#[test]
fn columns_with_commas_are_quoted() {
    let mut builder = DatagramBuilder::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, Encoding::Expanded);
    let sample = CountersSample {
        sequence: 1,
        source: Source::interface(1),
    };
    assert_eq!(
        builder.counters_sample(&sample, &[CounterRecord::PortName("a,\"b\"\n")]),
        Ok(Fit::Added)
    );
    let (line, _) = print(
        Format::Columns(&["agent".into(), "ifName".into()]),
        builder.finish(1, 1),
    );
    assert_eq!(line, "127.0.0.1,\"a,\"\"b\"\"\\u{a}\"\n");
}

/// Text of the fields, and remarks left out.
fn fields<'a>(text: &'a str, names: &[&str]) -> Vec<&'a str> {
    text.lines()
        .filter(|line| {
            names
                .iter()
                .any(|name| line.starts_with(&format!("{name} ")))
        })
        .collect()
}

fn sampled(protocol: u32, header: &str) -> String {
    let mut builder = DatagramBuilder::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, Encoding::Expanded);
    let port = Port::interface(1);
    let sample = FlowSample {
        sequence: 1,
        source: Source::interface(1),
        rate: 1,
        pool: 1,
        drops: 0,
        input: port,
        output: port,
    };
    let header = hex(&header.replace(' ', ""));
    let raw = RawHeader {
        protocol,
        frame_length: 200,
        stripped: 4,
        header: &header,
    };
    assert_eq!(
        builder.flow_sample(&sample, &[FlowRecord::RawHeader(raw)]),
        Ok(Fit::Added)
    );
    let (text, error) = print(Format::Text, builder.finish(1, 1));
    assert_eq!(error, None);
    text
}

const MACS: &str = "020000000002 020000000001";
const V4: &str = "4500 0020 0000 4000 40 11 0000 c0000201 c6336402";
const V6: &str =
    "60000000 000c 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002";
const UDP: &str = "1389 18c7 000c 0000 deadbeef";

#[test]
fn labels_sessions_and_tunnels_are_looked_behind() {
    // 16.3.0.63 and 17.0.1.64, then IPv4.
    let text = sampled(1, &format!("{MACS} 8847 0001063f 00011140 {V4} {UDP}"));
    assert_eq!(
        fields(&text, &["MPLS_stack", "srcIP", "UDPDstPort", "IPSize"]),
        [
            "MPLS_stack 16.3.0.63-17.0.1.64",
            "IPSize 174",
            "srcIP 192.0.2.1",
            "UDPDstPort 6343",
        ]
    );
    let text = sampled(13, &format!("00011140 {V6} {UDP}"));
    assert_eq!(
        fields(&text, &["MPLS_stack", "srcIP6", "NO_DECODE"]),
        [
            "MPLS_stack 17.0.1.64",
            "srcIP6 2001:0db8:0000:0000:0000:0000:0000:0001",
        ]
    );
    let text = sampled(1, &format!("{MACS} 8864 1100 002a 0022 0021 {V4} {UDP}"));
    assert_eq!(
        fields(&text, &["PPPoE_session", "srcIP", "UDPSrcPort"]),
        ["PPPoE_session 42", "srcIP 192.0.2.1", "UDPSrcPort 5001"]
    );
    // GRE with checksum, key and sequence; IPv6 inside.
    let gre = V4.replacen("40 11", "40 2f", 1);
    let text = sampled(
        11,
        &format!("{gre} b000 86dd 00000000 0000002a 00000001 {V6} {UDP}"),
    );
    assert_eq!(
        fields(
            &text,
            &[
                "srcIP",
                "GRE_protocol",
                "GRE_key",
                "inner_srcIP6",
                "inner_UDPDstPort"
            ]
        ),
        [
            "srcIP 192.0.2.1",
            "GRE_protocol 34525",
            "GRE_key 42",
            "inner_srcIP6 2001:0db8:0000:0000:0000:0000:0000:0001",
            "inner_UDPDstPort 6343",
        ]
    );
    // VXLAN in IPv4: Ethernet, a tag, IPv4 inside; and GRE inside of that.
    let text = sampled(
        1,
        &format!(
            "{MACS} 0800 {V4} c000 12b5 0040 0000 08000000 00303900 {MACS} 8100 0064 0800 {gre} 0000 0800 {V4} {UDP}"
        ),
    );
    assert_eq!(
        fields(
            &text,
            &[
                "UDPDstPort",
                "VXLAN_VNI",
                "inner_decodedVLAN",
                "inner_srcIP",
                "inner_GRE_protocol",
                "inner2_srcIP"
            ]
        ),
        [
            "UDPDstPort 4789",
            "VXLAN_VNI 12345",
            "inner_decodedVLAN 100",
            "inner_srcIP 192.0.2.1",
            "inner_GRE_protocol 2048",
            "inner2_srcIP 192.0.2.1",
        ]
    );
    // Pseudowire with a control word, and IPv4 in IPv6.
    let text = sampled(
        1,
        &format!("{MACS} 8847 00011140 00000000 {MACS} 0800 {V4} {UDP}"),
    );
    assert_eq!(
        fields(
            &text,
            &["MPLS_stack", "srcIP", "inner_srcMAC", "inner_srcIP"]
        ),
        [
            "MPLS_stack 17.0.1.64",
            "inner_srcMAC 020000000001",
            "inner_srcIP 192.0.2.1",
        ]
    );
    let text = sampled(
        12,
        &format!("{} {V4} {UDP}", V6.replacen("11 40", "04 40", 1)),
    );
    assert_eq!(
        fields(&text, &["srcIP6", "inner_srcIP"]),
        [
            "srcIP6 2001:0db8:0000:0000:0000:0000:0000:0001",
            "inner_srcIP 192.0.2.1"
        ]
    );
}

#[test]
fn tunnels_without_end_end() {
    let nested = V4.replacen("40 11", "40 04", 1).repeat(9);
    let text = sampled(11, &nested);
    assert_eq!(
        text.lines().filter(|line| line.contains("srcIP ")).count(),
        5
    );
    // A label stack without a bottom, and of more labels than anybody has.
    let text = sampled(13, &"00011040".repeat(40));
    assert_eq!(fields(&text, &["MPLS_stack"])[0].split('-').count(), 8);
}

/// What sflowtool prints for datagrams of versions 2 and 4, but for what the two versions have no name
/// for in version 5.
#[test]
fn the_old_versions_have_the_same_content() {
    for (datagram, expected) in include_str!("sflowtool/old.hex").lines().zip(
        include_str!("sflowtool/old.txt")
            .split_inclusive("endDatagram   =================================\n"),
    ) {
        let (text, error) = print(Format::Text, &hex(datagram));
        assert_eq!(error, None);
        let only_there = [
            "statsSamplingInterval",
            "counterBlockVersion",
            "dst_as_path_len",
        ];
        let only_here = [
            "agentSubId",
            "flowBlock_tag",
            "counterBlock_tag",
            "strippedBytes",
            "bgp_nexthop",
            "src_user_charset",
            "dst_user_charset",
            "BGP_localpref 0",
        ];
        let without = |text: &str, names: &[&str]| {
            let mut lines: Vec<String> = text
                .lines()
                .filter(|line| !names.iter().any(|name| line.starts_with(name)))
                .map(str::to_owned)
                .collect();
            // Version 2's path stands behind its ends there.
            lines.sort_unstable();
            lines
        };
        assert_eq!(without(&text, &only_here), without(expected, &only_there));
    }
}

#[test]
fn old_datagrams_that_end_early_keep_what_came_before() {
    for datagram in include_str!("sflowtool/old.hex").lines().map(hex) {
        let whole = print(Format::Text, &datagram)
            .0
            .matches("startSample")
            .count();
        assert_eq!(whole, 4);
        for len in 0..datagram.len() {
            let (text, error) = print(Format::Text, &datagram[..len]);
            assert!(error.is_some(), "cut to {len}");
            assert!(text.matches("startSample").count() < whole);
        }
    }
}

#[test]
fn times_and_mapped_addresses_are_shown_as_such() {
    let mut output = Vec::new();
    let mapped = IpAddr::V6(Ipv4Addr::new(198, 51, 100, 7).to_ipv6_mapped());
    decode_datagram_to(
        &mut output,
        Format::Text,
        mapped,
        1_700_000_000_123_456_789,
        &datagrams()[0],
    )
    .unwrap();
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
    let sample = CountersSample {
        sequence: 1,
        source: Source::interface(1),
    };
    let name = CounterRecord::PortName("a\"b\\c\nsrcIP 6.6.6.6\u{1b}[31m");
    assert_eq!(builder.counters_sample(&sample, &[name]), Ok(Fit::Added));
    let datagram = builder.finish(1, 1).to_vec();
    let (text, _) = print(Format::Text, &datagram);
    assert!(
        text.contains("\nifName a\"b\\c\\u{a}srcIP 6.6.6.6\\u{1b}[31m\n"),
        "{text}"
    );
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
    assert_eq!(
        error,
        Some(format!(
            "malformed sFlow at octet 152: sample 0:4 of 132 octets, but {left} are left"
        ))
    );
    assert!(
        text.contains("UDPBytes 12\nendSample   ----------------------\nendDatagram   ===="),
        "{text}"
    );
    let (line, _) = print(Format::Line, &whole[..280]);
    assert_eq!(line.lines().count(), 1);
    // A header that lies about its length takes its record away, and in lines the sample.
    let mut lying = whole.clone();
    lying[28 + 8 + 44 + 8 + 12..][..4].copy_from_slice(&[0xff; 4]);
    let (line, error) = print(Format::Line, &lying);
    assert!(
        error
            .unwrap()
            .contains("sampled header needs 4294967295 octets, but 48 are left")
    );
    assert!(
        line.starts_with("CNTR,") && line.lines().count() == 1,
        "{line}"
    );
    // Without a header there is nothing to print.
    for len in 0..28 {
        let (text, error) = print(Format::Json, &whole[..len]);
        assert!(text.is_empty() && error.is_some());
    }
}

#[test]
fn an_output_that_is_gone_is_distinguished_from_damage() {
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
        assert!(
            matches!(result, Err(PrintError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
        );
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
                [b'\\', b'u', a, b, c, d, rest @ ..]
                    if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                {
                    rest
                }
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
            b'{' => items(&rest[1..], b'}', |rest| {
                value(string(rest)?.strip_prefix(b":")?)
            }),
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
