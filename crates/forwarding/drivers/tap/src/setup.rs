//! Making a TAP: open, attach the queues, address, MTU, up. Every error is one sentence with what to
//! do about it; what was made before is gone with the descriptors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use weir_netlink::route::{Link, Route};
use weir_port::{LONGEST_FRAME, OpenError};
use weir_wire::MacAddr;

use crate::sys;

/// How a TAP is to be made.
#[derive(Clone, Debug)]
pub struct TapConfig {
    /// The device's name: 1 to 15 bytes.
    pub name: String,
    /// The address of the Linux side; the kernel chooses one when `None`.
    pub mac: Option<MacAddr>,
    /// The largest packet above the Ethernet header.
    pub mtu: u32,
    /// Queues, each with a descriptor of its own.
    pub queues: usize,
    /// It stays when the port closes, without a carrier, until somebody deletes it.
    pub persistent: bool,
}

impl TapConfig {
    /// One queue, MTU 1500, an address that the kernel chooses.
    #[must_use]
    pub fn new(name: impl Into<String>) -> TapConfig {
        TapConfig {
            name: name.into(),
            mac: None,
            mtu: 1500,
            queues: 1,
            persistent: false,
        }
    }
}

/// What the longest frame has beside the packet: Ethernet header and two VLAN tags.
const FRAMING: u32 = 14 + 2 * 4;

/// The device as it is now, and a descriptor a queue.
pub(crate) fn open(
    config: &TapConfig,
    route: &mut Route,
) -> Result<(Vec<OwnedFd>, Link), OpenError> {
    let name = &config.name;
    let longest = LONGEST_FRAME as u32 - FRAMING;
    if !(68..=longest).contains(&config.mtu) {
        return Err(OpenError(format!(
            "{name}: an MTU of {} is impossible: use 68 to {longest}",
            config.mtu
        )));
    }
    if name.is_empty()
        || name.len() >= libc::IFNAMSIZ
        || name.contains(|character: char| {
            matches!(character, '/' | ':' | '%') || character.is_whitespace()
        })
    {
        return Err(OpenError(format!(
            "{name:?} is no name for a device: use 1 to 15 bytes without slash, colon, percent sign or white space"
        )));
    }
    let queues = config.queues.max(1);
    let descriptors = (0..queues)
        .map(|_| queue(config, queues > 1))
        .collect::<Result<Vec<_>, _>>()?;
    let failed =
        |error: weir_netlink::Error| OpenError(format!("{name} cannot be set up: {error}"));
    let index = route.link_by_name(name).map_err(failed)?.index;
    if let Some(mac) = config.mac {
        route.set_mac(index, mac.0).map_err(failed)?;
    }
    route.set_mtu(index, config.mtu).map_err(failed)?;
    route.set_up(index, true).map_err(failed)?;
    Ok((descriptors, route.link_by_index(index).map_err(failed)?))
}

/// Makes a TAP of one queue in the network namespace of the calling thread and returns its descriptor, which does not
/// block. For programs that take a guest's part.
///
/// # Errors
/// One sentence: what is missing and what to do.
pub fn descriptor(name: &str) -> Result<OwnedFd, OpenError> {
    let mut route = Route::open().map_err(|error| OpenError(format!("{name}: {error}")))?;
    let (mut descriptors, _) = open(&TapConfig::new(name), &mut route)?;
    descriptors
        .pop()
        .ok_or_else(|| OpenError(format!("{name}: the TAP has no queue")))
}

fn queue(config: &TapConfig, several: bool) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tun = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
        .map_err(|errno| no_tun(&config.name, errno.into()))?;
    sys::attach(tun.as_fd(), &config.name, several)
        .map_err(|error| not_attached(&config.name, &error))?;
    if config.persistent {
        sys::persist(tun.as_fd()).map_err(|error| not_attached(&config.name, &error))?;
    }
    Ok(tun)
}

fn no_tun(name: &str, error: io::Error) -> OpenError {
    OpenError(match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            format!(
                "{name}: there is no /dev/net/tun: `modprobe tun`, or in a container pass the device in"
            )
        }
        Some(libc::EACCES | libc::EPERM) => {
            format!("{name}: no right to open /dev/net/tun: run weir as root")
        }
        _ => format!("{name}: /dev/net/tun cannot be opened: {error}"),
    })
}

fn not_attached(name: &str, error: &io::Error) -> OpenError {
    OpenError(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            format!("{name}: no right to make a TAP: run weir as root, or with CAP_NET_ADMIN")
        }
        Some(libc::EBUSY) => {
            format!("{name} is in use by another program: stop that one, or use another name")
        }
        Some(libc::EINVAL) => {
            format!(
                "{name} is there already and is no TAP, or one with another number of queues: use another name, or `ip link delete {name}`"
            )
        }
        _ => format!("{name}: the TAP cannot be made: {error}"),
    })
}
