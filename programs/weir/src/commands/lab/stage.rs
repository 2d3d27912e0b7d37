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
#[derive(Clone)]
pub(super) enum Device {
    /// The kernel's bridge.
    Bridge,
    /// The kernel's router.
    Linux,
    /// Weir with this configuration; in it `API` is replaced by the socket's path, `DEVICE-A` and
    /// `DEVICE-B` by the devices.
    Weir(String),
    /// `weir xdp`: frames forwarded in the kernel's XDP hook.
    Xdp,
    /// Open vSwitch's kernel datapath.
    OpenVSwitch,
}

impl Device {
    /// Whether frames pass without a routing decision.
    pub(super) fn is_switch(&self) -> bool {
        match self {
            Device::Bridge | Device::Xdp | Device::OpenVSwitch => true,
            Device::Linux => false,
            Device::Weir(configuration) => configuration.contains("l2xc:"),
        }
    }
}

/// What lies between the generator and the device.
#[derive(Clone, Debug, Default)]
pub(super) enum Cables {
    /// veth pairs between two namespaces.
    #[default]
    Veth,
    /// veth pairs whose packet processing is on two cores: the generator's side on the first, the
    /// device's on the second.
    Split {
        /// Where the generator runs.
        generator: usize,
        /// Where the device runs.
        device: usize,
    },
    /// Shared memory, which only Weir has.
    Memif,
    /// The generator's network cards, and those of the device, which are in the device's namespace as long as it lives.
    Cards([String; 2], [String; 2]),
}

/// Names that no other lab has, since kernel threads of all namespaces are in one list.
fn unique(side: char) -> [String; 2] {
    let process = std::process::id();
    [0, 1].map(|number| format!("{side}{number}{process:x}"))
}

fn generator_names(cables: &Cables) -> [String; 2] {
    match cables {
        Cables::Split { .. } => unique('g'),
        _ => ["g0".to_owned(), "g1".to_owned()],
    }
}

/// The kernel's threads for the queues of a device, by their names `napi/DEVICE-NUMBER`.
fn napi_threads(device: &str) -> Vec<u32> {
    let begin = format!("napi/{device}-");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            // The kernel cuts names after 15 bytes.
            let begin = begin.get(..begin.len().min(15))?;
            name.starts_with(begin).then_some(id)
        })
        .collect()
}

