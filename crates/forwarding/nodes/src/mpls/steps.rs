//! Labelled packets in one pass: the rules of mpls-lookup, and of ip4-lookup or pseudowire-input behind it, while a
//! header is at hand.
//!
//! Not a node. eth-input uses it while nobody follows packets, for the roles on a label path: one label for another; the
//! last one off for a neighbour (penultimate hop popping); the last one off, what is plain under it looked up in the
//! first table; the last one off a frame that came through a pseudowire and goes across. It takes a packet only if every rule is met; otherwise the packet is unchanged and goes to
//! mpls-lookup, which settles what is odd.

use weir_buf::Pkt;
use weir_fib::{AdjacencyKind, LabelEntry, Lfib, NexthopView, Payload, SmallFib4};
use weir_graph::Cx;
use weir_port::interface::Interface;
use weir_port::own_addresses::OwnAddresses;

use super::lookup::{SHORTEST, pop_last, swap};
use super::{BOTTOM, CLASS_SHIFT, ENTRY, LABEL_SHIFT, TTL};
use crate::ip4_steps::{self, Header, PLAIN};
use crate::pseudowire_input::Outlet;
use crate::{Tables, ip4_rewrite};

/// What is done where a label path ends.
#[derive(Clone, Copy)]
enum End {
    /// What is under the label is looked up.
    LookUp(LabelEntry),
    /// It is a frame of the pseudowire with this interface.
    Pseudowire(u32),
}

/// What a pass looks labels up in, and what became of the packets.
pub(crate) struct MplsSteps<'a> {
    lfib: &'a Lfib,
    nexthops: NexthopView<'a>,
    /// Addresses that no packet from outside may come from.
    own: &'a OwnAddresses,
    /// The first table, if it is that of the interface and its lookups are short.
    fib: Option<SmallFib4<'a>>,
    /// Where frames of pseudowires go.
    outlet: Option<Outlet<'a>>,
    /// The label that was met last of those at which a path ends, and what is done there.
    last: (u32, End),
    /// Packets that were looked up without their label.
    pub(crate) popped: usize,
}

impl<'a> MplsSteps<'a> {
    /// For packets of an interface.
    pub(crate) fn of(cx: &Cx<'a, Tables>, interface: &'a Interface) -> MplsSteps<'a> {
        let tables = cx.world;
        let first = tables.fib4.first().filter(|_| interface.table == 0);
        MplsSteps {
            lfib: &tables.lfib,
            nexthops: tables.nexthops.view(),
            own: &interface.own,
            fib: first.and_then(|fib| fib.small()),
            outlet: (!tables.inner_taps).then(|| Outlet::new(cx)),
            // Labels have 20 bits.
            last: (u32::MAX, End::LookUp(LabelEntry::NONE)),
            popped: 0,
        }
    }

    /// Forwards a packet, which is whole and whose stack has a bottom, and returns the interface. `None`, and nothing is changed, for
    /// all that is not usual.
    #[inline(always)]
    pub(crate) fn forward(&mut self, packet: &mut Pkt) -> Option<u32> {
        // Read once: what follows a look at tables that others change would be read anew.
        let len = packet.len();
        let frame = packet.data_mut().first_chunk_mut::<SHORTEST>()?;
        let top = u32::from_be_bytes(*frame.last_chunk()?);
        let label = top >> LABEL_SHIFT;
        if label != self.last.0 {
            let entry = self.lfib.lookup(label);
            if let Some((label, below)) = self.nexthops.only_swap(entry.group()) {
                let interface = swap(frame, len, top, label, below)?;
                packet.set_aux(interface);
                return Some(interface);
            }
            if let Some(below) = self.nexthops.only_neighbor(entry.group()) {
                return pop_last(packet, top, entry, below);
            }
            self.last = (label, self.end(entry)?);
        }
        match self.last.1 {
            End::LookUp(entry) => self.pop(packet, top, entry),
            End::Pseudowire(interface) if is_end(top) => {
                self.outlet.as_mut()?.take(interface, packet, SHORTEST)
            }
            End::Pseudowire(_) => None,
        }
    }

    /// What is done with packets of a label path that ends here.
    #[inline(always)]
    fn end(&self, entry: LabelEntry) -> Option<End> {
        let &[only] = self.nexthops.buckets(entry.group()) else {
            return None;
        };
        let end = self.nexthops.adjacency(only)?;
        match end.kind {
            AdjacencyKind::Lookup if end.interface == 0 && entry.payload() != Payload::Ip6 => {
                Some(End::LookUp(entry))
            }
            AdjacencyKind::Pseudowire => Some(End::Pseudowire(end.interface)),
            _ => None,
        }
    }

    /// What is under the last label is looked up.
    #[inline(always)]
    fn pop(&mut self, packet: &mut Pkt, top: u32, entry: LabelEntry) -> Option<u32> {
        let (fib, len) = (self.fib?, packet.len().checked_sub(ENTRY)?);
        // Where the packet begins once the entry is off.
        let frame = packet
            .data_mut()
            .first_chunk_mut::<{ ENTRY + PLAIN }>()?
            .last_chunk_mut::<PLAIN>()?;
        let header = Header::read(frame);
        if !(is_end(top) & header.is_usual() & header.is_sound(self.own)) {
            return None;
        }
        let plain = header.plain(len)?;
        let hops = if entry.is_pipe() {
            plain.hops
        } else {
            uniform(plain.hops, header.service(), top)?
        };
        let neighbor = self.nexthops.only_neighbor(fib.lookup(plain.destination))?;
        let interface = ip4_rewrite::head(neighbor, plain.whole, hops, frame)?;
        let _ = packet.pull_front(ENTRY);
        self.popped += 1;
        Some(ip4_steps::leave(packet, len, plain.whole, interface))
    }

    /// Frames that came out of pseudowires; all are counted then.
    pub(crate) fn finish(self) -> usize {
        self.outlet.map_or(0, Outlet::finish)
    }
}

/// Whether an entry is the last one and the packet may go on.
#[inline(always)]
fn is_end(top: u32) -> bool {
    (top & BOTTOM != 0) & (top & TTL > 1)
}

/// The time to live that the label hands on (RFC 3443 section 3.3), never more than there is; `None` when the class
/// would change, too.
#[inline(always)]
fn uniform(hops: u32, service: u8, top: u32) -> Option<u32> {
    if u32::from(service >> 5) != top >> CLASS_SHIFT & 7 {
        return None;
    }
    Some(ip4_rewrite::hops_at_most(hops, top & TTL))
}
