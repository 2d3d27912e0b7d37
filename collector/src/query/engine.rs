//! DataFusion over Parquet files and the rows in memory: runs the statements of a plan and puts the answer together.
//!
//! Queries share a memory pool and have a deadline; a dropped future ends its query.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, UInt64Type};
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::logical_expr::SortExpr;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::sync::Semaphore;

use super::band::{band, half};
use super::columns::{DIMENSIONS, Dimension, Kind, Value, dimension};
use super::cubes;
use super::{
    Answer, AnswerRow, Cell, Coverage, FormatCoverage, Plan, Query, QueryError, Resolution, Scope,
};
use crate::account::{self, Minute};
use crate::config::QueryConfig;
use crate::row::{ADDED, SCHEMA_VERSION, schema};
use crate::store::{Snapshot, Store};

/// Runs queries.
#[derive(Debug)]
pub struct Engine {
    store: Arc<Store>,
    runtime: Arc<RuntimeEnv>,
    permits: Semaphore,
    seconds: u64,
}

fn session(runtime: &Arc<RuntimeEnv>) -> SessionContext {
    let mut config = SessionConfig::new()
        .with_target_partitions(2)
        .with_information_schema(false);
    config.options_mut().execution.parquet.pushdown_filters = true;
    config
        .options_mut()
        .execution
        .parquet
        .schema_force_view_types = false;
    SessionContext::new_with_config_rt(config, Arc::clone(runtime))
}

/// Columns of files of which some were written before a column was added: texts that they lack are empty.
pub(super) fn older_columns(of: &SchemaRef) -> String {
    let columns = of.fields().iter().filter(|field| field.name() != "flows");
    let columns: Vec<String> = columns
        .map(|field| match field.data_type() {
            DataType::Dictionary(..) if ADDED.contains(&field.name().as_str()) => {
                format!("COALESCE(CAST({0} AS VARCHAR), '') AS {0}", field.name())
            }
            _ => field.name().clone(),
        })
        .collect();
    columns.join(", ")
}

/// A table over files, each of which is in an order (or in none); `None` when there are no files.
pub(super) fn files_table(
    files: &[PathBuf],
    of: SchemaRef,
    order: Vec<SortExpr>,
) -> Result<Option<Arc<ListingTable>>, DataFusionError> {
    if files.is_empty() {
        return Ok(None);
    }
    let urls: Result<Vec<ListingTableUrl>, _> = files
        .iter()
        .map(|file| ListingTableUrl::parse(format!("file://{}", file.display())))
        .collect();
    let mut options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    if !order.is_empty() {
        options = options.with_file_sort_order(vec![order]);
    }
    let config = ListingTableConfig::new_with_multi_paths(urls?)
        .with_listing_options(options)
        .with_schema(of);
    Ok(Some(Arc::new(ListingTable::try_new(config)?)))
}

impl Engine {
    /// An engine over a store.
    ///
    /// # Errors
    /// When the memory pool cannot be made.
    pub fn new(store: Arc<Store>, limits: &QueryConfig) -> Result<Engine, DataFusionError> {
        let pool = Arc::new(FairSpillPool::new(limits.megabytes << 20));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .build_arc()?;
        Ok(Engine {
            store,
            runtime,
            permits: Semaphore::new(limits.concurrent),
            seconds: limits.seconds,
        })
    }

    /// A session in which `flows` is the table that a plan reads.
    async fn open(
        &self,
        resolution: Resolution,
        set: Option<u8>,
        snapshot: &Snapshot,
    ) -> Result<SessionContext, DataFusionError> {
        let context = session(&self.runtime);
        context.register_table(
            "memory",
            Arc::new(MemTable::try_new(schema(), vec![snapshot.memory.clone()])?),
        )?;
        let (files, of) = match resolution {
            Resolution::Raw => (&snapshot.flows, schema()),
            Resolution::Totals => (&snapshot.totals, cubes::totals_schema()),
            Resolution::Tops => (&snapshot.tops, cubes::tops_schema()),
        };
        let columns: Vec<String> = Arc::clone(&of)
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .filter(|name| !["flows", "set_id", "is_other"].contains(&name.as_str()))
            .collect();
        let columns = columns.join(", ");
        let memory = format!(
            "SELECT {columns}, CAST(1 AS BIGINT UNSIGNED) AS flows, 0 AS is_other FROM memory"
        );
        let view = match files_table(files, Arc::clone(&of), Vec::new())? {
            None => memory,
            Some(table) => {
                context.register_table("files", table)?;
                let flows = if resolution == Resolution::Raw {
                    "CAST(1 AS BIGINT UNSIGNED)"
                } else {
                    "flows"
                };
                // Files of an older schema have no value where rows have an empty one.
                // Tops are of this schema: older releases wrote none.
                let names = if set.is_none() && snapshot.oldest_schema < SCHEMA_VERSION {
                    older_columns(&of)
                } else {
                    columns.clone()
                };
                let rest = match set {
                    None => "0 AS is_other FROM files".to_owned(),
                    Some(set) => format!("is_other FROM files WHERE set_id = {set}"),
                };
                format!("SELECT {names}, {flows} AS flows, {rest} UNION ALL {memory}")
            }
        };
        context
            .sql(&format!("CREATE VIEW flows AS {view}"))
            .await?
            .collect()
            .await?;
        Ok(context)
    }

