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
    kind: Kind::Packets { limit: Limit::Clocks(34.0), set },
};

/// Prefixes of a full table.
const PREFIXES: usize = 1_000_000;
/// Destinations, and so frames.
const DESTINATIONS: usize = 1_000_000;
const NEIGHBORS: u8 = 16;

fn set(scene: &mut Scene) {
    let routes = internet4(1, PREFIXES, NEIGHBORS.into());
    scene.interface(IN).input = Input::Routed;
    let groups = scene.neighbors(NEIGHBORS);
    let routes_in: Vec<(Ipv4Net, u32)> = routes.iter().map(|&(prefix, neighbor)| (prefix, groups[neighbor as usize - 1])).collect();
    scene.fib4.extend(&routes_in).expect("room for a full table");
    let destinations = destinations4(2, DESTINATIONS, &routes);
    let mut frame = udp4(0, 0);
    // No UDP checksum (RFC 768), since it would cover the destination.
    frame[40..42].fill(0);
    // RFC 1071: what the checksum leaves out of the one frame goes in with each destination.
    scene.frames = Frames::made(&frame, destinations.len(), move |n, frame| {
        let destination = destinations.get(n).copied().unwrap_or(0);
        let sum = u32::from(!u16::from_be_bytes([frame[24], frame[25]])) + (destination >> 16) + (destination & 0xffff);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!sum as u16).to_be_bytes());
        frame[30..34].copy_from_slice(&destination.to_be_bytes());
    });
    let routes: HashMap<Ipv4Net, u32> = routes.into_iter().collect();
    scene.check = Box::new(move |sent, got| {
        let destination = sent[30..34].try_into().map(u32::from_be_bytes).map_err(|_| "no destination")?;
        let longest = (0..=32).rev().find_map(|len| routes.get(&Ipv4Net::new(destination.into(), len).ok()?.trunc()));
        forwarded4(sent, got, longest.copied().unwrap_or(0) as u8)
    });
}
