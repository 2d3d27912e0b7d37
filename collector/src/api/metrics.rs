//! Metrics in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::run::{Collector, lock};

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// `GET /metrics`.
pub(super) async fn metrics(State(collector): State<Arc<Collector>>) -> Response {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<(String, f64)>| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    };
    let store = collector.store.status();
    {
        let shared = lock(&collector.shared);
        let exporters = &shared.accounts.exporters;
        let label = |exporter: &str| format!("exporter=\"{}\"", escape(exporter));
        let mut outcomes = Vec::new();
        let mut reasons = Vec::new();
        for (name, e) in exporters {
            for (outcome, value) in [
                ("decoded", e.decoded),
                ("partly", e.partly),
                ("waiting", e.waiting),
                ("rejected", e.rejected),
            ] {
                outcomes.push((
                    format!("{{{},outcome=\"{outcome}\"}}", label(name)),
                    value as f64,
                ));
            }
            for (reason, value) in &e.reasons {
                reasons.push((
                    format!("{{{},reason=\"{}\"}}", label(name), escape(reason)),
                    *value as f64,
                ));
            }
        }
        let each = |of: fn(&crate::account::Exporter) -> u64| {
            exporters
                .iter()
                .map(|(name, e)| (format!("{{{}}}", label(name)), of(e) as f64))
                .collect::<Vec<_>>()
        };
        family(
            "weir_collector_datagrams_total",
            "counter",
            "Datagrams by outcome.",
            outcomes,
        );
        family(
            "weir_collector_problems_total",
            "counter",
            "Rejected or partly decoded datagrams and records by reason.",
            reasons,
        );
        family(
            "weir_collector_rows_total",
            "counter",
            "Rows decoded.",
            each(|e| e.rows),
        );
        family(
            "weir_collector_lost_total",
            "counter",
            "Units lost by sequence number.",
            each(|e| e.lost()),
        );
        family(
            "weir_collector_arrived_total",
            "counter",
            "Units that arrived.",
            each(|e| e.arrived()),
        );
        family(
            "weir_collector_unknown_rate_total",
            "counter",
            "Rows of unknown sampling rate.",
            each(|e| e.unknown_rate),
        );
        let sockets = |of: fn(&crate::account::Socket) -> u64| {
            let socket = |s: &crate::account::Socket| {
                (
                    format!("{{socket=\"{}\"}}", escape(&s.address)),
                    of(s) as f64,
                )
            };
            shared
                .accounts
                .sockets
                .iter()
                .map(socket)
                .collect::<Vec<_>>()
        };
        family(
            "weir_collector_kernel_dropped_total",
            "counter",
            "Datagrams the kernel dropped.",
            sockets(|s| s.kernel_dropped),
        );
        family(
            "weir_collector_received_total",
            "counter",
            "Datagrams received by socket.",
            sockets(|s| s.received),
        );
    }
    let one = |value: u64| vec![(String::new(), value as f64)];
    family(
        "weir_collector_rows_appended_total",
        "counter",
        "Rows stored.",
        one(store.appended),
    );
    family(
        "weir_collector_rows_durable_total",
        "counter",
        "Rows safe from a power failure.",
        one(store.durable),
    );
    family(
        "weir_collector_rows_lost_total",
        "counter",
        "Rows that could not be stored.",
        one(store.lost),
    );
    family(
        "weir_collector_files",
        "gauge",
        "Parquet files of flows.",
        one(store.files),
    );
    family(
        "weir_collector_file_bytes",
        "gauge",
        "Bytes of all files.",
        one(store.file_bytes),
    );
    family(
        "weir_collector_memory_rows",
        "gauge",
        "Rows that are in no file yet.",
        one(store.memory_rows),
    );
    let firing = lock(&collector.alerts)
        .list()
        .iter()
        .filter(|alert| alert.status == "firing")
        .count();
    family(
        "weir_collector_alerts_firing",
        "gauge",
        "Active alerts.",
        one(firing as u64),
    );
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], out).into_response()
}
