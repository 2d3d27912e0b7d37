//! The routing information base: routes of several sources, and the best of each prefix in the FIB.
//!
//! A source (the configuration file, an interface's address, the Linux kernel, an FPM session) adds
//! and removes its own routes only. Of all routes of a prefix the one with the lowest administrative
//! distance, then the lowest metric, is the best; only that one is in the forwarding table. The others are
//! kept and take its place when it goes.
//!
//! * [`RouteUpdate`] is what a source sends, in batches; [`LabelUpdate`] is the same for incoming labels.
//! * [`Table`] is one routing table (VRF) with its forwarding tables for IPv4 and IPv6.
//! * [`RouteSource`] has the distances.
//!
//! Belongs to the control side and runs on its threads, under its lock. It does no input or output and knows
//! no clock: the time is an argument. Next-hop groups are numbers here; `weir-engine` counts their users.

#![forbid(unsafe_code)]

mod lengths;
mod rib;
mod source;
mod table;
mod update;

pub use lengths::Lengths;
pub use rib::Candidate;
pub use source::{RouteId, RouteSource};
pub use table::{Found, Replaced, Table};
pub use update::{LabelRoute, LabelUpdate, NextHop, Route, RouteUpdate, Target, UpdateError};
