//! Streams of T-Rex (stateless mode) as a profile: a YAML or JSON list, as T-Rex's tools write it.
//!
//! What cannot be done exactly is an error with its line, never silently other traffic; the list of
//! what is supported is in docs/lab.md. Differences that remain: bursts are sent back to back, and
//! random values come from Weir's generator. All streams are sent from port 0.

mod machine;

use std::path::Path;
use std::time::Duration;

use super::read::{Errors, Keys};
use super::yaml::{Content, Node};
use super::{Burst, Capture, Profile, ProfileError, RawFrame, StreamSpec};
use crate::raw;
use crate::stream::LARGEST_FRAME;
use crate::units::Rate;

/// A stream with what decides when it starts.
struct Import {
    line: usize,
    spec: StreamSpec,
    self_start: bool,
    next: Option<String>,
    /// How long it sends; `None`: without end.
    length: Option<Duration>,
}

pub(super) fn profile(items: &[Node], folder: &Path) -> Result<Profile, Vec<ProfileError>> {
    let mut errors = Errors(Vec::new());
    let mut imports = Vec::new();
    let mut seed = None;
    for (number, item) in items.iter().enumerate() {
        imports.extend(import(item, number, folder, &mut seed, &mut errors));
    }
    if imports.is_empty() && errors.0.is_empty() {
        errors.add(1, "file", "there is no enabled stream in it");
    }
    if errors.0.is_empty() {
        start(&mut imports, &mut errors);
    }
    if errors.0.is_empty() {
        Ok(Profile {
            seed: seed.unwrap_or(1),
            streams: imports.into_iter().map(|import| import.spec).collect(),
        })
    } else {
        Err(errors.0)
    }
}

/// Streams that others start begin when those have ended.
fn start(imports: &mut [Import], errors: &mut Errors) {
    let mut started: Vec<bool> = imports.iter().map(|import| import.self_start).collect();
    for first in 0..imports.len() {
        let mut at = first;
        if !imports.get(first).is_some_and(|import| import.self_start) {
            continue;
        }
        while let Some(import) = imports.get(at) {
            let Some(next) = &import.next else { break };
            let path = format!("stream {}.next", import.spec.name);
            let found = imports.iter().position(|other| other.spec.name == *next);
            let (Some(found), Some(length)) = (found, import.length) else {
                let problem = if found.is_none() {
                    format!("there is no enabled stream {next}")
                } else {
                    "a stream without end starts no other".to_owned()
                };
                errors.add(import.line, &path, problem);
                return;
            };
            if started.get(found).copied().unwrap_or(true) {
                errors.add(
                    import.line,
                    &path,
                    format!("{next} would start twice: loops of streams are not supported"),
                );
                return;
            }
            let begin = import.spec.start + length;
            if let (Some(next), Some(started)) = (imports.get_mut(found), started.get_mut(found)) {
                next.spec.start += begin;
                *started = true;
            }
            at = found;
        }
    }
    for (import, _) in imports.iter().zip(started).filter(|(_, started)| !started) {
        errors.add(
            import.line,
            &format!("stream {}", import.spec.name),
            "self_start is false, and no stream has it as next: it would never be sent",
        );
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

fn float(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number".to_owned())?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err("a number from 0".to_owned())
    }
}

fn whole(text: &str) -> Result<u64, String> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    value.ok_or_else(|| format!("{text} is not a whole number from 0"))
}

fn signed(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("{text} is not a whole number"))
}

fn name(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn is_null(node: &Node) -> bool {
    matches!(&node.content, Content::Scalar(text) if matches!(text.as_str(), "null" | "~" | "None" | ""))
}

/// Keys of T-Rex that change nothing here.
fn ignore(keys: &mut Keys<'_>, names: &[&'static str]) {
    for name in names {
        let _ = keys.take(name);
    }
}

/// A scalar that may be null.
fn optional<T>(
    keys: &mut Keys<'_>,
    key: &'static str,
    errors: &mut Errors,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    keys.scalar(key, errors, |text| match text {
        "null" | "~" | "None" | "" => Ok(None),
        text => parse(text).map(Some),
    })
    .flatten()
}

