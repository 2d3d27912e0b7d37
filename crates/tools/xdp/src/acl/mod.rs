//! ACLs: compiled into words for the programs, and the regions of `acl_words` that they occupy.

mod compile;
mod regions;

pub use compile::{Compiled, compile};
pub use regions::{Regions, Space};
