//! The live window: rows of the last minutes in memory by second, for 1-second graphs and alerts.
//!
//! Rows are kept as they are, at most [`MOST_ROWS`]; beyond that a second keeps every k-th row with its values multiplied by
//! k, and says so. Live queries scan the window, so that any filter and any dimensions work.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;

use crate::query::columns::{self, Dimension, Value};
use crate::query::filter::Expr;
use crate::query::{Cell, Metric};
use crate::row::Row;

/// Seconds of the window.
pub const SECONDS: i64 = 300;
/// Rows of a second that are kept.
const MOST_ROWS: usize = 20_000;

#[derive(Debug, Default)]
struct Second {
    time: i64,
    rows: Vec<Row>,
    /// All rows of the second, kept or not.
    seen: u64,
}

/// The window.
#[derive(Debug, Default)]
pub struct Live {
    seconds: VecDeque<Second>,
}

/// One row of a live answer.
#[derive(Clone, Debug, Serialize)]
pub struct LiveRow {
    /// Values of the dimensions.
    pub key: Vec<String>,
    /// Rate of each second.
    pub points: Vec<f64>,
    /// Sum of the points.
    pub total: f64,
}

/// A live answer.
#[derive(Clone, Debug, Serialize)]
pub struct LiveAnswer {
    /// Begin of the first point.
    pub from: i64,
    /// Begin of the point behind the last.
    pub to: i64,
    /// The largest keys, then "Other".
    pub rows: Vec<LiveRow>,
}

impl Live {
    /// Adds rows that arrived.
    pub fn add(&mut self, rows: &[Row]) {
        for row in rows {
            if self
                .seconds
                .back()
                .is_none_or(|second| second.time < row.time)
            {
                self.seconds.push_back(Second {
                    time: row.time,
                    ..Second::default()
                });
            }
            // A clock that went back: the row belongs to the newest second.
            if let Some(second) = self.seconds.back_mut() {
                second.seen += 1;
                if second.rows.len() < MOST_ROWS {
                    second.rows.push(row.clone());
                }
            }
        }
        let newest = self.seconds.back().map_or(0, |second| second.time);
        while self
            .seconds
            .front()
            .is_some_and(|second| second.time <= newest - SECONDS)
        {
            self.seconds.pop_front();
        }
    }

    /// Sums by key over `from..to`, with the share of rows that were kept made up for.
    #[must_use]
    pub fn sums(
        &self,
        from: i64,
        to: i64,
        filter: &Expr,
        by: &[&'static Dimension],
        metric: Metric,
    ) -> HashMap<Vec<Value>, BTreeMap<i64, Cell>> {
        let mut sums: HashMap<Vec<Value>, BTreeMap<i64, Cell>> = HashMap::new();
        for second in self
            .seconds
            .iter()
            .filter(|second| (from..to).contains(&second.time))
        {
            let scale = second.seen as f64 / second.rows.len().max(1) as f64;
            for row in second.rows.iter().filter(|row| filter.holds(row)) {
                let key = by
                    .iter()
                    .map(|dimension| columns::value(dimension, row))
                    .collect();
                let cell = sums.entry(key).or_default().entry(second.time).or_default();
                let (value, variance) = match metric {
                    Metric::Bits => (row.bytes as f64, row.bytes_var),
                    Metric::L2bits => (row.l2_bytes as f64, row.bytes_var),
                    Metric::Packets => (row.packets as f64, row.packets_var),
                    Metric::Flows => (1.0, 0.0),
                    Metric::Discards => (row.discards as f64, 0.0),
                };
                cell.add(&Cell {
                    value: value * scale,
                    variance: variance * scale * scale,
                    n: row.samples as f64,
                    flows: scale,
                    unknown: 0.0,
                });
            }
        }
        sums
    }

    /// A series of one-second points up to `now`, the largest keys and "Other".
    #[must_use]
    pub fn answer(
        &self,
        now: i64,
        seconds: i64,
        filter: &Expr,
        by: &[&'static Dimension],
        metric: Metric,
        limit: usize,
    ) -> LiveAnswer {
        // The running second is not complete.
        let (from, to) = (now - seconds.clamp(1, SECONDS), now);
        let sums = self.sums(from, to, filter, by, metric);
        let mut rows: Vec<LiveRow> = sums
            .into_iter()
            .map(|(key, cells)| {
                let points: Vec<f64> = (from..to)
                    .map(|t| {
                        cells
                            .get(&t)
                            .map_or(0.0, |cell| cell.value * metric.factor())
                    })
                    .collect();
                let key = by
                    .iter()
                    .zip(&key)
                    .map(|(dimension, value)| value.show(dimension.kind))
                    .collect();
                LiveRow {
                    key,
                    total: points.iter().sum(),
                    points,
                }
            })
            .collect();
        rows.sort_by(|a, b| b.total.total_cmp(&a.total).then_with(|| a.key.cmp(&b.key)));
        if rows.len() > limit {
            let rest = rows.split_off(limit);
            let mut other = LiveRow {
                key: vec!["Other".to_owned()],
                points: vec![0.0; (to - from) as usize],
                total: 0.0,
            };
            for row in rest {
                other.total += row.total;
                other
                    .points
                    .iter_mut()
                    .zip(&row.points)
                    .for_each(|(sum, point)| *sum += point);
            }
            rows.push(other);
        }
        LiveAnswer { from, to, rows }
    }
}
