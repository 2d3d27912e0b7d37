//! `weir run`: a router until it is stopped.
//!
//! SIGTERM and Ctrl-C end it in order: nothing more comes in, what is inside goes out, XDP programs are
//! detached and devices closed, the agent sends what it has, the socket goes. A second signal during
//! that is ignored; the order takes a second at most. SIGHUP applies the file anew.
//! The service manager is notified of all that (`service.rs`).

use std::io::Write;
use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::running::Running;
use crate::service::Service;

/// Does it.
pub(crate) fn execute(
    args: &RunArgs,
    socket: Option<&Path>,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(Failure::said)?;
    // The handlers come first: a signal during start-up must not kill a half-built router.
    let mut signals = runtime
        .block_on(async { Signals::new() })
        .map_err(Failure::said)?;
    let running = Running::begin(&args.config, args.skip_unsupported, socket)?;
    let interfaces = running.interfaces();
    writeln!(
        to,
        "weir {} runs: {interfaces} interfaces, API on {}",
        env!("CARGO_PKG_VERSION"),
        running.socket.display()
    )?;
    to.flush()?;
    let service = Service::ready(&running.router);
    while runtime.block_on(signals.next()) == Wanted::Reload {
        service.reloading();
        running.reload();
        service.reloaded(&running.router);
    }
    tracing::info!("stopping");
    service.stopping();
    running.end();
    Ok(())
}

/// What a signal asks for.
#[derive(PartialEq, Eq)]
enum Wanted {
    Reload,
    End,
}

/// The signals that the router listens to.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        let (interrupt, terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        Ok(Signals {
            interrupt,
            terminate,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Wanted {
        tokio::select! {
            _ = self.interrupt.recv() => Wanted::End,
            _ = self.terminate.recv() => Wanted::End,
            _ = self.hangup.recv() => Wanted::Reload,
        }
    }
}
