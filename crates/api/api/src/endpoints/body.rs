//! Bodies of requests: read as JSON, and kept within what logs, history and terminals can bear.

use serde::de::DeserializeOwned;

use crate::endpoints::Request;
use crate::{ApiError, ErrorCode};

/// Seconds in a day: nobody waits longer for a confirmation.
const LONGEST_WAIT: u32 = 86_400;

/// The body as a value; `example` is reported when it is none.
pub(super) fn read<T: DeserializeOwned>(
    request: &Request,
    what: &str,
    example: &str,
) -> Result<T, ApiError> {
    let refused = |reason: &dyn std::fmt::Display| {
        bad(
            format!("the body is not {what}: {reason}"),
            format!("{what} looks like {example}"),
        )
    };
    // serde would take a list of a struct's values, too.
    if request.body.trim_ascii_start().first() == Some(&b'[') {
        return Err(refused(&"it is a list"));
    }
    serde_json::from_slice(&request.body).map_err(|error| refused(&error))
}

pub(super) fn bad(message: impl Into<String>, help: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message, help)
}

/// Text that ends up in the log, in the history and on terminals.
pub(super) fn one_line(name: &str, text: Option<&str>, most: usize) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    if text.chars().any(char::is_control) {
        return Err(bad(
            format!("`{name}` has control characters"),
            "one line of text",
        ));
    }
    if text.chars().count() > most {
        return Err(bad(
            format!("`{name}` is longer than {most} characters"),
            "say it shorter",
        ));
    }
    Ok(())
}

pub(super) fn wait(seconds: Option<u32>) -> Result<(), ApiError> {
    match seconds {
        Some(seconds) if seconds == 0 || seconds > LONGEST_WAIT => Err(bad(
            format!("a change cannot wait {seconds} s to be confirmed"),
            format!("confirm_seconds may be 1 to {LONGEST_WAIT}"),
        )),
        _ => Ok(()),
    }
}
