//! Commands that work by themselves, a file each.

pub(crate) mod bench;
pub(crate) mod config_check;
pub(crate) mod demo;
pub(crate) mod run;
pub(crate) mod sflow_decode;
#[cfg_attr(not(test), expect(dead_code, reason = "for `sflow decode -l`, which waits for the decoder"))]
mod udp_listen;
