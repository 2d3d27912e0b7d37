//! The fast path of routed IPv4 behind access lists and a reverse path check: the steps of `ip4_steps.rs` with those of the features
//! between them.
//!
//! The cache of decisions is larger than the processor's own caches. So a packet takes two steps, with others' in between: it is
//! validated, and the line of its flow and what the lookups of its addresses read are prefetched; then it is compared with what the
//! line has, looked up and rewritten. Packets of flows that are not cached come last: the lists are searched for all of them together.
//! Only what every feature lets pass leaves here, and is counted by its term; all else goes to the first feature's node, which counts
//! and drops it. Only protocols with ports are cached, and only flows from one host to another.

use std::hint::cold_path;

use weir_acl::{Asked4, Asker4, Key4};
use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::Fib4;
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::forwarded::Forwarded;
use super::{Census, Checks};
use crate::classify::{Flows4, Unknown};
use crate::features::FeatureArc;
use crate::filter::{Filter, Hits};
use crate::ip4_steps::{self, Ip4Steps, Table4};
use crate::ip4_urpf::ReverseCheck;
use crate::{Tables, vector_loops};

/// Plain IPv4 of a routed interface with such features.
#[inline(never)]
pub(super) fn forward(
    cx: &mut Cx<'_, Tables>,
    flows: &mut Option<Flows4>,
    checks: Checks<'_>,
    fib: &Fib4,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let steps = Ip4Steps::new(interface, cx.world.nexthops.view());
    let mut others = Census::default();
    let forwarded = Forwarded::new(interface, &mut others, verdicts);
    let forwarded = match fib.small() {
        Some(fib) => by_table(cx.worker, steps, flows, checks, fib, packets, forwarded),
        None => by_table(
            cx.worker,
            steps,
            flows,
            checks,
            fib.large(),
            packets,
            forwarded,
        ),
    };
    forwarded.finish(cx, FeatureArc::Ip4, packets.len())
}

#[inline(always)]
fn by_table<'a, F: Table4>(
    worker: usize,
    steps: Ip4Steps<'a>,
    flows: &mut Option<Flows4>,
    checks: Checks<'a>,
    fib: F,
    packets: &mut [Pkt],
    forwarded: Forwarded<'a>,
) -> Forwarded<'a> {
    let back = checks.back;
    let Some(filter) = checks.filter else {
        let path = Checked {
            steps,
            fib,
            back,
            forwarded,
        };
        return vector_loops::run(packets, path).forwarded;
    };
    let flows = flows.get_or_insert_with(|| Flows4::new(worker));
    let hits = filter.hits(worker);
    let (asker, unknown) = flows.begin(filter);
    let path = Listed {
        steps,
        fib,
        back,
        asker,
        // Higher numbers are no answers.
        hits: hits.get(..Asker4::OTHER as usize).unwrap_or(hits),
        unknown,
        padding: 0,
        forwarded,
    };
    let Listed {
        padding,
        mut forwarded,
        ..
    } = vector_loops::run(packets, path);
    forwarded.bytes += padding;
    if flows.has_unknown() {
        forwarded = search(steps, fib, flows, (filter, hits), packets, forwarded);
    }
    forwarded
}

/// Packets of flows that were not cached, and that every other feature lets pass.
#[inline(never)]
fn search<'a, F: Table4>(
    steps: Ip4Steps<'a>,
    fib: F,
    flows: &mut Flows4,
    (filter, hits): (&Filter, &[Hits]),
    packets: &mut [Pkt],
    mut forwarded: Forwarded<'a>,
) -> Forwarded<'a> {
    for (place, judgement) in flows.learn(filter) {
        let Some(packet) = packets.get_mut(place) else {
            continue;
        };
        let len = packet.len();
        let out = if judgement.permits() {
            let first = fib.first(ip4_steps::destination(packet));
            steps.forward_validated::<F, true>(fib, first, packet)
        } else {
            None
        };
        if let Some(hits) = hits.get(judgement.term()).filter(|_| out.is_some()) {
            hits.count(len);
        }
        forwarded.note(place, packet, len, out);
    }
    forwarded
}

