//! `police`: `ip4` through a policer of the interface that receives, whose rate is not reached.

use std::sync::Arc;

use weir_nodes::{Policer, PolicerCounters};
use weir_port::interface::Feature;

use super::ip4;
use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, Scene};

pub(super) const CASE: Case = Case {
    name: "police",
    about: "IPv4 through a policer of a terabit a second",
    kind: Kind::Packets {
        limit: Limit::None,
        set,
    },
};

fn set(scene: &mut Scene) {
    ip4::set(scene);
    let entry = scene.entry(IN);
    entry.interface.features = entry.interface.features.with(Feature::PoliceIn);
    let counters = Arc::new(PolicerCounters::new(1));
    let policer = Policer::new(1_000_000_000_000, u32::MAX, counters);
    entry.policers.input = Some(Arc::new(policer));
}
