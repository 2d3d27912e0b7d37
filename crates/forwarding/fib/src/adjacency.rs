//! The end of a path: what happens to a packet that takes it.
//!
//! Everything but the neighbour's MAC address and state is fixed; a change of MTU or interface is a
//! new adjacency in the next snapshot. The MAC address and the state lie in one atomic word: the
//! control thread completes, moves or fails a neighbour with one store while workers forward, and a
//! worker never sees the address of one moment with the state of another.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lfib::Labelled;

/// What an adjacency does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdjacencyKind {
    /// Sends them to a neighbour.
    Neighbor,
    /// Belongs to the router's own addresses.
    Local,
    /// Stands for a connected subnet: the destination itself is the neighbour, yet to be found.
    Glean,
    /// Drops them silently.
    Blackhole,
    /// Drops them and tells the sender that the destination is unreachable, as the route says.
    Unreachable,
    /// Drops them and tells the sender that it may not go there.
    Prohibit,
    /// Drops them and tells the sender that the network is unreachable.
    Drop,
    /// Pushes labels, then sends them to the neighbour below ([`Adjacency::labelled`]).
    Labelled,
    /// Looks them up anew, without their label, in the table that [`Adjacency::interface`] holds the number of.
    Lookup,
    /// Takes them for frames that came out of a pseudowire: its interface is [`Adjacency::interface`].
    Pseudowire,
}

/// What is known of a neighbour (RFC 4861 7.3.2's states, used for ARP too).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NeighborState {
    /// Asked for, no answer yet.
    Incomplete = 0,
    /// Did not answer.
    Failed = 1,
    /// Answered not long ago.
    Reachable = 2,
    /// Answered once; used as it is, to be confirmed when used.
    Stale = 3,
    /// Being confirmed; used meanwhile.
    Probe = 4,
    /// Configured by hand; never asked for.
    Static = 5,
}

impl NeighborState {
    /// Whether packets can be sent to the MAC address.
    #[inline]
    #[must_use]
    pub fn is_usable(self) -> bool {
        matches!(
            self,
            NeighborState::Reachable
                | NeighborState::Stale
                | NeighborState::Probe
                | NeighborState::Static
        )
    }
}

/// Set in the word when packets can be sent; then whether any was; then the state, then 48 bits of address.
const USABLE: u64 = 1 << 63;
const USED: u64 = 1 << 62;
const STATE_SHIFT: u32 = 48;
const MAC: u64 = (1 << STATE_SHIFT) - 1;

/// The end of a path. In a cache line of its own, since its neighbours have other writers.
#[derive(Debug)]
#[repr(align(64))]
pub struct Adjacency {
    /// What it does.
    pub kind: AdjacencyKind,
    /// Index of the interface that packets leave by (for `Local`: that the address is on; for `Lookup`: the
    /// number of the table; for `Pseudowire`: the interface that they come in by).
    pub interface: u32,
    /// Address of the neighbour; unspecified when it has none.
    pub address: IpAddr,
    /// The longest layer 3 packet that it takes, in bytes.
    pub mtu: u32,
    /// The longest frame: `mtu` and an Ethernet header.
    longest: u32,
    /// The MAC address that packets are sent from, and what follows it before IPv4.
    source: [u8; 8],
    /// The first two bytes of `source`, in the upper 16 bits.
    source_start: u64,
    /// MAC address, state, whether usable, whether used.
    rewrite: AtomicU64,
    /// The labels to push, and the neighbour below them.
    labelled: Option<Arc<Labelled>>,
}

/// What stands for the address of what is no neighbour.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// The Ethernet type of IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];

impl Adjacency {
    fn new(
        kind: AdjacencyKind,
        interface: u32,
        address: IpAddr,
        mtu: u32,
        source_mac: [u8; 6],
    ) -> Adjacency {
        let [a, b, c, d, e, f] = source_mac;
        let [g, h] = IPV4;
        Adjacency {
            kind,
            interface,
            address,
            mtu,
            longest: mtu.saturating_add(ETHERNET),
            source: [a, b, c, d, e, f, g, h],
            source_start: u64::from_le_bytes([0, 0, 0, 0, 0, 0, a, b]),
            rewrite: AtomicU64::new(0),
            labelled: None,
        }
    }

    /// A neighbour behind an interface, not known yet.
    #[must_use]
    pub fn neighbor(interface: u32, address: IpAddr, mtu: u32, source_mac: [u8; 6]) -> Adjacency {
        Adjacency::new(AdjacencyKind::Neighbor, interface, address, mtu, source_mac)
    }

    /// A connected subnet.
    #[must_use]
    pub fn glean(interface: u32, mtu: u32, source_mac: [u8; 6]) -> Adjacency {
        Adjacency::new(AdjacencyKind::Glean, interface, NO_ADDRESS, mtu, source_mac)
    }

