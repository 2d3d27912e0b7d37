//! The page `docs/api.md`: the reference of the API, written from the table of endpoints and the
//! OpenAPI document's schemas. Tests keep it, and `docs/metrics.md`, equal to what the code says.

use std::fmt::Write;

use serde_json::Value;

use crate::openapi::{document, errors};
use crate::{ENDPOINTS, Endpoint, ErrorCode, Parameter, ParameterKind, Reply};

const HEAD: &str = "\
# The API

<!-- Written from the table of endpoints of the crate `weir-api`; `UPDATE_GOLDEN=1 cargo test -p weir-api` rewrites it. -->

A router answers HTTP/1.1 with JSON on its Unix socket, and over TCP where the configuration says so. Everything the
command line does goes through it. `GET /v1/openapi.json` is the same as this page for programs (OpenAPI 3.1).

```
curl --unix-socket /run/weir/api.sock http://weir/v1/interfaces
curl --unix-socket /run/weir/api.sock -X PATCH -H 'Content-Type: application/json' -d '{\"sampling_rate\": 1000}' http://weir/v1/sflow
curl --unix-socket /run/weir/api.sock -N 'http://weir/v1/events?topics=link,config'
```

- **Who may**: over the Unix socket root, the router's own user and members of the admin group may do everything;
  members of the read-only group may look; others are refused (403). Over TCP a client shows a token
  (`Authorization: Bearer TOKEN`) or a certificate, else it is refused (401). TCP without TLS is for loopback addresses only.
- **Units** stand in names; sizes are bytes, `age`, `uptime` and the like are seconds, `speed` is bits per second. Points in
  time are RFC 3339 in UTC, or seconds since 1970 where the name says so. A key that is absent means that there is none.
- **Errors** all have one shape: `{\"error\": {\"code\", \"message\", \"help\"}}`, with `findings` when a configuration is
  wrong and `lock` when somebody else holds it.
- **Long lists** come in pages: `limit` entries at most, and `next` when there are more, which is the `after` of the next page.
- **Edits** (`PATCH`) follow RFC 7396: a key that is absent stays, null goes back to the default.
- **Events** are server-sent events. `event:` is one of `counters`, `log`, `config`, `link` and `lost`; `data:` is an `Event`.
  A client that reads too slowly loses the oldest and is reported how many by `lost`; one that reads nothing is closed.
- **Bounds**: each listener serves 64 connections at once, more wait; a request's head and body have 5 s each, its answer
  10 s (what looks at or changes a configuration 120 s); a body has 1 MiB, a configuration 32 MiB.

";

/// The page `docs/api.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| | path | for | |\n|---|---|---|---|\n");
    for endpoint in ENDPOINTS {
        let Endpoint {
            method,
            path,
            role,
            sentence,
            ..
        } = endpoint;
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {method} | [`{path}`](#{}) | {role} | {sentence} |",
            anchor(endpoint)
        );
    }
    page.push_str("\n## Endpoints\n");
    ENDPOINTS
        .iter()
        .for_each(|endpoint| describe(endpoint, &mut page));
    page.push_str("\n## Error codes\n\n| status | code | when |\n|---|---|---|\n");
    for code in ErrorCode::ALL {
        let _ = writeln!(
            page,
            "| {} | `{}` | {} |",
            code.status(),
            word(&serde_json::json!(code)),
            code.sentence()
        );
    }
    page.push_str("\n## Types\n");
    if let Some(schemas) = document()
        .pointer("/components/schemas")
        .and_then(Value::as_object)
    {
        schemas
            .iter()
            .for_each(|(name, schema)| type_of(name, schema, &mut page));
    }
    page
}

/// As renderers of Markdown make it of a heading: lower case, blanks to dashes, the rest of the
/// punctuation left out.
fn anchor(endpoint: &Endpoint) -> String {
    let heading = format!("{} {}", endpoint.method, endpoint.path).to_ascii_lowercase();
    heading
        .chars()
        .filter_map(|c| {
            if c == ' ' {
                Some('-')
            } else {
                (c.is_ascii_alphanumeric() || c == '-' || c == '_').then_some(c)
            }
        })
        .collect()
}

