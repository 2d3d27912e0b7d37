//! What an IPv6 address says by itself (RFC 4291), and which ones a router does not forward (RFC 6890).
//!
//! Addresses are plain bytes, as headers have them.

use crate::MacAddr;

/// How far a multicast address reaches (RFC 7346); what has no name here is as good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub u8);

impl Scope {
    /// Never leaves the node.
    pub const INTERFACE: Scope = Scope(1);
    /// Never leaves the link.
    pub const LINK: Scope = Scope(2);
    /// The smallest that is administered.
    pub const ADMIN: Scope = Scope(4);
    /// A site.
    pub const SITE: Scope = Scope(5);
    /// An organisation.
    pub const ORGANIZATION: Scope = Scope(8);
    /// Everywhere.
    pub const GLOBAL: Scope = Scope(14);
}

/// What kind of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not set: `::`.
    Unspecified,
    /// This machine: `::1`.
    Loopback,
    /// An IPv4 address in IPv6's clothes: `::ffff:0:0/96`.
    MappedIpv4,
    /// Of one link: `fe80::/10`.
    LinkLocal,
    /// Private: `fc00::/7` (RFC 4193).
    UniqueLocal,
    /// For examples only: `2001:db8::/32` (RFC 3849) and `3fff::/20` (RFC 9637).
    Documentation,
    /// Thrown away: `100::/64` (RFC 6666).
    DiscardOnly,
    /// A group: `ff00::/8`.
    Multicast(Scope),
    /// All else: global unicast, as far as the address tells.
    Global,
}

/// The kind of an address.
#[must_use]
pub fn class(address: &[u8; 16]) -> Class {
    let number = u128::from_be_bytes(*address);
    let within = |prefix: u128, length: u32| number >> (128 - length) == prefix >> (128 - length);
    match number {
        0 => Class::Unspecified,
        1 => Class::Loopback,
        _ if within(0xff << 120, 8) => Class::Multicast(Scope(address[1] & 15)),
        _ if within(0xfe80 << 112, 10) => Class::LinkLocal,
        _ if within(0xfc << 120, 7) => Class::UniqueLocal,
        _ if within(0xffff << 32, 96) => Class::MappedIpv4,
        _ if within(0x2001_0db8 << 96, 32) || within(0x3fff << 112, 20) => Class::Documentation,
        _ if within(0x0100 << 112, 64) => Class::DiscardOnly,
        _ => Class::Global,
    }
}

/// Whether it is a group's.
#[inline(always)]
#[must_use]
pub const fn is_multicast(address: &[u8; 16]) -> bool {
    address[0] == 0xff
}

/// How far a group reaches; `None` of other addresses.
#[inline]
#[must_use]
pub const fn scope(address: &[u8; 16]) -> Option<Scope> {
    if is_multicast(address) {
        Some(Scope(address[1] & 15))
    } else {
        None
    }
}

/// Whether it is of one link only: `fe80::/10`.
#[inline(always)]
#[must_use]
pub const fn is_link_local(address: &[u8; 16]) -> bool {
    address[0] == 0xfe && address[1] & 0xc0 == 0x80
}

/// The group in which whoever has this address listens (RFC 4291 section 2.7.1).
#[must_use]
pub const fn solicited_node(address: &[u8; 16]) -> [u8; 16] {
    [
        0xff,
        2,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        0xff,
        address[13],
        address[14],
        address[15],
    ]
}

/// The MAC address of a group (RFC 2464 section 7).
#[must_use]
pub const fn multicast_mac(group: &[u8; 16]) -> MacAddr {
    MacAddr([0x33, 0x33, group[12], group[13], group[14], group[15]])
}

/// The link-local address that a MAC address makes (RFC 4291 appendix A, RFC 2464 section 5).
#[must_use]
pub const fn link_local(mac: MacAddr) -> [u8; 16] {
    let MacAddr([a, b, c, d, e, f]) = mac;
    [
        0xfe,
        0x80,
        0,
        0,
        0,
        0,
        0,
        0,
        a ^ 2,
        b,
        c,
        0xff,
        0xfe,
        d,
        e,
        f,
    ]
}

/// The IPv4 address within `::ffff:0:0/96`.
#[must_use]
pub fn mapped_ipv4(address: &[u8; 16]) -> Option<u32> {
    let number = u128::from_be_bytes(*address);
    (number >> 32 == 0xffff).then_some(number as u32)
}

/// Whether no packet on the wire may come from it (RFC 4291 sections 2.5.3, 2.7; RFC 6890 tables 17 to
/// 20): groups, loopback, IPv4-mapped. The unspecified address is left to the caller: neighbour
/// discovery sends from it, and nobody forwards it.
#[inline]
#[must_use]
pub fn is_forbidden_source(address: &[u8; 16]) -> bool {
    is_multicast(address) || is_nowhere(address)
}

/// Whether no packet on the wire may go to it: unspecified, loopback, IPv4-mapped, and groups that
/// never leave a node (RFC 4291 section 2.7: reserved scope 0, and 1).
#[inline]
#[must_use]
pub fn is_forbidden_destination(address: &[u8; 16]) -> bool {
    *address == super::UNSPECIFIED
        || is_nowhere(address)
        || (is_multicast(address) && address[1] & 15 < 2)
}

#[inline]
fn is_nowhere(address: &[u8; 16]) -> bool {
    let number = u128::from_be_bytes(*address);
    number == 1 || number >> 32 == 0xffff
}
