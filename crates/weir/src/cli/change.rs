//! Commands that change something in a running router: `clear`, `trace`, `set` and sFlow's settings.

use clap::{Args, Subcommand};

pub(super) const TRACE_EXAMPLES: &str = "\
Examples:
  weir trace add any 10                the next ten packets, from reception on
  weir trace add ip4-lookup --interface wan
  weir trace show
  weir trace clear";

/// `weir clear`.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// What to clear.
    #[command(subcommand)]
    pub(crate) what: ClearWhat,
}

/// What can be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ClearWhat {
    /// Counters of interfaces
    #[command(visible_aliases = ["interfaces", "int"])]
    Interface,
    /// Calls, packets and clocks of nodes
    #[command(visible_alias = "run")]
    Runtime,
    /// Drop counters
    #[command(visible_aliases = ["error", "err"])]
    Errors,
    /// Recorded packets (as `weir trace clear`)
    Trace,
}

/// `weir trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: TraceCommand,
}

/// What can be done with traces.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Record the next packets
    Add(TraceAddArgs),
    /// Show what was recorded
    Show(TraceShowArgs),
    /// Forget what was recorded, and record no more
    Clear,
}

/// `weir trace add`.
#[derive(Debug, Args)]
pub(crate) struct TraceAddArgs {
    /// The node that packets are followed from, or `any`
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// How many packets
    #[arg(value_name = "COUNT", default_value_t = weir_api::TraceRequest::default_count(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(weir_api::TraceRequest::most_packets())))]
    pub(crate) count: u32,
    /// Only packets received on this interface
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

/// `weir trace show`.
#[derive(Debug, Args)]
pub(crate) struct TraceShowArgs {
    /// Only the last so many packets
    #[arg(long, value_name = "COUNT")]
    pub(crate) max: Option<usize>,
}
