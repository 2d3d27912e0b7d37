//! IPv6: its header, what stands between header and payload, and what addresses say by themselves.

mod address;
mod chain;
mod flow;
mod header;

pub use address::{
    Class, Scope, class, is_forbidden_destination, is_forbidden_source, is_link_local,
    is_multicast, link_local, mapped_ipv4, multicast_mac, scope, solicited_node,
};
pub use chain::{Chain, ChainError, Fault, FragmentHeader, MAX_BYTES, MAX_HEADERS, walk};
pub use flow::Flow;
pub use header::Ipv6Header;

/// An address that is not set.
pub const UNSPECIFIED: [u8; 16] = [0; 16];
/// This machine.
pub const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// All nodes on the link (RFC 4291 section 2.7.1).
pub const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// All routers on the link (RFC 4291 section 2.7.1).
pub const ALL_ROUTERS: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// The smallest MTU that a link with IPv6 may have (RFC 8200 section 5).
pub const MIN_MTU: usize = 1280;
