//! YAML files of other kinds than the router's, read with the same bounds and the same findings.
//!
//! A tool with a file of its own (its keys, its types) reads it here and reports what is wrong at its
//! place, so that all of Weir's files are refused in the same words and with all errors at once. What the
//! keys mean is the tool's concern.

use crate::diagnostic::{Diagnostic, Place, Source, quote};
use crate::findings::{Findings, Remark};
use crate::tree::{self, Content, Limits, Node};

/// A position in the file, to report a finding at.
#[derive(Debug, Clone, Copy)]
pub struct Position(Place);

/// The content of a file.
pub struct Document<'t>(tree::Tree<'t>);

/// A value of the file.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d>(&'d Node<'d>);

/// What was found wrong so far.
pub struct Report<'t>(Findings<'t>);

/// Reads a file. Equal keys are already in the report.
///
/// # Errors
/// What makes the file unreadable: not UTF-8, not YAML, too large, nested too deep.
pub fn read<'t>(
    name: &'t str,
    bytes: &'t [u8],
    limits: &Limits,
) -> Result<(Document<'t>, Report<'t>), Vec<Diagnostic>> {
    let refuse = |message: String| {
        let mut findings = Findings::new(Source::new(name, ""));
        let remark = Remark::new(message, "", "is this the right file?");
        findings.error_at(Place::START, String::new(), remark);
        findings.finish().err().unwrap_or_default()
    };
    if bytes.len() > limits.bytes {
        return Err(refuse(format!(
            "the file has more than {} bytes",
            limits.bytes
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refuse(format!(
            "the file is not UTF-8 text: byte {} cannot be decoded",
            error.valid_up_to()
        ))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut findings = Findings::new(Source::new(name, text));
    match tree::read(text, limits) {
        Ok(tree) => {
            for error in &tree.duplicates {
                let remark = Remark::new(error.message.clone(), error.label, error.help.clone());
                findings.error_at(error.place, error.path.clone(), remark);
            }
            Ok((Document(tree), Report(findings)))
        }
        Err(error) => {
            let remark = Remark::new(error.message, error.label, error.help);
            findings.error_at(error.place, error.path, remark);
            Err(findings.finish().err().unwrap_or_default())
        }
    }
}

impl Document<'_> {
    /// The whole file as a value.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value(&self.0.root)
    }
}

impl<'d> Value<'d> {
    /// Where the value is.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.0.place)
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a scalar.
    #[must_use]
    pub fn text(&self) -> Option<&'d str> {
        self.0.text()
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> Option<impl Iterator<Item = Value<'d>> + use<'d>> {
        match &self.0.content {
            Content::List(items) => Some(items.iter().map(Value)),
            _ => None,
        }
    }

    /// The keys of a section with their positions and values.
    #[must_use]
    pub fn entries(
        &self,
    ) -> Option<impl Iterator<Item = (&'d str, Position, Value<'d>)> + use<'d>> {
        match &self.0.content {
            Content::Map(entries) => Some(entries.iter().map(|entry| {
                (
                    entry.key.as_ref(),
                    Position(entry.place),
                    Value(&entry.value),
                )
            })),
            _ => None,
        }
    }
}

impl Report<'_> {
    /// Adds an error: what is wrong with the key `path`, and what would be right.
    pub fn error(
        &mut self,
        at: Position,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.0
            .error_at(at.0, path.to_owned(), Remark::new(message, "", help));
    }

    /// All findings in the order of the file: warnings if there are no errors.
    ///
    /// # Errors
    /// The errors.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        self.0.finish()
    }
}

/// Text from the file for a message: in backticks, short, control characters escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    quote(text)
}
