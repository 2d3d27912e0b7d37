//! The one error type of this crate: what was asked, and what came instead.
//!
//! Every variant carries `asked`, a phrase such as `create veth pair a0 / b0`, because "Operation
//! not permitted" alone helps nobody. Callers branch on [`Error::errno`] and the `is_*` questions.

use std::io;
use std::time::Duration;

/// What calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request to the kernel did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel answered the netlink request with an error number.
    #[error("{asked}: {}{}", io::Error::from_raw_os_error(*errno), explanation(.detail))]
    Refused {
        /// What was asked for.
        asked: String,
        /// The positive error number (`libc::ENODEV`, ...).
        errno: i32,
        /// The kernel's own sentence (extended acknowledgement), when it sent one.
        detail: Option<String>,
    },
    /// A system call failed.
    #[error("{asked}: {source}")]
    System {
        /// What was asked for.
        asked: String,
        /// The failure of the system call.
        source: io::Error,
    },
    /// No answer came in time.
    #[error("{asked}: no answer within {after:?}")]
    TimedOut {
        /// What was asked for.
        asked: String,
        /// The time limit that passed.
        after: Duration,
    },
    /// The answer does not follow the protocol.
    #[error("{asked}: the answer cannot be read: {what}")]
    Malformed {
        /// What was asked for.
        asked: String,
        /// Which rule the answer breaks.
        what: String,
    },
    /// The request makes no sense and was not sent.
    #[error("{asked}: {why}")]
    Invalid {
        /// What was asked for.
        asked: String,
        /// What would be right.
        why: String,
    },
}

fn explanation(detail: &Option<String>) -> String {
    detail
        .as_ref()
        .map(|text| format!(" ({text})"))
        .unwrap_or_default()
}

impl Error {
    /// The error number of the kernel, when the failure has one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Refused { errno, .. } => Some(*errno),
            Error::System { source, .. } => source.raw_os_error(),
            Error::TimedOut { .. } | Error::Malformed { .. } | Error::Invalid { .. } => None,
        }
    }

    /// What was asked for when the error came.
    pub fn asked(&self) -> &str {
        match self {
            Error::Refused { asked, .. }
            | Error::System { asked, .. }
            | Error::TimedOut { asked, .. }
            | Error::Malformed { asked, .. }
            | Error::Invalid { asked, .. } => asked,
        }
    }

    /// True when the interface, address or file asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.errno(),
            Some(libc::ENODEV | libc::ENOENT | libc::ENXIO | libc::ESRCH)
        )
    }

    /// True when the caller lacks a right (root, CAP_NET_ADMIN, CAP_SYS_ADMIN).
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// True when the thing to be made is there already.
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }

    /// True when the kernel or the driver does not offer what was asked for.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.errno(),
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EAFNOSUPPORT)
        )
    }

    /// A call of the kernel that failed, with what it was for.
    #[must_use]
    pub fn system(asked: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Error::System {
            asked: asked.into(),
            source: source.into(),
        }
    }

    pub(crate) fn malformed(asked: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Malformed {
            asked: asked.into(),
            what: what.into(),
        }
    }

    pub(crate) fn invalid(asked: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Invalid {
            asked: asked.into(),
            why: why.into(),
        }
    }
}
