//! `weir config apply`, `confirm` and `rollback`: changes of the running configuration.
//!
//! Each is one request and one transaction of the router; what was done, and how long there is to
//! confirm it, is reported here.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use weir_api::{Applied, ApplyRequest, RollbackRequest};

use super::config_file::{name, refused, tell, text};
use super::config_plan;
use crate::cli::{ConfigApplyArgs, ConfigRollbackArgs, Where};
use crate::client::Output;
use crate::failure::Failure;
use crate::render;

/// `weir config apply`.
pub(crate) fn apply(
    args: &ConfigApplyArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    if args.dry_run {
        let plan = config_plan::ask(&args.file, at, json, to)?;
        if !json {
            tell(&plan.findings);
        }
        return Output::new(json, to).put(&plan, |plan, screen| {
            render::config::plan(plan, screen) + "a dry run: nothing was changed\n"
        });
    }
    let file = &args.file.config;
    let request = ApplyRequest {
        yaml: text(&args.file, json, to)?,
        file: Some(name(file)),
        comment: args.comment.clone(),
        author: None,
        confirm_seconds: args.confirm.map(seconds),
        skip_unsupported: args.file.skip_unsupported,
    };
    let applied = at
        .client()?
        .config_apply(&request)
        .map_err(|error| refused(file, error, json, to))?;
    done(&applied, at, json, to)
}

/// `weir config confirm`.
pub(crate) fn confirm(at: &Where, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let confirmed = at.client()?.config_confirm()?;
    Output::new(json, to).put(&confirmed, |confirmed, _| {
        format!("revision {} stays\n", confirmed.revision)
    })
}

/// `weir config rollback`.
pub(crate) fn rollback(
    args: &ConfigRollbackArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let request = RollbackRequest {
        revision: args.revision,
        steps_back: args.back,
        comment: args.comment.clone(),
        author: None,
        confirm_seconds: args.confirm.map(seconds),
    };
    let earlier = || {
        args.revision.map_or_else(
            || "the earlier revision".to_owned(),
            |revision| format!("revision {revision}"),
        )
    };
    let applied = at
        .client()?
        .config_rollback(&request)
        .map_err(|error| refused(Path::new(&earlier()), error, json, to))?;
    done(&applied, at, json, to)
}

fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

/// Tells what was done.
pub(super) fn done(
    applied: &Applied,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    if !json {
        tell(&applied.findings);
    }
    let confirm = format!("weir {}config confirm", at.options());
    Output::new(json, to).put(applied, |applied, screen| {
        render::config::applied(applied, &confirm, screen)
    })
}
