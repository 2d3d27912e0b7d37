//! Features: nodes that an interface can have on a packet's path, and their order, declared once.
//!
//! A feature is a node and a line in [`FEATURES`]: the arcs it is on, and before which features it runs there. An *arc* is a stretch
//! of the path: from the node that validates packets to the one that forwards them, or before the output of an interface. The order on each arc is computed
//! when the router is compiled; features that name each other in a circle do not compile. Every node that sends packets into an arc, and every
//! feature, finds the next node with [`next`]. Fast paths ask with [`is_open`] whether an arc is empty.

use weir_graph::{Cx, Next, NodeSpec, Verdict, VerdictKind};
use weir_port::interface::{Feature, Features, Interface};

use crate::{Tables, acl_input, acl_output, ip4_urpf, ip6_urpf, policer};

/// A stretch of a packet's path on which features are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureArc {
    /// IPv4 that came in on a routed interface.
    Ip4,
    /// IPv6 that came in on a routed interface.
    Ip6,
    /// Frames that came in on a member of a bridge domain.
    Bridge,
    /// Frames that came in on a cross-connected interface.
    CrossConnect,
    /// Labelled packets that came in.
    Mpls,
    /// Everything that leaves by an interface.
    Output,
}

impl FeatureArc {
    /// All of them.
    pub const ALL: [FeatureArc; 6] = [
        FeatureArc::Ip4,
        FeatureArc::Ip6,
        FeatureArc::Bridge,
        FeatureArc::CrossConnect,
        FeatureArc::Mpls,
        FeatureArc::Output,
    ];

    /// Its name in CLI and API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FeatureArc::Ip4 => "ip4-input",
            FeatureArc::Ip6 => "ip6-input",
            FeatureArc::Bridge => "bridge-input",
            FeatureArc::CrossConnect => "cross-connect-input",
            FeatureArc::Mpls => "mpls-input",
            FeatureArc::Output => "output",
        }
    }
}

/// A feature, as its node declares it.
#[derive(Clone, Copy, Debug)]
pub struct FeatureSpec {
    /// The bit in an interface's features that attaches it.
    pub feature: Feature,
    /// Its node.
    pub node: &'static str,
    /// Where it is.
    pub arcs: &'static [FeatureArc],
    /// The features that it comes before, by their nodes, where both are on an arc.
    pub runs_before: &'static [&'static str],
}

/// All features. Their number is the one by which nodes send to them.
pub const FEATURES: &[FeatureSpec] = &[
    acl_input::FEATURE,
    ip4_urpf::FEATURE,
    ip6_urpf::FEATURE,
    acl_output::FEATURE,
    policer::INPUT,
    policer::OUTPUT,
];

/// The nodes that every node can send packets to, in the order of [`Next::common`]: the ends of arcs, and the features.
pub(crate) const COMMON: [&str; ENDS.len() + FEATURES.len()] = {
    let mut nodes = [""; ENDS.len() + FEATURES.len()];
    let mut n = 0;
    while n < nodes.len() {
        nodes[n] = if n < ENDS.len() {
            ENDS[n]
        } else {
            FEATURES[n - ENDS.len()].node
        };
        n += 1;
    }
    nodes
};

/// The nodes at the ends of arcs; behind those of input, the ones of [`weir_port::interface::Output`] in its order.
const ENDS: &[&str] = &[
    "ip4-lookup",
    "ip6-lookup",
    "bridge",
    "mpls-lookup",
    "port-tx",
    "sub-interface-output",
    "bvi-output",
    "bond-output",
    "pseudowire-output",
    "vxlan-output",
];
pub(crate) const IP4_LOOKUP: Next = Next::common(0);
pub(crate) const IP6_LOOKUP: Next = Next::common(1);
pub(crate) const BRIDGE: Next = Next::common(2);
pub(crate) const MPLS_LOOKUP: Next = Next::common(3);
const PORT_TX: u8 = 4;

/// The features of an arc in their order.
struct Order {
    /// Their numbers in [`FEATURES`].
    numbers: [u8; FEATURES.len()],
    len: usize,
    /// All of them.
    set: Features,
    /// Those behind each feature, by its number.
    behind: [Features; FEATURES.len()],
}

