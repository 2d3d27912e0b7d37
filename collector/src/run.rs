//! The running collector: opens everything, starts the threads, ends cleanly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use weir_bmp::{Bmp, BmpSettings};

use crate::alerts::Alerts;
use crate::api;
use crate::background;
use crate::config::Config;
use crate::decode::{Shared, templates};
use crate::enrich::geo::Geo;
use crate::enrich::{Enricher, Learnt, sources};
use crate::live::Live;
use crate::oidc::Oidc;
use crate::query::engine::Engine;
use crate::receive::{self, Context, ListenError, TlsError, Transport, now};
use crate::routers::Routers;
use crate::row::Row;
use crate::store::state::{TEMPLATES, VALUES};
use crate::store::{Store, StoreError};
use crate::users::Users;

/// Batches of rows that wait for the storing thread.
const MOST_WAITING: usize = 256;

/// Live queries at the same time.
const MOST_SUBSCRIPTIONS: usize = 64;

/// Why the collector ends.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Storage.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// A socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The engine.
    #[error("query engine: {0}")]
    Engine(#[from] datafusion::error::DataFusionError),
    /// The HTTP server.
    #[error("cannot serve the console on {address}: {source}. Choose another address with http:")]
    Http {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// BMP.
    #[error("cannot listen for BMP on {0}: {1}")]
    Bmp(SocketAddr, String),
    /// A thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// What the parts of the running collector share.
pub struct Collector {
    /// The configuration.
    pub config: Config,
    /// Storage.
    pub store: Arc<Store>,
    /// Queries.
    pub engine: Engine,
    /// Counters and names.
    pub shared: Arc<Mutex<Shared>>,
    /// The live window.
    pub live: Mutex<Live>,
    /// Alerts.
    pub alerts: Mutex<Alerts>,
    /// Users.
    pub users: Users,
    /// Login by OpenID Connect.
    pub oidc: Option<Oidc>,
    /// Live queries that may be open.
    pub subscriptions: Arc<Semaphore>,
    /// mmdb files.
    pub geo: Arc<Geo>,
    /// BMP sessions.
    pub bmp: Option<Bmp>,
    /// Files and URLs with names.
    pub sources: Mutex<BTreeMap<String, sources::Status>>,
    /// Routers whose API is read.
    pub routers: Mutex<Routers>,
    /// When it started.
    pub started: i64,
}

/// Takes a lock, also one that a panicking thread left.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until SIGINT or SIGTERM. Writes where it listens to standard output, one line each.
///
/// # Errors
/// When a socket, the store or a thread cannot be had.
pub async fn run(config: Config) -> Result<(), RunError> {
    let store = Store::open(&config.data, now())?;
    let mut shared = Shared {
        enricher: Enricher::new(&config),
        ..Shared::default()
    };
    let mut stored = Vec::new();
    for (key, message) in store.db.all::<Vec<u8>>(TEMPLATES)? {
        if let Some(from) = templates::exporter_of(&key) {
            shared.templates.stored(&key, &message);
            stored.push((from, message));
        }
    }
    if let Some(learnt) = store.db.get::<Learnt>(VALUES, "learnt")? {
        shared.enricher.restore(&learnt);
    }
    let geo = Arc::new(Geo::new(&config.databases));
    shared.enricher.set_geo(Arc::clone(&geo));
    let bmp = match &config.bmp {
        None => None,
        Some(settings) => {
            let address = settings.listen;
            let started = Bmp::start(
                None,
                BmpSettings {
                    address,
                    most_paths: settings.paths,
                },
            );
            let bmp = started.map_err(|error| RunError::Bmp(address, error.to_string()))?;
            shared.enricher.set_routes(Arc::clone(bmp.routes()));
            println!("listening for BMP on tcp {}", bmp.address());
            Some(bmp)
        }
    };
    let shared = Arc::new(Mutex::new(shared));
    let (sender, rows) = sync_channel(MOST_WAITING);
    let stop = Arc::new(AtomicBool::new(false));
    let context = Context {
        shared: Arc::clone(&shared),
        rows: sender,
        stop: Arc::clone(&stop),
        templates: Arc::new(stored),
    };
    let collector = Arc::new(Collector {
        engine: Engine::new(Arc::clone(&store), &config.query)?,
        users: Users::new(Arc::clone(&store), &config),
        oidc: config.oidc.clone().map(Oidc::new),
        subscriptions: Arc::new(Semaphore::new(MOST_SUBSCRIPTIONS)),
        alerts: Mutex::new(Alerts::with_store(&config, &store)?),
        live: Mutex::default(),
        shared,
        store,
        geo,
        bmp,
        sources: Mutex::default(),
        routers: Mutex::default(),
        started: now(),
        config,
    });
    let recovered = collector.store.status().recovered;
    if recovered > 0 {
        println!("recovered {recovered} rows from the write-ahead log");
    }
    let address = collector.config.http;
    let refuse = |source| RunError::Http { address, source };
    let http = tokio::net::TcpListener::bind(address)
        .await
        .map_err(refuse)?;
    let http_address = http.local_addr().map_err(refuse)?;
    for address in &collector.config.listen {
        let (buffer, threads) = (collector.config.receive_buffer, collector.config.threads);
        let bound = receive::listen_udp(&context, *address, buffer, threads)?;
        println!("listening on udp {bound}");
    }
    for address in &collector.config.listen_tcp {
        let bound = receive::listen_tcp(&context, *address, Transport::Tcp)?;
        println!("listening on tcp {bound}");
    }
    if let Some(tls) = &collector.config.tls {
        let transport = Transport::tls(tls)?;
        for address in &tls.listen {
            let bound = receive::listen_tcp(&context, *address, transport.clone())?;
            println!("listening on tls {bound}");
        }
    }
    background::start(&collector, &stop)?;
    // The storing thread ends when the last receiving thread is gone.
    drop(context);
    let storing = {
        let collector = Arc::clone(&collector);
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || store_rows(&collector, &rows))?
    };
    let sealing = tokio::spawn(seal(Arc::clone(&collector)));
    println!("console at http://{http_address}/");
    let service =
        api::router(Arc::clone(&collector)).into_make_service_with_connect_info::<SocketAddr>();
    let served = tokio::select! {
        result = axum::serve(http, service) => result.map_err(refuse),
        () = ended() => Ok(()),
    };
    stop.store(true, Ordering::Relaxed);
    sealing.abort();
    // Receiving threads look at the flag five times a second.
    let _ = tokio::task::spawn_blocking(move || storing.join()).await;
    served
}

async fn ended() {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
    }
}

