//! Reconstructs a flow's path from the current tables and its addresses, protocol and ports.
//!
//! The flow meter's records leave the workers with interfaces only. Whoever exports them asks here for the rest, from the
//! tables of that moment: the table that routed the flow, the prefixes that cover its ends, and the next hop, found with the
//! same hash as its packets. A next hop is reported only if it lies behind the interface by which the flow left: when routes
//! have changed since, and when what the hash needs is not known, it is not. A labelled packet goes by its label: where that
//! leads to a table, by its destination in that one.
//!
//! Of several next hops of a label, the one that packets of the flow took is reported: all inputs of their hash are in the record
//! when they are IPv4 under their last label. Else it is not: the labels below the first one are those of the flow's first packet
//! only, and so is an entropy label among them; an IPv6 flow label has no place beside a stack. (A packet that lies about its
//! length is hashed as no IP is; in a record it is like the others of its flow.)

use std::net::IpAddr;

use weir_fib::AdjacencyKind;
use weir_port::interface::Input;
use weir_wire::mpls::{Label, read_stack};
use weir_wire::vlan::{Outer, tag_bytes};
use weir_wire::{EtherType, Ipv4Header};

use crate::{Tables, flow_hash_mpls, flow_hash4, flow_hash6};

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnds {
    /// The interface at which it was seen, coming in or leaving.
    pub seen_at: u32,
    /// The one by which it left; 0 if it did not, or nobody knows.
    pub output: u32,
    /// Its VLANs there, outer and inner; 0 without.
    pub vlans: (u16, u16),
    /// The label that it came with, if any: 20 bits of the label, 3 of class, 1 for the last one.
    pub top: Option<u32>,
    /// Source and destination of an IP flow, of one family.
    pub ends: Option<(IpAddr, IpAddr)>,
    /// Protocol.
    pub protocol: u8,
    /// Source and destination port; `None` when they are not known, and so its path among several.
    pub ports: Option<(u16, u16)>,
    /// Flow label of IPv6; `None` when it is not known, and so its path among several.
    pub label: Option<u32>,
}

/// Where it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPath {
    /// The table that routed it.
    pub table: u32,
    /// Bits of the prefixes that cover its source and its destination.
    pub prefixes: Option<(u8, u8)>,
    /// The next router or, on a connected link, the destination.
    pub next: Option<IpAddr>,
    /// With that the group of its route, and the adjacency that it took of it.
    pub path: Option<(u32, u32)>,
}

impl Tables {
    /// Where a flow went.
    #[must_use]
    pub fn way_of_flow(&self, flow: &FlowEnds) -> FlowPath {
        let Some(here) = self.interface(self.taker(flow)) else {
            return FlowPath::default();
        };
        let way = FlowPath {
            table: here.table,
            ..FlowPath::default()
        };
        let Some((source, destination)) = flow.ends.filter(|_| here.input == Input::Routed) else {
            return way;
        };
        match flow.top.map_or(Below::Table(here.table), |top| {
            self.below(flow, top, here.table)
        }) {
            Below::Table(table) => self.routed(flow, table, (source, destination), way),
            Below::Path(number) => FlowPath {
                next: self.next_hop(number, flow).filter(|_| flow.output != 0),
                ..way
            },
            Below::Unknown => way,
        }
    }

    /// Where a labelled packet goes by its top label alone.
    fn below(&self, flow: &FlowEnds, top: u32, table: u32) -> Below {
        let (label, is_last) = (top >> 4, top & 1 != 0);
        if matches!(Label(label), Label::EXPLICIT_NULL4 | Label::EXPLICIT_NULL6) {
            return if is_last {
                Below::Table(table)
            } else {
                Below::Unknown
            };
        }
        let mut is_known = true;
        let hash = || hash_under(flow, top).unwrap_or_else(|| unknown(&mut is_known));
        let number = self.nexthops.choose(self.lfib.lookup(label).group(), hash);
        let adjacency = self.nexthops.adjacency(number).filter(|_| is_known);
        match adjacency.map(|adjacency| (adjacency.kind, adjacency.interface)) {
            Some((AdjacencyKind::Lookup, table)) if is_last => Below::Table(table),
            Some((AdjacencyKind::Neighbor | AdjacencyKind::Labelled, _)) => Below::Path(number),
            _ => Below::Unknown,
        }
    }

