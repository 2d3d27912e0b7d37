//! Which way packets went, and what begins again: datagrams made for the purpose.

use std::net::{IpAddr, Ipv4Addr};

use weir_flowfmt::sflow::decode::Datagram;
use weir_flowfmt::sflow::encode::{CounterRecord, DatagramBuilder, Encoding, Fit, FlowRecord};
use weir_flowfmt::sflow::ledger::{Direction, Estimate, Ledger, Verdict};
use weir_flowfmt::sflow::{
    CountersSample, ExtendedSwitch, FlowSample, InterfaceCounters, Port, RawHeader, Source,
};

/// An agent of which every packet is sampled.
struct Rig {
    builder: DatagramBuilder,
    ledger: Ledger,
    datagrams: u32,
    uptime: u32,
    /// By port.
    flows: [u32; 8],
    rate: u32,
}

/// An untagged frame, or one with this VLAN.
fn header(vlan: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if vlan > 0 {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([8, 0]);
    frame.resize(60, 0);
    frame
}

impl Rig {
    fn new() -> Rig {
        let builder = DatagramBuilder::new(
            IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            0,
            Encoding::Expanded,
        );
        Rig {
            builder,
            ledger: Ledger::new(),
            datagrams: 0,
            uptime: 100_000,
            flows: [0; 8],
            rate: 1,
        }
    }

    fn send(&mut self) {
        self.datagrams += 1;
        self.uptime += 500;
        let datagram = self.builder.finish(self.datagrams, self.uptime).to_vec();
        self.builder.clear();
        self.ledger.note(&Datagram::decode(&datagram).unwrap());
    }

    /// So many packets sampled at a port; with the VLANs that 0:1001 tells, and the tag in the header.
    fn flows(
        &mut self,
        port: u32,
        input: Port,
        output: Port,
        vlans: Option<(u32, u32)>,
        tag: u16,
        count: u32,
    ) {
        for _ in 0..count {
            let number = &mut self.flows[port as usize];
            *number += 1;
            let (sequence, pool) = (*number, number.wrapping_mul(self.rate));
            let sample = FlowSample {
                sequence,
                source: Source::interface(port),
                rate: self.rate,
                pool,
                drops: 0,
                input,
                output,
            };
            let header = header(tag);
            let raw = FlowRecord::RawHeader(RawHeader {
                protocol: 1,
                frame_length: 64,
                stripped: 4,
                header: &header,
            });
            let (source_vlan, destination_vlan) = vlans.unwrap_or_default();
            let switch = ExtendedSwitch {
                source_vlan,
                source_priority: 0,
                destination_vlan,
                destination_priority: 0,
            };
            let records = [raw, FlowRecord::Switch(switch)];
            let records = if vlans.is_some() {
                &records[..]
            } else {
                &records[..1]
            };
            while self.builder.flow_sample(&sample, records) == Ok(Fit::Full) {
                self.send();
            }
        }
    }

    fn report(&mut self, port: u32, sequence: u32, packets_in: u32, packets_out: u32, name: &str) {
        let counters = InterfaceCounters {
            index: port,
            in_unicast: packets_in,
            in_octets: u64::from(packets_in) * 60,
            out_unicast: packets_out,
            out_octets: u64::from(packets_out) * 60,
            ..InterfaceCounters::default()
        };
        let sample = CountersSample {
            sequence,
            source: Source::interface(port),
        };
        let records = [
            CounterRecord::Interface(&counters),
            CounterRecord::PortName(name),
        ];
        while self.builder.counters_sample(&sample, &records) == Ok(Fit::Full) {
            self.send();
        }
        self.send();
    }

    fn estimates(&self, port: u32) -> Vec<Estimate> {
        self.ledger.agents().next().unwrap().2.estimates(0, port)
    }

    fn summary(&self, port: u32) -> Vec<(Direction, u64, u64, Verdict)> {
        self.estimates(port)
            .iter()
            .map(|found| {
                (
                    found.direction,
                    found.samples,
                    found.counted_packets,
                    found.verdict(),
                )
            })
            .collect()
    }
}

use Direction::{Egress, Ingress};
use Verdict::{Agrees, DirectionUnknown, Disagrees, PartlySampled};

const HERE: Port = Port::INTERNAL;

/// Ports 1 and 3; 2 is a sub-interface of 1 (VLAN 100), 4 one of 3 (VLAN 200 or 100).
fn through_sub_interfaces(vlan: u32, has_vlans: bool, names: [&str; 4]) -> Rig {
    let port = Port::interface;
    let vlans = |input, output| has_vlans.then_some((input, output));
    let tag = |vlan: u32| u16::try_from(vlan).unwrap();
    let mut rig = Rig::new();
    for round in [0, 1] {
        for (index, name) in (1..).zip(names) {
            let (packets_in, packets_out) = if index == 1 {
                (100 * round, 30 * round)
            } else {
                (30 * round, 70 * round)
            };
            rig.report(index, round + 1, packets_in, packets_out, name);
        }
        if round == 0 {
            for source in [1, 3] {
                // 60 from sub-interface to sub-interface, 30 back, 10 from a sub-interface to a port.
                let (first, second) = if source == 1 {
                    (100, 100)
                } else {
                    (vlan, vlan)
                };
                rig.flows(source, port(2), port(4), vlans(100, vlan), tag(first), 60);
                rig.flows(source, port(4), port(2), vlans(vlan, 100), tag(second), 30);
                rig.flows(
                    source,
                    port(2),
                    port(3),
                    vlans(100, 0),
                    if source == 1 { 100 } else { 0 },
                    10,
                );
            }
            // And 30 from port 1 to the router itself.
            rig.flows(1, port(1), HERE, None, 0, 30);
        }
    }
    rig
}

#[test]
fn packets_of_sub_interfaces_have_a_direction() {
    let names = ["xe0", "xe0.100", "xe1", "xe1.200"];
    // What VLANs tell; what names tell where the VLANs are the same; both.
    for (vlan, has_vlans, names) in [
        (200, true, ["", "", "", ""]),
        (100, true, names),
        (200, false, names),
        (200, true, names),
    ] {
        let rig = through_sub_interfaces(vlan, has_vlans, names);
        assert_eq!(
            rig.summary(1),
            [(Ingress, 100, 100, Agrees), (Egress, 30, 30, Agrees)],
            "{vlan} {has_vlans} {names:?}"
        );
        assert_eq!(
            rig.summary(3),
            [(Ingress, 30, 30, Agrees), (Egress, 70, 70, Agrees)],
            "{vlan} {has_vlans} {names:?}"
        );
    }
}

#[test]
fn where_no_direction_can_be_known_nobody_is_called_a_liar() {
    let names = ["", "", "", ""];
    let rig = through_sub_interfaces(200, false, names);
    // 90 of the 130 may be either; those to port 3, which is sampled itself, and to the router are known.
    assert_eq!(rig.summary(1), [(Ingress, 40, 100, DirectionUnknown)]);
    assert_eq!(rig.estimates(1)[0].undirected, 90);
    assert_eq!(rig.summary(3), [(Egress, 10, 70, DirectionUnknown)]);
    // What is out of reach either way is still a lie.
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "");
    rig.flows(1, Port::interface(1), HERE, None, 0, 900);
    rig.flows(1, Port::interface(1), Port::interface(1), None, 0, 10);
    rig.report(1, 2, 2000, 0, "");
    assert_eq!(rig.summary(1), [(Ingress, 900, 2000, Disagrees)]);
    // Without anything known both are shown.
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "");
    rig.flows(1, Port::interface(7), Port::interface(8), None, 0, 50);
    rig.report(1, 2, 20, 30, "");
    assert_eq!(
        rig.summary(1),
        [
            (Ingress, 0, 20, DirectionUnknown),
            (Egress, 0, 30, DirectionUnknown)
        ]
    );
}

