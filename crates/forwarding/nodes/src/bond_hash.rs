//! The hash that keeps a flow on one member of a bond.
//!
//! Up to two VLAN tags are looked through. What lies deeper than the layers that are asked for, or is not what can
//! be read, is distinguished by its MAC addresses; MPLS by its labels, since what is below them is a guess.

use weir_port::bond::Layers;
use weir_wire::mpls::read_stack;
use weir_wire::vlan::Outer;
use weir_wire::{EtherType, Ipv4Header, Ipv6Header};

use crate::{flow_hash4, flow_hash6};

/// Labels that are looked at.
const LABELS: usize = 16;

/// Hash of a frame's flow by these layers.
#[inline]
pub(crate) fn bond_hash(layers: Layers, frame: &[u8]) -> u32 {
    let upper = if layers == Layers::L2 {
        None
    } else {
        upper(layers, frame)
    };
    match (layers, upper) {
        (Layers::L34, Some(upper)) => upper,
        (_, upper) => mac_hash(frame) ^ upper.unwrap_or(0).rotate_left(7),
    }
}

/// Of both MAC addresses.
#[inline]
fn mac_hash(frame: &[u8]) -> u32 {
    let Some(addresses) = frame.first_chunk::<12>() else {
        return 0;
    };
    mix(addresses
        .iter()
        .fold(0, |all: u128, byte| all << 8 | u128::from(*byte)))
}

/// Of what is above the MAC addresses; `None` when it is nothing that can be read.
#[inline]
fn upper(layers: Layers, frame: &[u8]) -> Option<u32> {
    let tags = Outer::read(frame).ok()?;
    let l3 = frame.get(tags.payload_at..)?;
    match tags.ethertype {
        EtherType::IPV4 => {
            let (header, _) = Ipv4Header::read(l3)?;
            Some(match layers {
                Layers::L34 => flow_hash4(header, l3.get(header.header_len()..).unwrap_or(&[])),
                _ => mix(u128::from(header.source()) << 32 | u128::from(header.destination())),
            })
        }
        EtherType::IPV6 => {
            let (header, _) = Ipv6Header::read(l3)?;
            Some(match layers {
                Layers::L34 => flow_hash6(l3),
                _ => mix(u128::from_be_bytes(header.source).rotate_left(1)
                    ^ u128::from_be_bytes(header.destination)),
            })
        }
        EtherType::MPLS | EtherType::MPLS_UPSTREAM => {
            let stack = read_stack(l3, LABELS).ok()?;
            Some(stack.entries().fold(0, |all, entry| {
                mix(u128::from(all) << 32 | u128::from(entry.label().0))
            }))
        }
        _ => None,
    }
}

#[inline]
fn mix(all: u128) -> u32 {
    let folded = ((all >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ all as u64;
    let mixed = (folded ^ folded >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use weir_wire::MacAddr;
    use weir_wire::build::{self, Ends, Ends6};

    use super::*;

    fn ends(source_port: u16) -> Ends {
        Ends {
            source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            source: 0x0a00_0001,
            destination: 0x0a00_0002,
            source_port,
            destination_port: 9,
            ttl: 64,
        }
    }

    #[test]
    fn each_layer_sees_what_it_is_asked_for() {
        let (one, other) = (
            build::udp4(&ends(1), &[0; 20]),
            build::udp4(&ends(2), &[0; 20]),
        );
        assert_ne!(bond_hash(Layers::L34, &one), bond_hash(Layers::L34, &other));
        assert_eq!(bond_hash(Layers::L23, &one), bond_hash(Layers::L23, &other));
        let far = build::udp4(
            &Ends {
                destination: 0x0a00_0003,
                ..ends(1)
            },
            &[0; 20],
        );
        assert_ne!(bond_hash(Layers::L23, &one), bond_hash(Layers::L23, &far));
        assert_eq!(bond_hash(Layers::L2, &one), bond_hash(Layers::L2, &far));
        let mac = build::udp4(
            &Ends {
                source_mac: MacAddr([2, 0, 0, 0, 0, 9]),
                ..ends(1)
            },
            &[0; 20],
        );
        assert_ne!(bond_hash(Layers::L2, &one), bond_hash(Layers::L2, &mac));
        assert_eq!(bond_hash(Layers::L34, &one), bond_hash(Layers::L34, &mac));
    }

    #[test]
    fn tags_are_looked_through_and_labels_distinguished() {
        let frame = build::udp4(&ends(1), &[0; 20]);
        let tagged = build::tagged(&build::tagged(&frame, 7, 0), 8, 3);
        for layers in [Layers::L2, Layers::L23, Layers::L34] {
            assert_eq!(
                bond_hash(layers, &frame),
                bond_hash(layers, &tagged),
                "{layers:?}"
            );
        }
        let labelled = |label: u32| {
            [
                &frame[..12],
                &[0x88, 0x47],
                &(label << 12 | 0x1ff).to_be_bytes(),
                &frame[14..],
            ]
            .concat()
        };
        assert_ne!(
            bond_hash(Layers::L34, &labelled(16)),
            bond_hash(Layers::L34, &labelled(17))
        );
        let ends6 = |port| Ends6 {
            source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            source: [1; 16],
            destination: [2; 16],
            source_port: port,
            destination_port: 9,
            hop_limit: 64,
            flow_label: 0,
        };
        let (one, other) = (
            build::udp6(&ends6(1), &[0; 9]),
            build::udp6(&ends6(2), &[0; 9]),
        );
        assert_ne!(bond_hash(Layers::L34, &one), bond_hash(Layers::L34, &other));
        assert_eq!(bond_hash(Layers::L23, &one), bond_hash(Layers::L23, &other));
    }

    #[test]
    fn whatever_is_cut_off_has_a_hash() {
        let frame = build::tagged(&build::udp4(&ends(1), &[0; 20]), 7, 0);
        for len in 0..frame.len() {
            for layers in [Layers::L2, Layers::L23, Layers::L34] {
                let _ = bond_hash(layers, &frame[..len]);
            }
        }
    }
}
