//! The command line as one table: parsing, help, completions and tests all come from here.
//!
//! The words are VPP's where VPP has them; where its spelling differs from Weir's (`show
//! hardware-interfaces`, `show ip fib`, `show interface rx-placement`), both are understood. Nothing
//! is done here: the parsed commands go to `commands/` (what works by itself) and to `client.rs`
//! (what asks a running router).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

const ABOUT: &str = "Weir: a software router that measures every flow it forwards";

const EXAMPLES: &str = "\
Examples:
  weir demo                            see it work: a router between two hosts, sampled
  weir config check -c weir.yaml       is the file right?
  weir run -c weir.yaml                be a router
  weir show interface                  what passes
  weir show errors                     what does not, and why
  weir trace add any 10                follow the next ten packets …
  weir trace show                      … through the graph

Exit codes: 0 done, 1 failed, 2 not understood.";

/// All of the command line.
#[derive(Debug, Parser)]
#[command(name = "weir", version, about = ABOUT, after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The router's socket [default: /run/weir/api.sock; for `run`, the file's `api.socket`]
    #[arg(long, global = true, hide_env_values = true, env = "WEIR_SOCKET", value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a router until SIGTERM or Ctrl-C
    Run(RunArgs),
    /// Work with configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show what a running router knows and counts
    #[command(visible_alias = "sh", after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Set a running router's counters to 0
    Clear(ClearArgs),
    /// Follow single packets through a running router's graph
    #[command(after_help = TRACE_EXAMPLES)]
    Trace(TraceArgs),
    /// Watch a router at work: makes two hosts, traffic and a collector, and removes them again
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Measure what a packet costs
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Work with sFlow datagrams
    #[command(subcommand)]
    Sflow(SflowCommand),
    /// Write a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: CompletionShell,
    },
}

const SHOW_EXAMPLES: &str = "\
Examples:
  weir show interface                  all interfaces
  weir show interface wan --json       one of them, as JSON
  weir show ip fib 192.0.2.7           the route that packets to 192.0.2.7 take
  weir --socket /tmp/b.sock show run   another router on this machine";

const TRACE_EXAMPLES: &str = "\
Examples:
  weir trace add any 10                the next ten packets, from reception on
  weir trace add ip4-lookup --interface wan
  weir trace show
  weir trace clear";

const DEMO_EXAMPLES: &str = "\
Examples:
  sudo weir demo                         live, until q or Ctrl-C
  sudo weir demo --duration 10s --json   one JSON object at the end";

const BENCH_EXAMPLES: &str = "\
Examples:
  weir bench                           all cases
  weir bench l2xc ip4 --json
  sudo weir bench afxdp                against the Linux bridge, over veth";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions zsh > \"${fpath[1]}/_weir\"
  weir completions fish > ~/.config/fish/completions/weir.fish";

/// `weir run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

/// `weir config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file: every error with its line, its key and what would be right
    Check(ConfigCheckArgs),
}

/// `weir config check`.
#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    /// The configuration file; - = standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Tell the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `weir show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Print the router's answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What to show.
    #[command(subcommand)]
    pub(crate) what: Show,
}

/// What can be shown.
#[derive(Debug, Subcommand)]
pub(crate) enum Show {
    /// Interfaces: state, packets, bytes, drops
    #[command(visible_aliases = ["interfaces", "int"], args_conflicts_with_subcommands = true)]
    Interface(ShowInterfaceArgs),
    /// Ports: driver, mode, queues, and what driver, kernel and device count
    #[command(visible_aliases = ["hardware-interfaces", "hw"])]
    Hardware(ShowHardwareArgs),
    /// Which worker serves which receive queue
    RxPlacement(OneInterface),
    /// Calls, packets and clocks of each node on each worker
    #[command(visible_alias = "run")]
    Runtime,
    /// Drops by node, reason and interface
    #[command(visible_aliases = ["error", "err"])]
    Errors(ShowErrorsArgs),
    /// Neighbours on the links
    #[command(visible_aliases = ["neighbor", "neighbours", "arp"])]
    Neighbors(OneInterface),
    /// Routes, their paths and their adjacencies
    #[command(visible_aliases = ["routes", "fib"])]
    Route(ShowRouteArgs),
    /// The sFlow sampler and agent: settings, collectors, samples
    Sflow,
    /// What traces recorded (as `weir trace show`)
    Trace(TraceShowArgs),
    /// The balance of packets since the router started
    Totals,
    /// The running configuration
    #[command(visible_alias = "running-config")]
    Config,
    /// Who answers, and since when
    Version,
    /// VPP's spelling: `show ip neighbors`, `show ip fib`
    #[command(subcommand, hide = true)]
    Ip(ShowIp),
}

/// `weir show interface`.
#[derive(Debug, Args)]
pub(crate) struct ShowInterfaceArgs {
    /// Only this interface, in detail
    pub(crate) name: Option<String>,
    /// VPP's further words.
    #[command(subcommand)]
    pub(crate) aspect: Option<InterfaceAspect>,
}

