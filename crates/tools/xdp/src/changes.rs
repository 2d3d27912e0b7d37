//! Changes of the running configuration: revisions on disk, a deadline for confirmation, the way back.
//!
//! The daemon's thread makes one change at a time. The text is written to the history before anything changes
//! (`weir-store`, as for the router); a change that must be confirmed and is not is undone at its deadline, or when the
//! daemon starts again.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_api::{
    ApiError, ConfigLock, ConfigStep, ErrorCode, Finding, FindingSeverity, LockReason, Revision,
    RevisionText, StepGroup, Timestamp,
};
use weir_config::Diagnostic;
use weir_store::{Confirm, DiskFiles, Entry, Meta, RevisionState, Store, StoreError, Why};

use crate::config::Config;

/// Revisions that are kept.
const KEPT: usize = 100;

/// The history, and the change that waits.
pub(crate) struct Changes {
    store: Store,
    /// Who made the change that waits, and when.
    pending_by: (String, u64),
}

/// What a change is called.
pub(crate) struct Who {
    pub(crate) author: String,
    pub(crate) comment: String,
    /// Seconds until it is undone unless it is confirmed.
    pub(crate) confirm_seconds: Option<u32>,
}

impl Changes {
    pub(crate) fn open(folder: &Path) -> Result<Changes, StoreError> {
        let files = DiskFiles::open(folder)?;
        let (store, recovered) = Store::open(Box::new(files), KEPT, now_unix_ms())?;
        if let Some(pending) = recovered.rolled_back {
            tracing::warn!(
                revision = pending.revision,
                "a change was not confirmed before the daemon ended"
            );
        }
        Ok(Changes {
            store,
            pending_by: Default::default(),
        })
    }

    /// Refuses while another change waits to be confirmed.
    pub(crate) fn is_free(&self) -> Result<(), ApiError> {
        self.lock()
            .map_or(Ok(()), |lock| Err(ApiError::locked(lock)))
    }

    /// The change that waits.
    pub(crate) fn lock(&self) -> Option<ConfigLock> {
        let pending = self.store.pending()?;
        Some(ConfigLock {
            reason: LockReason::ConfirmPending,
            author: self.pending_by.0.clone(),
            since: Timestamp::from_unix_ms(self.pending_by.1),
            uid: None,
            pid: None,
            address: None,
            confirm_by: Some(Timestamp::from_unix_ms(pending.deadline_unix_ms)),
        })
    }

    /// Records a change and makes it by `work`; what `work` refuses is not recorded. Returns the revision and the deadline.
    pub(crate) fn make(
        &mut self,
        text: &str,
        who: &Who,
        steps: usize,
        work: impl FnOnce() -> Result<(), ApiError>,
    ) -> Result<(u64, Option<Timestamp>), ApiError> {
        let now = now_unix_ms();
        let meta = Meta {
            time_unix_ms: now,
            author: who.author.clone(),
            comment: who.comment.clone(),
            steps: steps as u32,
        };
        let prepared = self
            .store
            .prepare(text.as_bytes(), meta)
            .map_err(ApiError::no_room)?;
        if let Err(error) = work() {
            self.store.abandon(prepared);
            return Err(error);
        }
        let deadline = who
            .confirm_seconds
            .map(|seconds| now + u64::from(seconds) * 1000);
        let confirm = deadline.map(|deadline_unix_ms| Confirm { deadline_unix_ms });
        let revision = self
            .store
            .commit(prepared, confirm)
            .map_err(ApiError::no_room)?;
        self.pending_by = (who.author.clone(), now);
        Ok((revision, deadline.map(Timestamp::from_unix_ms)))
    }

    /// The revision that runs.
    pub(crate) fn running(&self) -> Option<u64> {
        self.store.running()
    }

    pub(crate) fn confirm(&mut self) -> Result<u64, ApiError> {
        self.store.confirm().map_err(refused)
    }

    /// The text that must run again when the change that waits is undone. `None` = none waits.
    pub(crate) fn before_pending(&self) -> Option<Result<String, ApiError>> {
        let pending = self.store.pending()?;
        Some(match pending.before {
            Some(before) => self.text(before),
            None => Err(ApiError::new(
                ErrorCode::Conflict,
                "there is no configuration before this one",
                "confirm it",
            )),
        })
    }

    /// The change that waits is undone.
    pub(crate) fn undone(&mut self, is_late: bool) -> Result<u64, ApiError> {
        let why = if is_late { Why::Deadline } else { Why::Asked };
        self.store
            .roll_back_pending(now_unix_ms(), why)
            .map(|pending| pending.before.unwrap_or(0))
            .map_err(refused)
    }

    /// Whether the deadline of the change that waits is over.
    pub(crate) fn is_late(&self) -> bool {
        self.store
            .pending()
            .is_some_and(|pending| now_unix_ms() >= pending.deadline_unix_ms)
    }

