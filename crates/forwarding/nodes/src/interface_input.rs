//! interface-input: frames that came in by an interface which no driver feeds.
//!
//! A sub-interface, the end of a tunnel or a pseudowire, the routed side of a bridge: another node found
//! out which one it is, has set it on the packet and has taken off what told. What is left is a frame,
//! from its MAC addresses on. It is counted on that interface and goes where the interface's input says;
//! where the interface has sub-interfaces (a tunnel may), to the one that its tags say. Vectors may be mixed.
//!
//! eth-input makes the same decision for the sub-interfaces of its port in its own pass, by [`Intake`], as
//! passing 256 frames on costs more than deciding; so the two nodes have the same next nodes.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Input, Interface};
use weir_port::sub_interface::TagChange;

use crate::eth_input::{Census, across_one, route_one, share_of};
use crate::features::{BRIDGE, IP4_LOOKUP, into_arc};
use crate::frame::{ETHERNET, Own, OwnMac};
use crate::ip4_steps;
use crate::tagging::{change_tags, note_priority};
use crate::{Tables, vector_loops};

pub(crate) struct InterfaceInput;

/// Where frames go from here and from eth-input.
pub(crate) const NEXTS: &[&str] = &[
    "ip4-input",
    "arp-input",
    "ip6-input",
    "mpls-input",
    "bond-input",
    "acl-input",
    "sub-interface-output",
    "pseudowire-input",
];
pub(crate) const IP4_INPUT: Next = Next(0);
pub(crate) const ARP_INPUT: Next = Next(1);
pub(crate) const IP6_INPUT: Next = Next(2);
pub(crate) const MPLS_INPUT: Next = Next(3);
pub(crate) const BOND_INPUT: Next = Next(4);
/// Not sent to: the fast paths of eth-input count here what they did for them.
pub(crate) const ACL_INPUT: Next = Next(5);
pub(crate) const SUB_INTERFACE_OUTPUT: Next = Next(6);
pub(crate) const PSEUDOWIRE_INPUT: Next = Next(7);

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

impl Node<Tables> for InterfaceInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "interface-input",
        about: "Takes in frames of tunnels and bridges: counts them on their interface and sends each on.",
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
        let (mut own, mut theirs) = (Intake::new(cx), Intake::new(cx));
        vector_loops::each_packet(packets, |place, packet| {
            packet.clear_flags(STALE);
            if packet.data().first().is_some_and(|first| first & 1 != 0) {
                Census::default().take(packet);
            }
            verdicts[place] = own.take_shared(&mut theirs, packet);
        });
        own.finish();
        theirs.finish();
        Outcome::Each
    }
}

/// Takes frames in on interfaces, one after the other, and counts them. What is looked up and added
/// up for one interface serves all frames of it that follow one another.
pub(crate) struct Intake<'a> {
    tables: &'a Tables,
    worker: usize,
    index: u32,
    interface: Option<&'a Interface>,
    mac: OwnMac,
    /// Whether frames go on as frames, and so keep their priority.
    is_bridge: bool,
    /// The longest frame that the far side of a cross connect takes.
    room: usize,
    bytes: u64,
    packets: u64,
    multicast: u64,
    broadcast: u64,
}

