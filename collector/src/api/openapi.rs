//! The description of the API (OpenAPI 3.1).

use axum::Json;
use serde_json::{Value, json};

/// Paths with method, summary and parameters.
const PATHS: &[(&str, &str, &str, &[&str])] = &[
    (
        "/api/v1/query",
        "get",
        "Top keys with series, bands and coverage",
        &[
            "from",
            "to",
            "dimensions",
            "filter",
            "metric",
            "limit",
            "points",
            "bidirectional",
            "previous",
            "exact",
            "format",
        ],
    ),
    ("/api/v1/query", "post", "The same with a JSON body", &[]),
    (
        "/api/v1/flows",
        "get",
        "The newest stored rows that pass a filter",
        &["from", "to", "filter", "limit", "format"],
    ),
    (
        "/api/v1/live",
        "get",
        "One-second points of the last minutes",
        &["dimensions", "filter", "metric", "limit", "seconds"],
    ),
    (
        "/api/v1/live/stream",
        "get",
        "The same after each second, as server-sent events",
        &["dimensions", "filter", "metric", "limit", "seconds"],
    ),
    (
        "/api/v1/annotations",
        "get",
        "Applied configurations of routers, alerts, starts",
        &["from", "to"],
    ),
    (
        "/api/v1/silences",
        "get",
        "Silences that have not ended",
        &[],
    ),
    (
        "/api/v1/silences",
        "post",
        "Adds a silence: rule, key, minutes, comment",
        &[],
    ),
    ("/api/v1/silences/{id}", "delete", "Ends a silence", &[]),
    (
        "/api/v1/replay",
        "post",
        "The alerts that a rule would have raised: from, to, rule",
        &[],
    ),
    ("/api/v1/login", "get", "How to log in", &[]),
    (
        "/api/v1/oidc/login",
        "get",
        "Sends a browser to the identity provider",
        &[],
    ),
    (
        "/api/v1/oidc/callback",
        "get",
        "Where the identity provider sends it back to",
        &["code", "state", "error"],
    ),
    (
        "/api/v1/exporters",
        "get",
        "Exporters with counters, sampling rates and interfaces",
        &[],
    ),
    (
        "/api/v1/health",
        "get",
        "Where each datagram went, sockets and storage",
        &[],
    ),
    (
        "/api/v1/dimensions",
        "get",
        "Dimensions that queries and filters take",
        &[],
    ),
    ("/api/v1/validate", "get", "Checks a filter", &["filter"]),
    (
        "/api/v1/complete",
        "get",
        "Values of a dimension that begin with a text",
        &["column", "prefix"],
    ),
    ("/api/v1/alerts", "get", "Active and ended alerts", &[]),
    (
        "/api/v1/alerts/{id}/acknowledge",
        "post",
        "Acknowledges an active alert",
        &[],
    ),
    ("/api/v1/session", "get", "Who is logged in", &[]),
    (
        "/api/v1/login",
        "post",
        "Logs in with name and password",
        &[],
    ),
    ("/api/v1/logout", "post", "Logs out", &[]),
    ("/metrics", "get", "Metrics in Prometheus' text format", &[]),
];

/// `GET /api/v1/openapi.json`.
pub(super) async fn document() -> Json<Value> {
    let mut paths = json!({});
    for (path, method, summary, parameters) in PATHS {
        let mut all: Vec<Value> = parameters
            .iter()
            .map(|name| json!({ "name": name, "in": "query", "required": *name == "column", "schema": { "type": "string" } }))
            .collect();
        if path.contains("{id}") {
            all.push(json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }));
        }
        paths[*path][*method] = json!({
            "summary": summary,
            "parameters": all,
            "responses": { "200": { "description": "done" }, "default": { "description": "{\"error\": text}" } },
        });
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "weir-collector", "version": "1", "description": "Requests that change something need the header X-Weir: 1." },
        "components": { "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
            "session": { "type": "apiKey", "in": "cookie", "name": "weir_session" },
        } },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
    }))
}
