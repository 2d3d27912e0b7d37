//! Files of other generators as a `peering` section: kees' peers.yaml and pathvector's file.
//!
//! What has no counterpart is a comment above the neighbour, so that nothing is lost without a word.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::Error;

/// The generator that a file is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// kees' peers.yaml.
    Kees,
    /// pathvector's configuration.
    Pathvector,
}

/// A neighbour with what could not be taken over.
struct Imported {
    keys: Map<String, Value>,
    lost: Vec<String>,
}

/// The neighbours of a file as YAML of a `peering` section. `exchanges` are the names at which they are met.
///
/// # Errors
/// When the text is no file of that generator.
pub fn import(
    format: Format,
    path: &str,
    text: &str,
    exchanges: &[String],
) -> Result<String, Error> {
    let wrong = |reason: String| Error::Format {
        path: path.to_owned(),
        reason,
    };
    let file: Value = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(file) = file else {
        return Err(wrong("a section of keys is needed".to_owned()));
    };
    let mut written = String::from("peering:\n");
    let neighbors = match format {
        Format::Kees => kees(&file, exchanges).map_err(wrong)?,
        Format::Pathvector => {
            head(&mut written, &file);
            pathvector(&file).map_err(wrong)?
        }
    };
    written.push_str("  neighbors:\n");
    for it in neighbors {
        for lost in it.lost {
            let _ = writeln!(written, "    # not taken over: {}", one_line(&lost));
        }
        let _ = writeln!(written, "    - {}", flow(&Value::Object(it.keys)));
    }
    Ok(written)
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A value in one line, with JSON's quotes, which every YAML reader takes.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(keys) => {
            let all: Vec<String> = keys
                .iter()
                .map(|(key, it)| format!("{key}: {}", flow(it)))
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(flow).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A list, or one value in its place.
fn list_of(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    }
}

/// A description without what a daemon's configuration cannot hold.
fn description(text: &str) -> String {
    let allowed = |c: &char| !c.is_control() && !matches!(c, '"' | '\\');
    let mut short: String = text.chars().filter(allowed).collect();
    while short.len() > crate::model::LONGEST_NAME {
        short.pop();
    }
    short
}

fn kees(file: &Map<String, Value>, exchanges: &[String]) -> Result<Vec<Imported>, String> {
    let mut all = Vec::new();
    for (name, keys) in file {
        let asn = name.trim_start_matches("AS").parse::<u32>();
        let asn = asn.map_err(|_| format!("{name:?} is no AS number"))?;
        let Value::Object(keys) = keys else {
            return Err(format!("{name}: a section of keys is needed"));
        };
        let mut of = Map::new();
        let mut lost = Vec::new();
        of.insert("asn".to_owned(), json!(asn));
        let mut addresses = Vec::new();
        for (key, value) in keys {
            match key.as_str() {
                "description" => {
                    let text = text_of(value).unwrap_or_default();
                    of.insert(key.clone(), json!(description(&text)));
                }
                "type" => {
                    let relation = match value.as_str() {
                        Some("upstream") => "transit",
                        Some("downstream") => "customer",
                        _ => "peer",
                    };
                    of.insert("relation".to_owned(), json!(relation));
                }
                "import" => match value.as_str() {
                    Some("ANY") => {}
                    Some(sets) => drop(of.insert("as-set".to_owned(), json!(sets))),
                    None => lost.push(format!("{key}: {value}")),
                },
                // Follows from the relation.
                "export" => {}
                "gtsm" => drop(of.insert(key.clone(), json!(value.as_bool() == Some(true)))),
                "multihop" => match value.as_u64() {
                    Some(hops) => drop(of.insert(key.clone(), json!(hops))),
                    None if value.as_bool() == Some(true) => {
                        drop(of.insert(key.clone(), json!(64)))
                    }
                    None => {}
                },
                "ipv4_limit" | "ipv6_limit" => {
                    let family = key.trim_end_matches("_limit");
                    let limit = of.entry("limit").or_insert_with(|| json!({}));
                    if let Value::Object(limit) = limit {
                        limit.insert(family.to_owned(), value.clone());
                    }
                }
                "only_with" | "private_peerings" => addresses.extend(list_of(value)),
                "not_with" => drop(of.insert("without".to_owned(), json!(list_of(value)))),
                "blackhole_accept" => {
                    drop(of.insert("blackhole".to_owned(), json!(value.as_bool() == Some(true))))
                }
                _ => lost.push(format!("{key}: {value}")),
            }
        }
        if of.get("relation").and_then(Value::as_str) != Some("customer") {
            of.remove("blackhole");
        }
        if !addresses.is_empty() {
            of.insert("addresses".to_owned(), json!(addresses));
        }
        if !exchanges.is_empty() && !keys.contains_key("private_peerings") {
            of.insert("at".to_owned(), json!(exchanges));
        }
        if !of.contains_key("limit") {
            of.insert("limit".to_owned(), json!("auto"));
        }
        all.push(Imported { keys: of, lost });
    }
    Ok(all)
}