fn import(
    node: &Node,
    number: usize,
    folder: &Path,
    seed: &mut Option<u64>,
    errors: &mut Errors,
) -> Option<Import> {
    let path = format!("[{number}]");
    let before = errors.0.len();
    let mut outer = Keys::of(node, &path, errors);
    let mut called = optional(&mut outer, "name", errors, name);
    let mut next = optional(&mut outer, "next", errors, name);
    // Streams come alone, or within a map that names them.
    let wrapped = outer.take("stream");
    let mut keys = match &wrapped {
        Some((node, path)) => {
            ignore(&mut outer, &["id", "port_id", "stream_id"]);
            outer.finish(errors);
            Keys::of(node, path, errors)
        }
        None => outer,
    };
    if wrapped.is_some() {
        called = called.or(optional(&mut keys, "name", errors, name));
        next = next.or(optional(&mut keys, "next", errors, name));
    }
    let line = node.line;
    let mut spec = StreamSpec::new(
        &called.unwrap_or_else(|| format!("stream-{number}")),
        Rate::Packets(1.0),
    );
    let enabled = optional(&mut keys, "enabled", errors, boolean).unwrap_or(true);
    let self_start = optional(&mut keys, "self_start", errors, boolean).unwrap_or(true);
    let isg = optional(&mut keys, "isg", errors, float).unwrap_or(0.0);
    spec.start = Duration::from_secs_f64(isg.min(1e12) * 1e-6);
    let flags = optional(&mut keys, "flags", errors, whole).unwrap_or(0);
    *seed = seed.or(optional(&mut keys, "random_seed", errors, whole).filter(|seed| *seed > 0));
    if optional(&mut keys, "action_count", errors, whole).unwrap_or(0) > 0 && next.is_some() {
        errors.add(
            line,
            &format!("{path}.action_count"),
            "loops of streams are not supported",
        );
    }
    if let Some(id) = optional(&mut keys, "next_stream_id", errors, signed)
        && id >= 0
    {
        errors.add(
            line,
            &format!("{path}.next_stream_id"),
            "streams are started by name: give next",
        );
    }
    ignore(
        &mut keys,
        &[
            "core_id",
            "start_paused",
            "rx_stats",
            "id",
            "stream_id",
            "mac_src_override_by_pkt",
            "mac_dst_override_mode",
        ],
    );
    if optional(&mut keys, "dummy_stream", errors, boolean).unwrap_or(false) {
        errors.add(
            line,
            &format!("{path}.dummy_stream"),
            "streams without packets are not supported: give the delay as isg",
        );
    }
    let counted = flow_stats(&mut keys, errors);
    let mut frame = frame(&mut keys, folder, line, errors);
    frame.port_macs = flags & 7 == 0;
    machine::virtual_machine(&mut keys, &mut frame, errors);
    spec.sizes = vec![((frame.bytes.len() + 4) as u16, 1)];
    let length = mode(&mut keys, &mut spec, errors);
    spec.stamped = raw::layout(&frame.bytes).has_room(frame.bytes.len())
        && !frame.writes.iter().any(|write| {
            crate::stamp::offset(frame.bytes.len()).is_some_and(|at| write.at + write.width > at)
        });
    if counted && !spec.stamped {
        errors.add(
            line,
            &format!("{path}.flow_stats"),
            "counting this flow needs 16 bytes of payload at the frame's end that no field is written to",
        );
    }
    keys.finish(errors);
    spec.packet.raw = Some(frame);
    (enabled && errors.0.len() == before).then_some(Import {
        line,
        spec,
        self_start,
        next,
        length,
    })
}

fn flow_stats(keys: &mut Keys<'_>, errors: &mut Errors) -> bool {
    let Some((node, path)) = keys.take("flow_stats").filter(|(node, _)| !is_null(node)) else {
        return false;
    };
    let mut keys = Keys::of(node, &path, errors);
    let enabled = optional(&mut keys, "enabled", errors, boolean).unwrap_or(true);
    ignore(
        &mut keys,
        &["stream_id", "rule_type", "vxlan", "ieee_1588", "has_fs"],
    );
    keys.finish(errors);
    enabled
}

