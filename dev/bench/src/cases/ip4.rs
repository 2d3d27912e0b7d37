//! `ip4`: forwarding of 64k flows in shuffled order, sixteen routes over four neighbours.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use weir_port::interface::Input;

use crate::case::{Case, Kind, Limit};
use crate::scene::{FRAME, IN, Scene, forwarded4};

pub(super) const CASE: Case = Case {
    name: "ip4",
    about: "IPv4, 64k flows, a small table",
    kind: Kind::Packets {
        limit: Limit::Clocks(21.0),
        set,
    },
};

/// Flows, each with a source and a destination of its own.
pub(super) const FLOWS: u32 = 65_536;

/// Also what cases start from that add something to plain forwarding.
pub(crate) fn set(scene: &mut Scene) {
    set_with(scene, FRAME);
}

/// The same with frames of another length.
pub(crate) fn set_with(scene: &mut Scene, length: usize) {
    scene.interface(IN).input = Input::Routed;
    let groups = scene.neighbors(4);
    for part in 0..16u8 {
        let prefix = Ipv4Net::new(Ipv4Addr::new(10, 1, part * 16, 0), 20).unwrap_or_default();
        scene.route4(prefix, groups[usize::from(part) % groups.len()]);
    }
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        scene.udp4_of(length, flow, 0x0a01_0000 + flow);
    }
    scene.check = Box::new(|sent, got| forwarded4(sent, got, 1 + sent[32] / 16 % 4));
}
