//! ACLs: compiled into words for the programs, and the regions of `acl_words` that they occupy.

mod compile;
mod regions;
mod written;

pub use compile::{Compiled, compile};
pub use regions::{Regions, Space};
pub(crate) use written::Acls;
pub use written::digest;
