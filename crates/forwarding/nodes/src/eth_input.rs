//! eth-input: what came in, and who takes it.
//!
//! Counts each frame as unicast, multicast or broadcast, always, also on a cross connect: that is one
//! look at the first byte. A cross-connected interface's vector then leaves as one. On a routed
//! interface each frame goes to the node of its ethertype, if it is meant for this station. Plain IPv4
//! (20 bytes of header, all of it right) skips ip4-input: its check is made here, in the same pass over
//! the frames, since touching 256 frames once more costs more than the check itself. What is in any
//! way odd goes through ip4-input, which finds out what is wrong with it. So with IPv6.
//!
//! Plain IPv4 is even forwarded in this pass (`ip4_steps.rs`) and counted at ip4-lookup as well, unless something
//! lies in between. While packets are followed each node does its own work, so that a trace shows it.
//!
//! So are packets of known flows behind access lists, labelled packets in their usual roles, frames between known stations
//! of a bridge domain, and those of cross-connected sub-interfaces. Other frames of
//! an interface that has sub-interfaces are looked at one by one: what carries their tags is theirs from here on, loses the
//! tags and is taken in as interface-input would. One look a vector tells whether there are any.

mod acl_path;
mod bridge_path;
mod classes;
mod cross_connect_path;
mod forwarded;
mod ip_path;
mod mpls_path;
mod sub_interfaces;

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Input, Interface};
use weir_port::sub_interface::{TagChange, TagStack};
use weir_wire::vlan::{Outer, TAG_LEN};
use weir_wire::{EtherType, EthernetHeader, Ipv4Header, MacAddr};

use self::acl_path::{acl_steps, listed};
use self::bridge_path::bridged;
use self::classes::{Class, Classifier};
use self::ip_path::{fast_path4, forwarded, forwarded6};
use self::mpls_path::labelled;
pub(crate) use self::sub_interfaces::share_of;
use self::sub_interfaces::shared;
use crate::bridge::Known;
use crate::classify::Flows;
use crate::interface_input::{
    ARP_INPUT, BOND_INPUT, BRIDGE, IP4_INPUT, IP4_LOOKUP, IP6_INPUT, IP6_LOOKUP, MPLS_INPUT, NEXTS,
    past_lists,
};
use crate::ip6_steps::Ip6Steps;
use crate::tagging::change_tags;
use crate::{Tables, ip4_input, ip6_input, vector_loops};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

#[derive(Default)]
pub(crate) struct EthInput {
    classifier: Classifier,
    paths: Paths,
}

impl Node<Tables> for EthInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "eth-input",
        about: "Counts frames by kind and sends each to the node of its ethertype, or across.",
        nexts: NEXTS,
        reasons: &[
            DropReason::InterfaceDown,
            DropReason::TooShort,
            DropReason::WrongMac,
            DropReason::VlanUnknown,
            DropReason::VlanTruncated,
            DropReason::UnknownEthertype,
            DropReason::NotRouted,
            DropReason::FrameTooLong,
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
        let Some(first) = packets.first().map(Pkt::interface) else {
            return Outcome::Each;
        };
        debug_assert!(
            packets.iter().all(|packet| packet.interface() == first),
            "the graph takes interfaces in one by one"
        );
        let Some(interface) = cx.world.interface(first) else {
            return Outcome::All(Verdict::drop(DropReason::InterfaceDown));
        };
        let (outcome, census) = match (interface.input, &interface.sub_interfaces) {
            (Input::Closed, _) => (
                Outcome::All(Verdict::drop(DropReason::InterfaceDown)),
                Census::of(packets),
            ),
            (Input::Member { .. }, _) => {
                (Outcome::All(Verdict::to(BOND_INPUT)), Census::of(packets))
            }
            (_, Some(shares)) => shared(cx, interface, shares, packets, verdicts),
            (Input::Routed, None) => self.routed(cx, interface, packets, verdicts),
            (Input::Bridge { domain, member }, None)
                if let Some(known) = Known::of(cx, interface, domain, member) =>
            {
                bridged(cx, known, packets, verdicts)
            }
            (Input::Bridge { .. }, None) => (
                Outcome::All(past_lists(interface, Verdict::to(BRIDGE))),
                Census::of(packets),
            ),
            (Input::CrossConnect(out), None) => across(cx, interface, out, packets, verdicts),
            (Input::Unused, None) => (
                Outcome::All(Verdict::drop(DropReason::NotRouted)),
                Census::of(packets),
            ),
        };
        if let Some(counters) = interface.counters.of(cx.worker) {
            counters.rx.add(
                packets.len() as u64,
                census.bytes,
                census.multicast,
                census.broadcast,
            );
        }
        outcome
    }
}

