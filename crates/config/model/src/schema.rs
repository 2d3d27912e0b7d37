//! The file's JSON Schema (draft 2020-12), rendered from the key table.
//!
//! Editors complete and check with it while one types; `check` has the last word. The schema says
//! everything about a single value that a schema can say: types, ranges, words, patterns, which
//! keys go with which driver. What keys say about each other it leaves to `check`. So every good
//! file fits it, and a file that does not fit is not good; a test asks an independent validator.
//!
//! Values are those of the YAML 1.2 core schema, in which `on` is a text; vppcfg's keys that this
//! version lacks are no keys here.

use serde_json::{Map, Value, json};

use crate::device::Device;
use crate::keys::{Key, Kind, MOST_NEXT_HOPS, Names, below};
use crate::synonyms::{may_stand_alone, theirs};
use crate::tree::{Content, Limits, Node, read};

/// The schema of the whole file.
#[must_use]
pub fn schema() -> Value {
    let mut schema = section("");
    schema.insert(
        "$schema".into(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".into(), "Weir configuration".into());
    schema.insert(
        "description".into(),
        "The desired state of one router.".into(),
    );
    Value::Object(schema)
}

/// The keys of a section, in the words of a schema.
fn section(path: &str) -> Map<String, Value> {
    let rows = || {
        below(path)
            .iter()
            .filter(|row| row.kind != Kind::Unsupported)
    };
    let mut properties: Map<String, Value> = rows()
        .map(|row| (row.name().to_owned(), of_row(row)))
        .collect();
    let synonyms =
        || rows().flat_map(|row| theirs(path, row.name()).map(move |theirs| (row, theirs)));
    properties.extend(synonyms().map(|(row, theirs)| (theirs.to_owned(), of_row(row))));
    let all = rows().filter(|row| row.is_required() && row.drivers.is_empty());
    let (either, required): (Vec<&str>, Vec<&str>) = all
        .map(|row| row.name())
        .partition(|name| theirs(path, name).next().is_some());
    let mut schema = Map::new();
    schema.insert(
        "type".into(),
        if required.is_empty() {
            json!(["object", "null"])
        } else {
            json!("object")
        },
    );
    schema.insert("properties".into(), properties.into());
    schema.insert("additionalProperties".into(), false.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    for name in either {
        let alone = |name: &str| json!({"required": [name]});
        schema.insert(
            "anyOf".into(),
            theirs(path, name).chain([name]).map(alone).collect(),
        );
    }
    if rows().any(|row| !row.drivers.is_empty()) {
        let each = Device::WORDS
            .iter()
            .map(|driver| for_driver(rows(), driver));
        schema.insert("allOf".into(), each.collect());
    }
    schema
}

/// Which keys a driver needs, and which it does not take.
fn for_driver<'a>(rows: impl Iterator<Item = &'a &'static Key>, driver: &str) -> Value {
    let (mut needed, mut foreign) = (Vec::new(), Map::new());
    for row in rows.filter(|row| !row.drivers.is_empty()) {
        if !row.drivers.contains(&driver) {
            foreign.insert(row.name().into(), false.into());
        } else if row.is_required() {
            needed.push(row.name());
        }
    }
    json!({
        "if": {"properties": {"driver": {"enum": spellings(driver)}}, "required": ["driver"]},
        "then": {"properties": foreign, "required": needed},
    })
}

/// The word, and what YAML makes of it: `driver: null` is nothing at all to other readers.
fn spellings(word: &str) -> Vec<Value> {
    if word == "null" {
        vec![word.into(), Value::Null]
    } else {
        vec![word.into()]
    }
}

fn of_row(row: &'static Key) -> Value {
    let mut schema = of_kind(row);
    let mut add = |key: &str, value: Value| {
        schema.insert(key.into(), value);
    };
    add("description", row.about.into());
    if let Some(default) =
        parsed(row, row.default).filter(|_| !row.is_required() && !row.default.is_empty())
    {
        add("default", default);
    }
    if let Some(example) = parsed(row, row.example) {
        add("examples", vec![example].into());
    }
    Value::Object(schema)
}

const BYTE: &str = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

fn ip4() -> String {
    format!("{BYTE}(\\.{BYTE}){{3}}")
}

/// Loosely: `check` knows where the colons go.
fn ip() -> String {
    format!("({}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)", ip4())
}

fn pattern(pattern: &str) -> Map<String, Value> {
    object(json!({"type": "string", "pattern": format!("^({pattern})$")}))
}

/// The entries of what was just written as an object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Text that YAML may take for a number or a truth value, when nothing else tells it.
fn text(most: usize) -> Map<String, Value> {
    object(json!({"type": ["string", "number", "boolean"], "minLength": 1, "maxLength": most}))
}

const INTERFACE: &str = "[A-Za-z][A-Za-z0-9._/-]{0,62}";

const TABLE: &str = "[A-Za-z][A-Za-z0-9._/-]{0,31}";

const LIST: &str = "[A-Za-z][A-Za-z0-9._-]{0,55}";

/// A number, or a text that stands for numbers. A range that begins with a hyphen is a negative number to YAML.
fn number_or_text(most: i64, text: &str) -> Map<String, Value> {
    object(
        json!({"anyOf": [{"type": "integer", "minimum": -most, "maximum": most}, pattern(text)]}),
    )
}

fn of_kind(row: &'static Key) -> Map<String, Value> {
    match row.kind {
        Kind::Section => section(row.path),
        Kind::Named(names) => named(row, names),
        Kind::List(least, most) => list(row, least, most),
        Kind::Via => via(row, &crate::model::Via::WORDS),
        Kind::LabelVia => via(row, &["blackhole"]),
        Kind::Whole(low, high) => {
            object(json!({"type": "integer", "minimum": low, "maximum": high}))
        }
        Kind::PowerOfTwo(low, high) => {
            let powers: Vec<u64> = (0..63)
                .map(|bit| 1 << bit)
                .filter(|power| (low..=high).contains(power))
                .collect();
            object(json!({"enum": powers}))
        }
        Kind::Truth => {
            let words = [
                "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF",
            ];
            object(json!({"anyOf": [{"type": "boolean"}, {"enum": words}]}))
        }
        Kind::Word(words) => object(
            json!({"enum": words.iter().flat_map(|word| spellings(word)).collect::<Vec<_>>()}),
        ),
        Kind::Text(most) | Kind::File(most) => text(most),
        Kind::LinuxName => text(15),
        Kind::MemifSocket => pattern("/.{0,106}|@.{1,107}"),
        Kind::Secret(most) => text(most),
        Kind::InterfaceName => pattern(INTERFACE),
        Kind::VrfName | Kind::TableName => pattern(TABLE),
        Kind::Mac => pattern("[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}"),
        Kind::UnicastMac => pattern("[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}"),
        Kind::OwnAddress => pattern(&format!("{}/[1-9][0-9]{{0,2}}", ip())),
        Kind::Prefix => pattern(&format!("{}/(0|[1-9][0-9]{{0,2}})", ip())),
        Kind::Neighbor | Kind::Ip | Kind::ListenAddress => pattern(&ip()),
        Kind::AddressRange => pattern(&format!("{0}( *- *{0})?", ip4())),
        Kind::PortRange => {
            let port = json!({"type": "integer", "minimum": 0, "maximum": 65535});
            object(json!({"anyOf": [port, pattern("[0-9]{1,5}( *- *[0-9]{1,5})?")]}))
        }
        Kind::AddressOrInterface => pattern(&format!("{}|{INTERFACE}", ip())),
        Kind::Cidr => pattern(&format!(
            "!?({}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(/[0-9]{{1,3}})?",
            ip4()
        )),
        Kind::AnyPrefix => pattern(&format!(
            "({}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(/[0-9]{{1,3}})?",
            ip4()
        )),
        Kind::Scope => pattern(&format!(
            "({}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(/[0-9]{{1,3}})?|{LIST}",
            ip4()
        )),
        Kind::AccessListName => pattern(LIST),
        Kind::Protocol => number_or_text(255, "[a-z0-9-]{1,16}"),
        Kind::Ports => number_or_text(
            65_535,
            "[a-z0-9-]{1,24}( *- *[a-z0-9-]{0,24})?| *- *[a-z0-9-]{1,24}",
        ),
        Kind::Octets => number_or_text(255, "any|[0-9]{0,3} *- *[0-9]{0,3}|[0-9]{1,3}"),
        Kind::Host | Kind::HostName => text(254),
        Kind::NamespaceName => text(255),
        Kind::UnixGroup => pattern("[A-Za-z_][A-Za-z0-9_.$-]{0,31}"),
        // A hash of decimal digits alone is a number to YAML, as is one like 12e34.
        Kind::Sha256 => {
            object(json!({"anyOf": [pattern("[0-9A-Fa-f]{64}|hidden"), {"type": "number"}]}))
        }
        Kind::Companion => object(json!({"type": ["object", "null"]})),
        Kind::Unsupported => object(json!({"not": {}})),
    }
}

fn named(row: &'static Key, names: Names) -> Map<String, Value> {
    let Some(item) = below(row.path).first() else {
        return Map::new();
    };
    let name = match names {
        Names::Interface => format!("^{INTERFACE}$"),
        Names::Vrf => format!("^{TABLE}$"),
        Names::AccessList | Names::PrefixList | Names::RecordSet => format!("^{LIST}$"),
        Names::SubInterface => "^[1-9][0-9]{0,9}$".to_owned(),
        // As many digits as the limit has; `check` knows the limit.
        Names::Numbered(word, last) => format!("^{word}(0|[1-9][0-9]{{0,{}}})$", last.ilog10()),
    };
    object(
        json!({"type": ["object", "null"], "patternProperties": {name: of_row(item)}, "additionalProperties": false}),
    )
}

fn via(row: &'static Key, words: &[&str]) -> Map<String, Value> {
    object(json!({"anyOf": [{"enum": words}, pattern(&ip()), several(row, 1, MOST_NEXT_HOPS)]}))
}

fn list(row: &'static Key, least: usize, most: usize) -> Map<String, Value> {
    match below(row.path)
        .first()
        .filter(|_| may_stand_alone(row.path))
    {
        Some(item) => object(json!({"anyOf": [of_row(item), several(row, least, most)]})),
        None => several(row, least, most),
    }
}

fn several(row: &'static Key, least: usize, most: usize) -> Map<String, Value> {
    let Some(item) = below(row.path).first() else {
        return Map::new();
    };
    let kinds = if least == 0 {
        json!(["array", "null"])
    } else {
        json!("array")
    };
    object(json!({"type": kinds, "items": of_row(item), "minItems": least, "maxItems": most}))
}

/// A default or an example of the table as JSON.
fn parsed(row: &'static Key, text: &str) -> Option<Value> {
    if row.kind == Kind::Unsupported {
        return None;
    }
    Some(value(row, &read(text, &Limits::default()).ok()?.root))
}

fn value(row: &'static Key, node: &Node<'_>) -> Value {
    if row.kind == Kind::Companion {
        return crate::companion::value(node);
    }
    let child = |name: &str| match row.kind {
        Kind::Section => below(row.path).iter().find(|row| row.name() == name),
        _ => below(row.path).first(),
    };
    match &node.content {
        Content::Map(entries) => entries
            .iter()
            .filter_map(|entry| {
                Some((
                    entry.key.to_string(),
                    value(child(&entry.key)?, &entry.value),
                ))
            })
            .collect(),
        Content::List(items) => items
            .iter()
            .filter_map(|item| Some(value(child("")?, item)))
            .collect(),
        Content::Scalar { text, .. } => match row.kind {
            Kind::Whole(..) | Kind::PowerOfTwo(..) => {
                text.parse::<u64>().map_or(Value::Null, Value::from)
            }
            Kind::Truth => (text == "true").into(),
            _ => text.as_ref().into(),
        },
    }
}

#[cfg(test)]
mod tests;
