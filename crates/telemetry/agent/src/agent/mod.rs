//! The sFlow agent: from the samplers' rings to datagrams.
//!
//! One thread for the whole router, so that one place numbers everything: datagrams, the flow samples
//! of each data source, its counter samples. It takes one sample from each worker's ring in turn, so
//! that no worker crowds out another, and sends a datagram when it is full or its oldest sample is
//! half a second old. Whatever goes wrong with a collector is counted and reported, and blocks nobody:
//! sockets never wait, and one that failed is made anew a moment later.
//!
//! Pools and drops are real: a sample carries its worker's pool for the interface, and the agent adds
//! up what the workers said last; drops are the samples that found a ring full.
//!
//! * `run`: the thread. `pace`: how long it rests. `join`: a sample and what became of its packet. `ways`: what the tables tell of that.
//! * `numbering`: samples become part of a datagram. `indices`: the numbers by which interfaces are reported.
//! * `discarding`: notifications of what was dropped.
//! * `numbers`: sequences, pools, and when an interface's counters are due.
//! * `host`: the machine's own counters. `ethernet`: what drivers count, as sFlow has it.
//! * `datagrams`: the one being filled. `outbox`: those that are made. `collector`: a socket. `target`: how it comes to be.
//! * `discovery`: collectors that a domain announces. `dns`: how it is asked. `kernel`: the other way out.
//! * `traps`: what Linux calls a discard.
//!
//! This file is what others see of it: configuration, numbers, and the handle.

mod collector;
mod datagrams;
mod discarding;
mod discovery;
mod dns;
mod ethernet;
mod gateway;
mod host;
mod indices;
mod join;
mod kernel;
mod numbering;
mod numbers;
mod outbox;
mod pace;
mod run;
pub(crate) mod socket;
pub(crate) mod target;
mod traps;
mod ways;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_flowfmt::sflow::encode::Encoding;
use weir_flowfmt::sflow::{EthernetCounters, LagCounters, VlanCounters};

pub use discarding::RX_MISS;
pub use discovery::DnsSd;
pub use ethernet::ethernet_counters;
pub use gateway::{Gateway, PathSegment};
pub use indices::Indices;
pub use kernel::{KernelPath, KernelStats};
pub use run::Agent;
pub use target::Target;
pub use ways::{Asked, Hop, Labels, PathLookup, SampledPath, Tags};

use crate::discards::DiscardSource;
use crate::sampler::SampleSource;

/// How the agent speaks, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// The address it goes by.
    pub address: IpAddr,
    /// Tells several agents with one address apart.
    pub sub_id: u32,
    /// The form of samples.
    pub encoding: Encoding,
    /// The longest datagram.
    pub datagram_bytes: usize,
    /// Seconds between two reports of an interface's counters; 0 = never.
    pub polling_interval: u32,
    /// The same for interfaces where it is another.
    pub polling_intervals: BTreeMap<u32, u32>,
    /// Maximum drop notifications per second; 0 = none.
    pub drop_limit: u32,
    /// Where datagrams go, each to all.
    pub collectors: Vec<Destination>,
    /// A domain that announces more of them.
    pub dns_sd: Option<DnsSd>,
    /// By which numbers interfaces are reported.
    pub indices: Indices,
    /// Whether samples and counters go through the kernel, too.
    pub kernel: Option<KernelPath>,
    /// Where the machine's own counters are read from, if they are reported: `/`.
    pub host: Option<PathBuf>,
}

impl AgentConfig {
    /// One that goes by an address, tells nobody, and is otherwise as usual.
    #[must_use]
    pub fn new(address: IpAddr) -> AgentConfig {
        AgentConfig {
            address,
            sub_id: 0,
            encoding: Encoding::Expanded,
            datagram_bytes: 1400,
            polling_interval: 0,
            polling_intervals: BTreeMap::new(),
            drop_limit: 0,
            collectors: Vec::new(),
            dns_sd: None,
            indices: Indices::default(),
            kernel: None,
            host: None,
        }
    }
}

/// Where datagrams go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Which collector, and how it is reached.
    pub target: Target,
    /// Whether it gets drop notifications.
    pub drops: bool,
}

impl From<SocketAddr> for Destination {
    /// One that gets everything.
    fn from(address: SocketAddr) -> Destination {
        Destination {
            target: address.into(),
            drops: true,
        }
    }
}

/// An interface's counters as they are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields of the generic interface counters, named as there"
)]
pub struct InterfaceReport {
    pub ifindex: u32,
    /// Tells it from an earlier one of the same number, whose counters were others.
    pub made: u64,
    pub name: String,
    pub sampled: bool,
    /// `ifType` as IANA numbers it; 0 is taken for Ethernet.
    pub kind: u32,
    pub mac: Option<[u8; 6]>,
    pub speed: u64,
    pub admin_up: bool,
    pub oper_up: bool,
    pub in_octets: u64,
    pub in_unicast: u64,
    pub in_multicast: u64,
    pub in_broadcast: u64,
    pub in_discards: u64,
    pub in_errors: u64,
    pub out_octets: u64,
    pub out_unicast: u64,
    pub out_multicast: u64,
    pub out_broadcast: u64,
    pub out_discards: u64,
    pub out_errors: u64,
    /// Frames that driver and device lost before a worker saw them, for whatever reason.
    pub missed: u64,
    /// Of ports whose driver tells.
    pub ethernet: Option<EthernetCounters>,
    /// Of VLAN sub-interfaces.
    pub vlan: Option<VlanCounters>,
    /// Of a bond's members.
    pub lag: Option<LagCounters>,
}

