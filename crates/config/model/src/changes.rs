//! What differs between two values of a section, in the words of the file, as plans show it:
//! `sampling-rate 10000 -> 1000, collectors [] -> [{address: 192.0.2.9}]`.
//!
//! The keys and their order come from the key table, so that a new key needs no text of its own.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::dump::scalar;
use crate::keys::{Key, Kind, below};
use crate::section::{Section, to_json};

/// What stands for the value of an absent key without a default.
const NONE: &str = "none";

/// The changes from one value of the section at `path` to another, separated by commas.
pub(crate) fn changes<T: Section>(path: &str, from: &T, to: &T) -> String {
    let mut all = Vec::new();
    if let (Value::Object(from), Value::Object(to)) = (to_json(from, false), to_json(to, false)) {
        compare(path, "", &from, &to, &mut all);
    }
    all.join(", ")
}

fn compare(
    path: &str,
    prefix: &str,
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    all: &mut Vec<String>,
) {
    for row in below(path) {
        let key = format!("{prefix}{}", row.name());
        match (row.kind, from.get(row.name()), to.get(row.name())) {
            (_, from, to) if from == to => {}
            (Kind::Section, Some(Value::Object(from)), Some(Value::Object(to))) => {
                compare(row.path, &format!("{key}."), from, to, all);
            }
            (Kind::Named(_), from, to) => {
                let empty = Map::new();
                let map = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned();
                let (from, to) = (map(from).unwrap_or(empty.clone()), map(to).unwrap_or(empty));
                let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
                for name in names {
                    if from.get(name) != to.get(name) {
                        let item = below(row.path).first().copied();
                        let text =
                            |value| item.map_or_else(String::new, |item| inline(item, value));
                        let (from, to) = (text(from.get(name)), text(to.get(name)));
                        all.push(format!("{key} {name} {from} -> {to}"));
                    }
                }
            }
            (_, from, to) => {
                all.push(format!(
                    "{key} {} -> {}",
                    inline(row, from),
                    inline(row, to)
                ));
            }
        }
    }
}

/// A value in one line.
fn inline(row: &Key, value: Option<&Value>) -> String {
    let item = || below(row.path).first();
    match value {
        None if row.default.is_empty() => NONE.to_owned(),
        None => row.default.to_owned(),
        Some(Value::Array(values)) => {
            let text = |value| item().map_or_else(String::new, |item| inline(item, Some(value)));
            format!(
                "[{}]",
                values.iter().map(text).collect::<Vec<_>>().join(", ")
            )
        }
        Some(Value::Object(values)) => {
            let keys = below(row.path).iter().filter_map(|row| {
                let value = values.get(row.name())?;
                Some(format!("{}: {}", row.name(), inline(row, Some(value))))
            });
            format!("{{{}}}", keys.collect::<Vec<_>>().join(", "))
        }
        Some(value) => scalar(row.kind, value),
    }
}
