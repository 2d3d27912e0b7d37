//! ip4-glean: the next hop's MAC address is not known yet.
//!
//! The packet is held; the neighbour is asked at once, at most once a second, and the control side
//! is reported, which asks again, creates the neighbour when it answers, and lets the packets go on.

use std::net::{IpAddr, Ipv4Addr};

use weir_buf::Pkt;
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, HoldKey, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{Ipv4Header, build};

use crate::recent::Recent;
use crate::{Event, Tables, ip6_glean};

pub(crate) struct Ip4Glean {
    asked: Recent,
}

impl Default for Ip4Glean {
    fn default() -> Ip4Glean {
        Ip4Glean {
            asked: Recent::new(1_000_000_000),
        }
    }
}

const IP4_LOOKUP: Next = Next(0);

/// The hold queue of packets that wait for a neighbour.
#[must_use]
pub fn hold_key(interface: u32, address: IpAddr) -> HoldKey {
    let what = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    HoldKey {
        kind: interface,
        what: what.into(),
    }
}

impl Node<Tables> for Ip4Glean {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-glean",
        about: "Holds packets whose next hop is not known and asks for it.",
        nexts: &["ip4-lookup"],
        reasons: &[
            DropReason::HoldFull,
            DropReason::HostUnreachable,
            DropReason::NoRoute,
            DropReason::Stopped,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = self.glean(cx, packet);
        }
        Outcome::Each
    }
}

impl Ip4Glean {
    fn glean(&mut self, cx: &mut Cx<'_, Tables>, packet: &Pkt) -> Verdict {
        let Some(adjacency) = cx.world.nexthops.adjacency(packet.aux()) else {
            return Verdict::drop(DropReason::NoRoute);
        };
        let address = match adjacency.kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled => adjacency.address,
            _ => Ipv4Addr::from(
                Ipv4Header::read(packet.l3()).map_or(0, |(header, _)| header.destination()),
            )
            .into(),
        };
        let interface = adjacency.interface;
        let key = hold_key(interface, address);
        if self.asked.is_new(crate::recent::key(key), cx.now) {
            cx.event(Event::Wanted { interface, address });
            match address {
                IpAddr::V4(address) => ask(cx, interface, address.into()),
                // RFC 8950: an IPv4 route by an IPv6 next hop, which neighbour discovery finds.
                IpAddr::V6(address) => ip6_glean::ask(cx, interface, address.into()),
            }
        }
        cx.hold(key, IP4_LOOKUP)
    }
}

/// Sends an ARP request.
pub(crate) fn ask(cx: &mut Cx<'_, Tables>, interface: u32, address: u32) {
    let Some(out) = cx.world.interface(interface) else {
        return;
    };
    let Some(source) = out.source_for(address) else {
        return;
    };
    let Some(mut packet) = cx.alloc() else { return };
    let _ = packet.set_len(build::ARP_FRAME);
    build::arp_request(packet.data_mut(), out.mac, source, address);
    packet.set_interface(interface);
    packet.set_aux(interface);
    packet.set_flags(weir_buf::Flags::BROADCAST | weir_buf::Flags::ORIGINATED);
    cx.originate_out(packet);
}
