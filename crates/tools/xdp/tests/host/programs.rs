//! The programs by BPF_PROG_TEST_RUN: one packet, one verdict, and what the trace says of it.

use std::collections::BTreeMap;

use aya::maps::xdp::DevMapHash;
use aya::maps::{Map, MapData, RingBuf};
use aya::programs::{ProgramFd, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use weir_netlink::netns::NetNs;
use weir_xdp::abi::{Bytes, Control, Event};
use weir_xdp::config;
use weir_xdp::maps::{Maps, traces};
use weir_xdp::programs::{OBJECT, prepare};
use weir_xdp::state::{Link, Slots, tables};

use crate::bed::{Pins, can_run, frame, udp};

const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

/// The programs with the maps of a configuration. The ports `p1` to `p4` have the numbers 1, 1000, 3 and 4; packets come
/// in by 1, which is the loopback of a namespace.
pub(crate) struct Rig {
    ebpf: Ebpf,
    pub(crate) maps: Maps,
    ring: RingBuf<MapData>,
    namespace: NetNs,
    _pins: Pins,
}

/// What became of a packet.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: u32,
    pub(crate) event: Event,
    pub(crate) frame: Vec<u8>,
}

impl Rig {
    pub(crate) fn new(text: &str) -> Rig {
        Rig::with_down(text, &[])
    }

    /// With ports that are down. Port 2 has the ifindex 1000, which the egress test program sends to.
    pub(crate) fn with_down(text: &str, down: &[u32]) -> Rig {
        let namespace = NetNs::new().unwrap();
        let pins = Pins::new();
        let folder = pins.folders().pins;
        prepare(&folder).unwrap();
        let mut ebpf = EbpfLoader::new()
            .default_map_pin_directory(&folder)
            .load(OBJECT)
            .unwrap();
        for name in ["weir_ingress", "weir_egress", "weir_egress_test"] {
            let program: &mut Xdp = ebpf.program_mut(name).unwrap().try_into().unwrap();
            program.load().unwrap();
        }
        let mut rig = Rig {
            maps: Maps::open(&folder).unwrap(),
            ring: traces(&folder).unwrap(),
            ebpf,
            namespace,
            _pins: pins,
        };
        rig.configure(text, &folder, down);
        rig
    }

    fn configure(&mut self, text: &str, folder: &std::path::Path, down: &[u32]) {
        let config = config::check("test", text.as_bytes()).unwrap();
        let links: BTreeMap<String, Link> = (1..=4)
            .map(|number| {
                let link = Link {
                    ifindex: if number == 2 { 1000 } else { number },
                    running: !down.contains(&number),
                    mtu: 1500,
                    mac: Some([2, 0, 0, 0, 0, number as u8]),
                    vlan: None,
                };
                (format!("p{number}"), link)
            })
            .collect();
        let mut acls = BTreeMap::new();
        for (number, (name, rules)) in (1..).zip(&config.acls) {
            crate::rules::write(&mut self.maps, number, rules);
            acls.insert(name.clone(), number);
        }
        let (mut new, _) = tables(&config, &links, &acls, &mut Slots::default());
        let (transmit, flood) = (
            std::mem::take(&mut new.transmit),
            std::mem::take(&mut new.flood),
        );
        let egress = self.egress();
        self.maps
            .write(&weir_xdp::state::Tables::default(), &new, &egress, true)
            .unwrap();
        // Only the loopback exists: every port is sent to by way of it.
        for (name, keys) in [("transmit", &transmit), ("flood", &flood)] {
            let data = MapData::from_pin(folder.join(name)).unwrap();
            let mut map = DevMapHash::try_from(Map::from_map_data(data).unwrap()).unwrap();
            self.namespace
                .run(|| {
                    keys.keys()
                        .for_each(|key| map.insert(*key, 1, Some(&egress), 0).unwrap())
                })
                .unwrap();
        }
        let control = Control {
            flood_ports: flood.len() as u32,
            flood_bytes: 1518,
            trace: i64::MAX,
            trace_slot: u32::MAX,
            conn_tcp: 3600,
            conn_other: 60,
            ..Control::default()
        };
        self.maps.set_control(&control).unwrap();
    }

    fn egress(&self) -> ProgramFd {
        let program: &Xdp = self
            .ebpf
            .program("weir_egress")
            .unwrap()
            .try_into()
            .unwrap();
        program.fd().unwrap().try_clone().unwrap()
    }

