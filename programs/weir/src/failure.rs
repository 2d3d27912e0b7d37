//! How commands end when they do not end well.
//!
//! A command returns its failure; only `main`, the shell and `weir exec` print it. The exit codes
//! stand in the program's help.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use weir_api::{ClientError, ErrorCode};

/// Nothing better is known.
pub(crate) const FAILED: u8 = 1;
/// The command line was not understood.
pub(crate) const USAGE: u8 = 2;
/// No router answers.
pub(crate) const NO_ROUTER: u8 = 3;
/// A configuration is refused.
pub(crate) const REFUSED: u8 = 4;
/// Somebody else is changing the configuration, or the router's state forbids it now.
pub(crate) const CONFLICT: u8 = 5;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A sentence for the person at the terminal; exit code 1.
    Said(String),
    /// A sentence, and another exit code.
    Coded(u8, String),
    /// Everything was reported already; only the exit code is left.
    Reported(u8),
    /// Whoever read our output went away: nobody is left to tell. Exit code 0.
    NobodyReads,
}

impl Failure {
    /// A failure with its sentence.
    pub(crate) fn said(sentence: impl fmt::Display) -> Self {
        Self::Said(sentence.to_string())
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Said(_) => FAILED,
            Self::Coded(code, _) | Self::Reported(code) => *code,
            Self::NobodyReads => 0,
        }
    }

    /// The sentence that is still to be said.
    pub(crate) fn sentence(&self) -> Option<&str> {
        match self {
            Self::Said(sentence) | Self::Coded(_, sentence) => Some(sentence),
            Self::Reported(_) | Self::NobodyReads => None,
        }
    }

    /// Says the sentence on standard error, after `before`.
    pub(crate) fn tell(&self, before: &str) {
        if let Some(sentence) = self.sentence() {
            // Without standard error the exit code still tells.
            let _ = writeln!(io::stderr(), "{before}: {sentence}");
        }
    }
}

/// Failures of writing to standard output; other files' errors want a sentence with their name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            Self::NobodyReads
        } else {
            Self::Said(format!("cannot write the output: {error}"))
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::NotRunning(_)
            | ClientError::NotAllowed(_)
            | ClientError::Late { .. }
            | ClientError::Broken { .. } => NO_ROUTER,
            ClientError::Refused(refusal) if refusal.code == ErrorCode::Conflict => CONFLICT,
            ClientError::Refused(refusal) if refusal.code == ErrorCode::Invalid => REFUSED,
            _ => FAILED,
        };
        Self::Coded(code, error.to_string())
    }
}
