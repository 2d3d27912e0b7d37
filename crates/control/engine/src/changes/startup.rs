//! Which configuration a router starts with, and what its history says of it.
//!
//! The file given at the start counts when there is no history, or when its meaning was edited since a
//! router took it last; comments do not matter. Else what ran last counts: a change that came over the API survives a restart, and a
//! change that was not confirmed does not. The text of the file that was taken last lies beside the
//! revisions, in `started-from`, so that "edited" means what it says.

use std::io::Write;
use std::path::{Path, PathBuf};

use weir_api::{ApiError, Applied, ApplyRequest, Caller, Timestamp};
use weir_config::Config;
use weir_store::{DiskFiles, Meta, Recovered, Store, StoreError};

use super::files;
use crate::router::Router;

/// Why a router cannot start with its history.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The folder belongs to another router.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A configuration to start with.
pub struct Startup {
    config: Config,
    text: String,
    /// Why a revision is new; absent when what ran last runs again.
    comment: Option<String>,
    store: Option<Store>,
    /// Where the text of the file that was taken last lies.
    taken: Option<Taken>,
    /// Why there is no history although there should be one.
    no_history: Option<String>,
}

/// The file that was taken last.
struct Taken {
    place: PathBuf,
    text: String,
}

/// Its name beside the revisions.
const STARTED_FROM: &str = "started-from";

impl Startup {
    /// A router without a history: the file counts.
    #[must_use]
    pub fn without_history(config: Config, text: &str) -> Startup {
        Startup {
            config,
            text: text.to_owned(),
            comment: None,
            store: None,
            taken: None,
            no_history: None,
        }
    }

    /// Chooses between the file and what ran last.
    ///
    /// # Errors
    /// When the folder is another router's. One that cannot be read is no error: the file counts, and there is no history.
    pub fn choose(
        file: &str,
        text: &str,
        config: Config,
        folder: &Path,
        keep: usize,
    ) -> Result<Startup, StartupError> {
        let opened = DiskFiles::open(folder)
            .and_then(|files| Store::open(Box::new(files), keep, Timestamp::now().unix_ms()));
        let (store, recovered) = match opened {
            Ok(opened) => opened,
            Err(error @ StoreError::Open { .. }) => {
                tracing::error!(
                    folder = %folder.display(),
                    %error,
                    "the history cannot be read: the router starts with its file and keeps no history"
                );
                return Ok(Startup {
                    no_history: Some(error.to_string()),
                    ..Startup::without_history(config, text)
                });
            }
            Err(error) => return Err(error.into()),
        };
        report_damage(folder, &recovered);
        if let Some(lost) = recovered.rolled_back {
            tracing::warn!(
                "configuration {} was not confirmed when the router ended: the one before it counts",
                lost.revision
            );
        }
        if let Some(error) = &recovered.unrecorded {
            tracing::warn!("changes will be refused: {error}");
        }
        let place = folder.join(STARTED_FROM);
        // A comment or another order of keys is no edit.
        let before = std::fs::read_to_string(&place)
            .ok()
            .and_then(|before| files::examine(file, &before, true).ok());
        let edited = before.as_ref().is_none_or(|before| before.config != config);
        if let (true, Some(before), Some(last)) = (edited, &before, &recovered.running)
            && last.text != before.text.as_bytes()
        {
            tracing::warn!(
                "{file} was edited and counts: changes that were made without the file since it was \
                 read are in revision {} only",
                last.number
            );
        }
        let taken = Some(Taken {
            place,
            text: text.to_owned(),
        });
        if let Some(last) = recovered.running.filter(|_| !edited)
            && let Some((config, text)) = last_one(last)
        {
            return Ok(Startup {
                config,
                text,
                comment: None,
                store: Some(store),
                taken,
                no_history: None,
            });
        }
        let comment = Some(format!("start with {file}"));
        Ok(Startup {
            config,
            text: text.to_owned(),
            comment,
            store: Some(store),
            taken,
            no_history: None,
        })
    }

