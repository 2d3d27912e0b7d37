//! A configuration as the file that says it: what stands at its default is left out, sections and
//! keys come in the order of the key table, names in the order of the alphabet, each thing in a
//! line of its own.
//!
//! The same configuration always gives the same text, and the text reads back as the same
//! configuration. On the way there is a tree of lines, `Block`, in which every line knows what it
//! is about; `diff.rs` compares two of those.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::file::File;
use crate::keys::{Key, Kind, below};
use crate::model::Config;
use crate::section::Section;

/// The file that says this configuration, and as little as possible besides.
#[must_use]
pub fn to_yaml(config: &Config) -> String {
    let mut text = String::new();
    blocks(config)
        .iter()
        .for_each(|block| block.write(0, &mut |line, depth| line_to(&mut text, line, depth)));
    text
}

fn line_to(text: &mut String, line: &str, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
    text.push_str(line);
    text.push('\n');
}

/// A line of the file and the lines below it.
#[derive(Debug)]
pub(crate) struct Block {
    /// What it is about, distinguished from its neighbours: a key, or what identifies an item.
    pub(crate) id: String,
    pub(crate) line: String,
    pub(crate) below: Vec<Block>,
}

impl Block {
    /// Tell each line with its depth.
    pub(crate) fn write(&self, depth: usize, to: &mut dyn FnMut(&str, usize)) {
        to(&self.line, depth);
        self.below
            .iter()
            .for_each(|block| block.write(depth + 1, to));
    }
}

/// The lines of a configuration.
pub(crate) fn blocks(config: &Config) -> Vec<Block> {
    let alone = |line: &str| {
        vec![Block {
            id: String::new(),
            line: line.into(),
            below: Vec::new(),
        }]
    };
    let mut sections = Map::new();
    File::from(config.clone()).write_keys(false, "", &mut sections);
    Some(section("", &sections))
        .filter(|blocks| !blocks.is_empty())
        .unwrap_or_else(|| alone("{}"))
}

fn section(path: &str, values: &Map<String, Value>) -> Vec<Block> {
    let there = below(path)
        .iter()
        .filter_map(|row| Some((row, values.get(row.name())?)));
    there
        .filter(|(row, value)| !follows(row, value, values))
        .filter_map(|(row, value)| entry(row, row.name(), value))
        .collect()
}

/// Whether a value follows from another key: the number of workers from their cores.
fn follows(row: &Key, value: &Value, section: &Map<String, Value>) -> bool {
    let cores = section.get("cores").and_then(Value::as_array);
    row.path == "workers.count"
        && cores.is_some_and(|cores| value.as_u64() == Some(cores.len() as u64))
}

/// A key with its value; nothing when the value says nothing.
fn entry(row: &'static Key, key: &str, value: &Value) -> Option<Block> {
    let below = match (row.kind, value) {
        (Kind::Section, Value::Object(values)) => section(row.path, values),
        (Kind::Named(_), Value::Object(values)) => names(row, values),
        (Kind::Via | Kind::LabelVia, Value::Array(paths)) => match single(paths) {
            Some(next_hop) => return Some(leaf(key, &scalar(row.kind, next_hop))),
            None => items(row, paths),
        },
        (Kind::List(..), Value::Array(values)) => items(row, values),
        (Kind::Companion, Value::Object(values)) => return Some(companion(key, values)),
        (_, value) => return Some(leaf(key, &scalar(row.kind, value))),
    };
    if below.is_empty() {
        // A section that may be absent means something when it is empty.
        let is_optional = row.kind == Kind::Section && row.default.is_empty();
        return is_optional.then(|| leaf(key, "{}"));
    }
    Some(Block {
        id: key.to_owned(),
        line: format!("{key}:"),
        below,
    })
}

/// A section without rows in the table.
fn companion(key: &str, values: &Map<String, Value>) -> Block {
    let below: Vec<Block> = values.iter().map(|(key, value)| free(key, value)).collect();
    let line = if below.is_empty() {
        format!("{}: {{}}", text(key))
    } else {
        format!("{}:", text(key))
    };
    Block {
        id: key.to_owned(),
        line,
        below,
    }
}

/// A key of such a section: sections in lines of their own, items of lists in one line each.
fn free(key: &str, value: &Value) -> Block {
    let list = |values: &[Value]| {
        let below = values.iter().map(|value| {
            let line = format!("- {}", flow(value));
            Block {
                id: line.clone(),
                line,
                below: Vec::new(),
            }
        });
        Block {
            id: key.to_owned(),
            line: format!("{}:", text(key)),
            below: below.collect(),
        }
    };
    match value {
        Value::Object(values) => companion(key, values),
        Value::Array(values) if !values.is_empty() => list(values),
        value => leaf(&text(key), &flow(value)),
    }
}

