//! The fast path of routed IPv6 behind access lists and a reverse path check, as `checked4.rs`: the steps of `ip6_steps.rs` with those
//! of the features between them.
//!
//! Keys of access lists are compared whole, so that any packet with ports, types or neither is cached. Later fragments, and packets
//! that end before their ports, go through the nodes.

use std::hint::cold_path;

use weir_acl::{Asked6, Asker6, Key6};
use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::{Adjacency, Fib6, LargeFib6, Way6};
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::forwarded::Forwarded;
use super::{Census, Checks};
use crate::classify::{Flows6, Unknown};
use crate::features::FeatureArc;
use crate::filter::{Filter, Hits, Judgement};
use crate::ip4_urpf::ReverseCheck;
use crate::ip6_steps::{self, Ip6Steps};
use crate::{Tables, vector_loops};

/// Plain IPv6 of a routed interface with such features.
#[inline(never)]
pub(super) fn forward(
    cx: &mut Cx<'_, Tables>,
    flows: &mut Option<Flows6>,
    checks: Checks<'_>,
    fib: &Fib6,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let mut others = Census::default();
    let mut path = Checked {
        steps: Ip6Steps::new(interface, cx.world.nexthops.view()),
        fib: fib.large(),
        back: checks.back,
        lists: None,
        forwarded: Forwarded::new(interface, &mut others, verdicts),
    };
    let forwarded = match checks.filter {
        None => vector_loops::run_staged(packets, path).forwarded,
        Some(filter) => {
            let flows = flows.get_or_insert_with(|| Flows6::new(cx.worker));
            let hits = filter.hits(cx.worker);
            let (asker, unknown) = flows.begin(filter);
            path.lists = Some(Lists {
                asker,
                hits,
                unknown,
            });
            let Checked {
                steps,
                fib,
                forwarded,
                ..
            } = vector_loops::run_staged(packets, path);
            if flows.has_unknown() {
                search(steps, fib, flows, (filter, hits), packets, forwarded)
            } else {
                forwarded
            }
        }
    };
    forwarded.finish(cx, FeatureArc::Ip6, packets.len())
}

/// Packets of flows that were not cached, and that every other feature lets pass.
#[inline(never)]
fn search<'a>(
    steps: Ip6Steps<'a>,
    fib: LargeFib6<'a>,
    flows: &mut Flows6,
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
            steps.send(steps.look_up(fib, packet), packet)
        } else {
            None
        };
        if let Some(hits) = hits.get(judgement.term()).filter(|_| out.is_some()) {
            hits.count(packet.len());
        }
        forwarded.note(place, packet, len, out);
    }
    forwarded
}

struct Checked<'a, 'f> {
    steps: Ip6Steps<'a>,
    fib: LargeFib6<'a>,
    back: Option<ReverseCheck<'a>>,
    lists: Option<Lists<'a, 'f>>,
    forwarded: Forwarded<'a>,
}

/// Access lists, and the packets of flows of which they have no cached decision.
struct Lists<'a, 'f> {
    asker: Asker6<'f>,
    hits: &'a [Hits],
    unknown: Unknown<'f, Key6>,
}

/// What the lookups of a packet have found so far.
#[derive(Clone, Copy, Default)]
struct Lookup {
    destination: Way6,
    source: Way6,
    asked: Asked6,
}

/// What was found.
#[derive(Clone, Copy, Default)]
struct Found<'a> {
    neighbor: Option<&'a Adjacency>,
    leads_back: bool,
    /// Of access lists.
    answer: Option<Judgement>,
}

impl<'a> vector_loops::StagedPath for Checked<'a, '_> {
    type Lookup = Lookup;
    type Found = Found<'a>;

    #[inline(always)]
    fn first(&self, packet: &Pkt) -> Lookup {
        let mut lookup = Lookup {
            destination: Ip6Steps::first(self.fib, packet),
            ..Lookup::default()
        };
        if self.back.is_some() {
            lookup.source = Ip6Steps::first_of_source(self.fib, packet);
        }
        if let Some(lists) = &self.lists
            && let Some(key) = ip6_steps::key(packet)
        {
            lookup.asked = lists.asker.ask(&key);
        }
        lookup
    }

    #[inline(always)]
    fn second<C: Code>(&self, code: C, lookup: &mut Lookup) {
        self.fib.second(code, &mut lookup.destination);
        if self.back.is_some() {
            self.fib.second(code, &mut lookup.source);
        }
    }

    #[inline(always)]
    fn find<C: Code>(&self, code: C, packet: &Pkt, lookup: &Lookup) -> Found<'a> {
        // Without calls of closures: these would become functions that are compiled for the baseline.
        let leads_back = match self.back {
            Some(back) => back.passes(
                self.fib
                    .last(code, &lookup.source, || ip6_steps::source(packet)),
            ),
            None => true,
        };
        let answer = match (&self.lists, ip6_steps::key(packet)) {
            (Some(lists), Some(key)) => lists.asker.known(&key, lookup.asked),
            _ => None,
        };
        Found {
            neighbor: self
                .steps
                .neighbor(code, self.fib, &lookup.destination, packet),
            leads_back,
            answer: answer.map(Judgement),
        }
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, found: Found<'a>) {
        let len = packet.len();
        if found.leads_back {
            match &mut self.lists {
                None => {
                    let out = self.steps.send(found.neighbor, packet);
                    return self.forwarded.note(place, packet, len, out);
                }
                Some(lists) => match found.answer.filter(|answer| answer.permits()) {
                    Some(answer) => {
                        if let Some(hits) = lists.hits.get(answer.term())
                            && let Some(out) = self.steps.send(found.neighbor, packet)
                        {
                            hits.count(packet.len());
                            return self.forwarded.sent(len, out);
                        }
                    }
                    None => {
                        cold_path();
                        if found.answer.is_none()
                            && let Some(key) = ip6_steps::key(packet)
                        {
                            return lists.unknown.note(place, key);
                        }
                    }
                },
            }
        }
        cold_path();
        self.forwarded.note(place, packet, len, None);
    }
}