    /// Runs a packet that came in by port 1.
    pub(crate) fn run(&mut self, frame: &[u8]) -> Outcome {
        self.run_program("weir_ingress", frame).unwrap()
    }

    /// Runs a packet that came in by port 1 and has one destination: as it leaves, without the mark of finished frames.
    pub(crate) fn forward(&mut self, frame: &[u8]) -> Outcome {
        let mut outcome = self.run(frame);
        if outcome.verdict == REDIRECT && outcome.event.out_port != u32::MAX {
            assert_eq!(outcome.frame[6] & 1, 1, "not finished: {outcome:?}");
            let finished = outcome.frame.clone();
            assert_eq!(self.take_mark_off(&finished)[..6], finished[..6]);
            outcome.frame = self.take_mark_off(&finished);
        }
        outcome
    }

    /// What the egress program makes of a finished frame.
    fn take_mark_off(&mut self, frame: &[u8]) -> Vec<u8> {
        let program: &Xdp = self
            .ebpf
            .program("weir_egress_test")
            .unwrap()
            .try_into()
            .unwrap();
        let mut out = vec![0; frame.len() + 64];
        let result = self
            .namespace
            .run(|| {
                program.test_run(TestRunOptions {
                    data_in: Some(frame),
                    data_out: Some(&mut out),
                    ..TestRunOptions::default()
                })
            })
            .unwrap()
            .unwrap();
        assert_eq!(result.return_value, PASS);
        out.truncate(result.data_size_out as usize);
        out
    }

    /// Runs a packet that came in by port 1 and is to leave by port 2; `None` = a copy not for that port.
    fn send(&mut self, frame: &[u8]) -> Option<Outcome> {
        self.run_program("weir_egress_test", frame)
    }

    /// Nanoseconds that the programs take for a packet that came in by port 1, without the redirect itself.
    pub(crate) fn cost(&mut self, frame: &[u8], repeat: u32) -> u64 {
        let control = self.maps.control().unwrap();
        self.maps
            .set_control(&Control {
                trace: 0,
                ..control
            })
            .unwrap();
        let program: &Xdp = self
            .ebpf
            .program("weir_ingress")
            .unwrap()
            .try_into()
            .unwrap();
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat,
            ..TestRunOptions::default()
        };
        let result = self
            .namespace
            .run(|| program.test_run(options))
            .unwrap()
            .unwrap();
        assert_eq!(result.return_value, REDIRECT);
        self.maps.set_control(&control).unwrap();
        result.duration.as_nanos() as u64
    }

    /// The namespace with the loopback that stands for every port.
    pub(crate) fn namespace(&self) -> NetNs {
        self.namespace.clone()
    }

    /// Runs a packet that came in by port 1, in a thread that is in the namespace.
    pub(crate) fn run_here(&mut self, frame: &[u8]) -> Outcome {
        let program: &Xdp = self
            .ebpf
            .program("weir_ingress")
            .unwrap()
            .try_into()
            .unwrap();
        let mut out = vec![0; frame.len() + 64];
        let result = program
            .test_run(TestRunOptions {
                data_in: Some(frame),
                data_out: Some(&mut out),
                ..TestRunOptions::default()
            })
            .unwrap();
        out.truncate(result.data_size_out as usize);
        let event = {
            let item = self.ring.next().unwrap();
            let bytes: &[u8; 184] = (*item).try_into().unwrap();
            Event::of_bytes(bytes)
        };
        Outcome {
            verdict: result.return_value,
            event,
            frame: out,
        }
    }

    fn run_program(&mut self, name: &str, frame: &[u8]) -> Option<Outcome> {
        let program: &Xdp = self.ebpf.program(name).unwrap().try_into().unwrap();
        let mut out = vec![0; frame.len() + 64];
        let result = self
            .namespace
            .run(|| {
                program.test_run(TestRunOptions {
                    data_in: Some(frame),
                    data_out: Some(&mut out),
                    ..TestRunOptions::default()
                })
            })
            .unwrap()
            .unwrap();
        out.truncate(result.data_size_out as usize);
        let mut event = None;
        while let Some(item) = self.ring.next() {
            let bytes: &[u8; 184] = (*item).try_into().unwrap();
            event = Some(Event::of_bytes(bytes));
        }
        event.map(|event| Outcome {
            verdict: result.return_value,
            event,
            frame: out,
        })
    }
}

