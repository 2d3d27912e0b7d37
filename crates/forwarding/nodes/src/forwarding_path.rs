//! Reconstructs a sampled packet's path from the current tables.
//!
//! Whoever reports single packets (the sFlow agent) has the first bytes of a packet as it came in and, when it left,
//! as it went out. This tells the rest from the tables of the moment: which sub-interfaces took it, the tags on
//! either side, the labels, and the next hop. It runs on the reader's thread; no worker waits for it.
//!
//! Output, tags and labels are what was seen on the wire. The next hop is found by going the way again, with the
//! same hash over the same bytes; when the tables have changed since, so that it would now leave elsewhere or for
//! another station, it is not reported. Nor is it when one of several has to be chosen and what the hash needs lies behind the
//! first bytes: the end of a deep label stack, ports behind long headers.
//!
//! What is switched into a pseudowire goes to the neighbour where one of its paths begins: the one whose labels it has.
//!
//! Of a packet that was seen only as it left, no more is reported of the other side than what its interface determines: the VLAN
//! of a sub-interface, no labels.

use std::net::IpAddr;

use weir_fib::{Adjacency, AdjacencyKind, Labelled};
use weir_port::interface::{Input, Interface};
use weir_wire::mpls::Label;
use weir_wire::vlan::{Outer, TAG_LEN};
use weir_wire::{EtherType, Ipv4Header, Ipv6Header, ipv6, mpls};

use crate::mpls::DEEPEST;
use crate::{Tables, flow_hash_mpls, flow_hash4, flow_hash6};

/// The outermost tag on one side: VLAN and priority, as far as they are known; 0 and 0 without a tag.
pub type OuterTag = (Option<u16>, Option<u8>);

/// A tag of which nothing is known.
const UNKNOWN: OuterTag = (None, None);

/// Entries of a stack that are reported: as many as can be pushed.
const MOST_LABELS: usize = 16;
/// Bytes of both ports.
const PORTS: usize = 4;

/// A label stack as it stood on the wire, outermost entry first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelStack {
    entries: [u32; MOST_LABELS],
    depth: u8,
}

impl LabelStack {
    /// The entries, 32 bits each as in RFC 3032 section 2.1.
    #[must_use]
    pub fn entries(&self) -> &[u32] {
        self.entries.get(..self.depth as usize).unwrap_or(&[])
    }

    /// What can be read of the stack at the start of `bytes`: the header may end before the stack does.
    fn read(mut bytes: &[u8]) -> LabelStack {
        let mut stack = LabelStack::default();
        while let (Some((word, rest)), Some(place)) = (
            bytes.split_first_chunk(),
            stack.entries.get_mut(stack.depth as usize),
        ) {
            *place = u32::from_be_bytes(*word);
            stack.depth += 1;
            if *place & 0x100 != 0 {
                break;
            }
            bytes = rest;
        }
        stack
    }
}

/// How a routed or labelled packet was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The next router or, on a connected link, the destination.
    pub next: IpAddr,
    /// Bits of the route to the source, and of the one to the destination.
    pub prefixes: Option<(u8, u8)>,
}

/// The way of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingPath {
    /// The interface or sub-interface that took it.
    pub input: u32,
    /// The one that it left by; 0 when it did not, or nobody knows.
    pub output: u32,
    /// The outermost tags as it came and as it went, where one of them has a tag or frames are switched.
    pub tags: Option<(OuterTag, OuterTag)>,
    /// The next hop, if it was routed or its label looked up.
    pub hop: Option<Hop>,
    /// Labels that it came with, and that it left with.
    pub labels: (LabelStack, LabelStack),
}

/// A frame's first bytes with what its tags say.
struct Side<'a> {
    start: &'a [u8],
    /// How many bytes of the frame are behind them.
    beyond: usize,
    tags: Outer,
    interface: u32,
}

