//! ip6-rewrite: the packet gets a new Ethernet header and loses a hop.
//!
//! The usual case, a plain packet whose neighbour is known and in use, is rewritten in ip6-lookup's pass by
//! [`plain`]; the node sees what is left. Routers do not fragment IPv6 (RFC 8200 section 5): what is too long
//! is complained about, and so is what has no hop left.

use weir_buf::{Flags, Pkt};
use weir_fib::{Adjacency, NeighborState};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{EthernetHeader, Ipv6Header, MacAddr};

use crate::Tables;
use crate::icmp6_error::{ADDRESS_UNREACHABLE, HOP_LIMIT, TOO_BIG, complain};

pub(crate) struct Ip6Rewrite;

const IP6_GLEAN: Next = Next(0);
const ICMP6_ERROR: Next = Next(1);
const MPLS_PUSH: Next = Next(2);

impl Node<Tables> for Ip6Rewrite {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-rewrite",
        about: "Checks the MTU, takes a hop off the hop limit and writes the MAC addresses.",
        nexts: &["ip6-glean", "icmp6-error", "mpls-push"],
        reasons: &[DropReason::Ip6Truncated, DropReason::NoRoute],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = rewrite(cx.world, packet);
        }
        Outcome::Each
    }
}

/// Bytes of a plain packet's headers.
const PLAIN: usize = EthernetHeader::LEN + Ipv6Header::LEN;
/// The octet of the hop limit.
const HOPS: usize = EthernetHeader::LEN + 7;

/// The usual case, for ip6-lookup: a plain packet that fits, may go on, and whose neighbour is known.
/// Returns the interface; `None`, and nothing is changed, when anything is otherwise.
#[inline(always)]
pub(crate) fn plain(adjacency: &Adjacency, packet: &mut Pkt) -> Option<u32> {
    let len = packet.len();
    let frame = packet.data_mut().first_chunk_mut()?;
    let interface = head(adjacency, len, frame[HOPS], frame)?;
    packet.set_aux(interface);
    Some(interface)
}

/// The same on the headers of a plain packet of `len` bytes; `hops` is its hop limit.
#[inline(always)]
pub(crate) fn head(
    adjacency: &Adjacency,
    len: usize,
    hops: u8,
    frame: &mut [u8; PLAIN],
) -> Option<u32> {
    let (start, end) = adjacency.in_use()?;
    if len > adjacency.longest_frame() || hops <= 1 {
        return None;
    }
    frame[HOPS] = hops - 1;
    frame[..8].copy_from_slice(&start);
    frame[8..12].copy_from_slice(&end);
    Some(adjacency.interface)
}

#[inline(never)]
fn rewrite(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let Some(adjacency) = tables.nexthops.adjacency(packet.aux()) else {
        return Verdict::drop(DropReason::NoRoute);
    };
    let originated = packet.flags().any(Flags::ORIGINATED);
    if is_expired(packet) {
        return complaint(packet, HOP_LIMIT, 0);
    }
    let end = adjacency.end();
    let Some(destination) = end.rewrite() else {
        return unresolved(end.state(), packet);
    };
    if packet.total_len() - packet.l3_offset().min(packet.len()) > adjacency.mtu as usize {
        return complaint(packet, TOO_BIG, adjacency.mtu);
    }
    let Some((ethernet, l3)) = EthernetHeader::read_mut(packet.data_mut()) else {
        return Verdict::drop(DropReason::Ip6Truncated);
    };
    let Some((header, _)) = Ipv6Header::read_mut(l3) else {
        return Verdict::drop(DropReason::Ip6Truncated);
    };
    if !originated {
        header.hop_limit = header.hop_limit.saturating_sub(1);
    }
    if adjacency.labelled().is_some() {
        return Verdict::to(MPLS_PUSH);
    }
    ethernet.destination = MacAddr(destination);
    ethernet.source = MacAddr(adjacency.source_mac());
    packet.set_aux(adjacency.interface);
    adjacency.note_used();
    Verdict::OUT
}

/// Whether a packet's last hop was the one to here.
pub(crate) fn is_expired(packet: &Pkt) -> bool {
    let last = Ipv6Header::read(packet.l3()).is_some_and(|(header, _)| header.hop_limit <= 1);
    last && !packet.flags().any(Flags::ORIGINATED)
}

#[cold]
fn complaint(packet: &mut Pkt, message: u16, argument: u32) -> Verdict {
    complain(packet, message, argument);
    Verdict::to(ICMP6_ERROR)
}

#[cold]
fn unresolved(state: NeighborState, packet: &mut Pkt) -> Verdict {
    if state == NeighborState::Failed {
        return complaint(packet, ADDRESS_UNREACHABLE, 0);
    }
    Verdict::to(IP6_GLEAN)
}