/// Who knows the interfaces.
pub trait Reports: Send + Sync {
    /// All of them, now.
    fn interfaces(&self) -> Vec<InterfaceReport>;

    /// Calls `work` with the tables of this moment, to ask them for the ways of packets. Done by the agent's thread,
    /// and no worker waits for it.
    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup));

    /// Packets that the router dropped since the start.
    fn dropped(&self) -> u64;

    /// The name of a node of the graph, by its number.
    fn node(&self, number: u16) -> &'static str;
}

/// What a collector got.
#[derive(Clone, Debug)]
pub struct CollectorStats {
    /// As it is configured, or announced.
    pub target: Target,
    /// Where it is; unknown as long as its name is not looked up.
    pub address: Option<SocketAddr>,
    /// Whether it gets drop notifications.
    pub drops: bool,
    /// Datagrams that the kernel took for it.
    pub sent: u64,
    /// Datagrams that it did not get.
    pub errors: u64,
    /// The last reason.
    pub last_error: Option<String>,
}

/// What was sampled on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceStats {
    /// Which interface.
    pub ifindex: u32,
    /// Packets that could have been sampled, as of its last sample.
    pub pool: u64,
    /// Samples that were put into datagrams.
    pub samples: u64,
    /// Both by worker.
    pub workers: Vec<Share>,
}

/// What one worker sampled on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Packets that could have been sampled, as of its last sample.
    pub pool: u64,
    /// Samples that were put into datagrams.
    pub samples: u64,
}

/// Discarded packets of one kind that were reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardStats {
    /// The interface that they came in by; 0 = none.
    pub ifindex: u32,
    /// The node that dropped them.
    pub node: &'static str,
    /// Why.
    pub reason: &'static str,
    /// The number in sFlow's table by which they were reported: the same for a reason, or by addresses of the packet.
    pub code: u32,
    /// How many were reported.
    pub reported: u64,
}

/// What the agent did so far.
#[derive(Clone, Debug, Default)]
pub struct AgentStats {
    /// Samples put into datagrams, by worker.
    pub samples_sent: Vec<u64>,
    /// Samples that found a worker's ring full and never reached the agent.
    pub samples_dropped: u64,
    /// Samples that the agent could not encode.
    pub samples_lost: u64,
    /// Samples that were sent without an output: the outcome of their packets was not known in time.
    pub samples_incomplete: u64,
    /// Datagrams made, each counted once however many collectors.
    pub datagrams: u64,
    /// Drop notifications that were sent.
    pub discards_sent: u64,
    /// Those that were beyond the limit, or found no room.
    pub discards_dropped: u64,
    /// What went through the kernel, if anything is to.
    pub kernel: Option<KernelStats>,
    /// Why collectors that a domain announces could not be found out.
    pub discovery: Option<String>,
    /// The same by kind.
    pub discards: Vec<DiscardStats>,
    /// By collector.
    pub collectors: Vec<CollectorStats>,
    /// By interface.
    pub interfaces: Vec<InterfaceStats>,
}

/// What the agent's thread and its handle share.
#[derive(Default)]
struct Shared {
    wishes: Mutex<Wishes>,
    stats: Mutex<AgentStats>,
    stop: AtomicBool,
}

/// What the thread is to take over at its next turn.
#[derive(Default)]
struct Wishes {
    config: Option<AgentConfig>,
    sources: Vec<SampleSource>,
    discards: Vec<DiscardSource>,
    /// Interfaces that were made, by number.
    made: Vec<(u32, u64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The agent's thread from outside. Dropping it stops the agent.
pub struct AgentHandle {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl AgentHandle {
    /// Takes another configuration. What is in the datagram leaves under the old one first; sequences go on.
    pub fn reconfigure(&self, config: AgentConfig) {
        lock(&self.shared.wishes).config = Some(config);
        self.wake();
    }

    /// Takes samples of more workers, numbered on from the last one.
    pub fn add_sources(&self, sources: Vec<SampleSource>) {
        lock(&self.shared.wishes).sources.extend(sources);
        self.wake();
    }

    /// Takes discards of more workers.
    pub fn add_discards(&self, discards: Vec<DiscardSource>) {
        lock(&self.shared.wishes).discards.extend(discards);
        self.wake();
    }

    /// An interface was made, and no sample of it was taken so far. `made` tells it from an earlier one of the same number,
    /// whose pool and sequences end with that.
    pub fn interface_made(&self, ifindex: u32, made: u64) {
        lock(&self.shared.wishes).made.push((ifindex, made));
        self.wake();
    }

    /// What it did so far, as of a moment ago.
    #[must_use]
    pub fn stats(&self) -> AgentStats {
        lock(&self.shared.stats).clone()
    }

    /// Sends what is still in the rings, ends, and says what it did in all.
    #[must_use]
    pub fn stop(mut self) -> AgentStats {
        self.end();
        self.stats()
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sFlow agent ended by a panic");
        }
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.end();
    }
}
