//! `weir peering plan` and `apply`.

use std::io::Write;
use std::path::Path;

use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::bird;
use weir_peering::plan::{Plan, Summary, VerdictDiff};
use weir_peering::resolve::Loaded;
use weir_peering::traffic::Traffic;

use super::{daemon, load_for, refused, write_json};
use crate::cli::{PeeringApplyArgs, PeeringPlanArgs};
use crate::failure::{CONFLICT, FAILED, Failure};

/// A configuration with what it changes.
struct Prepared {
    daemon: Daemon,
    of: Loaded,
    summary: Summary,
    plan: Plan,
}

fn prepare(args: &PeeringPlanArgs) -> Result<Prepared, Failure> {
    let daemon = daemon(&args.daemon);
    let of = load_for(&args.of, &daemon)?;
    let traffic = args.traffic.as_deref().map(Traffic::load);
    let mut traffic = traffic.transpose().map_err(refused)?;
    if let Some(router) = &args.api {
        traffic = Some(super::drain::measured(router)?);
    }
    daemon.settle().map_err(refused)?;
    let (summary, plan) = daemon.prepare(&of, traffic.as_ref()).map_err(refused)?;
    Ok(Prepared {
        daemon,
        of,
        summary,
        plan,
    })
}

pub(super) fn plan(args: &PeeringPlanArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let prepared = prepare(args)?;
    if json {
        return write_json(&prepared.plan, to);
    }
    print(&prepared.plan, to)?;
    if prepared.daemon.is_edited().map_err(refused)? {
        writeln!(
            to,
            "{} was not written by Weir; apply replaces it only with --replace",
            args.daemon.bird_config.display()
        )?;
    }
    Ok(())
}

pub(super) fn apply(
    args: &PeeringApplyArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let prepared = prepare(&args.plan)?;
    if !args.replace && prepared.daemon.is_edited().map_err(refused)? {
        return Err(Failure::Coded(
            CONFLICT,
            format!(
                "{} was not written by Weir, or was edited since: --replace replaces it",
                args.plan.daemon.bird_config.display()
            ),
        ));
    }
    let loss = prepared
        .plan
        .verdicts
        .as_ref()
        .and_then(VerdictDiff::largest_loss);
    if let Some((percent, session)) = loss.filter(|it| it.0 > f64::from(args.max_loss)) {
        return Err(Failure::Coded(
            CONFLICT,
            format!(
                "{percent:.0} % of the accepted routes of {session} would be rejected; --max-loss {} permits less. \
                 `weir peering plan` lists them",
                args.max_loss
            ),
        ));
    }
    if !json {
        print(&prepared.plan, to)?;
        to.flush()?;
    }
    let fib = || fib_routes(args.plan.api.as_deref()?);
    let guard = Guard {
        fib: args
            .plan
            .api
            .is_some()
            .then_some(&fib as &dyn Fn() -> Option<u64>),
        fib_percent: args.fib,
        ..Guard::new(args.guard, args.imports)
    };
    let configuration = bird::configuration(&prepared.of.peering, &prepared.of.snapshot);
    let outcome = prepared
        .daemon
        .apply(
            &configuration,
            &prepared.summary,
            &prepared.plan,
            guard,
            args.wait,
        )
        .map_err(refused)?;
    if json {
        write_json(&outcome, to)?;
    } else {
        match &outcome {
            Outcome::Confirmed => writeln!(to, "applied and confirmed")?,
            Outcome::Waiting { .. } => writeln!(
                to,
                "applied; `weir peering confirm` within {} s keeps it, otherwise BIRD undoes it",
                args.wait.unwrap_or_default().as_secs()
            )?,
            Outcome::Undone {
                reason,
                milliseconds,
            } => writeln!(to, "undone after {milliseconds} ms: {reason}")?,
        }
    }
    match outcome {
        Outcome::Undone { .. } => Err(Failure::Reported(FAILED)),
        _ => Ok(()),
    }
}

/// The number of routes of a router's forwarding tables, by its API.
pub(crate) fn fib_routes(socket: &Path) -> Option<u64> {
    let summary = weir_api::Client::new(socket).fib_summary().ok()?;
    let tables = summary.tables.iter();
    Some(tables.flat_map(|it| &it.routes).map(|it| it.count).sum())
}

fn print(plan: &Plan, to: &mut dyn Write) -> Result<(), Failure> {
    for line in plan.lines() {
        writeln!(to, "{line}")?;
    }
    Ok(())
}
