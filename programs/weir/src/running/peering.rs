//! The `peering` section of a running router: its BGP daemon is a part of the router's transactions.
//!
//! Called by the change manager. Everything here is slow (files, BIRD's socket, guards) and runs on API threads.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weir_api::{Finding, FindingSeverity};
use weir_config::Config;
use weir_engine::Companion;
use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::model::{self, Peering};
use weir_peering::plan::{Plan, Summary, VerdictDiff};
use weir_peering::resolve::{self, Loaded};
use weir_peering::{bird, fetch, router};

use crate::commands::fib_routes;

/// BIRD beside a router.
pub(super) struct BgpDaemon {
    /// The router's file: names of other files are relative to its folder.
    file: PathBuf,
    /// The API socket of the router, for the guard over its forwarding table.
    socket: PathBuf,
    /// The daemon of the change that was made last.
    last: Mutex<Option<Daemon>>,
}

impl BgpDaemon {
    pub(super) fn new(file: &Path, socket: &Path) -> BgpDaemon {
        BgpDaemon {
            file: file.to_owned(),
            socket: socket.to_owned(),
            last: Mutex::default(),
        }
    }

    fn section(&self, config: &Config) -> Option<Result<Peering, String>> {
        let section = config.peering.as_ref()?;
        let name = self.file.display().to_string();
        let folder = self.file.parent().unwrap_or(Path::new("."));
        Some(
            Peering::of_value(&name, section)
                .and_then(|mut peering| peering.read_includes(folder).map(|()| peering))
                .map_err(|error| error.to_string()),
        )
    }

    fn load(&self, config: &Config) -> Option<Result<Loaded, String>> {
        let mut peering = match self.section(config)? {
            Ok(peering) => peering,
            Err(error) => return Some(Err(error)),
        };
        let daemon = daemon_of(&peering);
        let loaded = daemon
            .modes()
            .map(|modes| peering.apply_modes(&modes))
            .and_then(|()| {
                let folder = peering.data.folder.clone().ok_or_else(|| {
                    weir_peering::Error::Refused("peering: data.folder is missing".to_owned())
                })?;
                resolve::load(peering, &folder, fetch::now())
            });
        Some(loaded.map_err(|error| error.to_string()))
    }

    fn prepare(&self, of: &Loaded) -> Result<(Daemon, Summary, Plan), String> {
        let daemon = daemon_of(&of.peering);
        daemon
            .settle()
            .and_then(|_| daemon.prepare(of, None))
            .map(|(summary, plan)| (daemon, summary, plan))
            .map_err(|error| error.to_string())
    }

    fn change(&self, wanted: &Config, wait: Option<Duration>) -> Result<(), String> {
        let Some(of) = self.load(wanted) else {
            tracing::warn!("the section peering is gone; the BGP daemon keeps what it has");
            return Ok(());
        };
        let of = of?;
        if of.peering.daemon == model::Daemon::None {
            return Ok(());
        }
        if of.peering.daemon == model::Daemon::Frr {
            return Err(
                "FRR is not changed by the router; apply what `weir peering build` writes"
                    .to_owned(),
            );
        }
        let (daemon, summary, plan) = self.prepare(&of)?;
        let control = &of.peering.control;
        let edited = daemon.is_edited().map_err(|error| error.to_string())?;
        if edited && !control.replace {
            return Err(format!(
                "{} was not written by Weir, or was edited since; `control: {{replace: true}}` replaces it",
                control.config.display()
            ));
        }
        let loss = plan.verdicts.as_ref().and_then(VerdictDiff::largest_loss);
        if let Some((percent, session)) = loss.filter(|it| it.0 > f64::from(control.max_loss)) {
            return Err(format!(
                "{percent:.0} % of the accepted routes of {session} would be rejected; `control: {{max-loss: {}}}` permits less",
                control.max_loss
            ));
        }
        let fib = || fib_routes(&self.socket);
        let guard = Guard {
            fib: fib().is_some().then_some(&fib as &dyn Fn() -> Option<u64>),
            fib_percent: control.fib,
            ..Guard::new(control.guard, control.imports)
        };
        // The router's deadline begins behind the guards.
        let text = bird::configuration(&of.peering, &of.snapshot);
        match daemon.apply(&text, &summary, &plan, guard, wait) {
            Ok(Outcome::Undone { reason, .. }) => Err(format!("undone by a guard: {reason}")),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The daemon of the change that was made last.
    fn last(&self) -> Option<Daemon> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}

fn daemon_of(peering: &Peering) -> Daemon {
    Daemon {
        configuration: peering.control.config.clone(),
        socket: peering.control.socket.clone(),
        state: peering.control.state.clone(),
    }
}

impl Companion for BgpDaemon {
    fn check(&self, wanted: &Config) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |severity, message: String| {
            for line in message.lines() {
                findings.push(Finding {
                    severity,
                    file: self.file.display().to_string(),
                    line: 1,
                    column: 1,
                    width: 1,
                    path: "peering".to_owned(),
                    message: line.to_owned(),
                    help: String::new(),
                    rendered: line.to_owned(),
                });
            }
        };
        match self.load(wanted) {
            None => {}
            Some(Err(error)) => add(FindingSeverity::Error, error),
            Some(Ok(of)) => {
                let found = router::cross_check(&of.peering, wanted);
                found
                    .errors
                    .into_iter()
                    .for_each(|it| add(FindingSeverity::Error, it));
                let warnings = of.notes.into_iter().chain(found.warnings);
                warnings.for_each(|it| add(FindingSeverity::Warning, format!("peering: {it}")));
            }
        }
        findings
    }

    fn plan(&self, _: &Config, wanted: &Config) -> Vec<String> {
        match self.load(wanted) {
            None => vec!["the section is gone; the BGP daemon keeps what it has".to_owned()],
            Some(Err(error)) => error.lines().map(str::to_owned).collect(),
            Some(Ok(of))
                if of.peering.daemon != model::Daemon::Bird
                    && of.peering.daemon != model::Daemon::Bird216 =>
            {
                Vec::new()
            }
            Some(Ok(of)) => match self.prepare(&of) {
                Ok((_, _, plan)) => plan.lines(),
                Err(error) => vec![error],
            },
        }
    }

    fn apply(&self, _: &Config, wanted: &Config, wait: Option<Duration>) -> Result<(), String> {
        if let Some(Ok(peering)) = self.section(wanted) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(daemon_of(&peering));
        }
        self.change(wanted, wait)
    }

    fn confirm(&self) -> Result<(), String> {
        let daemon = self.last().ok_or("no change of the BGP daemon waits")?;
        daemon.confirm().map_err(|error| error.to_string())
    }

    fn undo(&self) {
        let Some(daemon) = self.last() else { return };
        if let Err(error) = daemon.rollback() {
            tracing::error!(%error, "the change of the BGP daemon is not undone; it undoes it itself at its own deadline");
        }
    }
}