#[test]
fn a_member_of_an_aggregation_is_not_taken_for_another_port() {
    // 6 is the aggregation of 1 and 3; both tell packets of the router itself as coming from it.
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "xe0");
    rig.report(3, 1, 0, 0, "xe1");
    for member in [1, 3] {
        rig.flows(member, HERE, Port::interface(6), None, 0, 20);
        rig.flows(member, Port::interface(6), Port::interface(5), None, 0, 30);
    }
    rig.flows(5, Port::interface(6), Port::interface(5), None, 0, 60);
    rig.report(1, 2, 30, 20, "xe0");
    rig.report(3, 2, 30, 20, "xe1");
    for member in [1, 3] {
        assert_eq!(
            rig.summary(member),
            [(Ingress, 30, 30, Agrees), (Egress, 20, 20, Agrees)]
        );
    }
}

#[test]
fn counters_that_begin_again_begin_a_new_span() {
    let inwards = |rig: &mut Rig, count| rig.flows(1, Port::interface(1), HERE, None, 0, count);
    // By their sequence, also where the counters are higher; by octets that went back, where the sequence does not.
    for (sequence, begins_at) in [(1, 5), (1, 50_000), (4, 5)] {
        let mut rig = Rig::new();
        rig.report(1, 2, 1000, 0, "xe0");
        inwards(&mut rig, 100);
        rig.report(1, 3, 1100, 0, "xe0");
        // Belongs to counters that nobody saw.
        inwards(&mut rig, 77);
        rig.report(1, sequence, begins_at, 0, "xe0");
        inwards(&mut rig, 50);
        rig.report(1, sequence + 1, begins_at + 50, 0, "xe0");
        assert_eq!(
            rig.summary(1),
            [(Ingress, 150, 150, Agrees)],
            "{sequence} {begins_at}"
        );
    }
}

