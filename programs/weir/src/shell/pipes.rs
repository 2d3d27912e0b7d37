//! What follows a `|` in the shell and in files of `weir exec`: filters on the output of a command, in the words of Junos.
//!
//! `show errors | match no-route | count`. A `|` in quotes is text. Filters see whole lines, without colours.

use std::io::{self, Write};

use regex::Regex;

use super::split::Split;

/// One filter.
#[derive(Debug, Clone)]
pub(crate) enum Pipe {
    /// Only lines that match.
    Match(Regex),
    /// Only lines that do not match.
    Except(Regex),
    /// The number of lines in place of the lines.
    Count,
    /// The last lines.
    Last(usize),
    /// The reply as JSON.
    Json,
    /// No pager.
    NoMore,
}

/// A command's words, and the filters on its output.
pub(crate) type Piped = (Vec<String>, Vec<Pipe>);

/// The words of the help.
pub(crate) const HELP: &str = "\
Behind a command:
  | match PATTERN     only lines that match a regular expression
  | except PATTERN    only lines that do not
  | last N            only the last N lines
  | count             the number of lines
  | json              the reply as JSON
  | no-more           no pager
";

/// The words of the command, and the filters behind it. `line` is what was split.
pub(crate) fn apart(line: &str, split: Split) -> Result<Piped, String> {
    let Split { words, starts, .. } = split;
    let is_bar = |place: &usize| {
        words.get(*place).is_some_and(|word| word == "|")
            && starts
                .get(*place)
                .and_then(|&start| line.get(start..))
                .is_some_and(|rest| rest.starts_with('|'))
    };
    let bars: Vec<usize> = (0..words.len()).filter(is_bar).collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for bar in bars.into_iter().chain([words.len()]) {
        parts.push(words.get(from..bar).unwrap_or(&[]));
        from = bar + 1;
    }
    let mut parts = parts.into_iter();
    let command = parts.next().unwrap_or(&[]).to_vec();
    let pipes = parts.map(pipe).collect::<Result<Vec<Pipe>, String>>()?;
    if command.is_empty() && !pipes.is_empty() {
        return Err(wrong("a command is missing before the |"));
    }
    Ok((command, pipes))
}

fn pipe(words: &[String]) -> Result<Pipe, String> {
    let pattern = |text: &String| {
        Regex::new(text).map_err(|error| wrong(format_args!("the pattern {text}: {error}")))
    };
    let words: Vec<&String> = words.iter().collect();
    match (words.first().map(|word| word.as_str()), words.get(1..)) {
        (Some("match"), Some([text])) => Ok(Pipe::Match(pattern(text)?)),
        (Some("except"), Some([text])) => Ok(Pipe::Except(pattern(text)?)),
        (Some("last"), Some([count])) => count
            .parse()
            .map(Pipe::Last)
            .map_err(|_| wrong(format_args!("{count} is not a number of lines"))),
        (Some("count"), Some([])) => Ok(Pipe::Count),
        (Some("json"), Some([])) => Ok(Pipe::Json),
        (Some("no-more"), Some([])) => Ok(Pipe::NoMore),
        _ => Err(wrong(format_args!(
            "a | is followed by `match PATTERN`, `except PATTERN`, `last N`, `count`, `json` or `no-more`{}",
            words
                .first()
                .map(|word| format!(", not by `{word}`"))
                .unwrap_or_default()
        ))),
    }
}

fn wrong(what: impl std::fmt::Display) -> String {
    what.to_string()
}

/// Whether the reply is wanted as JSON.
pub(crate) fn is_json(pipes: &[Pipe]) -> bool {
    pipes.iter().any(|pipe| matches!(pipe, Pipe::Json))
}

/// Whether any of these changes lines.
pub(crate) fn filters(pipes: &[Pipe]) -> bool {
    pipes
        .iter()
        .any(|pipe| !matches!(pipe, Pipe::Json | Pipe::NoMore))
}

/// A writer that passes on what the filters leave of each line. [`Filtered::end`] writes what is left at the end.
pub(crate) struct Filtered<W> {
    pipes: Vec<State>,
    /// A line that has no end yet.
    open: Vec<u8>,
    to: W,
}

/// A filter with what it holds.
struct State {
    pipe: Pipe,
    /// Lines counted.
    count: u64,
    /// Lines that may be the last.
    held: std::collections::VecDeque<Vec<u8>>,
}

impl<W: Write> Filtered<W> {
    /// Filters in the order in which they were given.
    pub(crate) fn new(pipes: &[Pipe], to: W) -> Filtered<W> {
        let state = |pipe: &Pipe| State {
            pipe: pipe.clone(),
            count: 0,
            held: std::collections::VecDeque::new(),
        };
        Filtered {
            pipes: pipes.iter().map(state).collect(),
            open: Vec::new(),
            to,
        }
    }

