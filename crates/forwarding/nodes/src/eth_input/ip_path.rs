//! A routed interface whose plain packets leave in eth-input's pass, the work of the look-up done there
//! (`ip4_steps.rs`, `ip6_steps.rs`): the loops over a vector, by a table that is in the cache or by one that
//! has to be waited for.

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::{Adjacency, Fib4, Fib6, FullFib4, LargeFib4, LargeFib6, SmallFib4, SmallFib6, Way6};
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::forwarded::Forwarded;
use crate::interface_input::{IP4_LOOKUP, IP6_LOOKUP};
use crate::ip4_steps::{self, Ip4Steps};
use crate::ip6_steps::Ip6Steps;
use crate::{Tables, vector_loops};

/// The table by which plain IPv4 is forwarded in this pass, if it can be.
#[inline(always)]
pub(super) fn fast_path4<'w>(cx: &Cx<'w, Tables>, interface: &Interface) -> Option<&'w Fib4> {
    if cx.is_traced() || !ip4_steps::is_open(interface.features) {
        return None;
    }
    cx.world
        .fib4
        .get(interface.table as usize)
        .map(|fib| &**fib)
}

/// A routed interface whose plain IPv4 leaves from here, ip4-lookup's work done in this pass.
#[inline(always)]
pub(super) fn forwarded(
    cx: &mut Cx<'_, Tables>,
    fib: &Fib4,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    let steps = Ip4Steps::new(interface, cx.world.nexthops.view());
    verdicts.fill(Verdict::OUT);
    let mut odd = Census::default();
    let left = if steps.has_labels() {
        pass::<true>(steps, fib, interface, packets, &mut odd, verdicts)
    } else {
        pass::<false>(steps, fib, interface, packets, &mut odd, verdicts)
    };
    cx.did_for(IP4_LOOKUP, packets.len() - left.stayed);
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

/// The pass over the packets, by a table that is in the cache or by one that has to be waited for.
#[inline(always)]
fn pass<const LABELS: bool>(
    steps: Ip4Steps<'_>,
    fib: &Fib4,
    interface: &Interface,
    packets: &mut [Pkt],
    odd: &mut Census,
    verdicts: &mut [Verdict],
) -> Forwarded {
    let left = Forwarded::default();
    match fib.small() {
        Some(fib) => {
            vector_loops::work_apart(
                packets,
                Small4::<LABELS> {
                    steps,
                    fib,
                    interface,
                    left,
                    odd,
                    verdicts,
                },
            )
            .left
        }
        None if let Some(fib) = fib.full() => {
            vector_loops::announced(
                packets,
                Full4::<LABELS> {
                    steps,
                    fib,
                    interface,
                    left,
                    odd,
                    verdicts,
                },
            )
            .left
        }
        None => {
            vector_loops::staged_apart(
                packets,
                Steps4::<LABELS> {
                    steps,
                    fib: fib.large(),
                    interface,
                    left,
                    odd,
                    verdicts,
                },
            )
            .left
        }
    }
}

/// The pass by a small table.
struct Small4<'a, const LABELS: bool> {
    steps: Ip4Steps<'a>,
    fib: SmallFib4<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> vector_loops::Work for Small4<'_, LABELS> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (packet.len(), self.steps.forward::<LABELS>(self.fib, packet));
        self.left.note(
            self.interface,
            place,
            packet,
            len,
            out,
            self.odd,
            self.verdicts,
        );
    }
}

/// The pass by a full table.
struct Full4<'a, const LABELS: bool> {
    steps: Ip4Steps<'a>,
    fib: FullFib4<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> vector_loops::Announced for Full4<'_, LABELS> {
    /// More than the slowest memory takes, and fewer lines than this processor has under way before it drops some.
    const EARLY: usize = 24;

    #[inline(always)]
    fn ask(&self, packet: &Pkt) {
        Ip4Steps::ask(self.fib, packet);
    }
}

impl<const LABELS: bool> vector_loops::Work for Full4<'_, LABELS> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (packet.len(), self.steps.forward::<LABELS>(self.fib, packet));
        self.left.note(
            self.interface,
            place,
            packet,
            len,
            out,
            self.odd,
            self.verdicts,
        );
    }
}

/// The pass by a large table.
struct Steps4<'a, const LABELS: bool> {
    steps: Ip4Steps<'a>,
    fib: LargeFib4<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> vector_loops::Steps for Steps4<'_, LABELS> {
    const EARLY: usize = 16;
    type Way = ip4_steps::Way;

    #[inline(always)]
    fn ahead(&self, packet: &Pkt) {
        Ip4Steps::announce(self.fib, packet);
    }

    #[inline(always)]
    fn first(&mut self, packet: &Pkt) -> Self::Way {
        self.steps.first(self.fib, packet)
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, way: Self::Way) {
        let (len, out) = (
            packet.len(),
            self.steps.last::<LABELS>(self.fib, way, packet),
        );
        self.left.note(
            self.interface,
            place,
            packet,
            len,
            out,
            self.odd,
            self.verdicts,
        );
    }
}

/// The same for IPv6.
#[inline(always)]
pub(super) fn forwarded6(
    cx: &mut Cx<'_, Tables>,
    steps: Ip6Steps<'_>,
    fib: &Fib6,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    verdicts.fill(Verdict::OUT);
    let (mut left, mut odd) = (Forwarded::default(), Census::default());
    match fib.small() {
        Some(fib) => {
            left = vector_loops::work_apart(
                packets,
                Small6 {
                    steps,
                    fib,
                    interface,
                    left,
                    odd: &mut odd,
                    verdicts,
                },
            )
            .left
        }
        None => {
            left = vector_loops::threefold(
                packets,
                Steps6 {
                    steps,
                    fib: fib.large(),
                    interface,
                    left,
                    odd: &mut odd,
                    verdicts,
                },
            )
            .left
        }
    }
    cx.did_for(IP6_LOOKUP, packets.len() - left.stayed);
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

/// The pass by a small table of IPv6.
struct Small6<'a> {
    steps: Ip6Steps<'a>,
    fib: SmallFib6<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl vector_loops::Work for Small6<'_> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (packet.len(), self.steps.forward(self.fib, packet));
        self.left.note(
            self.interface,
            place,
            packet,
            len,
            out,
            self.odd,
            self.verdicts,
        );
    }
}

/// The pass by a large table of IPv6.
struct Steps6<'a> {
    steps: Ip6Steps<'a>,
    fib: LargeFib6<'a>,
    interface: &'a Interface,
    left: Forwarded,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<'a> vector_loops::Threefold for Steps6<'a> {
    type Way = Way6;
    type End = Option<&'a Adjacency>;

    #[inline(always)]
    fn first(&self, packet: &Pkt) -> Way6 {
        Ip6Steps::first(self.fib, packet)
    }

    #[inline(always)]
    fn second<C: Code>(&self, code: C, way: &mut Way6) {
        self.fib.second(code, way);
    }

    #[inline(always)]
    fn end<C: Code>(&self, code: C, packet: &Pkt, way: &Way6) -> Self::End {
        self.steps.neighbor(code, self.fib, way, packet)
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, neighbor: Self::End) {
        let (len, out) = (packet.len(), self.steps.last(neighbor, packet));
        self.left.note(
            self.interface,
            place,
            packet,
            len,
            out,
            self.odd,
            self.verdicts,
        );
    }
}
