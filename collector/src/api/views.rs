//! Views of the collector's state: exporters, health, and answers as CSV.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde_json::{Value, json};

use crate::query::Answer;
use crate::receive::now;
use crate::run::{Collector, lock};
use crate::users::Identity;

/// Exporters with their counters, rates and interfaces.
pub(super) async fn exporters(
    State(collector): State<Arc<Collector>>,
    Extension(identity): Extension<Identity>,
) -> Json<Value> {
    let routers = lock(&collector.routers).clone();
    let shared = lock(&collector.shared);
    // A tenant sees the exporters that are its own.
    let is_shown = |address: &str| match &identity.tenant {
        None => true,
        Some(tenant) => shared
            .enricher
            .info(address)
            .is_some_and(|info| *info.tenant == **tenant),
    };
    let shown = shared
        .accounts
        .exporters
        .iter()
        .filter(|(address, _)| is_shown(address));
    let all = shown.map(|(address, exporter)| {
        let info = shared.enricher.info(address).unwrap_or_default();
        let router = address.parse().ok().and_then(|ip| routers.get(&ip));
        let interfaces: Vec<Value> = shared
            .enricher
            .interfaces(address)
            .into_iter()
            .map(|(index, i)| {
                json!({
                    "index": index, "name": &*i.info.name, "description": &*i.description, "speed": i.speed, "configured": i.configured,
                    "boundary": &*i.info.boundary, "provider": &*i.info.provider, "connectivity": &*i.info.connectivity,
                })
            })
            .collect();
        json!({
            "address": address,
            "name": shared.enricher.name(address),
            "role": &*info.role,
            "site": &*info.site,
            "tenant": &*info.tenant,
            "checks": shared.checks.of(address),
            "router": router,
            "coverage": exporter.coverage(),
            "counters": exporter,
            "interfaces": interfaces,
        })
    });
    Json(json!({ "exporters": all.collect::<Vec<_>>(), "now": now() }))
}

