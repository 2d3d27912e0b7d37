//! Errors as the API tells them: a code for programs, a sentence for people, and what to do.
//!
//! Every reply that is not 2xx has this body, also for a path that does not exist, a method that
//! a path does not know and a request that is too large:
//! `{"error": {"code": "not-found", "message": "…", "help": "…"}}`.

use serde::{Deserialize, Serialize};

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error; decides the HTTP status.
    pub code: ErrorCode,
    /// One sentence: what is wrong, with the names of the things it is about.
    pub message: String,
    /// What would be right, or what to do; may be empty.
    pub help: String,
}

impl ApiError {
    /// An error of kind `code` with its sentence and its help.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }

    /// Something that was asked for by name does not exist; `known` are the names that do.
    #[must_use]
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let help = if known.is_empty() { format!("there is no {what} at all") } else { format!("known: {}", known.join(", ")) };
        Self::new(ErrorCode::NotFound, format!("no {what} \"{name}\""), help)
    }
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The request cannot be understood, or asks for something impossible.
    BadRequest,
    /// The path, or the thing that it names, does not exist.
    NotFound,
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// The request did not come in whole in time.
    RequestTimeout,
    /// The router's state forbids it now.
    Conflict,
    /// The request's body is too large.
    TooLarge,
    /// A fault of the router.
    Internal,
    /// The router has too much to do, or is stopping; try again.
    Unavailable,
}

impl ErrorCode {
    /// The HTTP status that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }
}

/// The body of a reply that tells an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ApiError,
}
