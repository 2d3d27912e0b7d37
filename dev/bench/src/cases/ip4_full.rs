//! `ip4-full`: a full table (a million prefixes with today's lengths, sixteen next hops) and a million destinations
//! in random order, each covered by some prefix.
//!
//! Every frame is another flow to another destination, so that no entry of the table is hot for having been
//! used a moment ago, except by chance. The check asks a longest prefix match of its own.

use std::collections::HashMap;

use ipnet::Ipv4Net;
use weir_fib::synthetic::{destinations4, internet4};
use weir_port::interface::Input;

use crate::case::{Case, Kind, Limit};
use crate::scene::{Frames, IN, Scene, forwarded4, udp4};

pub(super) const CASE: Case = Case {
    name: "ip4-full",
    about: "IPv4, a million prefixes, a million random destinations",
    kind: Kind::Packets {
        limit: Limit::Clocks(34.0),
        set,
    },
};

/// Prefixes of a full table.
const PREFIXES: usize = 1_000_000;
/// Destinations, and so frames.
const DESTINATIONS: usize = 1_000_000;
/// Next hops.
pub(crate) const NEIGHBORS: u8 = 16;

/// The prefixes, each with the number of its neighbour from 1 on.
pub(crate) fn routes(thinned: usize) -> Vec<(Ipv4Net, u8)> {
    internet4(1, PREFIXES / thinned.max(1), NEIGHBORS.into())
        .into_iter()
        .map(|(prefix, neighbor)| (prefix, neighbor as u8))
        .collect()
}

/// The destinations, in the order of frames.
pub(crate) fn destinations(thinned: usize) -> Vec<u32> {
    destinations4(
        2,
        DESTINATIONS,
        &internet4(1, PREFIXES / thinned.max(1), NEIGHBORS.into()),
    )
}

fn set(scene: &mut Scene) {
    enter(scene, &routes(scene.thinned));
}

/// Sets everything; returns the routes with their groups.
pub(crate) fn enter(scene: &mut Scene, routes: &[(Ipv4Net, u8)]) -> Vec<(Ipv4Net, u32)> {
    scene.interface(IN).input = Input::Routed;
    let groups = scene.neighbors(NEIGHBORS);
    let entered: Vec<(Ipv4Net, u32)> = routes
        .iter()
        .map(|&(prefix, neighbor)| (prefix, groups[usize::from(neighbor) - 1]))
        .collect();
    scene.fib4.extend(&entered).expect("room for a full table");
    frames(scene);
    let routes: HashMap<Ipv4Net, u8> = routes.iter().copied().collect();
    scene.check = Box::new(move |sent, got| {
        let destination = sent[30..34]
            .try_into()
            .map(u32::from_be_bytes)
            .map_err(|_| "no destination")?;
        let longest = (0..=32)
            .rev()
            .find_map(|len| routes.get(&Ipv4Net::new(destination.into(), len).ok()?.trunc()));
        forwarded4(sent, got, longest.copied().unwrap_or(0))
    });
    entered
}

/// Frames to all destinations.
pub(crate) fn frames(scene: &mut Scene) {
    let mut frame = udp4(0, 0);
    // No UDP checksum (RFC 768), since it would cover the destination.
    frame[40..42].fill(0);
    let destinations = destinations(scene.thinned);
    // RFC 1071: what the checksum leaves out of the one frame goes in with each destination.
    scene.frames = Frames::made(&frame, destinations.len(), move |n, frame| {
        let destination = destinations.get(n).copied().unwrap_or(0);
        let sum = u32::from(!u16::from_be_bytes([frame[24], frame[25]]))
            + (destination >> 16)
            + (destination & 0xffff);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!sum as u16).to_be_bytes());
        frame[30..34].copy_from_slice(&destination.to_be_bytes());
    });
}
