//! Capture files made by hand from the formats' specifications, and damaged in every place.

use std::io::{self, Cursor, Read};

use weir_pcap::file::{Captured, ETHERNET, FileError, LINUX_SLL, LINUX_SLL2, RAW, Reader, Writer};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn read(bytes: Vec<u8>) -> Result<Vec<Captured>, FileError> {
    Reader::new(Cursor::new(bytes))?.collect()
}

fn captured(timestamp_ns: u64, orig_len: u32, data: &[u8], linktype: u32) -> Captured {
    Captured {
        timestamp_ns,
        orig_len,
        data: data.to_vec(),
        linktype,
    }
}

#[test]
fn the_writers_bytes_are_the_specifications() {
    let mut writer = Writer::new(Vec::new(), LINUX_SLL2).unwrap();
    writer.write(1_000_000_002, 1518, &[1, 2, 3]).unwrap();
    let expected = hex("4d3cb2a1 0200 0400 00000000 00000000 00000400 14010000 \
         01000000 02000000 03000000 ee050000 010203");
    assert_eq!(writer.into_inner(), expected);
    assert_eq!(
        read(expected).unwrap(),
        [captured(1_000_000_002, 1518, &[1, 2, 3], LINUX_SLL2)]
    );
    let late = Writer::new(Vec::new(), RAW)
        .unwrap()
        .write(u64::MAX, 0, &[]);
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    let little =
        "0200 0400 00000000 00000000 ffff0000 01000000 01000000 02000000 01000000 05000000 aa";
    let big =
        "0002 0004 00000000 00000000 0000ffff 00000071 00000001 00000002 00000001 00000005 aa";
    let cases = [
        (format!("d4c3b2a1 {little}"), 1_000_002_000, ETHERNET),
        (format!("4d3cb2a1 {little}"), 1_000_000_002, ETHERNET),
        (format!("a1b2c3d4 {big}"), 1_000_002_000, LINUX_SLL),
        (format!("a1b23c4d {big}"), 1_000_000_002, LINUX_SLL),
        // Four octets of FCS announced beside the link type.
        (
            format!("d4c3b2a1 {}", little.replacen("01000000", "01000044", 1)),
            1_000_002_000,
            ETHERNET,
        ),
    ];
    for (text, time, linktype) in cases {
        assert_eq!(
            read(hex(&text)).unwrap(),
            [captured(time, 5, &[0xaa], linktype)],
            "{text}"
        );
    }
}

const SECTION: &str = "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000";

/// Interface description with a link type and, where given, the options' octets.
fn interface(linktype: &str, options: &str) -> String {
    let len = format!("{:02x}000000", 20 + hex(options).len());
    format!("01000000 {len} {linktype} 0000 00000400 {options} {len}")
}

/// Enhanced packet of five octets.
fn enhanced(interface: u8, time: &str) -> String {
    format!(
        "06000000 28000000 {interface:02x}000000 {time} 05000000 09000000 0102030405 000000 28000000"
    )
}

/// A file with all that is read and some of what is not.
fn pcapng() -> Vec<u8> {
    hex(&[
        SECTION.to_owned(),
        // Microseconds; nanoseconds and an hour's offset; units of 1/1024 s.
        interface("0100", ""),
        interface(
            "6500",
            "0900 0100 09000000 0e00 0800 100e000000000000 0000 0000",
        ),
        interface("7100", "0900 0100 8a000000 0000 0000"),
        enhanced(0, "00000000 40420f00"),
        enhanced(1, "01000000 00000000"),
        // Statistics of an interface.
        "05000000 18000000 00000000 00000000 00000000 18000000".to_owned(),
        enhanced(2, "00000000 00060000"),
        // A simple packet of six octets, all there.
        "03000000 18000000 06000000 010203040506 0000 18000000".to_owned(),
        // A second section forgets the interfaces.
        SECTION.to_owned(),
        interface("1401", ""),
        enhanced(0, "00000000 01000000"),
    ]
    .concat())
}

