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
use weir_config::{BufferPlan, Config, Device};
use weir_cpu::numa;
use weir_port::OpenError;

/// The pools of a router; a clone is a handle to the same.
#[derive(Clone)]
pub(crate) struct Memory {
    /// By node; never empty.
    pools: BTreeMap<u32, Pool>,
    first: Pool,
    plan: BufferPlan,
    /// Buffers that the queues of open ports may lend, by number of the interface.
    promised: BTreeMap<u32, u32>,
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
            chunks: config.buffer_plan().chunks as usize,
            hugepages,
        };
        Memory::on_nodes(
            Memory::nodes(config).into_iter(),
            wanted,
            config.buffer_plan(),
        )
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

    fn on_nodes(
        nodes: impl Iterator<Item = u32>,
        wanted: PoolConfig,
        plan: BufferPlan,
    ) -> Result<Memory, PoolError> {
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
        Ok(Memory {
            pools,
            first,
            plan,
            promised: BTreeMap::new(),
        })
    }

    /// Buffers that each of an interface's `queues` may lend to the kernel or a peer. Ports of the first configuration
    /// get what was planned; one that is added later a quarter of what is left, if that is less.
    pub(crate) fn promise(&mut self, interface: u32, queues: u16) -> Result<usize, OpenError> {
        let queues = u32::from(queues.max(1));
        self.withdraw(interface);
        let promised: u32 = self.promised.values().sum();
        let left = self.plan.budget().saturating_sub(promised);
        let least = BufferPlan::least_share();
        let share = if promised + queues * self.plan.share <= self.plan.budget() / 4 * 3 {
            self.plan.share
        } else {
            (left / 4 / queues).clamp(least, self.plan.share.max(least))
        };
        if queues * share > left {
            return Err(OpenError(format!(
                "{left} packet buffers are left, {queues} queues need {}: restart the router, which sizes the pool anew, or raise buffers.per-numa",
                queues * least
            )));
        }
        self.promised.insert(interface, queues * share);
        Ok(share as usize)
    }

    /// Takes an interface's promise back; its port is closed.
    pub(crate) fn withdraw(&mut self, interface: u32) {
        self.promised.remove(&interface);
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
        let memory = Memory::on_nodes([0, 1, 0, 1].into_iter(), SMALL, plan()).unwrap();
        assert_eq!(
            memory.pools().map(|(node, _)| node).collect::<Vec<_>>(),
            [0, 1]
        );
        let mine = memory.any().alloc().unwrap();
        let others = memory.pools().nth(1).unwrap().1;
        assert!(memory.any().holds(&mine) && !others.holds(&mine));
    }

    fn plan() -> BufferPlan {
        BufferPlan {
            chunks: 16_384,
            queues: 2,
            reserve: 4096,
            share: 4608,
        }
    }

    #[test]
    fn promises_leave_the_reserve_alone() {
        let mut memory = Memory::on_nodes(std::iter::empty(), SMALL, plan()).unwrap();
        assert_eq!(memory.promise(1, 1).unwrap(), 4608);
        assert_eq!(memory.promise(2, 1).unwrap(), 4608);
        // Later ports: a quarter of the 3,072 that are left, then of 2,304, …
        assert_eq!(memory.promise(3, 1).unwrap(), 768);
        assert_eq!(memory.promise(4, 1).unwrap(), 576);
        assert_eq!(memory.promise(4, 1).unwrap(), 576, "once an interface");
        let more = (5..100)
            .take_while(|&n| memory.promise(n, 1).is_ok())
            .count();
        assert_eq!(more, 6);
        assert!(memory.promised.values().sum::<u32>() <= 16_384 - 4096);
        let refused = memory.promise(100, 1).unwrap_err().to_string();
        assert!(refused.contains("buffers.per-numa"), "{refused}");
        memory.withdraw(2);
        assert!(memory.promise(100, 1).is_ok());
    }

    #[test]
    fn unpinned_workers_share_one() {
        let memory = Memory::on_nodes(std::iter::empty(), SMALL, plan()).unwrap();
        assert_eq!(memory.pools().count(), 1);
        let packet = memory.of_core(None).alloc().unwrap();
        assert!(memory.of_device(Some(&Device::Null)).holds(&packet));
    }
}
