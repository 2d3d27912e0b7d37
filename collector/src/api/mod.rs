//! HTTP: API version 1, metrics, and the console's files.
//!
//! Every answer carries security headers. Requests that change something need the header `X-Weir: 1`, which another site's
//! page cannot send, beside the session or token. Errors are `{"error": "..."}` with a fitting status.

mod alerts;
mod annotations;
mod assets;
mod live;
mod login;
mod metrics;
mod openapi;
mod replay;
mod views;

pub(crate) use annotations::seconds;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, DefaultBodyLimit, Query as Parameters, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::json;

use crate::query::columns::DIMENSIONS;
use crate::query::{Metric, Query, QueryError, filter};
use crate::receive::now;
use crate::run::Collector;
use crate::users::{AuthError, Credentials, Identity};

type App = State<Arc<Collector>>;

/// An error as the API reports it.
#[derive(Debug)]
struct ApiError(StatusCode, String);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> ApiError {
        let status = match &error {
            QueryError::Filter(_) | QueryError::Invalid(_) => StatusCode::BAD_REQUEST,
            QueryError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            QueryError::Engine(_) | QueryError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError(status, error.to_string())
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> ApiError {
        let status = match &error {
            AuthError::NotLoggedIn | AuthError::Wrong => StatusCode::UNAUTHORIZED,
            AuthError::TooMany => StatusCode::TOO_MANY_REQUESTS,
            AuthError::Forbidden(_) => StatusCode::FORBIDDEN,
            AuthError::Invalid(_) => StatusCode::BAD_REQUEST,
            AuthError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError(status, error.to_string())
    }
}

/// The whole service.
pub fn router(collector: Arc<Collector>) -> Router {
    // What is of the collector as a whole is not shown to a tenant.
    let whole = Router::new()
        .route("/api/v1/health", get(views::health))
        .route("/api/v1/annotations", get(annotations::list))
        .route("/api/v1/alerts", get(alerts::list))
        .route("/api/v1/alerts/{*id}", post(alerts::acknowledge))
        .route(
            "/api/v1/silences",
            get(alerts::silences).post(alerts::silence),
        )
        .route("/api/v1/silences/{id}", delete(alerts::unsilence))
        .route("/api/v1/replay", post(replay::replay))
        .route("/metrics", get(metrics::metrics))
        .route_layer(middleware::from_fn(refuse_tenants));
    let protected = Router::new()
        .route("/api/v1/query", get(query_get).post(query_post))
        .route("/api/v1/flows", get(flows))
        .route("/api/v1/live", get(live::once))
        .route("/api/v1/live/stream", get(live::stream))
        .route("/api/v1/exporters", get(views::exporters))
        .route("/api/v1/dimensions", get(dimensions))
        .route("/api/v1/validate", get(validate))
        .route("/api/v1/complete", get(complete))
        .route("/api/v1/session", get(session))
        .merge(whole)
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&collector),
            authorize,
        ));
    Router::new()
        .merge(protected)
        .route("/api/v1/login", get(login::methods).post(login::login))
        .route("/api/v1/logout", post(login::logout))
        .route("/api/v1/oidc/login", get(login::begin))
        .route("/api/v1/oidc/callback", get(login::end))
        .route("/api/v1/openapi.json", get(openapi::document))
        .fallback(assets::file)
        .layer(middleware::from_fn(headers))
        .layer(DefaultBodyLimit::max(64 << 10))
        .with_state(collector)
}

