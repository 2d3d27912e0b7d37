//! A routed interface whose plain packets leave in eth-input's pass, the work of the look-up done there
//! (`ip4_straight.rs`, `ip6_straight.rs`): the loops over a vector, by a table that is in the cache or by one that
//! has to be waited for.

use weir_buf::Pkt;
use weir_cpu::Code;
use weir_fib::{Adjacency, Fib4, Fib6, FullFib4, LargeFib4, LargeFib6, SmallFib4, SmallFib6, Way6};
use weir_graph::{Cx, Outcome, Verdict};
use weir_port::interface::Interface;

use super::Census;
use super::left::Left;
use crate::interface_input::{IP4_LOOKUP, IP6_LOOKUP};
use crate::ip4_straight::{self, Straight};
use crate::ip6_straight::Straight6;
use crate::{Tables, each};

/// The table by which plain IPv4 is forwarded in this pass, if it can be.
#[inline(always)]
pub(super) fn straight<'w>(cx: &Cx<'w, Tables>, interface: &Interface) -> Option<&'w Fib4> {
    if cx.is_traced() || !ip4_straight::is_open(interface.features) {
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
    let straight = Straight::new(interface.mac, cx.world.nexthops.view());
    verdicts.fill(Verdict::OUT);
    let mut odd = Census::default();
    let left = if straight.has_labels() {
        pass::<true>(straight, fib, interface, packets, &mut odd, verdicts)
    } else {
        pass::<false>(straight, fib, interface, packets, &mut odd, verdicts)
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
    straight: Straight<'_>,
    fib: &Fib4,
    interface: &Interface,
    packets: &mut [Pkt],
    odd: &mut Census,
    verdicts: &mut [Verdict],
) -> Left {
    let left = Left::default();
    match fib.small() {
        Some(fib) => {
            each::work_apart(
                packets,
                Small4::<LABELS> {
                    straight,
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
            each::announced(
                packets,
                Full4::<LABELS> {
                    straight,
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
            each::staged_apart(
                packets,
                Steps4::<LABELS> {
                    straight,
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
    straight: Straight<'a>,
    fib: SmallFib4<'a>,
    interface: &'a Interface,
    left: Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> each::Work for Small4<'_, LABELS> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (
            packet.len(),
            self.straight.forward::<LABELS>(self.fib, packet),
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

/// The pass by a full table.
struct Full4<'a, const LABELS: bool> {
    straight: Straight<'a>,
    fib: FullFib4<'a>,
    interface: &'a Interface,
    left: Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> each::Announced for Full4<'_, LABELS> {
    /// More than the slowest memory takes, and fewer lines than this processor has under way before it drops some.
    const EARLY: usize = 24;

    #[inline(always)]
    fn ask(&self, packet: &Pkt) {
        Straight::ask(self.fib, packet);
    }
}

impl<const LABELS: bool> each::Work for Full4<'_, LABELS> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (
            packet.len(),
            self.straight.forward::<LABELS>(self.fib, packet),
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

/// The pass by a large table.
struct Steps4<'a, const LABELS: bool> {
    straight: Straight<'a>,
    fib: LargeFib4<'a>,
    interface: &'a Interface,
    left: Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<const LABELS: bool> each::Steps for Steps4<'_, LABELS> {
    const EARLY: usize = 16;
    type Way = ip4_straight::Way;

    #[inline(always)]
    fn ahead(&self, packet: &Pkt) {
        Straight::announce(self.fib, packet);
    }

    #[inline(always)]
    fn first(&mut self, packet: &Pkt) -> Self::Way {
        self.straight.first(self.fib, packet)
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, way: Self::Way) {
        let (len, out) = (
            packet.len(),
            self.straight.last::<LABELS>(self.fib, way, packet),
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
    straight: Straight6<'_>,
    fib: &Fib6,
    interface: &Interface,
    packets: &mut [Pkt],
    verdicts: &mut [Verdict],
) -> (Outcome, Census) {
    verdicts.fill(Verdict::OUT);
    let (mut left, mut odd) = (Left::default(), Census::default());
    match fib.small() {
        Some(fib) => {
            left = each::work_apart(
                packets,
                Small6 {
                    straight,
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
            left = each::threefold(
                packets,
                Steps6 {
                    straight,
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
    straight: Straight6<'a>,
    fib: SmallFib6<'a>,
    interface: &'a Interface,
    left: Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl each::Work for Small6<'_> {
    #[inline(always)]
    fn one(&mut self, place: usize, packet: &mut Pkt) {
        let (len, out) = (packet.len(), self.straight.forward(self.fib, packet));
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
    straight: Straight6<'a>,
    fib: LargeFib6<'a>,
    interface: &'a Interface,
    left: Left,
    odd: &'a mut Census,
    verdicts: &'a mut [Verdict],
}

impl<'a> each::Threefold for Steps6<'a> {
    type Way = Way6;
    type End = Option<&'a Adjacency>;

    #[inline(always)]
    fn first(&self, packet: &Pkt) -> Way6 {
        Straight6::first(self.fib, packet)
    }

    #[inline(always)]
    fn second<C: Code>(&self, code: C, way: &mut Way6) {
        self.fib.second(code, way);
    }

    #[inline(always)]
    fn end<C: Code>(&self, code: C, packet: &Pkt, way: &Way6) -> Self::End {
        self.straight.neighbor(code, self.fib, way, packet)
    }

    #[inline(always)]
    fn last(&mut self, place: usize, packet: &mut Pkt, neighbor: Self::End) {
        let (len, out) = (packet.len(), self.straight.last(neighbor, packet));
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
