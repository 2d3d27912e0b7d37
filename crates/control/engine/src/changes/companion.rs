//! A daemon whose configuration is a part of the router's file, and of its transactions.
//!
//! The change manager calls it behind the last step, with the deadline of the whole change: what waits to be confirmed
//! waits in both, and what is undone is undone in both. It is called by API threads and, when a deadline passes, by the
//! control thread; calls may take seconds and hold the change manager's lock, never the control side's.

use std::sync::Arc;
use std::time::Duration;

use weir_api::Finding;
use weir_config::Config;

/// The daemon beside the router.
pub trait Companion: Send + Sync {
    /// What is wrong with its part of a configuration.
    fn check(&self, wanted: &Config) -> Vec<Finding>;

    /// What a change would do to it, a line each.
    fn plan(&self, running: &Config, wanted: &Config) -> Vec<String>;

    /// Changes it. With `wait` the change is undone by the daemon itself when nothing is heard for longer.
    ///
    /// # Errors
    /// Why it is as before.
    fn apply(
        &self,
        running: &Config,
        wanted: &Config,
        wait: Option<Duration>,
    ) -> Result<(), String>;

    /// Keeps the change that waits.
    ///
    /// # Errors
    /// Why it cannot be kept.
    fn confirm(&self) -> Result<(), String>;

    /// Undoes the last change.
    fn undo(&self);
}

/// The companion of a router, if it has one.
#[derive(Clone, Default)]
pub struct CompanionControl(Option<Arc<dyn Companion>>);

impl CompanionControl {
    /// A router with this companion.
    #[must_use]
    pub fn new(companion: impl Companion + 'static) -> CompanionControl {
        CompanionControl(Some(Arc::new(companion)))
    }

    pub(crate) fn check(&self, wanted: &Config) -> Vec<Finding> {
        self.0.as_ref().map_or_else(Vec::new, |it| it.check(wanted))
    }

    pub(crate) fn plan(&self, running: &Config, wanted: &Config) -> Vec<String> {
        match &self.0 {
            Some(it) if concerns(running, wanted) => it.plan(running, wanted),
            _ => Vec::new(),
        }
    }

    pub(crate) fn apply(
        &self,
        running: &Config,
        wanted: &Config,
        wait: Option<Duration>,
    ) -> Result<bool, String> {
        match &self.0 {
            Some(it) if concerns(running, wanted) => it.apply(running, wanted, wait).map(|()| true),
            _ => Ok(false),
        }
    }

    pub(crate) fn confirm(&self) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |it| it.confirm())
    }

    pub(crate) fn undo(&self) {
        if let Some(it) = &self.0 {
            it.undo();
        }
    }
}

impl std::fmt::Debug for CompanionControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CompanionControl")
            .field(&self.0.is_some())
            .finish()
    }
}

/// Whether a change concerns the companion: only its own section does.
fn concerns(running: &Config, wanted: &Config) -> bool {
    running.peering != wanted.peering
}
