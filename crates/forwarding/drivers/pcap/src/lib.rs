//! pcap: capture files, and a port over two of them.
//!
//! [`mod@ng`] writes pcapng, for live captures. [`mod@file`] reads pcap and pcapng and writes pcap; `weir sflow decode` uses it too. [`PcapPort`]
//! receives the frames of one file, as fast as they are asked for, and writes what is sent to another.
//!
//! Files are slow and may wait for a disk: such a port is for tests, replays and recordings, not for
//! a router in service.

#![forbid(unsafe_code)]

pub mod file;
pub mod ng;
mod port;
mod rx;
mod tx;

pub use port::PcapPort;
