//! What is lost is counted, and samples are compared with counters.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use weir_flowfmt::sflow::decode::Datagram;
use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::ledger::{Direction, Estimate, Ledger, Numbers};
use weir_flowfmt::sflow::{CountersSample, FlowSample, InterfaceCounters, Port, RawHeader, Source};

const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn noted(numbers: &[u32]) -> Numbers {
    let mut book = Numbers::default();
    for &number in numbers {
        book.note(number);
    }
    book
}

#[test]
fn gaps_are_losses_and_who_comes_late_is_none() {
    let summary = |numbers: &[u32]| {
        let found = noted(numbers);
        (
            found.received,
            found.lost,
            found.reordered,
            found.duplicates,
            found.restarts,
        )
    };
    assert_eq!(summary(&[]), (0, 0, 0, 0, 0));
    assert_eq!(summary(&[7, 8, 9]), (3, 0, 0, 0, 0));
    assert_eq!(summary(&[7, 9, 10]), (3, 1, 0, 0, 0));
    assert_eq!(summary(&[7, 9, 8, 10]), (4, 0, 1, 0, 0));
    assert_eq!(summary(&[7, 8, 8, 9]), (4, 0, 0, 1, 0));
    assert_eq!(summary(&[7, 9, 8, 8]), (4, 0, 1, 1, 0));
    assert_eq!(summary(&[u32::MAX - 1, u32::MAX, 0, 2]), (4, 1, 0, 0, 0));
    assert_eq!(summary(&[5000, 1, 2]), (3, 0, 0, 0, 1));
    assert_eq!(summary(&[1, 4_000_000, 4_000_001]), (3, 0, 0, 0, 1));
    // 70 behind is beyond what is remembered.
    assert_eq!(summary(&[1, 100, 30]), (3, 98, 0, 0, 1));
    let found = noted(&[1, 3]);
    assert!((found.loss_percent() - 100.0 / 3.0).abs() < 1e-9);
}

proptest! {
    #[test]
    fn received_and_lost_make_up_what_was_sent(start in any::<u32>(), kept in proptest::collection::vec(any::<bool>(), 2..200)) {
        let mut numbers: Vec<u32> = (0_u32..).zip(&kept).filter(|(_, kept)| **kept).map(|(at, _)| start.wrapping_add(at)).collect();
        prop_assume!(numbers.len() > 2);
        let sent = u64::from(numbers[numbers.len() - 1].wrapping_sub(numbers[0])) + 1;
        let found = noted(&numbers);
        prop_assert_eq!(found.received + found.lost, sent);
        // Neighbours that change places are no losses; the first has nothing before it to be late for.
        let last = numbers.len() - 1;
        for at in (1..last).step_by(2) {
            numbers.swap(at, at + 1);
        }
        if let Some(&highest) = numbers.iter().max_by_key(|number| number.wrapping_sub(start)) {
            let shuffled = noted(&numbers);
            prop_assert_eq!(shuffled.received + shuffled.lost, u64::from(highest.wrapping_sub(numbers[0])) + 1);
        }
    }

    #[test]
    fn any_datagram_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut whole = vec![0, 0, 0, 5, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9];
        whole.extend(bytes);
        let mut ledger = Ledger::new();
        ledger.note(&Datagram::decode(&whole).unwrap());
        let (_, _, agent) = ledger.agents().next().unwrap();
        prop_assert_eq!(agent.datagrams.received, 1);
    }
}

/// An agent of one interface, whose traffic is made up by a generator with a fixed seed.
struct Rig {
    builder: DatagramBuilder,
    ledger: Ledger,
    datagrams: u32,
    flows: u32,
    reports: u32,
    random: u64,
    counters: InterfaceCounters,
    pool: u32,
    drops: u32,
}

impl Rig {
    fn new() -> Rig {
        let builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
        let counters = InterfaceCounters {
            index: 3,
            ..InterfaceCounters::default()
        };
        Rig {
            builder,
            ledger: Ledger::new(),
            datagrams: 0,
            flows: 0,
            reports: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            counters,
            pool: 0,
            drops: 0,
        }
    }

    /// xorshift64 (G. Marsaglia, 2003).
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn send(&mut self) {
        self.datagrams += 1;
        let datagram = self.builder.finish(self.datagrams, 0).to_vec();
        self.builder.clear();
        self.ledger.note(&Datagram::decode(&datagram).unwrap());
    }

