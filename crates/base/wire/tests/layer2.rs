//! Tags, VXLAN and LACP: bytes laid out by hand after the standards, and etherparse for tags.

use proptest::prelude::*;
use weir_wire::build::{self, Ends};
use weir_wire::lacp::{self, End, Marker, Pdu, State};
use weir_wire::vlan::{self, CutTag, Outer, TAG_AT};
use weir_wire::{EtherType, MacAddr, VlanTag, VxlanHeader};
use zerocopy::IntoBytes;

/// The frame with a tag pushed as a node does it.
fn pushed(frame: &[u8], announced: EtherType, control: u16) -> Vec<u8> {
    [
        &frame[..TAG_AT],
        &vlan::tag_bytes(announced, control),
        &frame[TAG_AT..],
    ]
    .concat()
}

#[test]
fn one_two_three_tags() {
    let plain = build::udp4(&Ends::default(), b"hello");
    let found = Outer::read(&plain).unwrap();
    assert_eq!(
        (found.outer, found.inner, found.ethertype, found.payload_at),
        (None, None, EtherType::IPV4, 14)
    );
    let one = pushed(&plain, EtherType::VLAN, vlan::control(123, 6, true));
    assert_eq!(one[12..18], [0x81, 0, 0xd0, 0x7b, 8, 0]);
    let found = Outer::read(&one).unwrap();
    assert_eq!(
        (found.ethertype, found.payload_at, found.inner),
        (EtherType::IPV4, 18, None)
    );
    let tag = found.outer.unwrap().tag;
    assert_eq!(
        (
            tag.vlan(),
            tag.priority(),
            tag.drop_eligible(),
            tag.control()
        ),
        (123, 6, true, 0xd07b)
    );
    let two = pushed(&one, EtherType::QINQ, vlan::control(4095, 0, false));
    let found = Outer::read(&two).unwrap();
    let (outer, inner) = (found.outer.unwrap(), found.inner.unwrap());
    assert_eq!(
        (
            outer.announced,
            outer.tag.vlan(),
            inner.announced,
            inner.tag.vlan()
        ),
        (EtherType::QINQ, 4095, EtherType::VLAN, 123)
    );
    assert_eq!(
        (found.ethertype, found.payload_at, &two[22..]),
        (EtherType::IPV4, 22, &plain[14..])
    );
    let sliced = etherparse::SlicedPacket::from_ethernet(&two).unwrap();
    let Some(etherparse::VlanSlice::DoubleVlan(double)) = sliced.vlan() else {
        panic!("no two tags")
    };
    assert_eq!(
        (
            double.outer.vlan_identifier().value(),
            double.inner.vlan_identifier().value()
        ),
        (4095, 123)
    );
    // A third tag is seen as what follows; an iterator goes as deep as instructed.
    let three = pushed(&two, EtherType::QINQ, 7);
    assert!(Outer::read(&three).unwrap().ethertype.is_tag());
    let mut tags = vlan::tags(&three, 8).unwrap();
    assert_eq!(
        tags.by_ref()
            .map(|tag| tag.unwrap().tag.vlan())
            .collect::<Vec<_>>(),
        [7, 4095, 123]
    );
    assert_eq!(
        (tags.ethertype(), tags.rest()),
        (EtherType::IPV4, &plain[14..])
    );
    assert_eq!(vlan::tags(&three, 1).unwrap().count(), 1);
}

#[test]
fn tags_cut_at_every_byte() {
    let frame = pushed(
        &pushed(&build::udp4(&Ends::default(), &[]), EtherType::VLAN, 1),
        EtherType::QINQ,
        2,
    );
    for length in 0..=30 {
        let found = Outer::read(&frame[..length]);
        assert_eq!(found.is_ok(), length >= 22, "{length}");
        assert!(length >= 22 || found == Err(CutTag));
    }
    let mut tags = vlan::tags(&frame[..20], 8).unwrap();
    assert!(
        tags.next().unwrap().is_ok() && tags.next() == Some(Err(CutTag)) && tags.next().is_none()
    );
}

#[test]
fn a_tag_is_changed_in_place() {
    let mut tag = VlanTag::new(100, 3, EtherType::IPV4);
    tag.set_priority(7);
    tag.set_drop_eligible(true);
    tag.set_vlan(0xffff);
    tag.set_ethertype(EtherType::MPLS);
    assert_eq!(tag.as_bytes(), [0xff, 0xff, 0x88, 0x47]);
    tag.set_drop_eligible(false);
    tag.set_priority(0);
    assert_eq!(tag.control(), 0x0fff);
    tag.set_control(0x2005);
    assert_eq!((tag.priority(), tag.vlan()), (1, 5));
}

