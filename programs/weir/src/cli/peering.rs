//! The commands of `weir peering`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use weir_lab::units;
use weir_peering::IpNet;

use super::values::duration;

/// `weir peering`.
#[derive(Debug, Subcommand)]
pub(crate) enum PeeringCommand {
    /// Check the `peering` section against the snapshot, and the result with `bird -p`
    Check(PeeringArgs),
    /// Bring the snapshot up to date; the only command that uses the network
    #[command(after_help = FETCH_EXAMPLES)]
    Fetch(PeeringFetchArgs),
    /// Write the BIRD configuration
    Build(PeeringBuildArgs),
    /// Run policy cases against the generated filters, in a BIRD without sessions
    #[command(after_help = TEST_EXAMPLES)]
    Test(PeeringTestArgs),
    /// Show what would change: sessions, prefix sets, and routes that get another verdict
    Plan(PeeringPlanArgs),
    /// Change the running BIRD under guards; a change that fails one is undone at once
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(PeeringApplyArgs),
    /// Confirm the change that waits
    Confirm(PeeringDaemonArgs),
    /// Undo the change that waits, or go back to the configuration before the running one
    Rollback(PeeringDaemonArgs),
    /// Show sessions with routes accepted, rejected and announced
    Status(PeeringDaemonArgs),
    /// List routes of neighbours with their verdict
    Routes(PeeringRoutesArgs),
    /// Say why a route is accepted or rejected
    Explain(PeeringExplainArgs),
    /// List what needs attention: age of data, limits, sessions that are down, rejected routes
    Report(PeeringReportArgs),
    /// Move traffic away from a neighbour or an exchange, wait until it is gone, and shut the sessions
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(PeeringDrainArgs),
    /// Open the sessions of a neighbour or an exchange again, and take its routes as before
    Undrain(PeeringDrainArgs),
    /// Fetch, plan and apply; what needs a person is not applied
    #[command(after_help = REFRESH_EXAMPLES)]
    Refresh(PeeringRefreshArgs),
    /// Write files for other programs: nftables, Unbound, snmpd, keepalived, OSPF, reverse DNS, registries, backups
    Outputs(PeeringOutputsArgs),
    /// Turn a file of kees or pathvector into a `peering` section
    Import(PeeringImportArgs),
    /// Serve sessions, routes and reasons over HTTP, read only
    LookingGlass(PeeringGlassArgs),
    /// Two exchanges, transit and a customer in network namespaces: leaks, hijacks, a de-peering, an undo
    Demo,
}

pub(super) const PEERING_EXAMPLES: &str = "\
Examples:
  weir peering fetch -c weir.yaml --snapshot data --vrps https://rpki.example.net/vrps.json
  weir peering check -c weir.yaml --snapshot data
  weir peering test -c weir.yaml --snapshot data cases.yaml
  sudo weir peering plan -c weir.yaml --snapshot data
  sudo weir peering apply -c weir.yaml --snapshot data --wait 5m
  sudo weir peering confirm
  sudo weir peering routes 64500 --rejected

The snapshot is a folder: irr/SET.4.json and irr/SET.6.json as `bgpq4 -j -l NN SET` writes them (`:` in the
name is `_`), and vrps.json as rpki-client writes it. What it lacks is an error, and never an open filter.";

const FETCH_EXAMPLES: &str = "\
Prefix sets come from bgpq4, or from a folder with its output (--irr). ROAs and PeeringDB come from a file or a URL,
which curl fetches. New data that cannot be read, is empty, or lost more than --max-shrink percent of its
entries is not taken over: the old data stays, and the exit code is 1.";

const TEST_EXAMPLES: &str = "\
A case:
  - {from: 64500, route: 203.0.113.0/24, path: [64500, 64501], expect: rpki-invalid}

`expect` is accept, or why the route is rejected: path-too-long, bogon-asn, first-as, prefix-length,
bogon-prefix, transit-free-asn, rpki-invalid, not-in-irr. Exit code 1 when a case got another verdict.";

