//! The table of records: what is written by it is read by it, cut anywhere it is an error, and two
//! programs that know nothing of it read the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use weir_flowfmt::sflow::decode::{
    CounterRecord as Read, Datagram, FlowRecord as ReadFlow, Opaque, Sample,
};
use weir_flowfmt::sflow::encode::{
    CounterRecord, DatagramBuilder, EncodeError, Encoding, Fit, FlowRecord,
};
use weir_flowfmt::sflow::print::Format;
use weir_flowfmt::sflow::records::{COUNTERS, FLOW};
use weir_flowfmt::sflow::structure::{Kind, Structure, Value};
use weir_flowfmt::sflow::{
    CountersSample, DataFormat, DiscardedPacket, FlowSample, Port, Source, decode_datagram_to,
};

const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A value for a field, made from a number.
fn value(kind: Kind, seed: u32) -> Value<'static> {
    static OCTETS: [u8; 80] = [0x5a; 80];
    let short = seed as usize % 9;
    match kind {
        Kind::U32 | Kind::Hundredths | Kind::Choice(_) => Value::U32(seed),
        Kind::U64 | Kind::Id64 => Value::U64(u64::from(seed) << 20),
        Kind::I32 => Value::I32(seed.cast_signed()),
        Kind::F32 => Value::F32(seed as f32),
        Kind::Octet => Value::Octet(seed as u8),
        Kind::Text | Kind::Octets => Value::Octets(&OCTETS[..short]),
        Kind::Address => {
            Value::Address([None, Some(AGENT), Some(Ipv6Addr::LOCALHOST.into())][seed as usize % 3])
        }
        Kind::Ipv4 => Value::Address(Some(Ipv4Addr::from(seed).into())),
        Kind::Ipv6 => Value::Address(Some(Ipv6Addr::from(u128::from(seed) << 64).into())),
        Kind::Mac => Value::Mac([2, 0, 0, 0, 0, seed as u8]),
        Kind::Uuid => Value::Uuid([seed as u8; 16]),
        Kind::Words | Kind::Labels | Kind::Tags | Kind::Percentages => {
            Value::Words(&OCTETS[..short * 4])
        }
        // Two segments without numbers; two interfaces without MACs; two lanes.
        Kind::AsPath | Kind::Adaptors => Value::List(2, &[0; 16]),
        Kind::Lanes => Value::List(2, &OCTETS[..80]),
        Kind::Rest => Value::Octets(&OCTETS[..short * 4]),
        other => panic!("{other:?} has no value in this test"),
    }
}

fn values(structure: &Structure, seed: u32) -> Vec<Value<'static>> {
    structure
        .fields
        .iter()
        .zip(1..)
        .map(|(field, place)| value(field.kind, seed.wrapping_mul(place).wrapping_add(place)))
        .collect()
}

fn flow() -> FlowSample {
    let port = Port::interface(3);
    FlowSample {
        sequence: 1,
        source: Source::interface(3),
        rate: 10,
        pool: 100,
        drops: 0,
        input: port,
        output: port,
    }
}

/// A datagram with this record alone.
fn datagram(
    of_flow: bool,
    structure: &Structure,
    values: &[Value<'_>],
) -> Result<Vec<u8>, EncodeError> {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
    let fit = if of_flow {
        builder.flow_sample(&flow(), &[FlowRecord::Structure(structure, values)])?
    } else {
        builder.counters_sample(
            &CountersSample {
                sequence: 1,
                source: Source::interface(3),
            },
            &[CounterRecord::Structure(structure, values)],
        )?
    };
    assert_eq!(fit, Fit::Added);
    Ok(builder.finish(1, 1).to_vec())
}

/// The only record of the only sample, stepped over by its length.
fn record(datagram: &[u8]) -> Option<Opaque<'_>> {
    match Datagram::decode(datagram)
        .unwrap()
        .samples()
        .next()?
        .unwrap()
    {
        Sample::Flow(_, _, mut records) => match records.next()?.unwrap() {
            ReadFlow::Other(opaque) => Some(opaque),
            _ => None,
        },
        Sample::Counters(_, _, mut records) => match records.next()?.unwrap() {
            Read::Other(opaque) => Some(opaque),
            _ => None,
        },
        _ => None,
    }
}

fn everything() -> impl Iterator<Item = (bool, &'static Structure)> {
    FLOW.iter()
        .map(|structure| (true, structure))
        .chain(COUNTERS.iter().map(|structure| (false, structure)))
}

