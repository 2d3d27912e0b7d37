//! interface-input: frames that came in by an interface which no driver feeds.
//!
//! A sub-interface, the end of a tunnel or a pseudowire, the routed side of a bridge: another node found
//! out which one it is, has set it on the packet and has removed the header that selects it. What is left is a frame,
//! from its MAC addresses on. It is counted on that interface and goes where the interface's input says;
//! where the interface has sub-interfaces (a tunnel may), to the one that its tags say. Vectors may be mixed; they are sorted by
//! interfaces first. Frames are taken in as in eth-input, by the same [`Intake`]; so the two nodes have the same next nodes.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};

use crate::Tables;
use crate::eth_input::{Groups, Intake};

#[derive(Default)]
pub(crate) struct InterfaceInput {
    groups: Groups,
    intake: Intake,
}

/// Where frames go from here and from eth-input.
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
        let InterfaceInput { groups, intake } = self;
        intake.take_found(groups, cx, packets, verdicts, |packet| {
            packet.clear_flags(STALE);
            Ok(packet.interface())
        })
    }
}
