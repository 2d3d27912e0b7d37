//! pseudowire-output: what leaves by a pseudowire gets its labels and goes to the neighbour where its path begins.
//!
//! Stands before the drivers: the graph brings here what leaves by an interface whose output is
//! [`weir_port::interface::Output::Pseudowire`], from any node. The frame is compared with the pseudowire's MTU and
//! counted there; it gets a tag in tagged mode, a control word where both ends use one, and the labels, and leaves by
//! the interface of the neighbour, which may itself have a node before its driver. Nothing is cut: a frame that is too
//! long with all that is dropped (RFC 4448 section 6).
//!
//! A neighbour that is not known yet is asked for, and the frame waits here as it came.

use std::hint::cold_path;
use std::net::IpAddr;

use weir_buf::{Flags, Pkt};
use weir_fib::{Adjacency, AdjacencyKind, Labelled, NeighborState, NexthopView};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::bond::Layers;
use weir_port::interface::Interface;
use weir_port::pseudowire::Pseudowire;
use weir_wire::EtherType;

use crate::bond_hash::bond_hash;
use crate::eth_input::tag_room;
use crate::frame::ETHERNET;
use crate::frame::Egress;
use crate::mpls::{Fields, entropy, write_entries};
use crate::pseudowire_input::CONTROL_WORD;
use crate::recent::{self, Recent};
use crate::tagging::change_tags;
use crate::{Event, Tables, hold_key, ip4_glean, ip6_glean, vector_loops};

pub(crate) struct PseudowireOutput {
    asked: Recent,
}

impl Default for PseudowireOutput {
    fn default() -> PseudowireOutput {
        PseudowireOutput {
            asked: Recent::new(1_000_000_000),
        }
    }
}

const PSEUDOWIRE_OUTPUT: Next = Next(0);

impl Node<Tables> for PseudowireOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: "pseudowire-output",
        about: "Puts tag, control word and labels on what leaves by a pseudowire, and sends it to the path's first neighbour.",
        nexts: &["pseudowire-output"],
        reasons: &[
            DropReason::TxDown,
            DropReason::TooShort,
            DropReason::FrameTooLong,
            DropReason::NoHeadroom,
            DropReason::Blackhole,
            DropReason::NoRoute,
            DropReason::HostUnreachable,
            DropReason::HoldFull,
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
        let (tables, worker) = (cx.world, cx.worker);
        let mut exit = Exit {
            tables,
            nexthops: tables.nexthops.view(),
            worker,
            index: 0,
            end: None,
            usual: None,
            sent: Sent::default(),
        };
        let mut exits = Egress::default();
        verdicts.fill(Verdict::OUT);
        vector_loops::each_packet(packets, |place, packet| {
            if let Some(interface) = exit.leave_usual(packet) {
                return exits.note(interface);
            }
            cold_path();
            match exit.leave(packet) {
                Ok(interface) => exits.note(interface),
                Err(stop) => {
                    exits.incomplete = true;
                    verdicts[place] = match stop {
                        Stop::Drop(reason) => Verdict::drop(reason),
                        Stop::Unknown(neighbor) => self.glean(cx, neighbor),
                    };
                }
            }
        });
        exit.finish();
        exits.outcome()
    }
}

impl PseudowireOutput {
    #[inline(never)]
    fn glean(&mut self, cx: &mut Cx<'_, Tables>, neighbor: &Adjacency) -> Verdict {
        let (interface, address) = (neighbor.interface, neighbor.address);
        let key = hold_key(interface, address);
        if self.asked.is_new(recent::key(key), cx.now) {
            cx.event(Event::Wanted { interface, address });
            match address {
                IpAddr::V4(address) => ip4_glean::ask(cx, interface, address.into()),
                IpAddr::V6(address) => ip6_glean::ask(cx, interface, address.into()),
            }
        }
        cx.hold(key, PSEUDOWIRE_OUTPUT)
    }
}

/// Why a frame does not leave now.
enum Stop<'a> {
    Drop(DropReason),
    /// It is not known where this neighbour is.
    Unknown(&'a Adjacency),
}

impl From<DropReason> for Stop<'_> {
    fn from(reason: DropReason) -> Self {
        Stop::Drop(reason)
    }
}

/// What left by one pseudowire and is not yet in its counters.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    multicast: u64,
    broadcast: u64,
}

/// Where the frames at hand go.
#[derive(Clone, Copy)]
struct End<'a> {
    interface: &'a Interface,
    pseudowire: &'a Pseudowire,
    /// The labels of all frames, when there is one path.
    only: Option<&'a Labelled>,
    /// What stands before most of them.
    ready: Option<Ready>,
}

/// Bytes of most headers: an Ethernet header, three labels and a control word fit.
const READY: usize = 32;

/// A header made beforehand, but for its addresses, for frames of class 0: written in one step, since its end is where
/// the frame begins.
#[derive(Clone, Copy)]
struct Ready {
    bytes: [u8; READY],
    len: usize,
}