    async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let deadline = Duration::from_secs(self.seconds);
        let run = async {
            let _permit = self
                .permits
                .acquire()
                .await
                .map_err(|error| QueryError::Invalid(error.to_string()))?;
            work.await
        };
        tokio::time::timeout(deadline, run)
            .await
            .map_err(|_| QueryError::Timeout(self.seconds))?
    }

    /// Answers a query.
    ///
    /// # Errors
    /// When it cannot be understood, fails or takes too long.
    pub async fn answer(&self, query: &Query, scope: &Scope) -> Result<Answer, QueryError> {
        let plan = query.plan(scope)?;
        self.limited(self.run(query, plan, scope)).await
    }

    async fn run(&self, query: &Query, plan: Plan, scope: &Scope) -> Result<Answer, QueryError> {
        let begin = Instant::now();
        let plan = self.fit(plan);
        let mut answer = Answer {
            version: 1,
            from: plan.from,
            to: plan.to,
            step: plan.step,
            metric: plan.metric,
            dimensions: plan
                .dimensions
                .iter()
                .map(|dimension| dimension.name)
                .collect(),
            times: if plan.series {
                (plan.from..plan.to).step_by(plan.step as usize).collect()
            } else {
                Vec::new()
            },
            rows: Vec::new(),
            more: false,
            coverage: if scope.tenant.is_some() {
                // Counters of exporters are not those of a tenant.
                Coverage::default()
            } else {
                self.coverage(plan.from, plan.to)?
            },
            resolution: plan.resolution(),
            named_percent: None,
            stored_rows: 0,
            unknown_rate_rows: 0,
            sql: Vec::new(),
            milliseconds: 0,
        };
        self.axis(&plan, 1, &mut answer).await?;
        if query.bidirectional {
            self.axis(&plan.swapped(), 2, &mut answer).await?;
        }
        if query.previous {
            self.axis(&plan.previous(), 3, &mut answer).await?;
            if query.bidirectional {
                self.axis(&plan.previous().swapped(), 4, &mut answer)
                    .await?;
            }
        }
        answer.milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(answer)
    }

    /// The same plan for the tables that there are.
    fn fit(&self, mut plan: Plan) -> Plan {
        let snapshot = self.store.snapshot(plan.from, plan.to);
        match plan.resolution() {
            // Old totals have one row an hour.
            Resolution::Totals if snapshot.totals_step > 60 => {
                plan.coarsen(i64::from(snapshot.totals_step));
            }
            Resolution::Tops if !snapshot.tops_complete => plan.is_long = false,
            Resolution::Tops => plan.coarsen(3600),
            _ => {}
        }
        plan
    }

    /// Adds the rows of one axis.
    async fn axis(&self, plan: &Plan, axis: u8, answer: &mut Answer) -> Result<(), QueryError> {
        let snapshot = self.store.snapshot(plan.from, plan.to);
        let context = self.open(plan.resolution(), plan.tops(), &snapshot).await?;
        let totals = self
            .cells(&context, &plan.total_sql(), &[], true, answer)
            .await?;
        let everything: HashMap<i64, Cell> =
            totals.into_iter().map(|(t, _, cell)| (t, cell)).collect();
        let mut whole = Cell::default();
        everything.values().for_each(|cell| whole.add(cell));
        answer.stored_rows += whole.flows as u64;
        answer.unknown_rate_rows += whole.unknown as u64;
        if plan.resolution() == Resolution::Tops && axis == 1 && whole.value > 0.0 {
            let rest = self
                .cells(&context, &plan.rest_sql(), &[], true, answer)
                .await?;
            let rest: f64 = rest.iter().map(|(_, _, cell)| cell.value).sum();
            answer.named_percent = Some(100.0 * (1.0 - rest / whole.value));
        }
        let mut shown: HashMap<i64, Cell> = HashMap::new();
        let mut shown_total = Cell::default();
        if !plan.dimensions.is_empty() {
            let top = self
                .cells(&context, &plan.top_sql(), &plan.dimensions, false, answer)
                .await?;
            let keys: Vec<Vec<Value>> = top.iter().map(|(_, key, _)| key.clone()).collect();
            let mut series: HashMap<Vec<Value>, HashMap<i64, Cell>> = HashMap::new();
            if plan.series && !keys.is_empty() {
                for (t, key, cell) in self
                    .cells(
                        &context,
                        &plan.series_sql(&keys),
                        &plan.dimensions,
                        true,
                        answer,
                    )
                    .await?
                {
                    shown.entry(t).or_default().add(&cell);
                    series.entry(key).or_default().insert(t, cell);
                }
            }
            let mut above: Option<[f64; 2]> = None;
            for (_, key, cell) in top {
                shown_total.add(&cell);
                let points = series.remove(&key).unwrap_or_default();
                let texts = |of: fn(&Value, Kind) -> String| {
                    plan.dimensions
                        .iter()
                        .zip(&key)
                        .map(|(dimension, value)| of(value, dimension.kind))
                        .collect()
                };
                let mut row = row_of(plan, axis, "row", &cell, &points);
                (row.key, row.literal) = (texts(Value::show), texts(Value::literal));
                row.tied = above
                    .zip(row.band)
                    .is_some_and(|(above, own)| own[1] > above[0]);
                above = row.band;
                answer.rows.push(row);
            }
            let rest = whole.without(&shown_total);
            // Counts are integers below 2⁵³ in practice; flows decide whether other keys exist at all.
            if rest.flows >= 1.0 {
                answer.more = true;
                let points = everything
                    .iter()
                    .map(|(t, all)| (*t, all.without(&shown.get(t).copied().unwrap_or_default())));
                let mut row = row_of(plan, axis, "other", &rest, &points.collect());
                row.key = vec!["Other".to_owned()];
                answer.rows.push(row);
            }
        }
        answer
            .rows
            .push(row_of(plan, axis, "total", &whole, &everything));
        Ok(())
    }

    async fn cells(
        &self,
        context: &SessionContext,
        sql: &str,
        dimensions: &[&'static Dimension],
        timed: bool,
        answer: &mut Answer,
    ) -> Result<Vec<(i64, Vec<Value>, Cell)>, QueryError> {
        answer.sql.push(sql.to_owned());
        let batches = context.sql(sql).await?.collect().await?;
        let mut cells = Vec::new();
        for batch in &batches {
            read_cells(batch, dimensions, timed, &mut cells)?;
        }
        Ok(cells)
    }

    /// Coverage of a period.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn coverage(&self, from: i64, to: i64) -> Result<Coverage, QueryError> {
        let mut coverage = Coverage::default();
        let mut exporters: HashMap<String, Minute> = HashMap::new();
        for (_, exporter, minute) in self.store.db.minutes(from, to)? {
            coverage.received += minute.received;
            coverage.rejected += minute.rejected;
            let sum = exporters.entry(exporter).or_default();
            (sum.arrived, sum.lost) = (sum.arrived + minute.arrived, sum.lost + minute.lost);
        }
        let mut formats: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (name, sum) in &exporters {
            let format = name.rsplit(' ').next().unwrap_or("").to_owned();
            let all = formats.entry(format).or_default();
            *all = (all.0 + sum.arrived, all.1 + sum.lost);
        }
        formats.retain(|_, (arrived, lost)| *arrived + *lost > 0);
        let format = |(format, (arrived, lost))| FormatCoverage {
            format,
            percent: account::coverage(arrived, lost),
            arrived,
            lost,
        };
        coverage.formats = formats.into_iter().map(format).collect();
        coverage.percent = coverage
            .formats
            .iter()
            .map(|format| format.percent)
            .min_by(f64::total_cmp);
        let lossy = exporters.into_iter().filter(|(_, sum)| sum.lost > 0);
        coverage.lossy = lossy
            .map(|(name, sum)| (name, 100.0 - account::coverage(sum.arrived, sum.lost)))
            .collect();
        coverage
            .lossy
            .sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        coverage.lossy.truncate(10);
        Ok(coverage)
    }

    /// The newest rows that pass a filter, as texts by column name.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    pub async fn flows(
        &self,
        from: i64,
        to: i64,
        filter: &str,
        limit: u32,
        scope: &Scope,
    ) -> Result<Vec<HashMap<&'static str, String>>, QueryError> {
        let batches = self
            .flow_batches(from, to, filter, limit.min(1000), scope)
            .await?;
        let mut rows = Vec::new();
        for batch in &batches {
            let values: Result<Vec<_>, DataFusionError> = DIMENSIONS
                .iter()
                .map(|dimension| Ok((dimension, values(batch, dimension)?)))
                .collect();
            let values = values?;
            let numbers = [
                "time", "samples", "bytes", "packets", "l2_bytes", "discards",
            ];
            let numbers: Result<Vec<_>, DataFusionError> = numbers
                .into_iter()
                .map(|name| {
                    Ok((
                        name,
                        numbers_of::<Int64Type>(batch, name, &DataType::Int64)?,
                    ))
                })
                .collect();
            let numbers = numbers?;
            for at in 0..batch.num_rows() {
                let mut row: HashMap<&'static str, String> = HashMap::new();
                for (dimension, column) in &values {
                    if let Some(value) = column.get(at) {
                        row.insert(dimension.name, value.show(dimension.kind));
                    }
                }
                for (name, column) in &numbers {
                    row.insert(
                        name,
                        column.get(at).map_or_else(String::new, ToString::to_string),
                    );
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// The newest rows that pass a filter.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    pub async fn flow_batches(
        &self,
        from: i64,
        to: i64,
        filter: &str,
        limit: u32,
        scope: &Scope,
    ) -> Result<Vec<RecordBatch>, QueryError> {
        let filter = scope.limit(super::filter::parse(filter)?).sql();
        let work = async {
            let context = self
                .open(Resolution::Raw, None, &self.store.snapshot(from, to))
                .await?;
            let sql = format!(
                "SELECT * FROM flows WHERE time >= {from} AND time < {to} AND {filter} ORDER BY time DESC LIMIT {limit}"
            );
            Ok(context.sql(&sql).await?.collect().await?)
        };
        self.limited(work).await
    }

    /// All rows of a period in the order of time.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    pub async fn rows(&self, from: i64, to: i64) -> Result<Vec<RecordBatch>, QueryError> {
        let work = async {
            let context = self
                .open(Resolution::Raw, None, &self.store.snapshot(from, to))
                .await?;
            let sql =
                format!("SELECT * FROM flows WHERE time >= {from} AND time < {to} ORDER BY time");
            Ok(context.sql(&sql).await?.collect().await?)
        };
        self.limited(work).await
    }

    /// Values of a text dimension that begin with a prefix, the most frequent first: for completion.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    pub async fn complete(
        &self,
        name: &str,
        prefix: &str,
        from: i64,
        to: i64,
        scope: &Scope,
    ) -> Result<Vec<String>, QueryError> {
        let Some(column) = dimension(name).filter(|dimension| dimension.in_totals) else {
            return Ok(Vec::new());
        };
        let query = Query {
            from: from - from.rem_euclid(60),
            to: to + (-to).rem_euclid(60),
            dimensions: vec![column.name.to_owned()],
            filter: String::new(),
            metric: super::Metric::Flows,
            limit: 200,
            points: 0,
            bidirectional: false,
            previous: false,
            exact: false,
        };
        let answer = self.answer(&query, scope).await?;
        let prefix = prefix.to_lowercase();
        let values = answer
            .rows
            .into_iter()
            .filter(|row| row.role == "row")
            .filter_map(|row| row.literal.into_iter().next());
        let starts = |value: &String| value.to_lowercase().trim_matches('"').starts_with(&prefix);
        Ok(values.filter(starts).take(20).collect())
    }
}

