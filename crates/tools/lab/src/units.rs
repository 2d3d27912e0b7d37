//! Quantities as people write them: rates, counts, durations.
//!
//! Pure functions; each error is a sentence that says what is accepted.

use std::time::Duration;

/// A packet rate, before the frame size and the line rate are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// As fast as the port accepts.
    Max,
    /// Packets per second.
    Packets(f64),
    /// Bits per second of layer 2: the frame with its FCS.
    Layer2(f64),
    /// Bits per second of layer 1: the frame, preamble and inter-frame gap.
    Layer1(f64),
    /// Percent of the line rate.
    Percent(f64),
}

/// Bytes on the wire beside the frame with its FCS: preamble, start delimiter, inter-frame gap.
pub const LAYER1_OVERHEAD: f64 = 20.0;

/// Makes a rate of a number.
type Make = fn(f64) -> Rate;

const RATE_HELP: &str = "a rate is a number with pps, bps, bpsL1 or %, and k, M or G before the unit: 100kpps, 1.5Mpps, 10GbpsL1, 50%, max";

impl Rate {
    /// Reads `100kpps`, `2M`, `1Gbps`, `10GbpsL1`, `50%` or `max`. A number alone means packets per second.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let text = text.trim().to_ascii_lowercase();
        if text == "max" {
            return Ok(Rate::Max);
        }
        let units: [(&str, Make); 5] = [
            ("bpsl1", Rate::Layer1),
            ("bps", Rate::Layer2),
            ("pps", Rate::Packets),
            ("%", Rate::Percent),
            ("", Rate::Packets),
        ];
        for (unit, make) in units {
            let Some(number) = text.strip_suffix(unit) else {
                continue;
            };
            let value = scaled(number).ok_or_else(|| RATE_HELP.to_owned())?;
            if value <= 0.0 || (unit == "%" && value > 100.0) {
                return Err(format!(
                    "a rate must be above 0, a percentage at most 100; {RATE_HELP}"
                ));
            }
            return Ok(make(value));
        }
        Err(RATE_HELP.to_owned())
    }

    /// Packets per second for frames of `frame` bytes on average (with FCS) on a line of `line`
    /// bits per second; infinite for [`Rate::Max`].
    ///
    /// # Errors
    /// When a percentage is asked for and the line rate is unknown.
    pub fn packets_per_second(self, frame: f64, line: Option<f64>) -> Result<f64, String> {
        let layer1 = |bits: f64| bits / ((frame + LAYER1_OVERHEAD) * 8.0);
        let rate = match self {
            Rate::Max => f64::INFINITY,
            Rate::Packets(packets) => packets,
            Rate::Layer2(bits) => bits / (frame * 8.0),
            Rate::Layer1(bits) => layer1(bits),
            Rate::Percent(percent) => {
                let line =
                    line.ok_or("a rate in percent needs the line rate: give --line-rate, as 10G")?;
                layer1(line * percent / 100.0)
            }
        };
        if let Some(line) = line
            && rate.is_finite()
            && rate > layer1(line) * 1.000_001
        {
            return Err(format!(
                "{rate:.0} packets/s of {frame:.0} bytes do not fit a line of {line:.0} bit/s: at most {:.0}",
                layer1(line)
            ));
        }
        Ok(rate)
    }
}

/// Reads a number with an optional k, M or G (powers of 1000).
#[must_use]
pub fn scaled(text: &str) -> Option<f64> {
    let text = text.trim();
    let factor = match text.as_bytes().last()? {
        b'k' | b'K' => 1e3,
        b'm' | b'M' => 1e6,
        b'g' | b'G' => 1e9,
        _ => 1.0,
    };
    let number = if factor > 1.0 {
        text.get(..text.len() - 1)?
    } else {
        text
    };
    let value: f64 = number.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * factor)
}

/// Reads a count: `64k` is 65,536 (flows and packets are counted in powers of two with `k`), `1M` is 1,000,000.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let help = || "a count is a number, as 1000, 64k (65536) or 1M (1000000)".to_owned();
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1024),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| help())?;
    number.checked_mul(factor).ok_or_else(help)
}

/// Reads `10us`, `5ms`, `2s`, `1m`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn duration(text: &str) -> Result<Duration, String> {
    let help = || "a duration is a number with ns, us, ms, s, m or h: 10ms".to_owned();
    let text = text.trim();
    let at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: f64 = number.trim().parse().map_err(|_| help())?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(help()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!(Rate::parse("100kpps"), Ok(Rate::Packets(1e5)));
        assert_eq!(Rate::parse("1.5M"), Ok(Rate::Packets(1.5e6)));
        assert_eq!(Rate::parse("10GbpsL1"), Ok(Rate::Layer1(1e10)));
        assert_eq!(Rate::parse("1Gbps"), Ok(Rate::Layer2(1e9)));
        assert_eq!(Rate::parse("50%"), Ok(Rate::Percent(50.0)));
        assert_eq!(Rate::parse("max"), Ok(Rate::Max));
        for wrong in ["", "x", "-1pps", "0", "101%", "1kk", "nan", "infpps"] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// 14.88 Mpps of 64 bytes are 10 Gbit/s of layer 1.
    #[test]
    fn line_rates_are_those_of_ethernet() {
        let all = Rate::Percent(100.0)
            .packets_per_second(64.0, Some(1e10))
            .unwrap();
        assert!((all - 14_880_952.38).abs() < 0.01);
        let bits = Rate::Layer2(64.0 * 8.0)
            .packets_per_second(64.0, None)
            .unwrap();
        assert!((bits - 1.0).abs() < 1e-9);
        assert!(Rate::Percent(1.0).packets_per_second(64.0, None).is_err());
        assert!(
            Rate::Packets(2e7)
                .packets_per_second(64.0, Some(1e10))
                .is_err()
        );
    }

    #[test]
    fn counts_and_durations_are_read() {
        assert_eq!(count("64k"), Ok(65_536));
        assert_eq!(count("1M"), Ok(1_000_000));
        assert!(count("k").is_err() && count("1e3").is_err());
        assert_eq!(duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(duration("1.5us"), Ok(Duration::from_nanos(1500)));
        assert!(duration("10 parsecs").is_err() && duration("-1s").is_err());
    }
}
