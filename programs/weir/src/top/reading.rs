//! One reading of a router: the counters that the live view shows.

use std::net::IpAddr;
use std::time::Instant;

use weir_api::{
    Client, ClientError, DropCounter, FlowEntry, FlowMeasure, FlowQuery, Interface, Neighbor,
    Route, Router, Runtime, Totals, Version, Why, WhyProtocol, WhyRequest,
};

/// Flows that one reading takes. Rates are ranked among these.
const FLOWS: usize = 1000;

/// Everything that the view shows, read at one time.
pub(crate) struct Reading {
    /// When it was read.
    pub(crate) at: Instant,
    /// Version, uptime and workers.
    pub(crate) version: Version,
    /// All interfaces.
    pub(crate) interfaces: Vec<Interface>,
    /// Drops by interface, node and reason.
    pub(crate) drops: Vec<DropCounter>,
    /// What the workers did.
    pub(crate) runtime: Runtime,
    /// The router's balance of packets.
    pub(crate) totals: Totals,
    /// The largest flows; absent while no interface is metered.
    pub(crate) flows: Option<Vec<FlowEntry>>,
    /// One line about the sFlow sampler; absent while it is off.
    pub(crate) sflow: Option<String>,
}

/// What the tables say about one flow's destination.
#[derive(Default)]
pub(crate) struct Lookup {
    /// Routes that cover the destination, in all tables.
    pub(crate) routes: Vec<Route>,
    /// Neighbours on the interface by which the flow leaves.
    pub(crate) neighbors: Vec<Neighbor>,
    /// What the router would do with a packet of the flow now.
    pub(crate) why: Option<Box<Why>>,
}

/// A packet of a flow, for the question what becomes of it. `None` for protocols that cannot be asked for.
pub(crate) fn packet_of(flow: &FlowEntry) -> Option<WhyRequest> {
    let protocol = match flow.protocol? {
        6 => WhyProtocol::Tcp,
        17 => WhyProtocol::Udp,
        1 | 58 => WhyProtocol::Icmp,
        _ => return None,
    };
    let request = WhyRequest::new(
        flow.source.as_ref()?.parse().ok()?,
        flow.destination.as_ref()?.parse().ok()?,
    );
    Some(WhyRequest {
        protocol,
        source_port: flow.source_port.unwrap_or_default(),
        destination_port: flow.destination_port.unwrap_or_default(),
        interface: flow.input.clone(),
        ..request
    })
}

/// A router that can be read.
pub(crate) trait Source: Send {
    /// Reads all counters.
    fn read(&mut self) -> Result<Reading, String>;
    /// Looks up where a flow goes.
    fn lookup(&mut self, flow: &FlowEntry) -> Result<Lookup, String>;
    /// Further lines for the view, current at the last reading.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A router that is read through its API.
pub(crate) struct RemoteSource {
    client: Client,
}

impl RemoteSource {
    /// A source that asks through `client`.
    pub(crate) fn new(client: Client) -> RemoteSource {
        RemoteSource { client }
    }

    fn flows(&self) -> Result<Option<Vec<FlowEntry>>, ClientError> {
        let ipfix = match self.client.ipfix() {
            Ok(ipfix) => ipfix,
            // A router without a meter says so; everything else is a failure.
            Err(error) if error.refusal().is_some() => return Ok(None),
            Err(error) => return Err(error),
        };
        if ipfix.interfaces.is_empty() {
            return Ok(None);
        }
        let limit = FLOWS.to_string();
        let query = [("top", Some("octets")), ("limit", Some(limit.as_str()))];
        Ok(Some(self.client.flows(&query)?.flows))
    }
}

impl Source for RemoteSource {
    fn read(&mut self) -> Result<Reading, String> {
        let read = || -> Result<Reading, ClientError> {
            Ok(Reading {
                at: Instant::now(),
                version: self.client.version()?,
                interfaces: self.client.interfaces(None)?.interfaces,
                drops: self.client.errors(None, false)?.errors,
                runtime: self.client.runtime()?,
                totals: self.client.totals()?,
                flows: self.flows()?,
                sflow: self
                    .client
                    .sflow()
                    .ok()
                    .and_then(|sflow| sflow_line(&sflow)),
            })
        };
        read().map_err(|error| error.to_string())
    }

    fn lookup(&mut self, flow: &FlowEntry) -> Result<Lookup, String> {
        let destination = flow.destination.as_deref();
        let Some(Ok(destination)) = destination.map(str::parse::<IpAddr>) else {
            return Ok(Lookup::default());
        };
        let said = |error: ClientError| error.to_string();
        Ok(Lookup {
            routes: self
                .client
                .routes(Some(&destination.to_string()), None)
                .map_err(said)?
                .routes,
            neighbors: match &flow.output {
                Some(output) => self.client.neighbors(Some(output)).map_err(said)?.neighbors,
                None => Vec::new(),
            },
            // An older router, or an interface that receives nothing by itself: the rest is shown all the same.
            why: packet_of(flow)
                .and_then(|packet| self.client.why(&packet).ok())
                .map(Box::new),
        })
    }
}

/// Reads a router that runs in this process.
pub(crate) fn local_reading(router: &impl Router) -> Result<Reading, String> {
    let said = |error: weir_api::ApiError| error.message;
    let flows = match router.ipfix() {
        Ok(ipfix) if !ipfix.interfaces.is_empty() => {
            let query = FlowQuery {
                top: Some(FlowMeasure::Octets),
                most: FLOWS,
                ..FlowQuery::default()
            };
            Some(router.flows_where(&query).map_err(said)?.flows)
        }
        _ => None,
    };
    Ok(Reading {
        at: Instant::now(),
        version: router.version().map_err(said)?,
        interfaces: router.interfaces().map_err(said)?.interfaces,
        drops: router.errors().map_err(said)?.errors,
        runtime: router.runtime().map_err(said)?,
        totals: router.totals().map_err(said)?,
        flows,
        sflow: router.sflow().ok().and_then(|sflow| sflow_line(&sflow)),
    })
}

fn sflow_line(sflow: &weir_api::Sflow) -> Option<String> {
    (!sflow.interfaces.is_empty()).then(|| {
        format!(
            "sFlow 1:{}  {} samples, {} lost",
            sflow.settings.sampling_rate,
            sflow.samples_taken(),
            sflow.samples_dropped() + sflow.samples_lost
        )
    })
}
