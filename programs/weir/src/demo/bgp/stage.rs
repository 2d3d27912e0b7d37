//! Hosts, cables, routers and daemons of the BGP demo.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_api::Client;
use weir_netlink::ethtool::Offload;
use weir_netlink::lab::{Cable, Host, Lab, Port, Running, has_program};

use super::texts::{self, Announced};

/// How long a router or a daemon may take to start.
const START: Duration = Duration::from_secs(30);

/// The demo's files.
pub(crate) fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("weir-demo-bgp-{}", std::process::id()))
}

/// A folder that goes with the demo.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A router: Weir and BIRD in one namespace.
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) weir: Running,
    bird: Option<Running>,
    folder: PathBuf,
}

impl Site {
    fn start(lab: &Lab, folder: &Path, name: &str, weir: &str, bird: &str) -> Result<Site, String> {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let write = |file: &str, text: &str| {
            fs::write(folder.join(file), text).map_err(|error| error.to_string())
        };
        let history = folder.join("history").display().to_string();
        write(
            "weir.yaml",
            &format!("{weir}history: {{ directory: {history} }}\n"),
        )?;
        write("bird.conf", bird)?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (config, socket) = (folder.join("weir.yaml"), folder.join("weir.sock"));
        let host = lab.host(name).map_err(|error| error.to_string())?;
        let arguments = [
            "run",
            "-c",
            &config.display().to_string(),
            "--socket",
            &socket.display().to_string(),
        ];
        let mut weir = host
            .spawn(&program.display().to_string(), &arguments)
            .map_err(|error| error.to_string())?;
        weir.wait_for_output("runs:", START)
            .map_err(|error| error.to_string())?;
        Ok(Site {
            client: Client::new(socket),
            weir,
            bird: None,
            folder,
        })
    }

    /// Where BIRD listens to `birdc`.
    pub(crate) fn bird_control(&self) -> PathBuf {
        self.folder.join("bird.ctl")
    }

    /// Starts BIRD; after a crash it lets routes stay that it had written, until it has learned them anew.
    pub(crate) fn start_bird(&mut self, host: &Host, after_a_crash: bool) -> Result<(), String> {
        let (config, control) = (self.folder.join("bird.conf"), self.bird_control());
        let (config, control) = (config.display().to_string(), control.display().to_string());
        let mut arguments = vec!["-f", "-c", &config, "-s", &control];
        if after_a_crash {
            arguments.push("-R");
        }
        self.bird = Some(
            host.spawn("bird", &arguments)
                .map_err(|error| error.to_string())?,
        );
        Ok(())
    }

    /// Kills BIRD, which has no time to take its routes back.
    pub(crate) fn kill_bird(&mut self) {
        self.bird = None;
    }

    /// Fails when BIRD has ended by itself.
    pub(crate) fn check_bird(&mut self) -> Result<(), String> {
        let Some(bird) = &mut self.bird else {
            return Ok(());
        };
        if bird.is_running().map_err(|error| error.to_string())? {
            return Ok(());
        }
        Err(format!("BIRD has ended: {}", bird.stderr_so_far().trim()))
    }
}

/// Everything that the demo made. The processes end before their folder goes.
pub(crate) struct Stage {
    pub(crate) west: Site,
    pub(crate) east: Site,
    pub(crate) lab: Lab,
    _folder: Folder,
}

impl Stage {
    /// Makes hosts and cables, and starts both routers, without daemons.
    pub(crate) fn build(announced: &Announced) -> Result<Stage, String> {
        weir_netlink::lab::preflight()?;
        for (program, package) in [
            ("ip", "iproute2"),
            ("ping", "iputils-ping"),
            ("birdc", "bird2"),
        ] {
            if !has_program(program) {
                return Err(format!(
                    "{program} is missing: install the package {package}"
                ));
            }
        }
        let folder = Folder(folder());
        let lab = cables().map_err(|error| error.to_string())?;
        let west = Site::start(&lab, &folder.0, "west", texts::WEST, texts::WEST_BIRD)?;
        let east = Site::start(&lab, &folder.0, "east", texts::EAST, texts::EAST_BIRD)?;
        let (four, six) = announced.bird();
        for (name, text) in [("table4.conf", four), ("table6.conf", six)] {
            fs::write(east.folder.join(name), text).map_err(|error| error.to_string())?;
        }
        Ok(Stage {
            west,
            east,
            lab,
            _folder: folder,
        })
    }

    /// A host by name.
    pub(crate) fn host(&self, name: &str) -> Result<&Host, String> {
        self.lab.host(name).map_err(|error| error.to_string())
    }

    /// Sets a link of east up or down, which takes the carrier of west's end with it.
    pub(crate) fn set_link(&self, name: &str, up: bool) -> Result<(), String> {
        let mut route = self
            .host("east")?
            .route()
            .map_err(|error| error.to_string())?;
        let link = route
            .link_by_name(name)
            .map_err(|error| error.to_string())?;
        route
            .set_up(link.index, up)
            .map_err(|error| error.to_string())
    }
}

fn cables() -> Result<Lab, weir_netlink::Error> {
    let mut lab = Lab::new();
    for host in ["host-a", "west", "east", "host-b"] {
        lab.add_host(host)?;
    }
    let end = |host: &str, number: u8| {
        let [four, six] = [format!("10.{number}.0.2"), format!("fd00:{number}::2")];
        let port = Port::new(host, "eth0")
            .offload(Offload::TxChecksum, false)
            .offload(Offload::GenericReceive, true);
        match (
            four.parse::<std::net::IpAddr>(),
            six.parse::<std::net::IpAddr>(),
        ) {
            (Ok(four), Ok(six)) => port.address(four, 24).address(six, 64),
            _ => port,
        }
    };
    lab.connect(&Cable::new(end("host-a", 1), Port::new("west", "port-a")))?;
    for link in ["link-1", "link-2"] {
        lab.connect(&Cable::new(
            Port::new("west", link),
            Port::new("east", link),
        ))?;
    }
    lab.connect(&Cable::new(end("host-b", 3), Port::new("east", "port-b")))?;
    lab.default_route("host-a", std::net::Ipv4Addr::new(10, 1, 0, 1))?;
    // Host-b has the addresses of the whole table, and reaches host-a.
    let host = lab.host("host-b")?;
    for command in [
        "route add 10.0.0.0/8 via 10.3.0.1",
        "route add local 0.0.0.0/1 dev lo",
        "route add local 128.0.0.0/1 dev lo",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        host.run("ip", &words, Duration::from_secs(5))?;
    }
    Ok(lab)
}