fn row_of(
    plan: &Plan,
    axis: u8,
    role: &'static str,
    cell: &Cell,
    series: &HashMap<i64, Cell>,
) -> AnswerRow {
    let factor = plan.metric.factor();
    let per_second = factor / plan.step as f64;
    let mut row = AnswerRow {
        role,
        axis,
        total: cell.value,
        band: band(cell.value, cell.variance, cell.n),
        samples: cell.n,
        average: cell.value * factor / (plan.to - plan.from) as f64,
        ..AnswerRow::default()
    };
    if plan.series {
        let empty = Cell::default();
        let cells = || {
            (plan.from..plan.to)
                .step_by(plan.step as usize)
                .map(|t| series.get(&t).unwrap_or(&empty))
        };
        row.points = cells().map(|cell| cell.value * per_second).collect();
        if cells().any(|cell| cell.variance > 0.0) {
            row.half = cells()
                .map(|cell| half(cell.value, cell.variance, cell.n) * per_second)
                .collect();
        }
        row.last = row.points.last().copied().unwrap_or(0.0);
        let mut sorted = row.points.clone();
        sorted.sort_by(f64::total_cmp);
        row.min = sorted.first().copied().unwrap_or(0.0);
        row.max = sorted.last().copied().unwrap_or(0.0);
        // Nearest rank.
        let rank = (sorted.len() * 95).div_ceil(100).max(1) - 1;
        row.p95 = sorted.get(rank).copied().unwrap_or(0.0);
    }
    row
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, DataFusionError> {
    batch
        .column_by_name(name)
        .ok_or_else(|| DataFusionError::Internal(format!("no column {name}")))
}

fn numbers_of<T: datafusion::arrow::datatypes::ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
    of: &DataType,
) -> Result<Vec<T::Native>, DataFusionError> {
    let column = cast(column(batch, name)?, of)?;
    let numbers = column
        .as_primitive_opt::<T>()
        .ok_or_else(|| DataFusionError::Internal(format!("{name} is no number")))?;
    Ok(numbers.iter().map(Option::unwrap_or_default).collect())
}

