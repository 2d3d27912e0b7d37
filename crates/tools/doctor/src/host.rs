//! What a host says about itself: files below a root folder, and outputs of programs.
//!
//! With the root `/` files are the running system's and programs are run. With any other root
//! everything is read from recorded files: program outputs lie in `commands/`, one file each, named
//! as the command line. Files are read up to 1 MiB; nothing is ever written here.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MOST_BYTES: u64 = 1 << 20;

/// A host, running or recorded.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// The running system.
    #[must_use]
    pub fn running() -> Host {
        Host {
            root: PathBuf::from("/"),
        }
    }

    /// A recorded system.
    #[must_use]
    pub fn recorded(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into() }
    }

    /// Whether this is the running system.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where `path` (without leading slash) lies.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text without surrounding white space; `None` when it cannot be read.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(self.path(path))
            .ok()?
            .take(MOST_BYTES)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file with one whole number.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.split_whitespace().next()?.parse().ok()
    }

    /// The names in a folder, sorted.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Whether a file or folder exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The output of a program; `None` when it is not installed or fails.
    #[must_use]
    pub fn command(&self, line: &str) -> Option<String> {
        if !self.is_running() {
            return self.text(&format!("commands/{line}"));
        }
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next()?);
        let path = format!(
            "{}:/usr/sbin:/sbin",
            std::env::var("PATH").unwrap_or_default()
        );
        let done = command
            .args(words)
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .ok()?;
        done.status
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// The network devices without the loopback.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        self.names("sys/class/net")
            .into_iter()
            .filter(|name| name != "lo" && self.exists(&format!("sys/class/net/{name}/mtu")))
            .collect()
    }

    /// The network devices with hardware (or a virtual machine's) behind them.
    #[must_use]
    pub fn hardware(&self) -> Vec<String> {
        self.devices()
            .into_iter()
            .filter(|name| self.exists(&format!("sys/class/net/{name}/device")))
            .collect()
    }

    /// The receive or transmit queues of a device: `rx` or `tx`.
    #[must_use]
    pub fn queues(&self, device: &str, direction: &str) -> Vec<String> {
        let names = self.names(&format!("sys/class/net/{device}/queues"));
        names
            .into_iter()
            .filter(|name| name.starts_with(direction))
            .collect()
    }

    /// The number of processors that are online.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.text("sys/devices/system/cpu/online")
            .map_or(1, |text| cpus(&text).len().max(1))
    }

    /// The kernel's version, as (6, 18).
    #[must_use]
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.text("proc/sys/kernel/osrelease")?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Whether Linux forwards IPv4 or IPv6.
    #[must_use]
    pub fn is_router(&self) -> bool {
        [
            "proc/sys/net/ipv4/ip_forward",
            "proc/sys/net/ipv6/conf/all/forwarding",
        ]
        .iter()
        .any(|path| self.number(path) == Some(1))
    }

    /// One feature of `ethtool -k DEVICE`; `None` when it is fixed, so that nobody can change it.
    #[must_use]
    pub fn feature(&self, device: &str, name: &str) -> Option<bool> {
        let text = self.command(&format!("ethtool -k {device}"))?;
        let value = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        (!value.contains("[fixed]")).then(|| value.trim().starts_with("on"))
    }
}

/// Reads a list as `0-3,8`; at most 4096 numbers.
#[must_use]
pub(crate) fn cpus(text: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        {
            all.extend((first..=last).take(4096));
        }
    }
    all.truncate(4096);
    all
}

/// Whether a mask as `00000000,0000000f` has any bit set.
#[must_use]
pub(crate) fn mask_is_set(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_hexdigit() && c != '0')
}

/// A recorded host for tests: a temporary folder that is removed with it.
#[cfg(test)]
pub(crate) struct Recorded {
    folder: PathBuf,
    pub(crate) host: Host,
}

#[cfg(test)]
impl Recorded {
    pub(crate) fn new(files: &[(&str, &str)]) -> Recorded {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("weir-doctor-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Recorded {
            host: Host::recorded(&folder),
            folder,
        }
    }
}

#[cfg(test)]
impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_are_read() {
        assert_eq!(cpus("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus("x,-,5-,99999999999999999999999"), [] as [usize; 0]);
        assert_eq!(cpus("0-99999999").len(), 4096);
        assert!(mask_is_set("00000000,00000002") && !mask_is_set("00000000,00000000"));
    }

    #[test]
    fn a_recorded_host_runs_no_programs() {
        let recorded = Recorded::new(&[
            (
                "commands/ethtool -k eth0",
                "large-receive-offload: on\nrx-vlan-offload: off [fixed]\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n"),
        ]);
        assert_eq!(
            recorded.host.feature("eth0", "large-receive-offload"),
            Some(true)
        );
        assert_eq!(recorded.host.feature("eth0", "rx-vlan-offload"), None);
        assert_eq!(recorded.host.command("true"), None);
        assert_eq!(recorded.host.kernel(), Some((6, 1)));
    }
}
