//! Threads that read names again now and then: mmdb files, sources, the APIs of routers.
//!
//! Each source and each router has a thread of its own, so that one that does not answer holds up no other. All end within
//! a second of the program's end, but for a request that is under way.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::account::exporter_name;
use crate::config::{RouterConfig, SourceConfig};
use crate::enrich::sources;
use crate::receive::now;
use crate::routers::{self, Arrived, Counts};
use crate::run::{Collector, lock};

/// Seconds between two looks at mmdb files.
const DATABASES: u64 = 5;
/// Seconds after a reading of a router's counters until what was on the way has arrived.
const ON_THE_WAY: u64 = 2;

/// Sleeps; `false` when the program ends.
fn sleep(stop: &AtomicBool, seconds: u64) -> bool {
    for _ in 0..seconds.saturating_mul(5) {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    !stop.load(Ordering::Relaxed)
}

/// Starts all threads.
///
/// # Errors
/// When one cannot be started.
pub fn start(collector: &Arc<Collector>, stop: &Arc<AtomicBool>) -> std::io::Result<()> {
    let spawn = |name: &str, work: Box<dyn FnOnce(&Collector, &AtomicBool) + Send>| {
        let (collector, stop) = (Arc::clone(collector), Arc::clone(stop));
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&collector, &stop))
            .map(|_| ())
    };
    if !collector.config.databases.is_empty() {
        spawn(
            "databases",
            Box::new(|collector, stop| {
                while sleep(stop, DATABASES) {
                    collector.geo.reload();
                }
            }),
        )?;
    }
    for (name, source) in collector.config.sources.clone() {
        spawn(
            "source",
            Box::new(move |collector, stop| follow_source(collector, stop, &name, &source)),
        )?;
    }
    for (address, router) in collector.config.routers.clone() {
        spawn(
            "router",
            Box::new(move |collector, stop| follow_router(collector, stop, address, &router)),
        )?;
    }
    Ok(())
}

fn follow_source(collector: &Collector, stop: &AtomicBool, name: &str, config: &SourceConfig) {
    let client = sources::client();
    loop {
        match sources::read(&client, config) {
            Ok(overlay) => {
                let status = sources::Status {
                    read: now(),
                    exporters: overlay.exporters.len(),
                    networks: overlay.networks.len(),
                    problem: None,
                };
                lock(&collector.shared)
                    .enricher
                    .set_overlay(&format!("1 {name}"), overlay);
                lock(&collector.sources).insert(name.to_owned(), status);
            }
            Err(error) => {
                tracing::warn!(source = name, %error, "source cannot be read; what it had stays in use");
                lock(&collector.sources)
                    .entry(name.to_owned())
                    .or_default()
                    .problem = Some(error);
            }
        }
        if !sleep(stop, config.interval) {
            return;
        }
    }
}

fn counts(collector: &Collector, exporter: &str) -> Counts {
    let shared = lock(&collector.shared);
    let Some(exporter) = shared.accounts.exporters.get(exporter) else {
        return Counts::default();
    };
    let of = |format: &str| {
        let units = exporter.sequences.get(format).copied().unwrap_or_default();
        Arrived {
            arrived: units.arrived,
            lost: units.lost,
        }
    };
    let mut ipfix = of("ipfix");
    // The router counts flows; option records are in the sequence, too.
    ipfix.arrived = ipfix.arrived.saturating_sub(exporter.options);
    Counts {
        sflow: of("sflow"),
        ipfix,
    }
}

fn follow_router(collector: &Collector, stop: &AtomicBool, address: IpAddr, config: &RouterConfig) {
    let (client, exporter) = (sources::client(), exporter_name(address));
    loop {
        let before = counts(collector, &exporter);
        match routers::read(&client, address, config) {
            Ok(mut reading) => {
                let overlay = std::mem::take(&mut reading.overlay);
                lock(&collector.shared)
                    .enricher
                    .set_overlay(&format!("2 {exporter}"), overlay);
                if !sleep(stop, ON_THE_WAY) {
                    return;
                }
                let after = counts(collector, &exporter);
                lock(&collector.routers).entry(address).or_default().enter(
                    reading,
                    before,
                    after,
                    now(),
                );
            }
            Err(error) => {
                tracing::warn!(router = %address, %error, "the API of the router cannot be read");
                lock(&collector.routers).entry(address).or_default().problem = Some(error);
            }
        }
        if !sleep(stop, config.interval) {
            return;
        }
    }
}
