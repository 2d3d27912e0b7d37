//! The fast paths of routed IPv4 and IPv6: the steps of `ip4_steps.rs` and `ip6_steps.rs` over the packets of a vector.

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::{Adjacency, Fib4, Fib6, LargeFib6, SmallFib6, Way6};
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::forwarded::Forwarded;
use crate::features::FeatureArc;
use crate::ip4_steps::{self, Ip4Steps, Table4};
use crate::ip6_steps::Ip6Steps;
use crate::{Tables, vector_loops};

/// Plain IPv4 of a routed interface.
#[inline(always)]
pub(super) fn forward4(
    cx: &mut Cx<'_, Tables>,
    fib: &Fib4,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let steps = Ip4Steps::new(interface, cx.world.nexthops.view());
    let mut others = Census::default();
    let forwarded = Forwarded::new(interface, &mut others, verdicts);
    let forwarded = if steps.has_labels() {
        by_table::<true>(steps, fib, packets, forwarded)
    } else {
        by_table::<false>(steps, fib, packets, forwarded)
    };
    forwarded.finish(cx, FeatureArc::Ip4, packets.len())
}

#[inline(always)]
fn by_table<'a, const LABELS: bool>(
    steps: Ip4Steps<'a>,
    fib: &'a Fib4,
    packets: &mut [Pkt],
    forwarded: Forwarded<'a>,
) -> Forwarded<'a> {
    if let Some(fib) = fib.small() {
        Path4::<_, LABELS>::run(steps, fib, packets, forwarded)
    } else if let Some(fib) = fib.full() {
        Path4::<_, LABELS>::run(steps, fib, packets, forwarded)
    } else {
        Path4::<_, LABELS>::run(steps, fib.large(), packets, forwarded)
    }
}

struct Path4<'a, F, const LABELS: bool> {
    steps: Ip4Steps<'a>,
    fib: F,
    forwarded: Forwarded<'a>,
}

impl<'a, F: Table4, const LABELS: bool> Path4<'a, F, LABELS> {
    #[inline(always)]
    fn run(
        steps: Ip4Steps<'a>,
        fib: F,
        packets: &mut [Pkt],
        forwarded: Forwarded<'a>,
    ) -> Forwarded<'a> {
        let path = Path4::<F, LABELS> {
            steps,
            fib,
            forwarded,
        };
        vector_loops::run(packets, path).forwarded
    }
}

impl<F: Table4, const LABELS: bool> vector_loops::Path for Path4<'_, F, LABELS> {
    const EARLY: usize = F::EARLY;
    type Between = F::Between;

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, packet: &mut Pkt) -> F::Between {
        self.fib.first(ip4_steps::destination(packet))
    }

    #[inline(always)]
    fn second<C: Code>(&mut self, _: C, place: usize, packet: &mut Pkt, first: F::Between) {
        let len = packet.len();
        let out = self.steps.forward::<F, LABELS>(self.fib, first, packet);
        self.forwarded.note(place, packet, len, out);
    }
}

/// Plain IPv6 of a routed interface.
#[inline(always)]
pub(super) fn forward6(
    cx: &mut Cx<'_, Tables>,
    fib: &Fib6,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let steps = Ip6Steps::new(interface, cx.world.nexthops.view());
    let mut others = Census::default();
    let forwarded = Forwarded::new(interface, &mut others, verdicts);
    let forwarded = match fib.small() {
        Some(fib) => {
            let path = Small6 {
                steps,
                fib,
                forwarded,
            };
            vector_loops::run(packets, path).forwarded
        }
        None => {
            let path = Large6 {
                steps,
                fib: fib.large(),
                forwarded,
            };
            vector_loops::run_staged(packets, path).forwarded
        }
    };
    forwarded.finish(cx, FeatureArc::Ip6, packets.len())
}

/// By a table that is in the cache.
struct Small6<'a> {
    steps: Ip6Steps<'a>,
    fib: SmallFib6<'a>,
    forwarded: Forwarded<'a>,
}

impl vector_loops::Path for Small6<'_> {
    const EARLY: usize = 0;
    type Between = ();

    #[inline(always)]
    fn first<C: Code>(&mut self, _: C, _: &mut Pkt) {}

    #[inline(always)]
    fn second<C: Code>(&mut self, _: C, place: usize, packet: &mut Pkt, (): ()) {
        let (len, out) = (packet.len(), self.steps.forward(self.fib, packet));
        self.forwarded.note(place, packet, len, out);
    }
}

/// By a table that has to be waited for.
struct Large6<'a> {
    steps: Ip6Steps<'a>,
    fib: LargeFib6<'a>,
    forwarded: Forwarded<'a>,
}

impl<'a> vector_loops::StagedPath for Large6<'a> {
    type Lookup = Way6;
    type Found = Option<&'a Adjacency>;

    #[inline(always)]
    fn first(&self, packet: &Pkt) -> Way6 {
        Ip6Steps::first(self.fib, packet)
    }

    #[inline(always)]
    fn second<C: Code>(&self, code: C, lookup: &mut Way6) {
        self.fib.second(code, lookup);
    }

    #[inline(always)]
    fn find<C: Code>(&self, code: C, packet: &Pkt, lookup: &Way6) -> Self::Found {
        self.steps.neighbor(code, self.fib, lookup, packet)
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, neighbor: Self::Found) {
        let (len, out) = (packet.len(), self.steps.send(neighbor, packet));
        self.forwarded.note(place, packet, len, out);
    }
}
