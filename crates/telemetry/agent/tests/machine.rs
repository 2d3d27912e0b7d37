//! The machine as a data source, and what interfaces of special kinds have besides: as a collector gets it.

mod common;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::collector::{Interfaces, config};
use weir_flowfmt::sflow::decode::{CounterRecord, Datagram, Sample};
use weir_flowfmt::sflow::records::counter_record;
use weir_flowfmt::sflow::structure::Value;
use weir_flowfmt::sflow::{EthernetCounters, LagCounters, VlanCounters};
use weir_telemetry::agent::{Agent, AgentConfig, InterfaceReport};

/// By source: each record's number and its values.
type Reported = BTreeMap<(u32, u32), Vec<(u32, Vec<u64>)>>;

/// Everything that an agent with these interfaces reports until `enough` of it is there.
fn reported(
    reports: Vec<InterfaceReport>,
    datagram_bytes: usize,
    enough: impl Fn(&Reported) -> bool,
) -> (Reported, Vec<usize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let config = AgentConfig {
        polling_interval: 1,
        host: Some(PathBuf::from("/")),
        datagram_bytes,
        ..config(&[socket.local_addr().unwrap()])
    };
    let agent = Agent::start(config, Vec::new(), Interfaces::of(reports)).unwrap();
    let (mut found, mut sizes) = (Reported::new(), Vec::new());
    let mut buffer = vec![0; 65_536];
    let until = Instant::now() + Duration::from_secs(30);
    while !enough(&found) {
        assert!(Instant::now() < until, "{found:?}");
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        sizes.push(length);
        for sample in Datagram::decode(&buffer[..length]).unwrap().samples() {
            let Sample::Counters(_, fixed, records) = sample.unwrap() else {
                panic!()
            };
            let entry = found
                .entry((fixed.source.class, fixed.source.index))
                .or_default();
            for record in records {
                let CounterRecord::Other(record) = record.unwrap() else {
                    continue;
                };
                let values = counter_record(record.format)
                    .unwrap()
                    .read(&record)
                    .unwrap();
                entry.push((
                    record.format.format,
                    values.as_slice().iter().filter_map(Value::number).collect(),
                ));
            }
        }
    }
    let _ = agent.stop();
    (found, sizes)
}

fn sampled(ifindex: u32) -> InterfaceReport {
    InterfaceReport {
        ifindex,
        name: format!("port{ifindex}"),
        sampled: true,
        mac: Some([2, 0, 0, 0, 0, ifindex as u8]),
        ..InterfaceReport::default()
    }
}

fn has(found: &Reported, source: (u32, u32), number: u32) -> bool {
    found
        .get(&source)
        .is_some_and(|records| records.iter().any(|(record, _)| *record == number))
}

#[test]
fn the_machine_is_reported_beside_the_interfaces() {
    // Large datagrams and the smallest: what does not fit one goes in several.
    for datagram_bytes in [8192, 1400, 256] {
        let machine = (2, 1);
        let numbers = [2000, 2001, 2003, 2004, 2006, 2007, 2009, 2010, 1001];
        let (found, sizes) = reported(vec![sampled(3)], datagram_bytes, |found| {
            numbers.iter().all(|&number| has(found, machine, number))
        });
        assert!(
            sizes.iter().all(|&size| size <= datagram_bytes),
            "{sizes:?}"
        );
        let memory = &found[&machine]
            .iter()
            .find(|(number, _)| *number == 2004)
            .unwrap()
            .1;
        assert!(memory[0] > 1 << 20 && memory[1] <= memory[0], "{memory:?}");
    }
}

/// One poll of the machine is one counters sample, as hsflowd's is.
#[test]
fn a_poll_of_the_machine_is_one_sample() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let config = AgentConfig {
        polling_interval: 1,
        host: Some(PathBuf::from("/")),
        datagram_bytes: 8192,
        ..config(&[socket.local_addr().unwrap()])
    };
    let agent = Agent::start(config, Vec::new(), Interfaces::of(vec![sampled(3)])).unwrap();
    let (mut polls, mut buffer) = (Vec::new(), vec![0; 65_536]);
    while polls.len() < 2 {
        let length = socket.recv(&mut buffer).unwrap();
        for sample in Datagram::decode(&buffer[..length]).unwrap().samples() {
            if let Sample::Counters(_, fixed, records) = sample.unwrap()
                && fixed.source.class == 2
            {
                polls.push((fixed.sequence, records.count()));
            }
        }
    }
    let _ = agent.stop();
    let (first, second) = (polls[0], polls[1]);
    assert_eq!(second.0, first.0 + 1, "{polls:?}");
    assert!(first.1 >= 9 && second.1 >= 9, "{polls:?}");
}

#[test]
fn ports_sub_interfaces_and_members_have_records_of_their_own() {
    let port = InterfaceReport {
        ethernet: Some(EthernetCounters {
            fcs_errors: 7,
            ..EthernetCounters::default()
        }),
        ..sampled(3)
    };
    let vlan = VlanCounters {
        vlan: 100,
        octets: 1 << 33,
        unicast: 5,
        multicast: 6,
        broadcast: 7,
        discards: 8,
    };
    let sub = InterfaceReport {
        kind: 135,
        vlan: Some(vlan),
        ..sampled(4)
    };
    let lag = LagCounters {
        actor_system: [2; 6],
        aggregate: 9,
        actor_oper_state: 0x3d,
        lacpdus_rx: 11,
        ..LagCounters::default()
    };
    let member = InterfaceReport {
        lag: Some(lag),
        ..sampled(5)
    };
    let all = [((0, 3), 2), ((0, 4), 5), ((0, 5), 7)];
    let (found, _) = reported(vec![port, sub, member], 1400, |found| {
        all.iter()
            .all(|&(source, number)| has(found, source, number))
    });
    assert_eq!(found[&(0, 3)][0].1[1], 7);
    assert_eq!(found[&(0, 4)][0].1, [100, 1 << 33, 5, 6, 7, 8]);
    // The aggregate, four octets of states, the PDUs.
    assert_eq!(found[&(0, 5)][0].1[..6], [9, 0, 0x3d, 0, 0, 11]);
    assert!(!has(&found, (0, 4), 2) && !has(&found, (0, 3), 7));
}

#[test]
fn without_sampled_interfaces_nothing_is_reported() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    let config = AgentConfig {
        polling_interval: 1,
        host: Some(PathBuf::from("/")),
        ..config(&[socket.local_addr().unwrap()])
    };
    let report = InterfaceReport {
        sampled: false,
        ..sampled(3)
    };
    let agent = Agent::start(config, Vec::new(), Interfaces::of(vec![report])).unwrap();
    assert!(socket.recv(&mut [0; 9000]).is_err());
    let _ = agent.stop();
}
