//! What is known of a packet's way, beside its sample: asked of whoever holds the tables, reported in records.

use std::net::{IpAddr, Ipv4Addr};

use weir_flowfmt::sflow::encode::FlowRecord;
use weir_flowfmt::sflow::{ExtendedMpls, ExtendedRouter, ExtendedSwitch, RawHeader};
use weir_graph::PacketOutcome;

use super::gateway::Gateway;
use crate::sampler::{Ending, Sample};

/// A packet whose way is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The port that it came in by; of what was sampled going out, the interface that took it.
    pub input: u32,
    /// Its first bytes as they came; nothing of what was sampled going out, since nobody has seen those.
    pub start: &'a [u8],
    /// Bytes of all of it.
    pub length: usize,
    /// The port that it left by, and its first bytes as they left.
    pub departure: Option<(u32, &'a [u8])>,
}

impl<'a> Asked<'a> {
    /// Of a sample with its outcome. One without a ticket was taken as it went out.
    pub(super) fn of(sample: &'a Sample, ending: Option<Ending<'a>>) -> Asked<'a> {
        let departure = match ending {
            Some(Ending {
                outcome: PacketOutcome::Sent(interface),
                leaving,
            }) => Some((interface, leaving)),
            // Also when the driver refused it: that is where it was to go.
            _ if sample.ticket == 0 => Some((sample.interface, sample.start())),
            _ => None,
        };
        let (input, start) = if sample.ticket == 0 {
            (sample.input, &[][..])
        } else {
            (sample.interface, sample.start())
        };
        Asked {
            input,
            start,
            length: sample.frame as usize,
            departure,
        }
    }
}

/// Tags on both sides: VLAN and priority as far as they are known, 0 and 0 without a tag.
pub type Tags = ((Option<u16>, Option<u8>), (Option<u16>, Option<u8>));

/// How a packet was routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The next router, or the destination on a connected link.
    pub next: IpAddr,
    /// Bits of the routes to source and destination, if known.
    pub prefixes: Option<(u8, u8)>,
}

/// The way of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledPath {
    /// The interface or sub-interface that it came in by.
    pub input: u32,
    /// The one that it left by; 0 when that is not known.
    pub output: u32,
    /// Tags, where there are any or frames are switched.
    pub tags: Option<Tags>,
    /// How it was routed, if it was.
    pub hop: Option<Hop>,
    /// Label stacks on both sides.
    pub labels: (Labels, Labels),
}

/// Entries of a label stack, the outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    entries: [u32; 16],
    depth: u8,
}

impl Labels {
    /// Those of `entries` that fit: 16.
    #[must_use]
    pub fn new(entries: &[u32]) -> Labels {
        let mut labels = Labels::default();
        for (place, &entry) in labels.entries.iter_mut().zip(entries) {
            *place = entry;
            labels.depth += 1;
        }
        labels
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[u32] {
        self.entries.get(..self.depth as usize).unwrap_or(&[])
    }
}

/// The records of one sample.
pub(super) struct Records<'a> {
    records: [FlowRecord<'a>; 5],
    count: usize,
}

impl<'a> Records<'a> {
    fn new(first: FlowRecord<'a>) -> Records<'a> {
        Records {
            records: [first; 5],
            count: 1,
        }
    }

    pub(super) fn push(&mut self, record: FlowRecord<'a>) {
        if let Some(place) = self.records.get_mut(self.count) {
            *place = record;
            self.count += 1;
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[FlowRecord<'a>] {
        self.records.get(..self.count).unwrap_or(&self.records)
    }
}

impl SampledPath {
    /// What a sample tells of it, behind its header.
    pub(super) fn records<'a>(&'a self, header: RawHeader<'a>) -> Records<'a> {
        let mut records = Records::new(FlowRecord::RawHeader(header));
        if let Some((came, left)) = self.tags {
            // Unknown fields are all ones (errata of the specification).
            let known = |(vlan, priority): (Option<u16>, Option<u8>)| {
                (
                    vlan.map_or(u32::MAX, u32::from),
                    priority.map_or(u32::MAX, u32::from),
                )
            };
            let ((source_vlan, source_priority), (destination_vlan, destination_priority)) =
                (known(came), known(left));
            records.push(FlowRecord::Switch(ExtendedSwitch {
                source_vlan,
                source_priority,
                destination_vlan,
                destination_priority,
            }));
        }
        if let Some(Hop {
            next,
            prefixes: Some((source, destination)),
        }) = self.hop
        {
            let (source_length, destination_length) = (source.into(), destination.into());
            records.push(FlowRecord::Router(ExtendedRouter {
                next_hop: Some(next),
                source_length,
                destination_length,
            }));
        }
        let (input, output) = (self.labels.0.entries(), self.labels.1.entries());
        if !input.is_empty() || !output.is_empty() {
            // Where there is none, as of what was dropped or was for this router, the address is one of zeros: at the type
            // for unknown ones there are collectors that give up the rest of the datagram.
            let next_hop = Some(
                self.hop
                    .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |hop| hop.next),
            );
            records.push(FlowRecord::Mpls(ExtendedMpls {
                next_hop,
                input,
                output,
            }));
        }
        records
    }
}

/// Who knows the tables, as of one moment.
pub trait PathLookup {
    /// The way of a packet.
    fn way(&self, asked: &Asked<'_>) -> SampledPath;

    /// What BGP knows of the routes of a packet that took this way; `None` where nobody asked a BGP daemon.
    fn gateway(&self, _asked: &Asked<'_>, _way: &SampledPath) -> Option<Gateway> {
        None
    }
}
