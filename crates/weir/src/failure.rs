//! How commands end when they do not end well.
//!
//! A command returns its failure; only `main` prints it and chooses the exit code.

use std::fmt;
use std::io::{self, ErrorKind};

/// Why a command did not do what it was told.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A sentence for the person at the terminal; exit code 1.
    Said(String),
    /// Everything was told already; only the exit code is left.
    Told(u8),
    /// Whoever read our output went away: nobody is left to tell. Exit code 0.
    NobodyReads,
}

impl Failure {
    /// A failure with its sentence.
    pub(crate) fn said(sentence: impl fmt::Display) -> Self {
        Self::Said(sentence.to_string())
    }
}

/// Failures of writing to standard output; other files' errors want a sentence with their name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe { Self::NobodyReads } else { Self::Said(format!("cannot write the output: {error}")) }
    }
}

impl From<weir_api::ClientError> for Failure {
    fn from(error: weir_api::ClientError) -> Self {
        Self::said(error)
    }
}
