//! A model of switching in plain Rust, compared with the programs over random frames.
//!
//! It follows docs/xdp.md and the reasons' sentences, reads frames by itself, and searches ACLs from the first rule to
//! the last. It knows no bonds, policers, connections and neighbour solicitations; other tests have those.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weir_xdp::config::{self, Carries, Config, Port, Rule, Unconfigured, Unknown};
use weir_xdp::reason;

use crate::bed::can_run;
use crate::programs::Rig;
use crate::rules::Random;

type Mac = [u8; 6];

/// What must become of a frame.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Kernel,
    Drop(&'static str),
    Flood,
    /// The port, and the frame as it leaves.
    Out(u32, Vec<u8>),
}

/// The ifindex of a port of the rig.
fn ifindex(name: &str) -> u32 {
    match name {
        "p2" => 1000,
        _ => name[1..].parse().unwrap(),
    }
}

struct Model {
    config: Config,
    /// Port and whether it is configured, by address and VLAN.
    fdb: BTreeMap<(Mac, u16), (String, bool)>,
}

/// A parsed packet.
#[derive(Default)]
struct Packet {
    kind: u16,
    l3: usize,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    protocol: u8,
    ports: Option<(u16, u16)>,
    icmp: Option<(u8, u8)>,
    flags: u8,
    bad: bool,
    fragment: bool,
    payload: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn is_tag(kind: u16) -> bool {
    kind == 0x8100 || kind == 0x88a8
}

/// `None`: cut short inside of the tags.
fn parse(frame: &[u8]) -> Packet {
    let mut packet = Packet {
        bad: true,
        ..Packet::default()
    };
    let mut at = 14;
    let Some(mut kind) = word(frame, 12) else {
        return packet;
    };
    for _ in 0..2 {
        if is_tag(kind) {
            let Some(inner) = word(frame, at + 2) else {
                return packet;
            };
            (kind, at) = (inner, at + 4);
        }
    }
    (packet.kind, packet.l3, packet.bad) = (kind, at, false);
    let read = match kind {
        0x0800 => parse4(frame, at, &mut packet),
        0x86dd => parse6(frame, at, &mut packet),
        _ => return packet,
    };
    packet.bad = read.is_none();
    packet
}

fn parse4(frame: &[u8], at: usize, packet: &mut Packet) -> Option<()> {
    let ip = frame.get(at..).filter(|it| it.len() >= 20)?;
    let header = usize::from(ip[0] & 15) * 4;
    let total = usize::from(word(ip, 2)?);
    if ip[0] >> 4 != 4 || header < 20 || total < header || ip.len() < header {
        return None;
    }
    let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap());
    (packet.source, packet.destination) = (Some(address(12)), Some(address(16)));
    packet.protocol = ip[9];
    packet.fragment = word(ip, 6)? & 0x1fff != 0;
    packet.payload = at + header;
    transport(frame, packet)
}

fn parse6(frame: &[u8], at: usize, packet: &mut Packet) -> Option<()> {
    let ip = frame.get(at..).filter(|it| it.len() >= 40)?;
    if ip[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).unwrap());
    (packet.source, packet.destination) = (Some(address(8)), Some(address(24)));
    let (mut next, mut at) = (ip[6], at + 40);
    for _ in 0..6 {
        if ![0, 43, 60, 44, 51].contains(&next) {
            break;
        }
        let option = frame.get(at..).filter(|it| it.len() >= 8)?;
        if at > 0x300 {
            return None;
        }
        let length = match next {
            44 => 8,
            51 => (usize::from(option[1]) + 2) * 4,
            _ => (usize::from(option[1]) + 1) * 8,
        };
        packet.fragment |= next == 44 && word(option, 2)? & 0xfff8 != 0;
        (next, at) = (option[0], at + length);
        if packet.fragment {
            break;
        }
    }
    if at > 0x3e0 || at > frame.len() {
        return None;
    }
    packet.protocol = next;
    packet.payload = at;
    transport(frame, packet)
}

