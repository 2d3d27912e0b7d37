//! The nodes as one router: whole frames in, whole frames out, never through a node's private parts.

mod arp;
mod forward;
mod icmp;
mod rig;
mod sight;