#[test]
fn a_source_that_begins_again_loses_and_doubles_nothing() {
    let inwards = |rig: &mut Rig, count| rig.flows(1, Port::interface(1), HERE, None, 0, count);
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "xe0");
    inwards(&mut rig, 30);
    rig.report(1, 2, 30, 0, "xe0");
    rig.flows = [0; 8];
    inwards(&mut rig, 30);
    rig.report(1, 1, 30, 0, "xe0");
    let (_, _, agent) = rig.ledger.agents().next().unwrap();
    let (_, _, source) = agent.sources().next().unwrap();
    let numbers = |found: &weir_flowfmt::sflow::ledger::Numbers| {
        (
            found.lost,
            found.duplicates,
            found.reordered,
            found.restarts,
        )
    };
    assert_eq!(numbers(&source.flows), (0, 0, 0, 1));
    assert_eq!(numbers(&source.counters), (0, 0, 0, 1));
    assert_eq!((source.pool(), source.dropped()), (29 + 29, 0));
}

/// Numbers and times of datagrams: lost, reordered, doubled, restarted.
fn datagrams(of: &[(u32, u32)]) -> (u64, u64, u64, u64) {
    let mut builder = DatagramBuilder::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, Encoding::Expanded);
    let mut ledger = Ledger::new();
    for &(number, uptime) in of {
        ledger.note(&Datagram::decode(builder.finish(number, uptime)).unwrap());
    }
    let numbers = ledger.agents().next().unwrap().2.datagrams;
    (
        numbers.lost,
        numbers.reordered,
        numbers.duplicates,
        numbers.restarts,
    )
}

