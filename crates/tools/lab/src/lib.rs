//! The lab: generates traffic, measures what a device makes of it, and reports.
//!
//! - [`profile`]: a traffic profile as a value, from YAML or the command line.
//! - [`stream`]: writes the packets of a stream; [`pace`]: when they are due.
//! - [`port`]: ports of all drivers; [`run`]: the loop that sends and receives.
//! - [`offline`]: a profile into a capture file, byte for byte the same for a seed.
//!
//! The loop runs on one thread and allocates nothing per packet. Nothing here prints.

#![forbid(unsafe_code)]

mod answer;
mod attribution;
mod clock;
pub mod counters;
pub mod cpu;
pub mod device;
pub mod energy;
mod error;
pub mod mlr;
pub mod ndr;
mod noise;
pub mod offline;
pub mod pace;
mod packet;
pub mod port;
pub mod profile;
mod raw;
pub mod report;
pub mod result;
pub mod run;
mod sequence;
pub mod simulated;
pub mod stamp;
pub mod stream;
pub mod units;

pub use error::LabError;

/// A profile with every field of a tagged UDP packet varying: the generator's hardest case, used to
/// measure it.
pub const FIELDS: &str = "
streams:
  - rate: max
    size: 68
    ethernet: {source: '02:00:00:00:00:00-02:00:00:00:ff:ff', destination: '02:01:00:00:00:00-02:01:00:00:ff:ff'}
    vlan: {id: {from: 1, to: 4000, random: true}}
    ipv4: {source: {from: 10.0.0.0, to: 10.255.255.255, random: true}, destination: {from: 48.0.0.0, to: 48.255.255.255, random: true}, ttl: 32-64, dscp: {from: 0, to: 63, random: true}}
    udp: {source: {from: 1024, to: 65535, random: true}, destination: {from: 1024, to: 65535, random: true}}
";
