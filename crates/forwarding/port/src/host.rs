//! The Linux end of an interface: where packets for this router's own services go, and how many did.
//!
//! Workers add to the counters, the control side reads them. Few packets are for the router itself, so that the workers
//! may share the counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a packet for Linux is, for its limit and its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HostClass {
    /// Bidirectional forwarding detection (RFC 5880).
    Bfd,
    /// The border gateway protocol.
    Bgp,
    /// OSPF, IS-IS, LDP, RIP, VRRP, IGMP, PIM and what else goes to link-local groups.
    Routing,
    /// ARP and neighbour discovery.
    Neighbor,
    /// ICMP that is not neighbour discovery.
    Icmp,
    /// Everything else for own addresses.
    Other,
}

impl HostClass {
    /// All of them.
    pub const ALL: [HostClass; 6] = [
        HostClass::Bfd,
        HostClass::Bgp,
        HostClass::Routing,
        HostClass::Neighbor,
        HostClass::Icmp,
        HostClass::Other,
    ];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HostClass::Bfd => "bfd",
            HostClass::Bgp => "bgp",
            HostClass::Routing => "routing",
            HostClass::Neighbor => "neighbor",
            HostClass::Icmp => "icmp",
            HostClass::Other => "other",
        }
    }

    /// Packets a second that a worker passes of one interface, at most; a burst may be of as many.
    #[must_use]
    pub const fn rate(self) -> u32 {
        match self {
            HostClass::Bfd => 10_000,
            HostClass::Bgp => 50_000,
            HostClass::Routing => 10_000,
            HostClass::Neighbor => 2_000,
            HostClass::Icmp => 1_000,
            HostClass::Other => 10_000,
        }
    }
}

/// The Linux end of an interface.
#[derive(Debug)]
pub struct Host {
    /// The interface of the TAP.
    pub interface: u32,
    passed: [AtomicU64; HostClass::ALL.len()],
    policed: [AtomicU64; HostClass::ALL.len()],
}

impl Host {
    /// The end at a TAP.
    #[must_use]
    pub fn new(interface: u32) -> Host {
        Host {
            interface,
            passed: Default::default(),
            policed: Default::default(),
        }
    }

    /// Counts a packet that went to Linux, or one that was over the limit.
    pub fn count(&self, class: HostClass, passed: bool) {
        let counters = if passed { &self.passed } else { &self.policed };
        counters[class as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Packets of a class that went to Linux, and that were over the limit.
    #[must_use]
    pub fn counts(&self, class: HostClass) -> (u64, u64) {
        (
            self.passed[class as usize].load(Ordering::Relaxed),
            self.policed[class as usize].load(Ordering::Relaxed),
        )
    }
}
