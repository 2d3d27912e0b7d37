//! `bridge`: a bridge domain of two ports with a thousand stations behind each, all of them known.
//!
//! Frames of 64k flows in shuffled order, as in `ip4`; sender and receiver of each are any two of the stations.

use std::sync::Arc;

use weir_fib::{MacTable, Station};
use weir_nodes::{BridgeDomain, Member};
use weir_port::interface::Input;

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

const FLOWS: u32 = 65_536;
/// Behind each port.
const STATIONS: u32 = 1024;

/// A station behind member 0 or 1.
fn station(member: u8, number: u32) -> [u8; 6] {
    let [_, _, high, low] = (number % STATIONS).to_be_bytes();
    [2, 0, 0x5e, member, high, low]
}

fn set(scene: &mut Scene) {
    let stations = MacTable::new(16_384, 0, [0x2545_f491_4f6c_dd1d, 0x9e6c_63d0_876a_68e5]);
    let mut members = Vec::new();
    for (member, interface) in [IN, OUT].into_iter().enumerate() {
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