/// The device with the generator's ports to it.
pub(super) struct Stage {
    /// The generator's ports. First, so that they are closed before the namespaces go.
    pub(super) ports: Vec<LabPort>,
    socket: Option<PathBuf>,
    /// The device's processes, in the order in which they end.
    processes: Vec<Running>,
    folder: PathBuf,
    /// Cards that go back to this namespace.
    borrowed: Option<(NetNs, Vec<(String, bool)>)>,
    lab: Lab,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.ports.clear();
        self.processes.drain(..).for_each(drop);
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some((home, cards)) = self.borrowed.take() {
            for (name, up) in cards {
                if let Err(error) = self.give_back(&home, &name, up) {
                    eprintln!("weir: {name} could not be given back: {error}");
                }
            }
        }
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
    pub(super) fn build(
        device: &Device,
        routed: bool,
        cables: &Cables,
        pool: &Pool,
    ) -> Result<Stage, Failure> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-lab-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(Failure::said)?;
        let mut stage = Stage {
            ports: Vec::new(),
            socket: None,
            processes: Vec::new(),
            folder,
            borrowed: None,
            lab: Lab::new(),
        };
        stage.lab.add_host(GENERATOR).map_err(Failure::said)?;
        stage.lab.add_host(ROUTER).map_err(Failure::said)?;
        let mut names = ["port-a".to_owned(), "port-b".to_owned()];
        match cables {
            Cables::Veth | Cables::Split { .. } => {
                if matches!(cables, Cables::Split { .. }) {
                    names = unique('d');
                }
                let near = generator_names(cables);
                for (near, far) in near.iter().zip(&names) {
                    let mut far = end(ROUTER, far);
                    if matches!(cables, Cables::Split { .. }) {
                        // veth then has NAPI, as network cards do.
                        far = far.offload(Offload::GenericReceive, true);
                    }
                    let cable = Cable::new(end(GENERATOR, near), far);
                    stage.lab.connect(&cable).map_err(Failure::said)?;
                }
            }
            Cables::Memif if !matches!(device, Device::Weir(_)) => {
                return Err(Failure::said(
                    "the kernel's bridge and router have no memif",
                ));
            }
            Cables::Memif => {}
            Cables::Cards(_, cards) => {
                stage.borrow(cards)?;
                names.clone_from(cards);
            }
        }
        stage.start(device, cables, &names)?;
        stage.open(routed, cables, pool)?;
        if let Cables::Split { generator, device } = cables {
            stage.steer(GENERATOR, &generator_names(cables), *generator)?;
            stage.steer(ROUTER, &names, *device)?;
        }
        Ok(stage)
    }

    /// Moves cards into the device's namespace. One with an address is refused: moving takes the
    /// address away, and it may be the one by which the machine is managed.
    fn borrow(&mut self, cards: &[String; 2]) -> Result<(), Failure> {
        let home = NetNs::current().map_err(Failure::said)?;
        let mut route = home.route().map_err(Failure::said)?;
        let host = self.lab.host(ROUTER).map_err(Failure::said)?;
        let mut taken = Vec::new();
        let mut result = Ok(());
        for name in cards {
            result = route
                .link_by_name(name)
                .map_err(Failure::said)
                .and_then(|link| {
                    if let Some(used) = weir_engine::machine_use_of(name) {
                        return Err(Failure::said(format!(
                            "this machine uses the card {name} itself: it has {used}"
                        )));
                    }
                    route
                        .move_to(link.index, host.namespace())
                        .map_err(Failure::said)?;
                    taken.push((name.clone(), link.up));
                    let mut inside = host.route().map_err(Failure::said)?;
                    let index = inside.link_by_name(name).map_err(Failure::said)?.index;
                    inside.set_up(index, true).map_err(Failure::said)
                });
            if result.is_err() {
                break;
            }
        }
        // Also what was taken before an error goes back.
        self.borrowed = Some((home, taken));
        result
    }

    fn give_back(&self, home: &NetNs, name: &str, up: bool) -> weir_netlink::Result<()> {
        let mut inside = self.lab.host(ROUTER)?.route()?;
        let index = inside.link_by_name(name)?.index;
        inside.set_controller(index, None)?;
        inside.move_to(index, home)?;
        let mut route = home.route()?;
        let index = route.link_by_name(name)?.index;
        route.set_up(index, up)
    }

    fn start(
        &mut self,
        device: &Device,
        cables: &Cables,
        names: &[String; 2],
    ) -> Result<(), Failure> {
        let host = self.lab.host(ROUTER).map_err(Failure::said)?;
        match device {
            Device::Bridge => {
                let ports = names.each_ref().map(String::as_str);
                self.lab
                    .bridge(ROUTER, "bridge", &ports)
                    .map_err(Failure::said)
            }
            Device::Linux => {
                let mut route = host.route().map_err(Failure::said)?;
                for (name, network) in names.iter().zip(1..) {
                    let index = route.link_by_name(name).map_err(Failure::said)?.index;
                    let address = std::net::Ipv4Addr::new(10, network, 0, 1);
                    route
                        .add_address(index, address.into(), 24)
                        .map_err(Failure::said)?;
                }
                host.set_parameter("ipv4/ip_forward", "1")
                    .map_err(Failure::said)
            }
            Device::OpenVSwitch => {
                self.processes = super::ovs::start(host, &self.folder, names)?;
                Ok(())
            }
            Device::Xdp => {
                let file = self.folder.join("xdp.yaml");
                let [a, b] = names;
                // The generator's usual addresses: what it sends from one port is for the other.
                let text = format!(
                    "ports:\n  {a}: {{vlan: 100, macs: ['02:00:00:00:00:01']}}\n  {b}: {{vlan: 100, macs: ['02:00:00:00:00:02']}}\n"
                );
                std::fs::write(&file, text).map_err(Failure::said)?;
                let program = std::env::current_exe().map_err(Failure::said)?;
                let pins = self.folder.join("bpf");
                std::fs::create_dir_all(&pins).map_err(Failure::said)?;
                let script = format!(
                    "mount -t bpf bpf {0} && exec {1} xdp --pins {0}/pins --state {2} run -c {3}",
                    pins.display(),
                    program.display(),
                    self.folder.join("xdp").display(),
                    file.display()
                );
                let mut running = host
                    .spawn("unshare", &["-m", "sh", "-c", &script])
                    .map_err(Failure::said)?;
                running
                    .wait_for_output("weir xdp runs", Duration::from_secs(60))
                    .map_err(Failure::said)?;
                self.processes.push(running);
                Ok(())
            }
            Device::Weir(configuration) => {
                let (socket, file) = (self.folder.join("api.sock"), self.folder.join("weir.yaml"));
                let mut text = configuration.replace("API", &socket.display().to_string());
                for ((place, name), id) in [("DEVICE-A", &names[0]), ("DEVICE-B", &names[1])]
                    .iter()
                    .zip(0..)
                {
                    let device = match cables {
                        Cables::Memif => format!(
                            "{{driver: memif, socket: {}, id: {id}, role: slave}}",
                            self.memif().display()
                        ),
                        _ => format!("{{driver: af-xdp, name: {name}}}"),
                    };
                    text = text.replace(place, &device);
                }
                std::fs::write(&file, text).map_err(Failure::said)?;
                let program = std::env::current_exe().map_err(Failure::said)?;
                let arguments = ["run", "-c", &file.display().to_string()];
                let mut router = host
                    .spawn(&program.display().to_string(), &arguments)
                    .map_err(Failure::said)?;
                let client = Client::new(&socket);
                let deadline = Instant::now() + Duration::from_secs(60);
                while client.version().is_err() {
                    if Instant::now() > deadline || !router.is_running().map_err(Failure::said)? {
                        return Err(Failure::said(format!(
                            "the router does not start: {}",
                            router.stderr_so_far().trim()
                        )));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                self.processes.push(router);
                self.socket = Some(socket);
                Ok(())
            }
        }
    }

    /// Moves packet processing of devices to one core: by threads of NAPI bound to the core where the
    /// device has NAPI, by RPS where it has not. Threads are preferred, because the scheduler knows
    /// exactly how long each ran. The settings end with the namespace.
    fn steer(&self, host: &str, names: &[String; 2], core: usize) -> Result<(), Failure> {
        // /sys shows the devices of the namespace in which it is mounted.
        let in_sys = |script: String| -> Result<(), Failure> {
            let script = format!("mount -t sysfs weir-lab /sys && cd /sys/class/net && {script}");
            let arguments = ["-m", "sh", "-c", &script];
            let host = self.lab.host(host).map_err(Failure::said)?;
            let done = host
                .run("unshare", &arguments, Duration::from_secs(10))
                .map_err(Failure::said)?;
            if done.success() {
                return Ok(());
            }
            Err(Failure::said(format!(
                "packets of {} cannot be moved to core {core}: {}",
                names.join(" and "),
                done.stderr.trim()
            )))
        };
        let mask = format!("{:x}", 1_u64 << (core % 64));
        for name in names {
            in_sys(format!("echo 1 > {name}/threaded 2>/dev/null || true"))?;
            let threads = napi_threads(name);
            if threads.is_empty() {
                in_sys(format!("echo {mask} > {name}/queues/rx-0/rps_cpus"))?;
            }
            for thread in threads {
                let arguments = ["-cp", &core.to_string(), &thread.to_string()];
                let host = self.lab.host(host).map_err(Failure::said)?;
                let done = host
                    .run("taskset", &arguments, Duration::from_secs(10))
                    .map_err(Failure::said)?;
                if !done.success() {
                    return Err(Failure::said(format!(
                        "the thread of {name} cannot be bound to core {core}: {}",
                        done.stderr.trim()
                    )));
                }
            }
        }
        Ok(())
    }

    fn memif(&self) -> PathBuf {
        self.folder.join("memif.sock")
    }

    fn open(&mut self, routed: bool, cables: &Cables, pool: &Pool) -> Result<(), Failure> {
        let inside = self.lab.host(GENERATOR).map_err(Failure::said)?;
        let (names, namespace) = match cables {
            Cables::Veth | Cables::Split { .. } => {
                (generator_names(cables), inside.namespace().clone())
            }
            Cables::Memif => {
                let port = |id| format!("memif:{},id={id},role=master", self.memif().display());
                ([port(0), port(1)], NetNs::current().map_err(Failure::said)?)
            }
            Cables::Cards(cards, _) => (cards.clone(), NetNs::current().map_err(Failure::said)?),
        };
        for (name, network) in names.iter().zip(1..) {
            // Two ends of memif have no MAC address of their own.
            let mac = if matches!(cables, Cables::Memif) {
                format!(",mac=02:00:00:00:00:0{network}")
            } else {
                String::new()
            };
            let text = if routed {
                format!("{name}{mac},address=10.{network}.0.2/24,gateway=10.{network}.0.1")
            } else {
                format!("{name}{mac}")
            };
            let spec = PortSpec::parse(&text).map_err(Failure::said)?;
            self.ports
                .push(namespace.run(|| spec.open(pool)).map_err(Failure::said)??);
        }
        for port in &mut self.ports {
            port.wait_for_link(Duration::from_secs(10))?;
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
