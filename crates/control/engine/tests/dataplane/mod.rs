//! A router whose interfaces have TAPs in a network namespace, where daemons and `ip` run.
//!
//! ```text
//!  dataplane (named namespace)        router              far            near
//!  daemon ─ TAP wan, lan0 ─────── wan ═══════════════ w0 daemon, 203.0.113.1
//!                                 lan ══════════════ l0 bridge v0 ─── n0 ping
//! ```
//!
//! The links of the router are TAPs too. Needs root.

#![allow(dead_code, reason = "not each test uses all of it")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_api::{Destinations, RouteCandidate, RouteQuery, RouteSource, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};
use weir_netlink::netns::NetNs;

const PATIENCE: Duration = Duration::from_secs(40);

/// A namespace with a name, which goes with it.
pub(crate) struct Named(pub(crate) String);

impl Named {
    fn new(what: &str) -> Option<Named> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-{what}{number}-{}", std::process::id());
        ip(&["netns", "add", &name]).then(|| {
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            Named(name)
        })
    }

    fn open(&self) -> NetNs {
        NetNs::open_named(&self.0).unwrap()
    }

    /// Deletes the namespace and makes another one of its name.
    pub(crate) fn make_anew(&self) -> bool {
        ip(&["netns", "del", &self.0])
            && ip(&["netns", "add", &self.0])
            && ip(&["-n", &self.0, "link", "set", "lo", "up"])
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    let output = Command::new("ip")
        .args(arguments)
        .stderr(Stdio::null())
        .status();
    output.is_ok_and(|status| status.success())
}

