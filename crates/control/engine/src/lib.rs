//! The assembly: a router from a configuration.
//!
//! [`Router::start`] makes the pool, the tables, the workers and the agent, and starts the control
//! thread; [`Router::apply`] brings it to a configuration, step by step, also at start-up. The API is
//! answered from here ([`weir_api::Router`] is implemented for it). [`Router::stop`] takes it all down
//! in order and tells the final balance.
//!
//! Threads: the workers (see `worker.rs`), the control thread (events from workers, neighbours, links),
//! the agent, and whoever calls the methods here. One lock guards the control side; no worker ever
//! takes it.

#![forbid(unsafe_code)]

mod advertise;
mod api_routes;
mod apply;
mod ask;
mod bgp;
mod bonds;
mod bridges;
mod capture;
mod changes;
mod clock;
mod control;
mod convergence;
mod cores;
mod dad;
mod dry_run;
mod fib_views;
mod filters;
mod flow_views;
mod gone;
mod handle;
mod health;
mod idle;
mod index;
mod ipfix;
mod labels;
mod links;
mod linux;
mod linux_views;
mod management;
mod memif;
mod memory;
mod neighbors;
mod objects;
mod policers;
mod ports;
mod pseudowires;
mod publish;
mod recursion;
mod router;
mod router_path;
mod routing;
mod sflow;
mod sflow_reports;
mod sflow_views;
mod sub_interfaces;
mod taps;
mod trace;
mod trial;
mod tunnels;
mod views;
mod waker;
mod why;
mod work;
mod worker;

pub use apply::{Applied, ApplyError};
pub use changes::{Companion, CompanionControl, Startup, StartupError};
pub use management::use_of as machine_use_of;
pub use publish::Stall;
pub use router::{AccessControl, LogControl, Options, Pulse, Router, StartError};
pub use trial::Trial;
