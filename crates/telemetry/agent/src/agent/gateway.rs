//! What BGP knows of a packet's route, as sFlow's extended gateway (0:1003) tells it.

use std::net::IpAddr;

use weir_flowfmt::sflow::DataFormat;
use weir_flowfmt::sflow::records::flow_record;
use weir_flowfmt::sflow::structure::{Structure, Value};

/// AS numbers and communities that a record has at most, so that a sample fits its datagram.
const MOST: usize = 64;

/// A part of an AS path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSegment {
    /// Whether its numbers have no order (AS_SET).
    pub is_set: bool,
    /// AS numbers, the nearest first.
    pub numbers: Vec<u32>,
}

/// The AS numbers around a packet, and its route's attributes. Numbers that are not known are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// The next hop that BGP announced.
    pub next_hop: Option<IpAddr>,
    /// This router's AS.
    pub local: u32,
    /// The AS that the source is in, and the peer that packets from there come by.
    pub source: u32,
    /// That peer.
    pub source_peer: u32,
    /// The path to the destination.
    pub path: Vec<PathSegment>,
    /// The route's communities (RFC 1997).
    pub communities: Vec<u32>,
    /// Its local preference.
    pub local_pref: u32,
}

/// The same as it is on the wire.
pub(super) struct GatewayRecord {
    gateway: Gateway,
    segments: (u32, Vec<u8>),
    communities: Vec<u8>,
}

impl GatewayRecord {
    pub(super) fn new(gateway: Gateway) -> GatewayRecord {
        let (mut count, mut left, mut octets) = (0, MOST, Vec::new());
        for segment in &gateway.path {
            let numbers = segment.numbers.get(..left.min(segment.numbers.len()));
            let numbers = numbers.unwrap_or_default();
            if numbers.is_empty() {
                continue;
            }
            left -= numbers.len();
            count += 1;
            // AS_SET is 1, AS_SEQUENCE 2.
            let kind: u32 = if segment.is_set { 1 } else { 2 };
            octets.extend(kind.to_be_bytes());
            octets.extend((numbers.len() as u32).to_be_bytes());
            octets.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        }
        let communities = gateway.communities.iter().take(MOST);
        let communities = communities.flat_map(|it| it.to_be_bytes()).collect();
        GatewayRecord {
            gateway,
            segments: (count, octets),
            communities,
        }
    }

    /// The record's structure and values.
    pub(super) fn values(&self) -> Option<(&'static Structure, [Value<'_>; 7])> {
        let it = &self.gateway;
        let structure = flow_record(DataFormat {
            enterprise: 0,
            format: 1003,
        })?;
        let values = [
            Value::Address(it.next_hop),
            Value::U32(it.local),
            Value::U32(it.source),
            Value::U32(it.source_peer),
            Value::List(self.segments.0, &self.segments.1),
            Value::Words(&self.communities),
            Value::U32(it.local_pref),
        ];
        Some((structure, values))
    }
}