/// The first step of a reverse path check, if there is one.
#[inline(always)]
fn first_of_source<F: Table4>(fib: F, back: Option<ReverseCheck<'_>>, packet: &Pkt) -> F::Between {
    match back {
        Some(_) => fib.first(ip4_steps::source(packet)),
        None => F::Between::default(),
    }
}

/// The second step.
#[inline(always)]
fn leads_back<F: Table4>(
    fib: F,
    back: Option<ReverseCheck<'_>>,
    packet: &Pkt,
    first: F::Between,
) -> bool {
    match back {
        Some(back) => back.passes(fib.last(ip4_steps::source(packet), first)),
        None => true,
    }
}

/// A reverse path check alone.
struct Checked<'a, F> {
    steps: Ip4Steps<'a>,
    fib: F,
    back: Option<ReverseCheck<'a>>,
    forwarded: Forwarded<'a>,
}

impl<F: Table4> vector_loops::Path for Checked<'_, F> {
    const EARLY: usize = F::EARLY;
    /// Of the lookups of destination and source.
    type Between = (F::Between, F::Between);

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, packet: &mut Pkt) -> Self::Between {
        (
            self.fib.first(ip4_steps::destination(packet)),
            first_of_source(self.fib, self.back, packet),
        )
    }

    #[inline(always)]
    fn second<C: Code>(
        &mut self,
        _: C,
        place: usize,
        packet: &mut Pkt,
        (first, source): Self::Between,
    ) {
        let len = packet.len();
        let out = if leads_back(self.fib, self.back, packet, source) {
            self.steps.forward::<F, true>(self.fib, first, packet)
        } else {
            None
        };
        self.forwarded.note(place, packet, len, out);
    }
}

/// Access lists, and a reverse path check if there is one.
struct Listed<'a, 'f, F> {
    steps: Ip4Steps<'a>,
    fib: F,
    back: Option<ReverseCheck<'a>>,
    asker: Asker4<'f>,
    /// What the terms that can be answers of cached flows met.
    hits: &'a [Hits],
    unknown: Unknown<'f, Key4>,
    /// Bytes that Ethernet padded.
    padding: u64,
    forwarded: Forwarded<'a>,
}

impl<F: Table4> vector_loops::Path for Listed<'_, '_, F> {
    const EARLY: usize = 16;
    /// Not as many as elsewhere: each frame lies on a page of its own, and so does the line of a flow, and the processor's nearest
    /// translations shall last until the second step.
    const FETCHED: usize = 4;
    /// What finds the flow's decision, and the first steps of the lookups of destination and source.
    type Between = (Asked4, F::Between, F::Between);

    #[inline(always)]
    fn first<C: Code>(&mut self, code: C, packet: &mut Pkt) -> Self::Between {
        match self.steps.key(packet, &mut self.padding) {
            Some(key) => (
                self.asker.ask(code, key),
                self.fib.first(ip4_steps::destination(packet)),
                first_of_source(self.fib, self.back, packet),
            ),
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
        (asked, first, source): Self::Between,
    ) {
        let answer = self.asker.known(code, asked);
        let len = packet.len();
        let leads_back = leads_back(self.fib, self.back, packet, source);
        if let Some(hits) = answer.and_then(|term| self.hits.get(term as usize))
            && leads_back
            && let Some(out) = self
                .steps
                .forward_validated::<F, true>(self.fib, first, packet)
        {
            hits.count(len);
            return self.forwarded.sent(len, out);
        }
        cold_path();
        if answer.is_none()
            && leads_back
            && let Some(key) = self.steps.key_of_host(packet)
            && self.unknown.note(place, key)
        {
            return;
        }
        self.forwarded.note(place, packet, len, None);
    }
}
