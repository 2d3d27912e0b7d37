//! Capture files and other programs: tshark and tcpdump read what we write, with every time and
//! length, and bytes that mean nothing are survived.

use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;

use proptest::prelude::*;
use weir_pcap::file::{Captured, ETHERNET, Reader, Writer};

/// A file that goes away with the test.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A hundred frames of 60 to 159 bytes, a nanosecond apart; every tenth was 10 bytes longer.
fn written(name: &str) -> Place {
    let place =
        Place(std::env::temp_dir().join(format!("weir-pcap-{}-{name}.pcap", std::process::id())));
    let mut writer = Writer::create(&place.0, ETHERNET).unwrap();
    for number in 0..100 {
        let mut frame = vec![number as u8; 60 + number as usize];
        // The ethertype for local experiments (IEEE 802): small numbers would be taken for lengths.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        writer
            .write(1_700_000_000_000_000_001 + number, length(number), &frame)
            .unwrap();
    }
    writer.flush().unwrap();
    place
}

fn length(number: u64) -> u32 {
    number as u32 + if number.is_multiple_of(10) { 70 } else { 60 }
}

/// What a program prints; `None`, and a line about it, when this machine lacks it.
fn output(program: &str, arguments: &[&str], file: &Place) -> Option<String> {
    let Ok(output) = Command::new(program)
        .args(arguments)
        .arg("-r")
        .arg(&file.0)
        .output()
    else {
        eprintln!("skipped: no {program}");
        return None;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_reads_what_we_write() {
    let file = written("tshark");
    // Delta to the first frame: not written in a different way from version to version.
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_relative",
        "-e",
        "frame.len",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.encap_type",
    ];
    let Some(text) = output("tshark", &fields, &file) else {
        return;
    };
    let expected: String = (0..100)
        .map(|number| format!("0.{number:09}\t{}\t{}\t1\n", length(number), 60 + number))
        .collect();
    assert_eq!(text, expected);
}

#[test]
fn tcpdump_reads_what_we_write() {
    let file = written("tcpdump");
    let Some(text) = output("tcpdump", &["-n", "-tt", "--nano", "-e"], &file) else {
        return;
    };
    // Indented lines are the bytes of a protocol that tcpdump does not know.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(char::is_whitespace))
        .collect();
    assert_eq!(lines.len(), 100, "{text}");
    for (number, line) in (0..).zip(lines) {
        assert!(
            line.starts_with(&format!("1700000000.{:09} ", number + 1)),
            "{line}"
        );
        assert!(
            line.contains(&format!("length {}", length(number))),
            "{line}"
        );
    }
}

#[test]
fn pcapng_of_another_program_is_read() {
    let file = written("pcapng");
    let pcapng = Place(file.0.with_extension("pcapng"));
    let done = Command::new("editcap")
        .args(["-F", "pcapng"])
        .args([&file.0, &pcapng.0])
        .status();
    if !done.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no editcap");
        return;
    }
    let ours: Vec<_> = Reader::open(&file.0).unwrap().map(Result::unwrap).collect();
    let theirs: Vec<_> = Reader::open(&pcapng.0)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(theirs.len(), 100);
    assert_eq!(ours, theirs);
}

fn read(bytes: Vec<u8>) -> usize {
    let Ok(mut reader) = Reader::new(Cursor::new(bytes)) else {
        return 0;
    };
    let found = reader.by_ref().count();
    assert!(reader.next().is_none(), "the end is the end");
    found
}

proptest! {
    #[test]
    fn what_is_written_is_read(frames in prop::collection::vec((0..4_000_000_000_000_000_000_u64, prop::collection::vec(any::<u8>(), 0..300)), 0..50)) {
        let frames: Vec<_> = frames.into_iter()
            .map(|(timestamp_ns, data)| Captured { timestamp_ns, orig_len: data.len() as u32, data, linktype: ETHERNET }).collect();
        let mut writer = Writer::new(Vec::new(), ETHERNET).unwrap();
        for frame in &frames {
            writer.write(frame.timestamp_ns, frame.orig_len, &frame.data).unwrap();
        }
        let back: Vec<_> = Reader::new(Cursor::new(writer.into_inner())).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(back, frames);
    }

    #[test]
    fn bytes_that_mean_nothing_never_panic(magic in 0..6_usize, rest in prop::collection::vec(any::<u8>(), 0..600)) {
        let magics = [&b""[..], &[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0x3c, 0x4d], &[0x0a, 0x0d, 0x0d, 0x0a],
            // Whole section headers, so that what follows is read as blocks.
            b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0",
            b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d\0\x01\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x1c"];
        read([magics[magic], &rest].concat());
    }

    /// Blocks of right lengths, so that their insides are reached.
    #[test]
    fn blocks_that_mean_nothing_never_panic(blocks in prop::collection::vec((0..8_u32, prop::collection::vec(any::<u32>(), 0..20)), 0..8)) {
        let mut file = b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0".to_vec();
        for (kind, mut body) in blocks {
            // Small numbers are likelier to be believed.
            body.iter_mut().for_each(|word| if *word % 3 != 0 { *word %= 64 });
            let length = 12 + 4 * body.len() as u32;
            let words = [kind, length].into_iter().chain(body).chain([length]);
            words.for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
        }
        read(file);
    }
}
