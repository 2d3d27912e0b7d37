//! Traced packets: a paragraph each, a line a node.

use weir_api::{Trace, TraceRequest, TraceStep, TracedPacket};

use super::{Screen, Style, harmless, units};

/// `trace show`.
pub(crate) fn trace(reply: &Trace, screen: &Screen) -> String {
    let armed = reply.filters.iter().map(|filter| {
        format!(
            "{}: {} still to come\n",
            request(&filter.request),
            filter.left
        )
    });
    let mut parts: Vec<String> = reply
        .packets
        .iter()
        .map(|packet| one(packet, screen))
        .collect();
    let armed: String = armed.collect();
    if !armed.is_empty() {
        parts.push(armed);
    }
    if parts.is_empty() {
        "no packets recorded (`weir trace add any` records some)\n".to_owned()
    } else {
        parts.join("\n")
    }
}

/// What is recorded, as a sentence without a full stop.
pub(crate) fn request(request: &TraceRequest) -> String {
    let packets = units::count(request.count.into(), "packet", "packets");
    let on = request
        .interface
        .as_ref()
        .map_or_else(String::new, |interface| {
            format!(" received on {}", harmless(interface))
        });
    let from = request.node.as_ref().map_or_else(String::new, |node| {
        format!(" from node {} on", harmless(node))
    });
    format!("recording {packets}{on}{from}")
}

fn one(packet: &TracedPacket, screen: &Screen) -> String {
    let from = packet.interface.as_ref().map_or_else(
        || "own".to_owned(),
        |interface| format!("from {}", harmless(interface)),
    );
    let title = format!("Packet {}", packet.number);
    let length = units::count(packet.length.into(), "byte", "bytes");
    let mut text = format!(
        "{} {from}, {length}, worker {}, {}\n",
        screen.styled(&title, Style::Heading),
        packet.worker,
        packet.time
    );
    for line in packet.headers.lines() {
        text += &format!("    {}\n", harmless(line));
    }
    for step in &packet.steps {
        text += &one_step(step, screen);
    }
    if let Some(why) = &packet.incomplete {
        text += &format!("  ({})\n", harmless(why));
    }
    text
}

/// A node in a line: where the packet went, and what the node decided by.
fn one_step(step: &TraceStep, screen: &Screen) -> String {
    let style = if step.verdict.starts_with("drop") {
        Style::Bad
    } else {
        Style::Plain
    };
    let made_by = step
        .made_by
        .as_ref()
        .map_or_else(String::new, |node| format!(" (in {})", harmless(node)));
    let decision = step
        .decision
        .as_ref()
        .map_or_else(String::new, |text| format!(": {}", harmless(text)));
    format!(
        "  {}{made_by}  {}{decision}\n",
        harmless(&step.node),
        screen.styled(&format!("-> {}", harmless(&step.verdict)), style)
    )
}