impl EthInput {
    /// A routed interface: each class of packets goes its own path.
    #[inline(always)]
    fn routed(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let (mut whole, mut census) = (None, Census::default());
        let ranges = self.classifier.classify(packets);
        for (class, range) in Class::ALL.into_iter().zip(ranges) {
            let part = (packets.get_mut(range.clone()), verdicts.get_mut(range));
            let (Some(packets @ [_, ..]), Some(verdicts)) = part else {
                continue;
            };
            let (outcome, part) = self.paths.take(cx, interface, class, packets, verdicts);
            census += part;
            whole = Some(match whole {
                None => outcome,
                Some(before) if before == outcome => outcome,
                Some(_) => Outcome::Each,
            });
        }
        (whole.unwrap_or(Outcome::Each), census)
    }
}

/// The paths of the classes, with what they remember.
#[derive(Default)]
struct Paths {
    /// Of interfaces with access lists.
    flows: Option<Flows>,
}

impl Paths {
    /// Packets of one class take the fastest path that the interface's features leave open. The verdicts are written
    /// whatever the outcome is, since other classes of the vector may have another one.
    #[inline(never)]
    fn take(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        class: Class,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        match class {
            Class::Ip4 => match fast_path4(cx, interface) {
                Some(fib) => forwarded(cx, fib, interface, packets, verdicts),
                None if let Some(by) = acl_steps(cx, interface) => {
                    listed(cx, &mut self.flows, by, interface, packets, verdicts)
                }
                None => {
                    let station = Station::new(interface.mac);
                    let plain = |packet: &mut Pkt| plain_ip4(station, interface, packet);
                    routed(interface, IP4_LOOKUP, plain, packets, verdicts)
                }
            },
            Class::Ip6 => match Ip6Steps::of(cx, interface) {
                Some((fast_path4, fib)) => {
                    forwarded6(cx, fast_path4, fib, interface, packets, verdicts)
                }
                None => {
                    let station = Station::new(interface.mac);
                    let plain = |packet: &mut Pkt| ip6_input::plain(interface, station, packet);
                    routed(interface, IP6_LOOKUP, plain, packets, verdicts)
                }
            },
            Class::Mpls if interface.mpls => labelled(cx, interface, packets, verdicts),
            Class::Mpls | Class::Other => {
                routed(interface, IP4_LOOKUP, |_| false, packets, verdicts)
            }
        }
    }
}

/// What the frames of a vector are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Census {
    bytes: u64,
    multicast: u64,
    broadcast: u64,
    longest: usize,
    shortest: usize,
}

impl std::ops::AddAssign for Census {
    fn add_assign(&mut self, other: Census) {
        self.bytes += other.bytes;
        self.multicast += other.multicast;
        self.broadcast += other.broadcast;
    }
}

impl Census {
    /// Looks at the first byte of each frame; group frames get their flag.
    #[inline(always)]
    fn of(packets: &mut [Pkt]) -> Census {
        let (mut bytes, mut longest, mut shortest, mut group, mut flags) =
            (0, 0, usize::MAX, 0, Flags::NONE);
        vector_loops::frame(packets, |_, packet| {
            let len = packet.len();
            bytes += len as u64;
            longest = longest.max(len);
            shortest = shortest.min(len);
            flags |= packet.flags();
            group |= packet.data().first().copied().unwrap_or(0);
        });
        let census = Census {
            bytes,
            longest,
            shortest,
            ..Census::default()
        };
        if group & 1 != 0 || flags.any(Flags::CHAINED) {
            Census::of_odd(packets)
        } else {
            census
        }
    }

