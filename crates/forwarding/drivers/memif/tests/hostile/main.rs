//! Peers that lie: one lie at a time, and what must come of it.

#[path = "../common/mod.rs"]
mod common;
mod master;
mod raw;
mod slave;