fn transport(frame: &[u8], packet: &mut Packet) -> Option<()> {
    if packet.fragment {
        return Some(());
    }
    let rest = &frame[packet.payload.min(frame.len())..];
    match packet.protocol {
        6 => {
            packet.flags = *rest.get(13)?;
            packet.ports = Some((word(rest, 0)?, word(rest, 2)?));
        }
        17 | 132 => {
            rest.get(7)?;
            packet.ports = Some((word(rest, 0)?, word(rest, 2)?));
        }
        1 | 58 => {
            rest.get(3)?;
            packet.icmp = Some((rest[0], rest[1]));
        }
        _ => (),
    }
    Some(())
}

fn matches(rule: &Rule, packet: &Packet) -> bool {
    let inside = |net: &Option<config::IpNet>, address: Option<IpAddr>| {
        net.is_none_or(|net| address.is_some_and(|it| net.contains(&it)))
    };
    let within = |range: Option<(u16, u16)>, port: Option<u16>| {
        range.is_none_or(|(first, last)| port.is_some_and(|it| (first..=last).contains(&it)))
    };
    inside(&rule.source, packet.source)
        && inside(&rule.destination, packet.destination)
        && rule.protocol.is_none_or(|it| it == packet.protocol)
        && within(rule.source_ports, packet.ports.map(|it| it.0))
        && within(rule.destination_ports, packet.ports.map(|it| it.1))
        && rule.icmp.is_none_or(|(kind, code)| {
            packet
                .icmp
                .is_some_and(|it| it.0 == kind && code.is_none_or(|code| code == it.1))
        })
        && rule.tcp_flags.is_none_or(|(mask, set)| {
            packet.protocol == 6 && !packet.fragment && packet.flags & mask == set
        })
}

impl Model {
    fn new(text: &str) -> Model {
        let config = config::check("model", text.as_bytes()).unwrap();
        let mut fdb = BTreeMap::new();
        for (name, port) in &config.ports {
            let vlans: Vec<u16> = match &port.carries {
                Carries::Access { vlan, .. } => vec![*vlan],
                Carries::Trunk { vlans, native, .. } => {
                    let own = [2, 0, 0, 0, 0, name[1..].parse().unwrap()];
                    let all: Vec<u16> = vlans.iter().copied().chain(*native).collect();
                    for vlan in &all {
                        fdb.insert((own, *vlan), ("kernel".to_owned(), true));
                    }
                    all
                }
                Carries::Routed => Vec::new(),
            };
            for vlan in vlans {
                for mac in &port.macs {
                    fdb.insert((*mac, vlan), (name.clone(), true));
                }
            }
        }
        Model { config, fdb }
    }

    fn denied(&self, acl: &Option<String>, packet: &Packet) -> Option<bool> {
        let rules = &self.config.acls[acl.as_ref()?];
        if packet.kind != 0x0800 && packet.kind != 0x86dd {
            return None;
        }
        let found = rules.iter().find(|rule| matches(rule, packet));
        Some(!found.is_some_and(|rule| rule.permit))
    }

