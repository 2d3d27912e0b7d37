//! Sections whose keys belong to a part of the router that is not this crate: `peering`.
//!
//! Such a section is kept as a value. The part that it belongs to checks it, in the same commands and the same
//! transaction; here it is read, written, compared and carried by a step.

use serde_json::{Map, Number, Value};

use crate::tree::{Content, Node};

/// The value of a node, by the core schema of YAML 1.2.
pub(crate) fn value(node: &Node<'_>) -> Value {
    match &node.content {
        Content::List(items) => items.iter().map(value).collect(),
        Content::Map(entries) => {
            let entries = entries.iter();
            let map: Map<String, Value> = entries
                .map(|entry| (entry.key.clone().into_owned(), value(&entry.value)))
                .collect();
            Value::Object(map)
        }
        Content::Scalar { .. } if node.is_empty() => Value::Null,
        Content::Scalar { text, plain: true } => plain(text),
        Content::Scalar { text, .. } => Value::String(text.clone().into_owned()),
    }
}

fn plain(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_whole {
        let whole = text.parse::<u64>().map(Number::from);
        whole
            .or_else(|_| text.parse::<i64>().map(Number::from))
            .ok()
    } else {
        None
    };
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use crate::{check, to_yaml};

    #[test]
    fn a_section_of_another_part_is_kept_and_written() {
        let text = "peering:\n  asn: 64500\n  router-id: 192.0.2.1\n  prefixes: ['2001:db8::/32', 192.0.2.0/24]\n  \
                    neighbors:\n    - {asn: 64501, gtsm: true, description: 'yes', communities: [64500:1], at: }\n";
        let (config, warnings) = check("test", text).unwrap();
        assert!(warnings.is_empty());
        let section = config.peering.as_ref().unwrap();
        assert_eq!(section["asn"], 64500);
        assert_eq!(section["neighbors"][0]["gtsm"], true);
        assert_eq!(section["neighbors"][0]["description"], "yes");
        assert_eq!(section["neighbors"][0]["communities"][0], "64500:1");
        let written = to_yaml(&config);
        assert_eq!(check("test", &written).unwrap().0, config, "{written}");
        assert!(check("test", "peering: 5\n").is_err());
        assert!(check("test", "peering: [1]\n").is_err());
    }
}
