//! A traffic profile: ports and streams, as a value.
//!
//! Made from a YAML file ([`Profile::from_yaml`], `read.rs`) or from the command line
//! ([`Profile::simple`]). Reading reports all errors of a file at once, each with its line. A profile
//! is pure data; `crate::stream` compiles it.

mod capture;
mod read;
mod simple;
mod trex;
mod values;
mod yaml;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use capture::Capture;

pub use simple::Simple;
pub use values::Values;

use crate::units::Rate;

/// What is wrong with a profile, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {path}: {problem}")]
pub struct ProfileError {
    /// The line of the file, from 1.
    pub line: usize,
    /// The key, as `streams[0].ipv4.source`.
    pub path: String,
    /// What is wrong and what is accepted.
    pub problem: String,
}

/// The whole profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Where all randomness starts: the same seed makes the same packets.
    pub seed: u64,
    /// The streams.
    pub streams: Vec<StreamSpec>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Its name in results.
    pub name: String,
    /// The number of the port that sends it, from 0.
    pub port: usize,
    /// How fast.
    pub rate: Rate,
    /// Packets in all; 0 for no limit.
    pub packets: u64,
    /// When it starts, from the start of the run.
    pub start: Duration,
    /// Bursts instead of even gaps.
    pub burst: Option<Burst>,
    /// The rate grows linearly from 0 to its value in this time.
    pub ramp: Option<Duration>,
    /// Frame sizes with FCS, and how many of each in a cycle.
    pub sizes: Vec<(u16, u32)>,
    /// Packets carry a sequence number and a time, for loss and latency.
    pub stamped: bool,
    /// The headers.
    pub packet: PacketSpec,
    /// Frames of a capture file, sent as they are instead of `packet`.
    pub capture: Option<Arc<Capture>>,
    /// Frames of the capture are sent at their times; otherwise at `rate`.
    pub timed: bool,
}

/// Packets sent back to back, then a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Packets of a burst.
    pub packets: u64,
    /// From the start of one burst to the start of the next.
    pub every: Duration,
}

/// The headers of a stream's packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketSpec {
    /// Source MAC address.
    pub source_mac: Values,
    /// Destination MAC address; `None`: the gateway's, resolved by ARP or ND.
    pub destination_mac: Option<Values>,
    /// VLAN tags, outermost first.
    pub vlans: Vec<Vlan>,
    /// MPLS labels, top first.
    pub labels: Vec<Label>,
    /// The network layer.
    pub network: Network,
    /// The transport layer.
    pub transport: Transport,
    /// What fills the rest.
    pub payload: Payload,
    /// A frame given by its bytes, instead of all of the above.
    pub raw: Option<RawFrame>,
}

/// A frame given by its bytes, with fields written into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    /// The frame without FCS.
    pub bytes: Vec<u8>,
    /// The fields, none of which overlap.
    pub writes: Vec<RawWrite>,
    /// The IPv4 header checksum is computed for each packet.
    pub fix_header: bool,
    /// The checksum of TCP, UDP or ICMP is computed for each packet.
    pub fix_transport: bool,
    /// A port with a gateway writes its own MAC address and the gateway's.
    pub port_macs: bool,
}

/// A field of a [`RawFrame`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawWrite {
    /// Offset in the frame.
    pub at: usize,
    /// Bytes: 1, 2, 4 or 8.
    pub width: usize,
    /// Bits of the field's bytes that do not vary.
    pub fixed: u64,
    /// How far values are shifted left.
    pub shift: u32,
    /// The values.
    pub values: Values,
}

/// A VLAN tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Vlan {
    /// 0x8100 or 0x88a8.
    pub protocol: u16,
    /// The VLAN.
    pub id: Values,
    /// Priority code point.
    pub priority: u8,
}

/// An MPLS label stack entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The label.
    pub label: Values,
    /// Traffic class.
    pub class: u8,
    /// Time to live.
    pub ttl: u8,
}

/// The network layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// IPv4.
    V4 {
        /// Source address.
        source: Values,
        /// Destination address.
        destination: Values,
        /// Time to live.
        ttl: Values,
        /// Differentiated services code point.
        dscp: Values,
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: Values,
        /// Destination address.
        destination: Values,
        /// Hop limit.
        ttl: Values,
        /// Differentiated services code point.
        dscp: u8,
        /// Flow label.
        flow_label: u32,
    },
    /// No network layer: payload follows under this EtherType.
    None(u16),
}

/// The transport layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// UDP between ports.
    Udp(Values, Values),
    /// TCP between ports, with these flags.
    Tcp(Values, Values, u8),
    /// ICMP or ICMPv6 echo requests.
    Echo,
    /// Nothing, under this protocol number.
    None(u8),
}

/// What fills the rest of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Zeros.
    Zeros,
    /// 0, 1, 2, … 255, 0, …
    Counting,
    /// Random bytes, the same in all packets of a stream.
    Random,
    /// These bytes, repeated.
    Bytes(Vec<u8>),
}