const HOST: &str = "
ports:
  p1: {vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1, '2001:db8::1']}
  p2: {vlan: 100, macs: ['52:54:00:00:00:02'], addresses: [192.0.2.2, '2001:db8::2']}
  p3: {vlan: 200, macs: ['52:54:00:00:00:03']}
  p4: {trunk: [100, 200]}
";
const ONE: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const TWO: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];

fn reason(outcome: &Outcome) -> &'static str {
    weir_xdp::reason::by_number(outcome.event.reason).map_or("", |it| it.name)
}

/// IPv6 with a payload.
fn ip6(next: u8, source: [u8; 16], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x86, 0xdd, 0x60, 0, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next, 255]);
    bytes.extend(source);
    bytes.extend(
        "2001:db8::2"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets(),
    );
    bytes.extend(payload);
    bytes
}

#[test]
fn every_check_of_a_guest_has_its_reason() {
    if !can_run() {
        return;
    }
    let mut rig = Rig::new(HOST);
    let own = "2001:db8::1"
        .parse::<std::net::Ipv6Addr>()
        .unwrap()
        .octets();
    let good = udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2));
    let advertisement = [[134, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat();
    // Destination options, then a fragment, then UDP from port 547.
    let extended = [
        &[44, 0, 0, 0, 0, 0, 0, 0][..],
        &[17, 0, 0, 0, 0, 0, 0, 1],
        &[2, 35, 0, 1, 0, 8, 0, 0],
    ]
    .concat();
    let fragment = [&[17, 0, 0, 8, 0, 0, 0, 1][..], &[2, 35, 0, 1, 0, 8, 0, 0]].concat();
    let cases: Vec<(&str, Vec<u8>, u32, &str)> = vec![
        ("unicast", frame(TWO, ONE, 0, &good), REDIRECT, ""),
        ("broadcast", frame([0xff; 6], ONE, 0, &good), REDIRECT, ""),
        (
            "priority tag",
            frame(TWO, ONE, 5 << 13, &good),
            REDIRECT,
            "",
        ),
        ("tagged", frame(TWO, ONE, 100, &good), DROP, "tagged-frame"),
        (
            "group source",
            frame(TWO, [1, 0, 0, 0, 0, 1], 0, &good),
            DROP,
            "source-mac-invalid",
        ),
        (
            "another MAC",
            frame(TWO, TWO, 0, &good),
            DROP,
            "spoofed-mac",
        ),
        (
            "control",
            frame([1, 0x80, 0xc2, 0, 0, 2], ONE, 0, &good),
            DROP,
            "control-frame",
        ),
        (
            "another IP",
            frame(TWO, ONE, 0, &udp([192, 0, 2, 9], [192, 0, 2, 2], (1, 2))),
            DROP,
            "spoofed-ip",
        ),
        (
            "DHCP request",
            frame([0xff; 6], ONE, 0, &udp([0; 4], [255; 4], (68, 67))),
            REDIRECT,
            "",
        ),
        (
            "DHCP reply",
            frame(TWO, ONE, 0, &udp([192, 0, 2, 1], [192, 0, 2, 2], (67, 68))),
            DROP,
            "dhcp-server",
        ),
        (
            "router advertisement",
            frame(TWO, ONE, 0, &ip6(58, own, &advertisement)),
            DROP,
            "router-advertisement",
        ),
        (
            "another IPv6",
            frame(TWO, ONE, 0, &ip6(17, [7; 16], &[0; 16])),
            DROP,
            "spoofed-ip",
        ),
        (
            "link-local",
            frame(TWO, ONE, 0, &ip6(59, link_local(), &[])),
            REDIRECT,
            "",
        ),
        (
            "DHCPv6 behind options",
            frame(TWO, ONE, 0, &ip6(60, own, &extended)),
            DROP,
            "dhcp-server",
        ),
        (
            "not the first fragment",
            frame(TWO, ONE, 0, &ip6(44, own, &fragment)),
            REDIRECT,
            "",
        ),
        ("own address", frame(ONE, ONE, 0, &good), DROP, "hairpin"),
    ];
    for (name, bytes, verdict, expected) in cases {
        let outcome = rig.run(&bytes);
        assert_eq!(
            (outcome.verdict, reason(&outcome)),
            (verdict, expected),
            "{name}: {outcome:?}"
        );
    }
    let to_two = rig.run(&frame(TWO, ONE, 0, &good)).event;
    assert_eq!((to_two.out_port, to_two.vlan, to_two.found), (1000, 100, 1));
}

fn link_local() -> [u8; 16] {
    "fe80::5054:ff:fe00:1"
        .parse::<std::net::Ipv6Addr>()
        .unwrap()
        .octets()
}

#[test]
fn a_frame_cut_at_each_length_gets_a_verdict() {
    if !can_run() {
        return;
    }
    let mut rig = Rig::new(HOST);
    let own = "2001:db8::1"
        .parse::<std::net::Ipv6Addr>()
        .unwrap()
        .octets();
    let frames = [
        frame(TWO, ONE, 0, &udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2))),
        frame(
            TWO,
            ONE,
            0,
            &ip6(
                60,
                own,
                &[
                    [44, 0, 0, 0, 0, 0, 0, 0],
                    [6, 0, 0, 0, 0, 0, 0, 0],
                    [0; 8],
                    [0; 8],
                    [0; 8],
                ]
                .concat(),
            ),
        ),
    ];
    for whole in &frames {
        // The kernel refuses to run a packet without a whole Ethernet header.
        for length in 14..=whole.len() {
            let outcome = rig.run(&whole[..length]);
            let found = reason(&outcome);
            let right = matches!(
                (outcome.verdict, found),
                (DROP, "malformed") | (REDIRECT, "")
            );
            assert!(right, "{length}: {outcome:?}");
        }
        assert_eq!(rig.run(whole).verdict, REDIRECT);
        assert_eq!(reason(&rig.run(&whole[..30])), "malformed");
    }
}