impl<'a> Side<'a> {
    fn read(tables: &Tables, port: u32, start: &'a [u8]) -> Option<Side<'a>> {
        let tags = Outer::read(start).ok()?;
        Some(Side {
            start,
            beyond: 0,
            tags,
            interface: tables.taker_of(port, &tags),
        })
    }

    fn outer(&self) -> OuterTag {
        let (vlan, priority) = self
            .tags
            .outer
            .map_or((0, 0), |tag| (tag.tag.vlan(), tag.tag.priority()));
        (Some(vlan), Some(priority))
    }

    /// The station that it is for.
    fn destination(&self) -> Option<&'a [u8]> {
        self.start.get(..6)
    }

    fn payload(&self) -> &'a [u8] {
        self.start.get(self.tags.payload_at..).unwrap_or(&[])
    }

    fn labels(&self) -> LabelStack {
        if self.tags.ethertype == EtherType::MPLS {
            LabelStack::read(self.payload())
        } else {
            LabelStack::default()
        }
    }
}

/// Where a packet is led.
struct Path<'a> {
    adjacency: &'a Adjacency,
    /// Its destination, if it has one that can be reported.
    destination: Option<IpAddr>,
    /// Bits of the prefixes that cover its source and its destination.
    prefixes: Option<(u8, u8)>,
}

impl Tables {
    /// The way of a packet that came in by the port `input` with `start` as its first bytes and, when it left,
    /// went out of a port with those first bytes. Without a start, of one that was seen only as it left: then `input` is
    /// the interface or sub-interface that took it, 0 for none.
    #[must_use]
    pub fn way(&self, input: u32, start: &[u8], departure: Option<(u32, &[u8])>) -> ForwardingPath {
        let seen = if start.is_empty() {
            departure.map_or(0, |(_, start)| start.len())
        } else {
            start.len()
        };
        self.way_of(input, start, seen, departure)
    }

    /// The same of a frame of `length` bytes, of which those that were seen may be the first ones only.
    #[must_use]
    pub fn way_of(
        &self,
        input: u32,
        start: &[u8],
        length: usize,
        departure: Option<(u32, &[u8])>,
    ) -> ForwardingPath {
        let left = departure.and_then(|(port, start)| Side::read(self, port, start));
        let output = left
            .as_ref()
            .map_or(departure.map_or(0, |(port, _)| port), |side| side.interface);
        if start.is_empty() {
            let Some(left) = left else {
                return ForwardingPath {
                    input,
                    output,
                    ..ForwardingPath::default()
                };
            };
            return self.way_of_leaving(
                input,
                &Side {
                    beyond: length.saturating_sub(left.start.len()),
                    ..left
                },
            );
        }
        let came = Side::read(self, input, start).map(|side| Side {
            beyond: length.saturating_sub(start.len()),
            ..side
        });
        let mut way = ForwardingPath {
            input: came.as_ref().map_or(input, |side| side.interface),
            output,
            ..ForwardingPath::default()
        };
        let Some(came) = came else { return way };
        let tagged = came.tags.outer.is_some()
            || left.as_ref().is_some_and(|side| side.tags.outer.is_some());
        if tagged || self.switches(way.input) {
            way.tags = Some((came.outer(), left.as_ref().map_or(UNKNOWN, Side::outer)));
        }
        way.labels = (
            came.labels(),
            left.as_ref().map_or_else(LabelStack::default, Side::labels),
        );
        way.hop = left.and_then(|left| self.hop(&came, &left));
        way
    }

