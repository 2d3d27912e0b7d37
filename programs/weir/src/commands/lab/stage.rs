//! A device under test in a network namespace, with the generator's ports in another one.
//!
//! ```text
//! generator: g0 ──veth── port-a [ device ] port-b ──veth── g1 :generator
//! ```
//! All of it is gone with the value: namespaces are anonymous, the router is a child process that is
//! killed with it, its files lie in a temporary folder that is removed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_api::Client;
use weir_buf::Pool;
use weir_lab::counters::{CounterSource, Counters, Linux};
use weir_lab::port::{LabPort, PortSpec};
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Lab, Port, Running};
use weir_netlink::netns::NetNs;

use crate::failure::Failure;

const GENERATOR: &str = "generator";
const ROUTER: &str = "router";

/// What joins the two cables.
pub(super) enum Device {
    /// The kernel's bridge.
    Bridge,
    /// The kernel's router.
    Linux,
    /// Weir with this configuration; `API` in it is replaced by the socket's path.
    Weir(String),
}

/// The device with the generator's ports to it.
pub(super) struct Stage {
    /// The generator's ports. First, so that they are closed before the namespaces go.
    pub(super) ports: Vec<LabPort>,
    socket: Option<PathBuf>,
    router: Option<Running>,
    folder: PathBuf,
    lab: Lab,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.ports.clear();
        drop(self.router.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn end(host: &str, name: &str) -> Port {
    let mut port = Port::new(host, name);
    for offload in [
        Offload::TxChecksum,
        Offload::TcpSegmentation,
        Offload::GenericSegmentation,
    ] {
        port = port.offload(offload, false);
    }
    port
}

impl Stage {
    /// Builds it. With `routed`, the networks are 10.1.0.0/24 and 10.2.0.0/24, the generator is .2 and
    /// the device is .1.
    pub(super) fn build(device: &Device, routed: bool, pool: &Pool) -> Result<Stage, Failure> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-lab-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(Failure::said)?;
        let mut lab = Lab::new();
        lab.add_host(GENERATOR).map_err(Failure::said)?;
        lab.add_host(ROUTER).map_err(Failure::said)?;
        for (near, far, network) in [("g0", "port-a", 1), ("g1", "port-b", 2)] {
            let mut other = end(ROUTER, far);
            if matches!(device, Device::Linux) {
                other = other.address(std::net::Ipv4Addr::new(10, network, 0, 1), 24);
            }
            let cable = Cable::new(end(GENERATOR, near), other);
            lab.connect(&cable).map_err(Failure::said)?;
        }
        let mut stage = Stage {
            ports: Vec::new(),
            socket: None,
            router: None,
            folder,
            lab,
        };
        stage.start(device)?;
        stage.open(routed, pool)?;
        Ok(stage)
    }

    fn start(&mut self, device: &Device) -> Result<(), Failure> {
        let host = self.lab.host(ROUTER).map_err(Failure::said)?;
        match device {
            Device::Bridge => self
                .lab
                .bridge(ROUTER, "bridge", &["port-a", "port-b"])
                .map_err(Failure::said),
            Device::Linux => host
                .set_parameter("ipv4/ip_forward", "1")
                .map_err(Failure::said),
            Device::Weir(configuration) => {
                let (socket, file) = (self.folder.join("api.sock"), self.folder.join("weir.yaml"));
                let text = configuration.replace("API", &socket.display().to_string());
                std::fs::write(&file, text).map_err(Failure::said)?;
                let program = std::env::current_exe().map_err(Failure::said)?;
                let arguments = ["run", "-c", &file.display().to_string()];
                let mut router = host
                    .spawn(&program.display().to_string(), &arguments)
                    .map_err(Failure::said)?;
                let client = Client::new(&socket);
                let deadline = Instant::now() + Duration::from_secs(30);
                while client.version().is_err() {
                    if Instant::now() > deadline || !router.is_running().map_err(Failure::said)? {
                        return Err(Failure::said(format!(
                            "the router does not start: {}",
                            router.stderr_so_far().trim()
                        )));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                self.router = Some(router);
                self.socket = Some(socket);
                Ok(())
            }
        }
    }

    fn open(&mut self, routed: bool, pool: &Pool) -> Result<(), Failure> {
        let namespace = self
            .lab
            .host(GENERATOR)
            .map_err(Failure::said)?
            .namespace()
            .clone();
        for (name, network) in [("g0", 1), ("g1", 2)] {
            let text = if routed {
                format!("{name},address=10.{network}.0.2/24,gateway=10.{network}.0.1")
            } else {
                name.to_owned()
            };
            let spec = PortSpec::parse(&text).map_err(Failure::said)?;
            let mut port = namespace.run(|| spec.open(pool)).map_err(Failure::said)??;
            port.wait_for_link(Duration::from_secs(10))?;
            self.ports.push(port);
        }
        Ok(())
    }

    /// The device's counters: Linux's in its namespace, and Weir's when it is one.
    pub(super) fn counters(&self) -> Result<Vec<Box<dyn CounterSource>>, Failure> {
        let namespace = self
            .lab
            .host(ROUTER)
            .map_err(Failure::said)?
            .namespace()
            .clone();
        let mut all: Vec<Box<dyn CounterSource>> = vec![Box::new(Inside(namespace))];
        if let Some(socket) = &self.socket {
            all.push(super::ndr::weir_counters(
                "weir",
                &socket.display().to_string(),
            ));
        }
        Ok(all)
    }
}

/// Linux's counters as the device's namespace shows them.
struct Inside(NetNs);

impl CounterSource for Inside {
    fn read(&mut self) -> Result<Counters, String> {
        // /proc/net follows the thread's namespace only below /proc/thread-self.
        self.0
            .run(|| Linux::new("/", Vec::new()).own_thread().read())
            .map_err(|error| error.to_string())?
    }
}
