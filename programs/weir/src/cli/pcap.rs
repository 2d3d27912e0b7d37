//! `weir pcap`: captures of packets.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::values::duration;

pub(super) const PCAP_EXAMPLES: &str = "\
Examples:
  weir pcap capture | tshark -r -                  everything, as it passes
  weir pcap capture drop | tshark -r - -T fields -e frame.interface_name -e frame.comment
  weir pcap capture rx --interface wan -w wan.pcapng -c 1000
  weir pcap capture drop --reason no-route --duration 1m -w /var/tmp/lost.pcapng
  weir pcap show
  weir pcap stop 3

A capture ends at its limits, with Ctrl-C, with `weir pcap stop`, or when nobody reads it any more. Packets
of a reader that is too slow are lost to the capture, and counted; they are forwarded all the same. A reader
that takes nothing at all for five seconds loses the capture.";

/// `weir pcap`.
#[derive(Debug, Subcommand)]
pub(crate) enum PcapCommand {
    /// Capture packets as pcapng, until Ctrl-C or a limit
    #[command(visible_alias = "trace")]
    Capture(PcapCaptureArgs),
    /// Captures that are under way (as `weir show pcap`)
    #[command(visible_alias = "status")]
    Show,
    /// End a capture; whoever reads it gets what was captured by then
    #[command(visible_alias = "off")]
    Stop(PcapStopArgs),
}

/// `weir pcap capture`.
#[derive(Debug, Args)]
pub(crate) struct PcapCaptureArgs {
    /// Where to look [default: all of them]
    #[arg(value_name = "POINT")]
    pub(crate) points: Vec<CapturePoint>,
    /// Only packets that came in by this interface, or at tx go out by it
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Only drops for this reason; can be given several times
    #[arg(short, long, value_name = "REASON")]
    pub(crate) reason: Vec<String>,
    /// Write to this file; - = standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    pub(crate) write: PathBuf,
    /// End after so many packets
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// End before the capture is longer than this
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(weir_api::CaptureRequest::LEAST_BYTES..))]
    pub(crate) size: Option<u64>,
    /// End after this time
    #[arg(short, long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Keep so many bytes of each packet [default: all]
    #[arg(short, long, value_name = "BYTES", value_parser = clap::value_parser!(u32)
          .range(i64::from(weir_api::CaptureRequest::LEAST_SNAP)..=i64::from(weir_api::CaptureRequest::MOST_SNAP)))]
    pub(crate) snap: Option<u32>,
}

/// Where packets are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CapturePoint {
    /// As they come in
    Rx,
    /// As they are about to go out
    Tx,
    /// As they are dropped, each with node and reason as its comment
    Drop,
}

/// `weir pcap stop`.
#[derive(Debug, Args)]
pub(crate) struct PcapStopArgs {
    /// The capture's number; none = all of them
    #[arg(value_name = "N")]
    pub(crate) number: Option<u64>,
}