/// `ip` in a namespace, which must succeed.
pub(crate) fn ip_in(namespace: &NetNs, arguments: &str) {
    let output = namespace
        .command("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
}

/// A daemon that ends with the test, and its files.
pub(crate) struct Daemon {
    child: Child,
    folder: Option<PathBuf>,
}

impl Daemon {
    pub(crate) fn bird(namespace: &NetNs, name: &str, config: &str) -> Daemon {
        Daemon::bird_again(namespace, name, config, &[])
    }

    /// BIRD with more arguments; `-R` after a crash.
    pub(crate) fn bird_again(namespace: &NetNs, name: &str, config: &str, more: &[&str]) -> Daemon {
        let folder = folder(name);
        let file = write(&folder, "bird.conf", config);
        let mut command = namespace.command("bird");
        command.arg("-f").arg("-c").arg(&file);
        command.arg("-s").arg(folder.join("ctl")).args(more);
        Daemon::start(command, folder)
    }

    pub(crate) fn keepalived(namespace: &NetNs, name: &str, config: &str) -> Daemon {
        let folder = folder(name);
        let file = write(&folder, "keepalived.conf", config);
        let path = |file: &str| folder.join(file).display().to_string();
        let mut command = namespace.command("keepalived");
        command.args(["--dont-fork", "--vrrp", "--log-console", "--use-file"]);
        command.arg(file);
        command.args(["--pid", &path("pid"), "--vrrp_pid", &path("vrrp.pid")]);
        Daemon::start(command, folder)
    }

    /// Ends it as an administrator does, and waits.
    pub(crate) fn terminate(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it without ending it.
    pub(crate) fn pause(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }

    /// What a command of birdc shows.
    pub(crate) fn birdc(&self, command: &str) -> String {
        let Some(folder) = &self.folder else {
            return String::new();
        };
        let mut birdc = Command::new("birdc");
        birdc.arg("-s").arg(folder.join("ctl")).arg(command);
        let output = birdc.output();
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    fn start(mut command: Command, folder: PathBuf) -> Daemon {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = weir_netlink::netns::spawn_lasting(command).unwrap();
        Daemon {
            child,
            folder: Some(folder),
        }
    }
}

/// A folder that daemons of any user may write to.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn write(folder: &Path, file: &str, text: &str) -> PathBuf {
    let file = folder.join(file);
    let mut to = std::fs::File::create(&file).unwrap();
    to.write_all(text.as_bytes()).unwrap();
    file
}

/// Where FRR's daemons are: where `WEIR_FRR` says (`scripts/newer-daemons`), or where Debian has them.
fn frr() -> PathBuf {
    std::env::var_os("WEIR_FRR").map_or_else(|| PathBuf::from("/usr/lib/frr"), PathBuf::from)
}

/// Daemons of FRR in one namespace. Those that still run end with it.
pub(crate) struct Frr {
    namespace: NetNs,
    folder: PathBuf,
}

impl Frr {
    /// `None` where FRR is not installed.
    pub(crate) fn new(namespace: &NetNs, name: &str) -> Option<Frr> {
        if !frr().join("zebra").exists() {
            eprintln!("skipped: FRR is not installed (package frr)");
            return None;
        }
        Some(Frr {
            namespace: namespace.clone(),
            folder: folder(name),
        })
    }

    /// Starts a daemon; dropping what it returns kills it.
    pub(crate) fn start(&self, daemon: &str, config: &str, more: &[&str]) -> Daemon {
        let path = |file: &str| self.folder.join(file).display().to_string();
        let file = write(&self.folder, &format!("{daemon}.conf"), config);
        let mut command = self.namespace.command(frr().join(daemon));
        command.args(["-u", "frr", "-g", "frr", "-A", "127.0.0.1"]);
        command.args(["-z", &path("zserv.api"), "--vty_socket", &path("")]);
        command.args(["-i", &path(&format!("{daemon}.pid")), "-f"]);
        command.arg(file).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = weir_netlink::netns::spawn_lasting(command).unwrap();
        Daemon {
            child,
            folder: None,
        }
    }

    /// Zebra, which sends its routes by FPM.
    pub(crate) fn zebra(&self) -> Daemon {
        let config = "fpm address 127.0.0.1 port 2620\n";
        self.start("zebra", config, &["-M", "dplane_fpm_nl"])
    }

    /// Lines of configuration for the daemons that run. Waits until they answer.
    pub(crate) fn configure(&self, lines: &[&str]) {
        wait_for("FRR's daemons take configuration", || {
            let mut command = Command::new("vtysh");
            command.arg("--vty_socket").arg(&self.folder);
            command.args(["-c", "configure terminal"]);
            for line in lines {
                command.args(["-c", line]);
            }
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        });
    }
}

impl Frr {
    /// What a command of vtysh shows.
    pub(crate) fn show(&self, command: &str) -> String {
        let mut vtysh = Command::new("vtysh");
        vtysh.arg("--vty_socket").arg(&self.folder);
        let output = vtysh.args(["-c", command]).output();
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    wait_or_explain(what, is_so, String::new);
}

/// The same; what `explain` says is in the message of the failure.
pub(crate) fn wait_or_explain(
    what: &str,
    mut is_so: impl FnMut() -> bool,
    explain: impl Fn() -> String,
) {
    let began = Instant::now();
    while !is_so() {
        let is_over = began.elapsed() >= PATIENCE;
        assert!(!is_over, "did not happen: {what}\n{}", explain());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A router with two links, to hosts in namespaces of their own, and its TAPs in `dataplane`.
pub(crate) struct Trial {
    pub(crate) router: Router,
    pub(crate) dataplane: NetNs,
    pub(crate) far: NetNs,
    pub(crate) near: NetNs,
    /// The last to go.
    pub(crate) name: Named,
}

/// Its configuration with more sections.
pub(crate) fn config(dataplane: &str, more: &str) -> weir_config::Config {
    config_with(dataplane, "", more)
}

/// The same with more keys of `linux`.
pub(crate) fn config_with(dataplane: &str, linux: &str, more: &str) -> weir_config::Config {
    let text = format!(
        "interfaces:
  wan: {{ device: {{ driver: tap, name: w0 }}, addresses: [ 192.0.2.1/24, '2001:db8:1::1/64' ] }}
  lan: {{ device: {{ driver: tap, name: l0 }}, addresses: [ 198.51.100.1/24, '2001:db8:2::1/64' ] }}
linux:
  namespace: {dataplane}
  interfaces: {{ wan: {{}}, lan: {{ name: lan0 }} }}
  {linux}
buffers: {{ per-numa: 4096 }}
{more}"
    );
    let checked = check("test", &text);
    checked
        .unwrap_or_else(|errors| panic!("{text}\n{}", errors[0]))
        .0
}

/// Starts it; `None` where named namespaces cannot be made.
pub(crate) fn start() -> Option<Trial> {
    start_with("")
}

/// The same with more keys of `linux`.
pub(crate) fn start_with(linux: &str) -> Option<Trial> {
    start_as(|name| config_with(name, linux, ""))
}

/// The router of an example, whose devices are TAPs here: `eth1` is `wan`'s, `eth2` is `lan`'s.
pub(crate) fn start_example(text: &str) -> Option<Trial> {
    start_as(|name| {
        let text = text
            .replace("driver: af-xdp, name: eth1", "driver: tap, name: w0")
            .replace("driver: af-xdp, name: eth2", "driver: tap, name: l0")
            .replace("namespace: dataplane", &format!("namespace: {name}"));
        let text = format!("{text}buffers: {{ per-numa: 4096 }}\n");
        let checked = check("example", &text);
        checked
            .unwrap_or_else(|errors| panic!("{text}\n{}", errors[0]))
            .0
    })
}

fn start_as(config: impl FnOnce(&str) -> weir_config::Config) -> Option<Trial> {
    let Some(name) = Named::new("dp") else {
        eprintln!("skipped: named network namespaces need root and iproute2");
        return None;
    };
    let (far, near) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let config = config(&name.0);
    let router = far
        .run(|| Router::start(&config, &Options::default()).unwrap())
        .unwrap();
    // The router follows its own end of `l0` by name, so that the end stays, and a bridge leads on to the host.
    for command in [
        "link add br0 type bridge",
        "link add v0 type veth peer name n0",
        "link set l0 master br0",
        "link set v0 master br0",
        "link set br0 up",
        "link set v0 up",
    ] {
        ip_in(&far, command);
    }
    let mut route = far.route().unwrap();
    let link = route.link_by_name("n0").unwrap();
    route.move_to(link.index, &near).unwrap();
    ip_in(&far, "addr add 192.0.2.2/24 dev w0");
    ip_in(&far, "addr add 203.0.113.1/32 dev lo");
    ip_in(&far, "link set w0 up");
    ip_in(&near, "addr add 198.51.100.2/24 dev n0");
    ip_in(&near, "link set n0 up");
    ip_in(&near, "route add default via 198.51.100.1");
    ip_in(&far, "route add 198.51.100.0/24 via 192.0.2.1");
    Some(Trial {
        router,
        dataplane: name.open(),
        far,
        near,
        name,
    })
}

impl Trial {
    /// Stops the router and starts another one. Its links are TAPs, which are new then.
    pub(crate) fn restart(self, linux: &str) -> Trial {
        self.router.stop();
        drop(self.router);
        let config = config_with(&self.name.0, linux, "");
        let router = self
            .far
            .run(|| Router::start(&config, &Options::default()).unwrap())
            .unwrap();
        for command in [
            "link set l0 master br0",
            "addr add 192.0.2.2/24 dev w0",
            "link set w0 up",
            "route add 198.51.100.0/24 via 192.0.2.1",
        ] {
            ip_in(&self.far, command);
        }
        Trial { router, ..self }
    }

    pub(crate) fn kernel_routes(&self) -> Vec<String> {
        let routes = self.router.routes().unwrap().routes;
        let of_kernel = routes
            .iter()
            .filter(|route| route.source == RouteSource::Kernel);
        of_kernel.map(|route| route.prefix.to_string()).collect()
    }

    pub(crate) fn has(&self, prefix: &str) -> bool {
        self.kernel_routes().iter().any(|known| known == prefix)
    }

    /// All routes of a prefix, the one in use first.
    pub(crate) fn candidates(&self, prefix: &str) -> Vec<RouteCandidate> {
        let query = RouteQuery {
            destinations: Destinations::Prefix(prefix.parse().unwrap()),
            table: None,
            family: None,
            after: None,
            most: 10,
        };
        let mut routes = self.router.routes_where(&query).unwrap().routes;
        routes
            .pop()
            .map(|route| route.candidates)
            .unwrap_or_default()
    }

    pub(crate) fn next_hop(&self, prefix: &str) -> Option<String> {
        let routes = self.router.routes().unwrap().routes;
        let route = routes
            .iter()
            .find(|route| route.prefix.to_string() == prefix)?;
        let hop = |path: &weir_api::PathReply| {
            path.next_hop
                .map_or_else(|| path.adjacency.to_string(), |it| it.to_string())
        };
        Some(route.paths.iter().map(hop).collect::<Vec<_>>().join(" "))
    }
}

pub(crate) fn pings(namespace: &NetNs, address: &str) -> bool {
    let arguments = ["-c", "1", "-W", "1", "-n", address];
    let status = namespace
        .command("ping")
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
