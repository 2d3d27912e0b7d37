//! Access lists: which rule of a list is the first that a packet matches.

#![forbid(unsafe_code)]

mod acl;
mod cache;
mod family;
mod grow;
mod key;
mod rule;
pub mod synthetic;
mod table;

pub use acl::{Acl, BuildError, Facts, MAX_RULES, NO_RULE, RuleIndex};
pub use cache::{Cache4, Cache6};
pub use key::{Key4, Key6, Upper};
pub use rule::{Action, Addresses, Payload, Rule};
