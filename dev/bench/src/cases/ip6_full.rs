//! `ip6-full`: a full IPv6 table (250,000 prefixes with today's lengths, sixteen next hops) and a million
//! destinations in random order, each covered by some prefix.
//!
//! As `ip4-full`: every frame is another flow to another destination, and the check asks a longest prefix match of
//! its own.

use std::collections::HashMap;

use ipnet::Ipv6Net;
use weir_fib::synthetic::{destinations6, internet6};

use super::ip4_full::NEIGHBORS;
use super::ip6::route;
use crate::case::{Case, Kind, Limit};
use crate::scene::{Frames, Scene, forwarded6, udp6};

pub(super) const CASE: Case = Case {
    name: "ip6-full",
    about: "IPv6, 250,000 prefixes, a million random destinations",
    kind: Kind::Packets {
        limit: Limit::Clocks(45.0),
        set,
    },
};

/// Prefixes of a full table.
const PREFIXES: usize = 250_000;
/// Destinations, and so frames.
const DESTINATIONS: usize = 1_000_000;

fn set(scene: &mut Scene) {
    route(scene);
    let groups = scene.neighbors(NEIGHBORS);
    let routes = internet6(1, PREFIXES / scene.thinned, NEIGHBORS.into());
    let entered: Vec<(Ipv6Net, u32)> = routes
        .iter()
        .map(|&(prefix, neighbor)| (prefix, groups[neighbor as usize - 1]))
        .collect();
    scene.fib6.extend(&entered).expect("room for a full table");
    let destinations = destinations6(2, DESTINATIONS, &routes);
    let frame = udp6(0, 0);
    // The UDP checksum covers the destination, and what it leaves out of the one frame goes in with each (RFC 1624).
    scene.frames = Frames::made(&frame, destinations.len(), move |n, frame| {
        let destination = destinations.get(n).copied().unwrap_or(0).to_be_bytes();
        let words = destination
            .as_chunks::<2>()
            .0
            .iter()
            .map(|word| u32::from(u16::from_be_bytes(*word)));
        let sum = u32::from(!u16::from_be_bytes([frame[60], frame[61]])) + words.sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = if sum == 0xffff { 0xffff } else { !sum as u16 };
        frame[60..62].copy_from_slice(&sum.to_be_bytes());
        frame[38..54].copy_from_slice(&destination);
    });
    let routes: HashMap<Ipv6Net, u32> = routes.into_iter().collect();
    scene.check = Box::new(move |sent, got| {
        let destination = sent[38..54]
            .try_into()
            .map(u128::from_be_bytes)
            .map_err(|_| "no destination")?;
        let longest = (0..=128)
            .rev()
            .find_map(|len| routes.get(&Ipv6Net::new(destination.into(), len).ok()?.trunc()));
        forwarded6(sent, got, longest.copied().unwrap_or(0) as u8)
    });
}
