//! `ip6`: as `ip4`, with 64k flows to 64k addresses, sixteen routes of 48 bits and four neighbours.

use ipnet::Ipv6Net;
use weir_port::interface::Input;

use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, Scene, forwarded6, udp6};

pub(super) const CASE: Case = Case {
    name: "ip6",
    about: "IPv6, 64k flows, a small table",
    kind: Kind::Packets {
        limit: Limit::Clocks(29.0),
        set,
    },
};

const FLOWS: u32 = 65_536;
/// 2001:db8::/32.
const NETWORK: u128 = 0x2001_0db8 << 96;

fn set(scene: &mut Scene) {
    route(scene);
    let groups = scene.neighbors(4);
    for part in 0..16u8 {
        let prefix =
            Ipv6Net::new((NETWORK | u128::from(part) << 80).into(), 48).unwrap_or_default();
        scene.route6(prefix, groups[usize::from(part) % groups.len()]);
    }
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        let destination = NETWORK | u128::from(flow % 16) << 80 | u128::from(flow);
        scene.frames.push(&udp6(flow, destination));
    }
    scene.check = Box::new(|sent, got| forwarded6(sent, got, 1 + sent[43] % 4));
}

/// The first port routes IPv6.
pub(super) fn route(scene: &mut Scene) {
    let interface = scene.interface(IN);
    interface.input = Input::Routed;
    interface.addresses6 = [(0xfe80 << 112 | 1, 64)].into();
}