/// Seals segments as they become ready, and merges files while none does.
async fn seal(collector: Arc<Collector>) {
    let mut next = now() + 30;
    loop {
        match collector.store.seal(None).await {
            Ok(Some(sealed)) => tracing::info!(segment = sealed.id, rows = sealed.rows, "sealed"),
            Ok(None) if now() >= next => {
                let days = collector.config.retention.minutes_days;
                match collector.store.compact(now(), days, None).await {
                    Ok(Some(done)) => {
                        tracing::info!(?done, "the files of an hour became one");
                    }
                    Ok(None) => next = now() + 60,
                    Err(error) => {
                        tracing::error!(%error, "files could not be merged; it is tried again in 5 minutes");
                        next = now() + 300;
                    }
                }
            }
            Ok(None) => tokio::time::sleep(Duration::from_millis(300)).await,
            Err(error) => {
                tracing::error!(%error, "sealing failed; it is tried again in 5 seconds");
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        }
    }
}

/// The storing thread: rows to the live window at once, to the log five times a second; durability, alerts and housekeeping each second.
fn store_rows(collector: &Collector, rows: &Receiver<Vec<Row>>) {
    let (mut waiting, mut written, mut ticked) = (Vec::new(), Instant::now(), 0);
    loop {
        let ended = match rows.recv_timeout(Duration::from_millis(50)) {
            Ok(mut batch) => {
                lock(&collector.live).add(&batch);
                waiting.append(&mut batch);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let time = now();
        if ended || written.elapsed() >= Duration::from_millis(200) || waiting.len() > 50_000 {
            collector.store.append(&waiting, time);
            waiting.clear();
            written = Instant::now();
        }
        if ended || time != ticked {
            ticked = time;
            collector.store.tick(time);
            let live = lock(&collector.live);
            lock(&collector.alerts).evaluate(&live, time);
            drop(live);
            if (ended || time % 3600 == 0)
                && let Err(error) = lock(&collector.alerts).save()
            {
                tracing::error!(%error, "baselines could not be stored");
            }
            if ended || time % 5 == 0 {
                housekeeping(collector, time, ended || time % 30 == 0);
            }
        }
        if ended {
            return;
        }
    }
}

fn housekeeping(collector: &Collector, time: i64, all: bool) {
    let (templates, minutes, learnt) = {
        let mut shared = lock(&collector.shared);
        let minutes = std::mem::take(&mut shared.accounts.minutes);
        let learnt = all.then(|| shared.enricher.learnt());
        (shared.templates.take(), minutes, learnt)
    };
    let db = &collector.store.db;
    let report = |what: &str, result: Result<(), StoreError>| {
        if let Err(error) = result {
            tracing::error!(%error, what, "state could not be stored");
        }
    };
    if !templates.is_empty() {
        let values: Vec<_> = templates
            .into_iter()
            .map(|(key, message)| (key, Some(message)))
            .collect();
        report("templates", db.put(TEMPLATES, &values));
    }
    if !minutes.is_empty() {
        let oldest = time - i64::from(collector.config.retention.totals_days) * 86_400;
        report("coverage", db.add_minutes(&minutes, oldest));
    }
    if let Some(learnt) = learnt {
        report(
            "names",
            db.put(VALUES, &[("learnt".to_owned(), Some(learnt))]),
        );
        report(
            "retention",
            collector.store.expire(&collector.config.retention, time),
        );
    }
}
