//! Linux as a source of routes: the kernel's tables by rtnetlink, and FRR's by its forwarding plane manager protocol.
//!
//! * [`decode`] turns messages of the kernel into updates. It knows no socket, and is tested with recorded ones.
//! * [`fpm`] is the thread that zebra connects to.
//! * [`protocol`] has the names of routing protocols.
//! * [`feed`] is the thread that listens, and reads whole tables when messages were lost.
//!
//! What is done with the updates is the matter of `weir-engine`, and TAPs are made by `weir-tap`.

#![forbid(unsafe_code)]

pub mod decode;
pub mod feed;
pub mod fpm;
pub mod protocol;
mod queue;
