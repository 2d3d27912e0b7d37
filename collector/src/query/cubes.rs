//! Smaller tables beside that of all rows: totals, and the largest keys of common questions.
//!
//! **Totals** have one row a minute and combination of the columns that the dimension table marks: exact for these columns.
//! **Tops** answer "which AS, address, port" over weeks: for each exporter and five minutes (one hour after compaction) the
//! [`KEPT`] largest keys by bytes, and as many by packets, of each set of columns in [`SETS`]; what is left is one row with
//! `is_other` = 1. So sums over tops are exact, and a key's own sum lacks at most what is in the rows of the rest.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::SortExpr;
use datafusion::prelude::{SessionConfig, SessionContext, col};
use futures_util::{Stream, StreamExt as _};

use super::columns::DIMENSIONS;
use super::engine::{files_table, older_columns};
use crate::row::{SCHEMA_VERSION, SORT, schema};
use crate::store::Table;

/// Keys of an exporter and set that are kept, by bytes and again by packets.
pub const KEPT: usize = 500;

/// Sums of both tables.
pub const SUMS: [&str; 7] = [
    "samples",
    "bytes",
    "packets",
    "l2_bytes",
    "bytes_var",
    "packets_var",
    "discards",
];

/// Columns of an exporter, which all sets have.
const OF_EXPORTER: [&str; 7] = [
    "exporter",
    "exporter_name",
    "format",
    "rate",
    "exporter_role",
    "exporter_site",
    "exporter_tenant",
];

/// The sets of columns: number in the table, columns.
pub const SETS: [(u8, &[&str]); 9] = [
    (1, &["src_as"]),
    (2, &["dst_as"]),
    (3, &["src_as", "dst_as"]),
    (4, &["src_country"]),
    (5, &["dst_country"]),
    (6, &["src_hi", "src_lo"]),
    (7, &["dst_hi", "dst_lo"]),
    (8, &["proto", "src_port"]),
    (9, &["proto", "dst_port"]),
];

/// All columns of sets.
const OF_SETS: [&str; 11] = [
    "src_as",
    "dst_as",
    "src_country",
    "dst_country",
    "src_hi",
    "src_lo",
    "dst_hi",
    "dst_lo",
    "proto",
    "src_port",
    "dst_port",
];

fn key_columns() -> Vec<&'static str> {
    let in_totals = DIMENSIONS.iter().filter(|dimension| dimension.in_totals);
    in_totals.map(|dimension| dimension.column).collect()
}

fn with_flows(columns: impl Iterator<Item = &'static str>, before: &[Field]) -> SchemaRef {
    let all = schema();
    let fields = columns.filter_map(|name| all.field_with_name(name).ok().cloned());
    let flows = Field::new("flows", DataType::UInt64, true);
    Arc::new(Schema::new(
        before
            .iter()
            .cloned()
            .chain(fields)
            .chain([flows])
            .collect::<Vec<_>>(),
    ))
}

/// Schema of the totals table.
#[must_use]
pub fn totals_schema() -> SchemaRef {
    with_flows(["time"].into_iter().chain(key_columns()).chain(SUMS), &[])
}

/// Schema of the tops table.
#[must_use]
pub fn tops_schema() -> SchemaRef {
    let own = [
        Field::new("set_id", DataType::UInt8, true),
        Field::new("is_other", DataType::UInt8, true),
    ];
    with_flows(
        ["time"]
            .into_iter()
            .chain(OF_EXPORTER)
            .chain(OF_SETS)
            .chain(SUMS),
        &own,
    )
}

/// The smallest set that has all of these columns, beside those of the exporter.
#[must_use]
pub fn set_of(columns: &[&str]) -> Option<u8> {
    let fits = |set: &&[&str]| {
        columns
            .iter()
            .all(|column| set.contains(column) || OF_EXPORTER.contains(column))
    };
    let all = SETS.iter().filter(|(_, set)| fits(set));
    all.min_by_key(|(_, set)| set.len())
        .map(|(number, _)| *number)
}

fn sums(flows: &str) -> String {
    let sums: Vec<String> = SUMS
        .iter()
        .map(|name| format!("SUM({name}) AS {name}"))
        .collect();
    format!("{}, {flows} AS flows", sums.join(", "))
}

fn casted(found: Vec<RecordBatch>, target: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let all: Result<Vec<RecordBatch>, DataFusionError> = found
        .iter()
        .map(|batch| cast_batch(batch, target))
        .collect();
    Ok(datafusion::arrow::compute::concat_batches(target, &all?)?)
}

