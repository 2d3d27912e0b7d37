//! The collector before messages worked out by hand from RFC 7011, RFC 3954 and the layout of version 5, and
//! before those that want to break it.

use std::net::SocketAddr;

use proptest::prelude::*;
use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::decode::{
    Collector, Gap, HELD_COST, Item, MOST_EMPTY_FIELDS, MOST_FIELDS, MOST_HELD, Problem,
};
use weir_flowfmt::ipfix::flow::Flow;

fn exporter() -> SocketAddr {
    "192.0.2.1:40000".parse().unwrap()
}

/// What items say, in a line each.
fn lines_of(collector: &mut Collector, message: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    collector.read(exporter(), message, &mut |item| lines.push(line(&item)));
    lines
}

fn line(item: &Item<'_>) -> String {
    match item {
        Item::Message(header) => format!(
            "message {} {} {}",
            header.version.number(),
            header.domain,
            header.sequence
        ),
        Item::Template(_, template) => format!(
            "template {} {} {}",
            template.id,
            template.scopes,
            template.fields.len()
        ),
        Item::Withdrawn(_, id) => format!("withdrawn {id}"),
        Item::Record(record) => {
            let fields: Vec<String> = record
                .octets()
                .map(|(field, octets)| format!("{}={octets:?}", field.name()))
                .collect();
            format!("record {} {}", record.template.id, fields.join(" "))
        }
        Item::Sequence(_, gap) => format!("gap {} {}", gap.expected, gap.found),
        Item::Undecoded(what) => format!("{} {} {:?}", what.offset, what.octets, what.why),
    }
}

/// An IPFIX message of domain 7.
fn ipfix(sequence: u32, sets: &[(u16, &[u8])]) -> Vec<u8> {
    let sets = sets
        .iter()
        .flat_map(|(id, body)| set(*id, body))
        .collect::<Vec<u8>>();
    let length = 16 + sets.len() as u16;
    let mut message = vec![0, 10];
    message.extend(length.to_be_bytes());
    [1_700_000_000, sequence, 7]
        .iter()
        .for_each(|word: &u32| message.extend(word.to_be_bytes()));
    message.extend(sets);
    message
}

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let mut set = id.to_be_bytes().to_vec();
    set.extend((4 + body.len() as u16).to_be_bytes());
    set.extend(body);
    set
}

/// Template 256: protocolIdentifier and destinationTransportPort.
const TEMPLATE: &[u8] = &[1, 0, 0, 2, 0, 4, 0, 1, 0, 11, 0, 2];
const RECORDS: &[u8] = &[17, 0, 53, 6, 1, 187];

#[test]
fn templates_and_records_of_ipfix() {
    let mut collector = Collector::new();
    let message = ipfix(5, &[(2, TEMPLATE), (256, RECORDS)]);
    let expected = [
        "message 10 7 5",
        "template 256 0 2",
        "record 256 protocolIdentifier=[17] destinationTransportPort=[0, 53]",
        "record 256 protocolIdentifier=[6] destinationTransportPort=[1, 187]",
    ];
    assert_eq!(lines_of(&mut collector, &message), expected);
    // Two records came: 7 is next, 10 means three are missing, 2 that it began anew.
    assert_eq!(
        lines_of(&mut collector, &ipfix(7, &[(256, RECORDS)]))[0..2],
        ["message 10 7 7", expected[2]]
    );
    assert_eq!(lines_of(&mut collector, &ipfix(12, &[]))[1..], ["gap 9 12"]);
    assert_eq!(lines_of(&mut collector, &ipfix(2, &[]))[1..], ["gap 12 2"]);
    assert_eq!(
        Gap {
            expected: 9,
            found: 12
        }
        .missing(),
        Some(3)
    );
    assert_eq!(
        Gap {
            expected: 12,
            found: 2
        }
        .missing(),
        None
    );
    assert_eq!(
        Gap {
            expected: u32::MAX,
            found: 1
        }
        .missing(),
        Some(2)
    );
    let totals = collector.totals();
    assert_eq!(
        (
            totals.messages,
            totals.records,
            totals.templates,
            totals.missing,
            totals.undecoded
        ),
        (4, 4, 1, 3, 0)
    );
}

