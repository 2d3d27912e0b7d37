//! Packet memory: the pool, the owning handle [`Pkt`], its metadata, and vectors of handles.
//!
//! One [`Pool`] is one sealed memory file of equal chunks. It is owned here, above the drivers, and
//! *lent* to them: AF_XDP takes the file as UMEM, a memif peer could map it, DPDK could pin it. A
//! chunk holds [`HEADROOM`] bytes for pushed headers and then the frame.
//!
//! Three decisions make it fast:
//!
//! * **The stride is an odd multiple of 64 bytes** ([`STRIDE`]). At a power of two all headers would
//!   share one cache set, which costs several times the whole rest of the work.
//! * **What every node needs lies in the handle** (address, length, flags, interface, one word for
//!   the next node): 32 bytes, passed along in sequence, so that moving a packet touches no random
//!   line. The rest lies in [`Meta`], in an array of its own, out of reach of any peer that maps
//!   the chunks.
//! * **Workers allocate from a [`PktCache`] of their own**; only its refill and overflow touch the
//!   shared free list, which is lock-free.
//!
//! Ownership is exact. A chunk is free, owned by one `Pkt` (not `Clone`), part of another packet's
//! chain, or lent to a driver. Dropping a `Pkt` anywhere returns it, so nothing can leak; a pool
//! that is dropped while packets still live leaves its memory mapped rather than dangling.

#![deny(unsafe_code)]

mod cache;
mod meta;
mod pkt;
mod pool;
mod region;
pub mod sort;
mod tally;
mod vector;

pub use cache::PktCache;
pub use meta::{Flags, Meta};
pub use pkt::{Pkt, Segments};
pub use pool::{Pool, PoolConfig, PoolError, PoolUse, Slot};
pub use region::Hugepages;
pub use tally::Tally;
pub use vector::Vector;

/// Bytes from one chunk to the next: 39 cache lines, odd on purpose.
pub const STRIDE: usize = 39 * 64;

/// Bytes in front of a received frame, for headers pushed later. It is also what AF_XDP leaves free.
pub const HEADROOM: usize = 256;

/// Bytes of frame that one chunk takes behind the usual headroom.
pub const DATA_ROOM: usize = STRIDE - HEADROOM;

/// The most packets that a node is handed at once.
pub const VECTOR: usize = 256;

#[cfg(test)]
mod tests;
