//! eth-input: counts what came in, and finds who takes it.
//!
//! Counts each frame as unicast, multicast or broadcast, always, also on a cross connect: that is one look at the first byte. A
//! cross-connected interface's vector then leaves as one. A routed interface's vector is sorted into classes by ethertype
//! (`classes.rs`), and each class takes the fastest path that the interface's features leave open:
//!
//! * plain IPv4 and IPv6 (`ip_path.rs`), behind access lists and reverse path checks (`checked4.rs`, `checked6.rs`), and labelled
//!   packets (`mpls_path.rs`) are
//!   forwarded here, by the same steps as in their nodes (`ip4_steps.rs`, `ip6_steps.rs`, `mpls/steps.rs`);
//! * with other features they are validated here and go to the first feature's node;
//! * all that is not plain goes to the node of its ethertype, one by one, which finds the reason.
//!
//! Frames between known hosts of a bridge domain (`bridge_path.rs`) and those of cross-connected sub-interfaces
//! (`cross_connect_path.rs`) leave from here, too. A vector of an interface that has sub-interfaces is sorted by them
//! (`sub_interfaces.rs`): the frames of each lose their tags and are taken in as those of any interface.
//! Nodes that find frames inside of packets (interface-input, pseudowire-input) take them in by the same [`Intake`].
//!
//! Packets that leave from here are counted at the nodes whose steps were made.

mod bridge_path;
mod checked4;
mod checked6;
mod classes;
mod cross_connect_path;
mod forwarded;
mod groups;
mod ip_path;
mod mpls_path;
mod sub_interfaces;

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Feature, Features, Input, Interface};
use weir_port::sub_interface::{TagChange, TagStack};
use weir_wire::vlan::{Outer, TAG_LEN};
use weir_wire::{EtherType, EthernetHeader};

use self::bridge_path::bridged;
use self::classes::{Class, Classes, Classifier, Ranges};
pub(crate) use self::groups::Groups;
use self::groups::each_group;
use self::ip_path::{forward4, forward6};
use self::mpls_path::labelled;
use crate::bridge::Known;
use crate::classify::{Flows4, Flows6};
use crate::features::{self, BRIDGE, FeatureArc, IP4_LOOKUP, IP6_LOOKUP, into_arc};
use crate::filter::Filter;
use crate::frame::{ETHERNET, Own};
use crate::ip4_urpf::ReverseCheck;
use crate::tagging::change_tags;
use crate::{Tables, ip4_steps, ip6_steps, vector_loops};

/// Where frames go from here, and from the other nodes with an [`Intake`].
pub(crate) const NEXTS: &[&str] = &[
    "ip4-input",
    "arp-input",
    "ip6-input",
    "mpls-input",
    "bond-input",
    "sub-interface-output",
    "pseudowire-input",
];
pub(crate) const IP4_INPUT: Next = Next(0);
pub(crate) const ARP_INPUT: Next = Next(1);
pub(crate) const IP6_INPUT: Next = Next(2);
pub(crate) const MPLS_INPUT: Next = Next(3);
pub(crate) const BOND_INPUT: Next = Next(4);
pub(crate) const SUB_INTERFACE_OUTPUT: Next = Next(5);
pub(crate) const PSEUDOWIRE_INPUT: Next = Next(6);

/// What an earlier node knew of the packet and what is not true of the frame in it.
pub(crate) const STALE: Flags = Flags::MULTICAST
    .with(Flags::BROADCAST)
    .with(Flags::HASHED)
    .with(Flags::HELD)
    .with(Flags::ORIGINATED)
    .with(Flags::PLAIN_IP4)
    .with(Flags::PLAIN_IP6)
    .with(Flags::TABLED)
    .with(Flags::PRIORITY);

