//! Ports and their queues: `GET /v1/hardware` and `GET /v1/rx-placement`.
//!
//! The counters here are those of others (the driver, the kernel, the device), with the names
//! they have there. They count from when the port was opened, or from when the device came up;
//! no `clear` reaches them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interface::UpDown;

/// All ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Hardware {
    /// The ports, in the order of their interfaces.
    pub ports: Vec<HardwarePort>,
}

/// One port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HardwarePort {
    /// The interface that sits on it.
    pub interface: String,
    /// The device in the system: a network device, a file.
    pub device: String,
    /// The driver as the configuration spells it: `af-xdp`, `tap`, `pcap`, `memif`, `null`, `generator`.
    pub driver: String,
    /// How the driver runs, for people: `native, copy`, `generic`.
    pub mode: String,
    /// The device's own MAC address, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Whether the device has a carrier.
    pub link: UpDown,
    /// Its speed in bits per second; 0 = unknown.
    pub speed: u64,
    /// How many receive queues are open.
    pub rx_queues: u32,
    /// How many transmit queues are open.
    pub tx_queues: u32,
    /// The longest frame without FCS that it carries, in bytes.
    pub max_frame: u32,
    /// Everything that driver, kernel and device count.
    pub counters: Vec<HardwareCounter>,
}

/// One counter of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HardwareCounter {
    /// The counter's name at its source.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Who counts.
    pub source: CounterSource,
}

/// Who counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CounterSource {
    /// Weir's own driver code.
    Driver,
    /// The kernel, for the socket (AF_XDP's statistics).
    Xdp,
    /// The kernel, for the network device.
    Kernel,
    /// The device's driver in the kernel (ethtool).
    Ethtool,
}

impl std::fmt::Display for CounterSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Driver => "driver",
            Self::Xdp => "xdp",
            Self::Kernel => "kernel",
            Self::Ethtool => "ethtool",
        })
    }
}

/// Which worker serves which receive queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RxPlacement {
    /// The queues, by interface and number.
    pub queues: Vec<RxQueuePlacement>,
}

/// One receive queue and its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RxQueuePlacement {
    /// The interface.
    pub interface: String,
    /// The queue's number, from 0.
    pub queue: u32,
    /// The worker's number, from 0.
    pub worker: u32,
    /// The core that the worker is pinned to; absent when the kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
}