fn cast_batch(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let columns: Result<Vec<ArrayRef>, DataFusionError> = target
        .fields()
        .iter()
        .map(|field| {
            let column = batch.column_by_name(field.name());
            let column = column
                .ok_or_else(|| DataFusionError::Internal(format!("no column {}", field.name())))?;
            Ok(cast(column, field.data_type())?)
        })
        .collect();
    Ok(RecordBatch::try_new(Arc::clone(target), columns?)?)
}

fn memory(batches: &[RecordBatch]) -> Result<SessionContext, DataFusionError> {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    context.register_table(
        "memory",
        Arc::new(MemTable::try_new(schema(), vec![batches.to_vec()])?),
    )?;
    Ok(context)
}

/// The totals of rows.
///
/// # Errors
/// When the engine fails.
pub async fn totals_of(batches: &[RecordBatch]) -> Result<RecordBatch, DataFusionError> {
    let (context, keys) = (memory(batches)?, key_columns().join(", "));
    let sql = format!(
        "SELECT time - time % 60 AS time, {keys}, {} FROM memory GROUP BY time - time % 60, {keys} \
         ORDER BY exporter, in_if, out_if, time",
        sums("COUNT(*)")
    );
    casted(context.sql(&sql).await?.collect().await?, &totals_schema())
}

/// An empty value of a column of sets, of its own type.
fn empty(name: &&str) -> String {
    let kind = match *name {
        "src_country" | "dst_country" => return format!("'' AS {name}"),
        "proto" => "TINYINT UNSIGNED",
        "src_port" | "dst_port" => "SMALLINT UNSIGNED",
        "src_as" | "dst_as" => "INT UNSIGNED",
        _ => "BIGINT UNSIGNED",
    };
    format!("CAST(0 AS {kind}) AS {name}")
}

