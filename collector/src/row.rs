//! The flow table: one row of it, and its Arrow schema.
//!
//! A row is what one flow sample or one flow record reports, already scaled by its own sampling rate. Names of columns are
//! lower case, so that SQL needs no quoting. Columns are only ever added; their order is the order in the files.
//!
//! Addresses are two unsigned 64-bit words (IPv4 mapped into IPv6), so that a prefix is a range of numbers.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch, StringDictionaryBuilder,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float64Type, Int32Type, Int64Type, Schema, SchemaRef,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;

/// Version of the schema, kept with each file. Raise it when a column is added.
/// 2 added what follows `discards`.
pub const SCHEMA_VERSION: u32 = 2;

/// Columns that version 2 added; files of version 1 lack them.
pub const ADDED: [&str; 19] = [
    "exporter_role",
    "exporter_site",
    "exporter_tenant",
    "in_if_boundary",
    "out_if_boundary",
    "in_if_provider",
    "out_if_provider",
    "in_if_connectivity",
    "out_if_connectivity",
    "src_net_role",
    "dst_net_role",
    "src_net_site",
    "dst_net_site",
    "src_net_tenant",
    "dst_net_tenant",
    "src_country",
    "dst_country",
    "as_path",
    "communities",
];

/// A text that many rows share.
pub type Text = Arc<str>;

/// What is known of an exporter; its rows share it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExporterInfo {
    /// Its address.
    pub address: Text,
    /// Its name; the address when it has none.
    pub name: Text,
    /// Its role, for example `edge`.
    pub role: Text,
    /// Where it is.
    pub site: Text,
    /// Whose it is.
    pub tenant: Text,
}

/// What is known of an interface; rows share it. Unknown texts are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceInfo {
    /// Its name.
    pub name: Text,
    /// `external` or `internal`.
    pub boundary: Text,
    /// The network behind it.
    pub provider: Text,
    /// For example `transit` or `ix`.
    pub connectivity: Text,
}

/// What is known of a network; rows share it. Unknown texts are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkInfo {
    /// Its name.
    pub name: Text,
    /// Its role.
    pub role: Text,
    /// Where it is.
    pub site: Text,
    /// Whose it is.
    pub tenant: Text,
}

/// A country by its two letters (ISO 3166-1); zeros when it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Country(pub [u8; 2]);

impl Country {
    /// The country of a code of two letters; unknown for any other text.
    #[must_use]
    pub fn new(code: &str) -> Country {
        match code.as_bytes() {
            [a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => {
                Country([a.to_ascii_uppercase(), b.to_ascii_uppercase()])
            }
            _ => Country::default(),
        }
    }

    /// The code; empty when it is unknown.
    #[must_use]
    pub fn code(&self) -> &str {
        match self.0 {
            [0, _] => "",
            _ => std::str::from_utf8(&self.0).unwrap_or(""),
        }
    }
}

/// One row of the flow table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When the collector received it, seconds since 1970.
    pub time: i64,
    /// The exporter (sFlow: the agent).
    pub exporter: Arc<ExporterInfo>,
    /// `sflow`, `ipfix`, `netflow9` or `netflow5`.
    pub format: Text,
    /// Index of the interface that the packets arrived on; 0 unknown.
    pub in_if: u32,
    /// Index of the interface that the packets left by; 0 unknown or none.
    pub out_if: u32,
    /// The input interface.
    pub in_port: Arc<InterfaceInfo>,
    /// The output interface.
    pub out_port: Arc<InterfaceInfo>,
    /// Source address; `::` when the record has none.
    pub src: Ipv6Addr,
    /// Destination address; `::` when the record has none.
    pub dst: Ipv6Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// IP protocol.
    pub proto: u8,
    /// EtherType: 0x0800, 0x86dd, or what the frame carries; 0 unknown.
    pub etype: u16,
    /// Type of service or traffic class.
    pub tos: u8,
    /// TCP flags.
    pub tcp_flags: u16,
    /// VLAN number; 0 none or unknown.
    pub vlan: u16,
    /// Source AS number; 0 unknown.
    pub src_as: u32,
    /// Destination AS number; 0 unknown.
    pub dst_as: u32,
    /// Source prefix length.
    pub src_len: u8,
    /// Destination prefix length.
    pub dst_len: u8,
    /// Network of the source.
    pub src_net: Arc<NetworkInfo>,
    /// Network of the destination.
    pub dst_net: Arc<NetworkInfo>,
    /// `forwarded`, `dropped: <reason>`, `consumed`, `multiple` or empty (unknown).
    pub outcome: Text,
    /// 0 ingress, 1 egress, 255 unknown (IPFIX flowDirection).
    pub direction: u8,
    /// Packets that one sampled packet stands for; 1 not sampled, 0 unknown (values are then not scaled).
    pub rate: u32,
    /// Number of sampled packets behind the values.
    pub samples: u64,
    /// Estimated IP bytes.
    pub bytes: u64,
    /// Estimated packets.
    pub packets: u64,
    /// Estimated bytes of frames without FCS; equals `bytes` where the record has no layer 2 length.
    pub l2_bytes: u64,
    /// Variance of `bytes`: Σ w²·(1 − 1/N).
    pub bytes_var: f64,
    /// Variance of `packets`.
    pub packets_var: f64,
    /// Notifications of discarded packets (sFlow 0:5): not sampled, so they are counted apart and never scaled.
    pub discards: u64,
    /// Country of the source.
    pub src_country: Country,
    /// Country of the destination.
    pub dst_country: Country,
    /// AS path to the destination: numbers between spaces, sets in braces; empty when unknown.
    pub as_path: Text,
    /// BGP communities of the route to the destination, `a:b` between spaces; empty when unknown.
    pub communities: Text,
}

