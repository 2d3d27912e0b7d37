//! Labelled packets in eth-input's pass.

use weir_buf::Pkt;
use weir_graph::{Outcome, Verdict};
use weir_port::interface::Interface;
use weir_wire::{EtherType, EthernetHeader};

use super::{Census, ETHERNET, Station, route};
use crate::each;
use crate::interface_input::MPLS_LOOKUP;

/// Whether a vector is best taken for labelled packets.
#[inline(always)]
pub(super) fn starts_with_labels(packets: &[Pkt]) -> bool {
    packets.first().and_then(|first| EthernetHeader::read(first.data())).is_some_and(|(header, _)| header.ethertype() == EtherType::MPLS)
}

/// An interface with MPLS and a vector of labelled packets: the usual ones go straight to mpls-lookup.
#[inline(always)]
pub(super) fn labelled(interface: &Interface, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> (Outcome, Census) {
    let (mut plain_bytes, mut all_plain, mut odd) = (0, true, Census::default());
    let station = Station::new(interface.mac);
    verdicts.fill(Verdict::to(MPLS_LOOKUP));
    each::frame(packets, |place, packet| {
        if plain_mpls(station, packet) {
            plain_bytes += packet.len() as u64;
        } else {
            all_plain = false;
            verdicts[place] = route(interface, &mut odd, packet);
        }
    });
    let outcome = if all_plain { Outcome::All(Verdict::to(MPLS_LOOKUP)) } else { Outcome::Each };
    (outcome, Census { bytes: odd.bytes + plain_bytes, ..odd })
}

/// Bytes up to the end of the second entry, or of what lies under a single one.
const TWO_LABELS: usize = ETHERNET + 8;

/// Whether this is a whole frame for this station whose label stack ends at its first or second entry: what
/// mpls-input would let through.
#[inline(always)]
fn plain_mpls(station: Station, packet: &Pkt) -> bool {
    let Some(frame) = packet.data().first_chunk::<TWO_LABELS>() else { return false };
    let ours = station.is_meant_by(frame) & (frame[12..14] == [0x88, 0x47]) & !packet.is_chained();
    ours & ((frame[ETHERNET + 2] | frame[ETHERNET + 6]) & 1 != 0)
}
