//! Hosts and cables made of network namespaces and veth pairs: for tests, demos and benches.
//!
//! A [`Lab`] is a list of hosts (namespaces) joined by cables (veth pairs). [`Lab::two_hosts`] makes
//! the usual one: `host-a`, `router`, `host-b`, a cable from each host to the router. Processes are
//! started in a host with [`Host::run`] (wait, with a time limit) or [`Host::spawn`].
//!
//! Nothing touches the caller's own namespace: veth pairs are made inside the hosts. Nothing has a
//! name on the machine: all is gone when the lab and its processes are dropped, and also after
//! `kill -9`, for the namespaces hang on descriptors and the processes on the parent death signal.
//!
//! What veth needs so that AF_XDP and XDP see packets as a wire would carry them is set here:
//! - transmit checksums off at the hosts (else frames arrive without one, see `Offload::TxChecksum`),
//!   and with them TCP segmentation;
//! - generic receive offload on at the hosts, which switches their NAPI on, without which frames
//!   redirected by XDP to the cable are silently lost;
//! - as many queues on both ends; native XDP wants as many rx queues as the peer has tx queues;
//! - no IPv6 on ends without an IPv6 address, so that counters are not disturbed by its chatter.

mod process;
mod two_hosts;

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

pub use process::{Finished, Running};
pub use two_hosts::{FAR, NEAR, ROUTER, TwoHosts};

use crate::MacAddress;
use crate::error::{Error, Result};
use crate::ethtool::{Ethtool, Offload};
use crate::netns::NetNs;
use crate::route::{Link, Route, RouteEntry, VethPair};

/// How long a cable may take until both ends have carrier.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

/// Tells in one sentence why a lab cannot be made on this machine, if it cannot.
pub fn preflight() -> std::result::Result<(), String> {
    let namespace = NetNs::new().map_err(|error| without_namespace(&error))?;
    let mut route = namespace
        .route()
        .map_err(|error| without_namespace(&error))?;
    let pair = VethPair {
        name: "a",
        peer_name: "b",
        ..VethPair::default()
    };
    route
        .create_veth(&pair)
        .map_err(|error| without_veth(&error))
}

fn without_namespace(error: &Error) -> String {
    if error.is_permission() {
        "a lab needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run it with sudo".to_owned()
    } else if error.is_not_found() {
        format!("a lab needs /proc mounted and a kernel with network namespaces: {error}")
    } else {
        format!("a lab needs network namespaces: {error}")
    }
}

fn without_veth(error: &Error) -> String {
    if error.is_permission() {
        "a lab needs CAP_NET_ADMIN: run it with sudo".to_owned()
    } else {
        format!("a lab needs the kernel's veth driver (CONFIG_VETH): {error}")
    }
}

/// One end of a cable, and how it shall be.
#[derive(Debug, Clone)]
pub struct Port {
    host: String,
    name: String,
    mac: Option<MacAddress>,
    addresses: Vec<(IpAddr, u8)>,
    offloads: Vec<(Offload, bool)>,
}

impl Port {
    /// The end named `name` in the host named `host`, with a random MAC and no address.
    pub fn new(host: &str, name: &str) -> Self {
        Port {
            host: host.to_owned(),
            name: name.to_owned(),
            mac: None,
            addresses: Vec::new(),
            offloads: Vec::new(),
        }
    }

    /// Gives the end this MAC.
    #[must_use]
    pub fn mac(mut self, mac: MacAddress) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Gives the end this address too.
    #[must_use]
    pub fn address(mut self, address: impl Into<IpAddr>, prefix_length: u8) -> Self {
        self.addresses.push((address.into(), prefix_length));
        self
    }

    /// Switches an offload of the end on or off.
    #[must_use]
    pub fn offload(mut self, offload: Offload, on: bool) -> Self {
        self.offloads.push((offload, on));
        self
    }
}

/// A cable between two ends.
#[derive(Debug, Clone)]
pub struct Cable {
    /// One end.
    pub one: Port,
    /// The other end.
    pub other: Port,
    /// Queues of both ends.
    pub queues: u32,
    /// MTU of both ends.
    pub mtu: u32,
}

impl Cable {
    /// A cable of one queue and MTU 1500.
    pub fn new(one: Port, other: Port) -> Self {
        Cable {
            one,
            other,
            queues: 1,
            mtu: 1500,
        }
    }
}

/// A machine of the lab: a network namespace with a name that only the lab knows.
#[derive(Debug, Clone)]
pub struct Host {
    name: String,
    namespace: NetNs,
}

impl Host {
    /// The name within the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace; a clone of it keeps the host alive.
    pub fn namespace(&self) -> &NetNs {
        &self.namespace
    }

    /// A route client for the host.
    pub fn route(&self) -> Result<Route> {
        self.namespace.route()
    }

    /// An ethtool client for the host.
    pub fn ethtool(&self) -> Result<Ethtool> {
        self.namespace.run(Ethtool::open)?
    }

    /// The link of this name in the host.
    pub fn link(&self, name: &str) -> Result<Link> {
        self.route()?.link_by_name(name)
    }

    /// Starts a program in the host; dropping the answer kills it with all it started.
    pub fn spawn(&self, program: &str, arguments: &[&str]) -> Result<Running> {
        let mut command = self.namespace.command(program);
        command.args(arguments);
        Running::start(command)
    }

