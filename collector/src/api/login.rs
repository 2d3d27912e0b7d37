//! Login by password and by OpenID Connect, and logout.

use axum::Json;
use axum::extract::{Query as Parameters, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::Deserialize;

use super::{ApiError, App, cookie};
use crate::oidc::{Oidc, OidcError};
use crate::receive::now;

#[derive(Deserialize)]
pub(super) struct Login {
    name: String,
    password: String,
}

impl From<OidcError> for ApiError {
    fn from(error: OidcError) -> ApiError {
        let status = match &error {
            OidcError::Provider(_) => StatusCode::BAD_GATEWAY,
            OidcError::State | OidcError::Token(_) => StatusCode::UNAUTHORIZED,
            OidcError::NoRole(_) => StatusCode::FORBIDDEN,
            OidcError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        };
        ApiError(status, error.to_string())
    }
}

fn session_cookie(id: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("weir_session={id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200{secure}")
}

/// Runs what waits for others, or takes long on purpose, not on the threads that serve.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ApiError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

pub(super) async fn login(
    State(collector): App,
    Json(login): Json<Login>,
) -> Result<Response, ApiError> {
    let (id, identity) =
        blocking(move || collector.users.login(&login.name, &login.password, now())).await??;
    let cookie = session_cookie(&id, false);
    Ok(([(header::SET_COOKIE, cookie)], Json(identity)).into_response())
}

pub(super) async fn logout(State(collector): App, headers: HeaderMap) -> Response {
    if let Some(id) = cookie(&headers, "weir_session") {
        collector.users.logout(id);
    }
    (
        [(
            header::SET_COOKIE,
            "weir_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0",
        )],
        StatusCode::NO_CONTENT,
    )
        .into_response()
}

fn none() -> ApiError {
    ApiError(
        StatusCode::NOT_FOUND,
        "OpenID Connect is not configured".to_owned(),
    )
}

/// How somebody may log in, for the page that asks for it.
pub(super) async fn methods(State(collector): App) -> Json<serde_json::Value> {
    Json(serde_json::json!({ "password": true, "oidc": collector.oidc.is_some() }))
}

/// Sends the browser to the identity provider.
pub(super) async fn begin(State(collector): App) -> Result<Response, ApiError> {
    if collector.oidc.is_none() {
        return Err(none());
    }
    let begun = blocking(move || collector.oidc.as_ref().map(|oidc| oidc.begin(now()))).await?;
    let begun = begun.ok_or_else(none)??;
    let cookie = format!(
        "weir_oidc={}; HttpOnly; SameSite=Lax; Path=/api/v1/oidc; Max-Age=600",
        begun.state
    );
    Ok((
        StatusCode::SEE_OTHER,
        [(header::SET_COOKIE, cookie), (header::LOCATION, begun.url)],
    )
        .into_response())
}

#[derive(Deserialize)]
pub(super) struct Callback {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    error: String,
}

/// The browser is back from the identity provider.
pub(super) async fn end(
    State(collector): App,
    headers: HeaderMap,
    Parameters(callback): Parameters<Callback>,
) -> Result<Response, ApiError> {
    if collector.oidc.is_none() {
        return Err(none());
    }
    if !callback.error.is_empty() {
        let error: String = callback.error.chars().take(100).collect();
        return Err(OidcError::Provider(error).into());
    }
    let state = cookie(&headers, "weir_oidc").map(str::to_owned);
    let secure = collector
        .config
        .oidc
        .as_ref()
        .is_some_and(|oidc| oidc.redirect.starts_with("https://"));
    let opened = blocking(move || -> Result<String, ApiError> {
        let end = |oidc: &Oidc| oidc.end(&callback.code, &callback.state, state.as_deref(), now());
        let identity = collector.oidc.as_ref().map(end).ok_or_else(none)??;
        Ok(collector.users.open(identity, now())?)
    });
    let id = opened.await??;
    let cookies = AppendHeaders([
        (header::SET_COOKIE, session_cookie(&id, secure)),
        (
            header::SET_COOKIE,
            "weir_oidc=; HttpOnly; SameSite=Lax; Path=/api/v1/oidc; Max-Age=0".to_owned(),
        ),
    ]);
    Ok((StatusCode::SEE_OTHER, cookies, [(header::LOCATION, "/")]).into_response())
}
