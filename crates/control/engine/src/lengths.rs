//! How long the prefix of an address is, for those who report packets.
//!
//! The forwarding tables say where an address leads, not by which prefix: that is lost where prefixes are spread
//! over nodes, and what makes lookups fast. sFlow's extended router record and IPFIX want the length, though. So,
//! while somebody samples, each table has a second one beside it whose values are lengths; it is read by
//! the agent, off the packets' way, and costs as much memory again. It goes with the last who samples.

#[cfg(test)]
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use weir_fib::{Fib4, Fib4Writer, Fib6, Fib6Writer, FibError};
use weir_ring::qsbr::Domain;

/// Lengths of one table's prefixes.
#[derive(Debug)]
pub(crate) struct Lengths {
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

    /// What readers look up.
    pub(crate) fn tables(&self) -> (Arc<Fib4>, Arc<Fib6>) {
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
