//! `weir show` and `weir monitor`: everything that looks.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::TraceShowArgs;
use super::values::duration;

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  weir show interface                  all interfaces
  weir show interface wan --json       one of them, as JSON
  weir show runtime --watch 2          again every two seconds, until Ctrl-C
  weir show ip fib 192.0.2.7           the route that packets to 192.0.2.7 take, down to the wire
  weir show ip6 fib table red          the IPv6 routes of the VRF red
  weir --socket /tmp/b.sock show run   another router on this machine";

pub(super) const MONITOR_EXAMPLES: &str = "\
Examples:
  weir monitor interface               packets and bits per second, until Ctrl-C
  weir monitor interface wan --interval 500ms --count 10
  weir monitor events                  until Ctrl-C
  weir monitor events link --interface wan --json";

/// `weir show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Show it again every so often, until Ctrl-C
    #[arg(short, long, global = true, value_name = "SECONDS", value_parser = duration)]
    pub(crate) watch: Option<Duration>,
    /// What to show.
    #[command(subcommand)]
    pub(crate) what: Show,
}

/// Whose features are shown.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowFeature {
    /// Those of an interface, or of all
    Interface(OneInterface),
}

/// What can be shown.
#[derive(Debug, Subcommand)]
pub(crate) enum Show {
    /// Interfaces: state, packets, bytes, drops
    #[command(visible_aliases = ["interfaces", "int"], args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
    Interface(ShowInterfaceArgs),
    /// Ports: driver, mode, queues, and what driver, kernel and device count
    #[command(visible_aliases = ["hardware-interfaces", "hw"])]
    Hardware(ShowHardwareArgs),
    /// Which worker serves which receive queue
    RxPlacement(OneInterface),
    /// Features in the order in which packets pass them: `show feature interface NAME`; what policers counted
    #[command(subcommand, visible_alias = "features", disable_help_subcommand = true)]
    Feature(ShowFeature),
    /// Pseudowires: labels, control word, and the ways to the far ends
    Pseudowire(OneInterface),
    /// Bonds: mode, and which members carry frames
    Bond(OneInterface),
    /// Where LACP stands on the members of bonds: both ends and their states
    Lacp(OneInterface),
    /// Linux: the TAPs of interfaces, the kernel's routes, packets for services of Linux
    #[command(disable_help_subcommand = true)]
    Linux(ShowLinuxArgs),
    /// The last lines of the log
    Log(ShowLogArgs),
    /// VXLAN tunnels: `show vxlan tunnel`
    #[command(subcommand, disable_help_subcommand = true)]
    Vxlan(ShowVxlan),
    /// Shared-memory connections: socket, role, peer, rings, why the last peer went
    Memif(OneInterface),
    /// Bridge domains: members, settings, stations learned and moved, frames flooded
    #[command(visible_aliases = ["bridge-domains", "bd"])]
    BridgeDomain(OneBridge),
    /// Stations of bridge domains: behind which member, since when silent
    L2fib(OneBridge),
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
    #[command(visible_aliases = ["routes", "fib"], disable_help_subcommand = true)]
    Route(ShowRouteArgs),
    /// Where paths end: neighbours and all else, and how many groups lead there
    #[command(visible_aliases = ["adj", "adjacencies"])]
    Adjacency(WhichAdjacency),
    /// Access lists: what interfaces are bound to, and what each term met
    #[command(visible_aliases = ["acls", "access-list"])]
    Acl(ShowAclArgs),
    /// How full packet memory is
    #[command(visible_alias = "buf")]
    Buffers,
    /// The sFlow sampler and agent: settings, collectors, samples, drop notifications
    Sflow(ShowSflowArgs),
    /// Flows: what the meter counts; `table`, `top`, `exporter`, `template` tell more
    #[command(visible_aliases = ["flows", "ipfix"], args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
    Flow(ShowFlowArgs),
    /// What traces recorded (as `weir trace show`)
    Trace(TraceShowArgs),
    /// Captures that are under way
    #[command(visible_alias = "captures")]
    Pcap,
    /// The balance of packets since the router started
    Totals,
    /// The running configuration
    #[command(visible_alias = "running-config")]
    Config,
    /// What happens, as it happens (as `weir monitor events`)
    Events(MonitorEventsArgs),
    /// Who answers, and since when
    Version,
    /// Whether all works that the configuration asks for, and what does not, with the reason
    System,
    /// Labels (MPLS): `show mpls fib [LABEL]`
    #[command(subcommand, disable_help_subcommand = true)]
    Mpls(ShowMpls),
    /// IPv4 in VPP's spelling: `show ip fib`, `show ip neighbors`
    #[command(subcommand, hide = true, disable_help_subcommand = true)]
    Ip(ShowIp),
    /// The same of IPv6: `show ip6 fib`, `show ip6 neighbors`
    #[command(subcommand, hide = true, disable_help_subcommand = true)]
    Ip6(ShowIp),
}

