//! Points in time, as the API writes them: RFC 3339 in UTC, to the millisecond.
//!
//! `2026-11-21T10:15:33.120Z`. The calendar is worked out here (days since 1970 to year, month
//! and day), so that no time library is needed; leap seconds do not exist, as in `SystemTime`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DAY_MS: u64 = 86_400_000;
/// The last millisecond of the year 9999: RFC 3339 has four digits for a year.
const LAST_MS: u64 = 253_402_300_799_999;

/// A point in time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time `milliseconds` after the beginning of 1970; at most the end of the year 9999.
    #[must_use]
    pub const fn from_unix_ms(milliseconds: u64) -> Self {
        Self(if milliseconds > LAST_MS {
            LAST_MS
        } else {
            milliseconds
        })
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        self.0
    }

    /// Now.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_unix_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_millis(time.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.0 / DAY_MS);
        let rest = self.0 % DAY_MS;
        let (hour, minute, second, ms) = (
            rest / 3_600_000,
            rest / 60_000 % 60,
            rest / 1000 % 60,
            rest % 1000,
        );
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time as 2026-11-21T10:15:33.120Z")]
pub struct NotATime;

impl FromStr for Timestamp {
    type Err = NotATime;

    /// Reads what `Display` writes, with or without a fraction of a second (RFC 3339 5.6, UTC only).
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let text = text.strip_suffix('Z').ok_or(NotATime)?;
        let (date, time) = text.split_once('T').ok_or(NotATime)?;
        let [year, month, day] = numbers(date.split('-'), [4, 2, 2])?;
        let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [hour, minute, second] = numbers(clock.split(':'), [2, 2, 2])?;
        if !(1970..=9999).contains(&year)
            || !(1..=12).contains(&month)
            || hour > 23
            || minute > 59
            || second > 59
        {
            return Err(NotATime);
        }
        let days = days_until(year, month, day);
        if date_of(days) != (year, month, day)
            || fraction.is_empty()
            || !fraction.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(NotATime);
        }
        let ms = fraction
            .bytes()
            .chain(*b"000")
            .take(3)
            .fold(0, |ms, digit| ms * 10 + u64::from(digit - b'0'));
        Ok(Self(
            days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + ms,
        ))
    }
}

fn numbers<'a, const N: usize>(
    mut parts: impl Iterator<Item = &'a str>,
    digits: [usize; N],
) -> Result<[u64; N], NotATime> {
    let mut values = [0; N];
    for (value, digits) in values.iter_mut().zip(digits) {
        let part = parts
            .next()
            .filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()));
        *value = part.and_then(|part| part.parse().ok()).ok_or(NotATime)?;
    }
    if parts.next().is_some() {
        Err(NotATime)
    } else {
        Ok(values)
    }
}

/// Years that begin in March put the leap day last; 400 of them are 146,097 days.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let (month, turn) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + turn, month, day - first + 1)
}

/// Days from 1970 until a date that may have more days than its month.
fn days_until(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year) = (year / 400, year % 400);
    let days = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 + day;
    (era * 146_097 + days).saturating_sub(719_469)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A point in time in UTC, as RFC 3339 writes it.", "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_written_and_read() {
        // Worked out with `date -u -d @SECONDS`.
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_795_255_200_120, "2026-11-21T10:00:00.120Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp(ms)), "{text}");
        }
        assert_eq!(
            "2000-02-29T00:00:00Z".parse(),
            Ok(Timestamp(951_782_400_000))
        );
        assert_eq!(
            "2000-02-29T00:00:00.123456789Z".parse(),
            Ok(Timestamp(951_782_400_123))
        );
        assert_eq!(Timestamp::from_unix_ms(u64::MAX), Timestamp(LAST_MS));
    }

    #[test]
    fn every_day_is_itself_again() {
        for days in (0..LAST_MS / DAY_MS).step_by(17) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_until(year, month, day), days);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "Z",
            "2026-11-21",
            "2026-11-21T10:00:00",
            "2026-11-21T10:00:00+01:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.+1Z",
            "1969-12-31T23:59:59Z",
            "2026-1-1T0:0:0Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01-01T00:00:00Z",
            "99999-01-01T00:00:00Z",
            "2026-01-32T00:00:00Z",
            "é026-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(NotATime), "{text}");
        }
    }
}
