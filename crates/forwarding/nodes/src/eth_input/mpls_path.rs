//! Labelled packets in eth-input's pass: what is usual leaves from here (`mpls/steps.rs`), all else goes to mpls-lookup or, when
//! it is odd, to mpls-input. While packets are followed everything does.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::forwarded::Forwarded;
use super::{Census, ETHERNET, Station, route};
use crate::interface_input::{IP4_LOOKUP, MPLS_LOOKUP, PSEUDOWIRE_INPUT};
use crate::mpls::MplsSteps;
use crate::{Tables, vector_loops};

/// An interface with MPLS and a vector of labelled packets.
#[inline(never)]
pub(super) fn labelled(
    cx: &mut Cx<'_, Tables>,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut odd = Census::default();
    let station = Station::new(interface.mac);
    if cx.is_traced() {
        packets
            .iter_mut()
            .zip(verdicts)
            .for_each(|(packet, verdict)| *verdict = stay(station, interface, &mut odd, packet));
        return (Outcome::Each, odd);
    }
    verdicts.fill(Verdict::OUT);
    let steps = MplsSteps::of(cx, interface);
    let pass = Labelled {
        station,
        steps,
        interface,
        left: Forwarded::default(),
        odd: &mut odd,
        verdicts,
    };
    let Labelled { steps, left, .. } = vector_loops::work_apart(packets, pass);
    cx.did_for(MPLS_LOOKUP, packets.len() - left.stayed);
    cx.did_for(IP4_LOOKUP, steps.popped);
    cx.did_for(PSEUDOWIRE_INPUT, steps.finish());
    let mut exits = left.exits;
    exits.odd = left.stayed > 0;
    (
        exits.outcome(),
        Census {
            bytes: odd.bytes + left.bytes,
            ..odd
        },
    )
}

/// The pass.
struct Labelled<'a> {
    station: Station,
    steps: MplsSteps<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl vector_loops::Work for Labelled<'_> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let len = packet.len();
        if plain_mpls(self.station, packet)
            && let Some(out) = self.steps.forward(packet)
        {
            self.left.bytes += len as u64;
            return self.left.exits.note(out);
        }
        cold_path();
        self.left.stayed += 1;
        self.verdicts[place] = stay(self.station, self.interface, self.odd, packet);
    }
}

/// Where a packet goes that does not leave from here.
#[inline(never)]
fn stay(station: Station, interface: &Interface, odd: &mut Census, packet: &mut Pkt) -> Verdict {
    if !plain_mpls(station, packet) {
        return route(interface, odd, packet);
    }
    odd.bytes += packet.len() as u64;
    Verdict::to(MPLS_LOOKUP)
}

/// Bytes up to the end of the second entry, or of what lies under a single one.
const TWO_LABELS: usize = ETHERNET + 8;

/// Whether this is a whole frame for this station whose label stack ends at its first or second entry: what
/// mpls-input would let through.
#[inline(always)]
fn plain_mpls(station: Station, packet: &Pkt) -> bool {
    let Some(frame) = packet.data().first_chunk::<TWO_LABELS>() else {
        return false;
    };
    let ours = station.is_meant_by(frame) & (frame[12..14] == [0x88, 0x47]) & !packet.is_chained();
    ours & ((frame[ETHERNET + 2] | frame[ETHERNET + 6]) & 1 != 0)
}
