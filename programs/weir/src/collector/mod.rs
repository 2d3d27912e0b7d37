//! What `weir sflow decode` does with datagrams besides printing them.
//!
//! * `destinations`: UDP sockets that something is passed on to.
//! * `packets`: sampled packets, discarded ones and whole datagrams as a pcap file.
//! * `render`: what a ledger of agents knows, as tables and as JSON.

mod destinations;
mod packets;
pub(crate) mod render;

pub(crate) use destinations::Destinations;
pub(crate) use packets::Packets;
