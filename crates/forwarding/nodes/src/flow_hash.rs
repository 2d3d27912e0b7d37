//! The hash that keeps a flow on one path.
//!
//! Over addresses, protocol and, where every packet of the flow shows them, ports. Fragments are
//! hashed without ports, the first one too, so that all pieces of a packet take one way. An IPv6 flow
//! label that is set stands for the ports (RFC 6438).

use weir_wire::{IpProtocol, Ipv4Header, ipv6};

/// Hash of an IPv4 packet's flow; `payload` follows the header.
#[inline]
#[must_use]
pub fn flow_hash4(header: &Ipv4Header, payload: &[u8]) -> u32 {
    let protocol = header.protocol();
    let has_ports =
        (protocol == IpProtocol::TCP || protocol == IpProtocol::UDP) && !header.is_fragment();
    let ports = match payload.first_chunk::<4>() {
        Some(ports) if has_ports => u32::from_be_bytes(*ports),
        _ => 0,
    };
    let addresses = u64::from(header.source()) << 32 | u64::from(header.destination());
    let rest = u64::from(ports) << 8 | u64::from(protocol.0);
    let mixed = (addresses ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 32) ^ rest).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (mixed ^ (mixed >> 29)) as u32
}

/// Hash of an IPv6 packet's flow.
#[inline]
#[must_use]
pub fn flow_hash6(packet: &[u8]) -> u32 {
    ipv6::Flow::read(packet).map_or(0, |flow| flow.hash(0))
}