#[test]
fn solicitations_are_answered_with_a_right_checksum() {
    if !can_run() {
        return;
    }
    let mut rig = Rig::new(HOST);
    let own = "2001:db8::1"
        .parse::<std::net::Ipv6Addr>()
        .unwrap()
        .octets();
    let target = "2001:db8::2"
        .parse::<std::net::Ipv6Addr>()
        .unwrap()
        .octets();
    let mut solicitation = vec![135, 0, 0, 0, 0, 0, 0, 0];
    solicitation.extend(target);
    solicitation.extend([1, 1]);
    solicitation.extend(ONE);
    let outcome = rig.forward(&frame(
        [0x33, 0x33, 0xff, 0, 0, 2],
        ONE,
        0,
        &ip6(58, own, &solicitation),
    ));
    assert_eq!(
        (outcome.verdict, outcome.event.found, outcome.event.out_port),
        (REDIRECT, 4, 1),
        "{outcome:?}"
    );
    let got = &outcome.frame;
    assert_eq!(got[..12], [ONE, TWO].concat());
    assert_eq!(
        (got[54], got[58], got[78..80].to_vec(), got[80..86].to_vec()),
        (136, 0x60, vec![2, 1], TWO.to_vec())
    );
    assert_eq!(got[22..38], target);
    // The sum of pseudo-header and message, checksum included, is all ones (RFC 1071).
    let pseudo = [&got[22..54], &[0, 0, 0, 32, 0, 0, 0, 58], &got[54..86]].concat();
    let sum = pseudo.chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(pair[0]) * 256 + u32::from(pair[1])
    });
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
}

#[test]
fn an_uplink_learns_and_leaves_the_rest_to_the_kernel() {
    if !can_run() {
        return;
    }
    let mut rig = Rig::new(
        &HOST
            .replace("p1:", "px:")
            .replace("p4:", "p1:")
            .replace("px:", "p4:"),
    );
    let payload = udp([1, 1, 1, 1], [192, 0, 2, 1], (1, 2));
    let far = [0x52, 0, 0, 0, 0, 9];
    assert_eq!(rig.run(&frame(ONE, far, 100, &payload)).event.out_port, 4);
    assert_eq!(
        rig.run(&frame(TWO, far, 200, &payload)).event.out_port,
        u32::MAX
    );
    assert_eq!(rig.run(&frame(ONE, far, 300, &payload)).verdict, PASS);
    assert_eq!(rig.run(&frame(ONE, far, 0, &payload)).verdict, PASS);
    assert_eq!(
        rig.run(&frame([2, 0, 0, 0, 0, 1], far, 100, &payload))
            .verdict,
        PASS
    );
    assert_eq!(
        rig.run(&frame([1, 0x80, 0xc2, 0, 0, 0], far, 100, &payload))
            .verdict,
        PASS
    );
    assert_eq!(
        reason(&rig.run(&frame(TWO, ONE, 100, &payload))),
        "static-mac-moved"
    );
    assert_eq!(
        reason(&rig.run(&frame(far, [2, 2, 2, 2, 2, 2], 100, &payload))),
        "hairpin"
    );
    let learned: Vec<_> = rig
        .maps
        .fdb()
        .unwrap()
        .into_iter()
        .filter(|(_, entry)| entry.flags == 0)
        .collect();
    assert_eq!(learned.len(), 3, "{learned:?}");
}

