//! The text form of OpenMetrics 1.0: families with `# TYPE`, `# UNIT` and `# HELP`, samples with
//! escaped labels, and `# EOF` at the end.

use std::fmt::{Display, Write};

use crate::metrics::Snapshot;
use crate::metrics::families::{METRICS, Metric, MetricKind};

/// The text of all families that have samples.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for family in METRICS {
        let mut samples = Samples {
            family,
            text: String::new(),
        };
        (family.fill)(snapshot, &mut samples);
        if samples.text.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {} {}", family.name, family.kind.word());
        if let Some(unit) = family.unit {
            let _ = writeln!(text, "# UNIT {} {unit}", family.name);
        }
        let _ = writeln!(text, "# HELP {} {}", family.name, escaped(family.help));
        text.push_str(&samples.text);
    }
    text.push_str("# EOF\n");
    text
}

/// The samples of one family.
pub(super) struct Samples {
    family: &'static Metric,
    text: String,
}

impl Samples {
    /// One sample; `labels` are the values of the family's labels, in their order.
    pub(super) fn put<const N: usize>(&mut self, labels: [&dyn Display; N], value: impl Value) {
        debug_assert_eq!(
            labels.len(),
            self.family.labels.len(),
            "{}",
            self.family.name
        );
        self.text.push_str(self.family.name);
        self.text.push_str(self.family.kind.suffix());
        for (place, (name, value)) in self.family.labels.iter().zip(labels).enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(
                self.text,
                "{before}{name}=\"{}\"",
                escaped(&value.to_string())
            );
        }
        if !self.family.labels.is_empty() {
            self.text.push('}');
        }
        self.text.push(' ');
        value.write(&mut self.text);
        self.text.push('\n');
    }
}

/// The ABNF's `escaped-string`: backslash, quote and line feed.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// What can be a sample's value.
pub(super) trait Value {
    fn write(self, text: &mut String);
}

impl Value for u64 {
    fn write(self, text: &mut String) {
        let _ = write!(text, "{self}");
    }
}

impl Value for u32 {
    fn write(self, text: &mut String) {
        u64::from(self).write(text);
    }
}

impl Value for bool {
    fn write(self, text: &mut String) {
        u64::from(self).write(text);
    }
}

impl Value for f64 {
    fn write(self, text: &mut String) {
        if self.is_finite() {
            let _ = write!(text, "{self}");
        } else {
            // The ABNF's words for what is no number.
            text.push_str(if self.is_nan() {
                "NaN"
            } else if self > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            });
        }
    }
}

impl MetricKind {
    /// Its word behind `# TYPE`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }

    /// What its samples' names end in.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge => "",
            Self::Info => "_info",
        }
    }
}
