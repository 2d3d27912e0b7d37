//! Signals that end a command in an orderly way.
//!
//! A thread of its own waits for them and sets a flag; commands that work in rounds look at the flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// SIGTERM, SIGINT and SIGHUP; on a terminal in raw mode Ctrl-C is a key instead.
#[derive(Clone)]
pub(crate) struct Signals {
    arrived: Arc<AtomicBool>,
}

impl Signals {
    /// Watches for them from here on.
    pub(crate) fn new() -> Result<Signals, Failure> {
        let arrived = Arc::new(AtomicBool::new(false));
        let set = arrived.clone();
        let (ready, started) = mpsc::channel();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                else {
                    return;
                };
                runtime.block_on(async {
                    let all = (
                        signal(SignalKind::interrupt()),
                        signal(SignalKind::terminate()),
                        signal(SignalKind::hangup()),
                    );
                    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = all else {
                        return;
                    };
                    let _ = ready.send(());
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    set.store(true, Ordering::Release);
                });
            })
            .map_err(Failure::said)?;
        started
            .recv()
            .map_err(|_| Failure::said("cannot watch for signals"))?;
        Ok(Signals { arrived })
    }

    /// Whether one has arrived.
    pub(crate) fn arrived(&self) -> bool {
        self.arrived.load(Ordering::Acquire)
    }
}