#[derive(Default)]
pub(crate) struct EthInput {
    intake: Intake,
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
        let (outcome, census) = self.intake.take(cx, interface, packets, verdicts);
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

/// Takes in the frames of interfaces: finds where each goes, and forwards what a fast path can forward.
#[derive(Default)]
pub(crate) struct Intake {
    /// The frames of each sub-interface.
    groups: Groups,
    paths: Paths,
}

impl Intake {
    /// Takes in a vector of frames of one interface. The caller counts them on it.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        match (interface.input, &interface.sub_interfaces) {
            (Input::Closed | Input::Member { .. }, _) | (_, None) => {
                self.paths.take(cx, interface, packets, verdicts)
            }
            (_, Some(shares)) => self.shared(cx, interface, shares, packets, verdicts),
        }
    }

    /// Takes in frames that another node has found inside of packets, each on the interface that `interface_of` says, and counts
    /// them there.
    #[inline(always)]
    pub(crate) fn take_found(
        &mut self,
        groups: &mut Groups,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
        interface_of: impl FnMut(&mut Pkt) -> Result<u32, DropReason>,
    ) -> Outcome {
        let count = groups.sort(packets, interface_of);
        each_group(
            groups,
            count,
            packets,
            verdicts,
            |group, packets, verdicts| {
                let Some(index) = group.interface else {
                    return groups.refuse(verdicts);
                };
                let Some(interface) = cx.world.interface(index) else {
                    return Outcome::All(Verdict::drop(DropReason::InterfaceDown));
                };
                let (outcome, census) = self.take(cx, interface, packets, verdicts);
                if let Some(counters) = interface.counters.of(cx.worker) {
                    let (multicast, broadcast) = (census.multicast, census.broadcast);
                    let packets = packets.len() as u64;
                    counters.rx.add(packets, group.bytes, multicast, broadcast);
                }
                outcome
            },
        )
    }
}

/// The paths of frames, with what they remember.
#[derive(Default)]
struct Paths {
    classifier: Classifier,
    /// Of interfaces with access lists.
    flows4: Option<Flows4>,
    flows6: Option<Flows6>,
    /// These packets go to the nodes: they are few, or taps look at them as they came in.
    by_nodes: bool,
}

impl Paths {
    /// Frames of an interface, whose sub-interfaces have got theirs.
    #[inline(always)]
    fn take(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        match interface.input {
            Input::Closed => (
                Outcome::All(Verdict::drop(DropReason::InterfaceDown)),
                Census::of(packets),
            ),
            Input::Member { .. } => (Outcome::All(Verdict::to(BOND_INPUT)), Census::of(packets)),
            Input::Routed => self.routed(cx, interface, packets, verdicts),
            Input::Bridge { domain, member }
                if let Some(known) = Known::of(cx, interface, domain, member) =>
            {
                bridged(cx, interface, known, packets, verdicts)
            }
            Input::Bridge { .. } => (
                Outcome::All(into_arc(interface, Verdict::to(BRIDGE))),
                Census::of(packets),
            ),
            Input::CrossConnect(out) => across(cx, interface, out, packets, verdicts),
            Input::Unused => (
                Outcome::All(Verdict::drop(DropReason::NotRouted)),
                Census::of(packets),
            ),
        }
    }

    /// The same, as a function of its own.
    #[inline(never)]
    fn take_whole(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        self.take(cx, interface, packets, verdicts)
    }

    /// A routed interface: each class of packets goes its own path.
    #[inline(always)]
    fn routed(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        match self.classifier.classify(packets) {
            Classes::One(class) => self.class(cx, interface, class, packets, verdicts),
            Classes::Several(ranges) => self.classes(cx, interface, &ranges, packets, verdicts),
        }
    }

    /// The classes of a sorted vector, one after the other.
    #[inline(never)]
    fn classes(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        ranges: &Ranges,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let (mut whole, mut census) = (None, Census::default());
        for (class, range) in Class::ALL.iter().zip(ranges) {
            let part = (
                packets.get_mut(range.clone()),
                verdicts.get_mut(range.clone()),
            );
            let (Some(packets @ [_, ..]), Some(verdicts)) = part else {
                continue;
            };
            let (outcome, part) = self.class(cx, interface, *class, packets, verdicts);
            census += part;
            whole = Some(match whole {
                None => outcome,
                Some(before) if before == outcome => outcome,
                Some(_) => Outcome::Each,
            });
        }
        (whole.unwrap_or(Outcome::Each), census)
    }

