//! How single values are written: addresses, MACs, octets, times, ports.

use std::fmt::{Display, Formatter, Result, Write};
use std::net::IpAddr;

use crate::sflow::{Port, Source};

/// An address; IPv6 with all its digits, an unknown one as `-`.
pub(super) struct Address(pub(super) Option<IpAddr>);

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            None => f.write_char('-'),
            Some(IpAddr::V4(address)) => address.fmt(f),
            Some(IpAddr::V6(address)) => {
                let mut separator = "";
                for segment in address.segments() {
                    write!(f, "{separator}{segment:04x}")?;
                    separator = ":";
                }
                Ok(())
            }
        }
    }
}

/// A MAC address without separators.
pub(super) struct Mac(pub(super) [u8; 6]);

impl Display for Mac {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Sixteen octets as RFC 9562 writes them.
pub(super) struct Uuid(pub(super) [u8; 16]);

impl Display for Uuid {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (place, octet) in self.0.iter().enumerate() {
            let separator = if matches!(place, 4 | 6 | 8 | 10) {
                "-"
            } else {
                ""
            };
            write!(f, "{separator}{octet:02x}")?;
        }
        Ok(())
    }
}

/// Octets as `AA-BB-CC`.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut separator = "";
        for octet in self.0 {
            write!(f, "{separator}{octet:02X}")?;
            separator = "-";
        }
        Ok(())
    }
}

/// `class:index`.
pub(super) struct SourceId(pub(super) Source);

impl Display for SourceId {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}:{}", self.0.class, self.0.index)
    }
}

/// An input or output port; what is not a single interface says so.
pub(super) struct PortNumber(pub(super) Port);

impl Display for PortNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Port { format, value } = self.0;
        match format {
            0 => write!(f, "{value}"),
            1 => write!(f, "dropCode {value}"),
            2 => write!(f, "multiple {value}"),
            _ => write!(f, "format=={format} {value}"),
        }
    }
}

/// Text from outside, made harmless for a terminal and for who reads line by line.
pub(super) struct Printable<'a>(pub(super) &'a str);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_unicode())?
            } else {
                f.write_char(character)?
            }
        }
        Ok(())
    }
}

/// Seconds since 1970 as ISO 8601, in UTC.
pub(super) struct Time(pub(super) u64);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (year, month, day) = date(self.0 / 86_400);
        let (hour, minute, second) = (self.0 / 3600 % 24, self.0 / 60 % 60, self.0 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+0000"
        )
    }
}

/// Year, month and day out of days since 1970, in the Gregorian calendar. Counting from a first of
/// March puts the leap day at a year's end, so that a month's first day is linear in its number.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    // 0000-03-01 is 719,468 days before 1970.
    let days = days_since_1970 + 719_468;
    let day_of_era = days % DAYS_IN_400_YEARS;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = days / DAYS_IN_400_YEARS * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_calendars() {
        // Taken from `date -u -d @SECONDS +%Y-%m-%dT%H:%M:%S%z`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00+0000"),
            (951_782_399, "2000-02-28T23:59:59+0000"),
            (951_782_400, "2000-02-29T00:00:00+0000"),
            (951_868_800, "2000-03-01T00:00:00+0000"),
            (1_735_689_599, "2024-12-31T23:59:59+0000"),
            (4_107_542_400, "2100-03-01T00:00:00+0000"),
        ] {
            assert_eq!(Time(seconds).to_string(), expected);
        }
        // The largest time that can be handed in.
        assert_eq!(
            Time(u64::MAX / 1_000_000_000).to_string(),
            "2554-07-21T23:34:33+0000"
        );
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for days in 0..300_000 {
            assert_eq!(date(days), expected);
            let (year, month, day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = if day < length {
                (year, month, day + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
    }

    #[test]
    fn names_cannot_break_out_of_their_line() {
        assert_eq!(
            Printable("xe0\nsrcIP 1\x1b[2J\u{9b}ä").to_string(),
            "xe0\\u{a}srcIP 1\\u{1b}[2J\\u{9b}ä"
        );
    }
}
