//! LACP: which links of a bond carry frames, as both ends agree (IEEE 802.1AX-2020 clause 6).
//!
//! Pure code: what the far end said and what time it is come in, PDUs to be sent and what each link may do come out. No
//! thread, no clock, no socket. The control thread owns an [`Aggregate`] for each bond, tells it of links
//! ([`Aggregate::set_enabled`]) and of PDUs ([`Aggregate::heard`]), and lets time pass ([`Aggregate::tick`], ten
//! times a second).
//!
//! An aggregate is one aggregator with its ports, each with the four machines of 6.4: receive, periodic
//! transmission, selection, mux (the one of independent control: collecting before distributing). All ports have one
//! key, and so one aggregate: the links to *one* partner system and key are chosen, those that lead elsewhere wait
//! until nothing is left of it. A link whose far end does not speak LACP is never chosen.
//!
//! Nothing that a PDU says can do more than change the record of the far end on its own port: every field is
//! compared or stored, no length or count comes from outside.

#![forbid(unsafe_code)]

mod aggregate;
mod port;

pub use aggregate::{Aggregate, PortStatus, Settings};
pub use port::{Counters, Mux, Receive};
