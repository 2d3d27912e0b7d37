//! TAP ports: a network device of Linux whose cable ends in the router.
//!
//! What Linux sends out of the device arrives here, what is sent here Linux receives. The device is
//! made when the port is opened, in the network namespace of the calling thread, and is gone with the
//! last descriptor: when the port closes or the process ends, however it ends. A persistent TAP of
//! that name (`ip tuntap add`) is taken over and stays, as one does that is made persistent here.
//!
//! The device's MAC address is that of the *far* end, Linux: [`weir_port::Port::mac`] is `None`, and
//! the router's interface needs an address of its own.
//!
//! Each frame costs a system call, in both directions; a TAP is for talking to Linux, not for speed.
//! Checksums are complete both ways, since no offload is asked for.
//!
//! The rooms: `setup` makes the device, `port` is the control thread's side, `rx` and `tx` the
//! workers' sides, `sys` holds the one call that no safe library has.

#![deny(unsafe_code)]

mod port;
mod rx;
mod setup;
mod sys;
mod tx;

pub use port::TapPort;
pub use setup::{TapConfig, descriptor};
