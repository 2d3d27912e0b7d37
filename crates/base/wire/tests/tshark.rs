//! What is written here, before an independent judge: tshark, which knows what etherparse does not
//! (neighbour discovery, label stacks, ICMP extensions, VXLAN, LACP). Says so and passes without tshark.

use std::io::Write;
use std::process::{Command, Stdio};

use weir_wire::build::{self, Ends, Ends6};
use weir_wire::icmp6::{self, Endpoints};
use weir_wire::ipv6::{self, ALL_NODES};
use weir_wire::lacp::{End, Marker, Pdu, State};
use weir_wire::mpls::{ControlWord, Entry, Label};
use weir_wire::nd::{self, Claim, Prefix, Router};
use weir_wire::{EtherType, EthernetHeader, MacAddr, VxlanHeader, extension, lacp, vlan};
use zerocopy::IntoBytes;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x0a]);

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let head = [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for frame in frames {
        let length = frame.len() as u32;
        bytes.extend(
            [1, 0, length, length]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .chain(frame.iter().copied()),
        );
    }
    bytes
}

/// What tshark says about the frames, in full; `None` when there is no tshark.
fn dissect(frames: &[Vec<u8>]) -> Option<String> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-V", "-d", "mpls.label==70000,pwethcw", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut tshark = command.spawn().ok()?;
    tshark.stdin.take()?.write_all(&capture(frames)).ok()?;
    Some(String::from_utf8_lossy(&tshark.wait_with_output().ok()?.stdout).into_owned())
}

fn framed(ethertype: EtherType, destination: MacAddr, payload: &[u8]) -> Vec<u8> {
    [
        EthernetHeader::new(destination, MAC, ethertype).as_bytes(),
        payload,
    ]
    .concat()
}

