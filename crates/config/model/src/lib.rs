//! The configuration of a router: one YAML file in, one typed value out, and the steps from one
//! value to another.
//!
//! What lives here does no input or output:
//!
//! - `check` reads the text of a file and gives a `Config`, or every error it has at once, each
//!   with its place, its key, what is wrong and what would be right; `check_system` holds a good
//!   file against the facts of the machine that the caller passes.
//! - `plan` compares the running configuration with the wanted one and gives the steps between;
//!   `Plan` is the same to be shown. `apply_to_model` does a step to a `Config`; the engine keeps
//!   its running configuration so.
//! - `to_yaml` writes the file that says a configuration, `diff` what differs between two.
//!
//! The file's keys stand in one table (`keys.rs`): types, ranges, defaults, examples, the reference
//! page, the JSON Schema and the order of what is written all come from there.

#![forbid(unsafe_code)]

mod access_list;
mod apply;
#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
mod bond;
mod bridge;
mod build;
#[cfg(test)]
mod cases;
mod changes;
mod check;
mod companion;
mod credentials;
mod device;
mod diagnostic;
mod diff;
pub mod document;
mod dump;
mod edit;
mod file;
mod findings;
mod ipfix;
mod keys;
mod linux;
mod memory;
mod model;
mod mpls;
mod plan;
mod pseudowire;
mod reference;
mod scalar;
mod schema;
mod section;
mod semantics;
mod services;
mod settings;
mod sflow;
mod step;
mod sub_interface;
mod subnets;
mod suggest;
mod synonyms;
mod system;
mod terms;
mod tree;
mod value;
mod vxlan;
mod walk;

pub use access_list::{
    AccessList, AclFragments, AddressPair, Binding, Family, Octets, Ports, PrefixList, Protocol,
    Scope, Term, TermAction,
};
pub use apply::{StepMisfit, apply_to_model};
pub use bond::{Bond, BondMode, LacpRate, LoadBalance};
pub use bridge::{Bridge, BridgeRole, BridgeSettings, SplitHorizon, StaticMac};
pub use check::{CheckOptions, Checked, check, check_bytes, check_with};
pub use credentials::{
    with_credentials_of, without_credentials, without_credentials_in, without_credentials_in_file,
};
pub use device::{Device, Memif, MemifRole, Stream, StreamProtocol, XdpMode};
pub use diagnostic::{Diagnostic, Excerpt, Severity};
pub use diff::diff;
pub use dump::to_yaml;
pub use edit::set_in_text;
pub use ipfix::{
    ELEMENTS as IPFIX_ELEMENTS, Ipfix, IpfixCollector, IpfixInterface, IpfixRecords, IpfixTls,
    IpfixTransport, IpfixVersion, MeterDirection, RATE_ELEMENTS, RECORD_SETS, SET_ELEMENTS,
};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use linux::{Linux, LinuxBmp, LinuxFpm, LinuxInterface, LinuxTap};
pub use memory::BufferPlan;
pub use model::{
    AdminState, Config, Interface, NeighborKey, Path, Police, Policer, RouteKey,
    RouterAdvertisements, Urpf, Via, Vrf, is_link_local,
};
pub use mpls::{DEFAULT_TABLE, LabelEntry, Mpls, TtlMode};
pub use plan::{Plan, PlannedStep, plan};
pub use pseudowire::{Pseudowire, PseudowireType};
pub use reference::reference;
pub use scalar::{Host, Ipv4Range, MacAddr, NotAValue, PortRange, Sha256};
pub use schema::schema;
pub use semantics::GENERATOR_MTU;
pub use settings::{
    Api, Buffers, History, Hugepages, Idle, Ip4, Listen, LogFormat, LogLevel, Logging, Metrics,
    Priority, Role, Tls, Token, Workers,
};
pub use sflow::{
    AgentCidr, Collector, DnsSd, Psample, Sflow, SflowAgent, SflowDirection, SflowEncoding,
    SflowInterface,
};
pub use step::{Phase, RestartChange, Step};
pub use sub_interface::{Encapsulation, LAST_VLAN, SubInterface, TagRewrite};
pub use subnets::{Subnets, link_local_subnet};
pub use system::{
    DeviceKind, Management, NamespaceObstacle, SocketObstacle, System, SystemDevice, check_system,
    namespaces_of,
};
pub use tree::Limits;
pub use value::{not_a_host, route_prefix_problem};
pub use vxlan::Vxlan;
