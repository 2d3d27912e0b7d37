//! Traces on the control side: collects the steps that workers recorded, and describes them.
//!
//! A worker records each traced packet as it was received, and each node that processed it. A node with a fast path is one
//! recorded step, though it made the steps of several nodes. The control thread therefore runs the packet again through
//! all nodes over the same tables (`dry_run.rs`). The dry run names the steps of the fast path, and the route, adjacency,
//! access-list term or label that each node used. They are shown only where the dry run has the recorded outcome.

use std::collections::{BTreeMap, VecDeque};

use weir_api::Timestamp;
use weir_graph::{NodeSpec, TraceStep, Verdict, VerdictKind};
use weir_wire::{
    ArpPacket, EtherType, EthernetHeader, IpProtocol, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader,
};

use crate::clock::Clock;
use crate::control::Control;
use crate::dry_run::Decided;

/// Packets kept; the oldest go first.
const MOST_PACKETS: usize = 10_000;
/// Steps kept of one packet.
const MOST_STEPS: usize = 64;
/// Dry runs in a row, before the control thread does its other work.
const DRY_RUNS: usize = 16;

/// One packet under way.
#[derive(Debug)]
struct Followed {
    worker: usize,
    number: u64,
    /// As it entered its first node.
    entered: Option<TraceStep>,
    steps: Vec<TraceStep>,
    /// What a dry run said, when there was one.
    decided: Option<Vec<Decided>>,
}

/// What traces recorded.
#[derive(Debug, Default)]
pub(crate) struct TraceStore {
    pub(crate) filters: Vec<weir_api::TraceFilter>,
    packets: VecDeque<Followed>,
    /// Worker and the worker's own number to the store's number.
    open: BTreeMap<(usize, u32), u64>,
    next: u64,
    /// The packets that are to be run again.
    waiting: VecDeque<u64>,
}

impl TraceStore {
    /// Takes in a step.
    pub(crate) fn take(&mut self, worker: usize, step: TraceStep) {
        let key = (worker, step.packet);
        let number = match self.open.get(&key) {
            Some(&number) if !step.entered => number,
            _ => {
                self.next += 1;
                self.open.insert(key, self.next);
                self.packets.push_back(Followed {
                    worker,
                    number: self.next,
                    entered: step.entered.then_some(step),
                    steps: Vec::new(),
                    decided: None,
                });
                if let Some(filter) = self.filters.first_mut() {
                    filter.left = filter.left.saturating_sub(1);
                }
                self.next
            }
        };
        if self.packets.len() > MOST_PACKETS {
            self.packets.pop_front();
            let oldest = self.packets.front().map_or(0, |packet| packet.number);
            self.open.retain(|_, &mut number| number >= oldest);
        }
        if step.entered {
            self.waiting.push_back(number);
        } else if let Some(packet) = self.of(number)
            && packet.steps.len() < MOST_STEPS
        {
            packet.steps.push(step);
        }
    }

    fn of(&mut self, number: u64) -> Option<&mut Followed> {
        let oldest = self.packets.front()?.number;
        self.packets.get_mut(number.checked_sub(oldest)? as usize)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.filters.clear();
        self.packets.clear();
        self.open.clear();
        self.waiting.clear();
    }
}

impl Control {
    /// Runs up to [`DRY_RUNS`] recorded packets again, soon after they were recorded, since tables change.
    pub(crate) fn decide_traces(&mut self) {
        for _ in 0..DRY_RUNS {
            let Some(number) = self.trace.waiting.pop_front() else {
                return;
            };
            let Some(entered) = self.trace.of(number).and_then(|packet| packet.entered) else {
                continue;
            };
            let decided = self.decide(&entered);
            if let Some(packet) = self.trace.of(number) {
                packet.decided = decided;
            }
        }
    }

    /// Everything that was recorded, for people.
    pub(crate) fn trace_view(&self) -> weir_api::Trace {
        let packets = self.trace.packets.iter();
        weir_api::Trace {
            filters: self.trace.filters.clone(),
            packets: packets.filter_map(|it| self.traced_packet(it)).collect(),
        }
    }

    fn traced_packet(&self, followed: &Followed) -> Option<weir_api::TracedPacket> {
        let first = followed.entered.as_ref().or(followed.steps.first())?;
        let recorded = followed
            .steps
            .iter()
            .map(|step| Decided {
                verdict: Verdict::from_bits(step.verdict),
                interface: step.aux,
                view: self.step_view(step),
            })
            .collect();
        let (steps, mut incomplete) = merge(recorded, followed.decided.as_deref());
        let is_waiting = |first: &u64| *first <= followed.number;
        if followed.entered.is_some() && self.trace.waiting.front().is_some_and(is_waiting) {
            incomplete = Some("the decisions are not known yet: ask again");
        }
        Some(weir_api::TracedPacket {
            number: followed.number,
            worker: followed.worker as u32,
            interface: self.name_of(first.interface).map(str::to_owned),
            time: time_of(&self.clock, first.tsc),
            length: first.len,
            headers: describe(first),
            steps,
            incomplete: incomplete.map(str::to_owned),
        })
    }

    /// A step without what it was decided by.
    pub(crate) fn step_view(&self, step: &TraceStep) -> weir_api::TraceStep {
        let name = self.specs.get(step.node as usize).map_or("?", |it| it.name);
        let meaning = match Verdict::from_bits(step.verdict).kind() {
            VerdictKind::Drop(reason) => Some(reason.sentence().to_owned()),
            _ => None,
        };
        weir_api::TraceStep {
            node: name.to_owned(),
            made_by: None,
            verdict: verdict(&self.specs, step, &|it| self.name_of(it)),
            decision: meaning,
        }
    }
}