/// Security headers, and the check of requests that change something.
async fn headers(request: Request, next: Next) -> Response {
    let changes = !matches!(request.method().as_str(), "GET" | "HEAD");
    let mut response = if changes && request.headers().get("x-weir").is_none() {
        ApiError(
            StatusCode::FORBIDDEN,
            "send the header X-Weir: 1".to_owned(),
        )
        .into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    cookies
        .split(';')
        .find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

async fn refuse_tenants(
    Extension(identity): Extension<Identity>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if identity.tenant.is_some() {
        return Err(ApiError(
            StatusCode::FORBIDDEN,
            "this is not shown to a tenant".to_owned(),
        ));
    }
    Ok(next.run(request).await)
}

async fn authorize(
    State(collector): App,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let token = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let host = text(header::HOST).unwrap_or("");
    let credentials = Credentials {
        session: cookie(headers, "weir_session"),
        token,
        peer: peer.ip(),
        host,
        headers,
    };
    let identity = collector.users.identify(&credentials, now())?;
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

async fn session(Extension(identity): Extension<Identity>) -> Json<Identity> {
    Json(identity)
}

/// A query in the address line: lists are separated by commas; times may be relative (`-24h`, `now`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryLine {
    #[serde(default = "day_ago")]
    from: String,
    #[serde(default = "just_now")]
    to: String,
    #[serde(default)]
    dimensions: String,
    #[serde(default)]
    filter: String,
    #[serde(default)]
    metric: Metric,
    limit: Option<u32>,
    points: Option<u32>,
    #[serde(default)]
    bidirectional: bool,
    #[serde(default)]
    previous: bool,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    format: String,
}

fn day_ago() -> String {
    "-24h".to_owned()
}

fn just_now() -> String {
    "now".to_owned()
}

/// Seconds since 1970 of `now`, `-24h`, `-15m`, or a number of seconds.
fn moment(text: &str, now: i64) -> Result<i64, ApiError> {
    let refuse = || {
        ApiError(
            StatusCode::BAD_REQUEST,
            format!("{text:?} is no time: use seconds since 1970, \"now\" or \"-24h\""),
        )
    };
    if text == "now" {
        return Ok(now);
    }
    if let Some(back) = text.strip_prefix('-') {
        let unit = match back.chars().last() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            _ => return Err(refuse()),
        };
        let count: i64 = back
            .get(..back.len() - 1)
            .and_then(|count| count.parse().ok())
            .ok_or_else(refuse)?;
        return Ok(now - count.checked_mul(unit).ok_or_else(refuse)?);
    }
    text.parse().map_err(|_| refuse())
}

async fn query_get(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Parameters(line): Parameters<QueryLine>,
) -> Result<Response, ApiError> {
    let time = now();
    let query = Query {
        from: moment(&line.from, time)?,
        to: moment(&line.to, time)?,
        dimensions: line
            .dimensions
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        filter: line.filter,
        metric: line.metric,
        limit: line.limit.unwrap_or(10),
        points: line.points.unwrap_or(200),
        bidirectional: line.bidirectional,
        previous: line.previous,
        exact: line.exact,
    };
    let answer = collector.engine.answer(&query, &identity.scope()).await?;
    let download = |kind: &'static str, name: &'static str| {
        [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_DISPOSITION, name),
        ]
    };
    match line.format.as_str() {
        "" | "json" => Ok(Json(answer).into_response()),
        "csv" => {
            let kind = download(
                "text/csv; charset=utf-8",
                "attachment; filename=\"flows.csv\"",
            );
            Ok((kind, views::csv(&answer)).into_response())
        }
        "parquet" => {
            let kind = download(
                "application/vnd.apache.parquet",
                "attachment; filename=\"flows.parquet\"",
            );
            let bytes = crate::query::export::parquet(&answer)?;
            Ok((kind, bytes).into_response())
        }
        other => Err(ApiError(
            StatusCode::BAD_REQUEST,
            format!("unknown format {other}: use json, csv or parquet"),
        )),
    }
}

async fn query_post(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Json(query): Json<Query>,
) -> Result<Response, ApiError> {
    let answer = collector.engine.answer(&query, &identity.scope()).await?;
    Ok(Json(answer).into_response())
}

#[derive(Deserialize)]
struct FlowsLine {
    #[serde(default = "day_ago")]
    from: String,
    #[serde(default = "just_now")]
    to: String,
    #[serde(default)]
    filter: String,
    limit: Option<u32>,
    #[serde(default)]
    format: String,
}

async fn flows(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Parameters(line): Parameters<FlowsLine>,
) -> Result<Response, ApiError> {
    let time = now();
    let (from, to) = (moment(&line.from, time)?, moment(&line.to, time)?);
    let (limit, scope) = (line.limit.unwrap_or(100), identity.scope());
    if line.format == "parquet" {
        let batches = collector
            .engine
            .flow_batches(from, to, &line.filter, limit.min(1_000_000), &scope)
            .await?;
        let kind = [(header::CONTENT_TYPE, "application/vnd.apache.parquet")];
        let bytes = crate::query::export::batches(&batches)?;
        return Ok((kind, bytes).into_response());
    }
    let rows = collector
        .engine
        .flows(from, to, &line.filter, limit, &scope)
        .await?;
    Ok(Json(json!({ "rows": rows })).into_response())
}

async fn dimensions() -> Json<serde_json::Value> {
    let all = DIMENSIONS.iter().map(|d| json!({ "name": d.name, "help": d.help, "kind": format!("{:?}", d.kind), "swap": d.swap, "totals": d.in_totals }));
    Json(all.collect())
}

#[derive(Deserialize)]
struct FilterLine {
    #[serde(default)]
    filter: String,
}

async fn validate(Parameters(line): Parameters<FilterLine>) -> Json<serde_json::Value> {
    Json(match filter::parse(&line.filter) {
        Ok(expr) => json!({ "valid": true, "sql": expr.sql() }),
        Err(error) => json!({ "valid": false, "at": error.at, "message": error.message }),
    })
}

#[derive(Deserialize)]
struct CompleteLine {
    column: String,
    #[serde(default)]
    prefix: String,
}

async fn complete(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Parameters(line): Parameters<CompleteLine>,
) -> Result<Response, ApiError> {
    let time = now();
    let values = collector
        .engine
        .complete(
            &line.column,
            &line.prefix,
            time - 86_400,
            time,
            &identity.scope(),
        )
        .await?;
    Ok(Json(json!({ "values": values })).into_response())
}
