//! AF_XDP ports: frames between a network device and the router's own packet memory.
//!
//! A port has one socket a queue. A small XDP program (`program`) on the device hands each frame to
//! the socket of the queue it came in on; sent frames go straight to the device, past the Linux
//! stack and its queueing. The device keeps its name, its driver and its counters.
//!
//! The rooms: `setup` opens a port and explains what stands in the way, `port` is the control
//! thread's side, `rx` and `tx` are the workers' sides, `socket` holds what both share,
//! `lent` remembers which chunks a socket holds, `sys` speaks to the kernel.
//!
//! **Memory.** Every socket registers the whole pool as its own UMEM (unaligned chunks of
//! [`weir_buf::STRIDE`] bytes), so that a frame received on one port is sent on another without being
//! copied by us. The kernel's own way to share, `XDP_SHARED_UMEM`, would force the first socket's
//! mode on all others (one device with zero-copy and one without could not meet) and would tie the
//! life of all ports to a socket that is still open when a port is opened later. Registering costs
//! 8 bytes a page and about 200 bytes a chunk of kernel memory for each socket. Each receiving queue
//! keeps up to a ring full of chunks in the kernel's hands, a port at most a quarter of what is free when
//! it is opened.
//!
//! **Modes**, tried in this order unless one is asked for: native program and zero-copy, native
//! program and copy, generic program (works everywhere, slowest).
//!
//! **veth.** What the other end leaves to the "hardware" is never done. Unfinished TCP and UDP checksums are completed
//! here (`checksum`, counted as `rx_checksums_completed`). VLAN tags are not: switch that offload off at the other end
//! (`ethtool -K PEER txvlan off tx-vlan-stag-hw-insert off`), or frames arrive without them. TCP segmentation is
//! switched off at the other end by the kernel itself as soon as a native program is attached; in generic mode it is
//! not (`ethtool -K PEER tso off gso off`), and longer frames than the MTU are dropped and counted as `rx_too_long`. The
//! other end needs no more tx queues than this end has rx queues, else only generic mode works.
//!
//! **Long frames.** A frame that does not fit one chunk spans several descriptors (`XDP_USE_SG`, Linux 6.6); on devices whose
//! MTU is beyond what their driver puts into one page (3506 on veth) the program is one that says it knows of such
//! frames. Before Linux 6.6 the kernel drops them at receipt, and they are refused here at sending; both are counted.

#![deny(unsafe_code)]

mod checksum;
mod lent;
mod port;
mod program;
mod rx;
mod setup;
mod socket;
mod sys;
mod tx;

pub use port::AfxdpPort;
pub use setup::{AfxdpConfig, Mode};
pub use sys::knows_pieces;