static ORDERS: [Order; FeatureArc::ALL.len()] = [
    order(FeatureArc::Ip4),
    order(FeatureArc::Ip6),
    order(FeatureArc::Bridge),
    order(FeatureArc::CrossConnect),
    order(FeatureArc::Mpls),
    order(FeatureArc::Output),
];

/// The order of an arc: of the features left, the first in the table that no other one left runs before.
const fn order(arc: FeatureArc) -> Order {
    let mut order = Order {
        numbers: [0; FEATURES.len()],
        len: 0,
        set: Features::EMPTY,
        behind: [Features::EMPTY; FEATURES.len()],
    };
    let mut left = [false; FEATURES.len()];
    let (mut n, mut count) = (0, 0);
    while n < FEATURES.len() {
        if is_on(&FEATURES[n], arc) {
            left[n] = true;
            count += 1;
        }
        n += 1;
    }
    while order.len < count {
        let next = first_of(&left);
        left[next] = false;
        order.numbers[order.len] = next as u8;
        order.len += 1;
        let mut before = 0;
        while before + 1 < order.len {
            let number = order.numbers[before] as usize;
            order.behind[number] = order.behind[number].with(FEATURES[next].feature);
            before += 1;
        }
        order.set = order.set.with(FEATURES[next].feature);
    }
    order
}

const fn is_on(spec: &FeatureSpec, arc: FeatureArc) -> bool {
    let mut n = 0;
    while n < spec.arcs.len() {
        if spec.arcs[n] as u8 == arc as u8 {
            return true;
        }
        n += 1;
    }
    false
}

const fn first_of(left: &[bool; FEATURES.len()]) -> usize {
    let mut n = 0;
    while n < FEATURES.len() {
        if left[n] && !follows_any(n, left) {
            return n;
        }
        n += 1;
    }
    panic!("features name each other in a circle");
}

const fn follows_any(feature: usize, left: &[bool; FEATURES.len()]) -> bool {
    let mut n = 0;
    while n < FEATURES.len() {
        let mut named = 0;
        while left[n] && named < FEATURES[n].runs_before.len() {
            if is_same(FEATURES[n].runs_before[named], FEATURES[feature].node) {
                return true;
            }
            named += 1;
        }
        n += 1;
    }
    false
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut n = 0;
    while n < one.len() && n < other.len() && one[n] == other[n] {
        n += 1;
    }
    n == one.len() && n == other.len()
}

/// Whether an interface has no feature on an arc, but those of `except`.
#[inline(always)]
pub(crate) fn is_open(arc: FeatureArc, interface: &Interface, except: Features) -> bool {
    !interface
        .features
        .any(ORDERS[arc as usize].set.without(except))
}

/// The number of a feature in [`FEATURES`], by its node. To be asked for in constants.
pub(crate) const fn number(node: &str) -> usize {
    let mut n = 0;
    while !is_same(FEATURES[n].node, node) {
        n += 1;
    }
    n
}

/// Where a packet of an interface's arc goes, at its start or after the feature of this number.
#[inline(always)]
pub(crate) fn next(arc: FeatureArc, interface: &Interface, after: Option<usize>) -> Verdict {
    let order = &ORDERS[arc as usize];
    let behind = after.map_or(order.set, |number| order.behind[number]);
    if interface.features.any(behind) {
        next_feature(order, interface.features.intersection(behind))
    } else {
        end(arc, interface)
    }
}

/// The node of the first of these features, of which there is one.
#[inline(never)]
fn next_feature(order: &Order, features: Features) -> Verdict {
    let mut numbers = order.numbers[..order.len].iter();
    let first = numbers.find(|&&number| features.has(FEATURES[number as usize].feature));
    let number = first.map_or(0, |&number| number as usize);
    Verdict::to(Next::common((ENDS.len() + number) as u8))
}

/// The numbers of the features that an interface has on an arc, in their order.
fn attached(arc: FeatureArc, features: Features) -> impl Iterator<Item = usize> {
    let order = &ORDERS[arc as usize];
    order.numbers[..order.len]
        .iter()
        .map(|&number| number as usize)
        .filter(move |&number| features.has(FEATURES[number].feature))
}