    /// The way of a packet that was seen only as it left.
    fn way_of_leaving(&self, input: u32, left: &Side<'_>) -> ForwardingPath {
        let input = if self.is_of_tunnel(input, left) {
            0
        } else {
            input
        };
        // By a member of a bond, untagged: what happens to it is said there.
        let taker = self.bond_or(input);
        let here = self.interface(taker);
        let came = match here {
            Some(Interface {
                sub_interface: Some(sub_interface),
                ..
            }) => (Some(sub_interface.encapsulation.outer), None),
            Some(Interface {
                input: Input::Routed,
                bvi_of: None,
                ..
            }) => (Some(0), Some(0)),
            _ => UNKNOWN,
        };
        let tagged = left.tags.outer.is_some() || came.0.is_some_and(|vlan| vlan != 0);
        ForwardingPath {
            input,
            output: left.interface,
            tags: (tagged || self.switches(taker)).then(|| (came, left.outer())),
            hop: self.hop_of_leaving(taker, left),
            labels: (LabelStack::default(), left.labels()),
        }
    }

    /// Whether a packet is one that a tunnel made of a frame: it leaves in the tunnel's name, and came in by none.
    fn is_of_tunnel(&self, input: u32, left: &Side<'_>) -> bool {
        let Some(tunnel) = self.interface(input).and_then(|it| it.vxlan.as_ref()) else {
            return false;
        };
        let ends = match left.tags.ethertype {
            EtherType::IPV4 => Ipv4Header::read(left.payload()).map(|(header, _)| {
                [header.source(), header.destination()]
                    .map(|address| IpAddr::from(address.to_be_bytes()))
            }),
            EtherType::IPV6 => Ipv6Header::read(left.payload())
                .map(|(header, _)| [header.source, header.destination].map(IpAddr::from)),
            _ => None,
        };
        ends == Some([tunnel.local, tunnel.remote])
    }

    /// Whether frames of an interface are switched, not routed.
    fn switches(&self, interface: u32) -> bool {
        matches!(
            self.interface(interface).map(|it| it.input),
            Some(Input::CrossConnect(_) | Input::Bridge { .. })
        )
    }

    /// The sub-interface that takes a frame of a port, or of the bond that the port belongs to; else the port.
    fn taker_of(&self, port: u32, tags: &Outer) -> u32 {
        self.interface(self.bond_or(port))
            .and_then(|it| it.sub_interfaces.as_ref()?.of(tags))
            .unwrap_or(port)
    }

    /// The bond that a port belongs to; else the port.
    fn bond_or(&self, port: u32) -> u32 {
        match self.interface(port).map(|it| it.input) {
            Some(Input::Member { bond, .. }) => bond,
            _ => port,
        }
    }

    /// The interface whose settings route what comes in: the bond in place of its member, the routed side of a bridge
    /// domain in place of its member.
    fn routing_interface(&self, interface: u32) -> u32 {
        match self.interface(interface).map(|it| it.input) {
            Some(Input::Member { bond, .. }) => bond,
            Some(Input::Bridge { domain, .. }) => {
                let members = self
                    .bridge(domain)
                    .map_or(&[][..], |domain| &domain.members);
                members
                    .iter()
                    .flatten()
                    .find(|member| member.is_bvi)
                    .map_or(interface, |bvi| bvi.interface)
            }
            _ => interface,
        }
    }

    fn hop(&self, came: &Side<'_>, left: &Side<'_>) -> Option<Hop> {
        let interface = self.routing_interface(came.interface);
        // What comes by a bridge's member, untagged or not, has its tags there.
        let tagged = if self.switches(came.interface) {
            came.interface
        } else {
            interface
        };
        let taken = self
            .interface(tagged)?
            .sub_interface
            .map_or(0, |sub_interface| sub_interface.encapsulation.count());
        let here = self.interface(interface)?;
        // What a bridge has for its routed side is addressed to that.
        let is_switched = here.input != Input::Routed
            || here.bvi_of.is_some() && came.destination() != Some(&here.mac.0);
        if is_switched {
            return self.hop_into_pseudowire(came.interface, left);
        }
        if came.tags.payload_at != 14 + taken * TAG_LEN {
            return None;
        }
        self.hop_of(&self.path(here.table, came)?, left)
    }