    /// The revision that is meant by a number, or by steps back from what runs.
    pub(crate) fn meant(
        &self,
        revision: Option<u64>,
        steps_back: Option<u32>,
    ) -> Result<u64, ApiError> {
        if let Some(revision) = revision {
            return Ok(revision);
        }
        let running = self.store.running();
        let earlier = self.store.history().iter().rev().filter(|entry| {
            Some(entry.revision) < running && entry.state == RevisionState::Applied
        });
        earlier
            .map(|entry| entry.revision)
            .nth(steps_back.unwrap_or(1).saturating_sub(1) as usize)
            .ok_or_else(|| {
                ApiError::new(
                    ErrorCode::NotFound,
                    "there is no earlier revision",
                    "`weir xdp history` lists those that are kept",
                )
            })
    }

    pub(crate) fn text(&self, revision: u64) -> Result<String, ApiError> {
        let found = self.store.read(revision).map_err(refused)?;
        String::from_utf8(found.text)
            .map_err(|_| ApiError::new(ErrorCode::Internal, "the revision is damaged", ""))
    }

    /// Revisions below `before`, newest first, and where the next ones begin.
    pub(crate) fn history(&self, limit: usize, before: Option<u64>) -> weir_api::History {
        let mut all = self
            .store
            .history()
            .iter()
            .rev()
            .filter(|entry| before.is_none_or(|before| entry.revision < before));
        let revisions: Vec<Revision> = all
            .by_ref()
            .take(limit)
            .map(|entry| self.view(entry))
            .collect();
        let next = all
            .next()
            .and_then(|_| revisions.last().map(|it| it.revision));
        weir_api::History {
            revisions,
            lock: self.lock(),
            next,
        }
    }

    pub(crate) fn revision(&self, number: u64) -> Result<RevisionText, ApiError> {
        let yaml = self.text(number)?;
        let entry = self
            .store
            .history()
            .iter()
            .find(|entry| entry.revision == number)
            .ok_or_else(|| ApiError::new(ErrorCode::NotFound, "there is no such revision", ""))?;
        Ok(RevisionText {
            revision: self.view(entry),
            yaml,
        })
    }

    fn view(&self, entry: &Entry) -> Revision {
        let text = |number| self.text(number).unwrap_or_default();
        let own = text(entry.revision);
        let before = self
            .store
            .history()
            .iter()
            .rev()
            .find(|it| it.revision < entry.revision && it.state == RevisionState::Applied)
            .map(|it| text(it.revision))
            .unwrap_or_default();
        let missing = |of: &str, other: &str| {
            let known: std::collections::BTreeSet<&str> = other.lines().collect();
            of.lines().filter(|line| !known.contains(line)).count() as u32
        };
        Revision {
            revision: entry.revision,
            time: Timestamp::from_unix_ms(entry.meta.time_unix_ms),
            author: entry.meta.author.clone(),
            comment: entry.meta.comment.clone(),
            confirmed: entry.state != RevisionState::Unconfirmed,
            running: self.store.running() == Some(entry.revision),
            lines: own.lines().count() as u32,
            lines_added: missing(&own, &before),
            lines_removed: missing(&before, &own),
        }
    }
}

fn refused(error: StoreError) -> ApiError {
    let code = match error {
        StoreError::NothingPending => ErrorCode::Conflict,
        StoreError::Unknown { .. } => ErrorCode::NotFound,
        _ => ErrorCode::Internal,
    };
    ApiError::new(code, error.to_string(), "")
}

pub(crate) fn now_unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Findings as the API has them.
pub(crate) fn findings(all: Vec<Diagnostic>) -> Vec<Finding> {
    all.into_iter()
        .map(|it| Finding {
            severity: match it.severity {
                weir_config::Severity::Error => FindingSeverity::Error,
                weir_config::Severity::Warning => FindingSeverity::Warning,
            },
            rendered: it.to_string(),
            file: it.file,
            line: it.line,
            column: it.column,
            width: it.width,
            path: it.path,
            message: it.message,
            help: it.help,
        })
        .collect()
}

/// What a new configuration changes, as steps.
pub(crate) fn steps(old: &Config, new: &Config) -> Vec<ConfigStep> {
    crate::config::plan(old, new)
        .into_iter()
        .map(|text| {
            let (sign, rest) = text.split_at(1);
            let (kind, object) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
            ConfigStep {
                group: match sign {
                    "+" => StepGroup::Create,
                    "-" => StepGroup::Prune,
                    _ => StepGroup::Sync,
                },
                kind: kind.to_owned(),
                object: object.to_owned(),
                text: text.clone(),
                disturbs: None,
            }
        })
        .collect()
}
