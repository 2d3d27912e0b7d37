//! A dry run: a packet through a graph of its own, built from the same nodes as those of the workers, over the tables that
//! the workers read.
//!
//! The calling thread does this under the control lock, for `weir why` and for traces. Nothing leaves and nothing is
//! counted or learnt: the graph has no taps, its worker number has no counters, and access lists, policers, TAPs of Linux and
//! bridge domains are replaced by copies with counters of their own. Only a neighbor is noted as in use, as by any packet. Each node does its own step only, so that each is seen.

use std::net::IpAddr;
use std::sync::Arc;

use weir_api::{ApiError, ErrorCode, WhyOutcome, WhyTerm};
use weir_buf::{DATA_ROOM, Hugepages, Pkt, PktCache, Pool, PoolConfig, Vector};
use weir_fib::AdjacencyKind;
use weir_graph::{DropReason, Env, TraceRequest, TraceStep, Verdict, VerdictKind};
use weir_nodes::{Filter, FilterCounters, IcmpLimit, Tables, names};
use weir_port::host::Host;
use weir_port::interface::{Kind, ReversePath};
use weir_ring::spsc;
use weir_wire::{Ipv4Header, Ipv6Header};

use crate::control::Control;

/// Buffers of the packet, its fragments and the router's answers.
const CHUNKS: usize = 512;
/// Steps that are recorded: more than a packet and its fragments take.
const STEPS: usize = 1024;
/// What became of the packet in the graph.
pub(crate) struct Run {
    pub(crate) outcome: WhyOutcome,
    pub(crate) reason: Option<DropReason>,
    /// The frames that would have left, with their interfaces.
    pub(crate) frames: Vec<(u32, Vec<u8>)>,
    /// The packet at each node.
    steps: Vec<TraceStep>,
}

/// A step with what it was decided by.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) verdict: Verdict,
    /// The interface that the packet leaves by, if the verdict is that it leaves.
    pub(crate) interface: u32,
    pub(crate) view: weir_api::TraceStep,
}

impl Decided {
    /// Whether both have the same verdict.
    pub(crate) fn is_as(&self, other: &Decided) -> bool {
        self.view.verdict == other.view.verdict
            && (self.verdict != Verdict::OUT || self.interface == other.interface)
    }
}

