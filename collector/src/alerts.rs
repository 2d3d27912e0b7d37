//! Alerts: thresholds on the live window, with hysteresis and the sampling's uncertainty, sent to webhooks.
//!
//! An alert is raised when the *lower* limit of the rate's 95 % band passes the threshold, and cleared when the *upper* limit
//! stays below `clear_below` for `hold` seconds. Each rule has at most [`MOST_ACTIVE`] active alerts. Webhooks are sent by
//! one thread from a bounded queue, three tries each, and never block detection.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use serde::Serialize;

use crate::config::{AlertConfig, AlertMetric, Config};
use crate::live::Live;
use crate::query::band::band;
use crate::query::columns::{Dimension, Value, dimension};
use crate::query::filter::{self, Expr};
use crate::query::{Cell, Metric};

/// Alerts of one rule at the same time.
const MOST_ACTIVE: usize = 1000;
/// Ended alerts that are remembered.
const MOST_ENDED: usize = 500;
/// Webhook calls that wait.
const MOST_WAITING: usize = 256;

#[derive(Debug)]
struct Rule {
    name: String,
    config: AlertConfig,
    filter: Expr,
    by: Vec<&'static Dimension>,
    active: BTreeMap<Vec<Value>, Alert>,
}

/// An alert.
#[derive(Clone, Debug, Serialize)]
pub struct Alert {
    /// Unique: rule, key and begin.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// Dimension and value of what exceeded it.
    pub key: BTreeMap<String, String>,
    /// A filter that selects this traffic.
    pub filter: String,
    /// `firing` or `ended`.
    pub status: &'static str,
    /// What is measured.
    pub metric: AlertMetric,
    /// The threshold.
    pub above: f64,
    /// Rate now (or when it ended).
    pub rate: f64,
    /// 95 % band of the rate; equal limits when it is exact.
    pub band: [f64; 2],
    /// Largest rate.
    pub peak: f64,
    /// When it began, seconds since 1970.
    pub began: i64,
    /// When it ended.
    pub ended: Option<i64>,
    /// Who acknowledged it.
    pub acknowledged: Option<String>,
    /// Since when the rate is below the clearing limit.
    #[serde(skip)]
    below_since: Option<i64>,
}

/// All rules and their alerts.
#[derive(Debug)]
pub struct Alerts {
    rules: Vec<Rule>,
    ended: Vec<Alert>,
    webhooks: Option<SyncSender<String>>,
    /// Webhook calls that were dropped because too many waited.
    pub dropped: u64,
}

impl Alerts {
    /// The rules of a configuration, which was checked; starts the thread that calls webhooks.
    #[must_use]
    pub fn new(config: &Config) -> Alerts {
        let rules = config.alerts.iter().map(|(name, alert)| Rule {
            name: name.clone(),
            filter: filter::parse(&alert.filter).unwrap_or(Expr::All),
            by: alert.by.iter().filter_map(|name| dimension(name)).collect(),
            config: alert.clone(),
            active: BTreeMap::new(),
        });
        let webhooks = (!config.webhooks.is_empty()).then(|| {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let urls = config.webhooks.clone();
            let spawned = std::thread::Builder::new().name("webhooks".to_owned()).spawn(move || call(&urls, &receiver));
            if let Err(error) = spawned {
                tracing::error!(%error, "the webhook thread cannot be started: alerts are not sent");
            }
            sender
        });
        Alerts {
            rules: rules.collect(),
            ended: Vec::new(),
            webhooks,
            dropped: 0,
        }
    }

    /// Compares the live window with all rules; to be called each second.
    pub fn evaluate(&mut self, live: &Live, now: i64) {
        let mut events = Vec::new();
        for rule in &mut self.rules {
            let ended = rule.evaluate(live, now, &mut events);
            self.ended.extend(ended);
        }
        let excess = self.ended.len().saturating_sub(MOST_ENDED);
        self.ended.drain(..excess);
        for event in events {
            tracing::warn!(
                rule = event.rule,
                status = event.status,
                rate = event.rate,
                filter = event.filter,
                "alert"
            );
            if let Some(webhooks) = &self.webhooks
                && let Ok(json) = serde_json::to_string(&event)
                && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
                    webhooks.try_send(json)
            {
                self.dropped += 1;
            }
        }
    }

    /// Active alerts, then ended ones, newest first.
    #[must_use]
    pub fn list(&self) -> Vec<Alert> {
        let mut all: Vec<Alert> = self
            .rules
            .iter()
            .flat_map(|rule| rule.active.values())
            .cloned()
            .collect();
        all.sort_by_key(|alert| std::cmp::Reverse(alert.began));
        all.extend(self.ended.iter().rev().cloned());
        all
    }

    /// Marks an active alert as seen by somebody; `false` when there is no such alert.
    pub fn acknowledge(&mut self, id: &str, by: &str) -> bool {
        let alert = self
            .rules
            .iter_mut()
            .flat_map(|rule| rule.active.values_mut())
            .find(|alert| alert.id == id);
        alert
            .map(|alert| alert.acknowledged = Some(by.to_owned()))
            .is_some()
    }
}

