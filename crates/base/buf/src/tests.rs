//! What must hold of packet memory: nothing leaks, nothing is owned twice, lies are refused.

use super::*;

fn pool(chunks: usize) -> Pool {
    Pool::new(PoolConfig {
        chunks,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

#[test]
fn layout_is_odd_and_roomy() {
    assert_eq!(STRIDE % 64, 0);
    assert_eq!((STRIDE / 64) % 2, 1);
    const { assert!(HEADROOM >= 128 && DATA_ROOM >= 1522) };
}

#[test]
fn impossible_sizes_are_refused() {
    for chunks in [0, 63, usize::MAX, (4 << 30) / STRIDE + 1] {
        let error = Pool::new(PoolConfig {
            chunks,
            hugepages: Hugepages::Off,
        })
        .unwrap_err();
        assert!(matches!(error, PoolError::Size { .. }), "{error}");
    }
}

#[test]
fn every_chunk_can_be_had_once_and_comes_home() {
    let pool = pool(100);
    let all: Vec<Pkt> = std::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!(all.len(), 100);
    let mut places: Vec<_> = all.iter().map(|packet| packet.data().as_ptr()).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 100);
    drop(all);
    assert_eq!(pool.usage().free, 100);
}

#[test]
fn a_cache_allocates_frees_spills_and_gives_back() {
    let pool = pool(4096);
    let mut cache = PktCache::new(&pool);
    let mut vector = Vector::with_capacity(2048);
    assert_eq!(cache.alloc_into(2000, &mut vector), 2000);
    cache.free_all(vector.drain());
    assert!(cache.held() < 4 * VECTOR);
    drop(cache);
    assert_eq!(pool.usage().free, 4096);
}

#[test]
fn data_moves_within_its_room() {
    let pool = pool(64);
    let mut packet = pool.alloc().unwrap();
    assert!(packet.fill(&[7; 60]));
    assert_eq!((packet.len(), packet.headroom()), (60, HEADROOM));
    packet.push_front(4).unwrap()[..4].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(&packet.data()[..5], &[1, 2, 3, 4, 7]);
    assert!(packet.push_front(HEADROOM).is_none());
    assert!(packet.pull_front(63) && !packet.pull_front(2));
    assert_eq!(packet.data(), &[7]);
    assert!(!packet.set_len(STRIDE) && packet.set_len(packet.tailroom() + 1));
    assert!(!packet.fill(&vec![0; DATA_ROOM + 1]));
    packet.clear();
    assert!(packet.is_empty() && packet.headroom() == HEADROOM);
}

#[test]
fn chains_count_copy_split_and_come_home() {
    let pool = pool(64);
    let mut head = pool.alloc().unwrap();
    assert!(head.fill(&[1; 100]));
    for n in 2..5u8 {
        let mut tail = pool.alloc().unwrap();
        assert!(tail.fill(&[n; 100]));
        head.append(tail).unwrap();
    }
    assert_eq!((head.total_len(), head.segments().count()), (400, 4));
    let mut bytes = [0; 250];
    assert_eq!(head.copy_out(90, &mut bytes), 250);
    assert_eq!((bytes[0], bytes[10], bytes[110], bytes[210]), (1, 2, 3, 4));
    let rest = head.split_first().unwrap();
    assert_eq!(
        (head.total_len(), rest.total_len(), rest.segments().count()),
        (100, 300, 3)
    );
    assert_eq!(pool.usage().free, 60);
    drop((head, rest));
    assert_eq!(pool.usage().free, 64);
    let mut cache = PktCache::new(&pool);
    let mut head = cache.alloc().unwrap();
    head.append(cache.alloc().unwrap()).unwrap();
    cache.free(head);
    drop(cache);
    assert_eq!(pool.usage().free, 64);
}

#[test]
fn packets_are_gathered_over_chunks() {
    let pool = pool(64);
    let bytes: Vec<u8> = (0..9000).map(|n| (n % 251) as u8).collect();
    for length in [0, 1, DATA_ROOM, DATA_ROOM + 1, 9000] {
        let packet = Pkt::gather(
            length,
            || pool.alloc(),
            |at, room| room.copy_from_slice(&bytes[at..at + room.len()]),
        )
        .unwrap();
        assert_eq!(
            (packet.total_len(), packet.segments().count()),
            (length, length.div_ceil(DATA_ROOM).max(1))
        );
        assert_eq!(
            packet.segments().collect::<Vec<_>>().concat(),
            &bytes[..length]
        );
    }
    assert!(
        Pkt::gather(0x1_0000, || pool.alloc(), |_, _| ()).is_none(),
        "longer than a chain"
    );
    let mut few = 3;
    let mut alloc = || {
        few -= 1;
        if few < 0 { None } else { pool.alloc() }
    };
    assert!(
        Pkt::gather(9000, &mut alloc, |_, _| ()).is_none(),
        "too few chunks"
    );
    assert_eq!(pool.usage().free, 64);
}

#[test]
fn a_copy_may_start_before_the_usual_place() {
    let pool = pool(64);
    let mut packet = pool.alloc().unwrap();
    let long = vec![7; DATA_ROOM + 8];
    assert!(!packet.fill_behind(HEADROOM, &long) && !packet.fill_behind(STRIDE + 1, &[]));
    assert!(packet.fill_behind(HEADROOM - 8, &long));
    assert_eq!(
        (packet.data(), packet.headroom(), packet.tailroom()),
        (&long[..], HEADROOM - 8, 0)
    );
}

#[test]
fn a_chain_cannot_be_forgotten_or_faked() {
    let pool = pool(64);
    let other = self::pool(64);
    let mut head = pool.alloc().unwrap();
    head.set_flags(Flags::CHAINED);
    assert!(!head.is_chained());
    assert!(head.append(other.alloc().unwrap()).is_err());
    head.append(pool.alloc().unwrap()).unwrap();
    head.clear_flags(Flags::CHAINED);
    assert!(head.is_chained());
}

#[test]
fn lent_chunks_come_back_once_and_only_if_lent() {
    let pool = pool(64);
    let mut packet = pool.alloc().unwrap();
    assert!(packet.fill(b"hello"));
    let (slot, offset) = pool.lend(packet).unwrap();
    assert_eq!(offset, slot.index() as usize * STRIDE + HEADROOM);
    assert_eq!(pool.usage().lent, 1);
    assert!(
        pool.redeem(offset, STRIDE).is_none(),
        "longer than the chunk"
    );
    assert!(pool.redeem(usize::MAX / 2, 1).is_none(), "outside");
    assert!(
        pool.redeem((offset + STRIDE) % (64 * STRIDE), 5).is_none(),
        "not lent"
    );
    let back = pool.redeem(offset, 5).unwrap();
    assert_eq!(back.data(), b"hello");
    assert!(pool.redeem(offset, 5).is_none(), "twice");
    drop(back);
    assert_eq!(
        pool.usage(),
        PoolUse {
            chunks: 64,
            free: 64,
            lent: 0
        }
    );
    assert!(self::pool(64).lend(pool.alloc().unwrap()).is_err());
}

#[test]
fn packets_outlive_their_pool() {
    let pool = pool(64);
    let mut packet = pool.alloc().unwrap();
    drop(pool);
    assert!(packet.fill(b"still here"));
    assert_eq!(packet.data(), b"still here");
}

#[test]
fn threads_share_the_free_list_without_loss() {
    let pool = pool(1024);
    std::thread::scope(|scope| {
        for seed in 1..=4usize {
            let pool = &pool;
            scope.spawn(move || {
                let mut cache = PktCache::new(pool);
                let mut held = Vec::new();
                for round in 0..20_000usize {
                    if (round * seed) % 7 < 4 {
                        held.extend(cache.alloc());
                    } else if let Some(packet) = held.pop() {
                        if round % 2 == 0 {
                            cache.free(packet)
                        } else {
                            drop(packet)
                        }
                    }
                    if held.len() > 150 {
                        held.clear();
                    }
                }
            });
        }
    });
    assert_eq!(pool.usage().free, 1024);
}

#[test]
fn vectors_exchange_append_and_split() {
    let pool = pool(64);
    let (mut a, mut b) = (Vector::with_capacity(8), Vector::with_capacity(8));
    a.push(pool.alloc().unwrap());
    b.push(pool.alloc().unwrap());
    a.take_all(&mut b);
    assert!(b.is_empty() && a.len() == 2);
    a.split_into(1, &mut b);
    assert!(a.len() == 1 && b.len() == 1);
    a.drain();
    a.take_all(&mut b);
    assert!(a.len() == 1 && b.is_empty() && b.capacity() >= 8);
}

#[test]
fn a_tally_is_the_sum_of_its_packets() {
    let pool = pool(300);
    let mut packets = Vec::new();
    for number in 0..300_usize {
        let mut packet = pool.alloc().unwrap();
        assert!(packet.set_len(number * 7 % 2000));
        let flags = [
            Flags::NONE,
            Flags::MARKED,
            Flags::MULTICAST,
            Flags::PRIORITY,
            Flags::MARKED.with(Flags::HELD),
        ][number % 5];
        packet.set_flags(flags);
        packets.push(packet);
    }
    for part in [
        &packets[..],
        &packets[..1],
        &packets[1..2],
        &packets[2..4],
        &[],
    ] {
        let tally = Tally::of(part);
        assert_eq!(
            tally.bytes(),
            part.iter().map(|packet| packet.len() as u64).sum::<u64>()
        );
        assert_eq!(
            tally.marked(),
            part.iter()
                .filter(|packet| packet.flags().any(Flags::MARKED))
                .count()
        );
        assert_eq!(
            tally.flags(),
            part.iter()
                .fold(Flags::NONE, |all, packet| all | packet.flags())
        );
    }
}

/// Where ordinary pages are put together, they have to begin where a large one does.
#[test]
fn packet_memory_begins_where_a_large_page_can() {
    for hugepages in [Hugepages::Auto, Hugepages::Off] {
        let pool = Pool::new(PoolConfig {
            chunks: 2048,
            hugepages,
        })
        .unwrap();
        let packets: Vec<Pkt> = std::iter::from_fn(|| pool.alloc()).collect();
        let first = packets
            .iter()
            .map(|packet| packet.data().as_ptr().addr())
            .min();
        assert_eq!(
            (
                packets.len(),
                first.map(|first| (first - HEADROOM) % weir_cpu::HUGE_PAGE)
            ),
            (2048, Some(0)),
            "{hugepages:?}"
        );
    }
}

#[test]
fn sorting_keeps_every_packet_and_the_order_within_a_class() {
    let pool = pool(512);
    for (len, modulus) in [
        (1, 1),
        (7, 2),
        (64, 3),
        (65, 5),
        (200, 4),
        (256, 3),
        (256, 1),
    ] {
        let mut vector = Vector::with_capacity(len);
        let class_of = |n: usize| (n * n + n / 7) % modulus % 3;
        let mut classes = [[0u64; VECTOR / 64]; 3];
        for n in 0..len {
            let mut packet = pool.alloc().unwrap();
            packet.set_aux(n as u32);
            vector.push(packet);
            classes[class_of(n)][n / 64] |= 1 << (n % 64);
        }
        let ranges = sort::Sorter::default().sort(&mut vector, &classes).unwrap();
        for (class, range) in ranges.into_iter().enumerate() {
            let found: Vec<usize> = vector[range].iter().map(|it| it.aux() as usize).collect();
            let wanted: Vec<usize> = (0..len).filter(|&n| class_of(n) == class).collect();
            assert_eq!(found, wanted, "class {class} of {len}");
        }
        drop(vector);
        assert_eq!(pool.usage().free, 512);
    }
}

#[test]
fn classes_that_overlap_or_leave_packets_out_move_nothing() {
    let pool = pool(64);
    let mut vector = Vector::with_capacity(3);
    (0..3).for_each(|_| vector.push(pool.alloc().unwrap()));
    let mut sorter = sort::Sorter::default();
    for classes in [
        [[3, 0, 0, 0], [6, 0, 0, 0]],
        [[1, 0, 0, 0], [2, 0, 0, 0]],
        [[7, 0, 0, 0], [8, 0, 0, 0]],
        [[3, 0, 0, 0], [4, 1, 0, 0]],
    ] {
        assert!(sorter.sort(&mut vector, &classes).is_none());
    }
}
