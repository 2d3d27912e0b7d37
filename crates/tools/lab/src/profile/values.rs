//! The values of one packet field: fixed, counting, random or from a list.

use std::net::{Ipv4Addr, Ipv6Addr};

use weir_wire::MacAddr;

/// The values that a field takes, packet after packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The first value.
    pub first: u128,
    /// How many values there are: 1 for a fixed field.
    pub count: u64,
    /// The distance between two values.
    pub step: u64,
    /// Values are drawn at random instead of in order.
    pub random: bool,
    /// The values themselves, when they are a list.
    pub list: Vec<u128>,
    /// How many packets in a row have the same value, at least 1.
    pub every: u64,
    /// The number of the value that comes first; below `count`.
    pub start: u64,
    /// Values are taken in descending order.
    pub down: bool,
}

impl Values {
    /// One value.
    #[must_use]
    pub fn fixed(value: u128) -> Values {
        Values {
            first: value,
            count: 1,
            step: 1,
            random: false,
            list: Vec::new(),
            every: 1,
            start: 0,
            down: false,
        }
    }

    /// All values from `first` to `last`, in order.
    #[must_use]
    pub fn range(first: u128, last: u128) -> Values {
        let count = u64::try_from(last.saturating_sub(first)).unwrap_or(u64::MAX - 1) + 1;
        Values {
            first,
            count,
            step: 1,
            random: false,
            list: Vec::new(),
            every: 1,
            start: 0,
            down: false,
        }
    }

    /// The same values, drawn at random.
    #[must_use]
    pub fn at_random(mut self) -> Values {
        self.random = true;
        self
    }

    /// Whether all packets have the same value.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.count == 1 && self.list.is_empty()
    }

    /// The last value.
    #[must_use]
    pub fn last(&self) -> u128 {
        self.first
            .saturating_add(u128::from(self.count - 1) * u128::from(self.step))
    }
}

/// What a field's text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Mac,
    V4,
    V6,
    /// A number up to this.
    Number(u128),
}

impl Type {
    pub(crate) fn read(self, text: &str) -> Result<u128, String> {
        let text = text.trim();
        match self {
            Type::Mac => text
                .parse::<MacAddr>()
                .map(|mac| {
                    mac.0
                        .iter()
                        .fold(0, |sum, byte| sum << 8 | u128::from(*byte))
                })
                .map_err(|_| format!("{text} is no MAC address: write 02:00:00:00:00:01")),
            Type::V4 => text
                .parse::<Ipv4Addr>()
                .map(|address| u128::from(u32::from(address)))
                .map_err(|_| format!("{text} is no IPv4 address")),
            Type::V6 => text
                .parse::<Ipv6Addr>()
                .map(u128::from)
                .map_err(|_| format!("{text} is no IPv6 address")),
            Type::Number(most) => {
                let value = match text.strip_prefix("0x") {
                    Some(hex) => u128::from_str_radix(hex, 16).ok(),
                    None => text.parse().ok(),
                };
                value
                    .filter(|value| *value <= most)
                    .ok_or_else(|| format!("{text} is not a number from 0 to {most}"))
            }
        }
    }

    /// Reads `A` or `A-B` (counting).
    pub(crate) fn values(self, text: &str) -> Result<Values, String> {
        match text.split_once('-') {
            None => self.read(text).map(Values::fixed),
            Some((first, last)) => self.between(self.read(first)?, self.read(last)?, 1),
        }
    }

    /// The values from `first` to `last`, `step` apart.
    pub(crate) fn between(self, first: u128, last: u128, step: u64) -> Result<Values, String> {
        if last < first {
            return Err("the range ends before it begins".to_owned());
        }
        if first >> 64 != last >> 64 {
            return Err(
                "the ends of the range differ in the upper 64 bits: only the lower 64 can vary"
                    .to_owned(),
            );
        }
        if step == 0 {
            return Err("the step must be 1 or more".to_owned());
        }
        let count = u64::try_from((last - first) / u128::from(step))
            .unwrap_or(u64::MAX - 1)
            .min(u64::MAX - 1)
            + 1;
        Ok(Values {
            first,
            count,
            step,
            random: false,
            list: Vec::new(),
            every: 1,
            start: 0,
            down: false,
        })
    }
}
