//! The store of applied configurations as the API tells it.

use weir_api::{ApiError, ErrorCode, History, Revision, RevisionText, Timestamp};
use weir_store::{Entry, RevisionState, Store};

use super::{Book, refused};
use crate::router::Router;

impl Book {
    pub(crate) fn history(&self) -> Result<&Store, ApiError> {
        let help = "set `history.directory` in the configuration file and start the router again; \
                    without it only a router whose socket is in /run/weir keeps one";
        self.store.as_ref().ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotAvailable,
                "this router keeps no history",
                help,
            )
        })
    }

    /// The revision `steps` before what runs, among those that were in force.
    pub(super) fn steps_back(&self, steps: u32) -> Result<u64, ApiError> {
        let store = self.history()?;
        let running = store.running().unwrap_or(0);
        let in_force = |entry: &&Entry| {
            entry.revision < running && matches!(entry.state, RevisionState::Applied)
        };
        let mut earlier: Vec<u64> = store
            .history()
            .iter()
            .filter(in_force)
            .map(|entry| entry.revision)
            .collect();
        earlier.sort_unstable_by(|a, b| b.cmp(a));
        let place = (steps.max(1) as usize) - 1;
        earlier.get(place).copied().ok_or_else(|| {
            let message = format!(
                "there are {} earlier configurations, not {steps}",
                earlier.len()
            );
            ApiError::new(ErrorCode::NotFound, message, "`history` lists them")
        })
    }

    /// The text of a revision.
    pub(super) fn text(&self, revision: u64) -> Result<String, ApiError> {
        let kept = self
            .history()?
            .read(revision)
            .map_err(|error| refused(&error))?;
        String::from_utf8(kept.text).map_err(|_| {
            ApiError::new(
                ErrorCode::Internal,
                format!("revision {revision} is not text"),
                "",
            )
        })
    }

    fn view(&self, entry: &Entry, before: Option<&Entry>) -> Result<Revision, ApiError> {
        let store = self.history()?;
        let text = self.text(entry.revision).unwrap_or_default();
        let earlier = before
            .and_then(|before| self.text(before.revision).ok())
            .unwrap_or_default();
        let (lines_added, lines_removed) = changed_lines(&earlier, &text);
        Ok(Revision {
            revision: entry.revision,
            time: Timestamp::from_unix_ms(entry.meta.time_unix_ms),
            author: entry.meta.author.clone(),
            comment: match entry.state {
                RevisionState::RolledBack { why, .. } => {
                    format!("{} (undone: {})", entry.meta.comment, why.word())
                        .trim_start()
                        .to_owned()
                }
                RevisionState::Applied | RevisionState::Unconfirmed => entry.meta.comment.clone(),
            },
            confirmed: matches!(entry.state, RevisionState::Applied),
            running: store.running() == Some(entry.revision),
            lines: u32::try_from(text.lines().count()).unwrap_or(u32::MAX),
            lines_added,
            lines_removed,
        })
    }

    fn entries(&self) -> Result<Vec<&Entry>, ApiError> {
        let mut all: Vec<&Entry> = self.history()?.history().iter().collect();
        all.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.revision));
        Ok(all)
    }
}

/// The revision that was in force when `entries[place]` was applied: the newest earlier one that was not undone.
/// `entries` are sorted from the newest to the oldest.
fn in_force_before<'a>(entries: &[&'a Entry], place: usize) -> Option<&'a Entry> {
    let undone = |entry: &Entry| matches!(entry.state, RevisionState::RolledBack { .. });
    let mut earlier = entries.iter().skip(place + 1).copied();
    earlier.find(|entry| !undone(entry))
}

/// How many lines come and go between two texts, counted as sets of lines: exact enough for a list
/// and linear in their length.
fn changed_lines(before: &str, after: &str) -> (u32, u32) {
    let mut counts = std::collections::HashMap::<&str, i64>::new();
    before
        .lines()
        .for_each(|line| *counts.entry(line).or_default() -= 1);
    after
        .lines()
        .for_each(|line| *counts.entry(line).or_default() += 1);
    let sum = |sign: i64| {
        counts
            .values()
            .map(|count| (count * sign).max(0))
            .sum::<i64>()
    };
    (
        u32::try_from(sum(1)).unwrap_or(u32::MAX),
        u32::try_from(sum(-1)).unwrap_or(u32::MAX),
    )
}

impl Router {
    pub(crate) fn history_view(
        &self,
        limit: usize,
        before: Option<u64>,
    ) -> Result<History, ApiError> {
        let lock = self.change_manager().lock();
        let book = self.change_manager().book();
        let entries = book.entries()?;
        let from = entries
            .iter()
            .position(|entry| before.is_none_or(|before| entry.revision < before))
            .unwrap_or(entries.len());
        let mut revisions = Vec::new();
        for (place, entry) in entries.iter().enumerate().skip(from).take(limit) {
            revisions.push(book.view(entry, in_force_before(&entries, place))?);
        }
        let more = entries.len() > from + revisions.len();
        let next = revisions.last().map(|last| last.revision).filter(|_| more);
        Ok(History {
            revisions,
            lock,
            next,
        })
    }

    pub(crate) fn revision_view(&self, revision: u64) -> Result<RevisionText, ApiError> {
        let book = self.change_manager().book();
        let yaml = book.text(revision)?;
        let entries = book.entries()?;
        let place = entries.iter().position(|entry| entry.revision == revision);
        let place = place.ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotFound,
                format!("no revision {revision}"),
                "`history` lists them",
            )
        })?;
        let before = in_force_before(&entries, place);
        let entry = entries.get(place);
        let revision = entry.map(|entry| book.view(entry, before)).transpose()?;
        let revision = revision.ok_or_else(|| {
            ApiError::new(ErrorCode::Internal, "a revision that was there is gone", "")
        })?;
        Ok(RevisionText {
            revision,
            yaml: weir_config::without_credentials_in_file(&yaml),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_and_go_are_counted() {
        assert_eq!(changed_lines("a\nb\nb\n", "a\nb\nc\nd\n"), (2, 1));
        assert_eq!(changed_lines("", "a\na\n"), (2, 0));
        assert_eq!(changed_lines("x\n", "x\n"), (0, 0));
    }
}
