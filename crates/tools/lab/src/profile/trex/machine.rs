//! T-Rex's field engine: variables and where they are written, as fields of a frame.

use std::collections::BTreeMap;

use super::{boolean, ignore, is_null, name, optional, signed, whole};
use crate::profile::read::{Errors, Keys};
use crate::profile::yaml::{Content, Node};
use crate::profile::{RawFrame, RawWrite, Values};
use crate::raw;
use crate::stream::Random;

/// Values that are kept as a list, for what cannot be counted.
const MOST_LISTED: u64 = 65_536;

/// A variable: its size in bytes, its values, and how often it was written.
struct Variable {
    size: usize,
    values: Values,
    written: usize,
}

pub(super) fn virtual_machine(keys: &mut Keys<'_>, frame: &mut RawFrame, errors: &mut Errors) {
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
