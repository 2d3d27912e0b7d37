//! vxlan-output: what leaves by a VXLAN tunnel becomes a packet to its far end (RFC 7348 section 5).
//!
//! Stands before the drivers: the graph brings here what leaves by an interface whose output is
//! [`weir_port::interface::Output::Vxlan`], from any node. The frame is compared with the tunnel's MTU and counted; then
//! come the headers, and the packet is looked up like one that came in by the tunnel's interface, but in the default table.
//! What is too long for the way is dropped where that is found, since tunnels' packets are not fragmented (section 4.3).
//!
//! The source port is made of the flow in the frame, so that the routers on the way spread flows over their paths. Over
//! IPv4 there is no UDP checksum; over IPv6 there is one, since not all receivers do without (RFC 6935 section 5). Outside,
//! traffic class and ECN are zero (RFC 6040 section 4.1, compatibility mode: nothing says that the far end hands marks in).
//!
//! A packet goes into one tunnel only: whose way to a far end leads into a tunnel would wrap it again and again.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::bond::Layers;
use weir_port::interface::Interface;
use weir_port::vxlan::Vxlan;
use weir_wire::checksum::{changed, pseudo6};
use weir_wire::{IpProtocol, Ipv4Header, Ipv6Header, UdpHeader};

use crate::bond_hash::bond_hash;
use crate::eth_input::STALE;
use crate::eth_input::tags_room;
use crate::frame::ETHERNET;
use crate::{Tables, packet_sum, vector_loops};

pub(crate) struct VxlanOutput;

const IP4_LOOKUP: Next = Next(0);
const IP6_LOOKUP: Next = Next(1);

impl Node<Tables> for VxlanOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "vxlan-output",
        about: "Puts frames that leave by a VXLAN tunnel into packets to its far end.",
        nexts: &["ip4-lookup", "ip6-lookup"],
        reasons: &[
            DropReason::TxDown,
            DropReason::TooShort,
            DropReason::FrameTooLong,
            DropReason::TunnelLoop,
            DropReason::NoHeadroom,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        let mut exit = Exit {
            tables: cx.world,
            worker: cx.worker,
            index: 0,
            tunnel: None,
            sent: Sent::default(),
        };
        vector_loops::each_packet(packets, |place, packet| {
            verdicts[place] = exit.leave(packet).unwrap_or_else(Verdict::drop);
        });
        exit.finish();
        Outcome::Each
    }
}

/// What left by one tunnel and is not yet in its counters.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    multicast: u64,
    broadcast: u64,
}

/// The tunnel of the packets at hand.
struct Exit<'a> {
    tables: &'a Tables,
    worker: usize,
    index: u32,
    tunnel: Option<(&'a Interface, &'a Vxlan)>,
    sent: Sent,
}

impl Exit<'_> {
    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.finish();
        self.index = index;
        let interface = self
            .tables
            .interface(index)
            .filter(|interface| interface.can_send);
        self.tunnel =
            interface.and_then(|interface| Some((interface, &**interface.vxlan.as_ref()?)));
    }

    fn finish(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if let Some(counters) = self
            .tunnel
            .and_then(|(interface, _)| interface.counters.of(self.worker))
        {
            counters
                .tx
                .add(sent.packets, sent.bytes, sent.multicast, sent.broadcast);
        }
    }

    /// One frame: the node that finds its packet's way.
    #[inline(always)]
    fn leave(&mut self, packet: &mut Pkt) -> Result<Verdict, DropReason> {
        if packet.aux() != self.index {
            self.turn_to(packet.aux());
        }
        let (interface, tunnel) = self.tunnel.ok_or(DropReason::TxDown)?;
        if packet.flags().any(Flags::TUNNELLED) {
            return Err(DropReason::TunnelLoop);
        }
        let (len, room) = (packet.total_len(), interface.mtu as usize + ETHERNET);
        if packet.len() < ETHERNET {
            return Err(DropReason::TooShort);
        }
        if len > room && len > room + tags_room(packet.data()) {
            return Err(DropReason::FrameTooLong);
        }
        let flags = packet.flags();
        let verdict = wrap(tunnel, packet)?;
        packet.set_interface(interface.index);
        if interface.table != 0 {
            packet.meta_mut().table = 0;
            packet.set_flags(Flags::TABLED);
        }
        self.sent.packets += 1;
        self.sent.bytes += len as u64;
        self.sent.multicast += u64::from(flags.any(Flags::MULTICAST));
        self.sent.broadcast += u64::from(flags.any(Flags::BROADCAST));
        Ok(verdict)
    }
}

