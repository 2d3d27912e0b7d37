//! The programs: loaded with the pinned maps of a folder, attached by pinned links.
//!
//! A pinned link outlives the daemon, so that forwarding goes on while no daemon runs. A new version takes the
//! place of the old one by an update of the link, which the kernel does between two packets. An interface that
//! has a program of somebody else is refused, never changed.

use std::path::{Path, PathBuf};

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::XdpLink;
use aya::programs::{BtfTracePoint, ProgramFd, Xdp, XdpMode};
use aya::{Btf, Ebpf, EbpfLoader};

use crate::config::Mode;
use crate::error::{Error, Result, chain};

/// The compiled programs; `bpf/build` makes them.
pub static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/weir.o"));

/// The magic number of bpffs.
const BPF_FS: i64 = 0xcafe_4a11;

/// Tracepoints with their programs.
const TRACEPOINTS: [(&str, &str); 2] = [
    ("weir_devmap_xmit", "xdp_devmap_xmit"),
    ("weir_redirect_err", "xdp_redirect_err"),
];

/// The loaded programs of one folder.
pub struct Programs {
    ebpf: Ebpf,
    folder: PathBuf,
    mode: XdpMode,
}

/// The running kernel's version.
#[must_use]
pub fn kernel() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// Makes the folder for pinned maps, and checks that it is on a BPF file system.
///
/// # Errors
/// When it is not.
pub fn prepare(folder: &Path) -> Result<()> {
    let failed = |reason: String| Error::Folder {
        folder: folder.to_owned(),
        reason,
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    let found = rustix::fs::statfs(folder).map_err(|error| failed(error.to_string()))?;
    if found.f_type != BPF_FS {
        return Err(failed(
            "it is not on a BPF file system: mount one with `mount -t bpf bpf /sys/fs/bpf` (under `ip netns exec`, use nsenter --net=/run/netns/NAME)".into(),
        ));
    }
    Ok(())
}

impl Programs {
    /// Loads the programs. Maps that are pinned in the folder `tables` are used as they are; links are pinned in `folder`.
    ///
    /// # Errors
    /// When the kernel refuses: too old, or a capability is missing.
    pub fn load(folder: &Path, tables: &Path, mode: Mode) -> Result<Programs> {
        let failed = |reason: String| Error::Load {
            kernel: kernel(),
            reason,
        };
        let mut ebpf = EbpfLoader::new()
            .default_map_pin_directory(tables)
            .load(OBJECT)
            .map_err(|error| failed(explain(&error)))?;
        for name in ["weir_ingress", "weir_egress"] {
            let program = xdp(&mut ebpf, name)?;
            program
                .load()
                .map_err(|error| failed(format!("program {name}: {}", explain(&error))))?;
        }
        let mode = match mode {
            Mode::Native => XdpMode::Driver,
            Mode::Generic => XdpMode::Skb,
        };
        Ok(Programs {
            ebpf,
            folder: folder.to_owned(),
            mode,
        })
    }

    /// The program that every entry of a devmap has.
    ///
    /// # Errors
    /// Never, once loaded.
    pub fn egress(&self) -> Result<ProgramFd> {
        let missing = || Error::Load {
            kernel: kernel(),
            reason: "the object has no weir_egress".into(),
        };
        let program = self.ebpf.program("weir_egress").ok_or_else(missing)?;
        let program: &Xdp = program.try_into().map_err(|_| missing())?;
        let fd = program.fd().map_err(|_| missing())?;
        fd.try_clone().map_err(|_| missing())
    }

    fn link_path(&self, ifindex: u32) -> PathBuf {
        self.folder.join(format!("link-{ifindex}"))
    }

    /// Attaches to an interface, or puts this version in the place of an earlier one.
    ///
    /// # Errors
    /// When the driver refuses, or another program is there.
    pub fn attach(&mut self, ifindex: u32, name: &str) -> Result<()> {
        let (path, mode) = (self.link_path(ifindex), self.mode);
        let failed = |reason: String| Error::Attach {
            interface: name.to_owned(),
            reason,
        };
        let program = xdp(&mut self.ebpf, "weir_ingress")?;
        if path.exists() {
            if replace(program, &path).is_ok() {
                return Ok(());
            }
            // The link of a device that is gone.
            std::fs::remove_file(&path).map_err(|error| failed(error.to_string()))?;
        }
        let id = program.attach_to_if_index(ifindex, mode).map_err(|error| {
            let text = chain(&error);
            failed(match errno(&error) {
                Some(16 | 17) => "another XDP program is attached: detach it (`ip link set dev NAME xdp off`), or leave this interface out".into(),
                Some(95) => format!("the driver has no native XDP ({text}): set `mode: generic`"),
                Some(1 | 13) => format!("{text}: needs CAP_NET_ADMIN and CAP_BPF"),
                Some(28) => format!("{text}: on veth, the peer has more transmit queues than this end has receive queues, or its MTU is above 3506"),
                _ => text,
            })
        })?;
        let link = program
            .take_link(id)
            .map_err(|error| failed(chain(&error)))?;
        let link = FdLink::try_from(link).map_err(|error| failed(chain(&error)))?;
        link.pin(&path).map_err(|error| failed(chain(&error)))?;
        Ok(())
    }

    /// Detaches from an interface, also from one that is gone.
    pub fn detach(&self, ifindex: u32) {
        // The last reference to a link is its file.
        let _ = std::fs::remove_file(self.link_path(ifindex));
    }

    /// Starts to count what the kernel drops between the programs. Programs of an equal version go on.
    ///
    /// # Errors
    /// When the kernel has no BTF or lacks the tracepoints.
    pub fn attach_tracepoints(&mut self) -> Result<()> {
        let failed = |reason: String| Error::Load {
            kernel: kernel(),
            reason,
        };
        let btf = Btf::from_sys_fs()
            .map_err(|error| failed(format!("the kernel has no BTF: {}", chain(&error))))?;
        for (name, tracepoint) in TRACEPOINTS {
            let path = self.folder.join(format!("tracepoint-{tracepoint}"));
            let program = self
                .ebpf
                .program_mut(name)
                .ok_or_else(|| failed(format!("the object has no {name}")))?;
            let program: &mut BtfTracePoint =
                program.try_into().map_err(|error| failed(chain(&error)))?;
            program
                .load(tracepoint, &btf)
                .map_err(|error| failed(format!("tracepoint {tracepoint}: {}", explain(&error))))?;
            let tag = program.info().map_err(|error| failed(chain(&error)))?.tag();
            if path.exists() {
                if pinned_tag(&path) == Some(tag) {
                    continue;
                }
                std::fs::remove_file(&path).map_err(|error| failed(error.to_string()))?;
            }
            let id = program.attach().map_err(|error| failed(chain(&error)))?;
            let link = program
                .take_link(id)
                .map_err(|error| failed(chain(&error)))?;
            FdLink::from(link)
                .pin(&path)
                .map_err(|error| failed(chain(&error)))?;
        }
        Ok(())
    }
}

/// Waits until packets that are being forwarded now are forwarded.
pub fn wait_for_packets() {
    use rustix::thread::{MembarrierCommand, membarrier};
    // The kernel waits for a grace period of RCU. Kernels with CPUs that have no timer ticks refuse it.
    if membarrier(MembarrierCommand::Global).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Tables that versions before layout 2 pinned beside the links.
const OLD_TABLES: [&str; 18] = [
    "ports",
    "logicals",
    "fdb",
    "counters",
    "control",
    "policers",
    "guard_mac",
    "guard_ip",
    "neighbors",
    "acls",
    "acl_words",
    "acl_hits",
    "connections",
    "gaps",
    "transmit",
    "flood",
    "events",
    "traces",
];

/// Removes tables of other layouts. Files that are not Weir's stay.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove_other_tables(folder: &Path, tables: &Path) -> Result<()> {
    let failed = |path: &Path, source| Error::File {
        action: "remove",
        path: path.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(|source| failed(folder, source))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let removed = if path.is_dir() && name.starts_with("tables-") && path != tables {
            std::fs::remove_dir_all(&path)
        } else if path.is_file() && OLD_TABLES.contains(&name.as_ref()) {
            std::fs::remove_file(&path)
        } else {
            continue;
        };
        removed.map_err(|source| failed(&path, source))?;
    }
    Ok(())
}

/// Removes everything from the folder: programs are detached, maps vanish.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove(folder: &Path) -> Result<()> {
    let failed = |source| Error::File {
        action: "remove",
        path: folder.to_owned(),
        source,
    };
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed),
    }
}