    /// Packets in or out, of which one in `rate` is sampled; every sample's `lose`th is lost by the agent.
    fn traffic(&mut self, packets: u32, rate: u32, egress: bool, fcs: u64, lose: u32) {
        for _ in 0..packets {
            let frame = if self.random().is_multiple_of(3) {
                1518
            } else {
                64
            };
            self.pool = self.pool.wrapping_add(1);
            let (count, octets) = if egress {
                (
                    &mut self.counters.out_unicast,
                    &mut self.counters.out_octets,
                )
            } else {
                (&mut self.counters.in_unicast, &mut self.counters.in_octets)
            };
            *count = count.wrapping_add(1);
            *octets += u64::from(frame) - 4 + fcs;
            if !self.random().is_multiple_of(u64::from(rate)) {
                continue;
            }
            if lose > 0 && self.random().is_multiple_of(u64::from(lose)) {
                self.drops += 1;
                continue;
            }
            self.flows += 1;
            let (here, there) = (Port::interface(3), Port::interface(4));
            let (input, output) = if egress { (there, here) } else { (here, there) };
            let sample = FlowSample {
                sequence: self.flows,
                source: Source::interface(3),
                rate,
                pool: self.pool,
                drops: self.drops,
                input,
                output,
            };
            let raw = RawHeader {
                protocol: 1,
                frame_length: frame,
                stripped: 4,
                header: &[0; 60],
            };
            while self
                .builder
                .flow_sample(&sample, &[FlowRecord::RawHeader(raw)])
                == Ok(Fit::Full)
            {
                self.send();
            }
        }
    }

    fn report(&mut self) {
        self.reports += 1;
        let sample = CountersSample {
            sequence: self.reports,
            source: Source::interface(3),
        };
        let counters = self.counters;
        while self
            .builder
            .counters_sample(&sample, &[CounterRecord::Interface(&counters)])
            == Ok(Fit::Full)
        {
            self.send();
        }
        self.send();
    }

    fn estimates(&self) -> Vec<Estimate> {
        let (_, _, agent) = self.ledger.agents().next().unwrap();
        agent.estimates(0, 3)
    }
}

#[test]
fn true_samples_agree_and_the_check_sequence_is_seen() {
    for fcs in [0, 4] {
        let mut rig = Rig::new();
        // The counters' packets wrap in between.
        rig.counters.in_unicast = u32::MAX - 50_000;
        // Sampled before the first counters: belongs to nothing.
        rig.traffic(5000, 10, false, fcs, 0);
        rig.report();
        rig.traffic(400_000, 10, false, fcs, 0);
        rig.report();
        rig.traffic(100_000, 10, true, fcs, 0);
        rig.report();
        rig.traffic(7000, 10, false, fcs, 0);
        rig.send();
        let [ingress, egress] = rig.estimates()[..] else {
            panic!("{:?}", rig.estimates())
        };
        assert_eq!(
            (ingress.direction, ingress.counted_packets),
            (Direction::Ingress, 400_000)
        );
        assert_eq!(
            (egress.direction, egress.counted_packets),
            (Direction::Egress, 100_000)
        );
        assert!(
            ingress.within() && egress.within(),
            "{ingress:?} {egress:?}"
        );
        assert!(
            (ingress.packet_bound - 0.98).abs() < 0.02
                && ingress.octet_bound > ingress.packet_bound,
            "{ingress:?}"
        );
    }
}

#[test]
fn what_the_agent_dropped_is_made_up_for() {
    let mut rig = Rig::new();
    rig.report();
    rig.traffic(200, 1, false, 4, 0);
    rig.report();
    rig.traffic(300_000, 10, false, 4, 3);
    rig.report();
    let [estimate] = rig.estimates()[..] else {
        panic!()
    };
    assert!(estimate.within(), "{estimate:?}");
}

#[test]
fn a_lie_about_the_rate_is_found() {
    let mut rig = Rig::new();
    rig.report();
    rig.traffic(300_000, 10, false, 4, 0);
    // Half of the packets pass unsampled: as if one in 20 were sampled, and one in 10 said.
    rig.counters.in_unicast += 300_000;
    rig.counters.in_octets *= 2;
    rig.report();
    let [estimate] = rig.estimates()[..] else {
        panic!()
    };
    assert!(
        !estimate.within() && (estimate.packets_off() + 50.0).abs() < 2.0,
        "{estimate:?}"
    );
}

#[test]
fn the_bound_holds_nineteen_times_of_twenty() {
    let mut within = 0;
    for seed in 1..=200_u64 {
        let mut rig = Rig::new();
        rig.random = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
        rig.report();
        rig.traffic(20_000, 20, false, 4, 0);
        rig.report();
        let [estimate] = rig.estimates()[..] else {
            panic!()
        };
        within += u32::from(estimate.packets_off().abs() <= estimate.packet_bound);
    }
    // 190 of 200 are expected; 4.5 standard deviations of a binomial are 14.
    assert!((176..=200).contains(&within), "{within}");
}

#[test]
fn memory_is_bounded() {
    let mut ledger = Ledger::new();
    for sub_agent in 0..5000 {
        let mut builder = DatagramBuilder::new(AGENT, sub_agent, Encoding::Expanded);
        ledger.note(&Datagram::decode(builder.finish(1, 1)).unwrap());
    }
    assert_eq!((ledger.agents().count(), ledger.untracked), (4096, 904));
}
