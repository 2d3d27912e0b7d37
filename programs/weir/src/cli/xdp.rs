//! `weir xdp`: forwarding to virtual machines and containers in the kernel's XDP hook.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::config::{ConfigApplyArgs, ConfigHistoryArgs, ConfigRollbackArgs};
use super::values::duration;

pub(super) const XDP_EXAMPLES: &str = "\
Examples:
  weir xdp check -c host.yaml          is the file right, and can the machine do it?
  sudo weir xdp run -c host.yaml       serve it until Ctrl-C; forwarding goes on afterwards
  sudo weir xdp plan -c host.yaml      what would change?
  sudo weir xdp apply -c host.yaml     change it, without a lost packet
  sudo weir xdp apply -c host.yaml --confirm 5m   undo it unless `weir xdp confirm` follows
  sudo weir xdp show drops             what was dropped, by port and reason
  sudo weir xdp trace tap0 10          why did these packets go where they went?
  sudo weir xdp detach                 end forwarding, remove programs and tables";

/// `weir xdp`.
#[derive(Debug, Args)]
pub(crate) struct XdpArgs {
    /// Where programs and tables are pinned, on a BPF file system
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/sys/fs/bpf/weir-xdp")]
    pub(crate) pins: PathBuf,
    /// Where the daemon keeps its running configuration and socket
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/run/weir-xdp")]
    pub(crate) state: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: XdpCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum XdpCommand {
    /// Serve a configuration until SIGTERM or Ctrl-C; programs stay attached
    Run(XdpFileArgs),
    /// Check a file, and whether the machine can do what it says
    Check(XdpFileArgs),
    /// Show what a file changes in the running configuration
    Plan(XdpFileArgs),
    /// Replace the running configuration, as one transaction
    Apply(ConfigApplyArgs),
    /// Keep a change that waits to be confirmed
    Confirm,
    /// Return to an earlier configuration
    Rollback(ConfigRollbackArgs),
    /// Who changed the configuration, when and why
    History(ConfigHistoryArgs),
    /// Show tables and counters
    Show {
        /// What
        #[arg(value_enum, value_name = "TOPIC")]
        what: XdpShow,
    },
    /// Record packets and what became of them
    Trace(XdpTraceArgs),
    /// Detach all programs and remove all tables
    Detach,
    /// Forward to a guest in network namespaces: cost beside the Linux bridge, restart, upgrade, samples
    Demo,
}

/// A configuration file.
#[derive(Debug, Args)]
pub(crate) struct XdpFileArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum XdpShow {
    /// Ports and what passed
    Port,
    /// MAC addresses
    Fdb,
    /// Rules and what they decided
    Acl,
    /// Packets dropped, by port and reason, and whether every packet is accounted for
    Drops,
    /// Daemon, kernel and programs
    Runtime,
}

/// `weir xdp trace`.
#[derive(Debug, Args)]
pub(crate) struct XdpTraceArgs {
    /// The port [default: all]
    #[arg(value_name = "INTERFACE")]
    pub(crate) port: Option<String>,
    /// Packets to record; a packet that is forwarded counts on arrival and on departure
    #[arg(value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// End after this time
    #[arg(short, long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
}
