//! Headers as they are on the wire.
//!
//! A header is a reference into the packet, made by one length check: `X::read` gives the header and
//! what follows it, and from there on every field is one load. Nothing is copied, nothing can panic,
//! and numbers that this crate has never heard of survive in open newtypes.
//!
//! * [`EthernetHeader`], [`VlanTag`], [`ArpPacket`], [`Ipv4Header`], [`Ipv6Header`], [`IcmpHeader`],
//!   [`UdpHeader`], [`TcpHeader`], [`VxlanHeader`]: fixed parts only; options are the bytes behind them.
//! * [`vlan`]: the tags of a frame; [`mpls`]: label stacks and what lies under them.
//! * [`ipv6`]: extension headers, kinds of addresses, what identifies a flow; [`icmp6`] and [`nd`]:
//!   errors, echoes, neighbours, routers; [`extension`]: what ICMP errors carry behind their quote.
//! * [`lacp`]: how two ends of a bond agree.
//! * [`checksum`]: the Internet checksum, whole and incremental.
//! * [`build`]: whole frames, for tests, for ARP and ICMP, for the packet generator.
//!
//! Reading a header says that the bytes are there, not that they are sensible: nodes validate.

#![forbid(unsafe_code)]

pub mod build;
pub mod checksum;
pub mod extension;
pub mod icmp6;
pub mod ipv6;
pub mod lacp;
pub mod mpls;
pub mod nd;
pub mod vlan;

mod arp;
mod ethernet;
mod icmp;
mod ipv4;
mod mac;
mod transport;
mod vxlan;

pub use arp::ArpPacket;
pub use ethernet::{EtherType, EthernetHeader, VlanTag};
pub use icmp::IcmpHeader;
pub use ipv4::{IpProtocol, Ipv4Header};
pub use ipv6::Ipv6Header;
pub use mac::{MacAddr, MacParseError};
pub use transport::{TcpHeader, UdpHeader};
pub use vxlan::VxlanHeader;

/// Gives a header type its length and the two ways to find it at the start of some bytes.
macro_rules! header {
    ($header:ty, $length:literal) => {
        impl $header {
            /// Bytes of the fixed part.
            pub const LEN: usize = $length;

            /// The header at the start of `bytes`, and what follows; `None` when there are too few.
            #[inline(always)]
            #[must_use]
            pub fn read(bytes: &[u8]) -> Option<(&Self, &[u8])> {
                zerocopy::FromBytes::ref_from_prefix(bytes).ok()
            }

            /// As `read`, to be changed in place.
            #[inline(always)]
            #[must_use]
            pub fn read_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
                zerocopy::FromBytes::mut_from_prefix(bytes).ok()
            }
        }

        const _: () = assert!(size_of::<$header>() == $length);
    };
}
use header;
