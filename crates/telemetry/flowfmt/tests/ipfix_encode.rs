//! The encoder before independent judges: the crate `netflow_parser`, and tshark. Expected values are those of
//! the made-up flows, not of what was encoded.

mod ipfix_messages;

use std::io::Write;
use std::process::{Command, Stdio};

use ipfix_messages::{EXPORTED, FIRST, Made, capture, message5, messages};
use netflow_parser::NetflowParser;
use serde_json::Value;
use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::encode::{EncodeError, Fit, MessageBuilder, push_variable};
use weir_flowfmt::ipfix::template::{Field, Space, Template, VARIABLE};

const FLOWS: u64 = 200;

/// Records of data (not of options) in what `netflow_parser` says: lists of name and value.
fn rows(value: &Value, found: &mut Vec<Vec<(String, String)>>) {
    match value {
        Value::Object(object) => {
            if let Some(rows) = object
                .get("Data")
                .and_then(|data| data.get("fields"))
                .and_then(Value::as_array)
            {
                found.extend(
                    rows.iter()
                        .map(|row| row.as_array().unwrap().iter().map(pair).collect()),
                );
            }
            object
                .iter()
                .filter(|(name, _)| *name != "Data")
                .for_each(|(_, value)| rows(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| rows(value, found)),
        _ => {}
    }
}

fn pair(pair: &Value) -> (String, String) {
    let name = &pair[0];
    let name = name
        .get("IANA")
        .unwrap_or(name)
        .as_str()
        .unwrap()
        .to_owned();
    (name, leaf(&pair[1]))
}

/// The value inside of the names of its types.
fn leaf(value: &Value) -> String {
    match value {
        Value::Object(object) if object.len() == 1 => leaf(object.values().next().unwrap()),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn parsed(messages: &[Vec<u8>]) -> Vec<Vec<(String, String)>> {
    let (mut parser, mut found) = (NetflowParser::default(), Vec::new());
    for message in messages {
        let result = parser.parse_bytes(message);
        assert!(result.error.is_none(), "{:?}", result.error);
        rows(&serde_json::to_value(&result.packets).unwrap(), &mut found);
    }
    found
}

#[test]
fn netflow_parser_reads_every_record() {
    for (version, names4, names6) in [
        (
            Version::Ipfix,
            ["SourceIpv4address", "DestinationIpv4address"],
            ["SourceIpv6address", "DestinationIpv6address"],
        ),
        (
            Version::NetFlow9,
            ["Ipv4SrcAddr", "Ipv4DstAddr"],
            ["Ipv6SrcAddr", "Ipv6DstAddr"],
        ),
    ] {
        for most in [400, 512, 1400, 9000] {
            let messages = messages(version, most, FLOWS);
            assert!(
                messages.iter().all(|message| message.len() <= most),
                "{most}"
            );
            let mut records = parsed(&messages);
            assert_eq!(records.len() as u64, FLOWS, "{version:?} {most}");
            for flow in (0..FLOWS).map(Made) {
                let names = if flow.is_v6() { names6 } else { names4 };
                let (v4, v6) = (flow.source(), flow.destination());
                let (source, destination) = if flow.is_v6() {
                    (v4.1.to_string(), v6.1.to_string())
                } else {
                    (v4.0.to_string(), v6.0.to_string())
                };
                let place = records
                    .iter()
                    .position(|record| record[0] == (names[0].to_owned(), source.clone()))
                    .unwrap();
                let record = records.remove(place);
                assert_eq!(record[1], (names[1].to_owned(), destination));
                let values: Vec<&str> = record.iter().map(|(_, value)| value.as_str()).collect();
                assert_eq!(
                    values[2..4],
                    [flow.ports().0.to_string(), flow.ports().1.to_string()]
                );
                assert_eq!((values[7], values[8]), ("7", "9"));
                assert_eq!(
                    values[9..11],
                    [flow.packets().to_string(), flow.octets().to_string()],
                    "{record:?}"
                );
                assert_eq!((values[13], values[14]), ("24", "16"));
            }
        }
    }
}

#[test]
fn netflow_parser_reads_version_5() {
    let result = NetflowParser::default().parse_bytes(&message5());
    let value = serde_json::to_value(&result.packets).unwrap();
    let flows = value[0]["V5"]["flowsets"].as_array().unwrap();
    assert_eq!((flows.len(), result.error.is_none()), (20, true));
    for (found, flow) in flows
        .iter()
        .zip((0..30).map(Made).filter(|flow| !flow.is_v6()))
    {
        assert_eq!(found["src_addr"], flow.source().0.to_string());
        assert_eq!(found["dst_addr"], flow.destination().0.to_string());
        assert_eq!(
            (&found["d_pkts"], &found["d_octets"]),
            (&flow.packets().into(), &flow.octets().into())
        );
        assert_eq!(
            found["last"],
            1_000_000 + flow.last() - u64::from(EXPORTED) * 1000
        );
        assert_eq!(
            (&found["src_mask"], &found["dst_mask"], &found["tos"]),
            (&24.into(), &16.into(), &8.into())
        );
    }
}

/// What tshark says about a capture, these fields a frame; nothing when there is no tshark.
fn dissect(capture: &[u8], arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-r", "-", "-d", "udp.port==4739,cflow"])
        .args(arguments);
    let mut tshark = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    tshark.stdin.take().unwrap().write_all(capture).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tshark_reads_every_record() {
    for version in [Version::Ipfix, Version::NetFlow9] {
        let capture = capture(4739, &messages(version, 1400, FLOWS));
        let Some(text) = dissect(&capture, &["-V"]) else {
            eprintln!("skipped: tshark is not installed");
            return;
        };
        for wrong in [
            "Malformed",
            "Expert Info",
            "exception",
            "no template",
            "No template",
        ] {
            assert!(!text.contains(wrong), "{wrong} in {text}");
        }
        let fields: Vec<&str> = text.lines().map(str::trim).collect();
        let count = |line: &str| fields.iter().filter(|found| **found == line).count();
        for flow in (0..FLOWS).map(Made) {
            let source = if flow.is_v6() {
                flow.source().1.to_string()
            } else {
                flow.source().0.to_string()
            };
            assert_eq!(count(&format!("SrcAddr: {source}")), 1, "{source}");
            assert!(
                count(&format!("Octets: {}", flow.octets())) >= 1,
                "{}",
                flow.octets()
            );
            assert!(count(&format!("Packets: {}", flow.packets())) >= 1);
        }
        // The scope of the options is the input interface as well, in IPFIX.
        let scopes = usize::from(version == Version::Ipfix);
        assert_eq!(
            (count("InputInt: 7"), count("OutputInt: 9")),
            (FLOWS as usize + scopes, FLOWS as usize)
        );
        let duration = format!(
            "Duration: {}.{:03}000000 seconds",
            1001 * 199 / 1000,
            1001 * 199 % 1000
        );
        assert!(
            fields.iter().any(|found| found.contains(&duration)),
            "{duration} in {text}"
        );
    }
    assert_eq!(FIRST / 1000 + 100, u64::from(EXPORTED));
}

#[test]
fn what_cannot_be_said_is_refused() {
    let mut builder = MessageBuilder::new(Version::NetFlow9, 0, 512);
    let private = Template::data(
        256,
        vec![Field {
            space: Space::Enterprise(9),
            number: 1,
            length: 4,
        }],
    );
    assert_eq!(builder.template(&private), Err(EncodeError::NotInVersion9));
    assert_eq!(
        builder.template(&Template::data(256, vec![Field::iana(82, VARIABLE)])),
        Err(EncodeError::NotInVersion9)
    );
    assert_eq!(
        builder.template(&Template::data(255, vec![Field::iana(1, 8)])),
        Err(EncodeError::TemplateNumber(255))
    );
    assert_eq!(builder.record(2, &[0]), Err(EncodeError::TemplateNumber(2)));
    let mut builder = MessageBuilder::new(Version::Ipfix, 0, 512);
    assert_eq!(
        builder.template(&Template::data(256, vec![])),
        Err(EncodeError::Fields(0))
    );
    assert_eq!(
        builder.template(&Template::data(256, vec![Field::iana(1, 8); 200])),
        Err(EncodeError::TooLarge {
            needed: 824,
            most: 512
        })
    );
    assert!(builder.is_empty() && builder.len() == 16);
    // The longest record, alone and behind another one.
    assert_eq!(builder.record(256, &[1; 492]), Ok(Fit::Added));
    assert_eq!(builder.finish(0, 0, 0).len(), 512);
    assert_eq!(builder.record(256, &[1]), Ok(Fit::Full));
    builder.clear();
    assert_eq!(
        builder.record(256, &[1; 493]),
        Err(EncodeError::TooLarge {
            needed: 513,
            most: 512
        })
    );
}

#[test]
fn fields_of_variable_length_are_read() {
    let mut builder = MessageBuilder::new(Version::Ipfix, 7, 1400);
    let template = Template::data(
        300,
        vec![
            Field::iana(82, VARIABLE),
            Field::iana(83, VARIABLE),
            Field::iana(10, 4),
        ],
    );
    assert_eq!(builder.template(&template), Ok(Fit::Added));
    let (mut record, long) = (Vec::new(), "x".repeat(300));
    push_variable(&mut record, b"wan0");
    push_variable(&mut record, long.as_bytes());
    record.extend([0, 0, 0, 7]);
    assert_eq!(builder.record(300, &record), Ok(Fit::Added));
    let message = builder.finish(0, EXPORTED, 0).to_vec();
    let rows = parsed(std::slice::from_ref(&message));
    let values: Vec<&str> = rows[0].iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["wan0", &long, "7"]);
    if let Some(text) = dissect(&capture(4739, &[message]), &["-V"]) {
        assert!(
            text.contains("IfName: wan0")
                && text.contains("InputInt: 7")
                && !text.contains("Malformed"),
            "{text}"
        );
    }
}
