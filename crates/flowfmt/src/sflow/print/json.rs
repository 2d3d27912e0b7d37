//! One JSON object for each datagram, on a line of its own (so that `jq` and line readers both work).
//!
//! Every value is a string: numbers have up to 64 bits, and many JSON readers only keep 53 of them.

use std::fmt::{self, Arguments, Display, Write as _};
use std::io::{self, Write};

use super::{Part, Sink};

pub(super) struct Json<'w, W> {
    writer: &'w mut W,
    /// Whether something stands before what comes next, in the innermost object or list.
    comma: bool,
}

impl<'w, W: Write> Json<'w, W> {
    pub(super) fn new(writer: &'w mut W) -> Json<'w, W> {
        Json { writer, comma: false }
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.comma, true) { self.writer.write_all(b",") } else { Ok(()) }
    }

    fn open(&mut self, bracket: &str) -> io::Result<()> {
        self.comma = false;
        self.writer.write_all(bracket.as_bytes())
    }

    fn close(&mut self, bracket: &str) -> io::Result<()> {
        self.comma = true;
        self.writer.write_all(bracket.as_bytes())
    }
}

impl<W: Write> Sink for Json<'_, W> {
    fn begin_datagram(&mut self) -> io::Result<()> {
        self.open("{")
    }

    fn end_datagram(&mut self) -> io::Result<()> {
        self.close("}\n")
    }

    fn begin(&mut self, _part: Part) -> io::Result<()> {
        self.separate()?;
        self.open("{")
    }

    fn end(&mut self, _part: Part) -> io::Result<()> {
        self.close("}")
    }

    fn begin_list(&mut self, name: &str) -> io::Result<()> {
        self.separate()?;
        write!(self.writer, "\"{name}\":")?;
        self.open("[")
    }

    fn end_list(&mut self) -> io::Result<()> {
        self.close("]")
    }

    fn field(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.writer, "\"{name}\":\"{}\"", Escaped(value))
    }

    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(name, value)
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
        assert_eq!(Escaped("a\"b\\c\nd\u{1f}ä").to_string(), "a\\\"b\\\\c\\u000ad\\u001fä");
    }
}