/// `weir show interface …` as VPP spells it.
#[derive(Debug, Subcommand)]
pub(crate) enum InterfaceAspect {
    /// Addresses and cross connects of interfaces
    #[command(visible_alias = "address")]
    Addr(OneInterface),
    /// Which worker serves which receive queue (as `weir show rx-placement`)
    RxPlacement(OneInterface),
}

/// An optional interface.
#[derive(Debug, Args)]
pub(crate) struct OneInterface {
    /// Only of this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

/// `weir show hardware`.
#[derive(Debug, Args)]
pub(crate) struct ShowHardwareArgs {
    /// Only the port of this interface
    pub(crate) interface: Option<String>,
    /// Also counters that are 0
    #[arg(short, long, visible_alias = "verbose")]
    pub(crate) all: bool,
}

/// `weir show errors`.
#[derive(Debug, Args)]
pub(crate) struct ShowErrorsArgs {
    /// Only packets that came in by this interface
    pub(crate) interface: Option<String>,
    /// Each worker's counters apart
    #[arg(long)]
    pub(crate) by_worker: bool,
}

/// `weir show route`.
#[derive(Debug, Args)]
pub(crate) struct ShowRouteArgs {
    /// Only the route of this prefix, or the one that packets to this address take
    #[arg(value_name = "PREFIX|ADDRESS")]
    pub(crate) prefix: Option<String>,
    /// Only routes of this table
    #[arg(long)]
    pub(crate) table: Option<u32>,
}

/// `weir show ip`.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowIp {
    /// Neighbours on the links
    #[command(visible_aliases = ["neighbor", "neighbours"])]
    Neighbors(OneInterface),
    /// Routes, their paths and their adjacencies
    #[command(visible_alias = "route")]
    Fib(ShowRouteArgs),
}

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
    pub(crate) node: String,
    /// How many packets
    #[arg(default_value_t = weir_api::TraceRequest::default_count(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(weir_api::TraceRequest::most_packets())))]
    pub(crate) count: u32,
    /// Only packets received on this interface
    #[arg(short, long)]
    pub(crate) interface: Option<String>,
}

/// `weir trace show`.
#[derive(Debug, Args)]
pub(crate) struct TraceShowArgs {
    /// Only the last so many packets
    #[arg(long, value_name = "COUNT")]
    pub(crate) max: Option<usize>,
    /// Print the router's answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `weir demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// End after this time: 10s, 1m, 500ms
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Print one JSON object at the end instead of the live view
    #[arg(long)]
    pub(crate) json: bool,
    /// Packets a second that the hosts send
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
}

/// `weir bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    /// Cases to measure; none = all
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Other benches.
    #[command(subcommand)]
    pub(crate) other: Option<BenchOther>,
}

/// Benches beside the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum BenchOther {
    /// AF_XDP on veth pairs, beside the Linux bridge (needs root)
    Afxdp,
}

/// `weir sflow`.
#[derive(Debug, Subcommand)]
pub(crate) enum SflowCommand {
    /// Print sFlow datagrams from a capture file or from the network
    #[command(after_help = DECODE_EXAMPLES)]
    Decode(SflowDecodeArgs),
}

const DECODE_EXAMPLES: &str = "\
Examples:
  weir sflow decode -r capture.pcap
  weir sflow decode -l 127.0.0.1:6343 --format line
  weir sflow decode -l 6343 --format json | jq .

A datagram that is broken is told on standard error; the next one is decoded. Reading a file
then ends with exit code 1.";

/// `weir sflow decode`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["read", "listen"]))]
pub(crate) struct SflowDecodeArgs {
    /// Read a pcap or pcapng file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// Listen on UDP until Ctrl-C; a port alone means all addresses
    #[arg(short, long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = DecodeFormat::Text)]
    pub(crate) format: DecodeFormat,
    /// The UDP port that the file's datagrams were sent to
    #[arg(long, default_value_t = 6343, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
}

/// How datagrams are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeFormat {
    /// sflowtool's names and layout, a line a field
    Text,
    /// sflowtool's comma-separated lines, one a sample
    Line,
    /// One JSON object a datagram
    Json,
}

/// Shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    /// GNU bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

impl From<CompletionShell> for Shell {
    fn from(shell: CompletionShell) -> Self {
        match shell {
            CompletionShell::Bash => Self::Bash,
            CompletionShell::Zsh => Self::Zsh,
            CompletionShell::Fish => Self::Fish,
        }
    }
}

/// Reads `10s`, `500ms`, `2m`, `1h`; a bare number means seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let help = "a duration is a number with ms, s, m or h: 10s";
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| help.to_owned())?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => return Err(help.to_owned()),
    };
    match milliseconds {
        None => Err("longer than time itself".to_owned()),
        Some(0) => Err("must be longer than nothing".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// Reads `127.0.0.1:6343`, `[::1]:6343`, `:6343` and `6343`.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let any = |port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    let port_alone = text.strip_prefix(':').unwrap_or(text).parse().map(any);
    text.parse().or(port_alone).map_err(|_| "an address and a port are written as 127.0.0.1:6343, [::1]:6343 or 6343".to_owned())
}

#[cfg(test)]
mod tests;
