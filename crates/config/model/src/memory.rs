//! How many packet buffers a router needs: from its ports' queues and its workers.
//!
//! Part of the pool is a reserve for what is inside the router: the workers' stocks, vectors, packets that wait for a
//! neighbour, and packets that the router makes itself (ARP, ND, ICMP). The rest is shared by the queues that lend
//! buffers to a kernel or a peer (AF_XDP, memif as slave); each keeps to its share, so that no queue can take the
//! buffers of another one or of the reserve. A quarter stays for ports that are added while the router runs.
//!
//! Pure arithmetic; used by the check of a file and by the engine.

use crate::device::{Device, Memif, MemifRole};
use crate::model::{Config, Interface};

/// Buffers that one queue can make use of: 4,096 to receive and 2,048 to send.
const MOST_SHARE: u32 = 6144;
/// Buffers that a queue has at least where the router sizes the pool.
const USUAL_SHARE: u32 = 512;
/// With fewer, a queue loses packets in each burst.
const LEAST_SHARE: u32 = 192;
/// Above this number of buffers for queues, each gets fewer instead: every AF_XDP socket also costs the kernel some
/// 200 bytes a buffer.
const SHARED_BY_QUEUES: u32 = 32_768;
/// The smallest pool that the router makes by itself.
const LEAST_POOL: u32 = 16_384;

/// The packet memory of one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPlan {
    /// Buffers in the pool.
    pub chunks: u32,
    /// Queues that lend buffers to a kernel or a peer.
    pub queues: u32,
    /// Buffers that are not lent by queues.
    pub reserve: u32,
    /// Buffers of each queue.
    pub share: u32,
}

impl BufferPlan {
    /// Buffers that queues may lend, those of ports that are added later included.
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.chunks.saturating_sub(self.reserve)
    }

    /// The least share with which a queue works.
    #[must_use]
    pub fn least_share() -> u32 {
        LEAST_SHARE
    }

    fn of(chunks: u32, queues: u32, wanted_reserve: u32) -> BufferPlan {
        let reserve = wanted_reserve.min(chunks / 4);
        let for_queues = (chunks - reserve) / 4 * 3;
        BufferPlan {
            chunks,
            queues,
            reserve,
            share: (for_queues / queues.max(1)).min(MOST_SHARE),
        }
    }
}

impl Config {
    /// The pool of each NUMA node: as large as `buffers.per-numa` says, else as ports and workers need.
    #[must_use]
    pub fn buffer_plan(&self) -> BufferPlan {
        let (queues, reserve) = (self.lending_queues(), self.wanted_reserve());
        let share = (SHARED_BY_QUEUES / queues.max(1)).clamp(USUAL_SHARE, MOST_SHARE);
        let needed = reserve + (queues * share).div_ceil(3) * 4 + 4;
        let automatic = needed.max(LEAST_POOL).next_multiple_of(1024);
        BufferPlan::of(self.buffers.per_numa.unwrap_or(automatic), queues, reserve)
    }

    /// The smallest `buffers.per-numa` with which all queues work.
    #[must_use]
    pub fn least_buffers(&self) -> u32 {
        let for_queues = (self.lending_queues() * LEAST_SHARE).div_ceil(3) * 4 + 4;
        // The reserve is a quarter of a small pool.
        let small = for_queues.div_ceil(3) * 4 + 4;
        small.min(self.wanted_reserve() + for_queues)
    }

    fn wanted_reserve(&self) -> u32 {
        2048 + 2048 * u32::from(self.workers.count.max(1))
    }

    fn lending_queues(&self) -> u32 {
        let of = |interface: &Interface| match interface.device.as_ref()? {
            Device::AfXdp { queues, .. } => Some(u32::from(*queues)),
            Device::Memif(Memif {
                role: MemifRole::Slave,
                queues,
                ..
            }) => Some(u32::from(*queues)),
            _ => None,
        };
        self.interfaces.values().filter_map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;

    fn with_ports(ports: usize, rest: &str) -> Config {
        let ports: String = (0..ports)
            .map(|n| format!("  xe{n}: {{device: {{driver: af-xdp, name: eth{n}}}}}\n"))
            .collect();
        check("test", &format!("interfaces:\n{ports}{rest}"))
            .unwrap()
            .0
    }

    #[test]
    fn the_pool_grows_with_the_queues() {
        let plans: Vec<_> = [1, 2, 4, 8, 16, 64, 200]
            .map(|ports| with_ports(ports, "").buffer_plan())
            .into();
        for plan in &plans {
            assert!(plan.share >= USUAL_SHARE, "{plan:?}");
            assert!(
                plan.queues * plan.share <= plan.budget() / 4 * 3,
                "{plan:?}"
            );
            assert_eq!(plan.reserve, 4096);
        }
        assert_eq!(plans[0].chunks, LEAST_POOL);
        assert!(
            plans
                .windows(2)
                .all(|pair| pair[0].chunks <= pair[1].chunks)
        );
    }

    #[test]
    fn the_least_pool_is_enough_and_one_buffer_less_is_not() {
        for ports in [1, 5, 24, 64, 150] {
            let mut config = with_ports(ports, "workers: {count: 2}\n");
            config.buffers.per_numa = Some(config.least_buffers());
            assert!(config.buffer_plan().share >= LEAST_SHARE, "{ports}");
            config.buffers.per_numa = Some(config.least_buffers() - 64);
            assert!(config.buffer_plan().share < LEAST_SHARE, "{ports}");
        }
    }
}
