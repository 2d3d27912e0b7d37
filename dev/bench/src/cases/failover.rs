//! `failover`: what a link that goes down costs; see `failover.rs` above.

use crate::case::{Case, Kind};
use crate::failover;

pub(super) const CASE: Case = Case {
    name: "failover",
    about: "a million prefixes over two next hops, one of whose links goes down",
    kind: Kind::Load { run: failover::run },
};
