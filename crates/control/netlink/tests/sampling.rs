//! What hsflowd's modules get: every byte, worked out from the headers of Linux and from the module's
//! list of attributes; and the way through the kernel to a listener.

use std::time::{Duration, Instant};

use netlink_sys::protocols::NETLINK_USERSOCK;
use netlink_sys::{Socket, SocketAddr};
use weir_netlink::netns::NetNs;
use weir_netlink::sampling::usersock::{self, Counters, Status};
use weir_netlink::sampling::{Channel, Feed, dropmon, psample};

/// Octets from hexadecimal digits; blanks are for the reader.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The layouts below are those of a little-endian machine.
fn little_endian() -> bool {
    let little = cfg!(target_endian = "little");
    if !little {
        eprintln!("skipped: the bytes are written down for little-endian machines");
    }
    little
}

#[test]
fn a_packet_sample_is_these_bytes() {
    if !little_endian() {
        return;
    }
    let data: Vec<u8> = (1..=14).collect();
    let sample = psample::Sample {
        input: 3,
        output: 0x0001_0004,
        original_length: 1514,
        group: 3,
        sequence: 9,
        rate: 10_000,
        data: &data,
    };
    let mut bytes = vec![0xee; 500];
    psample::write(&mut bytes, 31, 77, &sample);
    let expected = "60000000 1f00 0000 09000000 4d000000  00 01 0000
        0800 0000 03000000  0800 0100 04000100  0800 0200 ea050000  0800 0300 03000000
        0800 0400 09000000  0800 0500 10270000
        1200 0600 0102030405060708090a0b0c0d0e 0000  0600 0e00 0100 0000";
    assert_eq!(bytes.len(), 0x60);
    assert_eq!(bytes, hex(expected));
}

#[test]
fn a_drop_alert_is_these_bytes_and_its_port_is_nested() {
    if !little_endian() {
        return;
    }
    let alert = dropmon::Alert {
        input: 5,
        group: "ip4-rewrite",
        trap: "ttl",
        reason: None,
        original_length: 60,
        protocol: 0x0800,
        data: &[1, 2, 3],
    };
    let mut bytes = Vec::new();
    dropmon::write(&mut bytes, 32, 77, 2, &alert);
    let expected = "6c000000 2000 0000 02000000 4d000000  05 00 0000
        0600 0e00 0000 0000  1000 0f00 6970342d7265777269746500  0800 1000 74746c00
        0800 0a00 3c000000  0800 0900 03000000  0600 0600 0008 0000
        0c00 0480 0800 0000 05000000  0700 0700 010203 00";
    let expected = hex(expected);
    assert_eq!(bytes[4..], expected[4..]);
    assert_eq!(
        bytes[..4],
        u32::try_from(expected.len()).unwrap().to_le_bytes()
    );
    // The kernel's reason stands before the packet.
    dropmon::write(
        &mut bytes,
        32,
        77,
        2,
        &dropmon::Alert {
            reason: Some("NOMEM"),
            ..alert
        },
    );
    let reason = hex("0a00 1700 4e4f4d454d00 0000");
    let (before, packet) = expected.split_at(expected.len() - 8);
    assert_eq!(bytes[4..], [&before[4..], &reason, packet].concat());
    // Without an interface nothing is said of one.
    dropmon::write(&mut bytes, 32, 77, 2, &dropmon::Alert { input: 0, ..alert });
    assert_eq!(bytes.len(), expected.len() - 12);
    // Names are cut to 63 octets, at a character.
    let long = "ä".repeat(40);
    dropmon::write(
        &mut bytes,
        32,
        77,
        2,
        &dropmon::Alert {
            group: &long,
            ..alert
        },
    );
    let cut = [&"ä".repeat(31).into_bytes()[..], &[0]].concat();
    assert!(bytes.windows(cut.len()).any(|window| window == cut));
}

#[test]
fn the_routers_state_is_these_bytes() {
    if !little_endian() {
        return;
    }
    let mut bytes = Vec::new();
    usersock::write_status(
        &mut bytes,
        77,
        4,
        &Status {
            uptime: 61,
            drops: u32::MAX,
        },
    );
    let expected = "28000000 0100 0000 04000000 4d000000  0800 1400 3d000000  0800 1600 ffffffff  0800 1700 04000000";
    assert_eq!(bytes, hex(expected));
}

/// Every attribute of a message: number and value.
fn attributes(message: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut rest = &message[16..];
    let mut found = Vec::new();
    while let [l, m, k, n, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l, m]));
        found.push((u16::from_ne_bytes([k, n]), rest[4..length].to_vec()));
        rest = &rest[length.next_multiple_of(4)..];
    }
    found
}

