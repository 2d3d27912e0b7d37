//! What a case is played with: tables, frames, and what must come out.
//!
//! A scene begins with three ports that do nothing and with empty tables; a case's `set` changes it. Helpers
//! here are those that several cases need; what only one needs is in that case's file.

use std::net::Ipv4Addr;
use std::sync::Arc;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_buf::Pkt;
use weir_fib::{
    Adjacency, Fib4Writer, Fib6Writer, FibError, Group, NeighborState, NexthopTable, Path,
};
use weir_nodes::{Entry, IcmpLimit, Tables};
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind, Output};
use weir_port::sub_interface::{Encapsulation, SubInterface, SubInterfaces};
use weir_ring::qsbr::Domain;
use weir_wire::{Ipv4Header, MacAddr, build, checksum};

/// Bytes of a frame where nothing else is said.
pub(crate) const FRAME: usize = 64;
/// The router's own address on all ports.
pub(crate) const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// Whom frames come from.
pub(crate) const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Where frames come in.
pub(crate) const IN: u32 = 1;
/// Where they leave.
pub(crate) const OUT: u32 = 2;
/// Another port.
pub(crate) const BESIDE: u32 = 3;

/// Says what is wrong with what came out (second) for what came in (first).
pub(crate) type Check = Box<dyn Fn(&[u8], &[u8]) -> Result<(), String> + Send>;

/// Writes into a frame what is the frame's own; which one it is comes first.
type Own = Box<dyn Fn(usize, &mut [u8]) + Send>;

/// Frames side by side, of any lengths; or one that each is made from when its turn comes.
#[derive(Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
    made: Option<(usize, Own)>,
    /// Whether the last four bytes of each frame are its number, since the router changes the order between classes.
    pub(crate) numbered: bool,
    /// Lengths of frames of which only the beginning is kept, so that reading them leaves the caches to the tables.
    lengths: Vec<usize>,
    /// Reads a frame's number from what came out, where it is not in the last four bytes.
    pub(crate) number: Option<fn(&[u8]) -> usize>,
}

impl Frames {
    /// So many frames as `frame`, in which `own` writes what differs. For cases with so many frames that
    /// reading them would push the tables out of the processor's caches, as no network card does.
    pub(crate) fn made(
        frame: &[u8],
        count: usize,
        own: impl Fn(usize, &mut [u8]) + Send + 'static,
    ) -> Frames {
        Frames {
            bytes: frame.into(),
            made: Some((count, Box::new(own))),
            ..Frames::default()
        }
    }

    /// Adds a frame.
    pub(crate) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// Adds a frame whose last four bytes become its number.
    pub(crate) fn push_numbered(&mut self, frame: &[u8]) {
        let number = self.ends.len() as u32;
        self.numbered = true;
        self.push(&frame[..frame.len() - 4]);
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self.ends.pop();
        self.ends.push(self.bytes.len());
    }

    /// Adds a frame of `length` bytes that begins with `head`. The rest is whatever the buffer held before.
    pub(crate) fn push_head(&mut self, head: &[u8], length: usize) {
        self.push(head);
        self.lengths.push(length);
    }

    /// The number of a frame that came out, which is the `count`th.
    pub(crate) fn number_of(&self, frame: &[u8], count: usize) -> usize {
        if let Some(number) = self.number {
            return number(frame);
        }
        match frame.last_chunk() {
            Some(number) if self.numbered => u32::from_be_bytes(*number) as usize,
            _ => count,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.made
            .as_ref()
            .map_or(self.ends.len(), |(count, _)| *count)
    }

    /// Frame number `n` as it lies here.
    fn stored(&self, n: usize) -> &[u8] {
        let start = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[n]]
    }

    /// Puts frame number `n`, from the beginning again behind the last, into a packet.
    pub(crate) fn fill(&self, n: usize, packet: &mut Pkt) -> bool {
        let n = n % self.len().max(1);
        let Some((_, own)) = &self.made else {
            let length = self.lengths.get(n).copied();
            return packet.fill(self.stored(n))
                && length.is_none_or(|length| packet.set_len(length));
        };
        let filled = packet.fill(&self.bytes);
        own(n, packet.data_mut());
        filled
    }