/// A port that tells flows apart, of those that nobody listens at (RFC 7348 section 5: 49152 to 65535).
#[inline(always)]
fn source_port(frame: &[u8]) -> u16 {
    let hash = bond_hash(Layers::L34, frame);
    0xc000 | (hash ^ hash >> 16) as u16 & 0x3fff
}

/// Puts the headers of a tunnel around a frame.
#[inline(always)]
fn wrap(tunnel: &Vxlan, packet: &mut Pkt) -> Result<Verdict, DropReason> {
    let port = source_port(packet.data());
    let headers = tunnel.headers();
    let bytes = u16::try_from(packet.total_len() + headers.len() - ETHERNET)
        .map_err(|_| DropReason::FrameTooLong)?;
    let frame = packet
        .push_front(headers.len())
        .ok_or(DropReason::NoHeadroom)?;
    if let Some(place) = frame.get_mut(..headers.len()) {
        place.copy_from_slice(headers);
    }
    packet.clear_flags(STALE);
    packet.set_flags(Flags::TUNNELLED);
    packet.set_l3_offset(ETHERNET);
    Ok(if tunnel.remote.is_ipv4() {
        wrap4(packet, port, bytes)
    } else {
        wrap6(packet, port, bytes)
    })
}

/// Lengths, port and checksum over IPv4.
#[inline(always)]
fn wrap4(packet: &mut Pkt, port: u16, bytes: u16) -> Verdict {
    let mut destination = 0;
    if let Some((header, rest)) = Ipv4Header::read_mut(packet.l3_mut()) {
        header.set_checksum(changed(header.checksum(), 0, bytes));
        header.set_total_len(bytes);
        destination = header.destination();
        if let Some((udp, _)) = UdpHeader::read_mut(rest) {
            udp.set_source(port);
            udp.set_length(bytes - Ipv4Header::LEN as u16);
        }
    }
    packet.set_aux(destination);
    if !packet.is_chained() {
        packet.set_flags(Flags::PLAIN_IP4);
    }
    Verdict::to(IP4_LOOKUP)
}

/// The same over IPv6.
#[inline(always)]
fn wrap6(packet: &mut Pkt, port: u16, bytes: u16) -> Verdict {
    let payload = bytes - Ipv6Header::LEN as u16;
    let mut pseudo = Default::default();
    if let Some((header, rest)) = Ipv6Header::read_mut(packet.l3_mut()) {
        header.set_payload_len(payload);
        pseudo = pseudo6(
            &header.source,
            &header.destination,
            IpProtocol::UDP,
            u32::from(payload),
        );
        if let Some((udp, _)) = UdpHeader::read_mut(rest) {
            udp.set_source(port);
            udp.set_length(payload);
        }
    }
    let sum = packet_sum::from_l3(packet, Ipv6Header::LEN, usize::from(payload), pseudo);
    if let Some((udp, _)) = packet
        .l3_mut()
        .get_mut(Ipv6Header::LEN..)
        .and_then(UdpHeader::read_mut)
    {
        // RFC 768: a sum of zero is sent as its other form, since zero says that there is none.
        udp.set_checksum(if sum == 0 { 0xffff } else { sum });
    }
    if !packet.is_chained() {
        packet.set_flags(Flags::PLAIN_IP6);
    }
    Verdict::to(IP6_LOOKUP)
}
