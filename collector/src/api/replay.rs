//! Stored rows through an alert rule: what it would have raised.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, App};
use crate::config::{AlertConfig, Config};
use crate::import::Replay;
use crate::query::QueryError;
use crate::row;

/// Seconds of a replay.
const MOST_SECONDS: i64 = 86_400;
/// Rows of a replay.
const MOST_ROWS: u64 = 20_000_000;
/// Seconds that are read at once.
const STEP: i64 = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    from: i64,
    to: i64,
    rule: AlertConfig,
}

/// `POST /api/v1/replay`. A replay that the client gave up ends with it.
pub(super) async fn replay(
    State(collector): App,
    Json(request): Json<Request>,
) -> Result<Json<Value>, ApiError> {
    let refuse = |text: String| ApiError(StatusCode::BAD_REQUEST, text);
    if request.from < 0 || request.to <= request.from || request.to - request.from > MOST_SECONDS {
        return Err(refuse(format!(
            "\"from\" must be before \"to\", by at most {MOST_SECONDS} seconds"
        )));
    }
    let mut config = Config::default();
    config.alerts.insert("replay".to_owned(), request.rule);
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(refuse(problems.join("; ")));
    }
    let (mut replay, mut count) = (Replay::new(&config), 0);
    for from in (request.from..request.to).step_by(STEP as usize) {
        let to = (from + STEP).min(request.to);
        let batches = collector.engine.rows(from, to).await?;
        count += batches
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum::<u64>();
        if count > MOST_ROWS {
            return Err(refuse(format!(
                "the period has more than {MOST_ROWS} rows: choose a shorter one"
            )));
        }
        let work = move || {
            for batch in &batches {
                replay.add(row::rows(batch)?);
            }
            Ok::<_, datafusion::arrow::error::ArrowError>(replay)
        };
        replay = tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| ApiError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
            .map_err(|error| QueryError::Engine(error.into()))?;
    }
    Ok(Json(json!({ "rows": count, "alerts": replay.finish() })))
}
