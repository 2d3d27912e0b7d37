//! A small router of four ports, and frames that it drops for reasons which no scenario has.

use weir_wire::build::{self, Ends, Ends6};
use weir_wire::ipv6::FragmentHeader;
use weir_wire::ipv6::{multicast_mac, solicited_node};
use weir_wire::nd::{self, Claim};
use weir_wire::{
    ArpPacket, EtherType, EthernetHeader, IpProtocol, Ipv4Header, Ipv6Header, MacAddr, checksum,
    icmp6,
};
use zerocopy::IntoBytes;

use crate::live::Folder;

/// The router's MAC address at `west`, and that of the host behind it.
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 1, 2]);
/// Link type of capture files.
const ETHERNET: u32 = 1;

pub(crate) const CONFIGURATION: &str = "interfaces:
  west:
    device: { driver: pcap, input: west.in.pcap, output: west.out.pcap }
    mac: 02:00:00:00:00:01
    addresses: [ 10.0.1.1/24, '2001:db8:1::1/64' ]
    mpls: true
  east:
    device: { driver: pcap, output: east.out.pcap }
    mac: 02:00:00:00:00:02
    addresses: [ 10.0.2.1/24, '2001:db8:2::1/64' ]
  south:
    device: { driver: pcap, input: south.in.pcap, output: south.out.pcap }
    l2xc: north
  north:
    device: { driver: pcap, output: north.out.pcap }
    state: down
  slow:
    device: { driver: pcap, input: slow.in.pcap, output: slow.out.pcap }
    mac: 02:00:00:00:00:01
    addresses: [ 10.0.5.1/24 ]
    police: { input: { rate: 8000, burst: 128 } }
loopbacks:
  loop0: { addresses: [ 10.0.9.1/32, '2001:db8:9::1/128' ] }
neighbors:
  - { interface: west, address: 10.0.1.2, mac: 02:00:00:00:01:02 }
  - { interface: east, address: 10.0.2.2, mac: 02:00:00:00:02:02 }
  - { interface: east, address: '2001:db8:2::2', mac: 02:00:00:00:02:02 }
";

fn ip(text: &str) -> u32 {
    text.parse::<std::net::Ipv4Addr>().unwrap().into()
}