impl<'a> Intake<'a> {
    /// Frames of interfaces yet to be told.
    #[inline(always)]
    pub(crate) fn new(cx: &Cx<'a, Tables>) -> Intake<'a> {
        Intake {
            tables: cx.world,
            worker: cx.worker,
            index: 0,
            interface: None,
            mac: OwnMac::default(),
            is_bridge: false,
            room: 0,
            bytes: 0,
            packets: 0,
            multicast: 0,
            broadcast: 0,
        }
    }

    /// Frames of one interface.
    #[inline(always)]
    pub(crate) fn of(cx: &Cx<'a, Tables>, interface: &'a Interface) -> Intake<'a> {
        let mut intake = Intake::new(cx);
        intake.turn_to(interface.index);
        intake
    }

    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.finish();
        self.index = index;
        self.interface = self.tables.interface(index);
        if let Some(interface) = self.interface {
            self.mac = OwnMac::new(interface.mac);
            self.is_bridge = matches!(
                interface.input,
                Input::Bridge { .. } | Input::CrossConnect(_)
            );
            if let Input::CrossConnect(out) = interface.input {
                self.room = self
                    .tables
                    .interface(out)
                    .map_or(0, |out| out.mtu as usize + ETHERNET);
            }
        }
    }

    /// Adds what was counted so far to the interface's counters.
    pub(crate) fn finish(&mut self) {
        if let Some(counters) = self
            .interface
            .and_then(|interface| interface.counters.of(self.worker))
            && self.packets != 0
        {
            counters
                .rx
                .add(self.packets, self.bytes, self.multicast, self.broadcast);
        }
        (self.packets, self.bytes, self.multicast, self.broadcast) = (0, 0, 0, 0);
    }

    /// Counts a frame; its group flags are right.
    #[inline(always)]
    fn count(&mut self, index: u32, packet: &Pkt) {
        if index != self.index {
            self.turn_to(index);
        }
        self.packets += 1;
        self.bytes += packet.total_len() as u64;
        self.multicast += u64::from(packet.flags().any(Flags::MULTICAST));
        self.broadcast += u64::from(packet.flags().any(Flags::BROADCAST));
    }

    /// Counts a frame on an interface and says where it goes.
    #[inline(always)]
    pub(crate) fn take(&mut self, index: u32, packet: &mut Pkt) -> Verdict {
        self.count(index, packet);
        self.decide(packet)
    }

    /// The same on the frame's own interface, or in `theirs` on the sub-interface of it that the frame's tags say.
    #[inline(always)]
    fn take_shared(&mut self, theirs: &mut Intake<'a>, packet: &mut Pkt) -> Verdict {
        self.count(packet.interface(), packet);
        match self
            .interface
            .and_then(|interface| interface.sub_interfaces.as_deref())
        {
            Some(shares) if self.is_open() => match share_of(shares, packet) {
                Ok(Some(index)) => theirs.take_tagged(index, packet),
                Ok(None) => self.decide(packet),
                Err(reason) => Verdict::drop(reason),
            },
            _ => self.decide(packet),
        }
    }

    /// Whether the interface takes anything in, for its sub-interfaces too.
    fn is_open(&self) -> bool {
        self.interface
            .is_some_and(|interface| interface.input != Input::Closed)
    }

    /// The same for a frame with the tags of a sub-interface, whose it is from here on.
    #[inline(always)]
    pub(crate) fn take_tagged(&mut self, index: u32, packet: &mut Pkt) -> Verdict {
        self.count(index, packet);
        packet.set_interface(index);
        let change = self
            .interface
            .and_then(|interface| interface.sub_interface.as_ref())
            .map_or(TagChange::default(), |sub| sub.input);
        if self.is_bridge {
            note_priority(packet);
        }
        match change_tags(packet, &change) {
            Ok(()) => self.decide(packet),
            Err(reason) => Verdict::drop(reason),
        }
    }

    #[inline(always)]
    fn own(&self, interface: &'a Interface) -> Own<'a> {
        Own {
            mac: self.mac,
            addresses: &interface.own,
        }
    }

    /// Where a frame goes that is counted already.
    #[inline(always)]
    pub(crate) fn decide(&self, packet: &mut Pkt) -> Verdict {
        let Some(interface) = self.interface else {
            return Verdict::drop(DropReason::InterfaceDown);
        };
        let verdict = match interface.input {
            Input::Routed if ip4_steps::receive(self.own(interface), packet) => {
                Verdict::to(IP4_LOOKUP)
            }
            Input::Routed => route_one(interface, packet),
            Input::CrossConnect(out) => across_one(out, self.room, packet),
            Input::Bridge { .. } => Verdict::to(BRIDGE),
            Input::Closed => Verdict::drop(DropReason::InterfaceDown),
            // Members are ports: their frames are eth-input's.
            Input::Unused | Input::Member { .. } => Verdict::drop(DropReason::NotRouted),
        };
        into_arc(interface, verdict)
    }
}
