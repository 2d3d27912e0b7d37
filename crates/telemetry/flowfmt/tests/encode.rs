//! The encoder against bytes worked out by hand from the specification, and at the edges of its room.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_flowfmt::sflow::encode::{
    CounterRecord, DatagramBuilder, EncodeError, Encoding, Fit, FlowRecord,
};
use weir_flowfmt::sflow::{
    CountersSample, DataFormat, FlowSample, InterfaceCounters, Port, RawHeader, Source,
};

const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn flow() -> FlowSample {
    FlowSample {
        sequence: 9,
        source: Source { class: 0, index: 3 },
        rate: 10_000,
        pool: 100_000,
        drops: 2,
        input: Port::interface(3),
        output: Port::interface(4),
    }
}

/// Fourteen bytes, so that two of padding follow.
const HEADER: [u8; 14] = [0x02, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x02, 0x88, 0xb5];

fn raw(header: &[u8]) -> FlowRecord<'_> {
    FlowRecord::RawHeader(RawHeader {
        protocol: RawHeader::ETHERNET,
        frame_length: 64,
        stripped: 4,
        header,
    })
}

fn counters() -> InterfaceCounters {
    InterfaceCounters {
        index: 3,
        kind: 6,
        speed: 10_000_000_000,
        direction: 1,
        status: 3,
        in_octets: 0x0000_0001_0000_0002,
        in_unicast: 0x11,
        in_multicast: 0x12,
        in_broadcast: 0x13,
        in_discards: 0x14,
        in_errors: 0x15,
        in_unknown_protocols: u32::MAX,
        out_octets: 0x0000_0003_0000_0004,
        out_unicast: 0x21,
        out_multicast: 0x22,
        out_broadcast: 0x23,
        out_discards: 0x24,
        out_errors: 0x25,
        promiscuous: 1,
    }
}

#[test]
fn an_expanded_flow_sample_is_these_bytes() {
    let mut builder = DatagramBuilder::new(AGENT, 7, Encoding::Expanded);
    assert_eq!(
        builder.flow_sample(&flow(), &[raw(&HEADER)]),
        Ok(Fit::Added)
    );
    let expected = hex(
        "00000005 00000001 c0000201 00000007 00000102 01020304 00000001 \
         00000003 00000054 \
           00000009 00000000 00000003 00002710 000186a0 00000002 \
           00000000 00000003 00000000 00000004 00000001 \
           00000001 00000020 00000001 00000040 00000004 0000000e \
             02000000 00010200 00000002 88b50000",
    );
    assert_eq!(builder.finish(0x102, 0x0102_0304), expected);
}

#[test]
fn a_compact_flow_sample_is_these_bytes() {
    let mut builder = DatagramBuilder::new(AGENT, 7, Encoding::Compact);
    // An ACL's discard is 0x40000102 (specification's errata).
    let sample = FlowSample {
        source: Source {
            class: 3,
            index: 0xff_fffe,
        },
        output: Port::discarded(258),
        ..flow()
    };
    assert_eq!(
        builder.flow_sample(&sample, &[raw(&HEADER)]),
        Ok(Fit::Added)
    );
    let expected = hex(
        "00000005 00000001 c0000201 00000007 00000001 00000000 00000001 \
         00000001 00000048 \
           00000009 03fffffe 00002710 000186a0 00000002 00000003 40000102 00000001 \
           00000001 00000020 00000001 00000040 00000004 0000000e \
             02000000 00010200 00000002 88b50000",
    );
    assert_eq!(builder.finish(1, 0), expected);
}

/// Body of counter record 0:1 as [`counters`] has it.
const COUNTERS: &str = "00000003 00000006 00000002540be400 00000001 00000003 \
    0000000100000002 00000011 00000012 00000013 00000014 00000015 ffffffff \
    0000000300000004 00000021 00000022 00000023 00000024 00000025 00000001";

#[test]
fn counters_samples_are_these_bytes_and_the_agent_may_have_ipv6() {
    let agent = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    let sample = CountersSample {
        sequence: 5,
        source: Source::interface(3),
    };
    for (encoding, head) in [
        (
            Encoding::Expanded,
            "00000004 00000084  00000005 00000000 00000003 00000002",
        ),
        (
            Encoding::Compact,
            "00000002 00000080  00000005 00000003 00000002",
        ),
    ] {
        let mut builder = DatagramBuilder::new(agent, 0, encoding);
        let counters = counters();
        let records = [
            CounterRecord::Interface(&counters),
            CounterRecord::PortName("xe0/1"),
        ];
        assert_eq!(builder.counters_sample(&sample, &records), Ok(Fit::Added));
        let expected = hex(&format!(
            "00000005 00000002 20010db8 00000000 00000000 00000001 00000000 00000001 ffffffff 00000001 \
             {head} 00000001 00000058 {COUNTERS} 000003ed 0000000c 00000005 7865302f 31000000"
        ));
        assert_eq!(builder.finish(1, u32::MAX), expected);
    }
}