impl Ready {
    /// `None` when it is longer than that, or differs from frame to frame.
    fn new(pseudowire: &Pseudowire, labelled: &Labelled) -> Option<Ready> {
        let labels = labelled.bytes();
        let len = header_bytes(pseudowire, labelled);
        let mut bytes = [0; READY];
        let header = bytes
            .get_mut(READY.checked_sub(len)?..)
            .filter(|_| labelled.entropy().is_none())?;
        header
            .get_mut(ETHERNET - 2..ETHERNET)?
            .copy_from_slice(&EtherType::MPLS.0.to_be_bytes());
        let fields = Fields {
            ttl: labelled.ttl,
            class: 0,
            bottom: true,
            swapped: false,
            entropy: 0,
        };
        write_entries(
            header.get_mut(ETHERNET..ETHERNET + labels)?,
            labelled,
            fields,
        );
        Some(Ready { bytes, len })
    }

    /// Puts the header in front of a frame; `false`, and nothing is done, when there is no room for it.
    #[inline(always)]
    fn put(&self, packet: &mut Pkt, (start, end): ([u8; 8], [u8; 4])) -> bool {
        let Some(place) = packet
            .push_front(READY)
            .and_then(|frame| frame.first_chunk_mut::<READY>())
        else {
            return false;
        };
        *place = self.bytes;
        let _ = packet.pull_front(READY - self.len);
        if let Some(addresses) = packet.data_mut().first_chunk_mut::<12>() {
            addresses[..8].copy_from_slice(&start);
            addresses[8..].copy_from_slice(&end);
        }
        true
    }
}

/// Bytes of everything that stands before a frame.
#[inline(always)]
fn header_bytes(pseudowire: &Pseudowire, labelled: &Labelled) -> usize {
    ETHERNET
        + labelled.bytes()
        + if pseudowire.control_word {
            CONTROL_WORD
        } else {
            0
        }
}

/// The pseudowire of the frames at hand.
struct Exit<'a> {
    tables: &'a Tables,
    nexthops: NexthopView<'a>,
    worker: usize,
    index: u32,
    end: Option<End<'a>>,
    usual: Option<Usual<'a>>,
    sent: Sent,
}

/// Where most frames of a pseudowire in raw mode go, which have no tag.
#[derive(Clone, Copy)]
struct Usual<'a> {
    below: &'a Adjacency,
    ready: Ready,
    /// The longest frame that the pseudowire takes, and the neighbour with all that stands before it.
    longest: usize,
}

/// What is not usual.
const ODD: Flags = Flags::CHAINED
    .with(Flags::MULTICAST)
    .with(Flags::BROADCAST)
    .with(Flags::PRIORITY);

/// What is not to be believed of a frame once it lies in a packet for a neighbour.
const INNER: Flags = Flags::MULTICAST
    .with(Flags::BROADCAST)
    .with(Flags::PLAIN_IP4)
    .with(Flags::PLAIN_IP6)
    .with(Flags::HASHED)
    .with(Flags::PRIORITY);

impl<'a> Exit<'a> {
    #[inline(never)]
    fn turn_to(&mut self, index: u32) {
        self.finish();
        self.index = index;
        let interface = self
            .tables
            .interface(index)
            .filter(|interface| interface.can_send);
        self.usual = None;
        self.end = interface.and_then(|interface| {
            let pseudowire = interface.pseudowire.as_ref()?;
            let only = self.nexthops.only_labelled(pseudowire.group);
            let ready = only.and_then(|labelled| Ready::new(pseudowire, labelled));
            self.usual =
                only.zip(ready)
                    .filter(|_| !pseudowire.is_tagged())
                    .map(|(labelled, ready)| {
                        let below: &Adjacency = &labelled.below;
                        let longest = (interface.mtu as usize + ETHERNET)
                            .min(below.longest_frame().saturating_sub(ready.len));
                        Usual {
                            below,
                            ready,
                            longest,
                        }
                    });
            Some(End {
                interface,
                pseudowire,
                only,
                ready,
            })
        });
    }

    fn finish(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if let Some(counters) = self
            .end
            .and_then(|end| end.interface.counters.of(self.worker))
        {
            counters
                .tx
                .add(sent.packets, sent.bytes, sent.multicast, sent.broadcast);
        }
    }

    /// One frame that is usual and of the pseudowire at hand: the interface by which it leaves. `None`, and nothing is changed, for
    /// all else.
    #[inline(always)]
    fn leave_usual(&mut self, packet: &mut Pkt) -> Option<u32> {
        let Usual {
            below,
            ready,
            longest,
        } = self.usual.as_ref().filter(|_| packet.aux() == self.index)?;
        let (len, odd) = (packet.len(), packet.flags().any(ODD));
        let ethertype = EtherType(u16::from_be_bytes(
            *packet.data().first_chunk::<ETHERNET>()?.last_chunk()?,
        ));
        if odd | ethertype.is_tag() | (len > *longest) || !ready.put(packet, below.in_use()?) {
            return None;
        }
        self.sent.packets += 1;
        self.sent.bytes += len as u64;
        packet.clear_flags(INNER);
        packet.set_l3_offset(ETHERNET);
        packet.set_aux(below.interface);
        Some(below.interface)
    }

