//! The section as it is written: templates, and neighbours at several exchanges.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Neighbor, Peering, Relation};

/// Reads a section; all findings at once.
pub(super) fn read(section: &Value) -> Result<Peering, Vec<String>> {
    let Value::Object(keys) = section else {
        return Err(vec!["a section of keys is needed".to_owned()]);
    };
    let mut keys = keys.clone();
    let neighbors = keys.remove("neighbors").unwrap_or(Value::Null);
    let templates = keys.remove("templates").unwrap_or(Value::Null);
    let mut findings = Vec::new();
    let peering = Peering::deserialize(Value::Object(keys));
    let templates = match templates {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        _ => {
            findings.push("templates: a section of names is needed".to_owned());
            Map::new()
        }
    };
    let list = match neighbors {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        _ => {
            findings.push("neighbors: a list is needed".to_owned());
            Vec::new()
        }
    };
    let mut all = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let who = match value.get("asn") {
            Some(asn) => format!("neighbors: AS{asn}"),
            None => format!("neighbors: item {}", index + 1),
        };
        match neighbor(value, &templates) {
            Ok(mut some) => {
                if let (Ok(peering), 2..) = (&peering, some.len()) {
                    let split = split_by_exchange(&mut some, peering);
                    findings.extend(split.into_iter().map(|it| format!("{who}: {it}")));
                }
                all.extend(some);
            }
            Err(reason) => findings.push(format!("{who}: {reason}")),
        }
    }
    match peering {
        Ok(mut peering) if findings.is_empty() => {
            peering.neighbors = all;
            Ok(peering)
        }
        Ok(_) => Err(findings),
        Err(error) => {
            findings.insert(0, error.to_string());
            Err(findings)
        }
    }
}

/// A neighbour for each exchange at which it is met, with the settings of its templates.
fn neighbor(value: Value, templates: &Map<String, Value>) -> Result<Vec<Neighbor>, String> {
    let Value::Object(own) = value else {
        return Err("a section of keys is needed".to_owned());
    };
    let relation = match own.get("relation") {
        None => Relation::default(),
        Some(value) => Relation::deserialize(value).map_err(|error| error.to_string())?,
    };
    let mut merged = Map::new();
    let chosen = own.get("template").and_then(Value::as_str);
    if let Some(name) = chosen
        && !templates.contains_key(name)
    {
        return Err(format!("template: there is no template {name:?}"));
    }
    // What stands later counts: the template of the relation, the named one, the neighbour's own keys.
    for name in [Some(relation.name()), chosen].into_iter().flatten() {
        match templates.get(name) {
            Some(Value::Object(keys)) => merge(&mut merged, keys),
            None => {}
            Some(_) => return Err(format!("templates: {name}: a section of keys is needed")),
        }
    }
    merge(&mut merged, &own);
    let exchanges: Vec<Value> = match merged.remove("at") {
        None | Some(Value::Null) => vec![Value::Null],
        Some(Value::Array(list)) if list.is_empty() => return Err("at: it is empty".to_owned()),
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
    };
    // `limit: auto` is short for all of it.
    if merged.get("limit").and_then(Value::as_str) == Some("auto") {
        merged.insert("limit".to_owned(), serde_json::json!({"auto": true}));
    }
    exchanges
        .into_iter()
        .map(|at| {
            let mut keys = merged.clone();
            if at != Value::Null {
                keys.insert("at".to_owned(), at);
            }
            Neighbor::deserialize(Value::Object(keys)).map_err(|error| error.to_string())
        })
        .collect()
}

/// Takes keys over; sections are merged, everything else is replaced.
fn merge(to: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (to.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(more)) => merge(below, more),
            _ => drop(to.insert(key.clone(), value.clone())),
        }
    }
}

/// Addresses of a neighbour at several exchanges belong to the exchange in whose LAN they are. One exchange may have a
/// LAN that PeeringDB names later: it gets the rest.
fn split_by_exchange(group: &mut [Neighbor], peering: &Peering) -> Vec<String> {
    let mut findings = Vec::new();
    let Some(addresses) = group.first().map(|it| it.addresses.clone()) else {
        return findings;
    };
    let lan = |at: &Option<String>| {
        let exchange = at.as_ref().and_then(|name| peering.exchanges.get(name));
        exchange.map_or(&[][..], |it| it.lan.as_slice())
    };
    let in_lan =
        |at: &Option<String>, address: &IpAddr| lan(at).iter().any(|lan| lan.contains(address));
    let unknown: Vec<Option<String>> = group
        .iter()
        .map(|it| it.at.clone())
        .filter(|at| lan(at).is_empty())
        .collect();
    let known: Vec<Option<String>> = group.iter().map(|it| it.at.clone()).collect();
    for address in &addresses {
        let is_known = known.iter().any(|at| in_lan(at, address));
        if !is_known && unknown.len() != 1 {
            findings.push(format!(
                "addresses: {address} is in no LAN of the exchanges of `at`"
            ));
        }
    }
    let belongs = |at: &Option<String>, address: &IpAddr| {
        in_lan(at, address)
            || (unknown.contains(at) && !known.iter().any(|other| in_lan(other, address)))
    };
    for it in group {
        let at = it.at.clone();
        it.addresses.retain(|address| belongs(&at, address));
    }
    findings
}
