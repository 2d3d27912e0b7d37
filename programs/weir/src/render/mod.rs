//! Replies as text for people.
//!
//! Every function here takes a reply and a [`Screen`] and gives text: no I/O, so that tests can
//! compare. What a screen can do decides the form: a terminal has a width to fit and may have
//! colours; a pipe or a file gets all of everything and no escape sequence, whatever names and
//! packets contain.

pub(crate) mod acl;
pub(crate) mod bond;
pub(crate) mod bridge;
pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod flow;
pub(crate) mod forwarding;
pub(crate) mod hardware;
pub(crate) mod interface;
pub(crate) mod linux;
pub(crate) mod memif;
pub(crate) mod pcap;
pub(crate) mod rates;
pub(crate) mod runtime;
pub(crate) mod sflow;
pub(crate) mod system;
mod table;
pub(crate) mod trace;
pub(crate) mod units;
pub(crate) mod version;
pub(crate) mod vxlan;
pub(crate) mod why;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;

pub(crate) use table::{Cell, Column, Style, Table};

/// What the output can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    /// Columns of characters; absent when there is no edge.
    pub(crate) width: Option<usize>,
    /// Whether colours are welcome.
    pub(crate) colour: bool,
}

impl Screen {
    /// What standard output can show.
    pub(crate) fn of_stdout() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::default();
        }
        let width = crossterm::terminal::size()
            .ok()
            .map(|(columns, _)| usize::from(columns))
            .filter(|columns| *columns > 0);
        // https://no-color.org: any value but an empty one.
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            width,
            colour: !unwanted && !dumb,
        }
    }

    /// Text in a style, if colours are welcome.
    pub(crate) fn styled(&self, text: &str, style: Style) -> String {
        let code = style.code();
        if self.colour && !code.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Text without what would command a terminal: control characters are shown as `\u{1b}` and such.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}
