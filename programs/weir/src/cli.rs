//! The command line as one table: parsing, help, completions, man pages, the reference page and the
//! interactive shell all come from here.
//!
//! The words are VPP's where VPP has them; where its spelling differs from Weir's (`show
//! hardware-interfaces`, `show ip fib`, `show interface rx-placement`), both are understood, and
//! words may be shortened as long as they are clear (`sh int`). What an argument's value is stands in
//! `kind.rs`, by the name that the help gives it. Nothing is done here: `dispatch.rs` hands parsed
//! commands to `commands/` (what works by itself) and to `client.rs` (what asks a running router).

mod at;
mod change;
mod config;
mod doctor;
pub(crate) mod kind;
mod lab;
mod pcap;
mod peering;
mod route;
mod sflow_decode;
mod show;
mod values;
mod why;
mod xdp;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

pub(crate) use at::*;
pub(crate) use change::*;
pub(crate) use config::*;
pub(crate) use doctor::*;
pub(crate) use lab::*;
pub(crate) use pcap::*;
pub(crate) use peering::*;
pub(crate) use route::*;
pub(crate) use sflow_decode::*;
pub(crate) use show::*;
use values::{duration, listen_address};
pub(crate) use why::*;
pub(crate) use xdp::*;

use crate::bench::AfxdpArgs;

const ABOUT: &str = "Weir: a software router that measures every flow it forwards";

const EXAMPLES: &str = "\
Examples:
  weir                                 a shell with Tab and ? (on a terminal)
  weir demo                            see it work: a router between two hosts, sampled
  weir config check -c weir.yaml       is the file right?
  weir run -c weir.yaml                be a router
  weir show interface                  what passes
  weir sh err                          what does not, and why: words may be shortened
  weir trace add any 10                follow the next ten packets …
  weir trace show                      … through the graph
  weir why 192.0.2.7 198.51.100.9      what would happen to this packet

Exit codes:
  0  done
  1  failed
  2  not understood
  3  no router answers
  4  the configuration is refused
  5  somebody else is changing the configuration, or the router's state forbids it now";

/// All of the command line.
#[derive(Debug, Parser)]
#[command(name = "weir", version, about = ABOUT, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Which router.
    #[command(flatten)]
    pub(crate) at: Where,

    /// Print JSON instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// What to do; nothing = the interactive shell.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a router until SIGTERM or Ctrl-C
    Run(RunArgs),
    /// Check, plan, apply and roll back configurations
    #[command(subcommand, disable_help_subcommand = true)]
    Config(ConfigCommand),
    /// Show what a running router knows and counts
    #[command(visible_alias = "sh", after_help = SHOW_EXAMPLES, disable_help_subcommand = true)]
    Show(ShowArgs),
    /// Change single settings of a running router
    #[command(subcommand, after_help = SET_EXAMPLES, disable_help_subcommand = true)]
    Set(SetCommand),
    /// Set and delete routes of a running router, until it restarts
    #[command(subcommand, after_help = route::ROUTE_EXAMPLES, disable_help_subcommand = true)]
    Route(RouteCommand),
    /// Set a running router's counters to 0
    #[command(disable_help_subcommand = true)]
    Clear(ClearArgs),
    /// Follow single packets through a running router's graph
    #[command(after_help = TRACE_EXAMPLES, disable_help_subcommand = true)]
    Trace(TraceArgs),
    /// What a running router would do with a packet, and why
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArgs),
    /// Capture what a running router receives, sends and drops, for tshark and Wireshark
    #[command(subcommand, after_help = PCAP_EXAMPLES, disable_help_subcommand = true)]
    Pcap(PcapCommand),
    /// Watch a running router, drawn anew again and again until Ctrl-C
    #[command(subcommand, after_help = MONITOR_EXAMPLES, disable_help_subcommand = true)]
    Monitor(Monitor),
    /// Show interfaces, flows, drops and workers of a running router, live
    #[command(after_help = TOP_EXAMPLES)]
    Top(TopArgs),
    /// Run the commands in a file, one a line
    #[command(after_help = EXEC_NOTES)]
    Exec(ExecArgs),
    /// Watch a router at work: makes two hosts, traffic and a collector, and removes them again
    #[command(after_help = DEMO_EXAMPLES, disable_help_subcommand = true)]
    Demo(DemoArgs),
    /// Measure what a packet costs
    #[command(after_help = BENCH_EXAMPLES, disable_help_subcommand = true)]
    Bench(BenchArgs),
    /// Change sFlow's settings of a running router, and decode datagrams
    #[command(subcommand, after_help = SFLOW_EXAMPLES, disable_help_subcommand = true)]
    Sflow(SflowCommand),
    /// Decode flow records: IPFIX and NetFlow
    #[command(subcommand, disable_help_subcommand = true)]
    Flow(FlowCommand),
    /// Forward to virtual machines and containers in the kernel's XDP hook (needs root)
    #[command(after_help = XDP_EXAMPLES, disable_help_subcommand = true)]
    Xdp(XdpArgs),
    /// Generate traffic, find the highest rate without loss, and report
    #[command(subcommand, disable_help_subcommand = true)]
    Lab(LabCommand),
    /// Generate BGP policy from the configuration, and test it before it runs
    #[command(subcommand, after_help = peering::PEERING_EXAMPLES, disable_help_subcommand = true)]
    Peering(PeeringCommand),
    /// Say what on this host hurts packet forwarding, and how to change it
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Write a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: CompletionShell,
    },
    /// Write the man pages into a folder, or the first of them to standard output
    Man(ManArgs),
    /// What may follow on a command line, for completion scripts
    #[command(hide = true)]
    Complete(CompleteArgs),
}

