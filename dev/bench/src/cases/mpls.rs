//! `mpls-swap`, `mpls-push`, `mpls-pop`: the three roles on a label path, 64k flows in shuffled order, four neighbours.
//!
//! A push is what an ingress does: look the destination up and put a label on. A pop is what an egress does: take the
//! label off and look up what is under it. A swap has a label a flow, 4096 in all.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use weir_fib::{Adjacency, Group, LabelEntry, LabelStack, Path, Payload, TtlMode};
use weir_port::interface::Input;

use super::ip4;
use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, OURS, Scene, udp4};

pub(super) const SWAP: Case = Case {
    name: "mpls-swap",
    about: "one label for another, 4096 labels, 64k flows",
    kind: Kind::Packets {
        limit: Limit::Clocks(23.0),
        set: swap,
    },
};

pub(super) const PUSH: Case = Case {
    name: "mpls-push",
    about: "IPv4 gets a label, 64k flows, a small table",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set: push,
    },
};

pub(super) const POP: Case = Case {
    name: "mpls-pop",
    about: "a label goes and IPv4 is looked up, 64k flows, a small table",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set: pop,
    },
};

pub(super) const FLOWS: u32 = 65_536;
pub(super) const LABELS: u32 = 4096;
/// The first incoming label.
pub(super) const IN_LABEL: u32 = 16_000;
/// The first outgoing label.
pub(super) const OUT_LABEL: u32 = 24_000;

/// A frame with a label in front of its packet; the last four bytes go, so that it stays as long.
pub(super) fn labelled(frame: &[u8], label: u32, ttl: u32) -> Vec<u8> {
    let entry = (label << 12 | 0x100 | ttl).to_be_bytes();
    [
        &frame[..12],
        &[0x88, 0x47],
        &entry,
        &frame[14..frame.len() - 4],
    ]
    .concat()
}

pub(super) fn group(scene: &mut Scene, neighbor: u32, label: u32) -> u32 {
    let path = Path {
        labels: LabelStack::of(&[label]),
        ..Path::to(neighbor)
    };
    Group::new([path])
        .and_then(|group| scene.nexthops.acquire(group))
        .expect("a group of one path with a label")
}

/// Numbers of the neighbours that [`Scene::neighbors`] made.
pub(super) fn numbers(scene: &mut Scene) -> Vec<u32> {
    let groups = scene.neighbors(4);
    groups
        .iter()
        .filter_map(|&group| Some(scene.nexthops.group(group)?.paths().first()?.adjacency))
        .collect()
}

fn swap(scene: &mut Scene) {
    let interface = scene.interface(IN);
    (interface.input, interface.mpls) = (Input::Routed, true);
    let neighbors = numbers(scene);
    for label in 0..LABELS {
        let group = group(
            scene,
            neighbors[label as usize % neighbors.len()],
            OUT_LABEL + label,
        );
        scene.tables.lfib.set(
            IN_LABEL + label,
            LabelEntry::new(group, TtlMode::Uniform, Payload::Either),
        );
    }
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        scene.frames.push(&labelled(
            &udp4(flow, 0x0a01_0000 + flow),
            IN_LABEL + flow % LABELS,
            64,
        ));
    }
    scene.check = Box::new(swapped);
}

/// Whether the label of `sent` was swapped for the one that [`swap`] set for it.
pub(super) fn swapped(sent: &[u8], got: &[u8]) -> Result<(), String> {
    let label = u32::from_be_bytes(*sent[14..].first_chunk().unwrap_or(&[0; 4])) >> 12;
    let entry = ((label - IN_LABEL + OUT_LABEL) << 12 | 0x100 | 63).to_be_bytes();
    let neighbor = 1 + ((label - IN_LABEL) % 4) as u8;
    let wanted = [
        &[2, 0, 0, 0, 1, neighbor],
        &OURS.0[..],
        &[0x88, 0x47],
        &entry,
        &sent[18..],
    ]
    .concat();
    if got == wanted {
        Ok(())
    } else {
        Err(format!("not swapped as it should be: {got:02x?}"))
    }
}

/// The routes of `ip4`, each over a label.
fn push(scene: &mut Scene) {
    scene.interface(IN).input = Input::Routed;
    let neighbors = numbers(scene);
    for part in 0..16u8 {
        let prefix = Ipv4Net::new(Ipv4Addr::new(10, 1, part * 16, 0), 20).unwrap_or_default();
        let group = group(
            scene,
            neighbors[usize::from(part) % neighbors.len()],
            OUT_LABEL + u32::from(part),
        );
        scene.route4(prefix, group);
    }
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        scene.udp4(flow, 0x0a01_0000 + flow);
    }
    scene.check = Box::new(|sent, got| {
        let part = u32::from(sent[32] / 16);
        let entry = ((OUT_LABEL + part) << 12 | 0x100 | 63).to_be_bytes();
        let start = [
            &[2, 0, 0, 0, 1, 1 + (part % 4) as u8],
            &OURS.0[..],
            &[0x88, 0x47],
            &entry,
        ]
        .concat();
        let right = got.len() == sent.len() + 4
            && got.starts_with(&start)
            && got[26] == 63
            && got[30..] == sent[26..];
        if right {
            Ok(())
        } else {
            Err(format!("not pushed as it should be: {got:02x?}"))
        }
    });
}

/// The routes of `ip4`, under a label.
fn pop(scene: &mut Scene) {
    ip4::set(scene);
    scene.interface(IN).mpls = true;
    let end = scene.nexthops.add_adjacency(Adjacency::lookup_in(0));
    let group = Group::new([Path::to(end)])
        .and_then(|group| scene.nexthops.acquire(group))
        .expect("a group of one path");
    scene.tables.lfib.set(
        IN_LABEL,
        LabelEntry::new(group, TtlMode::Uniform, Payload::Ip4),
    );
    scene.frames = crate::scene::Frames::default();
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        let frame = udp4(flow, 0x0a01_0000 + flow);
        let mut frame = [&labelled(&frame, IN_LABEL, 64)[..], &frame[60..]].concat();
        frame.truncate(68);
        scene.frames.push(&frame);
    }
    scene.check = Box::new(|sent, got| {
        let plain = [&sent[..12], &[8, 0], &sent[18..]].concat();
        crate::scene::forwarded4(&plain, got, 1 + plain[32] / 16 % 4)
    });
}