    /// One frame: the interface by which it leaves.
    #[inline(never)]
    fn leave(&mut self, packet: &mut Pkt) -> Result<u32, Stop<'a>> {
        if packet.aux() != self.index {
            self.turn_to(packet.aux());
        }
        let Some(end) = &self.end else {
            return Err(DropReason::TxDown.into());
        };
        if packet.len() < ETHERNET {
            return Err(DropReason::TooShort.into());
        }
        let (len, room) = (packet.total_len(), end.interface.mtu as usize + ETHERNET);
        if len > room && len > room + tag_room(packet.data()) {
            return Err(DropReason::FrameTooLong.into());
        }
        let labelled = match end.only {
            Some(labelled) => labelled,
            None => choose(self.nexthops, end.pseudowire.group, packet)?,
        };
        let below: &'a Adjacency = &labelled.below;
        let Some(addresses) = below.in_use().or_else(|| first_use(below)) else {
            return Err(unknown(below));
        };
        if end.pseudowire.is_tagged() {
            change_tags(packet, &end.pseudowire.output)?;
        }
        let tagged_len = packet.total_len();
        let (groups, everybody) = (
            packet.flags().any(Flags::MULTICAST),
            packet.flags().any(Flags::BROADCAST),
        );
        if tagged_len + header_bytes(end.pseudowire, labelled) > below.longest_frame() {
            return Err(DropReason::FrameTooLong.into());
        }
        let class = priority(packet);
        if !(class == 0
            && end
                .ready
                .as_ref()
                .is_some_and(|ready| ready.put(packet, addresses)))
        {
            wrap(packet, end.pseudowire, labelled, class, addresses)?;
        }
        self.sent.packets += 1;
        self.sent.bytes += len as u64;
        self.sent.multicast += u64::from(groups);
        self.sent.broadcast += u64::from(everybody);
        packet.clear_flags(INNER);
        packet.set_l3_offset(ETHERNET);
        packet.set_aux(below.interface);
        Ok(below.interface)
    }
}

/// The neighbour's addresses for its first packet in a while.
#[cold]
fn first_use(below: &Adjacency) -> Option<([u8; 8], [u8; 4])> {
    below.rewrite()?;
    below.note_used();
    below.in_use()
}

#[cold]
fn unknown(below: &Adjacency) -> Stop<'_> {
    if below.state() == NeighborState::Failed {
        DropReason::HostUnreachable.into()
    } else {
        Stop::Unknown(below)
    }
}

/// The path of a frame among several.
#[inline(never)]
fn choose<'a>(
    nexthops: NexthopView<'a>,
    group: u32,
    packet: &Pkt,
) -> Result<&'a Labelled, DropReason> {
    let adjacency = nexthops
        .adjacency(nexthops.choose(group, || bond_hash(Layers::L34, packet.data())))
        .ok_or(DropReason::NoRoute)?;
    match adjacency.kind {
        AdjacencyKind::Blackhole => Err(DropReason::Blackhole),
        _ => adjacency.labelled().ok_or(DropReason::NoRoute),
    }
}

/// Puts everything in front of a frame.
#[inline(never)]
fn wrap(
    packet: &mut Pkt,
    pseudowire: &Pseudowire,
    labelled: &Labelled,
    class: u8,
    (start, end): ([u8; 8], [u8; 4]),
) -> Result<(), DropReason> {
    let (labels, header) = (labelled.bytes(), header_bytes(pseudowire, labelled));
    let hash = if labelled.entropy().is_some() {
        entropy(bond_hash(Layers::L34, packet.data()))
    } else {
        0
    };
    let fields = Fields {
        ttl: labelled.ttl,
        class,
        bottom: true,
        swapped: false,
        entropy: hash,
    };
    let Some((ethernet, rest)) = packet
        .push_front(header)
        .and_then(|frame| frame.split_first_chunk_mut::<ETHERNET>())
    else {
        return Err(DropReason::NoHeadroom);
    };
    ethernet[..8].copy_from_slice(&start);
    ethernet[8..12].copy_from_slice(&end);
    ethernet[12..].copy_from_slice(&EtherType::MPLS.0.to_be_bytes());
    if let Some((stack, rest)) = rest.split_at_mut_checked(labels) {
        write_entries(stack, labelled, fields);
        // RFC 4448 section 4.6: a nibble of 0 says data, the rest is reserved; a sequence number of 0 says that
        // there is none.
        if let Some(word) = rest
            .first_chunk_mut::<CONTROL_WORD>()
            .filter(|_| pseudowire.control_word)
        {
            *word = [0; CONTROL_WORD];
        }
    }
    Ok(())
}

/// The traffic class of a frame: the priority of its tag, or of the tag that a sub-interface took off (RFC 4448 section
/// 4.7 leaves that to the sender).
#[inline(always)]
fn priority(packet: &Pkt) -> u8 {
    match packet.data().get(12..15) {
        Some(&[0x81, 0x00, control] | &[0x88, 0xa8, control]) => control >> 5,
        _ => packet.priority(),
    }
}