/// The Internet mix: frames of 64, 590 and 1514 + 4 bytes as 28:16:4.
pub const IMIX: [(u16, u32); 3] = [(64, 28), (594, 16), (1518, 4)];

impl Default for PacketSpec {
    fn default() -> PacketSpec {
        PacketSpec {
            source_mac: Values::fixed(0x0200_0000_0001),
            destination_mac: Some(Values::fixed(0x0200_0000_0002)),
            vlans: Vec::new(),
            labels: Vec::new(),
            network: Network::V4 {
                source: Values::fixed(u128::from(u32::from_be_bytes([16, 0, 0, 1]))),
                destination: Values::fixed(u128::from(u32::from_be_bytes([48, 0, 0, 1]))),
                ttl: Values::fixed(64),
                dscp: Values::fixed(0),
            },
            transport: Transport::Udp(Values::fixed(1024), Values::fixed(1025)),
            payload: Payload::Counting,
            raw: None,
        }
    }
}

impl StreamSpec {
    /// UDP over IPv4, 64 bytes, at `rate`, stamped.
    #[must_use]
    pub fn new(name: &str, rate: Rate) -> StreamSpec {
        StreamSpec {
            name: name.to_owned(),
            port: 0,
            rate,
            packets: 0,
            start: Duration::ZERO,
            burst: None,
            ramp: None,
            sizes: vec![(64, 1)],
            stamped: true,
            packet: PacketSpec::default(),
            capture: None,
            timed: false,
        }
    }

    /// The average frame size with FCS.
    #[must_use]
    pub fn average_size(&self) -> f64 {
        if let Some(capture) = &self.capture {
            return capture.average_len() + 4.0;
        }
        let (bytes, frames) =
            self.sizes
                .iter()
                .fold((0.0, 0.0), |(bytes, frames), (size, weight)| {
                    (
                        bytes + f64::from(*size) * f64::from(*weight),
                        frames + f64::from(*weight),
                    )
                });
        bytes / f64::max(frames, 1.0)
    }

    /// Makes the source address vary at random over `flows` values.
    pub fn vary_flows(&mut self, flows: u64) {
        if let Network::V4 { source, .. } | Network::V6 { source, .. } = &mut self.packet.network {
            *source = Values {
                count: flows.max(1),
                step: 1,
                random: true,
                ..source.clone()
            };
        }
    }
}

/// A frame size to test with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// Bytes with FCS.
    Bytes(u16),
    /// The Internet mix.
    Imix,
}

impl FrameSize {
    /// Reads `64` or `imix`.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<FrameSize, String> {
        match text {
            "imix" => Ok(FrameSize::Imix),
            text => text
                .parse()
                .map(FrameSize::Bytes)
                .map_err(|_| "a frame size is a number of bytes with FCS, or imix".to_owned()),
        }
    }
}

impl Profile {
    /// The same streams with frames of another size.
    ///
    /// # Errors
    /// When frames of that size cannot be sent, or are given by their bytes.
    pub fn with_size(&self, size: FrameSize) -> Result<Profile, String> {
        let mut profile = self.clone();
        for spec in &mut profile.streams {
            if spec.packet.raw.is_some() || spec.capture.is_some() {
                return Err(format!(
                    "stream {}: frames given by their bytes have no other size",
                    spec.name
                ));
            }
            let least = crate::stream::smallest_frame(spec) + 4;
            let most = crate::stream::LARGEST_FRAME + 4;
            spec.sizes = match size {
                FrameSize::Imix => IMIX
                    .map(|(size, weight)| (size.max(least as u16), weight))
                    .to_vec(),
                FrameSize::Bytes(size) if (least..=most).contains(&usize::from(size)) => {
                    vec![(size, 1)]
                }
                // The usual smallest frame stands for the smallest that the headers need.
                FrameSize::Bytes(64) => vec![(least as u16, 1)],
                FrameSize::Bytes(size) => {
                    return Err(format!(
                        "stream {}: {size} bytes are impossible: {least} to {most} bytes with FCS",
                        spec.name
                    ));
                }
            };
        }
        Ok(profile)
    }

    /// Reads a profile: Weir's YAML, or streams of T-Rex as YAML or JSON (a list instead of a map).
    /// Files that it names are looked for in the current folder.
    ///
    /// # Errors
    /// All that is wrong with it, each with its line.
    pub fn from_yaml(text: &str) -> Result<Profile, Vec<ProfileError>> {
        Profile::from_yaml_in(text, Path::new("."))
    }

    /// Reads a profile whose files are looked for in `folder`.
    ///
    /// # Errors
    /// All that is wrong with it, each with its line.
    pub fn from_yaml_in(text: &str, folder: &Path) -> Result<Profile, Vec<ProfileError>> {
        read::profile(text, folder)
    }
}