    /// What becomes of a frame that p1 received.
    fn decide(&mut self, frame: &[u8]) -> Expected {
        let port = self.config.ports["p1"].clone();
        let kind = word(frame, 12).unwrap();
        let tci = if is_tag(kind) {
            match word(frame, 14).filter(|_| frame.len() >= 18) {
                Some(tci) => Some(tci),
                None => return Expected::Drop("short-frame"),
            }
        } else {
            None
        };
        // The VLAN, whether the tag carries it, whether the tag is of VLAN 0.
        let (vlan, carried, priority) = match &port.carries {
            Carries::Access { vlan, tunnel, .. } => match tci {
                Some(tci) if !tunnel && tci & 0xfff != 0 => return Expected::Drop("tagged-frame"),
                Some(_) if !tunnel => (*vlan, false, true),
                _ => (*vlan, false, false),
            },
            Carries::Trunk {
                vlans,
                native,
                tpid,
            } => {
                let (vlan, carried, priority) = match tci.filter(|_| kind == *tpid) {
                    Some(tci) if tci & 0xfff != 0 => (tci & 0xfff, true, false),
                    Some(_) => (native.unwrap_or(0), false, true),
                    None => (native.unwrap_or(0), false, false),
                };
                if vlan == 0 || !(Some(vlan) == *native || vlans.contains(&vlan)) {
                    return match self.config.unconfigured {
                        Unconfigured::Kernel => Expected::Kernel,
                        Unconfigured::Drop => Expected::Drop("vlan-not-allowed"),
                    };
                }
                (vlan, carried, priority)
            }
            Carries::Routed => unreachable!(),
        };
        let (to, from): (Mac, Mac) = (
            frame[..6].try_into().unwrap(),
            frame[6..12].try_into().unwrap(),
        );
        if from[0] & 1 == 1 {
            return Expected::Drop("source-mac-invalid");
        }
        if to[..5] == [1, 0x80, 0xc2, 0, 0] && to[5] < 16 {
            return if port.control {
                Expected::Kernel
            } else {
                Expected::Drop("control-frame")
            };
        }
        if port.guard.mac && !port.macs.contains(&from) {
            return Expected::Drop("spoofed-mac");
        }
        let packet = parse(frame);
        if let Some(why) = self.guard(&port, frame, &packet, to[0] & 1 == 1) {
            return Expected::Drop(why);
        }
        if port.acl_in.is_some() && (packet.kind == 0x0800 || packet.kind == 0x86dd) {
            if packet.bad {
                return Expected::Drop("malformed");
            }
            if self.denied(&port.acl_in, &packet) == Some(true) {
                return Expected::Drop("acl-in");
            }
        }
        if port.learn {
            let entry = self
                .fdb
                .entry((from, vlan))
                .or_insert(("p1".to_owned(), false));
            if entry.0 != "p1" {
                if entry.1 && entry.0 != "kernel" {
                    return Expected::Drop("static-mac-moved");
                }
                if entry.0 == "kernel" {
                    // The host's own address on this very port is no move.
                } else {
                    entry.0 = "p1".to_owned();
                }
            }
        }
        if to[0] & 1 == 1 {
            if let Some(answer) = self.answer(&port, frame, &packet, vlan) {
                let longest = match port.carries {
                    Carries::Access { .. } => 1514,
                    _ => 1522,
                };
                return if answer.len() > longest {
                    Expected::Drop("mtu")
                } else {
                    Expected::Out(1, answer)
                };
            }
            return self.flood(frame);
        }
        match self.fdb.get(&(to, vlan)).map(|it| it.0.clone()) {
            Some(name) if name == "kernel" => Expected::Kernel,
            Some(name) if name == "p1" => Expected::Drop("hairpin"),
            Some(name) => self.depart(&name, frame, &packet, vlan, carried, priority),
            None => match port.unknown {
                Unknown::Kernel => Expected::Kernel,
                Unknown::Drop => Expected::Drop("unknown-unicast"),
                Unknown::Flood => self.flood(frame),
            },
        }
    }

    fn flood(&self, frame: &[u8]) -> Expected {
        if frame.len() > 1518 {
            Expected::Drop("mtu")
        } else {
            Expected::Flood
        }
    }

