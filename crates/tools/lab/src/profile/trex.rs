//! Streams of T-Rex (stateless mode) as a profile: a YAML or JSON list, as T-Rex's tools write it.
//!
//! What cannot be done exactly is an error with its line, never silently other traffic; the list of
//! what is supported is in docs/lab.md. Differences that remain: bursts are sent back to back, and
//! random values come from Weir's generator. All streams are sent from port 0.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::read::{Errors, Keys};
use super::yaml::{Content, Node};
use super::{Burst, Capture, Profile, ProfileError, RawFrame, RawWrite, StreamSpec, Values};
use crate::raw;
use crate::stream::{LARGEST_FRAME, Random};
use crate::units::Rate;

/// Values that are kept as a list, for what cannot be counted.
const MOST_LISTED: u64 = 65_536;

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
    virtual_machine(&mut keys, &mut frame, errors);
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

/// A variable: its size in bytes, its values, and how often it was written.
struct Variable {
    size: usize,
    values: Values,
    written: usize,
}

fn virtual_machine(keys: &mut Keys<'_>, frame: &mut RawFrame, errors: &mut Errors) {
    let Some((node, path)) = keys.take("vm").filter(|(node, _)| !is_null(node)) else {
        return;
    };
    // Old files give the list alone.
    let items = match &node.content {
        Content::List(items) => items.as_slice(),
        _ => {
            let mut keys = Keys::of(node, &path, errors);
            ignore(&mut keys, &["split_by_var", "cache"]);
            let items = match keys.take("instructions") {
                Some((
                    Node {
                        content: Content::List(items),
                        ..
                    },
                    _,
                )) => items.as_slice(),
                Some((other, path)) if !is_null(other) => {
                    errors.add(other.line, &path, "expected a list");
                    &[]
                }
                _ => &[],
            };
            keys.finish(errors);
            items
        }
    };
    // Variables come first, since one may depend on a later one.
    let mut variables = BTreeMap::new();
    let mut followers = Vec::new();
    for defines in [true, false] {
        if !defines {
            follow(&followers, &mut variables, &path, errors);
        }
        for (number, item) in items.iter().enumerate() {
            if is_definition(item) != defines {
                continue;
            }
            let path = format!("{path}.instructions[{number}]");
            let mut keys = Keys::of(item, &path, errors);
            let kind = keys.scalar("type", errors, name).unwrap_or_default();
            match instruction(
                &kind,
                &mut keys,
                &mut variables,
                &mut followers,
                frame,
                errors,
            ) {
                Ok(()) => keys.finish(errors),
                Err(problem) => errors.add(item.line, &path, problem),
            }
        }
    }
}

/// Whether an instruction defines a variable.
fn is_definition(item: &Node) -> bool {
    let Content::Map(entries) = &item.content else {
        return false;
    };
    entries.iter().any(|(key, _, value)| {
        key == "type"
            && matches!(&value.content, Content::Scalar(kind) if kind.contains("flow_var") && !kind.starts_with("write"))
    })
}

/// A dependent variable changes when its leader has taken all of its values.
fn follow(
    followers: &[(usize, String, String)],
    variables: &mut BTreeMap<String, Variable>,
    path: &str,
    errors: &mut Errors,
) {
    for (line, leader, follower) in followers {
        let leader = variables.get(leader).map(|variable| &variable.values);
        let turns = leader
            .filter(|values| !values.random)
            .and_then(|values| values.count.checked_mul(values.every));
        match (turns, variables.get_mut(follower)) {
            (Some(turns), Some(variable)) if !variable.values.random => {
                variable.values.every = turns;
            }
            _ => errors.add(
                *line,
                path,
                format!("next_var {follower}: both variables must be there, and must count"),
            ),
        }
    }
}

