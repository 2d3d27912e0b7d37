//! What makes an interface a VXLAN tunnel (RFC 7348), and which packets are a tunnel's.
//!
//! [`Vxlan`] is one tunnel with the headers that it puts around frames, all but lengths, source port and checksums
//! written beforehand. [`VxlanTable`] finds the tunnel of a packet by both ends and the segment. Both are values made by
//! the control thread and only read by workers; the table holds what is configured, and nothing that packets bring.

use std::net::IpAddr;

use weir_wire::{
    EtherType, EthernetHeader, IpProtocol, Ipv4Header, Ipv6Header, MacAddr, UdpHeader, VxlanHeader,
    checksum,
};
use zerocopy::IntoBytes;

/// Hops that a tunnel's packets may go.
const HOPS: u8 = 64;

/// A tunnel as workers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// The own end.
    pub local: IpAddr,
    /// The far end, of the same IP version.
    pub remote: IpAddr,
    /// The segment, 24 bits.
    pub vni: u32,
    headers: Box<[u8]>,
}

impl Vxlan {
    /// A tunnel; `None` when its ends are of two IP versions.
    #[must_use]
    pub fn new(local: IpAddr, remote: IpAddr, vni: u32) -> Option<Vxlan> {
        let mut headers = Vec::new();
        let mut put = |header: &[u8]| headers.extend_from_slice(header);
        let ethernet = |ethertype| EthernetHeader::new(MacAddr::ZERO, MacAddr::ZERO, ethertype);
        // One hop more than leaves: the look-up takes one off, as of all that it forwards.
        match (local, remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let mut header =
                    Ipv4Header::new(local.into(), remote.into(), IpProtocol::UDP, HOPS + 1, 0);
                // RFC 7348 section 4.3: never fragmented, neither here nor, as far as we can tell, on the way.
                header.set_dont_fragment(true);
                header.set_checksum(checksum::internet(header.as_bytes()));
                put(ethernet(EtherType::IPV4).as_bytes());
                put(header.as_bytes());
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                let header = Ipv6Header::new(
                    local.octets(),
                    remote.octets(),
                    IpProtocol::UDP,
                    HOPS + 1,
                    0,
                );
                put(ethernet(EtherType::IPV6).as_bytes());
                put(header.as_bytes());
            }
            _ => return None,
        }
        put(UdpHeader::new(0, VxlanHeader::PORT, 0).as_bytes());
        put(VxlanHeader::new(vni).as_bytes());
        Some(Vxlan {
            local,
            remote,
            vni: vni & VNIS,
            headers: headers.into(),
        })
    }

    /// What comes before a frame, from an Ethernet header without addresses on. Lengths and source port are zero, an
    /// IPv4 checksum is right for that, a UDP checksum is zero.
    #[inline(always)]
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        &self.headers
    }
}

const VNIS: u32 = 0xff_ffff;

/// What tells tunnels apart: the addresses as IPv6 ones (IPv4 mapped, RFC 4291 section 2.5.5.2), and the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VxlanKey {
    /// The own end.
    pub local: u128,
    /// The far end.
    pub remote: u128,
    /// The segment.
    pub vni: u32,
}

impl VxlanKey {
    /// Of IPv4 addresses.
    #[inline(always)]
    #[must_use]
    pub const fn v4(local: u32, remote: u32, vni: u32) -> VxlanKey {
        const MAPPED: u128 = 0xffff_0000_0000;
        VxlanKey {
            local: MAPPED | local as u128,
            remote: MAPPED | remote as u128,
            vni,
        }
    }

