//! Measuring: taps on the hot side, and on the cold side those who report what they saw.
//!
//! * [`sampler`]: the sFlow tap. One packet in N, chosen at random; costs one subtraction a vector. What becomes
//!   of a packet that it chose is taken where its outcome is known.
//! * [`capture`]: the tap that copies packets for `weir pcap capture`; not attached, it costs nothing.
//! * [`discards`]: the tap that copies what is dropped, within a limit, for sFlow's notifications of discards.
//! * [`meter`]: the tap that meters flows. [`flows`]: its table. [`exporter`]: makes IPFIX and NetFlow 9 of its records.
//! * [`agent`]: reads the samplers' rings and makes sFlow version 5 datagrams.
//! * [`router_path`]: how datagrams leave through the router itself.
//!
//! The two meet in bounded rings only. An agent that is slow, stuck or dead makes samples vanish,
//! counted; no packet waits for it.

#![forbid(unsafe_code)]

pub mod agent;
pub mod capture;
mod discard_code;
pub mod discards;
pub mod exporter;
pub mod flows;
mod forwarding_status;
pub mod meter;
pub mod random;
pub mod router_path;
pub mod sampler;

pub use discard_code::discard_code;
pub use forwarding_status::forwarding_status;
