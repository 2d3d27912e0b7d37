//! What does not work of all that the configuration asks for (`weir show system`).
//!
//! Reads counters and flags that other parts keep; keeps nothing itself and changes nothing. Runs on
//! API threads under the control lock, and costs as much as `show sflow`.

use weir_api::{Component, Problem, ProblemSeverity, System};
use weir_store::RevisionState;

use crate::control::Control;
use crate::router::Router;

/// A pool with less free buffers than this part of it runs short.
const SHORT: u64 = 16;

fn problem(
    severity: ProblemSeverity,
    component: Component,
    object: impl Into<String>,
    message: impl Into<String>,
) -> Problem {
    Problem {
        severity,
        component,
        object: object.into(),
        message: message.into(),
    }
}

fn degraded(
    component: Component,
    object: impl Into<String>,
    message: impl Into<String>,
) -> Problem {
    problem(ProblemSeverity::Degraded, component, object, message)
}

fn notice(component: Component, object: impl Into<String>, message: impl Into<String>) -> Problem {
    problem(ProblemSeverity::Notice, component, object, message)
}

impl Control {
    /// Interfaces for which the file names no device.
    fn without_device(&self) -> impl Iterator<Item = Problem> {
        let message = "has no `device`: no packets come in or leave here";
        let names = self.config.without_device();
        names.map(move |name| notice(Component::Interface, name, message))
    }

    /// Interfaces whose port could not be opened.
    fn faults(&self) -> impl Iterator<Item = Problem> {
        self.interfaces.iter().filter_map(|(name, attached)| {
            let fault = attached.fault.as_ref()?;
            Some(degraded(Component::Interface, name, &fault.reason))
        })
    }

    /// Collectors that do not get what is sent, and what was lost before it was sent.
    fn exporters(&self) -> Vec<Problem> {
        let (sflow, ipfix) = (self.sflow_view(), self.ipfix_view());
        let mut found = Vec::new();
        for collector in &sflow.collectors {
            if let Some(error) = &collector.last_error {
                found.push(degraded(Component::Sflow, collector.place(), error));
            }
        }
        if let Some(trouble) = sflow.discovery.as_ref().and_then(|it| it.trouble.as_ref()) {
            found.push(degraded(Component::Sflow, "discovery", trouble));
        }
        for lacking in sflow.kernel.iter().flat_map(|kernel| &kernel.lacking) {
            found.push(degraded(Component::Sflow, "kernel", lacking));
        }
        if sflow.samples_dropped() > 0 {
            let count = sflow.samples_dropped();
            let message = format!("{count} samples found a full ring since the start");
            found.push(notice(Component::Sflow, "sampler", message));
        }
        for collector in &ipfix.collectors {
            let place = collector.place();
            match (&collector.last_error, collector.connected) {
                (Some(error), false) => {
                    found.push(degraded(Component::Ipfix, place, error));
                }
                (None, false) => {
                    found.push(degraded(Component::Ipfix, place, "not connected"));
                }
                (Some(error), true) => {
                    let message = format!("{} errors, the last one: {error}", collector.errors);
                    found.push(notice(Component::Ipfix, place, message));
                }
                (None, true) => {}
            }
        }
        found
    }
}

impl Router {
    /// What does not work now.
    pub(crate) fn system_view(&self) -> System {
        let mut found: Vec<Problem> = Vec::new();
        let running = {
            let control = self.control();
            found.extend(control.faults());
            found.extend(control.without_device());
            found.extend(control.exporters());
            control.configured()
        };
        let pools = weir_api::Router::buffers(self).map_or_else(|_| Vec::new(), |it| it.pools);
        for pool in pools {
            if pool.free < pool.buffers / SHORT {
                let message = format!(
                    "{} of {} buffers are free; raise `buffers.per-numa`",
                    pool.free, pool.buffers
                );
                found.push(degraded(
                    Component::Buffers,
                    format!("pool {}", pool.pool),
                    message,
                ));
            }
        }
        found.extend(self.change_problems(&running));
        System::of(found)
    }

    /// What is to know about the configuration and its history.
    fn change_problems(&self, running: &weir_config::Config) -> Vec<Problem> {
        let book = self.change_manager().book();
        let mut found = Vec::new();
        match book.history() {
            Err(_) if let Some(why) = book.no_history() => found.push(degraded(
                Component::History,
                "history.directory",
                format!("the history cannot be read, and none is kept: {why}"),
            )),
            Err(_) => found.push(notice(
                Component::History,
                "history.directory",
                "no history is kept: `rollback` and changes over the API end with the router; \
                 set `history.directory`",
            )),
            Ok(store) => {
                let waits = |entry: &&weir_store::Entry| {
                    Some(entry.revision) == store.running()
                        && matches!(entry.state, RevisionState::Unconfirmed)
                };
                if let Some(entry) = store.history().iter().find(waits) {
                    let message = "waits to be confirmed and is undone otherwise";
                    let object = format!("revision {}", entry.revision);
                    found.push(notice(Component::Config, object, message));
                }
            }
        }
        for section in weir_config::Plan::between(running, book.wanted()).needs_restart() {
            let message = "was changed and takes effect when the router is started again";
            found.push(notice(Component::Config, section, message));
        }
        found
    }
}
