//! What the packet path costs, measured in the process itself.
//!
//! One worker's graph is run by hand on vectors of 256 frames of 64 bytes. At least 16,384 buffers
//! circulate in shuffled order: what is freed goes to the end of a queue, so that no buffer comes back
//! while it is hot. Making the frames is not measured; everything after it is: receipt, all nodes,
//! all checks and counters, transmission and freeing.
//!
//! Clocks are those of the time stamp counter. What sFlow adds is found in short slices with and without the tap that
//! take turns, so that a slow moment hits both; its error is reported beside it. `null` is the control, off beside off in the
//! same slices. See `paired.rs`.
//!
//! Each case is also run untimed, and the frames and counters that come out are checked.
//!
//! `case.rs` says how to add one.

#![forbid(unsafe_code)]

mod case;
mod cases;
mod failover;
mod generated;
mod load;
mod measure;
mod metered;
mod paired;
mod report;
mod rig;
mod scene;
mod sflow_export;

pub use case::Case;
pub use failover::Failover;
pub use generated::Generated;
pub use load::FibLoad;
pub use measure::{BenchError, Effort, run_case, run_untimed};
pub use metered::{Exported, Metered};
pub use report::{CaseResult, Found, Machine, Report};
pub use rig::CheckError;
pub use sflow_export::{Overload, SflowExport, Step, sflow_export};