impl Control {
    /// The tables of the workers with copies of what nodes write to.
    pub(crate) fn tables_apart(&mut self) -> Tables {
        let mut tables = self.tables.clone();
        tables.nexthops = self.nexthops.snapshot();
        let workers = self.workers.len() + 1;
        for entry in tables.interfaces.iter_mut().flatten() {
            let interface = &entry.interface;
            let is_plain = entry.acl_input.is_none()
                && entry.acl_output.is_none()
                && entry.policers.is_empty()
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
            copy.policers = copy.policers.copies();
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
    pub(crate) fn dry_run(
        &self,
        tables: &Tables,
        port: u32,
        frame: &[u8],
    ) -> Result<Run, ApiError> {
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
        graph.set_one_step();
        graph.trace(Some(TraceRequest {
            node: None,
            interface: None,
            received: true,
            count: 1,
        }));
        let packet = packet(&mut cache, frame).ok_or_else(|| internal(&"no buffers"))?;
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
            steps: Vec::new(),
        };
        while let Some(step) = steps.pop() {
            run.take(tables, step);
        }
        Ok(run)
    }

    /// The terms of access lists that counted the packet.
    pub(crate) fn terms_met(&self, tables: &Tables) -> Vec<WhyTerm> {
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
                            term: place as u32,
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

    /// What the nodes would decide of a recorded packet, if it is as it came in by a port.
    pub(crate) fn decide(&mut self, entered: &TraceStep) -> Option<Vec<Decided>> {
        let first = self.specs.get(entered.node as usize)?;
        let port = self.tables.interface(entered.interface)?;
        if first.name != names::ETH_INPUT || port.kind != Kind::Port {
            return None;
        }
        let mut frame = entered.bytes.get(..entered.kept as usize)?.to_vec();
        frame.resize(entered.len as usize, 0);
        let tables = self.tables_apart();
        let run = self.dry_run(&tables, entered.interface, &frame).ok()?;
        Some(self.decisions(&run, &self.terms_met(&tables)))
    }

    /// The steps of a dry run with what each was decided by.
    pub(crate) fn decisions(&self, run: &Run, terms: &[WhyTerm]) -> Vec<Decided> {
        let before = std::iter::once(None).chain(run.steps.iter().map(Some));
        run.steps
            .iter()
            .zip(before)
            .map(|(step, before)| {
                let mut view = self.step_view(step);
                let decision = self.decision(&view.node, step, before, terms);
                view.decision = view.decision.or(decision);
                Decided {
                    verdict: Verdict::from_bits(step.verdict),
                    interface: step.aux,
                    view,
                }
            })
            .collect()
    }

    fn decision(
        &self,
        node: &str,
        step: &TraceStep,
        before: Option<&TraceStep>,
        terms: &[WhyTerm],
    ) -> Option<String> {
        match node {
            "ip4-lookup" | "ip6-lookup" => self.route_of(step),
            "mpls-lookup" => {
                let before = before.unwrap_or(step);
                let entry = before.bytes.get(before.l3 as usize..)?.first_chunk()?;
                Some(format!("label {}", u32::from_be_bytes(*entry) >> 12))
            }
            "acl-input" | "acl-output" => {
                let direction = node.trim_start_matches("acl-");
                let term = terms.iter().find(|term| term.direction == direction)?;
                let action = &term.action;
                Some(format!("term {} of {}: {action}", term.term, term.acl))
            }
            "ip4-urpf" | "ip6-urpf" => {
                let mode = self.tables.interface(step.interface)?.urpf?;
                let mode = match mode {
                    ReversePath::Loose => "loose",
                    ReversePath::Strict => "strict",
                };
                Some(format!("{mode} mode"))
            }
            _ => None,
        }
    }

    /// The route of a packet's destination, and the adjacency that was chosen.
    fn route_of(&self, step: &TraceStep) -> Option<String> {
        let l3 = step.bytes.get(step.l3 as usize..step.kept as usize)?;
        let destination = match l3.first()? >> 4 {
            4 => IpAddr::V4(Ipv4Header::read(l3)?.0.destination_addr()),
            _ => IpAddr::V6(Ipv6Header::read(l3)?.0.destination_addr()),
        };
        let number = self.tables.interface(step.interface)?.table;
        let table = self.routing.get(number as usize)?.as_ref()?;
        let Some(found) = table.longest_match(destination) else {
            return Some(format!("no route to {destination}"));
        };
        let mut text = format!("route {}", found.prefix);
        if let Some(vrf) = &table.name {
            text += &format!(" of {vrf}");
        }
        let end = self.tables.nexthops.view().adjacency(step.aux);
        let leads_on = matches!(Verdict::from_bits(step.verdict).kind(), VerdictKind::To(_));
        if let Some(end) = end.filter(|_| leads_on) {
            text += &format!(", adjacency {}", step.aux);
            if matches!(end.kind, AdjacencyKind::Neighbor | AdjacencyKind::Labelled) {
                let name = self.name_of(end.interface).unwrap_or("?");
                text += &format!(" to {} on {name}", end.address);
            }
        }
        Some(text)
    }
}

impl Run {
    /// Takes in a step of the packet; the last one decides.
    fn take(&mut self, tables: &Tables, step: TraceStep) {
        if step.entered {
            return;
        }
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
        self.steps.push(step);
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

/// A frame in as many buffers as it needs.
fn packet(cache: &mut PktCache, frame: &[u8]) -> Option<Pkt> {
    let mut pieces = frame.chunks(DATA_ROOM);
    let mut packet = cache.alloc()?;
    let mut is_whole = packet.fill(pieces.next().unwrap_or(&[]));
    for piece in pieces {
        let mut tail = cache.alloc()?;
        is_whole &= tail.fill(piece) && packet.append(tail).is_ok();
    }
    is_whole.then_some(packet)
}

/// The whole frame.
fn bytes(packet: &Pkt) -> Vec<u8> {
    let mut whole = vec![0; packet.total_len()];
    packet.copy_out(0, &mut whole);
    whole
}
