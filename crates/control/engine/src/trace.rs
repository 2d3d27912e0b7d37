//! Traces on the cold side: steps from the workers' rings, put together and described.

use std::collections::{BTreeMap, VecDeque};

use weir_graph::{NodeSpec, TraceStep, Verdict, VerdictKind};
use weir_wire::{
    ArpPacket, EtherType, EthernetHeader, IpProtocol, Ipv4Header, TcpHeader, UdpHeader,
};

use crate::clock::Clock;

/// Packets kept; the oldest go first.
const MOST_PACKETS: usize = 10_000;
/// Steps kept of one packet.
const MOST_STEPS: usize = 64;

/// One packet under way.
#[derive(Debug)]
struct Followed {
    worker: usize,
    number: u64,
    steps: Vec<TraceStep>,
}

/// What traces recorded.
#[derive(Debug, Default)]
pub(crate) struct TraceStore {
    pub(crate) filters: Vec<weir_api::TraceFilter>,
    packets: VecDeque<Followed>,
    /// Worker and the worker's own number to the store's number.
    open: BTreeMap<(usize, u32), u64>,
    next: u64,
}

impl TraceStore {
    /// Takes in a step.
    pub(crate) fn take(&mut self, worker: usize, step: TraceStep) {
        let key = (worker, step.packet);
        let number = match self.open.get(&key) {
            Some(&number) => number,
            None => {
                self.next += 1;
                self.open.insert(key, self.next);
                self.packets.push_back(Followed {
                    worker,
                    number: self.next,
                    steps: Vec::new(),
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
        if let Some(packet) = self
            .packets
            .iter_mut()
            .rev()
            .find(|packet| packet.number == number)
            && packet.steps.len() < MOST_STEPS
        {
            packet.steps.push(step);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.filters.clear();
        self.packets.clear();
        self.open.clear();
    }

    /// Everything that was recorded, for people.
    pub(crate) fn show<'a>(
        &self,
        specs: &[NodeSpec],
        clock: &Clock,
        name_of: impl Fn(u32) -> Option<&'a str>,
    ) -> weir_api::Trace {
        let packet = |followed: &Followed| {
            let first = followed.steps.first()?;
            let step = |step: &TraceStep| weir_api::TraceStep {
                node: specs
                    .get(step.node as usize)
                    .map_or("?", |spec| spec.name)
                    .to_owned(),
                description: describe(step),
                verdict: verdict(specs, step, &name_of),
            };
            Some(weir_api::TracedPacket {
                number: followed.number,
                worker: followed.worker as u32,
                interface: name_of(first.interface).map(str::to_owned),
                at: clock.at(first.tsc) as f64 / 1e9,
                length: first.len,
                steps: followed.steps.iter().map(step).collect(),
            })
        };
        weir_api::Trace {
            filters: self.filters.clone(),
            packets: self.packets.iter().filter_map(packet).collect(),
        }
    }
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
