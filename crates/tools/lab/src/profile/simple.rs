//! A profile from single words, as a command line gives them.

use super::values::Type;
use super::{IMIX, Network, PacketSpec, Profile, StreamSpec, Values};
use crate::units::Rate;

/// What a command line says about traffic.
#[derive(Clone, Debug, Default)]
pub struct Simple {
    /// The rate of all streams together.
    pub rate: Option<Rate>,
    /// Frame size with FCS.
    pub size: Option<u16>,
    /// The Internet mix instead of one size.
    pub imix: bool,
    /// Number of source addresses.
    pub flows: Option<u64>,
    /// Packets of each stream.
    pub packets: Option<u64>,
    /// Source address or range.
    pub source: Option<String>,
    /// Destination address or range.
    pub destination: Option<String>,
    /// Destination MAC address.
    pub destination_mac: Option<String>,
    /// Destinations are the gateways of the ports.
    pub gateway: bool,
    /// A second stream from port 1, with addresses exchanged.
    pub bidirectional: bool,
    /// No stamps.
    pub no_stamp: bool,
    /// The seed.
    pub seed: Option<u64>,
}

impl Profile {
    /// Makes a profile of one stream, or two when it is bidirectional.
    ///
    /// # Errors
    /// A sentence about the first value that is wrong.
    pub fn simple(wanted: &Simple) -> Result<Profile, String> {
        let mut spec = StreamSpec::new("forward", wanted.rate.unwrap_or(Rate::Packets(1000.0)));
        spec.packets = wanted.packets.unwrap_or(0);
        spec.stamped = !wanted.no_stamp;
        spec.packet = packet(wanted)?;
        if let Some(flows) = wanted.flows {
            spec.vary_flows(flows);
        }
        let least = crate::stream::smallest_frame(&spec) + 4;
        let most = crate::stream::LARGEST_FRAME + 4;
        spec.sizes = match (wanted.imix, wanted.size) {
            (true, _) => IMIX
                .map(|(size, weight)| (size.max(least as u16), weight))
                .to_vec(),
            (false, Some(size)) if !(least..=most).contains(&usize::from(size)) => {
                return Err(format!(
                    "a size of {size} bytes is impossible: these packets need {least} to {most} bytes with FCS"
                ));
            }
            (false, size) => vec![(size.unwrap_or(64).max(least as u16), 1)],
        };
        let mut streams = vec![spec];
        if wanted.bidirectional {
            streams.extend(streams.first().map(reversed));
        }
        Ok(Profile {
            seed: wanted.seed.unwrap_or(1),
            streams,
        })
    }
}

fn packet(wanted: &Simple) -> Result<PacketSpec, String> {
    let mut packet = PacketSpec::default();
    let first = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains(':'));
    let v6 = first(&wanted.source) || first(&wanted.destination);
    let kind = if v6 { Type::V6 } else { Type::V4 };
    let own = |text: &str| kind.values(text);
    let defaults = if v6 {
        ["2001:db8:1::1", "2001:db8:2::1"]
    } else {
        ["16.0.0.1", "48.0.0.1"]
    };
    let source = own(wanted.source.as_deref().unwrap_or(defaults[0]))?;
    let destination = own(wanted.destination.as_deref().unwrap_or(defaults[1]))?;
    packet.network = if v6 {
        Network::V6 {
            source,
            destination,
            ttl: Values::fixed(64),
            dscp: 0,
            flow_label: 0,
        }
    } else {
        Network::V4 {
            source,
            destination,
            ttl: Values::fixed(64),
            dscp: Values::fixed(0),
        }
    };
    match &wanted.destination_mac {
        Some(mac) => packet.destination_mac = Some(Type::Mac.values(mac)?),
        None if wanted.gateway => packet.destination_mac = None,
        None => {}
    }
    Ok(packet)
}

fn reversed(forward: &StreamSpec) -> StreamSpec {
    let mut spec = StreamSpec {
        name: "backward".to_owned(),
        port: 1,
        ..forward.clone()
    };
    if let Network::V4 {
        source,
        destination,
        ..
    }
    | Network::V6 {
        source,
        destination,
        ..
    } = &mut spec.packet.network
    {
        std::mem::swap(source, destination);
    }
    if let Some(mac) = &mut spec.packet.destination_mac {
        std::mem::swap(mac, &mut spec.packet.source_mac);
    }
    spec
}
