//! `counters.json`: every counter that is not zero after a scenario.
//!
//! What is zero is left out, so that whatever is counted without being expected stands out as a
//! difference. Traffic and drops come from the API's own views, by interface; packets of no interface
//! stand under "nowhere". So do flows, where an interface is metered, and what bridge domains and the terms of access lists counted.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use weir_api::{AclQuery, Router as _};
use weir_engine::Router;

/// All counters of a router that are not zero.
///
/// # Errors
/// What the router says.
pub fn of(router: &Router) -> Result<Value, String> {
    let failed = |error: weir_api::ApiError| error.message;
    let (totals, interfaces, errors) = (
        router.balance(),
        router.interfaces().map_err(failed)?,
        router.errors().map_err(failed)?,
    );
    let mut by_interface = Map::new();
    for interface in interfaces.interfaces {
        let counters = json!({
            "rx": interface.rx, "tx": interface.tx, "rx_errors": interface.rx_errors, "tx_errors": interface.tx_errors,
        });
        by_interface.insert(interface.name, counters);
    }
    let mut drops: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for error in errors.errors {
        let interface = error.interface.unwrap_or_else(|| "nowhere".to_owned());
        *drops
            .entry(interface)
            .or_default()
            .entry(format!("{} {}", error.node, error.reason))
            .or_default() += error.count;
    }
    let all = json!({
        "interfaces": by_interface,
        "drops": drops,
        "bridges": bridges(router).map_err(failed)?,
        "acls": acls(router).map_err(failed)?,
        "flows": flows(router).map_err(failed)?,
        "totals": {
            "originated": totals.originated, "replicated": totals.replicated, "consumed": totals.consumed, "held": totals.held,
        },
    });
    Ok(without_zeros(all).unwrap_or_else(|| json!({})))
}

/// What bridge domains counted, and how many stations each knows at the end.
fn bridges(router: &Router) -> Result<Value, weir_api::ApiError> {
    let counters = |it: weir_api::BridgeDomain| {
        let counted = json!({
            "stations": it.stations, "learned": it.learned, "moved": it.moved, "aged": it.aged, "displaced": it.displaced,
            "not_learned": it.not_learned, "flooded": it.flooded, "unknown_unicast_flooded": it.unknown_unicast_flooded,
            "copies_too_long": it.copies_too_long, "arp_terminated": it.arp_terminated,
        });
        (it.name, counted)
    };
    Ok(Value::Object(
        router
            .bridge_domains()?
            .bridges
            .into_iter()
            .map(counters)
            .collect(),
    ))
}

/// What met each term of the access lists, and what met none, by interface and direction.
fn acls(router: &Router) -> Result<Value, weir_api::ApiError> {
    let all = router.acls_where(&AclQuery {
        most: usize::MAX,
        ..AclQuery::default()
    })?;
    let terms = all
        .terms
        .into_iter()
        .map(|term| (format!("{} {}", term.acl, term.term), json!(term.packets)));
    let none = all.bindings.into_iter().map(|it| {
        (
            format!("{} {} unmatched", it.interface, it.direction),
            json!(it.unmatched),
        )
    });
    Ok(Value::Object(terms.chain(none).collect()))
}

/// Flows that are in the meter's tables, by what tells them apart: packets and octets.
fn flows(router: &Router) -> Result<Value, weir_api::ApiError> {
    if router.ipfix()?.interfaces.is_empty() {
        return Ok(Value::Null);
    }
    let flow = |it: weir_api::FlowEntry| {
        let mut name = format!(
            "{} {} > {}",
            it.protocol
                .map_or_else(|| "l2".to_owned(), |it| it.to_string()),
            it.source.as_deref().unwrap_or("any"),
            it.destination.as_deref().unwrap_or("any")
        );
        let more = [
            ("type", it.ethertype.map(u64::from)),
            ("from", it.source_port.map(u64::from)),
            ("to", it.destination_port.map(u64::from)),
            ("vlan", it.vlan.map(u64::from)),
            ("customer", it.customer_vlan.map(u64::from)),
            ("label", it.label.map(u64::from)),
            ("class", it.traffic_class.map(u64::from)),
            (
                "flags",
                Some(u64::from(it.tcp_flags)).filter(|flags| *flags != 0),
            ),
        ];
        more.iter()
            .filter_map(|(word, value)| Some((word, (*value)?)))
            .for_each(|(word, value)| name += &format!(", {word} {value}"));
        name += &format!(
            ", {} to {}",
            it.input.as_deref().unwrap_or("nowhere"),
            it.output.as_deref().unwrap_or("nowhere")
        );
        name += &it
            .next_hop
            .map_or_else(String::new, |it| format!(" via {it}"));
        (
            format!("{name}, status {}", it.forwarding_status),
            json!({"packets": it.packets, "octets": it.octets}),
        )
    };
    let all = router.flows_where(&weir_api::FlowQuery {
        most: 10_000,
        ..weir_api::FlowQuery::default()
    })?;
    Ok(Value::Object(all.flows.into_iter().map(flow).collect()))
}

fn without_zeros(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            let map: Map<_, _> = map
                .into_iter()
                .filter_map(|(key, value)| Some((key, without_zeros(value)?)))
                .collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        value => (value != json!(0) && !value.is_null()).then_some(value),
    }
}

/// Counters by their path, for telling them apart.
fn flat(value: &Value, path: &str, to: &mut BTreeMap<String, u64>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path} › {key}")
                };
                flat(value, &path, to);
            }
        }
        value => {
            to.insert(path.to_owned(), value.as_u64().unwrap_or(0));
        }
    }
}

/// How two sets of counters differ, one line each.
#[must_use]
pub fn differences(expected: &Value, counted: &Value) -> Vec<String> {
    let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
    flat(expected, "", &mut left);
    flat(counted, "", &mut right);
    let mut paths: Vec<&String> = left.keys().chain(right.keys()).collect();
    paths.sort();
    paths.dedup();
    let value = |of: &BTreeMap<String, u64>, path: &String| of.get(path).copied().unwrap_or(0);
    let line = |path: &String| {
        format!(
            "counter {path}: expected {}, counted {}",
            value(&left, path),
            value(&right, path)
        )
    };
    paths
        .into_iter()
        .filter(|path| value(&left, path) != value(&right, path))
        .map(line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_left_out_and_everything_else_is_reported() {
        let counted =
            without_zeros(json!({"a": {"b": 0, "c": {"d": 0}}, "e": {"f": 2, "g": 0}})).unwrap();
        assert_eq!(counted, json!({"e": {"f": 2}}));
        let lines = differences(&json!({"e": {"f": 1}, "h": 3}), &counted);
        assert_eq!(
            lines,
            [
                "counter e › f: expected 1, counted 2",
                "counter h: expected 3, counted 0"
            ]
        );
        assert!(differences(&counted, &counted).is_empty());
    }
}