#[test]
fn pcapng_is_read_with_several_interfaces_and_sections() {
    let five = [1, 2, 3, 4, 5];
    let expected = [
        captured(1_000_000_000, 9, &five, ETHERNET),
        captured((1 << 32) + 3_600_000_000_000, 9, &five, RAW),
        captured(1_500_000_000, 9, &five, LINUX_SLL),
        captured(0, 6, &[1, 2, 3, 4, 5, 6], ETHERNET),
        captured(1000, 9, &five, LINUX_SLL2),
    ];
    assert_eq!(read(pcapng()).unwrap(), expected);
    let unknown = hex(&[
        SECTION.to_owned(),
        interface("0100", ""),
        enhanced(1, "00000000 00000000"),
    ]
    .concat());
    assert!(matches!(read(unknown), Err(FileError::UnknownInterface(1))));
}

fn pcap() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
    for number in 1..=5_u8 {
        writer.write(number.into(), 64, &[number; 20]).unwrap();
    }
    writer.into_inner()
}

#[test]
fn every_truncation_is_an_error_unless_it_is_between_packets() {
    for (whole, ends) in [(pcap(), 6), (pcapng(), 12)] {
        let all = read(whole.clone()).unwrap();
        let mut proper_ends = 0;
        for len in 0..whole.len() {
            let mut packets = Vec::new();
            let result = Reader::new(Cursor::new(whole[..len].to_vec())).map(|reader| {
                let results: Vec<_> = reader.collect();
                let errors = results.iter().filter(|result| result.is_err()).count();
                packets.extend(results.into_iter().flatten());
                errors
            });
            assert!(
                all.starts_with(&packets) && packets.len() < all.len(),
                "cut to {len}"
            );
            proper_ends += usize::from(matches!(result, Ok(0)));
        }
        // After the file's header and after each block but the last.
        assert_eq!(proper_ends, ends - 1);
    }
}

#[test]
fn every_octet_overwritten_is_survived() {
    for whole in [pcap(), pcapng()] {
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff, whole[at] ^ 1, whole[at] ^ 4] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Ok(reader) = Reader::new(Cursor::new(damaged)) {
                    assert!(reader.count() <= 8, "octet {at} = {value:#x}");
                }
            }
        }
    }
}

#[test]
fn lengths_that_lie_take_no_memory() {
    let head = "4d3cb2a1 0200 0400 00000000 00000000 00000400 01000000 00000000 00000000";
    let lying = hex(&format!("{head} ffffffff ffffffff 00"));
    assert!(matches!(
        read(lying),
        Err(FileError::Truncated | FileError::TooLarge)
    ));
    // Where the octets never end, the limit does it.
    let endless = Cursor::new(hex(&format!("{head} ffffffff ffffffff"))).chain(io::repeat(0));
    let mut reader = Reader::new(endless).unwrap();
    assert!(matches!(reader.next(), Some(Err(FileError::TooLarge))));
    assert!(reader.next().is_none());
}

#[test]
fn large_packets_and_pipes_that_give_little_are_read() {
    struct Drip(Cursor<Vec<u8>>);
    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(7);
            self.0.read(&mut buffer[..len])
        }
    }
    let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
    let large = vec![7; 300_000];
    for number in 0..20 {
        writer.write(number, 300_000, &large).unwrap();
        writer.write(number, 9, &[1; 9]).unwrap();
    }
    let packets: Vec<_> = Reader::new(Drip(Cursor::new(writer.into_inner())))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(packets.len(), 40);
    assert!(
        packets
            .iter()
            .step_by(2)
            .all(|packet| packet.data.len() == 262_144 && packet.orig_len == 300_000)
    );
    assert!(
        packets
            .iter()
            .skip(1)
            .step_by(2)
            .all(|packet| packet.data == [1; 9])
    );
}

#[test]
fn what_the_system_says_is_passed_on() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let head = pcap();
            if self.0 == head.len() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            buffer[0] = head[self.0];
            self.0 += 1;
            Ok(1)
        }
    }
    let kind = |error| match error {
        FileError::Io(error) => error.kind(),
        other => panic!("{other}"),
    };
    assert_eq!(
        Reader::new(Broken(0)).err().map(kind),
        Some(io::ErrorKind::ConnectionReset)
    );
    assert_eq!(
        Reader::open("/nonexistent/file").err().map(kind),
        Some(io::ErrorKind::NotFound)
    );
    for nothing in ["", "00", "68656c6c6f20776f726c6420616e6420736f206f6e"] {
        assert!(
            matches!(read(hex(nothing)), Err(FileError::NotACapture)),
            "{nothing:?}"
        );
    }
}