proptest! {
    #[test]
    fn what_is_written_by_the_table_is_read_by_it(seed in any::<u32>()) {
        for (of_flow, structure) in everything() {
            let values = values(structure, seed);
            let bytes = datagram(of_flow, structure, &values).unwrap();
            let Some(opaque) = record(&bytes) else {
                // The three that the decoder reads at once.
                prop_assert!(matches!(structure.format, DataFormat::RAW_HEADER | DataFormat::PORT_NAME));
                continue;
            };
            prop_assert_eq!(opaque.format, structure.format);
            let read = structure.read(&opaque).unwrap();
            prop_assert_eq!(read.as_slice(), values.as_slice(), "{}", structure.format);
            // Longer than known: what was added is stepped over.
            let mut longer = opaque.body.to_vec();
            longer.extend([0xee; 8]);
            let grown = Opaque { body: &longer, ..opaque };
            let read = structure.read(&grown).unwrap();
            if structure.fields.last().is_some_and(|field| field.kind != Kind::Rest) {
                prop_assert_eq!(read.as_slice(), values.as_slice());
            }
        }
    }

    #[test]
    fn any_body_of_any_record_is_survived(which in any::<prop::sample::Index>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let all: Vec<(bool, &Structure)> = everything().collect();
        let (of_flow, structure) = all[which.index(all.len())];
        let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
        let fit = if of_flow {
            builder.flow_sample(&flow(), &[FlowRecord::Other(structure.format, &body)])
        } else {
            builder.counters_sample(&CountersSample { sequence: 1, source: Source::interface(3) }, &[CounterRecord::Other(structure.format, &body)])
        };
        prop_assert_eq!(fit, Ok(Fit::Added));
        let bytes = builder.finish(1, 1).to_vec();
        for format in [Format::Text, Format::Json, Format::PrettyJson, Format::Grep, Format::Line] {
            let mut output = Vec::new();
            let _ = decode_datagram_to(&mut output, format, AGENT, 0, &bytes);
            prop_assert!(output.len() < 100_000);
            if matches!(format, Format::Json | Format::PrettyJson) {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&output).is_ok());
            }
        }
    }
}

#[test]
fn a_record_cut_anywhere_is_an_error_and_costs_itself_only() {
    for (of_flow, structure) in everything() {
        let values = values(structure, 7);
        let whole = datagram(of_flow, structure, &values).unwrap();
        let Some(opaque) = record(&whole) else {
            continue;
        };
        let body = opaque.body;
        // What needs not be there: fields that came later, octets without an end of their own, and padding.
        let added = &structure.fields[structure.required..];
        assert!(added.iter().all(|field| field.kind == Kind::U32));
        let last = structure.fields.last().map(|field| field.kind);
        let needed = match last {
            Some(Kind::Rest) => {
                body.len()
                    - if let Some(Value::Octets(rest)) = values.last() {
                        rest.len()
                    } else {
                        0
                    }
            }
            Some(Kind::Text | Kind::Octets) => body.len() - 3,
            _ => body.len() - 4 * added.len(),
        };
        for len in 0..body.len() {
            let read = structure.read(&Opaque {
                body: &body[..len],
                ..opaque
            });
            if len < needed {
                assert!(read.is_err(), "{} cut to {len}", structure.format);
            }
        }
        for len in (0..body.len()).step_by(4) {
            let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
            let (cut, sound) = (
                &body[..len],
                DataFormat {
                    enterprise: 99,
                    format: 1,
                },
            );
            let fit = if of_flow {
                builder.flow_sample(
                    &flow(),
                    &[
                        FlowRecord::Other(structure.format, cut),
                        FlowRecord::Other(sound, &[1, 2, 3, 4]),
                    ],
                )
            } else {
                let sample = CountersSample {
                    sequence: 1,
                    source: Source::interface(3),
                };
                builder.counters_sample(
                    &sample,
                    &[
                        CounterRecord::Other(structure.format, cut),
                        CounterRecord::Other(sound, &[1, 2, 3, 4]),
                    ],
                )
            };
            assert_eq!(fit, Ok(Fit::Added));
            let bytes = builder.finish(1, 1).to_vec();
            let mut output = Vec::new();
            let outcome = decode_datagram_to(&mut output, Format::Text, AGENT, 0, &bytes);
            let text = String::from_utf8(output).unwrap();
            assert_eq!(
                outcome.is_err(),
                len < needed,
                "{} cut to {len}: {text}",
                structure.format
            );
            assert!(
                text.contains("Block_tag 99:1"),
                "{} cut to {len}: {text}",
                structure.format
            );
        }
    }
}

