//! sFlow version 5 (sflow.org, `sflow_version_5.txt`): the values both directions share.
//!
//! A datagram is a header and a list of samples; a sample is a fixed part and a list of records.
//! Samples and records each carry a [`DataFormat`] and their length, so that who does not know one
//! can step over it. Everything is XDR (RFC 4506): big endian, in units of four bytes.
//!
//! * [`encode`] makes datagrams (the agent).
//! * [`capture`] finds them in recorded frames.
//! * [`decode`] reads them (the collector).
//! * [`records`] is the table of what stands in records, which both go by; [`structure`] says how such a
//!   table is written. [`reasons`] names why packets were discarded.
//! * [`version4`] makes version 5 of the datagrams of versions 2 and 4.
//! * [`packet`] reads the sampled headers in them.
//! * [`ledger`] keeps for each agent what was lost, and holds its samples against its counters.
//! * [`mod@print`] writes what was read as sflowtool does; [`decode_datagram_to`] is the whole way.
//!
//! The structures here are plain: they say what is on the wire and leave out what only one of the
//! two encodings of a sample (compact and expanded) has. `class` and `index`, `format` and `value`
//! are kept apart, as the expanded encoding has them.

pub mod capture;
mod cursor;
pub mod decode;
pub mod encode;
mod fragments;
pub mod ledger;
mod model;
pub mod packet;
pub mod print;
pub mod reasons;
pub mod records;
pub mod structure;
pub mod version4;

pub use model::*;
pub use print::decode_datagram_to;
pub use records::{
    EthernetCounters, ExtendedRouter, ExtendedSwitch, InterfaceCounters, LagCounters,
    SampledEthernet, SampledIpv4, SampledIpv6, VlanCounters,
};