    /// The router's own addresses on an interface.
    #[must_use]
    pub fn local(interface: u32) -> Adjacency {
        Adjacency::new(AdjacencyKind::Local, interface, NO_ADDRESS, 0, [0; 6])
    }

    /// A silent end.
    #[must_use]
    pub fn blackhole() -> Adjacency {
        Adjacency::new(AdjacencyKind::Blackhole, 0, NO_ADDRESS, 0, [0; 6])
    }

    /// The end of a route that says so: [`AdjacencyKind::Unreachable`].
    #[must_use]
    pub fn rejected() -> Adjacency {
        Adjacency::new(AdjacencyKind::Unreachable, 0, NO_ADDRESS, 0, [0; 6])
    }

    /// The end of a route that says so: [`AdjacencyKind::Prohibit`].
    #[must_use]
    pub fn prohibited() -> Adjacency {
        Adjacency::new(AdjacencyKind::Prohibit, 0, NO_ADDRESS, 0, [0; 6])
    }

    /// An end that tells the sender that there is no route.
    #[must_use]
    pub fn unreachable() -> Adjacency {
        Adjacency::new(AdjacencyKind::Drop, 0, NO_ADDRESS, 0, [0; 6])
    }

    /// The neighbour below, with labels pushed on the way; its MTU is less by what they take.
    pub(crate) fn over(labelled: Labelled) -> Adjacency {
        let below = &labelled.below;
        let mtu = below.mtu.saturating_sub(labelled.bytes() as u32);
        let twin = Adjacency::new(
            AdjacencyKind::Labelled,
            below.interface,
            below.address,
            mtu,
            below.source_mac(),
        );
        Adjacency {
            labelled: Some(Arc::new(labelled)),
            ..twin
        }
    }

    /// Takes packets, once their label is off, to another lookup in table `table`.
    #[must_use]
    pub fn lookup_in(table: u32) -> Adjacency {
        Adjacency::new(AdjacencyKind::Lookup, table, NO_ADDRESS, u32::MAX, [0; 6])
    }

    /// Takes packets, once their label is off, for frames of the pseudowire with interface `interface`.
    #[must_use]
    pub fn pseudowire(interface: u32) -> Adjacency {
        Adjacency::new(
            AdjacencyKind::Pseudowire,
            interface,
            NO_ADDRESS,
            u32::MAX,
            [0; 6],
        )
    }

    /// The labels to push.
    #[inline(always)]
    #[must_use]
    pub fn labelled(&self) -> Option<&Labelled> {
        self.labelled.as_deref()
    }

    /// The neighbour that packets go to in the end: the one below the labels, or this one itself.
    #[inline(always)]
    #[must_use]
    pub fn end(&self) -> &Adjacency {
        match &self.labelled {
            Some(labelled) => &labelled.below,
            None => self,
        }
    }

    /// The same neighbour, with what is known of it, under another MTU and source address.
    #[must_use]
    pub fn with_link(&self, mtu: u32, source_mac: [u8; 6]) -> Adjacency {
        let twin = Adjacency::new(self.kind, self.interface, self.address, mtu, source_mac);
        twin.rewrite.store(
            self.rewrite.load(Ordering::Relaxed) & !USED,
            Ordering::Relaxed,
        );
        twin
    }

    /// The neighbour's MAC address, if packets can be sent to it.
    #[inline(always)]
    #[must_use]
    pub fn rewrite(&self) -> Option<[u8; 6]> {
        let word = self.rewrite.load(Ordering::Relaxed);
        (word & USABLE != 0).then(|| unpack(word))
    }

    /// Both addresses as a frame to the neighbour begins with them, in its first eight and the next four
    /// bytes, if packets can be sent to it and its use is noted already: for the many packets after
    /// one for which [`Adjacency::rewrite`] and [`Adjacency::note_used`] were called.
    #[inline(always)]
    #[must_use]
    pub fn in_use(&self) -> Option<([u8; 8], [u8; 4])> {
        let word = self.rewrite.load(Ordering::Relaxed);
        let [_, _, end @ .., _, _] = self.source;
        (word >= USABLE | USED).then(|| ((word & MAC | self.source_start).to_le_bytes(), end))
    }

    /// The same for IPv4, with its type: the first eight bytes, of which six count, and what is written behind these six.
    #[inline(always)]
    #[must_use]
    pub fn in_use_by_ip4(&self) -> Option<([u8; 8], [u8; 8])> {
        let word = self.rewrite.load(Ordering::Relaxed);
        (word >= USABLE | USED).then(|| (word.to_le_bytes(), self.source))
    }

    /// The MAC address that packets are sent from.
    #[must_use]
    pub fn source_mac(&self) -> [u8; 6] {
        let [mac @ .., _, _] = self.source;
        mac
    }

