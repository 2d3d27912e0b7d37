//! Collecting what is wrong, with places, up to a bound.
//!
//! Several passes look at a file, and one mistake must not be reported twice: a pass that finds a
//! key broken says so here, and later passes ask before they compare that key with others. A
//! mistyped key counts as its likely meaning: after `adresses:` there is no second error that no subnet
//! reaches a next hop.

use std::collections::HashSet;
use std::fmt::Write;

use crate::diagnostic::{Diagnostic, Place, Severity, Source, quote};

/// One step down the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> From<&'a str> for Segment<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Segment<'_> {
    fn from(item: usize) -> Self {
        Self::Item(item)
    }
}

/// `at!["routes", 0, "via"]`
macro_rules! at {
    ($($segment:expr),* $(,)?) => { &[$($crate::findings::Segment::from($segment)),*] };
}
pub(crate) use at;

/// The path as messages write it: `interfaces.xe0.addresses[1]`, odd names in backticks.
pub(crate) fn render(path: &[Segment<'_>]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Item(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
            Segment::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                let plain = !key.is_empty()
                    && key.len() <= 48
                    && key.bytes().all(|byte| {
                        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/')
                    });
                if plain {
                    text.push_str(key);
                } else {
                    text.push_str(&quote(key));
                }
            }
        }
    }
    text
}

/// What is said at a place.
pub(crate) struct Remark {
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: String,
}

impl Remark {
    pub(crate) fn new(
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            label: label.into(),
            help: help.into(),
        }
    }
}

/// All findings in one file.
pub(crate) struct Findings<'t> {
    source: Source<'t>,
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    /// What this version lacks is left out with a warning.
    skips_unsupported: bool,
    broken: HashSet<String>,
    broken_patterns: HashSet<String>,
}

impl<'t> Findings<'t> {
    /// More errors than this are only counted: nobody reads them, and each costs memory.
    pub(crate) const SHOWN: usize = 200;

    pub(crate) fn new(source: Source<'t>) -> Self {
        Self {
            source,
            list: Vec::new(),
            errors: 0,
            warnings: 0,
            skips_unsupported: false,
            broken: HashSet::new(),
            broken_patterns: HashSet::new(),
        }
    }

    pub(crate) fn skipping_unsupported(self, skips_unsupported: bool) -> Self {
        Self {
            skips_unsupported,
            ..self
        }
    }

    /// Report what vppcfg has and this version lacks.
    pub(crate) fn unsupported(
        &mut self,
        place: Place,
        path: &[Segment<'_>],
        message: String,
        help: &str,
    ) {
        if self.skips_unsupported {
            self.warning(place, path, Remark::new(message, "left out", ""));
        } else {
            self.error(place, path, Remark::new(message, "not supported yet", help));
        }
    }

    pub(crate) fn error(&mut self, place: Place, path: &[Segment<'_>], remark: Remark) {
        self.errors = self.errors.saturating_add(1);
        if self.errors <= Self::SHOWN {
            self.push(Severity::Error, place, render(path), remark);
        }
    }

    pub(crate) fn error_at(&mut self, place: Place, path: String, remark: Remark) {
        self.errors = self.errors.saturating_add(1);
        if self.errors <= Self::SHOWN {
            self.push(Severity::Error, place, path, remark);
        }
    }

    pub(crate) fn warning(&mut self, place: Place, path: &[Segment<'_>], remark: Remark) {
        self.warnings = self.warnings.saturating_add(1);
        if self.warnings <= Self::SHOWN {
            self.push(Severity::Warning, place, render(path), remark);
        }
    }

    fn push(&mut self, severity: Severity, place: Place, path: String, remark: Remark) {
        let Remark {
            message,
            label,
            help,
        } = remark;
        let excerpt = self.source.excerpt(place);
        let Place {
            line,
            column,
            width,
        } = place;
        self.list.push(Diagnostic {
            severity,
            file: self.source.name.to_owned(),
            line,
            column,
            width,
            path,
            message,
            label,
            help,
            excerpt,
        });
    }

    /// Later passes shall not judge this key, whose row of the table is `pattern`.
    pub(crate) fn mark_broken(&mut self, path: &[Segment<'_>], pattern: &str) {
        if self.errors <= Self::SHOWN {
            self.broken.insert(render(path));
            self.broken_patterns.insert(pattern.to_owned());
        }
    }

    pub(crate) fn is_broken(&self, path: &[Segment<'_>]) -> bool {
        !self.broken.is_empty()
            && (1..=path.len()).any(|length| {
                path.get(..length)
                    .is_some_and(|start| self.broken.contains(&render(start)))
            })
    }

    /// Whether any key at or below this row of the table is broken.
    pub(crate) fn any_broken(&self, pattern: &str) -> bool {
        let below = |broken: &String| {
            broken
                .strip_prefix(pattern)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.broken_patterns.iter().any(below)
    }

    /// There are so many errors that looking for more helps nobody.
    pub(crate) fn is_full(&self) -> bool {
        self.errors > Self::SHOWN
    }

    /// Errors, or else warnings, in the order of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        self.list
            .sort_by_key(|it| (it.line, it.column, it.severity));
        let more = if self.errors == 0 {
            (self.warnings, "warnings")
        } else {
            (self.errors, "errors")
        };
        if let (number, what) = more
            && number > Self::SHOWN
            && let Some(last) = self.list.last().cloned()
        {
            let message = format!("there are more {what}; the first {} are shown", Self::SHOWN);
            let help = if self.errors == 0 {
                String::new()
            } else {
                "correct these first".to_owned()
            };
            let severity = if self.errors == 0 {
                Severity::Warning
            } else {
                Severity::Error
            };
            self.list.push(Diagnostic {
                severity,
                message,
                help,
                label: String::new(),
                path: String::new(),
                ..last
            });
        }
        if self.errors == 0 {
            Ok(self.list)
        } else {
            Err(self.list)
        }
    }
}
