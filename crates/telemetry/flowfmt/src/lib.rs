//! Flow formats: how what was measured is written on the wire, and read back.
//!
//! * [`sflow`]: sFlow version 5, both ways. The agent of the router encodes it without allocating;
//!   `weir sflow decode` reads anybody's and prints it as sflowtool does.
//! * [`netflow5`]: NetFlow version 5 out of sFlow.
//! * [`ipfix`]: IPFIX, NetFlow versions 9 and 5, both ways. The exporter encodes it; `weir flow decode` reads
//!   anybody's and prints it as JSON or as nfdump does.
//!
//! Everything here is bytes in, values out, or the other way round: no sockets, no clocks, no threads.
//! What comes from outside is never trusted: a decoder answers with an error, it does not panic.

#![forbid(unsafe_code)]

pub mod ipfix;
pub mod netflow5;
pub mod sflow;
