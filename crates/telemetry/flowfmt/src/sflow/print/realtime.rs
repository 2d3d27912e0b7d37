//! host-sflow's samples with names of their own (4300:1002 and 4300:1003).
//!
//! Each value says its name and its type, so the printed name is made from both:
//! `rtmetric_gauge32_load`. A type nobody knows has no known length, and ends the sample.

use std::io;

use super::Sink;
use super::show::{Address, Mac};
use crate::sflow::DataFormat;
use crate::sflow::cursor::Cursor;
use crate::sflow::decode::{DecodeError, Opaque, Problem};

/// What a value is, by the number of its type.
#[derive(Clone, Copy)]
enum Type {
    Text,
    U32,
    U64,
    F32,
    F64,
    Mac,
    Ipv4,
    Ipv6,
}

const METRICS: [(&str, Type); 7] = [
    ("string", Type::Text),
    ("counter32", Type::U32),
    ("counter64", Type::U64),
    ("gauge32", Type::U32),
    ("gauge64", Type::U64),
    ("gaugefloat", Type::F32),
    ("gaugedouble", Type::F64),
];

const FLOWS: [(&str, Type); 8] = [
    ("string", Type::Text),
    ("mac", Type::Mac),
    ("ip", Type::Ipv4),
    ("ip6", Type::Ipv6),
    ("int32", Type::U32),
    ("int64", Type::U64),
    ("float", Type::F32),
    ("double", Type::F64),
];

/// Prints such a sample; what is wrong with it is the inner result.
pub(super) fn sample(
    sink: &mut impl Sink,
    sample: &Opaque<'_>,
) -> io::Result<Result<(), DecodeError>> {
    let mut cursor = Cursor::inside(sample.body, sample.offset);
    let flow = sample.format == DataFormat::RT_FLOW;
    sink.field("sampleType", if flow { "RTFLOW" } else { "RTMETRIC" })?;
    let head = match head(&mut cursor, flow) {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    let (source, rate_and_pool, count) = head;
    let prefix = if flow { "rtflow" } else { "rtmetric" };
    sink.foreign(
        &format!("{prefix}_datasource_name"),
        &String::from_utf8_lossy(source),
    )?;
    if let Some((rate, pool)) = rate_and_pool {
        sink.field("rtflow_sampling_rate", rate)?;
        sink.field("rtflow_sample_pool", pool)?;
    }
    let types: &[(&str, Type)] = if flow { &FLOWS } else { &METRICS };
    for _ in 0..count {
        if let Err(error) = value(sink, &mut cursor, prefix, types)? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

type Head<'a> = (&'a [u8], Option<(u32, u32)>, u32);

fn head<'a>(cursor: &mut Cursor<'a>, flow: bool) -> Result<Head<'a>, DecodeError> {
    let source = cursor.opaque("data source")?;
    let rate_and_pool = if flow {
        Some((cursor.word("sampling rate")?, cursor.word("sample pool")?))
    } else {
        None
    };
    Ok((source, rate_and_pool, cursor.word("number of values")?))
}

/// One value. Outer errors are the output's, inner ones the sample's.
fn value(
    sink: &mut impl Sink,
    cursor: &mut Cursor<'_>,
    prefix: &str,
    types: &[(&str, Type)],
) -> io::Result<Result<(), DecodeError>> {
    let mut read = || {
        let name = cursor.opaque("name of a value")?;
        let start = *cursor;
        let number = cursor.word("type of a value")?;
        let Some(&(type_name, kind)) = types.get(number as usize) else {
            return Err(start.error(Problem::ValueType(number)));
        };
        let shown = match kind {
            Type::Text => String::from_utf8_lossy(cursor.opaque("value")?).into_owned(),
            Type::U32 => cursor.word("value")?.to_string(),
            Type::U64 => cursor.long("value")?.to_string(),
            Type::F32 => format!("{:.3}", f32::from_bits(cursor.word("value")?)),
            Type::F64 => format!("{:.3}", f64::from_bits(cursor.long("value")?)),
            Type::Mac => Mac(cursor.mac("value")?).to_string(),
            Type::Ipv4 => Address(Some(cursor.array::<4>("value")?.into())).to_string(),
            Type::Ipv6 => Address(Some(cursor.array::<16>("value")?.into())).to_string(),
        };
        Ok((name, type_name, shown))
    };
    match read() {
        Ok((name, type_name, shown)) => {
            sink.foreign_name(
                &format!("{prefix}_{type_name}_{}", String::from_utf8_lossy(name)),
                &shown,
            )?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(error)),
    }
}
