//! The encoder before an independent judge: tshark reads what it makes, and sees the same numbers.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::{
    CountersSample, ExtendedMpls, FlowSample, InterfaceCounters, Port, RawHeader, Source, UDP_PORT,
};

/// Ethernet, IPv4, UDP with 18 octets from port 5001 to port 5002.
const SAMPLED: [u8; 60] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2,
    1, 198, 51, 100, 2, 0x13, 0x89, 0x13, 0x8a, 0, 26, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    13, 14, 15, 16, 17, 18,
];

const COUNTERS: InterfaceCounters = InterfaceCounters {
    index: 7,
    kind: 6,
    speed: 25_000_000_000,
    direction: 1,
    status: InterfaceCounters::ADMIN_UP,
    in_octets: 5_000_000_001,
    in_unicast: 11,
    in_multicast: 12,
    in_broadcast: 13,
    in_discards: 14,
    in_errors: 15,
    in_unknown_protocols: 16,
    out_octets: 5_000_000_002,
    out_unicast: 21,
    out_multicast: 22,
    out_broadcast: 23,
    out_discards: 24,
    out_errors: 25,
    promiscuous: 1,
};

/// A datagram of as many flow samples as fit behind one counters sample.
fn full_datagram(agent: &str, encoding: Encoding, output: Port) -> (Vec<u8>, u32) {
    let agent: IpAddr = agent.parse().unwrap();
    let mut builder = DatagramBuilder::new(agent, 4321, encoding);
    let sample = CountersSample {
        sequence: 77,
        source: Source::interface(7),
    };
    let records = [
        CounterRecord::Interface(&COUNTERS),
        CounterRecord::PortName("uplink"),
    ];
    assert_eq!(builder.counters_sample(&sample, &records), Ok(Fit::Added));
    for sequence in 1001.. {
        let sample = FlowSample {
            sequence,
            source: Source::interface(7),
            rate: 12_345,
            pool: 678_901,
            drops: 3,
            input: Port::interface(7),
            output,
        };
        let header = SAMPLED.get(..60 - (sequence % 4) as usize).unwrap();
        let raw = RawHeader {
            protocol: RawHeader::ETHERNET,
            frame_length: 64,
            stripped: 4,
            header,
        };
        if builder.flow_sample(&sample, &[FlowRecord::RawHeader(raw)]) != Ok(Fit::Added) {
            break;
        }
    }
    assert!(
        builder.len() > 1260 && builder.len() <= 1400,
        "{}",
        builder.len()
    );
    let samples = builder.samples();
    (builder.finish(99, 61_001).to_vec(), samples)
}

