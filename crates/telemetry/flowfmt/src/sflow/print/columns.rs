//! Chosen fields, comma-separated, a line for each sample that has one of them.
//!
//! A field is asked for by the name under which text and JSON print it. Fields of the datagram (`agent`,
//! `localtime`) stand in every line, those of a sample in its own; what a sample lacks is empty. Where a
//! sample has a field twice, the first counts. A value with a comma, a quote or a line's end in it is
//! quoted (RFC 4180).

use std::fmt::{Arguments, Display, Write as _};
use std::io::{self, Write};

use super::{Part, Sink};

pub(super) struct Columns<'w, W> {
    writer: &'w mut W,
    columns: Vec<Column<'w>>,
    in_sample: bool,
    prefixes: [&'static str; 2],
}

struct Column<'a> {
    name: &'a str,
    value: String,
    /// Set in this sample; otherwise by the datagram, or not at all.
    of_sample: bool,
}

impl<'w, W: Write> Columns<'w, W> {
    pub(super) fn new(writer: &'w mut W, names: &'w [String]) -> Columns<'w, W> {
        let columns = names
            .iter()
            .map(|name| Column {
                name,
                value: String::new(),
                of_sample: false,
            })
            .collect();
        Columns {
            writer,
            columns,
            in_sample: false,
            prefixes: [""; 2],
        }
    }

    fn is(&self, wanted: &str, name: &str) -> bool {
        let [outer, inner] = self.prefixes;
        wanted
            .strip_prefix(outer)
            .and_then(|rest| rest.strip_prefix(inner))
            == Some(name)
    }

    fn line(&mut self) -> io::Result<()> {
        let mut separator = "";
        for column in &self.columns {
            self.writer.write_all(separator.as_bytes())?;
            if column.value.contains([',', '"', '\n', '\r']) {
                write!(self.writer, "\"{}\"", column.value.replace('"', "\"\""))?;
            } else {
                self.writer.write_all(column.value.as_bytes())?;
            }
            separator = ",";
        }
        self.writer.write_all(b"\n")
    }
}

impl<W: Write> Sink for Columns<'_, W> {
    fn begin_datagram(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end_datagram(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn begin(&mut self, part: Part) -> io::Result<()> {
        self.in_sample |= matches!(part, Part::Sample(..));
        Ok(())
    }

    fn end(&mut self, part: Part) -> io::Result<()> {
        let Part::Sample(..) = part else {
            return Ok(());
        };
        self.in_sample = false;
        if self.columns.iter().any(|column| column.of_sample) {
            self.line()?;
        }
        for column in self.columns.iter_mut().filter(|column| column.of_sample) {
            column.of_sample = false;
            column.value.clear();
        }
        Ok(())
    }

    fn begin_list(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn end_list(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn prefix(&mut self, level: usize, prefix: &'static str) {
        if let Some(room) = self.prefixes.get_mut(level) {
            *room = prefix;
        }
    }

    fn field(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        for place in 0..self.columns.len() {
            let wanted = self
                .columns
                .get(place)
                .is_some_and(|column| !column.of_sample && self.is(column.name, name));
            if let Some(column) = self.columns.get_mut(place).filter(|_| wanted) {
                column.value.clear();
                // A String takes everything.
                let _ = write!(column.value, "{value}");
                column.of_sample = self.in_sample;
            }
        }
        Ok(())
    }

    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(name, super::show::Printable(value))
    }

    fn foreign_name(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.foreign(name, value)
    }

    fn remark(&mut self, _remark: Arguments<'_>) -> io::Result<()> {
        Ok(())
    }
}
