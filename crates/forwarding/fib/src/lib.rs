//! Forwarding tables: from a destination address to the neighbour that gets the packet.
//!
//! ```text
//! address ──Fib4──► group ──Nexthops::choose(hash)──► adjacency ──► MAC, interface, MTU
//! ```
//!
//! * [`Fib4`] maps addresses to group numbers. Routes change in place while workers look up; nobody
//!   waits. [`Fib4Writer`] is the one hand that changes it, with the exact routes beside.
//! * [`Lfib`] does the same for the label of an MPLS packet; its groups are the same ones.
//! * [`Nexthops`] is a snapshot of groups and adjacencies. [`NexthopTable`] is the cold side that
//!   makes snapshots: it keeps equal groups once, counts who uses them, and spreads weights over
//!   buckets. A path that goes down changes the groups that hold it, never the routes.
//! * [`MacTable`] is the other kind of table: which stations of a bridge domain are behind which of its
//!   members, learned by the workers themselves.
//! * [`Adjacency`] is the end of a path. The MAC address and state of a neighbour are one atomic
//!   word, so that completing or moving a neighbour is one store.
//!
//! # The order of changes
//!
//! A worker holds one snapshot for a whole turn but sees routes change at once. So whoever changes
//! both keeps to this order, and then no packet is sent by a group that its route did not mean:
//!
//! 1. take groups from [`NexthopTable::acquire`] and publish the snapshot;
//! 2. wait until every reader has passed (`Domain::ticket`, `Domain::passed`);
//! 3. insert, replace and remove routes;
//! 4. only then [`NexthopTable::release`] the groups that no route uses any more.

#![forbid(unsafe_code)]

mod adjacency;
mod arena;
mod dense;
mod entry;
mod fib4;
mod fib6;
mod fork;
mod group;
mod grow;
mod lfib;
mod line;
mod mac;
mod nexthops;
mod range;
mod rib;
pub mod synthetic;
mod trie;
mod writer;

pub use adjacency::{Adjacency, AdjacencyKind, NeighborState};
pub use entry::MAX_GROUP;
pub use fib4::{Fib4, FullFib4, LargeFib4, SmallFib4};
pub use fib6::{Fib6, LargeFib6, SmallFib6, Way6};
pub use group::{Group, GroupError, LabelStack, Layer, MAX_BUCKETS, Path, TtlMode};
pub use lfib::{LabelEntry, Labelled, Lfib, MAX_ENTRIES, MAX_LABELS, Manner, Payload};
pub use mac::{Heard, Key, MAX_MEMBERS, MacEntry, MacTable, Station};
pub use nexthops::{DROP, NexthopTable, NexthopView, Nexthops};
pub use writer::{Fib4Writer, Fib6Writer, FibError, Memory};