    fn guard(
        &self,
        port: &Port,
        frame: &[u8],
        packet: &Packet,
        group: bool,
    ) -> Option<&'static str> {
        let guard = port.guard;
        let parsed = guard.mac
            || guard.ip
            || guard.servers
            || port.acl_in.is_some()
            || (group && port.answer);
        if !parsed {
            return None;
        }
        if let Some(why) = self.guard_addresses(port, frame, packet) {
            return Some(why);
        }
        if guard.servers && !packet.fragment {
            let from_server = match packet.source {
                Some(IpAddr::V4(_)) => 67,
                _ => 547,
            };
            if packet.protocol == 17
                && packet.source.is_some()
                && packet.ports.is_some_and(|it| it.0 == from_server)
            {
                return Some("dhcp-server");
            }
            let v6 = matches!(packet.source, Some(IpAddr::V6(_)));
            if v6
                && packet.protocol == 58
                && packet.icmp.is_some_and(|it| it.0 == 134 || it.0 == 137)
            {
                return Some("router-advertisement");
            }
        }
        None
    }

    fn guard_addresses(&self, port: &Port, frame: &[u8], packet: &Packet) -> Option<&'static str> {
        let mut own = port.addresses.clone();
        if own.iter().any(|net| net.addr().is_ipv6()) {
            own.extend(port.macs.iter().map(|mac| {
                let [a, b, c, d, e, f] = *mac;
                let bytes = [
                    0xfe,
                    0x80,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    a ^ 2,
                    b,
                    c,
                    0xff,
                    0xfe,
                    d,
                    e,
                    f,
                ];
                config::IpNet::from(IpAddr::from(bytes))
            }));
        }
        let allowed = |address: IpAddr| own.iter().any(|net| net.contains(&address));
        if packet.kind == 0x0806 {
            let Some(arp) = frame.get(packet.l3..packet.l3 + 28) else {
                return Some("malformed");
            };
            if port.guard.mac && !port.macs.iter().any(|mac| arp[8..14] == *mac) {
                return Some("spoofed-mac");
            }
            let sender: [u8; 4] = arp[14..18].try_into().unwrap();
            return (port.guard.ip && sender != [0; 4] && !allowed(sender.into()))
                .then_some("spoofed-ip");
        }
        if !port.guard.ip {
            return None;
        }
        match packet.source {
            Some(IpAddr::V4(source)) => {
                let asks = source.is_unspecified()
                    && packet.protocol == 17
                    && packet.ports.is_some_and(|it| it.1 == 67);
                (!asks && !allowed(source.into())).then_some("spoofed-ip")
            }
            Some(IpAddr::V6(source)) if source.is_unspecified() => {
                (packet.protocol != 58).then_some("spoofed-ip")
            }
            Some(source) => {
                if !allowed(source) {
                    return Some("spoofed-ip");
                }
                if packet.protocol == 58 && packet.icmp.is_some_and(|it| it.0 == 136) {
                    let Some(target) = frame.get(packet.payload + 8..packet.payload + 24) else {
                        return Some("malformed");
                    };
                    let target: [u8; 16] = target.try_into().unwrap();
                    return (!allowed(target.into())).then_some("spoofed-ip");
                }
                None
            }
            None => packet.bad.then_some("malformed"),
        }
    }

    /// The answer to an ARP request for a known guest.
    fn answer(&self, port: &Port, frame: &[u8], packet: &Packet, vlan: u16) -> Option<Vec<u8>> {
        if !port.answer || packet.kind != 0x0806 {
            return None;
        }
        let at = packet.l3;
        let arp = frame.get(at..at + 28)?;
        if arp[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
            return None;
        }
        let target: [u8; 4] = arp[24..28].try_into().unwrap();
        let (name, owner) = self.config.ports.iter().find(|(_, it)| {
            let carries = matches!(it.carries, Carries::Access { vlan: own, .. } if own == vlan);
            carries
                && !it.macs.is_empty()
                && it
                    .addresses
                    .iter()
                    .any(|net| net.prefix_len() == 32 && net.addr() == IpAddr::from(target))
        })?;
        if name == "p1" {
            return None;
        }
        let mac = owner.macs[0];
        let mut answer = frame.to_vec();
        answer[..6].copy_from_slice(&frame[6..12]);
        answer[6..12].copy_from_slice(&mac);
        answer[at + 6..at + 8].copy_from_slice(&[0, 2]);
        answer[at + 8..at + 14].copy_from_slice(&mac);
        answer[at + 14..at + 18].copy_from_slice(&target);
        answer[at + 18..at + 28].copy_from_slice(&arp[8..18]);
        Some(answer)
    }

    fn depart(
        &self,
        name: &str,
        frame: &[u8],
        packet: &Packet,
        vlan: u16,
        carried: bool,
        priority: bool,
    ) -> Expected {
        let (from, to) = (&self.config.ports["p1"], &self.config.ports[name]);
        if from.isolated && to.isolated {
            return Expected::Drop("isolated");
        }
        if to.acl_out.is_some() && (packet.kind == 0x0800 || packet.kind == 0x86dd) {
            if packet.bad {
                return Expected::Drop("malformed");
            }
            if self.denied(&to.acl_out, packet) == Some(true) {
                return Expected::Drop("acl-out");
            }
        }
        let (head, rest) = frame.split_at(12);
        let had_tag = carried || priority;
        let old = if had_tag { word(rest, 2).unwrap() } else { 0 };
        let behind = if had_tag { &rest[4..] } else { rest };
        let tag = |tpid: u16, tci: u16| [tpid.to_be_bytes(), tci.to_be_bytes()].concat();
        let (tags, longest) = match &to.carries {
            Carries::Access { priority_tags, .. } => {
                let kept = if had_tag && *priority_tags && carried {
                    tag(0x8100, old & 0xf000)
                } else if priority {
                    // As it came.
                    rest[..4].to_vec()
                } else {
                    Vec::new()
                };
                (kept, 1514)
            }
            Carries::Trunk { native, tpid, .. } if Some(vlan) == *native => {
                let _ = tpid;
                (Vec::new(), 1522)
            }
            Carries::Trunk { tpid, .. } => {
                let class = if had_tag {
                    old & 0xf000
                } else {
                    u16::from(from.priority) << 13
                };
                (tag(*tpid, class | vlan), 1522)
            }
            Carries::Routed => unreachable!(),
        };
        let out = [head, &tags, behind].concat();
        if out.len() > longest {
            return Expected::Drop("mtu");
        }
        Expected::Out(ifindex(name), out)
    }
}

