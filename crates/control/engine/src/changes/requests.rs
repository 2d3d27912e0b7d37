//! What the API asks of the configuration: look, compare, apply, confirm, go back.

use weir_api::{
    ApiError, Applied, ApplyRequest, Caller, ConfigChecked, ConfigDiff, ConfigDump,
    ConfigEventKind, ConfigPlan, ConfigText, Confirmed, DiffRequest, ErrorCode, Finding,
    RollbackRequest,
};
use weir_config::{Checked, Config, Diagnostic, Plan};
use weir_store::Why;

use super::{ChangeManager, Reason, files, refused, system};
use crate::router::Router;

impl Router {
    pub(crate) fn change_manager(&self) -> &ChangeManager {
        &self.0.change_manager
    }

    /// The configuration that runs, with its credentials.
    #[must_use]
    pub fn running(&self) -> Config {
        self.running_config()
    }

    /// What runs.
    pub(crate) fn running_config(&self) -> Config {
        self.control().configured()
    }

    /// What the companion says about a good file.
    fn companion_findings(&self, config: &Config) -> Vec<Finding> {
        self.change_manager().companion.check(config)
    }

    /// What this machine says about a good file.
    fn remarks(&self, checked: &Checked) -> Vec<Diagnostic> {
        let (running, memory) = {
            let control = self.control();
            (control.configured(), control.memory.clone())
        };
        system::remarks(checked, &running, &memory)
    }

    /// What was applied last, with what waits for a restart.
    pub(crate) fn wanted_config(&self) -> Config {
        self.change_manager().book().wanted.clone()
    }

    pub(crate) fn dump(&self) -> ConfigDump {
        ConfigDump {
            yaml: weir_config::to_yaml(&weir_config::without_credentials(self.running_config())),
        }
    }

    pub(crate) fn check(&self, file: &ConfigText) -> ConfigChecked {
        match self.examine(file.file_name(), &file.yaml, file.skip_unsupported) {
            Err(findings) => ConfigChecked::new(findings),
            Ok(checked) => {
                let remarks = self.remarks(&checked);
                let mut findings =
                    files::tell(checked.warnings.into_iter().chain(remarks).collect());
                findings.extend(self.companion_findings(&checked.config));
                ConfigChecked::new(findings)
            }
        }
    }

    /// Reads a file; hidden credentials become those that the router has.
    fn examine(
        &self,
        file: &str,
        text: &str,
        skip_unsupported: bool,
    ) -> Result<Checked, Vec<Finding>> {
        let checked = files::examine(file, text, skip_unsupported)?;
        match weir_config::with_credentials_of(&checked, &self.wanted_config()) {
            Some(text) => files::examine(file, &text, skip_unsupported),
            None => Ok(checked),
        }
    }

    /// Reads a file and checks it against the machine: the one path of files, edits and revisions.
    pub(super) fn read(
        &self,
        file: &str,
        text: &str,
        skip_unsupported: bool,
    ) -> Result<files::Good, ApiError> {
        let checked = self
            .examine(file, text, skip_unsupported)
            .map_err(ApiError::invalid)?;
        let remarks = self.remarks(&checked);
        let mut findings = files::tell(checked.warnings.into_iter().chain(remarks).collect());
        findings.extend(self.companion_findings(&checked.config));
        let reply = ConfigChecked::new(findings);
        if reply.ok {
            Ok(files::Good {
                config: checked.config,
                text: checked.text,
                findings: reply.findings,
            })
        } else {
            Err(ApiError::invalid(reply.findings))
        }
    }

    pub(crate) fn plan(&self, file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        let checked = self.read(file.file_name(), &file.yaml, file.skip_unsupported)?;
        let running = self.running_config();
        let steps = Plan::between(&running, &checked.config);
        Ok(ConfigPlan {
            findings: checked.findings,
            without_device: steps.without_device.clone(),
            needs_restart: files::restart_keys(&steps),
            steps: files::done_steps(&steps),
            peering: self
                .change_manager()
                .companion
                .plan(&running, &checked.config),
        })
    }

