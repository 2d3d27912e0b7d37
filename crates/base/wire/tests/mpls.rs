//! Label stacks, what lies under them, and ICMP's extensions that quote them.

use proptest::prelude::*;
use weir_wire::build::{self, Ends, Ends6};
use weir_wire::extension::{self, ExtensionError, Version};
use weir_wire::mpls::{
    ControlWord, Entry, Guess, Label, StackError, guess, guess_first, read_stack,
};
use weir_wire::{IcmpHeader, checksum};
use zerocopy::IntoBytes;

#[test]
fn an_entry() {
    // RFC 3032 section 2.1: label 16001 (0x3e81), class 5, bottom, time to live 63.
    let bytes = [0x03, 0xe8, 0x1b, 0x3f];
    let (entry, _) = Entry::read(&bytes).unwrap();
    assert_eq!(
        (entry.label(), entry.class(), entry.is_bottom(), entry.ttl()),
        (Label(16_001), 5, true, 63)
    );
    assert_eq!(Entry::new(Label(16_001), 5, true, 63).as_bytes(), bytes);
    let mut entry = Entry::default();
    entry.set_label(Label::LAST);
    entry.set_class(7);
    entry.set_ttl(255);
    assert_eq!(entry.as_bytes(), [0xff, 0xff, 0xfe, 0xff]);
    entry.set_bottom(true);
    entry.set_class(0);
    entry.set_label(Label(1));
    entry.set_ttl(1);
    assert_eq!(entry.as_bytes(), [0, 0, 0x11, 1]);
    entry.set_bottom(false);
    assert_eq!(entry.as_bytes(), [0, 0, 0x10, 1]);
    assert_eq!(
        Entry::new(Label(u32::MAX), 255, false, 0).as_bytes(),
        [0xff, 0xff, 0xfe, 0]
    );
}

#[test]
fn special_labels() {
    let named: Vec<u32> = (0..20)
        .filter(|label| Label(*label).name().is_some())
        .collect();
    assert_eq!(named, [0, 1, 2, 3, 7, 13, 14, 15]);
    assert_eq!(
        (Label(7).to_string(), Label(16).to_string()),
        ("entropy-label-indicator".into(), "16".into())
    );
    assert_eq!(
        (0..20).filter(|label| Label(*label).is_special()).count(),
        16
    );
}

fn stack(labels: &[u32]) -> Vec<u8> {
    let last = labels.len() - 1;
    labels
        .iter()
        .enumerate()
        .flat_map(|(n, label)| {
            Entry::new(Label(*label), 0, n == last, 64)
                .as_bytes()
                .to_vec()
        })
        .collect()
}

#[test]
fn stacks() {
    let bytes = [stack(&[100, 7, 5000, 7, 6000, 200]), b"payload".to_vec()].concat();
    let found = read_stack(&bytes, 16).unwrap();
    assert_eq!(
        (found.depth(), found.payload, found.entropy),
        (6, &b"payload"[..], Some(Label(5000)))
    );
    assert_eq!(
        found
            .entries()
            .map(|entry| entry.label().0)
            .collect::<Vec<_>>(),
        [100, 7, 5000, 7, 6000, 200]
    );
    assert_eq!(found.bytes(), &bytes[..24]);
    for length in 0..24 {
        assert_eq!(
            read_stack(&bytes[..length], 16),
            Err(StackError::NoBottom),
            "{length}"
        );
    }
    assert_eq!(read_stack(&bytes, 5), Err(StackError::TooDeep(5)));
    assert!(read_stack(&bytes, 6).is_ok());
    assert_eq!(read_stack(&bytes, 0), Err(StackError::TooDeep(0)));
    // An indicator at the bottom indicates nothing; a special label is no entropy.
    assert_eq!(read_stack(&stack(&[100, 7]), 4).unwrap().entropy, None);
    assert_eq!(read_stack(&stack(&[7, 3]), 4).unwrap().entropy, None);
    // A packet of nothing but entries without bottom.
    assert_eq!(read_stack(&[0; 400], 16), Err(StackError::TooDeep(16)));
    assert_eq!(read_stack(&[0; 40], 16), Err(StackError::NoBottom));
}

#[test]
fn guesses() {
    let (four, six) = (
        build::udp4(&Ends::default(), b"x")[14..].to_vec(),
        build::udp6(&Ends6::default(), b"x")[14..].to_vec(),
    );
    assert!(matches!(guess(&four), Guess::Ipv4(header) if header.ttl == 64));
    assert!(matches!(guess(&six), Guess::Ipv6(header) if header.hop_limit == 64));
    // Padded to the minimum, and cut by one byte.
    assert!(matches!(
        guess(&[&four[..], &[0; 17]].concat()),
        Guess::Ipv4(_)
    ));
    assert_eq!(guess(&four[..four.len() - 1]), Guess::Unknown);
    assert!(matches!(
        guess_first(&four[..four.len() - 1], 1),
        Guess::Ipv4(_)
    ));
    assert_eq!(
        (guess_first(&four, 47), guess_first(&six[..41], 0)),
        (Guess::Unknown, Guess::Unknown)
    );
    assert!(matches!(
        guess_first(&six[..41], six.len() - 41),
        Guess::Ipv6(_)
    ));
    assert_eq!(guess(&six[..six.len() - 1]), Guess::Unknown);
    // Pseudowires with control word or channel; without, whose destination MAC begins with 4 or 6.
    assert_eq!(
        (guess(&[0; 4]), guess(&[0x10, 0, 0, 7])),
        (Guess::Pseudowire, Guess::Pseudowire)
    );
    for first in [0x44, 0x45, 0x60, 0x6e] {
        let frame = [
            &[first, 0xa8, 0x1e, 0x00, 0x01, 0x02, 2, 0, 0, 0, 0, 1, 8, 0][..],
            &four,
            &[0; 100],
        ]
        .concat();
        assert_eq!(guess(&frame), Guess::Unknown, "{first:x}");
    }
    assert_eq!(
        (guess(&[]), guess(&[0x45]), guess(&[0xff; 60])),
        (Guess::Unknown, Guess::Unknown, Guess::Unknown)
    );
}