fn instruction(
    kind: &str,
    keys: &mut Keys<'_>,
    variables: &mut BTreeMap<String, Variable>,
    followers: &mut Vec<(usize, String, String)>,
    frame: &mut RawFrame,
    errors: &mut Errors,
) -> Result<(), String> {
    match kind {
        "flow_var" => {
            let called = keys.scalar("name", errors, name).unwrap_or_default();
            if let Some(next) = optional(keys, "next_var", errors, name) {
                followers.push((keys.line, called.clone(), next));
            }
            ignore(keys, &["split_to_cores"]);
            let variable = flow_var(keys, errors)?;
            variables.insert(called, variable);
        }
        "flow_var_rand_limit" => {
            let called = keys.scalar("name", errors, name).unwrap_or_default();
            ignore(keys, &["split_to_cores", "next_var"]);
            variables.insert(called, random_limit(keys, errors)?);
        }
        "tuple_flow_var" => {
            let called = keys.scalar("name", errors, name).unwrap_or_default();
            ignore(keys, &["split_to_cores", "flags"]);
            let (ip, port) = tuple(keys, errors)?;
            variables.insert(format!("{called}.ip"), ip);
            variables.insert(format!("{called}.port"), port);
        }
        "write_flow_var" | "write_mask_flow_var" => {
            write(
                kind == "write_mask_flow_var",
                keys,
                variables,
                frame,
                errors,
            )?;
        }
        "fix_checksum_ipv4" => {
            ignore(keys, &["pkt_offset"]);
            frame.fix_header = true;
        }
        "fix_checksum_hw" => {
            ignore(keys, &["l2_len", "l3_len", "l4_type"]);
            // T-Rex's NIC computes both.
            (frame.fix_header, frame.fix_transport) = (true, true);
        }
        "fix_checksum_icmpv6" => {
            ignore(keys, &["l2_len", "l3_len"]);
            frame.fix_transport = true;
        }
        other => {
            return Err(format!(
                "{other} is not supported: flow_var, flow_var_rand_limit, tuple_flow_var, write_flow_var, write_mask_flow_var, fix_checksum_ipv4, fix_checksum_hw and fix_checksum_icmpv6 are"
            ));
        }
    }
    Ok(())
}

fn size(keys: &mut Keys<'_>, errors: &mut Errors) -> Result<(usize, u64), String> {
    match keys.scalar("size", errors, whole).unwrap_or(4) {
        size @ (1 | 2 | 4 | 8) => Ok((size as usize, u64::MAX >> (64 - 8 * size))),
        other => Err(format!("size {other}: a variable has 1, 2, 4 or 8 bytes")),
    }
}

fn flow_var(keys: &mut Keys<'_>, errors: &mut Errors) -> Result<Variable, String> {
    let (size, most) = size(keys, errors)?;
    let op = keys
        .scalar("op", errors, name)
        .unwrap_or_else(|| "inc".to_owned());
    let least = optional(keys, "min_value", errors, whole);
    let last = optional(keys, "max_value", errors, whole);
    let init = optional(keys, "init_value", errors, whole);
    let step = optional(keys, "step", errors, whole).unwrap_or(1);
    let listed = keys.take("value_list").filter(|(node, _)| !is_null(node));
    let (random, down) = match op.as_str() {
        "inc" => (false, false),
        "dec" => (false, true),
        "random" => (true, false),
        _ => return Err(format!("op {op}: inc, dec and random are supported")),
    };
    let values = if let Some((node, _)) = listed {
        let Content::List(items) = &node.content else {
            return Err("value_list is a list of numbers".to_owned());
        };
        let mut list = Vec::new();
        for item in items {
            match &item.content {
                Content::Scalar(text) => list.push(u128::from(whole(text)?)),
                _ => return Err("value_list is a list of numbers".to_owned()),
            }
        }
        let first = *list.first().ok_or("value_list is empty")?;
        if list.iter().any(|value| *value > u128::from(most)) {
            return Err(format!("value_list has values above {most}"));
        }
        Values {
            count: list.len() as u64,
            list,
            ..Values::fixed(first)
        }
    } else {
        let least = least.or(init).unwrap_or(0);
        let last = last.unwrap_or(most);
        if least > last || last > most {
            return Err(format!(
                "min_value must not be above max_value, nor that above {most}"
            ));
        }
        if step == 0 || (step > last - least && last > least) {
            return Err("step must be from 1 to max_value - min_value".to_owned());
        }
        let count = ((last - least) / step).saturating_add(1);
        // T-Rex's range ends at the last whole step; a descending one begins there.
        let init = init.unwrap_or(if down { last } else { least });
        if !(least..=last).contains(&init) && !random {
            return Err("init_value must lie between min_value and max_value".to_owned());
        }
        let index = init.saturating_sub(least) / step;
        if !random && least + index * step != init {
            return Err("init_value must be whole steps above min_value".to_owned());
        }
        Values {
            count,
            step,
            start: match (random, down) {
                (true, _) => 0,
                (false, false) => index,
                (false, true) => count - 1 - index,
            },
            ..Values::fixed(u128::from(least))
        }
    };
    Ok(Variable {
        size,
        values: Values {
            random,
            down,
            ..values
        },
        written: 0,
    })
}

