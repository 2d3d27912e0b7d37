//! linux-punt: packets for services of this router that Linux has, to the TAP of their interface.
//!
//! Other nodes send packets here that they have validated. Each class of packets has its own limit, for each interface and for
//! all together, so that a flood of one class neither keeps others from Linux nor the worker from forwarding. What is over
//! a limit is dropped and counted. The limits hold for each worker.
//!
//! The frame gets an Ethernet header right before the network header: tags and labels that it came with are
//! gone. It leaves by the TAP as it is.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::host::{Host, HostClass};
use weir_wire::{EtherType, EthernetHeader, IpProtocol, Ipv4Header, Ipv6Header, MacAddr};

use crate::Tables;
use crate::frame::ETHERNET;

/// Interfaces that are limited apart; more share.
const PLACES: usize = 512;
const CLASSES: usize = HostClass::ALL.len();
/// All interfaces together may have as much as this many.
const SHARE: u64 = 4;
const SECOND: u64 = 1_000_000_000;
const BGP: u16 = 179;
/// UDP ports of BFD: one hop, echo, several hops, and seamless (RFC 5881, RFC 5883, RFC 7881).
const BFD: [u16; 4] = [3784, 3785, 4784, 7784];
/// UDP and TCP ports of LDP, UDP port of RIP and RIPng.
const ROUTING: [u16; 3] = [646, 520, 521];

/// A limit of packets a second; a burst may be of as many.
#[derive(Clone, Copy, Default)]
struct Bucket {
    /// In packets times nanoseconds a second.
    tokens: u64,
    last: u64,
}

impl Bucket {
    fn take(&mut self, now: u64, rate: u64) -> bool {
        let full = rate * SECOND;
        let gained = now.saturating_sub(self.last).min(SECOND) * rate;
        self.tokens = if self.last == 0 {
            full
        } else {
            (self.tokens + gained).min(full)
        };
        self.last = now.max(1);
        let enough = self.tokens >= SECOND;
        if enough {
            self.tokens -= SECOND;
        }
        enough
    }
}

pub(crate) struct LinuxPunt {
    ports: Box<[[Bucket; CLASSES]]>,
    all: [Bucket; CLASSES],
}

impl Default for LinuxPunt {
    fn default() -> LinuxPunt {
        LinuxPunt {
            ports: vec![[Bucket::default(); CLASSES]; PLACES].into(),
            all: [Bucket::default(); CLASSES],
        }
    }
}

impl Node<Tables> for LinuxPunt {
    const SPEC: NodeSpec = NodeSpec {
        name: "linux-punt",
        about: "Sends packets for services that Linux has to the TAP of their interface, within limits.",
        nexts: &[],
        reasons: &[DropReason::PuntPoliced, DropReason::PuntGone],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = self
                .punt(cx.world, cx.now, packet)
                .unwrap_or_else(Verdict::drop);
        }
        Outcome::Each
    }
}

impl LinuxPunt {
    fn punt(&mut self, tables: &Tables, now: u64, packet: &mut Pkt) -> Result<Verdict, DropReason> {
        let interface = tables
            .interface(packet.interface())
            .ok_or(DropReason::PuntGone)?;
        let host = interface.host.as_deref().ok_or(DropReason::PuntGone)?;
        let class = class_of(packet.l3());
        let rate = u64::from(class.rate());
        let place = &mut self.ports[interface.index as usize % PLACES][class as usize];
        let passes = place.take(now, rate) && self.all[class as usize].take(now, rate * SHARE);
        host.count(class, passes);
        if !passes {
            return Err(DropReason::PuntPoliced);
        }
        if !frame(packet, interface.mac) {
            return Err(DropReason::PuntGone);
        }
        packet.set_aux(host.interface);
        packet.clear_flags(Flags::HASHED);
        Ok(Verdict::OUT)
    }
}

/// The Linux end of the interface that a packet came in by.
pub(crate) fn host<'t>(tables: &'t Tables, packet: &Pkt) -> Option<&'t Host> {
    tables.interface(packet.interface())?.host.as_deref()
}

/// Whether a packet is for a link-local group of IPv4 (224.0.0.0/24) that Linux may listen to.
pub(crate) fn is_for_group4(tables: &Tables, packet: &Pkt) -> bool {
    let destination = Ipv4Header::read(packet.l3()).map(|(header, _)| header.destination());
    destination.is_some_and(|it| it >> 8 == 0x00e0_0000) && host(tables, packet).is_some()
}

