//! lacp-input: LACP and its marker protocol, as they come in by members of bonds.
//!
//! LACPDUs of the partner are handed to the control side, which runs the state machines. A
//! marker is answered here (IEEE 802.1AX-2020 section 6.5.4.2: behind all frames that came before it, which
//! holds as a worker takes a link's frames in order). What can only be wrong is dropped: a frame of our own that came
//! back, one that is not in form, one for a bond that does not speak LACP. No protocol here sends more
//! than ten frames a second (IEEE 802.3 section 57A.3), so more than that from one member are dropped, too: a flood
//! reaches the control side as ten events a second and worker at most.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Interface;
use weir_wire::lacp::{self, Marker, Pdu, SUBTYPE_LACP, SUBTYPE_MARKER};
use weir_wire::{EtherType, EthernetHeader};
use zerocopy::IntoBytes;

use crate::frame::ETHERNET;
use crate::{Event, Tables};

/// Frames that a member may send in [`PERIOD`].
const MOST: u32 = 10;
/// A second, in nanoseconds.
const PERIOD: u64 = 1_000_000_000;
/// Members that are counted apart; more share.
const PLACES: usize = 1024;

pub(crate) struct LacpInput {
    /// How many frames came since when, by interface.
    heard: Box<[(u64, u32); PLACES]>,
}

impl Default for LacpInput {
    fn default() -> LacpInput {
        LacpInput {
            heard: Box::new([(0, 0); PLACES]),
        }
    }
}

impl Node<Tables> for LacpInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "lacp-input",
        about: "Tells the control side what LACP says, and answers markers.",
        nexts: &[],
        reasons: &[
            DropReason::LacpOff,
            DropReason::LacpMalformed,
            DropReason::LacpOwnSystem,
            DropReason::LacpFlood,
            DropReason::SlowProtocol,
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

impl LacpInput {
    #[inline(never)]
    fn take(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt) -> Result<Verdict, DropReason> {
        let tables = cx.world;
        let member = tables
            .interface(packet.interface())
            .ok_or(DropReason::LacpOff)?;
        let bond = member
            .parent
            .and_then(|bond| tables.interface(bond))
            .ok_or(DropReason::LacpOff)?;
        let subtype = packet
            .data()
            .get(ETHERNET)
            .copied()
            .ok_or(DropReason::LacpMalformed)?;
        if !matches!(subtype, SUBTYPE_LACP | SUBTYPE_MARKER) {
            return Err(DropReason::SlowProtocol);
        }
        if !bond.bond.as_ref().is_some_and(|bond| bond.lacp) {
            return Err(DropReason::LacpOff);
        }
        if !self.may_speak(member.index, cx.now) {
            return Err(DropReason::LacpFlood);
        }
        if subtype == SUBTYPE_MARKER {
            return answer(member, packet);
        }
        let pdu = packet
            .data()
            .get(ETHERNET..)
            .and_then(Pdu::read)
            .ok_or(DropReason::LacpMalformed)?;
        if !pdu.actor.system.is_unicast() {
            return Err(DropReason::LacpMalformed);
        }
        if pdu.actor.system == bond.mac {
            return Err(DropReason::LacpOwnSystem);
        }
        cx.event(Event::Lacp {
            interface: member.index,
            actor: pdu.actor,
            partner: pdu.partner,
        });
        Ok(Verdict::CONSUME)
    }

    fn may_speak(&mut self, interface: u32, now: u64) -> bool {
        let Some((until, count)) = self.heard.get_mut(interface as usize % PLACES) else {
            return false;
        };
        if now >= *until {
            (*until, *count) = (now.saturating_add(PERIOD), 0);
        }
        *count = count.saturating_add(1);
        *count <= MOST
    }
}

/// Turns a marker into its answer, in place.
fn answer(member: &Interface, packet: &mut Pkt) -> Result<Verdict, DropReason> {
    let marker = packet
        .data()
        .get(ETHERNET..)
        .and_then(Marker::read)
        .map(|(marker, _)| *marker);
    let marker = marker
        .filter(Marker::is_valid)
        .ok_or(DropReason::LacpMalformed)?;
    if marker.is_response() {
        // This router asks nobody.
        return Err(DropReason::SlowProtocol);
    }
    let header = EthernetHeader::new(lacp::MULTICAST, member.mac, EtherType::SLOW);
    for (place, bytes) in [
        (0, header.as_bytes()),
        (ETHERNET, marker.response().as_bytes()),
    ] {
        let to = packet.data_mut().get_mut(place..place + bytes.len());
        to.ok_or(DropReason::LacpMalformed)?.copy_from_slice(bytes);
    }
    packet.clear_flags(Flags::BROADCAST);
    packet.set_flags(Flags::MULTICAST);
    packet.set_aux(member.index);
    Ok(Verdict::OUT)
}
