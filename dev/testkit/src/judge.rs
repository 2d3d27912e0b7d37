//! tshark reads what was to go out, and must have no remark that the scenario does not list.
//!
//! All expected frames of all scenarios are read in one run, since starting tshark costs more than
//! reading; what it would keep in mind from one frame to the next is switched off, or distinguished by
//! nothing. Checksums are verified.

use std::io::Write;
use std::process::{Command, Stdio};

use weir_pcap::file::{ETHERNET, Writer};

use crate::script::Script;

/// What one frame belongs to.
struct Place<'a> {
    scenario: &'a str,
    line: usize,
    sentence: &'a str,
}

/// Settings under which frames are read: each by itself, with all checksums verified.
const SETTINGS: [&str; 9] = [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "arp.detect_duplicate_ips:FALSE",
    "arp.detect_request_storms:FALSE",
];

/// Remarks that say nothing about a frame: a request whose answer is in another capture.
const HARMLESS: [&str; 2] = [
    "No response seen to ICMP request",
    "No response seen to ICMPv6 request",
];

/// tshark's remarks on the frames that scenarios expect, one line each; `None` without tshark.
///
/// # Errors
/// When tshark cannot read the capture.
pub fn remarks(scenarios: &[(String, Script)]) -> Option<Result<Vec<String>, String>> {
    let mut places = Vec::new();
    let mut writer = Writer::new(Vec::new(), ETHERNET).ok()?;
    for (name, script) in scenarios {
        for (_, frame, event) in script.frames(false) {
            // A second apart: nothing belongs together.
            let time = 1_000_000_000 * (places.len() as u64 + 1);
            writer
                .write(
                    time,
                    u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
                    &frame.bytes,
                )
                .ok()?;
            places.push(Place {
                scenario: name,
                line: event.line,
                sentence: &event.sentence,
            });
        }
    }
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "-r",
        "-",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "_ws.expert.message",
        "-e",
        "_ws.malformed",
    ]);
    command.args(["-E", "separator=/t", "-E", "aggregator=|"]);
    SETTINGS.iter().for_each(|setting| {
        command.args(["-o", setting]);
    });
    let mut tshark = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let (mut stdin, bytes) = (tshark.stdin.take()?, writer.into_inner());
    let feeder = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = tshark.wait_with_output().ok()?;
    let fed = feeder.join().is_ok_and(|written| written.is_ok());
    let text = String::from_utf8_lossy(&output.stdout);
    if !fed || !output.status.success() || text.lines().count() != places.len() {
        return Some(Err(format!(
            "tshark cannot read the frames: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    let expected = |place: &Place<'_>, remark: &str| {
        let script = scenarios
            .iter()
            .find(|(name, _)| name == place.scenario)
            .map(|(_, script)| script);
        HARMLESS.contains(&remark)
            || script.is_some_and(|script| {
                script
                    .expected_remarks
                    .iter()
                    .any(|known| remark.starts_with(known))
            })
    };
    let mut wrong = Vec::new();
    for (line, place) in text.lines().zip(&places) {
        let remarks = line
            .split('\t')
            .skip(1)
            .flat_map(|field| field.split('|'))
            .filter(|remark| !remark.is_empty());
        for remark in remarks.filter(|remark| !expected(place, remark)) {
            wrong.push(format!(
                "{}: line {}, {}: tshark: {remark}",
                place.scenario, place.line, place.sentence
            ));
        }
    }
    Some(Ok(wrong))
}