    /// Some frame goes to a group or spans several chunks.
    #[cold]
    fn of_odd(packets: &mut [Pkt]) -> Census {
        let mut census = Census {
            shortest: usize::MAX,
            ..Census::default()
        };
        packets.iter_mut().for_each(|packet| census.take(packet));
        census
    }

    #[cold]
    pub(crate) fn take(&mut self, packet: &mut Pkt) {
        let (len, data) = (packet.total_len(), packet.data());
        self.bytes += len as u64;
        self.longest = self.longest.max(len);
        self.shortest = self.shortest.min(packet.len());
        if data.len() < ETHERNET || data[0] & 1 == 0 {
            return;
        }
        if data.starts_with(&[0xff; 6]) {
            self.broadcast += 1;
            packet.set_flags(Flags::BROADCAST);
        } else {
            self.multicast += 1;
            packet.set_flags(Flags::MULTICAST);
        }
    }
}

/// A cross connect: the whole vector, unless some frame does not fit.
#[inline(always)]
fn across(
    cx: &Cx<'_, Tables>,
    interface: &Interface,
    out: u32,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let census = Census::of(packets);
    let room = cx
        .world
        .interface(out)
        .map_or(0, |out| out.mtu as usize + ETHERNET);
    if census.longest <= room && census.shortest >= ETHERNET {
        let all = match past_lists(interface, Verdict::OUT) {
            Verdict::OUT => Outcome::AllOut(out),
            elsewhere => Outcome::All(elsewhere),
        };
        return (all, census);
    }
    across_odd(interface, out, room, packets, verdicts);
    (Outcome::Each, census)
}

/// Some frame is too short or too long.
#[cold]
fn across_odd(
    interface: &Interface,
    out: u32,
    room: usize,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) {
    for (packet, verdict) in packets.iter_mut().zip(verdicts) {
        *verdict = past_lists(interface, across_one(out, room, packet));
    }
}

/// One frame of a cross connect to `out`, which takes `room` bytes.
#[inline(always)]
pub(crate) fn across_one(out: u32, room: usize, packet: &mut Pkt) -> Verdict {
    if packet.len() < ETHERNET {
        return Verdict::drop(DropReason::TooShort);
    }
    if packet.total_len() > room && packet.total_len() > room + tag_room(packet.data()) {
        return Verdict::drop(DropReason::FrameTooLong);
    }
    packet.set_aux(out);
    Verdict::OUT
}

/// Bytes that a frame may be longer for the tag that it carries.
#[cold]
pub(crate) fn tag_room(frame: &[u8]) -> usize {
    if EthernetHeader::read(frame).is_some_and(|(header, _)| header.ethertype().is_tag()) {
        TAG_LEN
    } else {
        0
    }
}

/// Bytes that a frame may be longer in a tunnel, whose links know nothing of its tags: those of a sub-interface, up to two.
#[cold]
pub(crate) fn tags_room(frame: &[u8]) -> usize {
    Outer::read(frame).map_or(0, |tags| tags.payload_at.saturating_sub(ETHERNET))
}

/// A routed interface. What `is_plain` is validated by that, with the check of ip4-input or ip6-input, while the
/// header is at hand, and goes fast_path4 to the look-up, as one vector when there is nothing else.
#[inline(always)]
fn routed(
    interface: &Interface,
    look_up: Next,
    is_plain: impl Fn(&mut Pkt) -> bool,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let (mut plain_bytes, mut all_plain, mut odd) = (0, true, Census::default());
    let onward = past_lists(interface, Verdict::to(look_up));
    verdicts.fill(onward);
    vector_loops::frame(packets, |place, packet| {
        let len = packet.len();
        if is_plain(packet) {
            plain_bytes += len as u64;
        } else {
            all_plain = false;
            verdicts[place] = route(interface, &mut odd, packet);
        }
    });
    let outcome = if all_plain {
        Outcome::All(onward)
    } else {
        Outcome::Each
    };
    (
        outcome,
        Census {
            bytes: odd.bytes + plain_bytes,
            ..odd
        },
    )
}

/// A station's address, ready to be compared with the first bytes of frames in one step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Station(u64);

impl Station {
    pub(crate) fn new(MacAddr([a, b, c, d, e, f]): MacAddr) -> Station {
        Station(u64::from_le_bytes([0, 0, a, b, c, d, e, f]))
    }

