//! ARP and neighbor discovery for the generator's ports: answers requests for the port's address
//! and for the addresses that its streams send from, and learns the gateway's MAC address.
//!
//! Pure functions over frames; hostile frames give `None`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_wire::{MacAddr, build, checksum};

/// What a port answers for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) mac: Option<MacAddr>,
    /// Inclusive ranges of IPv4 addresses.
    pub(crate) v4: Vec<(u32, u32)>,
    /// Inclusive ranges of IPv6 addresses.
    pub(crate) v6: Vec<(u128, u128)>,
}

fn bytes<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..at + N)?.try_into().ok()
}

impl Answers {
    /// The reply to a request for one of the port's addresses.
    pub(crate) fn reply(&self, frame: &[u8]) -> Option<Vec<u8>> {
        match bytes::<2>(frame, 12)? {
            [0x08, 0x06] => self.arp(frame),
            [0x86, 0xdd] => self.neighbor(frame),
            _ => None,
        }
    }

    fn arp(&self, frame: &[u8]) -> Option<Vec<u8>> {
        // Ethernet and IPv4, operation 1: request.
        if bytes::<8>(frame, 14)? != [0, 1, 8, 0, 6, 4, 0, 1] {
            return None;
        }
        let asker_mac = MacAddr(bytes(frame, 22)?);
        let asker = u32::from_be_bytes(bytes(frame, 28)?);
        let target = u32::from_be_bytes(bytes(frame, 38)?);
        self.v4
            .iter()
            .find(|(first, last)| (*first..=*last).contains(&target))?;
        let mut reply = vec![0; 60];
        build::arp_reply(&mut reply, self.mac?, target, asker_mac, asker).then_some(reply)
    }

    fn neighbor(&self, frame: &[u8]) -> Option<Vec<u8>> {
        // ICMPv6 directly behind the IPv6 header, hop limit 255, type 135.
        if bytes::<2>(frame, 20)? != [58, 255] || bytes::<2>(frame, 54)? != [135, 0] {
            return None;
        }
        let asker: [u8; 16] = bytes(frame, 22)?;
        let target: [u8; 16] = bytes(frame, 62)?;
        let wanted = u128::from_be_bytes(target);
        self.v6
            .iter()
            .find(|(first, last)| (*first..=*last).contains(&wanted))?;
        if asker == [0; 16] {
            return None;
        }
        let mac = self.mac?;
        // Solicited, override; option 2: target link-layer address.
        let mut message = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
        message.extend_from_slice(&target);
        message.extend_from_slice(&[2, 1]);
        message.extend_from_slice(&mac.0);
        Some(icmp6(
            MacAddr(bytes(frame, 6)?),
            mac,
            &target,
            &asker,
            message,
        ))
    }
}

fn icmp6(
    to: MacAddr,
    from: MacAddr,
    source: &[u8; 16],
    destination: &[u8; 16],
    mut message: Vec<u8>,
) -> Vec<u8> {
    let sum = checksum::icmp6(source, destination, &message);
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    let mut frame = Vec::with_capacity(54 + message.len());
    frame.extend_from_slice(&to.0);
    frame.extend_from_slice(&from.0);
    frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend_from_slice(&(message.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[58, 255]);
    frame.extend_from_slice(source);
    frame.extend_from_slice(destination);
    frame.append(&mut message);
    frame
}

/// The request for the gateway's MAC address.
pub(crate) fn request(mac: MacAddr, source: IpAddr, gateway: IpAddr) -> Option<Vec<u8>> {
    match (source, gateway) {
        (IpAddr::V4(source), IpAddr::V4(gateway)) => {
            let mut frame = vec![0; 60];
            build::arp_request(&mut frame, mac, u32::from(source), u32::from(gateway))
                .then_some(frame)
        }
        (IpAddr::V6(source), IpAddr::V6(gateway)) => {
            let [.., a, b, c] = gateway.octets();
            let group = Ipv6Addr::new(
                0xff02,
                0,
                0,
                0,
                0,
                1,
                0xff00 | u16::from(a),
                u16::from_be_bytes([b, c]),
            );
            let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
            message.extend_from_slice(&gateway.octets());
            message.extend_from_slice(&[1, 1]);
            message.extend_from_slice(&mac.0);
            let to = MacAddr([0x33, 0x33, 0xff, a, b, c]);
            Some(icmp6(to, mac, &source.octets(), &group.octets(), message))
        }
        _ => None,
    }
}

/// The gateway's MAC address, when this frame says it.
pub(crate) fn learned(frame: &[u8], gateway: IpAddr) -> Option<MacAddr> {
    match gateway {
        IpAddr::V4(gateway) => {
            let arp = bytes::<2>(frame, 12)? == [8, 6]
                && bytes::<8>(frame, 14)? == [0, 1, 8, 0, 6, 4, 0, 2];
            let sender = Ipv4Addr::from(bytes::<4>(frame, 28)?);
            (arp && sender == gateway).then_some(MacAddr(bytes(frame, 22)?))
        }
        IpAddr::V6(gateway) => {
            let advertised = bytes::<2>(frame, 12)? == [0x86, 0xdd]
                && bytes::<2>(frame, 20)? == [58, 255]
                && bytes::<2>(frame, 54)? == [136, 0]
                && Ipv6Addr::from(bytes::<16>(frame, 62)?) == gateway
                && bytes::<2>(frame, 78)? == [2, 1];
            advertised.then_some(MacAddr(bytes(frame, 80)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn answers() -> Answers {
        let v6 = u128::from("fd00::9".parse::<Ipv6Addr>().unwrap());
        Answers {
            mac: Some(MAC),
            v4: vec![(0x0a00_0009, 0x0a00_000f)],
            v6: vec![(v6, v6)],
        }
    }

    /// Two ports find each other: the reply to a request teaches the asker.
    #[test]
    fn requests_are_answered_and_learned() {
        for (source, gateway) in [("10.0.0.1", "10.0.0.9"), ("fd00::1", "fd00::9")] {
            let gateway = gateway.parse().unwrap();
            let asked = request(PEER, source.parse().unwrap(), gateway).unwrap();
            let reply = answers().reply(&asked).unwrap();
            assert_eq!(learned(&reply, gateway), Some(MAC), "{gateway}");
            assert_eq!(reply[..6], PEER.0);
            assert_eq!(learned(&asked, gateway), None);
        }
        let other = request(
            PEER,
            "10.0.0.1".parse().unwrap(),
            "10.0.0.16".parse().unwrap(),
        )
        .unwrap();
        assert_eq!(answers().reply(&other), None);
    }

    #[test]
    fn cut_frames_are_ignored() {
        for (source, gateway) in [("10.0.0.1", "10.0.0.9"), ("fd00::1", "fd00::9")] {
            let asked = request(PEER, source.parse().unwrap(), gateway.parse().unwrap()).unwrap();
            for len in 0..42.min(asked.len()) {
                assert_eq!(answers().reply(&asked[..len]), None);
            }
        }
    }
}