const APPLY_EXAMPLES: &str = "\
Guards, for the time of --guard: sessions that the plan keeps stay up, sessions that it resets are up at the end,
and imports are not more than --imports percent below what the plan predicts. With --wait the change must be
confirmed in that time; otherwise BIRD undoes it.";

const DRAIN_EXAMPLES: &str = "\
Examples:
  sudo weir peering drain AS64500 -c weir.yaml --below 1M --message 'card is replaced'
  sudo weir peering drain frysix -c weir.yaml --api /run/weir/api.sock
  sudo weir peering undrain frysix -c weir.yaml

The sessions send GRACEFUL_SHUTDOWN (RFC 8326) and their routes get preference 0. Then the router's flows are watched:
when less than --below bits a second leave by the neighbour, or pass the exchange's interface, the sessions are shut
with the message (RFC 9003). When the time is over and there is more traffic, they stay open. The maintenance is kept
beside the applied configuration until `undrain`.";

const REFRESH_EXAMPLES: &str = "\
A timer of systemd runs it each night:
  systemctl enable --now weir-peering-refresh.timer

Data that shrinks by more than --max-shrink percent is not taken over. A change that would reject more than
--max-loss percent of a session's routes, that removes a session, or whose limits are below what a session has,
is not applied: exit code 5, and `weir peering plan` shows it. All else is applied under guards.";

fn bits(text: &str) -> Result<u64, String> {
    units::scaled(text)
        .filter(|bits| *bits >= 0.0)
        .map(|bits| bits as u64)
        .ok_or_else(|| "bits per second, as 1M or 100k".to_owned())
}

/// `weir peering drain` and `undrain`.
#[derive(Debug, Args)]
pub(crate) struct PeeringDrainArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// A neighbour, as AS64500 or AS64500_frysix, or an exchange
    #[arg(value_name = "NEIGHBOR|EXCHANGE")]
    pub(crate) name: String,
    /// Bits a second that may be left
    #[arg(long, value_name = "BITS", default_value = "1M", value_parser = bits)]
    pub(crate) below: u64,
    /// How long to wait for that
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) wait: Duration,
    /// The shutdown message, at most 128 bytes
    #[arg(long, value_name = "TEXT", default_value = "maintenance")]
    pub(crate) message: String,
    /// The API socket of the router that measures the traffic
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath, default_value = "/run/weir/api.sock")]
    pub(crate) api: PathBuf,
    /// Shut the sessions without a look at the traffic
    #[arg(long)]
    pub(crate) now: bool,
}

/// `weir peering refresh`.
#[derive(Debug, Args)]
pub(crate) struct PeeringRefreshArgs {
    #[command(flatten)]
    pub(crate) fetch: PeeringFetchArgs,
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// How long guards watch
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) guard: Duration,
    /// Percentage of a session's accepted routes that may be rejected by the change
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) max_loss: u32,
    /// Plan only
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is done with the files of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputsAction {
    /// Check them by the programs, where they are installed, and show what changes
    Diff,
    /// Replace those that differ, all or none
    Apply,
    /// Put back what was there before the last replacement
    Undo,
}

/// `weir peering outputs`.
#[derive(Debug, Args)]
pub(crate) struct PeeringOutputsArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// What to do
    #[arg(value_name = "HOW", value_enum, default_value = "diff")]
    pub(crate) action: OutputsAction,
}

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ImportFormat {
    /// kees' peers.yaml
    Kees,
    /// pathvector's configuration
    Pathvector,
}

/// `weir peering import`.
#[derive(Debug, Args)]
pub(crate) struct PeeringImportArgs {
    /// The generator
    #[arg(value_name = "HOW", value_enum)]
    pub(crate) format: ImportFormat,
    /// Its file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Exchanges at which the neighbours are met, as frysix,speed-ix
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) at: Vec<String>,
}

/// `weir peering looking-glass`.
#[derive(Debug, Args)]
pub(crate) struct PeeringGlassArgs {
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// Where to listen; put a web server in front of it for the Internet
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8070")]
    pub(crate) listen: std::net::SocketAddr,
}

