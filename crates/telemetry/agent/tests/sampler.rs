//! The sampler's bookkeeping: counts, rates, pools, rings and header bytes, over packets of a pool.
//! That its choice is fair is shown in `fairness.rs`. All seeds are fixed.

mod common;

use common::{INTERFACE, OUTPUT, Packets, Plain, Rig, filled, packets, place, within_four_sigma};
use weir_buf::{Flags, Hugepages, Pkt, Pool, PoolConfig};
use weir_graph::{DropReason, Marker, PacketOutcome, Tap};
use weir_telemetry::sampler::{Sampling, Settings};

#[test]
fn one_in_n_is_one_in_n() {
    let Packets { packets, .. } = packets(256, 64);
    for (rate, vectors) in [
        (1_u32, 100_u64),
        (2, 400),
        (3, 400),
        (10, 2_000),
        (100, 8_000),
        (1000, 40_000),
        (65_536, 300_000),
    ] {
        for seed in 1..=3 {
            let mut rig = Rig::new(rate, seed);
            let mut count = 0;
            for _ in 0..vectors {
                rig.look(&packets);
                count += rig.drain(|sample| assert_eq!(sample.rate, rate));
            }
            let trials = vectors * 256;
            assert!(
                within_four_sigma(count, trials, rate),
                "1:{rate}, seed {seed}: {count} of {trials}"
            );
            assert_eq!((rig.taken(), rig.lost()), (count, 0));
        }
    }
}

#[test]
fn at_one_in_one_every_packet_is_taken_once_in_order() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::new(1, 5);
    for length in [1, 7, 255, 256, 2] {
        rig.look(&packets[..length]);
        let mut expected = 0;
        rig.drain(|sample| {
            assert_eq!(place(sample), expected);
            expected += 1;
        });
        assert_eq!(expected, length);
    }
}

#[test]
fn what_a_sample_says_besides() {
    let Packets { packets, .. } = packets(3, 90);
    let mut rig = Rig::new(1, 5);
    rig.now = 41;
    rig.look(&packets);
    let seen = rig.drain(|sample| {
        assert_eq!(
            (sample.interface, sample.rate, sample.frame),
            (INTERFACE, 1, 90)
        );
        assert_eq!(
            (sample.pool, sample.time, sample.kept),
            (place(sample) as u64 + 1, 42, 16)
        );
    });
    assert_eq!(seen, 3);
}

#[test]
fn rate_zero_takes_nothing_and_the_rarest_rate_next_to_nothing() {
    let Packets { packets, .. } = packets(256, 64);
    let mut off = Rig::new(0, 1);
    let mut rarest = Rig::new(u32::MAX, 1);
    for _ in 0..10_000 {
        off.look(&packets);
        rarest.look(&packets);
    }
    assert_eq!((off.taken(), off.drain(|_| ())), (0, 0));
    // 2.6 million packets at 1 in 4.3 billion: more than one sample has a chance below one in a million.
    assert!(rarest.taken() <= 1);
    assert_eq!(
        rarest.taken(),
        rarest.drain(|sample| assert_eq!(sample.rate, u32::MAX))
    );
}

#[test]
fn an_empty_vector_changes_nothing() {
    let Packets { packets, .. } = packets(256, 64);
    let run = |with_empty: bool| {
        let mut rig = Rig::new(20, 8);
        let mut seen = Vec::new();
        for round in 0..50 {
            rig.look(&packets);
            if with_empty {
                rig.look(&[]);
            }
            rig.drain(|sample| seen.push((round, place(sample), sample.pool)));
        }
        seen
    };
    assert_eq!(run(true), run(false));
}