/// `weir show mpls`.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowMpls {
    /// Incoming labels and what is done with them
    Fib(ShowMplsFibArgs),
}

/// `weir show mpls fib`.
#[derive(Debug, Args)]
pub(crate) struct ShowMplsFibArgs {
    /// Only this label
    #[arg(value_name = "LABEL", value_parser = clap::value_parser!(u32).range(0..=1_048_575))]
    pub(crate) label: Option<u32>,
}

/// `weir show linux`.
#[derive(Debug, Args)]
pub(crate) struct ShowLinuxArgs {
    /// Which part; all of them when absent.
    #[command(subcommand)]
    pub(crate) what: Option<ShowLinux>,
}

/// The parts of `weir show linux`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ShowLinux {
    /// The TAPs of interfaces
    Interface,
    /// How the kernel's routes are read
    Feed,
    /// How the routes here compare with the kernel's
    Audit,
    /// Packets for services of Linux, by class
    Punt,
}

/// `weir show interface`.
#[derive(Debug, Args)]
pub(crate) struct ShowInterfaceArgs {
    /// Only this interface, in detail
    #[arg(value_name = "INTERFACE")]
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

/// An optional bridge domain.
#[derive(Debug, Args)]
pub(crate) struct OneBridge {
    /// Only this bridge domain
    #[arg(value_name = "BRIDGE-DOMAIN")]
    pub(crate) bridge: Option<String>,
}

/// An optional interface.
#[derive(Debug, Args)]
pub(crate) struct OneInterface {
    /// Only of this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

/// `weir show log`.
#[derive(Debug, Args)]
pub(crate) struct ShowLogArgs {
    /// At most so many lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Only lines of this level and above
    #[arg(long, value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub(crate) level: Option<String>,
}

/// `weir show adjacency`.
#[derive(Debug, Args)]
pub(crate) struct WhichAdjacency {
    /// Only those of this interface, or the one with this number
    #[arg(value_name = "INTERFACE|NUMBER")]
    pub(crate) which: Option<String>,
}

/// `weir show hardware`.
#[derive(Debug, Args)]
pub(crate) struct ShowHardwareArgs {
    /// Only the port of this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Also counters that are 0
    #[arg(short, long, visible_alias = "verbose")]
    pub(crate) all: bool,
}

/// `weir show errors`.
#[derive(Debug, Args)]
pub(crate) struct ShowErrorsArgs {
    /// Only packets that came in by this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Each worker's counters apart
    #[arg(long)]
    pub(crate) by_worker: bool,
}

/// `weir show sflow`.
#[derive(Debug, Args)]
pub(crate) struct ShowSflowArgs {
    /// Only this part, in detail
    #[arg(value_name = "PART")]
    pub(crate) part: Option<SflowPart>,
    /// Only this interface's part: of `interface` and `drops`
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

/// A part of what `weir show sflow` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SflowPart {
    /// Sampled interfaces: rates, numbers, pools and samples, also by worker
    #[value(alias = "interfaces")]
    Interface,
    /// Collectors: where they are, how they are reached, what they got
    #[value(alias = "collectors")]
    Collector,
    /// Dropped packets by interface, node and reason, and how many of them were reported
    #[value(alias = "drop")]
    Drops,
}

/// `weir show acl`.
#[derive(Debug, Args)]
pub(crate) struct ShowAclArgs {
    /// Only this access list
    #[arg(value_name = "ACL")]
    pub(crate) acl: Option<String>,
    /// Only what this interface is bound to, and what was met there
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

/// `weir show route`.
#[derive(Debug, Args)]
pub(crate) struct ShowRouteArgs {
    /// Only the route of this prefix, or the one that packets to this address take
    #[arg(value_name = "PREFIX|ADDRESS")]
    pub(crate) prefix: Option<String>,
    /// Only routes of this table
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// VPP's further words.
    #[command(subcommand)]
    pub(crate) aspect: Option<RouteAspect>,
}

/// `weir show route …` as VPP spells it.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(crate) enum RouteAspect {
    /// How many routes there are, and how much memory they take
    Summary,
    /// Only routes of one table
    Table(RouteTableArgs),
}

/// `weir show ip fib table …`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct RouteTableArgs {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// Only the route of this prefix, or the one that packets to this address take
    #[arg(value_name = "PREFIX|ADDRESS")]
    pub(crate) prefix: Option<String>,
}

/// `weir show flow`.
#[derive(Debug, Args)]
pub(crate) struct ShowFlowArgs {
    /// What of it.
    #[command(subcommand)]
    pub(crate) aspect: Option<FlowAspect>,
}

/// `weir show flow …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FlowAspect {
    /// Flows that are under way
    Table(FlowTableArgs),
    /// Flows with the most octets a second, or packets, or sums of them
    Top(FlowTopArgs),
    /// Collectors: what was sent, what was not, and why
    Exporter,
    /// Templates: record sets and their elements
    Template,
}