/// What rows share while nothing is known.
#[derive(Clone, Debug, Default)]
pub struct Unknown {
    /// An empty text.
    pub text: Text,
    /// An interface.
    pub interface: Arc<InterfaceInfo>,
    /// A network.
    pub network: Arc<NetworkInfo>,
}

impl Row {
    /// A row in which nothing is known yet.
    #[must_use]
    pub fn new(time: i64, exporter: Arc<ExporterInfo>, format: Text, unknown: &Unknown) -> Row {
        Row {
            time,
            exporter,
            format,
            in_if: 0,
            out_if: 0,
            in_port: Arc::clone(&unknown.interface),
            out_port: Arc::clone(&unknown.interface),
            src: Ipv6Addr::UNSPECIFIED,
            dst: Ipv6Addr::UNSPECIFIED,
            src_port: 0,
            dst_port: 0,
            proto: 0,
            etype: 0,
            tos: 0,
            tcp_flags: 0,
            vlan: 0,
            src_as: 0,
            dst_as: 0,
            src_len: 0,
            dst_len: 0,
            src_net: Arc::clone(&unknown.network),
            dst_net: Arc::clone(&unknown.network),
            outcome: Arc::clone(&unknown.text),
            direction: 255,
            rate: 1,
            samples: 1,
            bytes: 0,
            packets: 0,
            l2_bytes: 0,
            bytes_var: 0.0,
            packets_var: 0.0,
            discards: 0,
            src_country: Country::default(),
            dst_country: Country::default(),
            as_path: Arc::clone(&unknown.text),
            communities: Arc::clone(&unknown.text),
        }
    }

    /// Sets the measured values: `packets` sampled packets of `bytes` (and `l2_bytes`) in all, one in `rate` sampled.
    ///
    /// The variance assumes independent sampling of packets of the record's mean size. Rate 0 is unknown: not scaled.
    pub fn measure(&mut self, packets: u64, bytes: u64, l2_bytes: u64, rate: u32) {
        let n = u64::from(rate.max(1));
        self.rate = rate;
        self.samples = packets;
        self.packets = packets.saturating_mul(n);
        self.bytes = bytes.saturating_mul(n);
        self.l2_bytes = l2_bytes.saturating_mul(n);
        let (count, scale) = (packets as f64, n as f64);
        let spread = scale * scale * (1.0 - 1.0 / scale);
        self.packets_var = coarse(count * spread);
        self.bytes_var = if packets == 0 {
            0.0
        } else {
            coarse((bytes as f64) * (bytes as f64) / count * spread)
        };
    }
}

/// A variance with 16 bits of mantissa, 0.002 % at most too low: the rest would be noise that no file can compress.
fn coarse(variance: f64) -> f64 {
    f64::from_bits(variance.to_bits() & !((1 << 36) - 1))
}

