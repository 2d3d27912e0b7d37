//! Queries: what is asked, the SQL it becomes, and the answer with bands, coverage and the resolution used.
//!
//! A query becomes two or three statements: the top keys, their series, and the series of everything. "Other" is everything
//! minus the shown keys, so it is exact, and sums and variances add up.

pub mod band;
pub mod columns;
pub mod cubes;
pub mod engine;
pub mod export;
pub mod filter;

use serde::{Deserialize, Serialize};

use columns::{Dimension, Kind, Value, dimension, swapped};
use filter::{Expr, equals_sql};

/// Points of a series.
const MOST_POINTS: u32 = 2000;
/// Rows of an answer.
const MOST_ROWS: u32 = 200;
/// Dimensions of a query.
const MOST_DIMENSIONS: usize = 8;

/// Seconds of a period from which on the table of the largest keys is read.
const LONG: i64 = 2 * 86_400;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The filter is not understood.
    #[error("filter: {0}")]
    Filter(#[from] filter::FilterError),
    /// Something else in the query cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The engine failed.
    #[error("the query failed: {0}")]
    Engine(#[from] datafusion::error::DataFusionError),
    /// It took too long.
    #[error("the query took longer than {0} seconds. Choose a shorter period or fewer dimensions")]
    Timeout(u64),
    /// State could not be read.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// IP bits a second; totals in bytes.
    #[default]
    Bits,
    /// Bits of frames a second; totals in bytes.
    L2bits,
    /// Packets a second.
    Packets,
    /// Records (samples) a second, not scaled.
    Flows,
    /// Notifications of discarded packets a second, not scaled.
    Discards,
}

impl Metric {
    fn column(self) -> &'static str {
        match self {
            Metric::Bits => "bytes",
            Metric::L2bits => "l2_bytes",
            Metric::Packets => "packets",
            Metric::Flows => "flows",
            Metric::Discards => "discards",
        }
    }

    fn variance(self) -> &'static str {
        match self {
            Metric::Bits | Metric::L2bits => "bytes_var",
            Metric::Packets => "packets_var",
            Metric::Flows | Metric::Discards => "0.0",
        }
    }

    /// What a total is multiplied by to become the rate's unit.
    #[must_use]
    pub fn factor(self) -> f64 {
        if matches!(self, Metric::Bits | Metric::L2bits) {
            8.0
        } else {
            1.0
        }
    }
}

/// A query.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Begin, seconds since 1970.
    pub from: i64,
    /// End (not included).
    pub to: i64,
    /// Names of dimensions; none gives the total.
    #[serde(default)]
    pub dimensions: Vec<String>,
    /// The filter.
    #[serde(default)]
    pub filter: String,
    /// What is measured.
    #[serde(default)]
    pub metric: Metric,
    /// Rows before "Other".
    #[serde(default = "ten")]
    pub limit: u32,
    /// Points of the series; 0 for a table only.
    #[serde(default = "two_hundred")]
    pub points: u32,
    /// Also the other direction (source and destination exchanged).
    #[serde(default)]
    pub bidirectional: bool,
    /// Also the same length of time before the period.
    #[serde(default)]
    pub previous: bool,
    /// Read all rows where the table of the largest keys would do.
    #[serde(default)]
    pub exact: bool,
}

fn ten() -> u32 {
    10
}

fn two_hundred() -> u32 {
    200
}

/// What somebody may see: everything, or the rows of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The tenant.
    pub tenant: Option<String>,
}

impl Scope {
    /// A filter with the limits of this scope: rows of the tenant's exporters, and from and to the tenant's networks.
    #[must_use]
    pub fn limit(&self, filter: Expr) -> Expr {
        let Some(tenant) = &self.tenant else {
            return filter;
        };
        let is_own = ["ExporterTenant", "SrcNetTenant", "DstNetTenant"]
            .into_iter()
            .filter_map(dimension)
            .map(|column| Expr::Compare(column, filter::Op::Eq, Value::Text(tenant.clone())));
        Expr::And(vec![Expr::Or(is_own.collect()), filter])
    }
}