    /// Runs a program in the host until it ends, or kills it when the time has passed.
    pub fn run(&self, program: &str, arguments: &[&str], limit: Duration) -> Result<Finished> {
        self.spawn(program, arguments)?.wait(limit)
    }

    /// Sets a kernel parameter below `/proc/sys/net` in the host, such as `ipv4/ip_forward`.
    pub fn set_parameter(&self, name: &str, value: &str) -> Result<()> {
        let path = Path::new("/proc/sys/net").join(name);
        let asked = format!("set {} of {} to {value}", path.display(), self.name);
        let written = self.namespace.run(|| std::fs::write(&path, value))?;
        written.map_err(|source| Error::system(asked, source))
    }

    fn finish_port(&self, port: &Port) -> Result<()> {
        let mut route = self.route()?;
        let index = route.link_by_name(&port.name)?.index;
        let ethtool = self.ethtool()?;
        for (offload, on) in &port.offloads {
            ethtool.set_offload(&port.name, *offload, *on)?;
        }
        self.quieten(port)?;
        for (address, prefix_length) in &port.addresses {
            route.add_address(index, *address, *prefix_length)?;
        }
        route.set_up(index, true)
    }

    /// No IPv6 where no address asks for it, and no router solicitations where one does.
    fn quieten(&self, port: &Port) -> Result<()> {
        let with_ipv6 = port.addresses.iter().any(|(address, _)| address.is_ipv6());
        let settings: &[(&str, &str)] = if with_ipv6 {
            &[
                ("accept_dad", "0"),
                ("accept_ra", "0"),
                ("router_solicitations", "0"),
            ]
        } else {
            &[("disable_ipv6", "1")]
        };
        for (name, value) in settings {
            let set = self.set_parameter(&format!("ipv6/conf/{}/{name}", port.name), value);
            match set {
                // A kernel without IPv6 is as quiet as can be.
                Err(error) if error.is_not_found() && !with_ipv6 => (),
                other => other?,
            }
        }
        Ok(())
    }
}

/// Hosts and cables; all is gone when this and all processes in it are.
#[derive(Debug, Default)]
pub struct Lab {
    hosts: Vec<Host>,
}

impl Lab {
    /// A lab without hosts.
    pub fn new() -> Self {
        Lab::default()
    }

    /// Adds a host of this name, with nothing but a loopback.
    pub fn add_host(&mut self, name: &str) -> Result<&Host> {
        let asked = format!("add host {name} to the lab");
        if self.hosts.iter().any(|host| host.name == name) {
            return Err(Error::invalid(asked, "there is a host of that name"));
        }
        let namespace = NetNs::new()?;
        Ok(self.hosts.push_mut(Host {
            name: name.to_owned(),
            namespace,
        }))
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<&Host> {
        let why = || Error::invalid(format!("find host {name}"), "the lab has no such host");
        self.hosts
            .iter()
            .find(|host| host.name == name)
            .ok_or_else(why)
    }

    /// Joins two hosts; returns when both ends have carrier.
    pub fn connect(&mut self, cable: &Cable) -> Result<()> {
        let (one, other) = (self.host(&cable.one.host)?, self.host(&cable.other.host)?);
        let pair = VethPair {
            name: &cable.one.name,
            peer_name: &cable.other.name,
            peer_namespace: Some(&other.namespace),
            queues: Some(cable.queues),
            mac: cable.one.mac,
            peer_mac: cable.other.mac,
            mtu: Some(cable.mtu),
        };
        one.route()?.create_veth(&pair)?;
        one.finish_port(&cable.one)?;
        other.finish_port(&cable.other)?;
        wait_for_carrier(one, &cable.one.name)?;
        wait_for_carrier(other, &cable.other.name)
    }

    /// Makes the named ports of a host ports of a new kernel bridge: what Weir is compared with.
    pub fn bridge(&self, host: &str, bridge: &str, ports: &[&str]) -> Result<()> {
        let host = self.host(host)?;
        let mut route = host.route()?;
        let controller = route.create_bridge(bridge)?;
        host.quieten(&Port::new(&host.name, bridge))?;
        for port in ports {
            let index = route.link_by_name(port)?.index;
            route.set_controller(index, Some(controller))?;
        }
        route.set_up(controller, true)
    }

    /// Adds a default route to a host.
    pub fn default_route(&self, host: &str, gateway: impl Into<IpAddr>) -> Result<()> {
        self.host(host)?
            .route()?
            .add_route(&RouteEntry::default_via(gateway.into()))
    }
}

fn wait_for_carrier(host: &Host, name: &str) -> Result<()> {
    let mut route = host.route()?;
    let deadline = Instant::now() + CARRIER_TIMEOUT;
    while !route.link_by_name(name)?.running {
        if Instant::now() >= deadline {
            let asked = format!("wait for carrier of {name} in {}", host.name);
            return Err(Error::TimedOut {
                asked,
                after: CARRIER_TIMEOUT,
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// True when a program of this name is found in `PATH`; tests skip what needs it when not.
pub fn has_program(name: &str) -> bool {
    let runnable = |directory: &Path| directory.join(name).is_file();
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| runnable(&directory)))
}

fn interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
