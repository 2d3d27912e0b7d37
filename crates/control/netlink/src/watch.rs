//! Watching links: who appeared, changed, disappeared.
//!
//! The watcher joins the kernel's link group (`RTNLGRP_LINK`) first and reads the whole table
//! second, so that nothing falls between the two. It keeps the last known state of every link,
//! because the kernel sends the same message for a new link, a changed one, and one of which only
//! something changed that nobody here looks at; only the first two become events.
//!
//! When the socket's buffer overflows (ENOBUFS) the kernel has dropped messages: the overrun is
//! counted, [`LinkEvent::Overrun`] is handed out, and the caller calls [`LinkWatcher::resync`], which
//! reads the table again and hands out the difference. Events may then repeat older states for a
//! moment, but the last event of a link always shows its last state.
//!
//! One thread owns a watcher and waits on its descriptor (`AsFd`) with poll, or calls `wait`. It
//! watches the namespace in which it was opened.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::MacAddress;
use crate::conversation::{DATAGRAM_BYTES, Received, open_socket, receive, wait_readable};
use crate::error::{Error, Result};
use crate::message::Frames;
use crate::route::{Link, RTM_DELLINK, RTM_NEWLINK, Route, VlanTag};

/// `RTNLGRP_LINK` of `linux/rtnetlink.h`.
const LINK_GROUP: u32 = 1;
/// Room for some thousand link messages (about 1.5 KiB each).
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Datagrams taken in one call, so that a storm of events cannot hold the caller for ever.
const DATAGRAMS_PER_READ: usize = 1024;
/// More than any socket buffer holds: reached only when messages come faster than they are read.
const DATAGRAMS_PER_DISCARD: usize = 1 << 20;

/// What the watcher keeps and tells of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// The kernel's number of the link (ifindex).
    pub ifindex: u32,
    /// The name now.
    pub name: String,
    /// The administrator wants it up.
    pub up: bool,
    /// It can pass packets (up, and with carrier).
    pub running: bool,
    /// The driver reports a carrier. `running` follows up to a second later.
    pub carrier: bool,
    /// It waits for an event, for example 802.1X.
    pub dormant: bool,
    /// How often it has lost its carrier.
    pub carrier_losses: u32,
    /// The MTU in bytes.
    pub mtu: u32,
    /// The Ethernet address, when it has one.
    pub mac: Option<MacAddress>,
    /// Of a VLAN device: the index of the link below, and the tag.
    pub vlan: Option<(u32, VlanTag)>,
    /// Of a member of the kernel's bond: whether the bond sends by it.
    pub bond_active: Option<bool>,
}

impl From<Link> for LinkState {
    fn from(link: Link) -> Self {
        LinkState {
            ifindex: link.index,
            name: link.name,
            up: link.up,
            running: link.running,
            carrier: link.carrier,
            dormant: link.dormant,
            carrier_losses: link.carrier_losses,
            mtu: link.mtu,
            mac: link.mac,
            vlan: link.peer_index.zip(link.vlan),
            bond_active: link.bond_active,
        }
    }
}

/// One thing that happened to the links of the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link that was not known; also each link that is there when the watcher starts.
    Added(LinkState),
    /// A known link has another name, state, MTU or MAC; this is what it has now.
    Changed(LinkState),
    /// A link is gone (deleted, or moved to another namespace); this is what it had last.
    Removed(LinkState),
    /// Messages were lost: call [`LinkWatcher::resync`].
    Overrun,
}

/// A stream of link events.
pub struct LinkWatcher {
    socket: Socket,
    route: Route,
    table: Table,
    buffer: Vec<u8>,
    overruns: u64,
}

/// The known links, and how a datagram of the kernel changes them; no socket, no clock.
#[derive(Debug, Default)]
struct Table {
    links: BTreeMap<u32, LinkState>,
    undecodable: u64,
}

impl LinkWatcher {
    /// Starts to watch the namespace of the calling thread. The first events are one `Added` for
    /// each link that exists, handed out by the call of [`LinkWatcher::resync`] which must come first.
    pub fn open() -> Result<Self> {
        LinkWatcher::with_buffer(RECEIVE_BUFFER_BYTES)
    }

