//! `weir why`: what the router would do with a packet.
//!
//! A packet made to the request runs through a graph of its own, built from the same nodes as those of the workers, over
//! the tables that the workers read. The calling thread does this under the control lock. Nothing leaves and nothing is
//! counted or learnt: the graph has no taps, its worker number has no counters, and access lists, TAPs of Linux and
//! bridge domains are replaced by copies with counters of their own. What the packet met is read off these copies, the
//! trace, and the frames that would have left.

use std::net::IpAddr;
use std::sync::Arc;

use weir_api::{ApiError, ErrorCode, Why, WhyFrame, WhyOutcome, WhyProtocol, WhyRequest, WhyTerm};
use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, Vector};
use weir_graph::{DropReason, Env, TraceRequest, TraceStep, Verdict, VerdictKind};
use weir_nodes::{Filter, FilterCounters, IcmpLimit, Tables, names};
use weir_port::host::Host;
use weir_port::interface::{Input, Interface, Kind, ReversePath};
use weir_ring::spsc;
use weir_wire::{EthernetHeader, MacAddr, build};

use crate::control::Control;
use crate::trace::TraceStore;
use weir_control::Table;

/// Buffers of the packet, its fragments and the router's answers.
const CHUNKS: usize = 512;
/// Steps that are recorded: more than a packet and its fragments take.
const STEPS: usize = 1024;
/// The sender's MAC address, which no device has (locally administered).
const SENDER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;

/// What became of the packet in the graph.
struct Run {
    outcome: WhyOutcome,
    reason: Option<DropReason>,
    frames: Vec<(u32, Vec<u8>)>,
    trace: TraceStore,
}

impl Control {
    /// What would become of a packet.
    pub(crate) fn why(&mut self, request: &WhyRequest) -> Result<Why, ApiError> {
        check(request)?;
        let tables = self.tables_apart();
        let (index, interface_from_route) = self.entrance(request)?;
        let interface = self.tables.interface(index).ok_or_else(gone)?;
        let (port, frame) = self.frame(request, interface)?;
        let run = self.dry_run(&tables, port, &frame)?;
        let table = self.routing_of(interface);
        let longest = |address| {
            let table = table?;
            let found = table.longest_match(address)?;
            Some(self.route_view(table, found))
        };
        let mut steps = run
            .trace
            .show(&self.specs, &self.clock, |it| self.name_of(it));
        let steps = steps.packets.drain(..).next().map(|packet| packet.steps);
        let name = self.name_of(index).unwrap_or_default().to_owned();
        let config = self.config.interfaces.get(&name);
        Ok(Why {
            outcome: run.outcome,
            reason: run.reason.map(|reason| reason.name().to_owned()),
            meaning: run.reason.map(|reason| reason.sentence().to_owned()),
            acl_terms: self.terms_met(&tables),
            urpf: interface.urpf.map(|mode| {
                let mode = match mode {
                    ReversePath::Loose => "loose",
                    ReversePath::Strict => "strict",
                };
                mode.to_owned()
            }),
            source_route: longest(request.source),
            route: longest(request.destination),
            frames: run
                .frames
                .iter()
                .filter_map(|(index, frame)| self.frame_view(*index, frame, request))
                .collect(),
            sampling_rate: config
                .filter(|wanted| wanted.sflow)
                .map(|_| self.sflow.config.rate_of(&name)),
            metered: self.config.ipfix.interfaces.contains_key(&name),
            steps: steps.unwrap_or_default(),
            interface: name,
            interface_from_route,
        })
    }

