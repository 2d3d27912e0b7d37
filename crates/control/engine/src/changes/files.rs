//! Between the configuration's own words and the API's: findings and steps.

use weir_api::{ConfigStep, Finding, FindingSeverity, StepGroup};
use weir_config::{
    CheckOptions, Checked, Config, Diagnostic, Phase, Plan, PlannedStep, Severity, Step,
};

/// A file that may be applied, with its warnings.
pub(crate) struct Good {
    pub(crate) config: Config,
    /// Its text, with the hashes that were hidden in it.
    pub(crate) text: String,
    pub(crate) findings: Vec<Finding>,
}

/// Reads a file; all findings when one of them is an error.
pub(crate) fn examine(
    file: &str,
    text: &str,
    skip_unsupported: bool,
) -> Result<Checked, Vec<Finding>> {
    let options = CheckOptions {
        skip_unsupported,
        ..CheckOptions::new(file)
    };
    weir_config::check_with(&options, text.as_bytes()).map_err(tell)
}

/// Findings as the API tells them.
pub(crate) fn tell(all: Vec<Diagnostic>) -> Vec<Finding> {
    all.into_iter().map(finding).collect()
}

/// A finding as the API tells it.
fn finding(diagnostic: Diagnostic) -> Finding {
    // A line of the file may have had credentials put in.
    let rendered = weir_config::without_credentials_in(&diagnostic.to_string());
    Finding {
        severity: match diagnostic.severity {
            Severity::Error => FindingSeverity::Error,
            Severity::Warning => FindingSeverity::Warning,
        },
        file: diagnostic.file,
        line: diagnostic.line,
        column: diagnostic.column,
        width: diagnostic.width,
        path: diagnostic.path,
        message: diagnostic.message,
        help: diagnostic.help,
        rendered,
    }
}

/// The steps that a running router does.
pub(crate) fn done_steps(plan: &Plan) -> Vec<ConfigStep> {
    plan.steps
        .iter()
        .filter(|planned| !matches!(planned.step, Step::NeedsRestart { .. }))
        .map(step_view)
        .collect()
}

/// The keys whose change waits for a restart.
pub(crate) fn restart_keys(plan: &Plan) -> Vec<String> {
    plan.needs_restart().map(str::to_owned).collect()
}

fn step_view(planned: &PlannedStep) -> ConfigStep {
    ConfigStep {
        group: match planned.group {
            Phase::Prune => StepGroup::Prune,
            Phase::Create => StepGroup::Create,
            Phase::Sync => StepGroup::Sync,
        },
        kind: planned.kind.clone(),
        object: planned.object.clone(),
        text: planned.text.clone(),
        disturbs: planned.disturbs.clone(),
    }
}
