//! Ports and interfaces: where packets come in and go out.
//!
//! A **port** is a device with queues: an AF_XDP socket set, a TAP, a pair of files, nothing at all
//! ([`null`]), a source of made-up packets ([`generator`]). Drivers implement [`Port`], [`RxQueue`]
//! and [`TxQueue`]; they look at no header.
//!
//! An **interface** ([`interface`]) is what routing speaks of: it has addresses, tables, an MTU and
//! counters. Interfaces form a tree; the one on top of a port is only the simplest kind. A
//! **sub-interface** ([`sub_interface`]) has the share of another one that its tags say, a VXLAN tunnel ([`vxlan`]) what comes
//! inside of packets from another router.

#![forbid(unsafe_code)]

pub mod bond;
pub mod generator;
pub mod host;
pub mod interface;
pub mod null;
pub mod own_addresses;
pub mod pseudowire;
mod queue;
pub mod sub_interface;
pub mod vxlan;

pub use queue::{
    Capabilities, HardwareCounter, LONGEST_FRAME, LinkState, OpenError, Port, QueuePair, RxQueue,
    Source, TxQueue,
};
