//! `internet`: what an edge port receives: 62 % IPv4, 34 % IPv6, 2 % fragments, 1 % IPv4 options or IPv6 extension
//! headers, 1 % ICMP, ARP, neighbour solicitations and packets whose time to live ends, in IMIX sizes (7:4:1 of 64,
//! 594 and 1514 bytes), by full tables of both families. `edge`: the same on two VLAN sub-interfaces behind an input
//! access list of 1,000 terms and loose uRPF, with sFlow at 1:1000 and a flow meter that holds 100,000 flows.
//!
//! A frame's number is the low part of its source address, since the order of frames changes. Only headers are kept,
//! so that reading frames leaves the caches to the tables, as a network card does.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_acl::synthetic::{Family, Kind as Shape, rules};
use weir_acl::{Action, Rule};
use weir_fib::synthetic::{Random, destinations6, internet6};
use weir_nodes::{Filter, FilterCounters, FilterList};
use weir_port::interface::{Feature, Input, ReversePath};
use weir_wire::{build, checksum};

use super::ip4_full::{self, NEIGHBORS};
use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, OURS, PEER, Scene, Telemetry};

pub(super) const INTERNET: Case = Case {
    name: "internet",
    about: "IPv4, IPv6, fragments, options, exceptions; IMIX; full tables",
    kind: Kind::Packets {
        limit: Limit::Clocks(55.0),
        set: |scene| set(scene, 65_536, false),
    },
};

pub(super) const EDGE: Case = Case {
    name: "edge",
    about: "internet with VLANs, ACL, uRPF, IPFIX and sFlow 1:1000",
    kind: Kind::Packets {
        limit: Limit::Clocks(150.0),
        set: |scene| set(scene, 100_000, true),
    },
};

/// Where sources begin: 10.64.0.0 and 2001:db8::.
const SOURCES4: u32 = 0x0a40_0000;
const SOURCES6: u128 = 0x2001_0db8 << 96;
/// The router's addresses on the port where packets come in.
const OWN4: u32 = 0xc000_0201;
const OWN6: u128 = 0x2001_0db8_ffff << 80 | 1;
/// VLANs of the sub-interfaces of `edge`.
const VLANS: [u16; 2] = [100, 200];
/// IPv6 prefixes of a full table.
const PREFIXES6: usize = 250_000;

fn set(scene: &mut Scene, flows: u32, edge: bool) {
    let routes4 = ip4_full::routes(scene.thinned);
    let routes6 = internet6(1, PREFIXES6 / scene.thinned, NEIGHBORS.into());
    let groups = scene.neighbors(NEIGHBORS);
    let group = |neighbor: u32| groups[neighbor as usize - 1];
    let entered: Vec<_> = routes4
        .iter()
        .map(|&(prefix, neighbor)| (prefix, group(neighbor.into())))
        .collect();
    scene.fib4.extend(&entered).expect("room for a full table");
    let entered: Vec<_> = routes6
        .iter()
        .map(|&(prefix, neighbor)| (prefix, group(neighbor)))
        .collect();
    scene.fib6.extend(&entered).expect("room for a full table");
    // Sources have routes, for uRPF and for ICMP errors.
    scene.route4(
        Ipv4Net::new(SOURCES4.into(), 10).unwrap_or_default(),
        groups[0],
    );
    scene.route6(
        Ipv6Net::new(SOURCES6.into(), 64).unwrap_or_default(),
        groups[0],
    );
    let inputs = if edge {
        VLANS
            .map(|vlan| scene.add_vlan(IN, vlan, Input::Routed))
            .into()
    } else {
        vec![IN]
    };
    for (number, &interface) in (0..).zip(&inputs) {
        let interface = scene.interface(interface);
        interface.input = Input::Routed;
        interface.addresses = [(OWN4 + number * 256, 24)].into();
        interface.addresses6 = [
            (OWN6 + (u128::from(number) << 64), 64),
            (0xfe80 << 112 | 1, 64),
        ]
        .into();
    }
    if edge {
        filters(scene, &inputs);
        scene.telemetry = Telemetry {
            sampling: 1000,
            metered: true,
        };
    }
    frames(scene, flows, edge);
    scene.frames.number = Some(number);
    scene.copies = |sent| usize::from(is_transit(untagged(sent).1));
    scene.is_originated = is_originated;
    scene.check = check(routes4, routes6);
}

/// An access list of 1,000 terms for both families, and loose uRPF.
fn filters(scene: &mut Scene, interfaces: &[u32]) {
    let count = 500 / scene.thinned.min(10);
    let terms = [Family::V4, Family::V6]
        .into_iter()
        .flat_map(|family| rules(7, count, Shape::Chain, family));
    let list = Arc::new(
        FilterList::build(terms.map(|rule| {
            let rule = Rule {
                action: Action::Permit,
                ..rule
            };
            (rule.action, vec![rule])
        }))
        .expect("a list that can be built"),
    );
    for &interface in interfaces {
        let counters = Arc::new(FilterCounters::new(1, list.terms()));
        let entry = scene.entry(interface);
        let list = list.clone();
        entry.acl_input = Some(Filter { list, counters });
        let interface = &mut entry.interface;
        interface.urpf = Some(ReversePath::Loose);
        interface.features = interface.features.with(Feature::AclIn).with(Feature::Urpf);
    }
}

