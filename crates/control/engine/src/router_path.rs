//! The router's own forwarding as a path for datagrams to collectors ([`weir_telemetry::router_path`]).
//!
//! The threads of the sFlow agent and of the IPFIX exporter put packets into a bounded ring; the first worker takes them out at each turn
//! and enters them at ip4-lookup or ip6-lookup, in the table that was asked for. From there on they are packets that the
//! router originated: counted so, traced, and dropped with a reason where they cannot go on; neighbours are resolved as
//! for all others. Routes and own addresses are read from the tables that workers read, so that no change waits for a sender.
//!
//! Runs on the senders' threads. It does not fragment what is longer than a buffer, and has no streams (TCP, TLS).

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weir_buf::{Flags, Pkt};
use weir_fib::AdjacencyKind;
use weir_nodes::Tables;
use weir_port::interface::{Interface, Kind};
use weir_ring::qsbr::{Published, Reader};
use weir_ring::spsc::{Consumer, Producer, ring};
use weir_telemetry::router_path::{RoutedDatagram, RouterPath, RouterPathRef};
use weir_wire::{EthernetHeader, Ipv4Header, Ipv6Header, UdpHeader, build, checksum};

use crate::memory::Memory;
use crate::waker::Waker;

/// Datagrams that wait for the worker at most.
const WAITING: usize = 512;
/// Hops that a datagram may go.
const HOPS: u8 = 64;

/// The senders' end.
pub(crate) struct RouterEgress {
    /// The senders' own view of the tables; nobody else locks it.
    reader: Mutex<Reader>,
    published: Arc<Published<Tables>>,
    memory: Memory,
    ring: Mutex<Producer<Pkt>>,
    waker: Arc<Waker>,
    /// Places of tables by name; the default one has place 0.
    places: RwLock<BTreeMap<String, u32>>,
}

/// As the configuration of a collector has it.
pub(crate) fn router_path(egress: &Option<Arc<RouterEgress>>) -> RouterPathRef {
    RouterPathRef(egress.clone().map(|egress| egress as Arc<dyn RouterPath>))
}

/// A route to a collector: the table's place, the interface, and the address to send from.
struct Found {
    place: u32,
    interface: u32,
    source: IpAddr,
}

impl RouterEgress {
    /// The senders' end, and the worker's.
    pub(crate) fn new(
        reader: Reader,
        published: Arc<Published<Tables>>,
        memory: Memory,
        waker: Arc<Waker>,
    ) -> (Arc<RouterEgress>, Consumer<Pkt>) {
        let (producer, consumer) = ring(WAITING);
        let egress = RouterEgress {
            reader: Mutex::new(reader),
            published,
            memory,
            ring: Mutex::new(producer),
            waker,
            places: RwLock::default(),
        };
        (Arc::new(egress), consumer)
    }

    /// Tables have these places now.
    pub(crate) fn set_tables(&self, places: BTreeMap<String, u32>) {
        *self.places.write().unwrap_or_else(PoisonError::into_inner) = places;
    }

    fn place(&self, table: Option<&str>) -> Option<u32> {
        match table {
            None => Some(0),
            Some(weir_config::DEFAULT_TABLE) => Some(0),
            Some(name) => {
                let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
                places.get(name).copied()
            }
        }
    }

    /// Where a datagram would leave, by the tables of this moment.
    fn find(
        &self,
        table: Option<&str>,
        wanted: Option<IpAddr>,
        destination: IpAddr,
    ) -> std::result::Result<Found, String> {
        let name = table.unwrap_or(weir_config::DEFAULT_TABLE);
        let place = self
            .place(table)
            .ok_or_else(|| format!("the router has no table {name}"))?;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.quiesce();
        let found = match reader.guard() {
            None => Err("the router's tables cannot be read".to_owned()),
            Some(guard) => {
                let tables = self.published.load(&guard);
                let interface = exit(tables, place, destination)
                    .ok_or_else(|| format!("no route to {destination} in table {name}"));
                interface.and_then(|interface| {
                    let source = source(tables, place, interface, wanted, destination);
                    let source = source.ok_or_else(|| match wanted {
                        Some(wanted) => {
                            format!("{wanted} is no address of the router in table {name}")
                        }
                        None => format!("the router has no address in table {name} to send from"),
                    })?;
                    Ok(Found {
                        place,
                        interface,
                        source,
                    })
                })
            }
        };
        // Tables are replaced without waiting for the senders, which may now rest.
        reader.offline();
        found
    }

    /// The packet of a datagram.
    fn packet(&self, found: &Found, datagram: &RoutedDatagram<'_>) -> Result<Pkt> {
        let from = SocketAddr::new(found.source, datagram.source.port());
        let (to, payload) = (datagram.destination, datagram.payload);
        let headers = EthernetHeader::LEN
            + UdpHeader::LEN
            + if to.is_ipv4() {
                Ipv4Header::LEN
            } else {
                Ipv6Header::LEN
            };
        let mut packet =
            self.memory.any().alloc().ok_or_else(|| {
                Error::new(ErrorKind::WouldBlock, "the router has no free buffer")
            })?;
        if !packet.set_len(headers + payload.len()) {
            let length = payload.len();
            return Err(Error::other(format!(
                "a datagram of {length} bytes does not fit a buffer"
            )));
        }
        let frame = packet.data_mut();
        if let Some(place) = frame.get_mut(headers..) {
            place.copy_from_slice(payload);
        }
        if !write(frame, from, to, datagram.dscp) {
            return Err(Error::other(
                "source and collector are of different IP versions",
            ));
        }
        packet.set_interface(found.interface);
        packet.set_l3_offset(EthernetHeader::LEN);
        packet.meta_mut().table = found.place;
        packet.set_flags(Flags::ORIGINATED.with(Flags::TABLED));
        Ok(packet)
    }
}

