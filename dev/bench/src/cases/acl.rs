//! `acl-1000` and `acl-10000`: plain forwarding as in `ip4` behind an access list of so many rules on the port where
//! packets come in.
//!
//! The rules are those of a seed, shaped like a provider's lists, and permit all that they match; each of 64k flows
//! matches one of them somewhere in the list.

use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::Ipv4Net;
use weir_acl::synthetic::{Family, Kind as Shape, keys4, rules};
use weir_acl::{Action, Rule, Upper};
use weir_nodes::{Filter, FilterCounters, FilterList};
use weir_port::interface::{Feature, Input};
use weir_wire::{IpProtocol, checksum};

use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, Scene, forwarded4, udp4};

pub(super) const THOUSAND: Case = Case {
    name: "acl-1000",
    about: "IPv4 behind an access list of a thousand rules",
    kind: Kind::Packets {
        limit: Limit::OverIp4(20.0),
        set: |scene| set(scene, 1000),
    },
};

pub(super) const TEN_THOUSAND: Case = Case {
    name: "acl-10000",
    about: "IPv4 behind an access list of ten thousand rules",
    kind: Kind::Packets {
        limit: Limit::TimesAdded("acl-1000", 1.5),
        set: |scene| set(scene, 10_000),
    },
};

const FLOWS: usize = 65_536;

fn set(scene: &mut Scene, count: usize) {
    // Where nothing is measured, a twentieth of the rules is a list all the same.
    let count = count / scene.thinned;
    let rules: Vec<Rule> = rules(7, count, Shape::Chain, Family::V4)
        .into_iter()
        .map(|rule| Rule {
            action: Action::Permit,
            ..rule
        })
        .collect();
    scene.interface(IN).input = Input::Routed;
    let groups = scene.neighbors(4);
    for part in 0..16u8 {
        let prefix = Ipv4Net::new(Ipv4Addr::new(part << 4, 0, 0, 0), 4).unwrap_or_default();
        scene.route4(prefix, groups[usize::from(part) % groups.len()]);
    }
    // The last rule is for all that no other matches: what is aimed at it says nothing.
    let wanted = rules.get(..count - 1).unwrap_or(&[]);
    let host =
        |address: Ipv4Addr| (1..224).contains(&address.octets()[0]) && !address.is_loopback();
    let keys = keys4(9, wanted, 8 * FLOWS)
        .into_iter()
        .filter(|key| host(key.source()) && host(key.destination()));
    let flows = keys.filter_map(|key| match key.upper() {
        Upper::Ports(source, destination)
            if matches!(key.protocol(), IpProtocol::TCP | IpProtocol::UDP) =>
        {
            Some((
                key,
                [source.to_be_bytes(), destination.to_be_bytes()].concat(),
            ))
        }
        _ => None,
    });
    for (key, ports) in flows.take(FLOWS) {
        let mut frame = udp4(0, 0);
        frame[23] = key.protocol().0;
        frame[26..30].copy_from_slice(&key.source().octets());
        frame[30..34].copy_from_slice(&key.destination().octets());
        frame[34..38].copy_from_slice(&ports);
        // No UDP checksum (RFC 768); nobody on the way looks at TCP's.
        frame[40..42].fill(0);
        checksum::ipv4_header_set(&mut frame[14..]);
        scene.frames.push(&frame);
    }
    assert!(scene.frames.len() > 0, "some flows match rules with ports");
    let list = Arc::new(
        FilterList::build(rules.into_iter().map(|rule| (rule.action, vec![rule])))
            .expect("a list that can be built"),
    );
    let counters = Arc::new(FilterCounters::new(1, list.terms()));
    let entry = scene.entry(IN);
    entry.interface.features = entry.interface.features.with(Feature::AclIn);
    entry.acl_input = Some(Filter { list, counters });
    scene.check = Box::new(|sent, got| forwarded4(sent, got, 1 + (sent[30] >> 4) % 4));
}
