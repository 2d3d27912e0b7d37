//! How Weir speaks with the Linux kernel about interfaces, addresses and namespaces.
//!
//! - [`route`]: a blocking rtnetlink client: links, veth pairs, bridges, addresses, routes, neighbours.
//! - [`watch`]: a stream of link events (added, changed, removed) with a descriptor to poll.
//! - [`listen`]: groups of rtnetlink as datagrams, with a large buffer and a mark where some were lost.
//! - [`ethtool`]: driver name, speed, offloads, queue counts, driver statistics.
//! - [`xdp`]: what a driver can do with XDP and AF_XDP.
//! - [`netns`]: network namespaces held by descriptor, so that they vanish with their last holder.
//! - [`socket`]: what sockets can do that std has no call for.
//! - [`sampling`]: samples, drop alerts and counters for a daemon that listens to the kernel.
//! - [`lab`]: hosts, routers and cables made of namespaces and veth pairs, for tests, demos and benches.
//!
//! Everything here runs on the cold side: calls block (with a time limit), allocate and may fail.
//! Nothing here is for the packet path. Types of `netlink-packet-route` do not appear in any
//! signature, because that crate changes its types every few months: messages are written with it,
//! and read with the bounded attribute reader in `message`, which takes only what it knows and
//! cannot be upset by an attribute of a newer kernel.
//!
//! A netlink or ioctl socket belongs for ever to the namespace of the thread which opened it.
//! So `namespace.run(Route::open)` gives a client which serves that namespace from any thread.
#![deny(unsafe_code)]

mod conversation;
mod error;
pub mod ethtool;
pub mod lab;
pub mod listen;
mod message;
pub mod netns;
pub mod route;
pub mod sampling;
pub mod socket;
#[expect(
    unsafe_code,
    reason = "the few kernel calls for which no safe wrapper exists"
)]
mod sys;
pub mod watch;
pub mod xdp;

pub use error::{Error, Result};
pub use message::{Attributes, Frame, Frames};

/// The six bytes of an Ethernet address, in the order in which they are sent.
pub type MacAddress = [u8; 6];