fn class_of(l3: &[u8]) -> HostClass {
    match l3.first().map(|first| first >> 4) {
        Some(4) => Ipv4Header::read(l3).map_or(HostClass::Other, |(header, _)| {
            let group = header.destination() >> 28 == 0xe;
            let rest = l3.get(header.header_len()..).unwrap_or(&[]);
            of_protocol(header.protocol(), group, rest)
        }),
        Some(6) => Ipv6Header::read(l3).map_or(HostClass::Other, |(header, rest)| {
            of_protocol(header.next_header(), header.destination[0] == 0xff, rest)
        }),
        _ => HostClass::Neighbor,
    }
}

fn of_protocol(protocol: IpProtocol, group: bool, rest: &[u8]) -> HostClass {
    let port = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    let has = |wanted: &[u16]| {
        [port(0), port(2)]
            .into_iter()
            .flatten()
            .any(|port| wanted.contains(&port))
    };
    match protocol {
        IpProtocol::TCP if has(&[BGP]) => HostClass::Bgp,
        IpProtocol::UDP if port(2).is_some_and(|port| BFD.contains(&port)) => HostClass::Bfd,
        IpProtocol::TCP | IpProtocol::UDP if has(&ROUTING) => HostClass::Routing,
        // Router and neighbour discovery.
        IpProtocol::ICMP6 if matches!(rest.first(), Some(133..=137)) => HostClass::Neighbor,
        IpProtocol::ICMP | IpProtocol::ICMP6 => HostClass::Icmp,
        // IGMP, OSPF, PIM, VRRP.
        IpProtocol(2 | 89 | 103 | 112) => HostClass::Routing,
        _ if group => HostClass::Routing,
        _ => HostClass::Other,
    }
}

/// Puts an Ethernet header right before the network header.
fn frame(packet: &mut Pkt, own: MacAddr) -> bool {
    let offset = packet.l3_offset();
    let kind = match packet.l3().first().map(|first| first >> 4) {
        Some(4) => EtherType::IPV4,
        Some(6) => EtherType::IPV6,
        _ => EtherType::ARP,
    };
    let Some(front) = offset.checked_sub(ETHERNET) else {
        return false;
    };
    let Some((ethernet, _)) = EthernetHeader::read(packet.data()) else {
        return false;
    };
    let is_group = packet.flags().any(Flags::MULTICAST | Flags::BROADCAST);
    let destination = if is_group { ethernet.destination } else { own };
    let header = EthernetHeader::new(destination, ethernet.source, kind);
    let Some((place, _)) = packet
        .data_mut()
        .get_mut(front..)
        .and_then(EthernetHeader::read_mut)
    else {
        return false;
    };
    *place = header;
    packet.pull_front(front) && {
        packet.set_l3_offset(ETHERNET);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_passes_a_burst_and_then_its_rate() {
        let mut bucket = Bucket::default();
        let passed = |bucket: &mut Bucket, now| (0..1000).filter(|_| bucket.take(now, 100)).count();
        assert_eq!(passed(&mut bucket, SECOND), 100, "a second's worth at once");
        assert_eq!(passed(&mut bucket, SECOND), 0);
        assert_eq!(passed(&mut bucket, SECOND + SECOND / 4), 25);
        assert_eq!(
            passed(&mut bucket, 9 * SECOND),
            100,
            "it does not save more"
        );
        assert_eq!(
            passed(&mut bucket, 8 * SECOND),
            0,
            "time that goes back is none"
        );
    }

    #[test]
    fn classes_are_reported_by_protocol_and_port() {
        let tcp = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes()].concat();
        let class = |protocol, group, rest: &[u8]| of_protocol(IpProtocol(protocol), group, rest);
        assert_eq!(class(6, false, &tcp(40_000, 179)), HostClass::Bgp);
        assert_eq!(class(6, false, &tcp(179, 40_000)), HostClass::Bgp);
        assert_eq!(class(6, false, &tcp(40_000, 22)), HostClass::Other);
        assert_eq!(class(17, false, &tcp(50_000, 3784)), HostClass::Bfd);
        assert_eq!(class(17, false, &tcp(3784, 50_000)), HostClass::Other);
        assert_eq!(class(17, true, &tcp(646, 646)), HostClass::Routing);
        assert_eq!(class(89, true, &[]), HostClass::Routing);
        assert_eq!(class(1, false, &[0, 0]), HostClass::Icmp);
        assert_eq!(class(58, false, &[136]), HostClass::Neighbor);
        assert_eq!(class(58, true, &[]), HostClass::Icmp, "cut short");
        assert_eq!(class_of(&[0, 1, 8, 0]), HostClass::Neighbor, "ARP");
        assert_eq!(class_of(&[]), HostClass::Neighbor);
    }
}
