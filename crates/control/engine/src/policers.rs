//! Policers of interfaces: made from the configuration for the workers, and shown with their counters.
//!
//! Runs in the control thread. A policer whose rate or burst changes starts with a full bucket and keeps its counters; one that is
//! taken away loses them.

use std::sync::Arc;

use weir_nodes::{FeatureArc, Policer, PolicerCounters, Policers, nodes_of, order_of};
use weir_port::interface::Features;

use crate::control::Control;

/// A policer of an interface in one direction.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) wanted: weir_config::Policer,
    pub(crate) counters: Arc<PolicerCounters>,
    policer: Arc<Policer>,
}

/// The policers of an interface.
#[derive(Debug, Default)]
pub(crate) struct AttachedPolicers {
    pub(crate) input: Option<Attached>,
    pub(crate) output: Option<Attached>,
}

impl AttachedPolicers {
    /// What workers read.
    pub(crate) fn for_workers(&self) -> Policers {
        let of = |attached: &Option<Attached>| attached.as_ref().map(|it| it.policer.clone());
        Policers {
            input: of(&self.input),
            output: of(&self.output),
        }
    }
}

impl Control {
    /// Gives an interface the policers that it is to have.
    pub(crate) fn police(&mut self, name: &str, wanted: &weir_config::Police) {
        let workers = self.workers.len();
        let Some(attached) = self.interfaces.get_mut(name) else {
            return;
        };
        let change = |attached: &mut Option<Attached>, wanted: Option<weir_config::Policer>| {
            let before = attached.take();
            *attached = wanted.map(|wanted| match before {
                Some(before) if before.wanted == wanted => before,
                before => {
                    let counters = before.map_or_else(
                        || Arc::new(PolicerCounters::new(workers)),
                        |before| before.counters,
                    );
                    let policer = Policer::new(wanted.rate, wanted.burst, counters.clone());
                    Attached {
                        wanted,
                        counters,
                        policer: Arc::new(policer),
                    }
                }
            });
        };
        change(&mut attached.policers.input, wanted.input);
        change(&mut attached.policers.output, wanted.output);
        self.refresh(name);
    }

    /// The features of all interfaces, for the API.
    pub(crate) fn feature_views(&self) -> weir_api::Features {
        let mut all: Vec<_> = self.interfaces.iter().collect();
        all.sort_by_key(|(_, attached)| attached.index);
        let interfaces = all.into_iter().map(|(name, attached)| {
            let features = self
                .tables
                .interface(attached.index)
                .map_or(Features::EMPTY, |interface| interface.features);
            let policers = [
                ("input", &attached.policers.input),
                ("output", &attached.policers.output),
            ];
            weir_api::InterfaceFeatures {
                interface: name.clone(),
                arcs: FeatureArc::ALL
                    .map(|arc| arc_view(arc, features))
                    .into_iter()
                    .collect(),
                policers: policers
                    .into_iter()
                    .filter_map(|(direction, it)| Some(policer_view(direction, it.as_ref()?)))
                    .collect(),
            }
        });
        weir_api::Features {
            interfaces: interfaces.collect(),
        }
    }
}

fn arc_view(arc: FeatureArc, features: Features) -> weir_api::FeatureArc {
    let names = |nodes: Vec<&str>| nodes.into_iter().map(str::to_owned).collect();
    weir_api::FeatureArc {
        arc: arc.name().to_owned(),
        order: names(order_of(arc)),
        attached: names(nodes_of(arc, features)),
    }
}

fn policer_view(direction: &str, attached: &Attached) -> weir_api::Policer {
    let sums = attached.counters.sums();
    weir_api::Policer {
        direction: direction.to_owned(),
        rate: attached.wanted.rate,
        burst: attached.wanted.burst,
        conformed_packets: sums.conformed_packets,
        conformed_bytes: sums.conformed_bytes,
        dropped_packets: sums.dropped_packets,
        dropped_bytes: sums.dropped_bytes,
    }
}
