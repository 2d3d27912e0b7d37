//! `bridge`: a bridge domain of two ports with 1,024 stations behind each, all of them known.
//! `bridge-tagged`: the same with a VLAN sub-interface of each port as member. `bridge-mix`: both kinds of members in
//! one domain, with 1 % broadcast and 1 % of frames for unknown stations, which are flooded to the three other members.
//!
//! Frames of 64k flows in shuffled order, as in `ip4`; sender and receiver of each are any two of the stations.

use std::sync::Arc;

use weir_fib::synthetic::Random;
use weir_fib::{MacTable, Station};
use weir_nodes::{BridgeDomain, Member};
use weir_port::interface::Input;
use weir_wire::build;

use crate::case::{Case, Kind, Limit};
use crate::scene::{FRAME, IN, OUT, Scene};

pub(super) const CASE: Case = Case {
    name: "bridge",
    about: "a bridge domain, 2048 stations, 64k flows",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set,
    },
};

pub(super) const TAGGED: Case = Case {
    name: "bridge-tagged",
    about: "the same with VLAN sub-interfaces as members",
    kind: Kind::Packets {
        limit: Limit::None,
        set: |scene| set_mix(scene, 100, 0),
    },
};

pub(super) const MIX: Case = Case {
    name: "bridge-mix",
    about: "tagged and untagged members, 1 % broadcast, 1 % unknown",
    kind: Kind::Packets {
        limit: Limit::OverMean(&[("bridge", 0.5), ("bridge-tagged", 0.5)], 5.0),
        set: |scene| set_mix(scene, 50, 2),
    },
};

const FLOWS: u32 = 65_536;
/// Behind each member.
const STATIONS: u32 = 1024;
/// The VLANs of the port where frames come in, and of the one where they leave.
const VLANS: [u16; 2] = [100, 200];

/// A station behind a member.
fn station(member: u8, number: u32) -> [u8; 6] {
    let [_, _, high, low] = (number % STATIONS).to_be_bytes();
    [2, 0, 0x5e, member, high, low]
}

/// A bridge domain of these interfaces, which knows all stations.
fn bridge(scene: &mut Scene, interfaces: &[u32]) {
    let stations = MacTable::new(16_384, 0, [0x2545_f491_4f6c_dd1d, 0x9e6c_63d0_876a_68e5]);
    let mut members = Vec::new();
    for (member, &interface) in interfaces.iter().enumerate() {
        scene.interface(interface).input = Input::Bridge {
            domain: 0,
            member: member as u16,
        };
        members.push(Some(Member {
            interface,
            group: 0,
            is_bvi: false,
            longest: 1514,
            meters: Arc::default(),
        }));
        for number in 0..STATIONS {
            stations.hear(
                stations.key(Station::new(self::station(member as u8, number))),
                member as u16,
                0,
            );
        }
    }
    let mut domain = BridgeDomain::new("bd1".into(), Arc::new(stations), BridgeDomain::counters(1));
    domain.members = members;
    scene.tables.bridges = vec![Some(Arc::new(domain.ready()))];
}

fn set(scene: &mut Scene) {
    bridge(scene, &[IN, OUT]);
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        let mut frame = [flow as u8; FRAME];
        frame[..6].copy_from_slice(&station(1, flow));
        frame[6..12].copy_from_slice(&station(0, flow / 64));
        scene.frames.push(&frame);
    }
    scene.check = Box::new(|sent, got| {
        if sent == got {
            Ok(())
        } else {
            Err("changed in a bridge domain".into())
        }
    });
}

/// Members 0 and 1 are the ports, members 2 and 3 their sub-interfaces. Of 100 frames so many are tagged, and so
/// many are flooded: one half broadcast, the other for stations that nobody has heard of.
fn set_mix(scene: &mut Scene, tagged: u64, flooded: u64) {
    let subs = [(IN, VLANS[0]), (OUT, VLANS[1])]
        .map(|(port, vlan)| scene.add_vlan(port, vlan, Input::Routed));
    bridge(scene, &[IN, OUT, subs[0], subs[1]]);
    let mut random = Random::new(5);
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        let is_tagged = random.below(100) < tagged;
        let to_tagged = random.below(100) < tagged;
        let mut frame = vec![flow as u8; FRAME];
        let destination = match random.below(100) {
            0 if flooded > 0 => [0xff; 6],
            1 if flooded > 0 => [2, 0, 0x5e, 0xee, (flow >> 8) as u8, flow as u8],
            _ => station(if to_tagged { 3 } else { 1 }, flow),
        };
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&station(if is_tagged { 2 } else { 0 }, flow / 64));
        // An EtherType of no protocol that the router knows (IEEE 802 local experimental).
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        if is_tagged {
            frame = build::tagged(&frame[..FRAME - 4], VLANS[0], 0);
        }
        scene.frames.push_numbered(&frame);
    }
    scene.copies = |sent| match sent[..6] {
        [0xff, ..] | [_, _, _, 0xee, ..] => 3,
        _ => 1,
    };
    scene.check = Box::new(|sent, got| {
        if untagged(sent) == untagged(got) {
            Ok(())
        } else {
            Err("changed in a bridge domain".into())
        }
    });
}

/// The frame without its VLAN tag.
fn untagged(frame: &[u8]) -> Vec<u8> {
    match frame[12..14] {
        [0x81, 0x00] => [&frame[..12], &frame[16..]].concat(),
        _ => frame.into(),
    }
}
