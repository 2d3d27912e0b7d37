//! What tells one flow over IPv6 from others, and a number made of it to choose paths by.
//!
//! A flow label that is set stands for the ports: a source gives each flow its own (RFC 6437 section
//! 2), and it is there in every fragment, behind every extension header, and within ESP. Without one,
//! the five-tuple is used, of whole packets only: all pieces of a packet shall take one path, and the
//! later ones have no ports.

use super::{Ipv6Header, MAX_BYTES, MAX_HEADERS, walk};
use crate::IpProtocol;

/// Addresses, and what else there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Where it comes from.
    pub source: [u8; 16],
    /// Where it goes.
    pub destination: [u8; 16],
    /// The flow label, 20 bits.
    pub label: u32,
    /// What is carried; 0 where the label stands for it.
    pub protocol: IpProtocol,
    /// Source port in the upper half, destination port in the lower; 0 without.
    pub ports: u32,
}

impl Flow {
    /// The flow of a packet; `None` when not even its fixed header is there. Extension headers that
    /// cannot be passed leave a flow of addresses alone.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Flow> {
        let (header, _) = Ipv6Header::read(packet)?;
        let (source, destination, label) = (header.source, header.destination, header.flow_label());
        let mut flow = Flow {
            source,
            destination,
            label,
            protocol: IpProtocol(0),
            ports: 0,
        };
        if label != 0 {
            return Some(flow);
        }
        let Ok(chain) = walk(packet, MAX_HEADERS, MAX_BYTES) else {
            return Some(flow);
        };
        flow.protocol = chain.protocol;
        let has_ports = matches!(
            chain.protocol,
            IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP
        );
        if has_ports && !chain.is_fragment() {
            let ports = packet.get(chain.offset..).and_then(<[u8]>::first_chunk);
            flow.ports = ports.map_or(0, |ports| u32::from_be_bytes(*ports));
        }
        Some(flow)
    }

    /// A number of 32 bits in which every bit of the flow and of `seed` counts. Routers one behind the
    /// other need different seeds, or the second chooses as the first did.
    #[must_use]
    pub fn hash(&self, seed: u64) -> u32 {
        let (from, to) = (
            u128::from_be_bytes(self.source),
            u128::from_be_bytes(self.destination),
        );
        let rest =
            u64::from(self.ports) << 32 | u64::from(self.label) << 8 | u64::from(self.protocol.0);
        let words = [
            (from >> 64) as u64,
            from as u64,
            (to >> 64) as u64,
            to as u64,
            rest,
        ];
        let sum = words
            .into_iter()
            .fold(seed ^ 0x9e37_79b9_7f4a_7c15, |sum, word| {
                fold(sum ^ word, 0xa076_1d64_78bd_642f)
            });
        (fold(sum, 0xe703_7ed1_a0b4_28db) >> 32) as u32
    }
}

/// Multiplies to 128 bits and folds the halves together; a rotation keeps 0 from swallowing the rest.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64 ^ product as u64).wrapping_add(a.rotate_left(23))
}
