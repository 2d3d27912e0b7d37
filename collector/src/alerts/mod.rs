//! Alerts: thresholds on the live window, with hysteresis and the sampling's uncertainty, delivered by [`notify`].
//!
//! An alert is raised when the *lower* limit of the rate's 95 % band passes the threshold, and cleared when the *upper* limit
//! stays below `clear_below` for `hold` seconds. With a [`baseline`] the threshold of a key is never below what is usual at
//! this hour of the week. Each rule has at most [`MOST_ACTIVE`] active alerts. A silenced alert is raised and shown, and
//! delivered when the silence ends before it does.

pub mod baseline;
pub mod notify;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{AlertConfig, AlertMetric, Config};
use crate::live::Live;
use crate::query::band::band;
use crate::query::columns::{Dimension, Value, dimension};
use crate::query::filter::{self, Expr};
use crate::query::{Cell, Metric};
use crate::store::state::{SILENCES, VALUES};
use crate::store::{Store, StoreError};
use baseline::Baseline;
use notify::Notifier;

/// Alerts of one rule at the same time.
const MOST_ACTIVE: usize = 1000;
/// Ended alerts that are remembered.
const MOST_ENDED: usize = 500;
/// Silences at the same time.
const MOST_SILENCES: usize = 1000;
/// The value under which baselines are stored.
const BASELINES: &str = "baselines";

#[derive(Debug)]
struct Rule {
    name: String,
    config: AlertConfig,
    filter: Expr,
    by: Vec<&'static Dimension>,
    active: BTreeMap<Vec<Value>, Alert>,
    baseline: Baseline,
    /// The minute that was learnt last.
    learnt: i64,
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
    /// Whether a silence keeps it from being delivered.
    pub silenced: bool,
    /// Since when the rate is below the clearing limit.
    #[serde(skip)]
    below_since: Option<i64>,
    /// Whether its begin was delivered.
    #[serde(skip)]
    notified: bool,
}

/// Keeps alerts from being delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Unique.
    pub id: String,
    /// The rule; every rule without one.
    #[serde(default)]
    pub rule: Option<String>,
    /// Values that the alert's key must have; any key without them.
    #[serde(default)]
    pub key: BTreeMap<String, String>,
    /// When it ends, seconds since 1970.
    pub until: i64,
    /// Who made it.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub comment: String,
}

impl Silence {
    fn holds(&self, alert: &Alert, now: i64) -> bool {
        self.until > now
            && self.rule.as_ref().is_none_or(|rule| *rule == alert.rule)
            && self
                .key
                .iter()
                .all(|(name, value)| alert.key.get(name) == Some(value))
    }
}

/// All rules and their alerts.
#[derive(Debug)]
pub struct Alerts {
    store: Option<Arc<Store>>,
    rules: Vec<Rule>,
    ended: Vec<Alert>,
    silences: BTreeMap<String, Silence>,
    notifier: Notifier,
}

impl Alerts {
    /// The rules of a configuration, which was checked; starts the threads that deliver.
    #[must_use]
    pub fn new(config: &Config) -> Alerts {
        let rules = config.alerts.iter().map(|(name, alert)| Rule {
            name: name.clone(),
            filter: filter::parse(&alert.filter).unwrap_or(Expr::All),
            by: alert.by.iter().filter_map(|name| dimension(name)).collect(),
            config: alert.clone(),
            active: BTreeMap::new(),
            baseline: Baseline::default(),
            learnt: 0,
        });
        Alerts {
            store: None,
            rules: rules.collect(),
            ended: Vec::new(),
            silences: BTreeMap::new(),
            notifier: Notifier::new(config),
        }
    }

