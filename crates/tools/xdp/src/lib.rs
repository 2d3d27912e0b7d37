//! Forwarding to virtual machines and containers in the kernel's XDP hook, as a service.
//!
//! The programs (`bpf/`, C) run in the driver: VLAN and MAC address to port, tags, anti-spoofing, ACLs,
//! policers, counters of every drop. This crate loads them, fills their maps from a configuration file, and
//! follows the links of the machine.
//!
//! * [`config`]: the file. [`state`]: what the maps must hold, as a pure function of file and links.
//! * [`acl`]: rules compiled to bit vectors. [`abi`]: the structures of the maps. [`reason`]: drop reasons.
//! * [`programs`]: loading and attaching. [`maps`]: reading and writing. [`daemon`]: the service.
//! * [`show`]: what commands show. [`trace`]: single packets. [`preflight`]: what the machine can do.
//! * `api`: the daemon behind the router's API server. `changes`: history, confirmation and rollback. [`telemetry`]: samples
//!   and drops for the router's sFlow agent.
//! * [`measure`]: what `weir xdp demo` and `weir bench xdp` measure with.
//!
//! The compiled programs are committed (`bpf/weir.o`), so that building needs no clang; a test compiles the
//! sources again where clang is installed, and compares.

#![forbid(unsafe_code)]

pub mod abi;
pub mod acl;
mod api;
mod changes;
pub mod config;
pub mod daemon;
mod error;
pub mod maps;
pub mod measure;
pub mod preflight;
pub mod programs;
pub mod reason;
pub mod show;
pub mod state;
pub mod telemetry;
pub mod trace;

pub use error::{Error, Result};