/// The section and the data.
#[derive(Debug, Args)]
pub(crate) struct PeeringArgs {
    /// The file with the `peering` section
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// The folder with public data [default: the key `data.folder`]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) snapshot: Option<PathBuf>,
}

/// The running BIRD.
#[derive(Debug, Args)]
pub(crate) struct PeeringDaemonArgs {
    /// The configuration file that BIRD reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/etc/bird/bird.conf")]
    pub(crate) bird_config: PathBuf,
    /// BIRD's control socket
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/run/bird/bird.ctl")]
    pub(crate) socket: PathBuf,
    /// Where Weir keeps what it applied
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/var/lib/weir-peering")]
    pub(crate) state: PathBuf,
}

/// `weir peering fetch`.
#[derive(Debug, Args)]
pub(crate) struct PeeringFetchArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// ROAs as rpki-client writes them
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) vrps: Option<String>,
    /// A folder with bgpq4's output [default: run bgpq4]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) irr: Option<PathBuf>,
    /// The IRR server [default: bgpq4's]
    #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(crate) irr_server: Option<String>,
    /// The IRR sources, as RIPE,RADB [default: the server's]
    #[arg(long, value_name = "LIST")]
    pub(crate) irr_sources: Option<String>,
    /// PeeringDB's networks; an address that ends with /api gets the neighbours' AS numbers
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) peeringdb: Option<String>,
    /// Percentage of entries that may be missing in new data
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) max_shrink: u32,
}

/// `weir peering build`.
#[derive(Debug, Args)]
pub(crate) struct PeeringBuildArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// Where to [default: standard output]; an existing file is replaced at once
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// `weir peering test`.
#[derive(Debug, Args)]
pub(crate) struct PeeringTestArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// The file with the cases
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cases: PathBuf,
}

/// `weir peering plan`.
#[derive(Debug, Args)]
pub(crate) struct PeeringPlanArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// Measured traffic, lines of prefix,bytes: says which share of it the changed routes carry
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) traffic: Option<PathBuf>,
    /// The API socket of the router: its flows are the measured traffic, and its forwarding table is watched
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath, conflicts_with = "traffic")]
    pub(crate) api: Option<PathBuf>,
}

/// `weir peering apply`.
#[derive(Debug, Args)]
pub(crate) struct PeeringApplyArgs {
    #[command(flatten)]
    pub(crate) plan: PeeringPlanArgs,
    /// How long guards watch
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) guard: Duration,
    /// By how many percent imports may be below the plan
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) imports: u32,
    /// By how many percent the routes of its forwarding table may differ from those before
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) fib: u32,
    /// Percentage of a session's accepted routes that may be rejected by the change
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) max_loss: u32,
    /// Wait this long for `weir peering confirm` [default: confirm when the guards held]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Replace a configuration file that Weir did not write
    #[arg(long)]
    pub(crate) replace: bool,
}

/// `weir peering routes`.
#[derive(Debug, Args)]
pub(crate) struct PeeringRoutesArgs {
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// The neighbour's AS number [default: all]
    #[arg(value_name = "ASN")]
    pub(crate) asn: Option<u32>,
    /// Rejected routes only
    #[arg(long)]
    pub(crate) rejected: bool,
}

/// `weir peering explain`.
#[derive(Debug, Args)]
pub(crate) struct PeeringExplainArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// The prefix
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: IpNet,
    /// The neighbour's AS number
    #[arg(long, value_name = "ASN")]
    pub(crate) from: u32,
    /// The AS path of a route that is not in BIRD's table, as 64500,64501
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) path: Vec<u32>,
}

/// `weir peering report`.
#[derive(Debug, Args)]
pub(crate) struct PeeringReportArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    #[command(flatten)]
    pub(crate) daemon: PeeringDaemonArgs,
    /// Data older than this is reported, besides what the keys max-age say
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_age: Option<Duration>,
}