    /// The interface that receives the packet, and whether the route to its source names it.
    fn entrance(&self, request: &WhyRequest) -> Result<(u32, bool), ApiError> {
        if let Some(name) = &request.interface {
            let known = self.interfaces.keys().map(String::as_str);
            let attached = self
                .interfaces
                .get(name)
                .ok_or_else(|| ApiError::unknown("interface", name, known))?;
            return Ok((attached.index, false));
        }
        let by_route = || {
            let table = self.routing.first()?.as_ref()?;
            let route = self.route_view(table, table.longest_match(request.source)?);
            let name = route.paths.into_iter().find_map(|path| path.interface)?;
            Some(self.interfaces.get(&name)?.index)
        };
        by_route().map(|index| (index, true)).ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotFound,
                format!(
                    "no route to {} leads to an interface, so it is not known where the packet is received",
                    request.source
                ),
                "name the receiving interface",
            )
        })
    }

    /// The table that an interface looks destinations up in.
    fn routing_of(&self, interface: &Interface) -> Option<&Table> {
        self.routing.get(interface.table as usize)?.as_ref()
    }

    /// The port that receives the packet, and the frame as it comes in there.
    fn frame(
        &self,
        request: &WhyRequest,
        interface: &Interface,
    ) -> Result<(u32, Vec<u8>), ApiError> {
        let mut frame = packet(request, interface.mac).ok_or_else(|| {
            bad(
                "the packet cannot be made",
                "ask for one with both addresses of one family",
            )
        })?;
        let mut port = interface;
        if let Some(sub) = &interface.sub_interface {
            let tags = sub.encapsulation;
            if let Some(inner) = tags.inner {
                frame = build::tagged(&frame, inner, 0);
            }
            frame = build::tagged(&frame, tags.outer, 0);
            if tags.service
                && let Some(ethertype) = frame.get_mut(12..14)
            {
                ethertype.copy_from_slice(&[0x88, 0xa8]);
            }
            port = self.tables.interface(sub.parent).ok_or_else(gone)?;
        }
        if port.kind == Kind::Bond {
            let mut ports = self.tables.interfaces.iter().flatten();
            let member = ports.find(|it| {
                matches!(it.interface.input, Input::Member { bond, collects: true } if bond == port.index)
            });
            port = &member.ok_or_else(no_member)?.interface;
        }
        if port.kind != Kind::Port {
            return Err(bad(
                &format!("{} receives no frames by itself", port.name),
                "name a port, a bond, or a sub-interface of one",
            ));
        }
        Ok((port.index, frame))
    }

    /// The tables of the workers with copies of what nodes write to.
    fn tables_apart(&mut self) -> Tables {
        let mut tables = self.tables.clone();
        tables.nexthops = self.nexthops.snapshot();
        let workers = self.workers.len() + 1;
        for entry in tables.interfaces.iter_mut().flatten() {
            let interface = &entry.interface;
            let is_plain = entry.acl_input.is_none()
                && entry.acl_output.is_none()
                && interface.host.is_none()
                && interface.rx_taps | interface.tx_taps == 0;
            if is_plain {
                continue;
            }
            let mut copy = weir_nodes::Entry::clone(entry);
            let filters = [&mut copy.acl_input, &mut copy.acl_output];
            for filter in filters.into_iter().flatten() {
                let counters = FilterCounters::new(workers, filter.list.terms());
                *filter = Filter {
                    list: filter.list.clone(),
                    counters: Arc::new(counters),
                };
            }
            let interface = &mut copy.interface;
            interface.host = interface
                .host
                .as_ref()
                .map(|host| Arc::new(Host::new(host.interface)));
            (interface.rx_taps, interface.tx_taps) = (0, 0);
            *entry = Arc::new(copy);
        }
        for domain in tables.bridges.iter_mut().flatten() {
            let mut copy = weir_nodes::BridgeDomain::clone(domain);
            copy.settings.learn = false;
            *domain = Arc::new(copy.ready());
        }
        tables.drop_taps = 0;
        tables.inner_taps = false;
        tables
    }

    /// Runs the frame through a graph of its own.
    fn dry_run(&self, tables: &Tables, port: u32, frame: &[u8]) -> Result<Run, ApiError> {
        let internal = |error: &dyn std::fmt::Display| {
            ApiError::new(ErrorCode::Internal, error.to_string(), "try again")
        };
        let pool = Pool::new(PoolConfig {
            chunks: CHUNKS,
            hugepages: Hugepages::Off,
        })
        .map_err(|error| internal(&error))?;
        let mut cache = PktCache::new(&pool);
        let (steps_in, mut steps) = spsc::ring(STEPS);
        let (mut events, _unread) = spsc::ring(64);
        let mut graph = weir_nodes::graph(IcmpLimit::default())
            .build(self.workers.len(), steps_in)
            .map_err(|error| internal(&error))?;
        let entry = graph.find(names::ETH_INPUT).unwrap_or(0);
        graph.trace(Some(TraceRequest {
            node: None,
            interface: None,
            count: 1,
        }));
        let mut packet = cache.alloc().ok_or_else(|| internal(&"no buffer"))?;
        if !packet.fill(frame) {
            return Err(bad(
                "the packet does not fit a buffer",
                "ask for a shorter one",
            ));
        }
        let mut vector = Vector::with_capacity(1);
        vector.push(packet);
        let mut env = Env {
            world: tables,
            now: self.clock.now(),
            cache: &mut cache,
            events: &mut events,
            event_sent: false,
        };
        graph.inhale(&mut env, entry, port, &mut vector);
        graph.run(&mut env);
        let mut frames = Vec::new();
        while let Some((interface, mut packets)) = graph.next_leaving() {
            frames.extend(packets.drain().map(|packet| (interface, bytes(&packet))));
        }
        let mut run = Run {
            outcome: WhyOutcome::Received,
            reason: None,
            frames,
            trace: TraceStore::default(),
        };
        while let Some(step) = steps.pop() {
            run.take(tables, step);
        }
        Ok(run)
    }

    /// The terms of access lists that counted the packet.
    fn terms_met(&self, tables: &Tables) -> Vec<WhyTerm> {
        let mut met = Vec::new();
        for (name, attached) in &self.interfaces {
            let Some(entry) = tables.entry(attached.index) else {
                continue;
            };
            let directions = [
                ("input", &entry.acl_input, &attached.bindings.input),
                ("output", &entry.acl_output, &attached.bindings.output),
            ];
            for (direction, filter, binding) in directions {
                let (Some(filter), Some(binding)) = (filter, binding) else {
                    continue;
                };
                for (number, (acl, place, term)) in binding.wording.terms().enumerate() {
                    if filter.counters.of(number).0 > 0 {
                        met.push(WhyTerm {
                            interface: name.clone(),
                            direction: direction.to_owned(),
                            acl: acl.to_owned(),
                            term: place as u32 + 1,
                            action: match term.action {
                                weir_config::TermAction::Permit => "permit".to_owned(),
                                weir_config::TermAction::Deny => "deny".to_owned(),
                            },
                        });
                    }
                }
            }
        }
        // What is received comes before what leaves.
        met.sort_by_key(|term| term.direction == "output");
        met
    }

    fn frame_view(&self, index: u32, frame: &[u8], request: &WhyRequest) -> Option<WhyFrame> {
        let (header, _) = EthernetHeader::read(frame)?;
        let (mut vlans, mut labels, mut at) = (Vec::new(), Vec::new(), ETHERNET - 2);
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        while matches!(word(at), Some(0x8100 | 0x88a8)) {
            vlans.push(word(at + 2)? & 0xfff);
            at += 4;
        }
        if word(at) == Some(0x8847) {
            at += 2;
            loop {
                let entry = u32::from_be_bytes(*frame.get(at..)?.first_chunk()?);
                labels.push(entry >> 12);
                at += 4;
                if entry & 0x100 != 0 {
                    break;
                }
            }
        } else {
            at += 2;
        }
        let source = match frame.get(at)? >> 4 {
            4 => IpAddr::from(*frame.get(at + 12..)?.first_chunk::<4>()?),
            6 => IpAddr::from(*frame.get(at + 8..)?.first_chunk::<16>()?),
            _ => request.source,
        };
        Some(WhyFrame {
            interface: self.name_of(index)?.to_owned(),
            source_mac: header.source.to_string(),
            destination_mac: header.destination.to_string(),
            vlans,
            labels,
            length: frame.len() as u32,
            mtu: self.tables.interface(index).map_or(0, |it| it.mtu),
            originated: source != request.source,
        })
    }
}