/// A capture of one UDP packet over Ethernet and IPv4.
fn capture(payload: &[u8]) -> Vec<u8> {
    let udp_len = u16::try_from(8 + payload.len()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend_from_slice(&(20 + udp_len).to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 99, 192, 0, 2, 100]);
    for word in [40_000, UDP_PORT, udp_len, 0] {
        frame.extend_from_slice(&word.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    let len = u32::try_from(frame.len()).unwrap();
    let words = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1, 1, 0, len, len];
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .chain(frame)
        .collect()
}

/// What tshark says about a capture, in full; nothing when there is no tshark.
fn dissect(capture: &[u8]) -> Option<String> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-V", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut tshark = command.spawn().ok()?;
    tshark.stdin.take().unwrap().write_all(capture).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How many lines end so.
fn count(text: &str, ending: &str) -> u32 {
    text.lines()
        .map(|line| u32::from(line.ends_with(ending)))
        .sum()
}

#[test]
fn tshark_reads_both_encodings() {
    let cases = [
        (
            "192.0.2.1",
            Encoding::Expanded,
            Port::interface(9),
            "Expanded flow sample, seq",
            "Output interface value: 9",
        ),
        (
            "2001:db8::1",
            Encoding::Compact,
            Port::interface(9),
            "Flow sample, seq",
            "= Output interface value: 9",
        ),
        (
            "192.0.2.1",
            Encoding::Expanded,
            Port::discarded(258),
            "Expanded flow sample, seq",
            "Output interface value: 258",
        ),
    ];
    for (agent, encoding, output, title, output_line) in cases {
        let (datagram, samples) = full_datagram(agent, encoding, output);
        let Some(text) = dissect(&capture(&datagram)) else {
            eprintln!("skipped: tshark is not installed");
            return;
        };
        for wrong in ["Malformed", "Invalid", "Expert Info", "exception"] {
            assert!(!text.contains(wrong), "{wrong} in {text}");
        }
        let once = [
            format!("Agent address: {agent}"),
            "Sub-agent ID: 4321".into(),
            "(61001ms)".into(),
            format!("NumSamples: {samples}"),
            "Sequence number: 99".into(),
            "Sequence number: 77".into(),
            "Interface index: 7".into(),
            "Interface Type: 6".into(),
            "Interface Speed: 25000000000".into(),
            "Interface Direction: Full-Duplex (1)".into(),
            "IfAdminStatus: Up".into(),
            "IfOperStatus: Down".into(),
            "Input Octets: 5000000001".into(),
            "Input Packets: 11".into(),
            "Input Multicast Packets: 12".into(),
            "Input Broadcast Packets: 13".into(),
            "Input Discarded Packets: 14".into(),
            "Input Errors: 15".into(),
            "Input Unknown Protocol Packets: 16".into(),
            "Output Octets: 5000000002".into(),
            "Output Packets: 21".into(),
            "Output Multicast Packets: 22".into(),
            "Output Broadcast Packets: 23".into(),
            "Output Discarded Packets: 24".into(),
            "Output Errors: 25".into(),
            "Promiscuous Mode: 1".into(),
            "Format: Unknown (1005)".into(),
        ];
        for line in once {
            assert_eq!(count(&text, &line), 1, "{line} in {text}");
        }
        let flows = samples - 1;
        let titles = text
            .lines()
            .filter(|line| line.trim_start().starts_with(title))
            .count();
        assert_eq!(u32::try_from(titles), Ok(flows), "{text}");
        let in_every_flow = [
            "Sampling rate: 1 out of 12345 packets",
            "Sample pool: 678901 total packets",
            "Dropped packets: 3",
            output_line,
            "Header protocol: Ethernet (1)",
            "Frame Length: 64",
            "Payload stripped: 4",
            "Source Port: 5001",
        ];
        for line in in_every_flow {
            assert_eq!(count(&text, line), flows, "{line} in {text}");
        }
        for sequence in 1001..1001 + flows {
            assert_eq!(
                count(&text, &format!("Sequence number: {sequence}")),
                1,
                "{text}"
            );
            let header_len = 60 - sequence % 4;
            assert!(
                count(&text, &format!("Sampled header length: {header_len}")) >= 1,
                "{text}"
            );
        }
    }
}

/// "Empty stack may be returned if values unknown" (0:1006). tshark reads on behind one only where the datagram goes on.
#[test]
fn tshark_reads_label_stacks() {
    let mut builder = DatagramBuilder::new("192.0.2.1".parse().unwrap(), 0, Encoding::Expanded);
    let entry = |label: u32, bottom: u32| label << 12 | bottom << 8 | 64;
    let (two, one) = ([entry(100, 0), entry(200, 1)], [entry(300, 1)]);
    let raw = RawHeader {
        protocol: RawHeader::ETHERNET,
        frame_length: 64,
        stripped: 4,
        header: &SAMPLED,
    };
    let ports = (Port::interface(7), Port::interface(9));
    for (sequence, input, output) in [(1, &two[..], &[][..]), (2, &[], &one), (3, &two, &one)] {
        let sample = FlowSample {
            sequence,
            source: Source::interface(7),
            rate: 1,
            pool: 1,
            drops: 0,
            input: ports.0,
            output: ports.1,
        };
        let labels = ExtendedMpls {
            next_hop: Some("192.0.2.254".parse().unwrap()),
            input,
            output,
        };
        let records = [FlowRecord::RawHeader(raw), FlowRecord::Mpls(labels)];
        assert_eq!(builder.flow_sample(&sample, &records), Ok(Fit::Added));
    }
    let Some(text) = dissect(&capture(builder.finish(1, 1))) else {
        eprintln!("skipped: tshark is not installed");
        return;
    };
    assert!(!text.contains("Malformed"), "{text}");
    for (line, times) in [
        ("In Label Stack Entries: 2".to_owned(), 2),
        ("Out Label Stack Entries: 1".to_owned(), 2),
        ("Out Label Stack Entries: 0".to_owned(), 1),
        (format!("Label 2: {}", two[1]), 2),
        (format!("Label 1: {}", one[0]), 2),
    ] {
        assert_eq!(count(&text, &line), times, "{line} in {text}");
    }
}
