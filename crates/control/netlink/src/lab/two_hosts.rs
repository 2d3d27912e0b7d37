//! The usual lab: two hosts with a router between them.
//!
//! ```text
//!   host-a              router              host-b
//!   eth0 ------------ port-a   port-b ------------ eth0
//! ```
//! Routed (the default): two networks, 10.1.0.0/24 and 10.2.0.0/24 (and fd00:1::/64, fd00:2::/64
//! when IPv6 is asked for); the hosts are .2, their default route is .1 — which nobody has until a
//! router takes it. Switched: one network 10.0.0.0/24 with host-a as .1 and host-b as .2, for cross
//! connects and bridges. The router's ends have no address either way: Weir, or the caller, brings
//! them. MACs are fixed: 02:00:00:00:00:0a and :0b at the hosts, :1a and :1b at the router.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Cable, Lab, Port};
use crate::MacAddress;
use crate::error::Result;
use crate::ethtool::Offload;

/// The first host's name.
pub const NEAR: &str = "host-a";
/// The second host's name.
pub const FAR: &str = "host-b";
/// The name of the host in the middle.
pub const ROUTER: &str = "router";

/// How the two hosts shall be joined; [`TwoHosts::build`] makes it so.
#[derive(Debug, Clone)]
pub struct TwoHosts {
    switched: bool,
    ipv6: bool,
    queues: u32,
    mtu: u32,
    tx_checksum: bool,
}

impl Lab {
    /// Begins to describe a lab of two hosts and a router.
    pub fn two_hosts() -> TwoHosts {
        TwoHosts {
            switched: false,
            ipv6: false,
            queues: 1,
            mtu: 1500,
            tx_checksum: false,
        }
    }
}

impl TwoHosts {
    /// Puts both hosts into one network, for a cross connect or a bridge in the middle.
    #[must_use]
    pub fn switched(mut self) -> Self {
        self.switched = true;
        self
    }

    /// Gives the hosts IPv6 addresses and routes as well.
    #[must_use]
    pub fn ipv6(mut self) -> Self {
        self.ipv6 = true;
        self
    }

    /// Queues of every end; 1 when never set.
    #[must_use]
    pub fn queues(mut self, queues: u32) -> Self {
        self.queues = queues;
        self
    }

    /// MTU of every end; 1500 when never set.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    /// Whether the hosts leave transmit checksums (and TCP segmentation) to the "device"; off when
    /// never set, because what reads raw frames at the router would see wrong checksums.
    #[must_use]
    pub fn tx_checksum(mut self, on: bool) -> Self {
        self.tx_checksum = on;
        self
    }

    /// The address of the first host.
    pub fn near_address(&self) -> Ipv4Addr {
        if self.switched {
            Ipv4Addr::new(10, 0, 0, 1)
        } else {
            Ipv4Addr::new(10, 1, 0, 2)
        }
    }

    /// The address of the second host.
    pub fn far_address(&self) -> Ipv4Addr {
        if self.switched {
            Ipv4Addr::new(10, 0, 0, 2)
        } else {
            Ipv4Addr::new(10, 2, 0, 2)
        }
    }

    /// Makes the hosts, the router and the two cables, all up.
    pub fn build(&self) -> Result<Lab> {
        let mut lab = Lab::new();
        for name in [NEAR, ROUTER, FAR] {
            lab.add_host(name)?;
        }
        lab.connect(&self.cable(NEAR, "port-a", self.near_address(), 0x0a))?;
        lab.connect(&self.cable(FAR, "port-b", self.far_address(), 0x0b))?;
        if !self.switched {
            for (host, network) in [(NEAR, 1), (FAR, 2)] {
                lab.default_route(host, Ipv4Addr::new(10, network, 0, 1))?;
                if self.ipv6 {
                    let gateway = ipv6(u16::from(network), 1);
                    lab.default_route(host, gateway)?;
                }
            }
        }
        Ok(lab)
    }

    fn cable(&self, host: &str, router_port: &str, address: Ipv4Addr, number: u8) -> Cable {
        let mac = |last: u8| -> MacAddress { [2, 0, 0, 0, 0, last] };
        let mut end = Port::new(host, "eth0")
            .mac(mac(number))
            .address(address, 24)
            .offload(Offload::TxChecksum, self.tx_checksum)
            .offload(Offload::GenericReceive, true);
        if self.ipv6 {
            let [_, network, _, last] = address.octets();
            end = end.address(ipv6(u16::from(network), u16::from(last)), 64);
        }
        let middle = Port::new(ROUTER, router_port).mac(mac(number | 0x10));
        Cable {
            queues: self.queues,
            mtu: self.mtu,
            ..Cable::new(end, middle)
        }
    }
}

fn ipv6(network: u16, host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, network, 0, 0, 0, 0, 0, host))
}
