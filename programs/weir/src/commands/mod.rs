//! Commands that work by themselves, a file each.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config_apply;
pub(crate) mod config_check;
pub(crate) mod config_file;
pub(crate) mod config_history;
pub(crate) mod config_plan;
pub(crate) mod demo;
pub(crate) mod demo_bgp;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod flow_decode;
pub(crate) mod lab;
mod listen;
pub(crate) mod man;
pub(crate) mod monitor;
pub(crate) mod pcap;
pub(crate) mod peering;
pub(crate) use peering::fib_routes;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod set;
pub(crate) mod sflow_decode;
pub(crate) mod xdp;