    /// The same with silences and baselines of a store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn with_store(config: &Config, store: &Arc<Store>) -> Result<Alerts, StoreError> {
        let mut alerts = Alerts::new(config);
        let mut baselines: BTreeMap<String, Baseline> =
            store.db.get(VALUES, BASELINES)?.unwrap_or_default();
        for rule in &mut alerts.rules {
            rule.baseline = baselines.remove(&rule.name).unwrap_or_default();
        }
        alerts.silences = store.db.all(SILENCES)?.into_iter().collect();
        alerts.store = Some(Arc::clone(store));
        Ok(alerts)
    }

    /// What has to be stored of baselines.
    #[must_use]
    pub fn baselines(&self) -> BTreeMap<&str, &Baseline> {
        let learning = self
            .rules
            .iter()
            .filter(|rule| rule.config.baseline.is_some());
        learning
            .map(|rule| (rule.name.as_str(), &rule.baseline))
            .collect()
    }

    /// Stores baselines.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn save(&self) -> Result<(), StoreError> {
        let baselines = self.baselines();
        match &self.store {
            Some(store) if !baselines.is_empty() => store
                .db
                .put(VALUES, &[(BASELINES.to_owned(), Some(baselines))]),
            _ => Ok(()),
        }
    }

    /// Compares the live window with all rules; to be called each second.
    pub fn evaluate(&mut self, live: &Live, now: i64) {
        let mut events = Vec::new();
        for rule in &mut self.rules {
            let ended = rule.evaluate(live, now);
            for alert in ended {
                if alert.notified {
                    events.push(alert.clone());
                }
                self.ended.push(alert);
            }
            for alert in rule.active.values_mut() {
                alert.silenced = self
                    .silences
                    .values()
                    .any(|silence| silence.holds(alert, now));
                if !alert.silenced && !alert.notified {
                    alert.notified = true;
                    events.push(alert.clone());
                }
            }
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
            self.notifier.send(&event);
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

    /// Counters of deliveries.
    #[must_use]
    pub fn deliveries(&self) -> Vec<notify::Status> {
        self.notifier.status()
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

    /// Silences that have not ended.
    #[must_use]
    pub fn silences(&self, now: i64) -> Vec<Silence> {
        let lasting = self.silences.values().filter(|silence| silence.until > now);
        lasting.cloned().collect()
    }

    /// Adds a silence; `false` when there are too many.
    ///
    /// # Errors
    /// When the store cannot be written: then there is no silence.
    pub fn silence(&mut self, silence: Silence, now: i64) -> Result<bool, StoreError> {
        let over: Vec<String> = self
            .silences
            .values()
            .filter(|known| known.until <= now)
            .map(|known| known.id.clone())
            .collect();
        for id in over {
            self.unsilence(&id)?;
        }
        if self.silences.len() >= MOST_SILENCES {
            return Ok(false);
        }
        self.put_silence(&silence.id, Some(&silence))?;
        self.silences.insert(silence.id.clone(), silence);
        Ok(true)
    }

    /// Ends a silence; `false` when there is none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn unsilence(&mut self, id: &str) -> Result<bool, StoreError> {
        self.put_silence(id, None)?;
        Ok(self.silences.remove(id).is_some())
    }

    fn put_silence(&self, id: &str, silence: Option<&Silence>) -> Result<(), StoreError> {
        match &self.store {
            Some(store) => store.db.put(SILENCES, &[(id.to_owned(), silence)]),
            None => Ok(()),
        }
    }
}

impl Rule {
    fn evaluate(&mut self, live: &Live, now: i64) -> Vec<Alert> {
        let metric = match self.config.metric {
            AlertMetric::Bits => Metric::Bits,
            AlertMetric::Packets => Metric::Packets,
            AlertMetric::Discards => Metric::Discards,
        };
        let rates = self.rates(live, now - i64::from(self.config.window), now, metric);
        let room = MOST_ACTIVE.saturating_sub(self.active.len());
        let new: Vec<(Vec<Value>, Alert)> = rates
            .iter()
            .filter(|(key, (_, limits))| {
                !self.active.contains_key(*key) && limits[0] > self.threshold(key, now)
            })
            .map(|(key, (rate, limits))| (key.clone(), self.raise(key, *rate, *limits, now)))
            .take(room)
            .collect();
        self.active.extend(new);
        let hold = i64::from(self.config.hold);
        let clear = self.config.clear_below;
        let mut ended = Vec::new();
        self.active.retain(|key, alert| {
            (alert.rate, alert.band) = rates.get(key).copied().unwrap_or((0.0, [0.0, 0.0]));
            alert.peak = alert.peak.max(alert.rate);
            if alert.band[1] >= clear.unwrap_or(0.7 * alert.above) {
                alert.below_since = None;
                return true;
            }
            if now - *alert.below_since.get_or_insert(now) < hold {
                return true;
            }
            (alert.status, alert.ended) = ("ended", Some(now));
            ended.push(alert.clone());
            false
        });
        if self.config.baseline.is_some() && now.div_euclid(60) != self.learnt {
            self.learnt = now.div_euclid(60);
            self.learn(live, now, metric);
        }
        ended
    }

    /// Rate and band of each key over a period.
    fn rates(
        &self,
        live: &Live,
        from: i64,
        to: i64,
        metric: Metric,
    ) -> BTreeMap<Vec<Value>, (f64, [f64; 2])> {
        let scale = metric.factor() / (to - from).max(1) as f64;
        let sums = live.sums(from, to, &self.filter, &self.by, metric);
        let rate = |(key, seconds): (Vec<Value>, BTreeMap<i64, Cell>)| {
            let mut all = Cell::default();
            seconds.values().for_each(|cell| all.add(cell));
            let [low, high] =
                band(all.value, all.variance, all.n).unwrap_or([all.value, all.value]);
            (key, (all.value * scale, [low * scale, high * scale]))
        };
        sums.into_iter().map(rate).collect()
    }

    /// The threshold of a key: the configured one, or what is unusual for it if that is more.
    fn threshold(&self, key: &[Value], now: i64) -> f64 {
        let usual = self.config.baseline.and_then(|deviations| {
            self.baseline
                .limit(&self.values(key).join(","), now, deviations)
        });
        usual.map_or(self.config.above, |usual| usual.max(self.config.above))
    }

    /// Learns the last minute of each key without an alert.
    fn learn(&mut self, live: &Live, now: i64, metric: Metric) {
        let rates = self.rates(live, now - 60, now, metric);
        let active: Vec<String> = self
            .active
            .keys()
            .map(|key| self.values(key).join(","))
            .collect();
        let mut minute: BTreeMap<String, f64> = rates
            .iter()
            .map(|(key, (rate, _))| (self.values(key).join(","), *rate))
            .collect();
        // Keys without traffic had none.
        for key in self.baseline.keys() {
            minute.entry(key.to_owned()).or_insert(0.0);
        }
        for (key, rate) in minute {
            if !active.contains(&key) {
                self.baseline.learn(&key, now, rate);
            }
        }
    }

    fn values(&self, key: &[Value]) -> Vec<String> {
        let pairs = self.by.iter().zip(key);
        pairs
            .map(|(dimension, value)| value.show(dimension.kind))
            .collect()
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
        Alert {
            id: format!("{}/{}/{now}", self.name, self.values(key).join(",")),
            rule: self.name.clone(),
            key: pairs()
                .map(|(dimension, value)| (dimension.name.to_owned(), value.show(dimension.kind)))
                .collect(),
            filter: parts.join(" AND "),
            status: "firing",
            metric: self.config.metric,
            above: self.threshold(key, now),
            rate,
            band,
            peak: rate,
            began: now,
            ended: None,
            acknowledged: None,
            silenced: false,
            below_since: None,
            notified: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{ExporterInfo, Row, Unknown};

    fn flood(live: &mut Live, time: i64, samples: u64, rate: u32) {
        let rows: Vec<Row> = (0..samples)
            .map(|_| {
                let exporter = Arc::new(ExporterInfo::default());
                let mut row = Row::new(time, exporter, "sflow".into(), &Unknown::default());
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

    #[test]
    fn a_silence_holds_back_what_it_names_until_it_ends() {
        let text = "alerts:\n  flood: {by: [Proto], metric: packets, above: 10000, hold: 5}\n";
        let config = Config::parse(std::path::Path::new("c"), text).expect("good");
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::open(folder.path(), 0).expect("store");
        let mut alerts = Alerts::with_store(&config, &store).expect("alerts");
        let silence = |id: &str, value: &str| Silence {
            id: id.to_owned(),
            rule: Some("flood".to_owned()),
            key: [("Proto".to_owned(), value.to_owned())].into(),
            until: 105,
            by: "me".to_owned(),
            comment: String::new(),
        };
        assert!(alerts.silence(silence("1", "tcp"), 100).expect("stored"));
        let mut live = Live::default();
        for time in 100..103 {
            flood(&mut live, time, 100, 1000);
        }
        let silenced = |alerts: &mut Alerts, live: &Live, now| {
            alerts.evaluate(live, now);
            alerts
                .list()
                .first()
                .map(|alert| (alert.silenced, alert.notified))
        };
        // Another protocol's silence holds nothing back.
        assert_eq!(silenced(&mut alerts, &live, 103), Some((false, true)));
        let mut alerts = Alerts::with_store(&config, &store).expect("alerts");
        assert_eq!(alerts.silences(104), vec![silence("1", "tcp")]);
        assert!(alerts.silence(silence("2", "udp"), 103).expect("stored"));
        assert_eq!(silenced(&mut alerts, &live, 103), Some((true, false)));
        for time in 103..106 {
            flood(&mut live, time, 100, 1000);
        }
        assert_eq!(silenced(&mut alerts, &live, 105), Some((false, true)));
        assert!(alerts.silence(silence("3", "udp"), 106).expect("stored"));
        assert_eq!(store.db.all::<Silence>(SILENCES).expect("read").len(), 1);
        assert!(alerts.unsilence("3").expect("stored") && !alerts.unsilence("3").expect("stored"));
    }

    #[test]
    fn what_is_usual_raises_no_alert() {
        let text = "alerts:\n  flood: {by: [Proto], metric: packets, above: 10000, hold: 5, baseline: 4}\n";
        let config = Config::parse(std::path::Path::new("c"), text).expect("good");
        let mut alerts = Alerts::new(&config);
        // This hour has always had about 100,000 packets a second.
        for minute in 0..120 {
            alerts.rules[0].baseline.learn(
                "udp",
                100 + minute % 50,
                100_000.0 + (minute % 7) as f64 * 2000.0,
            );
        }
        let mut live = Live::default();
        for time in 100..103 {
            flood(&mut live, time, 100, 1000);
        }
        alerts.evaluate(&live, 103);
        assert!(alerts.list().is_empty());
        for time in 103..106 {
            flood(&mut live, time, 400, 1000);
        }
        alerts.evaluate(&live, 106);
        let list = alerts.list();
        assert!(
            list[0].above > 100_000.0 && list[0].band[0] > list[0].above,
            "{list:?}"
        );
    }
}