fn random_limit(keys: &mut Keys<'_>, errors: &mut Errors) -> Result<Variable, String> {
    let (size, most) = size(keys, errors)?;
    let mut number = |key: &'static str| optional(keys, key, errors, whole);
    let limit = number("limit").unwrap_or(100);
    let seed = number("seed").unwrap_or(0);
    let least = number("min_value").unwrap_or(0);
    let last = number("max_value").unwrap_or(most);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(format!("limit must be from 1 to {MOST_LISTED}"));
    }
    if least > last || last > most {
        return Err(format!(
            "min_value must not be above max_value, nor that above {most}"
        ));
    }
    let mut random = Random::new(seed);
    let list: Vec<u128> = (0..limit)
        .map(|_| u128::from(least + random.below((last - least).saturating_add(1))))
        .collect();
    Ok(Variable {
        size,
        values: Values {
            count: limit,
            list,
            ..Values::fixed(u128::from(least))
        },
        written: 0,
    })
}

/// Addresses change with each packet, ports when all addresses were used.
fn tuple(keys: &mut Keys<'_>, errors: &mut Errors) -> Result<(Variable, Variable), String> {
    let mut number =
        |key: &'static str, usual: u64| keys.scalar(key, errors, whole).unwrap_or(usual);
    let (ip, last_ip) = (number("ip_min", 0), number("ip_max", 0));
    let (port, last_port) = (number("port_min", 1025), number("port_max", 65_535));
    let limit = number("limit_flows", 0);
    if ip > last_ip || last_ip > u64::from(u32::MAX) || port > last_port || last_port > 65_535 {
        return Err("ip_min to ip_max and port_min to port_max must be ranges".to_owned());
    }
    let addresses = last_ip - ip + 1;
    let mut ports = last_port - port + 1;
    if limit > 0 && limit < addresses * ports {
        if limit % addresses != 0 {
            return Err(format!(
                "limit_flows {limit}: only multiples of the {addresses} addresses are supported"
            ));
        }
        ports = limit / addresses;
    }
    let variable = |size, first: u64, count, every| Variable {
        size,
        values: Values {
            count,
            every,
            ..Values::fixed(u128::from(first))
        },
        written: 0,
    };
    Ok((
        variable(4, ip, addresses, 1),
        variable(2, port, ports, addresses),
    ))
}