/// A query that was checked, ready to become SQL.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Begin, a multiple of the step.
    pub from: i64,
    /// End, a multiple of the step.
    pub to: i64,
    /// Seconds of a point.
    pub step: i64,
    /// What is grouped by.
    pub dimensions: Vec<&'static Dimension>,
    /// What is looked at.
    pub filter: Expr,
    /// What is measured.
    pub metric: Metric,
    /// Rows.
    pub limit: u32,
    /// Whether a series is wanted.
    pub series: bool,
    /// Whether the period is so long that the table of the largest keys is read.
    pub is_long: bool,
}

/// Steps of series, so that points fall on round times.
const STEPS: [i64; 17] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400,
];

impl Query {
    /// Checks a query, and limits it to what a scope may see.
    ///
    /// # Errors
    /// When a part of it cannot be used.
    pub fn plan(&self, scope: &Scope) -> Result<Plan, QueryError> {
        let invalid = |message: &str| QueryError::Invalid(message.to_owned());
        let length = self
            .to
            .checked_sub(self.from)
            .filter(|length| *length > 0 && self.from >= 0);
        let Some(length) = length else {
            return Err(invalid("\"from\" must be before \"to\""));
        };
        if length > 10 * 366 * 86_400 {
            return Err(invalid("the period is longer than ten years"));
        }
        if self.points > MOST_POINTS || self.limit > MOST_ROWS || self.limit == 0 {
            return Err(QueryError::Invalid(format!(
                "at most {MOST_POINTS} points, and 1 to {MOST_ROWS} rows"
            )));
        }
        if self.dimensions.len() > MOST_DIMENSIONS {
            return Err(QueryError::Invalid(format!(
                "at most {MOST_DIMENSIONS} dimensions"
            )));
        }
        let mut dimensions: Vec<&'static Dimension> = Vec::new();
        for name in &self.dimensions {
            let Some(found) = dimension(name) else {
                return Err(QueryError::Invalid(format!("unknown dimension {name}")));
            };
            if dimensions.iter().any(|known| known.name == found.name) {
                return Err(QueryError::Invalid(format!(
                    "dimension {name} is given twice"
                )));
            }
            dimensions.push(found);
        }
        let points = i64::from(self.points.max(1));
        let least = (length + points - 1) / points;
        let day = 86_400;
        let step = STEPS
            .iter()
            .copied()
            .find(|step| *step >= least)
            .unwrap_or((least + day - 1) / day * day);
        // A table without a series keeps the period as it was asked for.
        let step = if self.points == 0 {
            if self.from % 60 == 0 && self.to % 60 == 0 {
                60
            } else {
                1
            }
        } else {
            step
        };
        Ok(Plan {
            from: self.from - self.from.rem_euclid(step),
            to: self.to + (-self.to).rem_euclid(step),
            step,
            dimensions,
            filter: scope.limit(filter::parse(&self.filter)?),
            metric: self.metric,
            limit: self.limit,
            series: self.points > 0,
            is_long: length >= LONG && !self.exact,
        })
    }
}

/// Where a statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resolution {
    /// Every stored row.
    Raw,
    /// One row a minute and interface pair: exact for the columns it has.
    Totals,
    /// The largest keys of each exporter and hour: totals are exact, keys may lack what is in the rest.
    Tops,
}

impl Plan {
    /// The same for the other direction.
    #[must_use]
    pub fn swapped(&self) -> Plan {
        Plan {
            dimensions: self
                .dimensions
                .iter()
                .map(|dimension| swapped(dimension))
                .collect(),
            filter: self.filter.swapped(),
            ..self.clone()
        }
    }

    /// The same for the period before.
    #[must_use]
    pub fn previous(&self) -> Plan {
        let length = self.to - self.from;
        Plan {
            from: (self.from - length).max(0),
            to: self.from,
            ..self.clone()
        }
    }

