//! The steps of labelled packets in the usual roles on a label path, each once: swap one label; pop the last one for a
//! neighbour (penultimate hop popping); pop the last one and look up the plain IPv4 packet under it in the first table; pop the
//! last one of a pseudowire's frame that goes across.
//!
//! The fast path of eth-input runs all of them. mpls-lookup runs those that end in its own node: swap and penultimate hop
//! popping. A step takes a packet only if each of its rules is met. Otherwise the packet is unchanged, and mpls-lookup settles it.

use weir_buf::Pkt;
use weir_fib::{Adjacency, AdjacencyKind, LabelEntry, Lfib, NexthopView, Payload, SmallFib4};
use weir_graph::Cx;
use weir_port::interface::Interface;
use weir_port::own_addresses::OwnAddresses;
use weir_wire::{EtherType, Ipv4Header, Ipv6Header, checksum};

use super::{BOTTOM, CLASS_SHIFT, ENTRY, LABEL_SHIFT, TTL};
use crate::frame::{ETHERNET, send};
use crate::ip4_steps::{self, PLAIN};
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
    /// Addresses that no packet from outside may come from, if the packets of one interface are taken.
    own: Option<&'a OwnAddresses>,
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
            own: Some(&*interface.own),
            fib: first.and_then(|fib| fib.small()),
            outlet: (!tables.inner_taps).then(|| Outlet::new(cx)),
            ..MplsSteps::of_labels(tables)
        }
    }

    /// For mpls-lookup, which leaves to other nodes what is under the last label.
    pub(super) fn of_labels(tables: &'a Tables) -> MplsSteps<'a> {
        MplsSteps {
            lfib: &tables.lfib,
            nexthops: tables.nexthops.view(),
            own: None,
            fib: None,
            outlet: None,
            // Labels have 20 bits.
            last: (u32::MAX, End::LookUp(LabelEntry::NONE)),
            popped: 0,
        }
    }

    /// Forwards a packet, which is in one piece, and returns the interface. `None`, and nothing is changed, for
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
        if !is_end(top) {
            return None;
        }
        let plain = ip4_steps::validate(self.own?, frame, len)?;
        let hops = if entry.is_pipe() {
            plain.hops
        } else {
            uniform(plain.hops, plain.service, top)?
        };
        let neighbor = self.nexthops.only_neighbor(fib.lookup(plain.destination))?;
        let interface = ip4_rewrite::head(neighbor, plain.whole, hops, frame)?;
        let _ = packet.pull_front(ENTRY);
        self.popped += 1;
        Some(send(packet, len, plain.whole, interface))
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

/// Bytes up to the end of the top entry.
pub(super) const SHORTEST: usize = ETHERNET + ENTRY;

/// Swaps the label of a frame of `len` bytes, which is in one piece, towards a neighbour; `top` is the entry that goes. Returns the
/// interface; `None`, and nothing is changed, if the packet or the neighbour is not ready for that.
#[inline(always)]
fn swap(
    frame: &mut [u8; SHORTEST],
    len: usize,
    top: u32,
    label: u32,
    below: &Adjacency,
) -> Option<u32> {
    let (start, end) = below.in_use()?;
    if (top & TTL <= 1) | (len > below.longest_frame()) {
        return None;
    }
    frame[..8].copy_from_slice(&start);
    frame[8..12].copy_from_slice(&end);
    // Class and bottom stay, a hop is taken off.
    frame[ETHERNET..].copy_from_slice(&(label | ((top & 0xfff) - 1)).to_be_bytes());
    Some(below.interface)
}

/// Penultimate hop popping of the last label, towards a neighbour that is known and in use; `packet` is in one piece.
/// Returns the interface; `None`, and nothing is changed, for all that mpls-lookup must settle.
#[inline(always)]
fn pop_last(packet: &mut Pkt, top: u32, entry: LabelEntry, below: &Adjacency) -> Option<u32> {
    if (top & BOTTOM == 0) | (top & TTL <= 1) {
        return None;
    }
    let ethertype = payload_of(packet.data().get(SHORTEST..)?, entry.payload())?;
    let (start, end) = below.in_use()?;
    if packet.len() - ENTRY > below.longest_frame() {
        return None;
    }
    if !entry.is_pipe() {
        let class = (top >> CLASS_SHIFT) as u8 & 7;
        uniform_payload(packet, SHORTEST, ((top & TTL) - 1) as u8, Some(class));
    }
    let _ = packet.pull_front(ENTRY);
    let frame = packet.data_mut().first_chunk_mut::<ETHERNET>()?;
    frame[..8].copy_from_slice(&start);
    frame[8..12].copy_from_slice(&end);
    frame[12..].copy_from_slice(&ethertype.0.to_be_bytes());
    packet.set_l3_offset(ETHERNET);
    packet.set_aux(below.interface);
    Some(below.interface)
}

/// Which protocol lies under the last label: what the label stands for, and what the version field agrees with.
pub(super) fn payload_of(under: &[u8], wanted: Payload) -> Option<EtherType> {
    match (under.first()? >> 4, wanted) {
        (4, Payload::Either | Payload::Ip4) if under.len() >= Ipv4Header::LEN => {
            Some(EtherType::IPV4)
        }
        (6, Payload::Either | Payload::Ip6) if under.len() >= Ipv6Header::LEN => {
            Some(EtherType::IPV6)
        }
        _ => None,
    }
}

/// Uniform mode onto an IP header. A class that is not the DSCP's becomes a class selector; one that is leaves it
/// as it was. The bits of ECN stay (RFC 5462 section 2, RFC 5129 section 4).
pub(super) fn uniform_payload(packet: &mut Pkt, at: usize, ttl: u8, class: Option<u8>) {
    let Some(l3) = packet.data_mut().get_mut(at..) else {
        return;
    };
    match l3.first().map(|first| first >> 4) {
        Some(4) => {
            if let Some((header, _)) = Ipv4Header::read_mut(l3) {
                uniform_ip4(header, ttl, class);
            }
        }
        Some(6) => {
            if let Some((header, _)) = Ipv6Header::read_mut(l3) {
                header.hop_limit = header.hop_limit.min(ttl);
                if let Some(tos) =
                    class.and_then(|class| new_service(header.traffic_class(), class))
                {
                    header.set_traffic_class(tos);
                }
            }
        }
        _ => {}
    }
}

/// The header's checksum is led along (RFC 1624), not made right: what was broken stays so.
fn uniform_ip4(header: &mut Ipv4Header, ttl: u8, class: Option<u8>) {
    let mut sum = header.checksum();
    if ttl < header.ttl {
        let protocol = u16::from(header.protocol().0);
        let (old, new) = (
            u16::from(header.ttl) << 8 | protocol,
            u16::from(ttl) << 8 | protocol,
        );
        sum = checksum::changed(sum, old, new);
        header.ttl = ttl;
    }
    if let Some(tos) = class.and_then(|class| new_service(header.tos, class)) {
        let first = u16::from(header.version_ihl) << 8;
        sum = checksum::changed(sum, first | u16::from(header.tos), first | u16::from(tos));
        header.tos = tos;
    }
    header.set_checksum(sum);
}

fn new_service(service: u8, class: u8) -> Option<u8> {
    (service >> 5 != class).then_some(class << 5 | service & 3)
}