/// A dimension's values in a batch.
fn values(batch: &RecordBatch, of: &Dimension) -> Result<Vec<Value>, DataFusionError> {
    match of.kind {
        Kind::Address => {
            let word = |part: &str| {
                numbers_of::<UInt64Type>(batch, &format!("{}_{part}", of.column), &DataType::UInt64)
            };
            Ok(word("hi")?
                .into_iter()
                .zip(word("lo")?)
                .map(|(high, low)| Value::Address(high, low))
                .collect())
        }
        Kind::Text | Kind::AsPath | Kind::Communities => {
            let texts = cast(column(batch, of.column)?, &DataType::Utf8)?;
            let texts = texts
                .as_string_opt::<i32>()
                .ok_or_else(|| DataFusionError::Internal("no text".to_owned()))?;
            Ok((0..texts.len())
                .map(|at| {
                    Value::Text(if texts.is_null(at) {
                        String::new()
                    } else {
                        texts.value(at).to_owned()
                    })
                })
                .collect())
        }
        _ => Ok(
            numbers_of::<UInt64Type>(batch, of.column, &DataType::UInt64)?
                .into_iter()
                .map(Value::Number)
                .collect(),
        ),
    }
}

fn read_cells(
    batch: &RecordBatch,
    dimensions: &[&'static Dimension],
    timed: bool,
    cells: &mut Vec<(i64, Vec<Value>, Cell)>,
) -> Result<(), DataFusionError> {
    let times = if timed {
        numbers_of::<Int64Type>(batch, "t", &DataType::Int64)?
    } else {
        vec![0; batch.num_rows()]
    };
    let floats = |name: &str| numbers_of::<Float64Type>(batch, name, &DataType::Float64);
    let (value, variance, n) = (floats("value")?, floats("variance")?, floats("n")?);
    let (flows, unknown) = (floats("records")?, floats("unknown")?);
    let keys: Result<Vec<Vec<Value>>, _> = dimensions
        .iter()
        .map(|dimension| values(batch, dimension))
        .collect();
    let keys = keys?;
    let at = |column: &[f64], row: usize| column.get(row).copied().unwrap_or(0.0);
    for (row, time) in times.into_iter().enumerate() {
        let key = keys
            .iter()
            .filter_map(|column| column.get(row).cloned())
            .collect();
        let cell = Cell {
            value: at(&value, row),
            variance: at(&variance, row),
            n: at(&n, row),
            flows: at(&flows, row),
            unknown: at(&unknown, row),
        };
        cells.push((time, key, cell));
    }
    Ok(())
}
