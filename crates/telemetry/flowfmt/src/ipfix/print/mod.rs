//! Records as text: JSON with IANA's names, or nfdump's lines and comma-separated values.
//!
//! JSON has everything that was in the record. The other two have what nfdump 1.7 has in its formats `line` and
//! `csv`, column for column; options are no flows and are not in them. Times are in UTC.

mod json;
mod nfdump;

use std::fmt;
use std::io::{self, Write};

use super::decode::{Item, Record};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a record and a template.
    Json,
    /// nfdump's `line`.
    Line,
    /// nfdump's `csv`.
    Csv,
}

/// Writes items one after the other.
#[derive(Debug)]
pub struct Printer {
    format: Format,
    exporters: nfdump::Exporters,
    begun: bool,
    /// Options that the format has no place for.
    left_out: u64,
}

impl Printer {
    /// Writes in this format.
    #[must_use]
    pub fn new(format: Format) -> Printer {
        Printer {
            format,
            exporters: nfdump::Exporters::default(),
            begun: false,
            left_out: 0,
        }
    }

    /// Options records that the format has no place for.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Writes what has a place in the format; `received` is nanoseconds since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn item(&mut self, to: &mut dyn Write, received: u64, item: &Item<'_>) -> io::Result<()> {
        match (self.format, item) {
            (Format::Json, Item::Record(record)) => json::record(to, record),
            (Format::Json, Item::Template(header, template)) => {
                json::template(to, header, template)
            }
            (_, Item::Record(record)) => self.flow(to, received, record),
            _ => Ok(()),
        }
    }

    fn flow(&mut self, to: &mut dyn Write, received: u64, record: &Record<'_>) -> io::Result<()> {
        if record.template.is_options() {
            self.left_out += 1;
            return Ok(());
        }
        let exporter = self.exporters.number(record.header);
        if !std::mem::replace(&mut self.begun, true) {
            writeln!(
                to,
                "{}",
                if self.format == Format::Csv {
                    nfdump::CSV_HEADER
                } else {
                    nfdump::LINE_HEADER
                }
            )?;
        }
        match self.format {
            Format::Csv => nfdump::csv(to, record, exporter, received),
            _ => nfdump::line(to, record),
        }
    }
}

/// Nanoseconds since 1970 as date and time of day, with so many digits of a second.
struct Moment {
    time: u64,
    between: char,
    digits: usize,
}

impl fmt::Display for Moment {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time / 1_000_000_000;
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(
            to,
            "{year:04}-{month:02}-{day:02}{}{hour:02}:{minute:02}:{second:02}",
            self.between
        )?;
        match self.digits {
            0 => Ok(()),
            3 => write!(to, ".{:03}", self.time / 1_000_000 % 1000),
            _ => write!(to, ".{:09}", self.time % 1_000_000_000),
        }
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar: years are counted from the first of March, so
/// that the leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 1 March of the year 0 on.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (
        era * 400 + year + u64::from(month <= 2),
        month,
        day_of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_675, (2023, 11, 14)),
            (47_541, (2100, 3, 1)),
            (47_540, (2100, 2, 28)),
        ] {
            assert_eq!(date(days), expected);
        }
        let moment = Moment {
            time: 1_700_000_000_123_456_789,
            between: ' ',
            digits: 3,
        };
        assert_eq!(moment.to_string(), "2023-11-14 22:13:20.123");
        // The last moment that 64 bits have.
        assert_eq!(
            Moment {
                time: u64::MAX,
                between: 'T',
                digits: 9
            }
            .to_string(),
            "2554-07-21T23:34:33.709551615"
        );
    }
}
