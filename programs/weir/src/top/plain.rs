//! The live view without a terminal: lines of text, or JSON objects.

use std::fmt::Write as _;
use std::io::Write;

use super::draw::{destination, protocol, result, source};
use super::reading::Source;
use super::state::State;
use crate::cli::TopArgs;
use crate::commands::monitor;
use crate::failure::Failure;
use crate::render::{harmless, units};

/// Flows of one reading.
const FLOWS: usize = 10;

/// Prints a reading each interval, `--count` times or until Ctrl-C.
pub(crate) fn repeat(
    source: &mut dyn Source,
    state: &mut State,
    args: &TopArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut left = args.count;
    monitor::repeat(args.interval, false, to, |to| {
        state.take(source.read().map_err(Failure::said)?);
        if json {
            let flows = state
                .flows
                .as_ref()
                .map(|flows| &flows[..flows.len().min(FLOWS)]);
            let object = serde_json::json!({
                "interfaces": state.interfaces,
                "flows": flows,
                "drops": state.drops,
                "workers": state.workers,
            });
            writeln!(to, "{object}")?;
        } else {
            to.write_all(lines(state).as_bytes())?;
        }
        left = left.map(|left| left.saturating_sub(1));
        Ok(left != Some(0))
    })
}

/// One reading as lines of at most 80 columns.
pub(crate) fn lines(state: &State) -> String {
    let (packets, bits) = state.received();
    let mut text = format!(
        "{}  up {}  received {} packets/s, {} bit/s, dropped {} packets/s\n",
        state.title,
        units::seconds(state.uptime as f64),
        units::amount(packets),
        units::amount(bits),
        units::amount(state.dropped())
    );
    for it in &state.interfaces {
        let _ = writeln!(
            text,
            "  {:<12} {:<4} rx {:>9} pkt/s {:>9} bit/s  tx {:>9} pkt/s {:>9} bit/s",
            harmless(&it.name),
            if it.up { "up" } else { "DOWN" },
            units::amount(it.rx_packets),
            units::amount(it.rx_bits),
            units::amount(it.tx_packets),
            units::amount(it.tx_bits)
        );
    }
    for it in state.flows.iter().flatten().take(FLOWS) {
        let _ = writeln!(
            text,
            "  {:<5} {:>9} bit/s  {} -> {}  {}",
            protocol(it),
            units::amount(it.bits),
            harmless(&source(&it.flow)),
            harmless(&destination(&it.flow)),
            result(it)
        );
    }
    for it in &state.drops {
        let _ = writeln!(
            text,
            "  dropped {:>10}  {:<20} {}",
            it.count, it.reason, it.sentence
        );
    }
    for note in &state.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}
