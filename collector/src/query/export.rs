//! Answers and rows as Parquet.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use super::{Answer, QueryError};

fn write(schema: SchemaRef, all: &[RecordBatch]) -> Result<Vec<u8>, DataFusionError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by("weir-collector".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    for batch in all {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

/// Rows of the flow table.
///
/// # Errors
/// When the encoder fails.
pub fn batches(all: &[RecordBatch]) -> Result<Vec<u8>, QueryError> {
    let schema = all
        .first()
        .map_or_else(crate::row::schema, RecordBatch::schema);
    Ok(write(schema, all)?)
}

/// An answer: a row for each key and point (one without a time where there is no series).
///
/// # Errors
/// When the encoder fails.
pub fn parquet(answer: &Answer) -> Result<Vec<u8>, QueryError> {
    let (mut times, mut role, mut axis, mut rate) = (vec![], vec![], vec![], vec![]);
    let (mut total, mut low, mut high) = (vec![], vec![], vec![]);
    let mut keys: Vec<Vec<&str>> = vec![Vec::new(); answer.dimensions.len()];
    for row in &answer.rows {
        let points: Vec<(Option<i64>, f64)> = if answer.times.is_empty() {
            vec![(None, row.average)]
        } else {
            let times = answer.times.iter().map(|time| Some(*time));
            times.zip(row.points.iter().copied()).collect()
        };
        for (time, value) in points {
            times.push(time);
            role.push(row.role);
            axis.push(row.axis);
            rate.push(value);
            total.push(row.total);
            low.push(row.band.map(|band| band[0]));
            high.push(row.band.map(|band| band[1]));
            for (at, column) in keys.iter_mut().enumerate() {
                column.push(row.key.get(at).map_or("", String::as_str));
            }
        }
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![("time", Arc::new(Int64Array::from(times)))];
    for (name, values) in answer.dimensions.iter().zip(keys) {
        columns.push((name, Arc::new(StringArray::from(values))));
    }
    columns.push(("role", Arc::new(StringArray::from(role))));
    columns.push(("axis", Arc::new(UInt8Array::from(axis))));
    columns.push(("rate", Arc::new(Float64Array::from(rate))));
    columns.push(("total", Arc::new(Float64Array::from(total))));
    columns.push(("total_low", Arc::new(Float64Array::from(low))));
    columns.push(("total_high", Arc::new(Float64Array::from(high))));
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .map_err(DataFusionError::from)?;
    Ok(write(batch.schema(), &[batch])?)
}
