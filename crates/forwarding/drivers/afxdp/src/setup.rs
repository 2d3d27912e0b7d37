//! Opening a port: what is tried in which order, and what is said when something stands in the way.
//!
//! Device up → program attached → one socket a queue, bound and entered into the program's map →
//! promiscuous. The program comes first because some drivers prepare their queues for zero-copy only
//! with a program on them; a frame that arrives before its queue has a socket goes to Linux. Whatever
//! fails, everything done so far is undone by being dropped.
//!
//! Every error is one sentence with what to do about it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use weir_buf::{DATA_ROOM, Pool};
use weir_netlink::ethtool::Ethtool;
use weir_netlink::route::{Link, Route};
use weir_port::{OpenError, QueuePair};

use crate::program::{Attachment, Failure, Program};
use crate::rx::Receiver;
use crate::socket::Socket;
use crate::sys::{self, Rings, Sizes};
use crate::tx::Sender;

/// Which way between device and memory to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// The fastest that the device offers.
    #[default]
    Auto,
    /// Zero-copy or nothing.
    ZeroCopy,
    /// A native program with the kernel copying, or nothing.
    Native,
    /// A generic program: works with every device.
    Generic,
}

/// How a port is to be opened.
#[derive(Clone, Debug)]
pub struct AfxdpConfig {
    /// The device's name, in the network namespace of the calling thread.
    pub device: String,
    /// Which way to take.
    pub mode: Mode,
    /// How many of the device's queues to use, from queue 0 upwards; all of them when `None`. Frames
    /// on other queues go to Linux.
    pub queues: Option<usize>,
    /// Frames each of the receive and transmit rings holds: a power of two, 64 to 16,384. Of a small
    /// pool a queue keeps fewer chunks ready, see the crate's story.
    pub ring: u32,
    /// Whether to take frames for other stations, as a cross connect must.
    pub promiscuous: bool,
    /// Chunks that each queue may hold at most, two thirds of them for receiving; what is free decides when `None`.
    pub share: Option<usize>,
}

impl AfxdpConfig {
    /// The usual settings: fastest mode, all queues, rings of 4096, promiscuous.
    #[must_use]
    pub fn new(device: impl Into<String>) -> AfxdpConfig {
        AfxdpConfig {
            device: device.into(),
            mode: Mode::Auto,
            queues: None,
            ring: 4096,
            promiscuous: true,
            share: None,
        }
    }
}

/// A device's sockets, ready to be handed to workers.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) program: Program,
    pub(crate) sockets: Vec<Arc<Socket>>,
    pub(crate) mode: &'static str,
}

/// Whatever is needed to find out why the kernel said no.
pub(crate) struct Setup<'a> {
    pub(crate) config: &'a AfxdpConfig,
    pub(crate) pool: &'a Pool,
    pub(crate) link: Link,
    pub(crate) rx_queues: usize,
    pub(crate) tx_queues: usize,
    /// Whether senders may leave transport checksums unfinished.
    pub(crate) completes_checksums: bool,
}

/// Drivers of virtual machines whose hosts leave transport checksums unfinished.
const VIRTUAL_DRIVERS: [&str; 2] = ["virtio_net", "vif"];
/// Chunks under way to the device that a queue may have, however small its share is.
const LEAST_IN_FLIGHT: usize = 64;

/// A socket and the two halves over its rings.
type Queue = (Arc<Socket>, Receiver, Sender);

