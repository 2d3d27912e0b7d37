//! A routed interface with access lists whose plain packets leave in eth-input's pass, the work of acl-input and ip4-lookup
//! done there.
//!
//! What a flow met lately lies in a cache that is larger than the processor's own, so memory is asked for a flow's line some
//! packets before its packet is validated, held against what lies there, looked up and rewritten. Packets of flows that are
//! not known come last: the list is asked for all of them together. Only what is permitted leaves
//! here and is counted by its term, when the vector is over; all else goes to acl-input, which counts and drops it.
//! Only protocols that have ports and are usual are ever known, so that a packet of a known flow need not be asked what it is.

use std::hint::cold_path;

use weir_acl::{Asked4, Asker4};
use weir_buf::{Pkt, VECTOR};
use weir_fib::Fib4;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::left::Left;
use crate::classify::{Flows, Unknown};
use crate::filter::{Filter, Judgement, TermMet, Terms};
use crate::interface_input::{ACL_INPUT, IP4_LOOKUP};
use crate::ip4_straight::{self, Judge, Plain, Straight, Table};
use crate::{Tables, each};

/// The lists that packets are held against in this pass, and the table by which they are forwarded, if that can be.
#[inline(always)]
pub(super) fn listed_straight<'w>(cx: &Cx<'w, Tables>, interface: &Interface) -> Option<(&'w Filter, &'w Fib4)> {
    if cx.is_traced() || !ip4_straight::is_open_but_for_lists(interface.features) {
        return None;
    }
    let filter = cx.world.entry(interface.index)?.acl_input.as_ref()?;
    Some((filter, &**cx.world.fib4.get(interface.table as usize)?))
}

/// The pass.
#[inline(never)]
pub(super) fn listed(
    cx: &mut Cx<'_, Tables>,
    flows: &mut Option<Flows>,
    (filter, fib): (&Filter, &Fib4),
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let straight = Straight::new(interface.mac, cx.world.nexthops.view());
    verdicts.fill(Verdict::OUT);
    let flows = flows.get_or_insert_with(|| Flows::new(cx.worker));
    let mut odd = Census::default();
    let pass = Pass { straight, filter, interface };
    let left = match fib.small() {
        Some(fib) => pass.run(fib, flows, packets, &mut odd, verdicts),
        None => pass.run(fib.large(), flows, packets, &mut odd, verdicts),
    };
    flows.met().count(packets.len(), filter.hits(cx.worker));
    for node in [ACL_INPUT, IP4_LOOKUP] {
        cx.did_for(node, packets.len() - left.stayed);
    }
    let mut exits = left.exits;
    exits.odd = left.stayed > 0;
    (exits.outcome(), Census { bytes: odd.bytes + left.bytes, ..odd })
}

/// What packets are held against and forwarded by.
#[derive(Clone, Copy)]
struct Pass<'a> {
    straight: Straight<'a>,
    filter: &'a Filter,
    interface: &'a Interface,
}

impl Pass<'_> {
    #[inline(always)]
    fn run(self, fib: impl Table, flows: &mut Flows, packets: &mut [Pkt], odd: &mut Census, verdicts: &mut [Verdict]) -> Left {
        let (asker, unknown, met) = flows.begin(self.filter);
        let steps = Listed { pass: self, fib, asker, unknown, met, left: Left::default(), odd, verdicts };
        let Listed { mut left, odd, verdicts, .. } = each::foreseen(packets, steps);
        if flows.has_unknown() {
            self.late(fib, flows, packets, &mut left, odd, verdicts);
        }
        left
    }

    /// Packets of flows that were not known.
    #[inline(never)]
    fn late(self, fib: impl Table, flows: &mut Flows, packets: &mut [Pkt], left: &mut Left, odd: &mut Census, verdicts: &mut [Verdict]) {
        let (learned, met) = flows.learn(self.filter);
        for (place, key, judgement) in learned {
            let Some(packet) = packets.get_mut(place) else { continue };
            let destination = key.destination().to_bits();
            let (len, group) = (packet.len(), fib.last(destination, fib.first(destination)));
            let whole = ip4_straight::bytes(packet);
            let out = if judgement.permits() { self.straight.leave::<true>(group, whole, packet) } else { None };
            if out.is_some() {
                met[place % VECTOR] = TermMet::new(judgement, whole);
            }
            left.note(self.interface, place, packet, len, out, odd, verdicts);
        }
    }
}

/// What is done to packets of known flows.
struct Listed<'a, 'v, T> {
    pass: Pass<'a>,
    fib: T,
    asker: Asker4<'a>,
    unknown: Unknown<'a>,
    met: &'a mut Terms,
    left: Left,
    odd: &'v mut Census,
    verdicts: &'v mut [Verdict],
}

impl<T: Table> each::Foresight for Listed<'_, '_, T> {
    /// What tells the place of the flow's answer, and the first step of the lookup: of a packet that is not usual anything, since
    /// nothing is looked up for it.
    type Asked = (Asked4, T::Between);

    #[inline(always)]
    fn ask(&self, packet: &Pkt) -> Self::Asked {
        match ip4_straight::key(packet) {
            Some((key, destination)) => (self.asker.ask(key), self.fib.first(destination)),
            None => Self::Asked::default(),
        }
    }

    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt, (asked, first): Self::Asked) {
        let (len, pass) = (packet.len(), self.pass);
        let (asker, fib, met) = (self.asker, self.fib, &mut self.met[place % VECTOR]);
        let mut asking = Asking { asker, fib, asked, first, met, is_unknown: false };
        let out = pass.straight.forward_judged(packet, &mut asking);
        if out.is_none() {
            cold_path();
            *asking.met = TermMet::NONE;
            if asking.is_unknown && ip4_straight::key(packet).is_some_and(|(key, _)| self.unknown.note(place, key)) {
                return;
            }
        }
        self.left.note(pass.interface, place, packet, len, out, self.odd, self.verdicts);
    }
}

/// A known flow's answer, and where its packet goes.
struct Asking<'s, 'a, T: Table> {
    asker: Asker4<'a>,
    fib: T,
    asked: Asked4,
    first: T::Between,
    met: &'s mut TermMet,
    is_unknown: bool,
}

impl<T: Table> Judge for Asking<'_, '_, T> {
    #[inline(always)]
    fn judge(&mut self, plain: Plain) -> Option<u32> {
        let Some(answer) = self.asker.known(self.asked) else {
            self.is_unknown = true;
            return None;
        };
        let judgement = Judgement(answer);
        if !judgement.permits() {
            return None;
        }
        *self.met = TermMet::new(judgement, plain.whole);
        Some(self.fib.last(plain.destination, self.first))
    }
}
