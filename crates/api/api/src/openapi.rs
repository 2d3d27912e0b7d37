//! The OpenAPI 3.1 document: `GET /v1/openapi.json`.
//!
//! Written from the table of endpoints and the schemas of the types; OpenAPI 3.1 schemas are those
//! of JSON Schema 2020-12, which is what `schemars` makes. A test holds replies against it.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::endpoints::ERRORS_OF_ALL;
use crate::{ENDPOINTS, Endpoint, ErrorBody, ErrorCode, Parameter, ParameterKind, Reply, Role};

const DESCRIPTION: &str = "Everything that can be asked of a running router. Over the Unix socket the peer's credentials decide \
what a client may do; over TCP a bearer token or a client certificate does. Sizes, times and rates say their units in their names.";

/// The document.
pub(crate) fn document() -> Value {
    let mut generator = generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for endpoint in ENDPOINTS {
        let operation = operation(endpoint, &mut generator);
        paths
            .entry(endpoint.path)
            .or_default()
            .insert(endpoint.method.to_ascii_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        // The empty one is the Unix socket: there is nothing to send.
        "security": [{}, { "token": [] }, { "certificate": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of the configuration (RFC 6750)." },
                "certificate": { "type": "mutualTLS", "description": "A certificate of the CA that the configuration names." },
            },
        },
    })
}

/// Makes schemas that refer to each other within the document.
pub(crate) fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings
            .transforms
            .push(Box::new(RecursiveTransform(say_the_most)));
    });
    settings.into_generator()
}

/// A format says to Rust how large a number may be; a maximum says it to everybody.
fn say_the_most(schema: &mut Schema) {
    let most: u64 = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        _ => return,
    };
    if schema.get("maximum").is_none() {
        schema.insert("maximum".to_owned(), json!(most));
    }
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let in_path = endpoint.in_path.iter().map(|it| parameter(it, "path"));
    let parameters: Vec<_> = in_path
        .chain(endpoint.query.iter().map(|it| parameter(it, "query")))
        .collect();
    let mut operation = json!({
        "operationId": endpoint.operation(),
        "summary": endpoint.sentence,
        "parameters": parameters,
        "responses": responses(endpoint, generator),
        "x-role": endpoint.role,
    });
    if endpoint.role == Role::Admin {
        operation["description"] = json!("For admins only.");
    }
    if let Some(body) = endpoint.body {
        let schema = body(generator);
        let mut content = json!({ "application/json": { "schema": schema } });
        if endpoint.method == "PATCH" {
            content["application/merge-patch+json"] = content["application/json"].clone();
        }
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

fn parameter(of: &Parameter, place: &str) -> Value {
    let mut parameter = json!({ "name": of.name, "in": place, "required": place == "path", "description": of.sentence });
    parameter["schema"] = match of.kind {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Switch => json!({ "type": "boolean" }),
        ParameterKind::Number {
            least,
            most,
            default,
        } => {
            let mut schema = json!({ "type": "integer", "minimum": least, "maximum": most });
            if let Some(default) = default {
                schema["default"] = json!(default);
            }
            schema
        }
        ParameterKind::Words(words) => {
            parameter["style"] = json!("form");
            parameter["explode"] = json!(false);
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "enum": words } })
        }
    };
    parameter
}

fn responses(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let (content_type, schema) = match endpoint.reply {
        Reply::Json(of) => ("application/json", json!(of(generator))),
        Reply::OpenMetrics => (crate::metrics::CONTENT_TYPE, json!({ "type": "string" })),
        Reply::Pcapng => (
            crate::http::PCAPNG,
            json!({ "type": "string", "format": "binary", "contentMediaType": crate::http::PCAPNG }),
        ),
        Reply::Events => {
            let event = json!(generator.subschema_for::<crate::Event>());
            // OpenAPI 3.1 has no schema for the pieces of a stream.
            (
                "text/event-stream",
                json!({ "type": "string", "contentMediaType": "text/event-stream", "x-event": event }),
            )
        }
    };
    let mut responses = Map::new();
    let done = json!({ "description": "Done.", "content": { content_type: { "schema": schema } } });
    responses.insert("200".to_owned(), done);
    let error = json!(generator.subschema_for::<ErrorBody>());
    for code in errors(endpoint) {
        let response = json!({ "description": code.sentence(), "content": { "application/json": { "schema": error } } });
        responses.insert(code.status().to_string(), response);
    }
    Value::Object(responses)
}

/// All errors that an endpoint may tell, by their status.
pub(crate) fn errors(endpoint: &Endpoint) -> Vec<ErrorCode> {
    let mut errors: Vec<_> = ERRORS_OF_ALL
        .iter()
        .chain(endpoint.errors)
        .copied()
        .collect();
    errors.sort_by_key(|code| code.status());
    errors.dedup();
    errors
}
