//! The schema before an independent validator, the crate `jsonschema`.
//!
//! Every good file of this tree has to fit, and files with a wrong value have to be refused.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::keys::KEYS;
use crate::keys::tests::good_files;

/// What a YAML 1.2 reader makes of the tree (YAML 1.2.2, 10.3.2).
fn core(node: &Node<'_>) -> Value {
    match &node.content {
        Content::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.to_string(), core(&entry.value)))
            .collect(),
        Content::List(items) => items.iter().map(core).collect(),
        Content::Scalar { text, plain: false } => text.as_ref().into(),
        Content::Scalar { text, plain: true } => match text.as_ref() {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => true.into(),
            "false" | "False" | "FALSE" => false.into(),
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse::<u64>().map_or(Value::Null, Value::from)
            }
            text => text.parse::<i64>().map(Value::from).unwrap_or(text.into()),
        },
    }
}

fn document(text: &str) -> Option<Value> {
    read(text, &Limits::default())
        .ok()
        .map(|tree| core(&tree.root))
}

/// Files under a folder, by name.
fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut all: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

/// Cases whose error is one that a schema can see.
const REFUSED: &[&str] = &[
    "error-api-values",
    "error-bridge-values",
    "error-device-keys",
    "error-everything-in-one-run",
    "error-loopbacks",
    "error-mac",
    "error-memif",
    "error-mtu",
    "error-root-is-list",
    "error-route-prefix",
    "error-sflow-ranges",
    "error-streams",
    "error-taps",
    "error-twenty-and-more",
    "error-unknown-keys",
    "error-vppcfg-keys",
    "error-vppcfg-published",
    "error-words",
    "error-workers-values",
    "error-wrong-kinds",
];

#[test]
fn good_files_fit_and_wrong_values_do_not() {
    let mut documents: Vec<(String, bool, Value)> = Vec::new();
    for (name, text) in good_files().into_iter().chain(files("../../../examples")) {
        assert!(crate::check(&name, &text).is_ok(), "{name}");
        documents.extend(document(&text).map(|it| (name, true, it)));
    }
    documents.push((
        "reference".into(),
        true,
        document(crate::reference::EXAMPLE).unwrap(),
    ));
    for (name, text) in files("tests/cases") {
        let (_, candidate) = text.split_once("\n---\n").unwrap();
        let fits = match crate::check(&name, candidate) {
            Ok((config, _)) => {
                documents.push((
                    format!("{name}, written"),
                    true,
                    serde_json::to_value(&config).unwrap(),
                ));
                documents.push((
                    format!("{name}, dumped"),
                    true,
                    document(&crate::to_yaml(&config)).unwrap(),
                ));
                true
            }
            Err(_) if REFUSED.contains(&name.as_str()) => false,
            Err(_) => continue,
        };
        documents.extend(document(candidate).map(|it| (name, fits, it)));
    }
    assert!(documents.iter().filter(|(_, fits, _)| !fits).count() == REFUSED.len());
    let schema = schema();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (name, fits, document) in &documents {
        let errors: Vec<String> = validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors.is_empty(), *fits, "{name}: {errors:?}");
    }
}

#[test]
fn the_schema_has_every_supported_key_and_no_other() {
    /// Keys by their paths, and those that have another name.
    #[derive(Default)]
    struct Found {
        keys: BTreeSet<String>,
        synonyms: BTreeSet<(String, String)>,
    }
    fn keys(schema: &Value, path: &str, found: &mut Found) {
        let below = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        for (name, inner) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let ours = crate::synonyms::ours(path, name);
            if ours.is_some() {
                found.synonyms.insert((path.to_owned(), name.clone()));
            }
            let key = below(ours.unwrap_or(name));
            keys(inner, &key, found);
            found.keys.insert(key);
        }
        for (_, inner) in schema
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            found.keys.insert(below("*"));
            keys(inner, &below("*"), found);
        }
        schema
            .get("items")
            .into_iter()
            .for_each(|items| keys(items, &format!("{path}[]"), found));
        schema
            .get("anyOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|it| {
                let alone = crate::synonyms::may_stand_alone(path) && it.get("items").is_none();
                keys(
                    it,
                    &if alone {
                        format!("{path}[]")
                    } else {
                        path.to_owned()
                    },
                    found,
                );
            });
    }
    let mut found = Found::default();
    keys(&schema(), "", &mut found);
    let supported = KEYS
        .iter()
        .filter(|row| row.kind != Kind::Unsupported && !row.path.ends_with("[]"));
    assert_eq!(
        found.keys,
        supported.map(|row| row.path.to_owned()).collect()
    );
    let synonyms = crate::synonyms::SYNONYMS
        .iter()
        .map(|(section, theirs, _)| ((*section).to_owned(), (*theirs).to_owned()));
    assert_eq!(found.synonyms, synonyms.collect());
}
