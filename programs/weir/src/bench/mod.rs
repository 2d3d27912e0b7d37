//! `weir bench afxdp`: AF_XDP on veth pairs beside the kernel's bridge.
//!
//! ```text
//! host-a ──veth── [ Linux bridge, or Weir's cross connect over AF_XDP ] ──veth── host-b
//! ```
//!
//! Two hosts (network namespaces) stay as they are while what joins them changes, round by round:
//! bridge, Weir, bridge, Weir, … Sender and receiver are the same threads' code with the same sockets'
//! settings either way, so that what differs is the middle. A figure is the median over the rounds
//! with its quartiles; a ratio is the median of the ratios of neighbouring rounds, so that a slow
//! moment of the machine hits both.
//!
//! The rooms: `stage` has the hosts and what joins them, `datagrams` the paced sender and the counting
//! receiver, `stream` TCP, `echo` the round trip on an idle router, `cpu` the CPU time, `rounds` the
//! order of everything, `report` the figures' names, `table` what a person reads.
//!
//! `sflow_decode` is another bench: how fast sFlow is read.
//!
//! Everything lives in anonymous namespaces and in threads of this process: when it ends, however it
//! ends, nothing is left.

mod cpu;
mod datagrams;
mod echo;
mod report;
mod rounds;
pub(crate) mod sflow_decode;
mod stage;
mod stream;
mod table;

use clap::Args;

pub(crate) use report::Report;
pub(crate) use rounds::{Progress, measure};
pub(crate) use table::write as write_table;

/// `weir bench afxdp`.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AfxdpArgs {
    /// Rounds of each case with the bridge, and as many with Weir
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Seconds that a round lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) seconds: u32,
}

/// A sentence for the person at the terminal.
fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}
