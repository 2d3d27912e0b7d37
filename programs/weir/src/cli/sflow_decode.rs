//! `weir sflow decode`: what it reads, and what it makes of it.
//!
//! The short options are sflowtool's.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::values::{destination, field_name, listen_address, pace};

pub(crate) const DECODE_EXAMPLES: &str = "\
Examples:
  weir sflow decode -r capture.pcap
  weir sflow decode --listen 127.0.0.1:6343 -l
  weir sflow decode -p 6343 -j | jq .
  weir sflow decode -r capture.pcap -L agent,srcIP,dstIP,inputPort,outputPort
  weir sflow decode -r capture.pcap --agents      what was lost, and do the samples tell the truth?
  weir sflow decode -p 6343 -t | tcpdump -nr -     the sampled packets themselves
  weir sflow decode -p 6343 -f 192.0.2.1/6343 -f 192.0.2.2/6343
  weir sflow decode -r capture.pcap -P 10 -f 192.0.2.1/6343
  weir sflow decode -p 6343 -c 192.0.2.1 -d 2055   as NetFlow version 5

A datagram that is broken is reported on standard error; the next one is decoded. Reading a file
then ends with exit code 1. Passing on and converting print nothing, unless a format is chosen.

Of sflowtool's options -k and -D are always in effect; --listen ADDR:PORT stands for -4, -6, -A and -b;
-H, -N 9, -R, -S, -v, -V and -x are not there.";

/// `weir sflow decode`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").args(["read", "listen"]))]
#[command(group = clap::ArgGroup::new("output").args([
    "format", "line", "columns", "grep", "compact", "pretty", "packets", "discards", "datagrams",
]))]
pub(crate) struct SflowDecodeArgs {
    /// Read a pcap or pcapng file; `-` is standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// Listen on UDP until Ctrl-C; a port alone means all addresses [default: the port of --port]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The UDP port: listened on, or that the file's datagrams were sent to
    #[arg(short, long, value_name = "PORT", default_value_t = 6343, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// How to print [default: text; with --json, json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<DecodeFormat>,
    /// A comma-separated line for each sample, FLOW,... or CNTR,...
    #[arg(short, long)]
    pub(crate) line: bool,
    /// These fields, comma-separated, a line for each sample that has one of them
    #[arg(short = 'L', long, value_name = "FIELD,...", value_delimiter = ',', value_parser = field_name)]
    pub(crate) columns: Vec<String>,
    /// Text, each line with time, agent, sub-agent, number, data source, sample and record before it
    #[arg(short, long)]
    pub(crate) grep: bool,
    /// One JSON object a datagram, on a line
    #[arg(short = 'j', long)]
    pub(crate) compact: bool,
    /// The same, spread over lines
    #[arg(short = 'J', long)]
    pub(crate) pretty: bool,
    /// Write the sampled packets to standard output as a pcap file
    #[arg(short = 't', long)]
    pub(crate) packets: bool,
    /// Write the packets of discard samples, as a pcap file
    #[arg(short = 'T', long)]
    pub(crate) discards: bool,
    /// Write whole datagrams, as a pcap file
    #[arg(short = 'M', long)]
    pub(crate) datagrams: bool,
    /// At the end: what each agent lost, and whether its samples agree with its counters
    #[arg(long)]
    pub(crate) agents: bool,
    /// Pass every datagram on as it is; may be repeated
    #[arg(short, long, value_name = "HOST/PORT", value_parser = destination)]
    pub(crate) forward: Vec<(String, u16)>,
    /// How fast a file is read: 1 = as it was captured, 10 = ten times that [default: as it goes]
    #[arg(short = 'P', long, value_name = "TIMES", value_parser = pace, requires = "read")]
    pub(crate) playback: Option<f64>,
    /// Send NetFlow version 5 to this host
    #[arg(short = 'c', long, value_name = "HOST")]
    pub(crate) netflow_collector: Option<String>,
    /// To this UDP port of it
    #[arg(short = 'd', long, value_name = "PORT", default_value_t = 2055, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) netflow_port: u16,
    /// NetFlow: each sample counts as one packet, and its rate is reported
    #[arg(short = 's', long)]
    pub(crate) no_scaling: bool,
    /// NetFlow: the neighbouring autonomous systems, not the first and the last ones
    #[arg(short = 'e', long)]
    pub(crate) peer_as: bool,
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
    /// Nothing
    None,
}
