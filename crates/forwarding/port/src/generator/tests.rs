//! What streams give: values, checksums, limits, turns, pace.

use super::*;
use weir_buf::{Hugepages, PktCache, Pool, PoolConfig, Vector};
use weir_wire::build::{self, Ends};
use weir_wire::{Ipv4Header, checksum};

fn pool() -> Pool {
    Pool::new(PoolConfig {
        chunks: 2048,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

fn receive(streams: Vec<Stream>, most: usize) -> (Vec<Vec<u8>>, bool) {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = GeneratorPort::new(streams, 1, 7);
    let mut rx = port.take_queues().remove(0).rx.unwrap();
    let mut vector = Vector::default();
    let got = rx.recv(&mut vector, &mut cache, most);
    assert_eq!(got, vector.len());
    assert_eq!(port.counters()[0].value, got as u64);
    (
        vector.iter().map(|packet| packet.data().to_vec()).collect(),
        rx.is_exhausted(),
    )
}

fn field(offset: usize, width: usize, first: u32, last: u32, change: Change) -> Field {
    Field {
        offset,
        width,
        first,
        last,
        change,
    }
}

/// Whether all checksums of an IPv4 frame are right, computed over the whole of it.
fn sums_are_right(frame: &[u8], l3: usize) -> bool {
    let packet = &frame[l3..];
    let (header, _) = Ipv4Header::read(packet).unwrap();
    let l4 = &packet[header.header_len()..usize::from(header.total_len())];
    let sum = checksum::pseudo4(
        header.source(),
        header.destination(),
        header.protocol(),
        l4.len() as u16,
    );
    let transport = match header.protocol().0 {
        17 if l4[6..8] == [0, 0] => 0,
        1 => checksum::internet(l4),
        _ => sum.add_bytes(l4).finish(),
    };
    checksum::internet(&packet[..header.header_len()]) == 0 && transport == 0
}

#[test]
fn udp_streams_cover_their_ranges_with_right_checksums() {
    let wanted = Udp4 {
        size: 61,
        source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        sources: 0x0a00_0001..=0x0a00_0003,
        destinations: 0x0aff_fffe..=0x0b00_0001,
        source_ports: 9..=9,
        destination_ports: 0..=65535,
        change: Change::Increment,
    };
    let (frames, exhausted) = receive(vec![Stream::udp4(&wanted).unwrap()], 1000);
    assert!(frames.len() == 1000 && !exhausted);
    for (number, frame) in frames.iter().enumerate() {
        let (header, _) = Ipv4Header::read(&frame[14..]).unwrap();
        assert_eq!(
            (header.source(), header.destination()),
            (
                0x0a00_0001 + number as u32 % 3,
                0x0aff_fffe + number as u32 % 4
            )
        );
        assert_eq!(
            (&frame[34..36], &frame[36..38]),
            (&[0, 9][..], &(number as u16).to_be_bytes()[..])
        );
        assert!(
            frame.len() == 61 && sums_are_right(frame, 14),
            "{number}: {frame:02x?}"
        );
    }
    for impossible in [
        Udp4 {
            size: 41,
            ..wanted.clone()
        },
        Udp4 {
            size: 4000,
            ..wanted.clone()
        },
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "an empty range is what is tried"
        )]
        Udp4 {
            source_ports: 2..=1,
            ..wanted.clone()
        },
    ] {
        assert!(Stream::udp4(&impossible).is_none());
    }
}

/// Fields of every width at every offset, aligned or not, across the bounds of the headers.
#[test]
fn checksums_follow_fields_wherever_they_lie() {
    let ends = Ends::default();
    let templates = [
        build::udp4(&ends, &[7; 19]),
        build::tcp4(&ends, 0x10, &[7; 20]),
        build::echo4(&ends, build::ECHO_REQUEST, 1, 2, &[7; 21]),
        build::tagged(&build::udp4(&ends, &[0; 18]), 51, 3),
    ];
    for template in templates {
        let l3 = if template[12] == 0x81 { 18 } else { 14 };
        assert!(sums_are_right(&template, l3));
        // From the source address on: fields before it change lengths, the protocol or the version.
        for offset in (l3 + 12)..template.len() {
            for (width, last) in [(1, 0xff), (2, 0xffff), (4, u32::MAX)] {
                let checksum_at = l3
                    + 20
                    + [6, 16, 2][[17, 6, 1]
                        .iter()
                        .position(|p| *p == template[l3 + 9])
                        .unwrap()];
                let touches = offset < checksum_at + 2 && checksum_at < offset + width;
                // The length of UDP counts twice, once in the pseudo-header.
                let length = template[l3 + 9] == 17 && offset < l3 + 26 && l3 + 24 < offset + width;
                if touches || length || offset + width > template.len() {
                    continue;
                }
                let stream = Stream::new(template.clone()).unwrap().field(field(
                    offset,
                    width,
                    0,
                    last,
                    Change::Random,
                ));
                for frame in receive(vec![stream], 20).0 {
                    assert!(
                        sums_are_right(&frame, l3),
                        "field of {width} at {offset}: {frame:02x?}"
                    );
                }
            }
        }
    }
}

#[test]
fn wrong_and_absent_checksums_stay_so() {
    let mut wrong = build::udp4(&Ends::default(), &[7; 18]);
    wrong[24] ^= 0x55;
    wrong[40..42].fill(0);
    let vary = field(26, 4, 1, 1000, Change::Random);
    let stream = Stream::new(wrong.clone()).unwrap().field(vary.clone());
    for frame in receive(vec![stream], 50).0 {
        assert_eq!(&frame[40..42], [0, 0]);
        let mut mended = frame.clone();
        checksum::ipv4_header_set(&mut mended[14..]);
        assert_ne!(mended, frame, "it was wrong and stays wrong");
    }
    // What is not IPv4, or cut short, is varied without a look at checksums.
    for len in 0..wrong.len() {
        let stream = Stream::new(wrong[..len].to_vec())
            .unwrap()
            .field(vary.clone())
            .field(field(0, 1, 0, 9, Change::Increment));
        assert_eq!(receive(vec![stream], 5).0.len(), 5);
    }
}

#[test]
fn a_seed_gives_the_same_packets_each_time() {
    let stream = || {
        Stream::new(vec![0; 60])
            .unwrap()
            .field(field(20, 4, 5, 5000, Change::Random))
            .field(field(30, 2, 3, 4, Change::Random))
    };
    let (one, two) = (
        receive(vec![stream()], 500).0,
        receive(vec![stream()], 500).0,
    );
    assert_eq!(one, two);
    let values: Vec<u32> = one
        .iter()
        .map(|frame| u32::from_be_bytes(frame[20..24].try_into().unwrap()))
        .collect();
    assert!(values.iter().all(|value| (5..=5000).contains(value)));
    let mean = values.iter().sum::<u32>() / 500;
    assert!((2200..2800).contains(&mean), "{mean}");
    assert!(one.iter().any(|frame| frame[31] == 3) && one.iter().any(|frame| frame[31] == 4));
}

#[test]
fn limits_end_streams_and_streams_take_turns() {
    let streams = vec![
        Stream::new(vec![1; 60]).unwrap().limit(3),
        Stream::new(vec![2; 60]).unwrap().limit(5),
    ];
    let (frames, exhausted) = receive(streams, 100);
    assert!(exhausted);
    let firsts: Vec<u8> = frames.iter().map(|frame| frame[0]).collect();
    assert_eq!(firsts, [1, 2, 1, 2, 1, 2, 2, 2]);
    assert!(receive(Vec::new(), 10).1, "no stream, no packet ever");
}

#[test]
fn queues_share_the_streams_out() {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = GeneratorPort::new(
        (0..5)
            .map(|n| Stream::new(vec![n; 60]).unwrap().limit(1))
            .collect(),
        2,
        7,
    );
    let mut given = Vec::new();
    for pair in port.take_queues() {
        let mut vector = Vector::default();
        pair.rx.unwrap().recv(&mut vector, &mut cache, 100);
        given.push(
            vector
                .iter()
                .map(|packet| packet.data()[0])
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(given, [vec![0, 2, 4], vec![1, 3]]);
}

#[test]
fn a_paced_stream_follows_the_clock() {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let streams = vec![
        Stream::new(vec![1; 60]).unwrap().rate(1000),
        Stream::new(vec![2; 60]).unwrap().rate(100).limit(5),
    ];
    let mut rx = rx::GeneratorRx::new(streams, 7, Arc::default());
    let mut vector = Vector::default();
    let mut at = |milliseconds: u64, most| {
        let got = rx.give(milliseconds * 1_000_000, &mut vector, &mut cache, most);
        cache.free_all(vector.drain());
        got
    };
    assert_eq!(
        (at(0, 100), at(1, 100), at(9, 100), at(9, 100)),
        (0, 1, 8, 0)
    );
    assert_eq!(
        (at(20, 5), at(20, 100)),
        (5, 8),
        "11 of the one, 2 of the other"
    );
    assert_eq!(at(100, 1000), 83, "80 and 3: the limit");
    assert_eq!(at(u64::MAX / 1_000_000, 500), 500);
    // By the real clock nothing is due at once.
    assert!(
        receive(vec![Stream::new(vec![1; 60]).unwrap().rate(1)], 100)
            .0
            .is_empty()
    );
}

#[test]
fn an_empty_pool_is_counted_and_nothing_is_lost() {
    let pool = pool();
    let hoard: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    let mut cache = PktCache::new(&pool);
    let mut port = GeneratorPort::new(vec![Stream::new(vec![1; 60]).unwrap().limit(10)], 1, 7);
    let mut rx = port.take_queues().remove(0).rx.unwrap();
    let mut vector = Vector::default();
    assert_eq!(rx.recv(&mut vector, &mut cache, 100), 0);
    assert_eq!(port.counters()[1].value, 1);
    drop(hoard);
    assert_eq!(rx.recv(&mut vector, &mut cache, 100), 10);
    assert!(rx.is_exhausted());
}

#[test]
fn fields_and_templates_that_do_not_fit_are_left_out() {
    let stream = || Stream::new(vec![0; 60]).unwrap();
    for wrong in [
        field(58, 4, 0, 1, Change::Increment),
        field(0, 3, 0, 1, Change::Increment),
        field(0, 1, 0, 256, Change::Increment),
    ] {
        assert!(stream().field(wrong.clone()).fields.is_empty());
        let mut forced = stream();
        forced.fields.push(wrong);
        assert_eq!(receive(vec![forced], 1).0, [vec![0; 60]]);
    }
    assert!(
        stream()
            .field(field(0, 1, 9, 8, Change::Random))
            .fields
            .is_empty()
    );
    assert!(Stream::new(vec![0; 4000]).is_none());
    let mut forced = stream();
    forced.template = vec![0; 4000];
    let (frames, exhausted) = receive(vec![forced], 10);
    assert!(frames.is_empty() && exhausted);
}

#[test]
fn what_is_sent_is_counted_and_the_last_is_kept() {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let (mut port, kept) = GeneratorPort::new(Vec::new(), 1, 7).keeping(2);
    let mut tx = port.take_queues().remove(0).tx.unwrap();
    let mut vector = Vector::default();
    for n in 1..=3u8 {
        let mut packet = cache.alloc().unwrap();
        assert!(packet.fill(&[n; 60]));
        let mut tail = cache.alloc().unwrap();
        assert!(tail.fill(&[9; 4]));
        packet.append(tail).unwrap();
        vector.push(packet);
    }
    assert_eq!(tx.send(&mut vector, &mut cache), 3);
    let values: Vec<u64> = port
        .counters()
        .iter()
        .map(|counter| counter.value)
        .collect();
    assert_eq!(values, [0, 0, 3, 192]);
    assert_eq!(kept.count(), 2);
    let frames = kept.take();
    assert_eq!(
        (frames[0][0], frames[1][0], frames[1].len(), frames[1][63]),
        (2, 3, 64, 9)
    );
    assert!(kept.take().is_empty());
    drop(cache);
    assert_eq!(pool.usage().free, 2048);
}