    /// Packets of one class take the fastest path that the interface's features leave open. The verdicts are written
    /// whatever the outcome is, since other classes of the vector may have another one.
    #[inline(never)]
    fn class(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        class: Class,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> (Outcome, Census) {
        let own = Own::of(interface);
        let (table, tables) = (interface.table as usize, cx.world);
        let leaves = !(cx.is_one_step() || self.by_nodes);
        let is_open = |arc| leaves && features::is_open(arc, interface, Checks::FEATURES);
        let checks = || Checks::of(tables, interface);
        match class {
            Class::Ip4 => match tables.fib4.get(table) {
                Some(fib) if is_open(FeatureArc::Ip4) => match checks() {
                    None => forward4(cx, fib, interface, packets, verdicts),
                    Some(checks) => {
                        let flows = &mut self.flows4;
                        checked4::forward(cx, flows, checks, fib, interface, packets, verdicts)
                    }
                },
                _ => {
                    let receive = |packet: &mut Pkt| ip4_steps::receive(own, packet);
                    routed(interface, FeatureArc::Ip4, receive, packets, verdicts)
                }
            },
            Class::Ip6 if interface.addresses6.is_empty() => {
                one_by_one(interface, packets, verdicts)
            }
            Class::Ip6 => match tables.fib6.get(table) {
                Some(fib) if is_open(FeatureArc::Ip6) => match checks() {
                    None => forward6(cx, fib, interface, packets, verdicts),
                    Some(checks) => {
                        let flows = &mut self.flows6;
                        checked6::forward(cx, flows, checks, fib, interface, packets, verdicts)
                    }
                },
                _ => {
                    let receive = |packet: &mut Pkt| ip6_steps::receive(own, packet);
                    routed(interface, FeatureArc::Ip6, receive, packets, verdicts)
                }
            },
            Class::Mpls
                if interface.mpls
                    && !self.by_nodes
                    && features::is_open(FeatureArc::Mpls, interface, Features::EMPTY) =>
            {
                labelled(cx, interface, packets, verdicts)
            }
            Class::Mpls | Class::Other => one_by_one(interface, packets, verdicts),
        }
    }
}

/// What the fast paths of routed IPv4 and IPv6 check for the features of an interface.
#[derive(Clone, Copy)]
struct Checks<'a> {
    /// Access lists.
    filter: Option<&'a Filter>,
    /// The way back to sources.
    back: Option<ReverseCheck<'a>>,
}

impl<'a> Checks<'a> {
    /// The features that they can check for.
    const FEATURES: Features = Features::EMPTY.with(Feature::AclIn).with(Feature::Urpf);

    /// `None` when there is nothing to check.
    #[inline(always)]
    fn of(tables: &'a Tables, interface: &Interface) -> Option<Checks<'a>> {
        if !interface.features.any(Checks::FEATURES) {
            return None;
        }
        let has = |feature| interface.features.has(feature);
        let filter = tables.input_filter(interface.index);
        Some(Checks {
            filter: filter.filter(|_| has(Feature::AclIn)),
            back: ReverseCheck::of(tables, interface).filter(|_| has(Feature::Urpf)),
        })
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
        vector_loops::each_packet(packets, |_, packet| {
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
        let all = match into_arc(interface, Verdict::OUT) {
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
        *verdict = into_arc(interface, across_one(out, room, packet));
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

/// Packets of a routed interface for the nodes. What `receive` takes is validated by that, with the check of ip4-input or
/// ip6-input, while the header is at hand, and skips that node, as one vector when there is nothing else.
#[inline(always)]
fn routed(
    interface: &Interface,
    arc: FeatureArc,
    receive: impl Fn(&mut Pkt) -> bool,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let (mut bytes, mut all, mut others) = (0, true, Census::default());
    let onward = features::next(arc, interface, None);
    verdicts.fill(onward);
    vector_loops::each_packet(packets, |place, packet| {
        let len = packet.len();
        if receive(packet) {
            bytes += len as u64;
        } else {
            all = false;
            verdicts[place] = route(interface, &mut others, packet);
        }
    });
    others.bytes += bytes;
    let outcome = if all {
        Outcome::All(onward)
    } else {
        Outcome::Each
    };
    (outcome, others)
}

/// Packets that no fast path takes.
#[inline(never)]
fn one_by_one(
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut census = Census::default();
    vector_loops::each_packet(packets, |place, packet| {
        verdicts[place] = route(interface, &mut census, packet);
    });
    (Outcome::Each, census)
}

#[inline(never)]
fn route(interface: &Interface, census: &mut Census, packet: &mut Pkt) -> Verdict {
    census.take(packet);
    into_arc(interface, route_one(interface, packet))
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
    let own = Own::of(interface);
    packet.set_l3_offset(ETHERNET);
    match ethertype {
        EtherType::IPV4 if ip4_steps::receive(own, packet) => Verdict::to(IP4_LOOKUP),
        EtherType::IPV4 => Verdict::to(IP4_INPUT),
        EtherType::IPV6 if !interface.addresses6.is_empty() && ip6_steps::receive(own, packet) => {
            Verdict::to(IP6_LOOKUP)
        }
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
