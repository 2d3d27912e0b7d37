//! The commands of `weir lab`: traffic generator, searches and reports.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use weir_lab::port::PortSpec;
use weir_lab::profile::FrameSize;
use weir_lab::units::{self, Rate};

/// `weir lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Generate traffic, and measure loss and latency of what comes back
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(Box<GenerateArgs>),
    /// Find the highest rate at which a device loses nothing, or no more than a share
    #[command(after_help = NDR_EXAMPLES)]
    Ndr(Box<NdrArgs>),
    /// Make a page with graphs from results, and compare them
    Report(ReportArgs),
    /// Measure what other work takes from the cores, with a job of known speed on each
    #[command(after_help = CPU_EXAMPLES)]
    Cpu(CpuArgs),
    /// Run a scenario: devices under test in network namespaces, searches and a report (needs root)
    Run(LabRunArgs),
    /// Be a test device that drops, delays, duplicates and reorders as instructed
    Device(DeviceArgs),
    /// Check the lab against devices of known behaviour, then compare Weir and the Linux bridge (needs root)
    Demo(LabDemoArgs),
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  weir lab generate --rate max --duration 5s                       into nothing: how fast is the generator?
  weir lab generate --write out.pcap --packets 1000 --flows 64k    into a capture file, without sending
  sudo weir lab generate --port eth1 --port eth2 --rate 100kpps --duration 10s
  sudo weir lab generate --port eth1 --port eth2 --profile imix --rate 50% --line-rate 10G
  sudo weir lab generate --port eth1,address=10.1.0.2/24,gateway=10.1.0.1 --port eth2,address=10.2.0.2/24 --destination 10.2.0.2 --json

Ports are numbered from 0 in the order in which they are given. Streams of the command line send from
port 0; a profile file says it for each stream. Packets are recognized at any port by their stamp.";

/// `weir lab generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The traffic
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
    /// How long to send [default: 10s; with a number of packets, until they are sent]
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) duration: Option<Duration>,
    /// Wait this long for packets on their way at the end
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "200ms")]
    pub(crate) drain: Duration,
    /// Write the packets to a pcap file instead of sending them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "port")]
    pub(crate) write: Option<PathBuf>,
    /// Run on this core
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
}

/// What traffic, and from where.
#[derive(Debug, Args)]
pub(crate) struct TrafficArgs {
    /// A port to send from and receive on; may be given several times [default: null]
    #[arg(short, long, value_name = "DEVICE", value_parser = PortSpec::parse)]
    pub(crate) port: Vec<PortSpec>,
    /// A profile file of Weir, streams of T-Rex as YAML or JSON, or imix
    #[arg(long, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<PathBuf>,
    /// Send the frames of a capture file, at its times unless --rate is given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "profile")]
    pub(crate) replay: Option<PathBuf>,
    /// Replay this many times as fast as captured
    #[arg(long, value_name = "FACTOR", default_value = "1", requires = "replay")]
    pub(crate) speed: String,
    /// Replay this many times, or forever
    #[arg(
        long = "loop",
        value_name = "COUNT",
        default_value = "1",
        requires = "replay"
    )]
    pub(crate) passes: String,
    /// How fast: 100kpps, 1Gbps, 1GbpsL1, 50%, max [default: 1000pps]
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    pub(crate) rate: Option<Rate>,
    /// Bytes of a frame, with FCS [default: 64]
    #[arg(long, value_name = "BYTES", conflicts_with = "l3")]
    pub(crate) size: Option<u16>,
    /// Bytes of an IP packet, instead of the frame's
    #[arg(long, value_name = "BYTES")]
    pub(crate) l3: Option<u16>,
    /// Vary the source address at random over this many values: 64k
    #[arg(long, value_name = "COUNT", value_parser = units::count)]
    pub(crate) flows: Option<u64>,
    /// End after this many packets of each stream
    #[arg(long, value_name = "COUNT", value_parser = units::count)]
    pub(crate) packets: Option<u64>,
    /// Source address, a range as 10.0.0.1-10.0.0.9, IPv4 or IPv6
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) source: Option<String>,
    /// Destination address, or a range
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) destination: Option<String>,
    /// Destination MAC address [default: the gateway's of the port, else 02:00:00:00:00:02]
    #[arg(long, value_name = "MAC")]
    pub(crate) destination_mac: Option<String>,
    /// Send from both of two ports, with source and destination exchanged
    #[arg(long)]
    pub(crate) bidirectional: bool,
    /// Send packets without sequence numbers and times: nothing is measured at the receiver
    #[arg(long)]
    pub(crate) no_stamp: bool,
    /// Bits per second of the line, for rates in percent: 10G
    #[arg(long, value_name = "BITS", value_parser = bits)]
    pub(crate) line_rate: Option<f64>,
    /// Where randomness starts: the same seed gives the same packets
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