fn write(
    masked: bool,
    keys: &mut Keys<'_>,
    variables: &mut BTreeMap<String, Variable>,
    frame: &mut RawFrame,
    errors: &mut Errors,
) -> Result<(), String> {
    let called = keys.scalar("name", errors, name).unwrap_or_default();
    let offset = keys.scalar("pkt_offset", errors, |text| {
        whole(text).map_err(|_| format!("{text}: give the offset as a number of bytes"))
    });
    let add = optional(keys, "add_value", errors, signed).unwrap_or(0);
    let big = optional(keys, "is_big_endian", errors, boolean).unwrap_or(true);
    let variable = variables
        .get_mut(&called)
        .ok_or_else(|| format!("there is no variable {called}"))?;
    let (mut width, mut mask, mut shift) = (variable.size, None, 0);
    if masked {
        width = keys.scalar("pkt_cast_size", errors, whole).unwrap_or(1) as usize;
        mask = keys.scalar("mask", errors, whole);
        shift = optional(keys, "shift", errors, signed).unwrap_or(0);
    }
    let Some(at) = offset.map(|at| at as usize) else {
        return Ok(());
    };
    if !matches!(width, 1 | 2 | 4 | 8)
        || at
            .checked_add(width)
            .is_none_or(|end| end > frame.bytes.len())
    {
        return Err(format!("{width} bytes at {at} lie outside of the packet"));
    }
    if variable.values.random && variable.written > 0 {
        return Err("a random variable can be written once".to_owned());
    }
    variable.written += 1;
    let most = u64::MAX >> (64 - 8 * width);
    let mut values = added(&variable.values, add, u64::MAX >> (64 - 8 * variable.size))?;
    let (mut fixed, mut left) = (0, 0);
    if let Some(mask) = mask {
        left = u32::try_from(shift)
            .ok()
            .filter(|left| *left < 8 * width as u32)
            .ok_or("shift must be from 0 (to the left), and below the field's bits")?;
        let highest = values.list.iter().max().copied().unwrap_or(values.last());
        if highest << left > u128::from(mask & most)
            || mask >> left & 1 == 0
            || !is_run(mask >> left)
        {
            return Err("the values do not fit the mask: they would be cut".to_owned());
        }
        let old = frame.bytes.get(at..at + width).unwrap_or(&[]);
        fixed = old.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) & !mask & most;
    }
    if !big && width > 1 {
        if mask.is_some() {
            return Err("a mask needs is_big_endian: true".to_owned());
        }
        values = swapped(&values, width)?;
    }
    let layout = raw::layout(&frame.bytes);
    if (frame.fix_header || frame.fix_transport || layout.has_room(frame.bytes.len()))
        && layout.is_astride(at, width)
    {
        return Err("the field lies partly within what a checksum covers".to_owned());
    }
    if frame
        .writes
        .iter()
        .any(|other| at < other.at + other.width && other.at < at + width)
    {
        return Err("another field is written to the same bytes".to_owned());
    }
    frame.writes.push(RawWrite {
        at,
        width,
        fixed,
        shift: left,
        values,
    });
    Ok(())
}

/// Whether the bits of a mask, from the lowest on, have no gap.
fn is_run(mask: u64) -> bool {
    mask & mask.wrapping_add(1) == 0
}

fn added(values: &Values, add: i64, most: u64) -> Result<Values, String> {
    let one = |value: u128| {
        u64::try_from(value)
            .ok()
            .and_then(|value| value.checked_add_signed(add))
            .filter(|value| *value <= most)
            .map(u128::from)
            .ok_or_else(|| format!("add_value {add} leads out of the variable's range"))
    };
    one(values.last())?;
    Ok(Values {
        first: one(values.first)?,
        list: values
            .list
            .iter()
            .map(|value| one(*value))
            .collect::<Result<_, _>>()?,
        ..values.clone()
    })
}

/// The same values with their bytes exchanged, as a list.
fn swapped(values: &Values, width: usize) -> Result<Values, String> {
    if values.count > MOST_LISTED {
        return Err(format!(
            "little-endian fields have at most {MOST_LISTED} values"
        ));
    }
    let swap = |value: u128| u128::from((value as u64).swap_bytes() >> (64 - 8 * width));
    let list: Vec<u128> = if values.list.is_empty() {
        (0..values.count)
            .map(|index| swap(values.first + u128::from(index) * u128::from(values.step)))
            .collect()
    } else {
        values.list.iter().map(|value| swap(*value)).collect()
    };
    Ok(Values {
        first: list.first().copied().unwrap_or(0),
        list,
        ..values.clone()
    })
}