/// A statement for one set: its largest keys, and the rest as one row for each exporter and time.
fn tops_sql(
    number: u8,
    set: &[&str],
    step: u32,
    from: &str,
    condition: &str,
    flows: &str,
) -> String {
    let (keys, exporter) = (set.join(", "), OF_EXPORTER.join(", "));
    let kept: Vec<String> = OF_SETS
        .iter()
        .map(|name| {
            if set.contains(name) {
                (*name).to_owned()
            } else {
                empty(name)
            }
        })
        .collect();
    let none: Vec<String> = OF_SETS.iter().map(empty).collect();
    let again = sums("SUM(flows)");
    let again_names: Vec<&str> = SUMS.iter().copied().chain(["flows"]).collect();
    let again_names = again_names.join(", ");
    // The rank of a key is that of the exporter, over all times of the file.
    format!(
        "WITH cells AS (SELECT time - time % {step} AS time, {exporter}, {keys}, {} FROM {from} WHERE {condition} \
         GROUP BY time - time % {step}, {exporter}, {keys}), \
         sizes AS (SELECT exporter AS e, {}, SUM(bytes) AS b, SUM(packets) AS p FROM cells GROUP BY exporter, {keys}), \
         ranks AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY e ORDER BY b DESC, {k}) AS by_bytes, \
         ROW_NUMBER() OVER (PARTITION BY e ORDER BY p DESC, {k}) AS by_packets FROM sizes), \
         known AS (SELECT * FROM ranks WHERE by_bytes <= {KEPT} OR by_packets <= {KEPT}), \
         marked AS (SELECT cells.*, CASE WHEN known.e IS NULL THEN 1 ELSE 0 END AS is_other FROM cells LEFT JOIN known ON exporter = e AND {}) \
         SELECT {number} AS set_id, 0 AS is_other, time, {exporter}, {}, {again_names} FROM marked WHERE is_other = 0 \
         UNION ALL SELECT {number} AS set_id, 1 AS is_other, time, {exporter}, {}, {again} FROM marked WHERE is_other = 1 GROUP BY time, {exporter}",
        sums(flows),
        set.iter()
            .map(|name| format!("{name} AS k_{name}"))
            .collect::<Vec<_>>()
            .join(", "),
        set.iter()
            .map(|name| format!("{name} = k_{name}"))
            .collect::<Vec<_>>()
            .join(" AND "),
        kept.join(", "),
        none.join(", "),
        k = set
            .iter()
            .map(|name| format!("k_{name}"))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// The tops of rows.
///
/// # Errors
/// When the engine fails.
pub async fn tops_of(batches: &[RecordBatch]) -> Result<RecordBatch, DataFusionError> {
    let context = memory(batches)?;
    let target = tops_schema();
    let mut all = Vec::new();
    for (number, set) in SETS {
        let sql = tops_sql(number, set, 300, "memory", "1 = 1", "COUNT(*)");
        for batch in context.sql(&sql).await?.collect().await? {
            all.push(cast_batch(&batch, &target)?);
        }
    }
    Ok(datafusion::arrow::compute::concat_batches(&target, &all)?)
}

/// Batches of files of one table, merged: rows in their order; totals and tops summed up to `step` seconds.
///
/// # Errors
/// When the engine fails.
pub async fn merge(
    table: Table,
    files: &[PathBuf],
    step: u32,
    oldest: u32,
) -> Result<impl Stream<Item = Result<RecordBatch, DataFusionError>> + Unpin + use<>, DataFusionError>
{
    let target = table.schema();
    // A partition for each file: files are in order, so they are merged and not sorted again.
    let mut config = SessionConfig::new()
        .with_target_partitions(files.len().max(1))
        .with_repartition_file_scans(false);
    config
        .options_mut()
        .execution
        .parquet
        .schema_force_view_types = false;
    config.options_mut().optimizer.repartition_aggregations = false;
    let context = SessionContext::new_with_config(config);
    let order: Vec<SortExpr> = match table {
        Table::Flows => SORT
            .iter()
            .map(|name| col(*name).sort(true, false))
            .collect(),
        Table::Totals | Table::Tops => Vec::new(),
    };
    let from = files_table(files, Arc::clone(&target), order)?
        .ok_or_else(|| DataFusionError::Internal("no files".to_owned()))?;
    context.register_table("files", from)?;
    let all = |schema: &SchemaRef| {
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        if oldest < SCHEMA_VERSION {
            older_columns(schema)
        } else {
            names.join(", ")
        }
    };
    let mut streams = Vec::new();
    match table {
        Table::Flows => {
            let columns = all(&target);
            let sql = format!(
                "SELECT {columns} FROM files ORDER BY {}",
                SORT.map(|name| format!("{name} ASC NULLS LAST")).join(", ")
            );
            streams.push(context.sql(&sql).await?.execute_stream().await?);
        }
        Table::Totals => {
            let keys = key_columns();
            let selected: Vec<String> = if oldest < SCHEMA_VERSION {
                keys.iter()
                    .map(
                        |name| match target.field_with_name(name).map(Field::data_type) {
                            Ok(DataType::Dictionary(..)) => {
                                format!("COALESCE(CAST({name} AS VARCHAR), '') AS {name}")
                            }
                            _ => (*name).to_owned(),
                        },
                    )
                    .collect()
            } else {
                keys.iter().map(|name| (*name).to_owned()).collect()
            };
            let sql = format!(
                "SELECT time - time % {step} AS time, {keys}, {} FROM (SELECT time, {}, {}, flows FROM files) GROUP BY time - time % {step}, {keys} \
                 ORDER BY exporter, in_if, out_if, time",
                sums("SUM(flows)"),
                selected.join(", "),
                SUMS.join(", "),
                keys = keys.join(", "),
            );
            streams.push(context.sql(&sql).await?.execute_stream().await?);
        }
        Table::Tops => {
            for (number, set) in SETS {
                // Keys are ranked again; the rest of the files is in the rest of the new one.
                let condition = format!("set_id = {number} AND is_other = 0");
                let sql = tops_sql(
                    number,
                    set,
                    step.max(300),
                    "files",
                    &condition,
                    "SUM(flows)",
                );
                streams.push(context.sql(&sql).await?.execute_stream().await?);
            }
            let (exporter, step) = (OF_EXPORTER.join(", "), step.max(300));
            let none: Vec<String> = OF_SETS.iter().map(empty).collect();
            let sql = format!(
                "SELECT set_id, 1 AS is_other, time - time % {step} AS time, {exporter}, {}, {} FROM files WHERE is_other = 1 \
                 GROUP BY set_id, time - time % {step}, {exporter}",
                none.join(", "),
                sums("SUM(flows)")
            );
            streams.push(context.sql(&sql).await?.execute_stream().await?);
        }
    }
    let casts = move |batch: Result<RecordBatch, DataFusionError>| cast_batch(&batch?, &target);
    Ok(futures_util::stream::iter(streams).flatten().map(casts))
}