fn ip6(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

fn ends(destination: &str) -> Ends {
    Ends {
        source_mac: HOST,
        destination_mac: ROUTER,
        source: ip("10.0.1.2"),
        destination: ip(destination),
        source_port: 4000,
        destination_port: 9,
        ttl: 64,
    }
}

fn ends6(destination: &str) -> Ends6 {
    Ends6 {
        source_mac: HOST,
        destination_mac: ROUTER,
        source: ip6("2001:db8:1::2"),
        destination: ip6(destination),
        source_port: 4000,
        destination_port: 9,
        hop_limit: 64,
        flow_label: 0,
    }
}

fn udp(destination: &str) -> Vec<u8> {
    build::udp4(&ends(destination), &[1; 40])
}

fn udp6(destination: &str) -> Vec<u8> {
    build::udp6(&ends6(destination), &[1; 40])
}

/// An IPv4 packet with a changed header and the right checksum.
fn altered(mut frame: Vec<u8>, change: impl FnOnce(&mut Ipv4Header)) -> Vec<u8> {
    change(Ipv4Header::read_mut(&mut frame[14..]).unwrap().0);
    checksum::ipv4_header_set(&mut frame[14..]);
    frame
}

fn altered6(mut frame: Vec<u8>, change: impl FnOnce(&mut Ipv6Header)) -> Vec<u8> {
    change(Ipv6Header::read_mut(&mut frame[14..]).unwrap().0);
    frame
}

/// A frame with one octet changed, and nothing made right.
fn broken(mut frame: Vec<u8>, at: usize, octet: u8) -> Vec<u8> {
    frame[at] = octet;
    frame
}

fn cut(mut frame: Vec<u8>, length: usize) -> Vec<u8> {
    frame.truncate(length);
    frame
}

fn from(source: &str) -> Vec<u8> {
    altered(udp("10.0.2.2"), |header| header.set_source(ip(source)))
}

fn from6(source: &str) -> Vec<u8> {
    altered6(udp6("2001:db8:2::2"), |header| header.source = ip6(source))
}

fn with_options(frame: &[u8], options: &[u8]) -> Vec<u8> {
    let made = [&frame[..34], options, &frame[34..]].concat();
    let total = (made.len() - 14) as u16;
    altered(made, |header| {
        header.set_header_len(20 + options.len());
        header.set_total_len(total);
    })
}

/// A first fragment to the router itself.
fn fragment6() -> Vec<u8> {
    let frame = udp6("2001:db8:9::1");
    let fragment = FragmentHeader::new(IpProtocol::UDP, 0, true, 77);
    let made = [&frame[..54], fragment.as_bytes(), &frame[54..]].concat();
    let payload = (made.len() - 54) as u16;
    altered6(made, |header| {
        header.set_payload_len(payload);
        header.set_next_header(IpProtocol::FRAGMENT);
    })
}

/// An ICMP header of which only the first four octets are there, with a right checksum.
fn short_icmp() -> Vec<u8> {
    let mut frame = cut(udp("10.0.9.1"), 38);
    frame[34..].copy_from_slice(&[8, 0, 0xf7, 0xff]);
    altered(frame, |header| {
        header.set_protocol(IpProtocol::ICMP);
        header.set_total_len(24);
    })
}

fn arp(mac: MacAddr, sender: &str, target: &str) -> Vec<u8> {
    let packet = ArpPacket::new(
        ArpPacket::REQUEST,
        mac,
        ip(sender),
        MacAddr::ZERO,
        ip(target),
    );
    build::arp(MacAddr::BROADCAST, &packet)
}

/// A frame around the ICMPv6 packet that `write` makes.
fn icmp(to: MacAddr, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut packet = [0; 200];
    let length = write(&mut packet).unwrap();
    let header = EthernetHeader::new(to, HOST, EtherType::IPV6);
    [header.as_bytes(), &packet[..length]].concat()
}

fn solicitation() -> Vec<u8> {
    let target = ip6("2001:db8:1::1");
    icmp(multicast_mac(&solicited_node(&target)), |packet| {
        nd::neighbor_solicitation(packet, ip6("2001:db8:1::7"), HOST, target)
    })
}

/// A solicitation that is changed, with length and checksum made right.
fn mended(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = solicitation();
    change(&mut frame);
    let payload = (frame.len() - 54) as u16;
    let mut frame = altered6(frame, |header| header.set_payload_len(payload));
    icmp6::checksum_set(&mut frame[14..]);
    frame
}

/// A claim to an address by unicast that nobody asked for, from another subnet.
fn advertisement(target: &str, to: &str) -> Vec<u8> {
    let claim = Claim {
        router: false,
        solicited: true,
        override_known: true,
    };
    let group = MacAddr([0x33, 0x33, 0, 0, 0, 1]);
    icmp(if to == "::" { group } else { ROUTER }, |packet| {
        nd::neighbor_advertisement(packet, ip6(target), ip6(to), ip6(target), HOST, claim)
    })
}

fn label(entry: [u8; 4]) -> Vec<u8> {
    let frame = udp("10.0.2.2");
    [&frame[..12], &[0x88, 0x47], &entry, &frame[14..]].concat()
}

/// What comes in at `west`, each frame once, but for the packets of one next hop that nobody has.
fn at_west() -> Vec<Vec<u8>> {
    let echo = |kind| build::echo4(&ends("10.0.9.1"), kind, 1, 1, &[1; 8]);
    let echo6 = |kind| build::echo6(&ends6("2001:db8:9::1"), kind, 1, 1, &[1; 8]);
    let mut frames = vec![
        from("0.0.0.1"),
        from("239.1.2.3"),
        from("241.0.0.1"),
        udp("0.0.0.0"),
        // Record route whose pointer is 0, and a loose source route.
        with_options(&udp("10.0.2.2"), &[7, 7, 0, 0, 0, 0, 0, 0]),
        with_options(&udp("10.0.2.2"), &[131, 7, 4, 10, 0, 2, 2, 0]),
        altered(udp("10.0.9.1"), |header| header.set_fragment(0, true)),
        broken(udp("10.0.9.1"), 39, 0xff),
        broken(udp("10.0.9.1"), 45, 0x99),
        broken(build::tcp4(&ends("10.0.9.1"), 2, &[]), 47, 0x99),
        short_icmp(),
        echo(13),
        arp(MacAddr::BROADCAST, "10.0.1.7", "10.0.1.1"),
        broken(arp(HOST, "10.0.1.7", "10.0.1.1"), 21, 9),
        cut(udp6("2001:db8:2::2"), 53),
        broken(udp6("2001:db8:2::2"), 14, 0x45),
        altered6(udp6("2001:db8:2::2"), |header| header.set_payload_len(49)),
        from6("::1"),
        from6("::"),
        from6("ff0e::1"),
        from6("::ffff:10.0.0.1"),
        udp6("::1"),
        udp6("::"),
        udp6("ff0e::1"),
        broken(udp6("2001:db8:2::2"), 0, 0x33),
        udp6("fe80::77"),
        from6("fe80::5"),
        fragment6(),
        echo6(130),
        mended(|frame| frame.truncate(70)),
        broken(solicitation(), 21, 254),
        mended(|frame| frame[79] = 0),
        mended(|frame| frame[54] = 137),
        advertisement("2001:db8:1::1", "::"),
        advertisement("2001:db8:77::1", "::"),
        // Router alert at the bottom of the stack (RFC 3032 section 2.1), and labels that nobody knows.
        label([0, 0, 0x11, 9]),
        label([0, 0x3e, 0x71, 9]),
        cut(udp("10.0.2.2"), 13),
    ];
    frames.extend(vec![udp("10.0.2.77"); 100]);
    frames
}

/// Writes what comes in at `west`, at `south` a frame for a port that is down, and at `slow` one that is longer than the
/// policer's burst.
pub(crate) fn write(folder: &Folder) {
    for (file, frames) in [
        ("west.in.pcap", at_west()),
        ("south.in.pcap", vec![udp("10.0.2.2")]),
        (
            "slow.in.pcap",
            vec![build::udp4(&ends("10.0.2.2"), &[1; 200])],
        ),
    ] {
        let mut file = weir_pcap::file::Writer::create(folder.file(file), ETHERNET).unwrap();
        for frame in frames {
            file.write(0, frame.len() as u32, &frame).unwrap();
        }
        file.flush().unwrap();
    }
}