#[test]
fn enterprises_variable_lengths_and_options() {
    let mut collector = Collector::new();
    // 257: reverse octetDeltaCount (PEN 29305, reduced to 4 octets) and interfaceName of any length.
    let template = [
        1, 1, 0, 2, 0x80, 1, 0, 4, 0, 0, 0x72, 0x79, 0, 82, 0xff, 0xff,
    ];
    // 258: scope ingressInterface; interfaceName.
    let options = [1, 2, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0xff, 0xff];
    let record = [0, 0, 1, 0, 3, b'w', b'a', b'n'];
    let message = ipfix(
        0,
        &[
            (2, &template),
            (3, &options),
            (257, &record),
            (258, &[0, 0, 0, 3, 255, 0, 2, b'e', b'n']),
        ],
    );
    let expected = [
        "message 10 7 0",
        "template 257 0 2",
        "template 258 1 2",
        "record 257 reverseOctetDeltaCount=[0, 0, 1, 0] interfaceName=[119, 97, 110]",
        "record 258 ingressInterface=[0, 0, 0, 3] interfaceName=[101, 110]",
    ];
    assert_eq!(lines_of(&mut collector, &message), expected);
    assert_eq!(
        (
            collector.totals().records,
            collector.totals().options_records
        ),
        (1, 1)
    );
}

#[test]
fn withdrawals() {
    let mut collector = Collector::new();
    let options = [1, 2, 0, 1, 0, 1, 0, 149, 0, 4];
    lines_of(&mut collector, &ipfix(0, &[(2, TEMPLATE), (3, &options)]));
    assert_eq!(collector.templates(), 2);
    assert_eq!(
        lines_of(&mut collector, &ipfix(0, &[(2, &[0, 2, 0, 0])]))[1..],
        ["withdrawn 2"]
    );
    assert_eq!(collector.templates(), 1);
    assert_eq!(
        lines_of(&mut collector, &ipfix(0, &[(3, &[1, 2, 0, 0])]))[1..],
        ["withdrawn 258"]
    );
    assert_eq!(collector.templates(), 0);
    assert_eq!(
        lines_of(&mut collector, &ipfix(0, &[(2, &[0, 7, 0, 0])]))[1..],
        ["20 4 TemplateNumber(7)"]
    );
}

#[test]
fn a_set_waits_for_its_template() {
    let mut collector = Collector::new();
    assert_eq!(
        lines_of(&mut collector, &ipfix(0, &[(256, RECORDS)])),
        ["message 10 7 0"]
    );
    // Of another domain: not the one that is waited for.
    let mut other = ipfix(0, &[(2, TEMPLATE)]);
    other[15] = 8;
    assert_eq!(lines_of(&mut collector, &other).len(), 2);
    let lines = lines_of(&mut collector, &ipfix(2, &[(2, TEMPLATE)]));
    assert_eq!(lines.len(), 4, "{lines:?}");
    lines_of(&mut collector, &ipfix(2, &[(300, &[1, 2, 3])]));
    let mut lines = Vec::new();
    collector.finish(&mut |item| lines.push(line(&item)));
    assert_eq!(lines, ["20 3 NoTemplate(300)"]);
}

/// Version 9: header, a template of four fields, two records and padding, an options template and its record.
fn netflow9() -> Vec<u8> {
    let mut message = vec![0, 9, 0, 5];
    [60_000_u32, 1_700_000_000, 77, 3]
        .iter()
        .for_each(|word| message.extend(word.to_be_bytes()));
    // sourceIPv4Address, IN_BYTES in 4 octets, FIRST_SWITCHED, and one octet of protocol.
    message.extend(set(
        0,
        &[1, 0, 0, 4, 0, 8, 0, 4, 0, 1, 0, 4, 0, 22, 0, 4, 0, 4, 0, 1],
    ));
    let flow = [192, 0, 2, 9, 0, 0, 5, 220, 0, 0, 0xd6, 0xd8, 6];
    message.extend(set(256, &[&flow[..], &flow[..], &[0, 0]].concat()));
    // Scope system in 4 octets; samplingInterval and samplingAlgorithm.
    message.extend(set(
        1,
        &[1, 1, 0, 4, 0, 8, 0, 1, 0, 4, 0, 34, 0, 4, 0, 35, 0, 1, 0, 0],
    ));
    message.extend(set(257, &[192, 0, 2, 1, 0, 0, 3, 232, 2, 0, 0, 0]));
    message
}

