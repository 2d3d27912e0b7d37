//! What BGP daemons tell by BMP, for those who report flows: AS paths and communities beside samples, AS numbers in flow records.
//!
//! The BMP thread keeps the routes (`weir_bmp`); the agent's and the exporter's threads ask here. A route is found by the
//! prefix and the next hop that the forwarding table has, so that the path reported is the one that the packet took. Only
//! the default table is known to BGP here.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use ipnet::IpNet;
use weir_bmp::routes::Segment;
use weir_bmp::{BgpPath, Bmp, BmpSettings, Routes};
use weir_netlink::netns::NetNs;
use weir_nodes::Tables;
use weir_telemetry::agent::{Asked, Gateway, PathSegment, SampledPath};
use weir_telemetry::flows::AsNumbers;
use weir_wire::vlan::Outer;
use weir_wire::{EtherType, Ipv4Header, Ipv6Header};

use crate::control::Control;

/// The routes of BGP, while there is a receiver of BMP.
#[derive(Clone, Debug, Default)]
pub(crate) struct BgpView(Arc<RwLock<Option<Arc<Routes>>>>);

/// Both ends of a packet or flow, as it was routed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoutedEnds {
    pub(crate) ends: (IpAddr, IpAddr),
    /// Bits of the prefixes that cover them.
    pub(crate) prefixes: (u8, u8),
    /// Next hops that may be the route's.
    pub(crate) next_hop: Option<IpAddr>,
}

impl BgpView {
    pub(crate) fn set(&self, routes: Option<Arc<Routes>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = routes;
    }

    fn routes(&self) -> Option<Arc<Routes>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The routes to source and destination.
    fn paths(routes: &Routes, routed: &RoutedEnds) -> (Option<BgpPath>, Option<BgpPath>) {
        let find = |end: IpAddr, bits: u8, next_hop| {
            let prefix = IpNet::new(end, bits).ok()?.trunc();
            routes.find(prefix, next_hop)
        };
        let ((source, destination), (from, to)) = (routed.ends, routed.prefixes);
        (
            find(source, from, None),
            find(destination, to, routed.next_hop),
        )
    }

    /// The AS numbers of a flow.
    pub(crate) fn numbers(&self, routed: &RoutedEnds) -> AsNumbers {
        let Some(routes) = self.routes() else {
            return AsNumbers::default();
        };
        let (source, destination) = BgpView::paths(&routes, routed);
        let (source, destination) = (source.as_ref(), destination.as_ref());
        AsNumbers {
            source: source.map_or(0, BgpPath::origin),
            previous: source.map_or(0, BgpPath::neighbor),
            destination: destination.map_or(0, BgpPath::origin),
            next: destination.map_or(0, BgpPath::neighbor),
        }
    }

    /// The record of a sampled packet; `None` where BGP has a route to neither end.
    pub(crate) fn gateway(
        &self,
        tables: &Tables,
        asked: &Asked<'_>,
        way: &SampledPath,
    ) -> Option<Gateway> {
        let routes = self.routes()?;
        let (hop, is_default) = (way.hop?, tables.interface(way.input)?.table == 0);
        let start = match asked.departure {
            Some((_, leaving)) if asked.start.is_empty() => leaving,
            _ => asked.start,
        };
        let routed = RoutedEnds {
            ends: ends_of(start).filter(|_| is_default)?,
            prefixes: hop.prefixes?,
            next_hop: Some(hop.next),
        };
        let (source, destination) = BgpView::paths(&routes, &routed);
        let local = destination.as_ref().or(source.as_ref())?.local;
        let mut gateway = Gateway {
            local,
            ..Gateway::default()
        };
        if let Some(source) = &source {
            (gateway.source, gateway.source_peer) = (source.origin(), source.peer);
        }
        if let Some(destination) = destination {
            let segment = |segment: &Segment| PathSegment {
                is_set: matches!(segment, Segment::Set(_)),
                numbers: segment.numbers().to_vec(),
            };
            let attributes = &destination.attributes;
            gateway.next_hop = attributes.next_hop.or(Some(hop.next));
            gateway.path = attributes.as_path.iter().map(segment).collect();
            gateway.communities.clone_from(&attributes.communities);
            gateway.local_pref = attributes.local_pref.unwrap_or(0);
        } else {
            gateway.next_hop = Some(hop.next);
        }
        Some(gateway)
    }
}

/// Source and destination of the IP packet in a frame without labels.
fn ends_of(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let tags = Outer::read(frame).ok()?;
    let packet = frame.get(tags.payload_at..)?;
    match tags.ethertype {
        EtherType::IPV4 => {
            let (header, _) = Ipv4Header::read(packet)?;
            Some((
                header.source().to_be_bytes().into(),
                header.destination().to_be_bytes().into(),
            ))
        }
        EtherType::IPV6 => {
            let (header, _) = Ipv6Header::read(packet)?;
            Some((header.source.into(), header.destination.into()))
        }
        _ => None,
    }
}

/// The receiver of BMP, and what it was started with.
#[derive(Default)]
pub(crate) struct BmpSide {
    pub(crate) server: Option<Bmp>,
    settings: Option<(BmpSettings, Option<String>)>,
    pub(crate) view: BgpView,
}

impl BmpSide {
    /// Ends it; what it was started with counts no more.
    pub(crate) fn stop(&mut self) {
        self.view.set(None);
        (self.server, self.settings) = (None, None);
    }

    /// Whether it has to be looked after.
    pub(crate) fn has_ended(&self) -> bool {
        self.server.as_ref().is_some_and(Bmp::has_ended)
    }
}

impl Control {
    /// Listens for BMP where the configuration says so; in no namespace when `None`.
    pub(crate) fn sync_bmp(&mut self, namespace: Option<Option<String>>) -> Result<(), String> {
        let wanted = self.config.linux.bmp.as_ref().zip(namespace);
        let wanted = wanted.map(|(bmp, namespace)| {
            let settings = BmpSettings {
                address: (bmp.address, bmp.port).into(),
                most_paths: bmp.paths as usize,
            };
            (settings, namespace)
        });
        let side = &mut self.linux.bmp;
        if side.server.is_some() && !side.has_ended() && side.settings == wanted {
            return Ok(());
        }
        side.view.set(None);
        side.server = None;
        side.settings.clone_from(&wanted);
        let Some((settings, namespace)) = wanted else {
            return Ok(());
        };
        let namespace = namespace.as_deref().map(NetNs::open_named).transpose();
        let started = namespace.and_then(|namespace| Bmp::start(namespace.as_ref(), settings));
        let server = started.map_err(|error| error.to_string())?;
        side.view.set(Some(server.routes().clone()));
        side.server = Some(server);
        Ok(())
    }
}