const TOP_EXAMPLES: &str = "\
Examples:
  weir top                                   q quits, ? shows the keys
  weir top --router 192.0.2.1:8443 --ca ca.pem
  weir top --count 1                         one reading as text
  weir top --json                            one JSON object a second

Flows are shown where interfaces are metered (`ipfix: true`).";

const DEMO_EXAMPLES: &str = "\
Examples:
  sudo weir demo                         live, until q or Ctrl-C
  sudo weir demo --duration 10s --json   one JSON object at the end
  sudo weir demo bgp                     a full table by BGP, three minutes at most";

const BENCH_EXAMPLES: &str = "\
Examples:
  weir bench                           all cases
  weir bench l2xc ip4 --json
  sudo weir bench afxdp                against the Linux bridge, over veth";

const BENCH_AFXDP_STORY: &str = "\
Two hosts (network namespaces) are joined alternately by a Linux bridge and by a cross connect of Weir over
AF_XDP, one worker, asleep when idle. Datagrams of 64 bytes at a given pace: what is lost, and what CPU time
a packet costs in all threads that have to do with it; one TCP stream; and the round trip on an idle router.
All offloads are off, except in afxdp-tcp-gso. A missed target is no failure: it is said in the table.

CPU time is that of all threads of the process with the soft interrupts in their place, and of the kernel's
ksoftirqd; what ran while a core was idle is not in it.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions zsh > \"${fpath[1]}/_weir\"
  weir completions fish > ~/.config/fish/completions/weir.fish

The scripts ask `weir` itself for each word, so that names of interfaces, nodes and prefixes are
completed from the running router.";

const EXEC_NOTES: &str = "\
A line is a command as in the shell, with shortened words and filters (`| match PATTERN`, `| count`).
Blank lines, what follows a # at the beginning of a word, and VPP's comment { … } are skipped. The first
command that fails ends it; its line is printed, and its exit code is returned.

Examples:
  weir exec morning.weir
  weir exec - --keep-going --json";

/// `weir run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Leave out what vppcfg has and this version lacks, with warnings
    #[arg(long)]
    pub(crate) skip_unsupported: bool,
}

/// `weir top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time between two readings: 1s, 500ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// Print this many readings as text and end; without a terminal, and without this, until Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
}

/// `weir exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The file; - = standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Go on after a command that fails
    #[arg(short, long)]
    pub(crate) keep_going: bool,
    /// How many files deep this one is run.
    #[arg(skip)]
    pub(crate) depth: u8,
}

impl ExecArgs {
    /// Commands from standard input.
    pub(crate) fn standard_input() -> Self {
        Self {
            file: PathBuf::from("-"),
            keep_going: false,
            depth: 0,
        }
    }
}

/// `weir demo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DemoArgs {
    /// End after this time: 10s, 1m, 500ms
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Print one JSON object at the end instead of the live view
    #[arg(long)]
    pub(crate) json: bool,
    /// Packets a second that the hosts send
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
    /// Other demos.
    #[command(subcommand)]
    pub(crate) other: Option<DemoOther>,
}

/// Demos beside the usual one.
#[derive(Debug, Subcommand)]
pub(crate) enum DemoOther {
    /// A full table by BGP: two routers with BIRD, a link that is cut, a BIRD that crashes (needs root)
    Bgp(DemoBgpArgs),
}

