//! Notifications to the service manager: ready, reloading, stopping, and the watchdog.
//!
//! The protocol is sd_notify(3): datagrams to the socket that `NOTIFY_SOCKET` names. Without one nothing
//! is sent, and a router started by hand is the same router.
//!
//! When the manager wants a sign of life (`WATCHDOG_USEC`), a thread of its own gives one at least twice
//! in that time, but only while everybody moves: each worker has turned, the control thread has gone
//! through its loop, and the control side's lock can be had. One that is stuck is named in the log, and
//! the manager, left without a sign, starts the router anew. A worker that has nothing to do still turns
//! ten times a second, and so does the control thread.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use sd_notify::NotifyState;
use weir_engine::{Pulse, Router};

use crate::render::units;

/// Says that a daemon that is no router runs.
pub(crate) fn daemon_ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// A router as its service manager sees it.
pub(crate) struct Service {
    /// Dropped, it ends the watchdog.
    _watchdog: Option<Sender<()>>,
    /// Dropped, it ends the thread that reports the status.
    _status: Option<Sender<()>>,
}

impl Service {
    /// Says that the router runs, and gives signs of life from now on if they are wanted.
    pub(crate) fn ready(router: &Router) -> Service {
        tell(&[NotifyState::Ready, NotifyState::Status(&status(router))]);
        let status = watch_status(router.clone());
        let router = router.clone();
        // Waits for the control side's lock: whoever holds it for ever holds the signs up, too.
        let look = move || router.pulse();
        let watchdog = sd_notify::watchdog_enabled()
            .and_then(|limit| watch(limit, look, || tell(&[NotifyState::Watchdog])));
        Service {
            _watchdog: watchdog,
            _status: status,
        }
    }

    /// Says that the file is being applied.
    pub(crate) fn reloading(&self) {
        // The time tells the manager which of several reloads this is (sd_notify(3)).
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!("no time for the service manager: {error}"),
        }
    }

    /// Says that this is over: applied or refused, the router runs.
    pub(crate) fn reloaded(&self, router: &Router) {
        tell(&[NotifyState::Ready, NotifyState::Status(&status(router))]);
    }

    /// Says that the router ends.
    pub(crate) fn stopping(self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// How often the status line is looked at.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Reports the status line when it changes; only where a service manager reads it.
fn watch_status(router: Router) -> Option<Sender<()>> {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (end, ended) = channel();
    let body = move || {
        let mut before = String::new();
        while ended.recv_timeout(STATUS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let now = status(&router);
            if now != before {
                tell(&[NotifyState::Status(&now)]);
                before = now;
            }
        }
    };
    let thread = std::thread::Builder::new().name("weir-status".into());
    thread.spawn(body).ok().map(|_| end)
}

/// One line for `systemctl status`.
fn status(router: &Router) -> String {
    let count = |counted: Result<usize, weir_api::ApiError>, one, many| {
        units::count(counted.unwrap_or_default() as u64, one, many)
    };
    let interfaces = weir_api::Router::interfaces(router).map(|it| it.interfaces.len());
    let workers = weir_api::Router::runtime(router).map(|it| it.workers.len());
    let system = weir_api::Router::system(router).unwrap_or_default();
    let degraded = |it: &&weir_api::Problem| it.severity == weir_api::ProblemSeverity::Degraded;
    let health = match system.problems.iter().find(degraded) {
        Some(problem) => format!(
            ", degraded: {} {}: {} (weir show system)",
            problem.component, problem.object, problem.message
        ),
        None => String::new(),
    };
    format!(
        "{}, {}{health}",
        count(interfaces, "interface", "interfaces"),
        count(workers, "worker", "workers")
    )
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot notify the service manager: {error}");
    }
}

/// Who has not moved from one look to the next.
fn stuck(before: &Pulse, now: &Pulse) -> Vec<String> {
    let still = now
        .workers
        .iter()
        .zip(&before.workers)
        .enumerate()
        .filter(|(_, (now, before))| now == before);
    let mut stuck: Vec<String> = still
        .map(|(number, _)| format!("worker {number}"))
        .collect();
    if now.control == before.control {
        stuck.push("the control thread".to_owned());
    }
    if now.workers.is_empty() {
        stuck.push("all workers".to_owned());
    }
    stuck
}

/// Gives a sign of life as long as everybody moves. Ends when the other end is dropped.
fn watch(
    limit: Duration,
    look: impl Fn() -> Pulse + Send + 'static,
    sign: impl Fn() + Send + 'static,
) -> Option<Sender<()>> {
    let (end, ended) = channel();
    let body = move || {
        let (mut before, mut warned) = (look(), false);
        while ended.recv_timeout(limit / 4) == Err(RecvTimeoutError::Timeout) {
            let now = look();
            let stuck = stuck(&before, &now);
            if stuck.is_empty() {
                sign();
                (before, warned) = (now, false);
            } else if !std::mem::replace(&mut warned, true) {
                tracing::error!("no progress for {:?}: {}", limit / 4, stuck.join(", "));
            }
        }
    };
    match std::thread::Builder::new()
        .name("weir-watchdog".into())
        .spawn(body)
    {
        Ok(_) => Some(end),
        Err(error) => {
            tracing::error!(
                "no thread for the watchdog, the service manager will take this router for stuck: {error}"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    fn signs(workers: &[u64], control: u64) -> Pulse {
        Pulse {
            workers: workers.to_vec(),
            control,
        }
    }

    #[test]
    fn whoever_stands_still_is_named() {
        let before = signs(&[5, 7], 3);
        assert!(stuck(&before, &signs(&[6, 8], 4)).is_empty());
        assert_eq!(stuck(&before, &signs(&[6, 7], 4)), ["worker 1"]);
        assert_eq!(stuck(&before, &signs(&[6, 8], 3)), ["the control thread"]);
        assert_eq!(
            stuck(&before, &before),
            ["worker 0", "worker 1", "the control thread"]
        );
        assert_eq!(stuck(&before, &signs(&[], 4)), ["all workers"]);
    }

    #[test]
    fn signs_of_life_end_with_progress() {
        let (sign, received) = channel();
        let (moves, looks) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
        let (moving, looked) = (moves.clone(), looks.clone());
        let turns = AtomicU64::new(0);
        let look = move || {
            let control = looked.fetch_add(1, Ordering::AcqRel);
            let worker =
                turns.fetch_add(u64::from(moving.load(Ordering::Acquire)), Ordering::Relaxed);
            signs(&[worker], control)
        };
        let end = watch(Duration::from_millis(40), look, move || {
            sign.send(()).unwrap_or_default()
        })
        .unwrap();
        for _ in 0..3 {
            received.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        moves.store(false, Ordering::Release);
        // It may have moved once since the last sign; then it stands, as does this count soon.
        let stands = looks.load(Ordering::Acquire) + 4;
        while looks.load(Ordering::Acquire) < stands {
            std::thread::sleep(Duration::from_millis(1));
        }
        while received.try_recv().is_ok() {}
        assert!(
            received.recv_timeout(Duration::from_millis(200)).is_err(),
            "it stands, and says it lives"
        );
        drop(end);
        assert_eq!(
            received.recv(),
            Err(std::sync::mpsc::RecvError),
            "the thread ends"
        );
    }
}