/// Where each datagram went, and the state of storage.
pub(super) async fn health(State(collector): State<Arc<Collector>>) -> Json<Value> {
    let store = collector.store.status();
    let (sources, routers) = (
        lock(&collector.sources).clone(),
        lock(&collector.routers).clone(),
    );
    let databases = collector.geo.status();
    let bmp = collector.bmp.as_ref().map(|bmp| {
        let (status, (paths, prefixes)) = (bmp.status(), bmp.routes().counts());
        let sessions: Vec<Value> = status.sessions.iter().map(|(from, session)| json!({ "from": from.to_string(), "name": session.name, "peers": session.peers.len(), "messages": session.messages })).collect();
        json!({ "sessions": sessions, "paths": paths, "prefixes": prefixes, "refused": status.refused })
    });
    let shared = lock(&collector.shared);
    let off = shared.checks.off();
    let sum = |of: fn(&crate::account::Exporter) -> u64| {
        shared.accounts.exporters.values().map(of).sum::<u64>()
    };
    let (received, decoded, partly, waiting, rejected) = (
        sum(|e| e.received),
        sum(|e| e.decoded),
        sum(|e| e.partly),
        sum(|e| e.waiting),
        sum(|e| e.rejected),
    );
    let kernel: u64 = shared
        .accounts
        .sockets
        .iter()
        .map(|socket| socket.kernel_dropped)
        .sum();
    let problems = [
        (kernel > 0).then(|| {
            format!(
                "the kernel dropped {kernel} datagrams: raise net.core.rmem_max or receive_buffer"
            )
        }),
        (rejected > 0).then(|| {
            format!("{rejected} datagrams were rejected: see the reasons of each exporter")
        }),
        (sum(|e| e.lost()) > 0).then(|| {
            format!(
                "{} units were lost on the way by sequence numbers",
                sum(|e| e.lost())
            )
        }),
        (sum(|e| e.unknown_rate) > 0).then(|| {
            format!(
                "{} rows have no known sampling rate and are not scaled",
                sum(|e| e.unknown_rate)
            )
        }),
        store
            .failure
            .as_ref()
            .map(|(_, message)| format!("storage: {message}")),
        (!off.is_empty()).then(|| {
            let names: Vec<String> = off
                .iter()
                .take(5)
                .map(|(exporter, index)| {
                    format!("{} interface {index}", shared.enricher.name(exporter))
                })
                .collect();
            format!(
                "samples do not agree with interface counters: {}",
                names.join(", ")
            )
        }),
        (!store.quarantined.is_empty()).then(|| {
            format!(
                "{} damaged files are in quarantine/",
                store.quarantined.len()
            )
        }),
    ];
    let mut problems: Vec<String> = problems.into_iter().flatten().collect();
    for (name, source) in &sources {
        problems.extend(
            source
                .problem
                .iter()
                .map(|problem| format!("source {name}: {problem}")),
        );
    }
    for file in &databases {
        problems.extend(
            file.problem
                .iter()
                .map(|problem| format!("{}: {problem}", file.path.display())),
        );
    }
    for (address, router) in &routers {
        problems.extend(
            router
                .problem
                .iter()
                .map(|problem| format!("router {address}: {problem}")),
        );
        for (format, check) in [("sFlow", &router.sflow), ("IPFIX", &router.ipfix)] {
            if let Some(check) = check.as_ref().filter(|check| !check.balanced) {
                problems.push(format!(
                    "router {address}: it sent {} units of {format}, of which {} arrived and {} are known to be lost",
                    check.sent, check.arrived[1], check.lost
                ));
            }
        }
    }
    Json(json!({
        "now": now(),
        "started": collector.started,
        "version": env!("CARGO_PKG_VERSION"),
        "datagrams": {
            "received": received, "decoded": decoded, "partly": partly, "waiting": waiting, "rejected": rejected,
            "balance": received == decoded + partly + waiting + rejected,
            "kernel_dropped": kernel, "lost": sum(|e| e.lost()), "arrived": sum(|e| e.arrived()),
        },
        "rows": sum(|e| e.rows),
        "sockets": shared.accounts.sockets,
        "store": store,
        "names_refused": shared.enricher.refused,
        "sources": sources,
        "routers": routers.iter().map(|(address, router)| (address.to_string(), router)).collect::<std::collections::BTreeMap<_, _>>(),
        "databases": databases,
        "bmp": bmp,
        "problems": problems,
    }))
}

/// A text field of CSV (RFC 4180); what a spreadsheet would take for a formula gets a quote in front.
fn field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// An answer as CSV: a line a row; with a series, a column a point.
pub(super) fn csv(answer: &Answer) -> String {
    let mut head: Vec<String> = answer
        .dimensions
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    let names = [
        "role", "axis", "total", "low", "high", "samples", "average", "min", "max", "last", "p95",
    ];
    head.extend(names.map(str::to_owned));
    head.extend(answer.times.iter().map(ToString::to_string));
    let mut lines = vec![head.join(",")];
    for row in &answer.rows {
        let mut line: Vec<String> = row.key.iter().map(|text| field(text)).collect();
        line.resize(answer.dimensions.len(), String::new());
        line.extend([
            row.role.to_owned(),
            row.axis.to_string(),
            row.total.to_string(),
        ]);
        let limit = |at: usize| {
            row.band
                .and_then(|band| band.get(at).copied())
                .map_or_else(String::new, |value| value.to_string())
        };
        line.extend([limit(0), limit(1)]);
        let numbers = [
            row.samples,
            row.average,
            row.min,
            row.max,
            row.last,
            row.p95,
        ];
        line.extend(numbers.iter().chain(&row.points).map(ToString::to_string));
        lines.push(line.join(","));
    }
    lines.join("\r\n") + "\r\n"
}
