//! Frames as another program reads them: etherparse takes apart what the router sends and works its
//! checksums out anew.

use etherparse::{Icmpv4Header, NetSlice, SlicedPacket, TransportSlice};
use weir_wire::{Ipv4Header, Ipv6Header};

/// An ICMP message that the router sent, its checksums verified.
pub(crate) struct Icmp {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) ttl: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) argument: u32,
    pub(crate) quote: Vec<u8>,
    /// Bytes of the whole IP packet.
    pub(crate) total: usize,
}

/// The IPv4 header of a frame; the checksum and the length must be right.
pub(crate) fn header(frame: &[u8]) -> Ipv4Header {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = sliced.net else {
        panic!("not IPv4: {frame:02x?}")
    };
    let theirs = ip.header().to_header();
    assert_eq!(
        theirs.header_checksum,
        theirs.calc_header_checksum(),
        "header checksum"
    );
    assert_eq!(
        usize::from(theirs.total_len),
        frame.len() - 14,
        "no padding, nothing cut"
    );
    *Ipv4Header::read(&frame[14..]).unwrap().0
}

/// What follows the IPv4 header.
pub(crate) fn payload(frame: &[u8]) -> &[u8] {
    &frame[14 + header(frame).header_len()..]
}

/// Reads an ICMP message.
pub(crate) fn icmp(frame: &[u8]) -> Icmp {
    let header = header(frame);
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Icmpv4(slice)) = sliced.transport else {
        panic!("not ICMP: {frame:02x?}")
    };
    let theirs: Icmpv4Header = slice.header();
    assert_eq!(
        theirs.checksum,
        theirs.icmp_type.calc_checksum(slice.payload()),
        "ICMP checksum"
    );
    let bytes = payload(frame);
    Icmp {
        source: header.source(),
        destination: header.destination(),
        ttl: header.ttl,
        kind: bytes[0],
        code: bytes[1],
        argument: u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
        quote: bytes[8..].to_vec(),
        total: frame.len() - 14,
    }
}

/// The IPv6 header of a frame; the length must be right.
pub(crate) fn header6(frame: &[u8]) -> Ipv6Header {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv6(ip)) = sliced.net else {
        panic!("not IPv6: {frame:02x?}")
    };
    assert_eq!(
        usize::from(ip.header().payload_length()),
        frame.len() - 54,
        "no padding, nothing cut"
    );
    *Ipv6Header::read(&frame[14..]).unwrap().0
}

/// An ICMPv6 message that the router sent, its checksum verified.
#[derive(Debug)]
pub(crate) struct Icmp6 {
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) hop_limit: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) argument: u32,
    pub(crate) body: Vec<u8>,
}

/// Reads an ICMPv6 message.
pub(crate) fn icmp6(frame: &[u8]) -> Icmp6 {
    let header = header6(frame);
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Icmpv6(slice)) = sliced.transport else {
        panic!("not ICMPv6: {frame:02x?}")
    };
    assert!(
        slice.is_checksum_valid(header.source, header.destination),
        "ICMPv6 checksum"
    );
    let bytes = &frame[54..];
    Icmp6 {
        source: header.source,
        destination: header.destination,
        hop_limit: header.hop_limit,
        kind: bytes[0],
        code: bytes[1],
        argument: u32::from_be_bytes(bytes[4..8].try_into().unwrap()),
        body: bytes[8..].to_vec(),
    }
}
