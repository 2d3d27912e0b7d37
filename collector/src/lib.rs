//! weir-collector: receives sFlow, IPFIX and NetFlow, stores flows as Parquet, answers queries and serves a console.
//!
//! ```text
//! receive (a thread a port) -> decode -> enrich -> store (one thread: WAL, live window, sealing) -> Parquet files
//!                                                    query (DataFusion over files + rows in memory) -> API, console
//! ```
//!
//! Every datagram is accounted for in [`account`]. Nothing from outside panics or grows without bound.

pub mod account;
pub mod alerts;
pub mod api;
pub mod background;
pub mod bench;
pub mod check;
pub mod config;
pub mod decode;
pub mod doctor;
pub mod enrich;
pub mod import;
pub mod live;
pub mod oidc;
pub mod query;
pub mod receive;
pub mod routers;
pub mod row;
pub mod run;
pub mod store;
pub mod users;