    /// The same frame by itself.
    pub(crate) fn get(&self, n: usize) -> Vec<u8> {
        let n = n % self.len().max(1);
        let Some((_, own)) = &self.made else {
            return self.stored(n).into();
        };
        let mut frame = self.bytes.clone();
        own(n, &mut frame);
        frame
    }
}

/// What observes packets all the time in a case.
#[derive(Clone, Copy, Default)]
pub(crate) struct Telemetry {
    /// sFlow's sampling rate; 0 for none.
    pub(crate) sampling: u32,
    /// Whether flows are metered.
    pub(crate) metered: bool,
}

/// A router that is not running yet.
pub(crate) struct Scene {
    /// What nodes read; routes and next hops are put in at the end.
    pub(crate) tables: Tables,
    /// What comes in, in this order.
    pub(crate) frames: Frames,
    /// What must become of it.
    pub(crate) check: Check,
    /// The interface that sFlow looks at.
    pub(crate) sampled: u32,
    /// A port whose packets a trace waits for.
    pub(crate) traced: Option<u32>,
    /// IPv4 routes of table 0.
    pub(crate) fib4: Fib4Writer,
    /// IPv6 routes of table 0.
    pub(crate) fib6: Fib6Writer,
    /// Neighbours and groups.
    pub(crate) nexthops: NexthopTable,
    /// Packets of a vector.
    pub(crate) vector: usize,
    /// Ports that receive in turn, a vector each.
    pub(crate) inputs: Vec<u32>,
    /// The port by which a frame must leave, where the check of the frame does not show it.
    pub(crate) egress: Option<fn(&[u8]) -> u32>,
    /// Copies of a frame that must leave.
    pub(crate) copies: fn(&[u8]) -> usize,
    /// Whether the router made a frame itself: an ICMP error or an answer.
    pub(crate) is_originated: fn(&[u8]) -> bool,
    /// Sampling rate and flow meter that belong to the case and are on all the time.
    pub(crate) telemetry: Telemetry,
    /// One in so many prefixes of a full table is enough: 1 when measuring.
    pub(crate) thinned: usize,
    /// The readers of the tables.
    pub(crate) domain: Domain,
}

impl Scene {
    /// Three ports and nothing else.
    pub(crate) fn new(thinned: usize) -> Result<Scene, FibError> {
        let map = weir_nodes::graph(IcmpLimit::default()).drop_map();
        let domain = Domain::new(1);
        let mut scene = Scene {
            tables: Tables {
                interfaces: vec![None],
                ..Tables::default()
            },
            frames: Frames::default(),
            check: Box::new(|_, _| Err("the case has no check".into())),
            sampled: IN,
            traced: None,
            vector: weir_buf::VECTOR,
            inputs: vec![IN],
            egress: None,
            copies: |_| 1,
            is_originated: |_| false,
            telemetry: Telemetry::default(),
            fib4: Fib4Writer::new(&domain)?,
            fib6: Fib6Writer::new(&domain)?,
            nexthops: NexthopTable::new(),
            domain,
            thinned: thinned.max(1),
        };
        for index in [IN, OUT, BESIDE] {
            let entry = Entry::new(port(index), [map.counters()].into());
            scene.tables.interfaces.push(Some(Arc::new(entry)));
        }
        Ok(scene)
    }

    /// Adds a port with this number, which is not in use.
    pub(crate) fn add_port(&mut self, index: u32) {
        let map = weir_nodes::graph(IcmpLimit::default()).drop_map();
        let entry = Entry::new(port(index), [map.counters()].into());
        let interfaces = &mut self.tables.interfaces;
        interfaces.resize(interfaces.len().max(index as usize + 1), None);
        interfaces[index as usize] = Some(Arc::new(entry));
    }