/// Which flows.
#[derive(Debug, Args)]
pub(crate) struct FlowTableArgs {
    /// Only from or to this prefix or address
    #[arg(long, value_name = "PREFIX|ADDRESS")]
    pub(crate) prefix: Option<String>,
    /// Only in or out by this interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Only with this source or destination port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Only of this IP protocol: `tcp`, `udp`, `icmp`, `icmp6`, `sctp`, or a number
    #[arg(long, value_name = "PROTOCOL", value_parser = ip_protocol)]
    pub(crate) protocol: Option<u8>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) limit: u32,
}

/// The number of an IP protocol.
fn ip_protocol(text: &str) -> Result<u8, String> {
    match text {
        "icmp" => Ok(1),
        "tcp" => Ok(6),
        "udp" => Ok(17),
        "icmp6" => Ok(58),
        "sctp" => Ok(132),
        number => number
            .parse()
            .map_err(|_| "tcp, udp, icmp, icmp6, sctp, or a number from 0 to 255".to_owned()),
    }
}

/// `weir show flow top`.
#[derive(Debug, Args)]
pub(crate) struct FlowTopArgs {
    /// Sums of flows that have this in common, instead of flows
    #[arg(long, value_name = "WORD", value_enum)]
    pub(crate) group: Option<FlowGroupWord>,
    /// Groups of addresses are prefixes of these lengths: of IPv4 and IPv6, as `24,48`
    #[arg(long, value_name = "IPV4,IPV6", requires = "group")]
    pub(crate) lengths: Option<String>,
    /// What they are compared by
    #[arg(long, value_name = "WORD", value_enum, default_value_t = FlowBy::Octets)]
    pub(crate) by: FlowBy,
    /// Which flows.
    #[command(flatten)]
    pub(crate) which: FlowTableArgs,
}

/// What flows are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowBy {
    /// Octets a second
    Octets,
    /// Packets a second
    Packets,
}

/// What flows of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowGroupWord {
    /// The source address, or its prefix
    Source,
    /// The destination address, or its prefix
    Destination,
    /// Either address, or its prefix
    Host,
    /// The IP protocol
    Protocol,
    /// The interface by which they come in
    Input,
    /// The interface by which they leave
    Output,
    /// What became of them: forwarded, or why they were dropped
    Status,
}

impl FlowGroupWord {
    /// As the API has it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Host => "host",
            Self::Protocol => "protocol",
            Self::Input => "input",
            Self::Output => "output",
            Self::Status => "status",
        }
    }
}

/// `weir show vxlan`.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowVxlan {
    /// VXLAN tunnels: ends, segment, where their frames go, and the route to the far end
    #[command(visible_alias = "tunnels")]
    Tunnel(OneInterface),
}

/// `weir show ip`.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowIp {
    /// Neighbours on the links
    #[command(visible_aliases = ["neighbor", "neighbours"])]
    Neighbors(OneInterface),
    /// Routes, their groups, their paths and their adjacencies
    #[command(visible_alias = "route", disable_help_subcommand = true)]
    Fib(ShowRouteArgs),
}

/// `weir monitor`.
#[derive(Debug, Subcommand)]
pub(crate) enum Monitor {
    /// Packets and bits per second of interfaces
    #[command(visible_aliases = ["interfaces", "int"])]
    Interface(MonitorInterfaceArgs),
    /// What happens: log, changes of the configuration, links
    Events(MonitorEventsArgs),
}

/// `weir monitor events`.
#[derive(Debug, Args)]
pub(crate) struct MonitorEventsArgs {
    /// Only of these kinds [default: log, config and link]
    #[arg(value_name = "TOPIC")]
    pub(crate) topics: Vec<EventTopic>,
    /// Counters and links of this interface only
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// End after so many events
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventTopic {
    /// Lines of the log
    Log,
    /// Changes of the configuration
    Config,
    /// Links that go up or down
    Link,
    /// Counters of interfaces, every second
    Counters,
}

/// `weir monitor interface`.
#[derive(Debug, Args)]
pub(crate) struct MonitorInterfaceArgs {
    /// Only this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Time between two pictures
    #[arg(short, long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// End after so many pictures
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
}