    /// The longest frame that it takes, in bytes without FCS.
    #[inline(always)]
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        self.longest as usize
    }

    /// What is known of the neighbour.
    #[inline]
    #[must_use]
    pub fn state(&self) -> NeighborState {
        match (self.rewrite.load(Ordering::Relaxed) & !(USABLE | USED)) >> STATE_SHIFT {
            1 => NeighborState::Failed,
            2 => NeighborState::Reachable,
            3 => NeighborState::Stale,
            4 => NeighborState::Probe,
            5 => NeighborState::Static,
            _ => NeighborState::Incomplete,
        }
    }

    /// The MAC address last known, whatever the state; zero when there was none.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        unpack(self.rewrite.load(Ordering::Relaxed))
    }

    /// Tells what is known of the neighbour; workers see address and state change together.
    pub fn set_neighbor(&self, state: NeighborState, mac: [u8; 6]) {
        let usable = if state.is_usable() { USABLE } else { 0 };
        let word = usable | (state as u64) << STATE_SHIFT | pack(mac);
        // Only workers note use meanwhile; that is kept.
        let _ = self
            .rewrite
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
                Some(old & USED | word)
            });
    }

    /// Changes the state and keeps the address. For the one thread that writes neighbours.
    pub fn set_state(&self, state: NeighborState) {
        self.set_neighbor(state, self.mac());
    }

    /// Notes that a packet was sent; writes only the first time, so that workers share the line.
    #[inline(always)]
    pub fn note_used(&self) {
        if self.rewrite.load(Ordering::Relaxed) & USED == 0 {
            self.rewrite.fetch_or(USED, Ordering::Relaxed);
        }
    }

    /// Whether a packet was sent since this was asked last.
    #[must_use]
    pub fn take_used(&self) -> bool {
        self.rewrite.fetch_and(!USED, Ordering::Relaxed) & USED != 0
    }
}

fn pack(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

#[inline(always)]
fn unpack(word: u64) -> [u8; 6] {
    let [mac @ .., _, _] = word.to_le_bytes();
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [0x02, 0xfe, 0x80, 0x01, 0x00, 0xff];

    #[test]
    fn address_and_state_change_together() {
        let neighbor = Adjacency::neighbor(
            3,
            Ipv4Addr::new(10, 0, 0, 1).into(),
            1500,
            [2, 0, 0, 0, 0, 1],
        );
        assert_eq!(
            (neighbor.state(), neighbor.rewrite(), neighbor.mac()),
            (NeighborState::Incomplete, None, [0; 6])
        );
        use NeighborState::{Failed, Incomplete, Probe, Reachable, Stale, Static};
        for (state, usable) in [
            (Failed, false),
            (Reachable, true),
            (Stale, true),
            (Probe, true),
            (Static, true),
            (Incomplete, false),
        ] {
            neighbor.set_neighbor(state, MAC);
            assert_eq!(
                (neighbor.state(), neighbor.rewrite()),
                (state, usable.then_some(MAC))
            );
            let addresses = ([0x02, 0xfe, 0x80, 0x01, 0x00, 0xff, 2, 0], [0, 0, 0, 1]);
            assert_eq!((neighbor.in_use(), neighbor.longest_frame()), (None, 1514));
            neighbor.note_used();
            assert_eq!(neighbor.in_use(), usable.then_some(addresses));
            let by_ip4 = neighbor
                .in_use_by_ip4()
                .map(|(start, rest)| [&start[..6], &rest].concat());
            assert_eq!(
                by_ip4,
                usable.then(|| [&MAC[..], &[2, 0, 0, 0, 0, 1, 8, 0]].concat())
            );
            neighbor.set_neighbor(state, MAC);
            assert_eq!(neighbor.state(), state);
            assert!(
                neighbor.take_used()
                    && neighbor.in_use().is_none()
                    && neighbor.in_use_by_ip4().is_none()
            );
        }
        neighbor.set_state(Reachable);
        assert_eq!(neighbor.rewrite(), Some(MAC));
        let twin = neighbor.with_link(9000, [2, 0, 0, 0, 0, 2]);
        assert_eq!(
            (twin.rewrite(), twin.mtu, twin.address),
            (Some(MAC), 9000, IpAddr::from([10, 0, 0, 1]))
        );
    }

    #[test]
    fn use_is_noted_until_asked() {
        let neighbor = Adjacency::glean(1, 1500, MAC);
        assert!(!neighbor.take_used());
        neighbor.note_used();
        neighbor.note_used();
        assert!(neighbor.take_used() && !neighbor.take_used());
    }

    #[test]
    fn fills_one_cache_line() {
        assert_eq!(size_of::<Adjacency>(), 64);
    }
}
