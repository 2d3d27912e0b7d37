//! What became of a vector in a pass by which most of it leaves.

use std::hint::cold_path;

use weir_buf::Pkt;
use weir_graph::Verdict;
use weir_port::interface::Interface;

use super::{Census, Station, plain_ip4, route};
use crate::interface_input::{IP4_LOOKUP, past_lists};
use crate::ip4_lookup::Exits;

/// What became of a vector of which most leaves. All of it stays in registers, since nothing of it is lent to a
/// function; the census of odd packets, which is, lies apart.
#[derive(Default)]
pub(super) struct Forwarded {
    /// Of plain packets.
    pub(super) bytes: u64,
    pub(super) stayed: usize,
    pub(super) exits: Exits,
}

impl Forwarded {
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "apart, so that they stay in registers"
    )]
    pub(super) fn note(
        &mut self,
        interface: &Interface,
        place: usize,
        packet: &mut Pkt,
        len: usize,
        out: Option<u32>,
        odd: &mut Census,
        verdicts: &mut [Verdict],
    ) {
        if let Some(out) = out {
            self.bytes += len as u64;
            return self.exits.note(out);
        }
        cold_path();
        self.stayed += 1;
        verdicts[place] = stay(interface, odd, packet);
    }
}

/// Where a packet goes that does not leave from here.
#[inline(never)]
fn stay(interface: &Interface, odd: &mut Census, packet: &mut Pkt) -> Verdict {
    let len = packet.len();
    if plain_ip4(Station::new(interface.mac), interface, packet) {
        odd.bytes += len as u64;
        past_lists(interface, Verdict::to(IP4_LOOKUP))
    } else {
        route(interface, odd, packet)
    }
}
