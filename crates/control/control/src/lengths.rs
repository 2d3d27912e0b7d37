//! The prefix length of an address's route, for reports about packets.
//!
//! A forwarding table returns the group of an address, not the prefix that matched. The extended router record of
//! sFlow and IPFIX contain the prefix length. So, while an interface is sampled or metered, each table has a second one
//! whose values are lengths. The agent reads it, outside the packet path. It needs as much memory as the forwarding
//! table, and is removed when no interface is sampled any more.

#[cfg(test)]
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use weir_fib::{Fib4, Fib4Writer, Fib6, Fib6Writer, FibError};
use weir_ring::qsbr::Domain;

/// Lengths of one table's prefixes.
#[derive(Debug)]
pub struct Lengths {
    four: Fib4Writer,
    six: Fib6Writer,
}

impl Lengths {
    /// Of these prefixes.
    pub(crate) fn of(
        domain: &Domain,
        prefixes: impl Iterator<Item = IpNet>,
    ) -> Result<Lengths, FibError> {
        let mut lengths = Lengths {
            four: Fib4Writer::new(domain)?,
            six: Fib6Writer::new(domain)?,
        };
        for prefix in prefixes {
            lengths.add(prefix)?;
        }
        Ok(lengths)
    }

    /// A prefix has a route now.
    pub(crate) fn add(&mut self, prefix: IpNet) -> Result<(), FibError> {
        let length = u32::from(prefix.prefix_len());
        match prefix {
            IpNet::V4(net) => self.four.insert(net, length).map(drop),
            IpNet::V6(net) => self.six.insert(net, length).map(drop),
        }
    }

    /// A prefix has no route any more.
    pub(crate) fn remove(&mut self, prefix: IpNet) {
        match prefix {
            IpNet::V4(net) => drop(self.four.remove(net)),
            IpNet::V6(net) => drop(self.six.remove(net)),
        }
    }

    /// The tables that readers use.
    pub fn tables(&self) -> (Arc<Fib4>, Arc<Fib6>) {
        (self.four.fib().clone(), self.six.fib().clone())
    }

    /// How many prefixes it knows.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }

    /// The length of the prefix of an address; 0 without a route.
    #[cfg(test)]
    pub(crate) fn length(&self, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(address) => self.four.fib().lookup(u32::from(address)),
            IpAddr::V6(address) => self.six.fib().lookup(u128::from(address)),
        }
    }
}