fn counters() -> Counters<'static> {
    Counters {
        name: "xe0",
        ifindex: 3,
        os_index: Some(12),
        kind: 6,
        speed: 10_000_000_000,
        direction: 1,
        oper_up: true,
        admin_up: false,
        mac: Some([2, 0, 0, 0, 0, 3]),
        rx_octets: 1 << 40,
        tx_octets: 102,
        rx_packets: 103,
        tx_packets: 104,
        rx_broadcasts: 105,
        tx_broadcasts: 106,
        rx_multicasts: 107,
        tx_multicasts: 108,
        rx_discards: 109,
        tx_discards: 110,
        rx_errors: 111,
        tx_errors: 112,
    }
}

#[test]
fn counters_have_every_attribute_of_the_module() {
    let mut bytes = Vec::new();
    usersock::write_counters(&mut bytes, 77, 6, &counters());
    assert_eq!(
        bytes[..4],
        u32::try_from(bytes.len()).unwrap().to_ne_bytes()
    );
    assert_eq!(bytes[4..6], 2_u16.to_ne_bytes());
    let u32s = |value: u32| value.to_ne_bytes().to_vec();
    let u64s = |value: u64| value.to_ne_bytes().to_vec();
    let mut expected = vec![
        (0, b"xe0\0".to_vec()),
        (1, u32s(3)),
        (2, u32s(6)),
        (3, u64s(10_000_000_000)),
        (4, u32s(1)),
        (5, u32s(1)),
        (6, u32s(0)),
    ];
    expected.push((7, u64s(1 << 40)));
    expected.extend((8..=18).map(|kind| (kind, u64s(u64::from(kind) + 94))));
    expected.extend([(19, vec![2, 0, 0, 0, 0, 3]), (21, u32s(12)), (23, u32s(6))]);
    assert_eq!(attributes(&bytes), expected);
    let plain = Counters {
        mac: None,
        os_index: None,
        ..counters()
    };
    usersock::write_counters(&mut bytes, 77, 6, &plain);
    assert!(
        attributes(&bytes)
            .iter()
            .all(|(kind, _)| ![19, 21].contains(kind))
    );
}

/// A listener on group 29, as hsflowd's module is one.
#[test]
fn a_listener_gets_state_and_counters() {
    let namespace = NetNs::current().unwrap();
    let mut listener = Socket::new(NETLINK_USERSOCK).unwrap();
    if let Err(error) = listener.bind(&SocketAddr::new(0, 1 << (usersock::GROUP - 1))) {
        eprintln!("skipped: may not listen: {error}");
        return;
    }
    listener.set_non_blocking(true).unwrap();
    let (mut channel, lacking) = Channel::open(&namespace).unwrap();
    // Whatever this kernel lacks is reported in a sentence with its remedy.
    assert!(
        lacking.iter().all(|sentence| sentence.contains("modprobe")),
        "{lacking:?}"
    );
    assert_eq!(
        lacking.len(),
        usize::from(!channel.carries(Feed::Samples)) + usize::from(!channel.carries(Feed::Drops))
    );
    channel.status(&Status {
        uptime: 5,
        drops: 0,
    });
    channel.counters(&counters());
    // Neither is an error where the kernel has no such family.
    channel.sample(&psample::Sample {
        input: 1,
        output: 2,
        original_length: 60,
        group: 3,
        sequence: 1,
        rate: 1,
        data: &[0; 60],
    });
    channel.drop_alert(&dropmon::Alert {
        input: 1,
        group: "a",
        trap: "b",
        reason: None,
        original_length: 60,
        protocol: 0x0800,
        data: &[0; 60],
    });
    if channel.sent.others_failed > 0 {
        eprintln!("skipped: may not send: {:?}", channel.sent);
        return;
    }
    let until = Instant::now() + Duration::from_secs(10);
    let mut heard = Vec::new();
    let own = std::process::id().to_ne_bytes();
    while heard.len() < 2 && Instant::now() < until {
        let mut buffer = vec![0_u8; 4096];
        match listener.recv(&mut &mut buffer[..], 0) {
            // Others may send to this group, too.
            Ok(length) if buffer[12..16] == own => heard.push(buffer[..length].to_vec()),
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    assert_eq!(
        heard.iter().map(|message| message[4]).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(attributes(&heard[1])[0], (0, b"xe0\0".to_vec()));
}