    #[inline(always)]
    pub(crate) fn is_meant_by<const LEN: usize>(self, frame: &[u8; LEN]) -> bool {
        frame
            .first_chunk()
            .is_some_and(|start| u64::from_le_bytes(*start) << 16 == self.0)
    }
}

/// Bytes that a plain IPv4 packet has at least, with its Ethernet header.
const PLAIN: usize = ETHERNET + Ipv4Header::LEN;

/// Whether this is a whole frame for this station with a plain IPv4 packet that may be forwarded.
/// If so, the packet is ready for ip4-lookup; a group frame never is.
#[inline(always)]
pub(crate) fn plain_ip4(station: Station, interface: &Interface, packet: &mut Pkt) -> bool {
    let Some(frame) = packet.data().first_chunk::<PLAIN>() else {
        return false;
    };
    let Some((ethernet, l3)) = EthernetHeader::read(frame) else {
        return false;
    };
    let Some((header, _)) = Ipv4Header::read(l3) else {
        return false;
    };
    let (bytes, total) = (packet.len() - ETHERNET, header.total_len() as usize);
    let ours = station.is_meant_by(frame)
        & (ethernet.ethertype() == EtherType::IPV4)
        & !packet.is_chained();
    if !(ours & ip4_input::is_plain(&interface.own, header))
        || (total != bytes && !(Ipv4Header::LEN..bytes).contains(&total))
    {
        return false;
    }
    packet.set_aux(header.destination());
    packet.set_l3_offset(ETHERNET);
    packet.set_flags(Flags::PLAIN_IP4);
    if total != bytes {
        let _ = packet.set_len(ETHERNET + total);
    }
    true
}

#[inline(never)]
fn route(interface: &Interface, census: &mut Census, packet: &mut Pkt) -> Verdict {
    census.take(packet);
    past_lists(interface, route_one(interface, packet))
}

/// A frame on a routed interface that is not what is looked for first; its group flags are right.
pub(crate) fn route_one(interface: &Interface, packet: &mut Pkt) -> Verdict {
    packet.clear_flags(Flags::PLAIN_IP4 | Flags::PLAIN_IP6);
    let Some((header, _)) = EthernetHeader::read(packet.data()) else {
        return Verdict::drop(DropReason::TooShort);
    };
    if header.destination != interface.mac
        && !packet.flags().any(Flags::MULTICAST | Flags::BROADCAST)
    {
        return Verdict::drop(DropReason::WrongMac);
    }
    let ethertype = header.ethertype();
    if ethertype.is_tag() {
        return without_priority(interface, packet);
    }
    let station = Station::new(interface.mac);
    packet.set_l3_offset(ETHERNET);
    match ethertype {
        EtherType::IPV4 if plain_ip4(station, interface, packet) => Verdict::to(IP4_LOOKUP),
        EtherType::IPV4 => Verdict::to(IP4_INPUT),
        EtherType::IPV6 if ip6_input::plain(interface, station, packet) => Verdict::to(IP6_LOOKUP),
        EtherType::IPV6 => Verdict::to(IP6_INPUT),
        EtherType::ARP => Verdict::to(ARP_INPUT),
        EtherType::MPLS => Verdict::to(MPLS_INPUT),
        _ => Verdict::drop(DropReason::UnknownEthertype),
    }
}

/// A tag of VLAN 0 says a priority and nothing else (IEEE 802.1Q table 9-2): without it, the frame is the
/// interface's own.
#[cold]
fn without_priority(interface: &Interface, packet: &mut Pkt) -> Verdict {
    match Outer::read(packet.data()) {
        Err(_) => Verdict::drop(DropReason::VlanTruncated),
        Ok(Outer {
            outer: Some(outer),
            inner: None,
            ..
        }) if outer.tag.vlan() == 0 => match change_tags(packet, &ONE_LESS) {
            Ok(()) => route_one(interface, packet),
            Err(reason) => Verdict::drop(reason),
        },
        Ok(_) => Verdict::drop(DropReason::VlanUnknown),
    }
}

/// A frame loses its outer tag.
const ONE_LESS: TagChange = TagChange {
    pop: 1,
    push: TagStack::EMPTY,
};