    /// Adds a VLAN sub-interface behind all others; returns its number. It shares the drop counters of its port.
    pub(crate) fn add_vlan(&mut self, parent: u32, vlan: u16, input: Input) -> u32 {
        let index = self.tables.interfaces.len() as u32;
        let encapsulation = Encapsulation {
            service: false,
            outer: vlan,
            inner: None,
            exact: true,
        };
        let interface = Interface {
            input,
            parent: Some(parent),
            output: Output::SubInterface,
            sub_interface: Some(SubInterface::new(parent, encapsulation)),
            can_send: true,
            ..Interface::at_rest(
                index,
                format!("port{parent}.{vlan}").into(),
                Kind::SubInterface,
                OURS,
                Arc::new(InterfaceCounters::new(1)),
            )
        };
        let drops = self.entry(parent).drops.clone();
        let entry = Entry::new(interface, drops);
        self.tables.interfaces.push(Some(Arc::new(entry)));
        let mut here: Vec<(Encapsulation, u32)> = Vec::new();
        for (index, entry) in (0..).zip(&self.tables.interfaces) {
            let sub = entry
                .as_ref()
                .and_then(|entry| entry.interface.sub_interface.as_ref());
            here.extend(
                sub.filter(|sub| sub.parent == parent)
                    .map(|sub| (sub.encapsulation, index)),
            );
        }
        self.interface(parent).sub_interfaces = Some(Arc::new(SubInterfaces::new(&here)));
        index
    }

    /// An interface, to change.
    pub(crate) fn interface(&mut self, index: u32) -> &mut Interface {
        &mut self.entry(index).interface
    }

    /// The same with what it is bound to.
    pub(crate) fn entry(&mut self, index: u32) -> &mut Entry {
        let entry = self
            .tables
            .interfaces
            .get_mut(index as usize)
            .and_then(Option::as_mut)
            .and_then(Arc::get_mut);
        entry.expect("a case names interfaces that it has")
    }

    /// So many static neighbours behind [`OUT`], 02:00:00:00:01:01 and so on; the group of each.
    pub(crate) fn neighbors(&mut self, count: u8) -> Vec<u32> {
        (1..=count)
            .map(|neighbor| self.neighbor(neighbor, OUT))
            .collect()
    }

    /// The group of a static neighbour 02:00:00:00:01:`number` behind a port.
    pub(crate) fn neighbor(&mut self, number: u8, port: u32) -> u32 {
        let address = Ipv4Addr::new(10, 2, 0, number).into();
        let adjacency = Adjacency::neighbor(port, address, 1500, OURS.0);
        adjacency.set_neighbor(NeighborState::Static, [2, 0, 0, 0, 1, number]);
        let adjacency = self.nexthops.add_adjacency(adjacency);
        Group::new([Path::to(adjacency)])
            .and_then(|group| self.nexthops.acquire(group))
            .expect("a group of one path to a neighbour")
    }

    /// The same group as `group`, as whoever adds a route asks for it: one more user.
    pub(crate) fn one_more(&mut self, group: u32) -> u32 {
        let same = self.nexthops.group(group).cloned();
        same.and_then(|same| self.nexthops.acquire(same).ok())
            .unwrap_or(0)
    }

    /// A route of table 0.
    pub(crate) fn route4(&mut self, prefix: Ipv4Net, group: u32) {
        self.fib4.insert(prefix, group).expect("room for a route");
    }

    /// The same for IPv6.
    pub(crate) fn route6(&mut self, prefix: Ipv6Net, group: u32) {
        self.fib6.insert(prefix, group).expect("room for a route");
    }

    /// One more frame: UDP over IPv4 from 10.9.0.0 + `flow`, 64 bytes.
    pub(crate) fn udp4(&mut self, flow: u32, destination: u32) {
        self.udp4_of(FRAME, flow, destination);
    }

    /// The same of another length.
    pub(crate) fn udp4_of(&mut self, length: usize, flow: u32, destination: u32) {
        let mut frame = vec![0; length];
        assert!(
            build::udp4_into(&mut frame, &ends(flow, destination)),
            "a frame has room for its headers"
        );
        self.frames.push(&frame);
    }

    /// Puts routes and next hops in. The same tables again, with the tap on the sampled interface, are second.
    pub(crate) fn tables(&mut self) -> [Tables; 2] {
        self.tables.fib4 = vec![self.fib4.fib().clone()];
        self.tables.fib6 = vec![self.fib6.fib().clone()];
        self.tables.nexthops = self.nexthops.snapshot();
        let (off, mut on) = (self.tables.clone(), self.tables.clone());
        if let Some(Some(entry)) = on.interfaces.get_mut(self.sampled as usize) {
            let mut sampled = Entry::clone(entry);
            sampled.interface.rx_taps = if self.telemetry.metered { 3 } else { 1 };
            *entry = Arc::new(sampled);
        }
        [off, on]
    }
}

