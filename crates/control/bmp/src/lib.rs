//! BGP Monitoring Protocol (RFC 7854): what BGP daemons know of routes, for those who report flows.
//!
//! A daemon connects by TCP and sends the routes of its peers, with AS path, communities and local preference. They are kept
//! by prefix and peer ([`routes::Routes`]). Whoever reports a packet asks for the path of its route, by the prefix and
//! the next hop that the forwarding table has. Nothing here changes forwarding.
//!
//! Several daemons may be connected. What is kept is bounded; what does not fit is counted. A stream that cannot be
//! read ends its session, whose routes go.
//!
//! * [`routes`]: the routes, and which of a prefix's a packet took.
//! * [`message`]: from messages to changes of routes.
//! * [`server`]: sessions and their thread.

#![forbid(unsafe_code)]

pub mod message;
pub mod routes;
pub mod server;

pub use routes::{BgpPath, Routes};
pub use server::{Bmp, BmpSettings, SessionStatus, Status};