fn bits(text: &str) -> Result<f64, String> {
    units::scaled(text)
        .filter(|bits| *bits > 0.0)
        .ok_or_else(|| "bits per second, as 10G or 100M".to_owned())
}

const NDR_EXAMPLES: &str = "\
Examples:
  sudo weir lab ndr --port eth1 --port eth2 --bidirectional --max-rate 14.88Mpps --output run.json
  sudo weir lab ndr --port eth1,address=10.1.0.2/24,gateway=10.1.0.1 --port eth2,address=10.2.0.2/24 --destination 10.2.0.2 --device-counters router=/run/weir/api.sock --pdr 0.005
  weir lab ndr --port memif:/run/a.sock --port memif:/run/b.sock --trial 5s --exceed 0.5 --sum 20s

The search is MLRsearch (draft-ietf-bmwg-mlrsearch). A trial that lost packets while the generator
waited for a core is repeated. Counters of the device are read before and after each trial.";

/// `weir lab ndr`.
#[derive(Debug, Args)]
pub(crate) struct NdrArgs {
    /// The traffic
    #[command(flatten)]
    pub(crate) traffic: TrafficArgs,
    /// How the search works
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// Read a router's counters around each trial: linux, vpp=SOCKET (by vppctl), or the socket of a running Weir
    #[arg(long, value_name = "SOURCE")]
    pub(crate) device_counters: Vec<String>,
    /// The device's name in reports
    #[arg(long, value_name = "TEXT", default_value = "device")]
    pub(crate) device: String,
    /// Frame sizes with FCS to test, one after the other: 64,512,1518,imix
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = FrameSize::parse)]
    pub(crate) sizes: Vec<FrameSize>,
    /// Measure latency at 10, 50 and 90 % of the rate found
    #[arg(long)]
    pub(crate) latency: bool,
    /// Search this many times, for confidence intervals
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// Write the results, for `weir lab report`
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// How a search works.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// The lowest load, in packets per second
    #[arg(long, value_name = "RATE", value_parser = packets, default_value = "1kpps")]
    pub(crate) min_rate: f64,
    /// The highest load, in packets per second
    #[arg(long, value_name = "RATE", value_parser = packets, default_value = "10Mpps")]
    pub(crate) max_rate: f64,
    /// How long a trial of full length is
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "1s")]
    pub(crate) trial: Duration,
    /// How long trials of full length of one load are together [default: one trial]
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) sum: Option<Duration>,
    /// The share of trials that may lose more than allowed
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) exceed: f64,
    /// Search a second rate too, at which this share of packets may be lost: 0.005
    #[arg(long, value_name = "SHARE")]
    pub(crate) pdr: Option<f64>,
    /// How near the bounds are at the end, as a share of the rate
    #[arg(long, value_name = "SHARE", default_value_t = 0.005)]
    pub(crate) width: f64,
    /// A trial with loss is repeated when more than this share of its time was taken from the generator
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub(crate) noise: f64,
}

fn packets(text: &str) -> Result<f64, String> {
    match Rate::parse(text)? {
        Rate::Packets(packets) => Ok(packets),
        _ => Err("a rate in packets per second, as 100kpps".to_owned()),
    }
}

/// `weir lab report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results of `weir lab ndr --output`; several are compared
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The page
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// The heading
    #[arg(long, value_name = "TEXT", default_value = "Forwarding measurements")]
    pub(crate) title: String,
}