fn describe(endpoint: &Endpoint, page: &mut String) {
    let _ = writeln!(
        page,
        "\n### {} {}\n\n{}\n",
        endpoint.method, endpoint.path, endpoint.sentence
    );
    for parameter in endpoint.in_path {
        let _ = writeln!(
            page,
            "- in the path `{}`: {}",
            parameter.name,
            meaning(parameter)
        );
    }
    for parameter in endpoint.query {
        let _ = writeln!(page, "- `?{}=`: {}", parameter.name, meaning(parameter));
    }
    let mut generator = crate::openapi::generator();
    if let Some(body) = endpoint.body {
        let _ = writeln!(
            page,
            "- body: {}",
            shown(&serde_json::json!(body(&mut generator)))
        );
    }
    let _ = match endpoint.reply {
        Reply::Json(of) => writeln!(
            page,
            "- reply: {}",
            shown(&serde_json::json!(of(&mut generator)))
        ),
        Reply::OpenMetrics => writeln!(
            page,
            "- reply: OpenMetrics 1.0 text, see [metrics](metrics.md)"
        ),
        Reply::Pcapng => writeln!(
            page,
            "- reply: the capture as pcapng, piece by piece; the header `Weir-Capture` has its number"
        ),
        Reply::Events => writeln!(page, "- reply: server-sent events, each an [Event](#event)"),
    };
    let codes: Vec<_> = errors(endpoint)
        .iter()
        .map(|code| code.status().to_string())
        .collect();
    let _ = writeln!(page, "- errors: {}", codes.join(" "));
}

fn meaning(parameter: &Parameter) -> String {
    let sentence = parameter.sentence;
    match parameter.kind {
        ParameterKind::Text => sentence.to_owned(),
        ParameterKind::Switch => format!("{sentence} `true` or `false`"),
        ParameterKind::Words(words) => {
            format!(
                "{sentence} {}",
                words
                    .iter()
                    .map(|word| format!("`{word}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        ParameterKind::Number {
            least,
            most,
            default: None,
        } => format!("{sentence} {least} to {most}"),
        ParameterKind::Number {
            least,
            most,
            default: Some(usual),
        } => format!("{sentence} {least} to {most}, usually {usual}"),
    }
}

fn type_of(name: &str, schema: &Value, page: &mut String) {
    let _ = writeln!(page, "\n### {name}\n");
    if let Some(description) = text(schema, "description") {
        let _ = writeln!(page, "{}\n", one_line(description));
    }
    let variants = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| schema.get(key))
        .and_then(Value::as_array);
    match (properties(schema), variants) {
        (Some(_), _) => fields(schema, page),
        (None, Some(variants)) => variants.iter().for_each(|variant| {
            let description = text(variant, "description")
                .map(one_line)
                .unwrap_or_default();
            let _ = writeln!(page, "- {}: {description}", shown(variant));
        }),
        (None, None) => {
            let _ = writeln!(page, "{}", shown(schema));
        }
    }
}

fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn fields(schema: &Value, page: &mut String) {
    page.push_str("| key | type | |\n|---|---|---|\n");
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, value) in properties(schema).into_iter().flatten() {
        let mark = if required.contains(&key.as_str()) {
            ""
        } else {
            "?"
        };
        let description = text(value, "description").map(one_line).unwrap_or_default();
        let _ = writeln!(page, "| `{key}`{mark} | {} | {description} |", shown(value));
    }
}

/// A schema in few words.
fn shown(schema: &Value) -> String {
    if let Some(name) = text(schema, "$ref").and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_ascii_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", word(value));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values
            .iter()
            .map(|value| format!("`{}`", word(value)))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if let Some(variants) = ["anyOf", "oneOf"]
        .iter()
        .find_map(|key| schema.get(key))
        .and_then(Value::as_array)
    {
        return variants.iter().map(shown).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().map(word).collect::<Vec<_>>().join(" or "),
        Some(Value::String(one)) if one == "array" => format!(
            "list of {}",
            schema.get("items").map(shown).unwrap_or_default()
        ),
        Some(Value::String(one)) if one == "object" => match schema.get("additionalProperties") {
            Some(values) if values.is_object() => format!("object of {}", shown(values)),
            _ => "object".to_owned(),
        },
        Some(Value::String(one)) => match text(schema, "format") {
            Some(format @ ("date-time" | "ip")) => format!("{one} ({format})"),
            _ => one.clone(),
        },
        _ => "anything".to_owned(),
    }
}

fn text<'v>(schema: &'v Value, key: &str) -> Option<&'v str> {
    schema.get(key).and_then(Value::as_str)
}

fn word(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep_equal(file: &str, page: &str) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../docs")
            .join(file);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "docs/{file} is not what the table says; UPDATE_GOLDEN=1 rewrites it"
        );
    }

    #[test]
    fn the_page_of_the_api_is_written_from_the_table() {
        keep_equal("api.md", &reference());
    }

    #[test]
    fn the_page_of_metrics_is_written_from_their_table() {
        keep_equal("metrics.md", &crate::metrics::reference());
    }
}
