//! Changes of the configuration: they are made one at a time.
//!
//! A change goes: file → findings → plan → revision on the disk → steps → revision counts. Each arrow
//! can refuse, and what was done before it is undone, so the router has the new configuration or the
//! old one, and so has the store. A change that waits to be confirmed keeps what ran before it at hand;
//! the control thread looks at its deadline (`Router::watch_deadline`). When the router dies meanwhile,
//! the store takes the revision before it at the next start.
//!
//! Called by API threads and the control thread. A caller that finds another in progress learns by whom and does
//! not wait. The change manager's lock is taken before the control side's, never the other way round.

mod companion;
mod files;
mod history;
mod patch;
mod requests;
mod startup;
mod system;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use weir_api::{
    ApiError, Applied, Caller, ConfigEvent, ConfigEventKind, ConfigLock, ErrorCode, Event,
    EventBus, Finding, LockReason, Origin, Timestamp,
};
use weir_config::{Config, Plan};
use weir_store::{Confirm, Meta, Store, StoreError, Why};

pub use companion::{Companion, CompanionControl};
pub use startup::{Startup, StartupError};

use crate::router::Router;

/// Where changes are made.
pub(crate) struct ChangeManager {
    book: Mutex<Book>,
    /// The caller whose change is in progress.
    holder: Mutex<Option<ConfigLock>>,
    events: EventBus,
    companion: CompanionControl,
}

/// The state of the change manager.
pub(crate) struct Book {
    /// Applied configurations; a router without a folder for them keeps none.
    store: Option<Store>,
    /// Why there is none although there should be one.
    no_history: Option<String>,
    /// Where the text of the file that was taken last lies.
    taken_at: Option<PathBuf>,
    /// What was applied last. Differs from what runs where a change needs a restart.
    wanted: Config,
    /// The text that says it, as its author wrote it; empty while there is none.
    text: String,
    /// A change that is undone unless it is confirmed.
    waiting: Option<Waiting>,
}

/// A change that waits to be confirmed.
struct Waiting {
    /// What ran before it, and the text that said it.
    before: Config,
    text_before: String,
    deadline: Instant,
    lock: ConfigLock,
    revision: u64,
    /// Whether the companion waits, too.
    has_companion: bool,
}

/// A change in progress.
struct ChangeInProgress<'d> {
    book: MutexGuard<'d, Book>,
    change_manager: &'d ChangeManager,
}

impl Drop for ChangeInProgress<'_> {
    fn drop(&mut self) {
        *self.change_manager.holder() = None;
    }
}

/// Who changes, why, and whether it must be confirmed.
struct Reason {
    author: String,
    comment: String,
    confirm_seconds: Option<u32>,
}

impl ChangeManager {
    pub(crate) fn new(companion: CompanionControl) -> ChangeManager {
        let book = Book {
            store: None,
            no_history: None,
            taken_at: None,
            wanted: Config::default(),
            text: String::new(),
            waiting: None,
        };
        ChangeManager {
            book: Mutex::new(book),
            holder: Mutex::default(),
            events: EventBus::new(),
            companion,
        }
    }

    /// Where events are published.
    pub(crate) fn events(&self) -> &EventBus {
        &self.events
    }

    /// The book, for looking: waits for whoever changes something.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holder(&self) -> MutexGuard<'_, Option<ConfigLock>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who changes the configuration now, or waits for a confirmation.
    fn lock(&self) -> Option<ConfigLock> {
        let running = self.holder().clone();
        running.or_else(|| match self.book.try_lock() {
            Ok(book) => book.waiting.as_ref().map(|waiting| waiting.lock.clone()),
            Err(_) => None,
        })
    }