/// Each sample carries the rate that it was drawn under, so that scaling by it stays right over any
/// change, also over one that turns sampling off for a while.
#[test]
fn a_rate_changed_in_flight_is_reported_by_each_sample() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::new(10, 11);
    let (mut estimate, mut variance, mut packets_seen) = (0_u64, 0.0_f64, 0_u64);
    for round in 0..3_000_u64 {
        let rate = [10, 0, 3, 200, 1, 37][(round / 10 % 6) as usize];
        rig.settings.set(rate, 16);
        rig.look(&packets);
        let taken = rig.drain(|sample| assert_eq!(sample.rate, rate));
        if rate == 0 {
            assert_eq!(taken, 0);
            continue;
        }
        packets_seen += 256;
        estimate += taken * u64::from(rate);
        variance += 256.0 * f64::from(rate - 1);
    }
    let off = estimate as f64 - packets_seen as f64;
    assert!(
        off.abs() <= 4.0 * variance.sqrt(),
        "estimated {estimate} of {packets_seen}"
    );
}

/// Nothing but another change takes a rate back: no time that passes, no ring that overflows, no pause.
#[test]
fn a_changed_rate_stays() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::with_ring(50, 12, 8);
    rig.look(&packets);
    rig.drain(|_| ());
    rig.settings.set(2, 16);
    let mut delivered = 0;
    for round in 0..20_000_u64 {
        // Each look is a tick of the clock.
        rig.look(&packets);
        if round % 100 == 99 {
            delivered += rig.drain(|sample| assert_eq!(sample.rate, 2));
        }
    }
    assert!(
        rig.lost() > 1_000_000 && delivered > 1000,
        "{} lost, {delivered} delivered",
        rig.lost()
    );
    // 5.12 million tosses of a coin.
    let taken = rig.taken() as f64;
    assert!(
        (taken - 2_560_000.0).abs() < 4.0 * 1_280_000.0_f64.sqrt() + 30.0,
        "{taken}"
    );
}

/// Samples that wait in the ring keep the rate they were drawn under.
#[test]
fn samples_in_the_ring_keep_their_rate() {
    let Packets { packets, .. } = packets(4, 64);
    let mut rig = Rig::new(1, 2);
    rig.look(&packets);
    rig.settings.set(2, 16);
    for _ in 0..10 {
        rig.look(&packets);
    }
    let mut rates = Vec::new();
    rig.drain(|sample| rates.push(sample.rate));
    assert_eq!(rates[..4], [1; 4]);
    assert!(rates.len() > 8 && rates[4..].iter().all(|&rate| rate == 2));
}

#[test]
fn a_full_ring_loses_the_newest_and_counts_them() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::with_ring(1, 1, 8);
    rig.look(&packets);
    assert_eq!((rig.taken(), rig.lost()), (256, 248));
    let mut places = Vec::new();
    rig.drain(|sample| places.push(place(sample)));
    assert_eq!(places, (0..8).collect::<Vec<_>>());
    rig.look(&packets[..3]);
    let mut places = Vec::new();
    rig.drain(|sample| places.push(place(sample)));
    assert_eq!((places, rig.lost()), (vec![0, 1, 2], 248));
}

#[test]
fn taken_is_delivered_plus_lost_whatever_the_reader_does() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::with_ring(5, 77, 64);
    let mut delivered = 0;
    let mut last = (0, 0);
    for round in 0..5_000_u64 {
        rig.look(&packets[..(round * 37 % 257) as usize]);
        // A reader that is idle for long and then takes a few, or all.
        for _ in 0..(round * 13 % 29) {
            let taken = rig.source.ring.pop_with(|sample| {
                let here = (sample.time, place(sample));
                assert!(here > last, "order kept, nothing twice");
                last = here;
            });
            delivered += u64::from(taken.is_some());
        }
        assert_eq!(
            rig.taken(),
            delivered + rig.lost() + rig.source.ring.len() as u64
        );
    }
    delivered += rig.drain(|_| ());
    assert!(rig.lost() > 1_000, "the test is about loss");
    assert_eq!(rig.taken(), delivered + rig.lost());
}

