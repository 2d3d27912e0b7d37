//! What happened when: applied configurations of routers, alerts, starts of the collector.

use axum::Json;
use axum::extract::{Query as Parameters, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, App, day_ago, just_now, moment};
use crate::receive::now;
use crate::run::lock;

#[derive(Deserialize)]
pub(super) struct Period {
    #[serde(default = "day_ago")]
    from: String,
    #[serde(default = "just_now")]
    to: String,
}

/// Seconds since 1970 of a time as RFC 3339 writes it, in UTC.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !text.ends_with('Z') || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of the civil calendar, with years that begin in March.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// `GET /api/v1/annotations`.
pub(super) async fn list(
    State(collector): App,
    Parameters(period): Parameters<Period>,
) -> Result<Json<Value>, ApiError> {
    let time = now();
    let (from, to) = (moment(&period.from, time)?, moment(&period.to, time)?);
    let mut all: Vec<(i64, Value)> = Vec::new();
    let names = |address: &str| lock(&collector.shared).enricher.name(address);
    for (address, router) in lock(&collector.routers).iter() {
        let name = names(&crate::account::exporter_name(*address));
        for revision in &router.revisions {
            if let Some(at) = seconds(&revision.time) {
                let text = format!(
                    "{name}: revision {} applied by {}",
                    revision.revision, revision.author
                );
                let comment = if revision.comment.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", revision.comment)
                };
                all.push((
                    at,
                    json!({ "time": at, "kind": "revision", "text": format!("{text}{comment}") }),
                ));
            }
        }
    }
    for alert in lock(&collector.alerts).list() {
        let key: Vec<&str> = alert.key.values().map(String::as_str).collect();
        let text = format!("{} {}", alert.rule, key.join(", "));
        all.push((
            alert.began,
            json!({ "time": alert.began, "kind": "alert", "text": format!("alert: {text}") }),
        ));
        if let Some(ended) = alert.ended {
            all.push((
                ended,
                json!({ "time": ended, "kind": "ended", "text": format!("alert ended: {text}") }),
            ));
        }
    }
    all.push((
        collector.started,
        json!({ "time": collector.started, "kind": "start", "text": "the collector started" }),
    ));
    all.retain(|(at, _)| (from..to).contains(at));
    all.sort_by_key(|(at, _)| *at);
    let all: Vec<Value> = all.into_iter().map(|(_, value)| value).collect();
    Ok(Json(json!({ "annotations": all })))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:30:15.25Z", Some(951_827_415)),
            ("2026-11-26T10:11:12Z", Some(1_795_687_872)),
            ("2026-11-26", None),
            ("2026-13-26T10:11:12Z", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
