//! memif ports: frames between two programs over memory that both map.
//!
//! VPP, DPDK (`net_memif`) and everything built on libmemif are possible peers: version 2.0 of the
//! protocol, Ethernet mode, both roles. The two ends find each other at a Unix socket (`listen`,
//! `channel`, `message`), the slave hands the master descriptors of its memory and of its rings
//! (`handshake`), and from then on a frame costs no system call. A peer that dies is noticed at once,
//! and the connection comes back when it does (`control`).
//!
//! **Memory.** As slave, the region that is shared *is* the packet pool: frames that a peer sends are
//! written into our chunks, frames that we send are read from them, and nothing is copied here. As
//! master, frames are copied out of and into the slave's regions.
//!
//! **Trust.** A master that we are the slave of can read and change every packet in the pool: be the
//! slave of programs that may see all traffic, and the master of others. What either writes into rings
//! and messages is checked: an index out of range, a place outside of a region, a file that could
//! shrink, a message out of turn ends the connection with a counted reason (`reason`), and neither
//! reads nor writes anything outside the regions.
//!
//! The rooms: `setup` is the configuration, `port` the control thread's side, `rx` and `tx` the
//! workers' sides, `shared` what all of them hold, `sys` the memory shared with the peer, `bell` what
//! wakes sleepers.

#![deny(unsafe_code)]

mod bell;
mod channel;
mod control;
mod handshake;
mod listen;
mod message;
mod port;
mod reason;
mod rx;
mod setup;
mod shared;
mod sys;
mod tx;

pub use port::{MemifPort, MemifStatus, MemifWatch};
pub use reason::Reason;
pub use setup::{LEAST_RING, MOST_QUEUES, MOST_RING, MemifConfig, Role, Socket};

/// What this program is called in HELLO and INIT.
const OWN_NAME: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
