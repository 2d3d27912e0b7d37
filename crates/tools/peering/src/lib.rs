//! BGP policy generated from one YAML section and a snapshot of public data, and tested before it runs.
//!
//! | module | what |
//! |---|---|
//! | [`model`] | the `peering:` section: exchanges, neighbours, relations, limits |
//! | [`resolve`], [`peeringdb`] | the section completed by PeeringDB: addresses, LANs, limits, AS-SETs |
//! | [`router`] | the section against the router's own configuration |
//! | [`snapshot`] | IRR prefix sets and RPKI payloads in a folder; nothing here uses the network |
//! | [`policy`] | the policy as a pure function: what happens to a route from a neighbour, and why |
//! | [`bird`] | the same policy as BIRD 2 configuration |
//! | [`frr`] | the same policy as configuration of FRR, with its limits |
//! | [`cases`] | policy cases of the user, run against the generated filters in a BIRD without sessions |
//! | [`birdc`] | BIRD's control socket: sessions and routes of the running daemon |
//! | [`plan`] | what a new configuration changes, routes with another verdict included |
//! | [`apply`] | changes of the running BIRD under guards, confirmed or undone |
//! | [`fetch`] | the snapshot from public sources: the only part that uses the network |
//! | [`outputs`] | files for other programs from the same data |
//! | [`report`] | what needs attention: the section, PeeringDB and the daemon compared |
//! | [`import`] | kees' and pathvector's files as a section |
//! | [`glass`] | the looking glass: routes and reasons over HTTP, read only |
//! | [`prefixes`], [`traffic`] | values by prefix, measured bytes by destination |
//!
//! Building is pure: the same YAML and the same snapshot give the same bytes. What the snapshot lacks is an
//! error and never an open filter.

#![forbid(unsafe_code)]

pub mod apply;
pub mod bird;
pub mod birdc;
pub mod cases;
pub mod fetch;
pub mod frr;
pub mod glass;
pub mod import;
pub mod model;
pub mod outputs;
pub mod peeringdb;
pub mod plan;
pub mod policy;
pub mod prefixes;
pub mod report;
pub mod resolve;
pub mod router;
pub mod snapshot;
pub mod traffic;

pub use ipnet::IpNet;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong, with its line where there is one.
        reason: String,
    },
    /// The settings contradict each other or the snapshot; each finding is one line.
    #[error("{}", .0.join("\n"))]
    Findings(Vec<String>),
    /// It cannot be done now, or not without a person's consent.
    #[error("{0}")]
    Refused(String),
    /// BIRD could not be run, or refused the configuration.
    #[error("bird: {0}")]
    Bird(String),
}

/// Reads a file as text.
pub(crate) fn read(path: &std::path::Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })
}