    /// Where it went by its destination, looked up in a table.
    fn routed(
        &self,
        flow: &FlowEnds,
        table: u32,
        ends: (IpAddr, IpAddr),
        mut way: FlowPath,
    ) -> FlowPath {
        let (table, mut is_known) = (table as usize, true);
        let (group, number) = match ends {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let length = |address: u32| {
                    self.lengths4
                        .get(table)
                        .map(|lengths| lengths.lookup(address) as u8)
                };
                way.prefixes = length(source.into()).zip(length(destination.into()));
                let group = self
                    .fib4
                    .get(table)
                    .map_or(0, |fib| fib.lookup(destination.into()));
                let hash = || {
                    hash4(flow, source.octets(), destination.octets())
                        .unwrap_or_else(|| unknown(&mut is_known))
                };
                (group, self.nexthops.choose(group, hash))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let length = |address: u128| {
                    self.lengths6
                        .get(table)
                        .map(|lengths| lengths.lookup(address) as u8)
                };
                way.prefixes = length(source.into()).zip(length(destination.into()));
                let group = self
                    .fib6
                    .get(table)
                    .map_or(0, |fib| fib.lookup(destination.into()));
                let hash = || {
                    hash6(flow, source.octets(), destination.octets())
                        .unwrap_or_else(|| unknown(&mut is_known))
                };
                (group, self.nexthops.choose(group, hash))
            }
            _ => return way,
        };
        if is_known && flow.output != 0 {
            way.next = self.next_hop(number, flow);
            way.path = way.next.map(|_| (group, number));
        }
        way
    }

    fn next_hop(&self, adjacency: u32, flow: &FlowEnds) -> Option<IpAddr> {
        let adjacency = self.nexthops.adjacency(adjacency)?;
        if !self.is_behind(adjacency.interface, flow.output) {
            return None;
        }
        match adjacency.kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled => Some(adjacency.end().address),
            AdjacencyKind::Glean => flow.ends.map(|(_, destination)| destination),
            _ => None,
        }
    }

    /// Whether what leaves by `interface` leaves by `port`: itself, the parent of a sub-interface, a bond's member.
    fn is_behind(&self, mut interface: u32, port: u32) -> bool {
        for _ in 0..4 {
            if interface == port
                || matches!(self.interface(port).map(|it| it.input), Some(Input::Member { bond, .. }) if bond == interface)
            {
                return true;
            }
            match self.interface(interface).and_then(|it| it.sub_interface) {
                Some(sub_interface) => interface = sub_interface.parent,
                None => return false,
            }
        }
        false
    }

    /// The interface whose settings routed it, the other side of the router taken to be in the same table: the sub-interface
    /// that takes its tags, the bond in place of its member.
    fn taker(&self, flow: &FlowEnds) -> u32 {
        let parent = match self.interface(flow.seen_at).map(|it| it.input) {
            Some(Input::Member { bond, .. }) => bond,
            _ => flow.seen_at,
        };
        let Some(sub_interfaces) = self
            .interface(parent)
            .and_then(|it| it.sub_interfaces.as_ref())
        else {
            return parent;
        };
        // The EtherType of the outer tag is not recorded.
        let of = |announced: EtherType| {
            let mut frame = [0; 22];
            frame[12..16].copy_from_slice(&tag_bytes(announced, flow.vlans.0));
            frame[16..20].copy_from_slice(&tag_bytes(EtherType::VLAN, flow.vlans.1));
            let length = if flow.vlans.1 == 0 { 18 } else { 22 };
            if flow.vlans.1 == 0 {
                frame[16..20].fill(0);
            }
            sub_interfaces.of(&Outer::read(frame.get(..length)?).ok()?)
        };
        match flow.vlans.0 {
            0 => parent,
            _ => of(EtherType::VLAN)
                .or_else(|| of(EtherType::QINQ))
                .unwrap_or(parent),
        }
    }
}

/// What a labelled packet goes by.
enum Below {
    /// Its destination, looked up in this table.
    Table(u32),
    /// This adjacency.
    Path(u32),
    /// What is under its top label, or a hash of it.
    Unknown,
}

fn unknown(is_known: &mut bool) -> u32 {
    *is_known = false;
    0
}

/// The hash of its packets, of a header made of what is known.
fn hash4(flow: &FlowEnds, source: [u8; 4], destination: [u8; 4]) -> Option<u32> {
    let packet = packet4(flow, source, destination)?;
    let (header, ports) = Ipv4Header::read(&packet)?;
    Some(flow_hash4(header, ports))
}

/// The same under a label, if that is the last one.
fn hash_under(flow: &FlowEnds, top: u32) -> Option<u32> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = flow.ends? else {
        return None;
    };
    let mut packet = [0; 28];
    packet[..4].copy_from_slice(&(top << 8).to_be_bytes());
    packet[4..].copy_from_slice(&packet4(flow, source.octets(), destination.octets())?);
    Some(flow_hash_mpls(&read_stack(&packet, 1).ok()?))
}

/// Header and ports.
fn packet4(flow: &FlowEnds, source: [u8; 4], destination: [u8; 4]) -> Option<[u8; 24]> {
    let mut packet = [0; 24];
    (packet[0], packet[3], packet[9]) = (0x45, 24, flow.protocol);
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&destination);
    packet[20..].copy_from_slice(&ports(flow)?);
    Some(packet)
}

fn hash6(flow: &FlowEnds, source: [u8; 16], destination: [u8; 16]) -> Option<u32> {
    let mut packet = [0; 44];
    packet[..4].copy_from_slice(&(6 << 28 | flow.label? & 0x000f_ffff).to_be_bytes());
    (packet[5], packet[6], packet[7]) = (4, flow.protocol, 64);
    packet[8..24].copy_from_slice(&source);
    packet[24..40].copy_from_slice(&destination);
    packet[40..].copy_from_slice(&ports(flow)?);
    Some(flow_hash6(&packet))
}

fn ports(flow: &FlowEnds) -> Option<[u8; 4]> {
    let (source, destination) = flow.ports?;
    Some((u32::from(source) << 16 | u32::from(destination)).to_be_bytes())
}