#[test]
fn netflow_9() {
    let mut collector = Collector::new();
    let mut starts = Vec::new();
    let mut lines = Vec::new();
    collector.read(exporter(), &netflow9(), &mut |item| {
        lines.push(line(&item));
        if let Item::Record(record) = item {
            starts.push(Flow::of(&record).start);
        }
    });
    let flow = "record 256 sourceIPv4Address=[192, 0, 2, 9] octetDeltaCount=[0, 0, 5, 220] flowStartSysUpTime=[0, 0, 214, 216] protocolIdentifier=[6]";
    let options = "record 257 scopeSystem=[192, 0, 2, 1] samplingInterval=[0, 0, 3, 232] samplingAlgorithm=[2]";
    assert_eq!(
        lines,
        [
            "message 9 3 77",
            "template 256 0 4",
            flow,
            flow,
            "template 257 1 3",
            options
        ]
    );
    // Uptime 55.000 s of 60.000: five seconds before the export.
    assert_eq!(starts[0], Some(1_699_999_995_000_000_000));
    // The number counts messages.
    assert_eq!(lines_of(&mut collector, &netflow9())[1], "gap 78 77");
}

#[test]
fn netflow_5() {
    let mut message = vec![0, 5, 0, 2];
    [60_000_u32, 1_700_000_000, 500_000_000, 10]
        .iter()
        .for_each(|word| message.extend(word.to_be_bytes()));
    message.extend([1, 2, 0x40, 100]);
    for port in [80_u16, 443] {
        message.extend([
            10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3, 0, 4, 0, 5, 0, 0, 0, 6, 0, 0, 7, 8,
        ]);
        [59_000_u32, 59_500]
            .iter()
            .for_each(|word| message.extend(word.to_be_bytes()));
        message.extend([4, 210]);
        message.extend(port.to_be_bytes());
        message.extend([0, 0x1b, 6, 8, 0, 100, 0, 200, 24, 16, 0, 0]);
    }
    let mut collector = Collector::new();
    let mut flows = Vec::new();
    collector.read(exporter(), &message, &mut |item| {
        if let Item::Record(record) = item {
            assert_eq!(
                (
                    record.header.version,
                    record.header.domain,
                    record.header.sampling
                ),
                (Version::NetFlow5, 0x102, Some(0x4064))
            );
            flows.push(Flow::of(&record));
        }
    });
    assert_eq!(flows.len(), 2);
    let flow = &flows[1];
    assert_eq!(
        (
            flow.source_address().to_string(),
            flow.destination_address().to_string()
        ),
        ("10.0.0.1".into(), "10.0.0.2".into())
    );
    assert_eq!(
        (flow.next_hop.unwrap().to_string(), flow.input, flow.output),
        ("10.0.0.3".into(), 4, 5)
    );
    assert_eq!(
        (
            flow.packets,
            flow.octets,
            flow.source_port,
            flow.destination_port
        ),
        (6, 0x708, 1234, 443)
    );
    assert_eq!(
        (flow.tcp_flags, flow.protocol, flow.tos),
        (0x1b, Some(6), 8)
    );
    assert_eq!(
        (
            flow.source_as,
            flow.destination_as,
            flow.source_prefix,
            flow.destination_prefix
        ),
        (100, 200, 24, 16)
    );
    assert_eq!(
        (flow.start, flow.end),
        (
            Some(1_699_999_999_500_000_000),
            Some(1_700_000_000_000_000_000)
        )
    );
    // Sequence counts flows; a message that holds fewer than it says is reported.
    message[3] = 3;
    message[19] = 12;
    assert_eq!(
        lines_of(&mut collector, &message).last().unwrap(),
        "120 0 Count { said: 3, found: 2 }"
    );
    message[19] = 15;
    assert!(
        !lines_of(&mut collector, &message)
            .iter()
            .any(|line| line.starts_with("gap"))
    );
}

