//! The nodes: one file a node, its name the file's name and its counters' name.
//!
//! A packet's way through them, in the order in which the graph runs them:
//!
//! ```text
//! eth-input ─┬─ (cross connect) ────────────────────────────────────────────► port-tx
//! interface- │
//! input ─────┼─ bridge ── (one member or many) ──────────────────────────────► port-tx
//!            ├─ arp-input ── reply ──────────────────────────────────────────► port-tx
//!            └─ ip4-input ── ip4-lookup ─┬─ ip4-rewrite ─┬───────────────────► port-tx
//!                               ▲        │       ▲       └─ ip4-fragment ─┐
//!                               │        │       └────────────────────────┘
//!                               │        ├─ ip4-local ── echo reply ─┐
//!                               │        ├─ ip4-glean ── (held) ─────┤
//!                               └────────┴─ icmp4-error ─────────────┘
//! ```
//!
//! IPv6 has nodes of its own, beside these and alike:
//!
//! ```text
//! eth-input ─── ip6-input ─┬─ ip6-lookup ─┬─ ip6-rewrite ────────────────────► port-tx
//!                          │      ▲       ├─ ip6-glean ─── (held) ────────────┤
//!                          │      │       ├─ icmp6-error ─────────────────────┤
//!                          │      │       │                                   │
//!                          └──────┴─ ip6-local ─┬─ echo reply ────────────────┤
//!                                               └─ nd-input ─ advertisement ──┘
//! ```
//!
//! Labelled packets have a way of their own, which meets IPv4's where labels come on and off:
//!
//! ```text
//! eth-input ─── mpls-input ── mpls-lookup ─┬─ (swap, penultimate hop popping) ──► port-tx
//!                                 ▲        ├─ mpls-glean ── (held)
//!                                 │        ├─ ip4-input, ip4-lookup (deaggregation)
//!                                 ├────────┼─ mpls-fragment
//!                                 └────────┴─ mpls-error ── ip4-lookup
//! ip4-lookup ── ip4-rewrite ── mpls-push ───────────────────────────────────────► port-tx
//! ```
//!
//! A label may be a pseudowire's: mpls-lookup takes it off, and pseudowire-input takes in the frame under it, as
//! interface-input would. What leaves by a pseudowire passes pseudowire-output, which puts the labels on.
//!
//! Plain IPv4 goes from eth-input straight to ip4-lookup: ip4-input's check is made on the way. Only
//! what is odd (options, chains, anything wrong) passes through ip4-input itself.
//! Mostly it even leaves from eth-input, all in one pass (`ip4_steps.rs`). So does plain IPv6, but for that.
//!
//! What leaves by a sub-interface, from whichever node, passes sub-interface-output, which puts the tags
//! on, and leaves by the parent. What comes in by one is distinguished by its tags and taken in at
//! eth-input; interface-input does the same for the frames that other nodes find inside of packets.
//!
//! The routed side of a bridge domain, a BVI, is the same: bvi-output puts what is routed out of it into the
//! domain, and bvi-input takes in what the bridge has for it.
//!
//! What comes in by a member of a bond goes from eth-input to bond-input and back, then as the bond's; LACP goes to
//! lacp-input. What leaves by a bond passes bond-output, behind sub-interface-output, which chooses the member.
//!
//! On interfaces that ask for it, ip4-urpf and ip6-urpf stand before the lookup, behind the access lists.
//!
//! What comes in for UDP port 4789 of this router goes from ip4-local or ip6-local to vxlan-input and is, from interface-input
//! on, a frame that came in by a tunnel; what leaves by a tunnel passes vxlan-output and is looked up once more.
//!
//! Modules import each other in a circle only where they are one concept: `features` and the nodes that it lists; `ip4_glean` and
//! `ip6_glean`, since a next hop may be of the other family; `eth_input`, `mpls`, `pseudowire_input` and `ip4_steps`, since packets
//! get labels and lose them, and frames that come out of pseudowires are taken in as those of ports.
//!
//! [`Tables`] is what they read, [`Event`] what they tell the control side. [`graph`] builds the
//! graph with the nodes in order. No node allocates, locks, or looks at the clock.

#![forbid(unsafe_code)]

mod acl_input;
mod acl_output;
mod arp_input;
mod arp_termination;
mod bond_hash;
mod bond_input;
mod bond_output;
mod bridge;
mod bridge_domain;
mod bvi_input;
mod bvi_output;
mod classify;
mod ecn;
mod eth_input;
mod features;
mod filter;
mod flow_hash;
mod flow_path;
mod forwarding_path;
mod frame;
mod icmp4_error;
mod icmp6_error;
mod icmp_limit;
mod interface_input;
mod ip4_fragment;
mod ip4_glean;
mod ip4_input;
mod ip4_local;
mod ip4_lookup;
mod ip4_options;
mod ip4_rewrite;
mod ip4_steps;
mod ip4_urpf;
mod ip6_glean;
mod ip6_input;
mod ip6_local;
mod ip6_lookup;
mod ip6_options;
mod ip6_rewrite;
mod ip6_steps;
mod ip6_urpf;
mod lacp_input;
mod linux_punt;
mod mpls;
mod nd_input;
mod packet_sum;
mod policer;
mod port_tx;
mod pseudowire_input;
mod pseudowire_output;
mod recent;
mod sub_interface_output;
mod tables;
mod tagging;
mod vector_loops;
mod vxlan_input;
mod vxlan_output;

