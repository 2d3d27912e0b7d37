//! One flow in detail: how it came in, the route of its destination, adjacency and neighbour.

use std::fmt::Display;

use weir_api::{Adjacency, Why, WhyOutcome};

use super::draw::{destination, protocol, source};
use super::reading::Lookup;
use super::state::FlowRate;
use crate::render::units;

/// The lines of the window.
pub(crate) fn lines(flow: &FlowRate, lookup: &Result<Lookup, String>) -> Vec<String> {
    let it = &flow.flow;
    let mut lines = vec![
        format!("{} {} -> {}", protocol(flow), source(it), destination(it)),
        format!(
            "in by {}   out by {}   {}",
            or_dash(it.input.as_ref()),
            or_dash(it.output.as_ref()),
            flow.result
        ),
        format!(
            "VLAN {}   label {}   traffic class {}",
            or_dash(it.vlan.as_ref()),
            or_dash(it.label.as_ref()),
            or_dash(it.traffic_class.as_ref())
        ),
        format!(
            "{} packets, {} octets   now {} packets/s, {} bit/s",
            it.packets,
            it.octets,
            units::amount(flow.packets),
            units::amount(flow.bits)
        ),
        String::new(),
    ];
    match lookup {
        Err(error) => lines.push(format!("the tables could not be read: {error}")),
        Ok(lookup) => {
            tables(lookup, it.next_hop.as_ref(), &mut lines);
            if let Some(why) = &lookup.why {
                verdict(why, &mut lines);
            }
        }
    }
    lines
}

fn tables(lookup: &Lookup, next_hop: Option<&std::net::IpAddr>, lines: &mut Vec<String>) {
    if lookup.routes.is_empty() {
        lines.push("no route covers the destination".to_owned());
    }
    for route in &lookup.routes {
        let table = route.vrf.as_deref().unwrap_or("default");
        let group = route.group.as_ref().map_or_else(String::new, |group| {
            format!(", group {} with {} routes", group.number, group.routes)
        });
        lines.push(format!(
            "route      {} from {} in table {table}{group}",
            route.prefix, route.source
        ));
        for path in &route.paths {
            lines.push(format!(
                "  path     via {} on {}, adjacency {} ({}), MTU {}{}",
                or_dash(path.next_hop.as_ref()),
                or_dash(path.interface.as_ref()),
                path.adjacency_number,
                state(path.adjacency),
                or_dash(path.mtu.as_ref()),
                if path.labels.is_empty() {
                    String::new()
                } else {
                    format!(", pushes {:?}", path.labels)
                }
            ));
        }
    }
    let shown = lookup
        .neighbors
        .iter()
        .filter(|it| next_hop.is_none_or(|next_hop| it.address == *next_hop));
    for neighbor in shown.take(3) {
        lines.push(format!(
            "neighbour  {} on {}: {}, {}",
            neighbor.address,
            neighbor.interface,
            or_dash(neighbor.mac.as_ref()),
            neighbor.state
        ));
    }
}

/// What becomes of a packet of the flow now, and the access-list terms that decide.
fn verdict(why: &Why, lines: &mut Vec<String>) {
    let word = match why.outcome {
        WhyOutcome::Forwarded => "forwarded",
        WhyOutcome::Dropped => "dropped",
        WhyOutcome::Held => "held",
        WhyOutcome::Received => "received",
    };
    let reason = why
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    lines.push(format!("verdict    {word}{reason}"));
    for term in &why.acl_terms {
        lines.push(format!(
            "  ACL      {} term {} on {} {}: {}",
            term.acl, term.term, term.interface, term.direction, term.action
        ));
    }
    if why.acl_terms.is_empty() {
        lines.push("  ACL      none applies".to_owned());
    }
}

fn state(adjacency: Adjacency) -> String {
    adjacency.to_string()
}

fn or_dash<T: Display>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}