/// An address as the table holds it.
#[must_use]
pub fn address(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The two words of an address.
#[must_use]
pub fn words(ip: Ipv6Addr) -> (u64, u64) {
    let bits = u128::from(ip);
    ((bits >> 64) as u64, bits as u64)
}

/// The address of two words, IPv4 where it is mapped.
#[must_use]
pub fn from_words(high: u64, low: u64) -> IpAddr {
    Ipv6Addr::from((u128::from(high) << 64) | u128::from(low)).to_canonical()
}

/// The schema of the flow table.
#[must_use]
pub fn schema() -> SchemaRef {
    let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = [
        ("time", DataType::Int64),
        ("exporter", text()),
        ("exporter_name", text()),
        ("format", text()),
        ("in_if", DataType::UInt32),
        ("out_if", DataType::UInt32),
        ("in_if_name", text()),
        ("out_if_name", text()),
        ("src_hi", DataType::UInt64),
        ("src_lo", DataType::UInt64),
        ("dst_hi", DataType::UInt64),
        ("dst_lo", DataType::UInt64),
        ("src_port", DataType::UInt16),
        ("dst_port", DataType::UInt16),
        ("proto", DataType::UInt8),
        ("etype", DataType::UInt16),
        ("tos", DataType::UInt8),
        ("tcp_flags", DataType::UInt16),
        ("vlan", DataType::UInt16),
        ("src_as", DataType::UInt32),
        ("dst_as", DataType::UInt32),
        ("src_len", DataType::UInt8),
        ("dst_len", DataType::UInt8),
        ("src_net", text()),
        ("dst_net", text()),
        ("outcome", text()),
        ("direction", DataType::UInt8),
        ("rate", DataType::UInt32),
        ("samples", DataType::UInt64),
        ("bytes", DataType::UInt64),
        ("packets", DataType::UInt64),
        ("l2_bytes", DataType::UInt64),
        ("bytes_var", DataType::Float64),
        ("packets_var", DataType::Float64),
        ("discards", DataType::UInt64),
        ("exporter_role", text()),
        ("exporter_site", text()),
        ("exporter_tenant", text()),
        ("in_if_boundary", text()),
        ("out_if_boundary", text()),
        ("in_if_provider", text()),
        ("out_if_provider", text()),
        ("in_if_connectivity", text()),
        ("out_if_connectivity", text()),
        ("src_net_role", text()),
        ("dst_net_role", text()),
        ("src_net_site", text()),
        ("dst_net_site", text()),
        ("src_net_tenant", text()),
        ("dst_net_tenant", text()),
        ("src_country", text()),
        ("dst_country", text()),
        ("as_path", text()),
        ("communities", text()),
    ];
    Arc::new(Schema::new(
        fields
            .map(|(name, kind)| Field::new(name, kind, true))
            .to_vec(),
    ))
}

/// Columns that files are sorted by: rows of one interface stand together, which halves the file and lets filters skip.
pub const SORT: [&str; 7] = [
    "exporter", "in_if", "out_if", "src_hi", "src_lo", "dst_hi", "dst_lo",
];

/// Rows as an Arrow batch.
///
/// # Errors
/// When Arrow refuses the columns.
pub fn batch(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    // Neighbouring rows mostly share what a text comes from: one hash for each run.
    macro_rules! text {
        ($same:expr, $of:expr) => {{
            let (same, of): (fn(&Row, &Row) -> bool, fn(&Row) -> &str) = ($same, $of);
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            for run in rows.chunk_by(same) {
                if let Some(row) = run.first() {
                    builder.append_values(of(row), run.len());
                }
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
        ($part:ident . $name:ident) => {
            text!(|a, b| Arc::ptr_eq(&a.$part, &b.$part), |row| &row
                .$part
                .$name)
        };
        ($part:ident) => {
            text!(|a, b| Arc::ptr_eq(&a.$part, &b.$part), |row| &row.$part)
        };
    }
    macro_rules! numbers {
        ($array:ident, $of:expr) => {
            Arc::new($array::from_iter_values(rows.iter().map($of))) as ArrayRef
        };
    }
    let columns = vec![
        numbers!(Int64Array, |row| row.time),
        text!(exporter.address),
        text!(exporter.name),
        text!(format),
        numbers!(UInt32Array, |row| row.in_if),
        numbers!(UInt32Array, |row| row.out_if),
        text!(in_port.name),
        text!(out_port.name),
        numbers!(UInt64Array, |row| words(row.src).0),
        numbers!(UInt64Array, |row| words(row.src).1),
        numbers!(UInt64Array, |row| words(row.dst).0),
        numbers!(UInt64Array, |row| words(row.dst).1),
        numbers!(UInt16Array, |row| row.src_port),
        numbers!(UInt16Array, |row| row.dst_port),
        numbers!(UInt8Array, |row| row.proto),
        numbers!(UInt16Array, |row| row.etype),
        numbers!(UInt8Array, |row| row.tos),
        numbers!(UInt16Array, |row| row.tcp_flags),
        numbers!(UInt16Array, |row| row.vlan),
        numbers!(UInt32Array, |row| row.src_as),
        numbers!(UInt32Array, |row| row.dst_as),
        numbers!(UInt8Array, |row| row.src_len),
        numbers!(UInt8Array, |row| row.dst_len),
        text!(src_net.name),
        text!(dst_net.name),
        text!(outcome),
        numbers!(UInt8Array, |row| row.direction),
        numbers!(UInt32Array, |row| row.rate),
        numbers!(UInt64Array, |row| row.samples),
        numbers!(UInt64Array, |row| row.bytes),
        numbers!(UInt64Array, |row| row.packets),
        numbers!(UInt64Array, |row| row.l2_bytes),
        numbers!(Float64Array, |row| row.bytes_var),
        numbers!(Float64Array, |row| row.packets_var),
        numbers!(UInt64Array, |row| row.discards),
        text!(exporter.role),
        text!(exporter.site),
        text!(exporter.tenant),
        text!(in_port.boundary),
        text!(out_port.boundary),
        text!(in_port.provider),
        text!(out_port.provider),
        text!(in_port.connectivity),
        text!(out_port.connectivity),
        text!(src_net.role),
        text!(dst_net.role),
        text!(src_net.site),
        text!(dst_net.site),
        text!(src_net.tenant),
        text!(dst_net.tenant),
        text!(|a, b| a.src_country == b.src_country, |row| row
            .src_country
            .code()),
        text!(|a, b| a.dst_country == b.dst_country, |row| row
            .dst_country
            .code()),
        text!(as_path),
        text!(communities),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// The rows of a batch with the columns of [`schema`], or of an older one: what is missing is unknown.
///
/// # Errors
/// When a column has another type.
pub fn rows(batch: &RecordBatch) -> Result<Vec<Row>, ArrowError> {
    let texts = |name: &str| -> Result<Vec<Text>, ArrowError> {
        let Some(column) = batch.column_by_name(name) else {
            return Ok(vec![Text::default(); batch.num_rows()]);
        };
        let column = cast(column, &DataType::Utf8)?;
        let strings = column.as_string_opt::<i32>();
        let strings = strings.ok_or_else(|| ArrowError::CastError(name.to_owned()))?;
        let mut last: Text = Text::default();
        let one = |text: Option<&str>| {
            let text = text.unwrap_or("");
            if *last != *text {
                last = text.into();
            }
            Arc::clone(&last)
        };
        Ok(strings.iter().map(one).collect())
    };
    fn numbers<T: ArrowPrimitiveType>(
        batch: &RecordBatch,
        name: &str,
    ) -> Result<Vec<T::Native>, ArrowError> {
        let Some(column) = batch.column_by_name(name) else {
            return Ok(vec![T::Native::default(); batch.num_rows()]);
        };
        let column = cast(column, &T::DATA_TYPE)?;
        let values = column.as_primitive_opt::<T>();
        let values = values.ok_or_else(|| ArrowError::CastError(name.to_owned()))?;
        Ok(values.iter().map(Option::unwrap_or_default).collect())
    }
    let unknown = Unknown::default();
    let mut all: Vec<Row> =
        vec![Row::new(0, Arc::default(), Text::default(), &unknown); batch.num_rows()];
    macro_rules! set {
        ($type:ident, $name:literal, |$row:ident, $value:ident| $set:expr) => {
            for ($row, $value) in all.iter_mut().zip(numbers::<$type>(batch, $name)?) {
                $set;
            }
        };
    }
    set!(Int64Type, "time", |row, value| row.time = value);
    set!(UInt32Type, "in_if", |row, value| row.in_if = value);
    set!(UInt32Type, "out_if", |row, value| row.out_if = value);
    set!(UInt16Type, "src_port", |row, value| row.src_port = value);
    set!(UInt16Type, "dst_port", |row, value| row.dst_port = value);
    set!(UInt8Type, "proto", |row, value| row.proto = value);
    set!(UInt16Type, "etype", |row, value| row.etype = value);
    set!(UInt8Type, "tos", |row, value| row.tos = value);
    set!(UInt16Type, "tcp_flags", |row, value| row.tcp_flags = value);
    set!(UInt16Type, "vlan", |row, value| row.vlan = value);
    set!(UInt32Type, "src_as", |row, value| row.src_as = value);
    set!(UInt32Type, "dst_as", |row, value| row.dst_as = value);
    set!(UInt8Type, "src_len", |row, value| row.src_len = value);
    set!(UInt8Type, "dst_len", |row, value| row.dst_len = value);
    set!(UInt8Type, "direction", |row, value| row.direction = value);
    set!(UInt32Type, "rate", |row, value| row.rate = value);
    set!(UInt64Type, "samples", |row, value| row.samples = value);
    set!(UInt64Type, "bytes", |row, value| row.bytes = value);
    set!(UInt64Type, "packets", |row, value| row.packets = value);
    set!(UInt64Type, "l2_bytes", |row, value| row.l2_bytes = value);
    set!(Float64Type, "bytes_var", |row, value| row.bytes_var = value);
    set!(Float64Type, "packets_var", |row, value| row.packets_var =
        value);
    set!(UInt64Type, "discards", |row, value| row.discards = value);
    for (high, low, is_src) in [("src_hi", "src_lo", true), ("dst_hi", "dst_lo", false)] {
        let words = numbers::<UInt64Type>(batch, high)?
            .into_iter()
            .zip(numbers::<UInt64Type>(batch, low)?);
        for (row, (high, low)) in all.iter_mut().zip(words) {
            let ip = Ipv6Addr::from((u128::from(high) << 64) | u128::from(low));
            if is_src {
                row.src = ip;
            } else {
                row.dst = ip;
            }
        }
    }
    macro_rules! text {
        ($name:literal, |$row:ident, $value:ident| $set:expr) => {
            for ($row, $value) in all.iter_mut().zip(texts($name)?) {
                $set;
            }
        };
    }
    text!("format", |row, value| row.format = value);
    text!("outcome", |row, value| row.outcome = value);
    text!("as_path", |row, value| row.as_path = value);
    text!("communities", |row, value| row.communities = value);
    text!("src_country", |row, value| row.src_country =
        Country::new(&value));
    text!("dst_country", |row, value| row.dst_country =
        Country::new(&value));
    macro_rules! info {
        ($part:ident: $($field:ident $name:literal),*) => {{
            let mut columns = vec![$(texts($name)?.into_iter()),*];
            for row in &mut all {
                let mut values = columns.iter_mut().map(|column| column.next().unwrap_or_default());
                let info = Arc::make_mut(&mut row.$part);
                $(info.$field = values.next().unwrap_or_default();)*
            }
        }};
    }
    info!(exporter: address "exporter", name "exporter_name", role "exporter_role", site "exporter_site", tenant "exporter_tenant");
    info!(in_port: name "in_if_name", boundary "in_if_boundary", provider "in_if_provider", connectivity "in_if_connectivity");
    info!(out_port: name "out_if_name", boundary "out_if_boundary", provider "out_if_provider", connectivity "out_if_connectivity");
    info!(src_net: name "src_net", role "src_net_role", site "src_net_site", tenant "src_net_tenant");
    info!(dst_net: name "dst_net", role "dst_net_role", site "dst_net_site", tenant "dst_net_tenant");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::dataset;

    #[test]
    fn variances_are_hardly_rounded() {
        let mut row = Row::new(0, Arc::default(), Text::default(), &Unknown::default());
        row.measure(3, 1234, 1300, 1000);
        let exact = 1234.0 * 1234.0 / 3.0 * (1e6 - 1e3);
        assert!(row.bytes_var <= exact && row.bytes_var > exact * 0.999_98);
        row.measure(u64::MAX, u64::MAX, u64::MAX, u32::MAX);
        assert!(row.bytes_var.is_finite() && row.packets_var.is_finite());
        row.measure(3, 1234, 1300, 1);
        assert_eq!((row.bytes_var, row.packets_var), (0.0, 0.0));
    }

    #[test]
    fn rows_come_back_out_of_a_batch() {
        let all = dataset(7, 500);
        let batch = batch(&all).expect("a batch");
        assert_eq!(rows(&batch).expect("rows"), all);
        // Columns that an older schema lacks are unknown.
        let old = batch.project(&(0..35).collect::<Vec<_>>()).expect("older");
        let back = rows(&old).expect("rows");
        assert_eq!(back[3].src, all[3].src);
        assert_eq!(&*back[3].exporter.site, "");
    }
}
