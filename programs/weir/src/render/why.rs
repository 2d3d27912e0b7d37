//! `weir why`: what the router would do with a packet, a line a decision.

use std::fmt::Write;

use weir_api::{PathReply, Route, Why, WhyFrame, WhyOutcome};

use super::{Screen, Style, harmless, units};

/// The whole answer.
pub(crate) fn why(reply: &Why, screen: &Screen) -> String {
    let (word, style) = match reply.outcome {
        WhyOutcome::Forwarded => ("forwarded", Style::Good),
        WhyOutcome::Dropped => ("dropped", Style::Bad),
        WhyOutcome::Held => (
            "held until the neighbor's MAC address is known",
            Style::Warning,
        ),
        WhyOutcome::Received => ("received by the router", Style::Good),
    };
    let mut outcome = screen.styled(word, style);
    if let Some(reason) = &reply.reason {
        let _ = write!(outcome, ": {reason}");
    }
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "{key:<13}{value}");
    };
    line("outcome", &outcome);
    if let Some(meaning) = &reply.meaning {
        line("", meaning);
    }
    let assumed = if reply.interface_from_route {
        " (the route to the source leads there)"
    } else {
        ""
    };
    line(
        "received on",
        &format!("{}{assumed}", harmless(&reply.interface)),
    );
    for term in &reply.acl_terms {
        line(
            "access list",
            &format!(
                "{} term {} on {} {}: {}",
                harmless(&term.acl),
                term.term,
                harmless(&term.interface),
                term.direction,
                term.action
            ),
        );
    }
    if let Some(mode) = &reply.urpf {
        let source = reply.source_route.as_ref();
        let route = source.map_or_else(|| "no route".to_owned(), |route| route.prefix.to_string());
        line(
            "reverse path",
            &format!("{mode}, source covered by {route}"),
        );
    }
    match &reply.route {
        None => line("route", "none"),
        Some(route) => {
            line("route", &route_line(route));
            for path in &route.paths {
                line("", &path_line(path));
            }
        }
    }
    for frame in &reply.frames {
        let key = if frame.originated {
            "answer"
        } else {
            "leaves by"
        };
        line(key, &frame_line(frame));
    }
    if let Some(rate) = reply.sampling_rate {
        line("sFlow", &format!("one in {rate} packets is sampled"));
    }
    if reply.metered {
        line("IPFIX", "the flow is metered");
    }
    let nodes: Vec<&str> = reply.steps.iter().map(|step| step.node.as_str()).collect();
    line("nodes", &nodes.join(", "));
    text
}

fn route_line(route: &Route) -> String {
    let table = match &route.vrf {
        Some(name) => format!("VRF {}", harmless(name)),
        None => "the default table".to_owned(),
    };
    format!("{} in {table}, from {}", route.prefix, route.source)
}

fn path_line(path: &PathReply) -> String {
    let mut text = match path.next_hop {
        Some(next_hop) => format!("via {next_hop}"),
        None => "direct".to_owned(),
    };
    if let Some(interface) = &path.interface {
        let _ = write!(text, " on {}", harmless(interface));
    }
    let _ = write!(
        text,
        ", adjacency {} ({}",
        path.adjacency_number, path.adjacency
    );
    if let Some(mac) = &path.mac {
        let _ = write!(text, ", {}", harmless(mac));
    }
    text + ")"
}

fn frame_line(frame: &WhyFrame) -> String {
    let mut text = format!(
        "{} to {}, {}, MTU {}",
        harmless(&frame.interface),
        harmless(&frame.destination_mac),
        units::count(frame.length.into(), "byte", "bytes"),
        frame.mtu
    );
    for vlan in &frame.vlans {
        let _ = write!(text, ", VLAN {vlan}");
    }
    for label in &frame.labels {
        let _ = write!(text, ", label {label}");
    }
    text
}
