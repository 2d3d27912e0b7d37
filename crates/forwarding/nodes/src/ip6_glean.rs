//! ip6-glean: the next hop's MAC address is not known yet (RFC 4861 section 7.2.2).
//!
//! The packet is held; the neighbour is asked at once, at most once a second, and the control side is
//! reported, which asks again, creates the neighbour when it answers, and lets the packets go on. ip4-glean
//! asks from here too where IPv4 has an IPv6 next hop.

use std::net::{IpAddr, Ipv6Addr};

use weir_buf::{Flags, Pkt};
use weir_fib::AdjacencyKind;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{EtherType, EthernetHeader, Ipv6Header, ipv6, nd};
use zerocopy::IntoBytes;

use crate::frame::ETHERNET;
use crate::ip4_glean::hold_key;
use crate::recent::{self, Recent};
use crate::{Event, Tables, ip4_glean};

pub(crate) struct Ip6Glean {
    asked: Recent,
}

impl Default for Ip6Glean {
    fn default() -> Ip6Glean {
        Ip6Glean {
            asked: Recent::new(1_000_000_000),
        }
    }
}

const IP6_LOOKUP: Next = Next(0);

impl Node<Tables> for Ip6Glean {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip6-glean",
        about: "Holds IPv6 packets whose next hop is not known and asks for it.",
        nexts: &["ip6-lookup"],
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

impl Ip6Glean {
    fn glean(&mut self, cx: &mut Cx<'_, Tables>, packet: &Pkt) -> Verdict {
        let Some(adjacency) = cx.world.nexthops.adjacency(packet.aux()) else {
            return Verdict::drop(DropReason::NoRoute);
        };
        let address = match adjacency.kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled => adjacency.address,
            _ => Ipv6Header::read(packet.l3())
                .map_or(Ipv6Addr::UNSPECIFIED, |(header, _)| {
                    header.destination_addr()
                })
                .into(),
        };
        let interface = adjacency.interface;
        let key = hold_key(interface, address);
        if self.asked.is_new(recent::key(key), cx.now) {
            cx.event(Event::Wanted { interface, address });
            match address {
                IpAddr::V6(address) => ask(cx, interface, address.into()),
                // Below labels, the next hop may be an IPv4 one (RFC 4798).
                IpAddr::V4(address) => ip4_glean::ask(cx, interface, address.into()),
            }
        }
        cx.hold(key, IP6_LOOKUP)
    }
}

/// Bytes of a neighbour solicitation's frame, and of an advertisement's: Ethernet, IPv6, the message with its
/// target, and one option.
pub(crate) const NEIGHBOR_FRAME: usize = ETHERNET + Ipv6Header::LEN + 24 + 8;

/// Sends a neighbour solicitation to the solicited-node group of the address.
pub(crate) fn ask(cx: &mut Cx<'_, Tables>, interface: u32, address: u128) {
    let Some(out) = cx.world.interface(interface) else {
        return;
    };
    let Some(source) = out.source_for6(address).or_else(|| out.link_local6()) else {
        return;
    };
    let (mac, target) = (out.mac, address.to_be_bytes());
    let Some(mut packet) = cx.alloc() else { return };
    let _ = packet.set_len(NEIGHBOR_FRAME);
    let group = ipv6::multicast_mac(&ipv6::solicited_node(&target));
    if let Some((ethernet, l3)) = packet.data_mut().split_at_mut_checked(ETHERNET) {
        ethernet.copy_from_slice(EthernetHeader::new(group, mac, EtherType::IPV6).as_bytes());
        nd::neighbor_solicitation(l3, source.to_be_bytes(), mac, target);
    }
    packet.set_interface(interface);
    packet.set_aux(interface);
    packet.set_flags(Flags::MULTICAST | Flags::ORIGINATED);
    cx.originate_out(packet);
}
