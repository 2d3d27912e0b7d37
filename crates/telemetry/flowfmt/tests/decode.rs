//! The decoder against bytes worked out by hand from the specification, and against damage of every kind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weir_flowfmt::sflow::decode::{
    CounterRecord, Datagram, DecodeError, FlowRecord, Opaque, Problem, Sample,
};
use weir_flowfmt::sflow::{DataFormat, Port, RawHeader, Source};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

const HEAD: &str = "00000005 00000001 c0000201 00000007 00000102 01020304";

/// A sampled header of five octets, three of padding.
const RAW: &str = "00000001 00000018 0000000b 000005ee 00000004 00000005 4500001a bb000000";

const COUNTERS: &str = "00000001 00000058 00000003 00000006 00000002540be400 00000001 00000003 \
    0000000100000002 00000011 00000012 00000013 00000014 00000015 ffffffff \
    0000000300000004 00000021 00000022 00000023 00000024 00000025 00000001";

/// One sample of each known kind, and one unknown.
fn everything() -> Vec<u8> {
    hex(&format!(
        "{HEAD} 00000005 \
         00000001 00000040 00000009 02fffffe 00002710 000186a0 00000002 3fffffff 40000102 00000001 {RAW} \
         00000003 0000005c 0000000a 00000000 80000001 ffffffff 00000000 00000001 \
             00000000 00000003 00000002 00000005 00000002 {RAW} 0113d001 00000008 01020304 05060708 \
         00001005 00000008 11111111 22222222 \
         00000002 0000006c 00000005 00000003 00000001 {COUNTERS} \
         00000004 00000084 00000006 00000000 00000003 00000002 {COUNTERS} 000003ed 0000000c 00000005 7865302f 31000000"
    ))
}

/// Everything a datagram gives, errors among it.
fn walk(bytes: &[u8]) -> (usize, usize, Vec<DecodeError>) {
    let (mut samples, mut records, mut errors) = (0, 0, Vec::new());
    let datagram = match Datagram::decode(bytes) {
        Ok(datagram) => datagram,
        Err(error) => return (0, 0, vec![error]),
    };
    for sample in datagram.samples() {
        samples += usize::from(sample.is_ok());
        let results: Vec<Option<DecodeError>> = match sample {
            Ok(Sample::Flow(_, _, records)) => records.map(Result::err).collect(),
            Ok(Sample::Counters(_, _, records)) => records.map(Result::err).collect(),
            Ok(Sample::Discard(_, records)) => records.map(Result::err).collect(),
            Ok(_) => vec![],
            Err(error) => {
                errors.push(error);
                vec![]
            }
        };
        records += results.iter().filter(|result| result.is_none()).count();
        errors.extend(results.into_iter().flatten());
    }
    assert!(
        samples + records + errors.len() <= bytes.len() / 8 + 2,
        "one step for every eight octets"
    );
    assert!(errors.iter().all(|error| error.offset <= bytes.len()));
    (samples, records, errors)
}

