//! `weir top`: a live view of a router, over its API or, in the demo, in the same process.
//!
//! A [`Source`] is read once an interval, on its own thread, so that a slow router does not block the
//! keyboard. [`State`] turns two readings into rates and keeps their history; [`draw`] puts it on the
//! terminal; `keys` moves the selection. Without a terminal each reading is printed as lines of text
//! or as one JSON object.

mod detail;
mod draw;
mod keys;
mod plain;
mod reading;
mod screen;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use plain::lines;
pub(crate) use reading::{Lookup, Reading, Source, local_reading, packet_of};
pub(crate) use screen::run;
pub(crate) use state::State;

use std::io::{IsTerminal, Write};

use reading::RemoteSource;

use crate::cli::{TopArgs, Where};
use crate::failure::Failure;

/// Runs `weir top` against the router that the command line names.
pub(crate) fn execute(
    args: &TopArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut source = RemoteSource::new(at.client()?);
    // The first reading is made here, so that a router that does not answer is an ordinary error.
    let first = source.read().map_err(Failure::said)?;
    let mut state = State::new(at.name());
    state.take(first);
    if !json && args.count.is_none() && std::io::stdout().is_terminal() {
        return screen::run(Box::new(source), state, args.interval, None);
    }
    plain::repeat(&mut source, &mut state, args, json, to)
}
