//! Weir and the Linux kernel as peers: what one puts on the wire, the other has to understand.
//!
//! The cases need parts of the kernel that not every machine has (802.1Q, bonding, MPLS, psample). Where they are missing a
//! case says so in one line and is skipped; `make test-kernel` runs all of them inside of Debian's kernel, and
//! there nothing may be missing. A case is a file in this folder and a line here.

mod bed;
mod first;

mod bonds;
mod hsflowd;
mod labels;
mod linux;
mod netem;
mod pktgen;
mod sampling;
mod tags;
mod xdp;
mod zero_copy;
