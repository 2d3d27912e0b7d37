//! A routed interface with access lists whose plain packets leave in eth-input's pass, the work of acl-input and ip4-lookup
//! done there.
//!
//! What a flow met lately lies in a cache that is larger than the processor's own, so memory is asked for a flow's line some
//! packets before its packet is validated, held against what lies there, looked up and rewritten. Packets of flows that are
//! not known come last: the list is asked for all of them together. Only what is permitted leaves
//! here and is counted by its term; all else goes to acl-input, which counts and drops it.

use weir_acl::{Asked4, Asker4, RuleIndex};
use weir_buf::Pkt;
use weir_fib::Fib4;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::left::Left;
use crate::classify::{Flows, Unknown};
use crate::filter::{Filter, Judge};
use crate::interface_input::{ACL_INPUT, IP4_LOOKUP};
use crate::ip4_straight::{self, Straight, Table, Way};
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
    let pass = Pass { straight, filter, judge: filter.at(cx.worker), interface };
    let left = match fib.small() {
        Some(fib) => pass.run(fib, flows, packets, &mut odd, verdicts),
        None => pass.run(fib.large(), flows, packets, &mut odd, verdicts),
    };
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
    judge: Judge<'a>,
    interface: &'a Interface,
}

impl Pass<'_> {
    #[inline(always)]
    fn run(self, fib: impl Table, flows: &mut Flows, packets: &mut [Pkt], odd: &mut Census, verdicts: &mut [Verdict]) -> Left {
        let mut left = Left::default();
        let (asker, unknown) = flows.begin(self.filter);
        let mut steps = Listed { pass: self, fib, asker, unknown, left: &mut left, odd, verdicts };
        each::foreseen(packets, &mut steps);
        if steps.unknown.any() {
            self.late(fib, flows, packets, &mut left, odd, verdicts);
        }
        left
    }

    /// A packet that met a rule: the interface that it leaves by, if it is permitted.
    #[inline(always)]
    fn forward(self, fib: impl Table, rule: RuleIndex, way: Way, packet: &mut Pkt) -> Option<u32> {
        let (hits, bytes) = (self.judge.permits(rule)?, ip4_straight::bytes(packet));
        let out = self.straight.last::<true>(fib, way, packet)?;
        hits.count(bytes);
        Some(out)
    }

    /// Packets of flows that were not known.
    #[inline(never)]
    fn late(self, fib: impl Table, flows: &mut Flows, packets: &mut [Pkt], left: &mut Left, odd: &mut Census, verdicts: &mut [Verdict]) {
        for (place, key, rule) in flows.learn(self.filter) {
            let Some(packet) = packets.get_mut(place) else { continue };
            let destination = key.destination().to_bits();
            let (len, way) = (packet.len(), Way { destination, first: fib.first(destination) });
            let out = self.forward(fib, rule, way, packet);
            left.note(self.interface, place, packet, len, out, odd, verdicts);
        }
    }
}

/// What is done to packets of known flows.
struct Listed<'a, T> {
    pass: Pass<'a>,
    fib: T,
    asker: Asker4<'a>,
    unknown: Unknown<'a>,
    left: &'a mut Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<T: Table> each::Foresight for Listed<'_, T> {
    /// What is asked of the flow, nothing for what is not usual; and the first step of the lookup.
    type Asked = (Asked4, u32);

    #[inline(always)]
    fn ask(&self, packet: &Pkt) -> Self::Asked {
        match ip4_straight::key(packet) {
            Some(key) => (self.asker.ask(&key), self.fib.first(key.destination().to_bits())),
            None => <(Asked4, u32)>::default(),
        }
    }

    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt, (asked, first): Self::Asked) {
        let (len, pass) = (packet.len(), self.pass);
        let out = if asked.is_none() || !pass.straight.is_keyed(packet) {
            None
        } else {
            let Some(rule) = self.asker.known(&asked) else { return self.unknown.note(place, asked.key()) };
            pass.forward(self.fib, rule, Way { destination: asked.destination(), first }, packet)
        };
        self.left.note(pass.interface, place, packet, len, out, self.odd, self.verdicts);
    }
}