/// The frame without payload, as it leaves: the first `length` bytes.
#[track_caller]
fn left(outcome: Option<Outcome>, length: usize) -> Vec<u8> {
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.verdict, reason(&outcome)),
        (PASS, ""),
        "{outcome:?}"
    );
    outcome.frame[..length].to_vec()
}

#[test]
fn tags_become_what_the_port_of_departure_wants() {
    if !can_run() {
        return;
    }
    let payload = udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2));
    let addresses = [TWO, ONE].concat();
    let with = |tags: &[u8]| [&addresses[..], tags, &[8, 0]].concat();
    let tagged = frame(TWO, ONE, 5 << 13 | 100, &payload);
    let plain = frame(TWO, ONE, 0, &payload);
    let inner = frame(TWO, ONE, 7, &payload);
    let cases: [(_, _, _, &[u8], Vec<u8>); 8] = [
        ("pop", "trunk: [100]", "vlan: 100", &tagged, with(&[])),
        (
            "keep priority",
            "trunk: [100]",
            "vlan: 100, priority-tags: true",
            &tagged,
            with(&[0x81, 0, 0xa0, 0]),
        ),
        (
            "push",
            "vlan: 100, priority: 3",
            "trunk: [100]",
            &plain,
            with(&[0x81, 0, 0x60, 100]),
        ),
        (
            "push on a tag",
            "vlan: 100, tunnel: true",
            "trunk: [100], tpid: 802.1ad",
            &inner,
            with(&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7]),
        ),
        (
            "another TPID",
            "trunk: [100]",
            "trunk: [100], tpid: 802.1ad",
            &tagged,
            with(&[0x88, 0xa8, 0xa0, 100]),
        ),
        (
            "native VLAN",
            "trunk: [100]",
            "trunk: [1], native: 100",
            &tagged,
            with(&[]),
        ),
        ("as it is", "vlan: 100", "vlan: 100", &plain, with(&[])),
        (
            "VLAN 0 becomes the VLAN",
            "vlan: 100",
            "trunk: [100]",
            &frame(TWO, ONE, 2 << 13, &payload),
            with(&[0x81, 0, 0x40, 100]),
        ),
    ];
    for (name, from, to, bytes, expected) in cases {
        let mut rig = Rig::new(&format!(
            "ports:\n  p1: {{{from}}}\n  p2: {{{to}, macs: ['52:54:00:00:00:02'], guard: none}}\n"
        ));
        assert_eq!(left(rig.send(bytes), expected.len()), expected, "{name}");
        // The same of a frame that has one destination.
        let outcome = rig.forward(bytes);
        assert_eq!(
            (outcome.verdict, outcome.event.out_port),
            (REDIRECT, 1000),
            "{name}: {outcome:?}"
        );
        assert_eq!(outcome.frame[..expected.len()], expected, "{name}");
    }
    let mut rig = Rig::new("ports:\n  p1: {vlan: 100}\n  p2: {vlan: 200}\n");
    assert!(
        rig.send(&plain).is_none(),
        "a copy for another VLAN has no event"
    );
}

