//! The pure helpers; the nodes themselves are tested as one router in `tests/router`.

use weir_wire::{IpProtocol, Ipv4Header};

use crate::flow_hash4;
use crate::recent::Recent;

#[test]
fn recent_things_are_new_once_and_again_after_their_time() {
    let mut recent = Recent::new(100);
    assert!(recent.is_new(7, 1000) && !recent.is_new(7, 1000) && !recent.is_new(7, 1099));
    assert!(recent.is_new(7, 1100) && !recent.is_new(7, 1199));
    // Also for what is zero, at time zero, and at the end of time.
    assert!(recent.is_new(0, 0) && !recent.is_new(0, 99) && recent.is_new(0, 100));
    assert!(recent.is_new(9, u64::MAX));
}

#[test]
fn many_keys_are_mostly_remembered_and_never_kept_too_long() {
    let mut recent = Recent::new(100);
    let mut storm = |now| (0..64).filter(|&key| recent.is_new(key, now)).count();
    assert_eq!(storm(0), 64);
    assert!(storm(50) < 40, "a collision forgets, most do not collide");
    assert_eq!(storm(1000), 64);
}

fn header(protocol: IpProtocol, source: u32, destination: u32) -> Ipv4Header {
    Ipv4Header::new(source, destination, protocol, 64, 40)
}

#[test]
fn the_hash_is_of_what_every_packet_of_a_flow_shows() {
    let udp = header(IpProtocol::UDP, 1, 2);
    assert_eq!(
        flow_hash4(&udp, &[1, 2, 3, 4, 5]),
        flow_hash4(&udp, &[1, 2, 3, 4, 9])
    );
    assert_ne!(
        flow_hash4(&udp, &[1, 2, 3, 4]),
        flow_hash4(&udp, &[1, 2, 3, 5])
    );
    assert_ne!(
        flow_hash4(&udp, &[]),
        flow_hash4(&header(IpProtocol::TCP, 1, 2), &[])
    );
    let mut aged = udp;
    (aged.ttl, aged.tos) = (3, 9);
    aged.set_identification(77);
    assert_eq!(
        flow_hash4(&udp, &[1, 2, 3, 4]),
        flow_hash4(&aged, &[1, 2, 3, 4])
    );
    let icmp = header(IpProtocol::ICMP, 1, 2);
    assert_eq!(
        flow_hash4(&icmp, &[1, 2, 3, 4]),
        flow_hash4(&icmp, &[9; 4]),
        "no ports, no part of the hash"
    );
    for (offset, more) in [(0, true), (9, true), (9, false)] {
        let mut piece = udp;
        piece.set_fragment(offset, more);
        assert_eq!(
            flow_hash4(&piece, &[1, 2, 3, 4]),
            flow_hash4(&piece, &[8; 4])
        );
    }
}

#[test]
fn every_low_bit_of_the_hash_depends_on_every_field() {
    let base = |n: u32| {
        [
            flow_hash4(&header(IpProtocol::UDP, n, 2), &[0; 4]),
            flow_hash4(&header(IpProtocol::UDP, 1, n), &[0; 4]),
        ]
    };
    let ports = |n: u32| flow_hash4(&header(IpProtocol::UDP, 1, 2), &n.to_be_bytes());
    for buckets in [2u32, 4, 64] {
        let mut counts = [[0u32; 64]; 4];
        for n in 0..6400 {
            let [source, destination] = base(n);
            for (kind, hash) in [source, destination, ports(n), ports(n << 16)]
                .into_iter()
                .enumerate()
            {
                counts[kind][(hash % buckets) as usize] += 1;
            }
        }
        let mean = 6400 / buckets;
        for counts in counts {
            assert!(
                counts[..buckets as usize]
                    .iter()
                    .all(|&count| count > mean / 2 && count < mean * 2),
                "{buckets}: {counts:?}"
            );
        }
    }
}