    /// The configuration to start with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// Logs what of the history is lost, by name.
fn report_damage(folder: &Path, recovered: &Recovered) {
    if recovered.lost {
        tracing::error!(
            folder = %folder.display(),
            "state.a and state.b cannot be read: the file counts, and which revision ran last is not known"
        );
    }
    for number in &recovered.damaged {
        tracing::error!(
            revision = number,
            file = %folder.join(format!("{number:06}.yaml")).display(),
            "this revision is damaged and is skipped"
        );
    }
    if let Some(running) = &recovered.running
        && recovered.damaged.iter().any(|it| *it > running.number)
    {
        tracing::warn!(
            revision = running.number,
            "the newest revision that can be read is taken"
        );
    }
}

/// What ran last, if this version still reads it.
fn last_one(last: weir_store::Revision) -> Option<(Config, String)> {
    let text = String::from_utf8(last.text).ok()?;
    match files::examine(&format!("revision {}", last.number), &text, true) {
        Ok(checked) => {
            tracing::info!(
                "the file was not edited since configuration {} was applied, which counts",
                last.number
            );
            Some((checked.config, text))
        }
        Err(findings) => {
            for finding in findings {
                tracing::error!("{}", finding.rendered);
            }
            tracing::error!(
                "configuration {} cannot be read any more: the file counts",
                last.number
            );
            None
        }
    }
}

impl Router {
    /// Takes over the history, once the router runs what `startup` says.
    pub(crate) fn adopt(&self, startup: Startup) {
        let Startup {
            config,
            text,
            comment,
            mut store,
            taken,
            no_history,
        } = startup;
        if let (Some(store), Some(comment)) = (&mut store, comment)
            && !is_running(store, &text)
        {
            let meta = Meta {
                time_unix_ms: Timestamp::now().unix_ms(),
                author: "weir".to_owned(),
                comment,
                steps: 0,
            };
            let kept = store
                .prepare(text.as_bytes(), meta)
                .and_then(|prepared| store.commit(prepared, None));
            if let Err(error) = kept {
                tracing::warn!("the configuration is not in the history: {error}");
            }
        }
        let mut book = self.change_manager().book();
        if let Some(taken) = &taken {
            taken.note();
        }
        book.taken_at = taken.map(|taken| taken.place);
        book.store = store;
        book.no_history = no_history;
        book.wanted = config;
        book.text = text;
    }

    /// Applies a file anew, as `SIGHUP` asks; from then on it counts as the one that was taken last.
    ///
    /// # Errors
    /// As for a change over the API: the findings, or what refused it; nothing was changed.
    pub fn reload(
        &self,
        file: &str,
        text: &str,
        skip_unsupported: bool,
    ) -> Result<Applied, ApiError> {
        let request = ApplyRequest {
            yaml: text.to_owned(),
            file: Some(file.to_owned()),
            comment: Some(format!("reload of {file}")),
            skip_unsupported,
            ..ApplyRequest::default()
        };
        let applied = self.apply_file(&request, &Caller::router())?;
        if let Some(place) = self.change_manager().book().taken_at.clone() {
            Taken {
                place,
                text: text.to_owned(),
            }
            .note();
        }
        Ok(applied)
    }
}

fn is_running(store: &Store, text: &str) -> bool {
    store
        .running()
        .and_then(|number| store.read(number).ok())
        .is_some_and(|running| running.text == text.as_bytes())
}

impl Taken {
    fn note(&self) {
        if let Err(error) = self.write() {
            tracing::warn!(
                "{} cannot be written, so the next start takes the file: {error}",
                self.place.display()
            );
        }
    }

    /// Beside and renamed: the old text or the new one.
    fn write(&self) -> std::io::Result<()> {
        let beside = self.place.with_extension("new");
        let mut out = std::fs::File::create(&beside)?;
        out.write_all(self.text.as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&beside, &self.place)
    }
}
