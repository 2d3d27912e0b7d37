//! The flow table: one row of it, and its Arrow schema.
//!
//! A row is what one flow sample or one flow record reports, already scaled by its own sampling rate. Names of columns are
//! lower case, so that SQL needs no quoting. Columns are only ever added; their order is the order in the files.
//!
//! Addresses are two unsigned 64-bit words (IPv4 mapped into IPv6), so that a prefix is a range of numbers.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringDictionaryBuilder, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;

/// Version of the schema, kept with each file. Raise it when a column is added.
pub const SCHEMA_VERSION: u32 = 1;

/// A text that many rows share.
pub type Text = Arc<str>;

/// One row of the flow table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When the collector received it, seconds since 1970.
    pub time: i64,
    /// Address of the exporter (sFlow: of the agent).
    pub exporter: Text,
    /// Name of the exporter; its address when it has none.
    pub exporter_name: Text,
    /// `sflow`, `ipfix`, `netflow9` or `netflow5`.
    pub format: Text,
    /// Index of the interface that the packets arrived on; 0 unknown.
    pub in_if: u32,
    /// Index of the interface that the packets left by; 0 unknown or none.
    pub out_if: u32,
    /// Name of the input interface; empty when unknown.
    pub in_if_name: Text,
    /// Name of the output interface; empty when unknown.
    pub out_if_name: Text,
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
    /// Network of the source by the configuration; empty when none matches.
    pub src_net: Text,
    /// Network of the destination by the configuration; empty when none matches.
    pub dst_net: Text,
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
}

impl Row {
    /// A row in which nothing is known yet.
    #[must_use]
    pub fn new(time: i64, exporter: Text, format: Text, empty: &Text) -> Row {
        Row {
            time,
            exporter_name: exporter.clone(),
            exporter,
            format,
            in_if: 0,
            out_if: 0,
            in_if_name: empty.clone(),
            out_if_name: empty.clone(),
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
            src_net: empty.clone(),
            dst_net: empty.clone(),
            outcome: empty.clone(),
            direction: 255,
            rate: 1,
            samples: 1,
            bytes: 0,
            packets: 0,
            l2_bytes: 0,
            bytes_var: 0.0,
            packets_var: 0.0,
            discards: 0,
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
        self.packets_var = count * spread;
        self.bytes_var = if packets == 0 {
            0.0
        } else {
            (bytes as f64) * (bytes as f64) / count * spread
        };
    }
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
    let text = |of: fn(&Row) -> &Text| -> Result<ArrayRef, ArrowError> {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        // Neighbouring rows mostly share the text: one hash for each run.
        for run in rows.chunk_by(|a, b| Arc::ptr_eq(of(a), of(b))) {
            if let Some(row) = run.first() {
                builder.append_values(&**of(row), run.len());
            }
        }
        Ok(Arc::new(builder.finish()))
    };
    macro_rules! numbers {
        ($array:ident, $of:expr) => {
            Arc::new($array::from_iter_values(rows.iter().map($of))) as ArrayRef
        };
    }
    let columns = vec![
        numbers!(Int64Array, |row| row.time),
        text(|row| &row.exporter)?,
        text(|row| &row.exporter_name)?,
        text(|row| &row.format)?,
        numbers!(UInt32Array, |row| row.in_if),
        numbers!(UInt32Array, |row| row.out_if),
        text(|row| &row.in_if_name)?,
        text(|row| &row.out_if_name)?,
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
        text(|row| &row.src_net)?,
        text(|row| &row.dst_net)?,
        text(|row| &row.outcome)?,
        numbers!(UInt8Array, |row| row.direction),
        numbers!(UInt32Array, |row| row.rate),
        numbers!(UInt64Array, |row| row.samples),
        numbers!(UInt64Array, |row| row.bytes),
        numbers!(UInt64Array, |row| row.packets),
        numbers!(UInt64Array, |row| row.l2_bytes),
        numbers!(Float64Array, |row| row.bytes_var),
        numbers!(Float64Array, |row| row.packets_var),
        numbers!(UInt64Array, |row| row.discards),
    ];
    RecordBatch::try_new(schema(), columns)
}
