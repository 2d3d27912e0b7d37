//! Access lists: what interfaces are bound to, and what each term met (`GET /v1/acls`).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NotAPlace;

/// Bindings and terms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Acls {
    /// What interfaces are bound to, by interface and direction; in the first page only.
    pub bindings: Vec<AclBinding>,
    /// The terms of all lists, in their order.
    pub terms: Vec<AclTerm>,
}

/// Lists that the packets of an interface pass in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AclBinding {
    /// The interface.
    pub interface: String,
    /// Which packets.
    pub direction: AclDirection,
    /// The lists, one after the other.
    pub acls: Vec<String>,
    /// Packets that a term permitted.
    pub permitted: u64,
    /// Packets that a term denied.
    pub denied: u64,
    /// Packets that no term matched; they are dropped, too.
    pub unmatched: u64,
    /// Rules that the terms stand for, with their prefix lists written out.
    pub rules: u64,
    /// Bytes that the classifier takes; shared by all that are bound to the same.
    pub memory_bytes: u64,
}

/// Which packets of an interface pass a list.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AclDirection {
    /// Those that come in.
    Input,
    /// Those that go out.
    Output,
}

impl fmt::Display for AclDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// One term of a list, and what it met on all interfaces together, or on the one that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AclTerm {
    /// The list.
    pub acl: String,
    /// Its place there, from 0.
    pub term: u32,
    /// What becomes of packets that match.
    pub action: AclAction,
    /// What it asks for, as the file spells it.
    #[serde(rename = "match")]
    pub asks: String,
    /// The file's text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Packets that met it first.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What becomes of packets that match a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AclAction {
    /// They go on.
    Permit,
    /// They are dropped.
    Deny,
}

impl fmt::Display for AclAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
        })
    }
}

/// A term's place in the reply; written as `web,7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AclTermKey {
    /// The list.
    pub acl: String,
    /// The term's place there.
    pub term: u32,
}

impl From<&AclTerm> for AclTermKey {
    fn from(term: &AclTerm) -> Self {
        Self {
            acl: term.acl.clone(),
            term: term.term,
        }
    }
}

impl fmt::Display for AclTermKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.acl, self.term)
    }
}

impl FromStr for AclTermKey {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (acl, term) = text.rsplit_once(',').ok_or(NotAPlace)?;
        Ok(Self {
            acl: acl.to_owned(),
            term: term.parse().map_err(|_| NotAPlace)?,
        })
    }
}

/// Which terms are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AclQuery {
    /// Those of this list.
    pub acl: Option<String>,
    /// Only what this interface is bound to, with what was met there.
    pub interface: Option<String>,
    /// Those behind this one, in the order of lists' names and places.
    pub after: Option<AclTermKey>,
    /// At most so many.
    pub most: usize,
}