    /// Begins a change, or returns which one is in progress.
    fn begin(&self, author: &str, caller: &Caller) -> Result<ChangeInProgress<'_>, ApiError> {
        let book = match self.book.try_lock() {
            Ok(book) => book,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let holder = self.holder().clone();
                return Err(ApiError::locked(holder.unwrap_or_else(|| {
                    lock_of(LockReason::ApplyRunning, "somebody", &Caller::router())
                })));
            }
        };
        *self.holder() = Some(lock_of(LockReason::ApplyRunning, author, caller));
        Ok(ChangeInProgress {
            book,
            change_manager: self,
        })
    }

    fn tell(
        &self,
        what: ConfigEventKind,
        revision: u64,
        author: &str,
        comment: &str,
        confirm_by: Option<Timestamp>,
    ) {
        let (author, comment) = (author.to_owned(), comment.to_owned());
        self.events.publish(Event::Config(ConfigEvent {
            time: Timestamp::now(),
            what,
            revision,
            author,
            comment,
            confirm_by,
        }));
    }
}

fn lock_of(reason: LockReason, author: &str, caller: &Caller) -> ConfigLock {
    let (uid, pid, address) = match &caller.origin {
        Origin::Router => (None, Some(std::process::id()), None),
        Origin::Unix { uid, pid, .. } => (Some(*uid), *pid, None),
        Origin::Tcp { address, .. } => (None, None, Some(address.to_string())),
    };
    ConfigLock {
        reason,
        author: author.to_owned(),
        since: Timestamp::now(),
        uid,
        pid,
        address,
        confirm_by: None,
    }
}

impl Book {
    /// What was applied last.
    pub(crate) fn wanted(&self) -> &Config {
        &self.wanted
    }

    /// Why there is no history although there should be one.
    pub(crate) fn no_history(&self) -> Option<&str> {
        self.no_history.as_deref()
    }

    /// The number of what runs; 0 without a history.
    fn revision(&self) -> u64 {
        self.store.as_ref().and_then(Store::running).unwrap_or(0)
    }
}

/// What the store refuses, as the API says it.
fn refused(error: &StoreError) -> ApiError {
    match error {
        StoreError::Unknown { .. } | StoreError::Damaged { .. } => {
            ApiError::new(ErrorCode::NotFound, error.to_string(), "")
        }
        StoreError::NothingPending => {
            ApiError::new(ErrorCode::Conflict, "no change waits to be confirmed", "")
        }
        _ => ApiError::no_room(error),
    }
}

