//! `weir run`: a router until it is told to stop.
//!
//! SIGTERM and Ctrl-C end it in order: nothing more comes in, what is inside goes out, XDP programs are
//! detached and devices closed, the agent sends what it has, the socket goes. A second signal during
//! that is ignored; the order takes a second at most.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_engine::{Options, Router};

use crate::cli::RunArgs;
use crate::commands::config_check;
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(args: &RunArgs, socket: Option<&Path>, to: &mut dyn Write) -> Result<(), Failure> {
    let config = config_check::load(&args.config)?;
    log_to_stderr(config.logging.level.word());
    let socket = socket.map_or_else(|| config.api.socket.clone(), Path::to_owned);
    let signals = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(Failure::said)?;
    // The handlers come first: a signal during start-up must not kill a half-built router.
    let mut ends = signals.block_on(async { Ends::new() }).map_err(Failure::said)?;
    let options = Options { index_file: Some(index_file(&socket)), config_file: Some(args.config.display().to_string()), seed: None };
    let router = Router::start(&config, &options).map_err(Failure::said)?;
    let server = weir_api::Server::start(&socket, Arc::new(router.clone()));
    let server = match server {
        Ok(server) => server,
        Err(error) => {
            router.stop();
            return Err(Failure::said(error));
        }
    };
    let interfaces = config.interfaces.len();
    writeln!(to, "weir {} runs: {interfaces} interfaces, API on {}", env!("CARGO_PKG_VERSION"), socket.display())?;
    to.flush()?;
    signals.block_on(ends.wait());
    tracing::info!("stopping");
    server.stop();
    router.stop();
    Ok(())
}

/// The signals that end the router.
struct Ends {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Ends {
    fn new() -> std::io::Result<Ends> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Ends { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Interface numbers are kept beside nothing that a reboot clears, per router: named after its socket.
fn index_file(socket: &Path) -> PathBuf {
    let name = socket.file_stem().map_or_else(|| "weir".into(), |stem| stem.to_string_lossy().into_owned());
    PathBuf::from("/var/lib/weir").join(format!("{name}.ifindex"))
}

fn log_to_stderr(level: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).try_init();
}
