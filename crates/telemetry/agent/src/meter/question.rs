//! Flows that are under way, for those who ask: all that a filter takes, or those with the most packets or octets.
//!
//! The worker looks through its table a little at a time, while packets go on; so an answer is no picture of one moment.
//! Room for it is made by whoever asks.

use std::net::IpAddr;

use crate::flows::FlowRecord;
use crate::flows::key::Kind;

/// Which flows are asked for; what is absent does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Source or destination in this prefix.
    pub prefix: Option<(IpAddr, u8)>,
    /// In or out by this interface.
    pub interface: Option<u32>,
    /// Source or destination port.
    pub port: Option<u16>,
}

impl FlowFilter {
    /// Whether it takes a flow.
    #[must_use]
    pub fn takes(&self, record: &FlowRecord) -> bool {
        let parts = record.key.parts();
        let is_within = |(prefix, length): (IpAddr, u8)| {
            let (kind, prefix, width) = match prefix {
                IpAddr::V4(address) => (Kind::Ip4, u128::from(u32::from(address)), 32),
                IpAddr::V6(address) => (Kind::Ip6, u128::from(address), 128),
            };
            let rest = u32::from(width) - u32::from(length.min(width));
            let alike = |address: [u8; 16]| {
                (u128::from_be_bytes(address) ^ prefix)
                    .checked_shr(rest)
                    .unwrap_or(0)
                    == 0
            };
            parts.kind == kind && (alike(parts.source) || alike(parts.destination))
        };
        let is_ip = parts.kind != Kind::L2;
        self.prefix.is_none_or(is_within)
            && self
                .interface
                .is_none_or(|wanted| parts.input == wanted || parts.output == wanted)
            && self.port.is_none_or(|wanted| {
                is_ip && (parts.source_port == wanted || parts.destination_port == wanted)
            })
    }
}

/// Which flows come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowOrder {
    /// As they lie in the table.
    #[default]
    None,
    /// Those with the most octets.
    Octets,
    /// Those with the most packets.
    Packets,
}

impl FlowOrder {
    /// What a flow weighs.
    #[must_use]
    pub fn weight(self, record: &FlowRecord) -> u64 {
        match self {
            FlowOrder::None => 0,
            FlowOrder::Octets => record.sums.octets,
            FlowOrder::Packets => record.sums.packets,
        }
    }
}

/// A question, and the answer as far as it is found.
#[derive(Debug)]
pub struct Question {
    filter: FlowFilter,
    order: FlowOrder,
    answer: Answer,
    most: usize,
}

/// Flows that were asked for.
#[derive(Debug, Default)]
pub struct Answer {
    /// The question's number.
    pub number: u64,
    /// The flows, in no order.
    pub flows: Vec<FlowRecord>,
    /// How many there were in all.
    pub matched: u64,
}

impl Question {
    /// Asks for at most `most` flows, under a number by which the answer is fetched.
    #[must_use]
    pub fn new(number: u64, filter: FlowFilter, order: FlowOrder, most: usize) -> Question {
        Question {
            filter,
            order,
            answer: Answer {
                number,
                flows: Vec::with_capacity(most),
                matched: 0,
            },
            most,
        }
    }

    /// A flow of the table.
    pub(super) fn consider(&mut self, record: &FlowRecord) {
        if !self.filter.takes(record) {
            return;
        }
        self.answer.matched += 1;
        let flows = &mut self.answer.flows;
        if flows.len() < self.most {
            flows.push(*record);
            if flows.len() == self.most {
                self.sink();
            }
            return;
        }
        // The lightest is the first.
        if let Some(lightest) = flows.first_mut()
            && self.order.weight(record) > self.order.weight(lightest)
        {
            *lightest = *record;
            self.sink();
        }
    }

    /// Brings the lightest to the front.
    fn sink(&mut self) {
        let flows = &mut self.answer.flows;
        let lightest = flows
            .iter()
            .enumerate()
            .min_by_key(|(_, record)| self.order.weight(record))
            .map(|(place, _)| place);
        if let Some(place) = lightest {
            flows.swap(0, place);
        }
    }

    pub(super) fn answer(self) -> Answer {
        self.answer
    }
}