impl Router {
    /// Lets one request at a time change routes of the API.
    pub(crate) fn route_changes(&self) -> MutexGuard<'_, ()> {
        let lock = self.0.route_changes.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the router to `wanted`, whose text is kept, as one transaction.
    fn change(
        &self,
        wanted: Config,
        text: &str,
        reason: &Reason,
        findings: Vec<Finding>,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let mut change = self.change_manager().begin(&reason.author, caller)?;
        if let Some(waiting) = &change.book.waiting {
            return Err(ApiError::locked(waiting.lock.clone()));
        }
        let running = self.running_config();
        let steps = Plan::between(&running, &wanted);
        let needs_restart = files::restart_keys(&steps);
        let mut applied = Applied {
            steps: files::done_steps(&steps),
            needs_restart,
            findings,
            ..Applied::default()
        };
        if wanted == change.book.wanted {
            applied.revision = change.book.revision();
            return Ok(applied);
        }
        let meta = Meta {
            time_unix_ms: Timestamp::now().unix_ms(),
            author: reason.author.clone(),
            comment: reason.comment.clone(),
            steps: u32::try_from(steps.steps.len()).unwrap_or(u32::MAX),
        };
        let prepared = match &mut change.book.store {
            Some(store) => Some(
                store
                    .prepare(text.as_bytes(), meta)
                    .map_err(|error| refused(&error))?,
            ),
            None => None,
        };
        if let Err(error) = self.apply(&wanted) {
            if let (Some(store), Some(prepared)) = (&mut change.book.store, prepared) {
                store.abandon(prepared);
            }
            self.change_manager().tell(
                ConfigEventKind::Failed,
                change.book.revision(),
                &reason.author,
                &error.to_string(),
                None,
            );
            tracing::warn!("a change by {caller} failed and was undone: {error}");
            return Err(ApiError::new(
                ErrorCode::Conflict,
                error.to_string(),
                "nothing was changed: the steps before it were undone",
            ));
        }
        let wait = reason
            .confirm_seconds
            .map(|seconds| Duration::from_secs(u64::from(seconds)));
        // One deadline for both: the companion's own is later, for the case that this process ends.
        let companion = &self.change_manager().companion;
        let has_companion = match companion.apply(&running, &wanted, wait) {
            Ok(is_changed) => is_changed,
            Err(error) => {
                self.go_back_to(&running);
                if let (Some(store), Some(prepared)) = (&mut change.book.store, prepared) {
                    store.abandon(prepared);
                }
                let revision = change.book.revision();
                let what = ConfigEventKind::Failed;
                self.change_manager()
                    .tell(what, revision, &reason.author, &error, None);
                tracing::warn!("a change by {caller} failed and was undone: {error}");
                return Err(ApiError::new(
                    ErrorCode::Conflict,
                    format!("peering: {error}"),
                    "nothing was changed: the steps before it were undone",
                ));
            }
        };
        applied.confirm_by = wait.map(|wait| {
            Timestamp::from_unix_ms(Timestamp::now().unix_ms() + wait.as_millis() as u64)
        });
        if let (Some(store), Some(prepared)) = (&mut change.book.store, prepared) {
            let confirm = applied.confirm_by.map(|by| Confirm {
                deadline_unix_ms: by.unix_ms(),
            });
            if let Err(error) = store.commit(prepared, confirm) {
                if has_companion {
                    companion.undo();
                }
                self.go_back_to(&running);
                return Err(refused(&error));
            }
        }
        applied.revision = change.book.revision();
        if let Some(wait) = wait {
            let lock = ConfigLock {
                confirm_by: applied.confirm_by,
                ..lock_of(LockReason::ConfirmPending, &reason.author, caller)
            };
            let before = std::mem::take(&mut change.book.wanted);
            let text_before = std::mem::take(&mut change.book.text);
            change.book.waiting = Some(Waiting {
                before,
                text_before,
                deadline: Instant::now() + wait,
                lock,
                revision: applied.revision,
                has_companion,
            });
        }
        change.book.wanted = wanted;
        text.clone_into(&mut change.book.text);
        tracing::info!(
            steps = applied.steps.len(),
            "configuration {} applied by {caller}",
            applied.revision
        );
        self.change_manager().tell(
            ConfigEventKind::Applied,
            applied.revision,
            &reason.author,
            &reason.comment,
            applied.confirm_by,
        );
        Ok(applied)
    }

    /// Applies what ran before. What was possible then is possible now, as long as the machine did not
    /// change; if it did, the log says so and the router keeps what it has.
    fn go_back_to(&self, before: &Config) {
        if let Err(error) = self.apply_tolerantly(before) {
            tracing::error!("what ran before cannot be applied again: {error}");
        }
    }

    /// Undoes the change that waits.
    fn undo_waiting(&self, book: &mut Book, why: Why) {
        let Some(waiting) = book.waiting.take() else {
            return;
        };
        if waiting.has_companion {
            self.change_manager().companion.undo();
        }
        self.go_back_to(&waiting.before);
        if let Some(store) = &mut book.store
            && let Err(error) = store.roll_back_pending(Timestamp::now().unix_ms(), why)
        {
            tracing::error!("cannot record in the store that a change was undone: {error}");
        }
        book.wanted = waiting.before;
        book.text = waiting.text_before;
        let (what, comment) = match why {
            Why::Asked => (ConfigEventKind::RolledBack, "somebody asked for it"),
            Why::Deadline | Why::Restart => {
                (ConfigEventKind::Expired, "nobody confirmed it in time")
            }
        };
        tracing::warn!(
            "configuration {} of {} is undone: {comment}",
            waiting.revision,
            waiting.lock.author
        );
        self.change_manager()
            .tell(what, book.revision(), &waiting.lock.author, comment, None);
    }

    /// The control thread's look at the change that waits.
    pub(crate) fn watch_deadline(&self) {
        let Ok(mut book) = self.change_manager().book.try_lock() else {
            return;
        };
        if book
            .waiting
            .as_ref()
            .is_some_and(|waiting| Instant::now() >= waiting.deadline)
        {
            self.undo_waiting(&mut book, Why::Deadline);
        }
    }
}