/// The packet's bytes: base64, a list of numbers, or the first frame of a capture.
fn frame(keys: &mut Keys<'_>, folder: &Path, line: usize, errors: &mut Errors) -> RawFrame {
    let Some((node, path)) = keys.take("packet") else {
        errors.add(line, "packet", "missing: a stream needs packet");
        return RawFrame::default();
    };
    let mut keys = Keys::of(node, &path, errors);
    ignore(&mut keys, &["meta", "model"]);
    let file = keys.scalar("pcap", errors, |file| {
        let capture = Capture::open(&folder.join(file), 1.0)?;
        Ok(capture.frames.into_iter().next().unwrap_or_default())
    });
    let binary = keys.take("binary").map(|(node, path)| {
        let bytes = match &node.content {
            Content::Scalar(text) => base64(text),
            Content::List(items) => items
                .iter()
                .map(|item| match &item.content {
                    Content::Scalar(text) => whole(text).ok()?.try_into().ok(),
                    _ => None,
                })
                .collect(),
            Content::Map(_) => None,
        };
        if bytes.is_none() {
            errors.add(
                node.line,
                &path,
                "bytes in base64, or a list of numbers to 255",
            );
        }
        bytes.unwrap_or_default()
    });
    keys.finish(errors);
    if file.is_some() == binary.is_some() {
        errors.add(node.line, &path, "give one of binary and pcap");
    }
    let bytes = file.or(binary).unwrap_or_default();
    if !(14..=LARGEST_FRAME).contains(&bytes.len()) {
        errors.add(
            node.line,
            &path,
            format!("{} bytes: 14 to {LARGEST_FRAME} can be sent", bytes.len()),
        );
    }
    RawFrame {
        bytes,
        ..RawFrame::default()
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// The mode with its rate, and how long the stream sends.
fn mode(keys: &mut Keys<'_>, spec: &mut StreamSpec, errors: &mut Errors) -> Option<Duration> {
    let Some((node, path)) = keys.take("mode") else {
        spec.rate = Rate::Packets(1.0);
        return None;
    };
    let mut keys = Keys::of(node, &path, errors);
    let kind = keys
        .scalar("type", errors, name)
        .unwrap_or_else(|| "continuous".to_owned());
    let pps = optional(&mut keys, "pps", errors, float).map(Rate::Packets);
    let rate = keys.take("rate").map(|(node, path)| {
        let mut keys = Keys::of(node, &path, errors);
        let kind = keys.scalar("type", errors, name).unwrap_or_default();
        let value = keys.scalar("value", errors, float).unwrap_or(0.0);
        keys.finish(errors);
        match kind.as_str() {
            "pps" => Rate::Packets(value),
            "bps_L1" => Rate::Layer1(value),
            "bps_L2" => Rate::Layer2(value),
            "percentage" => Rate::Percent(value),
            _ => {
                errors.add(
                    node.line,
                    &path,
                    "type is pps, bps_L1, bps_L2 or percentage",
                );
                Rate::Packets(1.0)
            }
        }
    });
    spec.rate = rate.or(pps).unwrap_or(Rate::Packets(1.0));
    if matches!(spec.rate, Rate::Packets(value) | Rate::Layer1(value) | Rate::Layer2(value) | Rate::Percent(value) if value <= 0.0)
    {
        errors.add(node.line, &path, "a rate must be above 0");
        return None;
    }
    let mut number = |key: &'static str, errors: &mut Errors| {
        optional(&mut keys, key, errors, float).unwrap_or(0.0)
    };
    let total = number("total_pkts", errors);
    let (burst, ibg, count) = (
        number("pkts_per_burst", errors),
        number("ibg", errors),
        number("count", errors),
    );
    keys.finish(errors);
    let rate = spec.rate.packets_per_second(spec.average_size(), None);
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
    match kind.as_str() {
        "continuous" => None,
        "single_burst" if total >= 1.0 => {
            spec.packets = total as u64;
            Some(seconds(total / rate.ok()?))
        }
        "multi_burst" if burst >= 1.0 && count >= 1.0 => {
            let Ok(rate) = rate else {
                errors.add(
                    node.line,
                    &path,
                    "bursts need a rate in pps or bits per second",
                );
                return None;
            };
            let every = seconds(burst / rate + ibg * 1e-6);
            spec.packets = (burst * count) as u64;
            spec.burst = Some(Burst {
                packets: burst as u64,
                every: every.max(Duration::from_nanos(1)),
            });
            Some(every.mul_f64(count))
        }
        "single_burst" => {
            errors.add(node.line, &path, "single_burst needs total_pkts");
            None
        }
        "multi_burst" => {
            errors.add(
                node.line,
                &path,
                "multi_burst needs pkts_per_burst and count",
            );
            None
        }
        other => {
            errors.add(
                node.line,
                &path,
                format!("{other} is not continuous, single_burst or multi_burst"),
            );
            None
        }
    }
}