    /// The next hop of a packet that is known only as it left: what it has under its labels is what was looked up, if these
    /// are the ones that its route has pushed.
    fn hop_of_leaving(&self, input: u32, left: &Side<'_>) -> Option<Hop> {
        // What was routed came from a bridge domain by its routed side.
        let here = self.interface(input)?;
        if here.input != Input::Routed {
            return self.hop_into_pseudowire(input, left);
        }
        let labels = left.labels();
        let payload = left.payload().get(4 * labels.entries().len()..)?;
        let path = self.path_of_ip(here.table, payload, left.beyond > 0)?;
        if pushes(path.adjacency, &labels) {
            self.hop_of(&path, left)
        } else {
            None
        }
    }

    /// The next hop of a frame that was switched into a pseudowire, if all paths whose labels it has lead there.
    fn hop_into_pseudowire(&self, input: u32, left: &Side<'_>) -> Option<Hop> {
        let labels = left.labels();
        if labels.entries().is_empty() {
            return None;
        }
        let (across, domain) = match self.interface(input)?.input {
            Input::CrossConnect(across) => (Some(across), None),
            Input::Bridge { domain, .. } => (None, self.bridge(domain)),
            _ => return None,
        };
        let members = domain
            .map_or(&[][..], |domain| &domain.members)
            .iter()
            .flatten()
            .map(|member| member.interface);
        let pseudowires = across
            .into_iter()
            .chain(members)
            .filter_map(|out| self.interface(out)?.pseudowire.as_ref());
        let ends = pseudowires
            .flat_map(|pseudowire| self.nexthops.buckets(pseudowire.group))
            .filter_map(|&end| self.nexthops.adjacency(end));
        let mut hops = ends
            .filter(|adjacency| pushes(adjacency, &labels))
            .filter_map(|adjacency| {
                self.hop_of(
                    &Path {
                        adjacency,
                        destination: None,
                        prefixes: None,
                    },
                    left,
                )
            });
        let hop = hops.next()?;
        hops.all(|other| other == hop).then_some(hop)
    }

    /// The next hop of a path, if that is how the packet left.
    fn hop_of(&self, path: &Path<'_>, left: &Side<'_>) -> Option<Hop> {
        let adjacency = path.adjacency;
        if self.routing_interface(left.interface) != self.routing_interface(adjacency.interface) {
            return None;
        }
        if adjacency
            .end()
            .rewrite()
            .is_some_and(|station| left.destination() != Some(&station))
        {
            return None;
        }
        let next = match adjacency.kind {
            AdjacencyKind::Neighbor | AdjacencyKind::Labelled => adjacency.end().address,
            AdjacencyKind::Glean => path.destination?,
            _ => return None,
        };
        Some(Hop {
            next,
            prefixes: path.prefixes,
        })
    }