#[test]
fn every_check_on_departure_has_its_reason() {
    if !can_run() {
        return;
    }
    let bytes = frame(TWO, ONE, 0, &udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2)));
    let mut long = bytes.clone();
    long.resize(1515, 0);
    let acl = "acls:\n  no-udp:\n    - {action: deny, protocol: udp}\n    - {action: permit}\n";
    let cases: [(&str, &str, &[u8], &str); 3] = [
        ("isolated: true", "isolated: true", &bytes, "isolated"),
        ("learn: true", "acl-out: no-udp", &bytes, "acl-out"),
        ("learn: true", "learn: true", &long, "mtu"),
    ];
    for (from, to, bytes, expected) in cases {
        let mut rig = Rig::new(&format!(
            "ports:\n  p1: {{vlan: 1, {from}}}\n  p2: {{vlan: 1, macs: ['52:54:00:00:00:02'], guard: none, {to}}}\n{acl}"
        ));
        for outcome in [rig.send(bytes).unwrap(), rig.run(bytes)] {
            assert_eq!(
                (outcome.verdict, reason(&outcome)),
                (DROP, expected),
                "{outcome:?}"
            );
        }
    }
    let mut rig = Rig::new(
        "ports:\n  p1: {vlan: 1}\n  p2: {vlan: 1, police-out: {packets: 1, burst-ms: 3000}}\n",
    );
    let verdicts: Vec<_> = (0..6).map(|_| reason(&rig.send(&bytes).unwrap())).collect();
    // Three seconds' worth at once; a slow machine may see one more.
    let limited = verdicts.iter().filter(|it| **it == "policed-out").count();
    assert!((1..=3).contains(&limited), "{verdicts:?}");
}

#[test]
fn flows_spread_over_the_members_that_are_up() {
    if !can_run() {
        return;
    }
    let text = "
ports:
  p1: {vlan: 100}
bonds:
  up: {members: [p2, p3], trunk: [100], macs: ['52:54:00:00:00:02']}
";
    let flow = |port: u16| {
        frame(
            TWO,
            ONE,
            0,
            &udp([192, 0, 2, 1], [192, 0, 2, 2], (1000 + port, 2)),
        )
    };
    let mut rig = Rig::new(text);
    let members: Vec<u32> = (0..200)
        .map(|port| rig.run(&flow(port)).event.out_port)
        .collect();
    let first = members.iter().filter(|member| **member == 3).count();
    assert!(
        members.iter().all(|member| [3, 1000].contains(member)) && (60..=140).contains(&first),
        "{first}"
    );
    let again: Vec<u32> = (0..200)
        .map(|port| rig.run(&flow(port)).event.out_port)
        .collect();
    assert_eq!(members, again, "a flow stays on its member");
    let mut rig = Rig::with_down(text, &[3]);
    assert!((0..50).all(|port| rig.run(&flow(port)).event.out_port == 1000));
    let mut rig = Rig::with_down(text, &[2, 3]);
    assert_eq!(reason(&rig.run(&flow(1))), "port-down");
}

#[test]
fn return_packets_of_a_stateful_rule_are_permitted() {
    if !can_run() {
        return;
    }
    let mut rig = Rig::new(
        "
ports:
  p1: {vlan: 1, acl-in: x, guard: none}
  p2: {vlan: 1}
acls:
  x:
    - {action: permit, protocol: udp, source: 10.0.0.1, stateful: true}
",
    );
    let there = frame(TWO, ONE, 0, &udp([10, 0, 0, 1], [10, 0, 0, 2], (5, 6)));
    let back = frame(TWO, ONE, 0, &udp([10, 0, 0, 2], [10, 0, 0, 1], (6, 5)));
    let other = frame(TWO, ONE, 0, &udp([10, 0, 0, 2], [10, 0, 0, 1], (6, 7)));
    assert_eq!(reason(&rig.run(&back)), "acl-in");
    assert_eq!(rig.run(&there).event.rule, 1);
    let permitted = rig.run(&back);
    assert_eq!((reason(&permitted), permitted.event.rule), ("", 0));
    assert_eq!(reason(&rig.run(&other)), "acl-in");
}

#[test]
fn limits_of_what_a_port_sends_and_floods() {
    if !can_run() {
        return;
    }
    let payload = udp([10, 0, 0, 1], [10, 0, 0, 2], (5, 6));
    for (key, expected) in [("police-in", "policed-in"), ("storm", "storm")] {
        let mut rig = Rig::new(&format!(
            "ports:\n  p1: {{vlan: 1, {key}: {{packets: 1, burst-ms: 2000}}}}\n  p2: {{vlan: 1}}\n"
        ));
        let reasons: Vec<_> = (0..5)
            .map(|_| reason(&rig.run(&frame([0xff; 6], ONE, 0, &payload))))
            .collect();
        let limited = reasons.iter().filter(|it| **it == expected).count();
        assert!((1..=3).contains(&limited), "{reasons:?}");
    }
}
