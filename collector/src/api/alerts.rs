//! Alerts, rules, silences.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, App};
use crate::alerts::Silence;
use crate::receive::now;
use crate::run::lock;
use crate::users::{AuthError, Identity, Role};

fn operator(identity: &Identity) -> Result<(), ApiError> {
    if identity.role < Role::Operator {
        return Err(AuthError::Forbidden(Role::Operator).into());
    }
    Ok(())
}

pub(super) async fn list(State(collector): App) -> Json<Value> {
    let alerts = lock(&collector.alerts);
    let rules: Vec<_> = collector.config.alerts.iter().map(|(name, rule)| {
        json!({ "name": name, "filter": rule.filter, "by": rule.by, "metric": rule.metric, "above": rule.above, "window": rule.window, "baseline": rule.baseline })
    }).collect();
    Json(json!({
        "alerts": alerts.list(), "rules": rules, "deliveries": alerts.deliveries(), "silences": alerts.silences(now()),
    }))
}

pub(super) async fn acknowledge(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    operator(&identity)?;
    let id = id.strip_suffix("/acknowledge").unwrap_or(&id);
    if lock(&collector.alerts).acknowledge(id, &identity.name) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError(
            StatusCode::NOT_FOUND,
            format!("no active alert {id}"),
        ))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSilence {
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    key: BTreeMap<String, String>,
    minutes: u32,
    #[serde(default)]
    comment: String,
}

pub(super) async fn silences(State(collector): App) -> Json<Value> {
    Json(json!({ "silences": lock(&collector.alerts).silences(now()) }))
}

pub(super) async fn silence(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Json(new): Json<NewSilence>,
) -> Result<Json<Silence>, ApiError> {
    operator(&identity)?;
    let refuse = |text: &str| ApiError(StatusCode::BAD_REQUEST, text.to_owned());
    if new.minutes == 0 || new.minutes > 60 * 24 * 90 {
        return Err(refuse("minutes: must be 1 to 129600 (90 days)"));
    }
    if new.comment.len() > 1000 || new.key.len() > 8 {
        return Err(refuse(
            "a comment has at most 1000 bytes, a key at most 8 values",
        ));
    }
    let mut id = [0; 8];
    getrandom::fill(&mut id).map_err(|error| refuse(&error.to_string()))?;
    let silence = Silence {
        id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        rule: new.rule,
        key: new.key,
        until: now() + i64::from(new.minutes) * 60,
        by: identity.name,
        comment: new.comment,
    };
    let added = lock(&collector.alerts)
        .silence(silence.clone(), now())
        .map_err(AuthError::from)?;
    if !added {
        return Err(refuse("too many silences: end one first"));
    }
    Ok(Json(silence))
}

pub(super) async fn unsilence(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    operator(&identity)?;
    let ended = lock(&collector.alerts)
        .unsilence(&id)
        .map_err(AuthError::from)?;
    if ended {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError(StatusCode::NOT_FOUND, format!("no silence {id}")))
    }
}