impl Run {
    /// Takes in a step of the packet; the last one decides.
    fn take(&mut self, tables: &Tables, step: TraceStep) {
        self.reason = None;
        self.outcome = match Verdict::from_bits(step.verdict).kind() {
            VerdictKind::Drop(reason) => {
                self.reason = Some(reason);
                WhyOutcome::Dropped
            }
            VerdictKind::Hold(_) => WhyOutcome::Held,
            VerdictKind::Consume => WhyOutcome::Received,
            // A TAP of Linux is where the router's host takes it.
            VerdictKind::Out if is_host(tables, step.aux) => WhyOutcome::Received,
            VerdictKind::Out | VerdictKind::To(_) | VerdictKind::Replicate(_) => {
                WhyOutcome::Forwarded
            }
        };
        self.trace.take(0, step);
    }
}

/// Whether an interface is the TAP by which Linux gets packets.
fn is_host(tables: &Tables, interface: u32) -> bool {
    let mut entries = tables.interfaces.iter().flatten();
    entries.any(|entry| {
        let host = entry.interface.host.as_ref();
        host.is_some_and(|host| host.interface == interface)
    })
}

/// The whole frame.
fn bytes(packet: &Pkt) -> Vec<u8> {
    let mut whole = vec![0; packet.total_len()];
    packet.copy_out(0, &mut whole);
    whole
}

