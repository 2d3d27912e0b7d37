//! NetFlow version 5 out of sFlow, byte by byte from the format's description.

use std::net::{IpAddr, Ipv4Addr};

use weir_flowfmt::netflow5::{Converter, Options};
use weir_flowfmt::sflow::decode::Datagram;
use weir_flowfmt::sflow::encode::{DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::records::flow_record;
use weir_flowfmt::sflow::structure::Value;
use weir_flowfmt::sflow::{DataFormat, FlowSample, Port, RawHeader, SampledIpv4, Source};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Ethernet, IPv4 of 100 octets from 192.0.2.1 to 198.51.100.2, TOS 0xb8, TCP 49153 to 443 with SYN.
const TCP: &str = "020000000002 020000000001 0800 45b8 0064 0001 4000 40 06 0000 c0000201 c6336402 \
    c001 01bb 00000001 00000000 5002 ffff 0000 0000";

fn datagram(rate: u32, output: Port, records: &[FlowRecord<'_>], count: u32) -> Vec<u8> {
    let mut builder = DatagramBuilder::with_max_len(
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)),
        0,
        Encoding::Expanded,
        60_000,
    );
    for sequence in 1..=count {
        let sample = FlowSample {
            sequence,
            source: Source::interface(7),
            rate,
            pool: 0,
            drops: 0,
            input: Port::interface(7),
            output,
        };
        assert_eq!(builder.flow_sample(&sample, records), Ok(Fit::Added));
    }
    builder.finish(1, 0x0102_0304).to_vec()
}

fn convert(converter: &mut Converter, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let time = 1_700_000_000_123_456_789;
    let outcome = converter.convert(&Datagram::decode(datagram).unwrap(), time, |packet| {
        packets.push(packet.to_vec());
        Ok::<(), ()>(())
    });
    assert_eq!(outcome, Ok(()));
    packets
}

fn raw(header: &[u8]) -> FlowRecord<'_> {
    FlowRecord::RawHeader(RawHeader {
        protocol: 1,
        frame_length: 118,
        stripped: 4,
        header,
    })
}

#[test]
fn a_sample_becomes_these_bytes() {
    let header = hex(TCP);
    let router = [
        Value::Address(Some(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)))),
        Value::U32(24),
        Value::U32(16),
    ];
    let path = hex("00000002 00000002 0000fdf2 00011170");
    let gateway = [
        Value::Address(Some(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)))),
        Value::U32(65_001),
        Value::U32(65_002),
        Value::U32(65_003),
        Value::List(1, &path),
        Value::Words(&[]),
        Value::U32(100),
    ];
    let structure = |number| flow_record(DataFormat::standard(number)).unwrap();
    let records = [
        raw(&header),
        FlowRecord::Structure(structure(1002), &router),
        FlowRecord::Structure(structure(1003), &gateway),
    ];
    let sent = datagram(1000, Port::interface(9), &records, 1);
    let head = "0005 0001 01020304 6553f100 075bcd15 00000000 0000";
    let flow = |systems: &str| {
        format!(
            "c0000201 c6336402 cb007101 0007 0009 000003e8 000186a0 01020304 01020304 c001 01bb 00 02 06 b8 {systems} 18 10 0000"
        )
    };
    // 70000 does not fit 16 bits: AS_TRANS.
    assert_eq!(
        convert(&mut Converter::new(Options::default()), &sent),
        [hex(&format!("{head} 0000 {}", flow("fdea 5ba0")))]
    );
    let peers = Options {
        peer_as: true,
        unscaled: false,
    };
    assert_eq!(
        convert(&mut Converter::new(peers), &sent),
        [hex(&format!("{head} 0000 {}", flow("fdeb fdf2")))]
    );
    let unscaled = Options {
        unscaled: true,
        peer_as: false,
    };
    let single = flow("fdea 5ba0").replacen("000003e8 000186a0", "00000001 00000064", 1);
    assert_eq!(
        convert(&mut Converter::new(unscaled), &sent),
        [hex(&format!("{head} 43e8 {single}"))]
    );
}

#[test]
fn thirty_flows_a_packet_and_the_sequence_goes_on() {
    let header = hex(TCP);
    let sent = datagram(10, Port::discarded(258), &[raw(&header)], 65);
    let mut converter = Converter::new(Options::default());
    for turn in 0..2 {
        let packets = convert(&mut converter, &sent);
        assert_eq!(
            packets.iter().map(Vec::len).collect::<Vec<_>>(),
            [24 + 30 * 48, 24 + 30 * 48, 24 + 5 * 48]
        );
        let sequences: Vec<u8> = packets.iter().map(|packet| packet[19]).collect();
        assert_eq!(sequences, [65 * turn, 65 * turn + 30, 65 * turn + 60]);
        // A discard is no interface.
        assert!(
            packets
                .iter()
                .all(|packet| packet[24 + 14..24 + 16] == [0, 0])
        );
    }
    assert_eq!(converter.skipped, 0);
}

#[test]
fn headers_as_fields_are_taken_and_what_is_no_ipv4_is_counted() {
    let ipv4 = SampledIpv4 {
        length: 60,
        protocol: 17,
        source: [192, 0, 2, 1],
        destination: [198, 51, 100, 2],
        source_port: 53,
        destination_port: 5000,
        tcp_flags: 0,
        tos: 4,
    };
    let sent = datagram(
        2,
        Port::interface(70_000),
        &[FlowRecord::Structure(
            &SampledIpv4::STRUCTURE,
            &ipv4.values(),
        )],
        1,
    );
    let mut converter = Converter::new(Options::default());
    let packets = convert(&mut converter, &sent);
    assert_eq!(
        packets[0][24..],
        hex(
            "c0000201 c6336402 00000000 0007 0000 00000002 00000078 01020304 01020304 0035 1388 00 00 11 04 0000 0000 00 00 0000"
        )
    );
    let arp = hex("ffffffffffff 020000000001 0806 0001");
    assert!(
        convert(
            &mut converter,
            &datagram(2, Port::interface(1), &[raw(&arp)], 3)
        )
        .is_empty()
    );
    assert_eq!(converter.skipped, 3);
    // So many octets as the field can hold.
    let packets = convert(
        &mut converter,
        &datagram(u32::MAX, Port::interface(1), &[raw(&hex(TCP))], 1),
    );
    assert_eq!(packets[0][24 + 16..24 + 24], [0xff; 8]);
}