/// A value in one line. Every reader takes JSON's texts in quotes for texts.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(values) => {
            let all: Vec<String> = values
                .iter()
                .map(|(key, value)| format!("{}: {}", text(key), flow(value)))
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        Value::Array(values) => {
            let all: Vec<String> = values.iter().map(flow).collect();
            format!("[{}]", all.join(", "))
        }
        Value::String(value) => text(value),
        value => value.to_string(),
    }
}

fn leaf(key: &str, value: &str) -> Block {
    Block {
        id: key.to_owned(),
        line: format!("{key}: {value}"),
        below: Vec::new(),
    }
}

/// The one next hop that needs no list.
fn single(paths: &[Value]) -> Option<&Value> {
    let [Value::Object(path)] = paths else {
        return None;
    };
    path.get("next-hop").filter(|_| path.len() == 1)
}

fn names(row: &Key, values: &Map<String, Value>) -> Vec<Block> {
    let Some(item) = below(row.path).first() else {
        return Vec::new();
    };
    let named = |(name, value): (&String, &Value)| {
        let below = value
            .as_object()
            .map(|values| section(item.path, values))
            .unwrap_or_default();
        let line = if below.is_empty() {
            format!("{}: {{}}", text(name))
        } else {
            format!("{}:", text(name))
        };
        Block {
            id: name.clone(),
            line,
            below,
        }
    };
    values.iter().map(named).collect()
}

/// What tells the items of a list of sections apart.
fn identity(path: &str) -> &'static [&'static str] {
    match path {
        "routes[]" => &["vrf", "prefix"],
        "neighbors[]" => &["interface", "address"],
        "bridgedomains.*.split-horizon-groups[]" => &["interface"],
        "bridgedomains.*.static-macs[]" => &["mac"],
        "bridgedomains.*.arp-entries[]" => &["address"],
        "mpls.labels[]" => &["label"],
        "routes[].via[]" | "mpls.labels[].via[]" | "pseudowires.*.via[]" => {
            &["next-hop", "interface", "next-hop-table"]
        }
        "sflow.collectors[]" => &["address", "port", "namespace", "dev"],
        "ipfix.collectors[]" | "api.listen[]" => &["address", "port"],
        _ => &["name"],
    }
}

fn items(row: &Key, values: &[Value]) -> Vec<Block> {
    let Some(item) = below(row.path).first() else {
        return Vec::new();
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut block = |value: &Value| {
        let mut block = match value {
            Value::Object(values) => section_item(item.path, values),
            value => {
                let text = scalar(item.kind, value);
                Block {
                    id: text.clone(),
                    line: format!("- {text}"),
                    below: Vec::new(),
                }
            }
        };
        let times = seen.entry(block.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            block.id = format!("{} {times}", block.id);
        }
        block
    };
    values.iter().map(&mut block).collect()
}

fn section_item(path: &str, values: &Map<String, Value>) -> Block {
    let id: Vec<String> = identity(path)
        .iter()
        .filter_map(|key| values.get(*key))
        .map(Value::to_string)
        .collect();
    let mut lines = section(path, values);
    let first_is_leaf = lines.first().is_some_and(|first| first.below.is_empty());
    let line = if first_is_leaf {
        format!("- {}", lines.remove(0).line)
    } else {
        "-".to_owned()
    };
    Block {
        id: id.join(" "),
        line,
        below: lines,
    }
}

pub(crate) fn scalar(kind: Kind, value: &Value) -> String {
    match value {
        // A single port looks like a number, and may.
        Value::String(port) if kind == Kind::PortRange => port.clone(),
        Value::String(value) => text(value),
        value => value.to_string(),
    }
}

/// Text as it has to stand in the file so that every YAML reader, of 1.1 or 1.2, takes it for
/// this text.
fn text(value: &str) -> String {
    if is_plain(value) {
        return value.to_owned();
    }
    // YAML 1.2.2, 5.1: what may stand in a file; the last ones are line breaks in YAML 1.1.
    let odd = |c: char| {
        c.is_control()
            || matches!(
                c,
                '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}'
            )
    };
    if !value.contains(odd) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    let mut quoted = String::from("\"");
    for character in value.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if odd(character) => {
                quoted.push_str(&format!("\\U{:08x}", u32::from(character)))
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn is_plain(value: &str) -> bool {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let safe = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b' ' | b'.' | b'_' | b'/' | b':' | b'@' | b'+' | b'(' | b')' | b'-'
            )
    };
    let first = value
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'/');
    let colon = value.contains(": ") || value.ends_with([':', ' ']);
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(value));
    first && value.bytes().all(safe) && !colon && !word && !like_a_number(value)
}

