//! eth-input: what came in, and who takes it.
//!
//! Counts each frame as unicast, multicast or broadcast, always, also on a cross connect: that is one
//! look at the first byte. A cross-connected interface's vector then leaves as one. On a routed
//! interface each frame goes to the node of its ethertype, if it is meant for this station.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Input, Interface};
use weir_wire::{EtherType, EthernetHeader};

use crate::Tables;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
const VLAN: usize = 4;

pub(crate) struct EthInput;

const IP4_INPUT: Next = Next(0);
const ARP_INPUT: Next = Next(1);

impl Node<Tables> for EthInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "eth-input",
        about: "Counts frames by kind and sends each to the node of its ethertype, or across.",
        nexts: &["ip4-input", "arp-input"],
        reasons: &[
            DropReason::InterfaceDown,
            DropReason::TooShort,
            DropReason::WrongMac,
            DropReason::VlanUnknown,
            DropReason::UnknownEthertype,
            DropReason::NotRouted,
            DropReason::FrameTooLong,
        ],
    };

    #[inline(always)]
    fn process(&mut self, cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
        let first = packets.first().map_or(0, Pkt::interface);
        if packets.iter().all(|packet| packet.interface() == first) {
            return one_interface(cx, first, packets, verdicts);
        }
        // Several interfaces in one vector: rare (only packets that waited together), so one by one.
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            let interface = packet.interface();
            *verdict = match one_interface(cx, interface, std::slice::from_mut(packet), std::slice::from_mut(verdict)) {
                Outcome::All(all) => all,
                Outcome::AllOut(out) => {
                    packet.set_aux(out);
                    Verdict::OUT
                }
                Outcome::Each => *verdict,
            };
        }
        Outcome::Each
    }
}

/// What the frames of a vector are.
#[derive(Default)]
struct Census {
    bytes: u64,
    multicast: u64,
    broadcast: u64,
    longest: usize,
    /// Some frame is shorter than an Ethernet header.
    short: bool,
}

#[inline(always)]
fn one_interface(cx: &Cx<'_, Tables>, interface: u32, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
    let Some(interface) = cx.world.interface(interface) else { return Outcome::All(Verdict::drop(DropReason::InterfaceDown)) };
    let census = classify(packets);
    if let Some(counters) = interface.counters.of(cx.worker) {
        counters.rx.add(packets.len() as u64, census.bytes, census.multicast, census.broadcast);
    }
    match interface.input {
        Input::CrossConnect(out) => across(cx, out, &census, packets, verdicts),
        Input::Routed => {
            for (packet, verdict) in packets.iter_mut().zip(verdicts) {
                *verdict = route(interface, packet);
            }
            Outcome::Each
        }
        Input::Closed => Outcome::All(Verdict::drop(DropReason::InterfaceDown)),
        Input::Unused => Outcome::All(Verdict::drop(DropReason::NotRouted)),
    }
}

/// Looks at the first bytes of each frame; group frames get their flag.
#[inline(always)]
fn classify(packets: &mut [Pkt]) -> Census {
    let mut census = Census::default();
    for packet in packets {
        let len = packet.total_len();
        census.bytes += len as u64;
        census.longest = census.longest.max(len);
        let Some(&first) = packet.data().first_chunk::<ETHERNET>().map(|header| &header[0]) else {
            census.short = true;
            continue;
        };
        if first & 1 != 0 {
            classify_group(packet, &mut census);
        }
    }
    census
}

#[cold]
fn classify_group(packet: &mut Pkt, census: &mut Census) {
    if packet.data().starts_with(&[0xff; 6]) {
        census.broadcast += 1;
        packet.set_flags(Flags::BROADCAST);
    } else {
        census.multicast += 1;
        packet.set_flags(Flags::MULTICAST);
    }
}

/// A cross connect: the whole vector, unless some frame does not fit.
#[inline(always)]
fn across(cx: &Cx<'_, Tables>, out: u32, census: &Census, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
    let room = cx.world.interface(out).map_or(0, |out| out.mtu as usize + ETHERNET);
    if census.longest <= room && !census.short {
        return Outcome::AllOut(out);
    }
    for (packet, verdict) in packets.iter_mut().zip(verdicts) {
        let tag = if ethertype(packet).is_some_and(EtherType::is_tag) { VLAN } else { 0 };
        *verdict = if packet.len() < ETHERNET {
            Verdict::drop(DropReason::TooShort)
        } else if packet.total_len() > room + tag {
            Verdict::drop(DropReason::FrameTooLong)
        } else {
            packet.set_aux(out);
            Verdict::OUT
        };
    }
    Outcome::Each
}

fn ethertype(packet: &Pkt) -> Option<EtherType> {
    EthernetHeader::read(packet.data()).map(|(header, _)| header.ethertype())
}

#[inline(always)]
fn route(interface: &Interface, packet: &mut Pkt) -> Verdict {
    let Some((header, _)) = EthernetHeader::read(packet.data()) else { return Verdict::drop(DropReason::TooShort) };
    let ethertype = header.ethertype();
    if header.destination != interface.mac && !packet.flags().any(Flags::MULTICAST | Flags::BROADCAST) {
        return Verdict::drop(DropReason::WrongMac);
    }
    if ethertype == EtherType::IPV4 {
        packet.set_l3_offset(ETHERNET);
        return Verdict::to(IP4_INPUT);
    }
    if ethertype == EtherType::ARP {
        packet.set_l3_offset(ETHERNET);
        return Verdict::to(ARP_INPUT);
    }
    Verdict::drop(if ethertype.is_tag() { DropReason::VlanUnknown } else { DropReason::UnknownEthertype })
}