    /// Writes what filters held back.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if !self.open.is_empty() {
            let line = std::mem::take(&mut self.open);
            self.pass(0, line)?;
        }
        for place in 0..self.pipes.len() {
            let Some(state) = self.pipes.get_mut(place) else {
                break;
            };
            let held = std::mem::take(&mut state.held);
            let counted = matches!(state.pipe, Pipe::Count).then_some(state.count);
            for line in held {
                self.pass(place + 1, line)?;
            }
            if let Some(count) = counted {
                self.pass(place + 1, format!("Count: {count} lines").into_bytes())?;
            }
        }
        self.to.flush()
    }

    /// Hands a line to the filter at `place` and those behind it.
    fn pass(&mut self, place: usize, line: Vec<u8>) -> io::Result<()> {
        let line = if place == 0 { uncoloured(line) } else { line };
        for place in place..self.pipes.len() {
            let Some(state) = self.pipes.get_mut(place) else {
                break;
            };
            match &state.pipe {
                Pipe::Match(pattern) if !pattern.is_match(&String::from_utf8_lossy(&line)) => {
                    return Ok(());
                }
                Pipe::Except(pattern) if pattern.is_match(&String::from_utf8_lossy(&line)) => {
                    return Ok(());
                }
                Pipe::Count => {
                    state.count += 1;
                    return Ok(());
                }
                Pipe::Last(most) => {
                    state.held.push_back(line);
                    if state.held.len() > *most {
                        state.held.pop_front();
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        self.to.write_all(&line)?;
        self.to.write_all(b"\n")
    }
}

/// The line without the sequences that choose colours (ECMA-48, `ESC [ … m`).
fn uncoloured(line: Vec<u8>) -> Vec<u8> {
    if !line.contains(&0x1b) {
        return line;
    }
    let (mut plain, mut rest) = (Vec::with_capacity(line.len()), &line[..]);
    while let Some((&first, behind)) = rest.split_first() {
        let sequence = rest.strip_prefix(b"\x1b[").and_then(|inside| {
            let end = inside
                .iter()
                .position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
            (inside.get(end) == Some(&b'm')).then(|| inside.get(end + 1..))?
        });
        match sequence {
            Some(behind) => rest = behind,
            None => {
                plain.push(first);
                rest = behind;
            }
        }
    }
    plain
}

impl<W: Write> Write for Filtered<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, behind) = rest.split_at(end);
            self.open.extend_from_slice(line);
            let line = std::mem::take(&mut self.open);
            self.pass(0, line)?;
            rest = behind.get(1..).unwrap_or(&[]);
        }
        self.open.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::split::split;

    fn filtered(line: &str, text: &str) -> String {
        let (_, pipes) = apart(line, split(line)).unwrap();
        let mut output = Vec::new();
        let mut filter = Filtered::new(&pipes, &mut output);
        // In pieces that are not lines.
        for piece in text.as_bytes().chunks(3) {
            filter.write_all(piece).unwrap();
        }
        filter.end().unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn lines_are_filtered_in_the_order_of_the_words() {
        let text = "one 1\ntwo 2\nthree 3\nfour 4\n";
        assert_eq!(filtered("show x | match o", text), "one 1\ntwo 2\nfour 4\n");
        assert_eq!(
            filtered("show x | match o | count", text),
            "Count: 3 lines\n"
        );
        assert_eq!(
            filtered("show x | except 'o .'", text),
            "one 1\nthree 3\nfour 4\n"
        );
        assert_eq!(filtered("show x | last 2 | match t", text), "three 3\n");
        assert_eq!(
            filtered("show x | count | match Count", text),
            "Count: 4 lines\n"
        );
        assert_eq!(filtered("show x | no-more", "no end"), "no end\n");
    }

    #[test]
    fn colours_are_not_text() {
        let text = "\x1b[1mName\x1b[0m \x1b[32mup\x1b[0m\n";
        assert_eq!(filtered("show x | match 'Name up'", text), "Name up\n");
    }

    #[test]
    fn a_bar_in_quotes_is_text() {
        let line = "show interface '|' a\\|b | match \"a|b\"";
        let (words, pipes) = apart(line, split(line)).unwrap();
        assert_eq!(words, ["show", "interface", "|", "a|b"]);
        assert!(matches!(&pipes[..], [Pipe::Match(pattern)] if pattern.as_str() == "a|b"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, said) in [
            ("show x |", "a | is followed by"),
            ("show x | grep y", "not by `grep`"),
            ("show x | match", "not by `match`"),
            ("show x | match (", "the pattern ("),
            ("show x | last many", "many is not a number of lines"),
            ("| count", "a command is missing"),
        ] {
            let failure = apart(line, split(line)).unwrap_err();
            assert!(failure.contains(said), "{line}: {failure}");
        }
    }
}