#[test]
fn header_bytes_are_honoured_exactly() {
    let pool = Pool::new(PoolConfig {
        chunks: 64,
        hugepages: Hugepages::Off,
    })
    .unwrap();
    let bytes: Vec<u8> = (0..700_u32).map(|n| (n * 7 % 251) as u8).collect();
    let whole = [1, 13, 14, 60, 127, 128, 129, 255, 256, 257, 700]
        .map(|length| filled(&pool, &bytes[..length]));
    // The same bytes in three chunks, cut within the first bytes.
    let chained = [(1, 1), (14, 100), (100, 156), (255, 1), (256, 44)].map(|(first, second)| {
        let mut packet = filled(&pool, &bytes[..first]);
        let mut middle = filled(&pool, &bytes[first..first + second]);
        middle
            .append(filled(&pool, &bytes[first + second..]))
            .unwrap();
        packet.append(middle).unwrap();
        assert_eq!(packet.total_len(), 700);
        packet
    });
    let mut rig = Rig::new(1, 3);
    for header in 1..=256_u16 {
        rig.settings.set(1, header);
        for packet in whole.iter().chain(&chained) {
            rig.look(std::slice::from_ref(packet));
            let seen = rig.drain(|sample| {
                let kept = usize::from(header).min(packet.total_len());
                assert_eq!(
                    (sample.frame as usize, usize::from(sample.kept)),
                    (packet.total_len(), kept)
                );
                assert_eq!(sample.bytes(), &bytes[..kept]);
            });
            assert_eq!(seen, 1);
        }
    }
}

#[test]
fn settings_stay_in_their_range() {
    let settings = Settings::new(5, 0);
    assert_eq!(settings.of(1), Sampling { rate: 5, header: 1 });
    settings.set(0, 300);
    assert_eq!(
        settings.of(1),
        Sampling {
            rate: 0,
            header: 256
        }
    );
}

/// One counter runs over all interfaces, yet each has its own pool, and 1 in N of its own packets.
#[test]
fn each_interface_has_its_pool_and_its_share() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::new(20, 21);
    // Interfaces that are there from the start, and one far above them; vectors of unlike lengths.
    let ports = [(1_u32, 256_usize), (2, 3), (63, 40), (5_000, 100)];
    let (mut pools, mut pool_at_last_sample, mut counts) = ([0_u64; 4], [0_u64; 4], [0_u64; 4]);
    for _ in 0..20_000 {
        for (which, &(interface, length)) in ports.iter().enumerate() {
            rig.look_on(interface, &packets[..length]);
            counts[which] += rig.drain(|sample| {
                assert_eq!(
                    (sample.interface, sample.pool),
                    (interface, pools[which] + place(sample) as u64 + 1)
                );
                pool_at_last_sample[which] = sample.pool;
            });
            pools[which] += length as u64;
        }
    }
    for (which, &(interface, length)) in ports.iter().enumerate() {
        let seen = 20_000 * length as u64;
        assert!(
            within_four_sigma(counts[which], seen, 20),
            "interface {interface}: {} of {seen}",
            counts[which]
        );
        assert!(seen - pool_at_last_sample[which] < 1_000);
    }
}

#[test]
fn looking_takes_no_packet_and_asks_for_no_mark() {
    let Packets { packets, pool } = packets(256, 64);
    let before = pool.usage();
    let mut rig = Rig::new(2, 4);
    for _ in 0..100 {
        rig.look(&packets);
    }
    assert_eq!(format!("{:?}", pool.usage()), format!("{before:?}"));
    assert_eq!(rig.marks.take(), None);
}

/// What became of the packets whose samples wait, as it lies beside them: first byte as they left, and outcome.
fn endings(rig: &mut Rig) -> Vec<(usize, Option<(PacketOutcome, u8)>)> {
    let mut seen = Vec::new();
    rig.drain(|sample| {
        seen.push((
            place(sample),
            sample
                .ending()
                .map(|it| (it.outcome, it.leaving.first().copied().unwrap_or(0))),
        ))
    });
    seen
}

