//! The demo's part of the live view: the router in this process, and what its collectors received.

use std::sync::Arc;

use weir_api::{Destinations, FlowEntry, RouteQuery, Router as _};
use weir_engine::Router;

use crate::demo::collector::{Collector, FlowCollector};
use crate::demo::stage::{BROKEN_NEXT_HOP, BROKEN_PREFIX};
use crate::demo::summary::{expected_error, true_packets};
use crate::top::{Lookup, Reading, Source, local_reading, packet_of};

/// Reads the demo's router.
pub(crate) struct DemoSource {
    pub(crate) router: Arc<Router>,
    pub(crate) collector: Arc<Collector>,
    pub(crate) flows: Arc<FlowCollector>,
}

impl Source for DemoSource {
    fn read(&mut self) -> Result<Reading, String> {
        local_reading(&*self.router)
    }

    fn lookup(&mut self, flow: &FlowEntry) -> Result<Lookup, String> {
        let Some(Ok(destination)) = flow.destination.as_deref().map(str::parse) else {
            return Ok(Lookup::default());
        };
        let said = |error: weir_api::ApiError| error.message;
        let routes = RouteQuery {
            table: None,
            family: None,
            destinations: Destinations::LongestMatch(destination),
            after: None,
            most: 16,
        };
        let mut neighbors = self.router.neighbors().map_err(said)?.neighbors;
        neighbors.retain(|it| Some(&it.interface) == flow.output.as_ref());
        Ok(Lookup {
            routes: self.router.routes_where(&routes).map_err(said)?.routes,
            neighbors,
            why: packet_of(flow)
                .and_then(|packet| self.router.why(&packet).ok())
                .map(Box::new),
        })
    }

    fn notes(&self) -> Vec<String> {
        let (collected, flows) = (self.collector.now(), self.flows.now());
        let counted = true_packets(&self.router);
        let error = collected.estimated_packets.abs_diff(counted) as f64;
        vec![
            format!(
                "sFlow collector   {} samples, estimated {} packets, counted {counted}",
                collected.samples, collected.estimated_packets
            ),
            format!(
                "                  error {:.2} %, expected within {:.2} %",
                100.0 * error / counted.max(1) as f64,
                expected_error(collected.samples)
            ),
            format!(
                "IPFIX collector   {} records of {} packets",
                flows.records, flows.packets
            ),
            format!(
                "broken on purpose {BROKEN_PREFIX} via {BROKEN_NEXT_HOP}, which does not answer"
            ),
        ]
    }
}
