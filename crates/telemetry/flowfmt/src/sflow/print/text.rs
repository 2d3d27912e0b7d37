//! A line for each field: name, space, value. Samples and datagrams have lines where they begin and end.
//!
//! For `grep`, every line begins with where it stands: time, agent, sub-agent, number of the datagram,
//! data source, sample and record.

use std::fmt::{Arguments, Display};
use std::io::{self, Write};

use super::show::{Address, Printable, SourceId, Time};
use super::{Arrival, Part, Sink};
use crate::sflow::decode::Datagram;
use crate::sflow::{DataFormat, Source};

pub(super) struct Text<'w, W> {
    writer: &'w mut W,
    /// For `grep`: everything up to the data source, and what follows.
    place: Option<Place>,
    prefixes: [&'static str; 2],
}

struct Place {
    datagram: String,
    source: Source,
    sample: DataFormat,
    record: DataFormat,
}

const NOWHERE: DataFormat = DataFormat::standard(0);

impl<'w, W: Write> Text<'w, W> {
    pub(super) fn new(writer: &'w mut W) -> Text<'w, W> {
        Text {
            writer,
            place: None,
            prefixes: [""; 2],
        }
    }

    pub(super) fn for_grep(
        writer: &'w mut W,
        arrival: &Arrival,
        datagram: &Datagram<'_>,
    ) -> Text<'w, W> {
        let time = Time(arrival.unix_ns / 1_000_000_000);
        let datagram = format!(
            "{time} {} {} {}",
            Address(datagram.agent),
            datagram.sub_agent_id,
            datagram.sequence
        );
        let place = Place {
            datagram,
            source: Source::interface(0),
            sample: NOWHERE,
            record: NOWHERE,
        };
        Text {
            writer,
            place: Some(place),
            prefixes: [""; 2],
        }
    }

    fn line(&mut self, line: Arguments<'_>) -> io::Result<()> {
        if let Some(Place {
            datagram,
            source,
            sample,
            record,
        }) = &self.place
        {
            write!(
                self.writer,
                "{datagram} {} {sample} {record} ",
                SourceId(*source)
            )?;
        }
        self.writer.write_fmt(line)?;
        self.writer.write_all(b"\n")
    }
}

impl<W: Write> Sink for Text<'_, W> {
    fn begin_datagram(&mut self) -> io::Result<()> {
        self.line(format_args!(
            "startDatagram ================================="
        ))
    }

    fn end_datagram(&mut self) -> io::Result<()> {
        self.line(format_args!(
            "endDatagram   ================================="
        ))
    }

    fn begin(&mut self, part: Part) -> io::Result<()> {
        if let Some(place) = &mut self.place {
            match part {
                Part::Sample(format, source) => {
                    (place.sample, place.source) = (format, source.unwrap_or(Source::interface(0)))
                }
                Part::Record(format) => place.record = format,
                Part::Item => {}
            }
        }
        match part {
            Part::Sample(..) => self.line(format_args!("startSample ----------------------")),
            Part::Record(_) | Part::Item => Ok(()),
        }
    }

    fn end(&mut self, part: Part) -> io::Result<()> {
        if let Some(place) = &mut self.place {
            place.record = NOWHERE;
        }
        let Part::Sample(..) = part else {
            return Ok(());
        };
        self.line(format_args!("endSample   ----------------------"))?;
        if let Some(place) = &mut self.place {
            (place.sample, place.source) = (NOWHERE, Source::interface(0));
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
        let [outer, inner] = self.prefixes;
        self.line(format_args!("{outer}{inner}{name} {value}"))
    }

    fn foreign(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(name, Printable(value))
    }

    fn foreign_name(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.field(&Printable(name).to_string(), Printable(value))
    }

    fn remark(&mut self, remark: Arguments<'_>) -> io::Result<()> {
        self.line(remark)
    }
}