    /// The smallest table that gives the exact answer.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        let whole = self.step % 60 == 0 && self.from % 60 == 0 && self.to % 60 == 0;
        let columns =
            self.dimensions.iter().all(|dimension| dimension.in_totals) && self.filter.in_totals();
        if whole && columns {
            Resolution::Totals
        } else if self.tops().is_some() {
            Resolution::Tops
        } else {
            Resolution::Raw
        }
    }

    /// The set of the table of the largest keys that has the dimensions. The filter may select exporters only: of the rest
    /// nothing else is known.
    #[must_use]
    pub fn tops(&self) -> Option<u8> {
        if !self.is_long || !self.filter.is_of_exporter() {
            return None;
        }
        let columns = self.columns();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        cubes::set_of(&columns)
    }

    /// Makes the points at least so long, and the period a multiple of them.
    pub fn coarsen(&mut self, seconds: i64) {
        if self.step % seconds != 0 {
            self.step = seconds.max(self.step - self.step.rem_euclid(seconds));
        }
        self.from -= self.from.rem_euclid(self.step);
        self.to += (-self.to).rem_euclid(self.step);
    }

    fn sums(&self) -> String {
        format!(
            "SUM({}) AS value, SUM({}) AS variance, SUM(samples) AS n, SUM(flows) AS records, \
             SUM(CASE WHEN rate = 0 THEN flows ELSE 0 END) AS unknown",
            self.metric.column(),
            self.metric.variance()
        )
    }

    fn place(&self) -> String {
        format!(
            "time >= {} AND time < {} AND {}",
            self.from,
            self.to,
            self.filter.sql()
        )
    }

    /// The condition of rows that have keys.
    fn named(&self) -> String {
        format!("{} AND is_other = 0", self.place())
    }

    /// The statement for what the table of the largest keys has in its rows of the rest.
    #[must_use]
    pub fn rest_sql(&self) -> String {
        format!(
            "SELECT 0 AS t, {} FROM flows WHERE {} AND is_other = 1",
            self.sums(),
            self.place()
        )
    }

    fn columns(&self) -> Vec<String> {
        let columns = self
            .dimensions
            .iter()
            .map(|dimension| match dimension.kind {
                Kind::Address => vec![
                    format!("{}_hi", dimension.column),
                    format!("{}_lo", dimension.column),
                ],
                _ => vec![dimension.column.to_owned()],
            });
        columns.flatten().collect()
    }

    /// The statement for the largest keys.
    #[must_use]
    pub fn top_sql(&self) -> String {
        let columns = self.columns().join(", ");
        format!(
            "SELECT {columns}, {} FROM flows WHERE {} GROUP BY {columns} ORDER BY value DESC, {columns} LIMIT {}",
            self.sums(),
            self.named(),
            self.limit
        )
    }

    /// The statement for the series of keys.
    #[must_use]
    pub fn series_sql(&self, keys: &[Vec<Value>]) -> String {
        let columns = self.columns().join(", ");
        let key = |key: &Vec<Value>| {
            let parts: Vec<String> = self
                .dimensions
                .iter()
                .zip(key)
                .map(|(dimension, value)| equals_sql(dimension, value))
                .collect();
            format!("({})", parts.join(" AND "))
        };
        let keys: Vec<String> = keys.iter().map(key).collect();
        format!(
            "SELECT time - time % {} AS t, {columns}, {} FROM flows WHERE {} AND ({}) GROUP BY time - time % {}, {columns}",
            self.step,
            self.sums(),
            self.named(),
            keys.join(" OR "),
            self.step
        )
    }

    /// The statement for the series of everything.
    #[must_use]
    pub fn total_sql(&self) -> String {
        format!(
            "SELECT time - time % {0} AS t, {1} FROM flows WHERE {2} GROUP BY time - time % {0}",
            self.step,
            self.sums(),
            self.place()
        )
    }
}

