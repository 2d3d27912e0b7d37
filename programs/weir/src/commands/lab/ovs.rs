//! Open vSwitch as a device under test: its kernel datapath with one bridge of two ports.
//!
//! The database and the switch are processes in the device's namespace, with their files in the stage's
//! folder, so that an Open vSwitch of this machine is neither needed nor disturbed. The datapath goes
//! with the namespace.

use std::path::Path;
use std::time::Duration;

use weir_netlink::lab::{Host, Running, has_program};

use crate::failure::Failure;

const LIMIT: Duration = Duration::from_secs(30);
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const BRIDGE: &str = "bridge";

/// Why this machine cannot have it.
pub(super) fn missing() -> Option<&'static str> {
    let programs = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"];
    if !programs.into_iter().all(has_program) || !Path::new(SCHEMA).exists() {
        return Some("Open vSwitch is not installed (Debian's package openvswitch-switch)");
    }
    let loaded = || Path::new("/sys/module/openvswitch").exists();
    if !loaded() {
        // A kernel without the module says so; that is the answer below.
        let _ = std::process::Command::new("modprobe")
            .args(["-q", "openvswitch"])
            .status();
    }
    (!loaded()).then_some("this kernel does no Open vSwitch (module openvswitch)")
}

/// Starts it. The processes end when they are dropped.
pub(super) fn start(
    host: &Host,
    folder: &Path,
    ports: &[String; 2],
) -> Result<Vec<Running>, Failure> {
    let path = |name: &str| folder.join(name).display().to_string();
    let database = path("ovs.db");
    let socket = path("ovs.sock");
    let remote = format!("unix:{socket}");
    let run = |program: &str, arguments: &[&str]| -> Result<(), Failure> {
        let done = host.run(program, arguments, LIMIT).map_err(Failure::said)?;
        if done.success() {
            return Ok(());
        }
        Err(Failure::said(format!("{program}: {}", done.stderr.trim())))
    };
    run("ovsdb-tool", &["create", &database, SCHEMA])?;
    let listen = format!("--remote=punix:{socket}");
    let control = |name: &str| format!("--unixctl={}", path(name));
    let server = host
        .spawn(
            "ovsdb-server",
            &[&database, &listen, &control("ovsdb.ctl"), "--no-chdir"],
        )
        .map_err(Failure::said)?;
    let database = format!("--db={remote}");
    // Waits for the server, and tells the switch its number of cores and defaults.
    run("ovs-vsctl", &[&database, "--retry", "--no-wait", "init"])?;
    let switch = host
        .spawn(
            "ovs-vswitchd",
            &[&remote, &control("vswitchd.ctl"), "--no-chdir"],
        )
        .map_err(Failure::said)?;
    let [a, b] = ports;
    let timeout = format!("--timeout={}", LIMIT.as_secs());
    // Without --no-wait it returns when the switch has made the bridge.
    let arguments = [
        &database, &timeout, "add-br", BRIDGE, "--", "add-port", BRIDGE, a, "--", "add-port",
        BRIDGE, b,
    ];
    run("ovs-vsctl", &arguments)?;
    Ok(vec![switch, server])
}
