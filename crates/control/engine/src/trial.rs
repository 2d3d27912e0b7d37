//! A router on trial: the whole of it in the caller's thread, under a clock that the caller moves.
//!
//! Tests that compare every frame and every counter need two things that threads do not give: an end
//! of what follows from a frame, and time that passes when they say so. With [`Options::trial`] set,
//! workers are made as ever but no thread runs them, nor the control loop: [`Router::breathe`] gives
//! each worker a turn and the control side a round. Where the control side waits for a worker it lets
//! that worker turn. Devices can be replaced, so that frames come and go through memory. All else is
//! what runs in service: configuration, plan, apply, tables, nodes, counters.
//!
//! The sFlow agent keeps its thread and the system's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_config::Device;
use weir_port::{OpenError, Port};

use crate::router::{Options, Router};

/// Opens a device in place of the system; `None` leaves it to the system.
type Opener = dyn Fn(&Device) -> Option<Result<Box<dyn Port>, OpenError>> + Send + Sync;

/// What a router on trial gets from its test. Cloning gives another handle.
#[derive(Clone)]
pub struct Trial {
    now: Arc<AtomicU64>,
    open: Arc<Opener>,
}

impl Trial {
    /// A trial at time 0 whose devices `open` may replace.
    #[must_use]
    pub fn new(
        open: impl Fn(&Device) -> Option<Result<Box<dyn Port>, OpenError>> + Send + Sync + 'static,
    ) -> Trial {
        Trial {
            now: Arc::default(),
            open: Arc::new(open),
        }
    }

    /// Sets the router's clock, in nanoseconds since its start.
    pub fn set_time(&self, nanoseconds: u64) {
        self.now.store(nanoseconds, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> crate::clock::Clock {
        crate::clock::Clock::Hand(self.now.clone())
    }

    pub(crate) fn open(&self, device: &Device) -> Option<Result<Box<dyn Port>, OpenError>> {
        (self.open)(device)
    }
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Trial")
    }
}

impl Options {
    /// Options of a router on trial, the same at every run.
    #[must_use]
    pub fn on_trial(trial: &Trial) -> Options {
        Options {
            trial: Some(trial.clone()),
            seed: Some(1),
            ..Options::default()
        }
    }
}

impl Router {
    /// Gives each worker of a router on trial a turn and the control side a round; whether anything
    /// happened. What a frame leads to at this time is over when nothing did.
    pub fn breathe(&self) -> bool {
        self.watch_deadline();
        let mut control = self.control();
        let moved: usize = control
            .workers
            .iter_mut()
            .map(|worker| worker.turn_by_hand().unwrap_or(0))
            .sum();
        let found = control
            .workers
            .iter()
            .any(|worker| !worker.events.is_empty());
        control.round();
        moved > 0
            || found
            || control
                .workers
                .iter()
                .any(|worker| !worker.commands.is_empty())
    }
}