impl RouterPath for RouterEgress {
    fn source(
        &self,
        table: Option<&str>,
        wanted: Option<IpAddr>,
        destination: IpAddr,
    ) -> std::result::Result<IpAddr, String> {
        self.find(table, wanted, destination)
            .map(|found| found.source)
    }

    fn send(&self, datagram: &RoutedDatagram<'_>) -> Result<()> {
        let (table, destination) = (datagram.table, datagram.destination.ip());
        let found = self
            .find(table, Some(datagram.source.ip()), destination)
            .map_err(Error::other)?;
        let packet = self.packet(&found, datagram)?;
        let pushed = self
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(packet);
        if pushed.is_err() {
            let text = format!("{WAITING} datagrams wait for the router to forward them");
            return Err(Error::new(ErrorKind::WouldBlock, text));
        }
        self.waker.wake();
        Ok(())
    }
}

/// Headers around the payload; `false` when the addresses are of different versions.
fn write(frame: &mut [u8], from: SocketAddr, to: SocketAddr, dscp: u8) -> bool {
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let ends = build::Ends {
                source: (*from.ip()).into(),
                destination: (*to.ip()).into(),
                source_port: from.port(),
                destination_port: to.port(),
                ttl: HOPS,
                ..build::Ends::default()
            };
            let is_written = build::udp4_into(frame, &ends);
            // The upper six bits of the octet (RFC 2474 section 3).
            if let Some(header) = frame.get_mut(EthernetHeader::LEN..).filter(|_| dscp != 0) {
                if let Some(class) = header.get_mut(1) {
                    *class = dscp << 2;
                }
                checksum::ipv4_header_set(header);
            }
            is_written
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let ends = build::Ends6 {
                source: from.ip().octets(),
                destination: to.ip().octets(),
                source_port: from.port(),
                destination_port: to.port(),
                hop_limit: HOPS,
                ..build::Ends6::default()
            };
            let is_written = build::udp6_into(frame, &ends);
            // The traffic class lies across the first two octets (RFC 8200 section 3).
            let class = dscp << 2;
            if let Some([first, second, ..]) = frame.get_mut(EthernetHeader::LEN..) {
                *first = *first & 0xf0 | class >> 4;
                *second = *second & 0x0f | class << 4;
            }
            is_written
        }
        _ => false,
    }
}

/// The interface by which a table routes to an address; `None` where it is the router's own, or goes nowhere.
fn exit(tables: &Tables, place: u32, destination: IpAddr) -> Option<u32> {
    let group = match destination {
        IpAddr::V4(address) => tables.fib4.get(place as usize)?.lookup(address.into()),
        IpAddr::V6(address) => tables.fib6.get(place as usize)?.lookup(address.into()),
    };
    let number = tables.nexthops.choose(group, || 0);
    let adjacency = tables.nexthops.adjacency(number)?;
    match adjacency.kind {
        AdjacencyKind::Neighbor | AdjacencyKind::Glean | AdjacencyKind::Labelled => {
            Some(adjacency.interface)
        }
        _ => None,
    }
}

/// The address to send from: the one that is wanted, if it is the router's own there; else of the interface that
/// the datagram leaves by, of a loopback, or any of the table.
fn source(
    tables: &Tables,
    place: u32,
    exit: u32,
    wanted: Option<IpAddr>,
    destination: IpAddr,
) -> Option<IpAddr> {
    let of_table = || {
        let all = tables.interfaces.iter().flatten();
        all.map(|entry| &entry.interface)
            .filter(|interface| interface.table == place)
    };
    let addresses = |interface: &Interface| -> Vec<IpAddr> {
        match destination {
            IpAddr::V4(_) => interface
                .addresses
                .iter()
                .map(|(address, _)| IpAddr::from(address.to_be_bytes()))
                .collect(),
            IpAddr::V6(_) => interface
                .addresses6
                .iter()
                .map(|(address, _)| IpAddr::from(address.to_be_bytes()))
                .filter(|address| !weir_config::is_link_local(*address))
                .collect(),
        }
    };
    if let Some(wanted) = wanted {
        return of_table()
            .any(|interface| addresses(interface).contains(&wanted))
            .then_some(wanted);
    }
    let here = tables.interface(exit).filter(|it| it.table == place);
    let first = |interface: &Interface| addresses(interface).first().copied();
    here.and_then(first)
        .or_else(|| {
            of_table()
                .filter(|it| it.kind == Kind::Loopback)
                .find_map(first)
        })
        .or_else(|| of_table().find_map(first))
}
