//! `fib-load`: loading, memory and changes of a full table; see `load.rs`.

use crate::case::{Case, Kind};
use crate::load;

pub(super) const CASE: Case = Case {
    name: "fib-load",
    about: "a full table: loading, memory, changes while forwarding",
    kind: Kind::Load { run: load::run },
};