/// Counts packets of an interface that a fast path took along an arc and forwarded, at the nodes of the features and at the end.
#[inline(always)]
pub(crate) fn count_forwarded(
    cx: &mut Cx<'_, Tables>,
    arc: FeatureArc,
    interface: &Interface,
    packets: usize,
) {
    if interface.features.any(ORDERS[arc as usize].set) {
        for number in attached(arc, interface.features) {
            cx.did_for(Next::common((ENDS.len() + number) as u8), packets);
        }
    }
    if let VerdictKind::To(end) = end(arc, interface).kind() {
        cx.did_for(end, packets);
    }
}

/// Where an arc ends. A packet of a cross connect has the far side in its `aux` word by then.
#[inline(always)]
fn end(arc: FeatureArc, interface: &Interface) -> Verdict {
    match arc {
        FeatureArc::Ip4 => Verdict::to(IP4_LOOKUP),
        FeatureArc::Ip6 => Verdict::to(IP6_LOOKUP),
        FeatureArc::Bridge => Verdict::to(BRIDGE),
        FeatureArc::CrossConnect => Verdict::OUT,
        FeatureArc::Mpls => Verdict::to(MPLS_LOOKUP),
        FeatureArc::Output => Verdict::to(Next::common(PORT_TX + interface.output as u8)),
    }
}

/// Where a packet goes that a node would send to the end of an arc of input: through the features of its interface, if there are
/// any. All other verdicts stay.
#[inline(always)]
pub(crate) fn into_arc(interface: &Interface, verdict: Verdict) -> Verdict {
    if interface.features == Features::EMPTY {
        return verdict;
    }
    FeatureArc::ALL
        .into_iter()
        .filter(|arc| *arc != FeatureArc::Output)
        .find(|arc| end(*arc, interface) == verdict)
        .map_or(verdict, |arc| next(arc, interface, None))
}

/// The nodes that [`weir_graph::World::output`] counts from 1: those of [`weir_port::interface::Output`] but for the driver, then
/// the features, of which those on the arc of output are ever asked for.
pub(crate) const OUTPUTS: [&str; COMMON.len() - PORT_TX as usize - 1] = {
    let mut nodes = [""; COMMON.len() - PORT_TX as usize - 1];
    let mut n = 0;
    while n < nodes.len() {
        nodes[n] = COMMON[n + PORT_TX as usize + 1];
        n += 1;
    }
    nodes
};

/// The node that takes what leaves by an interface, as [`weir_graph::World::output`] tells it.
#[inline(always)]
pub(crate) fn output(interface: &Interface) -> u8 {
    if interface
        .features
        .any(ORDERS[FeatureArc::Output as usize].set)
    {
        first_output(interface)
    } else {
        interface.output as u8
    }
}

#[inline(never)]
fn first_output(interface: &Interface) -> u8 {
    attached(FeatureArc::Output, interface.features)
        .next()
        .map_or(interface.output as u8, |number| {
            (ENDS.len() - PORT_TX as usize + number) as u8
        })
}

/// The name of one of a node's next nodes.
#[must_use]
pub fn next_name(spec: &NodeSpec, next: Next) -> Option<&'static str> {
    match next.0.checked_sub(Next::COMMON) {
        None => spec.nexts.get(usize::from(next.0)).copied(),
        Some(number) => COMMON.get(usize::from(number)).copied(),
    }
}

/// The path of packets of an interface along an arc: the nodes of its features in their order.
#[must_use]
pub fn nodes_of(arc: FeatureArc, features: Features) -> Vec<&'static str> {
    attached(arc, features)
        .map(|number| FEATURES[number].node)
        .collect()
}

/// The order of an arc with all features.
#[must_use]
pub fn order_of(arc: FeatureArc) -> Vec<&'static str> {
    let order = &ORDERS[arc as usize];
    order.numbers[..order.len]
        .iter()
        .map(|&number| FEATURES[number as usize].node)
        .collect()
}
