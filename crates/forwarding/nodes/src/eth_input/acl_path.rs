//! The fast path of routed IPv4 behind access lists: the steps of `ip4_steps.rs` with the decision on the packet's flow between them.
//!
//! The cache of decisions is larger than the processor's own caches. So a packet takes two steps, with others' in between: it is
//! validated and the line of its flow is prefetched; then it is compared with what the line has, looked up and rewritten. Packets of
//! flows that are not cached come last: the lists are searched for all of them together. Only what is permitted leaves here and is
//! counted by its term; all else goes to acl-input, which counts and drops it.
//! Only protocols with ports are cached, and only flows from one host to another.

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
use crate::features::IP4_LOOKUP;
use crate::filter::{Filter, Hits};
use crate::interface_input::ACL_INPUT;
use crate::ip4_steps::{Ip4Steps, Table4};
use crate::{Tables, vector_loops};

/// Plain IPv4 of a routed interface with access lists.
#[inline(never)]
pub(super) fn listed(
    cx: &mut Cx<'_, Tables>,
    flows: &mut Option<Flows>,
    (filter, fib): (&Filter, &Fib4),
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let lists = Lists {
        steps: Ip4Steps::new(interface, cx.world.nexthops.view()),
        filter,
        hits: filter.hits(cx.worker),
    };
    let flows = flows.get_or_insert_with(|| Flows::new(cx.worker));
    let mut others = Census::default();
    let forwarded = Forwarded::new(interface, &mut others, verdicts);
    let forwarded = match fib.small() {
        Some(fib) => lists.run(fib, flows, packets, forwarded),
        None => lists.run(fib.large(), flows, packets, forwarded),
    };
    forwarded.finish(cx, &[ACL_INPUT, IP4_LOOKUP], packets.len())
}

/// What packets are compared with and forwarded by.
#[derive(Clone, Copy)]
struct Lists<'a> {
    steps: Ip4Steps<'a>,
    filter: &'a Filter,
    hits: &'a [Hits],
}

impl<'a> Lists<'a> {
    #[inline(always)]
    fn run<F: Table4>(
        self,
        fib: F,
        flows: &mut Flows,
        packets: &mut [Pkt],
        forwarded: Forwarded<'a>,
    ) -> Forwarded<'a> {
        let (asker, unknown) = flows.begin(self.filter);
        // Higher numbers are no answers.
        let hits = self.hits.get(..Asker4::OTHER as usize).unwrap_or(self.hits);
        let path = AclPath {
            lists: self,
            fib,
            asker,
            hits,
            unknown,
            padding: 0,
            forwarded,
        };
        let AclPath {
            padding,
            mut forwarded,
            ..
        } = vector_loops::run(packets, path);
        forwarded.bytes += padding;
        if flows.has_unknown() {
            forwarded = self.search(fib, flows, packets, forwarded);
        }
        forwarded
    }

    /// Packets of flows that were not cached.
    #[inline(never)]
    fn search<F: Table4>(
        self,
        fib: F,
        flows: &mut Flows,
        packets: &mut [Pkt],
        mut forwarded: Forwarded<'a>,
    ) -> Forwarded<'a> {
        for (place, judgement) in flows.learn(self.filter) {
            let Some(packet) = packets.get_mut(place) else {
                continue;
            };
            let len = packet.len();
            let out = if judgement.permits() {
                let first = fib.first(packet);
                self.steps.forward_validated::<F, true>(fib, first, packet)
            } else {
                None
            };
            if let Some(hits) = self.hits.get(judgement.term()).filter(|_| out.is_some()) {
                hits.count(len);
            }
            forwarded.note(place, packet, len, out);
        }
        forwarded
    }
}

struct AclPath<'a, 'f, F> {
    lists: Lists<'a>,
    fib: F,
    asker: Asker4<'f>,
    /// What the terms that can be answers of cached flows met.
    hits: &'a [Hits],
    unknown: Unknown<'f>,
    /// Bytes that Ethernet padded.
    padding: u64,
    forwarded: Forwarded<'a>,
}

impl<F: Table4> vector_loops::Path for AclPath<'_, '_, F> {
    const EARLY: usize = 16;
    /// Not as many as elsewhere: each frame lies on a page of its own, and so does the line of a flow, and the processor's nearest
    /// translations shall last until the second step.
    const FETCHED: usize = 4;
    /// What finds the flow's decision, and the first step of the lookup.
    type Between = (Asked4, F::Between);

    #[inline(always)]
    fn first<C: Code>(&mut self, code: C, packet: &mut Pkt) -> Self::Between {
        match self.lists.steps.key(packet, &mut self.padding) {
            Some(key) => (self.asker.ask(code, key), self.fib.first(packet)),
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
            && let Some(out) = self
                .lists
                .steps
                .forward_validated::<F, true>(self.fib, first, packet)
        {
            hits.count(len);
            return self.forwarded.sent(len, out);
        }
        cold_path();
        if answer.is_none()
            && let Some(key) = self.lists.steps.key_of_host(packet)
            && self.unknown.note(place, key)
        {
            return;
        }
        self.forwarded.note(place, packet, len, None);
    }
}
