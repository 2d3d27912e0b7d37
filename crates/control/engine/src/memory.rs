//! Packet memory: one pool for each NUMA node that has workers.
//!
//! A worker allocates from the pool of its core's node, and a port's queues lend from the pool of the
//! node that the device hangs on (the first worker's for devices without one), so that a packet is
//! where it is touched first. A packet of another node's pool goes through all nodes like any other:
//! it knows its own way home, and only a driver that lends memory to a kernel has to copy it.
//!
//! Workers that are not pinned count as of the first node.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use weir_buf::{Hugepages, Pool, PoolConfig, PoolError};
use weir_config::{Config, Device};
use weir_cpu::numa;

/// The pools of a router; a clone is a handle to the same.
#[derive(Clone)]
pub(crate) struct Memory {
    /// By node; never empty.
    pools: BTreeMap<u32, Pool>,
    first: Pool,
}

impl Memory {
    /// A pool for each node that a worker runs on.
    pub(crate) fn new(config: &Config) -> Result<Memory, PoolError> {
        let hugepages = if config.buffers.hugepages == weir_config::Hugepages::Off {
            Hugepages::Off
        } else {
            Hugepages::Auto
        };
        let wanted = PoolConfig {
            chunks: config.buffers.per_numa as usize,
            hugepages,
        };
        Memory::on_nodes(Memory::nodes(config).into_iter(), wanted)
    }

    /// The nodes that pinned workers run on.
    pub(crate) fn nodes(config: &Config) -> BTreeSet<u32> {
        config
            .workers
            .cores
            .iter()
            .map(|&core| numa::node_of_core(usize::from(core)))
            .collect()
    }

    fn on_nodes(nodes: impl Iterator<Item = u32>, wanted: PoolConfig) -> Result<Memory, PoolError> {
        let mut pools = BTreeMap::new();
        for node in nodes {
            if let Entry::Vacant(place) = pools.entry(node) {
                place.insert(numa::prefer_node(node, || Pool::new(wanted))?);
            }
        }
        let first = match pools.first_key_value() {
            Some((_, pool)) => pool.clone(),
            None => Pool::new(wanted)?,
        };
        if pools.is_empty() {
            pools.insert(
                numa::online_nodes().first().copied().unwrap_or(0),
                first.clone(),
            );
        }
        Ok(Memory { pools, first })
    }

    /// The pool of a worker on `core`.
    pub(crate) fn of_core(&self, core: Option<u16>) -> &Pool {
        core.and_then(|core| self.pools.get(&numa::node_of_core(usize::from(core))))
            .unwrap_or(&self.first)
    }

    /// The pool that a device's queues lend from.
    pub(crate) fn of_device(&self, device: Option<&Device>) -> &Pool {
        let node = device
            .and_then(Device::linux_name)
            .and_then(numa::node_of_device);
        node.and_then(|node| self.pools.get(&node))
            .unwrap_or(&self.first)
    }

    /// For packets that the control side originates.
    pub(crate) fn any(&self) -> &Pool {
        &self.first
    }

    /// All pools with their nodes.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (u32, &Pool)> {
        self.pools.iter().map(|(node, pool)| (*node, pool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: PoolConfig = PoolConfig {
        chunks: 64,
        hugepages: Hugepages::Off,
    };

    #[test]
    fn one_pool_a_node_and_each_once() {
        let memory = Memory::on_nodes([0, 1, 0, 1].into_iter(), SMALL).unwrap();
        assert_eq!(
            memory.pools().map(|(node, _)| node).collect::<Vec<_>>(),
            [0, 1]
        );
        let mine = memory.any().alloc().unwrap();
        let others = memory.pools().nth(1).unwrap().1;
        assert!(memory.any().holds(&mine) && !others.holds(&mine));
    }

    #[test]
    fn unpinned_workers_share_one() {
        let memory = Memory::on_nodes(std::iter::empty(), SMALL).unwrap();
        assert_eq!(memory.pools().count(), 1);
        let packet = memory.of_core(None).alloc().unwrap();
        assert!(memory.of_device(Some(&Device::Null)).holds(&packet));
    }
}