fn head(written: &mut String, file: &Map<String, Value>) {
    for key in ["asn", "router-id"] {
        if let Some(value) = file.get(key) {
            let _ = writeln!(written, "  {key}: {}", flow(value));
        }
    }
    if let Some(prefixes) = file.get("prefixes") {
        let _ = writeln!(written, "  prefixes: {}", flow(prefixes));
    }
    let known = ["asn", "router-id", "prefixes", "peers", "templates"];
    for (key, value) in file
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()))
    {
        let _ = writeln!(
            written,
            "  # not taken over: {key}: {}",
            one_line(&value.to_string())
        );
    }
}

fn pathvector(file: &Map<String, Value>) -> Result<Vec<Imported>, String> {
    let none = Map::new();
    let templates = file
        .get("templates")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let peers = file.get("peers").and_then(Value::as_object);
    let peers = peers.ok_or("there is no section `peers`")?;
    let mut all = Vec::new();
    for (name, keys) in peers {
        let Value::Object(own) = keys else {
            return Err(format!("peers: {name}: a section of keys is needed"));
        };
        let chosen = own.get("template").and_then(Value::as_str);
        let mut keys = chosen
            .and_then(|it| templates.get(it))
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        keys.extend(own.clone());
        let mut of = Map::new();
        let mut lost = Vec::new();
        of.insert("description".to_owned(), json!(description(name)));
        let relation = match (chosen, keys.get("announce-all").and_then(Value::as_bool)) {
            (Some("upstream" | "transit"), _) => "transit",
            (Some("downstream" | "customer"), _) | (_, Some(true)) => "customer",
            (Some("routeserver" | "route-server"), _) => "route-server",
            _ => "peer",
        };
        of.insert("relation".to_owned(), json!(relation));
        for (key, value) in &keys {
            let mut limit = |family: &str| {
                let limit = of.entry("limit").or_insert_with(|| json!({}));
                if let Value::Object(limit) = limit {
                    limit.insert(family.to_owned(), value.clone());
                }
            };
            match key.as_str() {
                "asn" | "multihop" | "passive" | "bfd" | "prefixes" => {
                    let hops = if key == "multihop" {
                        json!(64)
                    } else {
                        value.clone()
                    };
                    if value.as_bool() != Some(false) {
                        of.insert(
                            key.clone(),
                            if value.is_boolean() && key == "multihop" {
                                hops
                            } else {
                                value.clone()
                            },
                        );
                    }
                }
                "neighbors" => drop(of.insert("addresses".to_owned(), json!(list_of(value)))),
                "as-set" => drop(of.insert(key.clone(), value.clone())),
                "local-pref" => drop(of.insert(key.clone(), value.clone())),
                "ttl-security" => drop(of.insert("gtsm".to_owned(), value.clone())),
                "prepends" => drop(of.insert("prepend".to_owned(), value.clone())),
                "disabled" if value.as_bool() == Some(true) => {
                    drop(of.insert("mode".to_owned(), json!("down")))
                }
                "disabled" | "template" => {}
                "import-limit4" | "receive-limit4" => limit("ipv4"),
                "import-limit6" | "receive-limit6" => limit("ipv6"),
                "allow-blackhole-community" if relation == "customer" => {
                    drop(of.insert("blackhole".to_owned(), value.clone()));
                }
                // On by default here, and not to be switched off.
                "filter-irr"
                | "filter-rpki"
                | "filter-bogon-routes"
                | "filter-bogon-asns"
                | "filter-transit-asns"
                | "filter-prefix-length"
                | "filter-max-prefix"
                | "enforce-first-as"
                | "enforce-peer-nexthop"
                | "filter-never-via-route-servers"
                | "honor-graceful-shutdown"
                | "announce-all"
                | "auto-as-set" => {
                    if value.as_bool() == Some(false) && key.starts_with("filter") {
                        lost.push(format!("{key}: false: the check is always made"));
                    }
                }
                "auto-import-limits" if value.as_bool() == Some(true) => {
                    of.entry("limit").or_insert_with(|| json!({"auto": true}));
                }
                "auto-import-limits" => {}
                // A password belongs into a file that only BIRD reads.
                "password" => lost.push(
                    "password: write it into a file, and name it by password-file".to_owned(),
                ),
                _ => lost.push(format!("{key}: {value}")),
            }
        }
        all.push(Imported { keys: of, lost });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Peering, Relation};

    #[test]
    fn a_peers_file_of_kees_becomes_neighbours() {
        let text = "AS8283:\n  description: 'Coloclue \"NL\"'\n  import: AS-COLOCLUE AS-OTHER\n  export: AS-IPNG\n  type: peer\n  \
                    gtsm: true\n  ipv4_limit: 500\n  irr_order: RIPE\n  not_with: [185.1.203.9]\n\
                    AS64500:\n  import: ANY\n  export: ANY\n  type: upstream\n  private_peerings: [192.0.2.9]\n";
        let yaml = import(Format::Kees, "peers.yaml", text, &["frysix".to_owned()]).unwrap();
        assert!(
            yaml.contains("# not taken over: irr_order: \"RIPE\""),
            "{yaml}"
        );
        let whole = yaml.replace(
            "peering:\n",
            "peering:\n  asn: 8298\n  router-id: 194.1.163.1\n  prefixes: [194.1.163.0/24]\n  exchanges: {frysix: {peeringdb-ix: 3512}}\n",
        );
        let peering = Peering::parse("peers.yaml", &whole).unwrap();
        let first = peering.neighbors.iter().find(|it| it.asn == 8283).unwrap();
        assert_eq!(first.at.as_deref(), Some("frysix"));
        assert_eq!(
            (first.gtsm, first.limit.ipv4, first.description.as_str()),
            (true, Some(500), "Coloclue NL")
        );
        assert_eq!(first.as_set.as_deref(), Some("AS-COLOCLUE AS-OTHER"));
        let other = peering.neighbors.iter().find(|it| it.asn == 64500).unwrap();
        assert_eq!(
            (other.relation, other.addresses.len()),
            (Relation::Transit, 1)
        );
        assert!(import(Format::Kees, "x", "- 1", &[]).is_err());
        assert!(import(Format::Kees, "x", "ASX: {}", &[]).is_err());
    }

    #[test]
    fn a_file_of_pathvector_becomes_a_section() {
        let text = "asn: 65530\nrouter-id: 192.0.2.1\nprefixes: ['203.0.113.0/24']\nirr-server: rr.ntt.net\n\
                    templates:\n  upstream: {local-pref: 80, announce-originated: true}\n\
                    peers:\n  Transit:\n    asn: 174\n    template: upstream\n    neighbors: [192.0.2.2]\n    password: secret\n  \
                    Peer:\n    asn: 13335\n    neighbors: ['192.0.2.3', '2001:db8::3']\n    as-set: AS13335:AS-CLOUDFLARE\n    \
                    ttl-security: true\n    import-limit4: 2000\n    filter-irr: false\n";
        let yaml = import(Format::Pathvector, "pathvector.yml", text, &[]).unwrap();
        assert!(!yaml.contains("secret"), "{yaml}");
        assert!(
            yaml.contains("filter-irr: false: the check is always made"),
            "{yaml}"
        );
        assert!(yaml.contains("# not taken over: irr-server"), "{yaml}");
        let peering = Peering::parse("pathvector.yml", &yaml).unwrap();
        assert_eq!(peering.asn, 65530);
        let transit = peering.neighbors.iter().find(|it| it.asn == 174).unwrap();
        assert_eq!(
            (transit.relation, peering.local_pref(transit)),
            (Relation::Transit, 80)
        );
        let peer = peering.neighbors.iter().find(|it| it.asn == 13335).unwrap();
        assert_eq!(
            (peer.gtsm, peer.limit.ipv4, peer.addresses.len()),
            (true, Some(2000), 2)
        );
    }
}
