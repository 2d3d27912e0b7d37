//! The OpenAPI document against the table of endpoints, and replies against its schemas, judged
//! by a validator that did not write them.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{Mood, Place, TestRouter, fitting, plain};
use serde_json::{Value, json};
use weir_api::*;

fn running(mood: Mood) -> (Place, ServerHandle, Client) {
    let place = Place::new();
    let server = Server::start(&place.socket(), Arc::new(TestRouter::new(mood))).unwrap();
    let client = Client::new(place.socket());
    (place, server, client)
}

/// A schema with those that it refers to.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "components": document["components"] });
    whole
        .as_object_mut()
        .unwrap()
        .extend(schema.as_object().unwrap().clone());
    jsonschema::validator_for(&whole).unwrap()
}

fn must_fit(document: &Value, schema: &Value, value: &Value, what: &str) {
    let errors: Vec<_> = validator(document, schema)
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:?}\n{value}");
}

#[test]
fn the_document_is_what_the_table_says() {
    let (_place, _server, client) = running(Mood::Good);
    let document = client.openapi().unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = BTreeSet::new();
    let mut in_document = 0;
    for endpoint in ENDPOINTS {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_ascii_lowercase()];
        let what = format!("{} {}", endpoint.method, endpoint.path);
        assert_eq!(operation["summary"], endpoint.sentence, "{what}");
        assert_eq!(operation["x-role"], json!(endpoint.role), "{what}");
        assert!(
            operations.insert(operation["operationId"].as_str().unwrap().to_owned()),
            "{what}: its name is taken"
        );
        assert_eq!(
            operation["requestBody"].is_object(),
            endpoint.body.is_some(),
            "{what}"
        );
        let names = |place: &str| {
            let of_place = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| it["in"] == place);
            of_place
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("query"),
            endpoint.query.iter().map(|it| it.name).collect::<Vec<_>>(),
            "{what}"
        );
        let in_path = endpoint
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect::<Vec<_>>();
        assert_eq!(names("path"), in_path, "{what}");
        for code in endpoint.errors {
            assert!(
                operation["responses"][code.status().to_string()].is_object(),
                "{what} {code:?}"
            );
        }
        in_document += 1;
    }
    let all: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    assert_eq!(all, in_document);
    // References lead somewhere, and names are such as OpenAPI 3.1 allows for components.
    let text = document.to_string();
    for (at, _) in text.match_indices("\"#/components/schemas/") {
        let name = text[at + 22..].split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)),
            "{name}"
        );
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn every_reply_fits_its_schema() {
    let (place, _server, client) = running(Mood::Good);
    let document = client.openapi().unwrap();
    let mut fitted = 0;
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| matches!(endpoint.reply, Reply::Json(_)))
    {
        let (path, body) = fitting(endpoint);
        let (status, reply, _) = plain(&place.socket(), endpoint.method, &path, body);
        let responses =
            &document["paths"][endpoint.path][endpoint.method.to_ascii_lowercase()]["responses"];
        let schema = &responses[status.to_string()]["content"]["application/json"]["schema"];
        must_fit(
            &document,
            schema,
            &reply,
            &format!("{} {path}", endpoint.method),
        );
        fitted += 1;
        // Bodies that are documented are bodies that are taken.
        if endpoint.body.is_some() {
            let operation = &document["paths"][endpoint.path][endpoint.method.to_ascii_lowercase()];
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let sent = serde_json::from_str(body).unwrap();
            must_fit(
                &document,
                schema,
                &sent,
                &format!("{} {path}, its body", endpoint.method),
            );
            let odd = json!({ "nonsense": 1 });
            assert!(
                !validator(&document, schema).is_valid(&odd),
                "{path} takes {odd}"
            );
            assert_eq!(
                plain(&place.socket(), endpoint.method, &path, &odd.to_string()).0,
                400,
                "{path}"
            );
        }
    }
    assert!(fitted > 30);
    // The validator can say no.
    let schema = json!({ "$ref": "#/components/schemas/Version" });
    assert!(!validator(&document, &schema).is_valid(&json!({ "version": 1 })));
}

#[test]
fn every_error_fits_its_schema() {
    for (mood, method, path, body, expected) in [
        (Mood::Good, "GET", "/v1/interfaces?name=x", "", 404),
        (Mood::Good, "GET", "/v1/nothing", "", 404),
        (Mood::Good, "DELETE", "/v1/version", "", 405),
        (
            Mood::Good,
            "POST",
            "/v1/config/apply",
            r#"{"yaml": "bad"}"#,
            422,
        ),
        (
            Mood::Locked,
            "POST",
            "/v1/config/apply",
            r#"{"yaml": ""}"#,
            409,
        ),
        (
            Mood::Full,
            "POST",
            "/v1/config/apply",
            r#"{"yaml": ""}"#,
            507,
        ),
        (Mood::Good, "PATCH", "/v1/sflow", "{}", 400),
    ] {
        let (place, _server, client) = running(mood);
        let document = client.openapi().unwrap();
        let (status, reply, _) = plain(&place.socket(), method, path, body);
        assert_eq!(status, expected, "{method} {path}");
        must_fit(
            &document,
            &json!({ "$ref": "#/components/schemas/ErrorBody" }),
            &reply,
            path,
        );
        assert_eq!(
            ErrorCode::ALL
                .iter()
                .find(|code| json!(code) == reply["error"]["code"])
                .unwrap()
                .status(),
            expected
        );
    }
}

#[test]
fn every_event_fits_its_schema() {
    let (_place, _server, client) = running(Mood::Good);
    let document = client.openapi().unwrap();
    let schema = &document["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]["text/event-stream"]
        ["schema"]["x-event"];
    let time = Timestamp::now();
    let link = LinkEvent {
        time,
        interface: "wan".to_owned(),
        index: 1,
        link: UpDown::Up,
        speed: 10,
    };
    let log = LogEvent {
        time,
        level: EventLevel::Warn,
        target: "weir".to_owned(),
        message: "odd".to_owned(),
    };
    let config = ConfigEvent {
        time,
        what: ConfigEventKind::RolledBack,
        revision: 3,
        author: "ana".to_owned(),
        comment: String::new(),
        confirm_by: Some(time),
    };
    let counters = CountersEvent {
        time,
        interfaces: vec![],
    };
    let lost = LostEvent {
        topic: Topic::Log,
        count: 7,
    };
    for event in [
        Event::Link(link),
        Event::Log(log),
        Event::Config(config),
        Event::Counters(counters),
        Event::Lost(lost),
    ] {
        let value = json!(event);
        assert_eq!(value["event"], event.name());
        must_fit(&document, schema, &value, event.name());
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }
}
