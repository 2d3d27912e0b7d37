//! From a channel to a link: the handshake of both roles.
//!
//! A slave hears HELLO, then sends INIT, its regions, its rings and CONNECT, one after the other,
//! each once the one before was acknowledged, and is connected when CONNECTED comes. A master answers.
//! Any other order, and whatever does not fit, ends it with a reason.
//!
//! A master maps what a slave gives only when the file can never shrink: a page that vanished under a
//! mapping would end this process. A sealed memory file cannot shrink. One on hugepages can still
//! lose pages to a hole punched into it, and then no page may be free for it any more, so it is taken
//! only from a user who could end this process anyway: our own, or root.
//!
//! A slave shares two regions: 0 has the rings, 1 is the packet pool.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
    memfd_create,
};
use rustix::net::sockopt::socket_peercred;

use crate::bell;
use crate::channel::Channel;
use crate::listen::LAST_REGION;
use crate::message::{AddRing, ETHERNET, Hello, Init, Message, VERSION};
use crate::reason::Reason;
use crate::shared::{Lane, Link, Shared};
use crate::sys::{COOKIE, MOST_LOG2, Mapping, Ring};

/// The largest region: offsets have 32 bits.
const MOST_REGION: u64 = 4 << 30;
/// The most that a slave may have us map.
const MOST_REGIONS: u64 = 8 << 30;
/// Rings begin at full cache lines.
const LINE: usize = 64;
/// `f_type` of hugetlbfs (`linux/magic.h`).
const HUGETLBFS: u64 = 0x9584_58f6;

/// What comes of a message.
pub(crate) enum Step {
    /// It goes on.
    More,
    /// There is a link now; the peer's interface is called so.
    Done(Link, String),
}

/// A slave's side of the handshake.
pub(crate) struct SlaveSide {
    rings: Option<Rings>,
    /// How many of the messages have been sent.
    sent: usize,
    peer: String,
}

/// The region with the rings.
struct Rings {
    file: OwnedFd,
    mapping: Arc<Mapping>,
    /// To the master, then to the slave.
    lanes: Vec<(Lane, AddRing)>,
}

/// A region with rings for `queues` queues each way.
fn own_rings(queues: usize, log2_size: u8) -> rustix::io::Result<Rings> {
    let stride = Ring::bytes(log2_size).next_multiple_of(LINE);
    let bytes = (2 * queues * stride).next_multiple_of(4096);
    let file = memfd_create(
        "weir-memif",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let failed = |error: std::io::Error| {
        rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::NOMEM)
    };
    let mapping = Arc::new(Mapping::new(file.as_fd(), bytes).map_err(failed)?);
    let mut lanes = Vec::with_capacity(2 * queues);
    for number in 0..2 * queues {
        let offset = (number * stride) as u32;
        let ring = Ring::new(&mapping, offset, log2_size).ok_or(rustix::io::Errno::INVAL)?;
        ring.initialise();
        let to_master = number < queues;
        let index = (number % queues) as u16;
        lanes.push((
            Lane {
                ring,
                event: bell::event()?,
            },
            AddRing {
                to_master,
                index,
                region: 0,
                offset,
                log2_size,
            },
        ));
    }
    Ok(Rings {
        file,
        mapping,
        lanes,
    })
}

impl SlaveSide {
    pub(crate) fn new() -> SlaveSide {
        SlaveSide {
            rings: None,
            sent: 0,
            peer: String::new(),
        }
    }

