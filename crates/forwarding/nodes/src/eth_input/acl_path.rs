//! A routed interface with access lists whose plain packets leave in eth-input's pass, the work of acl-input and ip4-lookup
//! done there.
//!
//! What a flow met lately lies in a cache that is larger than the processor's own. So a packet takes two steps, with others' in
//! between: it is validated and memory is asked for its flow's line; then it is held against what lies there, looked up and
//! rewritten. Packets of flows that are not known come last: the list is asked for all of them together. Only what is permitted leaves
//! here and is counted by its term; all else goes to acl-input, which counts and drops it.
//! Only protocols that have ports and are usual are ever known, and only flows from one host to another, so that a packet of a known
//! flow need not be asked what it is.

use std::hint::cold_path;

use weir_acl::{Asked4, Asker4};
use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::Fib4;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::forwarded::Forwarded;
use crate::classify::{Flows, Unknown};
use crate::filter::{Filter, Hits};
use crate::interface_input::{ACL_INPUT, IP4_LOOKUP};
use crate::ip4_steps::{self, Ip4Steps, Table};
use crate::{Tables, vector_loops};

/// The lists that packets are held against in this pass, and the table by which they are forwarded, if that can be.
#[inline(always)]
pub(super) fn acl_steps<'w>(
    cx: &Cx<'w, Tables>,
    interface: &Interface,
) -> Option<(&'w Filter, &'w Fib4)> {
    if cx.is_traced() || !ip4_steps::is_open_but_for_lists(interface.features) {
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
    let steps = Ip4Steps::new(interface, cx.world.nexthops.view());
    verdicts.fill(Verdict::OUT);
    let flows = flows.get_or_insert_with(|| Flows::new(cx.worker));
    let mut odd = Census::default();
    let pass = Pass {
        steps,
        filter,
        hits: filter.hits(cx.worker),
        interface,
    };
    let left = match fib.small() {
        Some(fib) => pass.run(fib, flows, packets, &mut odd, verdicts),
        None => pass.run(fib.large(), flows, packets, &mut odd, verdicts),
    };
    for node in [ACL_INPUT, IP4_LOOKUP] {
        cx.did_for(node, packets.len() - left.stayed);
    }
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

/// What packets are held against and forwarded by.
#[derive(Clone, Copy)]
struct Pass<'a> {
    steps: Ip4Steps<'a>,
    filter: &'a Filter,
    hits: &'a [Hits],
    interface: &'a Interface,
}

impl Pass<'_> {
    #[inline(always)]
    fn run(
        self,
        fib: impl Table,
        flows: &mut Flows,
        packets: &mut [Pkt],
        odd: &mut Census,
        verdicts: &mut [Verdict],
    ) -> Forwarded {
        let (asker, unknown) = flows.begin(self.filter);
        // Higher numbers are no answers.
        let hits = self.hits.get(..Asker4::OTHER as usize).unwrap_or(self.hits);
        let steps = Listed {
            pass: self,
            fib,
            asker,
            hits,
            unknown,
            left: Forwarded::default(),
            padding: 0,
            odd,
            verdicts,
        };
        let Listed {
            mut left,
            padding,
            odd,
            verdicts,
            ..
        } = vector_loops::paired(packets, steps);
        left.bytes += padding;
        if flows.has_unknown() {
            self.late(fib, flows, packets, &mut left, odd, verdicts);
        }
        left
    }

    /// Packets of flows that were not known.
    #[inline(never)]
    fn late(
        self,
        fib: impl Table,
        flows: &mut Flows,
        packets: &mut [Pkt],
        left: &mut Forwarded,
        odd: &mut Census,
        verdicts: &mut [Verdict],
    ) {
        for (place, key, judgement) in flows.learn(self.filter) {
            let Some(packet) = packets.get_mut(place) else {
                continue;
            };
            let destination = key.destination().to_bits();
            let (len, group) = (packet.len(), fib.last(destination, fib.first(destination)));
            let out = if judgement.permits() {
                self.steps.leave::<true>(group, len, packet)
            } else {
                None
            };
            if let Some(hits) = self.hits.get(judgement.term()).filter(|_| out.is_some()) {
                hits.count(len);
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
    /// What the terms that can be answers of known flows met.
    hits: &'a [Hits],
    unknown: Unknown<'a>,
    left: Forwarded,
    /// Bytes that Ethernet padded.
    padding: u64,
    odd: &'v mut Census,
    verdicts: &'v mut [Verdict],
}

impl<T: Table> vector_loops::Paired for Listed<'_, '_, T> {
    /// What tells the place of the flow's answer, and the first step of the lookup.
    type Between = (Asked4, T::Between);

    #[inline(always)]
    fn first<C: Code>(&mut self, code: C, packet: &mut Pkt) -> Self::Between {
        match self.pass.steps.key(packet, &mut self.padding) {
            Some((key, destination)) => (self.asker.ask(code, key), self.fib.first(destination)),
            None => {
                cold_path();
                Self::Between::default()
            }
        }
    }

    #[inline(always)]
    fn second<C: Code>(
        &mut self,
        code: C,
        place: usize,
        packet: &mut Pkt,
        (asked, first): Self::Between,
    ) {
        let answer = self.asker.known(code, asked);
        let len = packet.len();
        if let Some(hits) = answer.and_then(|term| self.hits.get(term as usize))
            && let group = self.fib.last(ip4_steps::destination(packet), first)
            && let Some(out) = self.pass.steps.leave::<true>(group, len, packet)
        {
            hits.count(len);
            self.left.bytes += len as u64;
            return self.left.exits.note(out);
        }
        cold_path();
        if answer.is_none()
            && self
                .pass
                .steps
                .key_of_host(packet)
                .is_some_and(|key| self.unknown.note(place, key))
        {
            return;
        }
        self.left.note(
            self.pass.interface,
            place,
            packet,
            len,
            None,
            self.odd,
            self.verdicts,
        );
    }
}