    /// The path of a packet that a table routes.
    fn path(&self, table: u32, came: &Side<'_>) -> Option<Path<'_>> {
        let (l3, cut) = (came.payload(), came.beyond > 0);
        if came.tags.ethertype != EtherType::MPLS {
            let is_ip = matches!(came.tags.ethertype, EtherType::IPV4 | EtherType::IPV6);
            return self.path_of_ip(table, l3, cut).filter(|_| is_ip);
        }
        let (top, below) = mpls::Entry::read(l3)?;
        if matches!(top.label(), Label::EXPLICIT_NULL4 | Label::EXPLICIT_NULL6) {
            return self
                .path_of_ip(table, below, cut)
                .filter(|_| top.is_bottom());
        }
        let mut is_known = true;
        let hash = || {
            let stack = mpls::read_stack(l3, DEEPEST)
                .ok()
                .filter(|stack| !cut || shows_flow(stack));
            is_known = stack.is_some();
            stack.map_or(0, |mut stack| {
                stack.beyond = came.beyond;
                flow_hash_mpls(&stack)
            })
        };
        let number = self
            .nexthops
            .choose(self.lfib.lookup(top.label().0).group(), hash);
        let adjacency = self.nexthops.adjacency(number).filter(|_| is_known)?;
        match adjacency.kind {
            // The label's end: what is under it is looked up in a table.
            AdjacencyKind::Lookup => self
                .path_of_ip(adjacency.interface, below, cut)
                .filter(|_| top.is_bottom()),
            _ => Some(Path {
                adjacency,
                destination: None,
                prefixes: None,
            }),
        }
    }

    /// The path of an IP packet in a table; `cut` when there is more of it than these bytes.
    fn path_of_ip(&self, table: u32, l3: &[u8], cut: bool) -> Option<Path<'_>> {
        let (table, mut is_known) = (table as usize, true);
        let (number, destination, prefixes) = match l3.first()? >> 4 {
            4 => {
                let (header, _) = Ipv4Header::read(l3)?;
                let group = self.fib4.get(table)?.lookup(header.destination());
                let payload = l3.get(header.header_len()..).unwrap_or(&[]);
                let hash = || {
                    is_known = !cut || shows_flow4(l3);
                    flow_hash4(header, payload)
                };
                let number = self.nexthops.choose(group, hash);
                let length = |address| {
                    self.lengths4
                        .get(table)
                        .map(|lengths| lengths.lookup(address) as u8)
                };
                let prefixes = length(header.source()).zip(length(header.destination()));
                (
                    number,
                    IpAddr::from(header.destination().to_be_bytes()),
                    prefixes,
                )
            }
            6 => {
                let (header, _) = Ipv6Header::read(l3)?;
                let group = self
                    .fib6
                    .get(table)?
                    .lookup(u128::from_be_bytes(header.destination));
                let hash = || {
                    is_known = !cut || shows_flow6(l3);
                    flow_hash6(l3)
                };
                let number = self.nexthops.choose(group, hash);
                let length = |address| {
                    self.lengths6
                        .get(table)
                        .map(|lengths| lengths.lookup(u128::from_be_bytes(address)) as u8)
                };
                let prefixes = length(header.source).zip(length(header.destination));
                (number, IpAddr::from(header.destination), prefixes)
            }
            _ => return None,
        };
        let adjacency = self.nexthops.adjacency(number).filter(|_| is_known)?;
        Some(Path {
            adjacency,
            destination: Some(destination),
            prefixes,
        })
    }
}

/// Whether these are the labels that a path pushes.
fn pushes(path: &Adjacency, labels: &LabelStack) -> bool {
    let (left, pushed) = (
        labels.entries(),
        path.labelled().map_or(&[][..], Labelled::entries),
    );
    // An entropy label may be any.
    left.len() == pushed.len()
        && left
            .iter()
            .zip(pushed)
            .all(|(&left, &pushed)| pushed == 0 || left >> 12 == pushed >> 12)
}

/// Whether the first bytes of an IPv4 packet have all that identifies its flow.
fn shows_flow4(packet: &[u8]) -> bool {
    Ipv4Header::read(packet).is_some_and(|(header, _)| packet.len() >= header.header_len() + PORTS)
}

/// Likewise of IPv6: a flow label stands for what is behind the extension headers.
fn shows_flow6(packet: &[u8]) -> bool {
    let ports = || {
        ipv6::walk(packet, ipv6::MAX_HEADERS, ipv6::MAX_BYTES)
            .is_ok_and(|chain| packet.len() >= chain.offset + PORTS)
    };
    Ipv6Header::read(packet).is_some_and(|(header, _)| header.flow_label() != 0 || ports())
}

/// Likewise of what is under a label stack, which is hashed where it is IP.
fn shows_flow(stack: &mpls::Stack<'_>) -> bool {
    stack.entropy.is_some()
        || stack.payload.first().is_some_and(|first| match first >> 4 {
            4 => shows_flow4(stack.payload),
            6 => shows_flow6(stack.payload),
            _ => true,
        })
}
