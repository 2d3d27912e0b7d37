//! Two hosts, and what joins them: the kernel's bridge or Weir.
//!
//! The hosts, their devices and their addresses stay; the middle is made and removed alternately. The
//! hosts know each other's MAC address from the start, so that nothing waits for ARP.
//!
//! **Offloads.** On veth an offload is a promise that nobody keeps: packets travel unfinished, and
//! large. Off means off on all four ends, for bridge and Weir alike. On means what Linux sets on a new
//! veth pair; for Weir the hosts must do their checksums themselves, so transmit checksums are off
//! there, and with them goes segmentation, which the kernel forbids next to an XDP program anyway.

use std::net::{IpAddr, Ipv4Addr};

use weir_engine::{Options, Router};
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{FAR, Host, Lab, NEAR, ROUTER, TwoHosts};

use super::sentence;

/// The router's ends of the two cables.
const PORTS: [&str; 2] = ["port-a", "port-b"];
/// Everything a veth can be set.
const OFFLOADS: [Offload; 6] = [
    Offload::RxChecksum,
    Offload::TxChecksum,
    Offload::ScatterGather,
    Offload::TcpSegmentation,
    Offload::GenericSegmentation,
    Offload::GenericReceive,
];
/// What is off on a new veth pair.
const OFF_BY_DEFAULT: Offload = Offload::GenericReceive;
/// One worker that sleeps when idle, not pinned, and two ports that are one wire.
const CONFIGURATION: &str = "
workers: { count: 1, idle: sleep }
interfaces:
  xe0: { device: { driver: af-xdp, name: port-a }, l2xc: xe1 }
  xe1: { device: { driver: af-xdp, name: port-b }, l2xc: xe0 }
";

/// Who joins the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The kernel.
    Bridge,
    /// A cross connect over AF_XDP.
    Weir,
}

impl Side {
    /// In the order of the rounds.
    pub(super) const BOTH: [Side; 2] = [Side::Bridge, Side::Weir];

    /// For the person who waits.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Bridge => "bridge",
            Side::Weir => "weir",
        }
    }
}

/// What joins the hosts now. Dropping it parts them.
pub(super) enum Middle<'a> {
    /// A bridge of this index.
    Bridge(&'a Stage, u32),
    /// A running router.
    Weir(Router),
}

impl Middle<'_> {
    /// Whether this process has hugepages, which only packet memory is put on.
    pub(super) fn on_hugepages(&self) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("HugetlbPages:"));
        kilobytes.is_some_and(|text| !text.trim().starts_with("0 "))
    }
}

impl Drop for Middle<'_> {
    fn drop(&mut self) {
        match self {
            Middle::Bridge(stage, index) => {
                // It goes with the namespace at the latest.
                let _ = stage.host(ROUTER).and_then(|host| {
                    host.route()
                        .map_err(sentence)?
                        .delete(*index)
                        .map_err(sentence)
                });
            }
            Middle::Weir(router) => router.stop(),
        }
    }
}

/// The hosts and their cables.
pub(super) struct Stage {
    lab: Lab,
    hosts: TwoHosts,
    offloads: bool,
}

impl Stage {
    /// Makes the hosts. Nothing joins them yet.
    pub(super) fn build(offloads: bool) -> Result<Stage, String> {
        let hosts = Lab::two_hosts().switched();
        let lab = hosts.build().map_err(sentence)?;
        let stage = Stage {
            lab,
            hosts,
            offloads,
        };
        let (near, far) = (stage.hosts.near_address(), stage.hosts.far_address());
        for (host, other, mac) in [(NEAR, far, 0x0b), (FAR, near, 0x0a)] {
            let mut route = stage.host(host)?.route().map_err(sentence)?;
            let index = route.link_by_name("eth0").map_err(sentence)?.index;
            route
                .add_neighbour(index, IpAddr::V4(other), [2, 0, 0, 0, 0, mac])
                .map_err(sentence)?;
        }
        Ok(stage)
    }

    /// Joins the hosts.
    pub(super) fn join(&self, side: Side) -> Result<Middle<'_>, String> {
        for (host, device) in [
            (NEAR, "eth0"),
            (FAR, "eth0"),
            (ROUTER, PORTS[0]),
            (ROUTER, PORTS[1]),
        ] {
            self.set_offloads(self.host(host)?, device, side)?;
        }
        match side {
            Side::Bridge => {
                self.lab
                    .bridge(ROUTER, "bridge", &PORTS)
                    .map_err(sentence)?;
                let index = self.host(ROUTER)?.link("bridge").map_err(sentence)?.index;
                Ok(Middle::Bridge(self, index))
            }
            Side::Weir => {
                let (config, _) = weir_config::check("bench", CONFIGURATION)
                    .map_err(|errors| format!("{errors:?}"))?;
                let namespace = self.host(ROUTER)?.namespace();
                let router = namespace
                    .run(move || Router::start(&config, &Options::default()))
                    .map_err(sentence)?;
                router.map(Middle::Weir).map_err(sentence)
            }
        }
    }

    fn set_offloads(&self, host: &Host, device: &str, side: Side) -> Result<(), String> {
        let ethtool = host.ethtool().map_err(sentence)?;
        for offload in OFFLOADS {
            let for_weir = side == Side::Weir
                && matches!(offload, Offload::TxChecksum | Offload::TcpSegmentation);
            let on = self.offloads && offload != OFF_BY_DEFAULT && !for_weir;
            // What follows from another setting cannot be said twice: the kernel then refuses.
            if ethtool.offload(device, offload).map_err(sentence)? != on
                && let Err(error) = ethtool.set_offload(device, offload, on)
                && !self.offloads
            {
                return Err(sentence(error));
            }
        }
        Ok(())
    }

    /// The host of this name.
    pub(super) fn host(&self, name: &str) -> Result<&Host, String> {
        self.lab.host(name).map_err(sentence)
    }

    /// Runs `make` in the sending host, or in the receiving one.
    pub(super) fn in_host<T: Send>(
        &self,
        name: &str,
        make: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> Result<T, String> {
        self.host(name)?
            .namespace()
            .run(make)
            .map_err(sentence)?
            .map_err(sentence)
    }

    /// The address of the host that receives.
    pub(super) fn far_address(&self) -> Ipv4Addr {
        self.hosts.far_address()
    }
}