    /// The name that the master gave itself.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    pub(crate) fn message(
        &mut self,
        shared: &Shared,
        channel: &Channel,
        message: Message,
    ) -> Result<Step, Reason> {
        match message {
            Message::Hello(hello) if self.rings.is_none() => {
                self.rings = Some(self.answer(shared, &hello)?);
                self.send_next(shared, channel)?;
                Ok(Step::More)
            }
            Message::Ack if self.rings.is_some() => {
                self.send_next(shared, channel)?;
                Ok(Step::More)
            }
            Message::Connected { name } if self.is_last() => {
                let Rings { mapping, lanes, .. } = self.rings.take().ok_or(Reason::Unexpected)?;
                let (tx, rx): (Vec<_>, Vec<_>) =
                    lanes.into_iter().partition(|(_, place)| place.to_master);
                let lanes =
                    |list: Vec<(Lane, AddRing)>| list.into_iter().map(|(lane, _)| lane).collect();
                Ok(Step::Done(
                    Link::new(vec![mapping], lanes(rx), lanes(tx), &shared.pool),
                    name,
                ))
            }
            _ => Err(Reason::Unexpected),
        }
    }

    fn answer(&mut self, shared: &Shared, hello: &Hello) -> Result<Rings, Reason> {
        if !(hello.min_version..=hello.max_version).contains(&VERSION) {
            return Err(Reason::Version);
        }
        self.peer.clone_from(&hello.name);
        let queues = shared.config.queues;
        let enough = |last: u16| usize::from(last) + 1 >= queues;
        if hello.max_region < 1 || !enough(hello.max_to_master) || !enough(hello.max_to_slave) {
            return Err(Reason::PeerLimits);
        }
        let log2_size = shared
            .config
            .log2_ring_size()
            .min(hello.max_log2_ring_size)
            .min(MOST_LOG2);
        own_rings(queues, log2_size).map_err(|_| Reason::Channel)
    }

    /// INIT, two regions, the rings, CONNECT.
    fn is_last(&self) -> bool {
        self.rings
            .as_ref()
            .is_some_and(|rings| self.sent == rings.lanes.len() + 4)
    }

    fn send_next(&mut self, shared: &Shared, channel: &Channel) -> Result<(), Reason> {
        let Some(rings) = &self.rings else {
            return Err(Reason::Unexpected);
        };
        let (message, descriptor) = match self.sent {
            0 => (own_init(shared), None),
            1 => (
                Message::AddRegion {
                    index: 0,
                    size: rings.mapping.bytes() as u64,
                },
                Some(rings.file.as_fd()),
            ),
            2 => (
                Message::AddRegion {
                    index: 1,
                    size: shared.pool.mapped_bytes() as u64,
                },
                Some(shared.pool.file()),
            ),
            n => match rings.lanes.get(n - 3) {
                Some((lane, place)) => (Message::AddRing(*place), Some(lane.event.as_fd())),
                None if n == rings.lanes.len() + 3 => (
                    Message::Connect {
                        name: own_interface(shared),
                    },
                    None,
                ),
                None => return Err(Reason::Unexpected),
            },
        };
        self.sent += 1;
        channel.send(&message, descriptor)
    }
}

fn own_init(shared: &Shared) -> Message {
    let config = &shared.config;
    let secret = config.secret.unwrap_or_default();
    Message::Init(Init {
        version: VERSION,
        id: config.id,
        mode: ETHERNET,
        secret,
        name: crate::OWN_NAME.into(),
    })
}

fn own_interface(shared: &Shared) -> String {
    format!("weir/{}", shared.config.id)
}

/// A master's side of the handshake: what the slave has given so far.
pub(crate) struct MasterSide {
    regions: Vec<Arc<Mapping>>,
    bytes: u64,
    /// What we receive on, by queue.
    rx: Vec<Option<Lane>>,
    /// What we send on, by queue.
    tx: Vec<Option<Lane>>,
    trusted: bool,
}

impl MasterSide {
    /// The slave's INIT was right; it is acknowledged here.
    pub(crate) fn new(shared: &Shared, channel: &Channel) -> Result<MasterSide, Reason> {
        let none = || (0..shared.config.queues).map(|_| None).collect();
        let user = socket_peercred(&channel.0).map(|peer| peer.uid).ok();
        let trusted = user.is_some_and(|user| user.is_root() || user == rustix::process::geteuid());
        channel.send(&Message::Ack, None)?;
        Ok(MasterSide {
            regions: Vec::new(),
            bytes: 0,
            rx: none(),
            tx: none(),
            trusted,
        })
    }