/// One of a list.
fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

const MACS: [Mac; 8] = [
    [0x52, 0x54, 0, 0, 0, 1],
    [0x52, 0x54, 0, 0, 0, 2],
    [0x52, 0x54, 0, 0, 0, 3],
    [0x52, 0x54, 0, 0, 0, 9],
    [2, 0, 0, 0, 0, 1],
    [0xff; 6],
    [1, 0, 0x5e, 0, 0, 5],
    [1, 0x80, 0xc2, 0, 0, 14],
];

/// A frame with what the checks ask for, now and then cut short or with a wrong byte.
fn random_frame(random: &mut Random) -> Vec<u8> {
    let mut frame = one(random, &MACS).to_vec();
    let senders = if random.below(8) == 0 { 8 } else { 4 };
    frame.extend(one(random, &MACS[..senders]));
    for _ in 0..one(random, &[0, 0, 0, 1, 1, 2, 3]) {
        frame.extend(one(random, &[0x8100u16, 0x8100, 0x88a8]).to_be_bytes());
        let vlan = one(random, &[0, 100, 100, 200, 300]);
        frame.extend((vlan | (random.below(16) as u16) << 12).to_be_bytes());
    }
    let addresses = [[192, 0, 2, 1], [192, 0, 2, 2], [10, 0, 0, 7], [0; 4]];
    match random.below(8) {
        0..=3 => {
            frame.extend([8, 0]);
            let options = one(random, &[0u8, 0, 0, 1, 4]);
            frame.extend([0x45 + options, 0, 0, 60, 0, 1]);
            frame.extend(one(random, &[0u16, 0, 0, 0x2000, 0x0010]).to_be_bytes());
            frame.extend([64, one(random, &[1, 6, 17, 17, 47, 132]), 0, 0]);
            frame.extend(one(random, &addresses));
            frame.extend(one(random, &addresses));
            frame.extend(vec![1; usize::from(options) * 4]);
        }
        4 | 5 => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40]);
            let next = one(random, &[6u8, 17, 58, 59, 0, 44, 60, 51]);
            frame.extend([next, 64]);
            for _ in 0..2 {
                let text = one(
                    random,
                    &["2001:db8::1", "2001:db8::2", "fe80::5054:ff:fe00:1", "::"],
                );
                frame.extend(text.parse::<std::net::Ipv6Addr>().unwrap().octets());
            }
            if [0, 44, 60, 51].contains(&next) {
                let fragment = one(random, &[0u8, 0, 8]);
                frame.extend([one(random, &[6, 17, 58, 60]), 0, 0, fragment, 0, 0, 0, 1]);
            }
        }
        6 => {
            frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, one(random, &[1, 1, 2])]);
            frame.extend(one(random, &MACS[..2]));
            frame.extend(one(random, &addresses));
            frame.extend([0; 6]);
            frame.extend(one(random, &addresses));
        }
        _ => frame.extend([0x88, 0xb5]),
    }
    // Ports, or type and code.
    frame.extend(one(random, &[67u16, 80, 547, 1000, 0x8600, 0x8800]).to_be_bytes());
    frame.extend(one(random, &[67u16, 80, 443, 22]).to_be_bytes());
    frame.extend([0; 9]);
    frame.push(one(random, &[2u8, 0x10, 0x12, 0]));
    frame.extend([0; 26]);
    match random.below(16) {
        0 => frame.truncate(14 + random.below(frame.len() as u64 - 13) as usize),
        1 => {
            let at = random.below(frame.len() as u64) as usize;
            frame[at] = random.below(256) as u8;
        }
        2 => frame.resize(1505 + random.below(30) as usize, 0),
        _ => (),
    }
    frame
}