/// Interfaces that have a pinned link in the folder.
#[must_use]
pub fn attached(folder: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("link-")?
                .parse()
                .ok()
        })
        .collect()
}

fn xdp<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut Xdp> {
    let failed = |reason: String| Error::Load {
        kernel: kernel(),
        reason,
    };
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| failed(format!("the object has no {name}")))?;
    program
        .try_into()
        .map_err(|error: aya::programs::ProgramError| failed(chain(&error)))
}

/// Puts the program into a pinned link.
fn replace(program: &mut Xdp, path: &Path) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let link = FdLink::from(PinnedLink::from_pin(path)?);
    let id = program.attach_to_link(XdpLink::try_from(link)?)?;
    // The file keeps the link; this descriptor of it is closed.
    drop(program.take_link(id)?);
    Ok(())
}

/// The tag of the program of a pinned link.
fn pinned_tag(path: &Path) -> Option<u64> {
    let link = FdLink::from(PinnedLink::from_pin(path).ok()?);
    let id = link.info().ok()?.program_id();
    aya::programs::loaded_programs()
        .flatten()
        .find(|program| program.id() == id)
        .map(|program| program.tag())
}

/// The number that the kernel gave.
fn errno(error: &dyn std::error::Error) -> Option<i32> {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return io.raw_os_error();
        }
        source = inner.source();
    }
    None
}

/// One sentence from a failed load: the verifier's last line in place of its whole log. The verifier, too, refuses with
/// EACCES, but then it says why.
fn explain(error: &dyn std::error::Error) -> String {
    let text = chain(error);
    let mut lines = text.lines().filter(|line| {
        let line = line.trim();
        // Figures that the verifier adds to each log.
        !(line.is_empty()
            || line == "}"
            || ["processed ", "verification time", "stack depth"]
                .iter()
                .any(|it| line.starts_with(it)))
    });
    let first = lines.next().unwrap_or_default().to_owned();
    match (lines.next_back(), errno(error)) {
        (Some(last), _) => format!("{first}; the verifier says: {}", last.trim()),
        (None, Some(1 | 13)) => {
            "the kernel permits this only with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (or as root)"
                .into()
        }
        (None, _) => first,
    }
}