/// An untagged frame to the interface.
fn packet(request: &WhyRequest, to: MacAddr) -> Option<Vec<u8>> {
    let mut frame = vec![0; ETHERNET + request.length as usize];
    let made = match (request.source, request.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ends = build::Ends {
                source_mac: SENDER,
                destination_mac: to,
                source: source.into(),
                destination: destination.into(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                ttl: request.ttl,
            };
            let (identifier, sequence) = (request.source_port, request.destination_port);
            let made = match request.protocol {
                WhyProtocol::Udp => build::udp4_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp4_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => build::echo4_into(&mut frame, &ends, 8, identifier, sequence),
            };
            if request.dont_fragment {
                *frame.get_mut(ETHERNET + 6)? |= 0x40;
            } else {
                *frame.get_mut(ETHERNET + 6)? &= !0x40;
            }
            weir_wire::checksum::ipv4_header_set(frame.get_mut(ETHERNET..)?);
            made
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ends = build::Ends6 {
                source_mac: SENDER,
                destination_mac: to,
                source: source.octets(),
                destination: destination.octets(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                hop_limit: request.ttl,
                ..build::Ends6::default()
            };
            let (identifier, sequence) = (request.source_port, request.destination_port);
            match request.protocol {
                WhyProtocol::Udp => build::udp6_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp6_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => {
                    build::echo6_into(&mut frame, &ends, 128, identifier, sequence)
                }
            }
        }
        _ => false,
    };
    made.then_some(frame)
}

fn check(request: &WhyRequest) -> Result<(), ApiError> {
    let (least, most) = WhyRequest::lengths();
    if !(least..=most).contains(&request.length) {
        return Err(bad(
            &format!("a length of {} bytes is out of range", request.length),
            &format!("choose {least} to {most} bytes"),
        ));
    }
    if request.source.is_ipv4() != request.destination.is_ipv4() {
        return Err(bad(
            "source and destination are of different families",
            "give two IPv4 or two IPv6 addresses",
        ));
    }
    Ok(())
}

fn bad(message: &str, help: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message, help)
}

fn gone() -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        "the interface is not there",
        "see `weir show interface`",
    )
}

fn no_member() -> ApiError {
    bad("no member of the bond receives", "see `weir show bond`")
}
