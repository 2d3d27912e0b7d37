//! `ip4-v1` to `ip4-v64`: `ip4` with few packets in each vector, as on a router with little traffic. `ports-8`: eight
//! ports, each of which sends to all. `ifindex`: `ip4` on a port with a high number, with sFlow at 1:1000.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use weir_port::interface::Input;

use super::ip4;
use crate::case::{Case, Kind, Limit};
use crate::scene::{Scene, forwarded4};

const fn case(name: &'static str, about: &'static str, limit: Limit, set: fn(&mut Scene)) -> Case {
    Case {
        name,
        about,
        kind: Kind::Packets { limit, set },
    }
}

pub(super) const ONE: Case = case(
    "ip4-v1",
    "ip4 with one packet a vector",
    Limit::Clocks(200.0),
    |scene| set(scene, 1),
);
pub(super) const FOUR: Case = case(
    "ip4-v4",
    "ip4 with four packets a vector",
    Limit::Clocks(70.0),
    |scene| set(scene, 4),
);
pub(super) const SIXTEEN: Case = case(
    "ip4-v16",
    "ip4 with sixteen packets a vector",
    Limit::Clocks(30.0),
    |scene| set(scene, 16),
);
pub(super) const SIXTY_FOUR: Case = case(
    "ip4-v64",
    "ip4 with 64 packets a vector",
    Limit::Clocks(19.0),
    |scene| set(scene, 64),
);
pub(super) const PORTS: Case = case(
    "ports-8",
    "IPv4 between eight ports, all to all",
    Limit::OverIp4(4.0),
    ports,
);
pub(super) const IFINDEX: Case = case(
    "ifindex",
    "ip4 on interface 200 with sFlow 1:1000",
    Limit::OverIp4(1.0),
    ifindex,
);

fn set(scene: &mut Scene, vector: usize) {
    ip4::set(scene);
    scene.vector = vector;
    scene.frames.number = Some(number);
}

/// The number of a frame, from the address that it comes from: flows of one vector may change their order.
fn number(frame: &[u8]) -> usize {
    let flow = u32::from_be_bytes([0, 0, frame[28], frame[29]]);
    (flow.wrapping_mul(INVERSE) % ip4::FLOWS) as usize
}

/// Sixteen routes over these groups, and frames to all of them.
fn route(scene: &mut Scene, groups: &[u32]) {
    for part in 0..16u8 {
        let prefix = Ipv4Net::new(Ipv4Addr::new(10, 1, part * 16, 0), 20).unwrap_or_default();
        scene.route4(prefix, groups[usize::from(part) % groups.len()]);
    }
    for number in 0..ip4::FLOWS {
        let flow = number.wrapping_mul(40_503) % ip4::FLOWS;
        scene.udp4(flow, 0x0a01_0000 + flow);
    }
}

fn ports(scene: &mut Scene) {
    (4..=8).for_each(|port| scene.add_port(port));
    scene.inputs = (1..=8).collect();
    let mut groups = Vec::new();
    for port in 1..=8u8 {
        scene.interface(port.into()).input = Input::Routed;
        groups.push(scene.neighbor(port, port.into()));
    }
    route(scene, &groups);
    scene.frames.number = Some(number);
    scene.egress = Some(|sent| u32::from(1 + sent[32] / 16 % 8));
    scene.check = Box::new(|sent, got| forwarded4(sent, got, 1 + sent[32] / 16 % 8));
}

/// 40,503 times this is 1 modulo the number of flows.
const INVERSE: u32 = 30_599;

fn ifindex(scene: &mut Scene) {
    scene.add_port(200);
    scene.add_port(201);
    scene.interface(200).input = Input::Routed;
    scene.inputs = vec![200];
    scene.sampled = 200;
    scene.telemetry.sampling = 1000;
    let groups: Vec<u32> = (1..=4).map(|number| scene.neighbor(number, 201)).collect();
    route(scene, &groups);
    scene.check = Box::new(|sent, got| forwarded4(sent, got, 1 + sent[32] / 16 % 4));
}