impl Rule {
    fn evaluate(&mut self, live: &Live, now: i64, events: &mut Vec<Alert>) -> Vec<Alert> {
        let metric = match self.config.metric {
            AlertMetric::Bits => Metric::Bits,
            AlertMetric::Packets => Metric::Packets,
            AlertMetric::Discards => Metric::Discards,
        };
        let window = i64::from(self.config.window);
        let sums = live.sums(now - window, now, &self.filter, &self.by, metric);
        let mut rates: BTreeMap<Vec<Value>, (f64, [f64; 2])> = BTreeMap::new();
        for (key, seconds) in sums {
            let mut all = Cell::default();
            seconds.values().for_each(|cell| all.add(cell));
            let scale = metric.factor() / window as f64;
            let [low, high] =
                band(all.value, all.variance, all.n).unwrap_or([all.value, all.value]);
            rates.insert(key, (all.value * scale, [low * scale, high * scale]));
        }
        for (key, (rate, limits)) in &rates {
            if limits[0] > self.config.above
                && !self.active.contains_key(key)
                && self.active.len() < MOST_ACTIVE
            {
                let alert = self.raise(key, *rate, *limits, now);
                events.push(alert.clone());
                self.active.insert(key.clone(), alert);
            }
        }
        let clear = self.config.clear_below.unwrap_or(0.7 * self.config.above);
        let hold = i64::from(self.config.hold);
        let mut ended = Vec::new();
        self.active.retain(|key, alert| {
            (alert.rate, alert.band) = rates.get(key).copied().unwrap_or((0.0, [0.0, 0.0]));
            alert.peak = alert.peak.max(alert.rate);
            if alert.band[1] >= clear {
                alert.below_since = None;
                return true;
            }
            if now - *alert.below_since.get_or_insert(now) < hold {
                return true;
            }
            (alert.status, alert.ended) = ("ended", Some(now));
            events.push(alert.clone());
            ended.push(alert.clone());
            false
        });
        ended
    }

    fn raise(&self, key: &[Value], rate: f64, band: [f64; 2], now: i64) -> Alert {
        let pairs = || self.by.iter().zip(key);
        let mut parts: Vec<String> = pairs()
            .map(|(dimension, value)| {
                format!("{} = {}", dimension.name, value.literal(dimension.kind))
            })
            .collect();
        if !self.config.filter.is_empty() {
            parts.insert(0, format!("({})", self.config.filter));
        }
        let values: Vec<String> = pairs()
            .map(|(dimension, value)| value.show(dimension.kind))
            .collect();
        Alert {
            id: format!("{}/{}/{now}", self.name, values.join(",")),
            rule: self.name.clone(),
            key: pairs()
                .map(|(dimension, value)| (dimension.name.to_owned(), value.show(dimension.kind)))
                .collect(),
            filter: parts.join(" AND "),
            status: "firing",
            metric: self.config.metric,
            above: self.config.above,
            rate,
            band,
            peak: rate,
            began: now,
            ended: None,
            acknowledged: None,
            below_since: None,
        }
    }
}

/// Sends each event to each webhook, three tries with 1, 5 and 25 seconds between them; redirects are not followed.
fn call(urls: &[String], events: &Receiver<String>) {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .build();
    let agent = ureq::Agent::new_with_config(config);
    while let Ok(event) = events.recv() {
        for url in urls {
            for pause in [1, 5, 25] {
                match agent
                    .post(url)
                    .header("content-type", "application/json")
                    .send(event.as_str())
                {
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(webhook = url, %error, "webhook failed; it is tried three times");
                        std::thread::sleep(Duration::from_secs(pause));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Row, Text};

    fn flood(live: &mut Live, time: i64, samples: u64, rate: u32) {
        let text: Text = "x".into();
        let rows: Vec<Row> = (0..samples)
            .map(|_| {
                let mut row = Row::new(time, text.clone(), text.clone(), &text);
                row.proto = 17;
                row.measure(1, 100, 100, rate);
                row
            })
            .collect();
        live.add(&rows);
    }

    #[test]
    fn an_alert_is_raised_once_and_ends_after_the_hold_time() {
        let text = "alerts:\n  flood: {filter: 'Proto = udp', by: [Proto], metric: packets, above: 10000, hold: 5}\n";
        let config = Config::parse(std::path::Path::new("c"), text).expect("good");
        let (mut alerts, mut live) = (Alerts::new(&config), Live::default());
        // 8 samples a second at 1:1000 are 8,000 packets a second: below.
        for time in 100..103 {
            flood(&mut live, time, 8, 1000);
        }
        alerts.evaluate(&live, 103);
        assert!(alerts.list().is_empty());
        // 12,000 a second is above, but 36 samples cannot prove it.
        for time in 103..106 {
            flood(&mut live, time, 12, 1000);
        }
        alerts.evaluate(&live, 106);
        assert!(alerts.list().is_empty());
        for time in 106..109 {
            flood(&mut live, time, 100, 1000);
        }
        alerts.evaluate(&live, 109);
        alerts.evaluate(&live, 109);
        let list = alerts.list();
        assert_eq!(list.len(), 1);
        assert_eq!(
            (list[0].status, list[0].filter.as_str()),
            ("firing", "(Proto = udp) AND Proto = 17")
        );
        assert!(list[0].band[0] > 10_000.0 && (99_000.0..101_000.0).contains(&list[0].rate));
        assert!(alerts.acknowledge(&list[0].id.clone(), "me"));
        for time in 112..116 {
            alerts.evaluate(&live, time);
            assert_eq!(alerts.list()[0].status, "firing", "{time}");
        }
        alerts.evaluate(&live, 117);
        let list = alerts.list();
        assert_eq!(
            (list.len(), list[0].status, list[0].ended),
            (1, "ended", Some(117))
        );
    }
}
