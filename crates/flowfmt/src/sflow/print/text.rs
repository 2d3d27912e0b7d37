//! A line for each field: name, space, value. Samples and datagrams have lines where they begin and end.

use std::fmt::{Arguments, Display};
use std::io::{self, Write};

use super::show::Printable;
use super::{Part, Sink};

pub(super) struct Text<'w, W>(&'w mut W);

impl<'w, W: Write> Text<'w, W> {
    pub(super) fn new(writer: &'w mut W) -> Text<'w, W> {
        Text(writer)
    }
}

impl<W: Write> Sink for Text<'_, W> {
    fn begin_datagram(&mut self) -> io::Result<()> {
        writeln!(self.0, "startDatagram =================================")
    }

    fn end_datagram(&mut self) -> io::Result<()> {
        writeln!(self.0, "endDatagram   =================================")
    }

    fn begin(&mut self, part: Part) -> io::Result<()> {
        match part {
            Part::Sample => writeln!(self.0, "startSample ----------------------"),
            Part::Record => Ok(()),
        }
    }

    fn end(&mut self, part: Part) -> io::Result<()> {
        match part {
            Part::Sample => writeln!(self.0, "endSample   ----------------------"),
            Part::Record => Ok(()),
        }
    }

    fn begin_list(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn end_list(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn field(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        writeln!(self.0, "{name} {value}")
    }

    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(name, Printable(value))
    }

    fn remark(&mut self, remark: Arguments<'_>) -> io::Result<()> {
        writeln!(self.0, "{remark}")
    }
}
