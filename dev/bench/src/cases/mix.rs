//! `mix46-*`, `core`: several protocols at random in every vector, and `same4`, `same6`, `mpls-php`: what they are made of.
//!
//! All of them have the same tables: sixteen IPv4 and sixteen IPv6 routes, labels that are swapped and labels that
//! are taken off for a neighbour (penultimate hop popping), over four neighbours. Only the frames differ: each is drawn
//! at random, with a fixed seed, so that nothing in a vector predicts the next one.

use std::net::Ipv4Addr;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_fib::synthetic::Random;
use weir_fib::{Group, LabelEntry, Path, Payload, TtlMode};
use weir_port::interface::Input;

use super::mpls::{self, FLOWS, IN_LABEL, LABELS, OUT_LABEL, labelled, swapped};
use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, Scene, forwarded4, forwarded6, udp4, udp6};

/// A case whose frames are of these percentages.
const fn case(name: &'static str, about: &'static str, limit: Limit, set: fn(&mut Scene)) -> Case {
    Case {
        name,
        about,
        kind: Kind::Packets { limit, set },
    }
}

pub(super) const SAME4: Case = case(
    "same4",
    "the tables and frames of the mixes, IPv4 alone",
    Limit::None,
    |scene| set(scene, [100, 0, 0, 0]),
);
pub(super) const SAME6: Case = case(
    "same6",
    "the tables and frames of the mixes, IPv6 alone",
    Limit::None,
    |scene| set(scene, [0, 100, 0, 0]),
);
pub(super) const MIX_2: Case = case(
    "mix46-2",
    "IPv4 with 2 % IPv6 at random",
    Limit::OverMean(&[("same4", 0.98), ("same6", 0.02)], 4.0),
    |scene| set(scene, [98, 2, 0, 0]),
);
pub(super) const MIX_25: Case = case(
    "mix46-25",
    "IPv4 with 25 % IPv6 at random",
    Limit::OverMean(&[("same4", 0.75), ("same6", 0.25)], 4.0),
    |scene| set(scene, [75, 25, 0, 0]),
);
pub(super) const MIX_50: Case = case(
    "mix46-50",
    "IPv4 and IPv6 at random",
    Limit::OverMean(&[("same4", 0.5), ("same6", 0.5)], 4.0),
    |scene| set(scene, [50, 50, 0, 0]),
);
pub(super) const PHP: Case = case(
    "mpls-php",
    "the last label goes and the packet with it to a neighbour",
    Limit::TimesIp4(1.5),
    |scene| set(scene, [0, 0, 0, 100]),
);
pub(super) const CORE: Case = case(
    "core",
    "50 % MPLS swap, 25 % PHP, 15 % IPv4, 10 % IPv6",
    Limit::OverMean(
        &[
            ("mpls-swap", 0.5),
            ("mpls-php", 0.25),
            ("same4", 0.15),
            ("same6", 0.1),
        ],
        4.0,
    ),
    |scene| set(scene, [15, 10, 50, 25]),
);

/// 2001:db8::/32.
const NETWORK: u128 = 0x2001_0db8 << 96;
/// The first label that is taken off for a neighbour.
const PHP_LABEL: u32 = OUT_LABEL + LABELS;

/// So many percent of the frames are IPv4, IPv6, with a label to swap, and with one to take off.
fn set(scene: &mut Scene, percent: [u64; 4]) {
    let groups = tables(scene);
    let mut random = Random::new(11);
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        let mut drawn = random.below(100);
        let kind = percent
            .iter()
            .position(|&part| match drawn.checked_sub(part) {
                Some(left) => {
                    drawn = left;
                    false
                }
                None => true,
            });
        let v4 = udp4(flow, 0x0a01_0000 + flow);
        match kind {
            Some(0) => scene.frames.push_numbered(&v4),
            Some(1) => {
                let to = NETWORK | u128::from(flow % 16) << 80 | u128::from(flow);
                scene.frames.push_numbered(&udp6(flow, to));
            }
            Some(2) => {
                let frame = labelled(&v4, IN_LABEL + flow % LABELS, 64);
                scene.frames.push_numbered(&frame);
            }
            _ => {
                let part = PHP_LABEL + flow % groups.len() as u32;
                scene.frames.push_numbered(&under(&v4, part));
            }
        }
    }
    scene.check = Box::new(check);
}

/// The whole packet under a label.
fn under(frame: &[u8], label: u32) -> Vec<u8> {
    let mut whole = labelled(frame, label, 64);
    whole.extend_from_slice(&frame[frame.len() - 4..]);
    whole
}

/// Routes and labels; the groups of the neighbours.
fn tables(scene: &mut Scene) -> Vec<u32> {
    let neighbors = mpls::numbers(scene);
    let groups: Vec<u32> = neighbors
        .iter()
        .filter_map(|&number| {
            let group = Group::new([Path::to(number)]).ok()?;
            scene.nexthops.acquire(group).ok()
        })
        .collect();
    let interface = scene.interface(IN);
    (interface.input, interface.mpls) = (Input::Routed, true);
    interface.addresses6 = [(0xfe80 << 112 | 1, 64)].into();
    for part in 0..16u8 {
        let group = groups[usize::from(part) % groups.len()];
        let v4 = Ipv4Net::new(Ipv4Addr::new(10, 1, part * 16, 0), 20).unwrap_or_default();
        scene.route4(v4, group);
        let v6 = Ipv6Net::new((NETWORK | u128::from(part) << 80).into(), 48).unwrap_or_default();
        scene.route6(v6, group);
    }
    for label in 0..LABELS {
        let neighbor = neighbors[label as usize % neighbors.len()];
        let group = mpls::group(scene, neighbor, OUT_LABEL + label);
        scene.tables.lfib.set(
            IN_LABEL + label,
            LabelEntry::new(group, TtlMode::Uniform, Payload::Either),
        );
    }
    for (label, &group) in (PHP_LABEL..).zip(&groups) {
        scene.tables.lfib.set(
            label,
            LabelEntry::new(group, TtlMode::Uniform, Payload::Either),
        );
    }
    groups
}

/// What became of a frame of any of these kinds.
fn check(sent: &[u8], got: &[u8]) -> Result<(), String> {
    let label = u32::from_be_bytes(*sent[14..].first_chunk().unwrap_or(&[0; 4])) >> 12;
    match sent[12..14] {
        [0x08, 0x00] => forwarded4(sent, got, 1 + sent[32] / 16 % 4),
        [0x86, 0xdd] => forwarded6(sent, got, 1 + sent[43] % 4),
        _ if label < PHP_LABEL => swapped(sent, got),
        _ => {
            // Uniform mode: the packet leaves with the label's time to live, one less; its own was the same.
            let plain = [&sent[..12], &[8, 0], &sent[18..]].concat();
            forwarded4(&plain, got, 1 + (label - PHP_LABEL) as u8)
        }
    }
}