    /// As [`LinkWatcher::open`], with another size of the socket's buffer in bytes.
    pub fn with_buffer(bytes: usize) -> Result<Self> {
        let asked = "watch links";
        let failed = |source: io::Error| Error::system(asked, source);
        let socket = open_socket(NETLINK_ROUTE)?;
        // FORCE goes beyond net.core.rmem_max and needs CAP_NET_ADMIN; without it, less will do.
        if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes)
                .map_err(|errno| failed(errno.into()))?;
        }
        let watcher = LinkWatcher {
            socket,
            route: Route::open()?,
            table: Table::default(),
            buffer: vec![0; DATAGRAM_BYTES],
            overruns: 0,
        };
        watcher.socket.add_membership(LINK_GROUP).map_err(failed)?;
        Ok(watcher)
    }

    /// The links as the events handed out so far leave them, by index.
    pub fn links(&self) -> &BTreeMap<u32, LinkState> {
        &self.table.links
    }

    /// How many times the kernel said that messages were lost.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// How many messages could not be read, and were skipped.
    pub fn undecodable(&self) -> u64 {
        self.table.undecodable
    }

    /// Reads the whole table and appends what differs from the links known so far.
    pub fn resync(&mut self, events: &mut Vec<LinkEvent>) -> Result<()> {
        self.discard_pending()?;
        let links = self.route.links()?;
        self.table.replace(links, events);
        Ok(())
    }

    /// Appends the events that wait, without blocking; at most some thousand a call.
    pub fn read(&mut self, events: &mut Vec<LinkEvent>) -> Result<()> {
        for _ in 0..DATAGRAMS_PER_READ {
            match receive(&self.socket, &mut self.buffer) {
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::Stranger) => (),
                Ok(Received::FromKernel(length)) => self.read_datagram(length, events),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.overruns = self.overruns.saturating_add(1);
                    events.push(LinkEvent::Overrun);
                }
                Err(source) => return Err(Error::system("read link events", source)),
            }
        }
        Ok(())
    }

    /// Waits until events can be read; false when the time passed first.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        wait_readable(self.socket.as_fd(), Instant::now() + limit)
            .map_err(|source| Error::system("wait for link events", source))
    }

    fn read_datagram(&mut self, length: usize, events: &mut Vec<LinkEvent>) {
        match self.buffer.get(..length) {
            Some(datagram) => self.table.digest(datagram, events),
            // Longer than any link message known; its content is lost as in an overrun.
            None => {
                self.table.undecodable = self.table.undecodable.saturating_add(1);
                events.push(LinkEvent::Overrun);
            }
        }
    }

    /// Throws away all that waits: the table about to be read is newer. It must be all: after an
    /// overrun, an old "new link" left here would bring back a link whose end was lost. And the
    /// kernel goes on losing messages until it finds the queue empty.
    fn discard_pending(&mut self) -> Result<()> {
        for _ in 0..DATAGRAMS_PER_DISCARD {
            match receive(&self.socket, &mut self.buffer) {
                Ok(Received::Nothing) => return Ok(()),
                Ok(_) => (),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.overruns = self.overruns.saturating_add(1);
                }
                Err(source) => return Err(Error::system("read link events", source)),
            }
        }
        Err(Error::malformed(
            "read link events",
            "events come faster than they can be thrown away",
        ))
    }
}

impl Table {
    fn digest(&mut self, datagram: &[u8], events: &mut Vec<LinkEvent>) {
        for frame in Frames::new(datagram) {
            let Ok(frame) = frame else {
                self.undecodable = self.undecodable.saturating_add(1);
                return;
            };
            let about_links = frame.kind == RTM_NEWLINK || frame.kind == RTM_DELLINK;
            if !about_links || Link::is_view_of_bridge(frame.payload) {
                continue;
            }
            match Link::decode(frame.payload) {
                Some(link) if frame.kind == RTM_NEWLINK => self.take(link.into(), events),
                Some(link) => {
                    events.extend(self.links.remove(&link.index).map(LinkEvent::Removed));
                }
                None => self.undecodable = self.undecodable.saturating_add(1),
            }
        }
    }

    fn replace(&mut self, links: Vec<Link>, events: &mut Vec<LinkEvent>) {
        let now: BTreeMap<u32, LinkState> = links
            .into_iter()
            .map(|link| (link.index, link.into()))
            .collect();
        let gone: Vec<u32> = self
            .links
            .keys()
            .filter(|index| !now.contains_key(index))
            .copied()
            .collect();
        for index in gone {
            events.extend(self.links.remove(&index).map(LinkEvent::Removed));
        }
        for state in now.into_values() {
            self.take(state, events);
        }
    }

    fn take(&mut self, state: LinkState, events: &mut Vec<LinkEvent>) {
        match self.links.insert(state.ifindex, state.clone()) {
            None => events.push(LinkEvent::Added(state)),
            Some(before) if before != state => events.push(LinkEvent::Changed(state)),
            Some(_) => (),
        }
    }
}

impl AsFd for LinkWatcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl std::fmt::Debug for LinkWatcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LinkWatcher")
            .field("table", &self.table)
            .field("overruns", &self.overruns)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len() + 16).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn link(index: u32, flags: u32) -> Vec<u8> {
        let mut payload = vec![0; 16];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        payload[8..12].copy_from_slice(&flags.to_ne_bytes());
        payload
    }

    #[test]
    fn news_without_a_difference_is_no_event() {
        let mut table = Table::default();
        let mut events = Vec::new();
        let mut datagram = frame(RTM_NEWLINK, &link(3, 0));
        datagram.extend(frame(RTM_NEWLINK, &link(3, 0)));
        datagram.extend(frame(RTM_NEWLINK, &link(3, 1)));
        datagram.extend(frame(RTM_DELLINK, &link(4, 1)));
        datagram.extend(frame(RTM_DELLINK, &link(3, 1)));
        table.digest(&datagram, &mut events);
        assert!(matches!(
            events.as_slice(),
            [LinkEvent::Added(_), LinkEvent::Changed(changed), LinkEvent::Removed(_)] if changed.up
        ));
        assert!(table.links.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let mut table = Table::default();
        let mut events = Vec::new();
        let whole = frame(RTM_NEWLINK, &link(3, 0));
        for length in 1..whole.len() {
            table.digest(&whole[..length], &mut events);
            assert_eq!(table.undecodable, u64::try_from(length).unwrap());
        }
        table.digest(&frame(RTM_NEWLINK, &link(0, 0)), &mut events);
        assert_eq!(table.undecodable, u64::try_from(whole.len()).unwrap());
        assert!(events.is_empty() && table.links.is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_datagrams_do_not_panic(
            payload in prop::collection::vec(any::<u8>(), 0..300),
            kind in 15u16..19,
            cut in 0usize..400,
        ) {
            let mut table = Table::default();
            let mut events = Vec::new();
            let mut datagram = frame(kind, &payload);
            datagram.extend(frame(RTM_NEWLINK, &payload));
            datagram.truncate(cut);
            table.digest(&datagram, &mut events);
            prop_assert!(events.len() <= 2);
        }
    }
}
