//! arp-input: answers for own addresses and passes on what neighbours say (RFC 826).
//!
//! The control side decides what to believe; this node only refuses what can never be true and keeps
//! a storm of the same news to one event a second.

use std::net::Ipv4Addr;

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Interface;
use weir_wire::{ArpPacket, EthernetHeader, MacAddr, build};

use crate::recent::Recent;
use crate::{Event, Tables, ip4_input};

pub(crate) struct ArpInput {
    recent: Recent,
}

impl Default for ArpInput {
    fn default() -> ArpInput {
        ArpInput {
            recent: Recent::new(1_000_000_000),
        }
    }
}

const LINUX_PUNT: Next = Next(0);
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

impl Node<Tables> for ArpInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "arp-input",
        about: "Answers ARP requests for own addresses and learns from what neighbours say.",
        nexts: &["linux-punt"],
        reasons: &[
            DropReason::ArpTruncated,
            DropReason::ArpUnsupported,
            DropReason::ArpForeign,
            DropReason::ArpMartian,
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
            *verdict = self.take(cx, packet).unwrap_or_else(Verdict::drop);
        }
        Outcome::Each
    }
}

/// What an ARP packet says.
struct Said {
    operation: u16,
    sender_mac: MacAddr,
    sender: u32,
    target: u32,
}

impl ArpInput {
    fn take(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt) -> Result<Verdict, DropReason> {
        let said = read(packet)?;
        let Some(interface) = cx.world.interface(packet.interface()) else {
            return Err(DropReason::ArpForeign);
        };
        let ours = interface.owns(said.target);
        if !said.sender_mac.is_unicast() || said.sender_mac == interface.mac {
            return Err(DropReason::ArpMartian);
        }
        if said.sender != 0 {
            self.believe(cx, interface, &said, ours)?;
        }
        if said.operation == REPLY || said.sender == said.target {
            // Linux has neighbours of its own; requests are answered here alone.
            return Ok(if interface.host.is_some() {
                Verdict::to(LINUX_PUNT)
            } else {
                Verdict::CONSUME
            });
        }
        if !ours {
            return Err(DropReason::ArpForeign);
        }
        reply(interface, packet, &said);
        Ok(Verdict::OUT)
    }

    /// Tells the control side, unless it cannot be true.
    fn believe(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        said: &Said,
        ours: bool,
    ) -> Result<(), DropReason> {
        if interface.owns(said.sender) {
            return Err(DropReason::ArpMartian);
        }
        if !interface.reaches(said.sender) {
            return Err(DropReason::ArpForeign);
        }
        let MacAddr(mac) = said.sender_mac;
        let mac = mac
            .iter()
            .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        let key = (u64::from(said.sender) << 32 | u64::from(interface.index))
            ^ mac.rotate_left(20)
            ^ u64::from(ours);
        if self.recent.is_new(key, cx.now) {
            cx.event(Event::Heard {
                interface: interface.index,
                address: Ipv4Addr::from(said.sender).into(),
                mac: said.sender_mac,
                to_us: ours && interface.covers(Ipv4Addr::from(said.sender).into()),
                replaces: true,
            });
        }
        Ok(())
    }
}

fn read(packet: &Pkt) -> Result<Said, DropReason> {
    let Some((arp, _)) = ArpPacket::read(packet.l3()) else {
        return Err(DropReason::ArpTruncated);
    };
    if !arp.is_ethernet_ipv4() || !matches!(arp.operation(), REQUEST | REPLY) {
        return Err(DropReason::ArpUnsupported);
    }
    Ok(Said {
        operation: arp.operation(),
        sender_mac: arp.sender_mac,
        sender: arp.sender(),
        target: arp.target(),
    })
}

/// Turns a request into its answer, in place.
fn reply(interface: &Interface, packet: &mut Pkt, said: &Said) {
    // Neither what is behind the request nor, of one over several chunks, any more of them.
    let len = build::ARP_FRAME.max(packet.total_len().min(60));
    ip4_input::shorten(packet, len - packet.l3_offset().min(len));
    build::arp_reply(
        packet.data_mut(),
        interface.mac,
        said.target,
        said.sender_mac,
        said.sender,
    );
    debug_assert!(EthernetHeader::read(packet.data()).is_some());
    packet.set_aux(interface.index);
    packet.clear_flags(Flags::BROADCAST | Flags::MULTICAST);
    packet.set_flags(Flags::ORIGINATED);
}