/// `weir demo bgp`.
#[derive(Debug, Args)]
pub(crate) struct DemoBgpArgs {
    /// IPv4 prefixes of the table
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    pub(crate) routes: u32,
    /// IPv6 prefixes of the table
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=500_000))]
    pub(crate) routes6: u32,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// `weir bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    /// Cases to measure; none = all
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Take a minute: without sFlow, full tables thinned to a tenth
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run so many vectors of each case and measure nothing, for who counts instructions from outside
    #[arg(long, hide = true, value_name = "COUNT")]
    pub(crate) untimed: Option<usize>,
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
    #[command(after_help = BENCH_AFXDP_STORY)]
    Afxdp(AfxdpArgs),
    /// `weir xdp` from a card to a guest, beside the Linux bridge (needs root)
    Xdp {
        /// Rounds of each side
        #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
    },
    /// How many completed samples a second the sFlow agent exports on one core
    SflowExport {
        /// Seconds that each step takes
        #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
    },
    /// How many flow samples a second one core decodes
    SflowDecode {
        /// Seconds that each figure takes
        #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
    },
}

/// `weir sflow`.
#[derive(Debug, Subcommand)]
pub(crate) enum SflowCommand {
    /// Print, convert or pass on sFlow datagrams from a capture file or from the network
    #[command(after_help = DECODE_EXAMPLES)]
    Decode(Box<SflowDecodeArgs>),
    /// Sample one packet in so many
    SamplingRate {
        /// How many; 0 = none at all
        #[arg(value_name = "N")]
        rate: u32,
    },
    /// Report counters every so often
    PollingInterval {
        /// How often; 0 = never
        #[arg(value_name = "SECONDS")]
        seconds: u32,
    },
    /// Report so much of each sampled packet
    HeaderBytes {
        /// How much
        #[arg(value_name = "BYTES")]
        bytes: u32,
    },
    /// Sample what an interface receives, or do not
    EnableDisable {
        /// The interface
        #[arg(value_name = "INTERFACE")]
        interface: String,
        /// Whether
        #[arg(value_name = "STATE", default_value = "enable")]
        what: EnableDisable,
    },
}

const SFLOW_EXAMPLES: &str = "\
Examples:
  weir sflow sampling-rate 1000
  weir sflow polling-interval 20
  weir sflow header-bytes 128
  weir sflow enable-disable wan
  weir sflow enable-disable wan disable
  weir show sflow

Each is a change of the configuration like any other: it gets a revision, and can be rolled back.";

/// `weir flow`.
#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Print IPFIX and NetFlow records (versions 9 and 5) from a capture file or from the network
    #[command(after_help = FLOW_DECODE_EXAMPLES)]
    Decode(FlowDecodeArgs),
}

const FLOW_DECODE_EXAMPLES: &str = "\
Examples:
  weir flow decode -r capture.pcap
  weir flow decode -r capture.pcap --format csv > flows.csv
  weir flow decode -l 4739 --json | jq .

Records of options are in the JSON only. What cannot be decoded, and records that the sequence numbers
say are missing, are reported on standard error. A set that comes before its template waits for it. Reading
a file then ends with exit code 1 if anything was not decoded.";

/// `weir flow decode`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["read", "listen"]))]
pub(crate) struct FlowDecodeArgs {
    /// Read a pcap or pcapng file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// Listen on UDP, and for IPFIX on TCP, until Ctrl-C; a port alone means all addresses
    #[arg(short, long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// How to print [default: line; with --json, json]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<FlowFormat>,
    /// The UDP port that the file's datagrams were sent to [default: 4739, 2055 and 9995]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// How flow records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowFormat {
    /// nfdump's lines, one a flow
    Line,
    /// nfdump's comma-separated values
    Csv,
    /// One JSON object a record, with IANA's names
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

/// `weir man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder; must exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
    /// All of it as one page of Markdown to standard output
    #[arg(long, conflicts_with = "folder")]
    pub(crate) markdown: bool,
}

/// `weir complete`: what completion scripts call.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The shell that asks
    #[arg(value_name = "SHELL")]
    pub(crate) shell: CompletionShell,
    /// The command line so far, as bash gives it, its first word included
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "words"
    )]
    pub(crate) line: Option<String>,
    /// The words so far, the last of them unfinished, perhaps empty
    #[arg(value_name = "WORD", last = true)]
    pub(crate) words: Vec<String>,
}

#[cfg(test)]
mod tests;
