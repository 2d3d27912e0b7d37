//! `weir config plan` and `weir config diff`: what would change.
//!
//! A plan against a running router is the router's own, and so is a difference. Without one
//! (`--from`, `--offline`) they are worked out here by the same functions, from a file, or from what
//! a router is before it has any configuration.

use std::io::Write;
use std::path::Path;

use weir_api::{ConfigDiff, ConfigPlan, ConfigStep, ConfigText, DiffRequest, StepGroup};
use weir_config::{Checked, Config, Phase, Plan, PlannedStep, Step};

use super::config_file::{check, name, read, refuse, refused, tell, text};
use crate::cli::{ConfigDiffArgs, ConfigFileArgs, ConfigPlanArgs, Where};
use crate::client::Output;
use crate::failure::Failure;
use crate::render;

/// `weir config plan`.
pub(crate) fn plan(
    args: &ConfigPlanArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
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
pub(super) fn ask(
    args: &ConfigFileArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<ConfigPlan, Failure> {
    let yaml = text(args, json, to)?;
    let request = ConfigText {
        yaml,
        file: Some(name(&args.config)),
        skip_unsupported: args.skip_unsupported,
    };
    at.client()?
        .config_plan(&request)
        .map_err(|error| refused(&args.config, error, json, to))
}

fn offline(
    args: &ConfigFileArgs,
    from: Option<&Path>,
    json: bool,
    to: &mut dyn Write,
) -> Result<ConfigPlan, Failure> {
    let wanted = good(&args.config, args.skip_unsupported, json, to)?;
    let running = match from {
        Some(from) => good(from, args.skip_unsupported, json, to)?.config,
        None => Config::start_of(&wanted.config),
    };
    // Warnings about the wanted file come as the router would tell them: on standard error.
    tell(&wanted.warnings);
    let plan = Plan::between(&running, &wanted.config);
    Ok(ConfigPlan {
        findings: Vec::new(),
        needs_restart: plan.needs_restart().map(str::to_owned).collect(),
        steps: plan
            .steps
            .iter()
            .filter(|planned| !matches!(planned.step, Step::NeedsRestart { .. }))
            .map(view)
            .collect(),
        without_device: plan.without_device,
        peering: Vec::new(),
    })
}

fn good(
    file: &Path,
    skip_unsupported: bool,
    json: bool,
    to: &mut dyn Write,
) -> Result<Checked, Failure> {
    check(file, skip_unsupported)?.map_err(|findings| refuse(&name(file), &findings, json, to))
}

fn view(planned: &PlannedStep) -> ConfigStep {
    let group = match planned.group {
        Phase::Prune => StepGroup::Prune,
        Phase::Create => StepGroup::Create,
        Phase::Sync => StepGroup::Sync,
    };
    ConfigStep {
        group,
        kind: planned.kind.clone(),
        object: planned.object.clone(),
        text: planned.text.clone(),
        disturbs: planned.disturbs.clone(),
    }
}

/// `weir config diff`.
pub(crate) fn diff(
    args: &ConfigDiffArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    if let (Some(from), Some(file)) = (&args.from, &args.config) {
        let (old, new) = (
            good(from, true, json, to)?.config,
            good(file, true, json, to)?.config,
        );
        let diff = ConfigDiff {
            diff: weir_config::diff(&name(from), &old, &name(file), &new),
        };
        return Output::new(json, to).put(&diff, render::config::diff);
    }
    let request = match &args.config {
        Some(file) => {
            let bytes = read(file)?;
            let yaml = String::from_utf8(bytes)
                .map_err(|_| Failure::said(format_args!("{} is not text in UTF-8", name(file))))?;
            DiffRequest {
                yaml: Some(yaml),
                revision: None,
            }
        }
        None => DiffRequest {
            yaml: None,
            revision: args.revision,
        },
    };
    let file = args
        .config
        .as_deref()
        .unwrap_or_else(|| Path::new("the revision"));
    let diff = at
        .client()?
        .config_diff(&request)
        .map_err(|error| refused(file, error, json, to))?;
    Output::new(json, to).put(&diff, render::config::diff)
}
