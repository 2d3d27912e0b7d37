//! vxlan-input: packets for UDP port 4789 of this router become the frames in them (RFC 7348 section 4).
//!
//! ip4-local and ip6-local send here what is whole, with the place of the UDP header in the packet's `aux` word. The
//! addresses and the segment tell the tunnel; the frame then comes in by its interface. A checksum that is there must be
//! right; one that is not there is no fault, over IPv6 neither (RFC 7348 section 5, RFC 6935). Flags but the one that says
//! there is a segment are not looked at, nor are reserved bits. Congestion that the packet met is copied to the packet in the frame (`ecn.rs`).

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::vxlan::{NoTunnel, VxlanKey};
use weir_wire::checksum::{pseudo4, pseudo6};
use weir_wire::{IpProtocol, Ipv4Header, Ipv6Header, UdpHeader, VxlanHeader};

use crate::ecn::{self, ECN};
use crate::{Tables, ip4_input, packet_sum, vector_loops};

pub(crate) struct VxlanInput;

const INTERFACE_INPUT: Next = Next(0);

impl Node<Tables> for VxlanInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "vxlan-input",
        about: "Takes frames out of VXLAN packets, in by the tunnel that they came through.",
        nexts: &["interface-input"],
        reasons: &[
            DropReason::VxlanTruncated,
            DropReason::UdpBadChecksum,
            DropReason::VxlanNoVni,
            DropReason::VxlanUnknownVni,
            DropReason::VxlanUnknownPeer,
            DropReason::TunnelCongested,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let mut odd = false;
        vector_loops::each_packet(packets, |place, packet| {
            verdicts[place] = match unwrap(cx.world, packet) {
                Ok(()) => Verdict::to(INTERFACE_INPUT),
                Err(reason) => {
                    odd = true;
                    Verdict::drop(reason)
                }
            };
        });
        if odd {
            Outcome::Each
        } else {
            Outcome::All(Verdict::to(INTERFACE_INPUT))
        }
    }
}

/// Whether a datagram is for here: what starts at the UDP header, of a packet for this router.
#[inline(always)]
pub(crate) fn takes(tables: &Tables, packet: &Pkt, datagram: &[u8]) -> bool {
    !tables.vxlan.is_empty()
        && UdpHeader::read(datagram).is_some_and(|(udp, _)| udp.destination() == VxlanHeader::PORT)
        // Tunnels end in the default table.
        && tables.table_of(packet) == 0
}

/// Bytes of the headers between IP and the frame.
const HEADERS: usize = UdpHeader::LEN + VxlanHeader::LEN;

/// One packet becomes the frame in it; it is unchanged when it is not taken.
#[inline(always)]
fn unwrap(tables: &Tables, packet: &mut Pkt) -> Result<(), DropReason> {
    let udp_at = packet.aux() as usize;
    let (l3, whole) = (
        packet.l3(),
        packet
            .total_len()
            .saturating_sub(packet.l3_offset() + udp_at),
    );
    let (udp, rest) = l3
        .get(udp_at..)
        .and_then(UdpHeader::read)
        .ok_or(DropReason::VxlanTruncated)?;
    let (vxlan, _) = VxlanHeader::read(rest).ok_or(DropReason::VxlanTruncated)?;
    let (length, checksum) = (usize::from(udp.length()), udp.checksum());
    if length < HEADERS || length > whole {
        return Err(DropReason::VxlanTruncated);
    }
    let vni = vxlan.vni();
    let has_vni = vxlan.is_valid();
    let (key, pseudo, service) = if l3.first().is_some_and(|first| first >> 4 == 6) {
        let (header, _) = Ipv6Header::read(l3).ok_or(DropReason::VxlanTruncated)?;
        let (local, remote) = (
            u128::from_be_bytes(header.destination),
            u128::from_be_bytes(header.source),
        );
        let pseudo = if checksum == 0 {
            None
        } else {
            Some(pseudo6(
                &header.source,
                &header.destination,
                IpProtocol::UDP,
                length as u32,
            ))
        };
        (
            VxlanKey { local, remote, vni },
            pseudo,
            header.traffic_class(),
        )
    } else {
        let (header, _) = Ipv4Header::read(l3).ok_or(DropReason::VxlanTruncated)?;
        let (local, remote) = (header.destination(), header.source());
        let pseudo = if checksum == 0 {
            None
        } else {
            Some(pseudo4(remote, local, IpProtocol::UDP, udp.length()))
        };
        (VxlanKey::v4(local, remote, vni), pseudo, header.tos)
    };
    if let Some(pseudo) = pseudo
        && packet_sum::from_l3(packet, udp_at, length, pseudo) != 0
    {
        return Err(DropReason::UdpBadChecksum);
    }
    if !has_vni {
        return Err(DropReason::VxlanNoVni);
    }
    let interface = tables.vxlan.find(key).map_err(|why| match why {
        NoTunnel::UnknownVni => DropReason::VxlanUnknownVni,
        NoTunnel::UnknownPeer => DropReason::VxlanUnknownPeer,
    })?;
    let frame_at = packet.l3_offset() + udp_at + HEADERS;
    if service & ECN != 0
        && let Some(frame) = packet.data_mut().get_mut(frame_at..)
    {
        ecn::hand_in(service, frame)?;
    }
    if !packet.pull_front(frame_at) {
        return Err(DropReason::VxlanTruncated);
    }
    packet.set_interface(interface);
    packet.set_l3_offset(0);
    // What is behind the datagram is not the frame's.
    if whole > length {
        ip4_input::shorten(packet, length - HEADERS);
    }
    Ok(())
}
