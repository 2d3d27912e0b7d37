//! One JSON object for each datagram: on a line of its own (so that `jq` and line readers both work), or
//! spread over lines and indented for people.
//!
//! Every value is a string: numbers have up to 64 bits, and many JSON readers only keep 53 of them.

use std::fmt::{self, Arguments, Display, Write as _};
use std::io::{self, Write};

use super::{Part, Sink};

pub(super) struct Json<'w, W> {
    writer: &'w mut W,
    /// Whether something stands before what comes next, in the innermost object or list.
    comma: bool,
    /// How deep the innermost object stands, when lines are broken.
    indent: Option<usize>,
    prefixes: [&'static str; 2],
}

impl<'w, W: Write> Json<'w, W> {
    pub(super) fn compact(writer: &'w mut W) -> Json<'w, W> {
        Json {
            writer,
            comma: false,
            indent: None,
            prefixes: [""; 2],
        }
    }

    pub(super) fn pretty(writer: &'w mut W) -> Json<'w, W> {
        Json {
            writer,
            comma: false,
            indent: Some(0),
            prefixes: [""; 2],
        }
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.comma, true) {
            self.writer.write_all(b",")
        } else {
            Ok(())
        }
    }

    /// A new line, so much deeper than the innermost object, where lines are broken.
    fn fresh_line(&mut self, deeper: usize) -> io::Result<()> {
        self.indent.map_or(Ok(()), |indent| {
            write!(self.writer, "\n{:1$}", "", indent + deeper)
        })
    }

    fn open(&mut self, bracket: &str) -> io::Result<()> {
        self.comma = false;
        self.writer.write_all(bracket.as_bytes())
    }

    fn close(&mut self, bracket: &str) -> io::Result<()> {
        self.comma = true;
        self.writer.write_all(bracket.as_bytes())
    }

    fn name(&mut self, name: impl Display) -> io::Result<()> {
        self.separate()?;
        self.fresh_line(1)?;
        write!(self.writer, "\"{name}\":")
    }
}

impl<W: Write> Sink for Json<'_, W> {
    fn begin_datagram(&mut self) -> io::Result<()> {
        self.open("{")
    }

    fn end_datagram(&mut self) -> io::Result<()> {
        self.fresh_line(0)?;
        self.close("}\n")
    }

    fn begin(&mut self, _part: Part) -> io::Result<()> {
        let first = !self.comma;
        self.separate()?;
        self.indent = self.indent.map(|indent| indent + 2);
        if !first {
            self.fresh_line(0)?;
        }
        self.open("{")
    }

    fn end(&mut self, _part: Part) -> io::Result<()> {
        self.fresh_line(0)?;
        self.indent = self.indent.map(|indent| indent.saturating_sub(2));
        self.close("}")
    }

    fn begin_list(&mut self, name: &str) -> io::Result<()> {
        self.name(name)?;
        self.open("[")
    }

    fn end_list(&mut self) -> io::Result<()> {
        if self.comma {
            self.fresh_line(1)?;
        }
        self.close("]")
    }

    fn nests(&self) -> bool {
        true
    }

    fn item(&mut self, value: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.writer, "\"{}\"", Escaped(value))
    }

    fn prefix(&mut self, level: usize, prefix: &'static str) {
        if let Some(room) = self.prefixes.get_mut(level) {
            *room = prefix;
        }
    }

    fn field(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        let [outer, inner] = self.prefixes;
        self.name(format_args!("{outer}{inner}{name}"))?;
        write!(self.writer, "\"{}\"", Escaped(value))
    }

    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(name, value)
    }

    fn foreign_name(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(&Escaped(name).to_string(), value)
    }

    /// There is no place for remarks.
    fn remark(&mut self, _remark: Arguments<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// A value with everything escaped that a JSON string must not hold (RFC 8259, section 7).
struct Escaped<T>(T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escape(f), "{}", self.0)
    }
}

struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '"' => self.0.write_str("\\\"")?,
                '\\' => self.0.write_str("\\\\")?,
                '\0'..='\u{1f}' => write!(self.0, "\\u{:04x}", u32::from(character))?,
                _ => self.0.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_string_must_not_hold_is_escaped() {
        assert_eq!(
            Escaped("a\"b\\c\nd\u{1f}ä").to_string(),
            "a\\\"b\\\\c\\u000ad\\u001fä"
        );
    }
}
