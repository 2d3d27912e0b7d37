//! Commands that change something in a running router: `clear`, `trace`, `set` and sFlow's settings.

use clap::{Args, Subcommand, ValueEnum};

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

pub(super) const SET_EXAMPLES: &str = "\
Examples:
  weir set interface state wan down
  weir set interface mtu 9000 wan
  weir set interface description wan \"to the world\"

Each is a change of the configuration like any other: it gets a revision, and can be rolled back.";

/// `weir set`.
#[derive(Debug, Subcommand)]
pub(crate) enum SetCommand {
    /// Settings of an interface
    #[command(subcommand, visible_alias = "int", disable_help_subcommand = true)]
    Interface(SetInterface),
}

/// `weir set interface`, in VPP's words and order.
#[derive(Debug, Subcommand)]
pub(crate) enum SetInterface {
    /// Take an interface up or down
    State {
        /// The interface
        #[arg(value_name = "INTERFACE")]
        interface: String,
        /// What it is to be
        #[arg(value_name = "STATE")]
        state: State,
    },
    /// The largest IP packet that leaves an interface
    Mtu {
        /// In bytes
        #[arg(value_name = "BYTES")]
        mtu: u32,
        /// The interface
        #[arg(value_name = "INTERFACE")]
        interface: String,
    },
    /// The text for people
    Description {
        /// The interface
        #[arg(value_name = "INTERFACE")]
        interface: String,
        /// The text; none = none
        #[arg(value_name = "TEXT")]
        text: Option<String>,
    },
}

/// Up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Packets pass
    Up,
    /// They do not
    Down,
}

/// On or off, in VPP's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnableDisable {
    /// Sample what is received
    Enable,
    /// Do not
    Disable,
}
