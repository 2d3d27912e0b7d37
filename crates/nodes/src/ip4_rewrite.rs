//! ip4-rewrite: the packet gets a new Ethernet header and loses a hop.
//!
//! What cannot go on as it is goes elsewhere unchanged: too long to be fragmented or complained
//! about, at the end of its time to live to be complained about, no MAC address yet to be held.

use weir_buf::{Flags, Pkt};
use weir_fib::{NeighborState, NexthopView};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::checksum::decrement_ttl;
use weir_wire::{EthernetHeader, Ipv4Header, MacAddr};

use crate::icmp4_error::{FRAGMENTATION_NEEDED, HOST_UNREACHABLE, TTL_EXPIRED, complain};
use crate::{Tables, each};

pub(crate) struct Ip4Rewrite;

const IP4_FRAGMENT: Next = Next(0);
const IP4_GLEAN: Next = Next(1);
const ICMP4_ERROR: Next = Next(2);

impl Node<Tables> for Ip4Rewrite {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-rewrite",
        about: "Checks the MTU, takes a hop off the time to live and writes the MAC addresses.",
        nexts: &["ip4-fragment", "ip4-glean", "icmp4-error"],
        reasons: &[DropReason::Ip4Truncated, DropReason::NoRoute],
    };

    #[inline(always)]
    fn process(&mut self, cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
        let nexthops = cx.world.nexthops.view();
        verdicts.fill(Verdict::OUT);
        let (mut odd, mut differ) = (false, 0);
        let first = packets.first().and_then(|packet| nexthops.adjacency(packet.aux())).map(|adjacency| adjacency.interface);
        each::frame(packets, verdicts, |packet, verdict| match plain(nexthops, packet) {
            Some(interface) => differ |= interface ^ first.unwrap_or(0),
            None => {
                odd = true;
                *verdict = rewrite(cx.world, packet);
            }
        });
        match first {
            Some(interface) if !odd && differ == 0 => Outcome::AllOut(interface),
            _ => Outcome::Each,
        }
    }
}

/// The usual case: one chunk, came from outside, fits, may go on, neighbour known. `None`, and nothing
/// is changed, when anything is otherwise; else the interface.
#[inline(always)]
fn plain(nexthops: NexthopView<'_>, packet: &mut Pkt) -> Option<u32> {
    let adjacency = nexthops.adjacency(packet.aux())?;
    let destination = adjacency.rewrite()?;
    if (packet.len() > adjacency.mtu as usize + EthernetHeader::LEN) | packet.flags().any(Flags::CHAINED | Flags::ORIGINATED) {
        return None;
    }
    let frame = packet.data_mut().first_chunk_mut::<{ EthernetHeader::LEN + Ipv4Header::LEN }>()?;
    let (ethernet, l3) = EthernetHeader::read_mut(frame)?;
    let (header, _) = Ipv4Header::read_mut(l3)?;
    if header.ttl <= 1 {
        return None;
    }
    decrement_ttl(header);
    ethernet.destination = MacAddr(destination);
    ethernet.source = MacAddr(adjacency.source_mac);
    packet.set_aux(adjacency.interface);
    adjacency.note_used();
    Some(adjacency.interface)
}

#[inline(never)]
fn rewrite(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let Some(adjacency) = tables.nexthops.adjacency(packet.aux()) else { return Verdict::drop(DropReason::NoRoute) };
    let Some(destination) = adjacency.rewrite() else { return unresolved(adjacency.state(), packet) };
    if packet.total_len() - packet.l3_offset().min(packet.len()) > adjacency.mtu as usize {
        return too_long(adjacency.mtu, packet);
    }
    let originated = packet.flags().any(Flags::ORIGINATED);
    let Some((ethernet, l3)) = EthernetHeader::read_mut(packet.data_mut()) else { return Verdict::drop(DropReason::Ip4Truncated) };
    let Some((header, _)) = Ipv4Header::read_mut(l3) else { return Verdict::drop(DropReason::Ip4Truncated) };
    if !originated {
        if header.ttl <= 1 {
            complain(packet, TTL_EXPIRED, 0);
            return Verdict::to(ICMP4_ERROR);
        }
        decrement_ttl(header);
    }
    ethernet.destination = MacAddr(destination);
    ethernet.source = MacAddr(adjacency.source_mac);
    packet.set_aux(adjacency.interface);
    adjacency.note_used();
    Verdict::OUT
}

#[cold]
fn unresolved(state: NeighborState, packet: &mut Pkt) -> Verdict {
    if state == NeighborState::Failed {
        complain(packet, HOST_UNREACHABLE, 0);
        return Verdict::to(ICMP4_ERROR);
    }
    Verdict::to(IP4_GLEAN)
}

#[cold]
fn too_long(mtu: u32, packet: &mut Pkt) -> Verdict {
    let expired = !packet.flags().any(Flags::ORIGINATED) && Ipv4Header::read(packet.l3()).is_some_and(|(header, _)| header.ttl <= 1);
    if expired {
        complain(packet, TTL_EXPIRED, 0);
        return Verdict::to(ICMP4_ERROR);
    }
    if Ipv4Header::read(packet.l3()).is_some_and(|(header, _)| header.dont_fragment()) {
        complain(packet, FRAGMENTATION_NEEDED, mtu);
        return Verdict::to(ICMP4_ERROR);
    }
    packet.meta_mut().argument = mtu;
    Verdict::to(IP4_FRAGMENT)
}
