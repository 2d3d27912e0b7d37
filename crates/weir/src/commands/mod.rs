//! Commands that work by themselves, a file each.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config_check;
pub(crate) mod demo;
pub(crate) mod man;
pub(crate) mod monitor;
pub(crate) mod run;
pub(crate) mod sflow_decode;
mod udp_listen;
