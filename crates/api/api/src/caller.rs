//! Who asks, and what they may do.
//!
//! The server finds out before a request reaches its endpoint: over the Unix socket from the
//! peer's credentials, over TCP from its token or certificate. Changes record who requested
//! them, for the log and the history.

use std::fmt;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What somebody may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Look at everything, change nothing.
    ReadOnly,
    /// Everything.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadOnly => "read-only",
            Self::Admin => "admin",
        })
    }
}

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What they may do.
    pub role: Role,
    /// Where they come from.
    pub origin: Origin,
}

/// Where somebody comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The router itself: its start, `SIGHUP`.
    Router,
    /// The Unix socket; the kernel vouches for it (`SO_PEERCRED`, unix(7)).
    Unix {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
        /// The process, when the kernel tells.
        pid: Option<u32>,
        /// The user's name, when `/etc/passwd` has it.
        user: Option<String>,
    },
    /// TCP.
    Tcp {
        /// Its address.
        address: SocketAddr,
        /// The name of its token, or of its certificate.
        name: String,
    },
}

impl Caller {
    /// The router itself.
    #[must_use]
    pub const fn router() -> Self {
        Self {
            role: Role::Admin,
            origin: Origin::Router,
        }
    }

    /// The author of a change that names none: the user's name, or its number, or the token's name.
    #[must_use]
    pub fn author(&self) -> String {
        match &self.origin {
            Origin::Router => "weir".to_owned(),
            Origin::Unix {
                user: Some(user), ..
            } => user.clone(),
            Origin::Unix { uid, .. } => format!("uid {uid}"),
            Origin::Tcp { name, .. } => name.clone(),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Router => f.write_str("the router"),
            Origin::Unix {
                uid,
                pid: Some(pid),
                ..
            } => write!(f, "{} (uid {uid}, pid {pid})", self.author()),
            Origin::Unix { uid, .. } => write!(f, "{} (uid {uid})", self.author()),
            Origin::Tcp { address, name } => write!(f, "{name} ({address})"),
        }
    }
}
