//! The frame that packets move in: nodes decide, the graph moves, taps look.
//!
//! A [`Node`] is handed a vector of packets and gives each one [`Verdict`]: on to a named node, out
//! of an interface, dropped for a reason from the one table, held under a key for a bounded time,
//! replicated, or consumed. It may also originate packets. It never owns the packets it looks at,
//! so it can neither lose nor leak one, and needs no unsafe code. The [`Graph`] carries every verdict
//! out and counts it, so that at any moment
//!
//! ```text
//! in + originated + replicated = out + drops + consumed + held
//! ```
//!
//! A [`Tap`] sees `&[Pkt]` at a named point. By type it can neither change, delay nor drop a packet;
//! it may ask for marks. What it costs, it costs per vector.
//!
//! One graph belongs to one worker thread. Counters are written by that worker alone and read by
//! anybody at any time.

#![forbid(unsafe_code)]

mod counters;
mod dispatch;
mod drops;
mod hold;
mod node;
mod tap;
mod trace;
mod verdict;

pub use counters::{DropCounters, DropMap, NodeCounters, Totals, WorkerCounters};
pub use dispatch::{Env, Graph, GraphBuilder, GraphError};
pub use drops::{DropReason, Severity};
pub use hold::{HoldKey, HoldLimits};
pub use node::{Cx, Node, NodeSpec, World};
pub use tap::{Destination, Follower, Gate, Look, Marker, Marks, PacketOutcome, Point, Tap};
pub use trace::{TRACE_BYTES, TraceRequest, TraceStep};
pub use verdict::{Next, Outcome, Verdict, VerdictKind};

#[cfg(test)]
mod tests;