pub use arp_termination::Hosts;
pub use bridge_domain::{
    BridgeCounters, BridgeDomain, BridgeSettings, BridgeSums, Member, Meters, StormLimits,
};
pub use features::{FEATURES, FeatureArc, FeatureSpec, next_name, nodes_of, order_of};
pub use filter::{Filter, FilterCounters, FilterList, Fragments};
pub use flow_hash::{flow_hash4, flow_hash6};
pub use flow_path::{FlowEnds, FlowPath};
pub use forwarding_path::{ForwardingPath, Hop, LabelStack, OuterTag};
pub use icmp_limit::IcmpLimit;
pub use ip4_glean::hold_key;
pub use mpls::flow_hash_mpls;
pub use policer::{Policer, PolicerCounters, PolicerSums, Policers};
pub use port_tx::{PortTx, transmit};
pub use tables::{Entry, Event, Tables};

use weir_graph::GraphBuilder;

/// Names of the nodes that the engine speaks to.
pub mod names {
    /// Where packets from ports enter.
    pub const ETH_INPUT: &str = "eth-input";
    /// Where packets that the control side made and that need a route enter.
    pub const IP4_LOOKUP: &str = "ip4-lookup";
    /// Where frames enter that came in by an interface which no driver feeds.
    pub const INTERFACE_INPUT: &str = "interface-input";
    /// The same for IPv6.
    pub const IP6_LOOKUP: &str = "ip6-lookup";
    /// The stage before the driver.
    pub const PORT_TX: &str = "port-tx";
}

/// The nodes that see packets off by an interface which is no port.
const EXITS: &[&str] = &[
    "sub-interface-output",
    "bvi-output",
    "bond-output",
    "pseudowire-output",
    "vxlan-output",
];
/// The graph of one worker, nodes in the order of a packet's way, taps not yet added.
#[must_use]
pub fn graph(icmp: IcmpLimit) -> GraphBuilder<Tables> {
    GraphBuilder::default()
        .node(eth_input::EthInput::default())
        .node(interface_input::InterfaceInput::default())
        .node(bvi_input::BviInput)
        .node(bond_input::BondInput)
        .node(lacp_input::LacpInput::default())
        .node(bridge::Bridge::default())
        .node(arp_input::ArpInput::default())
        .node(ip4_input::Ip4Input)
        .node(mpls::MplsInput)
        .node(mpls::MplsLookup)
        .node(mpls::MplsGlean::default())
        .node(mpls::MplsError::new(icmp))
        .node(mpls::MplsFragment::default())
        .node(pseudowire_input::PseudowireInput::default())
        .node(policer::PolicerInput)
        .node(acl_input::AclInput::default())
        .node(ip4_urpf::Ip4Urpf::default())
        .node(ip4_lookup::Ip4Lookup::default())
        .node(ip4_local::Ip4Local)
        .node(linux_punt::LinuxPunt::default())
        .node(ip4_glean::Ip4Glean::default())
        .node(icmp4_error::Icmp4Error::new(icmp))
        .node(ip4_rewrite::Ip4Rewrite)
        .node(ip4_fragment::Ip4Fragment::default())
        .node(mpls::MplsPush)
        .node(pseudowire_output::PseudowireOutput::default())
        .node(bvi_output::BviOutput)
        .node(sub_interface_output::SubInterfaceOutput)
        .node(vxlan_output::VxlanOutput)
        .node(vxlan_input::VxlanInput)
        .node(ip6_input::Ip6Input)
        .node(ip6_urpf::Ip6Urpf::default())
        .node(ip6_lookup::Ip6Lookup::default())
        .node(ip6_local::Ip6Local)
        .node(nd_input::NdInput::default())
        .node(ip6_glean::Ip6Glean::default())
        .node(icmp6_error::Icmp6Error::new(icmp))
        .node(ip6_rewrite::Ip6Rewrite)
        .node(bond_output::BondOutput::default())
        .node(acl_output::AclOutput::default())
        .node(policer::PolicerOutput)
        .stage(port_tx::SPEC)
        .outputs(&features::OUTPUTS)
        .common_nexts(&features::COMMON)
        .inner(&["eth-input", "bond-input"], &["interface-input"], EXITS)
}

#[cfg(test)]
mod tests;