    pub(crate) fn message(
        &mut self,
        shared: &Shared,
        channel: &Channel,
        message: Message,
        descriptor: Option<OwnedFd>,
    ) -> Result<Step, Reason> {
        match message {
            Message::AddRegion { index, size } => self.add_region(index, size, descriptor)?,
            Message::AddRing(place) => self.add_ring(place, descriptor)?,
            Message::Connect { name } => {
                let link = self.connect(shared)?;
                channel.send(
                    &Message::Connected {
                        name: own_interface(shared),
                    },
                    None,
                )?;
                return Ok(Step::Done(link, name));
            }
            _ => return Err(Reason::Unexpected),
        }
        channel.send(&Message::Ack, None)?;
        Ok(Step::More)
    }

    fn add_region(&mut self, index: u16, size: u64, file: Option<OwnedFd>) -> Result<(), Reason> {
        if usize::from(index) != self.regions.len() || index > LAST_REGION {
            return Err(Reason::RegionIndex);
        }
        let file = file.ok_or(Reason::RegionFile)?;
        self.bytes = self.bytes.saturating_add(size);
        if size == 0 || size > MOST_REGION || self.bytes > MOST_REGIONS {
            return Err(Reason::RegionSize);
        }
        let bytes = usize::try_from(size).map_err(|_| Reason::RegionSize)?;
        check_file(file.as_fd(), size, self.trusted)?;
        let mapping = Mapping::new(file.as_fd(), bytes).map_err(|_| Reason::RegionFile)?;
        self.regions.push(Arc::new(mapping));
        Ok(())
    }

    fn add_ring(&mut self, place: AddRing, event: Option<OwnedFd>) -> Result<(), Reason> {
        let list = if place.to_master {
            &mut self.rx
        } else {
            &mut self.tx
        };
        let seat = list
            .get_mut(usize::from(place.index))
            .filter(|seat| seat.is_none())
            .ok_or(Reason::RingIndex)?;
        let event = event.filter(bell::take_over).ok_or(Reason::RingInterrupt)?;
        let region = self
            .regions
            .get(usize::from(place.region))
            .ok_or(Reason::RingPlace)?;
        let ring = Ring::new(region, place.offset, place.log2_size).ok_or(Reason::RingPlace)?;
        *seat = Some(Lane { ring, event });
        Ok(())
    }

    fn connect(&mut self, shared: &Shared) -> Result<Link, Reason> {
        // Without a ring for each queue, what a worker sends on that queue would be lost.
        let tx: Option<Vec<_>> = self.tx.drain(..).collect();
        let tx = tx.ok_or(Reason::RingsMissing)?;
        let rx: Vec<_> = self.rx.drain(..).map_while(|lane| lane).collect();
        if rx.is_empty() {
            return Err(Reason::RingsMissing);
        }
        if rx
            .iter()
            .chain(&tx)
            .any(|lane| lane.ring.cookie() != COOKIE)
        {
            return Err(Reason::RingCookie);
        }
        Ok(Link::new(
            std::mem::take(&mut self.regions),
            rx,
            tx,
            &shared.pool,
        ))
    }
}

/// Whether a file can be mapped for good.
fn check_file(file: BorrowedFd<'_>, size: u64, trusted: bool) -> Result<(), Reason> {
    // The seal first: only then the size is the size for ever.
    if !fcntl_get_seals(file)
        .map_err(|_| Reason::RegionSeal)?
        .contains(SealFlags::SHRINK)
    {
        return Err(Reason::RegionSeal);
    }
    let there = fstat(file).map_err(|_| Reason::RegionFile)?.st_size;
    if u64::try_from(there).unwrap_or(0) < size {
        return Err(Reason::RegionSize);
    }
    let kind = fstatfs(file).map_err(|_| Reason::RegionFile)?.f_type;
    if kind as u64 == HUGETLBFS && !trusted {
        return Err(Reason::RegionPages);
    }
    Ok(())
}