    pub(crate) fn diff(&self, request: &DiffRequest) -> Result<ConfigDiff, ApiError> {
        let running = self.running_config();
        let diff = match (&request.yaml, request.revision) {
            (Some(yaml), _) => weir_config::diff(
                "running",
                &running,
                "configuration",
                &self
                    .examine("configuration", yaml, true)
                    .map_err(ApiError::invalid)?
                    .config,
            ),
            (None, Some(revision)) => {
                let text = self.change_manager().book().text(revision)?;
                let name = format!("revision {revision}");
                weir_config::diff(
                    &name,
                    &files::examine(&name, &text, true)
                        .map_err(ApiError::invalid)?
                        .config,
                    "running",
                    &running,
                )
            }
            (None, None) => {
                return Err(ApiError::new(
                    ErrorCode::BadRequest,
                    "nothing to compare with",
                    "send \"yaml\" or \"revision\"",
                ));
            }
        };
        Ok(ConfigDiff {
            diff: weir_config::without_credentials_in(&diff),
        })
    }

    pub(crate) fn apply_file(
        &self,
        request: &ApplyRequest,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let checked = self.read(request.file_name(), &request.yaml, request.skip_unsupported)?;
        let reason = Reason {
            author: request.author.clone().unwrap_or_else(|| caller.author()),
            comment: request.comment.clone().unwrap_or_default(),
            confirm_seconds: request.confirm_seconds,
        };
        self.change(
            checked.config,
            &checked.text,
            &reason,
            checked.findings,
            caller,
        )
    }

    pub(crate) fn confirm(&self, caller: &Caller) -> Result<Confirmed, ApiError> {
        let author = caller.author();
        let mut change = self.change_manager().begin(&author, caller)?;
        let Some(waiting) = &change.book.waiting else {
            return Err(ApiError::new(
                ErrorCode::Conflict,
                "no change waits to be confirmed",
                "`history` shows what was applied",
            ));
        };
        let revision = waiting.revision;
        if waiting.has_companion {
            self.change_manager().companion.confirm().map_err(|error| {
                ApiError::new(
                    ErrorCode::Conflict,
                    format!("peering: {error}"),
                    "roll back, and apply again",
                )
            })?;
        }
        if let Some(store) = &mut change.book.store {
            store.confirm().map_err(|error| refused(&error))?;
        }
        change.book.waiting = None;
        tracing::info!("configuration {revision} is confirmed by {caller}");
        self.change_manager()
            .tell(ConfigEventKind::Confirmed, revision, &author, "", None);
        Ok(Confirmed { revision })
    }

    pub(crate) fn roll_back(
        &self,
        request: &RollbackRequest,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        let author = request.author.clone().unwrap_or_else(|| caller.author());
        if request.revision.is_none()
            && request.steps_back.is_none_or(|steps| steps == 1)
            && let Some(applied) = self.give_up_waiting(&author, caller)?
        {
            return Ok(applied);
        }
        let (revision, text) = {
            let book = self.change_manager().book();
            if let Some(waiting) = &book.waiting {
                return Err(ApiError::locked(waiting.lock.clone()));
            }
            let revision = request
                .revision
                .map_or_else(|| book.steps_back(request.steps_back.unwrap_or(1)), Ok)?;
            (revision, book.text(revision)?)
        };
        let checked = self.read(&format!("revision {revision}"), &text, true)?;
        let comment = request
            .comment
            .clone()
            .unwrap_or_else(|| format!("back to revision {revision}"));
        let reason = Reason {
            author,
            comment,
            confirm_seconds: request.confirm_seconds,
        };
        self.change(
            checked.config,
            &checked.text,
            &reason,
            checked.findings,
            caller,
        )
    }

    /// Undoes the change that waits, if one does.
    fn give_up_waiting(&self, author: &str, caller: &Caller) -> Result<Option<Applied>, ApiError> {
        let mut change = self.change_manager().begin(author, caller)?;
        let Some(waiting) = &change.book.waiting else {
            return Ok(None);
        };
        let steps = Plan::between(&self.running_config(), &waiting.before);
        self.undo_waiting(&mut change.book, Why::Asked);
        let revision = change.book.revision();
        Ok(Some(Applied {
            revision,
            steps: files::done_steps(&steps),
            needs_restart: files::restart_keys(&steps),
            ..Applied::default()
        }))
    }
}