/// Frames, each with what tshark must say of it.
fn frames() -> Vec<(Vec<u8>, &'static [&'static str])> {
    let [one, two]: [[u8; 16]; 2] =
        ["fe80::1", "fe80::2"].map(|text| text.parse::<std::net::Ipv6Addr>().unwrap().octets());
    let mut frames: Vec<(Vec<u8>, &'static [&'static str])> = Vec::new();
    let mut room = [0; 1500];
    let mut add6 = |length: Option<usize>, room: &[u8], said| {
        frames.push((
            framed(
                EtherType::IPV6,
                ipv6::multicast_mac(&ALL_NODES),
                &room[..length.unwrap()],
            ),
            said,
        ));
    };
    let length = nd::neighbor_solicitation(&mut room, one, MAC, two);
    add6(
        length,
        &room,
        &[
            "Neighbor Solicitation (135)",
            "[Checksum Status: Good]",
            "Source link-layer address : 02:00:00:00:00:0a",
        ],
    );
    let length = nd::duplicate_solicitation(&mut room, two);
    add6(
        length,
        &room,
        &["Source Address: ::", "Target Address: fe80::2"],
    );
    let claim = Claim {
        router: true,
        solicited: true,
        override_known: true,
    };
    let length = nd::neighbor_advertisement(&mut room, two, one, two, MAC, claim);
    add6(
        length,
        &room,
        &[
            "Neighbor Advertisement (136)",
            "Router: Set",
            "Solicited: Set",
            "Override: Set",
            "Target link-layer address",
        ],
    );
    let router = Router {
        hop_limit: 64,
        lifetime: 1800,
        mac: Some(MAC),
        mtu: Some(1500),
        other: true,
        ..Router::default()
    };
    let prefix = Prefix::new(
        [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        64,
        true,
        true,
        86_400,
        14_400,
    );
    let length = nd::router_advertisement(&mut room, one, ALL_NODES, &router, &[prefix]);
    add6(
        length,
        &room,
        &[
            "Router lifetime (s): 1800",
            "Other configuration: Set",
            "MTU: 1500",
            "Prefix: 2001:db8::",
            "Valid Lifetime: 86400",
        ],
    );
    let length = nd::router_solicitation(&mut room, one, MAC);
    add6(length, &room, &["Router Solicitation (133)"]);

    let stack = [
        Entry::new(Label(16_001), 5, false, 1),
        Entry::new(Label(299), 0, true, 63),
    ];
    let offender = &build::udp6(
        &Ends6 {
            destination_port: 40_000,
            ..Ends6::default()
        },
        b"hello",
    )[14..];
    let mut body = [0; 300];
    let written = extension::write(
        &mut body,
        extension::Version::Icmp6,
        offender,
        icmp6::QUOTE,
        stack.as_bytes(),
    )
    .unwrap();
    let endpoints = Endpoints {
        source: two,
        destination: one,
        hop_limit: 64,
    };
    let length = icmp6::message(
        &mut room,
        &endpoints,
        icmp6::TIME_EXCEEDED,
        0,
        written.argument,
        &body[..written.length],
    );
    add6(
        length,
        &room,
        &[
            "ICMP Multi-Part Extensions",
            "Label: 16001",
            "Label: 299",
            "MPLS Label Stack Class (1)",
        ],
    );
    let offender = &build::udp4(
        &Ends {
            destination_port: 40_000,
            ..Ends::default()
        },
        b"hello",
    )[14..];
    let written = extension::write(
        &mut body,
        extension::Version::Icmp,
        offender,
        548,
        stack.as_bytes(),
    )
    .unwrap();
    let mut packet = [0; 400];
    assert!(build::icmp4(
        &mut packet,
        1 << 24 | 1,
        1 << 24 | 2,
        64,
        11,
        0,
        written.argument,
        &body[..written.length]
    ));
    let packet = &packet[..28 + written.length];
    frames.push((
        framed(EtherType::IPV4, MAC, packet),
        &[
            "Length of original datagram: 128",
            "[Checksum Status: Good]",
            "Label: 16001, Exp: 5, S: 0, TTL: 1",
        ],
    ));

    let inner = build::udp4(
        &Ends {
            destination_port: 40_000,
            ..Ends::default()
        },
        b"inner",
    );
    let wire = [
        Entry::new(Label(100), 0, false, 64),
        Entry::new(Label::ENTROPY_INDICATOR, 0, false, 0),
        Entry::new(Label(70_000), 0, true, 0),
    ];
    let under = [wire.as_bytes(), ControlWord::numbered(9).as_bytes(), &inner].concat();
    frames.push((
        framed(EtherType::MPLS, MAC, &under),
        &[
            "Entropy Label Indicator (ELI) (7)",
            "MPLS Label: 70000",
            "Sequence Number: 9",
        ],
    ));
    let ends = Ends {
        destination_port: VxlanHeader::PORT,
        ..Ends::default()
    };
    let tunnel = build::udp4(&ends, &[VxlanHeader::new(4242).as_bytes(), &inner].concat());
    frames.push((tunnel, &["VXLAN Network Identifier (VNI): 4242"]));
    let tagged = [
        &inner[..12],
        &vlan::tag_bytes(EtherType::QINQ, vlan::control(77, 5, true)),
        &inner[12..],
    ]
    .concat();
    frames.push((
        tagged,
        &["IEEE 802.1ad, ID: 77", "= DEI: 1", "= Priority: 5"],
    ));
    let end = |port| {
        End::new(
            0x8000,
            MAC,
            17,
            255,
            port,
            State::ACTIVE | State::AGGREGATION,
        )
    };
    let pdu = Pdu::new(end(3), end(4), 50);
    frames.push((
        framed(EtherType::SLOW, lacp::MULTICAST, pdu.as_bytes()),
        &[
            "Actor Port: 3",
            "Partner Port: 4",
            "Collector Max Delay: 50",
        ],
    ));
    let marker = Marker::new(3, MAC, 0xdead_beef);
    frames.push((
        framed(
            EtherType::SLOW,
            lacp::MULTICAST,
            marker.response().as_bytes(),
        ),
        &["Requester Port: 3", "3735928559"],
    ));
    frames
}

#[test]
fn tshark_reads_what_is_written() {
    let frames = frames();
    for (frame, said) in &frames {
        let Some(text) = dissect(std::slice::from_ref(frame)) else {
            eprintln!("no tshark here: not tried");
            return;
        };
        for said in *said {
            assert!(
                text.contains(said),
                "tshark does not say {said:?} in:\n{text}"
            );
        }
        assert!(
            !text.contains("Malformed")
                && !text.contains("Expert Info (Error")
                && !text.contains("Expert Info (Warning"),
            "{text}"
        );
    }
}