fn frames(scene: &mut Scene, flows: u32, edge: bool) {
    let thinned = scene.thinned;
    let to4 = ip4_full::destinations(thinned);
    let to6 = destinations6(
        2,
        flows as usize,
        &internet6(1, PREFIXES6 / thinned, NEIGHBORS.into()),
    );
    let mut random = Random::new(12);
    for flow in 0..flows {
        let (v4, v6) = (
            to4[flow as usize % to4.len()],
            to6[flow as usize % to6.len()],
        );
        let mut head = match random.below(100) {
            0..62 => udp4(flow, v4),
            62..96 => udp6(flow, v6),
            drawn @ 96..98 => fragment(udp4(flow, v4), drawn == 97),
            98 if random.below(2) == 0 => with_options(udp4(flow, v4)),
            98 => with_extension(udp6(flow, v6)),
            _ => match random.below(4) {
                0 => arp(flow),
                1 => solicitation(flow),
                2 => expiring(udp4(flow, v4)),
                _ => echo(flow, v4),
            },
        };
        let mut length = match random.below(12) {
            _ if head.len() > HEAD || !is_transit(&head) => head.len(),
            0..7 => HEAD,
            7..11 => 594,
            _ => 1514,
        };
        set_lengths(&mut head, length);
        if edge {
            head = build::tagged(&head, VLANS[flow as usize % VLANS.len()], 0);
            length += 4;
        }
        scene.frames.push_head(&head, length);
    }
}

/// Bytes of most frames' headers, and of the shortest frames.
const HEAD: usize = 64;

fn udp4(flow: u32, destination: u32) -> Vec<u8> {
    let ends = build::Ends {
        destination_mac: OURS,
        source_mac: PEER,
        source: SOURCES4 + flow,
        destination,
        source_port: 1000 + (flow % 40_000) as u16,
        destination_port: 443,
        ..build::Ends::default()
    };
    let mut frame = vec![0; HEAD];
    assert!(build::udp4_into(&mut frame, &ends), "room for the headers");
    // No UDP checksum (RFC 768): it would cover payload that is not written.
    frame[40..42].fill(0);
    frame
}

fn udp6(flow: u32, destination: u128) -> Vec<u8> {
    let ends = build::Ends6 {
        destination_mac: OURS,
        source_mac: PEER,
        source: (SOURCES6 | u128::from(flow)).to_be_bytes(),
        destination: destination.to_be_bytes(),
        source_port: 1000 + (flow % 40_000) as u16,
        destination_port: 443,
        ..build::Ends6::default()
    };
    let mut frame = vec![0; HEAD];
    assert!(build::udp6_into(&mut frame, &ends), "room for the headers");
    frame
}

/// The first fragment of a datagram, or a later one.
fn fragment(mut frame: Vec<u8>, later: bool) -> Vec<u8> {
    let field: u16 = if later { 185 } else { 0x2000 };
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    frame
}

/// The packet with four bytes of options: no operation three times, and the end of the list.
fn with_options(frame: Vec<u8>) -> Vec<u8> {
    let mut frame = [&frame[..34], &[1, 1, 1, 0], &frame[34..]].concat();
    frame[14] = 0x46;
    frame
}

/// The packet with an empty destination options header (RFC 8200 section 4.6).
fn with_extension(frame: Vec<u8>) -> Vec<u8> {
    let mut frame = [&frame[..54], &[17, 0, 1, 4, 0, 0, 0, 0], &frame[54..]].concat();
    frame[20] = 60;
    frame
}

fn expiring(mut frame: Vec<u8>) -> Vec<u8> {
    frame[22] = 1;
    frame
}

/// An echo request to another host.
fn echo(flow: u32, destination: u32) -> Vec<u8> {
    let ends = build::Ends {
        destination_mac: OURS,
        source_mac: PEER,
        source: SOURCES4 + flow,
        destination,
        ..build::Ends::default()
    };
    let mut frame = vec![0; HEAD];
    assert!(
        build::echo4_into(&mut frame, &ends, 8, 1, flow as u16),
        "room for the headers"
    );
    frame
}

/// A request for the router's address.
fn arp(flow: u32) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    // A neighbour in the subnet.
    let source = OWN4 + 1 + flow % 200;
    assert!(
        build::arp_request(&mut frame, PEER, source, OWN4),
        "room for a request"
    );
    frame
}

