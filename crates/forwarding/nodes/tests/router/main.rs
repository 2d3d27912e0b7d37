//! The nodes as one router: whole frames in, whole frames out, never through a node's private parts.

mod acl;
mod arp;
mod bond;
mod bridge;
mod chains;
mod cross;
mod forward;
mod fragment;
mod hostile;
mod icmp;
mod icmp6;
mod ip6;
mod jumbo;
mod mpls;
mod nd;
mod one_pass;
mod pseudowire;
mod reasons;
mod rig;
mod sight;
mod taps;
mod urpf;
mod vlan;
mod vpn;
mod vxlan;
mod way;
