//! The taps of a worker's graph: their order, declared once.
//!
//! The graph numbers taps in the order in which it gets them; interfaces name those that observe them by a bit each. Both follow
//! from [`ORDER`]. The control thread uses this when workers and interfaces are made.

use weir_graph::{GraphBuilder, Tap};
use weir_nodes::Tables;

/// The names of the taps. Each vector is shown to them in this order.
const ORDER: [&str; 4] = ["sflow", "pcap", "sflow-discards", "ipfix"];

/// sFlow's bit.
pub(crate) const SFLOW_TAP: u32 = bit("sflow");
/// The captures'.
pub(crate) const CAPTURE_TAP: u32 = bit("pcap");
/// That of sFlow's notifications of discards.
pub(crate) const DISCARD_TAP: u32 = bit("sflow-discards");
/// The flow meter's.
pub(crate) const METER_TAP: u32 = bit("ipfix");

/// Does not compile for a name that is not in the order.
const fn bit(name: &str) -> u32 {
    let mut number = 0;
    while !is_same(ORDER[number], name) {
        number += 1;
    }
    1 << number
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut n = 0;
    while n < one.len() && n < other.len() && one[n] == other[n] {
        n += 1;
    }
    n == one.len() && n == other.len()
}

/// Gives the taps of a worker to its graph, in their order.
pub(crate) fn attach(
    graph: GraphBuilder<Tables>,
    mut taps: [Box<dyn Tap<Tables>>; ORDER.len()],
) -> GraphBuilder<Tables> {
    taps.sort_by_key(|tap| ORDER.iter().position(|name| *name == tap.name()));
    taps.into_iter().fold(graph, GraphBuilder::tap)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_telemetry::capture::CaptureTap;
    use weir_telemetry::discards::DiscardTap;
    use weir_telemetry::meter::Meter;
    use weir_telemetry::sampler::{RING, Sampler, Settings};

    use super::*;

    #[test]
    fn every_tap_has_the_name_by_which_it_is_ordered() {
        let (sampler, _samples) = Sampler::new(Settings::new(0, 128), 1, RING);
        let (discards, _discards) = DiscardTap::new(Arc::default());
        let (meter, _control) = Meter::new(Arc::default(), 1);
        let (capture, _captures) = CaptureTap::new();
        let taps: [Box<dyn Tap<Tables>>; ORDER.len()] = [
            Box::new(sampler),
            Box::new(capture),
            Box::new(discards),
            Box::new(meter),
        ];
        assert_eq!(taps.map(|tap| tap.name()), ORDER);
        assert_eq!(
            [SFLOW_TAP, CAPTURE_TAP, DISCARD_TAP, METER_TAP],
            [1, 2, 4, 8]
        );
    }
}