#[test]
fn every_known_sample_is_read() {
    let bytes = everything();
    let datagram = Datagram::decode(&bytes).unwrap();
    assert_eq!(
        datagram.agent,
        Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))
    );
    let header = (
        datagram.sub_agent_id,
        datagram.sequence,
        datagram.uptime_ms,
        datagram.sample_count,
    );
    assert_eq!(header, (7, 0x102, 0x0102_0304, 5));
    let samples: Vec<Sample<'_>> = datagram.samples().map(Result::unwrap).collect();
    let raw = RawHeader {
        protocol: 11,
        frame_length: 1518,
        stripped: 4,
        header: &[0x45, 0, 0, 0x1a, 0xbb],
    };

    let Sample::Flow(format, flow, records) = samples[0] else {
        panic!("{:?}", samples[0])
    };
    assert_eq!(format, DataFormat::FLOW_SAMPLE);
    assert_eq!(
        (flow.sequence, flow.rate, flow.pool, flow.drops),
        (9, 10_000, 100_000, 2)
    );
    assert_eq!(
        flow.source,
        Source {
            class: 2,
            index: 0xff_fffe
        }
    );
    assert_eq!(
        (flow.input, flow.output),
        (Port::INTERNAL, Port::discarded(258))
    );
    assert_eq!(
        records.collect::<Vec<_>>(),
        [Ok(FlowRecord::RawHeader(raw))]
    );

    let Sample::Flow(format, flow, records) = samples[1] else {
        panic!("{:?}", samples[1])
    };
    assert_eq!(format, DataFormat::FLOW_SAMPLE_EXPANDED);
    assert_eq!(
        (flow.sequence, flow.rate, flow.pool, flow.drops),
        (10, u32::MAX, 0, 1)
    );
    assert_eq!(
        flow.source,
        Source {
            class: 0,
            index: 0x8000_0001
        }
    );
    assert_eq!(
        (flow.input, flow.output),
        (Port::interface(3), Port::multiple(5))
    );
    // Datagram's header, the first sample, this one.
    let records_end = 28 + (8 + 0x40) + (8 + 0x5c);
    let unknown = Opaque {
        format: DataFormat {
            enterprise: 4413,
            format: 1,
        },
        length: 8,
        body: &[1, 2, 3, 4, 5, 6, 7, 8],
        offset: records_end - 8,
    };
    assert_eq!(
        records.collect::<Vec<_>>(),
        [
            Ok(FlowRecord::RawHeader(raw)),
            Ok(FlowRecord::Other(unknown))
        ]
    );

    let Sample::Unknown(unknown) = samples[2] else {
        panic!("{:?}", samples[2])
    };
    assert_eq!(
        (unknown.format, unknown.length),
        (
            DataFormat {
                enterprise: 1,
                format: 5
            },
            8
        )
    );

    let Sample::Counters(format, sample, records) = samples[3] else {
        panic!("{:?}", samples[3])
    };
    assert_eq!(
        (format, sample.sequence, sample.source),
        (DataFormat::COUNTERS_SAMPLE, 5, Source::interface(3))
    );
    let compact: Vec<_> = records.map(Result::unwrap).collect();

    let Sample::Counters(format, sample, records) = samples[4] else {
        panic!("{:?}", samples[4])
    };
    assert_eq!(
        (format, sample.sequence),
        (DataFormat::COUNTERS_SAMPLE_EXPANDED, 6)
    );
    let expanded: Vec<_> = records.map(Result::unwrap).collect();
    assert_eq!(expanded, [compact[0], CounterRecord::PortName(b"xe0/1")]);
    let CounterRecord::Interface(counters) = compact[0] else {
        panic!("{:?}", compact[0])
    };
    assert_eq!(
        (counters.index, counters.kind, counters.speed),
        (3, 6, 10_000_000_000)
    );
    assert_eq!(
        (counters.direction, counters.status, counters.promiscuous),
        (1, 3, 1)
    );
    assert_eq!(
        (counters.in_octets, counters.out_octets),
        (0x1_0000_0002, 0x3_0000_0004)
    );
    assert_eq!(
        (
            counters.in_unicast,
            counters.in_multicast,
            counters.in_broadcast
        ),
        (0x11, 0x12, 0x13)
    );
    assert_eq!(
        (
            counters.in_discards,
            counters.in_errors,
            counters.in_unknown_protocols
        ),
        (0x14, 0x15, u32::MAX)
    );
    assert_eq!(
        (
            counters.out_unicast,
            counters.out_multicast,
            counters.out_broadcast
        ),
        (0x21, 0x22, 0x23)
    );
    assert_eq!((counters.out_discards, counters.out_errors), (0x24, 0x25));
}

#[test]
fn agents_may_have_ipv6_or_no_address() {
    let bytes = hex(
        "00000005 00000002 20010db8 00000000 00000000 00000001 00000000 00000001 ffffffff 00000000",
    );
    let agent = Datagram::decode(&bytes).unwrap().agent;
    assert_eq!(
        agent,
        Some(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)))
    );
    let bytes = hex("00000005 00000000 00000000 00000001 ffffffff 00000000");
    let datagram = Datagram::decode(&bytes).unwrap();
    assert_eq!((datagram.agent, datagram.sequence), (None, 1));
}

#[test]
fn each_check_says_what_and_where() {
    let flow = "00000009 02fffffe 00002710 000186a0 00000002 3fffffff 40000102";
    let cases: [(String, usize, Problem); 12] = [
        (
            String::new(),
            0,
            Problem::Truncated {
                field: "version",
                needed: 4,
                left: 0,
            },
        ),
        ("00000004".into(), 0, Problem::Version(4)),
        ("00000005 00000003".into(), 4, Problem::AddressType(3)),
        (
            "00000005 00000001 c00002".into(),
            8,
            Problem::Truncated {
                field: "agent address",
                needed: 4,
                left: 3,
            },
        ),
        (
            format!("{HEAD} 00000002"),
            28,
            Problem::SamplesMissing { missing: 2 },
        ),
        (
            format!("{HEAD} 00000000 01020304"),
            28,
            Problem::BehindSamples(4),
        ),
        (
            format!("{HEAD} 00000001 00001007 fffffffd 00000000"),
            28,
            Problem::SampleLength {
                format: DataFormat {
                    enterprise: 1,
                    format: 7,
                },
                length: u32::MAX - 2,
                left: 4,
            },
        ),
        (
            format!("{HEAD} 00000001 00000001 00000008 00000001 00000002"),
            44,
            Problem::Truncated {
                field: "sampling rate",
                needed: 4,
                left: 0,
            },
        ),
        (
            format!("{HEAD} 00000001 00000001 00000020 {flow} ffffffff"),
            68,
            Problem::RecordsMissing { missing: u32::MAX },
        ),
        (
            format!("{HEAD} 00000001 00000001 00000024 {flow} 00000000 00000000"),
            68,
            Problem::BehindRecords(4),
        ),
        (
            format!("{HEAD} 00000001 00000001 0000002c {flow} 00000001 00000001 00000005 00000000"),
            68,
            Problem::RecordLength {
                format: DataFormat::RAW_HEADER,
                length: 5,
                left: 4,
            },
        ),
        (
            format!(
                "{HEAD} 00000001 00000001 0000003c {flow} 00000001 00000001 00000014 \
                 00000001 00000040 00000004 00000005 01020304"
            ),
            92,
            Problem::Truncated {
                field: "sampled header",
                needed: 5,
                left: 4,
            },
        ),
    ];
    for (text, offset, problem) in cases {
        assert_eq!(
            walk(&hex(&text)).2,
            [DecodeError { offset, problem }],
            "{text}"
        );
    }
    let error = DecodeError {
        offset: 28,
        problem: Problem::SamplesMissing { missing: 2 },
    };
    assert_eq!(
        error.to_string(),
        "malformed sFlow at octet 28: ends where 2 more samples are announced"
    );
}

