//! What random interfaces are made of: devices, streams, tags, bonds.

use std::net::Ipv4Addr;

use super::small;
use crate::bond::{Bond, BondMode, LacpRate, LoadBalance};
use crate::device::{Device, Memif, MemifRole, Stream, StreamProtocol, XdpMode};
use crate::scalar::{Ipv4Range, MacAddr, PortRange};
use crate::sub_interface::{Encapsulation, SubInterface, TagRewrite};

/// With addresses for dice 0 and 1 of four, which then have exactly their tags.
pub(super) fn sub_interface(parent: &str, id: u32, dice: u8) -> SubInterface {
    let outer = Some(10 + u16::try_from(id).unwrap_or(0));
    let rewrite = TagRewrite {
        pop: dice / 4 % 2,
        dot1q: dice.is_multiple_of(3).then_some(7),
        ..TagRewrite::default()
    };
    let (encapsulation, tag_rewrite) = match dice % 4 {
        0 => (Encapsulation::of_id(id), None),
        1 => (
            Encapsulation {
                dot1ad: outer,
                inner_dot1q: Some(1 + u16::from(dice / 4 % 2)),
                exact_match: true,
                dot1q: None,
            },
            None,
        ),
        2 => (
            Encapsulation {
                dot1q: outer,
                ..Encapsulation::default()
            },
            None,
        ),
        _ => (Encapsulation::of_id(id), Some(rewrite)),
    };
    let tag_rewrite = tag_rewrite.filter(|rewrite| !rewrite.is_usual(&encapsulation));
    SubInterface {
        parent: parent.to_owned(),
        id,
        encapsulation,
        tag_rewrite,
    }
}

pub(super) fn bond(dice: u8) -> Bond {
    let mode = match dice / 3 % 5 {
        0 => BondMode::RoundRobin,
        1 => BondMode::ActiveBackup,
        2 => BondMode::Broadcast,
        3 => BondMode::Lacp,
        _ => BondMode::Xor,
    };
    let bond = Bond {
        mode,
        ..Bond::default()
    };
    Bond {
        load_balance: if bond.balances() && dice.is_multiple_of(2) {
            LoadBalance::L2
        } else {
            LoadBalance::L34
        },
        lacp_rate: if mode == BondMode::Lacp && dice.is_multiple_of(4) {
            LacpRate::Fast
        } else {
            LacpRate::Slow
        },
        ..bond
    }
}

pub(super) fn any_device(index: usize, dice: u8) -> Option<Device> {
    let mac = MacAddr([2, 0, 0, 3, small(index), dice]);
    match dice % 8 {
        0 => None,
        7 => Some(memif(
            format!("/run/memif {}.sock", dice / 64),
            index,
            dice / 8,
        )),
        1 | 2 => in_memory(index, dice / 8),
        3 => Some(Device::Pcap {
            input: Some(format!("/in-{index}.pcap").into()),
            output: dice.is_multiple_of(2).then(|| "out put".into()),
        }),
        4 | 5 => Some(Device::Tap {
            name: format!("lan{index}"),
            host_mac: dice.is_multiple_of(3).then_some(mac),
        }),
        _ => {
            let mode = if dice.is_multiple_of(2) {
                XdpMode::Auto
            } else {
                XdpMode::Generic
            };
            Some(Device::AfXdp {
                name: format!("eth{index}"),
                queues: u16::from(dice % 2 + 1),
                mode,
                allow_management: dice.is_multiple_of(5),
            })
        }
    }
    .filter(|device| {
        !matches!(
            device,
            Device::Pcap {
                output: Some(_),
                ..
            }
        ) || index == 0
    })
}

pub(super) fn in_memory(index: usize, dice: u8) -> Option<Device> {
    match dice % 5 {
        0 => None,
        // Slaves whose master never comes.
        4 => Some(memif(format!("@weir-nobody-{}", dice / 64), index, 23)),
        1 => Some(Device::Generator {
            streams: (0..=dice / 5 % 2)
                .map(|number| stream(index, number))
                .collect(),
        }),
        _ => Some(Device::Null),
    }
}

fn memif(socket: String, index: usize, dice: u8) -> Device {
    Device::Memif(Memif {
        socket: socket.into(),
        id: u32::from(small(index)),
        role: if dice.is_multiple_of(16) {
            MemifRole::Master
        } else {
            MemifRole::Slave
        },
        secret: dice.is_multiple_of(3).then(|| "it's: #1".to_owned()),
        queues: 1 + u16::from(dice / 16 % 2),
        ring_size: if dice.is_multiple_of(5) { 32 } else { 1024 },
        buffer_size: 2048,
    })
}

/// A stream slow enough that many routers can run at once.
fn stream(index: usize, number: u8) -> Stream {
    let address = |last: u8| Ipv4Addr::new(10, 0, small(index), last);
    Stream {
        name: format!("stream {number}"),
        limit: u64::from(number) * 1000,
        rate: 100,
        size: 60 + 100 * u16::from(number),
        source_mac: MacAddr([0x02, 0x77, 0x65, 0x69, 0x72, 0x01]),
        destination_mac: (number == 0).then_some(MacAddr([0xff; 6])),
        source: Ipv4Range {
            first: address(50),
            last: address(60),
        },
        destination: Ipv4Range {
            first: Ipv4Addr::new(100, number, 0, 1),
            last: Ipv4Addr::new(100, number, 0, 1),
        },
        source_port: PortRange {
            first: 1024,
            last: 1024 + u16::from(number),
        },
        destination_port: PortRange { first: 9, last: 9 },
        protocol: if number == 0 {
            StreamProtocol::Udp
        } else {
            StreamProtocol::Icmp
        },
    }
}