impl<'a> Setup<'a> {
    /// Looks at the device and sets it up.
    pub(crate) fn new(
        config: &'a AfxdpConfig,
        pool: &'a Pool,
        route: &mut Route,
        ethtool: &Ethtool,
    ) -> Result<Setup<'a>, OpenError> {
        let device = &config.device;
        if !config.ring.is_power_of_two() || !(64..=16_384).contains(&config.ring) {
            return Err(OpenError(format!(
                "{device}: a ring of {} frames is impossible: use a power of two from 64 to 16384",
                config.ring
            )));
        }
        let link = route.link_by_name(device).map_err(|error| {
            if error.is_not_found() {
                no_such_device(device, route)
            } else {
                OpenError(format!("{device} cannot be looked at: {error}"))
            }
        })?;
        if link.loopback {
            return Err(OpenError(format!(
                "{device} is the loopback, which cannot be a port: use another device"
            )));
        }
        if !link.up {
            route.set_up(link.index, true).map_err(|error| {
                OpenError(format!("{device} cannot be set up: {error}; {}", rights()))
            })?;
        }
        // A driver without channels has one queue, or several that nobody can ask for.
        let channels = ethtool.channels(device).ok();
        let most = config.queues.unwrap_or(usize::MAX).max(1);
        let there_are = |number: Option<u32>| number.map_or(1, |number| number.max(1) as usize);
        let rx_there = there_are(channels.map(|channels| channels.receive_queues()));
        let tx_queues = there_are(channels.map(|channels| channels.transmit_queues())).min(most);
        let rx_queues = rx_there.min(most);
        if rx_queues < rx_there {
            tracing::warn!(
                device,
                "{rx_queues} of {rx_there} rx queues are served: frames on the others go to Linux"
            );
        }
        let completes_checksums = link.kind.is_some()
            || ethtool
                .driver(device)
                .is_ok_and(|it| VIRTUAL_DRIVERS.contains(&it.driver.as_str()));
        Ok(Setup {
            config,
            pool,
            link,
            rx_queues,
            tx_queues,
            completes_checksums,
        })
    }

    /// Opens the device in the mode that was asked for, or the fastest that works.
    pub(crate) fn open(&self) -> Result<(Opened, Vec<QueuePair>), OpenError> {
        let device = &self.config.device;
        if matches!(self.config.mode, Mode::Auto | Mode::ZeroCopy | Mode::Native) {
            let native = self.attach(Attachment::Native).or_else(|error| {
                // ERANGE (veth), EINVAL or EOPNOTSUPP (others): the MTU is too large for a frame in
                // one piece.
                if is_final(&error) {
                    Err(error)
                } else {
                    self.attach(Attachment::NativePieces).map_err(|_| error)
                }
            });
            match native {
                Ok(program) => return self.open_native(program),
                Err(error) if self.config.mode != Mode::Auto || is_final(&error) => {
                    return Err(self.not_attached(&error));
                }
                Err(error) => {
                    tracing::warn!(
                        device,
                        "no native XDP ({error}): {}falling back to generic mode, which is slower",
                        self.hint(&error)
                    );
                }
            }
        }
        let program = self
            .attach(Attachment::Generic)
            .map_err(|error| self.not_attached(&error))?;
        if self.link.kind.as_deref() == Some("veth") {
            tracing::warn!(
                device,
                "generic mode does not switch segmentation offload off at the other end of this veth; long TCP segments are dropped (rx_too_long): run `ethtool -K PEER tso off gso off` there"
            );
        }
        self.open_copying(program, "generic, copy")
    }

    fn open_native(&self, program: Program) -> Result<(Opened, Vec<QueuePair>), OpenError> {
        if self.config.mode != Mode::Native {
            match self.open_queues(true) {
                Ok(queues) => return self.enter(program, queues, "native, zero-copy"),
                Err(error)
                    if self.config.mode == Mode::ZeroCopy
                        || is_final_errno(error.raw_os_error()) =>
                {
                    return Err(self.not_bound(&error, true));
                }
                Err(error) => tracing::debug!(
                    device = self.config.device,
                    "no zero-copy ({error}): the kernel copies"
                ),
            }
        }
        self.open_copying(program, "native, copy")
    }

    fn open_copying(
        &self,
        program: Program,
        mode: &'static str,
    ) -> Result<(Opened, Vec<QueuePair>), OpenError> {
        let queues = self
            .open_queues(false)
            .map_err(|error| self.not_bound(&error, false))?;
        self.enter(program, queues, mode)
    }

    /// Enters the sockets into the program's map: from here on frames come.
    fn enter(
        &self,
        mut program: Program,
        queues: Vec<Queue>,
        mode: &'static str,
    ) -> Result<(Opened, Vec<QueuePair>), OpenError> {
        if self.has_long_frames() && queues.iter().any(|(socket, ..)| !socket.takes_pieces()) {
            let (device, mtu) = (&self.config.device, self.link.mtu);
            tracing::warn!(
                device,
                "its MTU is {mtu}, but this kernel hands over no frames of more than {DATA_ROOM} bytes: that takes Linux 6.6"
            );
        }
        let (mut sockets, mut pairs) = (Vec::new(), Vec::new());
        for (number, (socket, receiver, sender)) in queues.into_iter().enumerate() {
            let receives = number < self.rx_queues;
            if let (true, Some(descriptor)) = (receives, socket.descriptor()) {
                program
                    .insert(number as u32, descriptor)
                    .map_err(|error| self.not_attached(&error))?;
            }
            pairs.push(QueuePair {
                rx: if receives {
                    Some(Box::new(receiver))
                } else {
                    None
                },
                tx: if number < self.tx_queues {
                    Some(Box::new(sender))
                } else {
                    None
                },
            });
            sockets.push(socket);
        }
        Ok((
            Opened {
                program,
                sockets,
                mode,
            },
            pairs,
        ))
    }

    fn attach(&self, attachment: Attachment) -> Result<Program, Failure> {
        Program::attach(self.link.index, self.rx_queues as u32, attachment)
    }

    fn open_queues(&self, zero_copy: bool) -> io::Result<Vec<Queue>> {
        let level = self.level(zero_copy);
        (0..self.rx_queues.max(self.tx_queues))
            .map(|number| self.open_queue(number as u32, zero_copy, level))
            .collect()
    }

    fn open_queue(&self, number: u32, zero_copy: bool, level: usize) -> io::Result<Queue> {
        let ring = self.config.ring;
        let socket = sys::xdp_socket()?;
        sys::register(socket.as_fd(), self.pool)?;
        // Room in the fill ring for a driver that keeps a whole hardware ring full beside ours; room
        // in the completion ring for all that can be under way.
        let rings = Rings::new(
            socket.as_fd(),
            Sizes {
                rx: ring,
                fill: ring * 2,
                tx: ring,
                completion: ring * 2,
            },
        )?;
        sys::set_send_buffer(socket.as_fd(), 16 << 20);
        sys::set_send_budget(socket.as_fd(), ring);
        let socket = Arc::new(Socket::new(socket, self.pool));
        let level = if (number as usize) < self.rx_queues {
            level
        } else {
            0
        };
        // The chunks are there before the device is asked: zero-copy drivers fill their own rings
        // when the socket is bound.
        let mut receiver = Receiver::new(rings.rx, rings.fill, level, zero_copy, socket.clone());
        receiver.complete_checksums(self.completes_checksums);
        let in_flight = self
            .config
            .share
            .map_or(usize::MAX, |share| (share / 3).max(LEAST_IN_FLIGHT));
        let sender = Sender::new(rings.tx, rings.completion, in_flight, socket.clone());
        let descriptor = socket.descriptor().ok_or(io::ErrorKind::NotConnected)?;
        self.bind(&socket, descriptor, number, zero_copy)?;
        socket.fit(self.link.mtu);
        Ok((socket, receiver, sender))
    }

    /// Whether frames of the device's MTU, with an Ethernet header and a tag, do not fit one chunk.
    fn has_long_frames(&self) -> bool {
        self.link.mtu as usize + 14 + 4 > DATA_ROOM
    }

    /// Binds a socket, for frames of several descriptors where the kernel has them. A zero-copy driver may not, and is
    /// asked only if its frames need it.
    fn bind(
        &self,
        socket: &Socket,
        descriptor: BorrowedFd<'_>,
        number: u32,
        zero_copy: bool,
    ) -> io::Result<()> {
        let mode = if zero_copy {
            libc::XDP_ZEROCOPY
        } else {
            libc::XDP_COPY
        };
        if !zero_copy || self.has_long_frames() {
            match sys::bind(descriptor, self.link.index, number, mode | sys::XDP_USE_SG) {
                Ok(()) => {
                    socket.allow_pieces();
                    return Ok(());
                }
                // EINVAL: Linux before 6.6 does not know the flag.
                Err(error) if zero_copy || error.raw_os_error() != Some(libc::EINVAL) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        sys::bind(descriptor, self.link.index, number, mode)
    }

    /// Chunks that one queue lends to the kernel for receiving: a ring full, two where the driver keeps a ring of its
    /// own. The more there are, the longer the worker may be kept from running without a loss. The limit is two thirds
    /// of the queue's share of the pool; without a share, a quarter of what is free.
    fn level(&self, zero_copy: bool) -> usize {
        let full = self.config.ring as usize * if zero_copy { 2 } else { 1 };
        let limit = match self.config.share {
            Some(share) => share * 2 / 3,
            None => self.pool.usage().free / 4 / self.rx_queues,
        };
        full.min(limit.max(64))
    }

    /// What may help against a refused native program.
    fn hint(&self, error: &Failure) -> &'static str {
        match error.errno {
            Some(libc::ENOSPC) => {
                "the other end of this veth has more tx queues than this end has rx queues; "
            }
            Some(libc::ERANGE) => "the MTU is too large; ",
            _ => "",
        }
    }

    fn not_attached(&self, error: &Failure) -> OpenError {
        let device = &self.config.device;
        OpenError(match error.errno {
            Some(libc::EPERM | libc::EACCES) => {
                format!("{device}: no right to load an XDP program: {}", rights())
            }
            Some(libc::EBUSY | libc::EEXIST) => {
                format!(
                    "{device} is in use by another XDP program: stop that one, or take it off with `ip link set dev {device} xdp off`"
                )
            }
            Some(libc::EOPNOTSUPP) => {
                format!("{device}: its driver runs no XDP programs: use mode auto or generic")
            }
            _ => format!(
                "{device}: the XDP program cannot be attached: {}{error}; mode generic works with most devices",
                self.hint(error)
            ),
        })
    }

    fn not_bound(&self, error: &io::Error, zero_copy: bool) -> OpenError {
        let device = &self.config.device;
        OpenError(match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                format!("{device}: no right to open an AF_XDP socket: {}", rights())
            }
            Some(libc::EBUSY) => format!(
                "{device} is in use by another AF_XDP program (perhaps another weir): stop that one first"
            ),
            Some(libc::EAFNOSUPPORT) => format!(
                "{device}: this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): use another kernel"
            ),
            Some(libc::ENOBUFS) => {
                format!(
                    "{device}: the packet memory cannot be pinned: raise `ulimit -l`, or give weir CAP_IPC_LOCK"
                )
            }
            Some(libc::ENOMEM) => format!(
                "{device}: the kernel has no memory for the rings: use a smaller pool or smaller rings"
            ),
            _ if zero_copy => format!("{device}: no zero-copy ({error}): use mode auto or native"),
            _ => format!(
                "{device}: the AF_XDP socket cannot be bound: {error}; it needs Linux 5.4 or newer"
            ),
        })
    }
}

/// Says so, and names what was perhaps meant.
fn no_such_device(device: &str, route: &mut Route) -> OpenError {
    let links = route.links().unwrap_or_default();
    let names: Vec<_> = links
        .iter()
        .filter(|link| !link.loopback)
        .map(|link| link.name.as_str())
        .take(8)
        .collect();
    let hint = if names.is_empty() {
        "there is none but the loopback".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    OpenError(format!(
        "there is no network device {device} in this network namespace: {hint}"
    ))
}

/// Who may do all this.
pub(crate) fn rights() -> &'static str {
    "run weir as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
}

/// Errors that no other mode would help against: rights, and a program that is there already.
fn is_final(error: &Failure) -> bool {
    is_final_errno(error.errno)
}

fn is_final_errno(errno: Option<i32>) -> bool {
    matches!(
        errno,
        Some(
            libc::EPERM
                | libc::EACCES
                | libc::EBUSY
                | libc::EEXIST
                | libc::ENODEV
                | libc::ENOBUFS
                | libc::EAFNOSUPPORT
        )
    )
}
