//! Captures: those under way, and what one came to.

use weir_api::{Capture, CaptureRequest, Captures};

use super::{Cell, Column, Screen, Style, Table, harmless, units};
use crate::commands::pcap::Summary;

/// `show pcap`: a line a capture.
pub(crate) fn captures(reply: &Captures, screen: &Screen) -> String {
    if reply.captures.is_empty() {
        return "no captures (`weir pcap capture` begins one)\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("Number"),
        Column::text("Of"),
        Column::long("Interface"),
        Column::text("Author"),
        Column::text("Since"),
        Column::number("Packets"),
        Column::number("Bytes"),
        Column::number("Lost"),
    ]);
    for capture in &reply.captures {
        let lost = if capture.lost_packets > 0 {
            Style::Warning
        } else {
            Style::Plain
        };
        table.row([
            Cell::from(capture.number),
            points(&capture.request).into(),
            capture.request.interface.as_deref().unwrap_or("any").into(),
            Cell::from(&capture.author),
            capture.since.to_string().into(),
            capture.captured_packets.into(),
            capture.captured_bytes.into(),
            Cell::styled(capture.lost_packets, lost),
        ]);
    }
    table.draw(screen)
}

fn points(request: &CaptureRequest) -> String {
    let reasons = if request.reasons.is_empty() {
        "drop".to_owned()
    } else {
        format!("drop {}", request.reasons.join(" "))
    };
    let all = [
        (request.rx, "rx".to_owned()),
        (request.tx, "tx".to_owned()),
        (request.drop, reasons),
    ];
    all.into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, word)| word)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `pcap stop`.
pub(crate) fn ended(capture: &Capture) -> String {
    format!(
        "capture {} of {} ends\n",
        capture.number,
        harmless(&capture.author)
    )
}

/// What a capture came to, in a sentence.
pub(crate) fn summary(summary: &Summary) -> String {
    let packets = units::count(summary.packets, "packet", "packets");
    let bytes = units::count(summary.bytes, "byte", "bytes");
    let file = summary
        .file
        .as_ref()
        .map_or_else(String::new, |file| format!(" in {}", harmless(file)));
    let lost = if summary.complete {
        format!("{} lost", summary.lost)
    } else {
        "cut off: how many were lost is not known".to_owned()
    };
    format!("{packets} captured ({bytes}){file}, {lost}\n")
}