#[test]
fn every_datagram_cut_anywhere_is_an_error() {
    let hex = |text: &str| -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    for datagram in include_str!("sflowtool/records.hex").lines().map(hex) {
        for len in 0..datagram.len() {
            for format in [Format::Text, Format::Line] {
                let outcome =
                    decode_datagram_to(&mut Vec::new(), format, AGENT, 0, &datagram[..len]);
                assert!(outcome.is_err(), "cut to {len} of {}", datagram.len());
            }
        }
    }
}

#[test]
fn values_of_the_wrong_kind_are_refused_and_nothing_is_left_of_them() {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
    let switch = FLOW
        .iter()
        .find(|structure| structure.format == DataFormat::standard(1001))
        .unwrap();
    let wrong = [Value::U32(1), Value::U64(1), Value::U32(1), Value::U32(1)];
    let outcome = builder.flow_sample(&flow(), &[FlowRecord::Structure(switch, &wrong)]);
    assert_eq!(
        outcome,
        Err(EncodeError::Structure(DataFormat::standard(1001)))
    );
    let outcome = builder.flow_sample(&flow(), &[FlowRecord::Structure(switch, &[Value::U32(1)])]);
    assert_eq!(
        outcome,
        Err(EncodeError::Structure(DataFormat::standard(1001)))
    );
    assert!(builder.is_empty() && builder.len() == 28);
    assert_eq!(
        builder.flow_sample(
            &flow(),
            &[FlowRecord::Structure(switch, &[Value::U32(1); 4])]
        ),
        Ok(Fit::Added)
    );
}

/// `sflow-parser`, a decoder by somebody else: it must read every record of ours, and know its kind.
#[test]
fn another_decoder_reads_every_record() {
    // It takes MAC addresses for six octets where XDR has eight (0:2 and its tunnels, 0:7), shows words where we
    // have numbers (0:1, 1005, memcache, 2000), and does not know, or knows older forms of, the others.
    let not_by_it = |of_flow: bool, format: DataFormat| {
        let flows = matches!(
            format.format,
            1 | 2 | 1005 | 1009 | 1010 | 1016 | 1017 | 1021 | 1022 | 1043 | 2200 | 2201 | 2203
                ..=2205 | 2208
        );
        let counters = matches!(format.format, 7 | 11 | 2000 | 2003 | 2106 | 2200 | 2205);
        format.enterprise == 43874
            || format.enterprise == 0 && if of_flow { flows } else { counters }
    };
    let mut wrong = Vec::new();
    for (of_flow, structure) in
        everything().filter(|(of_flow, structure)| !not_by_it(*of_flow, structure.format))
    {
        let values = values(structure, 3);
        let bytes = datagram(of_flow, structure, &values).unwrap();
        let shown = match sflow_parser::parse_datagram(&bytes) {
            Ok(parsed) => format!("{parsed:?}"),
            Err(error) => error.to_string(),
        };
        let numbers = structure
            .fields
            .iter()
            .zip(&values)
            .filter(|(field, _)| matches!(field.kind, Kind::U32 | Kind::U64));
        let lost: Vec<&str> = numbers
            .filter(|(_, value)| {
                value
                    .number()
                    .is_some_and(|number| !shown.contains(&format!(": {number}")))
            })
            .map(|(field, _)| field.name)
            .collect();
        if !lost.is_empty() || shown.contains("Unknown {") {
            wrong.push(format!(
                "{} of flow {of_flow}: {lost:?} in {shown}",
                structure.format
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn another_decoder_reads_a_discard() {
    let mut builder = DatagramBuilder::new(AGENT, 0, Encoding::Expanded);
    let sample = DiscardedPacket {
        sequence: 11,
        source: Source::interface(3),
        drops: 12,
        input: 13,
        output: 14,
        reason: 257,
    };
    let trap = FLOW
        .iter()
        .find(|structure| structure.format == DataFormat::standard(1041))
        .unwrap();
    let values = [Value::Octets(b"ip4-rewrite"), Value::Octets(b"ttl-expired")];
    assert_eq!(
        builder.discarded_packet(&sample, &[FlowRecord::Structure(trap, &values)]),
        Ok(Fit::Added)
    );
    let bytes = builder.finish(1, 1).to_vec();
    let shown = format!("{:?}", sflow_parser::parse_datagram(&bytes).unwrap());
    for expected in ["drops: 12", "TtlExceeded", "ip4-rewrite", "ttl-expired"] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let Some(Ok(Sample::Discard(read, records))) =
        Datagram::decode(&bytes).unwrap().samples().next()
    else {
        panic!()
    };
    assert_eq!((read, records.count()), (sample, 1));
}