/// The outcomes in the second ring: tickets.
fn outcomes(rig: &mut Rig) -> Vec<(u32, PacketOutcome)> {
    let mut outcomes = Vec::new();
    rig.source.outcomes.pop_many(usize::MAX, |it| {
        assert_eq!(it.mark.worker(), 5);
        outcomes.push((it.mark.ticket(), it.ending().outcome));
    });
    outcomes
}

/// A driver will be asked to take these; returns whether the sampler wants to know when that is done.
fn leave(rig: &mut Rig, packets: &[Pkt]) -> bool {
    let marked = packets
        .iter()
        .filter(|packet| packet.flags().any(Flags::MARKED))
        .count();
    Marker::leaving(&mut rig.sampler, OUTPUT, packets, marked)
}

fn marked(rig: &mut Rig, packets: &mut [Pkt]) {
    for place in rig.only_look(packets) {
        packets[place].set_flags(Flags::MARKED);
    }
}

/// A driver refused it.
const FULL: PacketOutcome = PacketOutcome::Dropped {
    node: 8,
    reason: DropReason::TxFull,
};

#[test]
fn a_sample_is_shown_with_its_fate_when_all_before_it_have_theirs() {
    let Packets { mut packets, .. } = packets(5, 64);
    let mut rig = Rig::new(1, 2);
    marked(&mut rig, &mut packets);
    let dropped = PacketOutcome::Dropped {
        node: 3,
        reason: DropReason::TtlExpired,
    };
    Marker::outcome(&mut rig.sampler, &packets[1], dropped);
    assert_eq!(endings(&mut rig), [], "the first is on its way");
    Marker::outcome(&mut rig.sampler, &packets[0], PacketOutcome::Kept);
    assert_eq!(
        endings(&mut rig),
        [(0, Some((PacketOutcome::Kept, 0))), (1, Some((dropped, 0)))]
    );
    // Two leave, of which the driver takes one; the other is dropped then.
    packets[2].data_mut()[0] = 77;
    packets[4].set_flags(Flags::ORIGINATED);
    leave(&mut rig, &packets[2..]);
    Marker::left(&mut rig.sampler, &packets[3..4], FULL);
    assert_eq!(
        endings(&mut rig),
        [(2, Some((PacketOutcome::Sent(OUTPUT), 77)))]
    );
    Marker::outcome(&mut rig.sampler, &packets[3], dropped);
    assert_eq!(
        endings(&mut rig),
        [(3, Some((dropped, 0))), (4, Some((PacketOutcome::Kept, 0)))],
        "an answer of this router's went nowhere"
    );
    assert_eq!(outcomes(&mut rig), []);
}

/// They leave as they came, in another order, in two parts, and beside others whose samples are elsewhere: each sample has its own
/// end, and only the others are reported.
#[test]
fn packets_that_leave_are_found_wherever_they_stand() {
    for (turn, order) in [
        [0, 1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1, 0],
        [0, 1, 3, 2, 4, 5],
        [1, 2, 3, 4, 5, 0],
        [0, 3, 1, 4, 2, 5],
    ]
    .into_iter()
    .enumerate()
    {
        for cut in 0..=6 {
            let Packets { mut packets, .. } = packets(6, 64);
            let mut rig = Rig::new(1, 2).in_worker(5);
            marked(&mut rig, &mut packets);
            // The third has parted from its sample, and the fifth was not sampled.
            packets[2].meta_mut().mark = Marker::part(&mut rig.sampler, &packets[2]);
            Marker::outcome(&mut rig.sampler, &packets[4], PacketOutcome::Kept);
            packets[4].clear_flags(Flags::MARKED);
            for (place, packet) in packets.iter_mut().enumerate() {
                packet.data_mut()[0] = 70 + place as u8;
            }
            let mut vector: Vec<Pkt> = Vec::new();
            let mut rest: Vec<Option<Pkt>> = packets.into_iter().map(Some).collect();
            vector.extend(order.iter().filter_map(|&place: &usize| rest[place].take()));
            let (first, second) = vector.split_at(cut);
            for part in [first, second] {
                if leave(&mut rig, part) {
                    Marker::left(&mut rig.sampler, &[], FULL);
                }
            }
            Tap::<Plain>::tick(&mut rig.sampler, 1);
            let sent =
                |place: usize| (place, Some((PacketOutcome::Sent(OUTPUT), 70 + place as u8)));
            let expected = [
                sent(0),
                sent(1),
                (2, None),
                sent(3),
                (4, Some((PacketOutcome::Kept, 0))),
                sent(5),
            ];
            assert_eq!(endings(&mut rig), expected, "order {turn}, cut at {cut}");
            assert_eq!(
                outcomes(&mut rig),
                [(3, PacketOutcome::Sent(OUTPUT))],
                "order {turn}, cut at {cut}"
            );
        }
    }
}