#[test]
fn a_bad_record_costs_itself_only() {
    // The first record's header claims to be 4 GiB; the second is good; then comes a good sample.
    let bytes = hex(&format!(
        "{HEAD} 00000002 \
         00000001 00000058 00000009 00000001 00002710 000186a0 00000002 00000003 00000004 00000002 \
           00000001 00000010 00000001 00000040 00000004 ffffffff {RAW} \
         00000002 0000006c 00000005 00000003 00000001 {COUNTERS}"
    ));
    let (samples, records, errors) = walk(&bytes);
    assert_eq!((samples, records), (2, 2));
    assert_eq!(errors.len(), 1);
    // A sample too short for its fixed part, then a good one.
    let bytes = hex(&format!(
        "{HEAD} 00000002 00000001 00000004 00000009 00000002 0000006c 00000005 00000003 00000001 {COUNTERS}"
    ));
    let (samples, records, errors) = walk(&bytes);
    assert_eq!((samples, records, errors.len()), (1, 1, 1));
}

#[test]
fn records_longer_than_known_and_unaligned_lengths_are_accepted() {
    // Interface counters with eight octets more; a raw header whose length leaves the padding out.
    let bytes = hex(&format!(
        "{HEAD} 00000002 \
         00000002 00000074 00000005 00000003 00000001 {} aaaaaaaa bbbbbbbb \
         00000001 0000003d 00000009 00000001 00002710 000186a0 00000002 00000003 00000004 00000001 {}",
        COUNTERS.replacen("00000058", "00000060", 1),
        RAW.replacen("00000018", "00000015", 1),
    ));
    assert_eq!(walk(&bytes), (2, 2, vec![]));
    // The same where even the datagram ends without the padding.
    assert_eq!(walk(&bytes[..bytes.len() - 3]), (2, 2, vec![]));
}

#[test]
fn every_truncation_gives_an_error_and_no_more_than_was_there() {
    let bytes = everything();
    let whole = walk(&bytes);
    assert_eq!(whole, (5, 6, vec![]));
    for len in 0..bytes.len() {
        // The last three octets are padding of the last record, but the lengths around it count them.
        let (samples, records, errors) = walk(&bytes[..len]);
        assert!(!errors.is_empty(), "cut to {len}");
        assert!(
            samples < whole.0 && records < whole.1,
            "cut to {len}: {samples} samples, {records} records"
        );
    }
}

#[test]
fn every_word_overwritten_is_survived() {
    let bytes = everything();
    let (samples, records, _) = walk(&bytes);
    for at in (0..bytes.len()).step_by(4) {
        let original = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let near = [
            original.wrapping_sub(1),
            original.wrapping_add(1),
            original ^ 4,
            original ^ 0x8000_0000,
        ];
        for value in [
            0,
            1,
            2,
            3,
            4,
            5,
            7,
            8,
            0xff,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            u32::MAX - 3,
            u32::MAX,
        ]
        .into_iter()
        .chain(near)
        {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&value.to_be_bytes());
            let (got_samples, got_records, errors) = walk(&damaged);
            // More can appear only where a count or length was changed into one that contradicts others.
            assert!(
                (got_samples <= samples && got_records <= records) || !errors.is_empty(),
                "word at {at} = {value:#x}"
            );
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        walk(&bytes);
    }

    #[test]
    fn random_words_behind_a_good_header_are_survived(words in proptest::collection::vec(prop_oneof![0_u32..12, any::<u32>(), Just(1005), (0_u32..64).prop_map(|n| n * 4)], 0..200)) {
        let mut bytes = hex(HEAD);
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        walk(&bytes);
    }

    #[test]
    fn damaged_datagrams_are_survived(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = everything();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        walk(&bytes);
    }
}
