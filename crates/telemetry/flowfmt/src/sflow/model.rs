//! The structures of sFlow version 5 that encoder and decoder have in common.
//!
//! Names follow the specification where it has readable ones. Units are the wire's: octets, packets,
//! bits a second. A counter which an agent cannot provide is all ones, an unknown integer is 0.

use std::net::IpAddr;

/// The UDP port that IANA gave to sFlow.
pub const UDP_PORT: u16 = 6343;

/// The version this module speaks.
pub const VERSION: u32 = 5;

/// The value of a 32-bit counter that is not available.
pub const UNKNOWN_COUNTER_32: u32 = u32::MAX;

/// The value of a 64-bit counter that is not available.
pub const UNKNOWN_COUNTER_64: u64 = u64::MAX;

/// What a sample or a record is: on the wire 20 bits of enterprise and 12 of format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFormat {
    /// SMI private enterprise code; 0 is sFlow itself.
    pub enterprise: u32,
    /// The format's number within the enterprise.
    pub format: u32,
}

impl DataFormat {
    /// Sample: flow sample, compact.
    pub const FLOW_SAMPLE: DataFormat = DataFormat::standard(1);
    /// Sample: counters sample, compact.
    pub const COUNTERS_SAMPLE: DataFormat = DataFormat::standard(2);
    /// Sample: flow sample, expanded.
    pub const FLOW_SAMPLE_EXPANDED: DataFormat = DataFormat::standard(3);
    /// Sample: counters sample, expanded.
    pub const COUNTERS_SAMPLE_EXPANDED: DataFormat = DataFormat::standard(4);
    /// Sample: a packet that was discarded.
    pub const DISCARDED_PACKET: DataFormat = DataFormat::standard(5);
    /// Sample of host-sflow: values under names of their own, as counters are.
    pub const RT_METRIC: DataFormat = DataFormat {
        enterprise: 4300,
        format: 1002,
    };
    /// Sample of host-sflow: values under names of their own, as flows are.
    pub const RT_FLOW: DataFormat = DataFormat {
        enterprise: 4300,
        format: 1003,
    };
    /// Flow record: the first bytes of the packet.
    pub const RAW_HEADER: DataFormat = DataFormat::standard(1);
    /// Counter record: generic interface counters.
    pub const INTERFACE_COUNTERS: DataFormat = DataFormat::standard(1);
    /// Flow record: VLAN and priority on both sides of a switch.
    pub const EXTENDED_SWITCH: DataFormat = DataFormat::standard(1001);
    /// Flow record: next hop and prefix lengths.
    pub const EXTENDED_ROUTER: DataFormat = DataFormat::standard(1002);
    /// Flow record: label stacks on both sides of a label switch.
    pub const EXTENDED_MPLS: DataFormat = DataFormat::standard(1006);
    /// Flow record: names of the place and the reason of a discard.
    pub const EXTENDED_HW_TRAP: DataFormat = DataFormat::standard(1041);
    /// Counter record: the port's name.
    pub const PORT_NAME: DataFormat = DataFormat::standard(1005);

    /// A format of sFlow itself (enterprise 0).
    #[must_use]
    pub const fn standard(format: u32) -> DataFormat {
        DataFormat {
            enterprise: 0,
            format,
        }
    }

    /// The two parts out of the word on the wire.
    #[must_use]
    pub const fn from_wire(word: u32) -> DataFormat {
        DataFormat {
            enterprise: word >> 12,
            format: word & 0xfff,
        }
    }

    /// The word on the wire; bits that do not fit their field are lost.
    #[must_use]
    pub const fn to_wire(self) -> u32 {
        (self.enterprise << 12) | (self.format & 0xfff)
    }
}

impl std::fmt::Display for DataFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.enterprise, self.format)
    }
}

/// Where samples come from: `sFlowDataSource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// 0 ifIndex, 1 smonVlanDataSource, 2 entPhysicalEntry, 3 entLogicalEntry.
    pub class: u32,
    /// The index within the class; for class 0 the ifIndex.
    pub index: u32,
}

impl Source {
    /// The interface with this ifIndex.
    #[must_use]
    pub const fn interface(index: u32) -> Source {
        Source { class: 0, index }
    }
}

/// Where a packet came in or went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// 0 one interface, 1 discarded, 2 several interfaces.
    pub format: u32,
    /// ifIndex, reason of the discard, or number of interfaces.
    pub value: u32,
}

impl Port {
    /// Not known.
    pub const UNKNOWN: Port = Port {
        format: 0,
        value: 0,
    };
    /// From or to the router itself.
    pub const INTERNAL: Port = Port {
        format: 0,
        value: 0x3fff_ffff,
    };

    /// The interface with this ifIndex.
    #[must_use]
    pub const fn interface(index: u32) -> Port {
        Port {
            format: 0,
            value: index,
        }
    }

    /// The packet was discarded, for one of the reasons in the table of the specification.
    #[must_use]
    pub const fn discarded(reason: u32) -> Port {
        Port {
            format: 1,
            value: reason,
        }
    }

    /// The packet went to several interfaces; 0 when it is not known how many.
    #[must_use]
    pub const fn multiple(count: u32) -> Port {
        Port {
            format: 2,
            value: count,
        }
    }
}

/// The fixed part of a flow sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// Number of this sample within its source.
    pub sequence: u32,
    /// The source that took it.
    pub source: Source,
    /// One packet in so many is sampled.
    pub rate: u32,
    /// Packets that could have been sampled since the start; wraps.
    pub pool: u32,
    /// Samples lost for want of resources since the start; wraps.
    pub drops: u32,
    /// Where the packet came in.
    pub input: Port,
    /// Where it went out.
    pub output: Port,
}

/// The fixed part of a notification of a discarded packet (0:5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardedPacket {
    /// Number of this notification within its source.
    pub sequence: u32,
    /// Who tells.
    pub source: Source,
    /// Drops without a notification since the start; wraps.
    pub drops: u32,
    /// ifIndex of the interface that the packet came in on; 0 unknown.
    pub input: u32,
    /// ifIndex of the interface that it should have left by; 0 unknown.
    pub output: u32,
    /// Why, by the table of the specification.
    pub reason: u32,
}

/// Flow record 0:1006.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedMpls<'a> {
    /// The next router.
    pub next_hop: Option<IpAddr>,
    /// Stack entries as the packet came, the outermost first.
    pub input: &'a [u32],
    /// As it left.
    pub output: &'a [u32],
}

/// The fixed part of a counters sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountersSample {
    /// Number of this sample within its source.
    pub sequence: u32,
    /// Whose counters they are.
    pub source: Source,
}

/// Flow record 0:1, the first bytes of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawHeader<'a> {
    /// What the bytes begin with: [`RawHeader::ETHERNET`], …
    pub protocol: u32,
    /// Length of the frame on the wire, with FCS and with what was stripped.
    pub frame_length: u32,
    /// How many octets were taken off the frame before it was looked at, FCS included.
    pub stripped: u32,
    /// The bytes.
    pub header: &'a [u8],
}

impl RawHeader<'_> {
    /// `protocol` of an Ethernet frame (ISO 8802-3).
    pub const ETHERNET: u32 = 1;
    /// `protocol` of a packet that begins with its IPv4 header.
    pub const IPV4: u32 = 11;
    /// `protocol` of a packet that begins with its IPv6 header.
    pub const IPV6: u32 = 12;
    /// `protocol` of a packet that begins with MPLS labels.
    pub const MPLS: u32 = 13;
}