    fn of(tunnel: &Vxlan) -> VxlanKey {
        match (tunnel.local, tunnel.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                VxlanKey::v4(local.into(), remote.into(), tunnel.vni)
            }
            (local, remote) => VxlanKey {
                local: bits(local),
                remote: bits(remote),
                vni: tunnel.vni,
            },
        }
    }

    #[inline(always)]
    const fn hash(self) -> usize {
        let ends = self.local.rotate_left(23) ^ self.remote;
        let mixed = ((ends >> 64) as u64 ^ ends as u64 ^ (self.vni as u64) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32) as usize
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Why no tunnel takes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTunnel {
    /// No tunnel has this segment.
    UnknownVni,
    /// Some tunnel has, but between others.
    UnknownPeer,
}

/// The tunnels by what tells them apart: an open table, at most half full.
#[derive(Clone, Debug, Default)]
pub struct VxlanTable {
    places: Box<[Option<(VxlanKey, u32)>]>,
    /// All segments, in order.
    vnis: Box<[u32]>,
}

impl VxlanTable {
    /// The table of these tunnels and their interfaces; of two that cannot be distinguished, the last one stays.
    #[must_use]
    pub fn new<'a>(tunnels: impl ExactSizeIterator<Item = (&'a Vxlan, u32)>) -> VxlanTable {
        if tunnels.len() == 0 {
            return VxlanTable::default();
        }
        let size = (tunnels.len() * 2).next_power_of_two().max(4);
        let (mut places, mut vnis) = (vec![None; size], Vec::with_capacity(tunnels.len()));
        for (tunnel, interface) in tunnels {
            let key = VxlanKey::of(tunnel);
            vnis.push(key.vni);
            let mut place = key.hash();
            while let Some(slot) = places.get_mut(place & (size - 1)) {
                if slot.is_none_or(|(other, _)| other == key) {
                    *slot = Some((key, interface));
                    break;
                }
                place = place.wrapping_add(1);
            }
        }
        vnis.sort_unstable();
        vnis.dedup();
        VxlanTable {
            places: places.into(),
            vnis: vnis.into(),
        }
    }

    /// Whether there are no tunnels.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The interface of the tunnel that takes a packet.
    ///
    /// # Errors
    /// None does.
    #[inline(always)]
    pub fn find(&self, key: VxlanKey) -> Result<u32, NoTunnel> {
        let mut place = key.hash();
        while let Some(Some((found, interface))) =
            self.places.get(place & self.places.len().wrapping_sub(1))
        {
            if *found == key {
                return Ok(*interface);
            }
            place = place.wrapping_add(1);
        }
        Err(self.why_not(key.vni))
    }

    #[cold]
    fn why_not(&self, vni: u32) -> NoTunnel {
        if self.vnis.binary_search(&vni).is_ok() {
            NoTunnel::UnknownPeer
        } else {
            NoTunnel::UnknownVni
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn headers_are_those_of_rfc_7348() {
        let tunnel =
            Vxlan::new([192, 0, 2, 1].into(), [198, 51, 100, 2].into(), 0x12_3456).unwrap();
        #[rustfmt::skip]
        let expected = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00,
            // DF; 65 hops, of which 64 are left behind the look-up; UDP; the sum of the other words is 0x51e8.
            0x45, 0, 0, 0, 0, 0, 0x40, 0, 65, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2,
            0, 0, 0x12, 0xb5, 0, 0, 0, 0,
            0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0,
        ];
        let mut headers = tunnel.headers().to_vec();
        assert_eq!(checksum::internet(&headers[14..34]), 0);
        headers[24..26].fill(0);
        assert_eq!(headers, expected);
        let six = Vxlan::new(Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from(2).into(), 1).unwrap();
        assert_eq!(
            (
                six.headers().len(),
                six.headers()[21],
                &six.headers()[12..14]
            ),
            (70, 65, &[0x86, 0xdd][..])
        );
        assert!(Vxlan::new(Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), 1).is_none());
    }

    #[test]
    fn a_packet_finds_its_tunnel_and_no_other() {
        let far = |last: u32| IpAddr::from(Ipv4Addr::from(0xc633_6400 + last));
        let tunnels: Vec<Vxlan> = (0..500)
            .map(|n| Vxlan::new([192, 0, 2, 1].into(), far(n % 50), 1 + n / 50).unwrap())
            .collect();
        let six = Vxlan::new(Ipv6Addr::from(1).into(), Ipv6Addr::from(2).into(), 7).unwrap();
        let all: Vec<(&Vxlan, u32)> = tunnels.iter().chain([&six]).zip(10..).collect();
        let table = VxlanTable::new(all.iter().copied());
        for (tunnel, interface) in &all {
            assert_eq!(table.find(VxlanKey::of(tunnel)), Ok(*interface));
        }
        let key = |remote, vni| VxlanKey::v4(0xc000_0201, remote, vni);
        assert_eq!(table.find(key(0xc633_6400, 1)), Ok(10));
        assert_eq!(table.find(key(0xc633_6400, 11)), Err(NoTunnel::UnknownVni));
        assert_eq!(table.find(key(0xc633_6432, 1)), Err(NoTunnel::UnknownPeer));
        assert_eq!(
            table.find(VxlanKey {
                local: 1,
                remote: 2,
                vni: 7
            }),
            Ok(510)
        );
        assert_eq!(
            table.find(VxlanKey {
                local: 2,
                remote: 1,
                vni: 7
            }),
            Err(NoTunnel::UnknownPeer)
        );
        let none = VxlanTable::default();
        assert!(none.is_empty() && none.find(key(1, 1)) == Err(NoTunnel::UnknownVni));
    }
}