/// `weir lab device`.
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// The two ports
    #[arg(short, long, value_name = "DEVICE", value_parser = PortSpec::parse, required = true, num_args = 1)]
    pub(crate) port: Vec<PortSpec>,
    /// Forward at most this: 200kpps, or 1Gbps of layer 2
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    pub(crate) capacity: Option<Rate>,
    /// Packets that wait when it is busy
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) queue: u32,
    /// How long each packet takes
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "0s")]
    pub(crate) delay: Duration,
    /// Lose one packet of this many
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) lose_every: u64,
    /// Send one packet of this many twice
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) duplicate_every: u64,
    /// Exchange one packet of this many with the next
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) swap_every: u64,
    /// End after this time [default: at Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) duration: Option<Duration>,
}

/// `weir lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The scenario; none = list them
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// The generator's network cards instead of virtual ones; give it twice
    #[arg(long, value_name = "DEVICE")]
    pub(crate) port: Vec<String>,
    /// The network cards of the device under test, on this machine, cabled to the generator's in the same order; give it twice
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device_port: Vec<String>,
    /// Join generator and router by memif instead of veth: the Linux bridge and router are left out
    #[arg(long)]
    pub(crate) memif: bool,
    /// Frame sizes with FCS to test, one after the other: 64,512,1518,imix
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = FrameSize::parse)]
    pub(crate) sizes: Vec<FrameSize>,
    /// Search this many times, for confidence intervals
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// How searches work
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// Write the page here
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "report.html")]
    pub(crate) output: PathBuf,
}

/// `weir lab demo`.
#[derive(Debug, Args)]
pub(crate) struct LabDemoArgs {
    /// Write the page here
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "lab-demo.html")]
    pub(crate) output: PathBuf,
}

const CPU_EXAMPLES: &str = "\
Examples:
  weir lab cpu                                     what is taken from each core now?
  weir lab cpu --known 0.25                        is a load of known cost found?
  sudo weir lab cpu --case bridge,router,xdp,weir-sleep,weir-adaptive,weir-poll
  sudo weir lab cpu --case bridge,xdp --rates 20k,50k,100k,200k --with openssl,perf -o cost.html

Cases are built in network namespaces. The generator runs on one core, the device on another one, where
a job of known speed runs beside it.";

/// `weir lab cpu`.
#[derive(Debug, Args)]
pub(crate) struct CpuArgs {
    /// The cores to measure [default: all; with --case, the last is the device's and the first the generator's]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
    /// How long each step takes
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "5s")]
    pub(crate) duration: Duration,
    /// Take this share of each core by a known load, to check the method
    #[arg(long, value_name = "SHARE", conflicts_with = "case")]
    pub(crate) known: Option<f64>,
    /// Packets per second that are processed meanwhile, for the time a packet costs
    #[arg(long, value_name = "RATE", value_parser = packets, conflicts_with = "case")]
    pub(crate) rate: Option<f64>,
    /// Devices to measure under load (needs root)
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    pub(crate) case: Vec<CpuCase>,
    /// The loads of the cases
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = packets, default_value = "10kpps,30kpps,100kpps")]
    pub(crate) rates: Vec<f64>,
    /// Measure with these programs too: what is taken from `openssl speed`, what `perf` sees on the core
    #[arg(long, value_name = "HOW", value_delimiter = ',', requires = "case")]
    pub(crate) with: Vec<CpuProgram>,
    /// Write a page with the curves here
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "case")]
    pub(crate) output: Option<PathBuf>,
}

/// A device whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CpuCase {
    /// The kernel's bridge
    Bridge,
    /// The kernel's router
    Router,
    /// Open vSwitch's kernel datapath
    Ovs,
    /// Frames forwarded by `weir xdp` in the kernel's XDP hook
    Xdp,
    /// Weir, whose worker waits for the kernel
    WeirSleep,
    /// Weir, whose worker polls while packets come fast
    WeirAdaptive,
    /// Weir, whose worker always polls
    WeirPoll,
}

/// A program that measures beside the built-in job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CpuProgram {
    /// `openssl speed`
    Openssl,
    /// `perf record`
    Perf,
}