/// The time of day at a value of the counter.
fn time_of(clock: &Clock, tsc: u64) -> Timestamp {
    let ago = clock.now().saturating_sub(clock.at(tsc)) / 1_000_000;
    Timestamp::from_unix_ms(Timestamp::now().unix_ms().saturating_sub(ago))
}

/// Adds the decisions of a dry run to the recorded steps, and the steps of a fast path. From the first step on that differs from
/// the recorded one, the dry run is ignored.
fn merge(
    recorded: Vec<Decided>,
    decided: Option<&[Decided]>,
) -> (Vec<weir_api::TraceStep>, Option<&'static str>) {
    let mut steps = Vec::with_capacity(recorded.len());
    let Some(mut decided) = decided else {
        steps.extend(recorded.into_iter().map(|step| step.view));
        return (
            steps,
            Some(
                "the decisions are not known: the packet was not recorded where a port received it",
            ),
        );
    };
    let mut incomplete = None;
    for step in recorded {
        let [same, rest @ ..] = decided else {
            steps.push(step.view);
            continue;
        };
        if same.view.node != step.view.node {
            steps.push(step.view);
        } else if same.is_as(&step) {
            decided = rest;
            steps.push(same.view.clone());
        } else if step.verdict == Verdict::OUT
            && decided.last().is_some_and(|last| last.is_as(&step))
        {
            decided = &[];
            steps.push(same.view.clone());
            steps.extend(rest.iter().map(|it| weir_api::TraceStep {
                made_by: Some(step.view.node.clone()),
                ..it.view.clone()
            }));
        } else {
            decided = &[];
            incomplete = Some(
                "the packet took another path than a dry run of it: the decisions from there on are not known",
            );
            steps.push(step.view);
        }
    }
    (steps, incomplete)
}

fn verdict<'a>(
    specs: &[NodeSpec],
    step: &TraceStep,
    name_of: &impl Fn(u32) -> Option<&'a str>,
) -> String {
    match Verdict::from_bits(step.verdict).kind() {
        VerdictKind::To(next) => {
            let spec = specs.get(step.node as usize);
            let name = spec.and_then(|spec| weir_nodes::next_name(spec, next));
            format!("to {}", name.unwrap_or("?"))
        }
        VerdictKind::Out => match name_of(step.aux) {
            Some(name) => format!("out {name}"),
            None => "out".to_owned(),
        },
        VerdictKind::Drop(reason) => format!("drop {}", reason.name()),
        VerdictKind::Hold(_) => "hold".to_owned(),
        VerdictKind::Replicate(_) => "replicate".to_owned(),
        VerdictKind::Consume => "consume".to_owned(),
    }
}

/// The headers that a step kept, in a line each.
fn describe(step: &TraceStep) -> String {
    let bytes = step.bytes.get(..step.kept as usize).unwrap_or(&[]);
    let Some((ethernet, rest)) = EthernetHeader::read(bytes) else {
        return format!("{} bytes", step.len);
    };
    let mut text = format!(
        "{} -> {} {} {} bytes",
        ethernet.source,
        ethernet.destination,
        ethernet.ethertype(),
        step.len
    );
    if ethernet.ethertype() == EtherType::IPV4
        && let Some((header, _)) = Ipv4Header::read(rest)
    {
        text.push('\n');
        text.push_str(&describe_ipv4(header, rest));
    }
    if ethernet.ethertype() == EtherType::IPV6
        && let Some((header, _)) = Ipv6Header::read(rest)
    {
        let (source, destination) = (header.source_addr(), header.destination_addr());
        text.push_str(&format!(
            "\n{source} -> {destination} {} hop limit {} length {}",
            header.next_header(),
            header.hop_limit,
            header.payload_len()
        ));
    }
    if ethernet.ethertype() == EtherType::ARP
        && let Some((arp, _)) = ArpPacket::read(rest)
    {
        let (sender, target) = (
            std::net::Ipv4Addr::from(arp.sender()),
            std::net::Ipv4Addr::from(arp.target()),
        );
        text.push_str(&format!(
            "\noperation {} {sender} at {} to {target}",
            arp.operation(),
            arp.sender_mac
        ));
    }
    text
}

fn describe_ipv4(header: &Ipv4Header, l3: &[u8]) -> String {
    let payload = l3.get(header.header_len()..).unwrap_or(&[]);
    let ports = match header.protocol() {
        IpProtocol::UDP => {
            UdpHeader::read(payload).map(|(udp, _)| (udp.source(), udp.destination()))
        }
        IpProtocol::TCP => {
            TcpHeader::read(payload).map(|(tcp, _)| (tcp.source(), tcp.destination()))
        }
        _ => None,
    };
    let (source, destination) = (header.source_addr(), header.destination_addr());
    let ends = match ports {
        Some((from, to)) if !header.is_later_fragment() => {
            format!("{source}:{from} -> {destination}:{to}")
        }
        _ => format!("{source} -> {destination}"),
    };
    let fragment = if header.is_fragment() {
        format!(" fragment at {}", u32::from(header.fragment_offset()) * 8)
    } else {
        String::new()
    };
    format!(
        "{ends} {} ttl {} length {}{fragment}",
        header.protocol(),
        header.ttl,
        header.total_len()
    )
}
