//! What is wrong with a file, where, and what would be right.
//!
//! A `Diagnostic` is complete by itself: it holds the shown piece of the line, so that whoever
//! prints it (the command line, an API client) needs no copy of the file. `Display` renders it
//! the way a compiler does; serde gives the same as fields. Text from the file is quoted with
//! control characters escaped and at bounded length, because it ends up on terminals.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a file is refused for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is good, but does something that is hardly meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One finding in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Whether the file is refused for it.
    pub severity: Severity,
    /// The name of the file as it was given.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
    /// How many characters it is about, at least 1.
    pub width: u32,
    /// The key, as `interfaces.xe0.mtu` or `routes[0].via`; empty when it is about the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// A short remark that stands at the place; may be empty.
    pub label: String,
    /// What would be right.
    pub help: String,
    /// The line of the file; of a long line, the piece around the place.
    pub excerpt: Excerpt,
}

/// A piece of one line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Excerpt {
    /// The text, free of control characters.
    pub text: String,
    /// How many characters of `text` stand before the place.
    pub offset: u32,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len().saturating_add(1));
        writeln!(f, "{}: {}", self.severity, self.message)?;
        write!(f, "{margin}--> {}:{}:{}", self.file, self.line, self.column)?;
        if !self.excerpt.text.is_empty() {
            let before = " ".repeat(self.excerpt.offset as usize);
            let carets = "^".repeat(self.shown_width());
            write!(
                f,
                "\n{margin} |\n {number} | {}\n{margin} | {before}{carets}",
                self.excerpt.text
            )?;
            if !self.label.is_empty() {
                write!(f, " {}", self.label)?;
            }
        }
        if !self.path.is_empty() {
            write!(f, "\n{margin} = path: {}", self.path)?;
        }
        if !self.help.is_empty() {
            write!(f, "\n{margin} = help: {}", self.help)?;
        }
        Ok(())
    }
}

impl Diagnostic {
    /// Carets do not run past the piece of the line that is shown.
    fn shown_width(&self) -> usize {
        let room = self
            .excerpt
            .text
            .chars()
            .count()
            .saturating_sub(self.excerpt.offset as usize);
        (self.width as usize).min(room).max(1)
    }
}

/// Where something stands in the file, in characters counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) width: u32,
}

impl Place {
    pub(crate) const START: Self = Self {
        line: 1,
        column: 1,
        width: 1,
    };
}

/// The text of a file and where its lines begin.
pub(crate) struct Source<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
    lines: std::cell::OnceCell<Vec<usize>>,
}

impl<'t> Source<'t> {
    pub(crate) const fn new(name: &'t str, text: &'t str) -> Self {
        Self {
            name,
            text,
            lines: std::cell::OnceCell::new(),
        }
    }

    fn line(&self, number: u32) -> &'t str {
        let starts = self.lines.get_or_init(|| {
            let after_breaks = self
                .text
                .bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at + 1);
            std::iter::once(0).chain(after_breaks).collect()
        });
        let start = starts.get((number as usize).wrapping_sub(1)).copied();
        start
            .and_then(|at| self.text.get(at..))
            .and_then(|rest| rest.lines().next())
            .unwrap_or("")
    }

    /// The line around a place, cut to what fits a terminal.
    pub(crate) fn excerpt(&self, place: Place) -> Excerpt {
        const BEFORE: usize = 60;
        const SHOWN: usize = 120;
        let column = (place.column as usize).saturating_sub(1);
        let skipped = if column > SHOWN - 20 {
            column - BEFORE
        } else {
            0
        };
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = self
            .line(place.line)
            .chars()
            .skip(skipped)
            .take(SHOWN)
            .map(clean)
            .collect();
        let text = text.trim_end().to_owned();
        Excerpt {
            text,
            offset: u32::try_from(column - skipped).unwrap_or(0),
        }
    }
}

/// Text from the file inside a message: in backticks, short, and without control characters.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN: usize = 48;
    let mut quoted = String::from("`");
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN {
            quoted.push('…');
            break;
        }
        if character.is_control() {
            quoted.extend(character.escape_default());
        } else {
            quoted.push(character);
        }
    }
    quoted.push('`');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(line: u32, place: Place, source: &Source<'_>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: source.name.to_owned(),
            line,
            column: place.column,
            width: place.width,
            path: "interfaces.xe0.mtu".into(),
            message: "`abc` is not a whole number".into(),
            label: "expected a whole number".into(),
            help: "for example `mtu: 1500`".into(),
            excerpt: source.excerpt(place),
        }
    }

    #[test]
    fn renders_like_a_compiler() {
        let source = Source::new("w.yaml", "interfaces:\n  xe0:\n    mtu: abc\n");
        let place = Place {
            line: 3,
            column: 10,
            width: 3,
        };
        let expected = "error: `abc` is not a whole number\n  --> w.yaml:3:10\n   |\n 3 |     mtu: abc\n   |          ^^^ expected a whole number\n   = path: interfaces.xe0.mtu\n   = help: for example `mtu: 1500`";
        assert_eq!(sample(3, place, &source).to_string(), expected);
    }

    #[test]
    fn long_lines_are_shown_around_the_place() {
        let text = format!("{}abc{}", " ".repeat(5000), "x".repeat(5000));
        let source = Source::new("w.yaml", &text);
        let excerpt = source.excerpt(Place {
            line: 1,
            column: 5001,
            width: 3,
        });
        assert_eq!(excerpt.offset, 60);
        assert!(excerpt.text.trim_start().starts_with("abcx"));
        assert!(excerpt.text.chars().count() <= 120);
    }

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quote("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert_eq!(quote(&"x".repeat(1000)).chars().count(), 48 + 3);
    }
}
