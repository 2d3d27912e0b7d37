//! The demo: a router between hosts, on this machine, in a few seconds.
//!
//! ```text
//! host-a ──veth── xe0 ┌────────┐ xe1 ──veth── host-b     IPv4
//!                     │ router │
//! host-c ──veth── xe2 └────────┘ xe3 ──veth── host-d     cross connect
//! ```
//!
//! Everything lives in anonymous network namespaces that only descriptors of this process hold: when
//! it ends, however it ends, namespaces, devices and programs in them are gone.

pub(crate) mod bgp;
pub(crate) mod collector;
pub(crate) mod stage;
pub(crate) mod summary;
pub(crate) mod traffic;
pub(crate) mod view;
