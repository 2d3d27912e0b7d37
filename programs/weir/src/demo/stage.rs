//! The hosts, the cables and the router of the demo.

use std::net::Ipv4Addr;
use std::sync::Arc;

use weir_config::Config;
use weir_engine::{Options, Router};
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port};

use crate::failure::Failure;

/// One packet in this many is sampled.
pub(crate) const SAMPLING_RATE: u32 = 32;

/// A route that leads to a next hop that does not exist, so that the demo has drops to show.
pub(crate) const BROKEN_PREFIX: &str = "198.51.100.0/24";
/// That next hop: an address in the subnet of host-b that nobody has.
pub(crate) const BROKEN_NEXT_HOP: &str = "10.2.0.99";

const ROUTER: &str = "router";

/// A host's name, the router's device it is cabled to, its address and its number.
const HOSTS: [(&str, &str, Ipv4Addr, u8); 4] = [
    ("host-a", "port-a", Ipv4Addr::new(10, 1, 0, 2), 0x0a),
    ("host-b", "port-b", Ipv4Addr::new(10, 2, 0, 2), 0x0b),
    ("host-c", "port-c", Ipv4Addr::new(10, 3, 0, 1), 0x0c),
    ("host-d", "port-d", Ipv4Addr::new(10, 3, 0, 2), 0x0d),
];

/// Everything that the demo made.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) router: Arc<Router>,
}

impl Stage {
    /// Makes hosts and cables and starts the router among them.
    pub(crate) fn build() -> Result<Stage, Failure> {
        weir_netlink::lab::preflight().map_err(Failure::said)?;
        let lab = cables().map_err(Failure::said)?;
        let text = configuration();
        let (config, _) = weir_config::check("demo", &text)
            .map_err(|errors| Failure::said(format!("{errors:?}")))?;
        let router = Arc::new(start(&lab, config)?);
        Ok(Stage { lab, router })
    }
}

fn cables() -> Result<Lab, weir_netlink::Error> {
    let mut lab = Lab::new();
    lab.add_host(ROUTER)?;
    for (host, device, address, number) in HOSTS {
        lab.add_host(host)?;
        let end = Port::new(host, "eth0")
            .mac([2, 0, 0, 0, 0, number])
            .address(address, 24)
            .offload(Offload::TxChecksum, false)
            .offload(Offload::GenericReceive, true);
        let middle = Port::new(ROUTER, device).mac([2, 0, 0, 0, 1, number]);
        lab.connect(&Cable::new(end, middle))?;
    }
    lab.default_route("host-a", Ipv4Addr::new(10, 1, 0, 1))?;
    lab.default_route("host-b", Ipv4Addr::new(10, 2, 0, 1))?;
    Ok(lab)
}

/// The router's threads inherit the namespace of the thread that starts it.
fn start(lab: &Lab, config: Config) -> Result<Router, Failure> {
    let namespace = lab.host(ROUTER).map_err(Failure::said)?.namespace();
    let started = namespace.run(move || Router::start(&config, &Options::default()));
    started.map_err(Failure::said)?.map_err(Failure::said)
}

fn configuration() -> String {
    format!(
        "
routes:
  - {{ prefix: {BROKEN_PREFIX}, via: {BROKEN_NEXT_HOP} }}
interfaces:
  xe0: {{ description: to host-a, device: {{ driver: af-xdp, name: port-a }}, addresses: [ 10.1.0.1/24 ], sflow: true }}
  xe1: {{ description: to host-b, device: {{ driver: af-xdp, name: port-b }}, addresses: [ 10.2.0.1/24 ], sflow: true }}
  xe2: {{ description: to host-c, device: {{ driver: af-xdp, name: port-c }}, l2xc: xe3, sflow: true }}
  xe3: {{ description: to host-d, device: {{ driver: af-xdp, name: port-d }}, l2xc: xe2, sflow: true }}
sflow:
  sampling-rate: {SAMPLING_RATE}
  polling-interval: 1
  agent: 10.1.0.1
  collectors: [ {{ address: 127.0.0.1, port: 6343 }} ]
ipfix:
  idle-timeout: 5
  active-timeout: 10
  interfaces:
    xe0: {{ direction: rx }}
    xe1: {{ direction: rx }}
    xe2: {{ direction: rx }}
    xe3: {{ direction: rx }}
  collectors: [ {{ address: 127.0.0.1, port: 4739 }} ]
"
    )
}
