//! Errors as the API tells them: a code for programs, a sentence for people, and what to do.
//!
//! Every reply that is not 2xx has this body, also for a path that does not exist, a method that
//! a path does not know and a request that is too large:
//! `{"error": {"code": "not-found", "message": "…", "help": "…"}}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ConfigLock, Finding, FindingSeverity, LockReason};

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error; decides the HTTP status.
    pub code: ErrorCode,
    /// One sentence: what is wrong, with the names of the things it is about.
    pub message: String,
    /// What would be right, or what to do; may be empty.
    pub help: String,
    /// What is wrong with the configuration that was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Who holds the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Box<ConfigLock>>,
}

impl ApiError {
    /// An error of kind `code` with its sentence and its help.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            help: help.into(),
            findings: Vec::new(),
            lock: None,
        }
    }

    /// This router cannot do that.
    #[must_use]
    pub fn not_available(what: &str) -> Self {
        Self::new(
            ErrorCode::NotAvailable,
            format!("{what} is not available in this router"),
            "",
        )
    }

    /// A configuration that has errors.
    #[must_use]
    pub fn invalid(findings: Vec<Finding>) -> Self {
        let errors = findings
            .iter()
            .filter(|finding| finding.severity == FindingSeverity::Error)
            .count();
        let message = if errors == 1 {
            "the configuration has an error".to_owned()
        } else {
            format!("the configuration has {errors} errors")
        };
        Self {
            findings,
            ..Self::new(
                ErrorCode::Invalid,
                message,
                "nothing was changed; correct what the findings say",
            )
        }
    }

    /// Somebody else holds the configuration.
    #[must_use]
    pub fn locked(lock: ConfigLock) -> Self {
        let who = match (lock.pid, &lock.address) {
            (Some(pid), _) => format!("{} (pid {pid})", lock.author),
            (None, Some(address)) => format!("{} ({address})", lock.author),
            (None, None) => lock.author.clone(),
        };
        let (message, help) = match lock.reason {
            LockReason::ApplyRunning => (
                format!("{who} is changing the configuration since {}", lock.since),
                "try again in a moment",
            ),
            LockReason::ConfirmPending => (
                format!("a change by {who} of {} waits to be confirmed", lock.since),
                "confirm it, or roll it back, before another change",
            ),
        };
        Self {
            lock: Some(Box::new(lock)),
            ..Self::new(ErrorCode::Conflict, message, help)
        }
    }

    /// The store of configurations cannot be written; `reason` is what the kernel said.
    #[must_use]
    pub fn no_room(reason: impl std::fmt::Display) -> Self {
        let message = format!("the configuration cannot be saved: {reason}");
        Self::new(
            ErrorCode::NoRoom,
            message,
            "nothing was changed; make room, or make the directory writable",
        )
    }

    /// Something that was asked for by name does not exist; `known` are the names that do.
    #[must_use]
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let help = if known.is_empty() {
            format!("there is no {what} at all")
        } else {
            format!("known: {}", known.join(", "))
        };
        Self::new(ErrorCode::NotFound, format!("no {what} \"{name}\""), help)
    }
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The request cannot be understood, or asks for something impossible.
    BadRequest,
    /// Nobody knows who asks: a token or a certificate is missing, or is unknown.
    Unauthorized,
    /// Whoever asks may not do this.
    Forbidden,
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
    /// The body is of a type that the path does not take.
    UnsupportedMediaType,
    /// The configuration that was sent has errors.
    Invalid,
    /// A fault of the router.
    Internal,
    /// This router cannot do that.
    NotAvailable,
    /// The store of configurations cannot be written.
    NoRoom,
    /// The router has too much to do, or is stopping; try again.
    Unavailable,
}

impl ErrorCode {
    /// All of them, by status.
    pub const ALL: [Self; 14] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Invalid,
        Self::Internal,
        Self::NotAvailable,
        Self::Unavailable,
        Self::NoRoom,
    ];

    /// When it is reported, in one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BadRequest => {
                "The request cannot be understood, or asks for something impossible."
            }
            Self::Unauthorized => "A token or a certificate is missing, or is unknown.",
            Self::Forbidden => "Whoever asks may not do this.",
            Self::NotFound => "The path, or the thing that it names, does not exist.",
            Self::MethodNotAllowed => "The path has no such method.",
            Self::RequestTimeout => "The request did not come in whole in time.",
            Self::Conflict => {
                "The router's state forbids it now; `lock` says who holds the configuration."
            }
            Self::TooLarge => "The request's body is too large.",
            Self::UnsupportedMediaType => "The body is not JSON.",
            Self::Invalid => "The configuration has errors; `findings` says which.",
            Self::Internal => "A fault of the router.",
            Self::NotAvailable => "This router cannot do that.",
            Self::Unavailable => "The router has too much to do, or is stopping; try again.",
            Self::NoRoom => "The store of configurations cannot be written; nothing was changed.",
        }
    }

    /// The HTTP status that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::Internal => 500,
            Self::NotAvailable => 501,
            Self::Unavailable => 503,
            Self::NoRoom => 507,
        }
    }
}

/// The body of a reply that tells an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ApiError,
}
