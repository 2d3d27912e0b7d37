//! A filter over the router's own addresses, for the source addresses of received packets.
//!
//! A packet from outside with a source address of this router, or the broadcast address of one of its subnets, is never
//! right (RFC 1812 section 5.3.7 names such addresses martians). The exact answer is in the forwarding table, which would cost every packet a second lookup.
//! The filter answers most packets with one load: "not an own address". For the rest the nodes look up the source.
//!
//! The control side writes the filter in place; workers read it without a lock. A worker may see an address a turn too
//! early or too late. One filter serves all tables (VRFs): the lookup that follows is in the packet's own table.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use crate::interface::Interface;

/// Words of 32 bits: 32,768 bits. With 100 own subnets one foreign source of 160 is looked up for nothing.
const WORDS: usize = 1024;
/// Bits of a hash that choose one of all bits.
const INDEX_BITS: u32 = 15;
/// An odd factor for IPv4, and one for IPv6. Of those that were tried with addresses as networks have them (`10.0.n.1`, `10.n.0.1`,
/// /30 links), these find as few foreign addresses among the own ones as chance would; some find 20 times as many.
const FACTOR4: u32 = 0x9e37_79b1;
const FACTOR: u64 = 0xc4ce_b9fe_1a85_ec53;

/// Which addresses may be the router's own.
#[derive(Debug)]
pub struct OwnAddresses([AtomicU32; WORDS]);

/// Without any address.
static NONE: LazyLock<Arc<OwnAddresses>> = LazyLock::new(|| Arc::new(OwnAddresses::new()));

impl Default for OwnAddresses {
    fn default() -> OwnAddresses {
        OwnAddresses::new()
    }
}

impl OwnAddresses {
    /// A filter without any address.
    #[must_use]
    pub const fn new() -> OwnAddresses {
        OwnAddresses([const { AtomicU32::new(0) }; WORDS])
    }

    /// The filter of interfaces that belong to no router yet.
    #[must_use]
    pub fn none() -> Arc<OwnAddresses> {
        Arc::clone(&NONE)
    }

    /// Takes the addresses of these interfaces instead of those it has. Bits of addresses that stay are never cleared.
    pub fn set<'a>(&self, interfaces: impl IntoIterator<Item = &'a Interface>) {
        let mut words = [0; WORDS];
        let mut add = |index: usize| words[index / 32 % WORDS] |= 1 << (index % 32);
        for interface in interfaces {
            for &(address, length) in &*interface.addresses {
                add(index4(address.swap_bytes()));
                if let Some(broadcast) = broadcast(address, length) {
                    add(index4(broadcast.swap_bytes()));
                }
            }
            for &(address, _) in &*interface.addresses6 {
                let [upper, lower] = halves(&address.to_be_bytes());
                add(index6(upper, lower));
            }
        }
        for (word, wanted) in self.0.iter().zip(words) {
            if word.load(Ordering::Relaxed) != wanted {
                word.store(wanted, Ordering::Relaxed);
            }
        }
    }

    /// Whether an IPv4 address may be the router's own; if not, it is not. The octets are read in little-endian order.
    #[inline(always)]
    #[must_use]
    pub fn may_have4(&self, octets: u32) -> bool {
        self.has(index4(octets))
    }

    /// The same for IPv6. Both halves are read in little-endian order.
    #[inline(always)]
    #[must_use]
    pub fn may_have6(&self, upper: u64, lower: u64) -> bool {
        self.has(index6(upper, lower))
    }

    /// The same for the octets as they are in a packet.
    #[inline(always)]
    #[must_use]
    pub fn may_have6_octets(&self, octets: &[u8; 16]) -> bool {
        let [upper, lower] = halves(octets);
        self.may_have6(upper, lower)
    }

    #[inline(always)]
    fn has(&self, index: usize) -> bool {
        let word = self.0[index / 32 % WORDS].load(Ordering::Relaxed);
        word >> (index % 32) & 1 != 0
    }
}

/// The broadcast address of a subnet that has one (RFC 3021: one of two addresses has none).
fn broadcast(address: u32, length: u8) -> Option<u32> {
    (length < 31).then(|| address | u32::MAX >> length)
}

#[inline(always)]
fn index4(octets: u32) -> usize {
    (octets.wrapping_mul(FACTOR4) >> (32 - INDEX_BITS)) as usize
}

/// Halves of neighbouring networks and of usual interface identifiers differ in few bits: both are mixed.
#[inline(always)]
fn index6(upper: u64, lower: u64) -> usize {
    ((upper ^ lower.rotate_left(21)).wrapping_mul(FACTOR) >> (64 - INDEX_BITS)) as usize
}

#[inline(always)]
fn halves(octets: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*octets);
    [whole as u64, (whole >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{InterfaceCounters, Kind};
    use weir_wire::MacAddr;

    fn interface(addresses: &[u32], addresses6: &[u128]) -> Interface {
        let counters = Arc::new(InterfaceCounters::new(1));
        Interface {
            addresses: addresses.iter().map(|&address| (address, 24)).collect(),
            addresses6: addresses6.iter().map(|&address| (address, 64)).collect(),
            ..Interface::at_rest(1, "a".into(), Kind::Port, MacAddr::default(), counters)
        }
    }

    fn may_have(filter: &OwnAddresses, address: u32) -> bool {
        filter.may_have4(address.swap_bytes())
    }

    #[test]
    fn has_every_own_address_and_few_others() {
        let filter = OwnAddresses::new();
        let own: Vec<u32> = (0..100).map(|net| 0x0a00_0001 + (net << 8)).collect();
        let own6: Vec<u128> = (0..100)
            .map(|net| 0x2001_0db8_u128 << 96 | net << 64 | 1)
            .collect();
        filter.set([&interface(&own, &own6)]);
        assert!(may_have(&filter, 0x0a00_07ff));
        assert!(own.iter().all(|&address| may_have(&filter, address)));
        assert!(
            own6.iter()
                .all(|address| filter.may_have6_octets(&address.to_be_bytes()))
        );
        // Hosts of the same networks, 2 to 254: 25,300 addresses, each family. 300 of 32,768 bits are 0.9 %.
        let hosts = || (0..100_u32).flat_map(|net| (2..255).map(move |host| (net, host)));
        let wrong = hosts()
            .filter(|(net, host)| may_have(&filter, 0x0a00_0000 + (net << 8) + host))
            .count();
        assert!(wrong < 500, "{wrong}");
        let address =
            |net: u32, host: u32| 0x2001_0db8_u128 << 96 | u128::from(net) << 64 | u128::from(host);
        let wrong = hosts()
            .filter(|&(net, host)| filter.may_have6_octets(&address(net, host).to_be_bytes()))
            .count();
        assert!(wrong < 500, "{wrong}");
    }

    #[test]
    fn addresses_that_are_gone_are_not_in_it() {
        let filter = OwnAddresses::new();
        filter.set([&interface(&[0x0a00_0001, 0x0a00_0101], &[])]);
        filter.set([&interface(&[0x0a00_0101], &[])]);
        assert!(!may_have(&filter, 0x0a00_0001));
        assert!(may_have(&filter, 0x0a00_0101));
        assert!(!may_have(&OwnAddresses::none(), 0x0a00_0101));
    }
}
