//! Live queries: one answer, or a stream of them (server-sent events) until the client goes away.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query as Parameters, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use super::{ApiError, App};
use crate::live::LiveAnswer;
use crate::query::columns::{Dimension, dimension};
use crate::query::filter::{self, Expr};
use crate::query::{Metric, QueryError};
use crate::receive::now;
use crate::run::{Collector, lock};
use crate::users::Identity;

/// Milliseconds of a second that are over until its rows are surely in the window: twice the storing thread's pause.
const BEHIND: u64 = 60;

#[derive(Deserialize)]
pub(super) struct LiveLine {
    #[serde(default)]
    dimensions: String,
    #[serde(default)]
    filter: String,
    #[serde(default)]
    metric: Metric,
    limit: Option<usize>,
    seconds: Option<i64>,
}

/// A live query that was checked.
struct Subscription {
    by: Vec<&'static Dimension>,
    filter: Expr,
    metric: Metric,
    limit: usize,
    seconds: i64,
}

impl Subscription {
    fn new(line: &LiveLine, identity: &Identity) -> Result<Subscription, ApiError> {
        let filter = filter::parse(&line.filter).map_err(QueryError::from)?;
        let mut by = Vec::new();
        for name in line.dimensions.split(',').filter(|name| !name.is_empty()) {
            by.push(dimension(name).ok_or_else(|| {
                ApiError(StatusCode::BAD_REQUEST, format!("unknown dimension {name}"))
            })?);
        }
        Ok(Subscription {
            by,
            filter: identity.scope().limit(filter),
            metric: line.metric,
            limit: line.limit.unwrap_or(10).min(100),
            seconds: line.seconds.unwrap_or(60),
        })
    }

    /// Scans the window; not on the threads that serve.
    async fn answer(self: &Arc<Self>, collector: &Arc<Collector>) -> Result<LiveAnswer, ApiError> {
        let (own, collector) = (Arc::clone(self), Arc::clone(collector));
        let scan = move || {
            let live = lock(&collector.live);
            live.answer(
                now(),
                own.seconds,
                &own.filter,
                &own.by,
                own.metric,
                own.limit,
            )
        };
        tokio::task::spawn_blocking(scan)
            .await
            .map_err(|error| ApiError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }
}

/// `GET /api/v1/live`.
pub(super) async fn once(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Parameters(line): Parameters<LiveLine>,
) -> Result<Response, ApiError> {
    let subscription = Arc::new(Subscription::new(&line, &identity)?);
    Ok(Json(subscription.answer(&collector).await?).into_response())
}

struct Following {
    collector: Arc<Collector>,
    subscription: Arc<Subscription>,
    first: bool,
    _permit: OwnedSemaphorePermit,
}

/// `GET /api/v1/live/stream`: an answer at once, then one shortly after the end of each second.
pub(super) async fn stream(
    State(collector): App,
    Extension(identity): Extension<Identity>,
    Parameters(line): Parameters<LiveLine>,
) -> Result<Response, ApiError> {
    let subscription = Arc::new(Subscription::new(&line, &identity)?);
    let permit = Arc::clone(&collector.subscriptions)
        .try_acquire_owned()
        .map_err(|_| {
            ApiError(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many live queries: close one".to_owned(),
            )
        })?;
    let following = Following {
        collector,
        subscription,
        first: true,
        _permit: permit,
    };
    let events = stream::unfold(following, |mut following| async move {
        if !std::mem::take(&mut following.first) {
            let since = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| u64::from(since.subsec_millis()));
            let pause = (1000 + BEHIND).saturating_sub(since);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let answer = following
            .subscription
            .answer(&following.collector)
            .await
            .ok()?;
        let event = Event::default().json_data(&answer).ok()?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}