/// UDP over IPv4 from 10.9.0.0 + `flow`, 64 bytes.
pub(crate) fn udp4(flow: u32, destination: u32) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    assert!(
        build::udp4_into(&mut frame, &ends(flow, destination)),
        "a frame has room for its headers"
    );
    frame
}

fn ends(flow: u32, destination: u32) -> build::Ends {
    build::Ends {
        destination_mac: OURS,
        source_mac: PEER,
        source: u32::from(Ipv4Addr::new(10, 9, 0, 0)).wrapping_add(flow % (1 << 16)),
        destination,
        source_port: 1000,
        destination_port: 9,
        ..build::Ends::default()
    }
}

/// UDP over IPv4 of one of 2^44 flows, to 10.1.0.0/16, 64 bytes.
pub(crate) fn udp4_flow(flow: u64) -> [u8; FRAME] {
    let ends = build::Ends {
        destination_mac: OURS,
        source_mac: PEER,
        source: 0x0a00_0000 | (flow >> 16 & 0xff_ffff) as u32 | 0x40_0000,
        destination: 0x0a01_0000 | (flow as u32).wrapping_mul(40_503) & 0xffff,
        source_port: flow as u16,
        destination_port: 9 + (flow >> 40) as u16,
        ..build::Ends::default()
    };
    let mut frame = [0; FRAME];
    assert!(
        build::udp4_into(&mut frame, &ends),
        "a frame has room for its headers"
    );
    frame
}

/// UDP over IPv6 from 2001:db8:: + `flow`, 64 bytes.
pub(crate) fn udp6(flow: u32, destination: u128) -> [u8; FRAME] {
    let ends = build::Ends6 {
        destination_mac: OURS,
        source_mac: PEER,
        source: (0x2001_0db8 << 96 | u128::from(flow)).to_be_bytes(),
        destination: destination.to_be_bytes(),
        source_port: 1000,
        destination_port: 9,
        ..build::Ends6::default()
    };
    let mut frame = [0; FRAME];
    assert!(
        build::udp6_into(&mut frame, &ends),
        "a frame has room for its headers"
    );
    frame
}

fn port(index: u32) -> Interface {
    let counters = Arc::new(InterfaceCounters::new(1));
    Interface {
        can_send: true,
        ..Interface::at_rest(
            index,
            format!("port{index}").into(),
            Kind::Port,
            OURS,
            counters,
        )
    }
}

/// Whether an IPv4 packet was sent on, one hop later, to that neighbour of [`Scene::neighbors`].
pub(crate) fn forwarded4(sent: &[u8], got: &[u8], neighbor: u8) -> Result<(), String> {
    let wrong = || format!("not forwarded to neighbour {neighbor} as it should be: {got:02x?}");
    let header = got
        .get(14..)
        .and_then(Ipv4Header::read)
        .map(|(header, _)| header)
        .ok_or_else(wrong)?;
    let right = sent.len() == got.len()
        && got[..6] == [2, 0, 0, 0, 1, neighbor]
        && got[6..12] == OURS.0
        && got[22] == sent[22] - 1
        && checksum::ipv4_header_ok(header)
        && got[26..] == sent[26..]
        && got[12..22] == sent[12..22];
    if right { Ok(()) } else { Err(wrong()) }
}

/// The same for an IPv6 packet.
pub(crate) fn forwarded6(sent: &[u8], got: &[u8], neighbor: u8) -> Result<(), String> {
    let right = sent.len() == got.len()
        && got[..6] == [2, 0, 0, 0, 1, neighbor]
        && got[6..12] == OURS.0
        && got[21] == sent[21] - 1
        && got[22..] == sent[22..]
        && got[12..21] == sent[12..21];
    if right {
        Ok(())
    } else {
        Err(format!(
            "not forwarded to neighbour {neighbor} as it should be: {got:02x?}"
        ))
    }
}