/// A solicitation of the router's address, to its solicited-node group (RFC 4861 section 4.3).
fn solicitation(flow: u32) -> Vec<u8> {
    let source = OWN6 + 1 + u128::from(flow % 200);
    let group: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000 | OWN6 & 0xff_ffff;
    let group = group.to_be_bytes();
    let mut frame = vec![0; 86];
    frame[..2].copy_from_slice(&[0x33, 0x33]);
    frame[2..6].copy_from_slice(&group[12..]);
    frame[6..12].copy_from_slice(&PEER.0);
    frame[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255]);
    frame[22..38].copy_from_slice(&source.to_be_bytes());
    frame[38..54].copy_from_slice(&group);
    frame[54] = 135;
    frame[62..78].copy_from_slice(&OWN6.to_be_bytes());
    frame[78..80].copy_from_slice(&[1, 1]);
    frame[80..86].copy_from_slice(&PEER.0);
    let sum = checksum::icmp6(&source.to_be_bytes(), &group, &frame[54..]);
    frame[56..58].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Writes lengths and the header checksum for a frame of that many bytes.
fn set_lengths(frame: &mut [u8], length: usize) {
    match frame[12..14] {
        [0x08, 0x00] => {
            frame[16..18].copy_from_slice(&((length - 14) as u16).to_be_bytes());
            frame[24..26].fill(0);
            let header = 14 + usize::from(frame[14] & 15) * 4;
            let sum = checksum::internet(&frame[14..header]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        [0x86, 0xdd] => {
            frame[18..20].copy_from_slice(&((length - 54) as u16).to_be_bytes());
        }
        _ => {}
    }
}

/// How many bytes of tag there are, and the frame without them.
fn untagged(frame: &[u8]) -> (usize, &[u8]) {
    let tag = if frame[12..14] == [0x81, 0x00] { 4 } else { 0 };
    (tag, &frame[tag..])
}

/// Whether an untagged frame, or what is behind a tag, is a packet that the router sends on. Addresses of Ethernet
/// are not read.
fn is_transit(frame: &[u8]) -> bool {
    match frame[12..14] {
        [0x08, 0x00] => frame[22] > 1,
        [0x86, 0xdd] => frame[20] != 58,
        _ => false,
    }
}

/// ARP replies, advertisements and ICMP errors.
fn is_originated(frame: &[u8]) -> bool {
    let frame = untagged(frame).1;
    match frame[12..14] {
        [0x08, 0x00] => frame[23] == 1 && frame[26..28] == OWN4.to_be_bytes()[..2],
        [0x86, 0xdd] => frame[20] == 58,
        _ => true,
    }
}

/// The number of a frame that left.
fn number(frame: &[u8]) -> usize {
    let low = match frame[12..14] {
        [0x08, 0x00] => [0, frame[27] & 0x3f, frame[28], frame[29]],
        _ => [0, frame[35], frame[36], frame[37]],
    };
    u32::from_be_bytes(low) as usize
}

/// Compares with longest prefix matches of its own.
fn check(routes4: Vec<(Ipv4Net, u8)>, routes6: Vec<(Ipv6Net, u32)>) -> crate::scene::Check {
    let routes4: HashMap<Ipv4Net, u8> = routes4.into_iter().collect();
    let routes6: HashMap<Ipv6Net, u32> = routes6.into_iter().collect();
    Box::new(move |sent, got| {
        let sent = untagged(sent).1;
        let wrong = || format!("not forwarded as it should be: {sent:02x?} became {got:02x?}");
        let (neighbor, hops, mutable) = match sent[12..14] {
            [0x08, 0x00] => {
                let destination = Ipv4Addr::from(*sent[30..].first_chunk().ok_or_else(wrong)?);
                let longest = (0..=32)
                    .rev()
                    .find_map(|len| routes4.get(&Ipv4Net::new(destination, len).ok()?.trunc()));
                let header = 14 + usize::from(sent[14] & 15) * 4;
                let right = checksum::internet(&got[14..header]) == 0;
                let longest = longest.copied().filter(|_| right);
                (longest.unwrap_or(0), 22, 22..26)
            }
            _ => {
                let destination = u128::from_be_bytes(*sent[38..].first_chunk().ok_or_else(wrong)?);
                let longest = (0..=128).rev().find_map(|len| {
                    routes6.get(&Ipv6Net::new(destination.into(), len).ok()?.trunc())
                });
                (longest.copied().unwrap_or(0) as u8, 21, 21..22)
            }
        };
        let right = got[..12] == [&[2, 0, 0, 0, 1, neighbor], &OURS.0[..]].concat()
            && got[hops] == sent[hops] - 1
            && got[12..hops] == sent[12..hops]
            && (23..24).all(|protocol| mutable.len() == 1 || got[protocol] == sent[protocol])
            && got[mutable.end..sent.len()] == sent[mutable.end..];
        if right { Ok(()) } else { Err(wrong()) }
    })
}
