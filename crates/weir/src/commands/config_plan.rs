//! `weir config plan` and `weir config diff`: what would change.
//!
//! A plan against a running router is the router's own. Without one (`--from`, `--offline`) it is
//! worked out here by the same function, from a file, or from what a router is before it has any
//! configuration.

use std::io::Write;
use std::path::Path;

use weir_api::{ConfigPlan, ConfigStep, ConfigText, DiffRequest, StepGroup};
use weir_config::{Config, Phase, Step};

use super::config_file::{check, name, read, refuse, refused, tell, text};
use crate::cli::{ConfigDiffArgs, ConfigFileArgs, ConfigPlanArgs, Where};
use crate::client::Output;
use crate::failure::Failure;
use crate::render;

/// `weir config plan`.
pub(crate) fn plan(args: &ConfigPlanArgs, at: &Where, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let plan = match &args.from {
        Some(from) => offline(&args.file, Some(from), json, to)?,
        None if args.offline => offline(&args.file, None, json, to)?,
        None => ask(&args.file, at, json, to)?,
    };
    if !json {
        tell(&plan.findings);
    }
    Output::new(json, to).put(&plan, render::config::plan)
}

/// The running router's plan for a file.
pub(super) fn ask(args: &ConfigFileArgs, at: &Where, json: bool, to: &mut dyn Write) -> Result<ConfigPlan, Failure> {
    let yaml = text(args, json, to)?;
    let request = ConfigText { yaml, file: Some(name(&args.config)), skip_unsupported: args.skip_unsupported };
    at.client()?.config_plan(&request).map_err(|error| refused(&args.config, error, json, to))
}

fn offline(args: &ConfigFileArgs, from: Option<&Path>, json: bool, to: &mut dyn Write) -> Result<ConfigPlan, Failure> {
    let mut good = |file: &Path| match check(file, args.skip_unsupported)? {
        Ok(checked) => Ok(checked),
        Err(findings) => Err(refuse(&name(file), &findings, json, to)),
    };
    let wanted = good(&args.config)?;
    let running = match from {
        Some(from) => good(from)?.config,
        None => Config::start_of(&wanted.config),
    };
    // Warnings about the wanted file come as the router would tell them: on standard error.
    tell(&wanted.warnings);
    let steps = weir_config::plan(&running, &wanted.config);
    let restart = |step: &Step| match step {
        Step::NeedsRestart { change } => Some(change.section().to_owned()),
        _ => None,
    };
    Ok(ConfigPlan {
        findings: Vec::new(),
        needs_restart: steps.iter().filter_map(restart).collect(),
        steps: steps.iter().filter(|step| restart(step).is_none()).map(view).collect(),
        without_device: wanted.config.without_device().map(str::to_owned).collect(),
    })
}

fn view(step: &Step) -> ConfigStep {
    let group = match step.phase() {
        Phase::Prune => StepGroup::Prune,
        Phase::Create => StepGroup::Create,
        Phase::Sync => StepGroup::Sync,
    };
    let fields = serde_json::to_value(step).unwrap_or_default();
    let field = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    let object = ["name", "interface", "prefix"].into_iter().find_map(field).unwrap_or_default();
    ConfigStep { group, kind: field("step").unwrap_or_default(), object, text: step.to_string() }
}

/// `weir config diff`.
pub(crate) fn diff(args: &ConfigDiffArgs, at: &Where, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let request = match &args.config {
        Some(file) => {
            let bytes = read(file)?;
            let yaml = String::from_utf8(bytes).map_err(|_| Failure::said(format_args!("{} is not text in UTF-8", name(file))))?;
            DiffRequest { yaml: Some(yaml), revision: None }
        }
        None => DiffRequest { yaml: None, revision: args.revision },
    };
    let file = args.config.as_deref().unwrap_or_else(|| Path::new("the revision"));
    let diff = at.client()?.config_diff(&request).map_err(|error| refused(file, error, json, to))?;
    Output::new(json, to).put(&diff, render::config::diff)
}