#[test]
fn control_words() {
    // RFC 4385 section 3: flags 0, FRG 01, length 42, sequence 0x1234.
    let bytes = [0x00, 0x6a, 0x12, 0x34];
    let (word, _) = ControlWord::read(&bytes).unwrap();
    assert_eq!(
        (
            word.is_data(),
            word.is_channel(),
            word.fragment(),
            word.length(),
            word.sequence()
        ),
        (true, false, 1, 42, 0x1234)
    );
    assert_eq!(ControlWord::new().as_bytes(), [0; 4]);
    assert_eq!(ControlWord::numbered(7).as_bytes(), [0, 0, 0, 7]);
    assert!(
        ControlWord::read(&[0x10, 0, 0, 0x21])
            .unwrap()
            .0
            .is_channel()
    );
}

#[test]
fn an_extension_byte_for_byte() {
    let labels = stack(&[16_001, 299]);
    let quote = build::udp4(&Ends::default(), &[7; 22])[14..].to_vec();
    let mut body = [0xee; 200];
    let written = extension::write(&mut body, Version::Icmp, &quote, 548, &labels).unwrap();
    // RFC 4884 section 3: 128 bytes are 32 words; section 7: version 2; RFC 4950 section 3: class 1, kind 1.
    assert_eq!(
        (written.length, written.argument),
        (128 + 4 + 4 + 8, 32 << 16)
    );
    assert_eq!(
        (&body[..quote.len()], &body[quote.len()..128]),
        (&quote[..], &[0; 78][..])
    );
    assert_eq!(
        (&body[128..130], &body[132..136]),
        (&[0x20, 0][..], &[0, 12, 1, 1][..])
    );
    assert_eq!((&body[136..144], body[144]), (&labels[..], 0xee));
    assert_eq!(checksum::internet(&body[128..144]), 0);
    let read = extension::read(Version::Icmp, written.argument, &body[..144]).unwrap();
    assert_eq!(
        (read.quote.len(), read.label_stack()),
        (128, Some(&labels[..]))
    );
    // ICMPv6 counts in words of 8 bytes, in the first byte of the second word.
    let written = extension::write(&mut body, Version::Icmp6, &[5; 133], 1232, &labels).unwrap();
    assert_eq!((written.length, written.argument), (136 + 16, 17 << 24));
    // A quote is cut to whole words, and to what the length can count.
    let mut long = [0; 3000];
    assert_eq!(
        extension::write(&mut long, Version::Icmp, &[1; 2000], 1500, &labels)
            .unwrap()
            .argument,
        255 << 16
    );
    assert_eq!(
        extension::write(&mut long, Version::Icmp6, &[1; 2000], 1215, &labels)
            .unwrap()
            .argument,
        151 << 24
    );
    assert_eq!(
        extension::write(&mut long, Version::Icmp, &[1; 2000], 127, &labels),
        None
    );
    let header = IcmpHeader::new(11, 0, written.argument);
    assert_eq!(header.as_bytes()[4..], [17, 0, 0, 0]);
}

#[test]
fn extensions_that_lie() {
    let mut body = [0; 144];
    let written =
        extension::write(&mut body, Version::Icmp, &[1; 64], 548, &stack(&[1, 2])).unwrap();
    for length in 0..144 {
        let read = extension::read(Version::Icmp, written.argument, &body[..length]);
        assert!(read.is_err(), "{length}");
        let mut room = vec![0xee; length];
        assert_eq!(
            extension::write(&mut room, Version::Icmp, &[1; 64], 548, &stack(&[1, 2])),
            None
        );
    }
    let change = |at: usize, to: u8| {
        let mut body = body;
        body[at] = to;
        // No checksum: it is not looked at.
        body[130..132].fill(0);
        body
    };
    assert_eq!(
        extension::read(Version::Icmp, 32 << 16, &change(128, 0x10)),
        Err(ExtensionError::Version(1))
    );
    for (length, error) in [
        (3, ExtensionError::Object(3)),
        (0, ExtensionError::Object(0)),
        (13, ExtensionError::Object(13)),
    ] {
        let body = change(133, length);
        let parts = extension::read(Version::Icmp, 32 << 16, &body).unwrap();
        assert_eq!(
            (parts.objects().collect::<Vec<_>>(), parts.label_stack()),
            (vec![Err(error)], None)
        );
    }
    let mut wrong = body;
    wrong[140] ^= 1;
    assert_eq!(
        extension::read(Version::Icmp, 32 << 16, &wrong),
        Err(ExtensionError::Checksum)
    );
    // Uncounted, all is quote.
    let parts = extension::read(Version::Icmp, 0, &body).unwrap();
    assert_eq!((parts.quote.len(), parts.objects().count()), (144, 0));
}

proptest! {
    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..200), argument in any::<u32>(), most in 0usize..20) {
        if let Ok(found) = read_stack(&bytes, most) {
            prop_assert!(found.depth() <= most && found.bytes().len() + found.payload.len() == bytes.len());
        }
        let _ = guess(&bytes);
        for version in [Version::Icmp, Version::Icmp6] {
            if let Ok(parts) = extension::read(version, argument, &bytes) {
                prop_assert!(parts.objects().count() <= bytes.len());
            }
        }
    }
}