#[test]
fn a_restart_is_distinguished_from_copies_and_late_ones_by_the_agents_clock() {
    let run = |count| {
        (1..=count)
            .map(|number| (number, number * 1000))
            .collect::<Vec<_>>()
    };
    assert_eq!(datagrams(&[run(30), run(30)].concat()), (0, 0, 0, 1));
    // Its first ones were lost, and it has sent more than before.
    assert_eq!(
        datagrams(&[run(30), vec![(31, 2000), (32, 2100)]].concat()),
        (0, 0, 0, 1)
    );
    // Within the same second or two, and with numbers not seen before.
    assert_eq!(
        datagrams(&[(1, 1200), (2, 1500), (3, 2500), (1, 10), (2, 20)]),
        (0, 0, 0, 1)
    );
    assert_eq!(
        datagrams(&[(50, 90_000), (51, 91_000), (1, 500), (2, 1500)]),
        (0, 0, 0, 1)
    );
    // Copies and late ones are what they were, also where the clock wraps and where there is none.
    assert_eq!(
        datagrams(&[(1, 1000), (2, 2000), (2, 2000), (1, 1000), (3, 3000)]),
        (0, 0, 2, 0)
    );
    assert_eq!(
        datagrams(&[(1, 1000), (3, 2000), (2, 1500), (4, 2500)]),
        (0, 1, 0, 0)
    );
    let end = u32::MAX - 100;
    assert_eq!(
        datagrams(&[(1, end), (3, 200), (2, 100), (3, 200), (4, 1000)]),
        (0, 1, 1, 0)
    );
    assert_eq!(
        datagrams(&[(1, 0), (3, 0), (2, 0), (3, 0), (4, 0)]),
        (0, 1, 1, 0)
    );
}

#[test]
fn an_agent_that_restarts_begins_new_spans() {
    let inwards = |rig: &mut Rig, count| rig.flows(1, Port::interface(1), HERE, None, 0, count);
    let mut rig = Rig::new();
    rig.report(1, 1, 1000, 0, "xe0");
    inwards(&mut rig, 30);
    rig.report(1, 2, 1030, 0, "xe0");
    inwards(&mut rig, 9);
    // Higher than before, with a sequence that goes on by chance.
    (rig.datagrams, rig.uptime, rig.flows) = (0, 0, [0; 8]);
    rig.report(1, 3, 5000, 0, "xe0");
    inwards(&mut rig, 40);
    rig.report(1, 4, 5040, 0, "xe0");
    assert_eq!(rig.summary(1), [(Ingress, 70, 70, Agrees)]);
}

#[test]
fn a_change_of_direction_within_the_capture_is_no_lie() {
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "xe0");
    rig.flows(1, Port::interface(1), HERE, None, 0, 100);
    rig.report(1, 2, 100, 100, "xe0");
    rig.flows(1, Port::interface(1), HERE, None, 0, 1);
    rig.rate = 2;
    rig.flows(1, HERE, Port::interface(1), None, 0, 50);
    rig.report(1, 3, 200, 200, "xe0");
    assert_eq!(
        rig.summary(1),
        [
            (Ingress, 101, 200, PartlySampled),
            (Egress, 50, 200, PartlySampled)
        ]
    );
    // One in two of the whole time is not: it was sampled, only too little.
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "xe0");
    for round in 1..6 {
        rig.flows(1, Port::interface(1), HERE, None, 0, 100);
        rig.report(1, 1 + round, 200 * round, 0, "xe0");
    }
    assert_eq!(rig.summary(1), [(Ingress, 500, 1000, Disagrees)]);
}

#[test]
fn a_rate_that_changes_is_in_the_bound() {
    let mut rig = Rig::new();
    rig.report(1, 1, 0, 0, "xe0");
    rig.flows(1, Port::interface(1), HERE, None, 0, 10_000);
    rig.rate = 10_000;
    rig.flows(1, Port::interface(1), HERE, None, 0, 4);
    rig.report(1, 2, 60_000, 0, "xe0");
    // Four samples of a thousand each say next to nothing, however many others there are.
    let [found] = rig.estimates(1)[..] else {
        panic!()
    };
    assert!(
        (found.packet_bound - 196.0 * 20_000.0 / 50_000.0).abs() < 0.1 && found.within(),
        "{found:?}"
    );
}