#[test]
fn what_lies_is_reported_with_its_place() {
    let cases: [(Vec<u8>, &str); 14] = [
        (vec![], "0 0 Version(0)"),
        (vec![0, 1, 2, 3], "0 4 Version(1)"),
        (
            vec![0, 10, 0, 16, 0],
            "0 5 ShortHeader { version: 10, needed: 16, left: 5 }",
        ),
        (
            [&ipfix(0, &[])[..2], &[0, 15], &ipfix(0, &[])[4..]].concat(),
            "2 14 MessageLength { said: 15, left: 16 }",
        ),
        (
            [&ipfix(0, &[])[..2], &[0, 17], &ipfix(0, &[])[4..]].concat(),
            "2 14 MessageLength { said: 17, left: 16 }",
        ),
        (
            [&ipfix(0, &[])[..], &[1]].concat(),
            "16 1 MessageLength { said: 16, left: 17 }",
        ),
        (ipfix(0, &[(4, &[1])]), "20 1 ReservedSet(4)"),
        (
            ipfix(0, &[(2, &[1, 0, 0, 9, 0, 4, 0, 1])]),
            "20 8 ShortTemplate(256)",
        ),
        (
            ipfix(0, &[(2, &[0, 255, 0, 1, 0, 4, 0, 1])]),
            "20 8 TemplateNumber(255)",
        ),
        (
            ipfix(0, &[(2, &[1, 0, 0, 1, 0, 4, 0, 0])]),
            "20 8 EmptyRecords(256)",
        ),
        (
            ipfix(0, &[(3, &[1, 0, 0, 1, 0, 0, 0, 4, 0, 1])]),
            "20 10 Scopes(256, 0, 1)",
        ),
        (
            ipfix(0, &[(3, &[1, 0, 0, 1, 0, 2, 0, 4, 0, 1])]),
            "20 10 Scopes(256, 2, 1)",
        ),
        // A record of 16 octets, and eight that are neither a record nor padding.
        (
            ipfix(
                0,
                &[
                    (2, &[1, 0, 0, 1, 0, 27, 0, 16]),
                    (256, &[&[9; 16][..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat()),
                ],
            ),
            "48 8 Padding { template: 256, left: 8 }",
        ),
        (
            ipfix(0, &[(2, &[1, 0, 0, 1, 0, 82, 255, 255]), (256, &[2, 65])]),
            "32 2 ShortRecord { template: 256, left: 2 }",
        ),
    ];
    for (message, expected) in cases {
        let lines = lines_of(&mut Collector::new(), &message);
        assert_eq!(
            lines.last().map(String::as_str),
            Some(expected),
            "{message:?}: {lines:?}"
        );
    }
    let mut lying = ipfix(0, &[(2, TEMPLATE), (256, RECORDS)]);
    lying[35] = 200;
    assert_eq!(
        lines_of(&mut Collector::new(), &lying).last().unwrap(),
        "32 10 SetLength { set: 256, said: 200, left: 10 }"
    );
    lying[35] = 3;
    assert_eq!(
        lines_of(&mut Collector::new(), &lying).last().unwrap(),
        "32 10 SetLength { set: 256, said: 3, left: 10 }"
    );
    // The next template of a set is found behind one that is refused.
    let both = [&[1, 1, 0, 1, 0, 4, 0, 0][..], TEMPLATE].concat();
    assert_eq!(
        lines_of(&mut Collector::new(), &ipfix(0, &[(2, &both)]))[1..],
        ["20 8 EmptyRecords(257)", "template 256 0 2"]
    );
    let empty = [&[1, 0, 0, 18][..], &[0, 82, 0, 0].repeat(17), &[0, 4, 0, 1]].concat();
    let Some(Problem::EmptyFields(..)) = first_problem(&ipfix(0, &[(2, &empty)])) else {
        panic!("{MOST_EMPTY_FIELDS}")
    };
}

fn first_problem(message: &[u8]) -> Option<Problem> {
    let mut problem = None;
    Collector::new().read(exporter(), message, &mut |item| {
        if let Item::Undecoded(what) = item {
            problem.get_or_insert(what.why);
        }
    });
    problem
}

#[test]
fn every_cut_is_reported_or_sound() {
    let ipfix = ipfix(
        5,
        &[
            (2, TEMPLATE),
            (3, &[1, 2, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0xff, 0xff]),
            (256, RECORDS),
            (258, &[0, 0, 0, 3, 1, 65]),
        ],
    );
    for whole in [ipfix, netflow9()] {
        for cut in 0..whole.len() {
            let mut octets = 0;
            let mut collector = Collector::new();
            collector.read(exporter(), &whole[..cut], &mut |item| {
                if let Item::Undecoded(what) = item {
                    assert!(what.offset + what.octets <= cut, "{cut}: {what:?}");
                    octets += what.octets;
                }
            });
            // Version 9 has no length: cut between two sets, it is sound. IPFIX says how long it is.
            assert!(whole[1] == 9 || octets > 0 || cut == 0, "{cut}");
        }
    }
}

#[test]
fn a_flood_of_templates_takes_bounded_memory() {
    let mut collector = Collector::new();
    let mut message = ipfix(0, &[(2, TEMPLATE)]);
    for domain in 0..100_000_u32 {
        message[12..16].copy_from_slice(&domain.to_be_bytes());
        collector.read(exporter(), &message, &mut |_| {});
    }
    // Each costs its two fields and one more.
    assert_eq!(collector.templates(), MOST_FIELDS / 3);
    assert_eq!(
        collector.totals().templates_forgotten,
        100_000 - MOST_FIELDS as u64 / 3
    );
    // The last ones are there.
    let mut data = ipfix(0, &[(256, RECORDS)]);
    data[12..16].copy_from_slice(&99_999_u32.to_be_bytes());
    assert_eq!(lines_of(&mut collector, &data).len(), 3);
}

/// Withdrawals of all templates cost those who have some, not those who send them, however many others have.
#[test]
fn withdrawals_by_others_cost_little() {
    let mut collector = Collector::new();
    let templates: Vec<u8> = (256..6256_u16)
        .flat_map(|id| [&id.to_be_bytes()[..], &[0, 1, 0, 4, 0, 1]].concat())
        .collect();
    for domain in 0..20_u32 {
        let mut message = ipfix(0, &[(2, &templates)]);
        message[12..16].copy_from_slice(&domain.to_be_bytes());
        collector.read(exporter(), &message, &mut |_| {});
    }
    let all: Vec<u8> = [0, 2, 0, 0].repeat(15_000);
    let options: Vec<u8> = [0, 3, 0, 0].repeat(15_000);
    let begin = std::time::Instant::now();
    for (domain, withdrawals) in [(99_u32, (2, &all[..])), (0, (3, &options[..]))] {
        let mut message = ipfix(0, &[withdrawals]);
        message[12..16].copy_from_slice(&domain.to_be_bytes());
        collector.read(exporter(), &message, &mut |_| {});
    }
    // Two looks through 120,000 templates for each would take minutes.
    assert!(
        begin.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(collector.templates(), 120_000);
    let mut message = ipfix(0, &[(2, &all)]);
    message[12..16].copy_from_slice(&7_u32.to_be_bytes());
    collector.read(exporter(), &message, &mut |_| {});
    assert_eq!(collector.templates(), 114_000);
}

#[test]
fn sets_that_wait_take_bounded_memory() {
    let mut collector = Collector::new();
    let body = vec![1; 60_000];
    let message = ipfix(0, &[(999, &body)]);
    let mut gone = 0;
    for _ in 0..1000 {
        collector.read(exporter(), &message, &mut |item| {
            gone += u32::from(matches!(item, Item::Undecoded(_)))
        });
    }
    assert_eq!(gone, 1000 - 17);
    let mut waited = 0;
    collector.finish(&mut |_| waited += 1);
    assert_eq!(waited, 17);
    // Those that are empty have a price, too; the last ones wait, each for its own template.
    let message = ipfix(
        0,
        &(256..16_000).map(|id| (id, &[][..])).collect::<Vec<_>>(),
    );
    let mut gone = 0;
    collector.read(exporter(), &message, &mut |item| {
        gone += usize::from(matches!(item, Item::Undecoded(_)))
    });
    assert_eq!(gone, (256..16_000).len() - MOST_HELD / HELD_COST);
    let templates: Vec<u8> = (256..6000_u16)
        .flat_map(|id| [&id.to_be_bytes()[..], &[0, 1, 0, 4, 0, 1]].concat())
        .collect();
    assert!(
        !lines_of(&mut collector, &ipfix(0, &[(2, &templates)]))
            .iter()
            .any(|line| line.contains("record"))
    );
    let mut waited = 0;
    collector.finish(&mut |_| waited += 1);
    assert_eq!(waited, MOST_HELD / HELD_COST);
}

/// What waited for one template is read in the order in which it came, and what waits for others goes on waiting.
#[test]
fn a_template_lets_go_what_waited_for_it_alone() {
    let mut collector = Collector::new();
    let sets: Vec<(u16, &[u8])> = vec![
        (256, &[17, 0, 53]),
        (257, &[1]),
        (256, &[6, 1, 187]),
        (256, &[]),
    ];
    assert_eq!(lines_of(&mut collector, &ipfix(0, &sets)).len(), 1);
    let lines = lines_of(&mut collector, &ipfix(2, &[(2, TEMPLATE)]));
    let records: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("record 256 "))
        .collect();
    assert_eq!(
        records,
        [
            "protocolIdentifier=[17] destinationTransportPort=[0, 53]",
            "protocolIdentifier=[6] destinationTransportPort=[1, 187]"
        ]
    );
    let mut lines = Vec::new();
    collector.finish(&mut |item| lines.push(line(&item)));
    assert_eq!(lines, ["27 1 NoTemplate(257)"]);
}

proptest! {
    /// Any octets, also behind a sound template and as versions 5, 9 and 10: no panic, work and places in bounds.
    #[test]
    fn nothing_breaks_it(mut octets in proptest::collection::vec(any::<u8>(), 0..300), version in prop_oneof![Just(5_u8), Just(9), Just(10)], honest in any::<bool>()) {
        let mut collector = Collector::new();
        collector.read(exporter(), &ipfix(0, &[(2, TEMPLATE)]), &mut |_| {});
        collector.read(exporter(), &netflow9(), &mut |_| {});
        if octets.len() >= 4 {
            octets[..2].copy_from_slice(&[0, version]);
            if honest && version == 10 {
                let length = octets.len() as u16;
                octets[2..4].copy_from_slice(&length.to_be_bytes());
            }
        }
        let (length, mut records) = (octets.len(), 0);
        collector.read(exporter(), &octets, &mut |item| match item {
            Item::Record(record) => {
                records += 1;
                assert!(record.fields().count() <= 300 + MOST_EMPTY_FIELDS);
                let _ = Flow::of(&record);
            }
            Item::Undecoded(what) => assert!(what.offset + what.octets <= length),
            _ => {}
        });
        prop_assert!(records <= length);
        collector.finish(&mut |_| {});
    }

    /// A sound message with one octet changed.
    #[test]
    fn one_wrong_octet(place in 0_usize..1000, octet in any::<u8>(), nine in any::<bool>()) {
        let mut message = if nine { netflow9() } else { ipfix(0, &[(2, TEMPLATE), (3, &[1, 2, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0xff, 0xff]), (256, RECORDS), (258, &[0, 0, 0, 3, 1, 65])]) };
        let place = place % message.len();
        message[place] = octet;
        let length = message.len();
        let mut collector = Collector::new();
        collector.read(exporter(), &message, &mut |item| if let Item::Undecoded(what) = item { assert!(what.offset + what.octets <= length) });
        collector.finish(&mut |_| {});
    }
}

/// RFC 7011, 3.3.1: padding should be zero. What is not is ignored as well.
#[test]
fn padding_of_any_value_is_ignored() {
    for padding in 0..8 {
        let records = [&[9; 16][..], &[0xaa; 7][..padding]].concat();
        let message = ipfix(0, &[(2, &[1, 0, 0, 1, 0, 27, 0, 16]), (256, &records)]);
        let mut collector = Collector::new();
        let lines = lines_of(&mut collector, &message);
        assert_eq!(
            (collector.totals().records, collector.totals().undecoded),
            (1, 0),
            "{lines:?}"
        );
    }
}
