//! The streams of a generator.

use std::ops::RangeInclusive;

use weir_buf::DATA_ROOM;
use weir_wire::MacAddr;
use weir_wire::build::{self, Ends};

/// How a field changes from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One up each time, from the last value back to the first.
    Increment,
    /// Any value of the range.
    Random,
}

/// A varying field: big-endian, at an offset of the frame.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where it begins.
    pub offset: usize,
    /// Its bytes: 1, 2 or 4.
    pub width: usize,
    /// First value.
    pub first: u32,
    /// Last value.
    pub last: u32,
    /// How it changes.
    pub change: Change,
}

impl Field {
    /// Whether it can be written into a template of `len` bytes.
    pub(super) fn fits(&self, len: usize) -> bool {
        let widest = match self.width {
            1 => 0xff,
            2 => 0xffff,
            4 => u32::MAX,
            _ => return false,
        };
        self.offset
            .checked_add(self.width)
            .is_some_and(|end| end <= len)
            && self.first <= self.last
            && self.last <= widest
    }
}

/// UDP over IPv4 between ranges of addresses and ports.
#[derive(Clone, Debug)]
pub struct Udp4 {
    /// Bytes of the frame without FCS: 42 or more.
    pub size: usize,
    /// Who sends the frames.
    pub source_mac: MacAddr,
    /// Who gets the frames.
    pub destination_mac: MacAddr,
    /// Who sends the packets.
    pub sources: RangeInclusive<u32>,
    /// Whom they are for.
    pub destinations: RangeInclusive<u32>,
    /// The senders' ports.
    pub source_ports: RangeInclusive<u16>,
    /// The receivers' ports.
    pub destination_ports: RangeInclusive<u16>,
    /// How addresses and ports change.
    pub change: Change,
}

/// A stream of packets.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What every packet looks like but for its fields.
    pub template: Vec<u8>,
    /// What varies. A field that does not fit the template is not written.
    pub fields: Vec<Field>,
    /// Packets in all; 0 for no end.
    pub limit: u64,
    /// Packets a second; 0 for as many as are asked for.
    pub rate: u64,
}

impl Stream {
    /// A stream of `template`, whatever it is, endless and as fast as it is asked for; `None` when it
    /// does not fit a buffer.
    #[must_use]
    pub fn new(template: Vec<u8>) -> Option<Stream> {
        (template.len() <= DATA_ROOM).then_some(Stream {
            template,
            fields: Vec::new(),
            limit: 0,
            rate: 0,
        })
    }

    /// A stream of UDP datagrams with right checksums; `None` when the size is impossible or a range
    /// is empty.
    #[must_use]
    pub fn udp4(wanted: &Udp4) -> Option<Stream> {
        let ends = Ends {
            source_mac: wanted.source_mac,
            destination_mac: wanted.destination_mac,
            source: *wanted.sources.start(),
            destination: *wanted.destinations.start(),
            source_port: *wanted.source_ports.start(),
            destination_port: *wanted.destination_ports.start(),
            ttl: 64,
        };
        let mut frame = vec![0; wanted.size.min(DATA_ROOM + 1)];
        if !build::udp4_into(&mut frame, &ends) {
            return None;
        }
        let mut stream = Stream::new(frame)?;
        let wide =
            |range: &RangeInclusive<u16>| u32::from(*range.start())..=u32::from(*range.end());
        let ranges = [
            (26, 4, wanted.sources.clone()),
            (30, 4, wanted.destinations.clone()),
            (34, 2, wide(&wanted.source_ports)),
            (36, 2, wide(&wanted.destination_ports)),
        ];
        for (offset, width, range) in ranges {
            if range.is_empty() {
                return None;
            }
            if range.start() != range.end() {
                stream = stream.field(Field {
                    offset,
                    width,
                    first: *range.start(),
                    last: *range.end(),
                    change: wanted.change,
                });
            }
        }
        Some(stream)
    }

    /// With a varying field; one that does not fit the template is left out.
    #[must_use]
    pub fn field(mut self, field: Field) -> Stream {
        if field.fits(self.template.len()) {
            self.fields.push(field);
        }
        self
    }

    /// Ending after `packets`.
    #[must_use]
    pub fn limit(mut self, packets: u64) -> Stream {
        self.limit = packets;
        self
    }

    /// At `packets` a second.
    #[must_use]
    pub fn rate(mut self, packets: u64) -> Stream {
        self.rate = packets;
        self
    }
}