/// Decimal, hexadecimal, with an exponent, in base 60 or a date: some reader's number.
fn like_a_number(value: &str) -> bool {
    let numeric = |byte: u8| {
        byte.is_ascii_digit()
            || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-' | b'_' | b':' | b' ')
    };
    let prefixed = ["0x", "0X", "0o", "0b"]
        .iter()
        .any(|prefix| value.starts_with(prefix));
    let date = value
        .split_once('-')
        .is_some_and(|(year, _)| year.len() == 4 && year.bytes().all(numeric));
    // Addresses, and ranges of them, are no reader's numbers.
    let address = value
        .split('-')
        .all(|part| part.parse::<std::net::Ipv4Addr>().is_ok());
    (value.bytes().all(numeric) && !address) || prefixed || date
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::arbitrary::{Devices, config};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(2), ..ProptestConfig::default() })]

        #[test]
        fn the_text_reads_back_as_the_configuration(config in config(Devices::Any)) {
            let text = to_yaml(&config);
            match crate::check("dump", &text) {
                Ok((read, _)) => prop_assert_eq!(&read, &config, "{}", text),
                Err(errors) => prop_assert!(false, "{}\n{}", text, errors[0]),
            }
            prop_assert!(text.lines().all(|line| line.len() == line.trim_end().len()));
        }

        /// What `check` takes of any text, it takes again of what is written.
        #[test]
        fn hostile_text_comes_back(text in "\\PC{1,40}|[ -~]{1,12}|.{1,8}") {
            let mut config = Config::default();
            config.interfaces.insert("xe0".into(), crate::Interface { description: Some(text.clone()), ..Default::default() });
            config.history.directory = text.clone().into();
            match crate::check("dump", &to_yaml(&config)) {
                Ok((read, _)) => prop_assert_eq!(read, config),
                Err(errors) => prop_assert!(text.contains(char::is_control), "{:?}: {}", text, errors[0]),
            }
        }
    }

    #[test]
    fn only_what_differs_from_the_defaults_is_written() {
        assert_eq!(to_yaml(&Config::default()), "{}\n");
        let file = "
interfaces:
  xe0: {mtu: 1500, state: up, sflow: no, addresses: [192.0.2.2/24, 192.0.2.1/24]}
  tap1: {mtu: 9000}
  xe1: {device: {driver: null}}
taps: {tap1: {host: {name: lan0}}, tap0: {host: {name: 'off'}}}
loopbacks: {loop0: {description: 'a: b'}}
sflow: {collectors: [{address: 192.0.2.9, port: 6343}], sampling-rate: 10000}
routes:
  - {prefix: 10.0.0.0/8, via: [{next-hop: 192.0.2.9, weight: 1}]}
  - {prefix: 11.0.0.0/8, via: [{next-hop: 192.0.2.9, weight: 2}, {next-hop: 192.0.2.10, interface: xe0}]}
workers: {cores: [1, 0]}
logging: {level: info}
";
        let written = "\
interfaces:
  tap1:
    mtu: 9000
  xe0:
    addresses:
      - 192.0.2.1/24
      - 192.0.2.2/24
  xe1:
    device:
      driver: 'null'
loopbacks:
  loop0:
    description: 'a: b'
taps:
  tap0:
    host:
      name: 'off'
  tap1:
    host:
      name: lan0
sflow:
  collectors:
    - address: 192.0.2.9
routes:
  - prefix: 10.0.0.0/8
    via: 192.0.2.9
  - prefix: 11.0.0.0/8
    via:
      - next-hop: 192.0.2.9
        weight: 2
      - next-hop: 192.0.2.10
        interface: xe0
workers:
  cores:
    - 1
    - 0
";
        let Ok((config, _)) = crate::check("file", file) else {
            panic!("{:?}", crate::check("file", file))
        };
        assert_eq!(to_yaml(&config), written);
    }

    #[test]
    fn text_is_quoted_where_a_reader_could_take_it_for_something_else() {
        for plain in [
            "to the core",
            "xe0",
            "/run/weir/api.sock",
            "192.0.2.1",
            "192.0.2.1/24",
            "02:00:00:00:00:0a",
            "2001:db8::1",
            "10.0.0.1-10.0.0.9",
        ] {
            assert_eq!(text(plain), plain);
        }
        for quoted in [
            "",
            "off",
            "No",
            "null",
            "y",
            "~",
            "007",
            "1_0",
            "1e5",
            "0x1f",
            "1:30",
            "02:00:00:00:00:01",
            "2026-11-21",
            "2026-11-21T10:00:00Z",
        ] {
            assert_eq!(text(quoted), format!("'{quoted}'"));
        }
        for quoted in [
            "a: b", "a:", " a", "a ", "#a", "a #b", "- a", "-", "!a", "&a", "*a", "{a", "[a", "@a",
            "%a", "`a", "|", ">", "? a", "ä", ".5", "---", ",",
        ] {
            assert_eq!(text(quoted), format!("'{quoted}'"));
        }
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(
            text("a\"\\\n\u{2028}"),
            "\"a\\\"\\\\\\U0000000a\\U00002028\""
        );
    }
}