const GUESTS: &str = "
  p2: {vlan: 100, macs: ['52:54:00:00:00:02'], addresses: [192.0.2.2, '2001:db8::2'], acl-out: x, isolated: true}
  p3: {vlan: 200, macs: ['52:54:00:00:00:03'], priority-tags: true}
  p4: {trunk: [100, 200, 300], native: 300, macs: ['52:54:00:00:00:09'], guard: none, tpid: 802.1ad}
acls:
  x:
    - {action: deny, protocol: tcp, destination-port: 22, tcp-flags: 'syn,!ack'}
    - {action: permit, protocol: tcp}
    - {action: deny, protocol: icmp, icmp-type: 136}
    - {action: permit, source: '2001:db8::/64', protocol: udp, source-port: 500-1200}
    - {action: deny, source: 10.0.0.0/24}
    - {action: permit, destination: 192.0.2.2}
    - {action: deny, protocol: udp, destination-port: 60-100}
    - {action: permit}
";

#[test]
fn random_frames_get_what_the_model_says() {
    if !can_run() {
        return;
    }
    let kinds = [
        "{vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1, '2001:db8::1'], isolated: true}",
        "{vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1/31], acl-in: x, priority: 5}",
        "{vlan: 100, tunnel: true, unknown-unicast: drop}",
        "{vlan: 200, guard: none, answer: true, acl-in: x}",
        "{trunk: [100, 200]}",
        "{trunk: [100], native: 200, tpid: 802.1ad, acl-in: x, unknown-unicast: kernel}",
    ];
    // 10^6 frames in all, more in the long run.
    let each = if std::env::var_os("WEIR_LONG").is_some() {
        5_000_000
    } else {
        1_000_000 / (2 * kinds.len()) + 1
    };
    let mut random = Random(7);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in kinds {
        for unconfigured in ["kernel", "drop"] {
            let text = format!("unconfigured: {unconfigured}\nports:\n  p1: {kind}{GUESTS}");
            let (mut model, mut rig) = (Model::new(&text), Rig::new(&text));
            let namespace = rig.namespace();
            namespace
                .run(|| {
                    for _ in 0..each {
                        let frame = random_frame(&mut random);
                        let expected = model.decide(&frame);
                        let outcome = rig.run_here(&frame);
                        let why = reason::by_number(outcome.event.reason).map(|it| it.name);
                        let found = match (outcome.verdict, why) {
                            (2, None) => Expected::Kernel,
                            (1, Some(name)) => Expected::Drop(name),
                            (4, None) if outcome.event.out_port == u32::MAX => Expected::Flood,
                            (4, None) => {
                                let mut frame = outcome.frame.clone();
                                assert_eq!(frame[6] & 1, 1);
                                frame[6] &= !1;
                                Expected::Out(outcome.event.out_port, frame)
                            }
                            other => panic!("{other:?}"),
                        };
                        assert!(
                            found == expected,
                            "{text}\n{} bytes: {:02x?}\nprograms {found:.90?}\nmodel {expected:.90?}",
                            frame.len(),
                            &frame[..frame.len().min(90)]
                        );
                        *seen
                            .entry(match expected {
                                Expected::Kernel => "kernel",
                                Expected::Drop(name) => name,
                                Expected::Flood => "flood",
                                Expected::Out(..) => "out",
                            })
                            .or_insert(0) += 1;
                    }
                })
                .unwrap();
        }
    }
    for name in [
        "kernel",
        "flood",
        "out",
        "short-frame",
        "source-mac-invalid",
        "tagged-frame",
        "vlan-not-allowed",
        "control-frame",
        "spoofed-mac",
        "spoofed-ip",
        "dhcp-server",
        "router-advertisement",
        "malformed",
        "acl-in",
        "static-mac-moved",
        "hairpin",
        "isolated",
        "unknown-unicast",
        "mtu",
        "acl-out",
    ] {
        assert!(
            seen.get(name).is_some_and(|it| *it > 10),
            "{name}: {seen:?}"
        );
    }
}