/// A packet ends, its memory is the next one's, and that one is refused: the first one's end stays.
#[test]
fn what_is_refused_is_the_newest_under_its_identity() {
    let Packets { mut packets, .. } = packets(2, 64);
    let mut rig = Rig::new(1, 2);
    let dropped = PacketOutcome::Dropped {
        node: 3,
        reason: DropReason::TtlExpired,
    };
    marked(&mut rig, &mut packets);
    Marker::outcome(&mut rig.sampler, &packets[1], dropped);
    for place in rig.look_again(&packets[1..]) {
        assert_eq!(place, 0);
    }
    leave(&mut rig, &packets[1..]);
    Marker::left(&mut rig.sampler, &packets[1..], FULL);
    Marker::outcome(&mut rig.sampler, &packets[0], PacketOutcome::Kept);
    assert_eq!(
        endings(&mut rig),
        [(0, Some((PacketOutcome::Kept, 0))), (1, Some((dropped, 0)))]
    );
    Marker::outcome(&mut rig.sampler, &packets[1], PacketOutcome::Copied(2));
    assert_eq!(
        endings(&mut rig),
        [(1, Some((PacketOutcome::Copied(2), 0)))]
    );
}

/// In both directions at once; a packet that was refused comes again in the memory of one that left.
#[test]
fn what_was_taken_going_out_and_then_refused_was_dropped() {
    let Packets { mut packets, .. } = packets(4, 64);
    let mut rig = Rig::new(1, 2);
    let both = |rig: &mut Rig, packets: &mut [Pkt], refused: std::ops::Range<usize>| {
        marked(rig, packets);
        assert!(
            rig.look_going_out(packets),
            "the sampler asks what the driver took"
        );
        leave(rig, packets);
        Marker::left(&mut rig.sampler, &packets[refused.clone()], FULL);
        for packet in &mut packets[refused] {
            Marker::outcome(&mut rig.sampler, packet, FULL);
        }
        packets
            .iter_mut()
            .for_each(|packet| packet.clear_flags(Flags::MARKED));
    };
    both(&mut rig, &mut packets, 2..4);
    both(&mut rig, &mut packets, 1..2);
    // Nobody asks any more: nothing is known of what went out before.
    Marker::left(&mut rig.sampler, &packets, FULL);
    Tap::<Plain>::tick(&mut rig.sampler, 9);
    let mut seen = [Vec::new(), Vec::new()];
    rig.drain(|sample| {
        seen[usize::from(sample.ticket == 0)]
            .push((place(sample), sample.ending().map(|it| it.outcome)))
    });
    let end = |refused: &[usize]| {
        (0..4)
            .map(|place| (place, refused.contains(&place)))
            .collect::<Vec<_>>()
    };
    let ends = [end(&[2, 3]), end(&[1])].concat();
    let [came, went] = seen;
    assert_eq!(
        came,
        ends.iter()
            .map(|&(place, refused)| (
                place,
                Some(if refused {
                    FULL
                } else {
                    PacketOutcome::Sent(OUTPUT)
                })
            ))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        went,
        ends.iter()
            .map(|&(place, refused)| (place, refused.then_some(FULL)))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_sample_does_not_wait_for_a_packet_that_parted_and_its_fate_is_reported_later() {
    let Packets { mut packets, .. } = packets(3, 64);
    let mut rig = Rig::new(1, 2).in_worker(5);
    marked(&mut rig, &mut packets);
    Marker::outcome(&mut rig.sampler, &packets[2], PacketOutcome::Copied(2));
    assert_eq!(endings(&mut rig), []);
    for packet in &mut packets[..2] {
        packet.meta_mut().mark = Marker::part(&mut rig.sampler, packet);
    }
    assert_eq!(
        endings(&mut rig),
        [
            (0, None),
            (1, None),
            (2, Some((PacketOutcome::Copied(2), 0)))
        ]
    );
    Marker::outcome(&mut rig.sampler, &packets[1], PacketOutcome::Kept);
    assert_eq!(outcomes(&mut rig), [(2, PacketOutcome::Kept)]);
    // What its driver refuses has not been sent.
    leave(&mut rig, &packets[..1]);
    Marker::left(&mut rig.sampler, &packets[..1], FULL);
    assert_eq!(outcomes(&mut rig), []);
    assert!(leave(&mut rig, &packets[..1]));
    Marker::left(&mut rig.sampler, &[], FULL);
    assert_eq!(outcomes(&mut rig), [(1, PacketOutcome::Sent(OUTPUT))]);
}

#[test]
fn samples_whose_ends_nobody_tells_are_shown_two_ticks_later_or_with_the_sampler_s_end() {
    let Packets { mut packets, .. } = packets(9, 64);
    let mut rig = Rig::new(1, 2);
    marked(&mut rig, &mut packets[..4]);
    Tap::<Plain>::tick(&mut rig.sampler, 1);
    marked(&mut rig, &mut packets[4..]);
    assert_eq!(rig.drain(|sample| assert!(sample.ending().is_none())), 4);
    let other = Rig::new(1, 2).sampler;
    drop(std::mem::replace(&mut rig.sampler, other));
    assert_eq!(rig.drain(|sample| assert!(sample.ending().is_none())), 5);
}

/// Nothing was sampled, so that the gate would let all by; another interface's first packets bring the change to light.
#[test]
fn a_change_reaches_every_interface_whoever_sees_it_first() {
    let Packets { packets, .. } = packets(4, 64);
    let mut rig = Rig::new(0, 1);
    rig.look_between_ticks(1, &packets);
    rig.settings.set(1, 16);
    rig.look_between_ticks(2, &packets);
    rig.look(&packets);
    rig.look_on(1, &packets);
    let mut seen = Vec::new();
    rig.drain(|sample| seen.push(sample.interface));
    assert_eq!(seen, [[2; 4], [INTERFACE; 4], [1; 4]].concat());
}

/// The pool moves with packets, also where none is taken for a long time.
#[test]
fn the_pool_goes_on_between_samples() {
    let Packets { packets, .. } = packets(256, 64);
    let mut rig = Rig::new(u32::MAX, 1);
    let pool = |rig: &Rig| rig.source.counters.pools.of(INTERFACE);
    let mut came = 0;
    for round in 1..=5_u64 {
        for _ in 0..100 {
            rig.look(&packets);
        }
        let before = pool(&rig);
        came += 25_600;
        // Not within half a second, and then with the next tick: of all that came before it.
        rig.now = round * 500_000_000 - 2;
        rig.look(&packets[..7]);
        assert_eq!(pool(&rig), before);
        rig.look(&packets[..9]);
        assert_eq!((pool(&rig), rig.taken()), (came + 7, 0));
        came += 16;
    }
}