#[test]
fn a_record_without_a_variant_goes_through() {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
    let other = FlowRecord::Other(
        DataFormat {
            enterprise: 4413,
            format: 1,
        },
        &[1, 2, 3, 4, 5],
    );
    assert_eq!(
        builder.flow_sample(&flow(), &[raw(&HEADER), other]),
        Ok(Fit::Added)
    );
    let datagram = builder.finish(1, 1).to_vec();
    assert!(datagram.ends_with(&hex("0113d001 00000008 01020304 05000000")));
    // 84 octets as above and 16 more; two records.
    assert_eq!(datagram[32..36], hex("00000064"));
    assert_eq!(datagram[76..80], hex("00000002"));
}

#[test]
fn every_header_length_is_padded_to_four() {
    for len in 0..=256 {
        let header = vec![0xaa; len];
        let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
        assert_eq!(
            builder.flow_sample(&flow(), &[raw(&header)]),
            Ok(Fit::Added)
        );
        let datagram = builder.finish(1, 1);
        assert_eq!(datagram.len(), 28 + 8 + 44 + 8 + 16 + len.div_ceil(4) * 4);
        assert_eq!(
            datagram[100..104],
            u32::try_from(len).unwrap().to_be_bytes()
        );
        assert!(datagram[104..104 + len].iter().all(|byte| *byte == 0xaa));
        assert!(datagram[104 + len..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn what_does_not_fit_leaves_the_datagram_as_it_was() {
    // Header 28, sample with 14 octets of header 8 + 84: 28 + 2 * 92 = 212.
    for (max, room_for) in [(211, 1), (212, 2), (1400, 14)] {
        let mut builder = DatagramBuilder::with_max_len(AGENT, 0, Encoding::Expanded, max);
        for _ in 0..room_for {
            assert_eq!(
                builder.flow_sample(&flow(), &[raw(&HEADER)]),
                Ok(Fit::Added)
            );
        }
        let before = builder.finish(1, 1).to_vec();
        assert_eq!(builder.flow_sample(&flow(), &[raw(&HEADER)]), Ok(Fit::Full));
        assert_eq!(builder.samples(), room_for);
        assert_eq!(builder.finish(1, 1), before);
        assert_eq!(before[24..28], room_for.to_be_bytes());
        builder.clear();
        assert!(builder.is_empty());
        assert_eq!(
            builder.flow_sample(&flow(), &[raw(&HEADER)]),
            Ok(Fit::Added)
        );
        assert_eq!(builder.finish(2, 1).len(), 120);
    }
}

#[test]
fn what_can_never_fit_is_an_error_at_once() {
    let mut builder = DatagramBuilder::with_max_len(AGENT, 0, Encoding::Expanded, 200);
    let header = [0; 256];
    let too_large = Err(EncodeError::TooLarge {
        needed: 28 + 8 + 44 + 24 + 256,
        max: 200,
    });
    assert_eq!(builder.flow_sample(&flow(), &[raw(&header)]), too_large);
    assert_eq!(
        builder.flow_sample(&flow(), &[raw(&HEADER)]),
        Ok(Fit::Added)
    );
    assert_eq!(builder.flow_sample(&flow(), &[raw(&header)]), too_large);
    assert_eq!(builder.finish(1, 1).len(), 120);
}

#[test]
fn compact_refuses_what_it_has_no_bits_for() {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Compact);
    let cases = [
        (
            FlowSample {
                source: Source {
                    class: 0,
                    index: 1 << 24,
                },
                ..flow()
            },
            "source index",
            1 << 24,
        ),
        (
            FlowSample {
                source: Source {
                    class: 256,
                    index: 1,
                },
                ..flow()
            },
            "source class",
            256,
        ),
        (
            FlowSample {
                input: Port::interface(1 << 30),
                ..flow()
            },
            "input interface",
            1 << 30,
        ),
        (
            FlowSample {
                output: Port {
                    format: 4,
                    value: 0,
                },
                ..flow()
            },
            "output interface",
            4,
        ),
    ];
    for (sample, field, value) in cases {
        assert_eq!(
            builder.flow_sample(&sample, &[raw(&HEADER)]),
            Err(EncodeError::NotCompact { field, value })
        );
        assert_eq!((builder.samples(), builder.len()), (0, 28));
    }
    assert_eq!(
        builder.flow_sample(
            &FlowSample {
                input: Port::INTERNAL,
                ..flow()
            },
            &[raw(&HEADER)]
        ),
        Ok(Fit::Added)
    );
}
