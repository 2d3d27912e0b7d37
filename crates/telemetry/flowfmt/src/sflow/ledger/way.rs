//! Which way a sampled packet went through the source that sampled it. No field of a sample says so.
//!
//! A sample names the interfaces that the packet came in and went out by. Where one of them is the source
//! itself, that tells. Where a port has sub-interfaces they are named instead of it, and then it has to be
//! known which of the two belongs to the port: what samples on its own is another port, a name like `xe0.100`
//! is a sub-interface of `xe0`, members of a link aggregation say which one it is (0:7), and what was reported beside
//! something that is no interface (the router itself) belongs to who sampled it. The VLANs of 0:1001 tell, too,
//! if the sampled header has only one of them. Where nothing tells, a packet is of no known direction.

use super::Direction;
use crate::sflow::decode::FlowRecords;
use crate::sflow::records::ExtendedSwitch;
use crate::sflow::{FlowSample, Port, RawHeader};

/// Reasons of discards that may be found out only after a packet was sampled going out: no buffer.
const REFUSED: Port = Port::discarded(259);

/// What a sample says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleDirection {
    /// Known; and the interface that therefore belongs to the source.
    Known(Direction, Option<u32>),
    /// Between these two interfaces (0 for none), of which neither is the source. The VLANs may tell.
    Between(u32, u32),
    /// Nobody can know.
    Unknown,
}

pub(super) fn way(sample: &FlowSample) -> SampleDirection {
    if sample.source.class != 0 {
        return SampleDirection::Unknown;
    }
    let itself = Port::interface(sample.source.index);
    match (sample.input == itself, sample.output == itself) {
        (true, true) => return SampleDirection::Unknown,
        (true, false) => return SampleDirection::Known(Direction::Ingress, None),
        (false, true) => return SampleDirection::Known(Direction::Egress, None),
        (false, false) => {}
    }
    // Who samples what goes out knows where it goes, and who samples what comes in, where from.
    let interface = |port: Port| {
        (port.format == 0 && port != Port::UNKNOWN && port != Port::INTERNAL).then_some(port.value)
    };
    match (interface(sample.input), interface(sample.output)) {
        (Some(input), Some(output)) => SampleDirection::Between(input, output),
        (Some(input), None) if sample.output == REFUSED => SampleDirection::Between(input, 0),
        (Some(input), None) => SampleDirection::Known(Direction::Ingress, Some(input)),
        (None, Some(output)) => SampleDirection::Known(Direction::Egress, Some(output)),
        (None, None) => SampleDirection::Unknown,
    }
}

/// What the VLANs tell: the header has the tag that the packet had where it was sampled.
pub(super) fn by_vlan(raw: &RawHeader<'_>, mut records: FlowRecords<'_>) -> Option<Direction> {
    let switch = records.find_map(|record| ExtendedSwitch::of(&record.ok()?))?;
    let (input, output) = (switch.source_vlan, switch.destination_vlan);
    let vlan = outer_vlan(raw)?;
    match (input == vlan, output == vlan) {
        (true, false) if output < 4096 => Some(Direction::Ingress),
        (false, true) if input < 4096 => Some(Direction::Egress),
        _ => None,
    }
}

/// 0 of a frame without a tag.
fn outer_vlan(raw: &RawHeader<'_>) -> Option<u32> {
    if raw.protocol != RawHeader::ETHERNET {
        return None;
    }
    let word = |at: usize| {
        raw.header
            .get(at..at + 2)
            .and_then(|word| word.try_into().ok())
            .map(u16::from_be_bytes)
    };
    match word(12)? {
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => Some(u32::from(word(14)? & 0x0fff)),
        _ => Some(0),
    }
}