#[test]
fn vxlan() {
    // RFC 7348 section 5: I flag, VNI 0x123456.
    let bytes = [0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0];
    assert_eq!(VxlanHeader::new(0xff12_3456).as_bytes(), bytes);
    let (header, _) = VxlanHeader::read(&bytes).unwrap();
    assert_eq!((header.is_valid(), header.vni()), (true, 0x12_3456));
    assert!(
        !VxlanHeader::read(&[0xf7, 0xff, 0xff, 0xff, 0, 0, 1, 0])
            .unwrap()
            .0
            .is_valid()
    );
    assert!((0..8).all(|length| VxlanHeader::read(&bytes[..length]).is_none()));
}

fn pdu() -> Pdu {
    let state = State::ACTIVE | State::AGGREGATION | State::SYNCHRONIZATION;
    let actor = End::new(0x8000, MacAddr([2, 0, 0, 0, 0, 1]), 17, 255, 3, state);
    Pdu::new(
        actor,
        End::new(1, MacAddr([2, 0, 0, 0, 0, 2]), 18, 254, 4, State::DEFAULTED),
        50,
    )
}

#[test]
fn a_lacp_pdu_byte_for_byte() {
    // IEEE 802.1AX-2020 figure 6-8.
    let mut expected = vec![
        1, 1, 1, 20, 0x80, 0, 2, 0, 0, 0, 0, 1, 0, 17, 0, 255, 0, 3, 0x0d, 0, 0, 0,
    ];
    expected.extend([
        2, 20, 0, 1, 2, 0, 0, 0, 0, 2, 0, 18, 0, 254, 0, 4, 0x40, 0, 0, 0,
    ]);
    expected.extend([3, 16, 0, 50]);
    expected.resize(110, 0);
    assert_eq!(pdu().as_bytes(), expected);
    let read = Pdu::read(&expected).unwrap();
    assert_eq!((*read, read.collector_delay()), (pdu(), 50));
    let actor = read.actor;
    assert_eq!(
        (
            actor.system_priority(),
            actor.key(),
            actor.port_priority(),
            actor.port()
        ),
        (0x8000, 17, 255, 3)
    );
    assert!(
        actor.state.has(State::ACTIVE | State::SYNCHRONIZATION) && !actor.state.has(State::EXPIRED)
    );
    assert_eq!(
        actor
            .state
            .with(State::EXPIRED, true)
            .with(State::ACTIVE, false),
        State(0x8c)
    );
    assert!((0..110).all(|length| Pdu::read(&expected[..length]).is_none()));
    // Wrong subtype, version 0, TLVs elsewhere; a later version is read.
    for (at, to, good) in [
        (0, 2, false),
        (1, 0, false),
        (1, 2, true),
        (2, 9, false),
        (3, 19, false),
        (22, 1, false),
        (42, 0, false),
        (50, 9, true),
    ] {
        let mut bytes = expected.clone();
        bytes[at] = to;
        assert_eq!(Pdu::read(&bytes).is_some(), good, "{at}");
    }
}

#[test]
fn a_marker_and_its_answer() {
    let marker = Marker::new(3, MacAddr([2, 0, 0, 0, 0, 1]), 0xdead_beef);
    let mut expected = vec![
        lacp::SUBTYPE_MARKER,
        1,
        1,
        16,
        0,
        3,
        2,
        0,
        0,
        0,
        0,
        1,
        0xde,
        0xad,
        0xbe,
        0xef,
    ];
    expected.resize(110, 0);
    assert_eq!(marker.as_bytes(), expected);
    expected[2] = 2;
    assert_eq!(marker.response().as_bytes(), expected);
    assert!(
        marker.is_valid()
            && marker.response().is_valid()
            && marker.response().is_response()
            && !marker.is_response()
    );
    assert_eq!((marker.port(), marker.transaction()), (3, 0xdead_beef));
    assert!((0..110).all(|length| Marker::read(&expected[..length]).is_none()));
    assert!(!Marker::read(&[7; 110]).unwrap().0.is_valid());
}

proptest! {
    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(found) = Outer::read(&bytes) {
            prop_assert!(found.payload_at <= bytes.len());
        }
        let _ = Pdu::read(&bytes);
    }
}
