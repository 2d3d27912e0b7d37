//! `weir route`: routes that are set over the API, beside those of the configuration.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use weir_config::IpNet;

pub(super) const ROUTE_EXAMPLES: &str = "\
Examples:
  weir route add 203.0.113.0/24 --via 192.0.2.1
  weir route add 2001:db8:1::/48 --via fe80::1 --interface wan
  weir route add 10.0.0.0/8 --via 192.0.2.1 --via 192.0.2.2
  weir route add 10.1.0.0/16 --via 172.16.0.1 --lookup default
  weir route add 10.2.0.0/16 --discard blackhole
  weir route delete 203.0.113.0/24
  weir route load table.txt --replace

These routes are no part of the configuration: they have no revision, and are gone when the router restarts.
A route of the configuration, and an interface's subnet, come before one of these to the same prefix.";

const LOAD_NOTES: &str = "\
Each line is a route as `ip route` writes it; what follows a # is a comment:

  203.0.113.0/24 via 192.0.2.1
  2001:db8:1::/48 via fe80::1 dev wan metric 20
  10.1.0.0/16 via 172.16.0.1 lookup default vrf red
  blackhole 10.2.0.0/16

Nothing is sent when a line is not understood. A route that the router refuses does not stop the others; then the
exit code is 1.";

/// `weir route`.
#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// Set a route, or replace the one with the same prefix and metric
    Add(RouteAddArgs),
    /// Delete a route that was set here
    Delete(RouteDeleteArgs),
    /// Set the routes in a file
    #[command(after_help = LOAD_NOTES)]
    Load(RouteLoadArgs),
    /// Delete all routes that were set here
    Flush,
}

/// Which route.
#[derive(Debug, Args)]
pub(crate) struct RouteKeyArgs {
    /// The destinations
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: IpNet,
    /// The VRF that it is in [default: the default table]
    #[arg(long, value_name = "VRF")]
    pub(crate) vrf: Option<String>,
    /// Of several routes to the prefix the one with the lowest metric is used
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) metric: u32,
}

/// `weir route add`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["via", "discard"]))]
pub(crate) struct RouteAddArgs {
    /// Which route.
    #[command(flatten)]
    pub(crate) key: RouteKeyArgs,
    /// A next hop; several share the flows
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) via: Vec<IpAddr>,
    /// The interface that the next hops are behind [default: the one whose subnet has them]
    #[arg(long, value_name = "INTERFACE", requires = "via")]
    pub(crate) interface: Option<String>,
    /// The table in which routes to the next hops are looked up: default, or a VRF
    #[arg(
        long,
        value_name = "VRF",
        requires = "via",
        conflicts_with = "interface"
    )]
    pub(crate) lookup: Option<String>,
    /// MPLS labels to push, outermost first: 100,200
    #[arg(long, value_name = "LABELS", requires = "via", value_delimiter = ',')]
    pub(crate) labels: Vec<u32>,
    /// Drop packets
    #[arg(long, value_name = "HOW")]
    pub(crate) discard: Option<HowDiscarded>,
}

/// What becomes of packets that are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HowDiscarded {
    /// Nothing is sent
    Blackhole,
    /// The sender gets "destination unreachable"
    Unreachable,
    /// The sender gets "administratively prohibited"
    Prohibit,
}

/// `weir route delete`.
#[derive(Debug, Args)]
pub(crate) struct RouteDeleteArgs {
    /// Which route.
    #[command(flatten)]
    pub(crate) key: RouteKeyArgs,
}

/// `weir route load`.
#[derive(Debug, Args)]
pub(crate) struct RouteLoadArgs {
    /// The file; - = standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Delete the routes that were set here before and are not in the file
    #[arg(long)]
    pub(crate) replace: bool,
}