/// Sums of one cell; cells add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Sum of the metric.
    pub value: f64,
    /// Its variance.
    pub variance: f64,
    /// Sampled packets behind it.
    pub n: f64,
    /// Rows.
    pub flows: f64,
    /// Rows of unknown sampling rate.
    pub unknown: f64,
}

impl Cell {
    /// Adds another cell.
    pub fn add(&mut self, other: &Cell) {
        self.value += other.value;
        self.variance += other.variance;
        self.n += other.n;
        self.flows += other.flows;
        self.unknown += other.unknown;
    }

    /// What is left without another cell, never below zero.
    #[must_use]
    pub fn without(&self, other: &Cell) -> Cell {
        let less = |a: f64, b: f64| (a - b).max(0.0);
        Cell {
            value: less(self.value, other.value),
            variance: less(self.variance, other.variance),
            n: less(self.n, other.n),
            flows: less(self.flows, other.flows),
            unknown: less(self.unknown, other.unknown),
        }
    }
}

/// A row of an answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AnswerRow {
    /// Values of the dimensions, as people read them; `["Other"]` for the rest, empty for a total.
    pub key: Vec<String>,
    /// The same as a filter would compare them; empty for "Other".
    pub literal: Vec<String>,
    /// `row`, `other` or `total`.
    pub role: &'static str,
    /// 1 direct, 2 other direction, 3 previous period, 4 both.
    pub axis: u8,
    /// Sum over the period (bytes for bits).
    pub total: f64,
    /// Lower and upper 95 % limit of `total`; absent when nothing was sampled.
    pub band: Option<[f64; 2]>,
    /// Sampled packets behind it.
    pub samples: f64,
    /// Whether its band overlaps that of the row before, so their order is not certain.
    pub tied: bool,
    /// Average rate.
    pub average: f64,
    /// Smallest rate of a point.
    pub min: f64,
    /// Largest rate of a point.
    pub max: f64,
    /// Rate of the last point.
    pub last: f64,
    /// 95th percentile of the points.
    pub p95: f64,
    /// Rate of each point.
    pub points: Vec<f64>,
    /// Half width of the 95 % band of each point; empty when nothing was sampled.
    pub half: Vec<f64>,
}

/// How much of one format arrived.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FormatCoverage {
    /// `sflow`, `netflow9` (units are datagrams), `ipfix` or `netflow5` (units are records).
    pub format: String,
    /// Percent of the units sent that arrived.
    pub percent: f64,
    /// Units that arrived.
    pub arrived: u64,
    /// Units lost by sequence number.
    pub lost: u64,
}

/// How much of what was sent arrived.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Coverage {
    /// Percent that arrived of the format with the largest loss; absent when no sequence number is known.
    pub percent: Option<f64>,
    /// Each format.
    pub formats: Vec<FormatCoverage>,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams rejected.
    pub rejected: u64,
    /// Exporters (with their format) with losses in percent, the largest first.
    pub lossy: Vec<(String, f64)>,
}

/// An answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Version of this structure.
    pub version: u32,
    /// Begin of the first point.
    pub from: i64,
    /// End of the last point.
    pub to: i64,
    /// Seconds of a point.
    pub step: i64,
    /// What was measured.
    pub metric: Metric,
    /// Names of the dimensions.
    pub dimensions: Vec<&'static str>,
    /// Begin of each point.
    pub times: Vec<i64>,
    /// Rows: per axis the largest first, then "Other", then the total.
    pub rows: Vec<AnswerRow>,
    /// Whether more keys exist than are shown.
    pub more: bool,
    /// How much of what was sent arrived.
    pub coverage: Coverage,
    /// The table that was read.
    pub resolution: Resolution,
    /// Percent of the total that has keys in the table of the largest keys; absent for other tables.
    pub named_percent: Option<f64>,
    /// Stored rows behind the answer.
    pub stored_rows: u64,
    /// Rows whose sampling rate is unknown: they are not scaled.
    pub unknown_rate_rows: u64,
    /// The SQL statements.
    pub sql: Vec<String>,
    /// Milliseconds that it took.
    pub milliseconds: u64,
}
