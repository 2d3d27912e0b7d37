//! Linux as a source of routes: the kernel's tables by rtnetlink.
//!
//! * [`decode`] turns messages of the kernel into updates. It knows no socket, and is tested with recorded ones.
//! * [`feed`] is the thread that listens, and reads whole tables when messages were lost.
//!
//! What is done with the updates is the matter of `weir-engine`, and TAPs are made by `weir-tap`.

#![forbid(unsafe_code)]

pub mod decode;
pub mod feed;
