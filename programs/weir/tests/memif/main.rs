//! Shared-memory ports of whole routers: with another Weir, with DPDK's testpmd, with peers that die and
//! with peers that lie.
//!
//! What needs only Weir needs no root. What needs testpmd (Debian's package dpdk-dev), or a lab of
//! network namespaces, says so in one line where it cannot run.

mod hostile;
#[path = "../../../../crates/forwarding/drivers/memif/tests/hostile/raw.rs"]
#[allow(
    dead_code,
    reason = "written for the driver's own tests, which use all of it"
)]
mod raw;
mod router;
mod testpmd;
mod two_routers;

/// What the raw peer waits at most.
mod common {
    pub(crate) use crate::router::LONG;
}
