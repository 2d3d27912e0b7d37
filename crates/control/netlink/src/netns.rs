//! Network namespaces held by descriptor, not by name.
//!
//! A namespace made here has no name in `/run/netns`: only descriptors (and processes inside) keep
//! it. When the last one goes, also by `kill -9`, the kernel deletes the namespace with every veth,
//! bridge and address in it. There is nothing to clean up and nothing to leave behind.
//!
//! A thread that enters a namespace is a different thread ever after, so entering is done only on
//! helper threads that end ([`NetNs::run`]) and in children between fork and exec
//! ([`NetNs::command`]). The calling thread never moves.
//!
//! Nothing is mounted. What works inside without a `/sys` of the namespace: everything on sockets
//! (netlink, `SIOCETHTOOL`, AF_PACKET, AF_XDP, BPF), hence `ip`, `ethtool`, `tcpdump -i`, `ping`,
//! `iperf3`, `tshark`; and `/proc/sys/net`, which follows the thread. What does not: paths under
//! `/sys/class/net`, which show the namespace in which `/sys` was mounted. `/proc/net` shows the
//! namespace of the process's first thread: helper threads read `/proc/thread-self/net`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::route::Route;
use crate::sys;

/// The namespace of the calling thread; `/proc/self` would be that of the first thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
/// Where `ip netns` keeps its names.
const NAMED_NAMESPACES: &str = "/run/netns";

/// A network namespace, alive as long as this value or one of its clones.
#[derive(Debug, Clone)]
pub struct NetNs {
    descriptor: Arc<OwnedFd>,
}

/// A TCP socket that listens in a namespace, in the calling thread's when `None`; accepting does not wait.
///
/// # Errors
/// When the address cannot be used there, or the namespace cannot be entered.
pub fn listen(namespace: Option<&NetNs>, address: SocketAddr) -> io::Result<TcpListener> {
    let bind = move || TcpListener::bind(address);
    let listener = match namespace {
        None => bind(),
        Some(namespace) => namespace.run(bind).map_err(io::Error::other)?,
    }?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl NetNs {
    /// Makes an anonymous network namespace whose loopback is up. Needs CAP_SYS_ADMIN.
    pub fn new() -> Result<NetNs> {
        let asked = "create a network namespace";
        on_helper_thread(asked, || {
            sys::leave_network_namespace().map_err(|source| Error::system(asked, source))?;
            let namespace = NetNs::current()?;
            let mut route = Route::open()?;
            let loopback = route.link_by_name("lo")?;
            route.set_up(loopback.index, true)?;
            Ok(namespace)
        })?
    }

    /// The network namespace of the calling thread.
    pub fn current() -> Result<NetNs> {
        NetNs::open_path(OWN_NAMESPACE)
    }

    /// A namespace which `ip netns add NAME` made.
    pub fn open_named(name: &str) -> Result<NetNs> {
        if name.is_empty() || name.contains('/') || name == "." || name == ".." {
            return Err(Error::invalid(
                "open a network namespace",
                format!("{name:?} is no name"),
            ));
        }
        NetNs::open_path(&format!("{NAMED_NAMESPACES}/{name}"))
    }

    fn open_path(path: &str) -> Result<NetNs> {
        let file = File::open(path)
            .map_err(|source| Error::system(format!("open network namespace {path}"), source))?;
        Ok(NetNs::from(OwnedFd::from(file)))
    }

    /// What tells this namespace from all others alive on the machine: the inode number that
    /// `readlink /proc/PID/ns/net` shows.
    pub fn inode(&self) -> Result<u64> {
        let status = rustix::fs::fstat(&self.descriptor)
            .map_err(|errno| Error::system("look at a network namespace", errno))?;
        Ok(status.st_ino)
    }

    /// Runs `work` on a helper thread inside the namespace and returns its result. A panic of
    /// `work` goes on in the caller, as if it had been called directly.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let asked = "enter a network namespace";
        on_helper_thread(asked, || {
            sys::enter(self.as_fd()).map_err(|source| Error::system(asked, source))?;
            Ok(work())
        })?
    }

    /// A route netlink client for this namespace.
    pub fn route(&self) -> Result<Route> {
        self.run(Route::open)?
    }

    /// A command whose process enters the namespace before the program starts, and which the
    /// kernel kills when the thread that spawned it ends: see [`spawn_lasting`].
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::enter_before_exec(
            &mut command,
            Arc::clone(&self.descriptor),
            std::process::id(),
        );
        command
    }
}

impl From<OwnedFd> for NetNs {
    fn from(descriptor: OwnedFd) -> Self {
        NetNs {
            descriptor: Arc::new(descriptor),
        }
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for NetNs {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

fn on_helper_thread<T: Send>(asked: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let helper = thread::Builder::new()
            .name("weir-netns".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|source| Error::system(asked, source))?;
        match helper.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

type SpawnRequest = (Command, Sender<io::Result<Child>>);

/// Spawns a command of [`NetNs::command`] so that it dies with this *process*.
///
/// The parent death signal is sent when the *thread* that spawned the child ends (`prctl(2)`,
/// PR_SET_PDEATHSIG). Spawned from a helper thread or a test, the child would die with it. This
/// function spawns from one thread that lives as long as the process.
pub fn spawn_lasting(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<SpawnRequest>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = channel::<SpawnRequest>();
        // When this thread cannot be made, the receiver is dropped and every spawn says so.
        let _ = thread::Builder::new()
            .name("weir-spawner".to_owned())
            .spawn(move || {
                for (mut command, answer) in receiver {
                    let _ = answer.send(command.spawn());
                }
            });
        Mutex::new(sender)
    });
    let (sender, receiver) = channel();
    let lost = || io::Error::other("the thread that spawns processes is gone");
    let requests = spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    requests.send((command, sender)).map_err(|_| lost())?;
    receiver.recv().map_err(|_| lost())?
}
