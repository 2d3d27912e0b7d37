//! IPFIX (RFC 7011), NetFlow version 9 (RFC 3954) and version 5: both ways.
//!
//! All three come to the same: a message has a header and sets; a set holds templates, or records that
//! one of the templates describes. A record is a row of fields, each an information element of IANA's
//! registry (or of an enterprise), in so many octets. NetFlow version 5 is read as if a template had
//! come with it.
//!
//! * [`elements`]: the registry, and how octets become values.
//! * [`template`]: what a record consists of.
//! * [`encode`] makes messages (the exporter); records are octets to it.
//! * [`decode`] reads them (a collector): remembers templates, follows sequence numbers, in bounded memory.
//! * [`flow`]: the few facts of a record that every flow has, whatever elements they came in.
//! * [`mod@print`] writes records as JSON, or as nfdump does.

mod bounded;
pub mod decode;
pub mod elements;
pub mod encode;
pub mod encode5;
pub mod flow;
mod forwarding_status;
pub mod print;
mod registry;
pub mod template;

pub use forwarding_status::forwarding_status_name;

/// The port of collectors, UDP and TCP (RFC 7011, 10.3.4 and 10.4.4).
pub const PORT: u16 = 4739;
/// The port of collectors that are spoken to in TLS (RFC 7011, 10.4.4 and 11).
pub const TLS_PORT: u16 = 4740;
/// Where NetFlow version 9 usually goes.
pub const NETFLOW_PORT: u16 = 2055;

/// Set of templates.
pub(crate) const TEMPLATE_SET: u16 = 2;
/// Set of options templates.
pub(crate) const OPTIONS_TEMPLATE_SET: u16 = 3;
/// The same in NetFlow version 9.
pub(crate) const TEMPLATE_SET_9: u16 = 0;
/// The same in NetFlow version 9.
pub(crate) const OPTIONS_TEMPLATE_SET_9: u16 = 1;
/// Sets from here on hold data, and have the number of their template.
pub const FIRST_DATA_SET: u16 = 256;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// NetFlow version 5: no templates.
    NetFlow5,
    /// NetFlow version 9.
    NetFlow9,
    /// IPFIX.
    Ipfix,
}

impl Version {
    /// The number in the header.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Version::NetFlow5 => 5,
            Version::NetFlow9 => 9,
            Version::Ipfix => 10,
        }
    }
}
